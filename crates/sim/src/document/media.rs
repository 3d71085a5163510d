//! What lies at the bottom, and how several of it are put together.

use serde::{Deserialize, Serialize};

use super::PolicyName;

/// What becomes of writes before a slower device.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierWrites {
    /// They end in the flash and go down later.
    #[default]
    Back,
    /// They go to both and wait for both.
    Through,
    /// They go past the flash, which forgets what it had of them.
    Around,
}

/// `[machine.tier]`: blocks of the slow device kept on flash, as bcache and dm-cache do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// What is kept as a whole.
    pub block_bytes: u64,
    /// Flash for it.
    pub capacity_bytes: u64,
    /// Which block goes.
    #[serde(default)]
    pub policy: PolicyName,
    /// What becomes of writes.
    #[serde(default)]
    pub writes: TierWrites,
    /// A worker that runs on for so long goes past the flash; 0 for never.
    #[serde(default)]
    pub sequential_cutoff_bytes: u64,
    /// Share of the flash that may be dirty; beyond it writes go past.
    #[serde(default = "dirty_max")]
    pub dirty_max_frac: f64,
    /// The drive it lies on.
    pub flash: Flash,
}

/// How members are put together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrayKind {
    /// Chunk after chunk over all members.
    Stripe,
    /// Everything on every member; reads go where fewer wait.
    Mirror,
    /// Chunks with one parity chunk in each row (RAID 5).
    Parity,
    /// With two (RAID 6).
    DoubleParity,
}

/// `[machine.array]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// How.
    pub kind: ArrayKind,
    /// How many.
    pub members: u32,
    /// Bytes on one member before the next has its turn.
    #[serde(default = "chunk")]
    pub chunk_bytes: u64,
}

impl Array {
    /// Members whose bytes count.
    #[must_use]
    pub fn data_members(&self) -> u32 {
        match self.kind {
            ArrayKind::Stripe => self.members,
            ArrayKind::Mirror => 1,
            ArrayKind::Parity => self.members.saturating_sub(1),
            ArrayKind::DoubleParity => self.members.saturating_sub(2),
        }
    }
}

/// Which waiting request a disk takes next.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskQueue {
    /// The oldest.
    Fifo,
    /// The next one upwards, and from the top back to the lowest (C-LOOK).
    Elevator,
    /// The one reached soonest of the oldest `depth`: seek and rotation together (NCQ).
    #[default]
    Native,
}

/// `[machine.disk]`: one arm over turning platters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// What it stores, from the outermost cylinder inwards.
    pub capacity_bytes: u64,
    /// Places of the arm.
    pub cylinders: u32,
    /// One turn.
    pub rotation_ms: f64,
    /// Seek to the next cylinder.
    pub seek_track_ms: f64,
    /// Seek over all of them.
    pub seek_full_ms: f64,
    /// Share of the way between these that is linear in the distance; the rest goes by its root.
    #[serde(default)]
    pub seek_linear_frac: f64,
    /// Rate at the outermost cylinder.
    pub outer_mb_s: f64,
    /// Rate at the innermost; between them it falls evenly with the cylinder.
    pub inner_mb_s: f64,
    /// Controller's time per request.
    #[serde(default)]
    pub overhead_us: f64,
    /// Rate between buffer and host.
    pub interface_mb_s: f64,
    /// Which request is next.
    #[serde(default)]
    pub queue: DiskQueue,
    /// Requests it chooses among.
    #[serde(default = "native_depth")]
    pub depth: u32,
    /// How far it reads on into its buffer while it has nothing else to do.
    #[serde(default)]
    pub read_buffer_bytes: u64,
    /// Writes that it takes before they are on the platter.
    #[serde(default)]
    pub write_buffer_bytes: u64,
}

/// `[machine.flash]`: chips behind channels, written in turn wherever there is room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// What it offers the host.
    pub capacity_bytes: u64,
    /// Buses to the chips.
    pub channels: u32,
    /// Chips on each that work at once.
    pub dies_per_channel: u32,
    /// Pages that a chip reads or programs at once.
    #[serde(default = "one")]
    pub planes: u32,
    /// A page of a plane.
    pub page_bytes: u64,
    /// From the cells to the chip's register.
    pub read_us: f64,
    /// From the register into the cells.
    pub program_us: f64,
    /// Rate of a channel.
    pub channel_mb_s: f64,
    /// Rate to the host, each way.
    pub interface_mb_s: f64,
    /// Controller's time per request, not shared.
    #[serde(default)]
    pub overhead_us: f64,
    /// Writes that it takes before they are in the cells.
    #[serde(default)]
    pub write_buffer_bytes: u64,
    /// Whether capacitors keep the buffer through a power cut: a write in it is safe then.
    #[serde(default)]
    pub power_safe: bool,
    /// Cells written with one bit at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc: Option<Slc>,
    /// Cells beyond the capacity, as a share of it.
    #[serde(default = "spare")]
    pub spare_frac: f64,
    /// Random overwrites of the whole drive before a job begins, as a share of its capacity: how
    /// much garbage collection finds to do.
    #[serde(default)]
    pub aged_frac: f64,
}

/// `[machine.flash.slc]`: a fast part whose end is the write cliff.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slc {
    /// What it holds.
    pub capacity_bytes: u64,
    /// Programming with one bit.
    pub program_us: f64,
    /// Rate at which an idle drive empties it.
    pub fold_mb_s: f64,
    /// How full it is when a job begins.
    #[serde(default)]
    pub begin_frac: f64,
}

/// How times scatter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceShape {
    /// Not at all.
    #[default]
    Constant,
    /// Exponentially.
    Exponential,
    /// Log-normally, with coefficient of variation one half.
    LogNormal,
}

/// `[machine.station]`: so many at once, each taking its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// What it stores.
    pub capacity_bytes: u64,
    /// Requests served at once.
    pub servers: u32,
    /// Mean time of a read.
    pub read_us: f64,
    /// Of a write.
    pub write_us: f64,
    /// Rate of each server.
    pub mb_s: f64,
    /// How the times scatter.
    #[serde(default)]
    pub shape: ServiceShape,
}

fn one() -> u32 {
    1
}

fn chunk() -> u64 {
    64 << 10
}

fn native_depth() -> u32 {
    32
}

fn dirty_max() -> f64 {
    0.4
}

fn spare() -> f64 {
    0.07
}
