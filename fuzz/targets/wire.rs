//! Parsing of arbitrary bytes.
#![no_main]

#[path = "../../crates/proto/tests/all/hostile/mod.rs"]
#[allow(dead_code, reason = "the rig of all targets")]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::wire::read(bytes));
