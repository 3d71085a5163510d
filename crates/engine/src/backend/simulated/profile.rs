//! Which of the two kinds of simulated system a profile describes.

use leadline_base::error::EngineError;

use super::machine::MachineSystem;
use super::system::SimulatedSystem;

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
