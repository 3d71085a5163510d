//! What a kernel moved and what that cost, phase by phase.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WIRE_VERSION;
use crate::job::stream::StreamJob;
use crate::schema::{pattern, version, words};

const COUNTERS: &[&str] = &["imc", "resctrl", "none"];
const PHASES: &[&str] = &["read", "write", "runs", "merge", "tiles"];
const KERNELS: &[&str] = &["scan", "sort", "transpose", "generate", "check", "capacity"];

/// One phase of a kernel: what it moved and what that cost.
///
/// Counters are of this process; what this machine does not count is none, with the reason in
/// `not_measurable`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PhaseResult {
    /// `read`, `write`; of two passes `runs`, `merge`; of tiles that do not fit memory `tiles`.
    #[schemars(transform = words(PHASES))]
    pub name: String,
    /// From its beginning until the last thread was done and the disks had the data.
    pub seconds: f64,
    /// Bytes of the data set, or of runs, that were read.
    pub bytes_read: u64,
    /// Bytes of the data set, or of runs, that were written.
    pub bytes_written: u64,
    /// Processor seconds in user mode.
    pub cpu_user_s: f64,
    /// Processor seconds in the kernel.
    pub cpu_system_s: f64,
    /// Instructions, user and kernel.
    pub instructions: Option<u64>,
    /// Cycles, user and kernel.
    pub cycles: Option<u64>,
    /// Context switches that waited for something.
    pub switches_voluntary: u64,
    /// Context switches that the scheduler forced.
    pub switches_involuntary: u64,
    /// Page faults without I/O: each zeroes or maps pages.
    pub faults_minor: u64,
    /// Page faults that waited for I/O.
    pub faults_major: u64,
    /// Bytes that this process made the block layer read.
    pub block_read_bytes: Option<u64>,
    /// Bytes that this process made the block layer write.
    pub block_written_bytes: Option<u64>,
    /// Bytes over the memory bus, by a hardware counter.
    pub memory_bus_bytes: Option<u64>,
    /// Payload handed to the network for other ranks.
    pub network_sent_bytes: u64,
    /// Payload that came from other ranks.
    pub network_received_bytes: u64,
    /// Bytes that this program itself copied from place to place in memory; each crosses the bus
    /// twice.
    pub copied_bytes: u64,
    /// When the first thread was done, in seconds from the phase's beginning.
    pub first_done_s: f64,
    /// When the last one was.
    pub last_done_s: f64,
}

/// What memory and disks can do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CapacityResult {
    /// Bytes per second copied from memory to memory by all processors together (each crosses the
    /// bus twice), several readings.
    pub memory_copy_bytes_s: Vec<f64>,
    /// Bytes per second read from memory by all processors together.
    pub memory_read_bytes_s: Vec<f64>,
    /// Bytes per second from each disk by itself: readings of each.
    pub disk_read_bytes_s: Vec<Vec<f64>>,
    /// Bytes per second to each disk by itself.
    pub disk_write_bytes_s: Vec<Vec<f64>>,
    /// Bytes per second from all disks at once.
    pub all_read_bytes_s: Vec<f64>,
    /// Bytes per second to all disks at once.
    pub all_write_bytes_s: Vec<f64>,
    /// Bytes per second, read and written together, half each, on all disks at once.
    pub all_both_bytes_s: Vec<f64>,
    /// Each disk's devices at the bottom, by name.
    pub disk_devices: Vec<Vec<String>>,
    /// Processors this process may use, a quota of its cgroup included.
    pub processors: f64,
}

/// What a check of records found (as valsort).
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CheckResult {
    /// Records.
    pub records: u64,
    /// Sum of the CRC-32 of every record, in hexadecimal digits without leading zeros, as valsort.
    #[schemars(transform = pattern("^(0|[1-9a-f][0-9a-f]*)$"))]
    pub checksum: String,
    /// Neighbours whose keys are equal.
    pub duplicate_keys: u64,
    /// Neighbours out of order.
    pub unordered: u64,
    /// Number of the first record that is smaller than the one before it.
    pub first_unordered: Option<u64>,
}

/// The answer to a streaming job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StreamResult {
    /// Version of the wire.
    #[schemars(transform = version)]
    pub version: u32,
    /// The job's.
    pub job_id: String,
    /// Name of the kernel.
    #[schemars(transform = words(KERNELS))]
    pub kernel: &'static str,
    /// How often the data set crosses memory; 2 for a sort that does not fit.
    #[schemars(range(min = 1))]
    pub passes: u32,
    /// Length of the input.
    pub bytes_in: u64,
    /// Length of the output.
    pub bytes_out: u64,
    /// All phases together, without the verification.
    pub seconds: f64,
    /// In their order.
    pub phases: Vec<PhaseResult>,
    /// Why a counter is none, by its field's name.
    pub not_measurable: BTreeMap<String, String>,
    /// Where the memory bus's bytes come from: `imc`, `resctrl`, or `none`.
    #[schemars(transform = words(COUNTERS))]
    pub memory_bus_counter: &'static str,
    /// Most memory the process had that is no file's.
    pub memory_peak_bytes: u64,
    /// Whether the output was read back and found right; a wrong one is an error and has no name.
    pub verified: bool,
    /// Seconds of the verification.
    pub verify_s: f64,
    /// What the check found: of `check` the input, of the others the output; none for blocks.
    pub check: Option<CheckResult>,
    /// What `capacity` found.
    pub capacity: Option<CapacityResult>,
}

impl StreamResult {
    /// An answer to `job` in which nothing has happened yet.
    #[must_use]
    pub fn new(job: &StreamJob) -> Self {
        Self {
            version: WIRE_VERSION,
            job_id: job.job_id.clone(),
            kernel: job.kernel.name(),
            passes: 1,
            bytes_in: 0,
            bytes_out: 0,
            seconds: 0.0,
            phases: Vec::new(),
            not_measurable: BTreeMap::new(),
            memory_bus_counter: "none",
            memory_peak_bytes: 0,
            verified: false,
            verify_s: 0.0,
            check: None,
            capacity: None,
        }
    }
}
