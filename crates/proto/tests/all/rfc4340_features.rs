//! RFC 4340 §6 and §5.8: feature negotiation, Mandatory, and the handling of invalid
//! options.

use talkspurt_proto::dccp::Location::{Here, There};
use talkspurt_proto::dccp::options::{Opt, feature as name};
use talkspurt_proto::dccp::{Ccid, Config, Kind, Packet, ResetCode, Service, State, UnknownValue};
use talkspurt_proto::endpoint::{Endpoint, Event, Input};
use talkspurt_proto::profile::Profile;
use talkspurt_testing::dccp::*;

const SERVICE: u32 = Service::RTP_AUDIO.0;

fn request(config: &Config, list: &[Opt<'_>]) -> (Alone, Vec<Packet>) {
    let mut alone = Alone::listener(config);
    let answer = alone.arrive(Kind::Request { service: SERVICE }, list);
    (alone, answer)
}

fn has(packet: &Packet, option: Opt<'_>) -> bool {
    options(packet).contains(&option)
}

/// §10: the client says which CCIDs it wants, CCID 2 included; §6.1: options name feature and value.
#[test]
fn a_client_says_its_ccids() {
    for ccid in [Ccid::Two, Ccid::Three, Ccid::Four] {
        let mut alone = Alone::client(&Config::new(ccid));
        let request = alone.input(Input::Open).remove(0);
        let value = [ccid as u8];
        assert!(has(&request, Opt::ChangeL(feature(name::CCID, &value))));
        assert!(has(&request, Opt::ChangeR(feature(name::CCID, &value))));
    }
}

/// RFC 4341 §4: with CCID 2 the sender demands Ack Vectors.
#[test]
fn ccid_2_demands_ack_vectors() {
    let mut alone = Alone::client(&plain());
    let request = alone.input(Input::Open).remove(0);
    let list = options(&request);
    let change = Opt::ChangeR(feature(name::SEND_ACK_VECTOR, &[1]));
    let place = list.iter().position(|option| *option == change).expect("it is demanded");
    assert_eq!(list[place - 1], Opt::Mandatory);
    let pair = Pair::connected(&plain());
    assert_eq!(pair.server.endpoint.feature(name::SEND_ACK_VECTOR, Here), 1);
    assert_eq!(pair.client.endpoint.feature(name::SEND_ACK_VECTOR, Here), 1);
}

/// RFC 4342 §8.4: requesting Loss Event Rate is configurable; on under linux.
#[test]
fn loss_event_rate_is_asked_for_by_a_knob() {
    let asked = |profile, ask_loss_event_rate| {
        let mut config = Config { profile, ..Config::new(Ccid::Three) };
        config.rate.ask_loss_event_rate = ask_loss_event_rate;
        let request = Alone::client(&config).input(Input::Open).remove(0);
        let list = options(&request);
        let change = Opt::ChangeR(feature(name::SEND_LOSS_EVENT_RATE, &[1, 0]));
        let place = list.iter().position(|option| *option == change);
        assert!(place.is_none_or(|place| list[place - 1] == Opt::Mandatory));
        place.is_some()
    };
    for (profile, by_itself) in [(Profile::Rfc, false), (Profile::Linux, true)] {
        assert_eq!(asked(profile, None), by_itself);
        assert!(asked(profile, Some(true)) && !asked(profile, Some(false)));
    }
}

/// §6.6.4: a Change that is repeated has "exactly the same contents", though the preferences changed since.
#[test]
fn a_repeated_change_is_the_same() {
    let mut alone = Alone::client(&Config::new(Ccid::Three));
    let first = alone.input(Input::Open).remove(0);
    for location in [Here, There] {
        alone.endpoint.accept(name::CCID, location, &[2, 3]).unwrap();
    }
    let again = alone.wait().remove(0);
    let changes = |packet: &Packet| -> Vec<String> {
        let all = options(packet).into_iter().map(|option| format!("{option:?}"));
        all.filter(|option| option.starts_with("Change")).collect()
    };
    assert!(!changes(&first).is_empty());
    assert_eq!(changes(&again), changes(&first));
}

/// §6.3.1: the first of the server's values that the client lists too; §6.2: the Confirm bears it
/// and the server's own list.
#[test]
fn server_priority() {
    let mut alone = Alone::listener(&Config::new(Ccid::Three));
    alone.endpoint.accept(name::CCID, There, &[4, 3]).unwrap();
    let change = Opt::ChangeL(feature(name::CCID, &[2, 3, 4]));
    let answer = alone.arrive(Kind::Request { service: SERVICE }, &[change]);
    assert!(has(&answer[0], Opt::ConfirmR(feature(name::CCID, &[4, 4, 3]))));
    assert_eq!(alone.endpoint.feature(name::CCID, There), 4);
    // A value unknown to the server is simply not in its list (§6.6.8).
    let change = Opt::ChangeL(feature(name::CCID, &[200, 3]));
    let answer = alone.arrive(Kind::Request { service: SERVICE }, &[change]);
    assert!(has(&answer[0], Opt::ConfirmR(feature(name::CCID, &[3, 4, 3]))));
    // The client's order counts only for its own Changes: the server's Change has its own order.
    let mut alone = Alone::open_client(&plain(), &[]);
    alone.endpoint.accept(name::CHECK_DATA_CHECKSUM, Here, &[0, 1]).unwrap();
    let change = Opt::ChangeR(feature(name::CHECK_DATA_CHECKSUM, &[1, 0]));
    let answer = alone.arrive(Kind::Ack { ack: alone.ack() }, &[change]);
    assert!(has(&answer[0], Opt::ConfirmL(feature(name::CHECK_DATA_CHECKSUM, &[1, 0, 1]))));
}

/// §6.3.1: without a shared value the old one stays, and the Confirm says so.
#[test]
fn no_shared_value() {
    let (alone, answer) =
        request(&plain(), &[Opt::ChangeL(feature(name::ALLOW_SHORT_SEQNOS, &[1]))]);
    assert!(has(&answer[0], Opt::ConfirmR(feature(name::ALLOW_SHORT_SEQNOS, &[0, 0]))));
    assert_eq!(alone.endpoint.feature(name::ALLOW_SHORT_SEQNOS, There), 0);
}

/// An unsupported CCID ends it: Reset 5 naming the option, and the listener continues.
#[test]
fn ccids_that_disagree() {
    let (mut alone, answer) =
        request(&Config::new(Ccid::Three), &[Opt::ChangeL(feature(name::CCID, &[2]))]);
    assert_eq!(reset(&answer), (ResetCode::OPTION_ERROR, [32, 1, 2]));
    assert_eq!((alone.endpoint.state(), alone.wake), (State::Listen, None));
    let good = [Opt::ChangeL(feature(name::CCID, &[3])), Opt::ChangeR(feature(name::CCID, &[3]))];
    assert_eq!(kinds(&alone.arrive(Kind::Request { service: SERVICE }, &good)), [RESPONSE]);
    let mut pair = Pair::of(&plain(), &Config::new(Ccid::Four));
    pair.input(Client, Input::Open);
    pair.drive_for(ms(500));
    assert_eq!(pair.client.life(), [Event::Reset]);
    assert_eq!(pair.kinds(), [(Client, REQUEST), (Server, RESET)]);
}

/// §6.3.2: a non-negotiable value is taken as dictated if it is in bounds; §6.6.8: an invalid Change
/// is answered by an empty Confirm and changes nothing.
#[test]
fn non_negotiable_values() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let window = |value: u64| value.to_be_bytes()[2..].to_vec();
    let ask = |alone: &mut Alone, number, value: &[u8]| {
        let change = Opt::ChangeL(feature(number, value));
        let answer = alone.arrive(Kind::Ack { ack: alone.ack() }, &[change]);
        let confirm = options(&answer[0]).into_iter().find_map(|option| match option {
            Opt::ConfirmR(confirm) if confirm.number == number => Some(confirm.value.to_vec()),
            _ => None,
        });
        confirm.expect("every Change is confirmed")
    };
    for (value, taken) in
        [(32, true), ((1 << 46) - 1, true), (31, false), (0, false), (1 << 46, false)]
    {
        let before = alone.endpoint.feature(name::SEQUENCE_WINDOW, There);
        let confirm = ask(&mut alone, name::SEQUENCE_WINDOW, &window(value));
        assert_eq!(confirm, if taken { window(value) } else { vec![] }, "{value}");
        let now = alone.endpoint.feature(name::SEQUENCE_WINDOW, There);
        assert_eq!(now, if taken { value } else { before });
    }
    // Of another length than six bytes, or two.
    assert!(ask(&mut alone, name::SEQUENCE_WINDOW, &[0, 100]).is_empty());
    assert!(ask(&mut alone, name::ACK_RATIO, &[5]).is_empty());
    assert_eq!(ask(&mut alone, name::ACK_RATIO, &[0, 5]), [0, 5]);
    assert_eq!(alone.endpoint.feature(name::ACK_RATIO, There), 5);
    // §6.3.2: only the feature's end changes it.
    let change = Opt::ChangeR(feature(name::ACK_RATIO, &[0, 9]));
    let answer = alone.arrive(Kind::Ack { ack: alone.ack() }, &[change]);
    assert!(has(&answer[0], Opt::ConfirmL(feature(name::ACK_RATIO, &[]))));
    assert_eq!(alone.endpoint.feature(name::ACK_RATIO, Here), 2);
}

