//! What a kernel is to the ranks: the steps that all ranks take together.

use leadline_base::error::EngineError;
use leadline_wire::event::stream::PhaseResult;
use leadline_wire::job::stream::{Io, StreamJob};

use super::answer::Answer;
use super::exchange::{Exchange, Sink, Source};
use crate::deadline::Deadline;
use crate::memory::Memory;
use crate::output::Output;
use crate::phases::{JobWatch, Moved, PhaseStart};

/// An exchange, and what it carries from and to.
pub struct Ends<'a> {
    /// The exchange.
    pub exchange: &'a mut Exchange,
    /// Where bytes come from.
    pub source: &'a mut dyn Source,
    /// Where they go.
    pub sink: &'a mut dyn Sink,
}

/// One rank of a kernel. A step that has nothing to do in a kernel does nothing.
pub trait RankKernel: Send {
    /// What this rank exchanges; none when it needs no other rank's data.
    fn ends(&mut self) -> Option<Ends<'_>>;

    /// Some of this rank's input, from which all ranks learn which keys belong to whom.
    ///
    /// # Errors
    /// The input cannot be read.
    fn sample(&mut self) -> Result<Vec<u8>, EngineError> {
        Ok(Vec::new())
    }

    /// The samples of all ranks.
    ///
    /// # Errors
    /// They make no sense, or the input cannot be read.
    fn split(&mut self, _samples: &[Vec<u8>]) -> Result<(), EngineError> {
        Ok(())
    }

    /// All ranks begin now.
    fn begin(&mut self) {}

    /// The exchange is over.
    ///
    /// # Errors
    /// What came cannot be brought to the disks.
    fn end_exchange(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Writes what is still to be written of this rank's part.
    ///
    /// # Errors
    /// The disk refuses.
    fn write(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Reads this rank's part back.
    ///
    /// # Errors
    /// It cannot be read.
    fn verify(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// What this rank found; none when nothing was asked for.
    fn answer(&self) -> Option<Answer> {
        None
    }

    /// Hands over this rank's part of the output, which has no name yet.
    fn take_output(&mut self) -> Option<Output> {
        None
    }
}

/// What a rank has of a job: its number, its memory, and its clock.
pub struct Share {
    /// The job, with the memory of one rank.
    pub job: StreamJob,
    /// This rank's number.
    pub rank: usize,
    /// How many there are.
    pub ranks: usize,
    /// This rank's memory.
    pub memory: Memory,
    /// When the job must have ended.
    pub deadline: Deadline,
    watch: JobWatch,
    phase: Option<PhaseStart>,
}

impl Share {
    /// A share of `job`, whose memory is that of one rank.
    ///
    /// # Errors
    /// No memory.
    pub fn of(job: StreamJob, rank: usize, ranks: usize) -> Result<Self, EngineError> {
        let memory = Memory::of(&job)?;
        let deadline = Deadline::of(&job);
        Ok(Self { job, rank, ranks, memory, deadline, watch: JobWatch::open(), phase: None })
    }

    /// How bytes are moved.
    #[must_use]
    pub fn io(&self) -> &Io {
        &self.job.io
    }

    /// The input's path.
    ///
    /// # Errors
    /// The job has none.
    pub fn input(&self) -> Result<&str, EngineError> {
        self.job.input.as_deref().ok_or_else(|| EngineError::fault("a kernel has no input"))
    }

    /// Makes room for this rank's parts, of which every rank has as many.
    ///
    /// # Errors
    /// There is none.
    pub fn create_output(&self, bytes: &[u64]) -> Result<Output, EngineError> {
        let none = || EngineError::fault("a kernel has no output");
        let spec = self.job.output.as_ref().ok_or_else(none)?;
        Output::create_some(spec, self.rank * bytes.len(), bytes, self.io())
    }

    /// A phase begins.
    pub fn start(&mut self, name: &'static str) {
        self.phase = Some(self.watch.begin(name));
    }

    /// The phase is over.
    ///
    /// # Errors
    /// None had begun.
    pub fn finish(&mut self, moved: Moved) -> Result<PhaseResult, EngineError> {
        let none = || EngineError::fault("a phase ended that had not begun");
        Ok(self.watch.end(self.phase.take().ok_or_else(none)?, moved, &[]))
    }

    /// Who watches the job.
    #[must_use]
    pub fn watch(&self) -> &JobWatch {
        &self.watch
    }
}
