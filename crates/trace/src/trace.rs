//! A trace that has been read.

use std::collections::BTreeMap;
use std::io::Read;

use leadline_base::replay::Steps;

use crate::bins::Bins;
use crate::digest::Digest;
use crate::digest::sample::{Reference, is_write};
use crate::digest::slices::{SIZE_BINS, Slice};
use crate::format::{Format, format_of};
use crate::hash::ByNumber;
use crate::misses::{Misses, misses_at};
use crate::order::InOrder;
use crate::readers::{self, NO_TIMES, Noted};
use crate::record::{CALLS, Refused};
use crate::replay::{Replayed, Seen, laid};
use crate::source::{Progress, Source};
use crate::told::{About, Calls, Cell, Features, Gaps, NEAR, Outstanding, Part};

/// Bins of the time between two uses of a page, in references: 3% wide.
const REUSE_BINS: Bins = Bins::per_octave(5);
/// A power of two for each bin of sizes within a cell.
const CELL_SIZES: Bins = Bins::per_octave(0);
const NS: f64 = 1e-9;

/// A trace that has been read.
#[derive(Debug)]
pub struct Trace {
    about: About,
    digest: Digest,
    steps: Option<(Steps, Replayed)>,
}

impl Trace {
    /// Reads a trace to its end.
    ///
    /// # Errors
    ///
    /// Its format is not known, it cannot be read, or no order can be told.
    pub fn read(input: impl Read, progress: Progress<'_>) -> Result<Self, Refused> {
        let (mut source, head) = Source::open(input, progress)?;
        let format = format_of(&head)?;
        drop(head);
        let mut ordered = InOrder::before(Seen::of(format));
        let noted = readers::read(format, &mut source, &mut ordered)?;
        ordered.finish()?;
        Ok(Self::of(format, ordered, noted, (source.number, source.unread)))
    }

    /// What was taken, with what is known of it; `lines` are all and those not understood.
    pub(crate) fn of(
        format: Format,
        ordered: InOrder<Seen>,
        noted: Noted,
        lines: (u64, (u64, u64)),
    ) -> Self {
        let (late, Seen { digest, requests }) = (ordered.late.0, ordered.sink);
        let untimed = !format.has_times() || noted.unseen.iter().any(|(name, _)| *name == NO_TIMES);
        let times = match digest.between_seconds {
            _ if untimed => "none",
            0 => "whole seconds",
            _ => "known",
        };
        let about = About {
            format,
            below_the_cache: format.below_the_cache(),
            times,
            processes_known: format.has_processes(),
            processes: noted.processes,
            files: noted.files,
            requests: digest.requests,
            timed: digest.timed,
            references: digest.clock,
            kept: digest.sample.references.len() as u64,
            slices: digest.slices.all.len(),
            lines: lines.0,
            unread: lines.1,
            late,
            unseen: noted.unseen.into_iter().filter(|(name, _)| *name != NO_TIMES).collect(),
            memory_bytes: digest.held.mean_bytes(),
        };
        // What cannot be made again, because too much of it overlaps, is described all the same.
        let steps = requests.and_then(|kept| laid(&kept, format, times == "known").ok());
        Self { about, digest, steps }
    }

    /// The steps with which it is made again, and what they are of; none of a long one.
    pub fn steps(&self) -> Option<&(Steps, Replayed)> {
        self.steps.as_ref()
    }

    /// What is known of the whole.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What tells each slice from the next.
    pub fn features(&self) -> Vec<Features> {
        let near = self.near();
        let slices = &self.digest.slices.all;
        let told = slices.iter().zip(near);
        told.map(|(slice, near)| {
            let old = |(share, least)| (slice.first_clock >= least).then_some(share);
            let mut pairs = near.into_iter().zip(NEAR).map(old);
            features_of(slice, std::array::from_fn(|_| pairs.next().flatten()))
        })
        .collect()
    }

    /// Of each slice the shares of references near to their page's last use.
    fn near(&self) -> Vec<[f64; NEAR.len()]> {
        let count = self.digest.slices.all.len();
        let mut counts = vec![([0_u64; NEAR.len()], 0_u64); count];
        let mut last: ByNumber<u64, u64> = ByNumber::default();
        let mut slice = 0;
        for each in &self.digest.sample.references {
            while self
                .digest
                .slices
                .all
                .get(slice + 1)
                .is_some_and(|next| each.clock >= next.first_clock)
            {
                slice += 1;
            }
            let before = last.insert(each.page, each.clock);
            let (near, all) = &mut counts[slice];
            *all += 1;
            if let Some(before) = before {
                for (count, most) in near.iter_mut().zip(NEAR) {
                    *count += u64::from(each.clock - before <= most);
                }
            }
        }
        let share = |(near, all): ([u64; NEAR.len()], u64)| {
            near.map(|each| each as f64 / all.max(1) as f64)
        };
        counts.into_iter().map(share).collect()
    }

