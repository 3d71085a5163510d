//! Calls as records of a trace, and what is said of them beside.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use leadline_trace::{BEGIN_ONLY, Between, Deed, NO_FILE, Record, Refused, Sink as _, call_named};

use crate::call::{Call, File};
use crate::calls::{Does, REMOVES, UNLINKS, wanted};

/// More files, and the page's number of a reference has no room (crates/trace).
const FILES_MAX: u32 = 1 << 22;
const TYPE: u32 = 0xf000;
const REGULAR: u32 = 0x8000;
const BLOCK: u32 = 0x6000;
const DIRECTORY: u32 = 0x4000;
/// File systems that store nothing: proc, sysfs, cgroup, cgroup2, debugfs, tracefs, bpf, security,
/// devpts, sockets, pipes and what else has no file (linux/magic.h).
const NO_STORAGE: [u64; 12] = [
    0x9fa0,
    0x6265_6572,
    0x27_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0xcafe_4a11,
    0x7363_6673,
    0x1cd1,
    0x534f_434b,
    0x5049_5045,
    0x0904_1934,
];
const APPEND: u32 = 0o2000;
const DIRECT: u32 = 0o40000;
const SAFE_WRITES: u32 = 0o10000;
const TRUNCATE: u64 = 0o1000;
const EMPTY_PATH: u64 = 0x1000;
const FOR_PROGRAMS: u64 = 4;
/// `creat`, which truncates without a flag that says so.
const CREAT: u32 = 85;
const OPEN: u32 = 2;
const OPENAT: u32 = 257;
const FTRUNCATE: u32 = 77;

/// Bytes, as they are compared with what the kernel counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes {
    /// Of files and devices.
    pub read: u64,
    pub written: u64,
    /// Of pipes, sockets, terminals, and of files that no storage has.
    pub other_read: u64,
    pub other_written: u64,
    /// Read by the kernel to start programs.
    pub programs: u64,
    /// Moved without being counted in /proc/PID/io (splice).
    pub uncounted: u64,
}

/// What was done with a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Use {
    pub file: File,
    pub thread: u32,
    /// By which it was used last.
    pub descriptor: u32,
    pub requests: u64,
    pub read: u64,
    pub written: u64,
}

type Identity = (u32, u64, u64);

/// What was seen so far.
#[derive(Default)]
pub struct Seen {
    files: HashMap<Identity, u32>,
    /// By number of a file.
    pub uses: Vec<Use>,
    threads: HashMap<u32, u32>,
    unseen: BTreeMap<&'static str, u64>,
    pub bytes: Bytes,
    /// Calls that were looked at.
    pub calls: u64,
    pub requests: u64,
    /// Bytes of files that were mapped, and those of them that are programs.
    mapped: BTreeMap<(u32, u64), u64>,
    programs: BTreeSet<(u32, u64)>,
    /// By thread, the file whose last name its call removes.
    removing: HashMap<u32, File>,
}

type Taken = Result<(), Refused>;
type Sink<'a> = &'a mut dyn FnMut(Record) -> Taken;

impl Seen {
    /// Takes a call; gives the records that it makes.
    ///
    /// # Errors
    ///
    /// There are too many files, or what the sink says.
    pub fn take(&mut self, call: &Call, sink: Sink<'_>) -> Taken {
        if call.number == REMOVES {
            self.removing.insert(call.thread, call.first);
        }
        let Some(known) = wanted(call.number) else { return Ok(()) };
        if UNLINKS.contains(&call.number)
            && let Some(file) = self.removing.remove(&call.thread)
            && call.returned == 0
        {
            self.removed(call, &file, sink)?;
        }
        self.calls += 1;
        let before = self.bytes;
        let taken = self.understood(call, known.does, sink);
        let own_read = self.bytes.read - before.read;
        let own_written = self.bytes.written - before.written;
        let free = self.bytes.uncounted > before.uncounted;
        if matches!(known.does, Does::Exec) {
            self.bytes.programs += call.counted_read;
        } else if !free {
            self.bytes.other_read += call.counted_read.saturating_sub(own_read);
            self.bytes.other_written += call.counted_written.saturating_sub(own_written);
        }
        taken
    }

