//! The documents of the wire: what is asked (`job`) and what is answered (`result`).

pub mod data_set;
pub mod job;
pub mod limits;
pub mod result;
pub mod slice;
pub mod text;
