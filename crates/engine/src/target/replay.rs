//! A trace made again in a run directory: its files laid out, its lanes run.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Error;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

use leadline_base::beneath::{Directory, open_input};
use leadline_base::buffer;
use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_base::host::BlockDevice;
use leadline_base::replay::{ALL_FILES, FOLDER, Step, Steps};
use leadline_wire::event::measure::{MeasureResult, WrittenBytes};
use leadline_wire::job::backend::Content;
use leadline_wire::job::measure::MeasureJob;

use crate::backend::data_file::DataFile;
use crate::evidence::provenance::DataPlace;
use crate::run::phases;
use crate::run::worker::{Lane, Open, OwnCost};
use crate::target::assemble::Evidence;
use crate::target::directory::allow_many_files;
use crate::target::session::Session;

/// Most bytes that one call moves: more is moved by several, as the kernel would.
const CALL_BYTES_MAX: u64 = 8 << 20;
/// Files that all lanes together may have open.
const OPEN_MAX: usize = 512;

/// Runs the job's replay in the run directory at `path`.
pub(crate) fn run(
    job: &MeasureJob,
    path: &str,
    reporter: &mut Reporter,
) -> Result<MeasureResult, EngineError> {
    let Some(asked) = &job.replay else {
        return Err(EngineError::fault("a job without a replay came to be replayed"));
    };
    let session = Session::begin(job);
    reporter.phase(Phase::Prepare, 0);
    let steps = read(&asked.path)?;
    let deadline_ns = session.deadline_ns();
    let files = Files::lay_out(job, path, &steps, deadline_ns, reporter)?;
    let laid_out = steps.initial_bytes.iter().position(|bytes| *bytes > 0);
    let first = files.open(laid_out.unwrap_or(0) as u32)?;
    let device = BlockDevice::of(&first);
    let place = DataPlace::of(&first, false, device.as_ref());
    let lanes = usize::from(steps.lanes);
    let prepared = session.prepared(lanes, OwnCost::default(), Some(&first), device);
    reporter.phase(Phase::WarmUp, prepared.spent_ns);
    if job.limits.warm_up_s_max == 0.0 {
        files.drop_cached()?;
    }
    let done: Vec<AtomicU32> = (0..lanes).map(|_| AtomicU32::new(0)).collect();
    let longest = steps.steps.iter().map(|step| step.length_bytes).max().unwrap_or(1);
    let content = job.backend.content;
    let buffers = buffer::for_requests(lanes, longest.clamp(1, CALL_BYTES_MAX), job.seed, content)?;
    let mut own = vec![Vec::new(); lanes];
    steps.steps.into_iter().for_each(|step| own[usize::from(step.lane)].push(step));
    let workers = own.into_iter().zip(buffers).zip(0..).map(|((steps, buffer), lane)| Lane {
        lane,
        steps,
        files: &files,
        done: &done,
        buffer,
        at_times: asked.at_times,
        open: Open::new((OPEN_MAX / lanes).max(1)),
    });
    let workers = workers.collect();
    let held = vec![1_u8; held_bytes(asked.memory_bytes)];
    std::hint::black_box(held.as_ptr()); // nobody reads it, and it is to be there
    let run = phases::run(workers, &prepared.setting, reporter)?;
    drop(held);
    let evidence = Evidence {
        place: Some(place),
        written_bytes: WrittenBytes { layout: files.written_bytes, ..WrittenBytes::default() },
        ..Evidence::none(session.clock.source())
    };
    session.finish(&prepared, &run, evidence)
}

/// What is to be held beside what this process holds itself.
fn held_bytes(all: u64) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let own_kib = own.and_then(|own| own.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0_u64);
    usize::try_from(all.saturating_sub(own_kib << 10)).unwrap_or(0)
}

fn name_of(file: u32) -> String {
    format!("replay-{file}.bin")
}

