//! The memory cgroup this process lives in: its page cache, its limit, its page-cache events.

#![forbid(unsafe_code)]

use std::fs::read_to_string;
use std::path::PathBuf;

use leadline_wire::event::measure::CacheEvents;

use crate::host::control_group::ControlGroup;

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
        let ControlGroup { folder, unified, .. } = ControlGroup::own("memory")?;
        folder.join("memory.stat").exists().then_some(Self { folder, unified })
    }

    fn stat(&self, key: &str) -> Option<u64> {
        let text = read_to_string(self.folder.join("memory.stat")).ok()?;
        counter(&text, key)
    }

    /// Page cache charged to the group and the groups below it, in bytes.
    #[must_use]
    pub fn cache_bytes(&self) -> Option<u64> {
        self.stat(if self.unified { "file" } else { "total_cache" })
    }

    /// Page-cache events of the group and the groups below it since they were made.
    #[must_use]
    pub fn cache_events(&self) -> Option<CacheEvents> {
        let text = read_to_string(self.folder.join("memory.stat")).ok()?;
        let prefix = if self.unified { "" } else { "total_" };
        let count = |key: &str| counter(&text, &format!("{prefix}{key}"));
        Some(CacheEvents {
            charged_pages: if self.unified { None } else { count("pgpgin") },
            uncharged_pages: if self.unified { None } else { count("pgpgout") },
            refaulted_pages: count("workingset_refault_file"),
            major_faults: count("pgmajfault"),
        })
    }

    /// The tightest memory limit on the group or one above it, in bytes; none when there is none.
    pub(super) fn limit_bytes(&self) -> Option<u64> {
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

/// Page-cache events of the whole machine since boot, for machines without a memory controller.
/// What is charged is not counted there: `pgpgin` of /proc/vmstat is about block devices.
#[must_use]
pub fn machine_cache_events() -> Option<CacheEvents> {
    let text = read_to_string("/proc/vmstat").ok()?;
    Some(CacheEvents {
        refaulted_pages: counter(&text, "workingset_refault_file"),
        major_faults: counter(&text, "pgmajfault"),
        ..CacheEvents::default()
    })
}

/// What happened between two readings.
#[must_use]
pub fn events_between(before: &CacheEvents, after: &CacheEvents) -> CacheEvents {
    let grown = |from: Option<u64>, to: Option<u64>| Some(to?.saturating_sub(from?));
    CacheEvents {
        charged_pages: grown(before.charged_pages, after.charged_pages),
        uncharged_pages: grown(before.uncharged_pages, after.uncharged_pages),
        refaulted_pages: grown(before.refaulted_pages, after.refaulted_pages),
        major_faults: grown(before.major_faults, after.major_faults),
    }
}

/// The number beside `key` in lines of a name and a number.
fn counter(text: &str, key: &str) -> Option<u64> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.find(|pair| pair.0 == key)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_counts_only_when_both_readings_have_it() {
        let text = "pgmajfault 7\npgmajfault_other 9\n";
        assert_eq!(counter(text, "pgmajfault"), Some(7));
        assert_eq!(counter(text, "workingset_refault_file"), None);
        let before = CacheEvents { major_faults: Some(5), ..CacheEvents::default() };
        let after = CacheEvents {
            major_faults: Some(7),
            refaulted_pages: Some(1),
            ..CacheEvents::default()
        };
        let between = events_between(&before, &after);
        assert_eq!((between.major_faults, between.refaulted_pages), (Some(2), None));
    }

    #[test]
    fn the_machine_counts_major_faults() {
        assert!(machine_cache_events().is_some_and(|events| events.major_faults.is_some()));
    }
}
