//! The host's processors: every request takes one of them for its system call and its copy.

use super::servers::Servers;
use crate::calendar::Event;
use crate::document::Processors as Document;
use crate::io::{Hub, IoId, Part, PartId, Span, ns, transfer_ns};

/// Processors that workers share.
#[derive(Debug)]
pub(crate) struct Processors {
    below: PartId,
    servers: Servers,
    read_ns: f64,
    write_ns: f64,
    copy_mb_s: f64,
}

impl Processors {
    /// All of them idle.
    pub fn new(document: &Document, below: PartId) -> Self {
        let read_us = document.read_overhead_us;
        Self {
            below,
            servers: Servers::new(document.count),
            read_ns: read_us * 1e3,
            write_ns: document.write_overhead_us.unwrap_or(read_us) * 1e3,
            copy_mb_s: document.copy_mb_s,
        }
    }
}

impl Part for Processors {
    fn submit(&mut self, hub: &mut Hub, io: IoId) {
        let span = hub.io(io).span;
        let overhead_ns = if span.write { self.write_ns } else { self.read_ns };
        let work_ns = overhead_ns + transfer_ns(span.bytes, self.copy_mb_s);
        let end_ns = self.servers.serve(hub.now_ns, ns(work_ns / hub.processor_share));
        hub.at(end_ns, Event::Submit(self.below, io));
    }

    fn warm(&mut self, span: Span, down: &mut Vec<(PartId, Span)>) {
        down.push((self.below, span));
    }
}
