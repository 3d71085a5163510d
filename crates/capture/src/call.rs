//! One call as it was seen, whoever saw it.

#![forbid(unsafe_code)]

/// What a descriptor meant when the call was done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct File {
    /// There was one.
    pub known: bool,
    pub device: u32,
    /// With the type of file, as `stat` has it.
    pub mode: u32,
    pub inode: u64,
    /// Tells files apart that had an inode one after the other.
    pub generation: u64,
    /// Which device it is, if it is one.
    pub is_device: u32,
    /// Of its file system (linux/magic.h).
    pub magic: u64,
    /// Bytes it holds, after the call.
    pub size: u64,
    /// Where the next read or write goes, after the call.
    pub position: u64,
    /// As of open(2).
    pub flags: u32,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call {
    /// When it began: CLOCK_MONOTONIC.
    pub at_ns: u64,
    pub took_ns: u64,
    pub thread: u32,
    pub number: u32,
    /// Arguments that pointed to an offset and hold it now, after the call; as bits.
    pub followed: u32,
    pub returned: i64,
    pub arguments: [u64; 6],
    /// Bytes that the kernel counted as read in it (`rchar` of /proc/PID/io).
    pub counted_read: u64,
    /// And as written.
    pub counted_written: u64,
    /// Page faults of the thread in it that read nothing (`min_flt`): memory touched first.
    pub faults: u64,
    pub first: File,
    pub second: File,
}

/// Bytes of a file in an event.
const FILE_BYTES: usize = 56;
/// Of an event with one file.
pub const SHORT_BYTES: usize = 112 + FILE_BYTES;
/// Of one with two.
pub const LONG_BYTES: usize = SHORT_BYTES + FILE_BYTES;

impl Call {
    /// Reads what the programs of `bpf::programs` write; None where it is too short.
    pub fn parse(event: &[u8]) -> Option<Self> {
        let mut call = Self {
            at_ns: long(event, 0)?,
            took_ns: long(event, 8)?,
            thread: word(event, 20)?,
            number: word(event, 24)?,
            followed: word(event, 28)?,
            returned: long(event, 32)?.cast_signed(),
            counted_read: long(event, 88)?,
            counted_written: long(event, 96)?,
            faults: long(event, 104)?,
            first: file(event.get(112..)?)?,
            ..Self::default()
        };
        for (place, argument) in call.arguments.iter_mut().enumerate() {
            *argument = long(event, 40 + 8 * place)?;
        }
        if event.len() >= LONG_BYTES {
            call.second = file(event.get(SHORT_BYTES..)?)?;
        }
        Some(call)
    }
}

fn file(bytes: &[u8]) -> Option<File> {
    Some(File {
        device: word(bytes, 0)?,
        mode: word(bytes, 4)?,
        inode: long(bytes, 8)?,
        generation: u64::from(word(bytes, 16)?),
        is_device: word(bytes, 20)?,
        magic: long(bytes, 24)?,
        size: long(bytes, 32)?,
        position: long(bytes, 40)?,
        flags: word(bytes, 48)?,
        known: word(bytes, 52)? != 0,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
