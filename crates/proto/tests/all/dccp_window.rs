//! The Sequence Window (RFC 4340 §7.5.2) with traffic of both halves of a connection: for any number
//! of packets per round trip, and any loss of the options that change the window, no packet of the
//! connection is rejected.

use talkspurt_proto::dccp::options::{Opt, feature as name};
use talkspurt_proto::dccp::{Ccid, Config, Location};
use talkspurt_proto::profile::Profile;
use talkspurt_testing::dccp::*;

fn nothing_is_refused(pair: &Pair, what: &str) {
    assert_eq!(pair.client.notes.rx_error, [], "{what}: by the client");
    assert_eq!(pair.server.notes.rx_error, [], "{what}: by the server");
    let syncs = pair.of_kind(Client, SYNC).len() + pair.of_kind(Server, SYNC).len();
    assert_eq!(syncs, 0, "{what}");
}

/// Maximum packets of a side in any round trip, acknowledgements included.
fn most_in_a_round_trip(pair: &Pair, side: Side) -> u64 {
    let times: Vec<_> =
        pair.log.iter().filter(|sent| sent.from == side).map(|sent| sent.at).collect();
    let rtt = pair.delay * 2;
    let within = |end: &usize| {
        let end = *end;
        let from = times.partition_point(|at| *at + rtt <= times[end]);
        end + 1 - from
    };
    (0..times.len()).map(|end| within(&end)).max().unwrap_or(0) as u64
}

fn bulk(config: &Config, datagrams: u32, delay: u64) -> Pair {
    let mut pair = Pair::new(config);
    pair.delay = ms(delay);
    for _ in 0..datagrams {
        pair.send(Client, 100);
    }
    pair
}

/// §7.5.2: the window of an end reflects all packets it has in flight. One that only acknowledges sends
/// a packet for every two, which are more than 100 a round trip when 200 packets are sent in one.
#[test]
fn an_end_that_only_acknowledges_widens_its_window_too() {
    for (profile, delay) in [(Profile::Rfc, 1), (Profile::Rfc, 125), (Profile::Ns2, 300)] {
        let config = Config { profile, ..plain() };
        let mut pair = bulk(&config, 8_000, delay);
        pair.connect();
        pair.drive_for(ms(delay * 2 * 20 + 1000));
        let what = format!("{profile:?} {delay}");
        assert_eq!(pair.server.received.len(), 8_000, "{what}");
        nothing_is_refused(&pair, &what);
        for side in [Client, Server] {
            let most = most_in_a_round_trip(&pair, side);
            assert!(most > 300, "{what} {side:?}: {most}");
            let window = pair.end(side).endpoint.feature(name::SEQUENCE_WINDOW, Location::Here);
            assert!(window >= 2 * most, "{what} {side:?}: {window} for {most}");
            let there =
                pair.end(side.other()).endpoint.feature(name::SEQUENCE_WINDOW, Location::There);
            assert_eq!(there, window, "{what} {side:?}");
        }
    }
}

/// The same with short sequence numbers (§7.6), data in both directions, and the other CCIDs.
#[test]
fn both_ways_and_with_short_numbers() {
    for (ccid, short) in [(Ccid::Two, true), (Ccid::Two, false), (Ccid::Three, true)] {
        let config = Config { allow_short_seqnos: short, ..Config::new(ccid) };
        let mut pair = bulk(&config, 3_000, 100);
        for _ in 0..3_000 {
            pair.send(Server, 100);
        }
        pair.connect();
        pair.drive_for(ms(6_000));
        let what = format!("{ccid:?} {short}");
        if ccid == Ccid::Two {
            assert_eq!(pair.server.received.len(), 3_000, "{what}");
            assert_eq!(pair.client.received.len(), 3_000, "{what}");
        }
        nothing_is_refused(&pair, &what);
    }
}

/// §7.5.2 with §6.6.3: Changes and Confirms of the window are lost, at either end, while the rate grows.
#[test]
fn a_lost_change_or_confirm_refuses_nothing() {
    for victim in [Client, Server] {
        for confirms in [false, true] {
            for times in [1, 2, 4] {
                let mut pair = bulk(&plain(), 6_000, 100);
                let mut left = times;
                pair.on_wire(move |sent| {
                    let concerns = options(&sent.packet).iter().any(|option| match option {
                        Opt::ChangeL(it) => !confirms && it.number == name::SEQUENCE_WINDOW,
                        Opt::ConfirmR(it) => confirms && it.number == name::SEQUENCE_WINDOW,
                        _ => false,
                    });
                    if sent.from == victim && concerns && left > 0 {
                        left -= 1;
                        return Verdict::Drop;
                    }
                    Verdict::Arrive
                });
                pair.connect();
                pair.drive_for(ms(12_000));
                let what = format!("{victim:?} {confirms} {times}");
                assert_eq!(pair.log.iter().filter(|sent| sent.dropped).count(), times, "{what}");
                nothing_is_refused(&pair, &what);
                // A lost Change of the client is a lost packet too, and ends slow start.
                let (got, waits) = (pair.server.received.len(), pair.client.waiting.len());
                assert!(got > 2_000 && got + waits + times >= 6_000, "{what}: {got}, {waits} wait");
            }
        }
    }
}
