//! Which of the waiting requests a disk takes next.

use std::collections::{BTreeMap, VecDeque};

use super::geometry::Geometry;
use crate::document::DiskQueue;
use crate::io::IoId;

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub io: IoId,
    pub byte: u64,
    pub cylinder: f64,
    pub since_ns: u64,
}

/// Turns that a request waits at most before the disk takes it whatever is nearer.
const PATIENCE_TURNS: f64 = 100.0;

/// All that wait for one disk.
#[derive(Debug)]
pub(super) enum Queue {
    Fifo(VecDeque<Waiting>),
    /// By cylinder; equal ones in the order in which they came.
    Elevator(BTreeMap<(u32, u64), Waiting>, u64),
    /// In the order in which they came; one of the first so many is taken.
    Native(VecDeque<Waiting>, usize),
}

impl Queue {
    pub fn new(kind: DiskQueue, depth: u32) -> Self {
        match kind {
            DiskQueue::Fifo => Self::Fifo(VecDeque::new()),
            DiskQueue::Elevator => Self::Elevator(BTreeMap::new(), 0),
            DiskQueue::Native => Self::Native(VecDeque::new(), depth as usize),
        }
    }

    pub fn push(&mut self, waiting: Waiting) {
        match self {
            Self::Fifo(queue) | Self::Native(queue, _) => queue.push_back(waiting),
            Self::Elevator(queue, order) => {
                *order += 1;
                queue.insert((waiting.cylinder as u32, *order), waiting);
            }
        }
    }

    /// Takes the next one, for an arm at `cylinder` at `now_ns`.
    pub fn pop(&mut self, geometry: &Geometry, cylinder: f64, now_ns: u64) -> Option<Waiting> {
        match self {
            Self::Fifo(queue) => queue.pop_front(),
            Self::Elevator(queue, _) => {
                let ahead = queue.range((cylinder as u32, 0)..).next();
                let (&key, _) = ahead.or_else(|| queue.first_key_value())?;
                queue.remove(&key)
            }
            Self::Native(queue, depth) => {
                let oldest = queue.front()?;
                let patience_ns = PATIENCE_TURNS * geometry.rotation_ns();
                if (now_ns - oldest.since_ns) as f64 > patience_ns {
                    return queue.pop_front();
                }
                let access_ns = |waiting: &Waiting| {
                    let seek_ns = geometry.seek_ns(cylinder, waiting.cylinder);
                    let there_ns = now_ns as f64 + seek_ns;
                    seek_ns + geometry.turn_ns(there_ns, waiting.byte, waiting.cylinder)
                };
                let near = queue.iter().take(*depth).map(access_ns).enumerate();
                let (nearest, _) = near.min_by(|one, other| one.1.total_cmp(&other.1))?;
                queue.remove(nearest)
            }
        }
    }
}
