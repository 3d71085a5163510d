//! The ranges of what a job may ask for. Each stands here and nowhere else: what refuses a job and
//! what its schema says both read it.

use std::ops::RangeInclusive;

use crate::event::load::LIMITS_MAX;

/// Smallest transfer in bytes, buffered (METHODS §1); direct I/O uses the device's own block.
pub const SMALLEST_TRANSFER_BYTES: u64 = 512;

/// Largest `unique_bytes`: 2^60 bytes, so that every sum of offsets stays far from overflow.
pub const UNIQUE_BYTES_MAX: u64 = 1 << 60;

/// Bytes of a workload's data, and of one request.
pub const WORKLOAD_BYTES: RangeInclusive<u64> = SMALLEST_TRANSFER_BYTES..=UNIQUE_BYTES_MAX;

/// Streams of one job.
pub const STREAMS: RangeInclusive<usize> = 0..=64;

/// Sizes of one stream's requests.
pub const STREAM_SIZES: RangeInclusive<usize> = 1..=64;

/// A stream's, or a size's, share of the requests against others'.
pub const STREAM_WEIGHT: RangeInclusive<f64> = 1e-9..=1e9;

/// Where a stream's data begin.
pub const STREAM_FROM_BYTES: RangeInclusive<u64> = 0..=UNIQUE_BYTES_MAX;

/// Zones of skewed access.
pub const ZONES: RangeInclusive<usize> = 1..=64;

/// A zone's share of the requests, or of the data.
pub const ZONE_SHARE: RangeInclusive<f64> = 1e-9..=1.0;

/// Pieces of a stream's data that a worker is in at a time.
pub const PIECES: RangeInclusive<u32> = 1..=64;

/// Bytes that preconditioning may write.
pub const PRECONDITION_BYTES: RangeInclusive<u64> = 1..=UNIQUE_BYTES_MAX;

/// Requests of a program that is run from its beginning to its end.
pub const OPERATIONS: RangeInclusive<u64> = 1..=1_000_000_000_000;

/// Workers at once.
pub const PROCESSES: RangeInclusive<u32> = 1..=1024;

/// Requests outstanding per worker.
pub const QUEUE_DEPTH: RangeInclusive<u32> = 1..=4096;

/// Most requests outstanding at once on a real target: each has a buffer, of 64 KiB when requests
/// are long, and a gibibyte of them is enough.
pub const OUTSTANDING_MAX: u64 = 16_384;

/// Writes of a worker from one `fsync` to the next.
pub const FSYNC_EACH: RangeInclusive<u32> = 1..=1_000_000;

/// Bytes of data over the bytes that they compress to.
pub const COMPRESS: RangeInclusive<f64> = 1.0..=10.0;

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

/// Requests per second that a generator may have reached with the null backend.
pub const CEILING_IOPS: RangeInclusive<f64> = 1e-9..=1e12;

/// Seconds of a warm-up.
pub const WARM_UP_S: RangeInclusive<f64> = 0.0..=86_400.0;

/// Seconds of a measured window.
pub const MEASURE_S: RangeInclusive<f64> = 0.01..=86_400.0;

/// Seconds that a measured window has at least.
pub const MEASURE_S_MIN: RangeInclusive<f64> = 0.0..=86_400.0;

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

/// Limits on the response time of one load, counted apart.
pub const LIMITS: RangeInclusive<usize> = 0..=LIMITS_MAX;

/// The same beside a first one.
pub const ALSO_LIMITS: RangeInclusive<usize> = 0..=LIMITS_MAX - 1;

/// Ports of a server.
pub const PORT: RangeInclusive<u16> = 1..=u16::MAX;

/// Processes of this machine.
pub const PROCESS: RangeInclusive<u32> = 1..=u32::MAX;

/// Bytes of all files of a data set together: with fewer, its distributions are not what they are
/// called.
pub const DATA_BYTES: RangeInclusive<u64> = 4 << 20..=1 << 50;

/// Seconds of a simulated trial.
pub const TRIAL_S: RangeInclusive<f64> = 1e-3..=1e6;

