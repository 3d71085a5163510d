//! A profile, read and checked: which of the two kinds of simulated system it describes.

use leadline_base::error::EngineError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::document::{Document, Refused};
use crate::law::truth::check_stated;
use crate::law::validate::{check, check_meta, check_survey, refuse};
use crate::law::{Meta, SimulatedSystem, SurveyHints};

/// A profile, checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Profile {
    /// Service times drawn from a law.
    Law(Box<SimulatedSystem>),
    /// Parts that requests pass through.
    Machine(Box<MachineSystem>),
}

impl Profile {
    /// Reads a profile's document (TOML turned into JSON): a machine if it has a `machine`.
    ///
    /// # Errors
    /// `BadJob`; the message names the field, its value and its range.
    pub fn from_value(value: &serde_json::Value) -> Result<Self, EngineError> {
        if value.get("machine").is_some() {
            return Ok(Self::Machine(Box::new(MachineSystem::from_value(value)?)));
        }
        Ok(Self::Law(Box::new(SimulatedSystem::from_value(value)?)))
    }
}

impl SimulatedSystem {
    /// Read a profile's document (TOML turned into JSON) and check every value.
    ///
    /// # Errors
    ///
    /// `BadJob`; the message names the field, its value and its range.
    pub fn from_value(value: &serde_json::Value) -> Result<Self, EngineError> {
        let system: Self = read(value, "profile.md")?;
        check(&system)?;
        check_stated(&system)?;
        Ok(system)
    }
}

/// The profile of a machine. Made by [`MachineSystem::from_value`], so always valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSystem {
    /// What it is and where its numbers come from.
    pub meta: Meta,
    /// How far a survey may go.
    pub survey: SurveyHints,
    /// Its parts.
    pub machine: Document,
}

impl MachineSystem {
    /// Reads a profile's document and checks every value.
    ///
    /// # Errors
    /// `BadJob`; the message names the field, its value and its range.
    pub fn from_value(value: &serde_json::Value) -> Result<Self, EngineError> {
        let system: Self = read(value, "machine.md")?;
        check_meta(&system.meta)?;
        check_survey(&system.survey)?;
        system.machine.validate()?;
        let (capacity, longest) = (system.machine.capacity_bytes(), system.machine.size_mean_max());
        let hints = &system.survey;
        let room = hints.unique_bytes_max;
        if room.is_none_or(|bytes| bytes > capacity) {
            return Err(refuse(format!(
                "survey.unique_bytes_max is {}, it must be given, and at most the machine's \
                 {capacity} bytes",
                room.map_or("missing".to_owned(), |bytes| bytes.to_string())
            )));
        }
        if hints.size_mean_max.is_some_and(|bytes| bytes > longest) {
            return Err(refuse(format!(
                "survey.size_mean_max is above {longest} bytes, the longest mean request that \
                 this machine simulates"
            )));
        }
        Ok(system)
    }
}

impl From<Refused> for EngineError {
    fn from(refused: Refused) -> Self {
        refuse(refused)
    }
}

/// Reads a document; an error names the field that it is about.
fn read<T: DeserializeOwned>(value: &serde_json::Value, page: &str) -> Result<T, EngineError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!("{path}: ") };
        EngineError::bad_job(format!(
            "simulated system: {place}{}; docs/reference/{page} lists the fields",
            error.inner()
        ))
    })
}

#[cfg(test)]
mod tests;
