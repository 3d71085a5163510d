//! Pages by number, in lists: what all replacement policies are made of.
//!
//! Pages lie in one array, lists run through it by index, and an open-addressed table (linear
//! probing, at most half full) finds a page by its number. Nothing is allocated beyond the pages
//! ever held at once.

/// No page.
pub(crate) const NONE: u32 = u32::MAX;

/// Pages that room is made for before they come.
const EXPECTED_MAX: usize = 1 << 21;

/// Lists a policy may have.
pub(crate) const LISTS: usize = 4;

/// A page held, or remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub number: u64,
    previous: u32,
    next: u32,
    /// Which request brings its contents; [`NONE`] once they are here.
    pub filling: u32,
    /// When it went, for policies that ask.
    pub age: u32,
    pub list: u8,
    pub referenced: bool,
    pub dirty: bool,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    length: usize,
}

/// All pages of a cache.
#[derive(Debug)]
pub(crate) struct Table {
    pages: Vec<Page>,
    free: u32,
    lists: [List; LISTS],
    /// Page indices; [`NONE`] where empty. A power of two long.
    index: Vec<u32>,
    held: usize,
}

impl Table {
    /// Room for so many pages, as far as they come.
    pub fn new(pages: usize) -> Self {
        let empty = List { head: NONE, tail: NONE, length: 0 };
        Self {
            pages: Vec::with_capacity(pages.min(EXPECTED_MAX)),
            free: NONE,
            lists: [empty; LISTS],
            index: vec![NONE; (2 * pages.min(EXPECTED_MAX)).next_power_of_two().max(16)],
            held: 0,
        }
    }

    fn home(&self, number: u64) -> usize {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (64 - self.index.len().trailing_zeros())) as usize
    }

    fn place_of(&self, number: u64) -> Option<usize> {
        let mask = self.index.len() - 1;
        let mut place = self.home(number);
        loop {
            let slot = self.index[place];
            if slot == NONE {
                return None;
            }
            if self.pages[slot as usize].number == number {
                return Some(place);
            }
            place = (place + 1) & mask;
        }
    }

    /// The slot of a page, on whatever list.
    #[inline]
    pub fn find(&self, number: u64) -> Option<u32> {
        self.place_of(number).map(|place| self.index[place])
    }

    #[inline]
    pub fn page(&self, slot: u32) -> &Page {
        &self.pages[slot as usize]
    }

    #[inline]
    pub fn page_mut(&mut self, slot: u32) -> &mut Page {
        &mut self.pages[slot as usize]
    }

    pub fn length(&self, list: u8) -> usize {
        self.lists[list as usize].length
    }

    /// The slot at the end of a list.
    pub fn last(&self, list: u8) -> Option<u32> {
        let tail = self.lists[list as usize].tail;
        (tail != NONE).then_some(tail)
    }

    /// Adds a page that is not held, at the front of a list.
    pub fn add(&mut self, number: u64, list: u8) -> u32 {
        if (self.held + 1) * 2 > self.index.len() {
            self.grow();
        }
        let page = Page {
            number,
            previous: NONE,
            next: NONE,
            filling: NONE,
            age: 0,
            list,
            referenced: false,
            dirty: false,
        };
        let slot = if self.free == NONE {
            self.pages.push(page);
            self.pages.len() as u32 - 1
        } else {
            let slot = self.free;
            self.free = self.pages[slot as usize].next;
            self.pages[slot as usize] = page;
            slot
        };
        self.enter(number, slot);
        self.held += 1;
        self.link(slot, list);
        slot
    }

    /// Forgets a page.
    pub fn remove(&mut self, slot: u32) {
        self.unlink(slot);
        self.leave(self.pages[slot as usize].number);
        self.pages[slot as usize].next = self.free;
        self.free = slot;
        self.held -= 1;
    }

    /// Moves a page to the front of a list.
    #[inline]
    pub fn move_to_front(&mut self, slot: u32, list: u8) {
        if self.lists[list as usize].head != slot {
            self.unlink(slot);
            self.link(slot, list);
        }
    }

    fn link(&mut self, slot: u32, list: u8) {
        let head = self.lists[list as usize].head;
        let page = &mut self.pages[slot as usize];
        (page.previous, page.next, page.list) = (NONE, head, list);
        if head == NONE {
            self.lists[list as usize].tail = slot;
        } else {
            self.pages[head as usize].previous = slot;
        }
        self.lists[list as usize].head = slot;
        self.lists[list as usize].length += 1;
    }

    fn unlink(&mut self, slot: u32) {
        let Page { previous, next, list, .. } = self.pages[slot as usize];
        let list = &mut self.lists[list as usize];
        list.length -= 1;
        if previous == NONE {
            list.head = next;
        } else {
            self.pages[previous as usize].next = next;
        }
        if next == NONE {
            list.tail = previous;
        } else {
            self.pages[next as usize].previous = previous;
        }
    }

    fn enter(&mut self, number: u64, slot: u32) {
        let mask = self.index.len() - 1;
        let mut place = self.home(number);
        while self.index[place] != NONE {
            place = (place + 1) & mask;
        }
        self.index[place] = slot;
    }

    /// Empties a page's place and moves those behind it up, so that no search ends too soon.
    fn leave(&mut self, number: u64) {
        let Some(mut hole) = self.place_of(number) else { return };
        let mask = self.index.len() - 1;
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let slot = self.index[place];
            if slot == NONE {
                break;
            }
            let home = self.home(self.pages[slot as usize].number);
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(hole) & mask) {
                self.index[hole] = slot;
                hole = place;
            }
        }
        self.index[hole] = NONE;
    }

    fn grow(&mut self) {
        let longer = vec![NONE; self.index.len() * 2];
        let old = std::mem::replace(&mut self.index, longer);
        for slot in old.into_iter().filter(|&slot| slot != NONE) {
            self.enter(self.pages[slot as usize].number, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::random::Random;

    #[test]
    fn pages_are_found_whatever_came_and_went() {
        let (mut table, mut random) = (Table::new(0), Random::new(3));
        let mut truth: HashMap<u64, u8> = HashMap::new();
        for _ in 0..50_000 {
            let number = random.below(700) * 1_000_003;
            let list = random.below(LISTS as u64) as u8;
            match table.find(number) {
                None => {
                    assert!(!truth.contains_key(&number));
                    table.add(number, list);
                    truth.insert(number, list);
                }
                Some(slot) if random.below(2) == 0 => {
                    assert_eq!(Some(&table.page(slot).list), truth.get(&number));
                    table.move_to_front(slot, table.page(slot).list);
                }
                Some(slot) => {
                    table.remove(slot);
                    truth.remove(&number);
                }
            }
        }
        let lengths: usize = (0..LISTS as u8).map(|list| table.length(list)).sum();
        assert_eq!(lengths, truth.len());
        assert!(table.pages.len() <= 700, "slots are used again");
        assert!(truth.keys().all(|&number| table.find(number).is_some()));
    }
}
