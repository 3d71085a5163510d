//! What a phase costs: processor time, faults, switches, bytes of the block layer, instructions.

use leadline_base::clock::{now_ns, s_from_ns};
use leadline_base::host::process_moved_bytes;
use leadline_wire::event::stream::{PhaseResult, StreamResult};

use crate::counters::{Counters, Readings};

/// What a phase moved, as the kernel itself counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moved {
    /// Bytes of the data set, or of runs, that were read.
    pub bytes_read: u64,
    /// Bytes of the data set, or of runs, that were written.
    pub bytes_written: u64,
    /// Bytes copied from place to place in memory.
    pub copied_bytes: u64,
    /// Payload handed to the network.
    pub network_sent_bytes: u64,
    /// Payload that came from it.
    pub network_received_bytes: u64,
}

/// Watches a job; made before its threads, because counters are inherited by what begins later.
pub struct JobWatch {
    counters: Counters,
    began_ns: u64,
}

impl JobWatch {
    /// Opens what this machine can count.
    #[must_use]
    pub fn open() -> Self {
        Self { counters: Counters::open(), began_ns: now_ns() }
    }

    /// Nanoseconds since it was opened.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        now_ns().saturating_sub(self.began_ns)
    }

    /// A phase begins.
    #[must_use]
    pub fn start(&self, name: &'static str) -> PhaseWatch<'_> {
        PhaseWatch { counters: &self.counters, start: self.begin(name) }
    }

    /// A phase begins that the caller holds apart from this watch, until [`Self::end`].
    #[must_use]
    pub fn begin(&self, name: &'static str) -> PhaseStart {
        PhaseStart { name, before: Before::now(&self.counters), began_ns: now_ns() }
    }

    /// A phase that was begun is over, as [`PhaseWatch::finish`].
    #[must_use]
    pub fn end(&self, start: PhaseStart, moved: Moved, dones: &[f64]) -> PhaseResult {
        PhaseWatch { counters: &self.counters, start }.finish(moved, dones)
    }

    /// Adds the phases to the answer, with what could not be counted, and the memory's peak.
    pub fn settle(&self, phases: Vec<PhaseResult>, result: &mut StreamResult) {
        result.seconds = phases.iter().map(|phase| phase.seconds).sum();
        result.phases = phases;
        result.memory_bus_counter = self.counters.memory_bus_name();
        result.not_measurable = self.counters.not_measurable();
        for (field, is_missing, reason) in REASONS {
            if result.phases.iter().any(is_missing) {
                let reason = || (*reason).to_owned();
                result.not_measurable.entry((*field).to_owned()).or_insert_with(reason);
            }
        }
        result.memory_peak_bytes = result.memory_peak_bytes.max(anonymous_bytes());
    }
}

/// How things stood when a phase began.
#[derive(Debug)]
pub struct PhaseStart {
    name: &'static str,
    before: Before,
    began_ns: u64,
}

/// One phase under way.
pub struct PhaseWatch<'a> {
    counters: &'a Counters,
    start: PhaseStart,
}

impl PhaseWatch<'_> {
    /// Seconds since the phase began: what a thread notes when it is done.
    #[must_use]
    pub fn elapsed_s(&self) -> f64 {
        s_from_ns(now_ns().saturating_sub(self.start.began_ns))
    }

    /// The phase is over: its threads were done at `dones` and the disks have the data.
    #[must_use]
    pub fn finish(self, moved: Moved, dones: &[f64]) -> PhaseResult {
        let seconds = self.elapsed_s();
        let after = Before::now(self.counters);
        let PhaseStart { name, before, .. } = self.start;
        let grown = |from: Option<u64>, to: Option<u64>| Some(to?.saturating_sub(from?));
        let block = |of: fn((u64, u64)) -> u64| grown(before.block.map(of), after.block.map(of));
        PhaseResult {
            name: name.to_owned(),
            seconds,
            bytes_read: moved.bytes_read,
            bytes_written: moved.bytes_written,
            cpu_user_s: after.usage.user_s - before.usage.user_s,
            cpu_system_s: after.usage.system_s - before.usage.system_s,
            instructions: grown(before.counted.instructions, after.counted.instructions),
            cycles: grown(before.counted.cycles, after.counted.cycles),
            switches_voluntary: after.usage.voluntary - before.usage.voluntary,
            switches_involuntary: after.usage.involuntary - before.usage.involuntary,
            faults_minor: after.usage.minor - before.usage.minor,
            faults_major: after.usage.major - before.usage.major,
            block_read_bytes: block(|moved| moved.0),
            block_written_bytes: block(|moved| moved.1),
            memory_bus_bytes: grown(before.counted.memory_bus, after.counted.memory_bus),
            network_sent_bytes: moved.network_sent_bytes,
            network_received_bytes: moved.network_received_bytes,
            copied_bytes: moved.copied_bytes,
            first_done_s: dones.iter().copied().reduce(f64::min).unwrap_or(seconds),
            last_done_s: dones.iter().copied().reduce(f64::max).unwrap_or(seconds),
        }
    }
}

