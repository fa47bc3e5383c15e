//! Attack scripts against a TCP client and listener.
#![no_main]

#[path = "../../crates/proto/tests/all/hostile/mod.rs"]
#[allow(dead_code, reason = "the rig of all targets")]
mod hostile;

libfuzzer_sys::fuzz_target!(|script: &[u8]| hostile::play::<talkspurt_proto::tcp::Tcp>(script));
