//! Packets of hosts in an emulated network.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| talkspurt_emulate::fuzz::play(bytes));
