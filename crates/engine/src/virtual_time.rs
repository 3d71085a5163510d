//! A run in virtual time (being built).

use crate::error::EngineError;
use crate::events::Reporter;
use crate::job::Job;
use crate::result::EngineResult;

pub(crate) fn run(_job: &Job, _reporter: &mut Reporter) -> Result<EngineResult, EngineError> {
    Err(EngineError::fault("simulated systems are not built in yet"))
}
