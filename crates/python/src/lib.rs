//! `leadline._engine`: the thin PyO3 shim over the other crates, and nothing else.

mod arrays;
mod belief;
mod fits;
mod rank;

use pyo3::prelude::*;

/// The native module `leadline._engine`.
#[pymodule]
mod _engine {
    use std::io::{BufRead, ErrorKind, Write};

    use leadline_engine::backend::simulated::{Profile, SimulatedSystem, truth};
    use leadline_engine::clock::ns_from_s;
    use leadline_engine::engine;
    use leadline_engine::error::EngineError;
    use leadline_engine::job::Job;
    use leadline_engine::load::simulated::Simulated;
    use leadline_engine::load::simulated_server::TrialOrder;
    use leadline_engine::wire::job::Workload;
    use leadline_engine::wire::text::Text;
    use leadline_kernels::job as stream;
    use leadline_kernels::run;
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use serde::de::DeserializeOwned;

    #[pymodule_export]
    use crate::belief::{log_likelihood, log_peak, student_t_log};
    #[pymodule_export]
    use crate::fits::{huber, ln_time, miss_ratio, refine, start_fits};
    #[pymodule_export]
    use crate::rank::{Rank, merge_ranks};

    /// How the engine was built; a debug build measures itself.
    #[pymodule_export]
    const BUILD: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

    /// Most borders of a hierarchy.
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

    /// Runs one job of a null or simulated target in this process and returns its event lines.
    #[pyfunction]
    fn run_job(py: Python<'_>, job_json: &str) -> PyResult<Vec<String>> {
        let text = Text::new(job_json);
        let job = Job::read(&text);
        let in_the_child = job.as_ref().is_ok_and(Job::measures_a_real_target);
        if in_the_child || text.kind() == Some(stream::KIND) {
            return Err(PyValueError::new_err(
                "a real target is measured in the engine child (serve), never in this process",
            ));
        }
        Ok(py.detach(|| {
            let mut lines = Vec::new();
            engine::answer(&text, job, &mut |line| lines.push(line.to_owned()), engine::run);
            lines
        }))
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
        workload.validate().map_err(|error| refused(&error))?;
        let (from_ns, to_ns) = (ns_from_s(from_s), ns_from_s(to_s));
        Ok(truth::expected_throughput_mb_s(&system, &workload, from_ns, to_ns))
    }

    /// Borders of a simulated system in `unique_bytes`, as (bytes, what ends there).
    #[pyfunction]
    fn simulated_borders(system_json: &str) -> PyResult<Vec<(f64, String)>> {
        let borders = truth::borders(&system_of(system_json)?);
        Ok(borders.into_iter().map(|border| (border.bytes, border.what)).collect())
    }

    /// Raises ValueError with the reason when a simulated system makes no sense.
    #[pyfunction]
    fn check_system(system_json: &str) -> PyResult<()> {
        profile_of(system_json).map(|_| ())
    }

    /// Runs one trial of a simulated server in virtual time; its `LoadResult`.
    #[pyfunction]
    fn simulate_trial(py: Python<'_>, server_json: &str, order_json: &str) -> PyResult<String> {
        let server = Simulated::read(server_json).map_err(|error| refused(&error))?;
        let order: TrialOrder = parsed("the trial", order_json)?;
        let result = py.detach(|| server.run(&order)).map_err(|error| refused(&error))?;
        serde_json::to_string(&result).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn parsed<T: DeserializeOwned>(what: &str, json: &str) -> PyResult<T> {
        serde_json::from_str(json)
            .map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
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
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return 1 };
            if line.trim().is_empty() {
                continue;
            }
            run::run_job(&line, &mut |event| {
                let mut output = std::io::stdout().lock();
                let told = writeln!(output, "{event}").and_then(|()| output.flush());
                if told.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
                    // Nobody listens: measuring on would only wear out the target.
                    std::process::exit(1);
                }
            });
        }
        0
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
