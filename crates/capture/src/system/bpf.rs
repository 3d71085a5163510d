//! bpf(2): maps, programs, and the ring through which programs tell.

use std::ffi::CString;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const MAP_CREATE: u32 = 0;
const MAP_LOOKUP: u32 = 1;
const MAP_UPDATE: u32 = 2;
const MAP_DELETE: u32 = 3;
const MAP_NEXT_KEY: u32 = 4;
const PROGRAM_LOAD: u32 = 5;
const RAW_TRACEPOINT_OPEN: u32 = 17;
const RAW_TRACEPOINT: u32 = 17;
const LOG_BYTES: usize = 1 << 16;

/// Kinds of map.
#[derive(Clone, Copy)]
pub enum Kind {
    Hash = 1,
    Array = 2,
    Ring = 27,
}

/// Attributes of a call, as numbers of 32 bits (`union bpf_attr` of linux/bpf.h).
#[derive(Default)]
#[repr(C, align(8))]
struct Attributes([u32; 32]);

impl Attributes {
    fn word(mut self, place: usize, value: u32) -> Self {
        self.0[place] = value;
        self
    }

    /// A pointer, at an even place.
    fn pointer<T: ?Sized>(self, place: usize, to: *const T) -> Self {
        let address = to.cast::<u8>() as usize as u64;
        self.word(place, address as u32).word(place + 1, (address >> 32) as u32)
    }

    /// # Safety
    ///
    /// Every pointer has to be good for what the command does with it.
    unsafe fn ask(&self, command: u32) -> Result<i32> {
        let size = size_of::<Self>();
        // SAFETY: the attributes are as long as is said, and the caller answers for what they
        // point to.
        let found = unsafe { libc::syscall(libc::SYS_bpf, command, ptr::from_ref(self), size) };
        if found < 0 { Err(Error::last_os_error()) } else { Ok(found as i32) }
    }

    fn descriptor(&self, command: u32) -> Result<OwnedFd> {
        // SAFETY: made below, with pointers to what outlives the call.
        let descriptor = unsafe { self.ask(command) }?;
        // SAFETY: the kernel has just given it to us alone.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}

/// A map of fixed sizes.
pub struct Map {
    descriptor: OwnedFd,
    key_bytes: usize,
    value_bytes: usize,
}

impl Map {
    /// An empty one.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn new(kind: Kind, key_bytes: u32, value_bytes: u32, entries: u32) -> Result<Self> {
        let asked = Attributes::default()
            .word(0, kind as u32)
            .word(1, key_bytes)
            .word(2, value_bytes)
            .word(3, entries);
        let descriptor = asked.descriptor(MAP_CREATE)?;
        Ok(Self { descriptor, key_bytes: key_bytes as usize, value_bytes: value_bytes as usize })
    }

    /// For programs.
    pub fn number(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    fn about(&self) -> Attributes {
        Attributes::default().word(0, self.number() as u32)
    }

    /// Sets a value.
    ///
    /// # Errors
    ///
    /// There is no room.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() != self.key_bytes || value.len() != self.value_bytes {
            return Err(Error::from_raw_os_error(libc::EINVAL));
        }
        let asked = self.about().pointer(2, key).pointer(4, value);
        // SAFETY: both are as long as the map says, which was just compared.
        unsafe { asked.ask(MAP_UPDATE) }.map(drop)
    }

    /// A value; None where there is none.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = vec![0; self.value_bytes];
        if key.len() != self.key_bytes {
            return None;
        }
        let asked = self.about().pointer(2, key).pointer(4, value.as_mut_ptr());
        // SAFETY: both are as long as the map says.
        unsafe { asked.ask(MAP_LOOKUP) }.ok().map(|_| value)
    }

    /// Removes a key, if it is there.
    pub fn remove(&self, key: &[u8]) {
        if key.len() == self.key_bytes {
            let asked = self.about().pointer(2, key);
            // SAFETY: it is as long as the map says.
            let _ = unsafe { asked.ask(MAP_DELETE) };
        }
    }

    /// All keys.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut next = vec![0; self.key_bytes];
        loop {
            let before = keys.last().map_or(ptr::null(), |key| key.as_ptr());
            let asked = self.about().pointer(2, before).pointer(4, next.as_mut_ptr());
            // SAFETY: the key before is null or as long as the map says, and so is the next.
            if unsafe { asked.ask(MAP_NEXT_KEY) }.is_err() {
                return keys;
            }
            keys.push(next.clone());
        }
    }
}

/// A program that runs at a tracepoint until this is dropped.
pub struct Attached {
    _program: OwnedFd,
    _link: OwnedFd,
}

