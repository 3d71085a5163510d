//! What memory and disks of this machine can do, by themselves: the bounds of every kernel.
//!
//! Readings are taken in rounds, one of each kind in a round, so that a machine that is busy for a
//! while makes all of them worse and not one.

mod disks;
mod memory_rates;

use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_base::host::{processors, processors_within_quota};
use leadline_wire::event::stream::{CapacityResult, StreamResult};
use leadline_wire::job::stream::{Io, Kernel, ReadBy, StreamJob};

use crate::chunks::CHUNK_BYTES;
use crate::deadline::Deadline;
use crate::memory::Memory;
use crate::phases::JobWatch;

use disks::Disks;
use memory_rates::MemoryRates;

/// Readings of each kind: enough for an interval of their median.
const READINGS: usize = 6;

/// Seconds of a reading of memory: long beside the 0.1 s in which quotas of processor time are
/// usually counted.
const READING_S: f64 = 0.2;

/// Everything one round needs.
struct Round<'a> {
    directories: &'a [String],
    chunks_each: u64,
    io: Io,
    memory: &'a Memory,
    deadline: &'a Deadline,
    reading_s: f64,
}

/// Takes the readings.
///
/// # Errors
/// `Target` when there is no room or no time, `Io` when a disk fails.
pub fn run(job: &StreamJob, reporter: &mut Reporter) -> Result<StreamResult, EngineError> {
    read(job, reporter, (READINGS, READING_S))
}

fn read(
    job: &StreamJob,
    reporter: &mut Reporter,
    (readings, reading_s): (usize, f64),
) -> Result<StreamResult, EngineError> {
    let Kernel::Capacity { directories, bytes } = &job.kernel else {
        return Err(EngineError::fault("this job reads no capacities"));
    };
    let (memory, deadline) = (Memory::of(job)?, Deadline::of(job));
    let watch = JobWatch::open();
    reporter.phase(Phase::Measure, watch.elapsed_ns());
    let round = Round {
        directories,
        chunks_each: bytes.div_ceil(CHUNK_BYTES as u64),
        io: Io { read: ReadBy::Uring, ..job.io },
        memory: &memory,
        deadline: &deadline,
        reading_s,
    };
    let count = directories.len();
    let mut found = CapacityResult {
        disk_read_bytes_s: vec![Vec::new(); count],
        disk_write_bytes_s: vec![Vec::new(); count],
        disk_devices: vec![Vec::new(); count],
        processors: processors_within_quota(),
        ..CapacityResult::default()
    };
    for number in 1..=readings {
        round.read_memory(&mut found)?;
        round.read_disks(&mut found)?;
        reporter.progress(number as f64 / readings as f64);
    }
    let mut result = StreamResult::new(job);
    result.capacity = Some(found);
    watch.settle(Vec::new(), &mut result);
    result.seconds = watch.elapsed_ns() as f64 * 1e-9;
    Ok(result)
}

impl Round<'_> {
    fn read_memory(&self, found: &mut CapacityResult) -> Result<(), EngineError> {
        self.deadline.check()?;
        let reading = MemoryRates::new(self.memory, processors())?.read(self.reading_s);
        found.memory_copy_bytes_s.push(reading.copy_bytes_s);
        found.memory_read_bytes_s.push(reading.read_bytes_s);
        Ok(())
    }

    fn read_disks(&self, found: &mut CapacityResult) -> Result<(), EngineError> {
        let several = self.directories.len() > 1;
        for (number, directory) in self.directories.iter().enumerate() {
            let disk = self.disks(std::slice::from_ref(directory));
            let (scratch, written) = disk.write()?;
            let read = disk.read(&scratch)?;
            found.disk_write_bytes_s[number].push(written);
            found.disk_read_bytes_s[number].push(read);
            found.disk_devices[number] = disk.devices(&scratch)?;
            if !several {
                found.all_write_bytes_s.push(written);
                found.all_read_bytes_s.push(read);
                found.all_both_bytes_s.push(disk.copy(&scratch)?);
            }
        }
        if several {
            let all = self.disks(self.directories);
            let (scratch, written) = all.write()?;
            found.all_write_bytes_s.push(written);
            found.all_read_bytes_s.push(all.read(&scratch)?);
            found.all_both_bytes_s.push(all.copy(&scratch)?);
        }
        Ok(())
    }

    fn disks<'a>(&'a self, directories: &'a [String]) -> Disks<'a> {
        let Self { chunks_each, io, memory, deadline, .. } = self;
        Disks { directories, chunks_each: *chunks_each, io, memory, deadline }
    }
}

#[cfg(test)]
mod tests;
