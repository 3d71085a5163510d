//! Any bytes as what an NFS server sends, over real connections: whatever it is, a conversation
//! with it ends soon, with an answer or an error.
//!
//! The input is a script, an answer for each call: how many words it has, how it is sent, and the
//! words. After the last the server closes, so that nobody waits for what never comes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use leadline_base::buffer;
use leadline_base::request::{Kind, Request};
use leadline_engine::backend::QueueBackend;
use leadline_engine::backend::nfs::calls::Stable;
use leadline_engine::backend::nfs::data::ServerFile;
use leadline_engine::backend::nfs::queue::{Durability, NfsQueue};
use leadline_engine::backend::nfs::volume::Volume;
use leadline_wire::job::target::NfsAddress;

const TIMEOUT: Duration = Duration::from_secs(2);
const LAST_FRAGMENT: u32 = 1 << 31;
const REQUEST_BYTES: u64 = 8192;
/// Most calls that one script answers: each costs two turns on a real connection.
const CALLS_MAX: usize = 64;

/// Most connections at once.
const CONNECTIONS_MAX: usize = 4;

type Script = Arc<Mutex<Vec<u8>>>;

/// The server of this process: its port, and what it answers next.
fn server() -> &'static (u16, Script) {
    static SERVER: OnceLock<(u16, Script)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let listener = TcpListener::bind("0.0.0.0:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let script = Script::default();
        let listener = Arc::new(listener);
        // To start a thread for each connection took most of the time.
        for _ in 0..CONNECTIONS_MAX {
            let (listener, own) = (Arc::clone(&listener), Arc::clone(&script));
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    serve(stream, &own);
                }
            });
        }
        (port, script)
    })
}

/// Answers calls until the script ends, or says to send something that leads nowhere.
fn serve(mut stream: TcpStream, script: &Script) {
    let _ = stream.set_nodelay(true);
    while let Some(xid) = call(&mut stream) {
        let (how, words) = {
            let mut rest = script.lock().expect("no server panics");
            if rest.len() < 2 {
                return;
            }
            let how = rest[1];
            let end = (2 + 4 * usize::from(rest[0])).min(rest.len());
            let words: Vec<u8> = rest.drain(..end).skip(2).collect();
            (how, words)
        };
        let mut said = Vec::new();
        match how % 8 {
            // A good head, and then the words; more often than not, for else nobody gets far.
            0..=4 => {
                for word in [xid, 1, 0, 0, 0, 0] {
                    said.extend(word.to_be_bytes());
                }
                said.extend(&words);
            }
            // The number of the call alone is good.
            5 => {
                said.extend(xid.to_be_bytes());
                said.extend(&words);
            }
            _ => {}
        }
        let mark = LAST_FRAGMENT | said.len() as u32;
        let sent = match how % 8 {
            0..=5 => stream.write_all(&mark.to_be_bytes()).and_then(|()| stream.write_all(&said)),
            _ => stream.write_all(&words),
        };
        if sent.is_err() || how % 8 > 5 {
            return;
        }
    }
}

/// The number of the next call.
fn call(stream: &mut TcpStream) -> Option<u32> {
    let mut mark = [0; 4];
    stream.read_exact(&mut mark).ok()?;
    let mut record = vec![0; (u32::from_be_bytes(mark) & !LAST_FRAGMENT) as usize];
    stream.read_exact(&mut record).ok()?;
    Some(u32::from_be_bytes(record.get(..4)?.try_into().ok()?))
}

/// Tries these bytes.
pub fn nfs(bytes: &[u8]) {
    let (port, script) = server();
    *script.lock().expect("no server panics") = bytes.to_vec();
    // Ports of closed connections are kept for a minute: with other addresses there are enough.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let [_, a, b, c] = NUMBER.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let host = format!("127.{a}.{b}.{}", c | 1);
    let address =
        NfsAddress { host, port: Some(*port), mount_port: Some(*port), path: "/a/b".to_owned() };
    let Ok(mut volume) = Volume::open(&address, TIMEOUT) else { return };
    talk(&mut volume);
}

fn talk(volume: &mut Volume) {
    let directory = volume.directory.clone();
    let _ = volume.info().and_then(|_| volume.room());
    let _ = volume.names_up_to(&directory, CALLS_MAX);
    if let Ok((place, _)) = volume.lookup(&directory, "data.bin") {
        let _ = volume.read_start(&place, 4096);
    }
    let Ok(file) = ServerFile::open(volume, &directory) else { return };
    let Ok(remote) = file.remote(volume) else { return };
    let Ok(buffers) = buffer::allocate(2, REQUEST_BYTES as usize, 1) else { return };
    let durability = Durability { stable: Stable::Unstable, commit_every: Some(2) };
    let Ok(mut queue) = NfsQueue::connect(&remote, buffers, durability) else { return };
    let mut done = Vec::with_capacity(4);
    for slot in 0..2 {
        let kind = if slot == 0 { Kind::Read } else { Kind::Write };
        let request =
            Request { length_bytes: REQUEST_BYTES, kind, sequential: true, ..Request::NONE };
        if queue.prepare(slot, &request).is_err() {
            return;
        }
    }
    for _ in 0..CALLS_MAX {
        if done.len() == 2 || queue.turn(None, &mut done).is_err() {
            return;
        }
    }
}
