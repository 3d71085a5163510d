//! Memory of a tile that several threads fill.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use leadline_base::error::EngineError;

use super::BLOCK_BYTES;

/// A block's bytes.
pub type Block = [u8; BLOCK_BYTES];

/// Slots for blocks; each is filled once, by whichever thread read its block.
pub struct Slots<'a> {
    blocks: &'a [UnsafeCell<Block>],
    /// A bit for each slot: somebody fills it.
    claimed: Vec<AtomicU64>,
    filled: AtomicUsize,
}

// SAFETY: a slot is written only by the thread that set its bit, and nobody reads slots through
// `Slots`; the exclusive borrow that it was made from comes back when all threads are done.
unsafe impl Sync for Slots<'_> {}

impl<'a> Slots<'a> {
    /// All of `memory`, nothing filled.
    pub fn new(memory: &'a mut [Block]) -> Self {
        let claimed = (0..memory.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        // SAFETY: UnsafeCell<T> has the layout of T, and the borrow is exclusive for 'a.
        let blocks = unsafe {
            let (first, count) = (memory.as_mut_ptr(), memory.len());
            std::slice::from_raw_parts(first.cast::<UnsafeCell<Block>>(), count)
        };
        Self { blocks, claimed, filled: AtomicUsize::new(0) }
    }

    /// Fills a slot.
    ///
    /// # Errors
    /// `Fault`: there is no such slot, or it was filled before.
    pub fn fill(&self, slot: u64, block: &Block) -> Result<(), EngineError> {
        let index = usize::try_from(slot).unwrap_or(usize::MAX);
        let cell = self.blocks.get(index).ok_or_else(|| astray(slot))?;
        let bit = 1 << (index % 64);
        if self.claimed[index / 64].fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return Err(astray(slot));
        }
        // SAFETY: the bit was not set before, so no other thread writes here, now or later.
        unsafe { (*cell.get()).copy_from_slice(block) };
        self.filled.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Says that every slot is filled.
    ///
    /// # Errors
    /// `Fault`: how many are not.
    pub fn must_be_full(&self) -> Result<(), EngineError> {
        let (filled, all) = (self.filled.load(Ordering::Relaxed), self.blocks.len());
        if filled == all {
            return Ok(());
        }
        Err(EngineError::fault(format!(
            "{} of the {all} blocks of a tile were not read; this is a defect of Leadline, please \
             report it with the command you typed",
            all - filled
        )))
    }
}

fn astray(slot: u64) -> EngineError {
    EngineError::fault(format!(
        "a block was to go to slot {slot} of a tile, which is taken or not there; this is a defect \
         of Leadline, please report it with the command you typed"
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn threads_fill_slots_between_one_another() {
        let mut memory = vec![[0; BLOCK_BYTES]; 130];
        let slots = Slots::new(&mut memory);
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let slots = &slots;
                scope.spawn(move || {
                    for slot in (thread..130).step_by(4) {
                        slots.fill(slot, &[slot as u8; BLOCK_BYTES]).unwrap();
                    }
                });
            }
        });
        slots.must_be_full().unwrap();
        for (slot, block) in memory.iter().enumerate() {
            assert!(block.iter().all(|byte| usize::from(*byte) == slot), "slot {slot}");
        }
    }

    #[test]
    fn a_slot_is_filled_once_and_there_are_no_others() {
        let mut memory = vec![[0; BLOCK_BYTES]; 2];
        let slots = Slots::new(&mut memory);
        slots.fill(1, &[1; BLOCK_BYTES]).unwrap();
        assert!(slots.fill(1, &[2; BLOCK_BYTES]).is_err());
        assert!(slots.fill(2, &[2; BLOCK_BYTES]).is_err());
        assert!(slots.must_be_full().unwrap_err().message.contains("1 of the 2"));
        assert_eq!(memory[1], [1; BLOCK_BYTES]);
    }
}
