//! One lane: a thread that keeps every disk's queue filled.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Error, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode, squeue};
use leadline_base::error::EngineError;
use leadline_base::ring::build;

use crate::memory::Region;
use crate::stripes::{Extent, StripeFile, Transfer, place};

/// What a lane does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verb {
    Read { direct: bool },
    Write { direct: bool },
}

/// What was asked for.
enum Order {
    Move { offset: u64, length: usize, region: Region },
    Sync,
}

/// A move that is done; a sync has no memory and shows as no `Done`.
#[derive(Debug)]
pub(super) struct Done {
    pub offset: u64,
    pub length: usize,
    pub region: Region,
}

type Outcome = Result<Option<Done>, EngineError>;

#[derive(Default)]
struct State {
    orders: VecDeque<Order>,
    done: VecDeque<Outcome>,
    /// Nothing more will be ordered.
    closing: bool,
    /// The thread has ended.
    ended: bool,
}

struct Shared {
    state: Mutex<State>,
    ready: Condvar,
    /// Wakes the thread where it waits for the kernel.
    bell: File,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // A counter that is full wakes its reader as well.
        let _ = (&self.bell).write(&1u64.to_ne_bytes());
    }

    fn silence(&self) {
        // Nothing to read means that it is silent.
        let _ = (&self.bell).read(&mut [0; 8]);
    }
}

/// The caller's end.
pub(super) struct Lane {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    pending: usize,
}

impl Lane {
    pub fn open(extents: Vec<Extent>, verb: Verb, depth: u32) -> Result<Self, EngineError> {
        // SAFETY: no pointers; the descriptor that comes back is ours alone.
        let bell = unsafe {
            let number = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if number < 0 {
                return Err(refused(&Error::last_os_error()));
            }
            File::from_raw_fd(number)
        };
        let shared = Arc::new(Shared { state: Mutex::default(), ready: Condvar::new(), bell });
        let (told, hear) = mpsc::sync_channel(1);
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("leadline-lane".to_owned())
            .stack_size(256 << 10)
            .spawn(move || {
                let _ended = Ended(Arc::clone(&theirs));
                // The ring is made by the thread that uses it, so that the kernel may run its
                // completion work there alone.
                match Worker::new(theirs, extents, verb, depth) {
                    Ok(mut worker) => {
                        let _ = told.send(Ok(()));
                        worker.run();
                    }
                    Err(error) => {
                        let _ = told.send(Err(error));
                    }
                }
            })
            .map_err(|error| refused(&error))?;
        let lane = Self { shared, thread: Some(thread), pending: 0 };
        hear.recv().map_err(|_| EngineError::fault("a lane's thread ended at once"))??;
        Ok(lane)
    }

    pub fn submit(&mut self, offset: u64, length: usize, region: Region) {
        self.order(Order::Move { offset, length, region });
    }

    pub fn take(&mut self) -> Result<Done, EngineError> {
        self.wait()?.ok_or_else(|| EngineError::fault("a lane handed back no memory"))
    }

    pub fn try_take(&mut self) -> Option<Result<Done, EngineError>> {
        let outcome = self.shared.state().done.pop_front()?;
        self.pending -= 1;
        outcome.transpose()
    }

    /// Waits until the disks have everything; all that was submitted must have been taken.
    pub fn sync(&mut self) -> Result<(), EngineError> {
        self.order(Order::Sync);
        self.wait().map(|_| ())
    }

    pub fn pending(&self) -> usize {
        self.pending
    }

    fn order(&mut self, order: Order) {
        self.pending += 1;
        self.shared.state().orders.push_back(order);
        self.shared.ring();
    }

