//! What this machine did during a window: processor time, the block device, the file cache.
//!
//! Everything is read from /proc and /sys before and after; what is not there is `None`, never a
//! guess.

use std::fs::{File, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

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

/// Processor seconds used by the whole machine since boot, idle and waiting for I/O apart; stolen
/// time counts.
fn busy_s() -> Option<f64> {
    let text = read_to_string("/proc/stat").ok()?;
    let numbers: Vec<f64> = text
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    if numbers.len() < 5 {
        return None;
    }
    // user nice system idle iowait irq softirq steal; the guest columns are already within user.
    let busy: f64 = numbers.iter().take(8).sum::<f64>() - numbers[3] - numbers[4];
    // SAFETY: sysconf has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    (ticks > 0).then(|| busy / ticks as f64)
}

/// Processors this process may use.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A block device, known by the file of its counters.
#[derive(Clone, Debug)]
pub struct BlockDevice {
    counters: PathBuf,
}

impl BlockDevice {
    /// The device a file lies on; none for memory, network and other file systems without one.
    #[must_use]
    pub fn of(file: &File) -> Option<Self> {
        let number = file.metadata().ok()?.dev();
        Self::numbered(number).or_else(|| Self::mounted(number))
    }

    fn numbered(number: u64) -> Option<Self> {
        let (major, minor) = (libc::major(number), libc::minor(number));
        let counters = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        counters.exists().then_some(Self { counters })
    }

    /// For file systems with a number of their own (btrfs): the device named in mountinfo.
    fn mounted(number: u64) -> Option<Self> {
        let wanted = format!("{}:{}", libc::major(number), libc::minor(number));
        let mounts = read_to_string("/proc/self/mountinfo").ok()?;
        let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(wanted.as_str()))?;
        let source = line.split(" - ").nth(1)?.split(' ').nth(1)?;
        Self::numbered(std::fs::metadata(source).ok()?.rdev())
    }

    /// Bytes read and written since boot.
    #[must_use]
    pub fn moved_bytes(&self) -> Option<(u64, u64)> {
        let text = read_to_string(&self.counters).ok()?;
        let numbers: Vec<u64> =
            text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // Sectors in these counters are 512 bytes whatever the device's own
        // (Documentation/block/stat).
        Some((numbers.get(2)? * 512, numbers.get(6)? * 512))
    }
}

/// The memory cgroup this process lives in.
#[derive(Clone, Debug)]
pub struct MemoryGroup {
    folder: PathBuf,
    unified: bool,
}

impl MemoryGroup {
    /// The own group, version 1 or 2; none when the machine has no memory controller in sight.
    #[must_use]
    pub fn own() -> Option<Self> {
        let groups = read_to_string("/proc/self/cgroup").ok()?;
        let mounts = read_to_string("/proc/self/mountinfo").ok()?;
        let v1 = groups.lines().find(|line| {
            line.split(':')
                .nth(1)
                .is_some_and(|names| names.split(',').any(|name| name == "memory"))
        });
        let (line, unified) = match v1 {
            Some(line) => (line, false),
            None => (groups.lines().find(|line| line.starts_with("0::"))?, true),
        };
        let path = line.splitn(3, ':').nth(2)?;
        let (root, point) = mounts.lines().find_map(|mount| mount_of(mount, unified))?;
        let within = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path);
        let folder = PathBuf::from(format!("{point}{within}"));
        folder.join("memory.stat").exists().then_some(Self { folder, unified })
    }

    fn stat(&self, key: &str) -> Option<u64> {
        let text = read_to_string(self.folder.join("memory.stat")).ok()?;
        let mut words = text.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
        words.find(|pair| pair.0 == key)?.1.trim().parse().ok()
    }

    /// File cache charged to the group and the groups below it, in bytes.
    #[must_use]
    pub fn cache_bytes(&self) -> Option<u64> {
        self.stat(if self.unified { "file" } else { "total_cache" })
    }

    /// The tightest memory limit on the group or one above it, in bytes; none when there is none.
    fn limit_bytes(&self) -> Option<u64> {
        if !self.unified {
            return self.stat("hierarchical_memory_limit").filter(|limit| *limit < 1 << 60);
        }
        let limits = self
            .folder
            .ancestors()
            .filter_map(|folder| read_to_string(folder.join("memory.max")).ok());
        limits.filter_map(|text| text.trim().parse().ok()).min()
    }
}

/// Root and mount point of a mountinfo line, if it is the memory controller's.
fn mount_of(line: &str, unified: bool) -> Option<(&str, &str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    let (name, options) = (kind.next()?, kind.nth(1)?);
    let wanted = if unified {
        name == "cgroup2"
    } else {
        name == "cgroup" && options.split(',').any(|option| option == "memory")
    };
    wanted.then_some((root, point))
}

/// The most memory a file cache can have here, in bytes: the cgroup's limit or the machine's
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

/// The counters at one moment.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    cpu: CpuTime,
    busy_s: Option<f64>,
    device: Option<(u64, u64)>,
}

/// Watches the machine over a window.
#[derive(Debug)]
pub struct HostWatch {
    device: Option<BlockDevice>,
    began: Snapshot,
}

/// What happened between the two ends of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostUse {
    /// Processor seconds of this process.
    pub cpu: CpuTime,
    /// Processor seconds of everybody else.
    pub foreign_s: Option<f64>,
    /// Bytes the device read and wrote.
    pub device: Option<(u64, u64)>,
    /// File cache of the own cgroup at the end, in bytes.
    pub cache_resident_bytes: Option<u64>,
}

impl HostWatch {
    /// Starts watching; `device` is where the workload's file lies.
    #[must_use]
    pub fn start(device: Option<BlockDevice>) -> Self {
        let began = Snapshot::take(device.as_ref());
        Self { device, began }
    }

    /// What happened since.
    #[must_use]
    pub fn finish(&self) -> HostUse {
        let ended = Snapshot::take(self.device.as_ref());
        let cpu = CpuTime {
            user_s: ended.cpu.user_s - self.began.cpu.user_s,
            system_s: ended.cpu.system_s - self.began.cpu.system_s,
        };
        let foreign_s = self
            .began
            .busy_s
            .zip(ended.busy_s)
            .map(|(from, to)| (to - from - cpu.user_s - cpu.system_s).max(0.0));
        let device = self
            .began
            .device
            .zip(ended.device)
            .map(|(from, to)| (to.0.saturating_sub(from.0), to.1.saturating_sub(from.1)));
        HostUse {
            cpu,
            foreign_s,
            device,
            cache_resident_bytes: MemoryGroup::own().and_then(|group| group.cache_bytes()),
        }
    }
}

impl Snapshot {
    fn take(device: Option<&BlockDevice>) -> Self {
        Self {
            cpu: CpuTime::now(),
            busy_s: busy_s(),
            device: device.and_then(BlockDevice::moved_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn mount_lines_of_both_versions_are_told_apart() {
        let v1 = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory";
        let v2 = "41 31 0:38 /a /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw";
        assert_eq!(mount_of(v1, false), Some(("/", "/sys/fs/cgroup/memory")));
        assert_eq!(mount_of(v1, true), None);
        assert_eq!(mount_of(v2, true), Some(("/a", "/sys/fs/cgroup")));
        assert_eq!(mount_of(v2, false), None);
        assert_eq!(mount_of("35 31 0:32 / /x rw - cgroup cgroup rw,cpu", false), None);
    }

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
}
