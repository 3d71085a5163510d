//! The single file `data.bin` of the run directory on a server: really written, and incompressible
//! where no content is asked for.

#![forbid(unsafe_code)]

use leadline_base::buffer::{self, BufferSlice};
use leadline_base::clock::{now_ns, ns_from_s, s_from_ns};
use leadline_base::error::{EngineError, ErrorKind};
use leadline_wire::job::backend::Content;
use nfs3_types::nfs3::{ftype3, nfsstat3};

use crate::backend::QueueBackend;
use crate::backend::data_file::DATA_FILE_NAME;
use crate::backend::nfs::queue::{Durability, NfsQueue, Remote};
use crate::backend::nfs::volume::{Place, Refusal, Volume};
use leadline_base::request::{Kind, Request};

/// Bytes of one write of the layout, or less where the server takes less.
const CHUNK_BYTES: u64 = 1 << 20;

/// Bytes after which the layout has the server write them out, so that no COMMIT takes long.
const COMMIT_BYTES: u64 = 64 << 20;

/// Bytes of one read of the pass that fills the server's cache.
const PASS_READ_BYTES: u64 = 256 << 10;

const BLOCK_BYTES: u64 = 4096;

/// The data file on the server, found or made, and checked.
#[derive(Debug)]
pub struct ServerFile {
    /// Where it is.
    pub place: Place,
    /// Its length when it was last asked.
    pub length_bytes: u64,
    content: Option<Content>,
}

impl ServerFile {
    /// Opens the data file of a run directory, making it when it is not there.
    ///
    /// # Errors
    /// `Lost` when the server does not answer or forgot the directory; `Target` when something that
    /// we did not make has that name.
    pub fn open(volume: &mut Volume, run: &Place) -> Result<Self, EngineError> {
        let place = match volume.create(run, DATA_FILE_NAME) {
            Err(Refusal::Status(nfsstat3::NFS3ERR_EXIST, _)) => {
                volume.lookup(run, DATA_FILE_NAME)?.0
            }
            made => made?,
        };
        let facts = volume.attributes(&place)?;
        if facts.type_ != ftype3::NF3REG || facts.nlink > 1 {
            return Err(EngineError::target(format!(
                "{} is no plain file with one name; Leadline did not make it and leaves it alone",
                place.shown
            )));
        }
        Ok(Self { place, length_bytes: facts.size, content: None })
    }

    /// What is laid out and written from now on is of this content.
    #[must_use]
    pub fn of_content(self, content: Option<Content>) -> Self {
        Self { content, ..self }
    }

    /// Writes blocks to the end until the file has at least `length_bytes`, and has the server put
    /// them on stable storage; `progress` gets the share done. Returns the bytes written.
    ///
    /// # Errors
    /// `Lost` when the server goes away, or began anew so that writes may be lost; `Target` when
    /// space or time runs out; the file is then as long as before where the server still answers.
    pub fn extend(
        &mut self,
        volume: &mut Volume,
        length_bytes: u64,
        deadline_ns: u64,
        progress: &mut dyn FnMut(f64),
    ) -> Result<u64, EngineError> {
        let before = self.length_bytes;
        let from = before / BLOCK_BYTES * BLOCK_BYTES;
        let to = length_bytes.next_multiple_of(BLOCK_BYTES);
        if before >= length_bytes {
            return Ok(0);
        }
        let outcome = self.write_blocks(volume, from..to, deadline_ns, progress);
        match outcome {
            Ok(()) => self.length_bytes = to,
            Err(ref error) if error.kind == ErrorKind::Lost => {}
            // The first error is what matters; a file left longer than before is all written.
            Err(_) => drop(volume.set_length(&self.place, before)),
        }
        outcome.map(|()| to - from)
    }

