//! Captures: files, and frames of any link type.
#![no_main]

#[path = "../../crates/capture/tests/all/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::play(bytes));
