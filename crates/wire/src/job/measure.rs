//! A measurement: one workload on one target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Wrong, begins_well, require, within};
use crate::job::backend::{BackendChoice, BackendName};
use crate::job::streams::{self, StreamAsked};
use crate::job::target::Target;
use crate::job::workload::Workload;
use crate::ranges::{self, OUTSTANDING_MAX};
use crate::schema::{bounded, bounded_items, counted, version};

/// One run of one workload on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureJob {
    /// Version of the wire.
    #[schemars(transform = version)]
    pub version: u32,
    /// Chosen by the caller; every event repeats it.
    #[schemars(length(min = 1))]
    pub job_id: String,
    /// Where requests go.
    pub target: Target,
    /// What is asked of it.
    pub workload: Workload,
    /// How requests are made.
    pub backend: BackendChoice,
    /// Seed of every address stream of the run.
    pub seed: u64,
    /// When to stop.
    pub limits: Limits,
    /// What makes a request due.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Which processors the workers run on.
    #[serde(default)]
    pub placement: Placement,
    /// Random writes before the warm-up, until the rate has reached its plateau; of a directory.
    #[serde(default)]
    pub precondition: Option<Precondition>,
    /// Requests per second that this host's generator reached with the null backend with as many
    /// workers; a run within 20% of it is marked generator-bound.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::CEILING_IOPS))]
    pub ceiling_iops: Option<f64>,
    /// Streams that take the place of the workload's sizes, places and shares; its data, workers
    /// and pauses are theirs together.
    #[serde(default)]
    #[schemars(transform = counted(ranges::STREAMS))]
    pub streams: Vec<StreamAsked>,
    /// Requests of a trace that take the place of the workload's; of a directory, with `pread`.
    #[serde(default)]
    pub replay: Option<ReplayAsked>,
    /// Asks an open loop for what a trial of the workbench keeps of it.
    #[serde(default)]
    pub load: Option<LoadAsked>,
}

/// A trace that is made again. The run ends with its last step: `operations_max` says how many there
/// are, and the workload's `process_num` how many at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayAsked {
    /// The file with its steps (crates/base/src/replay.rs).
    #[schemars(length(min = 1))]
    pub path: String,
    /// Whether each waits for its time in the trace, or for nothing but the one before.
    pub at_times: bool,
    /// Memory that is held meanwhile, with the engine's own, as the traced program did: a page cache
    /// has the rest.
    #[serde(default)]
    pub memory_bytes: u64,
}

/// What a trial of the workbench keeps of an open loop beside the usual, and when it gives up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadAsked {
    /// Requests slower than each of these are counted per part of the window.
    #[serde(default)]
    #[schemars(transform = counted(ranges::LIMITS), transform = bounded_items(ranges::RESPONSE_MS))]
    pub limits_ms: Vec<f64>,
    /// End the window when the mean response time, that of requests without an answer their age, is
    /// above this.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::RESPONSE_MS))]
    pub abort_above_ms: Option<f64>,
}

impl LoadAsked {
    fn validate(&self) -> Result<(), Wrong> {
        check_limits("load.limits_ms", &self.limits_ms, &ranges::LIMITS)?;
        let write = "milliseconds; leave it out for none";
        self.abort_above_ms.map_or(Ok(()), |bound_ms| {
            within("load.abort_above_ms", bound_ms, &ranges::RESPONSE_MS, write)
        })
    }
}

/// Checks limits on a response time: how many, and each.
pub(crate) fn check_limits(
    field: &'static str,
    limits_ms: &[f64],
    count: &std::ops::RangeInclusive<usize>,
) -> Result<(), Wrong> {
    let many = format!("{} to {} limits", count.start(), count.end());
    require(count.contains(&limits_ms.len()), field, limits_ms.len(), &many, "leave some out")?;
    let write = "milliseconds each";
    limits_ms.iter().try_for_each(|limit_ms| within(field, *limit_ms, &ranges::RESPONSE_MS, write))
}

