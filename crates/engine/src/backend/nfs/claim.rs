//! Ownership of `.leadline/` in a directory of a server: the same names, contents and rules as
//! `python/leadline/engine/targets/claim.py` keeps in a local one.
//!
//! NFS version 3 has no lock that dies with its holder. The lock is a file that only one can create;
//! it names the process that holds it and the machine and boot it runs on. One whose process is gone
//! from this machine is taken away, one of another machine never is: whether that still runs cannot
//! be known here.

use leadline_base::clock::now_ns;
use leadline_base::error::EngineError;
use leadline_base::host;
use leadline_wire::job::nfs_load::Data;
use leadline_wire::job::target::is_run;
use nfs3_types::nfs3::{ftype3, nfsstat3};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::backend::data_file::DATA_FILE_NAME;
use crate::backend::nfs::volume::{Place, Refusal, Volume};

/// The only name Leadline makes in a target.
pub const DIRECTORY: &str = ".leadline";
const MARKER: &str = "OWNED-BY-LEADLINE";
const LOCK: &str = "lock";
const LOCK_TEXT: &str = "leadline process ";
const MARKER_VERSION: u64 = 1;
const SMALL_FILE_BYTES: u32 = 4096;

/// A holder that died between making the lock and naming itself has had this long to do so.
const NAMING_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

/// Time in which another that found the same dead holder has put its own name into the lock.
const TAKE_OVER_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(300);

/// A release by another Leadline may pull the directory away between two steps; then again.
const TRIES: usize = 20;

/// A process, so that a later start can tell whether it is gone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holder {
    process: u32,
    machine: String,
}

impl Holder {
    /// The process `process` of this machine.
    #[must_use]
    pub fn here(process: u32) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let boot = read("/proc/sys/kernel/random/boot_id");
        // Containers number their processes apart.
        let numbers = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let machine = format!("{} {} {}", host::name(), boot.trim(), numbers.display());
        Self { process, machine }
    }

    fn text(&self) -> String {
        format!("{LOCK_TEXT}{} on {}", self.process, self.machine)
    }

    fn of(text: &str) -> Option<Self> {
        let (process, machine) = text.strip_prefix(LOCK_TEXT)?.split_once(" on ")?;
        Some(Self { process: process.parse().ok()?, machine: machine.trim().to_owned() })
    }

    /// Whether it is certain that it runs no more, for somebody at `here`.
    fn is_gone(&self, here: &Self) -> bool {
        let mut parts = self.machine.split(' ').zip(here.machine.split(' '));
        let (host, boot, numbers) = (parts.next(), parts.next(), parts.next());
        let same = |pair: Option<(&str, &str)>| pair.is_some_and(|(one, other)| one == other);
        if !same(host) {
            return false;
        }
        !same(boot) || (same(numbers) && !runs(self.process))
    }
}

/// Whether a process of this machine runs; one that nobody has waited for yet does not.
fn runs(process: u32) -> bool {
    // SAFETY: signal 0 only asks whether the process is there.
    let there = unsafe { libc::kill(process as libc::pid_t, 0) } == 0
        || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
    // It cannot be read where others' processes are hidden.
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    there && !stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['Z', 'X']))
}

/// Owns `.leadline/` in the volume's directory for `holder` and makes the run directory `run` in it;
/// what a dead holder left is removed first.
///
/// # Errors
/// `Target` when something there is not Leadline's or another Leadline holds it.
pub fn claim(volume: &mut Volume, run: &str, holder: &Holder) -> Result<Place, EngineError> {
    until_quiet(volume, |volume| try_claim(volume, run, holder))
}

/// Owns `.leadline/` for `holder` without a run directory, for work on data sets; returns it.
///
/// # Errors
/// As [`claim`].
pub fn hold(volume: &mut Volume, holder: &Holder) -> Result<Place, EngineError> {
    until_quiet(volume, |volume| try_hold(volume, holder))
}

/// Ends a [`hold`]: the lock goes, and everything else too when no data set is there.
///
/// # Errors
/// As the server refuses.
pub fn let_go(volume: &mut Volume, own: &Place) -> Result<(), EngineError> {
    Ok(remove_own(volume, own)?)
}

