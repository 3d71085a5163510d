//! The open loop: calls go out when they are due, whatever the server does.
//!
//! One thread serves all connections. Response times count from when a call was due, so they hold
//! whatever kept it: the server, or this generator. What the generator itself added is counted
//! apart: how late it sent calls that nothing held back. Only where too many calls are outstanding,
//! or the connections take no more, a call waits for the server; these are counted as held.

use leadline_base::buffer;
use leadline_base::clock::{now_ns, ns_from_s};
use leadline_base::error::{EngineError, ErrorKind};
use leadline_base::events::{Phase, Reporter};
use leadline_base::histogram::Histogram;
use leadline_wire::event::load::LoadResult;
use leadline_wire::event::nfs_load::{GeneratorFacts, OperationCount};
use leadline_wire::job::measure::Arrivals;
use leadline_wire::job::nfs_load::LoadOrder;
use nfs3_types::nfs3::NFS_PROGRAM;

use crate::access::arrival::ArrivalStream;
use crate::access::stream::sub_seed;
use crate::backend::nfs::data::restarted;
use crate::backend::nfs::volume::refused_with;
use crate::load::ABORT_AFTER_S;
use crate::load::nfs::calls::{Said, committed, read_bytes, wrote};
use crate::load::nfs::data_set::DataSet;
use crate::load::nfs::lines::Lines;
use crate::load::nfs::plan::{Plan, file_name, new_file_name};
use crate::load::nfs::stream::{Call, CallStream, PROCEDURES};
use crate::load::{Limits, LoadTally, Window};
use crate::run::worker::pace::wake_in_time;

/// Answers are usually waited for this much longer than calls are sent.
pub const DRAIN_S: f64 = 2.0;

/// Calls sent before what has come is looked at, so that no answer waits long for its time.
const BURST: u32 = 32;

/// The generator falls short when it is late by more than this in the mean, and by more than
/// [`LATE_SHARE`] of the mean response time.
const LATE_MS: f64 = 1.0;
const LATE_SHARE: f64 = 0.1;

/// Bytes that WRITEs take their content from; each begins elsewhere.
const CONTENT_BYTES: usize = 1 << 20;

const NS_PER_MS: f64 = 1e6;

/// What a load came to.
#[derive(Debug)]
pub struct Offered {
    /// Response times and counts.
    pub load: LoadResult,
    /// By procedure.
    pub operations: Vec<OperationCount>,
    /// The generator's own part.
    pub generator: GeneratorFacts,
}

/// Offers one load and waits for what is outstanding, at most `drain_s`.
///
/// # Errors
/// `Lost` when the server goes away, begins anew, or says nothing for ten seconds.
pub fn offer(
    order: &LoadOrder,
    plan: &Plan,
    data: &DataSet,
    addresses: &[std::net::SocketAddr],
    drain_s: f64,
    reporter: &mut Reporter,
) -> Result<Offered, EngineError> {
    wake_in_time();
    let lines = Lines::connect(addresses, order.connections)?;
    let peer = lines.peer().to_owned();
    let stream = CallStream::new(plan, order.stable, sub_seed(order.seed, 0));
    let arrivals = Arrivals::Poisson { rate_per_s: order.rate_per_s };
    let schedule = ArrivalStream::new(&arrivals, order.seed);
    let schedule = schedule.ok_or_else(|| EngineError::fault("an open loop has a schedule"))?;
    let mut content = vec![0; 2 * CONTENT_BYTES];
    buffer::fill(&mut content, &mut seeded(order.seed));
    let writer = Writer { plan, data, content };
    let books = Books::new(order, stream.grows(), peer);
    let mut generator = Generator { lines, stream, schedule, writer, books };
    let busy_ns = processor_ns();
    let began_ns = now_ns();
    let ended = generator.run(order, ns_from_s(drain_s), reporter)?;
    let cpu_frac = (processor_ns() - busy_ns) as f64 / (now_ns() - began_ns).max(1) as f64;
    Ok(generator.books.close(&ended, order, cpu_frac))
}