    fn understood(&mut self, call: &Call, does: Does, sink: Sink<'_>) -> Taken {
        let at = call.arguments[3];
        let maybe = |at: u64| (at != u64::MAX).then_some(at);
        match does {
            Does::Read => self.moved(call, &call.first, Deed::Read, None, sink),
            Does::Write => self.moved(call, &call.first, Deed::Write, None, sink),
            Does::ReadAt => self.moved(call, &call.first, Deed::Read, Some(at), sink),
            Does::WriteAt => self.moved(call, &call.first, Deed::Write, Some(at), sink),
            Does::ReadMaybeAt => self.moved(call, &call.first, Deed::Read, maybe(at), sink),
            Does::WriteMaybeAt => self.moved(call, &call.first, Deed::Write, maybe(at), sink),
            Does::Send => self.between(call, (2, None), sink),
            Does::Copy => self.between(call, (1, Some(3)), sink),
            Does::Splice => {
                let before = self.bytes.read + self.bytes.written;
                self.between(call, (1, Some(3)), sink)?;
                self.bytes.uncounted += self.bytes.read + self.bytes.written - before;
                Ok(())
            }
            Does::Sync(name) => self.synced(call, name, sink),
            Does::SyncRange if call.arguments[3] == BEGIN_ONLY => {
                self.synced(call, "sync_file_range", sink)
            }
            Does::SyncRange => self.synced(call, "fdatasync", sink),
            Does::Open => self.opened(call, sink),
            Does::Close => self.about(call, "close", sink),
            Does::OnFile(name) => self.on_file(call, name, sink),
            Does::OnName(name) => self.metadata(call, name, sink),
            Does::OnEither(name, flags) => {
                let itself = call.arguments[usize::from(flags)] & EMPTY_PATH != 0;
                if itself && call.first.known {
                    return self.about(call, name, sink);
                }
                self.metadata(call, name, sink)
            }
            Does::Map => self.map(call),
            Does::Exec => Ok(()),
            Does::Unseen(what) => self.note(what),
        }
    }

    fn note(&mut self, what: &'static str) -> Taken {
        *self.unseen.entry(what).or_insert(0) += 1;
        Ok(())
    }

    /// The number of a file, whose length is told before anything else of it; None where it is none.
    fn number(
        &mut self,
        call: &Call,
        file: &File,
        descriptor: u64,
        length_bytes: u64,
        sink: Sink<'_>,
    ) -> Result<Option<u32>, Refused> {
        let Some(identity) = identity(file) else { return Ok(None) };
        if let Some(number) = self.files.get(&identity) {
            return Ok(Some(*number));
        }
        let number = self.uses.len() as u32;
        if number >= FILES_MAX {
            return Err(Refused(format!(
                "it used more than {FILES_MAX} files, which is more than is kept: characterise a \
                 part of it"
            )));
        }
        let (thread, descriptor) = (call.thread, descriptor as u32);
        self.uses.push(Use { file: *file, thread, descriptor, ..Use::default() });
        self.files.insert(identity, number);
        let length = self.record(call, Deed::Length);
        sink(Record { file: number, bytes: length_bytes, ..length })?;
        Ok(Some(number))
    }

    fn thread(&mut self, thread: u32) -> u32 {
        let next = self.threads.len() as u32;
        *self.threads.entry(thread).or_insert(next)
    }

    fn record(&mut self, call: &Call, deed: Deed) -> Record {
        let process = self.thread(call.thread);
        let Call { at_ns, took_ns, .. } = *call;
        Record { process, at_ns, took_ns, ..Record::of(deed) }
    }