/// What makes a request due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// The completion of an earlier one (and the think time): closed loop.
    Closed {},
    /// A clock that ticks evenly, whatever has completed: open loop.
    Constant {
        /// Requests due per second, all workers together.
        #[schemars(transform = bounded(ranges::WORKLOAD_RATE_PER_S))]
        rate_per_s: f64,
    },
    /// A Poisson process: open loop.
    Poisson {
        /// Requests due per second in the mean, all workers together.
        #[schemars(transform = bounded(ranges::WORKLOAD_RATE_PER_S))]
        rate_per_s: f64,
    },
}

impl Default for Arrivals {
    fn default() -> Self {
        Self::Closed {}
    }
}

impl Arrivals {
    /// Requests due per second; none in a closed loop.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Self::Closed {} => None,
            Self::Constant { rate_per_s } | Self::Poisson { rate_per_s } => Some(*rate_per_s),
        }
    }
}

/// Which processors the workers run on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// One processor each while there are enough, those that serve the device's interrupts first.
    #[default]
    Auto,
    /// Wherever the kernel puts them.
    Free,
}

/// Bounds of the writes that bring a device to its sustained rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Precondition {
    /// Most bytes to write; they wear the device.
    #[schemars(transform = bounded(ranges::PRECONDITION_BYTES))]
    pub bytes_max: u64,
}

/// When to stop. Times in seconds: wall time, or virtual time on a simulated target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Longest warm-up.
    #[schemars(transform = bounded(ranges::WARM_UP_S))]
    pub warm_up_s_max: f64,
    /// Shortest warm-up, no longer than the longest: a rate is steady, too, while a buffer fills.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::WARM_UP_S))]
    pub warm_up_s_min: f64,
    /// Shortest measured window, no longer than the longest.
    #[schemars(transform = bounded(ranges::MEASURE_S_MIN))]
    pub measure_s_min: f64,
    /// Longest measured window.
    #[schemars(transform = bounded(ranges::MEASURE_S))]
    pub measure_s_max: f64,
    /// Measuring ends when the 95% interval's half-width is below this share of the mean; at
    /// 0 the window is the longest.
    #[schemars(transform = bounded(ranges::SHARE))]
    pub accuracy: f64,
    /// Longest job, laying out the file included.
    #[schemars(transform = bounded(ranges::TOTAL_S))]
    pub total_s_max: f64,
    /// The run ends with the window or after so many requests, and none of them is a warm-up's: a
    /// program from its beginning to its end. With `warm_up_s_max` 0 it begins with nothing of its
    /// data in the page cache; else with what a pass over them leaves there. Of a directory.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::OPERATIONS))]
    pub operations_max: Option<u64>,
}

impl MeasureJob {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// The field, its value, the range and what to write instead.
    pub fn validate(&self) -> Result<(), Wrong> {
        begins_well(self.version, &self.job_id)?;
        self.workload.validate()?;
        self.limits.validate()?;
        self.target.validate()?;
        self.backend.validate(&self.target)?;
        self.check_queue_depth()?;
        self.check_arrivals()?;
        streams::validate(&self.streams, &self.workload)?;
        require(
            self.streams.is_empty() || !self.workload.access.is_skewed(),
            "workload.access",
            "skewed",
            "uniform where there are streams",
            "streams say themselves where their requests go",
        )?;
        self.check_load()?;
        self.check_extras()
    }

    fn check_queue_depth(&self) -> Result<(), Wrong> {
        let (workload, backend) = (&self.workload, self.backend.name);
        let outstanding = u64::from(workload.process_num) * u64::from(workload.queue_depth);
        require(
            outstanding <= OUTSTANDING_MAX || backend == BackendName::Simulated,
            "workload.queue_depth",
            workload.queue_depth,
            &format!("at most {OUTSTANDING_MAX} divided by process_num"),
            "every outstanding request has a buffer of its own",
        )?;
        let queues = !matches!(backend, BackendName::Pread | BackendName::Mmap);
        require(
            workload.queue_depth == 1 || queues,
            "workload.queue_depth",
            workload.queue_depth,
            &format!(
                "1 with the backend {}, which keeps one request outstanding per worker",
                backend.name()
            ),
            "raise process_num instead, or choose the backend uring",
        )
    }