/// Tries again as long as another's release pulls the directory away.
fn until_quiet(
    volume: &mut Volume,
    mut attempt: impl FnMut(&mut Volume) -> Result<Place, Refusal>,
) -> Result<Place, EngineError> {
    for _ in 0..TRIES {
        match attempt(volume) {
            Err(Refusal::Status(nfsstat3::NFS3ERR_NOENT | nfsstat3::NFS3ERR_STALE, _)) => {}
            Err(refusal) => return Err(refusal.into()),
            Ok(place) => return Ok(place),
        }
    }
    Err(EngineError::target(format!(
        "{}: other Leadlines keep coming and going there; try again",
        volume.directory.shown
    )))
}

fn try_claim(volume: &mut Volume, run: &str, holder: &Holder) -> Result<Place, Refusal> {
    let own = try_hold(volume, holder)?;
    let made = volume.make_directory(&own, run);
    if made.is_err() {
        let _ = remove_own(volume, &own);
    }
    made
}

fn try_hold(volume: &mut Volume, holder: &Holder) -> Result<Place, Refusal> {
    let target = volume.directory.clone();
    let own = open_own(volume, &target)?;
    refuse_foreign(volume, &own)?;
    if let Err(refusal) = lock(volume, &own, holder) {
        // Only if it is empty, hence of no use to anybody.
        let _ = volume.remove_directory(&target, DIRECTORY);
        return Err(refusal);
    }
    let occupied = occupy(volume, &own);
    if occupied.is_err() {
        let _ = remove_own(volume, &own);
    }
    occupied.map(|()| own)
}

/// What is done under the lock.
fn occupy(volume: &mut Volume, own: &Place) -> Result<(), Refusal> {
    refuse_foreign(volume, own)?;
    for name in volume.names(own)? {
        if is_run(&name) {
            remove_run(volume, own, &name)?;
        }
    }
    match volume.create(own, MARKER) {
        Ok(marker) => {
            let id = Xoshiro256PlusPlus::seed_from_u64(now_ns()).next_u64();
            let text = format!(
                "{{\"made_by\":\"leadline\",\"version\":{MARKER_VERSION},\"id\":\"{id:x}\"}}\n"
            );
            volume.write_start(&marker, text.as_bytes())?;
            Ok(())
        }
        Err(Refusal::Status(nfsstat3::NFS3ERR_EXIST, _)) => Ok(()),
        Err(refusal) => Err(refusal),
    }
}

fn open_own(volume: &mut Volume, target: &Place) -> Result<Place, Refusal> {
    let found = match volume.lookup(target, DIRECTORY) {
        Err(Refusal::Status(nfsstat3::NFS3ERR_NOENT, _)) => {
            match volume.make_directory(target, DIRECTORY) {
                // Another Leadline was quicker.
                Err(Refusal::Status(nfsstat3::NFS3ERR_EXIST, _)) => {
                    volume.lookup(target, DIRECTORY)
                }
                made => return made,
            }
        }
        found => found,
    };
    let (own, facts) = found?;
    let what = match facts.map(|facts| facts.type_) {
        Some(ftype3::NF3DIR) | None => return Ok(own),
        Some(ftype3::NF3LNK) => "a symlink",
        Some(_) => "not a directory",
    };
    Err(EngineError::target(format!(
        "{} is {what}, and Leadline did not make it; move it away or give another directory",
        own.shown
    ))
    .into())
}

/// Refuses unless everything in the directory has a name, kind and content that we make.
fn refuse_foreign(volume: &mut Volume, own: &Place) -> Result<(), Refusal> {
    let mut names = volume.names(own)?;
    names.sort_unstable();
    let mut foreign = Vec::new();
    for name in &names {
        if !is_ours(volume, own, name)? {
            foreign.push(name);
        }
    }
    if let Some(first) = foreign.first() {
        let more = match foreign.len() {
            1 => String::new(),
            number => format!(" and {} more", number - 1),
        };
        return Err(EngineError::target(format!(
            "{}/{first}{more} was not made by this Leadline, which therefore touches nothing \
            there; move it away or give another directory",
            own.shown
        ))
        .into());
    }
    // A kill between the first steps leaves no marker, but then no run directory either.
    let holds_data = names.iter().any(|name| is_run(name) || is_data_set(name));
    if !names.iter().any(|name| name == MARKER) && holds_data {
        return Err(EngineError::target(format!(
            "{} holds data directories but no {MARKER} file, so it is not certain that Leadline \
            made them; look at it and remove it yourself",
            own.shown
        ))
        .into());
    }
    Ok(())
}

/// Whether a name is that of the directory of a data set (`crate::load::nfs`).
#[must_use]
pub fn is_data_set(name: &str) -> bool {
    Data::of_directory(name).is_some()
}

