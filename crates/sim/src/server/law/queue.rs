//! Workers, the processor they share, and disks: who serves a request, and until when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leadline_wire::job::trial::SimulatedServer;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::service::{Draws, exponential, uniform};
use super::speed::Speed;

/// The state between requests. Requests are served in the order of their arrival at every station.
pub struct Queue {
    /// When each worker is free again.
    free_ns: BinaryHeap<Reverse<u64>>,
    cpu_free_ns: u64,
    disk_free_ns: Vec<u64>,
    draws: Draws,
    speed: Speed,
    service_ns: f64,
    cpu_ns: f64,
    disk_share: f64,
    disk_ns: f64,
    retrograde: f64,
    retrograde_ns: f64,
}

impl Queue {
    /// A server before its first request.
    pub fn new(server: &SimulatedServer, random: &mut Xoshiro256PlusPlus) -> Self {
        let crowd = 1.0 + server.cpu_contention_frac * f64::from(server.workers - 1);
        Self {
            free_ns: (0..server.workers).map(|_| Reverse(0)).collect(),
            cpu_free_ns: 0,
            disk_free_ns: vec![0; server.disks as usize],
            draws: Draws::new(&server.service),
            speed: Speed::new(server, random),
            service_ns: server.service_ms * 1e6,
            cpu_ns: server.cpu_ms * 1e6 * crowd,
            disk_share: server.disk_share,
            disk_ns: server.disk_ms * 1e6,
            retrograde: server.retrograde,
            retrograde_ns: server.retrograde_ms * 1e6,
        }
    }

    /// Serves a request that arrives now; when it is done.
    #[inline]
    pub fn serve(&mut self, due_ns: u64, random: &mut Xoshiro256PlusPlus) -> u64 {
        let Some(Reverse(free_ns)) = self.free_ns.pop() else { return due_ns };
        let start_ns = self.speed.after_stall(due_ns.max(free_ns), random);
        let factor = self.speed.factor(start_ns, random) * self.crowding(start_ns - due_ns);
        let mut now_ns = start_ns;
        if self.cpu_ns > 0.0 {
            let work = exponential(random) * self.cpu_ns * factor;
            now_ns = now_ns.max(self.cpu_free_ns) + work as u64;
            self.cpu_free_ns = now_ns;
        }
        if !self.disk_free_ns.is_empty() && uniform(random) < self.disk_share {
            let disk = (uniform(random) * self.disk_free_ns.len() as f64) as usize;
            let work = exponential(random) * self.disk_ns * factor;
            now_ns = now_ns.max(self.disk_free_ns[disk]) + work as u64;
            self.disk_free_ns[disk] = now_ns;
        }
        if self.service_ns > 0.0 {
            now_ns += (self.draws.draw(random) * self.service_ns * factor) as u64;
        }
        self.free_ns.push(Reverse(now_ns));
        now_ns
    }

    /// How much longer service takes because requests have waited.
    #[inline]
    fn crowding(&self, waited_ns: u64) -> f64 {
        if self.retrograde <= 0.0 {
            return 1.0;
        }
        1.0 + self.retrograde * (1.0 - (-(waited_ns as f64) / self.retrograde_ns).exp())
    }
}
