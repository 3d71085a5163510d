//! One rank of a sort (AD98 §4.2): records go to the rank that owns their keys, which sorts them as a
//! sort on one machine does.

use std::ops::Range;

use leadline_base::clock::{now_ns, s_from_ns};
use leadline_base::error::EngineError;
use leadline_wire::event::stream::PhaseResult;

use super::answer::{Answer, Proof};
use super::dealt::{Records, sample};
use super::exchange::{Exchange, Sink};
use super::kernel::{Ends, RankKernel, Share};
use super::splitters::Splitters;
use crate::chunks::Chunks;
use crate::data_set::Input;
use crate::output::Output;
use crate::phases::Moved;
use crate::records::{Summary, whole_records};
use crate::sort::data_set::temporary;
use crate::sort::sink::RecordSink;

/// Of the memory left beside messages: what reads ahead.
const AHEAD_SHARE: usize = 16;
/// How much more than its even share a rank expects: splitters are drawn from a sample.
const UNEVEN_SHARE: u64 = 12;

/// What a rank owns.
struct Owned(RecordSink);

impl Sink for Owned {
    fn take(&mut self, _from: usize, bytes: &[u8]) -> Result<usize, EngineError> {
        let mut taken = 0;
        while taken < bytes.len() {
            let space = self.0.space()?;
            let length = space.len().min(bytes.len() - taken);
            if length == 0 {
                break;
            }
            space[..length].copy_from_slice(&bytes[taken..taken + length]);
            self.0.filled(length)?;
            taken += length;
        }
        Ok(taken)
    }
}

/// One rank.
pub struct SortKernel {
    share: Share,
    input: Input,
    range: Range<u64>,
    exchange: Exchange,
    /// Once the splitters are known.
    source: Option<Records>,
    sink: Option<Owned>,
    output: Option<Output>,
    passes: u32,
    phases: Vec<PhaseResult>,
    made: Summary,
    verify_s: f64,
}

impl SortKernel {
    /// Opens the rank's share of the input.
    ///
    /// # Errors
    /// The input holds no records, or the memory does not do.
    pub fn new(share: Share) -> Result<Self, EngineError> {
        let input = Input::open(share.input()?, share.io())?;
        whole_records(input.bytes())?;
        let range = input.portions(share.ranks).swap_remove(share.rank);
        // Refused now, before anything is read: the name may be taken.
        let output = Some(share.create_output(&[0])?);
        let exchange = Exchange::new(&share.memory, share.memory.left(), share.rank, share.ranks)?;
        Ok(Self {
            share,
            input,
            range,
            exchange,
            source: None,
            sink: None,
            output,
            passes: 1,
            phases: Vec::new(),
            made: Summary::default(),
            verify_s: 0.0,
        })
    }
}

impl RankKernel for SortKernel {
    fn begin(&mut self) {
        self.share.start("read");
    }

    fn sample(&mut self) -> Result<Vec<u8>, EngineError> {
        sample(&self.share, &self.input, &self.range)
    }

    fn split(&mut self, samples: &[Vec<u8>]) -> Result<(), EngineError> {
        let splitters = Splitters::choose(samples, self.share.ranks)?;
        let memory_bytes = self.share.memory.left() / AHEAD_SHARE;
        let range = self.range.clone();
        let source = Records::new(&self.share, &self.input, range, memory_bytes, splitters)?;
        self.source = Some(source);
        let even = self.input.bytes() / self.share.ranks as u64;
        let memory = (&self.share.memory, self.share.memory.largest());
        let scratch = temporary(&self.share.job);
        self.sink = Some(Owned(RecordSink::new(
            memory,
            even + even / UNEVEN_SHARE,
            self.share.job.threads,
            (&scratch, self.share.io()),
            self.share.deadline,
        )?));
        Ok(())
    }

    fn ends(&mut self) -> Option<Ends<'_>> {
        let (source, sink) = (self.source.as_mut()?, self.sink.as_mut()?);
        Some(Ends { exchange: &mut self.exchange, source, sink })
    }

    fn end_exchange(&mut self) -> Result<(), EngineError> {
        let (Some(source), Some(Owned(sink))) = (&self.source, &mut self.sink) else {
            return Ok(());
        };
        let spilled = sink.seal()?;
        let moved = Moved {
            bytes_read: source.bytes_read(),
            bytes_written: spilled.bytes_written,
            copied_bytes: source.copied_bytes() + self.exchange.copied_bytes + spilled.copied_bytes,
            network_sent_bytes: self.exchange.sent_bytes,
            network_received_bytes: self.exchange.received_bytes,
        };
        self.passes = sink.passes();
        let mut phase = self.share.finish(moved)?;
        if self.passes > 1 {
            "runs".clone_into(&mut phase.name);
        }
        self.phases.push(phase);
        Ok(())
    }

    fn write(&mut self) -> Result<(), EngineError> {
        let (Some(Owned(sink)), Some(output)) = (self.sink.take(), &mut self.output) else {
            return Ok(());
        };
        self.share.start(if self.passes > 1 { "merge" } else { "write" });
        output.set_len(0, sink.bytes())?;
        let written = sink.write(&*output)?;
        self.phases.push(self.share.finish(written.moved)?);
        Ok(())
    }

    fn verify(&mut self) -> Result<(), EngineError> {
        let Some(output) = &self.output else { return Ok(()) };
        let began_ns = now_ns();
        let written = output.as_input()?;
        let whole = 0..written.bytes();
        let mut chunks = Chunks::new(&written, whole, &self.share.memory, self.share.io())?;
        while let Some((_, bytes)) = chunks.next()? {
            self.share.deadline.check()?;
            self.made.add(bytes)?;
        }
        self.verify_s = s_from_ns(now_ns() - began_ns);
        Ok(())
    }

    fn answer(&self) -> Option<Answer> {
        let seen = &self.source.as_ref()?.seen;
        let (input, output) = (Box::new(seen.clone()), Box::new(self.made.clone()));
        let proof = Proof::Records { input, output, in_order: true };
        let bytes = (self.input.bytes(), self.output.as_ref()?.bytes());
        Some(Answer::of(&self.share, bytes, (self.passes, &self.phases), (proof, self.verify_s)))
    }

    fn take_output(&mut self) -> Option<Output> {
        self.output.take()
    }
}
