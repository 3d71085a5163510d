//! Response times of a window, whole and in equal parts.

#![forbid(unsafe_code)]

use leadline_base::clock::s_from_ns;
use leadline_base::histogram::Histogram;
use leadline_wire::event::load::{BATCHES, Batch, LIMITS_MAX, LoadResult, ResponseMs};

const NS_PER_MS: f64 = 1e6;

/// The measured window of a trial, in nanoseconds since its load began.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// When it begins; requests due before are warm-up.
    pub from_ns: u64,
    /// When it ends.
    pub to_ns: u64,
    /// Response times above which a request is over a threshold's limit.
    pub limits: Limits,
}

/// Limits on the response time that a load is counted by, in the order asked.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// In nanoseconds; one that is not there is never exceeded.
    ns: [u64; LIMITS_MAX],
    count: usize,
}

impl Limits {
    /// These, in milliseconds; a job that was checked has no more than are counted.
    #[must_use]
    pub fn of(limits_ms: impl IntoIterator<Item = f64>) -> Self {
        let mut limits = Self { ns: [u64::MAX; LIMITS_MAX], count: 0 };
        for (place, limit_ms) in limits.ns.iter_mut().zip(limits_ms) {
            *place = (limit_ms * NS_PER_MS) as u64;
            limits.count += 1;
        }
        limits
    }
}

/// Counts what a generator sees. Recording allocates nothing.
#[derive(Clone, Debug)]
pub struct LoadTally {
    window: Window,
    part_ns: u64,
    parts: [Part; BATCHES],
    responses: Histogram,
    unanswered: u64,
    failed: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    due: u64,
    answered: u64,
    sum_ns: u64,
    over: [u64; LIMITS_MAX],
    completed: u64,
}

impl LoadTally {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(window: Window) -> Self {
        let part_ns = ((window.to_ns - window.from_ns) / BATCHES as u64).max(1);
        Self {
            window,
            part_ns,
            parts: [Part::default(); BATCHES],
            responses: Histogram::default(),
            unanswered: 0,
            failed: 0,
        }
    }

    /// Counts a request that was answered.
    #[inline]
    pub fn answered(&mut self, due_ns: u64, response_ns: u64) {
        let done_ns = due_ns.saturating_add(response_ns);
        if let Some(part) = self.part_of(done_ns) {
            self.parts[part].completed += 1;
        }
        self.counted(due_ns, response_ns);
    }

    /// Counts a request that has waited `age_ns` without an answer.
    pub fn unanswered(&mut self, due_ns: u64, age_ns: u64) {
        if self.counted(due_ns, age_ns) {
            self.unanswered += 1;
        }
    }

    /// Counts a request that was answered with an error.
    pub fn failed(&mut self, due_ns: u64) {
        if let Some(part) = self.part_of(due_ns) {
            self.parts[part].due += 1;
            self.failed += 1;
        }
    }

    /// The window ends at `to_ns`: what is due or ends later counts no more.
    pub fn cut(&mut self, to_ns: u64) {
        self.window.to_ns = to_ns.clamp(self.window.from_ns, self.window.to_ns);
    }

    /// Adds what another worker counted of the same window.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.parts.iter_mut().zip(&other.parts) {
            mine.merge(theirs);
        }
        self.responses.merge(&other.responses);
        self.unanswered += other.unanswered;
        self.failed += other.failed;
    }

    /// Mean response time so far in nanoseconds; 0 without requests.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.responses.mean_ns()
    }

    /// The answer, when the window really ended at `ended_ns`: earlier than asked when `aborted`.
    #[must_use]
    pub fn finish(&self, ended_ns: u64, aborted: bool) -> LoadResult {
        let to_ns = ended_ns.clamp(self.window.from_ns, self.window.to_ns);
        let seconds = s_from_ns(to_ns - self.window.from_ns);
        let whole = ((to_ns - self.window.from_ns) / self.part_ns).min(BATCHES as u64) as usize;
        let completed: u64 = self.parts.iter().map(|part| part.completed).sum();
        let limits = self.window.limits.count;
        LoadResult {
            seconds,
            warm_up_s: s_from_ns(self.window.from_ns),
            due: self.parts.iter().map(|part| part.due).sum(),
            unanswered: self.unanswered,
            failed: self.failed,
            completed_per_s: if seconds > 0.0 { completed as f64 / seconds } else { 0.0 },
            response_ms: self.response_ms(),
            batches: self.parts[..whole].iter().map(|part| part.document(limits)).collect(),
            aborted,
            sent_late_ms_p99: None,
        }
    }

    fn response_ms(&self) -> Option<ResponseMs> {
        if self.responses.count() == 0 {
            return None;
        }
        let ms = |quantile| self.responses.quantile_ns(quantile) / NS_PER_MS;
        Some(ResponseMs {
            mean: self.responses.mean_ns() / NS_PER_MS,
            p50: ms(0.5),
            p90: ms(0.9),
            p95: ms(0.95),
            p99: ms(0.99),
            p99_9: ms(0.999),
            max: self.responses.max_ns() as f64 / NS_PER_MS,
        })
    }

    #[inline]
    fn counted(&mut self, due_ns: u64, response_ns: u64) -> bool {
        let Some(part) = self.part_of(due_ns) else { return false };
        let part = &mut self.parts[part];
        part.due += 1;
        part.answered += 1;
        part.sum_ns = part.sum_ns.saturating_add(response_ns);
        for (over, limit_ns) in part.over.iter_mut().zip(&self.window.limits.ns) {
            *over += u64::from(response_ns > *limit_ns);
        }
        self.responses.record(response_ns);
        true
    }

    /// The part of the window a moment lies in. The last takes what does not divide evenly.
    #[inline]
    fn part_of(&self, at_ns: u64) -> Option<usize> {
        if at_ns < self.window.from_ns || at_ns >= self.window.to_ns {
            return None;
        }
        Some((((at_ns - self.window.from_ns) / self.part_ns) as usize).min(BATCHES - 1))
    }
}