fn is_ours(volume: &mut Volume, own: &Place, name: &str) -> Result<bool, Refusal> {
    match is_ours_now(volume, own, name) {
        // Another Leadline is just cleaning up; the lock decides.
        Err(Refusal::Status(nfsstat3::NFS3ERR_NOENT, _)) => Ok(true),
        known => known,
    }
}

fn is_ours_now(volume: &mut Volume, own: &Place, name: &str) -> Result<bool, Refusal> {
    let (place, facts) = volume.lookup(own, name)?;
    let kind = facts.map(|facts| facts.type_);
    if is_run(name) {
        return Ok(kind == Some(ftype3::NF3DIR) && holds_only_data(volume, &place)?);
    }
    if is_data_set(name) {
        // What is in it is looked at by whoever removes it, which goes by its own list of names.
        return Ok(kind == Some(ftype3::NF3DIR));
    }
    if kind != Some(ftype3::NF3REG) || (name != MARKER && name != LOCK) {
        return Ok(false);
    }
    let text = volume.read_start(&place, SMALL_FILE_BYTES)?;
    // An empty one is of a Leadline that was killed between making and writing it.
    Ok(text.is_empty()
        || if name == MARKER { is_marker(&text) } else { text.starts_with(LOCK_TEXT.as_bytes()) })
}