fn seeded(seed: u64) -> rand_xoshiro::Xoshiro256PlusPlus {
    rand_xoshiro::rand_core::SeedableRng::seed_from_u64(seed)
}

/// Processor time of this thread.
fn processor_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec, and the clock always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

struct Generator<'a> {
    lines: Lines<Asked>,
    stream: CallStream<'a>,
    schedule: ArrivalStream,
    writer: Writer<'a>,
    books: Books,
}

/// What is known of a call that was sent. Times are nanoseconds since the load began.
#[derive(Clone, Copy, Debug)]
struct Asked {
    due_ns: u64,
    bytes: u32,
    procedure: u8,
}

/// When and how sending ended.
struct Ended {
    at_ns: u64,
    aborted: bool,
}

impl Generator<'_> {
    fn run(
        &mut self,
        order: &LoadOrder,
        drain_ns: u64,
        reporter: &mut Reporter,
    ) -> Result<Ended, EngineError> {
        let from_ns = ns_from_s(order.warm_up_s);
        let mut to_ns = from_ns + ns_from_s(order.seconds);
        let mut last_ns = to_ns + drain_ns;
        let start_ns = now_ns();
        let mut due_ns = self.schedule.next_due_ns();
        let (mut aborted, mut blocked, mut free_from_ns) = (false, false, 0);
        let mut phase = Phase::WarmUp;
        loop {
            let mut at_ns = now_ns() - start_ns;
            let mut burst = 0;
            while due_ns <= at_ns && due_ns < to_ns && burst < BURST {
                if !self.lines.has_room() {
                    blocked = true;
                    break;
                }
                if std::mem::take(&mut blocked) {
                    free_from_ns = at_ns;
                }
                self.send(due_ns);
                at_ns = now_ns() - start_ns;
                self.books.sent(due_ns, at_ns, free_from_ns, self.lines.outstanding());
                due_ns = self.schedule.next_due_ns();
                burst += 1;
            }
            self.lines.flush()?;
            let books = &mut self.books;
            self.lines.receive(&mut |asked, said, came_ns| {
                books.answered(asked, said, came_ns - start_ns)
            })?;
            at_ns = now_ns() - start_ns;
            phase = show_phase(reporter, phase, (from_ns, to_ns), at_ns);
            if at_ns < to_ns && self.books.hopeless(order, at_ns) {
                (to_ns, last_ns, aborted) = (at_ns, at_ns + drain_ns, true);
                self.books.tally.cut(to_ns);
            }
            let sending = due_ns < to_ns;
            if at_ns >= last_ns || (!sending && self.lines.outstanding() == 0) {
                break;
            }
            let next_ns = if sending && !blocked { due_ns } else { last_ns };
            self.lines.wait(start_ns + next_ns);
        }
        let at_ns = now_ns() - start_ns;
        for asked in self.lines.waiting() {
            self.books.unanswered(asked.due_ns, asked.procedure, at_ns);
        }
        while due_ns < to_ns {
            // Held back to the end: what it would have asked does not matter any more.
            let procedure = self.stream.next_call().procedure() as u8;
            self.books.held += 1;
            self.books.unanswered(due_ns, procedure, at_ns);
            due_ns = self.schedule.next_due_ns();
        }
        Ok(Ended { at_ns: to_ns, aborted })
    }

    fn send(&mut self, due_ns: u64) {
        let call = self.stream.next_call();
        let bytes = match call {
            Call::Read { bytes, .. } | Call::Write { bytes, .. } => bytes,
            _ => 0,
        };
        let asked = Asked { due_ns, bytes, procedure: call.procedure() as u8 };
        self.writer.write(&mut self.lines, &call, asked);
    }
}

