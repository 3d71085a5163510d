//! What is asked of a target beside jobs (`protocol/ask.schema.json`): a directory of a server is
//! claimed, looked at and released from here, because nothing above the wire speaks NFS.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::backend::data_file::DATA_FILE_NAME;
use crate::backend::nfs::claim::{self, Holder};
use crate::backend::nfs::volume::Volume;
use crate::error::EngineError;
use crate::wire::job::{NfsAddress, WIRE_VERSION, is_run};
use crate::wire::limits;

/// One question.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    version: u32,
    /// Chosen by the caller; the answer repeats it.
    pub job_id: String,
    ask: Question,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
enum Question {
    /// Own `.leadline/` in the directory, for the process `process` of this machine.
    #[serde(rename = "nfs_claim")]
    Claim { server: NfsAddress, run: String, process: u32, patience_s: f64 },
    /// How much room is there, and how much of it the data file has.
    #[serde(rename = "nfs_room")]
    Room { server: NfsAddress, run: String, patience_s: f64 },
    /// Remove what was made.
    #[serde(rename = "nfs_release")]
    Release { server: NfsAddress, run: String, patience_s: f64 },
}

/// What the server said.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(tag = "event", rename = "answer")]
pub struct Reply {
    job_id: String,
    /// Of a claim.
    server: Option<ServerFacts>,
    /// Of a claim and of a look at the room.
    room: Option<Room>,
}

/// Facts of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerFacts {
    /// Where its NFS program was reached.
    address: String,
    /// What of the path is the export.
    export: String,
    /// Most bytes of a READ.
    read_bytes_max: u32,
    /// Most bytes of a WRITE.
    write_bytes_max: u32,
    /// The shortest of several empty calls, in microseconds.
    round_trip_us: f64,
}

/// Room in an export, in bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Room {
    total_bytes: u64,
    /// Free to this user.
    free_bytes: u64,
    /// What the data file has now.
    data_bytes: u64,
}

impl Ask {
    /// Reads and checks a question.
    ///
    /// # Errors
    /// `BadJob` when it cannot be read.
    pub fn read(document: &Value) -> Result<Self, EngineError> {
        let ask = Self::deserialize(document).map_err(|error| {
            EngineError::bad_job(format!(
                "the question cannot be read: {error}; see protocol/ask.schema.json"
            ))
        })?;
        ask.validate()?;
        Ok(ask)
    }

    fn validate(&self) -> Result<(), EngineError> {
        let (Question::Claim { server, run, patience_s, .. }
        | Question::Room { server, run, patience_s }
        | Question::Release { server, run, patience_s }) = &self.ask;
        server.validate()?;
        if self.version != WIRE_VERSION || !is_run(run) || !limits::PATIENCE_S.contains(patience_s)
        {
            return Err(EngineError::bad_job(format!(
                "the question makes no sense: version {}, run {run:?}, patience_s {patience_s}",
                self.version
            )));
        }
        Ok(())
    }

    /// Asks the server.
    ///
    /// # Errors
    /// `Lost` when it does not answer; `Target` when it refuses, or the directory is another's.
    pub fn answer(&self) -> Result<Reply, EngineError> {
        let reply = Reply { job_id: self.job_id.clone(), ..Reply::default() };
        match &self.ask {
            Question::Claim { server, run, process, patience_s } => {
                let mut volume = open(server, *patience_s)?;
                let facts = server_facts(&mut volume)?;
                claim::claim(&mut volume, run, &Holder::here(*process))?;
                let room = room(&mut volume, None);
                if room.is_err() {
                    let _ = claim::release(&mut volume, run);
                }
                Ok(Reply { server: Some(facts), room: Some(room?), ..reply })
            }
            Question::Room { server, run, patience_s } => {
                let mut volume = open(server, *patience_s)?;
                Ok(Reply { room: Some(room(&mut volume, Some(run))?), ..reply })
            }
            Question::Release { server, run, patience_s } => {
                claim::release(&mut open(server, *patience_s)?, run).map(|()| reply)
            }
        }
    }
}

fn open(server: &NfsAddress, patience_s: f64) -> Result<Volume, EngineError> {
    Volume::open(server, Duration::from_secs_f64(patience_s))
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
