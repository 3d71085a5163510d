//! An NFS server with its files in memory, for trying things out and for tests: prints its port and
//! serves `/x` until its standard input ends.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};

use nfs3_server::memfs::{MemFs, MemFsConfig};
use nfs3_server::tcp::{NFSTcp, NFSTcpListener};

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut config = MemFsConfig::default();
    config.add_dir("/x");
    let port = std::env::args().nth(1).unwrap_or_else(|| "0".to_owned());
    let address = format!("127.0.0.1:{port}");
    let memfs = MemFs::new(config).unwrap();
    let listener = runtime.block_on(NFSTcpListener::bind(&address, memfs)).unwrap();
    let mut output = std::io::stdout();
    writeln!(output, "{}", listener.get_listen_port()).unwrap();
    output.flush().unwrap();
    runtime.spawn(async move { listener.handle_forever().await });
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    runtime.shutdown_background();
}