fn holds_only_data(volume: &mut Volume, run: &Place) -> Result<bool, Refusal> {
    for name in volume.names(run)? {
        if name != DATA_FILE_NAME {
            return Ok(false);
        }
        let (_, facts) = volume.lookup(run, &name)?;
        if facts.is_some_and(|facts| facts.type_ != ftype3::NF3REG) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_marker(text: &[u8]) -> bool {
    let marker: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
    marker["made_by"] == "leadline"
        && marker["version"].as_u64().is_some_and(|version| version <= MARKER_VERSION)
}

fn lock(volume: &mut Volume, own: &Place, holder: &Holder) -> Result<(), Refusal> {
    let made = match volume.create(own, LOCK) {
        Err(Refusal::Status(nfsstat3::NFS3ERR_EXIST, _)) => {
            require_gone(volume, own, holder)?;
            volume.remove(own, LOCK)?;
            return take_over(volume, own, holder);
        }
        made => made,
    };
    match made {
        Err(Refusal::Status(nfsstat3::NFS3ERR_EXIST, _)) => {
            Err(in_use(own, "another one that has just come").into())
        }
        made => Ok(volume.write_start(&made?, holder.text().as_bytes())?),
    }
}

/// Makes the lock anew after a dead holder's was removed. Of several that do so at once the last
/// stays: the others find its name there a moment later.
fn take_over(volume: &mut Volume, own: &Place, holder: &Holder) -> Result<(), Refusal> {
    let another = || in_use(own, "another one that has just come");
    let place = match volume.create(own, LOCK) {
        Err(Refusal::Status(nfsstat3::NFS3ERR_EXIST, _)) => return Err(another().into()),
        made => made?,
    };
    volume.write_start(&place, holder.text().as_bytes())?;
    std::thread::sleep(TAKE_OVER_TIMEOUT);
    let (place, _) = volume.lookup(own, LOCK)?;
    let text = volume.read_start(&place, SMALL_FILE_BYTES)?;
    if text == holder.text().as_bytes() { Ok(()) } else { Err(another().into()) }
}

fn require_gone(volume: &mut Volume, own: &Place, here: &Holder) -> Result<(), Refusal> {
    let (place, _) = volume.lookup(own, LOCK)?;
    let mut text = volume.read_start(&place, SMALL_FILE_BYTES)?;
    if text.is_empty() {
        std::thread::sleep(NAMING_TIMEOUT);
        text = volume.read_start(&place, SMALL_FILE_BYTES)?;
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    match Holder::of(&text) {
        Some(holder) if !holder.is_gone(here) => {
            let host = holder.machine.split(' ').next().unwrap_or_default().to_owned();
            Err(in_use(own, &format!("process {} on {host}", holder.process)).into())
        }
        // Of a local Leadline on the server itself, whose own lock cannot be seen from here.
        None if !text.is_empty() => Err(in_use(own, text.trim()).into()),
        _ => Ok(()),
    }
}

#[cold]
fn in_use(own: &Place, holder: &str) -> EngineError {
    EngineError::target(format!(
        "{0} is in use by another Leadline ({holder}), and two at once would measure each other; \
        wait for it or give another directory. If you are sure that it runs no more, remove \
        {0}/{LOCK}",
        own.shown
    ))
}

/// Removes what [`claim`] made; what is gone already is no failure, and data sets stay.
///
/// # Errors
/// As the server refuses.
pub fn release(volume: &mut Volume, run: &str) -> Result<(), EngineError> {
    let target = volume.directory.clone();
    let own = match volume.lookup(&target, DIRECTORY) {
        Err(Refusal::Status(nfsstat3::NFS3ERR_NOENT, _)) => return Ok(()),
        found => found?.0,
    };
    remove_run(volume, &own, run)?;
    remove_own(volume, &own)?;
    Ok(())
}

fn remove_run(volume: &mut Volume, own: &Place, run: &str) -> Result<(), Refusal> {
    let place = match volume.lookup(own, run) {
        Err(Refusal::Status(nfsstat3::NFS3ERR_NOENT, _)) => return Ok(()),
        found => found?.0,
    };
    gone(volume.remove(&place, DATA_FILE_NAME))?;
    gone(volume.remove_directory(own, run))
}

fn remove_own(volume: &mut Volume, own: &Place) -> Result<(), Refusal> {
    if volume.names(own)?.iter().any(|name| is_data_set(name)) {
        return gone(volume.remove(own, LOCK));
    }
    gone(volume.remove(own, MARKER))?;
    gone(volume.remove(own, LOCK))?;
    let target = volume.directory.clone();
    match gone(volume.remove_directory(&target, DIRECTORY)) {
        // Another Leadline has begun to claim it.
        Err(Refusal::Status(nfsstat3::NFS3ERR_NOTEMPTY | nfsstat3::NFS3ERR_EXIST, _)) => Ok(()),
        removed => removed,
    }
}

fn gone(removed: Result<(), Refusal>) -> Result<(), Refusal> {
    match removed {
        Err(Refusal::Status(nfsstat3::NFS3ERR_NOENT, _)) => Ok(()),
        removed => removed,
    }
}

/// The run directory of a claim made earlier.
///
/// # Errors
/// `Lost` when the server no longer has it, as after a restart that forgot its files.
pub fn run_directory(volume: &mut Volume, run: &str) -> Result<Place, EngineError> {
    let target = volume.directory.clone();
    let found = volume.lookup(&target, DIRECTORY).and_then(|(own, _)| volume.lookup(&own, run));
    match found {
        Ok((place, _)) => Ok(place),
        Err(Refusal::Status(nfsstat3::NFS3ERR_NOENT, what)) => Err(EngineError::lost(format!(
            "server lost: {what} is gone from the server, as after a restart that forgot its \
            files, or another process removed it; start again"
        ))),
        Err(refusal) => Err(refusal.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elsewhere(machine: &str, process: u32) -> Holder {
        Holder { process, machine: machine.to_owned() }
    }

    #[test]
    fn only_a_process_of_this_machine_is_known_to_be_gone() {
        let here = Holder::here(std::process::id());
        assert!(!here.is_gone(&here));
        assert!(Holder { process: 0x7fff_ff00, ..here.clone() }.is_gone(&here));
        assert!(!elsewhere("other boot pid:[1]", 1).is_gone(&here));
        let rebooted = format!("{} another-boot pid:[1]", host::name());
        assert!(elsewhere(&rebooted, 1).is_gone(&here));
        let mut parts: Vec<&str> = here.machine.split(' ').collect();
        parts[2] = "pid:[7]";
        assert!(!elsewhere(&parts.join(" "), 0x7fff_ff00).is_gone(&here), "another container");
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_is_gone() -> std::io::Result<()> {
        let here = Holder::here(std::process::id());
        let mut child = std::process::Command::new("sleep").arg("60").spawn()?;
        let holder = Holder { process: child.id(), ..here.clone() };
        assert!(!holder.is_gone(&here));
        child.kill()?;
        while !holder.is_gone(&here) {
            std::thread::yield_now();
        }
        child.wait().map(|_| ())
    }

    #[test]
    fn a_holder_is_read_as_it_was_written() {
        let here = Holder::here(12);
        assert_eq!(Holder::of(&here.text()), Some(here));
        assert_eq!(Holder::of("leadline process 12"), None, "a local Leadline's");
    }

    #[test]
    fn run_directories_have_their_own_names() {
        assert!(is_run("run-0123456789abcdef0123456789abcdef"));
        assert!(!is_run("run-0123456789ABCDEF0123456789abcdef") && !is_run("run-12"));
    }
}
