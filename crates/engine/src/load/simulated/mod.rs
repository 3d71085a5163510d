//! A trial of a simulated server of either family, under an open loop: requests arrive in a Poisson
//! stream and count from when they were due.

#![forbid(unsafe_code)]

mod law;
mod parts;

use leadline_base::error::EngineError;
use leadline_sim::server::Document;
use leadline_wire::event::load::TrialResult;
use leadline_wire::job::trial::{PartsServer, Server, TrialJob};

/// Arrivals stop with the window; answers are waited for this much longer.
const DRAIN_S: f64 = 2.0;

/// Runs a job's trial in virtual time.
///
/// # Errors
/// `BadJob` when a server made of parts has a field that makes no sense.
pub fn answer(job: &TrialJob) -> Result<TrialResult, EngineError> {
    let load = match &job.server {
        Server::Law(server) => law::run(server, &job.order),
        Server::Parts(server) => parts::run(&read(server)?, &job.order)?,
    };
    Ok(TrialResult::new(job, load))
}

/// Reads the parts; an error names the field that it is about.
fn read(server: &PartsServer) -> Result<Document, EngineError> {
    let document: Document = serde_path_to_error::deserialize(&server.fields)
        .map_err(|error| refused(&format!("{}: {}", error.path(), error.inner())))?;
    document.validate().map_err(|error| refused(&error.0))?;
    Ok(document)
}

fn refused(what: &str) -> EngineError {
    EngineError::bad_job(format!("{what}; docs/reference/server.md lists the fields"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What is wrong with a server, as text.
    fn refused(server: &str) -> String {
        let order = r#"{"rate_per_s": 10, "seconds": 10, "seed": 1}"#;
        let job =
            format!(r#"{{"version": 1, "job_id": "j", "server": {server}, "order": {order}}}"#);
        match serde_json::from_str::<TrialJob>(&job) {
            Ok(job) => answer(&job).unwrap_err().message,
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_server_is_of_the_law_unless_it_says_that_it_is_made_of_parts() {
        let cores = r#""cores": {"count": 1, "work_ms": 5, "work": {"kind": "exponential"}}"#;
        let parts = format!(r#"{{"family": "parts", "workers": 8, {cores}}}"#);
        assert!(refused(&format!(r#"{{"workers": 8, {cores}}}"#)).contains("`cores`"));
        assert!(refused(r#"{"family": "parts", "workers": 8}"#).contains("`cores`"));
        assert!(refused(r#"{"family": "both"}"#).contains(r#"family is "both""#));
        assert!(refused(r#"{"family": 7}"#).contains("family is 7"));
        let idle = parts.replace("\"work_ms\": 5", "\"work_ms\": 0");
        assert!(refused(&idle).contains("no time at all"));
        let misspelt = refused(&parts.replace("\"count\"", "\"cuont\""));
        assert!(
            misspelt.starts_with("cores.cuont: ") || misspelt.starts_with("cores: "),
            "{misspelt}"
        );
    }
}
