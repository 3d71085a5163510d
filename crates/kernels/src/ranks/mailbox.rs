//! Memory that the network reads from and writes to: two slots for each pair of ranks and
//! direction, so that one is filled or emptied while the other is outstanding.

use leadline_base::error::EngineError;

use crate::memory::{Memory, Region};

/// Whole records and whole blocks: least common multiple of 100 and 4096.
pub const GRAIN_BYTES: usize = 102_400;
/// Larger messages gain nothing on any network we know.
const SLOT_BYTES_MAX: usize = 10 * GRAIN_BYTES;
/// Slots of one pair in one direction.
pub const SLOTS: usize = 2;
/// Share of a rank's memory that may hold messages: an eighth.
const MEMORY_SHARE: usize = 8;

/// Bytes of a slot when `memory_bytes` are there for each of `ranks`; every rank must come to the
/// same answer.
#[must_use]
pub fn slot_bytes(memory_bytes: usize, ranks: usize) -> usize {
    let each = memory_bytes / MEMORY_SHARE / (2 * SLOTS * ranks);
    (each / GRAIN_BYTES * GRAIN_BYTES).clamp(GRAIN_BYTES, SLOT_BYTES_MAX)
}

/// What a message says beside its bytes; the tag it travels under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Tag {
    /// More follows.
    Data = 0,
    /// The last of its sender.
    Last = 1,
    /// The last: its sender failed, and all ranks stop.
    Failed = 2,
}

impl Tag {
    /// The tag of this number.
    #[must_use]
    pub fn of(number: i32) -> Option<Self> {
        [Self::Data, Self::Last, Self::Failed].into_iter().find(|tag| *tag as i32 == number)
    }
}

/// Bytes in a slot, ready to go to a rank or come from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The other rank.
    pub peer: usize,
    /// Which of the pair's slots.
    pub slot: usize,
    /// How many, from the slot's beginning.
    pub bytes: usize,
    /// What it says.
    pub tag: Tag,
}

/// The slots of one peer.
struct Pair {
    slots: Vec<Region>,
    /// On their way, so not ours to touch.
    busy: [bool; SLOTS],
    filling: usize,
    filled: usize,
}

/// Slots that are filled for each rank, this one included.
pub struct Outbox {
    pairs: Vec<Pair>,
    slot_bytes: usize,
    ready: Vec<Message>,
}

impl Outbox {
    /// Bytes of a slot.
    #[must_use]
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Copies as many whole `unit`s of `bytes` into the slot for `to` as have room; 0 while both
    /// slots are outstanding.
    #[inline]
    pub fn put(&mut self, to: usize, bytes: &[u8], unit: usize) -> usize {
        let pair = &mut self.pairs[to];
        if pair.busy[pair.filling] {
            return 0;
        }
        let room = self.slot_bytes - pair.filled;
        let length = bytes.len().min(room / unit * unit);
        pair.slots[pair.filling][pair.filled..pair.filled + length]
            .copy_from_slice(&bytes[..length]);
        pair.filled += length;
        if self.slot_bytes - pair.filled < unit {
            self.dispatch(to, Tag::Data);
        }
        length
    }

    /// Sends what lies in the slot for `to`; false when the slot is still on its way.
    pub fn dispatch(&mut self, to: usize, tag: Tag) -> bool {
        let pair = &mut self.pairs[to];
        if pair.busy[pair.filling] {
            return false;
        }
        if pair.filled > 0 || tag != Tag::Data {
            let (slot, bytes) = (pair.filling, pair.filled);
            self.ready.push(Message { peer: to, slot, bytes, tag });
            pair.busy[slot] = true;
            pair.filling = (slot + 1) % SLOTS;
            pair.filled = 0;
        }
        true
    }

    /// Sends what was begun for every rank, so that no receiver waits for it.
    pub fn dispatch_all(&mut self) {
        for to in 0..self.pairs.len() {
            self.dispatch(to, Tag::Data);
        }
    }

    /// Drops what lies in the slot for `to`, unsent.
    pub fn discard(&mut self, to: usize) {
        self.pairs[to].filled = 0;
    }

    /// Messages to be sent, in order.
    pub fn take_ready(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.ready)
    }

    /// The bytes of a message that has not been freed.
    #[must_use]
    pub fn bytes(&self, message: Message) -> &[u8] {
        &self.pairs[message.peer].slots[message.slot][..message.bytes]
    }

    /// A message has left its slot.
    pub fn free(&mut self, peer: usize, slot: usize) {
        self.pairs[peer].busy[slot] = false;
    }

    /// Whether nothing is outstanding.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.pairs.iter().all(|pair| pair.busy == [false; SLOTS])
    }

    /// Where a slot begins, for the network.
    #[must_use]
    pub fn address(&self, peer: usize, slot: usize) -> usize {
        self.pairs[peer].slots[slot].as_ptr().addr()
    }
}

/// Slots that the network fills for each rank.
pub struct Inbox {
    pairs: Vec<Vec<Region>>,
}

impl Inbox {
    /// The bytes of a message that has arrived.
    #[must_use]
    pub fn bytes(&self, message: Message) -> &[u8] {
        &self.pairs[message.peer][message.slot][..message.bytes]
    }

    /// Where a slot begins, for the network.
    #[must_use]
    pub fn address(&self, peer: usize, slot: usize) -> usize {
        self.pairs[peer][slot].as_ptr().addr()
    }

    /// A slot, for a network within this process.
    #[cfg(test)]
    pub fn slot_mut(&mut self, peer: usize, slot: usize) -> &mut [u8] {
        &mut self.pairs[peer][slot]
    }
}

/// Slots for sending to every rank, and for receiving from every rank, in one piece of memory.
///
/// # Errors
/// The memory has no room for them.
pub fn mailboxes(
    memory: &Memory,
    ranks: usize,
    slot_bytes: usize,
) -> Result<(Outbox, Inbox), EngineError> {
    let mut slots = memory.take_many(2 * ranks * SLOTS, slot_bytes)?.into_iter();
    let mut pairs: Vec<Vec<Region>> =
        (0..2 * ranks).map(|_| slots.by_ref().take(SLOTS).collect()).collect();
    let inbox = Inbox { pairs: pairs.split_off(ranks) };
    let pair = |slots| Pair { slots, busy: [false; SLOTS], filling: 0, filled: 0 };
    let pairs = pairs.into_iter().map(pair).collect();
    Ok((Outbox { pairs, slot_bytes, ready: Vec::new() }, inbox))
}
