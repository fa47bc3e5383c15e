//! RFC 6323: the sender reports its round-trip time at the receiver's request.

use crate::rate_half::ReceiverBench;
use talkspurt_proto::dccp::Location::{Here, There};
use talkspurt_proto::dccp::ccid::Receiver as _;
use talkspurt_proto::dccp::ccid3::options as codec;
use talkspurt_proto::dccp::options::{Opt, ccid_option, feature as name};
use talkspurt_proto::dccp::{Ccid, Config, Kind, Options, ResetCode};
use talkspurt_proto::packet::{Damage, Ecn};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::Kind as Control;
use talkspurt_proto::time::Duration;
use talkspurt_testing::dccp::*;

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

/// §3: the receiver requests Send RTT Estimate, number 128, with Change R; initially off.
#[test]
fn the_feature_is_negotiated() {
    for ccid in [Ccid::Three, Ccid::Four] {
        let pair = Pair::connected(&telling(ccid));
        for dccp in [&pair.client.endpoint, &pair.server.endpoint] {
            for location in [Here, There] {
                assert_eq!(dccp.feature(name::SEND_RTT_ESTIMATE, location), 1);
            }
        }
    }
    // CCID 2 does not use it, and it is not sent without request.
    for config in [telling(Ccid::Two), Config::new(Ccid::Three)] {
        let pair = Pair::connected(&config);
        assert_eq!(pair.client.endpoint.feature(name::SEND_RTT_ESTIMATE, Here), 0);
        assert!(estimates(&pair, Client).is_empty());
    }
    let mut asked = Pair::new(&telling(Ccid::Three));
    asked.input(Client, talkspurt_proto::endpoint::Input::Open);
    let change = Opt::ChangeR(feature(name::SEND_RTT_ESTIMATE, &[1, 0]));
    assert!(options(&asked.log[0].packet).contains(&change));
}

/// §3.1: data packets then report the round-trip time in microseconds.
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

/// §3.2.1: the shortest form, rounded up; 0 for no estimate, 0xFFFFFF for more than 16.7 s.
#[test]
fn the_forms_of_the_option() {
    let written = |rtt: Option<Duration>| {
        let mut options = Options::default();
        codec::push_rtt_estimate(&mut options, rtt);
        options.as_bytes().to_vec()
    };
    let nanos = |count| Some(Duration::from_nanos(count));
    assert_eq!(written(None), [128, 3, 0]);
    assert_eq!(written(nanos(1)), [128, 3, 1]);
    assert_eq!(written(nanos(255_000)), [128, 3, 255]);
    assert_eq!(written(nanos(255_001)), [128, 4, 1, 0]);
    assert_eq!(written(nanos(65_536_000)), [128, 5, 1, 0, 0]);
    assert_eq!(written(nanos(16_777_214_000)), [128, 5, 0xff, 0xff, 0xfe]);
    assert_eq!(written(nanos(60_000_000_000)), [128, 5, 0xff, 0xff, 0xff]);
}

/// §3.3: all data packets, Syncs and SyncAcks carry it, from when it was negotiated.
#[test]
fn data_and_syncs_carry_it() {
    let mut pair = Pair::connected(&telling(Ccid::Three));
    let begun = pair.log.len();
    for _ in 0..20 {
        pair.send(Client, 160);
        pair.drive_for(ms(20));
    }
    let data = |sent: &&Sent| sent.from == Client && sent.packet.kind.is_data();
    for sent in pair.log[begun..].iter().filter(data) {
        let has =
            |option: &Opt<'_>| matches!(option, Opt::Ccid { kind: ccid_option::RTT_ESTIMATE, .. });
        assert!(options(&sent.packet).iter().any(has), "{:?}", sent.packet);
    }
}

/// §3.4: without a number for longer than receiver_RTT it doubles, up to 64 s; a number ends that.
#[test]
fn the_receiver_backs_off_without_numbers() {
    let mut bench = ReceiverBench::new(Profile::Rfc, Control::Ccid3);
    bench.receiver.agree(false, true);
    let mut number = 0;
    let mut tell = |bench: &mut ReceiverBench, since: u64, rtt: Option<Duration>| {
        let mut told = Options::default();
        codec::push_rtt_estimate(&mut told, rtt);
        bench.data_with(ms(since), number, 0, |packet| packet.options = &told);
        number += 1;
        bench.receiver.machine().rtt()
    };
    assert_eq!(tell(&mut bench, 0, None), Some(ms(500)));
    assert_eq!(tell(&mut bench, 500, None), Some(ms(500)));
    assert_eq!(tell(&mut bench, 501, None), Some(ms(1000)));
    assert_eq!(tell(&mut bench, 1502, None), Some(ms(2000)));
    assert_eq!(tell(&mut bench, 2000, Some(ms(100))), Some(ms(100)));
    assert_eq!(tell(&mut bench, 2020, Some(ms(200))), Some(ms(200)));
    // The average of both, 0.9 · 100 + 0.1 · 200.
    assert_eq!(tell(&mut bench, 2040, None), Some(ms(110)));
    assert_eq!(tell(&mut bench, 3000, None), Some(ms(220)));
    for turn in 0..20 {
        tell(&mut bench, 100_000 * (turn + 1), None);
    }
    assert_eq!(tell(&mut bench, 3_000_000, None), Some(ms(64_000)));
}

/// §3.3: an option of no or four bytes of value resets the connection with Option Error.
#[test]
fn a_malformed_option_is_an_option_error() {
    for (value, data) in [(&[][..], [128, 2, 0]), (&[9, 0, 0, 0], [128, 6, 9])] {
        let mut pair = Pair::connected(&telling(Ccid::Three));
        pair.on_wire(|sent| if sent.from == Client { Verdict::Drop } else { Verdict::Arrive });
        pair.send(Client, 160);
        let mut forged = pair.log.last().unwrap().packet.clone();
        forged.options = with(&[Opt::Ccid { kind: ccid_option::RTT_ESTIMATE, value }]);
        pair.input(Server, arriving(forged, Ecn::NotEct, Damage::None));
        let Kind::Reset { code, data: told, .. } = pair.log.last().unwrap().packet.kind else {
            panic!("no reset")
        };
        assert_eq!((code, told), (ResetCode::OPTION_ERROR, data));
    }
}
