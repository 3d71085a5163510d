//! The ranges of what a job may ask for, each in one place.

use std::ops::RangeInclusive;

/// Smallest transfer in bytes, buffered (METHODS §1); direct I/O uses the device's own block.
pub const SMALLEST_TRANSFER_BYTES: u64 = 512;

/// Largest `unique_bytes`: 2^60 bytes, so that every sum of offsets stays far from overflow.
pub const UNIQUE_BYTES_MAX: u64 = 1 << 60;

/// Bytes of a workload's data, and of one request.
pub const WORKLOAD_BYTES: RangeInclusive<u64> = SMALLEST_TRANSFER_BYTES..=UNIQUE_BYTES_MAX;

/// Bytes that preconditioning may write.
pub const PRECONDITION_BYTES: RangeInclusive<u64> = 1..=UNIQUE_BYTES_MAX;

/// Issuers at once.
pub const PROCESSES: RangeInclusive<u32> = 1..=1024;

/// Requests outstanding per issuer.
pub const QUEUE_DEPTH: RangeInclusive<u32> = 1..=4096;

/// Most requests outstanding at once on a real target: each has a buffer, of 64 KiB when requests
/// are long, and a gibibyte of them is enough.
pub const OUTSTANDING_MAX: u64 = 16_384;

/// Writes of an issuer from one `fsync` to the next.
pub const FSYNC_EACH: RangeInclusive<u32> = 1..=1_000_000;

/// Seconds of thinking between requests.
pub const THINK_S: RangeInclusive<f64> = 0.0..=3600.0;

/// A share of something.
pub const SHARE: RangeInclusive<f64> = 0.0..=1.0;

/// Requests due per second of a workload: one machine's own devices reach no more.
pub const WORKLOAD_RATE_PER_S: RangeInclusive<f64> = 1e-3..=1e7;

/// Calls due per second of a load over a network.
pub const NFS_LOAD_RATE_PER_S: RangeInclusive<f64> = 1e-3..=1e6;

/// Requests due per second of a simulated trial, which costs nobody anything.
pub const TRIAL_RATE_PER_S: RangeInclusive<f64> = 1e-3..=1e8;

/// Requests per second that a generator may have reached against nothing.
pub const CEILING_IOPS: RangeInclusive<f64> = 1e-9..=1e12;

/// Seconds of a warm-up.
pub const WARM_UP_S: RangeInclusive<f64> = 0.0..=86_400.0;

/// Seconds of a measured window.
pub const MEASURE_S: RangeInclusive<f64> = 0.01..=86_400.0;

/// Seconds of a whole job.
pub const TOTAL_S: RangeInclusive<f64> = 0.02..=1e9;

/// Virtual seconds at which a simulated run may start.
pub const VIRTUAL_CLOCK_S: RangeInclusive<f64> = 0.0..=1e9;

/// Seconds of a whole NFS load.
pub const NFS_LOAD_TOTAL_S: RangeInclusive<f64> = 0.1..=1e6;

/// Seconds of an NFS load's measured window.
pub const NFS_LOAD_S: RangeInclusive<f64> = 0.1..=1e5;

/// Seconds of load before it.
pub const NFS_LOAD_WARM_UP_S: RangeInclusive<f64> = 0.0..=1e5;

/// Connections of an NFS load.
pub const NFS_LOAD_CONNECTIONS: RangeInclusive<u32> = 1..=64;

/// Bounds on response times, in milliseconds.
pub const RESPONSE_MS: RangeInclusive<f64> = 1e-6..=1e9;

/// Seconds of a simulated trial.
pub const TRIAL_S: RangeInclusive<f64> = 1e-3..=1e6;

/// Seconds a question may wait for its answer.
pub const PATIENCE_S: RangeInclusive<f64> = 0.1..=600.0;

/// Bytes of a file of a file test: whole numbers of its largest request.
pub const TEST_FILE_BYTES: RangeInclusive<u64> = 8192..=1 << 50;

/// Drives of a file test.
pub const TEST_DRIVES: RangeInclusive<usize> = 1..=64;

/// Runs of each of its programs.
pub const TEST_RUNS: RangeInclusive<u32> = 1..=1000;

/// Least memory a streaming kernel works in: a few buffers of every kind.
pub const STREAM_MEMORY_BYTES_MIN: u64 = 32 << 20;

/// Its threads.
pub const STREAM_THREADS: RangeInclusive<u32> = 1..=1024;

/// Its reads, and writes, outstanding on each disk.
pub const STREAM_DEPTH: RangeInclusive<u32> = 1..=256;

/// Bytes of a stripe.
pub const STRIPE_BYTES: RangeInclusive<u64> = 4096..=1 << 30;
