//! One streaming job.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_base::line;
use leadline_wire::event::stream::StreamResult;
use leadline_wire::job::Job;
use leadline_wire::job::stream::{Kernel, StreamJob};

use crate::capacity;
use crate::layout::Layout;
use crate::records;
use crate::{scan, sort, transpose};

/// Runs one streaming job and hands every event to `emit`; the last is `result` or `error`.
pub fn run_job(text: &str, emit: &mut dyn FnMut(&str)) {
    line::answer(text, emit, |job, reporter| match job {
        Job::Stream(job) => reporter.tell(|reporter| run(job, reporter)),
        _ => reporter.error(&EngineError::fault("a job of another kind came to the kernels")),
    });
}

/// Runs a job that was read. One line for each kernel: its module runs it.
///
/// # Errors
/// The job cannot be run, or what it made is wrong.
pub fn run(job: &StreamJob, reporter: &mut Reporter) -> Result<StreamResult, EngineError> {
    keep_input(job)?;
    reporter.phase(Phase::Prepare, 0);
    match &job.kernel {
        Kernel::Generate { .. } => records::generate::run(job, reporter),
        Kernel::Check {} => records::check::run(job, reporter),
        Kernel::Capacity { .. } => capacity::run(job, reporter),
        Kernel::Scan { .. } => scan::run(job, reporter),
        Kernel::Sort {} => sort::run(job, reporter),
        Kernel::Transpose { .. } => transpose::run(job, reporter),
    }
}

/// Refuses an output that would take the place of the input, of its layout or of a stripe.
pub(crate) fn keep_input(job: &StreamJob) -> Result<(), EngineError> {
    let (Some(input), Some(output)) = (&job.input, &job.output) else { return Ok(()) };
    let (input, output) = (Path::new(input), Path::new(&output.path));
    let layout = Layout::read(input).ok().flatten();
    let stripes = layout.into_iter().flat_map(|layout| layout.parts).flat_map(|part| part.files);
    let mut read = [input.to_owned(), Layout::path_of(input)].into_iter().chain(stripes);
    let written = [output, &Layout::path_of(output)].map(place_of);
    match read.find(|path| written.contains(&place_of(path))) {
        None => Ok(()),
        Some(taken) => Err(EngineError::bad_job(format!(
            "the output {} would take the place of {}, which belongs to the input; the input is \
            never changed: give another name",
            output.display(),
            taken.display()
        ))),
    }
}

/// A path without links and detours in its directory's name; the file need not be there.
fn place_of(path: &Path) -> PathBuf {
    let whole = path.canonicalize();
    whole.unwrap_or_else(|_| {
        let directory = path.parent().and_then(|parent| parent.canonicalize().ok());
        let name = path.file_name().unwrap_or_default();
        directory.map_or_else(|| path.to_owned(), |directory| directory.join(name))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(input: &str, output: &str) -> bool {
        let mut said = Vec::new();
        let job = serde_json::json!({
            "version": 1, "kind": "stream", "job_id": "keep", "kernel": {"name": "sort"},
            "input": input, "output": {"path": output, "replace": true},
            "memory_bytes": 64 << 20, "threads": 1, "seed": 1, "total_s_max": 10.0,
            "io": {"read": "uring", "read_direct": true, "write_direct": true, "depth": 2},
        });
        run_job(&job.to_string(), &mut |line| said.push(line.to_owned()));
        let last = said.last().unwrap();
        assert!(last.contains(r#""event":"error""#), "there is no such input: {last}");
        last.contains("would take the place")
    }

    #[test]
    fn the_input_and_what_belongs_to_it_are_never_written() {
        let folder = std::env::temp_dir().join(format!("leadline-keep-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("below")).unwrap();
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let files = vec![path("one").into(), path("two").into()];
        let part = crate::layout::LayoutPart { files, bytes: 0, stripe_bytes: 65536 };
        let home = crate::unnamed::directory_at(&folder).unwrap();
        Layout::new(vec![part]).write(&home, "set", false).unwrap();
        std::os::unix::fs::symlink(&folder, path("below/link")).unwrap();
        for output in ["set", "set.layout", "two", "below/../set", "below/link/set"] {
            assert!(refused(&path("set"), &path(output)), "{output}");
        }
        assert!(refused(&path("other.layout"), &path("other")), "the output's layout");
        for output in ["other", "below/set", "three"] {
            assert!(!refused(&path("set"), &path(output)), "{output}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
