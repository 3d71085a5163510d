//! The requests of one worker when a job has several streams that share its data.
//!
//! Which stream the next request is of is drawn by their weights, its size by the stream's own
//! histogram, and its place as the stream says. Every worker draws by itself; what walks through
//! its data (a loop, data used once) does so in a part of its own, or else several workers would
//! use again sooner what one of them has just used.

use leadline_base::error::EngineError;
use leadline_wire::job::measure::MeasureJob;
use leadline_wire::job::streams::{Places, StreamAsked};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::access::shares::{Histogram, Shares, check_granules};
use crate::access::spread::scattering_stride;
use crate::access::stream::{Chance, Draw, place, sub_seed};
use leadline_base::request::{Kind, Request};

mod pieces;

use self::pieces::{PieceWalk, Step};

/// Streams of a mixture draw from generators of their own: the job's seed xor this.
const MIXTURE: u64 = 0x4d_49_58_54;

/// The endless requests of one worker of a job with several streams.
#[derive(Clone, Debug)]
pub struct MixedStream {
    random: Xoshiro256PlusPlus,
    granule_bytes: u64,
    which: Shares,
    streams: Vec<One>,
}

/// One of its streams. Space is counted in granules.
#[derive(Clone, Debug)]
struct One {
    reads: Chance,
    sizes: Histogram,
    walk: Walk,
    rounds: u64,
}

/// Where a stream's next request goes; all starts are counted from the beginning of the data.
#[derive(Clone, Debug)]
enum Walk {
    Uniform { first: u64, granules: u64, sequentials: Chance, next: u64 },
    InOrder { first: u64, end: u64, next: u64 },
    Scattered { slots: Slots, end: u64 },
    Pieces(PieceWalk),
    Moving { first: u64, end: u64, window: u64, from: u64, fresh_frac: f64, carried: f64 },
}

/// Equal parts of the data, in an order that visits all of them, and then again.
#[derive(Clone, Debug)]
struct Slots {
    first: u64,
    slot: u64,
    number: u64,
    stride: u64,
    turn: u64,
}

impl Slots {
    fn new(first: u64, end: u64, slot: u64) -> Self {
        let number = ((end - first) / slot).max(1);
        Self { first, slot, number, stride: scattering_stride(number), turn: 0 }
    }

    /// Where the next begins.
    #[inline]
    fn take(&mut self, rounds: &mut u64) -> u64 {
        let start = self.first + self.turn * self.slot;
        self.turn = (self.turn + self.stride) % self.number;
        *rounds += u64::from(self.turn == 0);
        start
    }
}

impl MixedStream {
    /// The requests of process `process` (from 0) under `seed`, in multiples of `granule_bytes`.
    ///
    /// # Errors
    /// `BadJob` when a size is no multiple of the target's smallest transfer.
    pub fn new(
        job: &MeasureJob,
        granule_bytes: u64,
        seed: u64,
        process: u32,
    ) -> Result<Self, EngineError> {
        for (at, stream) in job.streams.iter().enumerate() {
            check_granules(&format!("streams[{at}]"), &stream.sizes, granule_bytes)?;
            check_room(at, stream, granule_bytes)?;
        }
        let part = Part { process: u64::from(process), of: u64::from(job.workload.process_num) };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(sub_seed(seed ^ MIXTURE, process));
        let one = |stream| One::new(stream, granule_bytes, part, &mut random);
        let streams: Vec<One> = job.streams.iter().map(one).collect();
        let which = Shares::new(job.streams.iter().map(|stream| stream.weight));
        Ok(Self { random, granule_bytes, which, streams })
    }

    /// How often each stream began its data anew.
    pub fn rounds(&self) -> impl Iterator<Item = u64> + '_ {
        self.streams.iter().map(|stream| stream.rounds)
    }
}

/// The longest request of any stream.
#[must_use]
pub fn longest_bytes(streams: &[StreamAsked]) -> u64 {
    streams.iter().flat_map(|stream| &stream.sizes).map(|size| size.bytes).max().unwrap_or(0)
}

/// Its data, in whole granules, have room for its longest request.
fn check_room(at: usize, stream: &StreamAsked, granule_bytes: u64) -> Result<(), EngineError> {
    let (first, end) = granules_of(stream, granule_bytes);
    let longest = longest_bytes(std::slice::from_ref(stream)) / granule_bytes;
    if first + longest.max(1) <= end {
        return Ok(());
    }
    Err(EngineError::bad_job(format!(
        "streams[{at}] has {} bytes of data from byte {}; whole blocks of {granule_bytes} bytes, the \
         smallest transfer of this target, leave no room for its longest request",
        stream.unique_bytes, stream.from_bytes
    )))
}

/// Where a stream's data begin and end.
fn granules_of(stream: &StreamAsked, granule_bytes: u64) -> (u64, u64) {
    let end = (stream.from_bytes + stream.unique_bytes) / granule_bytes;
    (stream.from_bytes.div_ceil(granule_bytes), end)
}

