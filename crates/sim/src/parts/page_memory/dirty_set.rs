//! Which pages are dirty, in the order of their numbers.

use std::collections::BTreeMap;

/// Sixty-four pages to a word.
#[derive(Debug, Default)]
pub(super) struct DirtySet {
    words: BTreeMap<u64, u64>,
    count: u64,
}

impl DirtySet {
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds a page that is not in it.
    pub fn add(&mut self, page: u64) {
        *self.words.entry(page / 64).or_default() |= 1 << (page % 64);
        self.count += 1;
    }

    /// Takes a page out that is in it.
    pub fn take(&mut self, page: u64) {
        if let Some(word) = self.words.get_mut(&(page / 64)) {
            *word &= !(1 << (page % 64));
            self.count -= 1;
            if *word == 0 {
                self.words.remove(&(page / 64));
            }
        }
    }

    /// The first page from `cursor` on, or from the start after the end.
    pub fn next(&self, cursor: u64) -> Option<u64> {
        let here = self.words.get(&(cursor / 64)).map_or(0, |word| word & (!0 << (cursor % 64)));
        if here != 0 {
            return Some(cursor / 64 * 64 + u64::from(here.trailing_zeros()));
        }
        let later = self.words.range(cursor / 64 + 1..).next();
        let (key, word) = later.or_else(|| self.words.first_key_value())?;
        Some(key * 64 + u64::from(word.trailing_zeros()))
    }

    /// Pages in a row from `page` on, at most `most`.
    pub fn run(&self, page: u64, most: u64) -> u64 {
        let mut length = 0;
        while length < most {
            let at = page + length;
            let Some(word) = self.words.get(&(at / 64)) else { break };
            let ones = u64::from((word >> (at % 64)).trailing_ones());
            length += ones;
            if ones < 64 - at % 64 {
                break;
            }
        }
        length.min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_across_words_and_around_the_end() {
        let mut set = DirtySet::default();
        for page in [3, 62, 63, 64, 65, 200] {
            set.add(page);
        }
        assert_eq!(set.next(4), Some(62));
        assert_eq!((set.run(62, 100), set.run(62, 3), set.run(3, 9)), (4, 3, 1));
        assert_eq!((set.next(201), set.next(66)), (Some(3), Some(200)));
        set.take(63);
        assert_eq!((set.run(62, 100), set.count()), (1, 5));
    }
}