fn show_phase(
    reporter: &mut Reporter,
    phase: Phase,
    (from_ns, to_ns): (u64, u64),
    at_ns: u64,
) -> Phase {
    let now = match at_ns {
        at_ns if at_ns < from_ns => Phase::WarmUp,
        at_ns if at_ns < to_ns => Phase::Measure,
        _ => Phase::Drain,
    };
    if now != phase {
        reporter.phase(now, at_ns);
    }
    if now == Phase::Measure {
        reporter.progress((at_ns - from_ns) as f64 / (to_ns - from_ns) as f64);
    }
    now
}

/// Turns calls into bytes on a connection.
struct Writer<'a> {
    plan: &'a Plan,
    data: &'a DataSet,
    content: Vec<u8>,
}

impl Writer<'_> {
    fn write(&self, lines: &mut Lines<Asked>, call: &Call, asked: Asked) {
        const READ_MODIFY_EXTEND: u32 = 0x0d; // RFC 1813 §3.3.4
        const FILE_SYNC: u32 = 2;
        const GUARDED: u32 = 1;
        let data = self.data;
        let file_of = |file: u32| &data.files[file as usize];
        let directory_of = |directory: u32| &data.directories[directory as usize];
        let record = lines.call(program(call), asked);
        drop(match *call {
            Call::Getattr { file } => record.handle(file_of(file)),
            Call::SetLength { file, bytes } => {
                record.handle(file_of(file)).attributes(None, Some(bytes)).word(0)
            }
            Call::SetMode { file } => {
                record.handle(file_of(file)).attributes(Some(0o600), None).word(0)
            }
            Call::Lookup { file } => record
                .handle(directory_of(self.plan.directory_of(file)))
                .bytes(file_name(file).as_bytes()),
            Call::Access { file } => record.handle(file_of(file)).word(READ_MODIFY_EXTEND),
            Call::Readlink { link } => record.handle(&data.links[link as usize]),
            Call::Read { file, offset, bytes } => {
                record.handle(file_of(file)).long(offset).word(bytes)
            }
            Call::Write { file, offset, bytes, stable } => {
                let from = (offset as usize / 64 * 64) % CONTENT_BYTES;
                record
                    .handle(file_of(file))
                    .long(offset)
                    .word(bytes)
                    .word(if stable { FILE_SYNC } else { 0 })
                    .bytes(&self.content[from..from + bytes as usize])
            }
            Call::Commit { file } => record.handle(file_of(file)).long(0).word(0),
            Call::Create { name } => record
                .handle(&data.new_files)
                .bytes(new_file_name(name).as_bytes())
                .word(GUARDED)
                .attributes(Some(0o600), None),
            Call::Remove { name } => {
                record.handle(&data.new_files).bytes(new_file_name(name).as_bytes())
            }
            Call::Readdir { directory } => {
                record.handle(directory_of(directory)).long(0).long(0).word(LISTING_BYTES)
            }
            Call::Readdirplus { directory } => record
                .handle(directory_of(directory))
                .long(0)
                .long(0)
                .word(LISTING_BYTES / 4)
                .word(LISTING_BYTES),
            Call::Fsstat => record.handle(&data.root),
        });
    }
}

fn program(call: &Call) -> NFS_PROGRAM {
    match call {
        Call::Getattr { .. } => NFS_PROGRAM::NFSPROC3_GETATTR,
        Call::SetLength { .. } | Call::SetMode { .. } => NFS_PROGRAM::NFSPROC3_SETATTR,
        Call::Lookup { .. } => NFS_PROGRAM::NFSPROC3_LOOKUP,
        Call::Access { .. } => NFS_PROGRAM::NFSPROC3_ACCESS,
        Call::Readlink { .. } => NFS_PROGRAM::NFSPROC3_READLINK,
        Call::Read { .. } => NFS_PROGRAM::NFSPROC3_READ,
        Call::Write { .. } => NFS_PROGRAM::NFSPROC3_WRITE,
        Call::Commit { .. } => NFS_PROGRAM::NFSPROC3_COMMIT,
        Call::Create { .. } => NFS_PROGRAM::NFSPROC3_CREATE,
        Call::Remove { .. } => NFS_PROGRAM::NFSPROC3_REMOVE,
        Call::Readdir { .. } => NFS_PROGRAM::NFSPROC3_READDIR,
        Call::Readdirplus { .. } => NFS_PROGRAM::NFSPROC3_READDIRPLUS,
        Call::Fsstat => NFS_PROGRAM::NFSPROC3_FSSTAT,
    }
}

