//! Blocks from row-major into column-major order (AD98 §4.3), in memory and out of core.
//!
//! Threads read pieces of a tile and copy its blocks to where the output has them; then they write
//! the tile's memory in consecutive pieces. A matrix that fits the memory is one tile, and reading
//! and writing are phases apart; of one that does not, the next tile is read while one is written.

pub mod fingerprint;
pub mod plan;
pub mod reader;
pub mod shape;
pub mod slots;
mod tiles;
mod verify;

use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_wire::event::stream::StreamResult;
use leadline_wire::job::stream::{Kernel, StreamJob};

use crate::data_set::Input;
use crate::deadline::Deadline;
use crate::memory::Memory;
use crate::output::Output;
use crate::phases::JobWatch;
use shape::Shape;
use tiles::Tiles;

/// Length of a block.
pub const BLOCK_BYTES: usize = 4096;

/// Runs a transpose.
///
/// # Errors
/// `BadJob` when shape or memory do not fit the input, `Target` when input or output refuse, `Io`
/// when moving bytes fails or the output is found wrong; then it has no name.
pub fn run(job: &StreamJob, reporter: &mut Reporter) -> Result<StreamResult, EngineError> {
    let (Kernel::Transpose { rows, columns }, Some(path), Some(spec)) =
        (&job.kernel, &job.input, &job.output)
    else {
        return Err(EngineError::bad_job("a transpose needs an input, an output and a shape"));
    };
    let (shape, io, threads) = (Shape { rows: *rows, columns: *columns }, &job.io, job.threads);
    let deadline = Deadline::of(job);
    let watch = JobWatch::open();
    let input = Input::open(path, io)?;
    shape.must_be_of(input.bytes())?;
    let output = Output::create(spec, input.bytes(), io)?;
    let memory = Memory::of(job)?;
    reporter.phase(Phase::Measure, watch.elapsed_ns());
    let mut tiles = Tiles::plan(shape, threads as usize, &memory, io, deadline)?;
    let phases = tiles.run(&input, &output, &watch, reporter)?;

    let mut result = StreamResult::new(job);
    (result.bytes_in, result.bytes_out) = (input.bytes(), output.bytes());
    watch.settle(phases, &mut result);
    reporter.phase(Phase::Drain, watch.elapsed_ns());
    let verification = watch.start("verify");
    let work = verify::Work { shape, threads: threads as usize, memory: &memory, io, deadline };
    work.verify(&input, &output.as_input()?)?;
    result.verify_s = verification.elapsed_s();
    result.verified = true;
    output.publish()?;
    Ok(result)
}
