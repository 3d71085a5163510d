//! So many at once, the others wait in the order in which they came.
//!
//! With times known beforehand no queue is needed: the next request takes whoever is free first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::io::FAR_NS;

/// When each server is free.
#[derive(Clone, Debug)]
pub(crate) struct Servers(BinaryHeap<Reverse<u64>>);

impl Servers {
    /// All are free from the beginning of time.
    pub fn new(count: u32) -> Self {
        Self((0..count.max(1)).map(|_| Reverse(0)).collect())
    }

    /// When the first of them is free.
    pub fn free_ns(&self) -> u64 {
        self.0.peek().map_or(0, |first| first.0)
    }

    /// When a request that comes at `now_ns`, no earlier than any before it, has been served.
    pub fn serve(&mut self, now_ns: u64, service_ns: u64) -> u64 {
        let Some(mut first) = self.0.peek_mut() else { return now_ns + service_ns };
        let end_ns = (first.0.max(now_ns) + service_ns).min(FAR_NS);
        first.0 = end_ns;
        end_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_of_three_waits_for_the_first_of_two_servers() {
        let mut servers = Servers::new(2);
        let ends: Vec<u64> = [10, 30, 5].map(|service| servers.serve(100, service)).to_vec();
        assert_eq!(ends, [110, 130, 115]);
        assert_eq!(servers.serve(200, 7), 207, "nobody waits for those who are idle");
    }
}
