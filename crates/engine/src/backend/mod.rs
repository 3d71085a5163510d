//! Where requests go. One folder or file per kind of target.

pub mod null;
pub mod pread;
pub mod simulated;

use crate::error::EngineError;
use crate::job::Request;

/// Moves the bytes of requests. Every issuer has its own instance, so nothing in it is shared.
pub trait Backend: Send {
    /// Moves all bytes of one request and returns their number. Allocates nothing.
    ///
    /// # Errors
    /// `Io` when the target fails in the middle of a run.
    fn transfer(&mut self, request: &Request) -> Result<u64, EngineError>;

    /// True when a request goes nowhere, so that its response time is one turn of Leadline's own
    /// loop.
    fn measures_itself(&self) -> bool {
        false
    }
}