/// §11.3: the Ack Ratio the other side dictates is kept.
#[test]
fn ack_ratio_is_kept() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let change = Opt::ChangeL(feature(name::ACK_RATIO, &[0, 4]));
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[change]);
    let answers: Vec<usize> =
        (0..8).map(|_| alone.arrive_data(Kind::Data, &[], 10).len()).collect();
    assert_eq!(answers, [0, 0, 0, 1, 0, 0, 0, 1]);
}

/// §6.6.7: an unknown feature is answered by an empty Confirm; a Confirm of one is ignored.
#[test]
fn unknown_features() {
    let list = [
        Opt::ChangeL(feature(99, &[1, 2])),
        Opt::ChangeR(feature(77, &[3])),
        Opt::ConfirmL(feature(66, &[3])),
    ];
    let (alone, answer) = request(&plain(), &list);
    assert!(has(&answer[0], Opt::ConfirmR(feature(99, &[]))));
    assert!(has(&answer[0], Opt::ConfirmL(feature(77, &[]))));
    assert_eq!(alone.endpoint.state(), State::Respond);
}

/// §5.8.2, §6.6.9: an unknown Mandatory option causes Reset 6 with the option's type and first
/// two bytes; Mandatory before nothing, or before itself, causes Reset 5.
#[test]
fn mandatory() {
    let unknown_change = Opt::ChangeL(feature(99, &[1, 2]));
    let invalid = Opt::ChangeL(feature(name::ACK_RATIO, &[1]));
    let unshared = Opt::ChangeL(feature(name::ALLOW_SHORT_SEQNOS, &[1]));
    let unknown = Opt::Unknown { kind: 100, value: &[7, 8, 9] };
    let cases: [(&[Opt<'_>], ResetCode, [u8; 3]); 6] = [
        (&[Opt::Mandatory, unknown_change], ResetCode::MANDATORY_ERROR, [32, 99, 1]),
        (&[Opt::Mandatory, invalid], ResetCode::MANDATORY_ERROR, [32, 5, 1]),
        (&[Opt::Mandatory, unshared], ResetCode::MANDATORY_ERROR, [32, 2, 1]),
        (&[Opt::Mandatory, unknown], ResetCode::MANDATORY_ERROR, [100, 7, 8]),
        (&[Opt::Mandatory], ResetCode::OPTION_ERROR, [1, 0, 0]),
        (&[Opt::Mandatory, Opt::Mandatory, Opt::NdpCount(1)], ResetCode::OPTION_ERROR, [1, 0, 0]),
    ];
    for (list, code, bytes) in cases {
        let (alone, answer) = request(&plain(), list);
        assert_eq!(reset(&answer), (code, bytes), "{list:?}");
        assert_eq!(alone.endpoint.state(), State::Listen);
        let mut alone = Alone::open_client(&plain(), &[]);
        let answer = alone.arrive(Kind::Ack { ack: alone.ack() }, list);
        assert_eq!(reset(&answer), (code, bytes), "{list:?}");
        assert_eq!(answer[0].kind.ack(), Some(Alone::make(alone.seq, Kind::Data, &[], 0).seq));
        assert_eq!(alone.end(), (State::Closed, &[Event::Reset][..]));
    }
    // Known options may be Mandatory, and unknown ones may be present.
    let fine = [Opt::Mandatory, Opt::NdpCount(1), unknown, Opt::SlowReceiver];
    assert_eq!(kinds(&request(&plain(), &fine).1), [RESPONSE]);
}

/// §10.3: CCID 2 has no options and no features of its own. A Mandatory one is not understood, another Change
/// gets an empty Confirm; under CCID 3 both are known.
#[test]
fn options_and_features_of_another_ccid() {
    let rate = Opt::Ccid { kind: 192, value: &[0, 0, 0, 1] };
    let asks = Opt::ChangeR(feature(name::SEND_RTT_ESTIMATE, &[1]));
    for (ccid, known) in [(Ccid::Two, false), (Ccid::Three, true)] {
        let config = Config { send_rtt_estimate: true, ..Config::new(ccid) };
        for option in [rate, asks] {
            let mut alone = open(&config);
            let answer = alone.arrive(Kind::Ack { ack: alone.ack() }, &[Opt::Mandatory, option]);
            let ended = alone.endpoint.state() == State::Closed;
            assert_eq!(ended, !known, "{ccid:?} {option:?}");
            if ended {
                assert_eq!(reset(&answer).0, ResetCode::MANDATORY_ERROR);
            }
        }
        let mut alone = open(&config);
        let answer = alone.arrive(Kind::Ack { ack: alone.ack() }, &[asks]);
        let value: &[u8] = if known { &[1, 1, 0] } else { &[] };
        let confirm = Opt::ConfirmL(feature(name::SEND_RTT_ESTIMATE, value));
        assert!(answer.iter().any(|packet| has(packet, confirm)), "{ccid:?}");
    }

    fn open(config: &Config) -> Alone {
        let ccid = [config.ccid as u8; 2];
        let agreed = [Opt::ConfirmR(feature(name::CCID, &ccid))];
        let changed = [agreed[0], Opt::ConfirmL(feature(name::CCID, &ccid))];
        Alone::open_client(config, if config.ccid == Ccid::Two { &[] } else { &changed })
    }
}

/// §5.8: a nonsensical length ends the reading and is ignored; §5.8, table 3: on Data packets
/// neither Mandatory nor negotiation counts.
#[test]
fn options_that_make_no_sense() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let mut packet = Alone::make(alone.seq + 1, Kind::Data, &[], 4);
    packet.options = talkspurt_proto::dccp::Options::from_bytes(&[44, 1, 0, 0]);
    assert!(alone.packet(packet).is_empty());
    alone.seq += 1;
    let list = [Opt::Mandatory, Opt::ChangeL(feature(99, &[1])), Opt::Mandatory, Opt::Mandatory];
    let answer = alone.arrive_data(Kind::Data, &list, 4);
    assert!(answer.iter().flat_map(options).all(|option| !matches!(option, Opt::ConfirmR(_))));
    assert_eq!((alone.received.len(), alone.endpoint.state()), (2, State::Open));
}

/// §6.6.8: a Confirm whose value the lists do not lead to, that differs from the dictated one, or that
/// is empty for a required feature, causes Reset 5.
#[test]
fn invalid_confirms() {
    let bad: [Opt<'_>; 4] = [
        Opt::ConfirmR(feature(name::CCID, &[3, 2])),
        Opt::ConfirmR(feature(name::CCID, &[3])),
        Opt::ConfirmL(feature(name::SEND_ACK_VECTOR, &[0, 0])),
        Opt::ConfirmR(feature(name::CCID, &[])),
    ];
    for confirm in bad {
        let mut alone = Alone::opening(&plain());
        let answer =
            alone.arrive(Kind::Response { ack: alone.ack(), service: SERVICE }, &[confirm]);
        // An Ack Vector that is not sent is a value that may stay; CCID 3 is not.
        if matches!(confirm, Opt::ConfirmL(_)) {
            assert_eq!(alone.endpoint.feature(name::SEND_ACK_VECTOR, There), 0);
            continue;
        }
        assert_eq!(reset(&answer).0, ResetCode::OPTION_ERROR, "{confirm:?}");
        assert_eq!(alone.events, [Event::Reset]);
    }
    let mut alone = Alone::open_client(&plain(), &[]);
    alone.endpoint.change(name::SEQUENCE_WINDOW, Here, &[200]).unwrap();
    assert_eq!(kinds(&alone.settle()), [ACK]);
    let other = Opt::ConfirmR(feature(name::SEQUENCE_WINDOW, &[0, 0, 0, 0, 0, 201]));
    let answer = alone.arrive(Kind::Ack { ack: alone.ack() }, &[other]);
    assert_eq!(reset(&answer).0, ResetCode::OPTION_ERROR);
}

/// §6.6.7: an empty Confirm leaves the value; the Change is not repeated.
#[test]
fn refused_changes() {
    let mut alone = Alone::open_client(&plain(), &[]);
    alone.endpoint.change(name::CHECK_DATA_CHECKSUM, There, &[1]).unwrap();
    alone.settle();
    let confirm = Opt::ConfirmL(feature(name::CHECK_DATA_CHECKSUM, &[]));
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[confirm]);
    assert_eq!(alone.endpoint.feature(name::CHECK_DATA_CHECKSUM, There), 0);
    assert!(alone.pass(ms(60_000)).is_empty());
}