/// Adds a later turn of the same phase, as of a kernel that reads and writes in rounds.
pub fn add_turn(sum: &mut PhaseResult, turn: &PhaseResult) {
    let both = |sum: Option<u64>, turn: Option<u64>| Some(sum? + turn?);
    sum.seconds += turn.seconds;
    sum.bytes_read += turn.bytes_read;
    sum.bytes_written += turn.bytes_written;
    sum.cpu_user_s += turn.cpu_user_s;
    sum.cpu_system_s += turn.cpu_system_s;
    sum.instructions = both(sum.instructions, turn.instructions);
    sum.cycles = both(sum.cycles, turn.cycles);
    sum.switches_voluntary += turn.switches_voluntary;
    sum.switches_involuntary += turn.switches_involuntary;
    sum.faults_minor += turn.faults_minor;
    sum.faults_major += turn.faults_major;
    sum.block_read_bytes = both(sum.block_read_bytes, turn.block_read_bytes);
    sum.block_written_bytes = both(sum.block_written_bytes, turn.block_written_bytes);
    sum.memory_bus_bytes = both(sum.memory_bus_bytes, turn.memory_bus_bytes);
    sum.network_sent_bytes += turn.network_sent_bytes;
    sum.network_received_bytes += turn.network_received_bytes;
    sum.copied_bytes += turn.copied_bytes;
    sum.first_done_s += turn.first_done_s;
    sum.last_done_s += turn.last_done_s;
}

/// A field, whether a phase lacks it, and why it may.
type Reason = (&'static str, fn(&PhaseResult) -> bool, &'static str);

/// Why a number is missing although nothing refused to count it.
const REASONS: &[Reason] = &[
    ("instructions", |phase| phase.instructions.is_none(), NEVER_COUNTED),
    ("cycles", |phase| phase.cycles.is_none(), NEVER_COUNTED),
    ("memory_bus_bytes", |phase| phase.memory_bus_bytes.is_none(), NEVER_COUNTED),
    ("block_read_bytes", |phase| phase.block_read_bytes.is_none(), NO_BLOCK_BYTES),
    ("block_written_bytes", |phase| phase.block_written_bytes.is_none(), NO_BLOCK_BYTES),
];
const NEVER_COUNTED: &str = "the counter was opened, but it never got its turn or stopped";
const NO_BLOCK_BYTES: &str = "this kernel does not count the block layer's bytes of a process";

/// Everything that is read at both ends of a phase.
#[derive(Clone, Copy, Debug)]
struct Before {
    usage: Usage,
    block: Option<(u64, u64)>,
    counted: Readings,
}

impl Before {
    fn now(counters: &Counters) -> Self {
        Self { counted: counters.read(), block: process_moved_bytes(), usage: Usage::now() }
    }
}

/// `getrusage(2)` of this process.
#[derive(Clone, Copy, Debug)]
struct Usage {
    user_s: f64,
    system_s: f64,
    minor: u64,
    major: u64,
    voluntary: u64,
    involuntary: u64,
}

impl Usage {
    fn now() -> Self {
        // SAFETY: rusage is plain data, for which all zero bytes are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: a writable rusage; RUSAGE_SELF always works.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        Self {
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            minor: usage.ru_minflt as u64,
            major: usage.ru_majflt as u64,
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
        }
    }
}

/// Memory of this process that is no file's. The arena keeps its pages until it is dropped, so what
/// a kernel has at its end is the most it had.
#[must_use]
pub fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use leadline_wire::job::Job;

    #[test]
    fn a_phase_has_its_time_and_its_faults() {
        let watch = JobWatch::open();
        let phase = watch.start("read");
        let touched = vec![1u8; 8 << 20];
        let mut sum = 0u64;
        for _ in 0..3 {
            sum = touched.iter().fold(sum, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
        }
        assert_ne!(sum, 1);
        let at_least_s = phase.elapsed_s();
        let moved = Moved { bytes_read: 7, copied_bytes: 9, ..Moved::default() };
        let result = phase.finish(moved, &[0.5, 0.25]);
        assert_eq!((result.bytes_read, result.copied_bytes), (7, 9));
        assert_eq!((result.first_done_s, result.last_done_s), (0.25, 0.5));
        assert!(at_least_s > 0.0 && result.seconds >= at_least_s);
        assert!(result.cpu_user_s + result.cpu_system_s > 0.0);
        assert!(result.faults_minor > 0);
        let mut twice = result.clone();
        add_turn(&mut twice, &result);
        assert_eq!(twice.faults_minor, 2 * result.faults_minor);
        assert!((twice.seconds - 2.0 * result.seconds).abs() < 1e-9);
    }

    #[test]
    fn a_number_that_is_missing_has_its_reason() {
        let text = serde_json::json!({
            "version": 1, "kind": "stream", "job_id": "a", "kernel": {"name": "check"},
            "input": "/a", "memory_bytes": 64 << 20, "threads": 1, "seed": 1, "total_s_max": 10.0,
            "io": {"read": "uring", "read_direct": true, "write_direct": true, "depth": 2},
        });
        let Job::Stream(job) = Job::read(&text.to_string()).unwrap() else { unreachable!() };
        let mut result = StreamResult::new(&job);
        let none = PhaseResult { seconds: 2.0, ..PhaseResult::default() };
        JobWatch::open().settle(vec![none.clone(), none], &mut result);
        let fields: Vec<&str> = result.not_measurable.keys().map(String::as_str).collect();
        assert_eq!(
            fields,
            [
                "block_read_bytes",
                "block_written_bytes",
                "cycles",
                "instructions",
                "memory_bus_bytes"
            ]
        );
        assert!((result.seconds - 4.0).abs() < 1e-9);
        assert!(result.memory_peak_bytes > 100_000);
    }

    #[test]
    fn memory_that_is_no_files_is_counted() {
        let touched = std::hint::black_box(vec![1u8; 200 << 20]);
        assert!(anonymous_bytes() >= 200 << 20, "whatever other tests have beside it");
        assert_eq!(touched[1 << 20], 1);
    }
}
