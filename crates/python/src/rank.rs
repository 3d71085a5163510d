//! One rank of a kernel, as Python sees it: addresses and lengths for MPI, and steps taken together.

use std::sync::{Mutex, MutexGuard, PoisonError};

use leadline_engine::error::EngineError;
use leadline_kernels::ranks::exchange::Moves;
use leadline_kernels::ranks::kernel::RankKernel;
use leadline_kernels::ranks::mailbox::{Message, Tag};
use leadline_kernels::ranks::network::NetworkKernel;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Peer, slot, bytes, tag and address of a message to be sent.
type Send = (usize, usize, usize, i32, usize);
/// Peer, slot, bytes and address of memory that waits for a message.
type Receive = (usize, usize, usize, usize);

/// One rank of a job.
#[pyclass(frozen, module = "leadline._engine")]
pub struct Rank(Mutex<Box<dyn RankKernel>>);

#[pymethods]
impl Rank {
    /// A rank that only tries the network, with `bytes_each` from every rank.
    #[staticmethod]
    fn network(rank: usize, ranks: usize, bytes_each: u64) -> PyResult<Self> {
        let kernel = NetworkKernel::new(rank, ranks, bytes_each).map_err(failed)?;
        Ok(Self(Mutex::new(Box::new(kernel))))
    }

    /// Does a piece of work and says what to carry: whether anything was done, what to send, and
    /// where to receive.
    fn step(&self, py: Python<'_>) -> (bool, Vec<Send>, Vec<Receive>) {
        py.detach(|| {
            let mut kernel = self.kernel();
            let Some(ends) = kernel.ends() else { return (false, Vec::new(), Vec::new()) };
            let Moves { worked, send, receive } = ends.exchange.step(ends.source, ends.sink);
            let exchange = &*ends.exchange;
            let send = send.into_iter().map(|Message { peer, slot, bytes, tag }| {
                (peer, slot, bytes, tag as i32, exchange.send_address(peer, slot))
            });
            let bytes = exchange.slot_bytes();
            let receive = receive.into_iter().map(|(peer, slot)| {
                (peer, slot, bytes, exchange.receive_address(peer, slot))
            });
            (worked, send.collect(), receive.collect())
        })
    }

    /// A message has left its slot.
    fn sent(&self, peer: usize, slot: usize) {
        if let Some(ends) = self.kernel().ends() {
            ends.exchange.sent(peer, slot);
        }
    }

    /// A message has come; whether its sender has more.
    fn arrived(&self, peer: usize, slot: usize, bytes: usize, tag: i32) -> PyResult<bool> {
        let tag = Tag::of(tag)
            .ok_or_else(|| PyValueError::new_err(format!("no message has the tag {tag}")))?;
        if let Some(ends) = self.kernel().ends() {
            ends.exchange.arrived(Message { peer, slot, bytes, tag });
        }
        Ok(tag == Tag::Data)
    }

    /// Whether all messages are where they belong, or have been given up.
    fn is_over(&self) -> bool {
        self.kernel().ends().is_none_or(|ends| ends.exchange.is_over())
    }
}

impl Rank {
    fn kernel(&self) -> MutexGuard<'_, Box<dyn RankKernel>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error as its kind and its message, which `leadline.engine` turns into one of its own.
fn failed(error: EngineError) -> PyErr {
    PyRuntimeError::new_err((error.kind.name(), error.message))
}