/// §6.6.3: a Change is repeated until it is answered, ever more slowly up to 64 s; a Confirm never,
/// but each Change gets one.
#[test]
fn changes_are_repeated() {
    let mut alone = Alone::open_client(&plain(), &[]);
    alone.now = at(1000);
    alone.endpoint.change(name::CHECK_DATA_CHECKSUM, There, &[1]).unwrap();
    let change = Opt::ChangeR(feature(name::CHECK_DATA_CHECKSUM, &[1]));
    alone.input(Input::Timeout);
    assert!(has(&alone.sent[0], change));
    let mut times = Vec::new();
    while times.len() < 17 {
        let sent = alone.wait();
        assert!(sent.len() == 1 && has(&sent[0], change));
        times.push(alone.now);
    }
    let gaps: Vec<u64> =
        times.windows(2).map(|two| (two[1] - two[0]).as_nanos() / 1_000_000).collect();
    // No round-trip time is known in this test: two of the shortest waited for.
    assert_eq!(gaps[..4], [20, 40, 80, 160]);
    assert_eq!(gaps[13..], [64_000; 3]);
    let ask = Opt::ChangeL(feature(name::SEND_NDP_COUNT, &[1]));
    for _ in 0..2 {
        let answer = alone.arrive(Kind::Ack { ack: alone.ack() }, &[ask]);
        assert!(has(&answer[0], Opt::ConfirmR(feature(name::SEND_NDP_COUNT, &[1, 0, 1]))));
        let answer = alone.arrive(Kind::Sync { ack: alone.ack() }, &[]);
        assert!(!options(&answer[0]).iter().any(|o| matches!(o, Opt::ConfirmR(_))));
    }
}

