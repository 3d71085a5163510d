//! The state of one rank's exchange with all others. Whoever carries the messages asks [`step`] what
//! to send and where to receive, and tells [`sent`] and [`arrived`] what has happened; everything
//! is decided here.
//!
//! [`step`]: Exchange::step
//! [`sent`]: Exchange::sent
//! [`arrived`]: Exchange::arrived

use std::collections::VecDeque;

use leadline_base::error::EngineError;

use super::mailbox::{Inbox, Message, Outbox, SLOTS, Tag, mailboxes, slot_bytes};
use crate::memory::Memory;

/// What came of asking a source for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was put into the outbox.
    Worked,
    /// A slot is outstanding, or the disk has not answered.
    Waits,
    /// All has been put into the outbox.
    Done,
}

/// Where the bytes for the ranks come from.
pub trait Source: Send {
    /// Puts a piece of at most a chunk into the outbox; never waits.
    ///
    /// # Errors
    /// The input cannot be read.
    fn step(&mut self, outbox: &mut Outbox) -> Result<Step, EngineError>;
}

/// Where the bytes from the ranks go.
pub trait Sink: Send {
    /// Takes bytes of one rank in the order in which it sent them, and says how many; fewer than
    /// all: not now, ask again.
    ///
    /// # Errors
    /// The disk refuses.
    fn take(&mut self, from: usize, bytes: &[u8]) -> Result<usize, EngineError>;
}

/// What the carrier is to do next.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Whether anything was done; if not, a short wait is in order.
    pub worked: bool,
    /// To be sent now.
    pub send: Vec<Message>,
    /// Slots, by peer, in which the peer's next message is to be received.
    pub receive: Vec<(usize, usize)>,
}

/// One rank's side.
pub struct Exchange {
    rank: usize,
    ranks: usize,
    outbox: Outbox,
    inbox: Inbox,
    /// Arrived and not yet taken, by peer, with how much of the first has been.
    arrived: Vec<VecDeque<Message>>,
    taken: Vec<usize>,
    source_done: bool,
    last_sent: Vec<bool>,
    last_came: Vec<bool>,
    begun: bool,
    failure: Option<EngineError>,
    failed: bool,
    /// Payload for other ranks.
    pub sent_bytes: u64,
    /// Payload from other ranks.
    pub received_bytes: u64,
    /// Bytes copied into and out of the slots.
    pub copied_bytes: u64,
}

impl Exchange {
    /// An exchange among `ranks`, each with `memory_bytes` in all.
    ///
    /// # Errors
    /// The memory has no room for the slots.
    pub fn new(
        memory: &Memory,
        memory_bytes: usize,
        rank: usize,
        ranks: usize,
    ) -> Result<Self, EngineError> {
        let (outbox, inbox) = mailboxes(memory, ranks, slot_bytes(memory_bytes, ranks))?;
        Ok(Self {
            rank,
            ranks,
            outbox,
            inbox,
            arrived: vec![VecDeque::new(); ranks],
            taken: vec![0; ranks],
            source_done: false,
            last_sent: vec![false; ranks],
            last_came: vec![false; ranks],
            begun: false,
            failure: None,
            failed: false,
            sent_bytes: 0,
            received_bytes: 0,
            copied_bytes: 0,
        })
    }

    /// Does a piece of work and says what to carry. A failure of source or sink is kept for
    /// [`Self::failure`]: the other ranks are told, and nobody waits for this one.
    pub fn step(&mut self, source: &mut dyn Source, sink: &mut dyn Sink) -> Moves {
        let mut moves = Moves::default();
        if !self.begun {
            self.begun = true;
            let peers = (0..self.ranks).filter(|peer| *peer != self.rank);
            moves.receive =
                peers.flat_map(|peer| (0..SLOTS).map(move |slot| (peer, slot))).collect();
        }
        let result =
            self.take_arrived(sink, &mut moves).and_then(|()| self.fill(source, &mut moves));
        if let Err(error) = result {
            self.failure.get_or_insert(error);
            self.failed = true;
        }
        self.end_streams();
        self.dispatch(&mut moves);
        moves
    }

    /// A message has left its slot.
    pub fn sent(&mut self, peer: usize, slot: usize) {
        self.outbox.free(peer, slot);
    }

    /// A message has come, in the order in which its sender sent them.
    pub fn arrived(&mut self, message: Message) {
        self.received_bytes += message.bytes as u64;
        self.arrived[message.peer].push_back(message);
    }

