//! A memory that is asked for page after page, without any time.

use crate::cache::Cache;
use crate::document::PolicyName;

/// Pages of room made before any comes.
const EXPECTED: usize = 1 << 12;

/// A memory of so many pages under a replacement policy.
#[derive(Debug)]
pub struct Replay(Cache);

impl Replay {
    /// An empty one; pages of `page_bytes` decide what the kernel's active/inactive LRU do with its size.
    pub fn new(policy: PolicyName, pages: usize, page_bytes: u64) -> Self {
        Self(Cache::new(policy, pages, page_bytes, EXPECTED))
    }

    /// Uses a page; false when it had to be brought in.
    pub fn touch(&mut self, page: u64) -> bool {
        let hit = self.0.touch(page).is_some();
        if !hit {
            self.0.insert(page, true);
        }
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_is_one_page_too_long_never_hits_under_lru() {
        let mut memory = Replay::new(PolicyName::Lru, 10, 4096);
        let mut hits = |pages: u64| (0..1000).filter(|number| memory.touch(number % pages)).count();
        assert_eq!(hits(11), 0);
        assert_eq!(hits(10), 1000, "what was left out is asked for no more");
    }
}
