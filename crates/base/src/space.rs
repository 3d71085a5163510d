//! The floor of free space that no run may touch (as python/leadline/machine/space.py).

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::fstatvfs;

use crate::beneath::Directory;
use crate::error::EngineError;

const FLOOR_FRAC: f64 = 0.05;
const FLOOR_BYTES: u64 = 1 << 30;
const SMALL_SHARE: u64 = 4;
const SMALL_BYTES: u64 = 256 << 20;

/// Total, free and floor of a file system, in bytes.
fn room_of(file: impl AsFd) -> io::Result<(u64, u64, u64)> {
    let facts = fstatvfs(file)?;
    let (total, free) = (facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize);
    Ok((total, free, floor_of(total)))
}

fn floor_of(total: u64) -> u64 {
    let small = if total >= SMALL_BYTES { total / SMALL_SHARE } else { FLOOR_BYTES };
    ((total as f64 * FLOOR_FRAC) as u64).max(small.min(FLOOR_BYTES))
}

/// Bytes above the floor where an open file lies.
///
/// # Errors
/// The file system does not say.
pub fn usable_bytes(file: impl AsFd) -> io::Result<u64> {
    room_of(file).map(|(_, free, floor)| free.saturating_sub(floor))
}

/// Refuses when writing the given bytes below each of these directories would leave less than the
/// floor; directories on one file system share its room.
///
/// # Errors
/// `Target` with how much is free, needed and missing.
pub fn require_space<'a>(
    needs: impl IntoIterator<Item = (&'a Directory, u64)>,
) -> Result<(), EngineError> {
    let mut rooms: BTreeMap<u64, (&Directory, u64)> = BTreeMap::new();
    for (directory, bytes) in needs {
        let facts = directory.facts().map_err(|error| {
            EngineError::target(format!(
                "the directory {} cannot be used: {error}; give one that exists",
                directory.path().display()
            ))
        })?;
        rooms.entry(facts.st_dev).or_insert((directory, 0)).1 += bytes;
    }
    rooms.values().try_for_each(|(directory, bytes)| require_room(directory, *bytes))
}

fn require_room(directory: &Directory, needed: u64) -> Result<(), EngineError> {
    let shown = directory.path().display();
    let (total, free, floor) = room_of(directory).map_err(|error| {
        EngineError::target(format!(
            "{shown}: the file system does not say how much is free: {error}"
        ))
    })?;
    let usable = free.saturating_sub(floor);
    if needed <= usable {
        return Ok(());
    }
    Err(EngineError::target(format!(
        "{shown}: too little free space: {needed} bytes needed, {free} of {total} free, of which {floor} \
        must stay free (5%, at least 1 GiB, a quarter below 4 GiB); {} bytes are missing: free \
        them or give another directory",
        needed + floor - free.min(needed + floor)
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_small_file_system_keeps_a_quarter_free_and_a_tiny_one_takes_nothing() {
        let gib = 1 << 30;
        for (total, floor) in
            [(100 * gib, 5 * gib), (10 * gib, gib), (2 * gib, gib / 2), (gib / 8, gib)]
        {
            assert_eq!(floor_of(total), floor, "{total}");
        }
    }

    #[test]
    fn directories_on_one_file_system_share_its_room_above_the_floor() {
        let folder = std::env::temp_dir();
        let [folder, twin] =
            [folder.as_path(), folder.as_path()].map(|p| Directory::named(p).unwrap());
        let facts = fstatvfs(&folder).unwrap();
        let free = facts.f_bavail * facts.f_frsize;
        assert!(require_space([(&folder, 1 << 20)]).is_ok());
        let error = require_space([(&folder, free)]).unwrap_err();
        assert!(error.message.contains("bytes are missing"), "{error}");
        let half = free / 3 * 2;
        assert!(require_space([(&folder, half), (&twin, half)]).is_err());
    }
}
