//! Runs whose requests become due by a clock.

mod open_loop;
mod open_loop_result;
mod stall;
