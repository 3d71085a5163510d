//! A simulated server of either family, as an experiment describes it.

use leadline_machine::server::Document;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::result::LoadResult;
use super::server_of_parts;
use super::simulated_server::{self, SimulatedServer, TrialOrder};
use crate::error::EngineError;

/// The field that says which family it is of; without it, the law's.
const FAMILY: &str = "family";

/// A server whose truth is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Simulated {
    /// A law of service times behind a queue.
    Law(Box<SimulatedServer>),
    /// Made of parts.
    Parts(Box<Document>),
}

impl Simulated {
    /// Reads and checks a server: `{"family": "parts", ...}`, or one of the law's fields alone.
    ///
    /// # Errors
    /// `BadJob` with what is wrong with it.
    pub fn read(json: &str) -> Result<Self, EngineError> {
        let mut fields: Value = parsed(json)?;
        let family = fields.as_object_mut().and_then(|fields| fields.remove(FAMILY));
        match family.as_ref().map(Value::as_str) {
            None | Some(Some("law")) => {
                let server: SimulatedServer = of_value(fields)?;
                server.validate()?;
                Ok(Self::Law(Box::new(server)))
            }
            Some(Some("parts")) => {
                let document: Document = of_value(fields)?;
                document.validate().map_err(|refused| EngineError::bad_job(refused.0))?;
                Ok(Self::Parts(Box::new(document)))
            }
            Some(_) => Err(EngineError::bad_job(format!(
                "the server: {FAMILY} is {}; there are \"law\" and \"parts\"",
                family.unwrap_or_default()
            ))),
        }
    }

    /// Runs one trial in virtual time.
    ///
    /// # Errors
    /// `BadJob` when the order is out of range.
    pub fn run(&self, order: &TrialOrder) -> Result<LoadResult, EngineError> {
        order.validate()?;
        match self {
            Self::Law(server) => Ok(simulated_server::run(server, order)),
            Self::Parts(document) => server_of_parts::run(document, order),
        }
    }
}

fn parsed<T: DeserializeOwned>(json: &str) -> Result<T, EngineError> {
    serde_json::from_str(json).map_err(|error| refused(&error))
}

fn of_value<T: DeserializeOwned>(fields: Value) -> Result<T, EngineError> {
    serde_json::from_value(fields).map_err(|error| refused(&error))
}

fn refused(error: &serde_json::Error) -> EngineError {
    EngineError::bad_job(format!("the server: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(json: &str) -> String {
        Simulated::read(json).unwrap_err().message
    }

    #[test]
    fn a_server_is_of_the_law_unless_it_says_that_it_is_made_of_parts() {
        let law = r#"{"workers": 1, "service_ms": 5, "service": {"kind": "exponential"}}"#;
        assert!(matches!(Simulated::read(law), Ok(Simulated::Law(_))));
        let cores = r#""cores": {"count": 1, "work_ms": 5, "work": {"kind": "exponential"}}"#;
        let parts = format!(r#"{{"family": "parts", "workers": 8, {cores}}}"#);
        assert!(matches!(Simulated::read(&parts), Ok(Simulated::Parts(_))));
        assert!(refused(&format!(r#"{{"workers": 8, {cores}}}"#)).contains("`cores`"));
        assert!(refused(r#"{"family": "parts", "workers": 8}"#).contains("`cores`"));
        assert!(refused(r#"{"family": "both"}"#).contains(r#"family is "both""#));
        assert!(refused(r#"{"family": 7}"#).contains("family is 7"));
        let idle = parts.replace("\"work_ms\": 5", "\"work_ms\": 0");
        assert!(refused(&idle).contains("no time at all"));
    }
}
