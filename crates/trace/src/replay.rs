//! The steps with which a trace is made again.
//!
//! Requests that followed one another in the trace follow one another in a lane; those that overlapped
//! are of several lanes. A lane is a process's while that has requests, and then another's. What came
//! after another lane's step on the same file waits for it: reads for the write that ended last before
//! they began, writes and syncs for the write or sync (the order of a resource: Weiss et al., "ROOT:
//! Replaying Multithreaded Traces with Resource-Oriented Ordering", SOSP 2013). A file is as long
//! before the first step as the trace says; where it does not, as far as something is read of it, or
//! written behind its end, that was not written before.

use std::io::Read;

use leadline_base::replay::{ALL_FILES, Act, FILES_MAX, FOLDER, LANES_MAX, STEPS_MAX, Step, Steps};
use serde::Serialize;

use crate::digest::{Digest, Held};
use crate::format::{Format, format_of};
use crate::hash::ByNumber;
use crate::order::InOrder;
use crate::readers::{self, NO_TIMES};
use crate::record::{CALLS, Deed, NO_FILE, Record, Refused, Sink, UNKNOWN};
use crate::removals::Removals;
use crate::source::{Progress, Source};

const NS: f64 = 1e-9;

/// What the steps are of.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// By what is in it.
    pub format: Format,
    /// Reads, writes and waits for the device.
    pub requests: [u64; 3],
    /// Bytes read, and written.
    pub bytes: [u64; 2],
    /// Requests that go on where the last of their file and lane ended.
    pub sequential: u64,
    /// Files, and how long they are at the end, all together.
    pub files: u64,
    /// Bytes of the files at the end.
    pub files_bytes: u64,
    /// Of these, bytes that are there before.
    pub initial_bytes: u64,
    /// Requests at a time at most.
    pub lanes: u16,
    /// Whether the trace says when requests began.
    pub times: bool,
    /// Seconds from the first request's beginning to the last one's end; none without times.
    pub span_s: Option<f64>,
    /// Seconds that its reads, writes and waits took, added up each; none where it does not say of all.
    pub took_s: [Option<f64>; 3],
    /// Calls that are not made again: a name and how often.
    pub left_out: Vec<(&'static str, u64)>,
    /// Bytes of which the trace does not say where they lie.
    pub unplaced_bytes: u64,
    /// Memory that its processes held of their own, in the mean; 0 where it does not say.
    pub memory_bytes: u64,
}

/// Reads a trace to its end, for a replay.
///
/// # Errors
///
/// Its format is not known, it cannot be read, no order can be told, or it is too large.
pub fn steps_of(input: impl Read, progress: Progress<'_>) -> Result<(Steps, Replayed), Refused> {
    let (mut source, head) = Source::open(input, progress)?;
    let format = format_of(&head)?;
    drop(head);
    let mut ordered = InOrder::before(Kept::default());
    let noted = readers::read(format, &mut source, &mut ordered)?;
    ordered.finish()?;
    let times = format.has_times() && noted.unseen.iter().all(|(name, _)| *name != NO_TIMES);
    laid(&ordered.sink, format, times)
}

/// Requests and waits as they come; the rest is counted.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    records: Vec<Record>,
    /// Of files, their bytes before anything was done to them, where the trace says that.
    lengths: ByNumber<u32, u64>,
    left_out: [u64; CALLS.len()],
    unplaced_bytes: u64,
    held: Held,
}

impl Sink for Kept {
    fn take(&mut self, record: Record) -> Result<(), Refused> {
        let is_step = match record.deed {
            Deed::Read | Deed::Write | Deed::Sync | Deed::Removed => true,
            Deed::Metadata => record.waits(), // of a folder
            _ => false,
        };
        match record.deed {
            _ if is_step && self.records.len() as u64 >= STEPS_MAX => {
                return Err(Refused(format!(
                    "it has more than {STEPS_MAX} requests, which are kept in memory: replay a part"
                )));
            }
            _ if is_step => self.records.push(record),
            Deed::Length => {
                self.lengths.entry(record.file).or_insert(record.bytes);
            }
            Deed::Metadata => self.left_out[usize::from(record.call)] += 1,
            Deed::Unplaced => self.unplaced_bytes += record.bytes,
            Deed::Memory => self.held.take(record.bytes),
            _ => {}
        }
        Ok(())
    }
}

/// What is kept of a trace as it comes: what it is like, and its requests while they are few.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) digest: Digest,
    pub(crate) requests: Option<Kept>,
}

