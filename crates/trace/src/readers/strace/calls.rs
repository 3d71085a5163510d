//! What each system call does to storage.

use super::descriptors::{Descriptors, Open};
use super::line::{arguments, descriptor, field, number, quoted};
use crate::fields::whole;
use crate::names::Names;
use crate::record::{Between, Deed, Record, Refused, Sink, call_named};

/// A call that has ended.
pub struct Call<'a> {
    pub process: u32,
    pub at_ns: u64,
    pub took_ns: u64,
    pub name: &'a [u8],
    /// Its arguments.
    pub text: &'a [u8],
    /// What it returned, if that is a number.
    pub returned: Option<i64>,
    /// The same as it is written.
    pub result: &'a [u8],
}

/// What lies there is no storage.
const NO_STORAGE: [&[u8]; 3] = [b"/dev/", b"/proc/", b"/sys/"];

/// All calls so far.
pub struct Calls {
    pub descriptors: Descriptors,
    unseen: Vec<(&'static str, u64)>,
}

impl Calls {
    pub fn new() -> Self {
        Self { descriptors: Descriptors::new(), unseen: Vec::new() }
    }

    /// What was shown and cannot be told.
    pub fn unseen(&self) -> Vec<(&'static str, u64)> {
        self.unseen.clone()
    }

    /// Counts something that cannot be told.
    pub fn note(&mut self, what: &'static str) {
        match self.unseen.iter_mut().find(|(name, _)| *name == what) {
            Some((_, count)) => *count += 1,
            None => self.unseen.push((what, 1)),
        }
    }

    /// A call begins: a child may be seen before its parent's call has ended.
    pub fn expect(&mut self, process: u32, name: &[u8], text: &[u8]) {
        if matches!(name, b"clone" | b"clone3" | b"fork" | b"vfork") {
            self.descriptors.expect_child(process, shares(text));
        }
    }

    /// Takes a call that has ended.
    pub fn take(
        &mut self,
        call: &Call<'_>,
        processes: &mut Names,
        sink: &mut impl Sink,
    ) -> Result<(), Refused> {
        let (found, count) = arguments(call.text);
        let given = &found[..count];
        match call.name {
            b"read" | b"readv" => self.moved(call, given, Deed::Read, None, sink),
            b"write" | b"writev" => self.moved(call, given, Deed::Write, None, sink),
            b"pread64" | b"pread" | b"preadv" => {
                self.moved(call, given, Deed::Read, offset(given, 1), sink)
            }
            b"preadv2" => self.moved(call, given, Deed::Read, offset(given, 2), sink),
            b"pwrite64" | b"pwrite" | b"pwritev" => {
                self.moved(call, given, Deed::Write, offset(given, 1), sink)
            }
            b"pwritev2" => self.moved(call, given, Deed::Write, offset(given, 2), sink),
            b"sendfile" | b"sendfile64" => self.sent(call, given, sink),
            b"copy_file_range" => self.copied(call, given, sink),
            b"fsync" | b"fdatasync" | b"sync_file_range" | b"sync" | b"syncfs" => {
                self.synced(call, given, sink)
            }
            b"open" | b"openat" | b"openat2" | b"creat" => self.opened(call, given, sink),
            b"close" => self.closed(call, given, sink),
            b"clone" | b"clone3" | b"fork" | b"vfork" => {
                let child = call.returned.filter(|&pid| pid > 0).map(|pid| pid.to_string());
                let child = child.map(|pid| processes.number(pid.as_bytes())).transpose()?;
                self.descriptors.have_child(call.process, child, shares(call.text));
                Ok(())
            }
            _ => {
                self.about_descriptors(call, given);
                self.about_files(call, given, sink)
            }
        }
    }