    fn check_arrivals(&self) -> Result<(), Wrong> {
        let Some(rate_per_s) = self.arrivals.rate_per_s() else { return Ok(()) };
        let rates = &ranges::WORKLOAD_RATE_PER_S;
        within("arrivals.rate_per_s", rate_per_s, rates, "requests due per second")?;
        require(
            self.workload.think_time_s == 0.0,
            "workload.think_time_s",
            self.workload.think_time_s,
            "0 when requests arrive by a clock",
            "leave the think time or the rate out",
        )
    }

    fn check_load(&self) -> Result<(), Wrong> {
        let Some(load) = &self.load else { return Ok(()) };
        require(
            self.arrivals.rate_per_s().is_some(),
            "load",
            "given",
            "absent in a closed loop",
            "give arrivals a rate, or leave it out",
        )?;
        load.validate()
    }

    fn check_replay(&self) -> Result<(), Wrong> {
        let Some(replay) = &self.replay else { return Ok(()) };
        require(!replay.path.is_empty(), "replay.path", "empty", "a path", "name the file")?;
        let alone = self.streams.is_empty()
            && self.arrivals == Arrivals::Closed {}
            && self.precondition.is_none()
            && self.limits.operations_max.is_some()
            && self.backend.name == BackendName::Pread
            && !self.backend.direct
            && matches!(self.target, Target::Directory { .. });
        require(
            alone,
            "replay",
            "given",
            "absent unless the target is a directory, reached by pread through the page cache, with \
             limits.operations_max and without streams, a rate and a precondition",
            "leave it out, or the others",
        )
    }

    fn check_extras(&self) -> Result<(), Wrong> {
        self.check_replay()?;
        require(
            self.limits.operations_max.is_none() || matches!(self.target, Target::Directory { .. }),
            "limits.operations_max",
            "given",
            "absent unless the target is a directory, whose page cache can be emptied of its data",
            "leave it out",
        )?;
        if let Some(ceiling_iops) = self.ceiling_iops {
            let write = "requests per second; leave it out when it was not measured";
            within("ceiling_iops", ceiling_iops, &ranges::CEILING_IOPS, write)?;
        }
        let Some(Precondition { bytes_max }) = self.precondition else { return Ok(()) };
        let bytes = "bytes that may be written";
        within("precondition.bytes_max", bytes_max, &ranges::PRECONDITION_BYTES, bytes)?;
        require(
            matches!(self.target, Target::Directory { .. }),
            "precondition",
            "given",
            "absent unless the target is a directory",
            "leave it out",
        )
    }
}

impl Limits {
    /// Checks the ranges and that they fit each other.
    fn validate(&self) -> Result<(), Wrong> {
        within("limits.warm_up_s_max", self.warm_up_s_max, &ranges::WARM_UP_S, "seconds")?;
        within("limits.warm_up_s_min", self.warm_up_s_min, &ranges::WARM_UP_S, "seconds")?;
        require(
            self.warm_up_s_min <= self.warm_up_s_max,
            "limits.warm_up_s_min",
            self.warm_up_s_min,
            &format!("0 to {}", self.warm_up_s_max),
            "no more than warm_up_s_max",
        )?;
        within("limits.measure_s_max", self.measure_s_max, &ranges::MEASURE_S, "seconds")?;
        within("limits.measure_s_min", self.measure_s_min, &ranges::MEASURE_S_MIN, "seconds")?;
        require(
            self.measure_s_min <= self.measure_s_max,
            "limits.measure_s_min",
            self.measure_s_min,
            &format!("0 to {}", self.measure_s_max),
            "no more than measure_s_max",
        )?;
        within("limits.accuracy", self.accuracy, &ranges::SHARE, "0.02 asks for 2%")?;
        let whole = "seconds for the whole job";
        within("limits.total_s_max", self.total_s_max, &ranges::TOTAL_S, whole)?;
        let Some(operations) = self.operations_max else { return Ok(()) };
        within("limits.operations_max", operations, &ranges::OPERATIONS, "requests")
    }
}