    fn metadata(&mut self, call: &Call, name: &str, sink: Sink<'_>) -> Taken {
        let record = self.record(call, Deed::Metadata);
        sink(Record { call: call_named(name), ..record })
    }

    /// Metadata of a file or a directory; of nothing else.
    fn about(&mut self, call: &Call, name: &str, sink: Sink<'_>) -> Taken {
        let directory = call.first.mode & TYPE == DIRECTORY && stores(&call.first);
        if directory || identity(&call.first).is_some() {
            return self.metadata(call, name, sink);
        }
        Ok(())
    }

    fn on_file(&mut self, call: &Call, name: &str, sink: Sink<'_>) -> Taken {
        if call.number == FTRUNCATE && call.arguments[1] == 0 && call.returned == 0 {
            self.forget(call, &call.first, sink)?;
        }
        self.about(call, name, sink)
    }

    /// What was cached of it is worth nothing: it is another file from now on.
    fn forget(&mut self, call: &Call, file: &File, sink: Sink<'_>) -> Taken {
        self.removed(call, file, sink)?;
        if let Some(identity) = identity(file) {
            self.files.remove(&identity);
        }
        Ok(())
    }

    /// What was cached of it is let go; it may still be open.
    fn removed(&mut self, call: &Call, file: &File, sink: Sink<'_>) -> Taken {
        let number = identity(file).and_then(|identity| self.files.get(&identity).copied());
        let Some(file) = number else { return Ok(()) };
        let record = self.record(call, Deed::Removed);
        sink(Record { file, ..record })
    }

    fn moved(
        &mut self,
        call: &Call,
        file: &File,
        deed: Deed,
        at: Option<u64>,
        sink: Sink<'_>,
    ) -> Taken {
        let descriptor = call.arguments[0];
        let Ok(bytes) = u64::try_from(call.returned) else { return Ok(()) };
        let appends = deed == Deed::Write && file.flags & APPEND != 0;
        let offset = match at {
            Some(_) if appends => file.size.saturating_sub(bytes),
            Some(at) => at,
            None => file.position.saturating_sub(bytes),
        };
        // Its length is known as it is afterwards: a write to its end may have made it longer.
        let grown = deed == Deed::Write && file.size == offset.saturating_add(bytes);
        let length_bytes = if grown { offset } else { file.size };
        let number = self.number(call, file, descriptor, length_bytes, sink)?;
        let Some(number) = number else { return Ok(()) };
        let mut record = self.record(call, deed);
        (record.file, record.offset, record.bytes) = (number, offset, bytes);
        if deed == Deed::Read {
            record.faults = u32::try_from(call.faults).unwrap_or(u32::MAX);
        }
        if bytes == 0 {
            (record.deed, record.call) = (Deed::Metadata, call_named("end of file"));
            return sink(record);
        }
        self.requests += 1;
        let used = &mut self.uses[number as usize];
        used.requests += 1;
        (used.thread, used.descriptor) = (call.thread, descriptor as u32);
        let (own, all) = match deed {
            Deed::Read => (&mut used.read, &mut self.bytes.read),
            _ => (&mut used.written, &mut self.bytes.written),
        };
        *own += bytes;
        *all += bytes;
        sink(record)
    }

    /// From the first file to the second; the arguments at these places point to offsets.
    fn between(&mut self, call: &Call, at: (usize, Option<usize>), sink: Sink<'_>) -> Taken {
        let moved = u64::try_from(call.returned).unwrap_or(0);
        let told = |place: usize| {
            let after = call.arguments[place];
            (call.followed >> place & 1 == 1).then(|| after.saturating_sub(moved))
        };
        let mut both = Between::default();
        let mut keep = |record| both.take(record);
        self.moved(call, &call.first, Deed::Read, told(at.0), &mut keep)?;
        if moved > 0 {
            self.moved(call, &call.second, Deed::Write, at.1.and_then(told), &mut keep)?;
        }
        both.give(sink)
    }