    /// Calls that move or duplicate descriptors and are no I/O themselves.
    fn about_descriptors(&mut self, call: &Call<'_>, given: &[&[u8]]) {
        let (own, first) = (call.process, given.first().and_then(|first| descriptor(first)));
        let (Some(returned), Some((number, path))) =
            (call.returned.filter(|&each| each >= 0), first)
        else {
            match call.name {
                b"execve" | b"execveat" if call.returned == Some(0) => self.descriptors.exec(own),
                b"mmap" if given.get(4).is_some_and(|fd| descriptor(fd).is_some()) => {
                    self.note("mmap");
                }
                b"io_submit" => self.note("libaio"),
                _ => {}
            }
            return;
        };
        match call.name {
            b"dup" | b"dup2" | b"dup3" => {
                let close = call.text.ends_with(b"O_CLOEXEC");
                self.descriptors.duplicate(own, number, returned as u32, close);
            }
            b"fcntl" | b"fcntl64"
                if given.get(1).is_some_and(|what| what.starts_with(b"F_DUPFD")) =>
            {
                let close = given[1].ends_with(b"_CLOEXEC");
                self.descriptors.duplicate(own, number, returned as u32, close);
            }
            b"lseek" => {
                if let Ok(Some(open)) = self.known(own, number, path, true) {
                    open.position = returned as u64;
                }
            }
            b"_llseek" => {
                let to =
                    given.get(2).and_then(|at| whole(at.strip_prefix(b"[")?.strip_suffix(b"]")?));
                if let (Some(to), Ok(Some(open))) = (to, self.known(own, number, path, true)) {
                    open.position = to;
                }
            }
            b"mmap" if given.get(4).is_some_and(|fd| descriptor(fd).is_some()) => self.note("mmap"),
            b"io_uring_enter" => self.note("io_uring"),
            b"io_submit" => self.note("libaio"),
            _ => {}
        }
    }

    /// What a descriptor means; one that was open before the trace is a file when it is used as
    /// one, or when its path says so.
    fn known(
        &mut self,
        process: u32,
        number: u32,
        path: Option<&[u8]>,
        as_a_file: bool,
    ) -> Result<Option<&mut Open>, Refused> {
        if self.descriptors.find(process, number).is_none() {
            match path {
                Some(path) => {
                    let file = self.file(path)?;
                    let open = Open { file, position: 0, append: false };
                    self.descriptors.open(process, number, open, false);
                }
                None if as_a_file => {
                    self.descriptors.unnamed(process, number)?;
                }
                None => return Ok(None),
            }
        }
        Ok(self.descriptors.find(process, number))
    }

    fn file(&mut self, path: &[u8]) -> Result<Option<u32>, Refused> {
        let named = path.starts_with(b"/") || !path.contains(&b':');
        if !named || NO_STORAGE.iter().any(|place| path.starts_with(place)) {
            return Ok(None);
        }
        self.descriptors.files.number(path).map(Some)
    }

    fn moved(
        &mut self,
        call: &Call<'_>,
        given: &[&[u8]],
        deed: Deed,
        at: Option<u64>,
        sink: &mut impl Sink,
    ) -> Result<(), Refused> {
        let Some((number, path)) = given.first().and_then(|first| descriptor(first)) else {
            return Ok(());
        };
        let Some(bytes) = call.returned.and_then(|bytes| u64::try_from(bytes).ok()) else {
            return Ok(());
        };
        let mut record = record_of(call, deed);
        record.bytes = bytes;
        let Some(open) = self.known(call.process, number, path, at.is_some())? else {
            return sink.take(Record { deed: Deed::Unplaced, ..record });
        };
        let Some(file) = open.file else { return Ok(()) };
        let append = open.append && deed == Deed::Write;
        let end = if append { self.descriptors.size(file) } else { 0 };
        let Some(open) = self.descriptors.find(call.process, number) else { return Ok(()) };
        record.offset = if append { end } else { at.unwrap_or(open.position) };
        if at.is_none() {
            open.position = record.end();
        }
        record.file = file;
        if bytes == 0 {
            (record.deed, record.call) = (Deed::Metadata, call_named("end of file"));
        } else if deed == Deed::Write {
            self.descriptors.at_least(file, record.end());
        }
        sink.take(record)
    }

