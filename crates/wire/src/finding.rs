//! What was found about a run, as data: a code, how much it weighs and the values it is about.
//! `python/leadline/record/finding.py` makes sentences of them, and nothing else does.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// What was found.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The server went away.
    ServerLost,
    /// The workers' time is not accounted for.
    LittlesLaw,
    /// An open loop did not keep its rate.
    MissedRate,
    /// Direct reads were answered by a cache below.
    CachedDiskNumber,
    /// Direct requests to a file system that lives in memory.
    MemoryFileSystem,
    /// The rate still changed when the warm-up had to end.
    NotSteady,
    /// The time was up before all requests were done, or before the accuracy was reached.
    TimeCap,
    /// Too few batches for an interval.
    NoInterval,
    /// Preconditioning ended without a plateau.
    NoPlateau,
    /// Near what the generator itself reaches.
    GeneratorBound,
    /// Requests were queued by something else than `io_uring`.
    NoIoUring,
    /// Requests are cut to the data.
    SizeAboveData,
    /// Nothing completed for a while.
    Stall,
    /// The rate changed within the window.
    LevelShift,
    /// The rate changed between two values again and again.
    TwoRates,
    /// A simulation cost too much and ended early.
    SimulationCapped,
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The numbers are not those of what was asked for.
    Invalid,
    /// They are to be doubted.
    Suspect,
    /// Good to know when reading them.
    Note,
}

/// One value of a finding; its name ends with its unit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// How many.
    Count(u64),
    /// How much.
    Number(f64),
    /// Names, and what the system says.
    Text(String),
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// One thing that was found about a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// How much it weighs.
    pub severity: Severity,
    /// What its sentence says.
    pub values: BTreeMap<&'static str, Value>,
}

impl Finding {
    /// A finding without values.
    #[must_use]
    pub fn new(code: Code) -> Self {
        let severity = match code {
            Code::ServerLost
            | Code::LittlesLaw
            | Code::MissedRate
            | Code::CachedDiskNumber
            | Code::MemoryFileSystem => Severity::Invalid,
            Code::NotSteady
            | Code::NoInterval
            | Code::NoPlateau
            | Code::GeneratorBound
            | Code::Stall
            | Code::LevelShift
            | Code::TwoRates => Severity::Suspect,
            Code::TimeCap | Code::NoIoUring | Code::SizeAboveData | Code::SimulationCapped => {
                Severity::Note
            }
        };
        Self { code, severity, values: BTreeMap::new() }
    }

    /// The same with one more value.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.values.insert(name, value.into());
        self
    }
}
