#![allow(clippy::unwrap_used)]
use leadline_wire::job::trial::Service;

use super::*;

/// A server of M/M/k without any trouble.
fn plain(workers: u32, service_ms: f64, service: Service) -> SimulatedServer {
    let text = format!(
        r#"{{"workers": {workers}, "service_ms": {service_ms}, "service": {}, "warm_up_s": 60.0}}"#,
        serde_json::to_string(&service).unwrap()
    );
    serde_json::from_str(&text).unwrap()
}

fn order(rate_per_s: f64, seconds: f64) -> TrialOrder {
    TrialOrder {
        rate_per_s,
        seconds,
        seed: 7,
        limit_ms: None,
        also_limits_ms: vec![],
        abort_above_ms: None,
    }
}

fn mean_ms(server: &SimulatedServer, rate_per_s: f64) -> f64 {
    run(server, &order(rate_per_s, 20_000.0)).response_ms.unwrap().mean
}

fn close(found: f64, expected: f64, within: f64) {
    assert!((found / expected - 1.0).abs() < within, "found {found}, expected {expected}");
}

#[test]
fn one_worker_is_m_m_1() {
    close(mean_ms(&plain(1, 5.0, Service::Exponential {}), 160.0), 25.0, 0.02); // 1/(200 - 160) s
}

#[test]
fn four_workers_are_m_m_4() {
    // Erlang C of 4 servers at 80% is 0.5964; wait = C / (4·100 - 320).
    close(mean_ms(&plain(4, 10.0, Service::Exponential {}), 320.0), 10.0 + 596.4 / 80.0, 0.02);
}

#[test]
fn other_distributions_obey_pollaczek_and_khinchine() {
    // Wait of M/G/1: ρ/(1-ρ) · (1 + cv²)/2 · mean service.
    let wait = |cv2: f64| 5.0 * 0.6 / 0.4 * (1.0 + cv2) / 2.0;
    close(mean_ms(&plain(1, 5.0, Service::Fixed {}), 120.0), 5.0 + wait(0.0), 0.02);
    close(mean_ms(&plain(1, 5.0, Service::Lognormal { cv: 1.0 }), 120.0), 5.0 + wait(1.0), 0.03);
    let two = Service::TwoModes { slow_share: 0.1, slow_factor: 10.0 };
    let (fast, slow) = (1.0 / 1.9, 10.0 / 1.9);
    let cv2 = 2.0 * (0.9 * fast * fast + 0.1 * slow * slow) - 1.0;
    close(mean_ms(&plain(1, 5.0, two), 120.0), 5.0 + wait(cv2), 0.05);
}

#[test]
fn a_heavy_tail_has_the_mean_it_states() {
    for (shape, end) in [(1.5, 1000.0), (1.5, 30.0), (2.0, 100.0)] {
        let server = plain(4096, 5.0, Service::Pareto { shape, end });
        let response = run(&server, &order(200.0, 4_000.0)).response_ms.unwrap();
        close(response.mean, 5.0, 0.05);
        assert!(response.max <= 1.02 * 5.0 * end); // the histogram's bins
    }
    let text = r#"{"kind": "pareto", "shape": 1.5}"#;
    assert_eq!(
        serde_json::from_str::<Service>(text).unwrap(),
        Service::Pareto { shape: 1.5, end: 1000.0 }
    );
}

#[test]
fn every_draw_follows_the_seed() {
    let server = plain(3, 5.0, Service::Lognormal { cv: 1.0 });
    let once = run(&server, &order(300.0, 30.0));
    assert_eq!(once, run(&server, &order(300.0, 30.0)));
    assert_ne!(once, run(&server, &TrialOrder { seed: 8, ..order(300.0, 30.0) }));
}

#[test]
fn overload_shows_the_capacity_and_is_given_up() {
    let server = plain(2, 10.0, Service::Exponential {});
    let result = run(&server, &TrialOrder { abort_above_ms: Some(160.0), ..order(400.0, 180.0) });
    assert!(result.aborted);
    close(result.seconds, crate::load::ABORT_AFTER_S, 0.02);
    close(result.completed_per_s, 200.0, 0.1);
}

#[test]
fn disks_and_the_processor_limit_what_threads_do() {
    let mut server = plain(64, 0.0, Service::Fixed {});
    (server.disks, server.disk_share, server.disk_ms, server.cpu_ms) = (4, 0.5, 10.0, 0.1);
    let overload = |server: &SimulatedServer| run(server, &order(2000.0, 30.0)).completed_per_s;
    close(overload(&server), 800.0, 0.1); // 4 disks · 100/s / 0.5, a little less by chance
    server.workers = 1;
    close(overload(&server), 1000.0 / 5.1, 0.05);
}

#[test]
fn trouble_makes_it_slower() {
    let calm = plain(4, 10.0, Service::Exponential {});
    let mean_ms =
        |server: &SimulatedServer| run(server, &order(300.0, 2_000.0)).response_ms.unwrap().mean;
    let mean = mean_ms(&calm);
    for troubled in [
        SimulatedServer { drift_sd: 0.1, ..calm },
        SimulatedServer { retrograde: 0.5, retrograde_ms: 20.0, ..calm },
        SimulatedServer { stalls_per_s: 0.1, stall_ms: 500.0, ..calm },
        SimulatedServer { slow_mode_share: 1.0, slow_mode_factor: 1.1, ..calm },
    ] {
        assert!(mean_ms(&troubled) > 1.1 * mean, "{troubled:?}");
    }
    let cold = SimulatedServer { cold_frac: 1.0, cold_s: 10.0, warm_up_s: 0.0, ..calm };
    let batches = run(&cold, &order(250.0, 60.0)).batches;
    assert!(batches[1].mean_ms > 2.0 * batches[50].mean_ms);
}
