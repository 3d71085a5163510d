//! `leadline._engine`: the thin PyO3 shim over the other crates, and nothing else.

mod arrays;
mod belief;
mod capture;
mod fits;
mod rank;
mod trace;

use pyo3::prelude::*;

/// The native module `leadline._engine`.
#[pymodule]
mod _engine {
    use std::io::{BufRead, ErrorKind, Write};

    use leadline_base::clock::ns_from_s;
    use leadline_base::error::EngineError;
    use leadline_base::events::Reporter;
    use leadline_base::line;
    use leadline_engine::engine;
    use leadline_kernels::run as kernels;
    use leadline_sim::Profile;
    use leadline_sim::law::{SimulatedSystem, truth};
    use leadline_wire::job::Job;
    use leadline_wire::job::workload::Workload;
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::belief::{log_likelihood, log_peak, student_t_log};
    #[pymodule_export]
    use crate::capture::{capture, run_unwatched};
    #[pymodule_export]
    use crate::fits::{huber, ln_time, miss_ratio, refine, start_fits};
    #[pymodule_export]
    use crate::rank::{Rank, merge_ranks};
    #[pymodule_export]
    use crate::trace::{TraceRead, replay_steps};

    /// How the engine was built; a debug build measures itself.
    #[pymodule_export]
    const BUILD: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

    /// Most boundaries of a hierarchy.
    #[pymodule_export]
    const LEVELS_MAX: usize = leadline_stats::model::LEVELS_MAX;

    /// Steepest fall of a level by itself, as a power of `unique_bytes`.
    #[pymodule_export]
    const SLOPE_MAX: f64 = leadline_stats::SLOPE_MAX;

    /// Main loop of the engine child: one job per line of standard input, events on standard
    /// output. Returns 0 at end of file, 1 when nobody reads the events any more.
    #[pyfunction]
    fn serve(py: Python<'_>) -> i32 {
        py.detach(|| {
            live_and_die_as_a_child();
            serve_lines()
        })
    }

    /// Runs one job that measures nothing real in this process and returns its event lines.
    #[pyfunction]
    fn run_job(py: Python<'_>, job_json: &str) -> PyResult<Vec<String>> {
        let mut lines = Vec::new();
        let mut in_the_child = false;
        py.detach(|| {
            line::answer(job_json, &mut |line| lines.push(line.to_owned()), |job, reporter| {
                in_the_child = job.measures_a_real_target();
                if !in_the_child {
                    engine::run(job, reporter);
                }
            });
        });
        if in_the_child {
            return Err(PyValueError::new_err(
                "a real target is measured in the engine child (serve), never in this process",
            ));
        }
        Ok(lines)
    }

    /// Expected throughput in MB/s of a workload between two virtual times, exact under the model.
    #[pyfunction]
    #[pyo3(signature = (system_json, workload_json, from_s=0.0, to_s=0.0))]
    fn simulated_truth(
        system_json: &str,
        workload_json: &str,
        from_s: f64,
        to_s: f64,
    ) -> PyResult<f64> {
        let system = system_of(system_json)?;
        let workload: Workload = serde_json::from_str(workload_json)
            .map_err(|error| PyValueError::new_err(format!("the workload: {error}")))?;
        workload.validate().map_err(|wrong| PyValueError::new_err(wrong.0))?;
        let (from_ns, to_ns) = (ns_from_s(from_s), ns_from_s(to_s));
        Ok(truth::expected_throughput_mb_s(&system, &workload, from_ns, to_ns))
    }

    /// Boundaries of a simulated system in `unique_bytes`, as (bytes, what ends there).
    #[pyfunction]
    fn simulated_boundaries(system_json: &str) -> PyResult<Vec<(f64, String)>> {
        let boundaries = truth::boundaries(&system_of(system_json)?);
        Ok(boundaries.into_iter().map(|boundary| (boundary.bytes, boundary.what)).collect())
    }

    /// Raises ValueError with the reason when a simulated system makes no sense.
    #[pyfunction]
    fn check_system(system_json: &str) -> PyResult<()> {
        profile_of(system_json).map(|_| ())
    }

    fn profile_of(system_json: &str) -> PyResult<Profile> {
        let value = serde_json::from_str(system_json)
            .map_err(|error| PyValueError::new_err(format!("the system is no JSON: {error}")))?;
        Profile::from_value(&value).map_err(|error| refused(&error))
    }

    fn system_of(system_json: &str) -> PyResult<SimulatedSystem> {
        match profile_of(system_json)? {
            Profile::Law(system) => Ok(*system),
            Profile::Machine(_) => Err(PyValueError::new_err(
                "a machine made of parts has no law that could be asked: its truth is a long run \
                 of it (bench/machine_truths.py)",
            )),
        }
    }

    fn refused(error: &EngineError) -> PyErr {
        PyValueError::new_err(error.message.clone())
    }

    fn serve_lines() -> i32 {
        for line in std::io::stdin().lock().split(b'\n') {
            let Ok(line) = line else { return 1 };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let mut emit = |event: &str| {
                let mut output = std::io::stdout().lock();
                let told = writeln!(output, "{event}").and_then(|()| output.flush());
                if told.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
                    // Nobody listens: measuring on would only wear out the target.
                    std::process::exit(1);
                }
            };
            line::answer_bytes(&line, &mut emit, run);
        }
        0
    }

    /// Runs a job of any kind: streams in the kernels, everything else in the engine.
    fn run(job: &Job, reporter: &mut Reporter) {
        match job {
            Job::Stream(job) => reporter.tell(|reporter| kernels::run(job, reporter)),
            other => engine::run(other, reporter),
        }
    }

    /// Dies with the parent, and of the signals that end a process; Ctrl-C is the parent's affair.
    fn live_and_die_as_a_child() {
        // SAFETY: plain system calls without pointers; the handlers are the system's own.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            libc::signal(libc::SIGTERM, libc::SIG_DFL);
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        }
    }
}
