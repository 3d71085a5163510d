//! Where bytes lie on a disk, and what it takes to get there.

use crate::document::Disk as Document;

/// Cylinders whose density falls evenly from the outermost to the innermost.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    capacity: f64,
    cylinders: f64,
    rotation_ns: f64,
    track_ns: f64,
    full_ns: f64,
    linear_frac: f64,
    /// Bytes in a nanosecond at the outermost cylinder, and at the innermost.
    outer: f64,
    inner: f64,
}

impl Geometry {
    pub fn new(document: &Document) -> Self {
        Self {
            capacity: document.capacity_bytes as f64,
            cylinders: f64::from(document.cylinders),
            rotation_ns: document.rotation_ms * 1e6,
            track_ns: document.seek_track_ms * 1e6,
            full_ns: document.seek_full_ms * 1e6,
            linear_frac: document.seek_linear_frac,
            outer: document.outer_mb_s * 1e-3,
            inner: document.inner_mb_s * 1e-3,
        }
    }

    /// The cylinder of a byte: its share `c` of the way inwards solves
    /// `outer c + (inner - outer) c^2 / 2 = byte / capacity × (outer + inner) / 2`.
    pub fn cylinder(&self, byte: u64) -> f64 {
        let share = (byte as f64 / self.capacity).min(1.0);
        let (outer, fall) = (self.outer, self.outer - self.inner);
        let filled = share * f64::midpoint(self.outer, self.inner);
        let way = if fall < 1e-6 * outer {
            filled / outer
        } else {
            (outer - (outer * outer - 2.0 * fall * filled).max(0.0).sqrt()) / fall
        };
        (way * self.cylinders).floor().min(self.cylinders - 1.0)
    }

    /// Bytes in a nanosecond at a cylinder.
    pub fn rate(&self, cylinder: f64) -> f64 {
        self.outer + (self.inner - self.outer) * cylinder / self.cylinders
    }

    pub fn rotation_ns(&self) -> f64 {
        self.rotation_ns
    }

    /// From the track next door by the root of the distance, and in part linearly, to all the way.
    pub fn seek_ns(&self, from: f64, to: f64) -> f64 {
        let distance = (from - to).abs();
        if distance == 0.0 {
            return 0.0;
        }
        let way = ((distance - 1.0) / (self.cylinders - 2.0).max(1.0)).clamp(0.0, 1.0);
        let shape = self.linear_frac * way + (1.0 - self.linear_frac) * way.sqrt();
        self.track_ns + (self.full_ns - self.track_ns) * shape
    }

    /// Until a byte passes under the arm that is at its cylinder at `at_ns`.
    ///
    /// Tracks are skewed so that what follows another passes after it without a wait.
    pub fn turn_ns(&self, at_ns: f64, byte: u64, cylinder: f64) -> f64 {
        let track = self.rate(cylinder) * self.rotation_ns;
        let target = (byte as f64 / track).fract();
        let angle = (at_ns / self.rotation_ns).fract();
        let turn = (target - angle).rem_euclid(1.0);
        // What lies just behind by rounding is here.
        if turn > 1.0 - 1e-6 { 0.0 } else { turn * self.rotation_ns }
    }
}
