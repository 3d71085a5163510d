//! What else the machine was busy with: pressure, stolen time, runnable tasks.

use std::fs::{read_dir, read_to_string};
use std::path::Path;
use std::time::{Duration, Instant};

use leadline_wire::event::measure::OtherLoad;

/// Counters of the machine's load at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    busy_s: Option<f64>,
    steal_s: Option<f64>,
    runnable: Option<u64>,
    cpu_wait_us: Option<u64>,
    io_wait_us: Option<u64>,
    memory_wait_us: Option<u64>,
}

impl Load {
    /// Now, from /proc/stat and /proc/pressure; what is not there is `None`.
    #[must_use]
    pub fn now() -> Self {
        let pressure = |resource: &str| {
            some_total_us(&read_to_string(format!("/proc/pressure/{resource}")).ok()?)
        };
        // SAFETY: sysconf has no preconditions.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        let stat = read_to_string("/proc/stat").unwrap_or_default();
        Self {
            cpu_wait_us: pressure("cpu"),
            io_wait_us: pressure("io"),
            memory_wait_us: pressure("memory"),
            ..Self::of_stat(&stat, ticks)
        }
    }

    /// What /proc/stat says, with `ticks` of it per second.
    fn of_stat(stat: &str, ticks: f64) -> Self {
        let first = stat.lines().next().unwrap_or_default();
        let numbers: Vec<f64> =
            first.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; the guest columns are already in user.
        let busy = |all: &[f64]| all.iter().take(8).sum::<f64>() - all[3] - all[4];
        let runnable = stat.lines().find_map(|line| line.strip_prefix("procs_running "));
        Self {
            busy_s: (numbers.len() >= 5 && ticks > 0.0).then(|| busy(&numbers) / ticks),
            steal_s: numbers.get(7).filter(|_| ticks > 0.0).map(|steal| steal / ticks),
            runnable: runnable.and_then(|number| number.trim().parse().ok()),
            ..Self::default()
        }
    }

    /// Processor seconds used by the whole machine since `before`, idle and waiting for I/O apart;
    /// stolen time counts.
    #[must_use]
    pub fn busy_since(&self, before: &Self) -> Option<f64> {
        Some(self.busy_s? - before.busy_s?)
    }

    /// The load between `before` and this moment, `elapsed` later.
    #[must_use]
    pub fn since(&self, before: &Self, elapsed: Duration) -> OtherLoad {
        let seconds = elapsed.as_secs_f64();
        let share = |from: Option<u64>, to: Option<u64>| {
            let waited_s = to?.checked_sub(from?)? as f64 * 1e-6;
            (seconds > 0.0).then(|| (waited_s / seconds).clamp(0.0, 1.0))
        };
        let steal = before.steal_s.zip(self.steal_s).filter(|_| seconds > 0.0);
        OtherLoad {
            cpu_pressure: share(before.cpu_wait_us, self.cpu_wait_us),
            io_pressure: share(before.io_wait_us, self.io_wait_us),
            memory_pressure: share(before.memory_wait_us, self.memory_wait_us),
            steal_cpu: steal.map(|(from, to)| ((to - from) / seconds).max(0.0)),
            waited_cpu: None,
            runnable: self.runnable,
        }
    }
}

/// How long the threads of this process wait for a processor.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorWait {
    before_ns: Option<u64>,
    began: Instant,
}

impl ProcessorWait {
    /// Starts counting.
    #[must_use]
    pub fn start() -> Self {
        Self { before_ns: waited_ns(), began: Instant::now() }
    }

    /// Seconds per second since, all threads together; to be asked while they are alive. None where
    /// the kernel does not count it.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        let seconds = self.began.elapsed().as_secs_f64();
        let (before_ns, now_ns) = self.before_ns.zip(waited_ns())?;
        (seconds > 0.0).then(|| now_ns.saturating_sub(before_ns) as f64 * 1e-9 / seconds)
    }
}

/// Nanoseconds that the threads of this process, those alive now, were ready to run without
/// running.
fn waited_ns() -> Option<u64> {
    run_delay_ns("/proc/self/schedstat".as_ref())?;
    let threads = read_dir("/proc/self/task").ok()?.flatten();
    Some(threads.filter_map(|thread| run_delay_ns(&thread.path().join("schedstat"))).sum())
}

/// The second number of a schedstat file: nanoseconds on a run queue.
fn run_delay_ns(schedstat: &Path) -> Option<u64> {
    read_to_string(schedstat).ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// Microseconds in which some task waited, from a file of /proc/pressure.
fn some_total_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const STAT: &str = "cpu  100 10 50 800 40 5 5 30 7 0\ncpu0 1 1\nprocs_running 3\n";

    #[test]
    fn idle_and_waiting_are_not_busy_and_stolen_time_is() {
        let load = Load::of_stat(STAT, 100.0);
        assert_eq!(load.busy_s, Some(2.0));
        assert_eq!(load.steal_s, Some(0.3));
        assert_eq!(load.runnable, Some(3));
    }

    #[test]
    fn pressure_is_the_share_of_the_window_in_which_some_task_waited() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.31 total=14429107\nfull avg10=0 total=5\n";
        assert_eq!(some_total_us(text), Some(14_429_107));
        let before = Load { io_wait_us: Some(1_000_000), ..Load::of_stat(STAT, 100.0) };
        let after = Load { io_wait_us: Some(1_500_000), steal_s: Some(0.8), ..before };
        let load = after.since(&before, Duration::from_secs(2));
        assert!((load.io_pressure.unwrap() - 0.25).abs() < 1e-12);
        assert!((load.steal_cpu.unwrap() - 0.25).abs() < 1e-12);
        assert_eq!(load.cpu_pressure, None, "no file, no guess");
    }

    #[test]
    fn two_threads_on_one_processor_wait_for_each_other() {
        let start = std::sync::Barrier::new(2);
        let busy = || {
            // SAFETY: a set is plain bytes, of which zero is valid; both calls get its size.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::sched_getaffinity(0, std::mem::size_of_val(&set), &raw mut set);
                let all = 0..libc::CPU_SETSIZE as usize;
                let first = all.into_iter().find(|cpu| libc::CPU_ISSET(*cpu, &set)).unwrap();
                libc::CPU_ZERO(&mut set);
                libc::CPU_SET(first, &mut set);
                libc::sched_setaffinity(0, std::mem::size_of_val(&set), &raw const set);
            }
            start.wait();
            let began_s = crate::host::thread_cpu_s();
            while crate::host::thread_cpu_s() < began_s + 0.1 {}
            run_delay_ns("/proc/thread-self/schedstat".as_ref())
        };
        let waited_ns = std::thread::scope(|scope| {
            let threads = [scope.spawn(busy), scope.spawn(busy)];
            threads.map(|thread| thread.join().unwrap())
        });
        // Whichever ends last has waited while the other ran.
        let told = Path::new("/proc/self/schedstat").exists();
        assert_eq!(waited_ns[0].is_some(), told);
        assert!(!told || waited_ns.iter().flatten().sum::<u64>() > 80_000_000, "{waited_ns:?}");
        assert_eq!(ProcessorWait::start().per_second().is_some(), told);
    }

    #[test]
    fn a_machine_that_says_nothing_is_not_guessed_at() {
        assert_eq!(Load::of_stat("", 100.0), Load::default());
        let load = Load::default().since(&Load::default(), Duration::from_secs(1));
        assert_eq!(load, OtherLoad::default());
    }

    #[test]
    fn this_machine_says_how_many_tasks_run() {
        assert!(Load::now().runnable.unwrap() >= 1, "at least this one");
    }
}
