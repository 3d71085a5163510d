//! What a run needs in a test: a job, and that it begins now, its workers where the kernel puts them.

use leadline_base::clock::Clock;
use leadline_engine::access::arrival::ArrivalStream;
use leadline_engine::run::phases::Setting;
use leadline_engine::run::placement::place;
use leadline_wire::job::Job;
use leadline_wire::job::measure::{MeasureJob, Placement};
use serde_json::Value;

pub fn measurement(document: &Value) -> MeasureJob {
    let Job::Measure(job) = Job::read(&document.to_string()).unwrap() else {
        unreachable!("it says so")
    };
    *job
}

pub fn setting(job: &MeasureJob) -> Setting {
    let clock = Clock::calibrated();
    Setting {
        clock,
        placement: place(Placement::Free, 1, None),
        limits: job.limits,
        job_began_ns: clock.now_ns(),
        warm_up_spent_s: 0.0,
        device: None,
        schedule: ArrivalStream::new(&job.arrivals, job.seed),
        abort_above_ms: job.load.as_ref().and_then(|load| load.abort_above_ms),
    }
}
