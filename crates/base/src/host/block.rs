//! The block devices below a file, down to those that nothing lies below.
//!
//! A direct read of a file system in a loop device's image is a read of another file, which the
//! host's page cache may answer; a volume manager's device moves bytes that its members move again.
//! What counts as moved by the device is therefore summed over the leaves.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::{File, canonicalize, metadata, read_dir, read_to_string};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::host::file_system::FileSystem;

/// Devices on devices on devices: deeper is taken for a circle.
const DEPTH_MAX: usize = 16;

/// What is said of a loop device that reads its image through the page cache.
pub const LOOP_CACHE: &str = "loop device with a page cache of its own below";

/// The devices a file's bytes end up on, known by the files of their counters.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BlockDevice {
    leaves: BTreeSet<PathBuf>,
    caches_below: Vec<String>,
    unchecked: Vec<String>,
    uncounted: bool,
}

impl BlockDevice {
    /// The devices a file lies on; none for memory, network and other file systems without one.
    #[must_use]
    pub fn of(file: &File) -> Option<Self> {
        let mut device = Self::default();
        device.descend_file(file.metadata().ok()?.dev(), 0).then_some(device)
    }

    /// The leaves' names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.leaves.iter().map(|leaf| name(leaf)).collect()
    }

    /// Caches between the file system and the leaves, in words, each with its device's name.
    #[must_use]
    pub fn caches_below(&self) -> &[String] {
        &self.caches_below
    }

    /// What could not be followed to the bottom, in words.
    #[must_use]
    pub fn unchecked(&self) -> &[String] {
        &self.unchecked
    }

    /// Bytes read and written since boot, summed over the leaves. Mirrors write more than was asked
    /// for, as they do. None when a device does not count.
    #[must_use]
    pub fn moved_bytes(&self) -> Option<(u64, u64)> {
        if self.uncounted {
            return None;
        }
        self.leaves.iter().try_fold((0, 0), |sum, leaf| {
            let moved = moved_by(leaf)?;
            Some((sum.0 + moved.0, sum.1 + moved.1))
        })
    }

    /// Follows the file system with the number `number`; false when it lies on no block device.
    fn descend_file(&mut self, number: u64, depth: usize) -> bool {
        if let Some(place) = place_of(number) {
            self.descend(&place, depth);
            return true;
        }
        let Some(source) = mounted_from(number) else { return false };
        let members = btrfs_members(&source);
        let places = if members.is_empty() { vec![source] } else { members };
        places.iter().for_each(|place| self.descend(place, depth));
        true
    }

    /// Follows the device with the folder `place` in /sys.
    fn descend(&mut self, place: &Path, depth: usize) {
        let whole = match place.parent() {
            Some(parent) if place.join("partition").exists() => parent,
            _ => place,
        };
        let below: Vec<PathBuf> = entries(&whole.join("slaves"));
        if depth >= DEPTH_MAX {
            self.give_up(place, "there are too many devices below it");
        } else if let Ok(image) = read_to_string(whole.join("loop/backing_file")) {
            self.descend_loop(whole, Path::new(image.trim_end_matches('\n')), depth);
        } else if below.is_empty() {
            self.take(place, whole);
        } else {
            below.iter().for_each(|slave| self.descend(slave, depth + 1));
        }
    }

    /// Takes a device that nothing lies below, part of the device `whole` or that itself.
    fn take(&mut self, place: &Path, whole: &Path) {
        let off = read_to_string(whole.join("queue/iostats")).is_ok_and(|text| text.trim() == "0");
        // Something was read from it to mount it; a path of several may count for all of them.
        let silent = moved_by(place).is_none_or(|moved| moved == (0, 0));
        if off || silent {
            self.uncounted = true;
            self.unchecked.push(format!("bytes moved by {}: it does not count them", name(place)));
        }
        self.leaves.insert(place.to_owned());
    }

    fn descend_loop(&mut self, place: &Path, image: &Path, depth: usize) {
        let direct = read_to_string(place.join("loop/dio")).is_ok_and(|text| text.trim() == "1");
        if !direct {
            self.caches_below.push(format!("{}: {LOOP_CACHE}", name(place)));
        }
        let Ok(facts) = metadata(image) else {
            let reason = format!("its image {} is out of sight", image.display());
            return self.give_up(place, &reason);
        };
        if facts.file_type().is_block_device() {
            match place_of(facts.rdev()) {
                Some(source) => self.descend(&source, depth + 1),
                None => self.give_up(place, "the device below it is out of sight"),
            }
        } else if let Some(memory) = FileSystem::at(image).and_then(FileSystem::memory) {
            self.caches_below.push(format!("{}: its image lies in memory ({memory})", name(place)));
        } else if !self.descend_file(facts.dev(), depth + 1) {
            let reason = format!("its image {} lies on no block device", image.display());
            self.give_up(place, &reason);
        }
    }

    /// Takes a device that has something below it for a leaf, and says so.
    fn give_up(&mut self, place: &Path, reason: &str) {
        self.leaves.insert(place.to_owned());
        self.unchecked.push(format!("caches below {}: {reason}", name(place)));
    }
}

/// Bytes one device read and wrote since boot.
fn moved_by(place: &Path) -> Option<(u64, u64)> {
    let text = read_to_string(place.join("stat")).ok()?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // Sectors in these counters are 512 bytes whatever the device's own (Documentation/block/stat).
    Some((numbers.get(2)? * 512, numbers.get(6)? * 512))
}

