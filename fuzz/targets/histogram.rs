#![no_main]

use leadline_fuzz_checks::histogram::{Shifted, histogram};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|parts: (Vec<Shifted>, Vec<Shifted>, u16)| histogram(&parts.0, &parts.1, parts.2));
