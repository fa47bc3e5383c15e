//! RFC 6323: the sender tells its round-trip time, once the receiver asked for it.

use crate::dccp_pair::*;
use talkspurt_proto::dccp::Location::{Here, There};
use talkspurt_proto::dccp::options::{Opt, ccid_option, feature as name};
use talkspurt_proto::dccp::{Ccid, Config};

fn telling(ccid: Ccid) -> Config {
    Config { send_rtt_estimate: true, ..Config::new(ccid) }
}

fn estimates(pair: &Pair, from: Side) -> Vec<u64> {
    let sent = pair.log.iter().filter(|sent| sent.from == from);
    sent.flat_map(|sent| options(&sent.packet))
        .filter_map(|option| match option {
            Opt::Ccid { kind: ccid_option::RTT_ESTIMATE, value } => {
                Some(value.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
            }
            _ => None,
        })
        .collect()
}

/// §3: Send RTT Estimate, number 128, is asked for with Change R, by the receiver, off at first.
#[test]
fn the_feature_is_negotiated() {
    for ccid in [Ccid::Three, Ccid::Four] {
        let pair = Pair::connected(&telling(ccid));
        for dccp in [&pair.client.dccp, &pair.server.dccp] {
            for location in [Here, There] {
                assert_eq!(dccp.feature(name::SEND_RTT_ESTIMATE, location), 1);
            }
        }
    }
    // CCID 2 has no use for it, and nobody else gets it unasked.
    for config in [telling(Ccid::Two), Config::new(Ccid::Three)] {
        let pair = Pair::connected(&config);
        assert_eq!(pair.client.dccp.feature(name::SEND_RTT_ESTIMATE, Here), 0);
        assert!(estimates(&pair, Client).is_empty());
    }
    let mut asked = Pair::new(&telling(Ccid::Three));
    asked.input(Client, talkspurt_proto::endpoint::Input::Open);
    let change = Opt::ChangeR(feature(name::SEND_RTT_ESTIMATE, &[1, 0]));
    assert!(options(&asked.log[0].packet).contains(&change));
}

/// §3.1: data packets then tell the round-trip time in microseconds.
#[test]
fn data_tells_the_round_trip_time() {
    let mut pair = Pair::connected(&telling(Ccid::Three));
    for _ in 0..100 {
        pair.send(Client, 160);
        pair.drive_for(ms(20));
    }
    let told = estimates(&pair, Client);
    let data = pair.log.iter().filter(|sent| sent.from == Client && sent.packet.kind.is_data());
    assert!(!told.is_empty() && told.len() <= data.count());
    // The path is 100 ms there and back; a packet waits for nothing on it.
    assert!(told.iter().all(|micros| (99_000..=101_000).contains(micros)), "{told:?}");
}