    /// Describes the slices from one up to before another.
    ///
    /// There is at least one; places beyond the end are those of the end.
    pub fn part(&self, from: usize, to: usize) -> Part {
        let slices = &self.digest.slices.all;
        let to = to.clamp(1, slices.len().max(1));
        let from = from.min(to - 1);
        let empty = Slice::empty();
        let mut whole = slices.get(from).unwrap_or(&empty).clone();
        slices.iter().take(to).skip(from + 1).for_each(|next| whole.add(next));
        let begin_ns = slices.first().map_or(0, |first| first.first_ns);
        let end = slices.get(to).map_or(self.digest.clock, |next| next.first_clock);
        let earlier = self.references(0, whole.first_clock);
        let own = self.references(whole.first_clock, end);
        let reused = Reused::of(own, whole.first_clock, earlier);
        part_of(&whole, begin_ns, end - whole.first_clock, reused, self.digest.sample.rate())
    }

    /// Miss ratios of caches of so many pages, ascending.
    pub fn misses(&self, pages: &[u64]) -> Misses {
        let Digest { sample, clock, .. } = &self.digest;
        misses_at(&sample.references, sample.rate(), *clock, pages)
    }

    fn references(&self, from: u64, to: u64) -> &[Reference] {
        let all = &self.digest.sample.references;
        let place = |clock| all.partition_point(|each| each.clock < clock);
        &all[place(from)..place(to)]
    }
}

fn features_of(slice: &Slice, near: [Option<f64>; NEAR.len()]) -> Features {
    let requests = slice.all_requests().max(1) as f64;
    let [random_reads, reads, random_writes, writes] = slice.requests;
    let mean = |bytes: u64, count: u64| (count > 0).then(|| bytes as f64 / count as f64);
    Features {
        requests: slice.all_requests(),
        read_size: mean(slice.bytes[0] + slice.bytes[1], random_reads + reads),
        write_size: mean(slice.bytes[2] + slice.bytes[3], random_writes + writes),
        read_frac: (random_reads + reads) as f64 / requests,
        seq_frac: (reads + writes) as f64 / requests,
        syncs: slice.syncs as f64 / requests,
        near,
    }
}

fn part_of(whole: &Slice, begin_ns: u64, references: u64, reused: Reused, rate: f64) -> Part {
    let since = |ns: u64| ns.saturating_sub(begin_ns) as f64 * NS;
    let calls = whole.called.iter().zip(CALLS).filter(|(called, _)| called.calls > 0);
    Part {
        from_s: since(whole.first_ns),
        to_s: since(whole.last_ns),
        requests: whole.all_requests(),
        by_class: whole.requests,
        bytes_by_class: whole.bytes,
        used_before: reused.used_before as f64 / reused.pages.max(1) as f64,
        others_since: [0, 1].map(|write| {
            whole.others_since[write] as f64 / whole.requests[2 * write + 1].max(1) as f64
        }),
        begins: whole.begins,
        sizes: [filled(&whole.sizes[0]), filled(&whole.sizes[1])],
        timed: whole.timed.map(|called| (called.calls, called.took_ns as f64 * NS)),
        calls: calls
            .map(|(called, name)| Calls {
                name,
                calls: called.calls,
                seconds: called.took_ns as f64 * NS,
            })
            .collect(),
        syncs: whole.syncs,
        dirty_at_sync: whole.dirty_at_sync as f64 / whole.syncs.max(1) as f64,
        unplaced_bytes: whole.unplaced_bytes,
        busy_s: whole.busy_ns as f64 * NS,
        device_s: whole.device_ns as f64 * NS,
        gaps: gaps_of(whole),
        outstanding: outstanding_of(whole),
        processes: whole.processes.len(),
        rate,
        references,
        unique_pages: reused.pages as f64 / rate,
        cells: reused.cells.into_values().collect(),
        pages_by_octave: reused.by_octave,
    }
}

fn filled(counts: &[u32]) -> Vec<(u64, u64)> {
    let some = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    some.map(|(bin, count)| (SIZE_BINS.least(bin), u64::from(*count))).collect()
}