/// Seconds a question may wait for its answer.
pub const TIMEOUT_S: RangeInclusive<f64> = 0.1..=600.0;

/// Files of a file test are whole numbers of its largest request, so that every program moves as
/// many bytes.
pub const TEST_GRANULE_BYTES: u64 = 8192;

/// Bytes of a file of a file test.
pub const TEST_FILE_BYTES: RangeInclusive<u64> = TEST_GRANULE_BYTES..=1 << 50;

/// Drives of a file test.
pub const TEST_DRIVES: RangeInclusive<usize> = 1..=64;

/// Runs of each of its programs.
pub const TEST_RUNS: RangeInclusive<u32> = 1..=1000;

/// Its programs.
pub const TEST_PROGRAMS: RangeInclusive<usize> = 1..=4;

/// Memory of a streaming kernel: at least a few buffers of every kind.
pub const STREAM_MEMORY_BYTES: RangeInclusive<u64> = 32 << 20..=u64::MAX;

/// Its threads.
pub const STREAM_THREADS: RangeInclusive<u32> = 1..=1024;

/// Its reads, and writes, outstanding on each disk.
pub const STREAM_DEPTH: RangeInclusive<u32> = 1..=256;

/// Bytes of a stripe.
pub const STRIPE_BYTES: RangeInclusive<u64> = 4096..=1 << 30;

/// Rows, and columns, of blocks; and all of them together.
pub const BLOCKS: RangeInclusive<u64> = 1..=(1 << 40) - 1;

/// Records, and the number of the first.
pub const RECORDS: RangeInclusive<u64> = 0..=(1 << 48) - 1;

/// Exponent of a Zipf distribution over keys, or over blocks.
pub const SKEW: RangeInclusive<f64> = 0.0..=10.0;

/// Bytes laid out on a disk to read what it can do.
pub const CAPACITY_BYTES: RangeInclusive<u64> = 1 << 20..=(1 << 44) - 1;

/// Threads of a simulated server.
pub const WORKERS: RangeInclusive<u32> = 1..=4096;

/// Its disks.
pub const DISKS: RangeInclusive<u32> = 0..=1024;

/// Mean times that a request takes somewhere, in milliseconds.
pub const SERVICE_MS: RangeInclusive<f64> = 0.0..=1e6;

/// By which fraction of itself each worker more makes a processor slower.
pub const CONTENTION_FRAC: RangeInclusive<f64> = 0.0..=10.0;

/// Standard deviations of the logarithm of a speed.
pub const SPEED_SD: RangeInclusive<f64> = 0.0..=2.0;

/// How long a drift remembers, in seconds.
pub const DRIFT_MEMORY_S: RangeInclusive<f64> = 0.01..=1e6;

/// How much longer service takes in a slow mode.
pub const MODE_FACTOR: RangeInclusive<f64> = 0.01..=100.0;

/// How much longer service takes when requests have waited, and when caches are cold.
pub const SLOWER_FRAC: RangeInclusive<f64> = 0.0..=100.0;

/// Wait at which a server gets less done, in milliseconds.
pub const RETROGRADE_MS: RangeInclusive<f64> = 1e-3..=1e6;

/// Time constant of a cold beginning, in seconds.
pub const COLD_S: RangeInclusive<f64> = 1e-3..=1e6;

/// Stalls per second.
pub const STALLS_PER_S: RangeInclusive<f64> = 0.0..=100.0;

/// Seconds of a trial beside its window.
pub const BESIDE_TRIAL_S: RangeInclusive<f64> = 0.0..=1e5;

/// Coefficient of variation of log-normal service.
pub const SERVICE_CV: RangeInclusive<f64> = 1e-3..=20.0;

/// Exponent of a Pareto tail: at 1 its mean has no bound.
pub const TAIL_SHAPE: RangeInclusive<f64> = 1.05..=20.0;

/// Where the tail is cut, in means.
pub const TAIL_END: RangeInclusive<f64> = 2.0..=1e6;

/// How much longer the slow of two modes takes.
pub const SLOW_FACTOR: RangeInclusive<f64> = 1.0..=1e4;