/// Bytes of a listing, as SPEC SFS asks for.
const LISTING_BYTES: u32 = 8192;

/// Everything that is counted.
struct Books {
    tally: LoadTally,
    from_ns: u64,
    by_procedure: [Counts; PROCEDURES.len()],
    late: Histogram,
    held: u64,
    outstanding_max: usize,
    /// Of the window: calls without an answer, and when they were due, added up.
    waiting: u64,
    waiting_due_ns: u128,
    answered: u64,
    answered_ns: u128,
    grows: bool,
    verifier: Option<u64>,
    first_failure: Option<String>,
    peer: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    due: u64,
    failed: u64,
    unanswered: u64,
    answered: u64,
    answered_ns: u64,
    bytes: u64,
}

impl Books {
    fn new(order: &LoadOrder, grows: bool, peer: String) -> Self {
        let from_ns = ns_from_s(order.warm_up_s);
        let to_ns = from_ns + ns_from_s(order.seconds);
        let limits = Limits::of(order.limit_ms);
        Self {
            tally: LoadTally::new(Window { from_ns, to_ns, limits }),
            from_ns,
            by_procedure: [Counts::default(); PROCEDURES.len()],
            late: Histogram::default(),
            held: 0,
            outstanding_max: 0,
            waiting: 0,
            waiting_due_ns: 0,
            answered: 0,
            answered_ns: 0,
            grows,
            verifier: None,
            first_failure: None,
            peer,
        }
    }

    fn sent(&mut self, due_ns: u64, at_ns: u64, free_from_ns: u64, outstanding: usize) {
        self.outstanding_max = self.outstanding_max.max(outstanding);
        if due_ns < self.from_ns {
            return;
        }
        self.waiting += 1;
        self.waiting_due_ns += u128::from(due_ns);
        if due_ns < free_from_ns {
            self.held += 1;
        } else {
            self.late.record(at_ns - due_ns);
        }
    }

    fn answered(&mut self, asked: Asked, said: Said, at_ns: u64) -> Result<(), EngineError> {
        let response_ns = at_ns.saturating_sub(asked.due_ns);
        let failure = self.judge(asked, said)?;
        let counted = asked.due_ns >= self.from_ns;
        let counts = &mut self.by_procedure[usize::from(asked.procedure)];
        if counted {
            self.waiting -= 1;
            self.waiting_due_ns -= u128::from(asked.due_ns);
            counts.due += 1;
        }
        if let Some(why) = failure {
            self.first_failure.get_or_insert(why);
            counts.failed += u64::from(counted);
            self.tally.failed(asked.due_ns);
            return Ok(());
        }
        if counted {
            self.answered += 1;
            self.answered_ns += u128::from(response_ns);
            counts.answered += 1;
            counts.answered_ns += response_ns;
            counts.bytes += u64::from(asked.bytes);
        }
        self.tally.answered(asked.due_ns, response_ns);
        Ok(())
    }

