//! Clocks: the kernel's monotonic one for the controlling thread, and [`Clock`] for the hot loop.
//!
//! Reading CLOCK_MONOTONIC through the vDSO takes 20 to 25 ns, twice a request, which is a
//! twentieth of a cached read of 512 bytes. The time-stamp counter behind it takes a third of that,
//! so the hot loop reads the counter itself where that is sound: it ticks evenly and through every
//! sleep (`constant_tsc`, `nonstop_tsc`) and the kernel trusts it across processors (it is the
//! current clock source). Anywhere else the vDSO is read.

use std::fs::read_to_string;
use std::sync::OnceLock;
use std::time::Duration;

use leadline_wire::event::measure::ClockSource;

/// Nanoseconds since an arbitrary moment; never goes back. No system call on a usual machine.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec, and CLOCK_MONOTONIC always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Sleeps until the monotonic clock shows `until_ns`; a signal does not shorten it.
pub fn sleep_until(until_ns: u64) {
    let time = libc::timespec {
        tv_sec: (until_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (until_ns % 1_000_000_000) as libc::c_long,
    };
    loop {
        // SAFETY: `time` is a valid timespec; with TIMER_ABSTIME the remainder may be null.
        let code = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &time,
                std::ptr::null_mut(),
            )
        };
        if code != libc::EINTR {
            return;
        }
    }
}

/// Seconds as nanoseconds, cut to what 64 bits hold.
#[inline]
#[must_use]
pub fn ns_from_s(seconds: f64) -> u64 {
    (seconds * 1e9).clamp(0.0, 9e18) as u64
}

/// Nanoseconds as seconds.
#[inline]
#[must_use]
pub fn s_from_ns(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}

/// Shortest time between the two readings a calibration rests on. A reading is good to some tens of
/// nanoseconds, so the rate is good to a few millionths.
const BASELINE_NS: u64 = 20_000_000;

/// The clock of the hot loop; shows what [`now_ns`] shows, within microseconds over a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds per tick times 2^32; 0 when the vDSO is read.
    scale: u64,
    base: Reading,
}

/// The counter and the kernel's clock at one moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    ticks: u64,
    ns: u64,
}

impl Clock {
    /// Calibrates the counter against the kernel's clock. The baseline reaches back to the
    /// process's first calibration, so it grows with every run; the first one takes 20 ms.
    #[must_use]
    pub fn calibrated() -> Self {
        static FIRST: OnceLock<Option<Reading>> = OnceLock::new();
        let Some(first) = *FIRST.get_or_init(|| counter_is_trusted().then(Reading::take)) else {
            return Self::vdso();
        };
        sleep_until(first.ns + BASELINE_NS);
        let last = Reading::take();
        let (ns, ticks) = (last.ns - first.ns, last.ticks.saturating_sub(first.ticks));
        let scale = (u128::from(ns) << 32).checked_div(u128::from(ticks)).unwrap_or(0);
        // A counter slower than the clock it stands for is none.
        if scale == 0 || scale >> 32 > 1 {
            return Self::vdso();
        }
        Self { scale: scale as u64, base: last }
    }

    /// The kernel's clock through the vDSO.
    #[must_use]
    pub fn vdso() -> Self {
        Self { scale: 0, base: Reading { ticks: 0, ns: 0 } }
    }

    /// Nanoseconds on the scale of [`now_ns`].
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        if self.scale == 0 {
            return now_ns();
        }
        let ticks = read_counter().saturating_sub(self.base.ticks);
        self.base.ns + ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64
    }

    /// Which clock it is.
    #[must_use]
    pub fn source(&self) -> ClockSource {
        if self.scale == 0 { ClockSource::Vdso } else { ClockSource::Tsc }
    }
}

impl Reading {
    /// The tightest of several: the kernel's clock read between two readings of the counter.
    fn take() -> Self {
        let attempt = || {
            let before = read_counter();
            let ns = now_ns();
            let after = read_counter();
            (after.saturating_sub(before), Self { ticks: before.midpoint(after), ns })
        };
        let first = attempt();
        (0..15)
            .map(|_| attempt())
            .fold(first, |best, next| if next.0 < best.0 { next } else { best })
            .1
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn read_counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; Linux never forbids it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn read_counter() -> u64 {
    0
}

fn counter_is_trusted() -> bool {
    let place = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let current = read_to_string(place).unwrap_or_default();
    let processors = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = processors.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    cfg!(target_arch = "x86_64")
        && current.trim() == "tsc"
        && ["constant_tsc", "nonstop_tsc"]
            .iter()
            .all(|flag| flags.split(' ').any(|word| word == *flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hot_loops_clock_shows_the_kernels_time_and_never_goes_back() {
        let clock = Clock::calibrated();
        let mut last = clock.now_ns();
        for _ in 0..20 {
            let before = now_ns();
            let told = clock.now_ns();
            let after = now_ns();
            // A preemption between the readings widens the bracket, never the error.
            assert!(told + 20_000 >= before && told <= after + 20_000, "{before} {told} {after}");
            assert!(told >= last);
            last = told;
            sleep_until(after + 2_000_000);
        }
    }

    #[test]
    fn the_vdso_stands_in_where_the_counter_is_not_trusted() {
        let clock = Clock::vdso();
        assert_eq!(clock.source(), ClockSource::Vdso);
        let before = now_ns();
        let told = clock.now_ns();
        assert!((before..=now_ns()).contains(&told));
    }
}