fn gaps_of(whole: &Slice) -> Gaps {
    let gaps = &whole.gaps;
    let count = gaps.count.max(1) as f64;
    let mean_s = gaps.sum_s / count;
    let variance = (gaps.squares_s2 / count - mean_s * mean_s).max(0.0);
    let variation = if mean_s > 0.0 { variance.sqrt() / mean_s } else { 0.0 };
    let (bins, overlapping) = (filled(&gaps.bins), gaps.overlapping);
    Gaps { count: gaps.count, mean_s, variation, bins, overlapping }
}

fn outstanding_of(whole: &Slice) -> Outstanding {
    let found = whole.outstanding;
    let seen = found.seen.max(1) as f64;
    let mean = found.sum / seen;
    let variance = (found.squares / seen - mean * mean).max(0.0);
    Outstanding { seen: found.seen, mean, variance, most: found.most }
}

/// How pages of a part were used again.
struct Reused {
    pages: u64,
    /// Of these, used before the part.
    used_before: u64,
    cells: BTreeMap<u64, Cell>,
    by_octave: Vec<u64>,
}

/// The last use of a page.
#[derive(Clone, Copy)]
struct Last {
    clock: u64,
    write: bool,
    /// In which cells its last new use was counted, for what continues it.
    again: bool,
    time: u64,
    /// Bit by octave: whether the page was used again so soon.
    octaves: u64,
}

impl Reused {
    fn of(references: &[Reference], begin: u64, earlier: &[Reference]) -> Self {
        let (pages, used_before) = (0, 0);
        let mut own = Self { pages, used_before, cells: BTreeMap::new(), by_octave: vec![0; 64] };
        let mut last: ByNumber<u64, Last> = ByNumber::default();
        for each in references {
            own.add(each, begin, &mut last);
        }
        own.pages = last.len() as u64;
        own.used_before =
            earlier.iter().filter(|each| last.remove(&each.page).is_some()).count() as u64;
        while own.by_octave.last() == Some(&0) {
            own.by_octave.pop();
        }
        own
    }

    fn add(&mut self, each: &Reference, begin: u64, last: &mut ByNumber<u64, Last>) {
        let write = is_write(each.class);
        let before = last.get(&each.page).copied();
        let (again, time) = match before {
            Some(before) if each.continued => (before.again, before.time),
            Some(before) => (true, each.clock - before.clock),
            None => (false, each.clock - begin),
        };
        let mut octaves = before.map_or(0, |before| before.octaves);
        if again && !each.continued {
            let octave = time.max(1).ilog2();
            if octaves & 1 << octave == 0 {
                octaves |= 1 << octave;
                self.by_octave[octave as usize] += 1;
            }
        }
        last.insert(each.page, Last { clock: each.clock, write, again, time, octaves });
        let cell = self.cell(each, again, time);
        cell.references += u64::from(!each.continued);
        cell.requests += 1.0 / f64::from(each.pages);
        cell.bytes += f64::from(each.bytes) / f64::from(each.pages);
        let after_write = again && !each.continued && before.is_some_and(|before| before.write);
        cell.after_write += u64::from(after_write);
    }

