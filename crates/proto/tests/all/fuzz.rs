//! Attack scripts: random ones, and those that the fuzz targets of `fuzz/` found to cover most code.

use crate::hostile;
use proptest::prelude::*;
use talkspurt_proto::dccp::Dccp;
use talkspurt_proto::sctp::Sctp;
use talkspurt_proto::tcp::Tcp;
use talkspurt_testing::fuzz::{cases, replay};

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
    #![proptest_config(ProptestConfig { cases: cases(200), ..ProptestConfig::default() })]

    #[test]
    fn random_scripts(script in prop::collection::vec(any::<u8>(), 0..2000)) {
        hostile::play::<Dccp>(&script);
        hostile::play::<Tcp>(&script);
        hostile::play::<Sctp>(&script);
        hostile::media::play(&script);
    }

    #[test]
    fn random_packets(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        hostile::wire::read(&bytes);
    }
}
