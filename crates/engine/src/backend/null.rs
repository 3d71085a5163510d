//! Requests that return at once: what is measured is Leadline itself.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;

use crate::backend::Wire;
use crate::backend::{Backend, Completion, QueueBackend};
use leadline_base::request::Request;

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

/// A queue whose requests are done as soon as they are sent.
#[derive(Debug)]
pub struct NullQueue {
    prepared: Vec<Completion>,
}

impl NullQueue {
    /// A queue of `depth` slots.
    #[must_use]
    pub fn new(depth: usize) -> Self {
        Self { prepared: Vec::with_capacity(depth) }
    }
}

impl QueueBackend for NullQueue {
    #[inline]
    fn prepare(&mut self, slot: usize, request: &Request) -> Result<(), EngineError> {
        let bytes = std::hint::black_box(request).length_bytes;
        self.prepared.push(Completion { slot, bytes, wire: Wire::default() });
        Ok(())
    }

    #[inline]
    fn turn(
        &mut self,
        _timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> Result<(), EngineError> {
        done.append(&mut self.prepared);
        Ok(())
    }
}
