//! Stretches of the measured window that ran at different rates.
//!
//! Circular binary segmentation (Olshen, Venkatraman, Lucito and Wigler, Biostatistics 5, 2004): in
//! a stretch of the window, the interval is sought whose mean rate differs most from that of the
//! rest of the stretch; if the difference is more than chance, its ends are level shifts, and the
//! pieces are searched in turn. An interval that touches an end is a single shift, one that does not
//! is a dip or a burst, which plain binary segmentation overlooks.
//!
//! The slices are first joined into at most [`BATCHES`] batches. What is left of them once the two
//! means are taken off gives their variance and lag-one autocorrelation `r`; the difference is
//! compared with its standard error under a first-order autoregression, i.e. with
//! `n (1 − r)/(1 + r)` values in place of `n`, as in `stop`. The threshold is Student's t at that
//! size less two, at a level shared among the intervals compared; how many comparisons overlapping
//! intervals amount to was found by simulation (`tests/evidence/levels.rs`), which holds the false alarms of
//! level windows at 1%. The difference must pass three times: on the batches; on the slices, where
//! a short memory is estimated best; and on the logarithms of the batches' rates, where a few heavy
//! requests count little. The batches alone see a memory longer than a slice's.
//!
//! A difference counts only when it is also large ([`SHIFT_FRAC_MIN`]), lasts ([`LEVEL_FRAC_MIN`]),
//! and is shared by most batches of both parts: a moment of silence moves a mean as well. A steady
//! climb or fall is told as the two or three levels that come nearest to it.

#![forbid(unsafe_code)]

use leadline_base::normal::student_t;
use leadline_wire::event::measure::{Level, Slice};
use leadline_wire::finding::{Code, Finding};

/// Most batches a stretch is cut into.
pub const BATCHES: usize = 40;

/// Fewest slices of a window that is searched: with fewer, correlation cannot be told from a shift.
pub const SLICES_MIN: usize = 100;

/// Fewest slices of a piece that is searched again.
const PIECE_SLICES_MIN: usize = 40;

/// A shift below this share of the window's mean is not worth a word, however sure.
pub const SHIFT_FRAC_MIN: f64 = 0.05;

/// Shortest level, as a share of the window's slices.
pub const LEVEL_FRAC_MIN: f64 = 0.1;

/// Share of a part's batches that must lie on its own side of the middle between the two means.
const OWN_SIDE_FRAC: f64 = 0.6;

/// Added to a rate, as a share of the mean, before its logarithm is taken.
const DAMPED_ZERO: f64 = 0.1;

/// Probability of a shift by chance, divided by the number of comparisons it amounts to.
const CHANCE: f64 = 0.01 / 500.0;

/// The levels of a window, in order: one when it ran at one rate, none without slices.
///
/// `slices` are those of the window that were not stalled (see [`running`](super::stalls::running)),
/// with their `start_s`. A level reaches from the start of its first slice to the end of its last;
/// its rate is that of its slices, in MB/s.
#[must_use]
pub fn levels(slices: &[Slice]) -> Vec<Level> {
    let pieces: Vec<Piece> = slices.iter().map(Piece::of).collect();
    let mean = Piece::sum(&pieces).rate();
    let mut cuts = vec![0, slices.len()];
    if mean > 0.0 && slices.len() >= SLICES_MIN {
        let search = Search {
            pieces: &pieces,
            shortest: ((slices.len() as f64 * LEVEL_FRAC_MIN) as usize).max(2),
            least_shift: SHIFT_FRAC_MIN * mean,
        };
        search.cut(0, slices.len(), &mut cuts);
        cuts.sort_unstable();
        search.settle(&mut cuts);
    }
    cuts.windows(2).filter_map(|cut| level(&slices[cut[0]..cut[1]])).collect()
}

/// What a reader is told of several levels; none when there are fewer than two.
#[must_use]
pub fn shifted(levels: &[Level]) -> Option<Finding> {
    let (first, last) = (levels.first()?, levels.last()?);
    (levels.len() > 1).then(|| {
        let found = Finding::new(Code::LevelShift)
            .with("first_mb_s", first.throughput_mb_s)
            .with("until_s", first.start_s + first.seconds)
            .with("last_mb_s", last.throughput_mb_s);
        if levels.len() > 2 { found.with("levels", levels.len() as u64) } else { found }
    })
}