/// Requests that a description keeps, to be made again; of more it keeps none.
const REQUESTS_KEPT: usize = 1 << 20;

impl Seen {
    pub(crate) fn of(format: Format) -> Self {
        Self { digest: Digest::of(format), requests: Some(Kept::default()) }
    }
}

impl Sink for Seen {
    fn take(&mut self, record: Record) -> Result<(), Refused> {
        if let Some(requests) = &mut self.requests {
            requests.take(record)?;
            if requests.len() > REQUESTS_KEPT {
                self.requests = None;
            }
        }
        self.digest.take(record)
    }
}

/// A lane, and how many steps it has made when it is as far as that.
type Place = (u16, u32);

/// Of some steps of a file, which ended last before another began.
#[derive(Default)]
struct Ended {
    last: Option<Place>,
    /// When it ended, and those that have not yet.
    last_ns: u64,
    open: Vec<(u64, Place)>,
}

impl Ended {
    fn begin(&mut self, end_ns: u64, place: Place) {
        self.open.push((end_ns, place));
    }

    /// What is waited for by a step that begins now.
    fn before(&mut self, now_ns: u64) -> Option<Place> {
        let ended = self.open.extract_if(.., |(end_ns, _)| *end_ns <= now_ns);
        if let Some((end_ns, place)) = ended.max_by_key(|(end_ns, _)| *end_ns)
            && end_ns >= self.last_ns
        {
            (self.last_ns, self.last) = (end_ns, Some(place));
        }
        self.last
    }
}

/// A file as far as the steps have come.
#[derive(Default)]
struct Extent {
    number: u32,
    initial_bytes: u64,
    written_bytes: u64,
    writes: Ended,
    /// Writes, and syncs too.
    changes: Ended,
    /// Whatever ended last.
    latest: (u64, Place),
    /// Where the last request ended, and of which lane it was.
    last: (u64, u16),
}

impl Extent {
    fn end(&self) -> u64 {
        self.initial_bytes.max(self.written_bytes)
    }

    /// What a step of it waits for, which is at that place when it is made.
    fn order(&mut self, record: &Record, place: Place) -> Option<Place> {
        let (written, changed) =
            (self.writes.before(record.at_ns), self.changes.before(record.at_ns));
        let before = match record.deed {
            Deed::Read => written,
            Deed::Removed => Some(self.latest.1),
            _ => changed,
        };
        self.latest = self.latest.max((record.ended_ns(), place));
        if record.deed != Deed::Read {
            self.changes.begin(record.ended_ns(), place);
        }
        if record.deed == Deed::Write {
            self.writes.begin(record.ended_ns(), place);
        }
        before.filter(|(lane, _)| *lane != place.0)
    }

    /// A request of it by a lane; whether it goes on.
    fn touch(&mut self, record: &Record, lane: u16) -> bool {
        let goes_on = self.last == (record.offset, lane);
        self.last = (record.end(), lane);
        if record.deed == Deed::Read {
            if record.end() > self.written_bytes {
                self.initial_bytes = self.initial_bytes.max(record.end());
            }
            return goes_on;
        }
        if record.offset > self.end() {
            self.initial_bytes = record.end(); // written over, and nobody saw who wrote it first
        }
        self.written_bytes = self.written_bytes.max(record.end());
        goes_on
    }
}

impl Kept {
    /// Requests and waits so far.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }
}

impl Replayed {
    fn of(kept: &Kept, format: Format, times: bool) -> Self {
        let calls = CALLS.into_iter().zip(kept.left_out);
        Self {
            format,
            requests: [0; 3],
            bytes: [0; 2],
            sequential: 0,
            files: 0,
            files_bytes: 0,
            initial_bytes: 0,
            lanes: 0,
            times,
            span_s: None,
            took_s: [Some(0.0); 3],
            left_out: calls.filter(|(_, calls)| *calls > 0).collect(),
            unplaced_bytes: kept.unplaced_bytes,
            memory_bytes: kept.held.mean_bytes(),
        }
    }

    fn count(&mut self, record: &Record) {
        let kind = match record.deed {
            Deed::Read => 0,
            Deed::Write => 1,
            _ => 2,
        };
        self.requests[kind] += 1;
        if let Some(bytes) = self.bytes.get_mut(kind) {
            *bytes += record.bytes;
        }
        let took_s = (record.took_ns != UNKNOWN).then_some(record.took_ns as f64 * NS);
        self.took_s[kind] = self.took_s[kind].zip(took_s).map(|(sum, took_s)| sum + took_s);
    }
}

