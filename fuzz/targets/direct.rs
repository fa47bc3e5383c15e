//! Packets directly over IP between two ends of a measurement or a call.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| talkspurt_measure::fuzz::packet(bytes));