    fn wait(&mut self) -> Outcome {
        if self.pending == 0 {
            return Err(EngineError::fault("a lane was asked for more than was submitted"));
        }
        let mut state = self.shared.state();
        loop {
            if let Some(outcome) = state.done.pop_front() {
                self.pending -= 1;
                return outcome;
            }
            if state.ended {
                return Err(EngineError::fault("a lane's thread ended before its work"));
            }
            state = self.shared.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.closing = true;
            state.orders.clear();
        }
        self.shared.ring();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Says that the thread has ended, however it did.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.ready.notify_all();
    }
}

/// One request to the kernel.
struct Request {
    /// Counted from the lane's first order.
    order: u64,
    extent: usize,
    what: What,
}

enum What {
    Move(Transfer),
    Sync { file: usize },
}

impl Request {
    fn disk(&self) -> usize {
        match &self.what {
            What::Move(transfer) => transfer.file,
            What::Sync { file } => *file,
        }
    }
}

/// An order at work.
struct Progress {
    requests_left: usize,
    region: Option<(u64, usize, Region)>,
    error: Option<EngineError>,
}

#[derive(Default)]
struct Disk {
    waiting: VecDeque<Request>,
    in_flight: usize,
}

/// `user_data` of the poll that waits for the bell.
const BELL: u64 = u64::MAX;

struct Worker {
    ring: IoUring,
    shared: Arc<Shared>,
    extents: Vec<Extent>,
    verb: Verb,
    depth: usize,
    disks: Vec<Disk>,
    slots: Vec<Option<Request>>,
    free: Vec<usize>,
    progress: VecDeque<Progress>,
    /// Number of the first order in `progress`.
    first_order: u64,
    bell_armed: bool,
}

impl Worker {
    fn new(
        shared: Arc<Shared>,
        extents: Vec<Extent>,
        verb: Verb,
        depth: u32,
    ) -> Result<Self, EngineError> {
        let disks = extents.iter().map(|extent| extent.stripes.files.len()).max().unwrap_or(1);
        let count = disks * depth as usize;
        let ring = build((count + 1).next_power_of_two().min(4096) as u32);
        Ok(Self {
            ring: ring.map_err(|error| refused(&error))?,
            shared,
            extents,
            verb,
            depth: depth as usize,
            disks: (0..disks).map(|_| Disk::default()).collect(),
            slots: (0..count).map(|_| None).collect(),
            free: (0..count).rev().collect(),
            progress: VecDeque::new(),
            first_order: 0,
            bell_armed: false,
        })
    }

    /// Works until the lane is closed and nothing is under way, or the ring fails.
    fn run(&mut self) {
        loop {
            let closing = self.take_orders();
            if closing {
                self.disks.iter_mut().for_each(|disk| disk.waiting.clear());
            }
            if closing && self.in_flight() == 0 {
                return;
            }
            if let Err(error) = self.turn() {
                self.fail(&error);
                return;
            }
            self.deliver();
        }
    }

    fn in_flight(&self) -> usize {
        self.disks.iter().map(|disk| disk.in_flight).sum()
    }

    /// Cuts what was ordered into requests; true when the lane is closing.
    fn take_orders(&mut self) -> bool {
        let (orders, closing) = {
            let mut state = self.shared.state();
            (std::mem::take(&mut state.orders), state.closing)
        };
        for order in orders {
            let number = self.first_order + self.progress.len() as u64;
            let progress = match order {
                Order::Move { offset, length, region } => self.cut(number, offset, length, region),
                Order::Sync => self.sync(number),
            };
            self.progress.push_back(progress);
        }
        self.deliver();
        closing
    }

    fn cut(&mut self, order: u64, offset: u64, length: usize, mut region: Region) -> Progress {
        let memory = region.as_mut_ptr();
        let mut progress = Progress { requests_left: 0, region: None, error: None };
        let mut covered = 0;
        for (extent, found) in self.extents.iter().enumerate() {
            let Some((at, place, bytes)) = found.overlap(offset, length) else { continue };
            if place + bytes > region.len() {
                break;
            }
            covered += bytes;
            let pieces = found.stripes.transfers(at, bytes, memory.wrapping_add(place));
            progress.requests_left += pieces.len();
            for transfer in pieces {
                let disk = transfer.file;
                let request = Request { order, extent, what: What::Move(transfer) };
                self.disks[disk].waiting.push_back(request);
            }
        }
        if covered != length {
            progress.error = Some(EngineError::fault(format!(
                "a lane was asked for bytes {offset} to {} of a data set, or into a region, that \
                has fewer",
                offset + length as u64
            )));
        }
        progress.region = Some((offset, length, region));
        progress
    }