    fn cell(&mut self, each: &Reference, again: bool, time: u64) -> &mut Cell {
        let (bin, size) = (REUSE_BINS.of(time), CELL_SIZES.of(u64::from(each.bytes)));
        let place =
            u64::from(again) << 62 | (bin as u64) << 32 | u64::from(each.class) << 16 | size as u64;
        self.cells.entry(place).or_insert_with(|| Cell {
            again,
            least: REUSE_BINS.least(bin),
            beyond: REUSE_BINS.least(bin + 1),
            write: is_write(each.class),
            sequential: each.class % 2 == 1,
            size: CELL_SIZES.least(size),
            ..Cell::default()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(text: &str) -> Trace {
        Trace::read(text.as_bytes(), &mut |_| Ok(())).unwrap()
    }

    /// 40000 requests by two processes, a loop and a scan, with a sync after each hundredth.
    fn strace() -> String {
        let mut text = String::new();
        for number in 0..20_000_u64 {
            let (second, rest) = (1_700_000_000 + number / 1000, number % 1000);
            let (at, scanned) = (number % 50 * 4096, number * 8192);
            text += &format!(
                "1 {second}.{rest:03}100 pread64(3</a>, \"x\", 4096, {at}) = 4096 <0.000050>\n\
                 2 {second}.{rest:03}120 pwrite64(4</b>, \"x\", 8192, {scanned}) = 8192 <0.000100>\n"
            );
            if number % 100 == 99 {
                text += &format!(
                    "2 {second}.{rest:03}400 sync_file_range(4</b>, 0, 0, SYNC_FILE_RANGE_WRITE) = 0 \
                     <0.000000>\n"
                );
                text += &format!("2 {second}.{rest:03}500 fsync(4</b>) = 0 <0.000200>\n");
            }
        }
        text
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let trace = read(&strace());
        let slices = trace.about().slices;
        assert!(slices > 500, "{slices}");
        let whole = trace.part(0, slices);
        assert_eq!((whole.requests, whole.syncs), (40_000, 200));
        assert_eq!(whole.dirty_at_sync, 819_200.0);
        assert_eq!(whole.by_class, [20_000 - 19_600, 19_600, 1, 19_999]);
        assert!((whole.unique_pages - (50.0 + 40_000.0)).abs() < 1e-9);
        assert!(
            (whole.busy_s - 20_000.0 * 120e-6 - 200.0 * 200e-6).abs() < 1e-9,
            "{}",
            whole.busy_s
        );
        assert_eq!((whole.outstanding.most, whole.processes), (1, 2));
        let halves = [trace.part(0, slices / 2), trace.part(slices / 2, slices)];
        for (place, count) in whole.by_class.iter().enumerate() {
            assert_eq!(halves[0].by_class[place] + halves[1].by_class[place], *count);
        }
        assert_eq!(halves[0].references + halves[1].references, whole.references);
        // The second half's loop is of pages that the first used, what it scans is new.
        let pages = halves[1].unique_pages;
        assert_eq!((whole.used_before, halves[0].used_before), (0.0, 0.0));
        assert!((halves[1].used_before - 50.0 / pages).abs() < 1e-9, "{}", halves[1].used_before);
        // Each file is gone to by its own process, and others' files are none between.
        assert_eq!(whole.others_since, [0.0, 0.0]);
        // The loop goes to its first byte 400 times.
        assert_eq!(whole.begins, [400, 1]);
        let of_cells: f64 = whole.cells.iter().map(|cell| cell.requests).sum();
        assert!((of_cells - 40_000.0).abs() < 1e-6, "{of_cells}");
    }

    #[test]
    fn a_loop_comes_back_after_as_many_references_as_lie_between() {
        let whole = read(&strace()).part(0, usize::MAX);
        let again: Vec<&Cell> = whole.cells.iter().filter(|cell| cell.again).collect();
        assert!(again.iter().all(|cell| !cell.write && cell.least <= 150 && 150 < cell.beyond));
        assert_eq!(again.iter().map(|cell| cell.references).sum::<u64>(), 20_000 - 50);
    }

    #[test]
    fn pieces_of_one_page_are_one_use_of_it() {
        let text: String =
            (0..4000).map(|number| format!("{number}.5 read(3</a>, \"x\", 512) = 512\n")).collect();
        let trace = read(&text);
        let whole = trace.part(0, usize::MAX);
        assert_eq!(whole.cells.iter().map(|cell| cell.references).sum::<u64>(), 500);
        let requests: f64 = whole.cells.iter().map(|cell| cell.requests).sum();
        assert!((requests - 4000.0).abs() < 1e-9);
        let found = trace.misses(&[1, 100]);
        assert_eq!(found.points.map_lru(), [0.125, 0.125]);
        assert_eq!(trace.about().times, "known");
    }

    trait Lru {
        fn map_lru(&self) -> Vec<f64>;
    }

    impl Lru for Vec<crate::misses::Point> {
        fn map_lru(&self) -> Vec<f64> {
            self.iter().map(|point| point.lru).collect()
        }
    }

    #[test]
    fn times_in_whole_seconds_and_none_are_told_from_others() {
        let lines = |time: &str| format!("{time}pread64(3</a>, \"x\", 512, 0) = 512\n").repeat(10);
        assert_eq!(read(&lines("12:00:00 ")).about().times, "whole seconds");
        assert_eq!(read(&lines("12:00:00.25 ")).about().times, "known");
        assert_eq!(read(&lines("")).about().times, "none");
    }

    #[test]
    fn an_offset_beyond_all_files_is_refused() {
        let refused = Trace::read(&b"0,R,9000000000000000000,4096,1\n"[..], &mut |_| Ok(()));
        assert!(refused.is_err_and(|why| why.0.contains("beyond what any file holds")));
    }
}