/// The folder in /sys of a device.
fn place_of(number: u64) -> Option<PathBuf> {
    let (major, minor) = (libc::major(number), libc::minor(number));
    let place = canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    place.join("stat").exists().then_some(place)
}

/// For file systems with a number of their own (btrfs): the device named in mountinfo.
fn mounted_from(number: u64) -> Option<PathBuf> {
    let wanted = format!("{}:{}", libc::major(number), libc::minor(number));
    let mounts = read_to_string("/proc/self/mountinfo").ok()?;
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(wanted.as_str()))?;
    let source = line.split(" - ").nth(1)?.split(' ').nth(1)?;
    let facts = metadata(source).ok().filter(|facts| facts.file_type().is_block_device())?;
    place_of(facts.rdev())
}

/// All devices of the btrfs file system that has a device, itself included; none for others.
fn btrfs_members(place: &Path) -> Vec<PathBuf> {
    let systems = entries(Path::new("/sys/fs/btrfs"));
    let all = systems.iter().map(|system| entries(&system.join("devices")));
    all.into_iter().find(|members| members.iter().any(|it| it == place)).unwrap_or_default()
}

/// What a folder of links in /sys points to.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| canonicalize(entry.ok()?.path()).ok()).collect()
}

fn name(place: &Path) -> String {
    place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all, write};
    use std::os::unix::fs::symlink;

    /// Folders as /sys has them: a volume `dm` on the partition `sda1` and the disk `sdb`.
    struct Fake(PathBuf);

    impl Fake {
        fn new(name: &str) -> Self {
            let folder =
                std::env::temp_dir().join(format!("leadline-{name}-{}", std::process::id()));
            create_dir_all(&folder).unwrap();
            let fake = Self(canonicalize(folder).unwrap());
            fake.device("dm", 9000);
            fake.device("sda", 500);
            fake.device("sda/sda1", 100);
            write(fake.0.join("sda/sda1/partition"), "1").unwrap();
            fake.device("sdb", 30);
            fake.stack("dm", "sda/sda1");
            fake.stack("dm", "sdb");
            fake
        }

        fn device(&self, name: &str, sectors: u64) {
            create_dir_all(self.0.join(name).join("slaves")).unwrap();
            let counters = format!(" 1 0 {sectors} 0 1 0 {} 0 0 0 0\n", sectors * 2);
            write(self.0.join(name).join("stat"), counters).unwrap();
        }

        fn stack(&self, above: &str, below: &str) {
            let below = self.0.join(below);
            let link = self.0.join(above).join("slaves").join(below.file_name().unwrap());
            symlink(below, link).unwrap();
        }

        fn below(&self, name: &str) -> BlockDevice {
            let mut device = BlockDevice::default();
            device.descend(&self.0.join(name), 0);
            device
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_volume_has_moved_what_the_devices_at_the_bottom_moved() {
        let fake = Fake::new("volume");
        let device = fake.below("dm");
        assert_eq!(device.moved_bytes(), Some((130 * 512, 260 * 512)));
        assert_eq!(device.unchecked(), &[] as &[String]);
        assert_eq!(device.names(), ["sda1", "sdb"]);
        assert_eq!(fake.below("sda/sda1").moved_bytes(), Some((100 * 512, 200 * 512)));
    }

    #[test]
    fn a_volume_on_a_volume_counts_a_disk_once() {
        let fake = Fake::new("stack");
        fake.device("top", 7);
        fake.stack("top", "dm");
        fake.stack("top", "sdb");
        assert_eq!(fake.below("top").moved_bytes(), Some((130 * 512, 260 * 512)));
    }

    #[test]
    fn a_circle_ends_and_is_said() {
        let fake = Fake::new("circle");
        fake.stack("sdb", "dm");
        let device = fake.below("sdb");
        assert!(device.unchecked()[0].contains("too many devices below it"), "{device:?}");
    }

    #[test]
    fn counters_that_do_not_count_are_not_believed() {
        let fake = Fake::new("silent");
        create_dir_all(fake.0.join("sda/queue")).unwrap();
        write(fake.0.join("sda/queue/iostats"), "0\n").unwrap();
        let off = fake.below("dm");
        assert_eq!(off.moved_bytes(), None);
        assert!(off.unchecked()[0].starts_with("bytes moved by sda1: "), "{off:?}");
        fake.device("sdb", 0);
        assert_eq!(fake.below("sdb").moved_bytes(), None, "it was mounted, so it was read");
    }

    #[test]
    fn a_loop_device_is_told_with_its_cache_when_its_image_is_out_of_sight() {
        let fake = Fake::new("image");
        create_dir_all(fake.0.join("sdb/loop")).unwrap();
        write(fake.0.join("sdb/loop/backing_file"), "/nowhere/image (deleted)\n").unwrap();
        write(fake.0.join("sdb/loop/dio"), "0\n").unwrap();
        let device = fake.below("sdb");
        assert!(device.caches_below()[0].ends_with(LOOP_CACHE), "{device:?}");
        assert!(device.unchecked()[0].contains("out of sight"), "{device:?}");
        assert_eq!(device.moved_bytes(), Some((30 * 512, 60 * 512)));
    }
}
