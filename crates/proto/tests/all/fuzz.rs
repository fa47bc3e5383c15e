//! Scripts of attack: random ones, and those that the fuzz targets of `fuzz/` found to reach most.

use std::path::Path;

use crate::hostile;
use proptest::prelude::*;
use talkspurt_proto::dccp::Dccp;
use talkspurt_proto::sctp::Sctp;
use talkspurt_proto::tcp::Tcp;

/// Plays the scripts kept of a target.
fn replay(target: &str, play: fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut files: Vec<_> = std::fs::read_dir(seeds)
        .expect("seeds")
        .map(|entry| entry.expect("a seed").path())
        .collect();
    files.sort();
    assert!(files.len() > 20, "{} seeds", files.len());
    for file in files {
        println!("{}", file.display());
        play(&std::fs::read(file).expect("readable"));
    }
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
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

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
