//! What [`leadline_wire`]'s jobs are run with, whoever runs them: engine and kernels stand on it, and
//! it on nothing of ours but the wire.
//!
//! Towards the caller: [`line`](mod@line) (a job from its text to its last event), [`error`] and
//! [`events`]. Towards the machine: [`beneath`] and [`space`] (files and the room for them),
//! [`request`] (what a worker asks for), [`buffer`], [`ring`], [`threads`], [`clock`] and [`host`].
//! Numbers: [`histogram`] and [`normal`].
//!
//! The hot loops are compiled in other crates, and without LTO only what says `#[inline]` is sure to
//! be inlined there. So whatever is called for each request or slice of a run says it, and nothing
//! else does.

pub mod beneath;
pub mod buffer;
pub mod clock;
pub mod error;
pub mod events;
pub mod histogram;
pub mod host;
pub mod line;
pub mod normal;
pub mod replay;
pub mod request;
pub mod ring;
pub mod space;
pub mod threads;