fn level(slices: &[Slice]) -> Option<Level> {
    let (first, last) = (slices.first()?, slices.last()?);
    let pieces: Vec<Piece> = slices.iter().map(Piece::of).collect();
    Some(Level {
        start_s: first.start_s,
        seconds: last.start_s + last.seconds - first.start_s,
        throughput_mb_s: Piece::sum(&pieces).rate() * 1e-6,
    })
}

/// Time and bytes of some slices.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    seconds: f64,
    bytes: f64,
}

impl Piece {
    fn of(slice: &Slice) -> Self {
        Self { seconds: slice.seconds, bytes: slice.bytes as f64 }
    }

    fn sum(pieces: &[Self]) -> Self {
        pieces.iter().fold(Self::default(), |sum, piece| sum.plus(*piece))
    }

    /// With the logarithm of its rate in place of the rate, zero included: outliers count little.
    fn damped(self, mean: f64) -> Self {
        let bytes = (self.rate() / mean + DAMPED_ZERO).ln() * self.seconds;
        Self { bytes, ..self }
    }

    fn plus(self, other: Self) -> Self {
        Self { seconds: self.seconds + other.seconds, bytes: self.bytes + other.bytes }
    }

    fn less(self, other: Self) -> Self {
        Self { seconds: self.seconds - other.seconds, bytes: self.bytes - other.bytes }
    }

    /// Bytes per second.
    fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes / self.seconds } else { 0.0 }
    }
}

/// Sum of squares that telling two parts apart explains, weighted by their time.
fn explained(one: Piece, other: Piece) -> f64 {
    let together = one.seconds + other.seconds;
    if together <= 0.0 {
        return 0.0;
    }
    one.seconds * other.seconds / together * (one.rate() - other.rate()).powi(2)
}

/// A window being cut into levels; positions are numbers of slices.
struct Search<'a> {
    pieces: &'a [Piece],
    /// Fewest slices of a level.
    shortest: usize,
    /// Smallest shift that counts, in bytes per second.
    least_shift: f64,
}

impl Search<'_> {
    /// Adds the shifts between slices `from` and `to` to `cuts`.
    fn cut(&self, from: usize, to: usize, cuts: &mut Vec<usize>) {
        if to - from < PIECE_SLICES_MIN.max(2 * self.shortest) {
            return;
        }
        let stretch = Stretch::new(&self.pieces[from..to], self.shortest);
        let Some((first, last)) = stretch.best_interval() else { return };
        if !stretch.is_shift(first, last, self.least_shift) {
            return;
        }
        let edges = [from, from + stretch.edges[first], from + stretch.edges[last], to];
        for pair in edges.windows(2).filter(|pair| pair[0] < pair[1]) {
            self.cut(pair[0], pair[1], cuts);
        }
        cuts.extend(edges[1..3].iter().filter(|edge| (from + 1..to).contains(edge)));
    }

    /// Moves each cut to the slice where it explains most, no further than a batch.
    fn settle(&self, cuts: &mut [usize]) {
        let reach = self.pieces.len().div_ceil(BATCHES);
        for index in 1..cuts.len().saturating_sub(1) {
            let (before, at, after) = (cuts[index - 1], cuts[index], cuts[index + 1]);
            let low = (before + 1).max(at.saturating_sub(reach));
            let high = (after - 1).min(at + reach);
            let score = |cut: usize| {
                explained(
                    Piece::sum(&self.pieces[before..cut]),
                    Piece::sum(&self.pieces[cut..after]),
                )
            };
            let better = |best: (usize, f64), cut: usize| {
                let found = score(cut);
                if found > best.1 { (cut, found) } else { best }
            };
            cuts[index] = (low..=high).fold((at, score(at)), better).0;
        }
    }
}

/// Part of a window in batches, with sums up to each.
struct Stretch<'a> {
    slices: &'a [Piece],
    /// First slice of each batch, and the end.
    edges: Vec<usize>,
    batches: Vec<Piece>,
    /// What lies before each edge.
    before: Vec<Piece>,
    /// Fewest batches of a level.
    shortest: usize,
}