/// §6.6.4: options overtaken by newer ones are ignored.
#[test]
fn reordered_changes() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let window = |value: u8| [0, 0, 0, 0, 0, value];
    let (old, new) = (window(50), window(60));
    let change = |value| Opt::ChangeL(feature(name::SEQUENCE_WINDOW, value));
    alone.seq += 1;
    let kind = Kind::Ack { ack: alone.ack() };
    let late = Alone::make(alone.seq, kind, &[change(&old)], 0);
    alone.arrive(kind, &[change(&new)]);
    assert!(alone.packet(late).is_empty());
    assert_eq!(alone.endpoint.feature(name::SEQUENCE_WINDOW, There), 60);
}

/// §6.6.4: a Confirm that acknowledges nothing from the last Change on answers an older one.
#[test]
fn late_confirms() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let before = alone.ack();
    alone.endpoint.change(name::SEQUENCE_WINDOW, Here, &[200]).unwrap();
    alone.settle();
    let confirm = Opt::ConfirmR(feature(name::SEQUENCE_WINDOW, &[0, 0, 0, 0, 0, 200]));
    alone.arrive(Kind::Ack { ack: before }, &[confirm]);
    assert_eq!(alone.endpoint.feature(name::SEQUENCE_WINDOW, Here), 100);
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[confirm]);
    assert_eq!(alone.endpoint.feature(name::SEQUENCE_WINDOW, Here), 200);
}

