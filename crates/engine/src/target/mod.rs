//! A job on each kind of target, from its preparation to its result, and questions about one.

pub mod ask;
pub mod assemble;
pub(crate) mod directory;
pub(crate) mod nfs;
pub(crate) mod null;
pub mod precondition;
pub(crate) mod replay;
pub(crate) mod session;
pub(crate) mod site;
pub mod virtual_time;