impl<'a> Stretch<'a> {
    fn new(slices: &'a [Piece], shortest_slices: usize) -> Self {
        let number = slices.len().min(BATCHES);
        let edges: Vec<usize> = (0..=number).map(|edge| edge * slices.len() / number).collect();
        let batches: Vec<Piece> =
            edges.windows(2).map(|edge| Piece::sum(&slices[edge[0]..edge[1]])).collect();
        let mut before = vec![Piece::default()];
        let mut sum = Piece::default();
        for batch in &batches {
            sum = sum.plus(*batch);
            before.push(sum);
        }
        let shortest = (shortest_slices * number).div_ceil(slices.len()).max(2);
        Self { slices, edges, batches, before, shortest }
    }

    /// The batches of an interval, and those of the rest.
    fn parts(&self, first: usize, last: usize) -> (Piece, Piece) {
        let number = self.batches.len();
        let inside = self.before[last].less(self.before[first]);
        (inside, self.before[number].less(inside))
    }

    /// The interval of batches that differs most from the rest. Every level it makes, before it and
    /// after it as well, is long enough.
    fn best_interval(&self) -> Option<(usize, usize)> {
        let number = self.batches.len();
        let mut best: Option<(f64, usize, usize)> = None;
        let starts = std::iter::once(0).chain(self.shortest..number);
        for first in starts {
            for last in first + self.shortest..=number {
                let after = number - last;
                let whole = after == number - (last - first) && after == 0;
                if whole || (after > 0 && after < self.shortest) {
                    continue;
                }
                let (inside, rest) = self.parts(first, last);
                let found = explained(inside, rest);
                if best.is_none_or(|best| found > best.0) {
                    best = Some((found, first, last));
                }
            }
        }
        best.map(|(_, first, last)| (first, last))
    }

    /// Whether the interval's difference is large, shared and beyond chance.
    fn is_shift(&self, first: usize, last: usize, least_shift: f64) -> bool {
        let (inside, rest) = self.parts(first, last);
        let shift = inside.rate() - rest.rate();
        if shift.abs() < least_shift || !self.shared(first, last) {
            return false;
        }
        let mean = inside.plus(rest).rate();
        let damped: Vec<Piece> = self.batches.iter().map(|batch| batch.damped(mean)).collect();
        let (from, to) = (self.edges[first], self.edges[last]);
        beyond_chance(self.slices, from, to)
            && beyond_chance(&self.batches, first, last)
            && beyond_chance(&damped, first, last)
    }

    /// Whether most batches of both parts, and enough for a level, lie on their own side of the
    /// middle.
    fn shared(&self, first: usize, last: usize) -> bool {
        let (inside, rest) = self.parts(first, last);
        let middle = 0.5 * (inside.rate() + rest.rate());
        let higher = inside.rate() > rest.rate();
        let mut own = [0usize; 2];
        for (index, batch) in self.batches.iter().enumerate() {
            let within = (first..last).contains(&index);
            own[usize::from(within)] += usize::from((batch.rate() > middle) == (within == higher));
        }
        let sizes = [self.batches.len() - (last - first), last - first];
        let enough = |size: usize| (OWN_SIDE_FRAC * size as f64).max(self.shortest as f64);
        own.iter().zip(sizes).all(|(own, size)| *own as f64 >= enough(size))
    }
}

/// Whether the pieces from `first` to `last` differ from the others by more than chance.
fn beyond_chance(pieces: &[Piece], first: usize, last: usize) -> bool {
    let inside = Piece::sum(&pieces[first..last]);
    let rest = Piece::sum(&pieces[..first]).plus(Piece::sum(&pieces[last..]));
    let residual = |(index, piece): (usize, &Piece)| {
        let mean = if (first..last).contains(&index) { inside } else { rest }.rate();
        piece.seconds.sqrt() * (piece.rate() - mean)
    };
    let residuals: Vec<f64> = pieces.iter().enumerate().map(residual).collect();
    let number = residuals.len() as f64;
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    if squares <= 0.0 {
        return true;
    }
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let raw = products / squares;
    let correlation = (raw + (1.0 + 4.0 * raw) / number).clamp(0.0, 0.95);
    let thinned = (1.0 - correlation) / (1.0 + correlation);
    let freedom = number * thinned - 2.0;
    if freedom < 1.0 {
        return false;
    }
    let variance = squares / (number - 3.0);
    let distance = (explained(inside, rest) * thinned / variance).sqrt();
    distance > student_t(freedom as u32, 1.0 - CHANCE)
}
