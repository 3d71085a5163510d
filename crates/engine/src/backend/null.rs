//! Requests that return at once: what is measured is Leadline itself.

use crate::backend::Backend;
use crate::error::EngineError;
use crate::job::Request;

/// The backend of `null:`.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullBackend;

impl Backend for NullBackend {
    #[inline]
    fn transfer(&mut self, request: &Request) -> Result<u64, EngineError> {
        Ok(std::hint::black_box(request).length_bytes)
    }

    fn measures_itself(&self) -> bool {
        true
    }
}