impl Part {
    fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.answered += other.answered;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.completed += other.completed;
        for (mine, theirs) in self.over.iter_mut().zip(&other.over) {
            *mine += theirs;
        }
    }

    /// What is told of it, with requests over so many limits.
    fn document(&self, limits: usize) -> Batch {
        let mean_ns =
            if self.answered > 0 { self.sum_ns as f64 / self.answered as f64 } else { 0.0 };
        Batch {
            due: self.due,
            mean_ms: mean_ns / NS_PER_MS,
            over: self.over[0],
            completed: self.completed,
            also_over: self.over[1.min(limits)..limits].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const MS_NS: u64 = 1_000_000;

    fn a_minute() -> LoadTally {
        let limits = Limits::of([10.0, 3.0]);
        LoadTally::new(Window { from_ns: 5 * SECOND_NS, to_ns: 65 * SECOND_NS, limits })
    }

    #[test]
    fn a_request_counts_where_it_was_due_and_where_it_ended() {
        let mut tally = a_minute();
        tally.answered(4 * SECOND_NS, 2 * SECOND_NS); // warm-up, ends in the window
        tally.answered(6 * SECOND_NS, 4 * MS_NS);
        tally.answered(6 * SECOND_NS, 20 * MS_NS);
        tally.answered(64 * SECOND_NS, 2 * SECOND_NS); // ends after the window
        let result = tally.finish(65 * SECOND_NS, false);
        assert_eq!((result.due, result.batches.len()), (3, BATCHES));
        assert_eq!(result.batches[1].due, 2);
        assert_eq!((result.batches[1].over, &result.batches[1].also_over[..]), (1, &[2][..]));
        assert!((result.batches[1].mean_ms - 12.0).abs() < 1e-9);
        assert_eq!(result.batches[1].completed, 3);
        assert!((result.completed_per_s - 3.0 / 60.0).abs() < 1e-12);
        assert!((result.response_ms.unwrap().mean - 2024.0 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn what_two_issuers_counted_is_what_one_would_have() {
        let (mut one, mut other, mut both) = (a_minute(), a_minute(), a_minute());
        for (mine, due_s, ms) in [(true, 6, 4), (false, 7, 20), (false, 64, 2_000)] {
            let tally = if mine { &mut one } else { &mut other };
            tally.answered(due_s * SECOND_NS, ms * MS_NS);
            both.answered(due_s * SECOND_NS, ms * MS_NS);
        }
        one.unanswered(9 * SECOND_NS, SECOND_NS);
        both.unanswered(9 * SECOND_NS, SECOND_NS);
        one.merge(&other);
        assert_eq!(one.finish(65 * SECOND_NS, false), both.finish(65 * SECOND_NS, false));
        assert_eq!(one.finish(65 * SECOND_NS, false).due, 4);
    }

    #[test]
    fn without_limits_nothing_is_over_one() {
        let window = Window { limits: Limits::of([]), ..a_minute().window };
        let mut tally = LoadTally::new(window);
        tally.answered(6 * SECOND_NS, 20 * MS_NS);
        let batch = &tally.finish(65 * SECOND_NS, false).batches[1];
        assert_eq!((batch.due, batch.over, batch.also_over.len()), (1, 0, 0));
    }

    #[test]
    fn a_request_without_an_answer_counts_with_its_age() {
        let mut tally = a_minute();
        tally.unanswered(10 * SECOND_NS, 3 * SECOND_NS);
        tally.failed(10 * SECOND_NS);
        let result = tally.finish(65 * SECOND_NS, false);
        assert_eq!((result.due, result.unanswered, result.failed), (2, 1, 1));
        assert!((result.response_ms.unwrap().mean - 3000.0).abs() < 1e-6);
    }

    #[test]
    fn an_aborted_window_has_only_its_whole_parts() {
        let mut tally = a_minute();
        tally.answered(6 * SECOND_NS, 4 * MS_NS);
        let result = tally.finish(15 * SECOND_NS + MS_NS, true);
        assert_eq!(result.batches.len(), 10);
        assert!((result.seconds - 10.001).abs() < 1e-9 && result.aborted);
    }
}
