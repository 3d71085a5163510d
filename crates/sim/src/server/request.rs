//! Requests of clients, and the attempts that the server works on.

use super::slab::Id;

/// What became of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// It was answered in time.
    Answered,
    /// Its client gave up the last attempt.
    GivenUp,
    /// The server refused the last attempt: too many waited.
    Refused,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct End {
    /// When it ended.
    pub at_ns: u64,
    /// When it was due.
    pub due_ns: u64,
    /// How.
    pub answer: Answer,
}

/// A request, as its client sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub due_ns: u64,
    /// Tells it from others that had its place.
    pub serial: u64,
    /// Attempts so far; the last is the one whose answer counts.
    pub attempts: u32,
    /// Whether the last attempt is over, and another one will come.
    pub paused: bool,
}

/// One attempt, by its request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Attempt {
    pub request: Id,
    pub serial: u64,
    pub number: u32,
}

/// An attempt inside the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub attempt: Attempt,
    /// The lock that it wants or holds.
    pub lock: Option<u16>,
}
