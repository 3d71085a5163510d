//! Bytes over the memory bus, where this machine counts them: by the memory controllers themselves
//! (`uncore_imc`), or by the last cache's monitors (`resctrl`). Both count the whole machine.

#![forbid(unsafe_code)]

use std::fs::{File, read_dir, read_to_string};
use std::path::{Path, PathBuf};

use crate::counters::{open_on, read_count, why_not};

/// A memory controller's counters: name of the event, in pairs of both directions.
const EVENTS: [[&str; 2]; 2] = [["cas_count_read", "cas_count_write"], ["data_read", "data_write"]];

/// Where bytes over the memory bus are counted.
pub(crate) enum MemoryBus {
    /// Open counters and the bytes that one count stands for.
    Imc(Vec<(File, f64)>),
    /// Files that count bytes.
    Resctrl(Vec<PathBuf>),
    /// Nowhere, and why.
    None(String),
}

impl MemoryBus {
    pub fn open() -> Self {
        Self::open_below(Path::new("/sys"))
    }

    fn open_below(sys: &Path) -> Self {
        let events = controllers(&sys.join("bus/event_source/devices"));
        let opened: Result<Vec<_>, _> = events
            .iter()
            .map(|event| Ok((open_on(event.kind, event.config, event.processor)?, event.scale)))
            .collect();
        let reason = match opened {
            Ok(counters) if !counters.is_empty() => return Self::Imc(counters),
            Ok(_) => "this machine shows no memory controller's counters (uncore_imc)".to_owned(),
            Err(error) => format!("uncore_imc: {}", why_not(&error)),
        };
        let monitors = monitors(&sys.join("fs/resctrl/mon_data"));
        if monitors.is_empty() {
            return Self::None(format!("{reason}, and resctrl is not mounted or does not monitor"));
        }
        Self::Resctrl(monitors)
    }

    /// Bytes so far.
    pub fn read(&self) -> Option<u64> {
        match self {
            Self::Imc(counters) => counters.iter().try_fold(0, |sum, (counter, scale)| {
                Some(sum + (read_count(counter)? as f64 * scale) as u64)
            }),
            Self::Resctrl(monitors) => monitors.iter().try_fold(0, |sum, monitor| {
                Some(sum + read_to_string(monitor).ok()?.trim().parse::<u64>().ok()?)
            }),
            Self::None(_) => None,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Imc(_) => "imc",
            Self::Resctrl(_) => "resctrl",
            Self::None(_) => "none",
        }
    }
}

/// One event of one memory controller, on the processor that counts for its socket.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    kind: u32,
    config: u64,
    processor: i32,
    scale: f64,
}

fn controllers(devices: &Path) -> Vec<Event> {
    let mut found = entries(devices, "uncore_imc");
    // Free-running counters stand beside the others and count the same bytes.
    let free = |path: &PathBuf| path.to_string_lossy().contains("free_running");
    if !found.iter().all(free) {
        found.retain(|path| !free(path));
    }
    found.iter().flat_map(|device| events_of(device)).collect()
}

fn events_of(device: &Path) -> Vec<Event> {
    let text = |name: &str| read_to_string(device.join(name)).ok();
    let both = |names: &[&str; 2]| -> Option<Vec<Event>> {
        let kind = text("type")?.trim().parse().ok()?;
        let processors = text("cpumask")?;
        let mut events = Vec::new();
        for name in names {
            let config = config_of(&text(&format!("events/{name}"))?, |term| {
                text(&format!("format/{term}"))
            })?;
            let scale: f64 = text(&format!("events/{name}.scale"))?.trim().parse().ok()?;
            let unit = match text(&format!("events/{name}.unit"))?.trim() {
                "MiB" => 1_048_576.0,
                "Bytes" => 1.0,
                _ => return None,
            };
            for processor in processors.trim().split(',') {
                // A range of a mask begins with the processor that counts.
                let processor = processor.split('-').next()?.parse().ok()?;
                events.push(Event { kind, config, processor, scale: scale * unit });
            }
        }
        Some(events)
    };
    EVENTS.iter().find_map(both).unwrap_or_default()
}

/// `event=0x04,umask=0x03` as a number, by the places that `format` tells of each term.
fn config_of(event: &str, format: impl Fn(&str) -> Option<String>) -> Option<u64> {
    event.trim().split(',').try_fold(0, |config, term| {
        let (name, value) = term.split_once('=')?;
        let value = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => value.parse().ok()?,
        };
        let place = format(name)?;
        let low = place.trim().strip_prefix("config:")?.split('-').next()?.parse::<u32>().ok()?;
        Some(config | value.checked_shl(low)?)
    })
}

fn monitors(folder: &Path) -> Vec<PathBuf> {
    let files = entries(folder, "mon_L3_").into_iter().map(|cache| cache.join("mbm_total_bytes"));
    files.filter(|file| file.exists()).collect()
}

fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let names = read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = names
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all, write};

    fn machine(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("leadline-bus-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_memory_controllers_events_are_read_as_the_kernel_lists_them() {
        let device = "devices/uncore_imc_0";
        let of = |name: &str| format!("{device}/{name}");
        let files = [
            (of("type"), "14\n"),
            (of("cpumask"), "0,18\n"),
            (of("format/event"), "config:0-7\n"),
            (of("format/umask"), "config:8-15\n"),
            (of("events/cas_count_read"), "event=0x04,umask=0x03\n"),
            (of("events/cas_count_read.scale"), "6.103515625e-5\n"),
            (of("events/cas_count_read.unit"), "MiB\n"),
            (of("events/cas_count_write"), "event=0x04,umask=0x0c\n"),
            (of("events/cas_count_write.scale"), "6.103515625e-5\n"),
            (of("events/cas_count_write.unit"), "MiB\n"),
            ("devices/uncore_imc_free_running_0/type".to_owned(), "15\n"),
            ("devices/cpu/type".to_owned(), "4\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        let root = machine("imc", &files);
        let events = controllers(&root.join("devices"));
        remove_dir_all(&root).unwrap();
        let event = |config, processor| Event { kind: 14, config, processor, scale: 64.0 };
        assert_eq!(events, [event(0x304, 0), event(0x304, 18), event(0xc04, 0), event(0xc04, 18)]);
    }

    #[test]
    fn the_caches_monitors_stand_in_and_nothing_is_made_up() {
        let root = machine(
            "resctrl",
            &[
                ("fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes", "1000\n"),
                ("fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes", "234\n"),
                ("fs/resctrl/mon_data/mon_L3_01/mbm_local_bytes", "5\n"),
            ],
        );
        let bus = MemoryBus::open_below(&root);
        assert_eq!((bus.name(), bus.read()), ("resctrl", Some(1234)));
        let monitor = root.join("fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes");
        write(monitor, "Unavailable\n").unwrap();
        assert_eq!(bus.read(), None);
        remove_dir_all(&root).unwrap();
        let bus = MemoryBus::open_below(&root);
        assert_eq!((bus.name(), bus.read()), ("none", None));
        assert!(matches!(bus, MemoryBus::None(reason) if reason.contains("resctrl")));
    }
}
