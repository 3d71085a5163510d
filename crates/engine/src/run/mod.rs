//! One run: workers in step, what they count, when it is steady and when it is enough.

pub mod backlog;
pub mod controller;
pub mod load_seen;
pub mod offered;
pub mod phases;
pub mod placement;
pub mod recorder;
pub mod slices;
pub mod steady;
pub mod stop;
pub mod summary;
pub mod worker;
