//! What can go wrong, in words a storage engineer can act on.

#![forbid(unsafe_code)]

use std::fmt;

use leadline_wire::Wrong;
pub use leadline_wire::event::ErrorKind;
use leadline_wire::job::Refused;

/// A failure: what, why, and what to try next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EngineError {
    /// Decides the exit code.
    pub kind: ErrorKind,
    /// One sentence: what failed and why; it ends with what to try when that is known.
    pub message: String,
}

impl EngineError {
    /// A job that makes no sense.
    pub fn bad_job(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::BadJob, message: message.into() }
    }

    /// A target that refuses.
    pub fn target(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Target, message: message.into() }
    }

    /// An operation that failed while running.
    pub fn io(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Io, message: message.into() }
    }

    /// A window in which no request ended.
    pub fn nothing_completed(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::NothingCompleted, message: message.into() }
    }

    /// A server that went away.
    pub fn lost(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Lost, message: message.into() }
    }

    /// A defect of our own.
    pub fn fault(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Fault, message: message.into() }
    }
}

impl From<Wrong> for EngineError {
    fn from(wrong: Wrong) -> Self {
        Self::bad_job(wrong.0)
    }
}

impl From<Refused> for EngineError {
    fn from(refused: Refused) -> Self {
        Self::bad_job(refused.message)
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for EngineError {}