impl Draw for MixedStream {
    const MIXED: bool = true;

    #[inline]
    fn draw(&mut self) -> Request {
        let which = self.which.draw(&mut self.random);
        let stream = &mut self.streams[which];
        let read = stream.reads.happens(&mut self.random);
        let step = stream.step(&mut self.random);
        Request {
            offset_bytes: step.start * self.granule_bytes,
            length_bytes: step.length * self.granule_bytes,
            kind: if read { Kind::Read } else { Kind::Write },
            sequential: step.goes_on,
            stream: which as u16,
            piece_end_bytes: step.piece_end * self.granule_bytes,
        }
    }

    fn count_rounds(&self, rounds: &mut dyn FnMut(usize, u64)) {
        self.rounds().enumerate().for_each(|(stream, count)| rounds(stream, count));
    }
}

/// One worker of several.
#[derive(Clone, Copy, Debug)]
struct Part {
    process: u64,
    of: u64,
}

impl One {
    fn new(
        asked: &StreamAsked,
        granule_bytes: u64,
        part: Part,
        random: &mut Xoshiro256PlusPlus,
    ) -> Self {
        let sizes = Histogram::new(&asked.sizes, granule_bytes);
        let walk = Walk::new(asked, &sizes, granule_bytes, part, random);
        Self { reads: Chance::new(asked.read_frac), sizes, walk, rounds: 0 }
    }

    #[inline]
    fn step(&mut self, random: &mut Xoshiro256PlusPlus) -> Step {
        if let Walk::Pieces(pieces) = &mut self.walk {
            return pieces.next(random, &self.sizes, &mut self.rounds);
        }
        let length = self.sizes.draw(random);
        let (start, goes_on) = self.walk.next(random, length, &mut self.rounds);
        Step { start, length, goes_on, piece_end: 0 }
    }
}

impl Walk {
    fn new(
        asked: &StreamAsked,
        sizes: &Histogram,
        granule_bytes: u64,
        part: Part,
        random: &mut Xoshiro256PlusPlus,
    ) -> Self {
        let (first, end) = granules_of(asked, granule_bytes);
        let longest = sizes.longest().max(1);
        let mean = sizes.mean();
        match asked.places {
            Places::Uniform { seq_frac } => {
                let granules = end - first;
                let next = place(random, granules, longest);
                Self::Uniform { first, granules, sequentials: Chance::new(seq_frac), next }
            }
            Places::Loop { scattered, pieces } | Places::Once { scattered, pieces } => {
                let (first, end) = part.of_data(first, end, longest);
                match pieces {
                    Some(pieces) => Self::Pieces(PieceWalk::new(
                        (first, end),
                        pieces,
                        granule_bytes,
                        (mean, longest),
                    )),
                    None if scattered => {
                        let slots = Slots::new(first, end, (mean.ceil() as u64).max(1));
                        Self::Scattered { slots, end }
                    }
                    None => Self::InOrder { first, end, next: first },
                }
            }
            Places::Moving { window_bytes, fresh_frac } => Self::Moving {
                first,
                end,
                window: (window_bytes / granule_bytes).max(longest).min(end - first),
                from: first,
                fresh_frac,
                carried: 0.0,
            },
        }
    }

    /// Where the next request of this length begins, and whether it goes on from the last.
    #[inline]
    fn next(
        &mut self,
        random: &mut Xoshiro256PlusPlus,
        length: u64,
        rounds: &mut u64,
    ) -> (u64, bool) {
        match self {
            Self::Uniform { first, granules, sequentials, next } => {
                let sequential = sequentials.happens(random);
                let start = match sequential {
                    false => place(random, *granules, length),
                    true if *next + length <= *granules => *next,
                    true => 0,
                };
                *next = start + length;
                (*first + start, sequential)
            }
            Self::InOrder { first, end, next } => {
                let goes_on = *next + length <= *end;
                let start = if goes_on { *next } else { *first };
                *rounds += u64::from(!goes_on);
                *next = start + length;
                (start, goes_on)
            }
            // Places are as many as requests of the mean length have room.
            Self::Scattered { slots, end } => (slots.take(rounds).min(*end - length), false),
            // Their requests have lengths of their own.
            Self::Pieces(_) => (0, false),
            Self::Moving { first, end, window, from, fresh_frac, carried } => {
                let start = *from + place(random, *window, length);
                *carried += length as f64 * *fresh_frac;
                let on = *carried as u64;
                *carried -= on as f64;
                *from += on;
                if *from + *window > *end {
                    *from = *first;
                    *rounds += 1;
                }
                (start, false)
            }
        }
    }
}

impl Part {
    /// The part of the data from `first` to `end` that this worker walks through: its own, or all
    /// of it where the parts would be shorter than a request.
    fn of_data(self, first: u64, end: u64, longest: u64) -> (u64, u64) {
        let each = (end - first) / self.of;
        if each < longest {
            return (first, end);
        }
        (first + self.process * each, first + (self.process + 1) * each)
    }
}

#[cfg(test)]
mod tests;
