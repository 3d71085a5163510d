//! One load job: claim, do, let go.

#![forbid(unsafe_code)]

use std::time::Duration;

use leadline_base::clock::{now_ns, ns_from_s, s_from_ns};
use leadline_base::error::{EngineError, ErrorKind};
use leadline_base::events::{Phase, Reporter};
use leadline_wire::event::nfs_load::{DataFacts, NfsLoadResult};
use leadline_wire::job::nfs_load::{Action, Data, LoadOrder, NfsLoadJob};

use crate::backend::nfs::SILENCE_S_MAX;
use crate::backend::nfs::claim::{Holder, hold, let_go};
use crate::backend::nfs::volume::{Place, Volume};
use crate::load::nfs::data_set::{DataSet, Opened, Workshop};
use crate::load::nfs::generator::{DRAIN_S, offer};
use crate::load::nfs::plan::{Plan, require_few_files};

/// Does what a job asks for.
///
/// # Errors
/// `BadJob` when the data set has too many files; `Lost` when the server goes away; `Target` when it
/// refuses, something there is not Leadline's, or a load finds no data set.
pub fn run(job: &NfsLoadJob, reporter: &mut Reporter) -> Result<NfsLoadResult, EngineError> {
    job.data.as_ref().map_or(Ok(()), require_few_files)?;
    let deadline_ns = now_ns().saturating_add(ns_from_s(job.total_s_max));
    reporter.phase(Phase::Prepare, 0);
    let mut volume = Volume::open(&job.server, Duration::from_secs_f64(SILENCE_S_MAX))?;
    let own = hold(&mut volume, &Holder::here(std::process::id()))?;
    let mut bench = Bench { volume, own, deadline_ns, reporter };
    let result = bench.answer(job);
    // A server that is gone keeps its lock; the next to come finds that its holder has ended.
    if result.as_ref().err().is_none_or(|error| error.kind != ErrorKind::Lost) {
        let left = let_go(&mut bench.volume, &bench.own);
        if result.is_ok() {
            left?;
        }
    }
    result
}

/// The claimed directory, and who is told how it goes.
struct Bench<'a, 'b> {
    volume: Volume,
    own: Place,
    deadline_ns: u64,
    reporter: &'a mut Reporter<'b>,
}

impl Bench<'_, '_> {
    fn answer(&mut self, job: &NfsLoadJob) -> Result<NfsLoadResult, EngineError> {
        let mut result = NfsLoadResult::new(job);
        match (job.action, job.data) {
            (Action::Prepare {}, Some(data)) => {
                result.data = Some(self.prepare(&Plan::new(data))?);
            }
            (Action::Load(order), Some(data)) => self.load(&order, data, &mut result)?,
            (Action::Remove {}, Some(data)) => result.removed = self.remove(data)?,
            (_, None) => {
                for name in self.volume.names(&self.own)? {
                    if let Some(data) = Data::of_directory(&name) {
                        result.removed += self.remove(data)?;
                    }
                }
            }
        }
        Ok(result)
    }

    fn prepare(&mut self, plan: &Plan) -> Result<DataFacts, EngineError> {
        let began_ns = now_ns();
        let found = Workshop::find(&mut self.volume, &self.own, plan, self.deadline_ns)?;
        if let Some(mut workshop) = found {
            if let Opened::Whole(data) = workshop.open(&mut self.volume)? {
                return Ok(facts(plan, Some(&data), began_ns));
            }
            workshop.remove(&mut self.volume)?;
        }
        let mut workshop = Workshop::begin(&mut self.volume, &self.own, plan, self.deadline_ns)?;
        let reporter = &mut *self.reporter;
        let made = workshop.make(&mut self.volume, &mut |share| reporter.progress(share));
        match made {
            Err(ref error) if error.kind == ErrorKind::Lost => {}
            // The first error is what matters.
            Err(_) => drop(workshop.remove(&mut self.volume)),
            Ok(()) => {}
        }
        made.map(|()| facts(plan, None, began_ns))
    }

    fn load(
        &mut self,
        order: &LoadOrder,
        data: Data,
        result: &mut NfsLoadResult,
    ) -> Result<(), EngineError> {
        let began_ns = now_ns();
        let plan = Plan::new(data);
        let set = self.open(&plan)?;
        result.data = Some(facts(&plan, Some(&set), began_ns));
        self.reporter.phase(Phase::WarmUp, now_ns() - began_ns);
        let addresses = self.volume.addresses.clone();
        let offered = offer(order, &plan, &set, &addresses, DRAIN_S, self.reporter)?;
        result.load = Some(offered.load);
        result.operations = offered.operations;
        result.generator = Some(offered.generator);
        Ok(())
    }

    fn open(&mut self, plan: &Plan) -> Result<DataSet, EngineError> {
        let found = Workshop::find(&mut self.volume, &self.own, plan, self.deadline_ns)?;
        let why = match found {
            None => "it is not there".to_owned(),
            Some(mut workshop) => match workshop.open(&mut self.volume)? {
                Opened::Whole(data) => return Ok(data),
                Opened::Not(why) => why,
            },
        };
        Err(EngineError::target(format!(
            "{}/{}: {why}; prepare the data set first",
            self.own.shown,
            plan.data.directory()
        )))
    }

    fn remove(&mut self, data: Data) -> Result<u64, EngineError> {
        let plan = Plan::new(data);
        match Workshop::find(&mut self.volume, &self.own, &plan, self.deadline_ns)? {
            None => Ok(0),
            Some(mut workshop) => workshop.remove(&mut self.volume).map(|()| 1),
        }
    }
}

/// What there is to say of a data set that was found, or just made when there is none.
fn facts(plan: &Plan, found: Option<&DataSet>, began_ns: u64) -> DataFacts {
    DataFacts {
        directory: plan.data.directory(),
        files: plan.file_bytes.len() as u64,
        bytes: plan.bytes(),
        made: found.is_none(),
        repaired: found.map_or(0, |data| data.repaired),
        seconds: s_from_ns(now_ns() - began_ns),
    }
}
