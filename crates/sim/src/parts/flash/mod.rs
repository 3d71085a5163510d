//! A flash drive: chips behind channels, a write buffer, one-bit cells, garbage collection.
//!
//! Bytes lie over the chips in turn, `planes` pages on each. A read takes its chips and then their
//! channels; chips put off a program for it. Writes fill a buffer that is emptied into whichever
//! chip is next; who finds no room waits for it. While there is room in the one-bit cells they are
//! programmed, later the others: the cliff. Copies of the collector ride on the host's programs.

mod translation;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::calendar::Event;
use crate::document::{Flash as Document, Slc};
use crate::io::{Hub, IoId, Part, PartId, Span, ns, transfer_ns};
use crate::random::Random;
use translation::Translation;

/// One-bit cells.
#[derive(Clone, Debug)]
struct OneBit {
    document: Slc,
    used: f64,
}

/// One drive.
#[derive(Clone, Debug)]
pub(crate) struct Flash {
    /// Bytes that a chip reads or programs at once.
    stripe: u64,
    read_ns: f64,
    program_ns: f64,
    channel_mb_s: f64,
    interface_mb_s: f64,
    overhead_ns: f64,
    buffer: u64,
    power_safe: bool,
    /// When each chip has done its reads, and its programs; and all of them theirs.
    read_free: Vec<f64>,
    program_free: Vec<f64>,
    programmed_ns: f64,
    channel_free: Vec<f64>,
    /// When the link has carried what was asked so far: out, and in.
    link_free: [f64; 2],
    next_chip: usize,
    /// Bytes written that fill no stripe yet.
    open: u64,
    /// Programs to come: when done, and bytes.
    draining: VecDeque<(f64, u64)>,
    drained_ns: f64,
    buffered: u64,
    one_bit: Option<OneBit>,
    translation: Translation,
    /// Bytes still to be copied by the collector: the sample owes them a block at a time, the drive
    /// pays them off over as many writes.
    owed: f64,
}

impl Flash {
    /// An idle drive.
    pub fn new(document: &Document, random: &mut Random) -> Self {
        let translation = Translation::new(
            document.capacity_bytes,
            document.spare_frac,
            document.aged_frac,
            random,
        );
        let channels = document.channels as usize;
        let chips = channels * document.dies_per_channel as usize;
        let it = document;
        Self {
            stripe: it.page_bytes * u64::from(it.planes),
            read_ns: it.read_us * 1e3,
            program_ns: it.program_us * 1e3,
            channel_mb_s: it.channel_mb_s,
            interface_mb_s: it.interface_mb_s,
            overhead_ns: it.overhead_us * 1e3,
            buffer: it.write_buffer_bytes,
            power_safe: it.power_safe,
            read_free: vec![0.0; chips],
            program_free: vec![0.0; chips],
            channel_free: vec![0.0; channels],
            programmed_ns: 0.0,
            link_free: [0.0; 2],
            next_chip: 0,
            open: 0,
            draining: VecDeque::new(),
            drained_ns: 0.0,
            buffered: 0,
            one_bit: it.slc.clone().map(|document| OneBit {
                used: document.begin_frac * document.capacity_bytes as f64,
                document,
            }),
            owed: translation.usually_owed(),
            translation,
        }
    }

    /// When the link has carried so many bytes from `now_ns` on.
    fn link(&mut self, way: usize, now_ns: f64, bytes: u64) -> f64 {
        let end_ns = self.link_free[way].max(now_ns) + transfer_ns(bytes, self.interface_mb_s);
        self.link_free[way] = end_ns;
        end_ns
    }

    fn read(&mut self, hub: &mut Hub, span: Span) -> f64 {
        let now_ns = hub.now_ns as f64;
        let (mut at, mut here_ns) = (span.from, now_ns);
        while at < span.end() {
            let stripe = at / self.stripe;
            let to = ((stripe + 1) * self.stripe).min(span.end());
            here_ns = here_ns.max(self.read_chip(now_ns, stripe, to - at));
            hub.effort += 1;
            at = to;
        }
        self.link(0, now_ns, span.bytes).max(here_ns) + self.overhead_ns
    }

    fn read_chip(&mut self, now_ns: f64, stripe: u64, bytes: u64) -> f64 {
        let chip = (stripe % self.read_free.len() as u64) as usize;
        let channel = chip % self.channel_free.len();
        let read_ns = self.read_free[chip].max(now_ns) + self.read_ns;
        self.read_free[chip] = read_ns;
        if self.program_free[chip] > now_ns {
            self.program_free[chip] += self.read_ns;
        }
        let transfer_ns = transfer_ns(bytes, self.channel_mb_s);
        self.channel(channel, now_ns, transfer_ns).max(read_ns + transfer_ns)
    }

