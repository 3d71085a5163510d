//! Runs one streaming job, given as JSON on standard input, and prints its events: what a profiler
//! is to look at, without Python around it.

use std::io::Read;

fn main() -> std::io::Result<()> {
    let mut job = String::new();
    std::io::stdin().read_to_string(&mut job)?;
    leadline_kernels::run::run_job(&job, &mut |event| println!("{event}"));
    Ok(())
}
