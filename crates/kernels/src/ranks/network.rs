//! What the network between the ranks can do: memory to memory, the way records travel.

use leadline_base::error::EngineError;

use super::exchange::{Exchange, Sink, Source, Step};
use super::kernel::{Ends, RankKernel};
use super::mailbox::{GRAIN_BYTES, Outbox};
use crate::memory::{Memory, Region};

/// Of one rank: slots of a size that sorts have, too.
const MEMORY_BYTES: u64 = 256 << 20;
/// Put into the outbox before the network is looked at again.
const PIECE_BYTES: usize = 10 * GRAIN_BYTES;

/// Sends every other rank the same number of bytes, and drops what comes.
pub struct NetworkKernel {
    exchange: Exchange,
    source: Filler,
    sink: Drain,
}

impl NetworkKernel {
    /// An exchange in which every rank sends `bytes_each` to the others in equal shares.
    ///
    /// # Errors
    /// No memory.
    pub fn new(rank: usize, ranks: usize, bytes_each: u64) -> Result<Self, EngineError> {
        let memory = Memory::new(MEMORY_BYTES)?;
        let exchange = Exchange::new(&memory, memory.left(), rank, ranks)?;
        let mut filler = memory.take(PIECE_BYTES)?;
        filler.fill(0x5a); // pages that were never touched would all be one page of zeros
        let mut left = vec![bytes_each / (ranks as u64 - 1).max(1); ranks];
        left[rank] = 0;
        Ok(Self { exchange, source: Filler { filler, left }, sink: Drain })
    }
}

impl RankKernel for NetworkKernel {
    fn ends(&mut self) -> Option<Ends<'_>> {
        Some(Ends { exchange: &mut self.exchange, source: &mut self.source, sink: &mut self.sink })
    }
}

struct Filler {
    filler: Region,
    /// Bytes that each rank is still to get.
    left: Vec<u64>,
}

impl Source for Filler {
    fn step(&mut self, outbox: &mut Outbox) -> Result<Step, EngineError> {
        let mut moved = 0;
        for (to, left) in self.left.iter_mut().enumerate() {
            let wanted = usize::try_from(*left).unwrap_or(usize::MAX).min(PIECE_BYTES);
            let put = outbox.put(to, &self.filler[..wanted], 1);
            *left -= put as u64;
            moved += put;
        }
        if self.left.iter().all(|left| *left == 0) {
            return Ok(Step::Done);
        }
        Ok(if moved > 0 { Step::Worked } else { Step::Waits })
    }
}

struct Drain;

impl Sink for Drain {
    fn take(&mut self, _from: usize, bytes: &[u8]) -> Result<usize, EngineError> {
        Ok(bytes.len())
    }
}
