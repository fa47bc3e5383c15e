//! A receiver of an RTP session that lies to its controller.
#![no_main]

#[path = "../../crates/proto/tests/all/hostile/mod.rs"]
#[allow(dead_code, reason = "the rig of all targets")]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::media::play(bytes));