    fn synced(&mut self, call: &Call, name: &str, sink: Sink<'_>) -> Taken {
        let mut record = self.record(call, Deed::Sync);
        record.call = call_named(name);
        record.file = NO_FILE;
        if name != "sync" {
            if call.first.mode & TYPE == DIRECTORY {
                return self.metadata(call, name, sink); // its own data is not the program's
            }
            let (file, descriptor) = (&call.first, call.arguments[0]);
            let number = self.number(call, file, descriptor, file.size, sink)?;
            let Some(number) = number else { return Ok(()) };
            record.file = number;
        }
        if record.begins_writeback() {
            (record.offset, record.bytes) = (call.arguments[1], call.arguments[2]);
        }
        sink(record)
    }

    fn opened(&mut self, call: &Call, sink: Sink<'_>) -> Taken {
        let flags = match call.number {
            CREAT => TRUNCATE,
            OPEN => call.arguments[1],
            OPENAT => call.arguments[2],
            // openat2 has them in memory of the program's; the file's own lack O_TRUNC.
            _ => 0,
        };
        let found = &call.first;
        if found.known && !stores(found) {
            return Ok(());
        }
        if flags & TRUNCATE != 0 {
            self.forget(call, found, sink)?;
        }
        if identity(found).is_some() {
            self.number(call, found, call.returned.cast_unsigned(), found.size, sink)?;
            if found.flags & DIRECT != 0 {
                self.note("O_DIRECT")?;
            }
            if found.flags & SAFE_WRITES != 0 {
                self.note("O_DSYNC")?;
            }
        }
        self.metadata(call, "open", sink)
    }

    fn map(&mut self, call: &Call) -> Taken {
        if identity(&call.first).is_none() || call.returned < 0 && call.returned > -4096 {
            return Ok(());
        }
        let place = (call.first.device, call.first.inode);
        self.mapped.insert(place, call.first.size);
        if call.arguments[2] & FOR_PROGRAMS != 0 {
            self.programs.insert(place);
        }
        Ok(())
    }

    /// Bytes of files, but for programs, that were used by mappings, given the pages of each.
    ///
    /// Nothing counts twice: whoever maps a file after another touches what is in memory.
    pub fn mapped_bytes(&self, pages: &BTreeMap<(u32, u64), u64>) -> u64 {
        let used = |(place, size): (&(u32, u64), &u64)| {
            pages.get(place).map(|pages| (pages * leadline_trace::PAGE_BYTES).min(*size))
        };
        self.own_mapped().filter_map(used).sum()
    }

    fn own_mapped(&self) -> impl Iterator<Item = (&(u32, u64), &u64)> {
        self.mapped.iter().filter(|(place, _)| !self.programs.contains(place))
    }

    /// Files, but for programs, that were mapped.
    pub fn mapped_files(&self) -> u64 {
        self.own_mapped().count() as u64
    }

    pub fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    /// What was seen and is told by no record, and how often; of mappings only where nobody knows
    /// how much they were used.
    pub fn unseen(&self, pages_known: bool) -> Vec<(&'static str, u64)> {
        let mapped = if pages_known { 0 } else { self.mapped_files() };
        let told = self.unseen.iter().map(|(name, count)| (*name, *count));
        told.chain((mapped > 0).then_some(("mmap", mapped))).collect()
    }
}

fn stores(file: &File) -> bool {
    let kind = file.mode & TYPE;
    matches!(kind, REGULAR | BLOCK | DIRECTORY) && !NO_STORAGE.contains(&file.magic)
}

/// What tells a file from others; None where it is no regular file on storage and no block device.
fn identity(file: &File) -> Option<Identity> {
    match file.mode & TYPE {
        _ if !file.known => None,
        BLOCK => Some((u32::MAX, u64::from(file.is_device), 0)),
        REGULAR if stores(file) => Some((file.device, file.inode, file.generation)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
