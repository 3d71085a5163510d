//! Something whose inside is not known: so many servers, each taking its time.

use super::servers::Servers;
use crate::calendar::Event;
use crate::document::{ServiceShape, Station as Document};
use crate::io::{Hub, IoId, Part, PartId, Span, ns, transfer_ns};

const LOG_NORMAL_CV: f64 = 0.5;

/// First come, first served by whoever is free.
#[derive(Debug)]
pub(crate) struct Station {
    servers: Servers,
    read_ns: f64,
    write_ns: f64,
    mb_s: f64,
    shape: ServiceShape,
}

impl Station {
    /// All servers idle.
    pub fn new(document: &Document) -> Self {
        Self {
            servers: Servers::new(document.servers),
            read_ns: document.read_us * 1e3,
            write_ns: document.write_us * 1e3,
            mb_s: document.mb_s,
            shape: document.shape,
        }
    }
}

impl Part for Station {
    fn submit(&mut self, hub: &mut Hub, io: IoId) {
        let span = hub.io(io).span;
        let mean_ns = if span.write { self.write_ns } else { self.read_ns };
        let mean_ns = mean_ns + transfer_ns(span.bytes, self.mb_s);
        let factor = match self.shape {
            ServiceShape::Constant => 1.0,
            ServiceShape::Exponential => hub.random.exponential(),
            ServiceShape::LogNormal => hub.random.around_one(LOG_NORMAL_CV),
        };
        let end_ns = self.servers.serve(hub.now_ns, ns(mean_ns * factor));
        hub.at(end_ns, Event::Done(io));
    }

    fn warm(&mut self, _span: Span, _down: &mut Vec<(PartId, Span)>) {}
}
