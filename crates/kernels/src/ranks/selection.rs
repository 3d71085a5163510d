//! One rank of a scan (AD98 §4.1): its share of the input, on threads of its own. No rank needs
//! another's data.

use std::ops::Range;

use leadline_base::clock::{now_ns, s_from_ns};
use leadline_base::error::EngineError;
use leadline_base::events::Reporter;
use leadline_wire::event::stream::PhaseResult;
use leadline_wire::job::stream::Kernel;

use super::answer::{Answer, Proof};
use super::kernel::{Ends, RankKernel, Share};
use crate::data_set::Input;
use crate::output::Output;
use crate::records::{Summary, whole_records};
use crate::scan::Scan;
use crate::scan::key_range::KeyRange;
use crate::scan::verify::Verifier;

/// One rank.
pub struct ScanKernel {
    share: Share,
    input: Input,
    ranges: Vec<Range<u64>>,
    keys: KeyRange,
    verifier: Verifier,
    output: Option<Output>,
    written: Vec<u64>,
    phases: Vec<PhaseResult>,
    made: Summary,
    verify_s: f64,
}

impl ScanKernel {
    /// Opens the rank's share of the input, and parts of the output for its threads.
    ///
    /// # Errors
    /// The input holds no records, or the job no range of keys.
    pub fn new(share: Share) -> Result<Self, EngineError> {
        let Kernel::Scan { low, high } = &share.job.kernel else {
            return Err(EngineError::fault("a scan was begun that is none"));
        };
        let keys = KeyRange::parse(low, high.as_deref())?;
        let verifier = Verifier::parse(low, high.as_deref())?;
        let input = Input::open(share.input()?, share.io())?;
        whole_records(input.bytes())?;
        let threads = share.job.threads as usize;
        let mut ranges = input.portions(share.ranks * threads);
        let ranges: Vec<_> = ranges.drain(share.rank * threads..).take(threads).collect();
        let output = Some(share.create_output(&vec![0; threads])?);
        Ok(Self {
            share,
            input,
            ranges,
            keys,
            verifier,
            output,
            written: Vec::new(),
            phases: Vec::new(),
            made: Summary::default(),
            verify_s: 0.0,
        })
    }
}

impl RankKernel for ScanKernel {
    fn ends(&mut self) -> Option<Ends<'_>> {
        None
    }

    fn write(&mut self) -> Result<(), EngineError> {
        let Some(output) = self.output.take() else { return Ok(()) };
        let (io, deadline) = (*self.share.io(), self.share.deadline);
        let mut scan = Scan {
            keys: self.keys,
            io,
            deadline,
            watch: self.share.watch(),
            output,
            phases: Vec::new(),
        };
        // Ranks have nobody who listens to events.
        let mut ignore = |_: &str| {};
        let mut reporter = Reporter::new(&self.share.job.job_id, &mut ignore);
        self.written = scan.run(&self.input, &self.ranges, &self.share.memory, &mut reporter)?;
        (self.output, self.phases) = (Some(scan.output), scan.phases);
        Ok(())
    }

    fn verify(&mut self) -> Result<(), EngineError> {
        let Some(output) = &self.output else { return Ok(()) };
        let began_ns = now_ns();
        self.made = self.verifier.verify(
            (&self.input, &self.ranges),
            (&output.as_input()?, &self.written),
            &self.share.memory,
            (self.share.io(), &self.share.deadline),
        )?;
        self.verify_s = s_from_ns(now_ns() - began_ns);
        Ok(())
    }

    fn answer(&self) -> Option<Answer> {
        // The two were compared record by record.
        let (input, output) = (Box::new(self.made.clone()), Box::new(self.made.clone()));
        let proof = Proof::Records { input, output, in_order: false };
        let bytes = (self.input.bytes(), self.written.iter().sum());
        Some(Answer::of(&self.share, bytes, (1, &self.phases), (proof, self.verify_s)))
    }

    fn take_output(&mut self) -> Option<Output> {
        self.output.take()
    }
}
