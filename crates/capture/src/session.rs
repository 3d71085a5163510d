//! What is asked for, and what all ways of watching share.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use leadline_base::space::usable_bytes;
use leadline_trace::{Deed, FIRST_LINE, Live, Record, Refused, line_of};
use serde::Serialize;

use crate::call::Call;
use crate::records::Seen;
use crate::totals::memory_of;

/// Between two looks at what has come.
pub const LOOK: Duration = Duration::from_millis(5);
/// Bytes of a kept trace between two looks at the room that is left.
const ROOM_LOOK_BYTES: u64 = 1 << 20;
/// Between two looks at the memory of who is watched, at least, and so many times what one takes.
const MEMORY: Duration = Duration::from_millis(100);
const LOOK_SHARE: u32 = 50;
/// Between two times that somebody is told, and asked whether to go on.
const HEAR: Duration = Duration::from_millis(100);

/// How calls are seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// By programs in the kernel.
    Bpf,
    /// By stopping the program.
    Ptrace,
}

/// Who is watched.
#[derive(Clone, Debug)]
pub enum Target {
    /// A command that is run for it, and all that it starts.
    Command(Vec<OsString>),
    /// A process that runs already, and all that it has started or starts.
    Process(i32),
    /// All processes of a control group and those below it.
    Group(PathBuf),
}

/// What to watch, and how.
pub struct Asked {
    /// Who.
    pub target: Target,
    /// How; the best that is allowed where it is not said.
    pub way: Option<Way>,
    /// Until then, where nothing ends it before.
    pub seconds: Option<f64>,
    /// What files are called is told.
    pub keep_paths: bool,
    /// Where every record is written too.
    pub keep: Option<File>,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// Nothing else.
    GoOn,
    /// Somebody wants an end: by this signal, which the command was sent too if `theirs`.
    Stop {
        /// Its number.
        signal: i32,
        /// The command has it already.
        theirs: bool,
    },
}

/// Told requests and bytes so far; what it answers is done.
pub type Hear<'a> = &'a mut dyn FnMut(u64, u64) -> Order;

/// What was seen so far, and where it goes.
pub struct Taker {
    pub seen: Seen,
    pub live: Live,
    keep: Option<BufWriter<File>>,
    /// Until the room is looked at again.
    room_bytes: u64,
    /// When the last call began, as those tell time, and when memory is looked at next.
    last_ns: u64,
    look_at: Instant,
    /// Why the trace is not kept, where it was to be.
    not_kept: Option<String>,
    refused: Option<Refused>,
}

impl Taker {
    pub fn new(keep: Option<File>) -> Self {
        let mut own = Self {
            seen: Seen::default(),
            live: Live::default(),
            keep: keep.map(BufWriter::new),
            room_bytes: 0,
            last_ns: 0,
            look_at: Instant::now(),
            not_kept: None,
            refused: None,
        };
        own.write(&[FIRST_LINE, b"\n"].concat());
        own
    }

    fn write(&mut self, text: &[u8]) {
        let Some(keep) = &mut self.keep else { return };
        if let Err(error) =
            room_for(keep.get_ref(), text, &mut self.room_bytes).and_then(|()| keep.write_all(text))
        {
            self.not_kept = Some(error.to_string());
            self.keep = None;
        }
    }

    /// Takes a call. What is wrong with one is told at the end: the command is not to suffer.
    pub fn take(&mut self, call: &Call) {
        if self.refused.is_some() {
            return;
        }
        self.last_ns = call.at_ns;
        // Two files that are seen first, one read and one written, are four.
        let mut made: [Option<Record>; 4] = [None; 4];
        let taken = self.seen.take(call, &mut |record| {
            let free = made.iter_mut().find(|each| each.is_none());
            if let Some(free) = free {
                *free = Some(record);
            }
            Ok(())
        });
        let all = made.into_iter().flatten().try_for_each(|record| {
            if self.keep.is_some() {
                self.write(line_of(&record).as_bytes());
            }
            self.live.take(record)
        });
        self.refused = taken.and(all).err();
    }

    /// Looks now and then at the memory that these processes hold.
    pub fn look_at_memory(&mut self, processes: impl FnOnce() -> Vec<i32>) {
        let began = Instant::now();
        if began < self.look_at || self.last_ns == 0 || self.refused.is_some() {
            return;
        }
        let (at_ns, bytes) = (self.last_ns, memory_of(&processes()));
        // Of thousands of threads a look takes long.
        self.look_at = began + MEMORY.max(LOOK_SHARE * began.elapsed());
        if bytes > 0 {
            let record = Record { at_ns, bytes, ..Record::of(Deed::Memory) };
            self.write(line_of(&record).as_bytes());
            self.refused = self.live.take(record).err();
        }
    }

    /// All that was seen and why its trace was not kept, or why it cannot be described.
    pub fn end(mut self) -> Result<(Seen, Live, Option<String>), Refused> {
        if let Some(mut keep) = self.keep.take()
            && let Err(error) = keep.flush()
        {
            self.not_kept = Some(error.to_string());
        }
        self.refused.map_or(Ok(()), Err)?;
        Ok((self.seen, self.live, self.not_kept))
    }
}

/// Looks at the room now and then: the file system's floor of free space stays free.
fn room_for(file: &File, text: &[u8], left: &mut u64) -> io::Result<()> {
    let bytes = text.len() as u64;
    if *left < bytes {
        *left = usable_bytes(file)?.min(ROOM_LOOK_BYTES);
    }
    *left = left.checked_sub(bytes).ok_or_else(|| {
        io::Error::other(
            "the disk has no more room above its floor (5%, at least 1 GiB, a quarter below 4 GiB)",
        )
    })?;
    Ok(())
}

/// Tells how far it is, and hears when to stop.
pub struct Listener<'a> {
    hear: Hear<'a>,
    heard_at: Instant,
    pub began: Instant,
    ends_at: Option<Instant>,
    pub stopped: Option<i32>,
}

impl<'a> Listener<'a> {
    pub fn new(seconds: Option<f64>, hear: Hear<'a>) -> Self {
        let now = Instant::now();
        let ends_at = seconds.map(|seconds| now + Duration::from_secs_f64(seconds));
        Self { hear, heard_at: now, began: now, ends_at, stopped: None }
    }

    /// Whether to stop, by a new order or because it is time; requests and bytes so far are told.
    pub fn hear(&mut self, requests: u64, bytes: u64) -> Order {
        let now = Instant::now();
        if self.ends_at.is_some_and(|end| now >= end) {
            self.ends_at = None;
            return Order::Stop { signal: 0, theirs: false };
        }
        if now.duration_since(self.heard_at) < HEAR {
            return Order::GoOn;
        }
        self.heard_at = now;
        let order = (self.hear)(requests, bytes);
        if let Order::Stop { signal, .. } = order {
            self.stopped = Some(signal);
        }
        order
    }
}
