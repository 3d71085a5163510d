//! A server that lies about lengths, or never comes to an end: refused in words, in little room.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use leadline_engine::backend::nfs::volume::Volume;
use leadline_wire::job::target::NfsAddress;

const LAST_FRAGMENT: u32 = 1 << 31;
const MOUNT: u32 = 100_005;
const GETATTR: u32 = 1;
const READDIR: u32 = 16;
const TIMEOUT: Duration = Duration::from_secs(10);
const DIRECTORY: [u32; 22] = [0, 2, 0o700, 1, 0, 0, 0, 9, 0, 9, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0];
const MOUNTED: [u32; 5] = [0, 4, 7, 1, 1];

/// A server that answers a call of this program and procedure with these words.
fn server(say: impl Fn(u32, u32) -> Vec<u32> + Send + Sync + 'static) -> NfsAddress {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = Some(listener.local_addr().unwrap().port());
    let say = Arc::new(say);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let say = Arc::clone(&say);
            std::thread::spawn(move || serve(stream, &*say));
        }
    });
    NfsAddress { host: "127.0.0.1".to_owned(), port, mount_port: port, path: "/a".to_owned() }
}

fn serve(mut stream: TcpStream, say: &dyn Fn(u32, u32) -> Vec<u32>) -> Option<()> {
    loop {
        let mut mark = [0; 4];
        stream.read_exact(&mut mark).ok()?;
        let mut call = vec![0; (u32::from_be_bytes(mark) & !LAST_FRAGMENT) as usize];
        stream.read_exact(&mut call).ok()?;
        let word = |at: usize| u32::from_be_bytes(call[4 * at..4 * at + 4].try_into().unwrap());
        let words = [vec![word(0), 1, 0, 0, 0, 0], say(word(3), word(5))].concat();
        let mut record = (LAST_FRAGMENT | (4 * words.len()) as u32).to_be_bytes().to_vec();
        words.iter().for_each(|word| record.extend(word.to_be_bytes()));
        stream.write_all(&record).ok()?;
    }
}

#[test]
fn a_mount_that_says_that_sixteen_gibibytes_follow_is_refused() {
    for lie in [vec![0, 4, 7, u32::MAX, 1], vec![0, u32::MAX, 7], vec![0, 4, 7, 2, 1]] {
        let address = server(move |_, _| lie.clone());
        let error = Volume::open(&address, TIMEOUT).unwrap_err();
        assert!(error.message.contains("a length in it is longer than all of it"), "{error:?}");
    }
}

#[test]
fn a_listing_without_an_end_ends() {
    let address = server(|program, procedure| match (program, procedure) {
        (MOUNT, _) => MOUNTED.to_vec(),
        (_, GETATTR) => DIRECTORY.to_vec(),
        // One entry, `.`, and more to come.
        (_, READDIR) => vec![0, 0, 0, 0, 1, 0, 5, 1, u32::from_be_bytes(*b".\0\0\0"), 0, 3, 0, 0],
        _ => vec![10_004],
    });
    let mut volume = Volume::open(&address, TIMEOUT).unwrap();
    let directory = volume.directory.clone();
    let error = volume.names_up_to(&directory, 50).unwrap_err();
    assert!(error.message.contains("holds more than 50 entries"), "{error:?}");
}
