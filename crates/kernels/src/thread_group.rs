//! Threads that do one thing together: when one fails, all stop and its reason is the answer.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use leadline_base::clock::{now_ns, s_from_ns};
use leadline_base::error::EngineError;

use crate::deadline::Deadline;
use crate::phases::PhaseWatch;

/// What every member looks at between two chunks.
pub struct Watch<'a> {
    deadline: &'a Deadline,
    failed: AtomicBool,
}

impl Watch<'_> {
    /// Whether to go on.
    ///
    /// # Errors
    /// When time is up, or another member failed.
    pub fn check(&self) -> Result<(), EngineError> {
        self.deadline.check()?;
        if self.failed.load(Ordering::Relaxed) {
            return Err(EngineError::fault("stopped, because another thread had failed"));
        }
        Ok(())
    }
}

/// What the members answered, in their order, and when each was done.
#[derive(Debug)]
pub struct Answers<T> {
    /// Of each member.
    pub of: Vec<T>,
    done_ns: Vec<u64>,
}

impl<T> Answers<T> {
    /// When each member was done, in seconds from the beginning of the phase they worked in.
    #[must_use]
    pub fn dones(&self, phase: &PhaseWatch<'_>) -> Vec<f64> {
        let (now, elapsed_s) = (now_ns(), phase.elapsed_s());
        let since = |done: &u64| s_from_ns(now.saturating_sub(*done));
        self.done_ns.iter().map(|done| elapsed_s - since(done)).collect()
    }
}

/// Lets each of `members` do `work` on a thread of its own.
///
/// # Errors
/// That of the member that failed first; the others have stopped.
pub fn work<M: Send, T: Send>(
    members: impl IntoIterator<Item = M>,
    deadline: &Deadline,
    work: impl Fn(M, &Watch<'_>) -> Result<T, EngineError> + Sync,
) -> Result<Answers<T>, EngineError> {
    let watch = Watch { deadline, failed: AtomicBool::new(false) };
    let first_error = Mutex::new(None);
    let keep = |error: EngineError| {
        let mut first = first_error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        watch.failed.store(true, Ordering::Relaxed);
    };
    let answers: Vec<Option<(T, u64)>> = std::thread::scope(|scope| {
        let started: Vec<_> = members
            .into_iter()
            .map(|member| {
                let (watch, keep, work) = (&watch, &keep, &work);
                scope.spawn(move || match work(member, watch) {
                    Ok(answer) => Some((answer, now_ns())),
                    Err(error) => {
                        keep(error);
                        None
                    }
                })
            })
            .collect();
        let panicked = || keep(EngineError::fault("a thread of the kernel panicked"));
        let joined = started.into_iter().map(|thread| thread.join());
        joined
            .map(|answer| {
                answer.unwrap_or_else(|_| {
                    panicked();
                    None
                })
            })
            .collect()
    });
    if let Some(error) = first_error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let (of, done_ns) = answers.into_iter().flatten().unzip();
    Ok(Answers { of, done_ns })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_members() {
        let deadline = Deadline::after(60.0);
        let before = now_ns();
        // Each member but the last waits for the one after it to be done.
        let done = [const { AtomicBool::new(false) }; 9];
        done[8].store(true, Ordering::Relaxed);
        let answers = work(0..8_usize, &deadline, |member, watch| {
            while !done[member + 1].load(Ordering::Relaxed) {
                watch.check()?;
                std::thread::yield_now();
            }
            done[member].store(true, Ordering::Relaxed);
            Ok(member * 10)
        })
        .unwrap();
        assert_eq!(answers.of, [0, 10, 20, 30, 40, 50, 60, 70], "whoever was done first");
        assert!(answers.done_ns.iter().all(|done| *done > before));
    }

    #[test]
    fn the_first_failure_is_the_answer_and_stops_the_others() {
        let deadline = Deadline::after(60.0);
        let error = work(0..4, &deadline, |member, watch| {
            if member == 2 {
                return Err::<(), _>(EngineError::io("the disk is gone"));
            }
            loop {
                watch.check()?;
                std::thread::yield_now();
            }
        })
        .unwrap_err();
        assert_eq!(error.message, "the disk is gone");
    }

    #[test]
    fn members_stop_when_time_is_up() {
        let deadline = Deadline::after(0.02);
        let error = work(0..2, &deadline, |_, watch| -> Result<(), EngineError> {
            loop {
                watch.check()?;
                std::thread::yield_now();
            }
        });
        assert!(error.unwrap_err().message.contains("0.02 seconds"));
    }

    #[test]
    #[allow(clippy::panic)]
    fn a_panic_is_a_failure() {
        let error = work(0..2, &Deadline::after(60.0), |member, watch| {
            if member == 0 {
                panic!("as a test");
            }
            watch.check()
        });
        assert!(error.unwrap_err().message.contains("panicked"));
    }
}