/// The steps of what was kept, and what these are of.
pub(crate) fn laid(kept: &Kept, format: Format, times: bool) -> Result<(Steps, Replayed), Refused> {
    let records = &kept.records;
    let mut found = Replayed::of(kept, format, times);
    let first_ns = records.first().map_or(0, |first| first.at_ns);
    let mut lanes = Lanes::of(records);
    let mut files: ByNumber<u32, Extent> = ByNumber::default();
    let mut steps = Vec::with_capacity(records.len());
    let mut removals = Removals::of(records);
    let order = records
        .iter()
        .enumerate()
        .flat_map(|(index, record)| removals.at(index, record).map(move |record| (index, record)));
    for (index, record) in order {
        let record = &record;
        let lane = lanes.take(index, record)?;
        let mut step = Step {
            at_ns: record.at_ns - first_ns,
            offset_bytes: record.offset,
            length_bytes: record.bytes,
            fresh_pages: record.faults,
            file: ALL_FILES,
            after_steps: 0,
            after_lane: 0,
            lane,
            act: act_of(record),
        };
        if record.deed == Deed::Metadata {
            step.file = FOLDER;
        } else if record.file != NO_FILE || record.deed != Deed::Sync {
            let number = files.len() as u32;
            let initial_bytes = kept.lengths.get(&record.file).copied().unwrap_or_default();
            let last = (0, lane);
            let new = Extent { number, initial_bytes, last, ..Extent::default() };
            let file = files.entry(record.file).or_insert(new);
            step.file = file.number;
            if let Some(before) = file.order(record, (lane, lanes.steps(lane))) {
                (step.after_lane, step.after_steps) = before;
            }
            if matches!(record.deed, Deed::Read | Deed::Write) {
                found.sequential += u64::from(file.touch(record, lane));
            }
        }
        if !matches!(record.deed, Deed::Removed | Deed::Metadata) {
            found.count(record);
        }
        steps.push(step);
    }
    if steps.is_empty() {
        return Err(Refused("it has no reads, writes or syncs that say where they go".to_owned()));
    }
    if files.len() as u64 > FILES_MAX {
        return Err(Refused(format!("it has more than {FILES_MAX} files: replay a part")));
    }
    let mut initial_bytes = vec![0; files.len()];
    for file in files.values() {
        initial_bytes[file.number as usize] = file.initial_bytes;
        found.files_bytes += file.end();
    }
    found.files = files.len() as u64;
    found.initial_bytes = initial_bytes.iter().sum();
    found.lanes = lanes.all.len() as u16;
    let end_ns = records.iter().map(Record::ended_ns).max().unwrap_or(first_ns);
    found.span_s = times.then(|| (end_ns - first_ns) as f64 * NS);
    Ok((Steps { initial_bytes, lanes: found.lanes, steps }, found))
}

fn act_of(record: &Record) -> Act {
    match (record.deed, CALLS.get(usize::from(record.call))) {
        (Deed::Read, _) => Act::Read,
        (Deed::Write, _) => Act::Write,
        (Deed::Removed, _) => Act::Remove,
        (_, Some(&"fdatasync" | &"flush")) => Act::Fdatasync,
        (_, Some(&"sync_file_range")) => Act::BeginWriteback,
        _ => Act::Fsync,
    }
}

#[derive(Clone, Copy)]
struct Lane {
    process: u32,
    end_ns: u64,
    steps: u32,
}

/// Who makes the requests.
struct Lanes {
    all: Vec<Lane>,
    /// Of each process, its last record.
    last: ByNumber<u32, usize>,
}

impl Lanes {
    fn of(records: &[Record]) -> Self {
        let last = records.iter().enumerate().map(|(index, record)| (record.process, index));
        Self { all: Vec::new(), last: last.collect() }
    }

    /// The lane of the record at this place: of its process, or of one that is at its end.
    fn take(&mut self, index: usize, record: &Record) -> Result<u16, Refused> {
        let own = |lane: &Lane| lane.process == record.process;
        let free = |lane: &Lane| self.last.get(&lane.process).is_none_or(|last| *last < index);
        let idle = |lane: &Lane| lane.end_ns <= record.at_ns;
        let place = self.all.iter().position(|lane| idle(lane) && own(lane));
        let place = place.or_else(|| self.all.iter().position(|lane| idle(lane) && free(lane)));
        let place = place.unwrap_or(self.all.len());
        if place as u64 >= LANES_MAX {
            return Err(Refused(format!(
                "more than {LANES_MAX} of its requests overlap, and each needs a thread: replay a \
                 part"
            )));
        }
        if place == self.all.len() {
            self.all.push(Lane { process: record.process, end_ns: 0, steps: 0 });
        }
        let lane = &mut self.all[place];
        (lane.process, lane.end_ns) = (record.process, record.ended_ns());
        lane.steps += 1;
        Ok(place as u16)
    }