    /// `sendfile(out, in, NULL or [offset], count)`.
    fn sent(
        &mut self,
        call: &Call<'_>,
        given: &[&[u8]],
        sink: &mut impl Sink,
    ) -> Result<(), Refused> {
        let [to, from, at, ..] = given else { return Ok(()) };
        self.between(call, [*from, *to], [bracketed(at), None], sink)
    }

    /// `copy_file_range(in, NULL or [offset], out, NULL or [offset], length, flags)`.
    fn copied(
        &mut self,
        call: &Call<'_>,
        given: &[&[u8]],
        sink: &mut impl Sink,
    ) -> Result<(), Refused> {
        let [from, from_at, to, to_at, ..] = given else { return Ok(()) };
        self.between(call, [*from, *to], [bracketed(from_at), bracketed(to_at)], sink)
    }

    fn between(
        &mut self,
        call: &Call<'_>,
        files: [&[u8]; 2],
        at: [Option<u64>; 2],
        sink: &mut impl Sink,
    ) -> Result<(), Refused> {
        let mut both = Between::default();
        self.moved(call, &files[..1], Deed::Read, at[0], &mut both)?;
        self.moved(call, &files[1..], Deed::Write, at[1], &mut both)?;
        both.give(|record| sink.take(record))
    }

    fn synced(
        &mut self,
        call: &Call<'_>,
        given: &[&[u8]],
        sink: &mut impl Sink,
    ) -> Result<(), Refused> {
        let name = match call.name {
            b"sync_file_range" if given.get(3) == Some(&&b"SYNC_FILE_RANGE_WRITE"[..]) => {
                "sync_file_range"
            }
            b"fdatasync" | b"sync_file_range" => "fdatasync",
            b"fsync" => "fsync",
            _ => "sync",
        };
        let mut record = record_of(call, Deed::Sync);
        record.call = call_named(name);
        if name != "sync"
            && let Some((number, path)) = given.first().and_then(|first| descriptor(first))
            && let Some(open) = self.known(call.process, number, path, true)?
        {
            let Some(file) = open.file else { return Ok(()) };
            record.file = file;
        }
        if record.begins_writeback() {
            let Some((from, bytes)) = offset(given, 3).zip(offset(given, 2)) else { return Ok(()) };
            (record.offset, record.bytes) = (from, bytes);
        }
        sink.take(record)
    }

    fn opened(
        &mut self,
        call: &Call<'_>,
        given: &[&[u8]],
        sink: &mut impl Sink,
    ) -> Result<(), Refused> {
        let Some(path) = given.iter().find_map(|argument| quoted(argument)) else { return Ok(()) };
        let says = |flag: &[u8]| call.text.windows(flag.len()).any(|signs| signs == flag);
        let (result, whole_path) = descriptor(call.result).unzip();
        let path = whole_path.flatten().unwrap_or(path);
        if result.is_some() && (says(b"O_TRUNC") || call.name == b"creat") {
            self.removed(call, path, sink)?;
        }
        if NO_STORAGE.iter().any(|place| path.starts_with(place)) {
            if let Some(number) = result {
                let open = Open { file: None, position: 0, append: false };
                self.descriptors.open(call.process, number, open, says(b"O_CLOEXEC"));
            }
            return Ok(());
        }
        if let Some(number) = result {
            let (file, append) = (self.file(path)?, says(b"O_APPEND"));
            let open = Open { file, position: 0, append };
            self.descriptors.open(call.process, number, open, says(b"O_CLOEXEC"));
            if says(b"O_DIRECT|") || says(b"|O_DIRECT") && !says(b"O_DIRECTORY") {
                self.note("O_DIRECT");
            }
        }
        sink.take(Record { call: call_named("open"), ..record_of(call, Deed::Metadata) })
    }

    /// What has this path from now on is another file.
    fn removed(
        &mut self,
        call: &Call<'_>,
        path: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), Refused> {
        let Some(file) = self.descriptors.files.forget(path) else { return Ok(()) };
        sink.take(Record { file, ..record_of(call, Deed::Removed) })
    }

