//! A running program's I/O, seen as it happens: by programs in the kernel (BPF), or by stopping the
//! program at each of its calls (ptrace).
//!
//! What was seen goes the way of every trace (`leadline_trace::Live`): nothing is spooled, so that
//! nothing is left by whoever is killed. Contents are never looked at.

mod bpf;
mod call;
mod calls;
mod records;
mod report;
mod session;
mod start;
mod stops;
mod system;
mod totals;
mod traced;
mod watch;

pub use report::{Captured, Ended, FileUse, Report};
pub use session::{Asked, Hear, Order, Target, Way};
pub use watch::{capture, run_unwatched};
