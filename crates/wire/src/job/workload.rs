//! What is asked of storage: the five parameters of CP94 §5 and what belongs to them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Wrong, require, within};
use crate::job::spread::Spread;
use crate::job::streams::{SizeShare, check_sizes};
use crate::ranges::{self, SMALLEST_TRANSFER_BYTES};
use crate::schema::{bounded, counted};

/// How request sizes are drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SizeDist {
    /// Normal with coefficient of variation 1, cut at the smallest transfer (CP94 §5).
    #[default]
    Normal,
    /// Every request has exactly `size_mean` bytes.
    Fixed,
    /// Exponential, whose coefficient of variation is 1: many small ones, few long ones.
    Exponential,
    /// Log-normal with coefficient of variation 1: fewer very small ones, and longer long ones.
    Lognormal,
    /// One of these, as often as it is there; `size_mean` is their mean.
    Histogram(#[schemars(transform = counted(ranges::STREAM_SIZES))] Vec<SizeShare>),
}

/// The five parameters of CP94 §5, CP93's think time, and the queue depth of one worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Bytes of distinct data touched.
    #[schemars(transform = bounded(ranges::WORKLOAD_BYTES))]
    pub unique_bytes: u64,
    /// Mean request size in bytes.
    #[schemars(transform = bounded(ranges::WORKLOAD_BYTES))]
    pub size_mean: u64,
    /// Probability that a request is a read.
    #[schemars(transform = bounded(ranges::SHARE))]
    pub read_frac: f64,
    /// Probability that a request starts where this process's previous one ended.
    #[schemars(transform = bounded(ranges::SHARE))]
    pub seq_frac: f64,
    /// Workers at once.
    #[schemars(transform = bounded(ranges::PROCESSES))]
    pub process_num: u32,
    /// Distribution of request sizes.
    #[serde(default)]
    pub size_dist: SizeDist,
    /// Requests outstanding per worker; pread and mmap allow 1.
    #[serde(default = "one")]
    #[schemars(transform = bounded(ranges::QUEUE_DEPTH))]
    pub queue_depth: u32,
    /// Pause of a worker between a completion and its next request, in seconds.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::THINK_S))]
    pub think_time_s: f64,
    /// Which places are asked for more often than others.
    #[serde(default)]
    pub access: Spread,
}

fn one() -> u32 {
    1
}

impl Workload {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The field, its value, the range and what to write instead.
    pub fn validate(&self) -> Result<(), Wrong> {
        let bytes = "bytes, as a whole number";
        within("workload.unique_bytes", self.unique_bytes, &ranges::WORKLOAD_BYTES, bytes)?;
        within("workload.size_mean", self.size_mean, &ranges::WORKLOAD_BYTES, bytes)?;
        within("workload.read_frac", self.read_frac, &ranges::SHARE, "1 for reads only")?;
        within("workload.seq_frac", self.seq_frac, &ranges::SHARE, "0 for random places only")?;
        let workers = "the number of workers";
        within("workload.process_num", self.process_num, &ranges::PROCESSES, workers)?;
        let depth = "1 for one request at a time";
        within("workload.queue_depth", self.queue_depth, &ranges::QUEUE_DEPTH, depth)?;
        let think = "seconds, 0 for none";
        within("workload.think_time_s", self.think_time_s, &ranges::THINK_S, think)?;
        self.access.validate()?;
        self.check_histogram()?;
        require(
            self.size_dist != SizeDist::Fixed
                || self.size_mean.is_multiple_of(SMALLEST_TRANSFER_BYTES),
            "workload.size_mean",
            self.size_mean,
            "a multiple of 512 when size_dist is fixed",
            &format!("write {}", self.size_mean.next_multiple_of(SMALLEST_TRANSFER_BYTES)),
        )
    }

    fn check_histogram(&self) -> Result<(), Wrong> {
        let SizeDist::Histogram(sizes) = &self.size_dist else { return Ok(()) };
        let named = |field: &str| format!("workload.size_dist.{field}");
        check_sizes(sizes, "histogram", self.unique_bytes, &named)?;
        let total: f64 = sizes.iter().map(|size| size.weight).sum();
        let mean = sizes.iter().map(|size| size.bytes as f64 * size.weight / total).sum::<f64>();
        require(
            (mean - self.size_mean as f64).abs() <= 1.0 + 1e-12 * mean,
            "workload.size_mean",
            self.size_mean,
            "the mean of its histogram",
            &format!("write {mean:.0}"),
        )
    }
}
