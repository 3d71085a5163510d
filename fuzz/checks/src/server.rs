//! Any JSON as a simulated server of the workbench: it is refused, or it serves a short trial.

use leadline_engine::load::simulated::answer;
use leadline_sim::server::Document;
use leadline_wire::job::Job;
use leadline_wire::job::trial::{Server, TrialJob};
use serde_json::{Value, json};

/// A longer warm-up takes only longer.
const WARM_UP_S_MAX: f64 = 2.0;

/// Tries these bytes.
pub fn server(bytes: &[u8]) {
    let Ok(server) = serde_json::from_slice::<Value>(bytes) else { return };
    let order = json!({"rate_per_s": 30.0, "seconds": 2.0, "seed": 1});
    let job = json!({
        "version": 1, "kind": "simulated_trial", "job_id": "j", "server": server, "order": order
    });
    let Ok(Job::SimulatedTrial(job)) = Job::read(&job.to_string()) else { return };
    if warm_up_s(&job) > WARM_UP_S_MAX {
        return;
    }
    let Ok(result) = answer(&job) else { return };
    let written = serde_json::to_value(&result).expect("a result can be written");
    assert_eq!(written["job_id"], "j");
}

fn warm_up_s(job: &TrialJob) -> f64 {
    match &job.server {
        Server::Law(server) => server.warm_up_s,
        Server::Parts(server) => {
            let fields = Value::Object(server.fields.clone());
            serde_json::from_value(fields).map_or(0.0, |it: Document| it.warm_up_s)
        }
    }
}
