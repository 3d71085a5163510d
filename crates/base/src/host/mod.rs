//! What this machine did during a window: processor time, the block devices, the page cache, and
//! what else it was busy with.
//!
//! Everything is read from /proc and /sys before and after; what is not there is `None`, never a
//! guess.

pub mod block;
pub mod control_group;
pub mod file_system;
pub mod load;
pub mod memory_group;
mod processor_quota;

use std::fs::read_to_string;
use std::time::Instant;

pub use block::BlockDevice;
pub use file_system::FileSystem;
pub use memory_group::MemoryGroup;
pub use processor_quota::processors_within_quota;

use leadline_wire::event::measure::{CacheEvents, OtherLoad};

use crate::host::load::Load;
use crate::host::memory_group::{events_between, machine_cache_events};

/// Processor seconds used by this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// In user mode.
    pub user_s: f64,
    /// In the kernel on our behalf.
    pub system_s: f64,
}

impl CpuTime {
    /// Now, from `getrusage(2)`.
    #[must_use]
    pub fn now() -> Self {
        // SAFETY: rusage is plain data, for which all zero bytes are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: a writable rusage; RUSAGE_SELF always works.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        Self { user_s: seconds(usage.ru_utime), system_s: seconds(usage.ru_stime) }
    }
}

/// What this machine calls itself.
#[must_use]
pub fn name() -> String {
    let name = read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Processor seconds of the calling thread, to the nanosecond: `getrusage(2)` counts a running
/// thread in ticks of the timer, which are longer than a small file takes.
#[must_use]
pub fn thread_cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a writable timespec; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Bytes this process made the block layer read and write since it began, truncated writes taken
/// back; none where the kernel does not count them.
#[must_use]
pub fn process_moved_bytes() -> Option<(u64, u64)> {
    process_moved(&read_to_string("/proc/self/io").ok()?)
}

fn process_moved(text: &str) -> Option<(u64, u64)> {
    let count = |key: &str| {
        let mut pairs = text.lines().filter_map(|line| line.split_once(": "));
        pairs.find(|pair| pair.0 == key)?.1.trim().parse::<u64>().ok()
    };
    let written = count("write_bytes")?.saturating_sub(count("cancelled_write_bytes")?);
    Some((count("read_bytes")?, written))
}

/// Processors this process may use.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The most memory a page cache can have here, in bytes: the cgroup's limit or the machine's
/// memory.
#[must_use]
pub fn memory_bytes() -> u64 {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
    });
    let group = MemoryGroup::own().and_then(|group| group.limit_bytes());
    group.into_iter().chain(machine).min().unwrap_or(u64::MAX)
}

/// Counters of what the workload itself moves at one moment.
#[derive(Clone, Copy, Debug)]
struct Counters {
    cpu: CpuTime,
    device: Option<(u64, u64)>,
    process: Option<(u64, u64)>,
}

impl Counters {
    fn now(device: Option<&BlockDevice>) -> Self {
        Self {
            cpu: CpuTime::now(),
            device: device.and_then(BlockDevice::moved_bytes),
            process: process_moved_bytes(),
        }
    }
}

/// Counters of the machine around it at one moment.
#[derive(Clone, Copy, Debug)]
struct Surroundings {
    load: Load,
    events: Option<CacheEvents>,
}

impl Surroundings {
    fn now(group: Option<&MemoryGroup>) -> Self {
        let events = group.map_or_else(machine_cache_events, MemoryGroup::cache_events);
        Self { load: Load::now(), events }
    }
}

/// Watches the machine over a window.
#[derive(Debug)]
pub struct HostWatch {
    device: Option<BlockDevice>,
    group: Option<MemoryGroup>,
    surroundings: Surroundings,
    counters: Counters,
    began: Instant,
}

/// What happened between the two ends of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostUse {
    /// Processor seconds of this process.
    pub cpu: CpuTime,
    /// Processor seconds of everybody else.
    pub foreign_s: Option<f64>,
    /// Bytes the devices at the bottom read and wrote.
    pub device: Option<(u64, u64)>,
    /// Bytes this process made the block layer read and write.
    pub process: Option<(u64, u64)>,
    /// Page cache of the own cgroup at the end, in bytes.
    pub cache_resident_bytes: Option<u64>,
    /// Page-cache events of the own cgroup, or of the machine.
    pub cache_events: Option<CacheEvents>,
    /// What else the machine did.
    pub other_load: OtherLoad,
}

impl HostWatch {
    /// Starts watching; `device` is where the workload's file lies.
    #[must_use]
    pub fn start(device: Option<BlockDevice>) -> Self {
        let group = MemoryGroup::own();
        // What takes longest to read lies furthest from the window's edges.
        let surroundings = Surroundings::now(group.as_ref());
        let counters = Counters::now(device.as_ref());
        Self { device, group, surroundings, counters, began: Instant::now() }
    }

    /// What happened since.
    #[must_use]
    pub fn finish(&self) -> HostUse {
        let elapsed = self.began.elapsed();
        let counters = Counters::now(self.device.as_ref());
        let surroundings = Surroundings::now(self.group.as_ref());
        let cpu = CpuTime {
            user_s: counters.cpu.user_s - self.counters.cpu.user_s,
            system_s: counters.cpu.system_s - self.counters.cpu.system_s,
        };
        let busy_s = surroundings.load.busy_since(&self.surroundings.load);
        let events = self.surroundings.events.zip(surroundings.events);
        HostUse {
            cpu,
            foreign_s: busy_s.map(|busy_s| (busy_s - cpu.user_s - cpu.system_s).max(0.0)),
            device: moved_between(self.counters.device, counters.device),
            process: moved_between(self.counters.process, counters.process),
            cache_resident_bytes: self.group.as_ref().and_then(MemoryGroup::cache_bytes),
            cache_events: events.map(|(from, to)| events_between(&from, &to)),
            other_load: surroundings.load.since(&self.surroundings.load, elapsed),
        }
    }
}

fn moved_between(from: Option<(u64, u64)>, to: Option<(u64, u64)>) -> Option<(u64, u64)> {
    let (from, to) = from.zip(to)?;
    Some((to.0.saturating_sub(from.0), to.1.saturating_sub(from.1)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn processor_time_grows_while_we_compute() {
        let watch = HostWatch::start(None);
        let mut sum = 0u64;
        while watch.finish().cpu.user_s + watch.finish().cpu.system_s < 0.01 {
            sum = sum.wrapping_mul(3).wrapping_add(1);
        }
        assert!(watch.finish().device.is_none());
        assert_ne!(sum, 1);
    }

    #[test]
    fn memory_is_known_and_bounded() {
        assert!((1 << 20..1 << 60).contains(&memory_bytes()));
    }

    #[test]
    fn writes_that_were_cancelled_did_not_happen() {
        let text = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\n";
        assert_eq!(process_moved(text), Some((4096, 4096)));
        assert_eq!(process_moved("rchar: 9\n"), None);
    }

    #[test]
    fn a_window_has_its_load_where_the_machine_tells() {
        let watch = HostWatch::start(None);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let found = watch.finish();
        assert!(found.other_load.runnable.is_some_and(|tasks| tasks >= 1));
        let told = std::path::Path::new("/proc/pressure/io").exists();
        assert_eq!(found.other_load.io_pressure.is_some(), told);
        assert_eq!(found.process.is_some(), process_moved_bytes().is_some());
        assert!(found.cache_events.is_some_and(|events| events.major_faults.is_some()));
    }
}