    fn sync(&mut self, order: u64) -> Progress {
        let mut progress = Progress { requests_left: 0, region: None, error: None };
        for (extent, found) in self.extents.iter().enumerate() {
            for file in 0..found.stripes.files.len() {
                let request = Request { order, extent, what: What::Sync { file } };
                self.disks[file].waiting.push_back(request);
                progress.requests_left += 1;
            }
        }
        progress
    }

    /// Fills the queues, waits for the kernel or the bell, and collects what is done.
    fn turn(&mut self) -> Result<(), EngineError> {
        if !self.bell_armed {
            let bell = Fd(self.shared.bell.as_raw_fd());
            self.push(&opcode::PollAdd::new(bell, libc::POLLIN as u32).build().user_data(BELL))?;
            self.bell_armed = true;
        }
        for disk in 0..self.disks.len() {
            while self.disks[disk].in_flight < self.depth {
                let Some(request) = self.disks[disk].waiting.pop_front() else { break };
                self.send(request)?;
            }
        }
        match self.ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => {}
            Err(error) => return Err(EngineError::io(format!("io_uring_enter failed: {error}"))),
        }
        loop {
            let Some(entry) = self.ring.completion().next() else { return Ok(()) };
            if entry.user_data() == BELL {
                self.bell_armed = false;
                self.shared.silence();
            } else {
                self.complete(entry.user_data() as usize, entry.result())?;
            }
        }
    }

    fn push(&mut self, entry: &squeue::Entry) -> Result<(), EngineError> {
        loop {
            // SAFETY: files and memory that the entry names are held by this worker until its
            // completion was collected: it does not end before.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.ring
                .submit()
                .map_err(|error| EngineError::io(format!("io_uring_enter failed: {error}")))?;
        }
    }

    fn send(&mut self, request: Request) -> Result<(), EngineError> {
        let Some(slot) = self.free.pop() else {
            return Err(EngineError::fault("a lane has fewer slots than its disks have places"));
        };
        let file = &self.extents[request.extent].stripes.files[request.disk()];
        let entry = entry_of(&request, file, self.verb).user_data(slot as u64);
        self.disks[request.disk()].in_flight += 1;
        self.slots[slot] = Some(request);
        self.push(&entry)
    }

    fn complete(&mut self, slot: usize, code: i32) -> Result<(), EngineError> {
        let Some(mut request) = self.slots.get_mut(slot).and_then(Option::take) else {
            return Err(EngineError::fault("a completion for a slot that sent nothing"));
        };
        self.free.push(slot);
        let disk = request.disk();
        self.disks[disk].in_flight -= 1;
        let file = &self.extents[request.extent].stripes.files[disk];
        let again = match &mut request.what {
            _ if matches!(-code, libc::EINTR | libc::EAGAIN) => Ok(true),
            What::Sync { .. } if code >= 0 => Ok(false),
            What::Sync { .. } => Err(not_synced(file, code)),
            What::Move(transfer) if code > 0 => {
                transfer.advance(code as usize);
                Ok(transfer.bytes > 0)
            }
            What::Move(transfer) => {
                if code == -libc::EINVAL && is_direct(transfer, file, self.verb) {
                    file.refuse_direct();
                    Ok(true)
                } else {
                    Err(failed(transfer, file, self.verb, code))
                }
            }
        };
        if matches!(again, Ok(true)) {
            self.disks[disk].waiting.push_front(request);
            return Ok(());
        }
        let index = (request.order - self.first_order) as usize;
        if let Some(progress) = self.progress.get_mut(index) {
            progress.requests_left -= 1;
            if let Err(error) = again {
                progress.error.get_or_insert(error);
            }
        }
        Ok(())
    }

    /// Hands over what is done, from the oldest on.
    fn deliver(&mut self) {
        let mut outcomes = Vec::new();
        while self.progress.front().is_some_and(|oldest| oldest.requests_left == 0) {
            let Some(oldest) = self.progress.pop_front() else { break };
            self.first_order += 1;
            let done =
                oldest.region.map(|(offset, length, region)| Done { offset, length, region });
            outcomes.push(oldest.error.map_or(Ok(done), Err));
        }
        if !outcomes.is_empty() {
            self.shared.state().done.extend(outcomes);
            self.shared.ready.notify_all();
        }
    }

    /// The ring failed: every order fails with it.
    fn fail(&mut self, error: &EngineError) {
        let count = self.progress.len();
        // What the kernel may still write to must not be handed out again.
        self.progress.drain(..).for_each(std::mem::forget);
        self.shared.state().done.extend((0..count).map(|_| Err(error.clone())));
        self.shared.ready.notify_all();
    }
}

