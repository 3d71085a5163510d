//! Runs in virtual time and runs whose requests become due by a clock.

mod machine;
mod open_loop;
mod open_loop_result;
mod stall;