    /// When a channel could have carried this as well, had it been there at `now_ns`.
    ///
    /// What comes to a channel later than it was asked for leaves it free until then, so only the
    /// time that it is busy is added up.
    fn channel(&mut self, channel: usize, now_ns: f64, transfer_ns: f64) -> f64 {
        let end_ns = self.channel_free[channel].max(now_ns) + transfer_ns;
        self.channel_free[channel] = end_ns;
        end_ns
    }

    fn write(&mut self, hub: &mut Hub, span: Span, durable: bool) -> f64 {
        let now_ns = hub.now_ns as f64;
        self.rest(now_ns);
        let here_ns = self.link(1, now_ns, span.bytes);
        self.owed += self.translation.wrote(span.from, span.bytes) as f64;
        self.open += span.bytes;
        self.buffered += span.bytes;
        let mut programmed_ns = here_ns;
        let insists = (durable && !self.power_safe) || self.buffer == 0;
        while self.open >= self.stripe || (insists && self.open > 0) {
            let bytes = self.open.min(self.stripe);
            programmed_ns = programmed_ns.max(self.program(now_ns, here_ns, bytes));
            self.open -= bytes;
            hub.effort += 1;
        }
        let room_ns = self.room(now_ns);
        let end_ns = if insists { programmed_ns } else { here_ns.max(room_ns) };
        end_ns + self.overhead_ns
    }

    /// When what is in the buffer fits it.
    fn room(&mut self, now_ns: f64) -> f64 {
        while let Some(&(done_ns, bytes)) = self.draining.front()
            && (done_ns <= now_ns || self.buffered > self.buffer)
        {
            self.draining.pop_front();
            self.buffered = self.buffered.saturating_sub(bytes);
            self.drained_ns = self.drained_ns.max(done_ns);
        }
        self.drained_ns
    }

    /// Programs a stripe that is in the drive at `here_ns` into the next chip: when it is done.
    fn program(&mut self, now_ns: f64, here_ns: f64, bytes: u64) -> f64 {
        let chip = self.next_chip;
        let channel = chip % self.channel_free.len();
        self.next_chip = (chip + 1) % self.program_free.len();
        let transfer_ns = transfer_ns(bytes, self.channel_mb_s);
        let there_ns = self.channel(channel, now_ns, transfer_ns).max(here_ns + transfer_ns);
        let work_ns = self.program_time_ns() + self.copies_ns(bytes);
        let done_ns = self.program_free[chip].max(there_ns) + work_ns;
        self.program_free[chip] = done_ns;
        self.programmed_ns = self.programmed_ns.max(done_ns);
        self.draining.push_back((done_ns, bytes));
        done_ns
    }

    fn program_time_ns(&mut self) -> f64 {
        let stripe = self.stripe as f64;
        match &mut self.one_bit {
            Some(one_bit) if one_bit.used + stripe <= one_bit.document.capacity_bytes as f64 => {
                one_bit.used += stripe;
                one_bit.document.program_us * 1e3
            }
            _ => self.program_ns,
        }
    }

    /// What the collector's copies take of the chip that the host's program is on.
    fn copies_ns(&mut self, bytes: u64) -> f64 {
        let paid = self.owed * (bytes as f64 / self.translation.block_bytes()).min(1.0);
        self.owed -= paid;
        paid / self.stripe as f64 * (self.read_ns + self.program_ns)
    }

    /// An idle drive empties its one-bit cells.
    fn rest(&mut self, now_ns: f64) {
        let Some(one_bit) = &mut self.one_bit else { return };
        let since_ns = self.programmed_ns.max(self.link_free[0]).max(self.link_free[1]);
        let folded = (now_ns - since_ns).max(0.0) * one_bit.document.fold_mb_s * 1e-3;
        one_bit.used = (one_bit.used - folded).max(0.0);
    }
}

impl Part for Flash {
    fn submit(&mut self, hub: &mut Hub, io: IoId) {
        let (span, durable) = (hub.io(io).span, hub.io(io).durable);
        let end_ns = if span.write { self.write(hub, span, durable) } else { self.read(hub, span) };
        hub.at(ns(end_ns), Event::Done(io));
    }

    fn warm(&mut self, span: Span, _down: &mut Vec<(PartId, Span)>) {
        if span.write {
            self.translation.wrote(span.from, span.bytes);
        }
    }
}