/// Whether a transfer passes the cache.
fn is_direct(transfer: &Transfer, file: &StripeFile, verb: Verb) -> bool {
    let (Verb::Read { direct } | Verb::Write { direct }) = verb;
    direct && transfer.is_aligned() && file.direct().is_some()
}

fn entry_of(request: &Request, file: &StripeFile, verb: Verb) -> squeue::Entry {
    let transfer = match &request.what {
        What::Move(transfer) => transfer,
        What::Sync { .. } => {
            let number = Fd(file.file.as_raw_fd());
            return opcode::Fsync::new(number).flags(FsyncFlags::DATASYNC).build();
        }
    };
    let way = file.direct().filter(|_| is_direct(transfer, file, verb)).unwrap_or(&file.file);
    let (number, count) = (Fd(way.as_raw_fd()), transfer.pieces.len() as u32);
    let pieces = transfer.pieces.as_ptr();
    match verb {
        Verb::Read { .. } => opcode::Readv::new(number, pieces, count).offset(transfer.at).build(),
        Verb::Write { .. } => {
            opcode::Writev::new(number, pieces, count).offset(transfer.at).build()
        }
    }
}

fn failed(transfer: &Transfer, file: &StripeFile, verb: Verb, code: i32) -> EngineError {
    let place = place(&file.path, transfer.at);
    let error = Error::from_raw_os_error(-code);
    match (verb, -code) {
        (Verb::Read { .. }, 0) => EngineError::io(format!(
            "reading ended {place}, {} bytes too early: the file was shortened meanwhile; make the \
            data set again",
            transfer.bytes
        )),
        (Verb::Read { .. }, _) => EngineError::io(format!(
            "reading failed {place}: {error}; look at the kernel log for the disk below it"
        )),
        (Verb::Write { .. }, libc::ENOSPC | libc::EDQUOT) => EngineError::target(format!(
            "writing failed {place}: {error}; room for at least {} bytes more is missing: free it, \
            or give another directory",
            transfer.bytes
        )),
        (Verb::Write { .. }, _) => EngineError::io(format!(
            "writing failed {place}: {error}; look at the kernel log for the disk below it"
        )),
    }
}

fn not_synced(file: &StripeFile, code: i32) -> EngineError {
    EngineError::io(format!(
        "{} could not be brought to its disk: {}; look at the kernel log for it",
        file.path.display(),
        Error::from_raw_os_error(-code)
    ))
}

fn refused(error: &Error) -> EngineError {
    EngineError::target(format!(
        "io_uring is refused by the kernel: {error}; look at sysctl kernel.io_uring_disabled, at \
        ulimit -l and -n, and at the container's seccomp filter"
    ))
}
