//! A real NFS server in this process, with its files in memory, and a wire to it that can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leadline_engine::engine::run_job;
use nfs3_server::memfs::{MemFs, MemFsConfig};
use nfs3_server::tcp::{NFSTcp, NFSTcpListener};
use serde_json::{Value, json};

/// Name of the run directory of every test.
pub const RUN: &str = "run-0123456789abcdef0123456789abcdef";

/// Serves `/x` until it is dropped.
pub struct Server {
    _runtime: tokio::runtime::Runtime,
    pub port: u16,
}

impl Server {
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// With files of a few bytes beside the directory.
    pub fn with(files: &[&str]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let mut config = MemFsConfig::default();
        config.add_dir("/x");
        for file in files {
            let (folder, _) = file.rsplit_once('/').unwrap();
            if folder != "/x" {
                config.add_dir(folder);
            }
            config.add_file(file, "not Leadline's".as_bytes());
        }
        let memfs = MemFs::new(config).unwrap();
        let listener = runtime.block_on(NFSTcpListener::bind("127.0.0.1:0", memfs)).unwrap();
        let port = listener.get_listen_port();
        runtime.spawn(async move { listener.handle_forever().await });
        Self { _runtime: runtime, port }
    }

    pub fn address(&self) -> Value {
        address(self.port)
    }

    pub fn claimed(&self) -> Value {
        claimed(self.port)
    }
}

pub fn address(port: u16) -> Value {
    json!({"host": "127.0.0.1", "port": port, "path": "/x"})
}

/// A target whose run directory is made.
pub fn claimed(port: u16) -> Value {
    let answer = ask("nfs_claim", port);
    assert_eq!(answer["event"], "answer", "{answer}");
    json!({"kind": "nfs", "server": address(port), "run": RUN})
}

/// Asks a server for this process.
pub fn ask(kind: &str, port: u16) -> Value {
    let mut question = json!({"kind": kind, "server": address(port), "run": RUN, "timeout_s": 5.0});
    if kind == "nfs_claim" {
        question["process"] = json!(std::process::id());
    }
    answer(&json!({"version": 1, "kind": "ask", "job_id": "a", "ask": question}))
}

/// The last event.
pub fn answer(document: &Value) -> Value {
    let mut last = Value::Null;
    run_job(&document.to_string(), &mut |line| last = serde_json::from_str(line).unwrap());
    last
}

/// Passes bytes on between clients and a server, until it is told otherwise.
pub struct Wire {
    pub port: u16,
    stalled: Arc<AtomicBool>,
    passed: Arc<AtomicU64>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    cut: Arc<AtomicBool>,
}

impl Wire {
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stalled, cut) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let passed = Arc::new(AtomicU64::new(0));
        let wire = Self { port, stalled, passed, streams, cut };
        let (stalled, streams, cut) =
            (Arc::clone(&wire.stalled), Arc::clone(&wire.streams), Arc::clone(&wire.cut));
        let passed = Arc::clone(&wire.passed);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if cut.load(Ordering::SeqCst) {
                    drop(near);
                    continue;
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (stalled, passed) = (Arc::clone(&stalled), Arc::clone(&passed));
                    std::thread::spawn(move || pass(from, to, &stalled, &passed));
                }
                streams.lock().unwrap().extend([near, far]);
            }
        });
        wire
    }

    /// Nothing gets through any more, and nobody is told.
    pub fn stall(&self) {
        self.stalled.store(true, Ordering::SeqCst);
    }

    pub fn resume(&self) {
        self.stalled.store(false, Ordering::SeqCst);
    }

    /// Every connection is broken, and new ones are closed at once, as when a server is killed.
    pub fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Waits until so many bytes more have passed, either way.
    pub fn wait_for(&self, bytes: u64) {
        let enough = self.passed.load(Ordering::SeqCst) + bytes;
        while self.passed.load(Ordering::SeqCst) < enough {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, stalled: &AtomicBool, passed: &AtomicU64) {
    let mut bytes = vec![0; 1 << 16];
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    while let Ok(came) = from.read(&mut bytes) {
        while stalled.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if came == 0 || to.write_all(&bytes[..came]).is_err() {
            break;
        }
        passed.fetch_add(came as u64, Ordering::SeqCst);
    }
    let _ = to.shutdown(Shutdown::Both);
}
