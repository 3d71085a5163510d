//! A trace made again in a run directory: its files laid out, its lanes run.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Error;
use std::path::Path;
use std::sync::atomic::AtomicU32;

use leadline_base::beneath::{Directory, open_input};
use leadline_base::buffer;
use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_base::host::BlockDevice;
use leadline_base::replay::{Step, Steps};
use leadline_wire::event::measure::{MeasureResult, WrittenBytes};
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
    let files = Files::lay_out(job, path, &steps.initial_bytes, deadline_ns, reporter)?;
    let first = files.open(0)?;
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

fn read(path: &str) -> Result<Steps, EngineError> {
    let read = |mut file: File| {
        let mut whole = std::io::BufReader::new(&mut file);
        Steps::read(&mut whole)
    };
    open_input(Path::new(path))
        .and_then(read)
        .map_err(|error| EngineError::fault(format!("the steps in {path} cannot be read: {error}")))
}

/// The files of a replay, laid out.
#[derive(Debug)]
pub(crate) struct Files {
    all: Vec<DataFile>,
    /// Bytes that were written to lay them out.
    written_bytes: u64,
}

impl Files {
    /// Makes each file as long as it is before the first step.
    fn lay_out(
        job: &MeasureJob,
        path: &str,
        initial_bytes: &[u64],
        deadline_ns: u64,
        reporter: &mut Reporter,
    ) -> Result<Self, EngineError> {
        allow_many_files();
        let directory = Directory::own(Path::new(path)).map_err(|error| {
            EngineError::target(format!("{path} cannot be opened: {error}; give another directory"))
        })?;
        let mut found = Self { all: Vec::new(), written_bytes: 0 };
        for (number, bytes) in initial_bytes.iter().enumerate() {
            let name = format!("replay-{number}.bin");
            let data = DataFile::in_directory(&directory, &name)?.of_content(job.backend.content);
            found.written_bytes += data.become_long(*bytes, deadline_ns)?;
            reporter.progress((number + 1) as f64 / initial_bytes.len() as f64);
            found.all.push(data);
        }
        found.sync()?;
        Ok(found)
    }

    /// Opens a file once more.
    pub fn open(&self, file: u32) -> Result<File, EngineError> {
        self.all[file as usize].reopen(false, false)
    }

    /// Writes back everything that is dirty of their file system.
    pub fn sync(&self) -> Result<(), EngineError> {
        let Some(first) = self.all.first() else { return Ok(()) };
        rustix::fs::syncfs(first.file()).map_err(|error| {
            EngineError::io(format!("writing the file system back failed: {error}"))
        })
    }

    fn drop_cached(&self) -> Result<(), EngineError> {
        self.all.iter().try_for_each(DataFile::drop_cached)
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
