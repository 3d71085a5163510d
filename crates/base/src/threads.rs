//! A thread for each slot, making blocking calls, where the kernel grants no queue.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io::Error;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What a worker and its threads share.
struct Shared<C> {
    /// Calls that no thread has yet; none when the threads are to end.
    waiting: Mutex<Option<VecDeque<(usize, C)>>>,
    more: Condvar,
    done: Mutex<VecDeque<(usize, i32)>>,
    one_done: Condvar,
}

/// One worker's threads; dropped, it waits for what is under way.
pub struct Threads<C> {
    shared: Arc<Shared<C>>,
    threads: Vec<JoinHandle<()>>,
}

impl<C: Send + 'static> Threads<C> {
    /// So many threads.
    ///
    /// `call` makes a call and returns its bytes, or the error below zero ([`outcome`]); `tell` is
    /// called after each completion.
    ///
    /// # Errors
    /// A limit on threads.
    pub fn new(
        slots: usize,
        call: impl Fn(&C) -> i32 + Clone + Send + 'static,
        tell: impl Fn() + Clone + Send + 'static,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            waiting: Mutex::new(Some(VecDeque::with_capacity(slots))),
            more: Condvar::new(),
            done: Mutex::new(VecDeque::with_capacity(slots)),
            one_done: Condvar::new(),
        });
        let mut own = Self { shared, threads: Vec::with_capacity(slots) };
        for _ in 0..slots {
            let (shared, call, tell) = (Arc::clone(&own.shared), call.clone(), tell.clone());
            let builder = thread::Builder::new().name("request".to_owned()).stack_size(64 << 10);
            own.threads.push(builder.spawn(move || {
                while let Some((slot, asked)) = shared.next() {
                    let found = call(&asked); // before the lock: calls run side by side
                    locked(&shared.done).push_back((slot, found));
                    shared.one_done.notify_one();
                    tell();
                }
            })?);
        }
        Ok(own)
    }

    /// Gives a call to the next thread that is free.
    #[inline]
    pub fn push(&self, slot: usize, call: C) {
        if let Some(waiting) = locked(&self.shared.waiting).as_mut() {
            waiting.push_back((slot, call));
        }
        self.shared.more.notify_one();
    }

    /// Waits for a completion; false when the timeout ended first.
    #[inline]
    pub fn wait(&self, timeout_ns: Option<u64>) -> bool {
        let done = locked(&self.shared.done);
        let (one_done, none) = (&self.shared.one_done, |done: &mut VecDeque<_>| done.is_empty());
        let done = match timeout_ns {
            None => one_done.wait_while(done, none).unwrap_or_else(PoisonError::into_inner),
            Some(timeout_ns) => {
                let limit = Duration::from_nanos(timeout_ns);
                let waited = one_done.wait_timeout_while(done, limit, none);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        !done.is_empty()
    }

    /// A slot whose call is done, with its outcome.
    #[inline]
    pub fn pop(&self) -> Option<(usize, i32)> {
        locked(&self.shared.done).pop_front()
    }
}

impl<C> Drop for Threads<C> {
    fn drop(&mut self) {
        *locked(&self.shared.waiting) = None;
        self.shared.more.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl<C> Shared<C> {
    fn next(&self) -> Option<(usize, C)> {
        let none =
            |waiting: &mut Option<VecDeque<_>>| waiting.as_ref().is_some_and(VecDeque::is_empty);
        let waiting = locked(&self.waiting);
        let mut waiting =
            self.more.wait_while(waiting, none).unwrap_or_else(PoisonError::into_inner);
        waiting.as_mut()?.pop_front()
    }
}

/// What a system call returned: bytes, or the error below zero.
#[inline]
#[must_use]
pub fn outcome(returned: isize) -> i32 {
    if returned < 0 {
        return -Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    }
    returned as i32
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn calls_are_under_way_together() {
        let together = Arc::new((Mutex::new(0), Condvar::new()));
        let own = Arc::clone(&together);
        let threads = Threads::new(
            2,
            move |(): &()| {
                let (count, changed) = &*own;
                let mut begun = count.lock().unwrap();
                *begun += 1;
                changed.notify_all();
                let all = changed.wait_timeout_while(begun, Duration::from_secs(5), |it| *it < 2);
                i32::from(!all.unwrap().1.timed_out())
            },
            || {},
        )
        .unwrap();
        threads.push(0, ());
        threads.push(1, ());
        let mut done = Vec::new();
        while done.len() < 2 {
            assert!(threads.wait(None));
            done.extend(std::iter::from_fn(|| threads.pop()));
        }
        done.sort_unstable();
        assert_eq!(done, [(0, 1), (1, 1)], "each saw the other begin");
    }
}
