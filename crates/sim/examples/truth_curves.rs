//! Prints what a survey of each given profile must find: `cargo run --example truth_curves -- FILE…`
//!
//! Throughput in MB/s over unique_bytes at 32 KiB, half reads, half sequential, one process, then
//! over the other four parameters in the middle of each region.

use std::error::Error;

use leadline_sim::law::{SimulatedSystem, truth};
use leadline_wire::job::spread::Spread;
use leadline_wire::job::workload::{SizeDist, Workload};

const POINTS: u32 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let document: toml::Value = toml::from_str(&std::fs::read_to_string(&path)?)?;
        let system = SimulatedSystem::from_value(&serde_json::to_value(document)?)
            .map_err(|error| format!("{path}: {error}"))?;
        print_system(&system);
    }
    Ok(())
}

fn focal(unique_bytes: f64) -> Workload {
    Workload {
        unique_bytes: unique_bytes as u64,
        size_mean: 32 * 1024,
        read_frac: 0.5,
        seq_frac: 0.5,
        process_num: 1,
        size_dist: SizeDist::Normal,
        queue_depth: 1,
        think_time_s: 0.0,
        access: Spread::default(),
    }
}

fn print_system(system: &SimulatedSystem) {
    println!("\n{}: {}", system.meta.name, system.meta.title);
    let rate = |workload: &Workload| truth::expected_throughput_mb_s(system, workload, 0, 0);
    let boundaries = truth::boundaries(system);
    let last = boundaries.last().map_or(1e9, |boundary| boundary.bytes);
    let first = boundaries.first().map_or(1e8, |boundary| boundary.bytes);
    let (low, high) =
        (first / 10.0, system.survey.unique_bytes_max.map_or(last * 6.0, |b| b as f64));
    for boundary in &boundaries {
        println!("  boundary at {:.1} MB: {}", boundary.bytes / 1e6, boundary.what);
    }
    for point in 0..POINTS {
        let bytes = low * (high / low).powf(f64::from(point) / f64::from(POINTS - 1));
        println!("  U {:>10.2} MB  {:>9.3} MB/s", bytes / 1e6, rate(&focal(bytes)));
    }
    let mut edges = vec![first / 10.0];
    edges.extend(boundaries.iter().map(|boundary| boundary.bytes));
    edges.push(high);
    for pair in edges.windows(2) {
        print_family(&focal((pair[0] * pair[1]).sqrt()), &rate);
    }
}

fn print_family(focal: &Workload, rate: &dyn Fn(&Workload) -> f64) {
    println!("  region at {:.1} MB", focal.unique_bytes as f64 / 1e6);
    let line = |name: &str, values: &[f64], change: &dyn Fn(&mut Workload, f64)| {
        print!("    {name:<12}");
        for &value in values {
            let mut workload = focal.clone();
            change(&mut workload, value);
            print!(" {value}:{:.3}", rate(&workload));
        }
        println!();
    };
    let fractions = [0.0, 0.25, 0.5, 0.75, 1.0];
    let sizes = [1.0, 4.0, 16.0, 32.0, 120.0, 256.0, 512.0, 1024.0, 2048.0];
    line("read_frac", &fractions, &|workload, value| workload.read_frac = value);
    line("seq_frac", &fractions, &|workload, value| workload.seq_frac = value);
    line("size_KiB", &sizes, &|workload, value| workload.size_mean = (value * 1024.0) as u64);
    line("processes", &[1.0, 2.0, 4.0, 8.0, 32.0], &|workload, value| {
        workload.process_num = value as u32;
    });
}