/// Has the kernel check a program and run it at a raw tracepoint.
///
/// # Errors
///
/// It is refused, or there is no such tracepoint; the message ends with what the verifier said.
pub fn attach(tracepoint: &str, code: &[u64]) -> Result<Attached> {
    let program = load(code)?;
    let name = CString::new(tracepoint)?;
    let asked = Attributes::default().pointer(0, name.as_ptr()).word(2, program.as_raw_fd() as u32);
    Ok(Attached { _link: asked.descriptor(RAW_TRACEPOINT_OPEN)?, _program: program })
}

fn load(code: &[u64]) -> Result<OwnedFd> {
    let license = c"Dual BSD/GPL";
    let asked = |log: &mut [u8]| {
        let about_log = if log.is_empty() { (0, 0) } else { (1, log.len() as u32) };
        Attributes::default()
            .word(0, RAW_TRACEPOINT)
            .word(1, code.len() as u32)
            .pointer(2, code)
            .pointer(4, license.as_ptr())
            .word(6, about_log.0)
            .word(7, about_log.1)
            .pointer(8, if log.is_empty() { ptr::null() } else { log.as_ptr() })
            .descriptor(PROGRAM_LOAD)
    };
    asked(&mut []).or_else(|refused| {
        let mut log = vec![0; LOG_BYTES];
        if let Ok(program) = asked(&mut log) {
            return Ok(program);
        }
        let said = String::from_utf8_lossy(&log);
        let last: Vec<&str> =
            said.trim_end_matches('\0').trim_end().lines().rev().take(2).collect();
        if last.is_empty() {
            return Err(refused);
        }
        Err(Error::new(refused.kind(), format!("{refused}: {}", last.join("; "))))
    })
}

/// A ring that programs write and one reader reads (Linux, Documentation/bpf/ringbuf.rst).
pub struct Ring {
    map: Map,
    consumer: *mut u8,
    producer: *mut u8,
    bytes: usize,
    page: usize,
}

// SAFETY: the pages are this value's own until it is dropped, whichever thread has it.
unsafe impl Send for Ring {}

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: u64 = 8;

impl Ring {
    /// One of so many bytes, a power of two.
    ///
    /// # Errors
    ///
    /// The kernel has no room.
    pub fn new(bytes: u32) -> Result<Self> {
        let map = Map::new(Kind::Ring, 0, 0, bytes)?;
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let bytes = bytes as usize;
        let pages = |length, protection, offset| {
            // SAFETY: new pages wherever the kernel likes, of a descriptor that is open.
            let found = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    length,
                    protection,
                    libc::MAP_SHARED,
                    map.number(),
                    offset,
                )
            };
            if found == libc::MAP_FAILED {
                Err(Error::last_os_error())
            } else {
                Ok(found.cast::<u8>())
            }
        };
        let consumer = pages(page, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let producer = pages(page + 2 * bytes, libc::PROT_READ, page as libc::off_t)?;
        Ok(Self { map, consumer, producer, bytes, page })
    }

    /// For programs.
    pub fn number(&self) -> RawFd {
        self.map.number()
    }

    /// Gives everything that is there to `take`; how many there were.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) -> usize {
        // SAFETY: both pages begin with a u64 that is aligned and outlives this.
        let (consumed, produced) =
            unsafe { (&*self.consumer.cast::<AtomicU64>(), &*self.producer.cast::<AtomicU64>()) };
        let mut at = consumed.load(Ordering::Relaxed);
        let (end, mut events) = (produced.load(Ordering::Acquire), 0);
        while at < end {
            let offset = self.page + (at as usize & (self.bytes - 1));
            // SAFETY: the data begins a page on, and is mapped twice, so that what begins in it
            // goes on beyond its end.
            let begin = unsafe { self.producer.add(offset) };
            // SAFETY: a record begins with its length, aligned to eight bytes.
            let header = unsafe { &*begin.cast::<AtomicU32>() }.load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let length = (header & !DISCARDED) as usize;
            if header & DISCARDED == 0 && length <= self.bytes {
                // SAFETY: the kernel has written so many bytes and leaves them alone until they
                // are counted as consumed.
                take(unsafe {
                    std::slice::from_raw_parts(begin.add(HEADER_BYTES as usize), length)
                });
                events += 1;
            }
            at += (length as u64 + HEADER_BYTES).next_multiple_of(8);
            consumed.store(at, Ordering::Release);
        }
        events
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with these lengths, and nobody else has them.
        unsafe {
            libc::munmap(self.consumer.cast(), self.page);
            libc::munmap(self.producer.cast(), self.page + 2 * self.bytes);
        }
    }
}
