//! `leadline._engine`: the thin PyO3 shim over the engine crate, and nothing else.

use pyo3::prelude::*;

/// The native module `leadline._engine`.
#[pymodule]
mod _engine {
    use std::io::{BufRead, Write};

    use leadline_engine::backend::simulated::{SimulatedSystem, truth};
    use leadline_engine::job::Workload;
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;

    /// Runs one job in this process and returns its events, one JSON document each.
    #[pyfunction]
    fn run_job(py: Python<'_>, job_json: &str) -> Vec<String> {
        py.detach(|| {
            let mut events = Vec::new();
            leadline_engine::engine::run_job(job_json, &mut |event| events.push(event.to_owned()));
            events
        })
    }

    /// Serves jobs, one JSON document per line of standard input, until it ends.
    #[pyfunction]
    fn serve(py: Python<'_>) -> i32 {
        py.detach(|| {
            leadline_engine::host::die_with_parent();
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return 1 };
                let mut broken = false;
                leadline_engine::engine::run_job(&line, &mut |event| {
                    let mut out = std::io::stdout().lock();
                    broken |= writeln!(out, "{event}").and_then(|()| out.flush()).is_err();
                });
                if broken {
                    return 1;
                }
            }
            0
        })
    }

    fn system_of(system_json: &str) -> PyResult<SimulatedSystem> {
        let value: serde_json::Value = serde_json::from_str(system_json)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        SimulatedSystem::from_value(&value)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Raises ValueError when a simulated system makes no sense.
    #[pyfunction]
    fn check_system(system_json: &str) -> PyResult<()> {
        system_of(system_json).map(|_| ())
    }

    /// Expected throughput in MB/s of a workload between two virtual times.
    #[pyfunction]
    #[pyo3(signature = (system_json, workload_json, from_s = 0.0, to_s = 0.0))]
    fn simulated_truth(
        system_json: &str,
        workload_json: &str,
        from_s: f64,
        to_s: f64,
    ) -> PyResult<f64> {
        let system = system_of(system_json)?;
        let workload: Workload = serde_json::from_str(workload_json)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let (from_ns, to_ns) = ((from_s * 1e9) as u64, (to_s * 1e9) as u64);
        Ok(truth::expected_throughput_mb_s(&system, &workload, from_ns, to_ns))
    }

    /// Borders of a simulated system: (bytes, what ends there).
    #[pyfunction]
    fn simulated_borders(system_json: &str) -> PyResult<Vec<(f64, String)>> {
        let borders = truth::borders(&system_of(system_json)?);
        Ok(borders.into_iter().map(|border| (border.bytes, border.what)).collect())
    }
}
