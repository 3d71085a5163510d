//! The output of a transpose, read back: every block where it belongs.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Io;

use super::BLOCK_BYTES;
use super::fingerprint::Fingerprint;
use super::plan::Plan;
use super::reader::Reader;
use super::shape::Shape;
use crate::data_set::Input;
use crate::deadline::Deadline;
use crate::memory::Memory;
use crate::thread_group;

/// With what is verified.
pub struct Work<'a> {
    /// Of the input.
    pub shape: Shape,
    /// How many look.
    pub threads: usize,
    /// Where they read to.
    pub memory: &'a Memory,
    /// How they read.
    pub io: &'a Io,
    /// When they must be done.
    pub deadline: Deadline,
}

impl Work<'_> {
    /// Says that `output` has every block of `input` where it belongs.
    ///
    /// # Errors
    /// `Io` when it has not, or when either cannot be read.
    pub fn verify(&self, input: &Input, output: &Input) -> Result<(), EngineError> {
        let wanted = self.fingerprint(input, |position| self.shape.transposed(position))?;
        if self.fingerprint(output, |position| position)? == wanted {
            return Ok(());
        }
        let Shape { rows, columns } = self.shape;
        Err(EngineError::io(format!(
            "the output was read back and is wrong: it is not the transpose of the input's {rows} \
             x {columns} blocks of {BLOCK_BYTES} bytes; it got no name, the input is as it was; \
             look at memory and disks"
        )))
    }

    /// Sums up a data set's blocks, each with the place that `place` says.
    fn fingerprint(
        &self,
        data: &Input,
        place: impl Fn(u64) -> u64 + Sync,
    ) -> Result<Fingerprint, EngineError> {
        // One tile: the whole, in its order.
        let plan = Plan::new(self.shape, self.shape.blocks());
        let memory = (self.memory, self.memory.left());
        let readers = Reader::open_all(data, plan, self.threads, memory, self.io)?;
        let answers = thread_group::work(readers, &self.deadline, |mut reader, watch| {
            let mut sum = Fingerprint::default();
            let mut more = true;
            while more {
                watch.check()?;
                more = reader.next(0, |segment, blocks| {
                    let placed = (segment.first..).zip(blocks);
                    placed.for_each(|(position, block)| sum.add(block, place(position)));
                    Ok(())
                })?;
            }
            Ok(sum)
        })?;
        let mut whole = Fingerprint::default();
        answers.of.into_iter().for_each(|part| whole.join(part));
        Ok(whole)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use leadline_wire::job::stream::ReadBy;

    const SHAPE: Shape = Shape { rows: 3, columns: 5 };

    /// Blocks whose bytes are their numbers.
    fn put(name: &str, blocks: &[u8]) -> Input {
        let name = format!("leadline-transposed-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let bytes: Vec<u8> = blocks.iter().flat_map(|byte| [*byte; BLOCK_BYTES]).collect();
        std::fs::write(&path, bytes).unwrap();
        let input = Input::open(path.to_str().unwrap(), &io()).unwrap();
        std::fs::remove_file(path).unwrap();
        input
    }

    fn io() -> Io {
        Io { read: ReadBy::Uring, read_direct: false, write_direct: false, depth: 2 }
    }

    fn verify(name: &str, output: &[u8]) -> Result<(), EngineError> {
        let input: Vec<u8> = (0..15).collect();
        let memory = Memory::new(32 << 20).unwrap();
        let (io, deadline) = (io(), Deadline::after(60.0));
        let work = Work { shape: SHAPE, threads: 2, memory: &memory, io: &io, deadline };
        work.verify(&put(&format!("{name}-in"), &input), &put(name, output))
    }

    #[test]
    fn only_the_transpose_is_right() {
        let right = [0, 5, 10, 1, 6, 11, 2, 7, 12, 3, 8, 13, 4, 9, 14];
        verify("right", &right).unwrap();
        let untouched: Vec<u8> = (0..15).collect();
        let (mut swapped, mut doubled) = (right, right);
        swapped.swap(6, 7);
        doubled[3] = doubled[4];
        let wrong =
            [("untouched", untouched), ("swapped", swapped.into()), ("twice", doubled.into())];
        for (name, output) in wrong {
            let message = verify(name, &output).unwrap_err().message;
            assert!(message.contains("3 x 5 blocks"), "{name}: {message}");
        }
        assert!(verify("short", &right[..14]).is_err());
    }
}
