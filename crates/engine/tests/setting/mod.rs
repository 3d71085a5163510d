//! What a run needs in a test: it begins now, its issuers run where the kernel puts them.

use leadline_engine::access::arrival::ArrivalStream;
use leadline_engine::clock::Clock;
use leadline_engine::run::phases::Setting;
use leadline_engine::run::placement::place;
use leadline_engine::wire::job::{MeasureJob, Placement};

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
    }
}
