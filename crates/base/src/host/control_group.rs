//! Where a controller keeps this process, under version 1 or 2 of control groups.

#![forbid(unsafe_code)]

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// The group of this process under one controller.
#[derive(Clone, Debug)]
pub struct ControlGroup {
    /// Its folder.
    pub folder: PathBuf,
    /// Where the hierarchy is mounted: the folder of the topmost group in sight.
    pub top: PathBuf,
    /// Whether it is of version 2.
    pub unified: bool,
}

impl ControlGroup {
    /// The own group; none when the controller is nowhere in sight.
    #[must_use]
    pub fn own(controller: &str) -> Option<Self> {
        let groups = read_to_string("/proc/self/cgroup").ok()?;
        let mounts = read_to_string("/proc/self/mountinfo").ok()?;
        let v1 = groups.lines().find(|line| {
            line.split(':')
                .nth(1)
                .is_some_and(|names| names.split(',').any(|name| name == controller))
        });
        let (line, unified) = match v1 {
            Some(line) => (line, false),
            None => (groups.lines().find(|line| line.starts_with("0::"))?, true),
        };
        let path = line.splitn(3, ':').nth(2)?;
        let version = if unified { None } else { Some(controller) };
        let (root, point) = mounts.lines().find_map(|mount| mount_of(mount, version))?;
        let within = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path);
        Some(Self { folder: format!("{point}{within}").into(), top: point.into(), unified })
    }

    /// Its folder and those of the groups above it, up to the topmost in sight.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folder.ancestors().take_while(|folder| folder.starts_with(&self.top))
    }
}

/// Root and mount point of a mountinfo line, if it is the controller's of version 1, or version
/// 2's, which has no controller of its own.
fn mount_of<'a>(line: &'a str, controller: Option<&str>) -> Option<(&'a str, &'a str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    let (name, options) = (kind.next()?, kind.nth(1)?);
    let wanted = match controller {
        None => name == "cgroup2",
        Some(controller) => name == "cgroup" && options.split(',').any(|it| it == controller),
    };
    wanted.then_some((root, point))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_lines_of_both_versions_are_told_apart() {
        let v1 = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory";
        let v2 = "41 31 0:38 /a /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw";
        assert_eq!(mount_of(v1, Some("memory")), Some(("/", "/sys/fs/cgroup/memory")));
        assert_eq!(mount_of(v1, Some("cpu")), None);
        assert_eq!(mount_of(v1, None), None);
        assert_eq!(mount_of(v2, None), Some(("/a", "/sys/fs/cgroup")));
        assert_eq!(mount_of(v2, Some("memory")), None);
        let several = "34 31 0:31 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct";
        assert_eq!(mount_of(several, Some("cpu")), Some(("/", "/cg/cpu")));
    }

    #[test]
    fn groups_above_end_at_the_mount() {
        let group = ControlGroup {
            folder: "/sys/fs/cgroup/cpu/a/b".into(),
            top: "/sys/fs/cgroup/cpu".into(),
            unified: false,
        };
        let folders: Vec<&Path> = group.folders().collect();
        let [b, a, top] = ["/sys/fs/cgroup/cpu/a/b", "/sys/fs/cgroup/cpu/a", "/sys/fs/cgroup/cpu"];
        assert_eq!(folders, [Path::new(b), Path::new(a), Path::new(top)]);
    }
}