/// §6.6.2, §6.6.5: preferences that change while a Change is on its way (UNSTABLE) are told when it
/// is answered; until then the old one is repeated.
#[test]
fn unstable() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let window = |value: u8| [0, 0, 0, 0, 0, value];
    alone.endpoint.change(name::SEQUENCE_WINDOW, Here, &[200]).unwrap();
    alone.settle();
    alone.endpoint.change(name::SEQUENCE_WINDOW, Here, &[250]).unwrap();
    let (first, second) = (window(200), window(250));
    let again = alone.pass(ms(100));
    assert!(again.iter().any(|p| has(p, Opt::ChangeL(feature(name::SEQUENCE_WINDOW, &first)))));
    assert!(!again.iter().any(|p| has(p, Opt::ChangeL(feature(name::SEQUENCE_WINDOW, &second)))));
    let confirm = Opt::ConfirmR(feature(name::SEQUENCE_WINDOW, &first));
    let answer = alone.arrive(Kind::Ack { ack: alone.ack() }, &[confirm]);
    assert_eq!(alone.endpoint.feature(name::SEQUENCE_WINDOW, Here), 200);
    assert!(has(&answer[0], Opt::ChangeL(feature(name::SEQUENCE_WINDOW, &second))));
}

/// §6.6.6: both ask at once, and both come to the same value.
#[test]
fn both_ask_at_once() {
    let mut pair = Pair::connected(&plain());
    for (side, location, list) in [(Client, Here, [4, 3]), (Server, There, [3, 4])] {
        pair.end(side).endpoint.change(name::CCID, location, &list).unwrap();
        pair.input(side, Input::Timeout);
    }
    pair.drive_for(ms(1000));
    assert_eq!(pair.client.endpoint.feature(name::CCID, Here), 3);
    assert_eq!(pair.server.endpoint.feature(name::CCID, There), 3);
}