    fn steps(&self, lane: u16) -> u32 {
        self.all[usize::from(lane)].steps
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn record(deed: Deed, process: u32, file: u32, offset: u64, at_ns: u64) -> Record {
        Record { process, file, offset, at_ns, bytes: 10, took_ns: 5, ..Record::of(deed) }
    }

    fn replay(records: &[Record]) -> (Steps, Replayed) {
        let mut kept = Kept::default();
        records.iter().for_each(|record| kept.take(*record).unwrap());
        laid(&kept, Format::Capture, true).unwrap()
    }

    #[test]
    fn what_is_read_was_there_unless_it_was_written_before() {
        let (steps, found) = replay(&[
            record(Deed::Read, 0, 9, 0, 0),
            record(Deed::Read, 0, 9, 10, 10),
            record(Deed::Write, 0, 4, 0, 20), // made by the program
            record(Deed::Write, 0, 4, 10, 30),
            record(Deed::Read, 0, 4, 5, 40),
            record(Deed::Write, 0, 7, 500, 50), // in the middle of a file that was there
            record(Deed::Write, 0, 7, 100, 60),
        ]);
        assert_eq!(steps.initial_bytes, [20, 0, 510]);
        assert_eq!((found.files, found.files_bytes, found.initial_bytes), (3, 550, 530));
        assert_eq!((found.requests, found.bytes), ([3, 4, 0], [30, 40]));
        assert_eq!(found.sequential, 4, "both files from their first byte, and on");
        assert_eq!(found.lanes, 1);
        assert_eq!(found.span_s, Some(65e-9));
    }

    #[test]
    fn requests_that_overlap_have_lanes_of_their_own_and_processes_in_turn_share_one() {
        let (steps, found) = replay(&[
            record(Deed::Read, 0, 0, 0, 0),
            record(Deed::Read, 0, 0, 10, 2), // before the first has ended
            record(Deed::Read, 1, 0, 0, 20), // the first process is not at its end
            record(Deed::Read, 0, 0, 20, 30),
            record(Deed::Read, 2, 0, 0, 40), // now it is
        ]);
        let lanes: Vec<u16> = steps.steps.iter().map(|step| step.lane).collect();
        assert_eq!(lanes, [0, 1, 2, 0, 0]);
        assert_eq!(found.lanes, 3);
    }

    fn waits(records: &[Record]) -> Vec<Place> {
        let (steps, _) = replay(records);
        steps.steps.iter().map(|step| (step.after_lane, step.after_steps)).collect()
    }

    #[test]
    fn a_step_waits_for_what_ended_last_before_it_began() {
        let reads = waits(&[
            record(Deed::Write, 0, 0, 0, 0),
            record(Deed::Write, 0, 0, 10, 10),
            record(Deed::Sync, 0, 0, 0, 16),
            record(Deed::Read, 1, 0, 0, 30), // of the write, and not of the sync
            record(Deed::Read, 0, 0, 0, 40),
        ]);
        assert_eq!(reads, [(0, 0), (0, 0), (0, 0), (0, 2), (0, 0)]);
        let group_commit = waits(&[
            record(Deed::Write, 0, 0, 0, 0),
            record(Deed::Sync, 0, 0, 0, 10),
            record(Deed::Write, 1, 0, 10, 16),
            record(Deed::Sync, 1, 0, 0, 22),
            record(Deed::Write, 0, 0, 20, 28),
        ]);
        assert_eq!(group_commit, [(0, 0), (0, 0), (0, 2), (0, 0), (1, 2)]);
    }

    #[test]
    fn writes_that_overlapped_do_not_wait_for_each_other() {
        let overlapping = waits(&[
            record(Deed::Write, 0, 0, 0, 0),
            record(Deed::Write, 1, 0, 10, 2),
            record(Deed::Write, 2, 0, 20, 4),
            record(Deed::Write, 0, 0, 30, 6), // the first has ended, of its own lane
            record(Deed::Write, 1, 0, 40, 8), // now that of lane 1 has, its own
            record(Deed::Write, 2, 0, 50, 12),
        ]);
        assert_eq!(overlapping, [(0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 2)]);
    }

    #[test]
    fn a_wait_for_all_is_of_no_file_and_what_has_no_place_is_counted() {
        let sync = Record { file: NO_FILE, bytes: 0, ..record(Deed::Sync, 0, 0, 0, 20) };
        let (steps, found) = replay(&[
            record(Deed::Write, 0, 0, 0, 0),
            sync,
            record(Deed::Unplaced, 0, 0, 0, 30),
            Record {
                call: crate::record::call_named("open"),
                ..record(Deed::Metadata, 0, 0, 0, 40)
            },
        ]);
        assert_eq!(steps.steps[1].file, ALL_FILES);
        assert_eq!(found.requests, [0, 1, 1]);
        assert_eq!((found.unplaced_bytes, found.left_out), (10, vec![("open", 1)]));
    }

    #[test]
    fn a_wait_for_a_folder_is_made_again_and_no_request() {
        let name = crate::record::call_named("fsync");
        let (steps, found) = replay(&[
            record(Deed::Write, 0, 0, 0, 0),
            Record { call: name, file: NO_FILE, ..record(Deed::Metadata, 0, 0, 0, 20) },
        ]);
        assert_eq!((steps.steps[1].file, steps.steps[1].act), (FOLDER, Act::Fsync));
        assert_eq!((found.requests, found.left_out), ([0, 1, 0], vec![]));
        assert_eq!(found.took_s[2], Some(0.0));
    }

    #[test]
    fn writeback_is_begun_again_where_it_was() {
        let begun = crate::record::call_named("sync_file_range");
        let (steps, found) = replay(&[
            record(Deed::Write, 0, 0, 100, 0),
            Record { call: begun, ..record(Deed::Sync, 0, 0, 100, 10) },
            Record { call: begun, bytes: 0, ..record(Deed::Sync, 0, 0, 0, 20) },
        ]);
        let made: Vec<_> = steps
            .steps
            .iter()
            .map(|step| (step.act, step.offset_bytes, step.length_bytes))
            .collect();
        assert_eq!(made[1..], [(Act::BeginWriteback, 100, 10), (Act::BeginWriteback, 0, 0)]);
        assert_eq!(found.requests, [0, 1, 2]);
    }

    #[test]
    fn a_file_is_as_long_as_the_trace_says() {
        let length = |file, bytes| Record { bytes, ..record(Deed::Length, 0, file, 0, 0) };
        let (steps, found) = replay(&[
            length(3, 1000),
            record(Deed::Write, 0, 3, 500, 0), // a log that is made long before it is written
            length(4, 70),
            record(Deed::Write, 0, 4, 70, 10), // one that grows
        ]);
        assert_eq!(steps.initial_bytes, [1000, 70]);
        assert_eq!(found.files_bytes, 1080);
        let memory = |bytes| Record { bytes, ..Record::of(Deed::Memory) };
        let (_, held) = replay(&[memory(10), record(Deed::Read, 0, 0, 0, 0), memory(30)]);
        assert_eq!((found.memory_bytes, held.memory_bytes), (0, 20), "the mean of all looks");
    }

    #[test]
    fn a_file_is_removed_after_its_last_use_by_whoever_uses_it() {
        let removed = |file, at_ns| record(Deed::Removed, 0, file, 0, at_ns);
        let (steps, found) = replay(&[
            record(Deed::Write, 0, 0, 0, 0),
            record(Deed::Read, 1, 0, 0, 10),
            removed(0, 20),
            removed(0, 22), // again, by another name
            record(Deed::Write, 0, 1, 0, 30),
            removed(1, 40), // and still open
            record(Deed::Read, 0, 1, 0, 50),
            removed(2, 60), // never used
        ]);
        let made: Vec<_> = steps.steps.iter().map(|step| (step.act, step.file)).collect();
        assert_eq!(
            made,
            [
                (Act::Write, 0),
                (Act::Read, 0),
                (Act::Remove, 0),
                (Act::Write, 1),
                (Act::Read, 1),
                (Act::Remove, 1)
            ]
        );
        let removal = steps.steps[2];
        assert_eq!((removal.lane, removal.after_lane, removal.after_steps), (0, 1, 1), "the read");
        assert_eq!((found.requests, found.bytes), ([2, 2, 0], [20, 20]));
    }

    #[test]
    fn a_trace_without_requests_is_refused() {
        assert!(laid(&Kept::default(), Format::Capture, true).is_err());
    }
}
