//! One rank of a job, from its beginning to the name of its part.

use leadline_base::error::EngineError;
use leadline_wire::event::Event;
use leadline_wire::job::Job;
use leadline_wire::job::stream::{Kernel, StreamJob};

use super::answer::{Answer, merge};
use super::blocks::TransposeKernel;
use super::kernel::{Ends, RankKernel, Share};
use super::network::NetworkKernel;
use super::selection::ScanKernel;
use super::sorted::SortKernel;
use crate::layout::{Layout, LayoutPart};
use crate::output::NamedParts;
use crate::run::keep_input;
use crate::transpose::shape::Shape;

/// One rank.
pub struct Rank {
    kernel: Box<dyn RankKernel>,
    named: Option<NamedParts>,
    replace: bool,
}

impl Rank {
    /// A rank of the job in `job_json`, whose memory is that of one rank.
    ///
    /// # Errors
    /// The job cannot be begun.
    pub fn new(job_json: &str, rank: usize, ranks: usize) -> Result<Self, EngineError> {
        let job = streaming(job_json)?;
        keep_input(&job)?;
        let replace = job.output.as_ref().is_some_and(|output| output.replace);
        let name = job.kernel.name();
        let share = |job| Share::of(job, rank, ranks);
        let kernel: Box<dyn RankKernel> = match job.kernel {
            Kernel::Scan { .. } => Box::new(ScanKernel::new(share(job)?)?),
            Kernel::Sort {} => Box::new(SortKernel::new(share(job)?)?),
            Kernel::Transpose { rows, columns } => {
                Box::new(TransposeKernel::new(share(job)?, Shape { rows, columns })?)
            }
            _ => {
                return Err(EngineError::bad_job(format!(
                    "{name} does not run on several ranks; start it without mpirun or srun"
                )));
            }
        };
        Ok(Self { kernel, named: None, replace })
    }

    /// A rank that only tries the network, with `bytes_each` from every rank.
    ///
    /// # Errors
    /// No memory.
    pub fn network(rank: usize, ranks: usize, bytes_each: u64) -> Result<Self, EngineError> {
        let kernel = Box::new(NetworkKernel::new(rank, ranks, bytes_each)?);
        Ok(Self { kernel, named: None, replace: false })
    }

    /// The kernel's exchange, if it has one.
    pub fn ends(&mut self) -> Option<Ends<'_>> {
        self.kernel.ends()
    }

    /// The steps of the kernel.
    pub fn kernel(&mut self) -> &mut dyn RankKernel {
        &mut *self.kernel
    }

    /// What came of the exchange, on this rank.
    ///
    /// # Errors
    /// Why this rank gave up, or what the kernel makes of the end.
    pub fn end_exchange(&mut self) -> Result<(), EngineError> {
        let Some(ends) = self.kernel.ends() else { return Ok(()) };
        if let Some(error) = ends.exchange.failure() {
            return Err(error);
        }
        // Another rank has failed and says so; there is nothing to end here.
        if ends.exchange.has_failed() { Ok(()) } else { self.kernel.end_exchange() }
    }

    /// This rank's answer, for [`merged`].
    ///
    /// # Errors
    /// It has none.
    pub fn answer(&self) -> Result<String, EngineError> {
        let none = || EngineError::fault("a rank was asked for an answer that it has not");
        to_text(&self.kernel.answer().ok_or_else(none)?)
    }

    /// Names the files of this rank's part, and tells them. They are removed again unless
    /// [`Self::publish`] or [`Self::keep`] follows.
    ///
    /// # Errors
    /// They cannot be named.
    pub fn link(&mut self) -> Result<(String, Vec<String>), EngineError> {
        let none = || EngineError::fault("a rank was asked for a part that it has not");
        let named = self.kernel.take_output().ok_or_else(none)?.name_parts()?;
        let files = named.parts().iter().flat_map(|part| &part.files);
        let files = files.map(|file| file.to_string_lossy().into_owned()).collect();
        let text = to_text(&named.parts().to_vec())?;
        self.named = Some(named);
        Ok((text, files))
    }

    /// Writes the layout of the parts of all ranks, in their order: the data set is there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn publish(&mut self, parts: &[String]) -> Result<(), EngineError> {
        let parts: Vec<Vec<LayoutPart>> =
            parts.iter().map(|text| of_text(text)).collect::<Result<_, _>>()?;
        let layout = Layout::new(parts.into_iter().flatten().collect());
        self.named.take().map_or(Ok(()), |named| named.publish_as(&layout, self.replace))
    }

    /// Leaves this rank's files where they are: the layout names them.
    pub fn keep(&mut self) {
        if let Some(named) = self.named.take() {
            named.keep();
        }
    }
}

/// The result of all ranks of a job, from their answers in order.
///
/// # Errors
/// The output is wrong, or an answer cannot be read.
pub fn merged(job_json: &str, answers: &[String]) -> Result<String, EngineError> {
    let job = streaming(job_json)?;
    let answers: Vec<Answer> =
        answers.iter().map(|text| of_text(text)).collect::<Result<_, _>>()?;
    Ok(Event::from(merge(&job, &answers)?).line())
}

/// The streaming job in a text.
fn streaming(text: &str) -> Result<StreamJob, EngineError> {
    match Job::read(text)? {
        Job::Stream(job) => Ok(*job),
        _ => Err(EngineError::bad_job("ranks run streaming jobs alone; this is another kind")),
    }
}

fn to_text(document: &impl serde::Serialize) -> Result<String, EngineError> {
    serde_json::to_string(document)
        .map_err(|error| EngineError::fault(format!("a rank's answer cannot be written: {error}")))
}

fn of_text<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, EngineError> {
    serde_json::from_str(text)
        .map_err(|error| EngineError::fault(format!("a rank's answer cannot be read: {error}")))
}