/// §10, §6: the CCID changes in the middle of a connection, with loss on the way, and data goes on.
#[test]
fn the_ccid_changes_on_the_way() {
    for (from, to) in [(Ccid::Two, 3), (Ccid::Three, 2), (Ccid::Three, 4)] {
        let mut pair = Pair::connected(&Config::new(from));
        let mut count = 0_u32;
        pair.on_wire(move |_| {
            count += 1;
            if count.is_multiple_of(10) { Verdict::Drop } else { Verdict::Arrive }
        });
        pair.end(Server).endpoint.accept(name::CCID, There, &[to]).unwrap();
        for turn in 0..200 {
            if turn == 50 {
                pair.end(Client).endpoint.change(name::CCID, Here, &[to]).unwrap();
            }
            pair.send(Client, 160);
            pair.drive_for(ms(20));
        }
        pair.drive_for(ms(20_000));
        assert_eq!(pair.client.endpoint.feature(name::CCID, Here), to);
        assert_eq!(pair.server.endpoint.feature(name::CCID, There), to);
        // What the new CCID needs was asked for with it.
        let vectors = pair.client.endpoint.feature(name::SEND_ACK_VECTOR, There);
        assert!(to != 2 || vectors == 1);
        assert!(to == 2 || pair.client.endpoint.feature(name::SEND_NDP_COUNT, Here) == 1);
        // The other direction is as it was.
        assert_eq!(pair.client.endpoint.feature(name::CCID, There), from as u64);
        let got = pair.server.received.len();
        assert!(got > 150, "{from:?} to {to}: {got}");
        assert!(pair.client.waiting.is_empty());
    }
}

/// §8.1.5: Confirms of the Response's Changes stay on every packet of PARTOPEN, in case an Ack is
/// lost.
#[test]
fn confirms_survive_a_lost_ack() {
    let mut alone = Alone::opening(&plain());
    let change = Opt::ChangeL(feature(name::ACK_RATIO, &[0, 3]));
    let list = [&CONFIRMS[..], &[change]].concat();
    let answer = alone.arrive(Kind::Response { ack: alone.ack(), service: SERVICE }, &list);
    let confirm = Opt::ConfirmR(feature(name::ACK_RATIO, &[0, 3]));
    assert!(has(&answer[0], confirm));
    assert!(has(&alone.wait()[0], confirm));
    assert!(has(&alone.send(10)[0], confirm));
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[]);
    assert!(!alone.send(10).iter().any(|packet| has(packet, confirm)));
}

