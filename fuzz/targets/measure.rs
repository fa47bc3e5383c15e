//! Messages, notes and units of a stream.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| talkspurt_measure::fuzz::read(bytes));