fn read(path: &str) -> Result<Steps, EngineError> {
    let read = |mut file: File| {
        let mut whole = std::io::BufReader::new(&mut file);
        Steps::read(&mut whole)
    };
    open_input(Path::new(path))
        .and_then(read)
        .map_err(|error| EngineError::fault(format!("the steps in {path} cannot be read: {error}")))
}

/// The files of a replay: those that are there before are laid out, the others made by who uses them
/// first.
#[derive(Debug)]
pub(crate) struct Files {
    all: Vec<Mutex<Option<DataFile>>>,
    directory: Directory,
    content: Option<Content>,
    /// Several lanes may have one open.
    shared: bool,
    /// Bytes that were written to lay them out.
    written_bytes: u64,
}

impl Files {
    /// Makes each file as long as it is before the first step.
    fn lay_out(
        job: &MeasureJob,
        path: &str,
        steps: &Steps,
        deadline_ns: u64,
        reporter: &mut Reporter,
    ) -> Result<Self, EngineError> {
        allow_many_files();
        let directory = Directory::own(Path::new(path)).map_err(|error| {
            EngineError::target(format!("{path} cannot be opened: {error}; give another directory"))
        })?;
        let (content, shared) = (job.backend.content, steps.lanes > 1);
        let mut found = Self { all: Vec::new(), directory, content, shared, written_bytes: 0 };
        for (number, bytes) in steps.initial_bytes.iter().enumerate() {
            let data = if *bytes == 0 {
                found.unlink(number as u32)?; // of the run before
                None
            } else {
                let data = found.made(number as u32)?;
                found.written_bytes += data.become_long(*bytes, deadline_ns)?;
                Some(data)
            };
            reporter.progress((number + 1) as f64 / steps.initial_bytes.len() as f64);
            found.all.push(Mutex::new(data));
        }
        found.sync(ALL_FILES)?;
        Ok(found)
    }

    fn made(&self, file: u32) -> Result<DataFile, EngineError> {
        Ok(DataFile::in_directory(&self.directory, &name_of(file))?.of_content(self.content))
    }

    fn unlink(&self, file: u32) -> Result<(), EngineError> {
        let removed = self.directory.remove(&name_of(file));
        removed.map_err(|error| EngineError::io(format!("{}: {error}", name_of(file))))
    }

    fn place(&self, file: u32) -> MutexGuard<'_, Option<DataFile>> {
        self.all[file as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file once more, and makes it if it is not there.
    pub fn open(&self, file: u32) -> Result<File, EngineError> {
        let mut place = self.place(file);
        let data = match place.take() {
            Some(data) => data,
            None => self.made(file)?,
        };
        place.insert(data).reopen(false, false)
    }

    /// Removes a file that nobody uses any more, with its data.
    pub fn remove(&self, file: u32) -> Result<(), EngineError> {
        let Some(data) = self.place(file).take() else { return Ok(()) };
        if self.shared {
            let cut = data.file().set_len(0); // another lane may have it open still
            cut.map_err(|error| EngineError::io(format!("{}: {error}", name_of(file))))?;
        }
        self.unlink(file)
    }

    /// Writes back everything that is dirty of their file system, or of their folder alone.
    pub fn sync(&self, of: u32) -> Result<(), EngineError> {
        let synced = match of {
            FOLDER => self.directory.sync(),
            _ => rustix::fs::syncfs(&self.directory).map_err(Error::from),
        };
        synced.map_err(|error| {
            EngineError::io(format!("writing the file system back failed: {error}"))
        })
    }

    fn drop_cached(&self) -> Result<(), EngineError> {
        let all = (0..self.all.len() as u32).map(|file| self.place(file));
        all.flat_map(|place| place.as_ref().map(DataFile::drop_cached)).collect()
    }

    /// The file system failed a step.
    #[cold]
    pub fn failed(&self, step: &Step, error: &Error) -> EngineError {
        EngineError::io(format!(
            "{:?} of {} bytes at byte {} of the replay's file {} failed: {error}; look at the kernel \
             log for the device",
            step.act, step.length_bytes, step.offset_bytes, step.file
        ))
    }
}
