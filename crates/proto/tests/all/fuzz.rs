//! Attack scripts: random ones, and those that the fuzz targets of `fuzz/` found to cover most code.

use std::path::Path;

use crate::hostile;
use proptest::prelude::*;
use talkspurt_proto::dccp::Dccp;
use talkspurt_proto::sctp::Sctp;
use talkspurt_proto::tcp::Tcp;

/// Runs the stored scripts of a target.
fn replay(target: &str, play: fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let text = std::fs::read_to_string(seeds.join(format!("{target}.txt"))).expect("seeds");
    assert!(text.lines().count() > 20, "{} seeds", text.lines().count());
    for line in text.lines() {
        let (name, script) = line.split_once(' ').expect("a name and bytes");
        println!("{target} {name}");
        play(&unhex(script));
    }
}

fn unhex(digits: &str) -> Vec<u8> {
    let byte =
        |pair: &[u8]| str::from_utf8(pair).ok().and_then(|it| u8::from_str_radix(it, 16).ok());
    digits.as_bytes().chunks(2).map(|pair| byte(pair).expect("two hexadecimal digits")).collect()
}

/// Random scripts per test; `make fuzz-smoke` sets more.
fn cases() -> u32 {
    std::env::var("FUZZ_CASES").map_or(200, |cases| cases.parse().expect("a number"))
}

#[test]
fn kept_packets() {
    replay("wire", hostile::wire::read);
}
#[test]
fn kept_scripts_for_dccp() {
    replay("dccp", hostile::play::<Dccp>);
}
#[test]
fn kept_scripts_for_tcp() {
    replay("tcp", hostile::play::<Tcp>);
}
#[test]
fn kept_scripts_for_sctp() {
    replay("sctp", hostile::play::<Sctp>);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn random_scripts(script in prop::collection::vec(any::<u8>(), 0..2000)) {
        hostile::play::<Dccp>(&script);
        hostile::play::<Tcp>(&script);
        hostile::play::<Sctp>(&script);
    }

    #[test]
    fn random_packets(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        hostile::wire::read(&bytes);
    }
}