    /// Whether everything is where it belongs, or has been given up.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.outbox.is_idle()
            && self.last_sent.iter().all(|sent| *sent)
            && self.last_came.iter().all(|came| *came)
    }

    /// Whether this rank or another gave up.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Why this rank gave up; none when another did.
    pub fn failure(&mut self) -> Option<EngineError> {
        self.failure.take()
    }

    /// Bytes of a slot.
    #[must_use]
    pub fn slot_bytes(&self) -> usize {
        self.outbox.slot_bytes()
    }

    /// Where a slot for sending begins.
    #[must_use]
    pub fn send_address(&self, peer: usize, slot: usize) -> usize {
        self.outbox.address(peer, slot)
    }

    /// Where a slot for receiving begins.
    #[must_use]
    pub fn receive_address(&self, peer: usize, slot: usize) -> usize {
        self.inbox.address(peer, slot)
    }

    fn take_arrived(&mut self, sink: &mut dyn Sink, moves: &mut Moves) -> Result<(), EngineError> {
        for peer in 0..self.ranks {
            while let Some(message) = self.arrived[peer].front().copied() {
                let own = peer == self.rank;
                if !self.failed {
                    let bytes =
                        if own { self.outbox.bytes(message) } else { self.inbox.bytes(message) };
                    let bytes = &bytes[self.taken[peer]..];
                    let length = bytes.len();
                    let taken = sink.take(peer, bytes)?;
                    self.copied_bytes += taken as u64;
                    self.taken[peer] += taken;
                    moves.worked |= taken > 0;
                    if taken < length {
                        break;
                    }
                }
                self.arrived[peer].pop_front();
                self.taken[peer] = 0;
                self.emptied(message, own, moves);
            }
        }
        Ok(())
    }

    fn emptied(&mut self, message: Message, own: bool, moves: &mut Moves) {
        moves.worked = true;
        self.failed |= message.tag == Tag::Failed;
        self.last_came[message.peer] |= message.tag != Tag::Data;
        if own {
            self.outbox.free(message.peer, message.slot);
        } else if message.tag == Tag::Data {
            moves.receive.push((message.peer, message.slot));
        }
    }

    fn fill(&mut self, source: &mut dyn Source, moves: &mut Moves) -> Result<(), EngineError> {
        if self.source_done || self.failed {
            return Ok(());
        }
        match source.step(&mut self.outbox)? {
            Step::Worked => moves.worked = true,
            Step::Waits => {}
            Step::Done => self.source_done = true,
        }
        Ok(())
    }

    /// Sends every rank its last message as soon as its slot is free.
    fn end_streams(&mut self) {
        if !self.source_done && !self.failed {
            return;
        }
        for peer in 0..self.ranks {
            if self.last_sent[peer] {
                continue;
            }
            if self.failed {
                self.outbox.discard(peer);
            }
            let tag = if self.failed { Tag::Failed } else { Tag::Last };
            self.last_sent[peer] = self.outbox.dispatch(peer, tag);
        }
    }

    /// Hands what is ready to the network, or to this rank itself.
    fn dispatch(&mut self, moves: &mut Moves) {
        for message in self.outbox.take_ready() {
            moves.worked = true;
            self.copied_bytes += message.bytes as u64;
            if message.peer == self.rank {
                self.arrived[self.rank].push_back(message);
            } else {
                self.sent_bytes += message.bytes as u64;
                moves.send.push(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ranks::mailbox::GRAIN_BYTES;

    const MEMORY_BYTES: usize = 32 << 20;

    /// Numbers for every rank, as many as are left for it.
    struct Numbers {
        left: Vec<u32>,
        fails_at: Option<u32>,
    }

    impl Source for Numbers {
        fn step(&mut self, outbox: &mut Outbox) -> Result<Step, EngineError> {
            let mut step = Step::Waits;
            for (to, left) in self.left.iter_mut().enumerate() {
                for _ in 0..100_000 {
                    if *left == 0 || outbox.put(to, &left.to_le_bytes(), 4) == 0 {
                        break;
                    }
                    *left -= 1;
                    step = Step::Worked;
                }
                if self.fails_at.is_some_and(|at| *left < at) {
                    return Err(EngineError::io("the stripe is gone"));
                }
            }
            Ok(if self.left.iter().all(|left| *left == 0) { Step::Done } else { step })
        }
    }

    /// Wants every rank's numbers, downwards; refuses to take any before `patience` is over.
    struct Collected {
        next: Vec<u32>,
        patience: u32,
    }

    impl Sink for Collected {
        fn take(&mut self, from: usize, bytes: &[u8]) -> Result<usize, EngineError> {
            if self.patience > 0 {
                self.patience -= 1;
                return Ok(0);
            }
            let taken = bytes.len().min(GRAIN_BYTES / 2 / 4 * 4);
            for number in bytes[..taken].as_chunks().0 {
                assert_eq!(u32::from_le_bytes(*number), self.next[from]);
                self.next[from] -= 1;
            }
            Ok(taken)
        }
    }

    struct Party {
        exchange: Exchange,
        source: Numbers,
        sink: Collected,
        wire: Vec<VecDeque<Message>>,
        free: Vec<VecDeque<usize>>,
    }

    fn parties(ranks: usize, amount: impl Fn(usize, usize) -> u32) -> Vec<Party> {
        let party = |rank| Party {
            exchange: {
                let memory = Memory::new(MEMORY_BYTES as u64).unwrap();
                Exchange::new(&memory, MEMORY_BYTES, rank, ranks).unwrap()
            },
            source: Numbers {
                left: (0..ranks).map(|to| amount(rank, to)).collect(),
                fails_at: None,
            },
            sink: Collected {
                next: (0..ranks).map(|from| amount(from, rank)).collect(),
                patience: 3,
            },
            wire: vec![VecDeque::new(); ranks],
            free: vec![VecDeque::new(); ranks],
        };
        (0..ranks).map(party).collect()
    }

    /// Carries until all is over, as MPI does: a message moves when a slot waits for it.
    fn carry(parties: &mut [Party]) {
        for _ in 0..100_000 {
            for party in &mut *parties {
                let moves = party.exchange.step(&mut party.source, &mut party.sink);
                for message in moves.send {
                    party.wire[message.peer].push_back(message);
                }
                for (peer, slot) in moves.receive {
                    party.free[peer].push_back(slot);
                }
            }
            for from in 0..parties.len() {
                for to in 0..parties.len() {
                    deliver(parties, from, to);
                }
            }
            if parties.iter().all(|party| party.exchange.is_over()) {
                return;
            }
        }
        unreachable!("the exchange does not end");
    }

    fn deliver(parties: &mut [Party], from: usize, to: usize) {
        let Some(message) = parties[from].wire[to].front().copied() else { return };
        let Some(slot) = parties[to].free[from].pop_front() else { return };
        parties[from].wire[to].pop_front();
        let bytes = parties[from].exchange.outbox.bytes(message).to_vec();
        parties[from].exchange.sent(to, message.slot);
        let inbox = &mut parties[to].exchange.inbox;
        inbox.slot_mut(from, slot)[..bytes.len()].copy_from_slice(&bytes);
        parties[to].exchange.arrived(Message { peer: from, slot, ..message });
    }

    #[test]
    fn every_rank_gets_what_is_its_own_in_order_and_it_is_counted() {
        let amount = |from: usize, to: usize| [0, 70_000, 1_200_003][(from + 2 * to) % 3];
        let mut parties = parties(3, amount);
        carry(&mut parties);
        for (rank, party) in parties.iter_mut().enumerate() {
            assert_eq!(party.sink.next, vec![0; 3]);
            assert!(!party.exchange.has_failed());
            let total = |of: &dyn Fn(usize) -> u32| {
                (0..3).filter(|peer| *peer != rank).map(|peer| 4 * u64::from(of(peer))).sum::<u64>()
            };
            assert_eq!(party.exchange.sent_bytes, total(&|peer| amount(rank, peer)));
            assert_eq!(party.exchange.received_bytes, total(&|peer| amount(peer, rank)));
        }
    }

    #[test]
    fn a_rank_that_fails_ends_all_of_them_and_only_it_knows_why() {
        let mut parties = parties(3, |_, _| 2_000_000);
        parties[1].source.fails_at = Some(1_500_000);
        carry(&mut parties);
        assert!(parties.iter().all(|party| party.exchange.has_failed()));
        let failures: Vec<_> = parties.iter_mut().map(|p| p.exchange.failure()).collect();
        assert_eq!(failures[1], Some(EngineError::io("the stripe is gone")));
        assert_eq!((&failures[0], &failures[2]), (&None, &None));
        assert!(parties[0].source.left.iter().any(|left| *left > 0), "it stopped early");
    }

    #[test]
    fn a_rank_alone_sends_itself_everything() {
        let mut parties = parties(1, |_, _| 900_000);
        carry(&mut parties);
        assert_eq!((parties[0].sink.next[0], parties[0].exchange.sent_bytes), (0, 0));
    }
}
