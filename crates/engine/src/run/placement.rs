//! Which processors the workers run on.
//!
//! While there are no more workers than processors, each gets one of its own, those that serve the
//! device's interrupts first: on a machine with one interrupt line the same direct read is a
//! quarter faster there, and a rate that depends on where the scheduler happened to put a thread is
//! no property of the storage. With more workers than processors they are left to the scheduler.

use std::fs::{File, canonicalize, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use leadline_wire::event::measure::Placed;
use leadline_wire::job::measure::Placement;

/// The place of every worker of a run on `file`, where it has one.
#[must_use]
pub fn place(policy: Placement, workers: usize, file: Option<&File>) -> Placed {
    let mut cpus = allowed();
    if policy == Placement::Free || workers > cpus.len() {
        return Placed { pinned: false, cpus: Vec::new() };
    }
    let served = file.and_then(device_names).map_or_else(Vec::new, |names| interrupts(&names));
    // Stable, so that processors that serve equally many keep their order.
    cpus.sort_by_key(|cpu| std::cmp::Reverse(served.get(*cpu).copied().unwrap_or(0)));
    cpus.truncate(workers);
    Placed { pinned: true, cpus }
}

/// Keeps the calling thread on one processor; one that has since gone is ignored.
pub fn pin(cpu: usize) {
    // SAFETY: cpu_set_t is plain data, for which all zero bytes are valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: CPU_SET ignores numbers past the set; the set is valid for this call.
    unsafe {
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Processors this thread may use, in order.
fn allowed() -> Vec<usize> {
    // SAFETY: as in `pin`.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: a writable set of the size told.
    let code =
        unsafe { libc::sched_getaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &mut set) };
    if code != 0 {
        return Vec::new();
    }
    // SAFETY: the set is initialised and every number is within it.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Names under which a disk's interrupts may be listed: its own and its controller's.
fn device_names(file: &File) -> Option<Vec<String>> {
    let number = file.metadata().ok()?.dev();
    let (major, minor) = (libc::major(number), libc::minor(number));
    let place = canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    // A partition's folder lies within its disk's.
    let disk = if place.join("partition").exists() { place.parent()?.to_owned() } else { place };
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let controller = canonicalize(disk.join("device")).ok().and_then(name);
    Some([name(disk), controller].into_iter().flatten().collect())
}

/// Interrupts that each processor has served for a device, by the processor's number.
fn interrupts(names: &[String]) -> Vec<u64> {
    served(&read_to_string("/proc/interrupts").unwrap_or_default(), names)
}

fn served(table: &str, names: &[String]) -> Vec<u64> {
    let mut lines = table.lines();
    let columns: Vec<usize> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    let mut served = vec![0; columns.iter().max().map_or(0, |most| most + 1)];
    for line in lines.filter(|line| line.split_whitespace().any(|word| belongs(word, names))) {
        let counts = line.split_whitespace().skip(1);
        for (cpu, count) in columns.iter().zip(counts) {
            served[*cpu] += count.parse::<u64>().unwrap_or(0);
        }
    }
    served
}

/// Whether an interrupt called `virtio1-req.0` or `nvme0q3` is that of `virtio1` or `nvme0`.
fn belongs(word: &str, names: &[String]) -> bool {
    names.iter().any(|name| {
        let rest = word.strip_prefix(name.as_str());
        // The configuration line of virtio carries no requests.
        rest.is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_ascii_digit()) && !rest.contains("config")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "           CPU0       CPU1\n\
        24:          0          0   PCI-MSIX-0000:00:01.0   0-edge      virtio1-config\n\
        25:        120      90000   PCI-MSIX-0000:00:01.0   1-edge      virtio1-req.0\n\
        26:      70000          3   PCI-MSIX-0000:00:02.0   1-edge      virtio10-req.0\n\
        27:       5000          1   PCI-MSIX-0000:00:03.0   1-edge      nvme0q1\n\
        LOC:     11111      22222   Local timer interrupts\n";

    #[test]
    fn interrupts_of_one_device_are_counted_by_processor() {
        assert_eq!(served(TABLE, &["vda".into(), "virtio1".into()]), [120, 90000]);
        assert_eq!(served(TABLE, &["nvme0n1".into(), "nvme0".into()]), [5000, 1]);
        assert_eq!(served(TABLE, &["sda".into()]), [0, 0]);
        assert_eq!(served("", &["sda".into()]), [] as [u64; 0]);
    }

    #[test]
    fn issuers_have_a_processor_each_only_while_there_are_enough() {
        let all = allowed();
        let placed = place(Placement::Auto, all.len(), None);
        assert!(placed.pinned);
        assert_eq!(placed.cpus, all);
        assert!(!place(Placement::Auto, all.len() + 1, None).pinned);
        assert!(!place(Placement::Free, 1, None).pinned);
    }

    #[test]
    fn a_pinned_thread_may_use_that_processor_alone() {
        let last = *allowed().last().unwrap_or(&0);
        let seen = std::thread::spawn(move || {
            pin(last);
            allowed()
        });
        assert_eq!(seen.join().unwrap_or_default(), [last]);
    }
}
