//! What is asked of a target beside work: a directory of a server is claimed, looked at and released
//! from here, because nothing above the wire speaks NFS.

#![forbid(unsafe_code)]

use std::time::Duration;

use leadline_base::error::EngineError;
use leadline_wire::event::answer::{Answer, Room, ServerFacts};
use leadline_wire::job::ask::{AskJob, Question};
use leadline_wire::job::target::NfsAddress;

use crate::backend::data_file::DATA_FILE_NAME;
use crate::backend::nfs::claim::{self, Holder};
use crate::backend::nfs::volume::Volume;

/// Asks the server.
///
/// # Errors
/// `Lost` when it does not answer; `Target` when it refuses, or the directory is another's.
pub fn answer(job: &AskJob) -> Result<Answer, EngineError> {
    let reply = Answer { job_id: job.job_id.clone(), ..Answer::default() };
    match &job.ask {
        Question::Claim { server, run, process, timeout_s } => {
            let mut volume = open(server, *timeout_s)?;
            let facts = server_facts(&mut volume)?;
            claim::claim(&mut volume, run, &Holder::here(*process))?;
            let room = room(&mut volume, None);
            if room.is_err() {
                let _ = claim::release(&mut volume, run);
            }
            Ok(Answer { server: Some(facts), room: Some(room?), ..reply })
        }
        Question::Room { server, run, timeout_s } => {
            let mut volume = open(server, *timeout_s)?;
            Ok(Answer { room: Some(room(&mut volume, Some(run))?), ..reply })
        }
        Question::Release { server, run, timeout_s } => {
            claim::release(&mut open(server, *timeout_s)?, run).map(|()| reply)
        }
    }
}

fn open(server: &NfsAddress, timeout_s: f64) -> Result<Volume, EngineError> {
    Volume::open(server, Duration::from_secs_f64(timeout_s))
}

fn server_facts(volume: &mut Volume) -> Result<ServerFacts, EngineError> {
    let info = volume.info()?;
    Ok(ServerFacts {
        address: volume.peer().to_owned(),
        export: volume.export.clone(),
        read_bytes_max: info.rtmax,
        write_bytes_max: info.wtmax,
        round_trip_us: volume.round_trip_ns()? as f64 * 1e-3,
    })
}

fn room(volume: &mut Volume, run: Option<&str>) -> Result<Room, EngineError> {
    let told = volume.room()?;
    let data_bytes = match run {
        None => 0,
        Some(run) => {
            let directory = claim::run_directory(volume, run)?;
            let found = volume.lookup(&directory, DATA_FILE_NAME).ok();
            found.and_then(|(_, facts)| facts).map_or(0, |facts| facts.used)
        }
    };
    Ok(Room { total_bytes: told.tbytes, free_bytes: told.abytes, data_bytes })
}
