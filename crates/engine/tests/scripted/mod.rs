//! An NFS server that does as it is told and allocates nothing once a connection is made: it answers
//! READ, WRITE and COMMIT for any file, whose bytes are the low byte of their offset over 256.

use std::io::{ErrorKind::WouldBlock, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use leadline_engine::backend::nfs::queue::Remote;
use nfs3_types::nfs3::nfs_fh3;
use nfs3_types::xdr_codec::Opaque;

/// Longest call or answer.
const BYTES_MAX: usize = 1 << 20;

/// What the server is told.
#[derive(Debug)]
pub struct Script {
    /// Its verifier.
    pub verifier: AtomicU64,
    /// Most bytes it takes or gives at once.
    pub most: AtomicU32,
    /// Bytes of a fragment; 0 leaves answers whole.
    pub fragment: AtomicUsize,
    /// Calls it collects before it answers them, the last first.
    pub together: AtomicUsize,
    /// Milliseconds after which it answers what it collected though no call comes; 0 for never.
    pub timeout_ms: AtomicU64,
    /// Microseconds that it sleeps before each answer, one call of a connection after the other.
    pub service_us: AtomicU64,
    /// Status of every answer.
    pub status: AtomicU32,
    /// COMMIT calls so far.
    pub commits: AtomicUsize,
    /// Answers until it has another verifier; 0 for never.
    pub anew_after: AtomicUsize,
}

pub struct Scripted {
    pub script: Arc<Script>,
    pub remote: Remote,
}

/// Starts it; it ends with its connections.
pub fn start() -> Scripted {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let script = Arc::new(Script {
        verifier: AtomicU64::new(1),
        most: AtomicU32::new(u32::MAX),
        fragment: AtomicUsize::new(0),
        together: AtomicUsize::new(1),
        timeout_ms: AtomicU64::new(0),
        service_us: AtomicU64::new(0),
        status: AtomicU32::new(0),
        commits: AtomicUsize::new(0),
        anew_after: AtomicUsize::new(0),
    });
    let told = Arc::clone(&script);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let told = Arc::clone(&told);
            std::thread::spawn(move || serve(stream, &told));
        }
    });
    let file = nfs_fh3 { data: Opaque::owned(vec![9; 12]) };
    let remote = Remote { addresses: vec![address], file, transfer_bytes_max: 1 << 19 };
    Scripted { script, remote }
}

#[derive(Clone, Copy, Default)]
struct Call {
    xid: u32,
    procedure: u32,
    offset: u64,
    count: u32,
}

fn serve(mut stream: TcpStream, script: &Script) {
    let (mut call, mut answer) = (vec![0; BYTES_MAX], vec![0; BYTES_MAX]);
    let mut held = Vec::with_capacity(64);
    let _ = stream.set_nodelay(true);
    loop {
        let collects = held.len() < script.together.load(SeqCst);
        if collects && (held.is_empty() || comes(&stream, script)) {
            let Some(one) = receive(&mut stream, &mut call) else { return };
            held.push(one);
            continue;
        }
        while let Some(one) = held.pop() {
            if script.anew_after.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) == Ok(1) {
                script.verifier.fetch_add(1, SeqCst);
            }
            let service_us = script.service_us.load(SeqCst);
            if service_us > 0 {
                std::thread::sleep(Duration::from_micros(service_us));
            }
            let length = write_answer(one, script, &mut answer);
            if send(&mut stream, &answer[..length], script.fragment.load(SeqCst)).is_none() {
                return;
            }
        }
    }
}

/// Whether another call comes before the timeout.
fn comes(stream: &TcpStream, script: &Script) -> bool {
    let timeout_ms = script.timeout_ms.load(SeqCst);
    let timeout = (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms));
    let _ = stream.set_read_timeout(timeout);
    let comes = !matches!(stream.peek(&mut [0]), Err(error) if error.kind() == WouldBlock);
    let _ = stream.set_read_timeout(None);
    comes
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn receive(stream: &mut TcpStream, bytes: &mut [u8]) -> Option<Call> {
    let mut mark = [0; 4];
    stream.read_exact(&mut mark).ok()?;
    let length = (u32::from_be_bytes(mark) & !(1 << 31)) as usize;
    stream.read_exact(&mut bytes[..length]).ok()?;
    let credential = word(bytes, 28).next_multiple_of(4) as usize;
    let handle_at = 32 + credential + 8;
    let at = handle_at + 4 + word(bytes, handle_at).next_multiple_of(4) as usize;
    let offset = u64::from(word(bytes, at)) << 32 | u64::from(word(bytes, at + 4));
    let (xid, procedure, count) = (word(bytes, 0), word(bytes, 20), word(bytes, at + 8));
    Some(Call { xid, procedure, offset, count })
}

/// Writes an answer without its mark; returns its length.
fn write_answer(call: Call, script: &Script, bytes: &mut [u8]) -> usize {
    let mut at = 0;
    let mut put = |word: u32| {
        bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
        at += 4;
    };
    [call.xid, 1, 0, 0, 0, 0].into_iter().for_each(&mut put);
    let status = script.status.load(SeqCst);
    put(status);
    let count = call.count.min(script.most.load(SeqCst));
    let verifier = script.verifier.load(SeqCst);
    match (status, call.procedure) {
        (0, 6) => {
            [0, count, 0, count].into_iter().for_each(&mut put);
            for byte in 0..count as usize {
                bytes[at + byte] = ((call.offset + byte as u64) >> 8) as u8;
            }
            at += count.next_multiple_of(4) as usize;
        }
        (0, 7) => {
            [0, 0, count, 0, (verifier >> 32) as u32, verifier as u32].into_iter().for_each(put);
        }
        (0, _) => {
            script.commits.fetch_add(1, SeqCst);
            [0, 0, (verifier >> 32) as u32, verifier as u32].into_iter().for_each(put);
        }
        (_, 6) => put(0),
        _ => [0, 0].into_iter().for_each(put),
    }
    at
}

fn send(stream: &mut TcpStream, answer: &[u8], fragment: usize) -> Option<()> {
    let size = if fragment == 0 { answer.len() } else { fragment };
    let last = answer.len().div_ceil(size) - 1;
    for (index, part) in answer.chunks(size).enumerate() {
        let mark = part.len() as u32 | u32::from(index == last) << 31;
        stream.write_all(&mark.to_be_bytes()).ok()?;
        stream.write_all(part).ok()?;
    }
    Some(())
}
