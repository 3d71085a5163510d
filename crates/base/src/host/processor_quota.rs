//! How much processor time this process may use: processors it may run on, and the quotas of its
//! control group and of those above it.

use std::fs::read_to_string;
use std::path::Path;

use crate::host::control_group::ControlGroup;

/// Processors by affinity alone; `available_parallelism` would round a quota into it.
fn allowed() -> f64 {
    // SAFETY: a set of processors is plain data, for which all zero bytes are valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: a writable set of the length given.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } != 0;
    // SAFETY: the set is initialised.
    let count = unsafe { libc::CPU_COUNT(&set) };
    if failed || count < 1 { super::processors() as f64 } else { f64::from(count) }
}

/// Processors this process may use, in parts of one where a quota says so.
#[must_use]
pub fn processors_within_quota() -> f64 {
    let group = ControlGroup::own("cpu");
    let quotas = group.iter().flat_map(|group| {
        group.folders().filter_map(|folder| {
            if group.unified { quota_of_v2(folder) } else { quota_of_v1(folder) }
        })
    });
    quotas.fold(allowed(), f64::min)
}

/// `cpu.cfs_quota_us` over `cpu.cfs_period_us`; -1 is none.
fn quota_of_v1(folder: &Path) -> Option<f64> {
    let number = |name: &str| {
        read_to_string(folder.join(name)).ok()?.trim().parse::<f64>().ok().filter(|it| *it > 0.0)
    };
    Some(number("cpu.cfs_quota_us")? / number("cpu.cfs_period_us")?)
}

/// Both in `cpu.max`; `max` is none.
fn quota_of_v2(folder: &Path) -> Option<f64> {
    let text = read_to_string(folder.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all, write};

    #[test]
    fn quotas_of_both_versions_are_read() {
        let folder = std::env::temp_dir().join(format!("leadline-quota-{}", std::process::id()));
        create_dir_all(&folder).unwrap();
        assert_eq!((quota_of_v1(&folder), quota_of_v2(&folder)), (None, None));
        write(folder.join("cpu.cfs_quota_us"), "-1\n").unwrap();
        write(folder.join("cpu.cfs_period_us"), "100000\n").unwrap();
        write(folder.join("cpu.max"), "max 100000\n").unwrap();
        assert_eq!((quota_of_v1(&folder), quota_of_v2(&folder)), (None, None));
        write(folder.join("cpu.cfs_quota_us"), "150000\n").unwrap();
        write(folder.join("cpu.max"), "25000 100000\n").unwrap();
        assert_eq!((quota_of_v1(&folder), quota_of_v2(&folder)), (Some(1.5), Some(0.25)));
        remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn no_more_than_the_processors_it_may_run_on() {
        let processors = processors_within_quota();
        assert!(processors > 0.0 && processors <= allowed(), "{processors}");
    }
}