/// §6.3.1: where the handshake ends before the CCID is confirmed (what confirmed it was lost), no
/// data leaves under CCID 2, which neither side chose; the Change is repeated, and its Confirm
/// frees the sender under the CCID that it names.
#[test]
fn no_data_before_the_ccid_is_decided() {
    let config = Config::new(Ccid::Three);
    // The client's Request names no CCID, so that the Response asks.
    let (mut alone, answer) = request(&config, &[]);
    assert!(has(&answer[0], Opt::ChangeL(feature(name::CCID, &[3]))));
    // Its Ack with the Confirm is lost; the Sync that follows opens the connection.
    alone.seq += 1;
    alone.arrive(Kind::SyncAck { ack: alone.ack() }, &[]);
    assert_eq!(alone.endpoint.state(), State::Open);
    assert_eq!(alone.endpoint.send_capacity(), 0);
    assert!(!alone.events.contains(&Event::Writable));
    let again = alone.pass(ms(1000));
    assert!(again.iter().any(|packet| has(packet, Opt::ChangeL(feature(name::CCID, &[3])))));
    assert_eq!(alone.endpoint.send_capacity(), 0);
    let confirm = Opt::ConfirmR(feature(name::CCID, &[3, 3]));
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[confirm]);
    assert!(alone.endpoint.send_capacity() > 0 && alone.events.contains(&Event::Writable));
    assert_eq!(alone.endpoint.feature(name::CCID, Here), 3);
    let sent = alone.send(100);
    assert!(sent.iter().any(|packet| packet.kind.is_data()));
    // A later change does not block data: the old CCID sends until the new one is negotiated.
    alone.endpoint.change(name::CCID, Here, &[4]).unwrap();
    alone.pass(ms(2000));
    assert!(alone.endpoint.send_capacity() > 0);
}

/// RFC 4341 §4: "The sender SHOULD NOT send data until it has received the corresponding Confirm L(Send
/// Ack Vector, 1)", at the start of a connection and where its CCID changes to 2.
#[test]
fn no_data_under_ccid_2_before_ack_vectors_are_agreed_on() {
    let mut alone = Alone::opening(&plain());
    let response = Kind::Response { ack: alone.ack(), service: SERVICE };
    alone.arrive(response, &CONFIRMS[..2]);
    assert_eq!((alone.endpoint.state(), alone.endpoint.send_capacity()), (State::PartOpen, 0));
    alone.arrive(Kind::Ack { ack: alone.ack() }, &CONFIRMS[2..]);
    assert_eq!(alone.endpoint.state(), State::Open);
    assert!(alone.endpoint.send_capacity() > 0 && alone.events.contains(&Event::Writable));

    let four = feature(name::CCID, &[4, 4]);
    let agreed = [Opt::ConfirmR(four), Opt::ConfirmL(four)];
    let mut alone = Alone::open_client(&Config::new(Ccid::Four), &agreed);
    alone.endpoint.change(name::CCID, Here, &[2]).unwrap();
    let left = alone.settle();
    assert!(has(&left[0], Opt::ChangeL(feature(name::CCID, &[2]))), "{left:?}");
    let confirm = Opt::ConfirmR(feature(name::CCID, &[2, 2]));
    let asks = alone.arrive(Kind::Ack { ack: alone.ack() }, &[confirm]);
    assert_eq!(alone.endpoint.feature(name::CCID, Here), 2);
    let change = Opt::ChangeR(feature(name::SEND_ACK_VECTOR, &[1]));
    assert!(asks.iter().any(|packet| has(packet, change)), "{asks:?}");
    assert_eq!(alone.endpoint.send_capacity(), 0);
    let confirm = Opt::ConfirmL(feature(name::SEND_ACK_VECTOR, &[1, 1]));
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[confirm]);
    assert!(alone.endpoint.send_capacity() > 0);
}

/// Values that this end does not support, or an option cannot hold, are refused before a Change.
#[test]
fn impossible_values_are_refused() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let bad = [
        (name::CCID, 5),
        (name::CCID, 0x103),
        (name::ALLOW_SHORT_SEQNOS, 256),
        (name::SEQUENCE_WINDOW, 31),
        (name::ACK_RATIO, 65_536),
        (name::MINIMUM_CHECKSUM_COVERAGE, 16),
        (99, 1),
    ];
    for (feature, value) in bad {
        let refused = Err(UnknownValue { feature, value });
        assert_eq!(alone.endpoint.change(feature, Here, &[value]), refused);
        assert_eq!(alone.endpoint.accept(feature, There, &[value]), refused);
    }
    // No Change is pending, and a peer that requests CCID 5 does not get it.
    assert!(alone.pass(ms(3000)).is_empty());
    let answer = alone.arrive(Kind::Ack { ack: alone.ack() }, &[Opt::ChangeL(feature(1, &[5, 2]))]);
    assert!(has(&answer[0], Opt::ConfirmR(feature(1, &[2, 2]))));
}
