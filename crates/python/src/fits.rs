//! Fits of many curves, as Python sees them.

use leadline_stats::readings::{self, Fits, Readings};
use leadline_stats::shape::Shape;
use leadline_stats::{model, refine as refining, start};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Bytes, Floats, bytes_of, refused};

/// Codes of shapes, (fits, levels).
type Codes = PyBuffer<i64>;

/// `leadline.stats.hierarchy.CurveReadings`.
#[derive(FromPyObject)]
pub struct Curve {
    x: Floats,
    y: Floats,
    weight: Floats,
    slope_penalty: (f64, f64),
    huber_scale: f64,
    centre_low: f64,
    centre_high: f64,
    middle: f64,
}

impl Curve {
    fn readings(&self, py: Python<'_>, fits: usize) -> PyResult<Readings> {
        let found = Readings {
            x: self.x.to_vec(py)?,
            y: self.y.to_vec(py)?,
            weight: self.weight.to_vec(py)?,
            slope_penalty: self.slope_penalty.into(),
            huber_scale: self.huber_scale,
            centre_low: self.centre_low,
            centre_high: self.centre_high,
            middle: self.middle,
        };
        found.check(fits).map_err(refused)?;
        Ok(found)
    }
}

/// Improves fits; their parameters and costs then.
#[pyfunction]
pub fn refine(
    py: Python<'_>,
    data: Curve,
    codes: Codes,
    theta: Floats,
    iterations: usize,
) -> PyResult<(Bytes, Bytes)> {
    let (levels, shapes) = shapes_of(py, &codes)?;
    let rows = rows_of(py, &theta, model::parameters(levels), shapes.len() / levels)?;
    let readings = data.readings(py, shapes.len() / levels)?;
    let mut fits = Fits { shapes, theta: rows, cost: Vec::new() };
    py.detach(|| refining::refine(&readings, levels, &mut fits, iterations)).map_err(refused)?;
    Ok((bytes_of(py, &fits.theta)?, bytes_of(py, &fits.cost)?))
}

/// Solves for the heights of fits at given boundaries; which of them are good, their parameters and
/// costs.
#[pyfunction]
pub fn start_fits(
    py: Python<'_>,
    data: Curve,
    centres: Floats,
    codes: Codes,
) -> PyResult<(Vec<usize>, Bytes, Bytes)> {
    let (levels, shapes) = shapes_of(py, &codes)?;
    let centres = rows_of(py, &centres, levels, shapes.len() / levels)?;
    let readings = data.readings(py, 1)?;
    let started = py.detach(|| start::start_fits(&readings, levels, &centres, &shapes));
    let (kept, fits) = started.map_err(refused)?;
    Ok((kept, bytes_of(py, &fits.theta)?, bytes_of(py, &fits.cost)?))
}

/// ln time of fits, (fits, readings), and its derivatives, (fits, parameters, readings).
#[pyfunction]
pub fn ln_time(
    py: Python<'_>,
    x: Floats,
    middle: f64,
    codes: Codes,
    theta: Floats,
) -> PyResult<(Bytes, Bytes)> {
    let (levels, shapes) = shapes_of(py, &codes)?;
    let rows = rows_of(py, &theta, model::parameters(levels), shapes.len() / levels)?;
    let found = model::ln_time(&x.to_vec(py)?, middle, levels, &shapes, &rows);
    let (fitted, jacobian) = found.map_err(refused)?;
    Ok((bytes_of(py, &fitted)?, bytes_of(py, &jacobian)?))
}

/// 1 - h of each level of each fit at each x, (fits, levels, readings).
#[pyfunction]
pub fn miss_ratio(
    py: Python<'_>,
    x: Floats,
    centres: Floats,
    ln_widths: Floats,
    codes: Codes,
) -> PyResult<Bytes> {
    let (levels, shapes) = shapes_of(py, &codes)?;
    let centres = rows_of(py, &centres, levels, shapes.len() / levels)?;
    let ln_widths = rows_of(py, &ln_widths, levels, shapes.len() / levels)?;
    let x = x.to_vec(py)?;
    let mut found = Vec::with_capacity(shapes.len() * x.len());
    for ((shape, centre), ln_width) in shapes.iter().zip(centres).zip(ln_widths) {
        found.extend(x.iter().map(|x| shape.miss(x - centre, (-ln_width).exp()).ratio));
    }
    bytes_of(py, &found)
}

/// What each residual costs.
#[pyfunction]
pub fn huber(py: Python<'_>, residual: Floats, scale: f64) -> PyResult<Bytes> {
    let found = residual.to_vec(py)?.into_iter().map(|residual| readings::huber(residual, scale));
    bytes_of(py, &found.collect::<Vec<f64>>())
}

/// How many levels each fit has, and the shapes of all.
fn shapes_of(py: Python<'_>, codes: &Codes) -> PyResult<(usize, Vec<Shape>)> {
    let &[_, levels] = codes.shape() else {
        return Err(PyValueError::new_err("codes are needed as (fits, levels)"));
    };
    if levels == 0 {
        return Err(PyValueError::new_err("a hierarchy has a boundary"));
    }
    let shape_of = |code: i64| {
        let unknown = || PyValueError::new_err(format!("no shape has the code {code}"));
        Shape::of_code(code).ok_or_else(unknown)
    };
    let shapes = codes.to_vec(py)?.into_iter().map(shape_of).collect::<PyResult<_>>()?;
    Ok((levels, shapes))
}

/// A row of so many values for each fit.
fn rows_of(py: Python<'_>, array: &Floats, wide: usize, fits: usize) -> PyResult<Vec<f64>> {
    if array.shape() != [fits, wide] {
        let (found, wanted) = (array.shape(), [fits, wide]);
        return Err(PyValueError::new_err(format!("an array is {found:?}, not {wanted:?}")));
    }
    array.to_vec(py)
}
