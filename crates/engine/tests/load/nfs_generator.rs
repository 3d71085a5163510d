//! The open loop on a server that does as it is told: what is counted, and from when.

use std::sync::atomic::Ordering::SeqCst;

use leadline_wire::job::nfs_load::{Data, LoadOrder, Workload};

use crate::scripted::{self, Scripted};
use leadline_base::error::{EngineError, ErrorKind};
use leadline_base::events::Reporter;
use leadline_engine::load::nfs::calls::Handle;
use leadline_engine::load::nfs::data_set::DataSet;
use leadline_engine::load::nfs::generator::{DRAIN_S, Offered, offer};
use leadline_engine::load::nfs::plan::Plan;

const SERVICE_MS: f64 = 5.0;

fn order(rate_per_s: f64, seconds: f64) -> LoadOrder {
    LoadOrder {
        rate_per_s,
        seconds,
        warm_up_s: 0.1,
        seed: 3,
        connections: 1,
        stable: None,
        limit_ms: Some(100.0),
        abort_above_ms: None,
    }
}

/// Offers a database's load, which is all that such a server understands.
fn offered(server: &Scripted, order: &LoadOrder) -> Result<Offered, EngineError> {
    waited_for(server, order, DRAIN_S)
}

/// The same, with another wait for what is outstanding when the last call was sent.
fn waited_for(server: &Scripted, order: &LoadOrder, drain_s: f64) -> Result<Offered, EngineError> {
    let plan = Plan::new(Data { workload: Workload::DbTp, data_bytes: 4 << 20, seed: 1 });
    let handle = Handle::of(&server.remote.file).unwrap();
    let data = DataSet {
        root: handle.clone(),
        directories: vec![handle.clone()],
        files: vec![handle.clone(); plan.file_bytes.len()],
        links: Vec::new(),
        new_files: handle,
        repaired: 0,
    };
    let mut nobody = |_: &str| {};
    let mut reporter = Reporter::new("j", &mut nobody);
    offer(order, &plan, &data, &server.remote.addresses, drain_s, &mut reporter)
}

/// Due in the window, as the batches have it, and as the procedures have it.
fn due_twice(offered: &Offered) -> (u64, u64) {
    let batches = offered.load.batches.iter().map(|batch| batch.due).sum();
    (batches, offered.operations.iter().map(|operation| operation.due).sum())
}

#[test]
fn every_call_is_counted_once_in_whatever_pieces_and_order_answers_come() {
    for (fragment, together) in [(0, 1), (5, 1), (1000, 4), (0, 16)] {
        let server = scripted::start();
        server.script.fragment.store(fragment, SeqCst);
        server.script.together.store(together, SeqCst);
        server.script.timeout_ms.store(50, SeqCst);
        let order = LoadOrder { connections: 3, ..order(600.0, 1.0) };
        // Nothing waits so long: it ends with the last answer, on however busy a machine.
        let offered = waited_for(&server, &order, 600.0).unwrap();
        let due = offered.load.due;
        assert!((480..720).contains(&due), "{due}");
        assert_eq!(due_twice(&offered), (due, due));
        assert_eq!((offered.load.unanswered, offered.load.failed), (0, 0));
        assert_eq!(offered.generator.held, 0);
    }
}

#[test]
fn response_times_hold_the_service_and_the_queue() {
    let server = scripted::start();
    server.script.service_us.store((SERVICE_MS * 1e3) as u64, SeqCst);
    let offered = offered(&server, &order(100.0, 3.0)).unwrap();
    let response = offered.load.response_ms.unwrap();
    // M/D/1 at half load: 1.5 services; a busy host adds to that and takes nothing away.
    assert!(response.mean > 1.2 * SERVICE_MS, "{response:?}");
    assert!(response.p50 >= SERVICE_MS);
}

#[test]
fn an_overloaded_server_is_offered_all_the_same_and_what_it_never_answers_counts_with_its_age() {
    let server = scripted::start();
    server.script.service_us.store((SERVICE_MS * 1e3) as u64, SeqCst);
    let offered = offered(&server, &order(600.0, 1.5)).unwrap();
    let load = &offered.load;
    assert!((780..1020).contains(&load.due), "600 a second, whatever it manages: {}", load.due);
    assert_eq!(due_twice(&offered), (load.due, load.due));
    assert!(load.completed_per_s < 1.02e3 / SERVICE_MS, "it sleeps before each answer");
    assert!(load.unanswered > 0, "{load:?}");
    let response = load.response_ms.unwrap();
    assert!(response.max > 1900.0 && response.mean > 900.0, "{response:?}");
    assert!(load.batches[40].over == load.batches[40].due, "by then all are over the limit");
}

#[test]
fn a_hopeless_load_is_given_up_ten_seconds_into_its_window() {
    let server = scripted::start();
    server.script.service_us.store((SERVICE_MS * 1e3) as u64, SeqCst);
    let hopeless = LoadOrder { abort_above_ms: Some(200.0), ..order(400.0, 600.0) };
    let offered = offered(&server, &hopeless).unwrap();
    let load = &offered.load;
    assert!(load.aborted && (10.0..600.0).contains(&load.seconds), "{}", load.seconds);
    let (in_whole_parts, by_operation) = due_twice(&offered);
    assert_eq!(by_operation, load.due);
    // Parts of ten seconds: what was due after the last whole one is in none.
    assert_eq!(load.batches.len(), (load.seconds / 10.0) as usize);
    assert!((1..=load.due).contains(&in_whole_parts), "{in_whole_parts} of {}", load.due);
}

#[test]
fn refusals_and_short_answers_are_failures_and_have_no_response_time() {
    let server = scripted::start();
    server.script.status.store(28, SeqCst); // no space left
    let refused = offered(&server, &order(200.0, 0.5)).unwrap();
    assert_eq!(refused.load.failed, refused.load.due);
    assert_eq!((refused.load.response_ms, refused.load.completed_per_s), (None, 0.0));
    assert!(refused.generator.first_failure.unwrap().contains("no room"));
    server.script.status.store(0, SeqCst);
    server.script.most.store(4096, SeqCst);
    let short = offered(&server, &order(200.0, 0.5)).unwrap();
    let failed: u64 = short.operations.iter().map(|operation| operation.failed).sum();
    assert!(failed > 0 && failed == short.load.failed, "{:?}", short.load);
    assert!(short.generator.first_failure.unwrap().contains("4096 bytes of"));
}

#[test]
fn a_server_that_forgot_its_files_is_lost() {
    let server = scripted::start();
    server.script.status.store(70, SeqCst); // stale
    let error = offered(&server, &order(200.0, 0.5)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Lost, "{error}");
}

#[test]
fn a_server_that_began_anew_is_lost() {
    let server = scripted::start();
    server.script.anew_after.store(50, SeqCst);
    let error = offered(&server, &order(200.0, 5.0)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Lost, "{error}");
    assert!(error.message.contains("restarted"), "{error}");
}