    /// Why a call failed; none when it did not.
    fn judge(&mut self, asked: Asked, said: Said) -> Result<Option<String>, EngineError> {
        let procedure = PROCEDURES[usize::from(asked.procedure)];
        let results = match said {
            Said::Done(results) => results,
            Said::Refused(status) => {
                let error = refused_with(&format!("{procedure} on {}", self.peer), status);
                return match error.kind {
                    ErrorKind::Lost => Err(error),
                    _ => Ok(Some(error.message)),
                };
            }
            Said::Denied(why) => {
                return Err(EngineError::io(format!("{} no longer answers: {why}", self.peer)));
            }
        };
        let garbled =
            || EngineError::io(format!("{}: its answer to {procedure} makes no sense", self.peer));
        let moved = match procedure {
            "read" => read_bytes(results).ok_or_else(garbled)?,
            "write" => {
                let (bytes, verifier) = wrote(results).ok_or_else(garbled)?;
                self.hear(verifier)?;
                bytes
            }
            "commit" => {
                self.hear(committed(results).ok_or_else(garbled)?)?;
                asked.bytes
            }
            _ => asked.bytes,
        };
        if moved == asked.bytes || (self.grows && procedure == "read") {
            return Ok(None);
        }
        Ok(Some(format!("{procedure} on {}: {moved} bytes of {}", self.peer, asked.bytes)))
    }

    fn hear(&mut self, verifier: u64) -> Result<(), EngineError> {
        match self.verifier.replace(verifier) {
            Some(earlier) if earlier != verifier => Err(restarted(&self.peer)),
            _ => Ok(()),
        }
    }

    fn unanswered(&mut self, due_ns: u64, procedure: u8, at_ns: u64) {
        self.tally.unanswered(due_ns, at_ns.saturating_sub(due_ns));
        if due_ns >= self.from_ns {
            let counts = &mut self.by_procedure[usize::from(procedure)];
            counts.due += 1;
            counts.unanswered += 1;
        }
    }

    /// Whether the mean response time, in which a call without an answer counts with its age, has
    /// passed the order's bound.
    fn hopeless(&self, order: &LoadOrder, at_ns: u64) -> bool {
        let Some(bound_ms) = order.abort_above_ms else { return false };
        if at_ns < self.from_ns + ns_from_s(ABORT_AFTER_S) {
            return false;
        }
        let ages_ns = u128::from(self.waiting) * u128::from(at_ns) - self.waiting_due_ns;
        let number = (self.answered + self.waiting).max(1);
        (self.answered_ns + ages_ns) as f64 / number as f64 > bound_ms * NS_PER_MS
    }

    fn close(self, ended: &Ended, order: &LoadOrder, cpu_frac: f64) -> Offered {
        let load = LoadResult {
            sent_late_ms_p99: (self.late.count() > 0)
                .then(|| self.late.quantile_ns(0.99) / NS_PER_MS),
            ..self.tally.finish(ended.at_ns, ended.aborted)
        };
        let late_ms = self.late.mean_ns() / NS_PER_MS;
        let response_ms = load.response_ms.map_or(0.0, |response| response.mean);
        let short = late_ms > LATE_MS.max(LATE_SHARE * response_ms);
        let generator = GeneratorFacts {
            connections: order.connections,
            outstanding_max: self.outstanding_max as u64,
            held: self.held,
            sent_late_ms_mean: late_ms,
            sent_late_ms_max: self.late.max_ns() as f64 / NS_PER_MS,
            cpu_frac,
            fell_short: short.then(|| {
                format!(
                    "the generator sent its calls {late_ms:.1} ms late in the mean, of a response \
                    time of {response_ms:.1} ms: it could not offer {} calls/s beside what else \
                    runs here",
                    order.rate_per_s
                )
            }),
            first_failure: self.first_failure,
        };
        let operations = PROCEDURES.iter().zip(&self.by_procedure);
        let operations = operations.filter(|(_, counts)| counts.due > 0);
        Offered { load, operations: operations.map(Counts::document).collect(), generator }
    }
}

impl Counts {
    fn document((procedure, counts): (&&'static str, &Self)) -> OperationCount {
        let mean_ns = counts.answered_ns as f64 / counts.answered.max(1) as f64;
        OperationCount {
            procedure,
            due: counts.due,
            failed: counts.failed,
            unanswered: counts.unanswered,
            mean_ms: mean_ns / NS_PER_MS,
            bytes: counts.bytes,
        }
    }
}

#[cfg(test)]
mod tests;
