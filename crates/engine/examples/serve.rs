//! The engine without Python: one job per line on standard input, events on standard output.

use std::io::{BufRead, Write};

fn main() -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let mut output = std::io::stdout().lock();
        leadline_engine::engine::run_job(&line?, &mut |event| {
            // A reader that went away ends the run at the next line.
            if writeln!(output, "{event}").is_err() {
                std::process::exit(1);
            }
        });
    }
    Ok(())
}
