//! The workbench's belief, as Python sees it.

use leadline_stats::belief::{self, likelihood, peak, student};
use pyo3::prelude::*;

use crate::arrays::{Bytes, Floats, bytes_of, refused};

/// `leadline.studies.workbench.belief.Servers`.
#[derive(FromPyObject)]
pub struct Servers {
    capacity: Floats,
    base_s: Floats,
    variance_per_s: Floats,
    stall_rate_per_s: Floats,
    stall_s: Floats,
    variability: Floats,
    idle_power: Floats,
    wander: Floats,
    memory_s: Floats,
    between: Floats,
    retrograde: Floats,
    cold: Floats,
    warming_s: Floats,
    tail: Floats,
    slow_share: Floats,
    slow_log: Floats,
}

impl Servers {
    fn each(&self, py: Python<'_>) -> PyResult<Vec<belief::Server>> {
        let count = self.capacity.item_count();
        let doubles = |array: &Floats| {
            if array.item_count() == count { array.to_vec(py) } else { Err(refused(UNEQUAL)) }
        };
        let (capacity, base_s) = (doubles(&self.capacity)?, doubles(&self.base_s)?);
        let variance_per_s = doubles(&self.variance_per_s)?;
        let (stall_rate_per_s, stall_s) =
            (doubles(&self.stall_rate_per_s)?, doubles(&self.stall_s)?);
        let variability = doubles(&self.variability)?;
        let idle_power = doubles(&self.idle_power)?;
        let (wander, memory_s) = (doubles(&self.wander)?, doubles(&self.memory_s)?);
        let (between, retrograde) = (doubles(&self.between)?, doubles(&self.retrograde)?);
        let (cold, warming_s) = (doubles(&self.cold)?, doubles(&self.warming_s)?);
        let tail = doubles(&self.tail)?;
        let (slow_share, slow_log) = (doubles(&self.slow_share)?, doubles(&self.slow_log)?);
        let server = |at: usize| belief::Server {
            capacity: capacity[at],
            base_s: base_s[at],
            variance_per_s: variance_per_s[at],
            stall_rate_per_s: stall_rate_per_s[at],
            stall_s: stall_s[at],
            variability: variability[at],
            idle_power: idle_power[at],
            wander: wander[at],
            memory_s: memory_s[at],
            between: between[at],
            retrograde: retrograde[at],
            cold: cold[at],
            warming_s: warming_s[at],
            tail: tail[at],
            slow_share: slow_share[at],
            slow_log: slow_log[at],
        };
        Ok((0..count).map(server).collect())
    }
}

/// Why servers are refused.
const UNEQUAL: &str = "servers need as many of one number as of another";

/// `leadline.studies.workbench.belief.Aim`.
#[derive(FromPyObject)]
pub struct Aim {
    limit_s: f64,
    over_frac: Option<f64>,
    gain: f64,
}

impl From<Aim> for belief::Aim {
    fn from(aim: Aim) -> Self {
        Self { limit_s: aim.limit_s, over_frac: aim.over_frac, gain: aim.gain }
    }
}

/// `leadline.studies.workbench.belief.Part`.
#[derive(FromPyObject)]
struct Part {
    from_s: f64,
    to_s: f64,
    log_s: f64,
    count_variance: f64,
}

impl From<Part> for belief::Part {
    fn from(part: Part) -> Self {
        let Part { from_s, to_s, log_s, count_variance } = part;
        Self { from_s, to_s, log_s, count_variance }
    }
}

/// `leadline.studies.workbench.belief.Busy`.
#[derive(FromPyObject)]
struct Busy {
    from_s: f64,
    step_s: f64,
    log_rates: Floats,
}

/// `leadline.studies.workbench.belief.Reading`.
#[derive(FromPyObject)]
pub struct Reading {
    rate_per_s: f64,
    warm_up_s: f64,
    seconds: f64,
    parts: Vec<Part>,
    abort_above_s: Option<f64>,
    calm: bool,
    busy: Option<Busy>,
    overloaded: bool,
}

impl Reading {
    fn read(self, py: Python<'_>) -> PyResult<belief::Reading> {
        let busy_of = |busy: Busy| {
            let log_rates = busy.log_rates.to_vec(py)?;
            PyResult::Ok(belief::Busy { from_s: busy.from_s, step_s: busy.step_s, log_rates })
        };
        Ok(belief::Reading {
            rate_per_s: self.rate_per_s,
            warm_up_s: self.warm_up_s,
            seconds: self.seconds,
            parts: self.parts.into_iter().map(Into::into).collect(),
            abort_above_s: self.abort_above_s,
            calm: self.calm,
            busy: self.busy.map(busy_of).transpose()?,
            overloaded: self.overloaded,
        })
    }
}

/// Logarithm of a trial's probability density, for each server.
#[pyfunction]
pub fn log_likelihood(
    py: Python<'_>,
    reading: Reading,
    servers: Servers,
    aim: Aim,
) -> PyResult<Bytes> {
    let (reading, servers, aim) = (reading.read(py)?, servers.each(py)?, aim.into());
    let found = py.detach(|| likelihood::log_likelihood(&reading, &servers, &aim));
    bytes_of(py, &found)
}

/// Logarithm of the peak rate of each server.
#[pyfunction]
pub fn log_peak(
    py: Python<'_>,
    servers: Servers,
    aim: Aim,
    run_length_s: f64,
    warm_up_s: f64,
) -> PyResult<Bytes> {
    let (servers, aim) = (servers.each(py)?, aim.into());
    let found = py.detach(|| peak::log_peak(&servers, &aim, run_length_s, warm_up_s));
    bytes_of(py, &found)
}

/// Log density of Student's t with a scale, without its constant, of each residual.
#[pyfunction]
pub fn student_t_log(py: Python<'_>, residual: Floats, sd: f64) -> PyResult<Bytes> {
    let found = residual.to_vec(py)?.into_iter().map(|each| student::log_density(each, sd * sd));
    bytes_of(py, &found.collect::<Vec<f64>>())
}
