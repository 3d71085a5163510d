//! The monotonic clock, read through the vDSO.

use std::time::Duration;

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
#[must_use]
pub fn ns_from_s(seconds: f64) -> u64 {
    (seconds * 1e9).clamp(0.0, 9e18) as u64
}

/// Nanoseconds as seconds.
#[must_use]
pub fn s_from_ns(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}
