//! Hardware counters of this process: instructions and cycles, user and kernel.

use std::collections::BTreeMap;
use std::fs::{File, read_to_string};
use std::io::{Error, Read};
use std::os::fd::FromRawFd;

use crate::memory_bus::MemoryBus;

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
/// `inherit`: the threads that begin later count as well.
const INHERIT: u64 = 1 << 1;
const FORMAT_TIMES: u64 = 1 | 2;
/// `PERF_FLAG_FD_CLOEXEC`.
const FD_CLOEXEC: u64 = 1 << 3;

/// `struct perf_event_attr` up to its first version's end (PERF_ATTR_SIZE_VER0).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64);

/// Opens a counter of everything that one processor stands for.
pub(crate) fn open_on(kind: u32, config: u64, processor: i32) -> Result<File, Error> {
    open(kind, config, Some(processor))
}

/// Opens a counter of this process on every processor, or (with `processor`) of everything on one.
fn open(kind: u32, config: u64, processor: Option<i32>) -> Result<File, Error> {
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        read_format: FORMAT_TIMES,
        flags: if processor.is_some() { 0 } else { INHERIT },
        ..Attributes::default()
    };
    let process = if processor.is_some() { -1 } else { 0 };
    // SAFETY: a valid attribute block whose size it says; the descriptor that comes back is ours.
    unsafe {
        let number = libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            process,
            processor.unwrap_or(-1),
            -1,
            FD_CLOEXEC,
        );
        if number < 0 {
            return Err(Error::last_os_error());
        }
        Ok(File::from_raw_fd(number as i32))
    }
}

/// The count so far, as it would be had the counter never shared its place with others.
pub(crate) fn read_count(counter: &File) -> Option<u64> {
    let mut bytes = [0; 24];
    let mut counter = counter;
    counter.read_exact(&mut bytes).ok()?;
    let mut numbers =
        bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
    let (count, enabled, running) = (numbers.next()?, numbers.next()?, numbers.next()?);
    if running == 0 {
        return (enabled == 0).then_some(count);
    }
    Some((u128::from(count) * u128::from(enabled) / u128::from(running)) as u64)
}

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Readings {
    pub instructions: Option<u64>,
    pub cycles: Option<u64>,
    pub memory_bus: Option<u64>,
}

/// The counters of a job.
pub(crate) struct Counters {
    instructions: Result<File, String>,
    cycles: Result<File, String>,
    memory_bus: MemoryBus,
}

impl Counters {
    pub fn open() -> Self {
        let counter =
            |config| open(PERF_TYPE_HARDWARE, config, None).map_err(|error| why_not(&error));
        Self {
            instructions: counter(PERF_COUNT_HW_INSTRUCTIONS),
            cycles: counter(PERF_COUNT_HW_CPU_CYCLES),
            memory_bus: MemoryBus::open(),
        }
    }

    pub fn read(&self) -> Readings {
        let of = |counter: &Result<File, String>| counter.as_ref().ok().and_then(read_count);
        Readings {
            instructions: of(&self.instructions),
            cycles: of(&self.cycles),
            memory_bus: self.memory_bus.read(),
        }
    }

    pub fn memory_bus_name(&self) -> &'static str {
        self.memory_bus.name()
    }

    pub fn not_measurable(&self) -> BTreeMap<String, String> {
        let of = |name: &str, counter: &Result<File, String>| {
            counter.as_ref().err().map(|reason| (name.to_owned(), reason.clone()))
        };
        of("instructions", &self.instructions)
            .into_iter()
            .chain(of("cycles", &self.cycles))
            .chain(match &self.memory_bus {
                MemoryBus::None(reason) => Some(("memory_bus_bytes".to_owned(), reason.clone())),
                MemoryBus::Imc(_) | MemoryBus::Resctrl(_) => None,
            })
            .collect()
    }
}

/// Why the kernel opened no counter.
pub(crate) fn why_not(error: &Error) -> String {
    let setting = read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENOSYS) => {
            format!("this machine shows no such counter (perf_event_open: {error})")
        }
        Some(libc::EACCES | libc::EPERM) => format!(
            "not allowed (perf_event_open: {error}; kernel.perf_event_paranoid={})",
            setting.trim()
        ),
        _ => format!("perf_event_open: {error}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PERF_TYPE_SOFTWARE: u32 = 1;
    const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;

    #[test]
    fn a_counter_counts_the_threads_that_begin_later() {
        // Of the counters in software, which every kernel with perf has.
        let counter = open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, None);
        let Ok(counter) = counter else {
            assert!(why_not(&counter.unwrap_err()).contains("perf_event"));
            return;
        };
        let before = read_count(&counter).unwrap();
        let thread = std::thread::spawn(|| {
            let mut sum = 0u64;
            let began = leadline_base::host::thread_cpu_s();
            while leadline_base::host::thread_cpu_s() < began + 0.05 {
                sum = std::hint::black_box(sum.wrapping_mul(3) + 1);
            }
        });
        thread.join().unwrap();
        assert!(read_count(&counter).unwrap() >= before + 45_000_000, "nanoseconds");
    }

    #[test]
    fn what_is_counted_and_what_is_not_add_up() {
        let counters = Counters::open();
        let (found, missing) = (counters.read(), counters.not_measurable());
        assert_eq!(found.instructions.is_none(), missing.contains_key("instructions"));
        assert_eq!(found.cycles.is_none(), missing.contains_key("cycles"));
        assert_eq!(found.memory_bus.is_none(), missing.contains_key("memory_bus_bytes"));
        assert_eq!(counters.memory_bus_name() == "none", found.memory_bus.is_none());
        assert!(missing.values().all(|reason| reason.len() > 20), "{missing:?}");
    }
}
