//! Calls as BPF programs see them: all of them, at a fraction of a microsecond each.

#![forbid(unsafe_code)]

mod asm;
mod btf;
mod programs;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Error, ErrorKind};

use crate::call::Call;
use crate::system::bpf::{Attached, Kind, Map, Ring, attach};
use programs::{Maps, Offsets, SUMS_BYTES, THREAD_BYTES};

/// Holds what is told between two looks: 200,000 calls.
const RING_BYTES: u32 = 1 << 25;
/// Threads that can be watched at once.
const THREADS_MAX: u32 = 1 << 15;
const NUMBERS_END: u32 = 512;
const MAPPED_MAX: u32 = 1 << 16;
/// Where a name is about to be removed: of a folder, by its entry.
const REMOVALS: [&str; 2] = ["ext4_unlink_enter", "f2fs_unlink_enter"];
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The namespace in which the kernel counts processes (linux/proc_ns.h).
const FIRST_PIDS: &str = "pid:[4026531836]";

/// What is only counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    /// Calls that found no room.
    pub lost: u64,
    /// Bytes that the kernel counted in calls about no file.
    pub other_read: u64,
    pub other_written: u64,
    /// Calls of programs of 32 bits, which are not understood.
    pub of_32_bits: u64,
    /// Threads that were too many.
    pub too_many: u64,
}

/// Programs at their places, and what they tell.
pub struct Watching {
    ring: Ring,
    threads: Map,
    sums: Map,
    mapped: Option<Map>,
    _attached: Vec<Attached>,
}

impl Watching {
    /// Nobody is watched yet.
    ///
    /// # Errors
    ///
    /// What the kernel lacks or forbids.
    pub fn new() -> Result<Self, Error> {
        let at = offsets()?;
        let ring = Ring::new(RING_BYTES)?;
        let threads = Map::new(Kind::Hash, 4, THREAD_BYTES, THREADS_MAX)?;
        let wanted = Map::new(Kind::Array, 4, 4, NUMBERS_END)?;
        let sums = Map::new(Kind::Array, 4, SUMS_BYTES, 1)?;
        let mapped = Map::new(Kind::Hash, 16, 8, MAPPED_MAX)?;
        for (number, said) in programs::all_wanted() {
            wanted.set(&number.to_ne_bytes(), &said.to_ne_bytes())?;
        }
        let maps = Maps {
            threads: threads.number(),
            wanted: wanted.number(),
            sums: sums.number(),
            ring: ring.number(),
            mapped: mapped.number(),
        };
        let mut attached = vec![
            attach("sched_process_fork", &programs::fork(&at, maps))?,
            attach("sched_process_exec", &programs::exec(maps))?,
            attach("sched_process_exit", &programs::exit(maps))?,
            attach("sys_enter", &programs::enter(&at, maps))?,
            attach("sys_exit", &programs::leave(&at, maps))?,
        ];
        let faults = attach("mm_filemap_fault", &programs::mapped(&at, maps, false));
        let around = attach("mm_filemap_map_pages", &programs::mapped(&at, maps, true));
        let sees_mapped = faults.is_ok() && around.is_ok();
        attached.extend([faults, around].into_iter().flatten());
        let mapped = sees_mapped.then_some(mapped);
        // Of file systems that have no such tracepoint nobody is told what is removed.
        let removed = programs::removed(&at, maps);
        attached.extend(REMOVALS.iter().filter_map(|name| attach(name, &removed).ok()));
        Ok(Self { ring, threads, sums, mapped, _attached: attached })
    }

    /// Watches a thread, and all that come from it.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub fn watch(&self, thread: u32) -> Result<(), Error> {
        let key = thread.to_ne_bytes();
        if self.threads.get(&key).is_some() {
            return Ok(());
        }
        self.threads.set(&key, &[0; THREAD_BYTES as usize])
    }

    /// Watches a thread no longer.
    pub fn forget(&self, thread: u32) {
        self.threads.remove(&thread.to_ne_bytes());
    }

    /// Threads that are watched and have not ended.
    pub fn threads(&self) -> Vec<u32> {
        let number = |key: Vec<u8>| key.as_slice().try_into().map(u32::from_ne_bytes).ok();
        self.threads.keys().into_iter().filter_map(number).collect()
    }

    /// Gives all calls that have ended since.
    pub fn drain(&mut self, mut take: impl FnMut(&Call)) -> usize {
        self.ring.drain(|event| {
            if let Some(call) = Call::parse(event) {
                take(&call);
            }
        })
    }

    /// What was only counted, so far.
    pub fn sums(&self) -> Sums {
        let told = self.sums.get(&0_u32.to_ne_bytes()).unwrap_or_default();
        let mut numbers = told
            .chunks_exact(8)
            .map(|eight| eight.try_into().map(u64::from_ne_bytes).unwrap_or_default());
        let mut next = || numbers.next().unwrap_or_default();
        Sums {
            lost: next(),
            other_read: next(),
            other_written: next(),
            of_32_bits: next(),
            too_many: next(),
        }
    }

    /// Pages of files that mappings used, by device and inode; None where that cannot be seen.
    pub fn mapped(&self) -> Option<BTreeMap<(u32, u64), u64>> {
        let mapped = self.mapped.as_ref()?;
        let long = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default();
        let keys = mapped.keys().into_iter();
        let told = keys.filter_map(|key| {
            let pages = long(&mapped.get(&key)?);
            Some(((long(&key[..8]) as u32, long(&key[8..])), pages))
        });
        Some(told.collect())
    }
}

fn offsets() -> Result<Offsets, Error> {
    let other = |why: &str| Error::new(ErrorKind::Unsupported, why.to_owned());
    if !cfg!(target_arch = "x86_64") {
        return Err(other("the numbers of system calls are those of x86-64 here"));
    }
    if fs::read_link("/proc/self/ns/pid")?.as_os_str() != FIRST_PIDS {
        return Err(other(
            "this is a container, in which the kernel's numbers of processes are not known",
        ));
    }
    let types = fs::read(TYPES)?;
    let found = btf::Btf::parse(&types).as_ref().and_then(Offsets::of);
    found.ok_or_else(|| other("this kernel does not say where its structures have their fields"))
}