    fn write_blocks(
        &self,
        volume: &mut Volume,
        range: std::ops::Range<u64>,
        deadline_ns: u64,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), EngineError> {
        let chunk_bytes = CHUNK_BYTES;
        let mut queue = self.queue(volume, chunk_bytes)?;
        let (mut at, mut uncommitted) = (range.start, 0);
        while at < range.end {
            if now_ns() > deadline_ns {
                return Err(EngineError::target(format!(
                    "the time limit ended during layout: {} of {} MiB of the data file were \
                    written; allow more time or a smaller unique_bytes",
                    at >> 20,
                    range.end >> 20
                )));
            }
            let length_bytes = chunk_bytes.min(range.end - at);
            if let Some(bytes) = queue.buffer(0) {
                buffer::fill_layout(bytes, at, self.content);
            }
            one(&mut queue, Kind::Write, at, length_bytes)?;
            at += length_bytes;
            uncommitted += length_bytes;
            if uncommitted >= COMMIT_BYTES || at >= range.end {
                self.settle(volume, queue.verifier())?;
                uncommitted = 0;
            }
            progress((at - range.start) as f64 / (range.end - range.start) as f64);
        }
        Ok(())
    }

    /// Has the server put everything on stable storage; `written` is the verifier of what was
    /// written before. Returns the seconds it took.
    ///
    /// # Errors
    /// `Lost` when the server's verifier is another: it began anew, and writes may be lost.
    pub fn settle(
        &self,
        volume: &mut Volume,
        written: Option<[u8; 8]>,
    ) -> Result<f64, EngineError> {
        let began_ns = now_ns();
        let verifier = volume.commit(&self.place)?;
        if written.is_some_and(|written| written != verifier) {
            return Err(restarted(volume.peer()));
        }
        Ok(s_from_ns(now_ns() - began_ns))
    }

    /// One pass of reads over the first `unique_bytes`, for at most `seconds`: the server's cache
    /// is then as full as it gets. Returns the seconds it took.
    ///
    /// # Errors
    /// `Lost` when the server goes away; what else goes wrong is left for the workload to meet.
    pub fn fill_cache(
        &self,
        volume: &mut Volume,
        unique_bytes: u64,
        seconds: f64,
    ) -> Result<f64, EngineError> {
        let began_ns = now_ns();
        let until_ns = began_ns.saturating_add(ns_from_s(seconds));
        let mut queue = self.queue(volume, PASS_READ_BYTES)?;
        let mut at = 0;
        while at < unique_bytes && now_ns() < until_ns {
            let length_bytes = PASS_READ_BYTES.min(unique_bytes - at);
            match one(&mut queue, Kind::Read, at, length_bytes) {
                Err(error) if error.kind == ErrorKind::Lost => return Err(error),
                Err(_) => break,
                Ok(()) => at += length_bytes,
            }
        }
        Ok(s_from_ns(now_ns() - began_ns))
    }

    /// Buffers from which requests write it: [`buffer::for_requests`].
    ///
    /// # Errors
    /// `Io` when the memory is not to be had.
    pub fn buffers(
        &self,
        count: usize,
        request_bytes: u64,
        seed: u64,
    ) -> Result<Vec<BufferSlice>, EngineError> {
        buffer::for_requests(count, request_bytes, seed, self.content)
    }

    fn queue(&self, volume: &mut Volume, bytes: u64) -> Result<NfsQueue, EngineError> {
        let buffers = self.buffers(1, bytes, bytes)?;
        NfsQueue::connect(&self.remote(volume)?, buffers, Durability::UNSTABLE)
    }

    /// What connections to the file need.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn remote(&self, volume: &mut Volume) -> Result<Remote, EngineError> {
        let info = volume.info()?;
        Ok(Remote {
            addresses: volume.addresses.clone(),
            file: self.place.handle.clone(),
            // A server that names no limit gets what buffers hold.
            transfer_bytes_max: [info.rtmax, info.wtmax]
                .into_iter()
                .filter(|bytes| *bytes >= 512)
                .min()
                .unwrap_or(u32::MAX),
        })
    }
}

/// Makes one request and waits for it.
fn one(
    queue: &mut NfsQueue,
    kind: Kind,
    offset_bytes: u64,
    length_bytes: u64,
) -> Result<(), EngineError> {
    let mut done = Vec::with_capacity(1);
    queue.prepare(
        0,
        &Request { offset_bytes, length_bytes, kind, sequential: true, stream: 0, ..Request::NONE },
    )?;
    queue.turn(None, &mut done)
}

/// The server's verifier changed.
#[cold]
#[must_use]
pub fn restarted(peer: &str) -> EngineError {
    EngineError::lost(format!(
        "server restarted: the write verifier of {peer} changed, so writes that were not \
        committed may be lost; measure again"
    ))
}