    fn closed(
        &mut self,
        call: &Call<'_>,
        given: &[&[u8]],
        sink: &mut impl Sink,
    ) -> Result<(), Refused> {
        let Some((number, _)) = given.first().and_then(|first| descriptor(first)) else {
            return Ok(());
        };
        match self.descriptors.close(call.process, number) {
            Some(Open { file: Some(_), .. }) => {
                sink.take(Record { call: call_named("close"), ..record_of(call, Deed::Metadata) })
            }
            _ => Ok(()),
        }
    }

    /// Calls about names and attributes of files.
    fn about_files(
        &mut self,
        call: &Call<'_>,
        given: &[&[u8]],
        sink: &mut impl Sink,
    ) -> Result<(), Refused> {
        let Some(name) = metadata_name(call.name) else { return Ok(()) };
        let paths = || given.iter().filter_map(|argument| quoted(argument));
        if paths().any(|path| NO_STORAGE.iter().any(|place| path.starts_with(place))) {
            return Ok(());
        }
        if let Some((number, path)) = given.first().and_then(|first| descriptor(first)) {
            let size = field(call.text, b"st_size=");
            let regular = call.text.windows(7).any(|signs| signs == b"S_IFREG");
            let file = match self.known(call.process, number, path, regular)? {
                Some(open) => open.file,
                None => None,
            };
            if let (Some(file), Some(size)) = (file, size) {
                self.descriptors.at_least(file, size);
            }
            if file.is_none() && paths().next().is_none() {
                return Ok(()); // of a pipe or a socket
            }
        }
        if call.returned == Some(0) {
            let mut paths = paths();
            match (name, paths.next(), paths.next()) {
                ("unlink", Some(path), _) => self.removed(call, path, sink)?,
                ("rename", Some(from), Some(to)) => self.descriptors.files.rename(from, to),
                _ => {}
            }
        }
        sink.take(Record { call: call_named(name), ..record_of(call, Deed::Metadata) })
    }
}

fn record_of(call: &Call<'_>, deed: Deed) -> Record {
    let Call { process, at_ns, took_ns, .. } = *call;
    Record { process, at_ns, took_ns, ..Record::of(deed) }
}

/// The argument so many from the end, when it is an offset.
fn offset(given: &[&[u8]], from_end: usize) -> Option<u64> {
    let place = given.len().checked_sub(from_end)?;
    number(given.get(place)?).and_then(|at| u64::try_from(at).ok())
}

/// `[4096]`, or `[4096] => [8192]` where the kernel has moved it.
fn bracketed(argument: &[u8]) -> Option<u64> {
    let inside = argument.strip_prefix(b"[")?;
    let digits = inside.iter().take_while(|sign| sign.is_ascii_digit()).count();
    whole(&inside[..digits])
}

fn shares(text: &[u8]) -> bool {
    text.windows(11).any(|signs| signs == b"CLONE_FILES")
}

fn metadata_name(call: &[u8]) -> Option<&'static str> {
    Some(match call {
        b"stat" | b"stat64" | b"lstat" | b"lstat64" | b"fstat" | b"fstat64" | b"newfstatat"
        | b"fstatat64" | b"statx" | b"statfs" | b"fstatfs" => "stat",
        b"access" | b"faccessat" | b"faccessat2" => "access",
        b"getdents" | b"getdents64" => "getdents",
        b"unlink" | b"unlinkat" => "unlink",
        b"rename" | b"renameat" | b"renameat2" => "rename",
        b"mkdir" | b"mkdirat" => "mkdir",
        b"rmdir" => "rmdir",
        b"link" | b"linkat" => "link",
        b"symlink" | b"symlinkat" => "symlink",
        b"readlink" | b"readlinkat" => "readlink",
        b"truncate" | b"ftruncate" | b"truncate64" | b"ftruncate64" => "truncate",
        b"fallocate" => "fallocate",
        b"chmod" | b"fchmod" | b"fchmodat" => "chmod",
        b"chown" | b"fchown" | b"lchown" | b"fchownat" => "chown",
        b"utime" | b"utimes" | b"utimensat" | b"futimesat" => "utime",
        b"fadvise64" | b"readahead" => "fadvise",
        _ => return None,
    })
}
