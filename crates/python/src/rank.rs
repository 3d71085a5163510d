//! One rank of a kernel, as Python sees it: addresses and lengths for MPI, and steps taken together.

use std::sync::{Mutex, MutexGuard, PoisonError};

use leadline_base::error::EngineError;
use leadline_kernels::ranks::exchange::Moves;
use leadline_kernels::ranks::mailbox::{Message, Tag};
use leadline_kernels::ranks::rank;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Peer, slot, bytes, tag and address of a message to be sent.
type Sending = (usize, usize, usize, i32, usize);
/// Peer, slot, bytes and address of memory that waits for a message.
type Receiving = (usize, usize, usize, usize);

/// One rank of a job. What fails raises RuntimeError(kind, message).
#[pyclass(frozen, module = "leadline._engine")]
pub struct Rank(Mutex<rank::Rank>);

#[pymethods]
impl Rank {
    #[new]
    fn new(py: Python<'_>, job_json: &str, rank: usize, ranks: usize) -> PyResult<Self> {
        let made = py.detach(|| rank::Rank::new(job_json, rank, ranks));
        Ok(Self(Mutex::new(made.map_err(failed)?)))
    }

    /// A rank that only tries the network, with `bytes_each` from every rank.
    #[staticmethod]
    fn network(rank: usize, ranks: usize, bytes_each: u64) -> PyResult<Self> {
        Ok(Self(Mutex::new(rank::Rank::network(rank, ranks, bytes_each).map_err(failed)?)))
    }

    /// Some of this rank's input.
    fn sample(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        self.done(py, |rank| rank.kernel().sample())
    }

    /// The samples of all ranks.
    fn split(&self, py: Python<'_>, samples: Vec<Vec<u8>>) -> PyResult<()> {
        self.done(py, |rank| rank.kernel().split(&samples))
    }

    /// All ranks begin now.
    fn begin(&self) {
        self.rank().kernel().begin();
    }

    /// Does a piece of work and says what to carry: whether anything was done, what to send, and
    /// where to receive.
    fn step(&self, py: Python<'_>) -> (bool, Vec<Sending>, Vec<Receiving>) {
        py.detach(|| {
            let mut rank = self.rank();
            let Some(ends) = rank.ends() else { return (false, Vec::new(), Vec::new()) };
            let Moves { worked, send, receive } = ends.exchange.step(ends.source, ends.sink);
            let exchange = &*ends.exchange;
            let send = send.into_iter().map(|Message { peer, slot, bytes, tag }| {
                (peer, slot, bytes, tag as i32, exchange.send_address(peer, slot))
            });
            let bytes = exchange.slot_bytes();
            let receive = receive
                .into_iter()
                .map(|(peer, slot)| (peer, slot, bytes, exchange.receive_address(peer, slot)));
            (worked, send.collect(), receive.collect())
        })
    }

    /// A message has left its slot.
    fn sent(&self, peer: usize, slot: usize) {
        if let Some(ends) = self.rank().ends() {
            ends.exchange.sent(peer, slot);
        }
    }

    /// A message has come; whether its sender has more.
    fn arrived(&self, peer: usize, slot: usize, length: usize, tag: i32) -> PyResult<bool> {
        let tag = Tag::of(tag)
            .ok_or_else(|| PyValueError::new_err(format!("no message has the tag {tag}")))?;
        if let Some(ends) = self.rank().ends() {
            ends.exchange.arrived(Message { peer, slot, bytes: length, tag });
        }
        Ok(tag == Tag::Data)
    }

    /// Whether all messages are where they belong, or have been given up.
    fn is_over(&self) -> bool {
        self.rank().ends().is_none_or(|ends| ends.exchange.is_over())
    }

    /// What came of the exchange, on this rank.
    fn end_exchange(&self, py: Python<'_>) -> PyResult<()> {
        self.done(py, rank::Rank::end_exchange)
    }

    /// Writes what is still to be written of this rank's part.
    fn write(&self, py: Python<'_>) -> PyResult<()> {
        self.done(py, |rank| rank.kernel().write())
    }

    /// Reads this rank's part back.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.done(py, |rank| rank.kernel().verify())
    }

    /// What this rank found, for `merge_ranks`.
    fn answer(&self, py: Python<'_>) -> PyResult<String> {
        self.done(py, |rank| rank.answer())
    }

    /// Names the files of this rank's part; what `publish` needs to know of them, and their names.
    fn link(&self, py: Python<'_>) -> PyResult<(String, Vec<String>)> {
        self.done(py, rank::Rank::link)
    }

    /// Writes the layout of the parts of all ranks.
    fn publish(&self, py: Python<'_>, parts: Vec<String>) -> PyResult<()> {
        self.done(py, |rank| rank.publish(&parts))
    }

    /// Leaves this rank's files where they are.
    fn keep(&self) {
        self.rank().keep();
    }
}

impl Rank {
    fn rank(&self) -> MutexGuard<'_, rank::Rank> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done<T: Send>(
        &self,
        py: Python<'_>,
        step: impl FnOnce(&mut rank::Rank) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        py.detach(|| step(&mut self.rank())).map_err(failed)
    }
}

/// The result of all ranks of a job, from their answers in order.
#[pyfunction]
pub fn merge_ranks(job_json: &str, answers: Vec<String>) -> PyResult<String> {
    rank::merged(job_json, &answers).map_err(failed)
}

/// An error as its kind on the wire and its message.
fn failed(error: EngineError) -> PyErr {
    let kind = serde_json::to_value(error.kind).unwrap_or_default();
    PyRuntimeError::new_err((kind.as_str().unwrap_or("fault").to_owned(), error.message))
}
