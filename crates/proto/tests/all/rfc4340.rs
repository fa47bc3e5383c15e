//! RFC 4340, clause by clause: opening (§8.1), numbers and windows (§7), data and its checksums
//! (§9), ECN (§12) and path MTU (§14). Features, options, closing and hostile packets have files of
//! their own.

use crate::dccp_pair::*;
use talkspurt_proto::dccp::ccid::Sender as _;
use talkspurt_proto::dccp::options::{Opt, feature as name};
use talkspurt_proto::dccp::{
    Ccid, Config, Dccp, Kind, Location, ResetCode, Service, State, WireSeq,
};
use talkspurt_proto::dice::Dice;
use talkspurt_proto::endpoint::{Endpoint, Event, Input};
use talkspurt_proto::packet::{
    Body, Damage, Ecn, Frame, IpVersion, PathId, Payload, Quote, Quoted,
};
use talkspurt_proto::probe::{Garbage, Gauge};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::wire::checksum::crc32c;

const SERVICE: u32 = Service::RTP_AUDIO.0;

fn ack(seq: u64) -> WireSeq {
    WireSeq::Extended(seq & ((1 << 48) - 1))
}

/// §4.3, §8.1: Request, Response, Ack; then data both ways.
#[test]
fn three_way_handshake() {
    let mut pair = Pair::new(&plain());
    pair.input(Client, Input::Open);
    pair.drive_until(at(100));
    assert_eq!(pair.kinds(), [(Client, REQUEST), (Server, RESPONSE), (Client, ACK)]);
    assert_eq!(pair.client.dccp.state(), State::PartOpen);
    pair.drive_until(at(150));
    assert_eq!(pair.server.dccp.state(), State::Open);
    for side in [Client, Server] {
        assert_eq!(pair.end(side).life(), [Event::Connected]);
        for _ in 0..3 {
            pair.send(side, 160);
        }
    }
    pair.drive_for(ms(500));
    assert_eq!(pair.client.dccp.state(), State::Open);
    assert_eq!((pair.client.received.len(), pair.server.received.len()), (3, 3));
    assert!(pair.client.notes.garbage.is_empty() && pair.server.notes.garbage.is_empty());
}

/// Every pairing of CCIDs opens, carries data both ways and closes.
#[test]
fn every_ccid_in_every_direction() {
    for ccid in [Ccid::Two, Ccid::Three, Ccid::Four] {
        for back in [Ccid::Two, Ccid::Three, Ccid::Four] {
            let config = Config { ccid_back: Some(back), ..Config::new(ccid) };
            let mut pair = Pair::new(&config);
            pair.input(Client, Input::Open);
            for _ in 0..250 {
                pair.send(Client, 160);
                pair.send(Server, 160);
                pair.drive_for(ms(20));
            }
            pair.drive_for(ms(2000));
            let got = (pair.client.received.len(), pair.server.received.len());
            assert_eq!(got, (250, 250), "{ccid:?} there, {back:?} back");
            for (side, location) in [(Client, Location::Here), (Server, Location::There)] {
                let dccp = &pair.end(side).dccp;
                assert_eq!(dccp.feature(name::CCID, location), ccid as u64);
                assert!(pair.end(side).notes.garbage.is_empty(), "{ccid:?} {back:?} {side:?}");
            }
            pair.input(Server, Input::Close);
            pair.drive_for(ms(1000));
            assert_eq!(pair.client.dccp.state(), State::TimeWait);
            assert_eq!(pair.server.dccp.state(), State::Closed);
        }
    }
}

/// §7.1, §7.3: initial numbers are 48 random bits; every packet counts.
#[test]
fn numbers() {
    let isn = |name| {
        let mut alone = Alone::new(Dccp::client(&plain(), Dice::new(1, name)));
        alone.input(Input::Open);
        alone.isn
    };
    assert_ne!(isn("a"), isn("b"));
    assert!(isn("a") < 1 << 48);
    let mut pair = Pair::connected(&plain());
    for _ in 0..5 {
        pair.send(Client, 100);
    }
    pair.drive_for(ms(300));
    for side in [Client, Server] {
        let sent = pair.log.iter().filter(|sent| sent.from == side);
        let numbers: Vec<u64> = sent.map(|sent| wire(sent.packet.seq)).collect();
        assert!(numbers.len() > 1 && numbers.windows(2).all(|two| two[1] == two[0] + 1));
    }
}

/// §8.1.1: a Request is repeated after about a second, then ever more slowly, each with a new
/// number; after three minutes it is given up with a Reset whose Acknowledgement Number is zero.
#[test]
fn requests_are_repeated_and_given_up() {
    let mut alone = Alone::client(&plain());
    alone.input(Input::Open);
    let mut times = vec![alone.now];
    let reset = loop {
        let sent = alone.wait();
        if sent[0].kind.number() == RESET {
            break sent[0].clone();
        }
        assert_eq!(kinds(&sent), [REQUEST]);
        assert_eq!(alone.last, alone.isn + times.len() as u64);
        times.push(alone.now);
    };
    let seconds: Vec<u64> = times.iter().map(|at| at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(seconds, [0, 1, 3, 7, 15, 31, 63, 127]);
    assert_eq!(alone.now, at(180_000));
    let Kind::Reset { ack, code, .. } = reset.kind else { unreachable!() };
    assert_eq!((ack, code), (WireSeq::Extended(0), ResetCode::ABORTED));
    assert_eq!(alone.events, [Event::TimedOut]);
    assert_eq!((alone.dccp.state(), alone.wake), (State::Closed, None));
}

/// §8.1.1: every repetition bears the Changes again, and a Response to any of them opens.
#[test]
fn a_lost_request_costs_a_second() {
    let mut pair = Pair::new(&Config::new(Ccid::Three));
    let mut lost = false;
    pair.on_wire(move |sent| {
        if sent.is(Client, REQUEST) && !lost {
            lost = true;
            Fate::Drop
        } else {
            Fate::Arrive
        }
    });
    pair.input(Client, Input::Open);
    pair.drive_until(at(1200));
    assert_eq!(pair.client.events[0], (at(1100), Event::Connected));
    assert_eq!(pair.client.dccp.feature(name::CCID, Location::Here), 3);
    let requests = pair.of_kind(Client, REQUEST);
    let changes = |sent: &Sent| {
        options(&sent.packet)
            .iter()
            .filter(|o| matches!(o, Opt::ChangeL(_) | Opt::ChangeR(_)))
            .count()
    };
    assert!(changes(&requests[0]) > 0 && changes(&requests[0]) == changes(&requests[1]));
}

/// §8.1.2: a server has one service.
#[test]
fn bad_service_code() {
    let mut alone = Alone::listener(&plain());
    for service in [42, 0, u32::MAX] {
        let answer = alone.arrive(Kind::Request { service }, &[]);
        assert_eq!(reset(&answer).0, ResetCode::BAD_SERVICE_CODE);
        // §8.3.1: no number of its own, and the Request's acknowledged.
        assert_eq!(answer[0].seq, WireSeq::Extended(0));
        assert_eq!(answer[0].kind.ack(), Some(WireSeq::Extended(alone.seq)));
        assert_eq!((alone.dccp.state(), alone.wake), (State::Listen, None));
    }
    // A Response of another service ends a client.
    let mut alone = Alone::client(&plain());
    alone.input(Input::Open);
    let answer = alone.arrive(Kind::Response { ack: alone.ack(), service: 42 }, &[]);
    assert_eq!(reset(&answer).0, ResetCode::BAD_SERVICE_CODE);
    assert_eq!(alone.events, [Event::Reset]);
}

/// §8.1.3: a Response answers each Request, none is sent by a timer, and 4 MSL end the wait.
#[test]
fn a_response_for_each_request() {
    let mut alone = Alone::listener(&plain());
    for _ in 0..3 {
        let answer = alone.arrive(Kind::Request { service: SERVICE }, &[]);
        assert_eq!(kinds(&answer), [RESPONSE]);
        assert_eq!(answer[0].kind.ack(), Some(WireSeq::Extended(alone.seq)));
        assert_eq!(alone.wake, Some(at(480_000)));
    }
    assert!(alone.wait().is_empty());
    assert_eq!((alone.dccp.state(), alone.wake), (State::Listen, None));
    assert!(alone.events.is_empty());
}

/// §8.1.5: in PARTOPEN every packet acknowledges; the Ack is repeated after 200 ms, then ever more
/// slowly; anything but a Response or Sync ends it; 4 MSL give it up.
#[test]
fn part_open() {
    let opened = || {
        let mut alone = Alone::client(&plain());
        alone.input(Input::Open);
        let response = Kind::Response { ack: alone.ack(), service: SERVICE };
        assert_eq!(kinds(&alone.arrive(response, &CONFIRMS)), [ACK]);
        alone
    };
    let mut alone = opened();
    for millis in [200, 600, 1400, 3000] {
        assert_eq!(kinds(&alone.wait()), [ACK]);
        assert_eq!(alone.now, at(millis));
    }
    assert_eq!(kinds(&alone.send(100)), [DATA_ACK]);
    // The timer runs from the last packet.
    let again = loop {
        if kinds(&alone.wait()) == [ACK] {
            break alone.now;
        }
    };
    assert_eq!(again, at(3000 + 3200));
    let response = Kind::Response { ack: alone.ack_back(5), service: SERVICE };
    assert_eq!(kinds(&alone.arrive(response, &[])), [ACK]);
    assert_eq!(kinds(&alone.arrive(Kind::Sync { ack: alone.ack() }, &[])), [SYNC_ACK]);
    assert_eq!(alone.dccp.state(), State::PartOpen);
    alone.arrive_data(Kind::Data, &[], 10);
    assert_eq!(alone.dccp.state(), State::Open);
    let mut alone = opened();
    let last = alone.pass(ms(480_000)).pop().unwrap();
    assert_eq!(reset(&[last]).0, ResetCode::ABORTED);
    assert_eq!(alone.events.last(), Some(&Event::TimedOut));
}

/// §8.1.5: what stays on every packet of PARTOPEN, cookies and Confirms, makes none of its own: data
/// that waits leaves as one `DataAck` each.
#[test]
fn part_open_makes_no_needless_acks() {
    let config = Config { init_cookie: true, ..Config::new(Ccid::Three) };
    let mut pair = Pair::new(&config);
    pair.input(Client, Input::Open);
    for _ in 0..4 {
        pair.send(Client, 100);
    }
    pair.drive_for(ms(190));
    assert_eq!(pair.client.dccp.state(), State::PartOpen);
    let sent: Vec<u8> = pair
        .kinds()
        .into_iter()
        .filter(|(from, _)| *from == Client)
        .map(|(_, kind)| kind)
        .collect();
    assert_eq!(sent, [REQUEST, ACK, DATA_ACK, DATA_ACK, DATA_ACK, DATA_ACK]);
}

/// §14: what does not fit beside a datagram as long as there is room goes ahead of it, alone.
#[test]
fn what_does_not_fit_goes_ahead() {
    let mut alone = Alone::open_client(&plain(), &[]);
    // An acknowledgement with more to say than a full packet has room for: every other packet lost.
    for _ in 0..20 {
        alone.seq += 1;
        let wire = (alone.seq + 1) & ((1 << 48) - 1);
        alone.seq = wire;
        let packet = Alone::make(wire, Kind::Data, &[], 1);
        alone.dccp.handle(alone.now, arriving(packet, Ecn::NotEct, Damage::None), &mut alone.notes);
    }
    let room = u32::try_from(alone.dccp.room()).unwrap();
    let sent = alone.send(room);
    assert_eq!(kinds(&sent), [ACK, DATA]);
    assert!(sent.iter().all(|packet| ip_bytes(packet) <= 1500));
    assert_eq!(sent[1].payload, data(room));
}

/// §8.5 step 4: in REQUEST only a Response or Reset that acknowledges a Request counts.
#[test]
fn request_waits_for_its_response() {
    let mut alone = Alone::client(&plain());
    alone.input(Input::Open);
    let isn = alone.isn;
    let wrong = [
        Kind::Data,
        Kind::Ack { ack: ack(isn) },
        Kind::Sync { ack: ack(isn) },
        Kind::Response { ack: ack(isn + 50), service: SERVICE },
        Kind::Response { ack: ack(isn.wrapping_sub(1)), service: SERVICE },
    ];
    for kind in wrong {
        let answer = alone.arrive(kind, &[]);
        assert_eq!(reset(&answer), (ResetCode::PACKET_ERROR, [kind.number(), 0, 0]));
        assert_eq!(answer[0].kind.ack(), Some(WireSeq::Extended(alone.seq)));
        assert_eq!(alone.dccp.state(), State::Request);
    }
    // A forged Reset is not believed, nor answered.
    let forged = Kind::Reset { ack: ack(isn + 99), code: ResetCode::CLOSED, data: [0; 3] };
    assert!(alone.arrive(forged, &[]).is_empty());
    assert_eq!(alone.notes.garbage, [Garbage::Unexpected; 6]);
    let good = Kind::Response { ack: ack(isn), service: SERVICE };
    assert_eq!(kinds(&alone.arrive(good, &[])), [ACK]);
}

/// §8.5 steps 2 and 3, §8.3.1: without a connection a packet is answered by Reset 3 with numbers
/// taken from it; a Reset by nothing.
#[test]
fn no_connection() {
    let mut listener = Alone::listener(&plain());
    let mut closed = Alone::client(&plain());
    for alone in [&mut listener, &mut closed] {
        let answer = alone.arrive(Kind::Ack { ack: ack(700) }, &[]);
        assert_eq!(reset(&answer).0, ResetCode::NO_CONNECTION);
        assert_eq!((answer[0].seq, answer[0].kind.ack()), (ack(701), Some(ack(alone.seq))));
        let answer = alone.arrive(Kind::Data, &[]);
        assert_eq!((answer[0].seq, answer[0].kind.ack()), (ack(0), Some(ack(alone.seq))));
        let stray = Kind::Reset { ack: ack(5), code: ResetCode::CLOSED, data: [0; 3] };
        assert!(alone.arrive(stray, &[]).is_empty());
    }
    assert_eq!(listener.dccp.state(), State::Listen);
    let answer = closed.arrive(Kind::Request { service: SERVICE }, &[]);
    assert_eq!(reset(&answer).0, ResetCode::NO_CONNECTION);
}

/// §7.5.1, §8.5 step 6: W = 100 lets 25 numbers up to GSR in, 75 above it; what lies outside is
/// answered by a Sync that names it.
#[test]
fn the_sequence_window() {
    let open = || {
        let mut alone = Alone::open_client(&plain(), &[]);
        // Away from ISR, which bounds the window below.
        for _ in 0..60 {
            alone.arrive_data(Kind::Data, &[], 1);
        }
        alone.received.clear();
        alone
    };
    for (offset, valid) in [(75, true), (76, false), (-24, true), (-25, false), (1 << 40, false)] {
        let mut alone = open();
        // What lies below was received before: leave a hole there first.
        let gsr = alone.seq;
        let seq = gsr.wrapping_add_signed(offset);
        let kind = Kind::Ack { ack: alone.ack() };
        let answer = alone.packet(Alone::make(seq, kind, &[], 0));
        if valid {
            assert!(alone.notes.garbage.is_empty(), "{offset}");
            assert!(!kinds(&answer).contains(&SYNC), "{offset}");
        } else {
            assert_eq!(kinds(&answer), [SYNC], "{offset}");
            assert_eq!(answer[0].kind.ack(), Some(ack(seq)), "{offset}");
            assert_eq!(alone.notes.garbage, [Garbage::OutOfWindow], "{offset}");
        }
    }
}

/// §7.5.1: acknowledgements from GSS + 1 − W' to GSS; not of what was never sent, nor of old.
#[test]
fn the_acknowledgement_window() {
    for (back, valid) in [(0, true), (99, true), (100, false)] {
        let mut alone = Alone::open_client(&plain(), &[]);
        // Numbers go by in SyncAcks.
        for _ in 0..150 {
            alone.arrive(Kind::Sync { ack: alone.ack() }, &[]);
        }
        let answer = alone.arrive(Kind::Ack { ack: alone.ack_back(back) }, &[]);
        assert_eq!(kinds(&answer), if valid { vec![] } else { vec![SYNC] }, "{back}");
    }
    let mut alone = Alone::open_client(&plain(), &[]);
    let answer = alone.arrive(Kind::Ack { ack: ack(alone.last + 1) }, &[]);
    assert_eq!(kinds(&answer), [SYNC]);
    assert_eq!(alone.notes.garbage, [Garbage::BadAck]);
}

/// §7.5.1: at the start the windows do not reach below the initial numbers.
#[test]
fn windows_begin_at_the_initial_numbers() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let kind = Kind::Ack { ack: alone.ack() };
    assert_eq!(kinds(&alone.packet(Alone::make(PEER - 1, kind, &[], 0))), [SYNC]);
    let before = Kind::Ack { ack: ack(alone.isn - 1) };
    assert_eq!(kinds(&alone.arrive(before, &[])), [SYNC]);
    let first = Kind::Ack { ack: ack(alone.isn) };
    assert!(alone.arrive(first, &[]).is_empty());
}

/// §8.5 step 6: Close, CloseReq and Reset must be newer than all before; a stale Reset is answered
/// by a Sync that names GSR, so that the real state comes out.
#[test]
fn what_ends_must_be_new() {
    let mut alone = Alone::open_client(&plain(), &[]);
    alone.arrive_data(Kind::Data, &[], 1);
    let (gsr, last) = (alone.seq, alone.ack());
    for (kind, named) in [
        (Kind::CloseReq { ack: last }, gsr),
        (Kind::Close { ack: last }, gsr),
        (Kind::Reset { ack: last, code: ResetCode::ABORTED, data: [0; 3] }, gsr),
    ] {
        let answer = alone.packet(Alone::make(gsr, kind, &[], 0));
        assert_eq!((kinds(&answer), answer[0].kind.ack()), (vec![SYNC], Some(ack(named))));
        let answer = alone.packet(Alone::make(gsr + 500, kind, &[], 0));
        let named = if kind.number() == RESET { gsr } else { gsr + 500 };
        assert_eq!((kinds(&answer), answer[0].kind.ack()), (vec![SYNC], Some(ack(named))));
    }
    assert_eq!(alone.dccp.state(), State::Open);
}

/// §7.5.4: at most eight Syncs a second for invalid packets.
#[test]
fn syncs_are_rate_limited() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let stray = |alone: &mut Alone| {
        let packet = Alone::make(PEER + 5000, Kind::Data, &[], 1);
        alone.packet(packet).len()
    };
    assert_eq!((0..50).map(|_| stray(&mut alone)).sum::<usize>(), 8);
    alone.now += ms(999);
    assert_eq!(stray(&mut alone), 0);
    alone.now += ms(1);
    assert_eq!(stray(&mut alone), 1);
}

/// §8.5 steps 5 and 15: a Sync with a good Acknowledgement Number moves the window however far
/// ahead it is, and is answered by a SyncAck; one with a bad one is dropped without a word.
#[test]
fn syncs_bring_ends_together() {
    let mut alone = Alone::open_client(&plain(), &[]);
    alone.seq += 10_000;
    assert_eq!(kinds(&alone.arrive_data(Kind::Data, &[], 1)), [SYNC]);
    let bad = Kind::Sync { ack: ack(alone.last + 7) };
    assert!(alone.arrive(bad, &[]).is_empty());
    assert_eq!(alone.notes.garbage, [Garbage::OutOfWindow, Garbage::BadAck]);
    let answer = alone.arrive(Kind::Sync { ack: alone.ack() }, &[]);
    assert_eq!((kinds(&answer), answer[0].kind.ack()), (vec![SYNC_ACK], Some(ack(alone.seq))));
    alone.arrive_data(Kind::Data, &[], 1);
    assert_eq!(alone.received.len(), 1);
    // A SyncAck moves it too, and needs no answer.
    alone.seq += 10_000;
    assert!(alone.arrive(Kind::SyncAck { ack: alone.ack() }, &[]).is_empty());
    alone.arrive_data(Kind::Data, &[], 1);
    assert_eq!(alone.received.len(), 2);
}

/// §7.5.5: after a burst of losses longer than the window, Sync and SyncAck find the way again.
#[test]
fn a_long_burst_of_losses_is_survived() {
    let config = Config { sequence_window: Some(32), ..plain() };
    let mut pair = Pair::connected(&config);
    let mut count = 0;
    pair.on_wire(move |sent| {
        if sent.from == Client && sent.packet.kind.is_data() {
            count += 1;
            if (200..240).contains(&count) {
                return Fate::Drop;
            }
        }
        Fate::Arrive
    });
    for _ in 0..300 {
        pair.send(Client, 100);
    }
    pair.drive_for(ms(60_000));
    assert_eq!(pair.log.iter().filter(|sent| sent.dropped).count(), 40);
    // What came behind the burst was an Ack: refused, and no data with it.
    assert_eq!(pair.server.notes.garbage, [Garbage::OutOfWindow]);
    assert_eq!(pair.server.received.len(), 260);
    assert!(pair.log.iter().any(|sent| sent.is(Server, SYNC)));
    assert!(pair.log.iter().any(|sent| sent.is(Client, SYNC_ACK)));
}

/// §8.5 step 7: types that the state or side does not expect are answered by a Sync.
#[test]
fn unexpected_types() {
    let mut client = Alone::open_client(&plain(), &[]);
    let request = Kind::Request { service: SERVICE };
    assert_eq!(kinds(&client.arrive(request, &[])), [SYNC]);
    let response = Kind::Response { ack: client.ack(), service: SERVICE };
    assert_eq!(kinds(&client.arrive(response, &[])), [SYNC]);
    let mut server = Alone::open_server(&plain(), &[]);
    let response = Kind::Response { ack: server.ack(), service: SERVICE };
    assert_eq!(kinds(&server.arrive(response, &[])), [SYNC]);
    assert_eq!(kinds(&server.arrive(request, &[])), [SYNC]);
    assert_eq!(kinds(&server.arrive(Kind::CloseReq { ack: server.ack() }, &[])), [SYNC]);
    assert_eq!(server.dccp.state(), State::Open);
    // Data that overtook the Ack of the handshake.
    let mut server = Alone::listener(&plain());
    server.arrive(request, &[]);
    assert_eq!(kinds(&server.arrive_data(Kind::Data, &[], 9)), [SYNC]);
    assert_eq!((server.dccp.state(), server.received.len()), (State::Respond, 0));
}

/// §8.5 step 7, OSR: a Response repeated by the network after the connection opened is no offence.
#[test]
fn an_overtaken_response_is_ignored() {
    let mut alone = Alone::client(&plain());
    alone.input(Input::Open);
    let response = Kind::Response { ack: alone.ack(), service: SERVICE };
    alone.arrive(response, &[]);
    alone.seq += 1;
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[]);
    let late = Alone::make(alone.seq - 1, response, &[], 0);
    assert!(alone.packet(late).is_empty());
    assert!(alone.notes.garbage.is_empty());
}

/// A packet the network duplicated is not delivered again (§7: "detect network duplicates").
#[test]
fn duplicates() {
    let mut pair = Pair::connected(&plain());
    pair.on_wire(|sent| if sent.packet.kind.is_data() { Fate::Twice(ms(7)) } else { Fate::Arrive });
    for _ in 0..4 {
        pair.send(Client, 100);
    }
    pair.drive_for(ms(400));
    assert_eq!(pair.server.received.len(), 4);
}

/// §7.6: where Allow Short Seqnos is agreed, Data, Ack and `DataAck` are 24-bit in the open
/// connection and nothing else is; both are understood across the wrap.
#[test]
fn short_sequence_numbers() {
    let config = Config { allow_short_seqnos: true, ..plain() };
    let mut pair = Pair::connected(&config);
    for side in [Client, Server] {
        for _ in 0..200 {
            pair.send(side, 100);
        }
    }
    pair.drive_for(ms(20_000));
    assert_eq!((pair.client.received.len(), pair.server.received.len()), (200, 200));
    pair.input(Client, Input::Close);
    pair.drive_for(ms(500));
    let short = pair.log.iter().filter(|sent| !sent.packet.seq.is_extended());
    assert!(short.clone().count() > 300);
    assert!(short.clone().all(|sent| [DATA, ACK, DATA_ACK].contains(&sent.packet.kind.number())));
    // §5.1: twelve bytes of header.
    assert!(
        short
            .clone()
            .any(|sent| sent.packet.kind == Kind::Data && sent.packet.header_bytes() == 12)
    );
    for kind in [CLOSE, RESET] {
        assert!(
            pair.log
                .iter()
                .filter(|s| s.packet.kind.number() == kind)
                .all(|s| s.packet.seq.is_extended())
        );
    }
    // §8.5 step 6: dropped where not agreed.
    let mut alone = Alone::open_client(&plain(), &[]);
    let mut packet = Alone::make(0, Kind::Data, &[], 5);
    packet.seq = WireSeq::Short(((alone.seq + 1) & 0xff_ffff) as u32);
    assert!(alone.packet(packet.clone()).is_empty() && alone.received.is_empty());
    // §8.5 step 1: and on other types always.
    packet.kind = Kind::Sync { ack: WireSeq::Short(1) };
    assert!(alone.packet(packet).is_empty());
    assert_eq!(alone.notes.garbage, [Garbage::Unexpected, Garbage::Malformed]);
}

/// §9.1: what is damaged under the checksum is dropped.
#[test]
fn damage_under_the_checksum() {
    let mut pair = Pair::connected(&plain());
    pair.on_wire(|sent| if sent.packet.kind.is_data() { Fate::Damage } else { Fate::Arrive });
    pair.send(Client, 100);
    pair.drive_for(ms(90));
    assert!(pair.server.received.is_empty());
    assert_eq!(pair.server.notes.garbage, [Garbage::Checksum]);
}

/// §9.2, §9.2.1: with Minimum Checksum Coverage agreed, data leaves partly covered, and arrives
/// though it was damaged beyond.
#[test]
fn partial_checksums() {
    let config = Config { checksum_coverage: 3, minimum_checksum_coverage: 2, ..plain() };
    let mut pair = Pair::connected(&config);
    assert_eq!(pair.client.dccp.feature(name::MINIMUM_CHECKSUM_COVERAGE, Location::There), 2);
    pair.on_wire(|sent| if sent.packet.kind.is_data() { Fate::Damage } else { Fate::Arrive });
    pair.send(Client, 100);
    // As many bytes as are covered: all, so that damage kills it; fewer: 0 covers them.
    pair.send(Client, 8);
    pair.send(Client, 4);
    pair.drive_for(ms(90));
    let coverage: Vec<u8> =
        pair.log.iter().filter(|s| s.packet.kind.is_data()).map(|s| s.packet.cscov).collect();
    assert_eq!(coverage, [3, 3, 0]);
    assert_eq!(pair.server.received, [data(100)]);
    assert_eq!(pair.server.notes.garbage, [Garbage::Checksum; 2]);
    // Where the other end wants more than this one would cover, all is covered.
    let strict = Config { minimum_checksum_coverage: 5, ..config.clone() };
    let mut pair = Pair::of(&config, &strict);
    pair.send(Client, 100);
    pair.send(Server, 100);
    pair.connect();
    assert_eq!(pair.client.dccp.feature(name::MINIMUM_CHECKSUM_COVERAGE, Location::There), 0);
    assert!(pair.log.iter().all(|sent| sent.from == Server || sent.packet.cscov == 0));
}

/// §9.2.1, §11.7: data with less coverage than agreed is not delivered, and the sender is told so by
/// Data Dropped with Drop Code 0. §8.5 step 1: coverage beyond the data is malformed.
#[test]
fn unacceptable_coverage() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let mut packet = Alone::make(alone.seq + 1, Kind::Data, &[], 20);
    packet.cscov = 2;
    alone.packet(packet.clone());
    assert!(alone.received.is_empty());
    assert_eq!(alone.notes.garbage, [Garbage::Unexpected]);
    alone.seq += 1;
    alone.arrive_data(Kind::Data, &[], 20);
    let acks: Vec<_> = alone.sent.iter().filter(|packet| packet.kind.number() == ACK).collect();
    let told = acks.iter().flat_map(|packet| options(packet)).find_map(|option| match option {
        Opt::DataDropped(blocks) => Some(blocks.to_vec()),
        _ => None,
    });
    let told = told.expect("the drop is told");
    assert!(told == [0x80] || told == [0x00, 0x80], "{told:?}");
    packet.cscov = 7;
    packet.seq = WireSeq::Extended((alone.seq + 1) & ((1 << 48) - 1));
    assert!(alone.packet(packet).is_empty());
    assert_eq!(alone.notes.garbage.last(), Some(&Garbage::Malformed));
}

/// §9.3, §11.7.2: what a Data Checksum finds corrupt is congestion to CCID 3 too: its receiver counts
/// it as marked, and the sender's loss event rate is no longer 0.
#[test]
fn corrupt_data_is_a_loss_event() {
    for corrupt in [false, true] {
        let config = Config {
            data_checksum: true,
            checksum_coverage: 1,
            minimum_checksum_coverage: 1,
            ..Config::new(Ccid::Three)
        };
        let mut pair = Pair::connected(&config);
        let mut count = 0;
        pair.on_wire(move |sent| {
            count += u32::from(sent.from == Client && sent.packet.kind.is_data());
            let hurt = corrupt && sent.from == Client && count == 20;
            if hurt { Fate::Damage } else { Fate::Arrive }
        });
        for _ in 0..60 {
            pair.send(Client, 100);
            pair.drive_for(ms(50));
        }
        let mut rates =
            pair.client.notes.gauges.iter().filter(|note| note.1 == Gauge::LossEventRate);
        assert_eq!(rates.next_back().is_some_and(|note| note.2 > 0.0), corrupt);
    }
}

/// §9.3: Data Checksum is the CRC-32c of the application data; data that does not match is not
/// delivered, and reported with Drop Code 3.
#[test]
fn data_checksums() {
    let config = Config { data_checksum: true, ..plain() };
    let mut pair = Pair::connected(&config);
    assert_eq!(pair.client.dccp.feature(name::CHECK_DATA_CHECKSUM, Location::There), 1);
    // RFC 3720 B.4: the CRC of 32 bytes of zero is 8a9136aa.
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    pair.send_real(Client, &[0; 32]);
    pair.drive_for(ms(200));
    let sent =
        pair.log.iter().find(|sent| sent.is(Client, DATA) || sent.is(Client, DATA_ACK)).unwrap();
    assert!(options(&sent.packet).contains(&Opt::DataChecksum(0x8a91_36aa)));
    assert_eq!(pair.server.received.len(), 1);
    let mut alone = Alone::open_client(&plain(), &[]);
    let mut packet = Alone::make(alone.seq + 1, Kind::Data, &[Opt::DataChecksum(1)], 0);
    packet.payload = Frame::Data(Payload::Real(bytes::Bytes::from_static(&[0; 32])));
    alone.packet(packet);
    assert!(alone.received.is_empty());
    assert_eq!(alone.notes.garbage, [Garbage::Checksum]);
    alone.seq += 1;
    alone.arrive_data(Kind::Data, &[], 20);
    let blocks: Vec<u8> = alone
        .sent
        .iter()
        .flat_map(options)
        .filter_map(|option| match option {
            Opt::DataDropped(blocks) => Some(blocks.to_vec()),
            _ => None,
        })
        .flatten()
        .collect();
    assert!(blocks.contains(&0xb0), "{blocks:?}");
}

/// §12: data is sent ECT(0), never ECT(1) (RFC 8311 §6), unless one side cannot read marks.
#[test]
fn ecn() {
    let marks = |client: &Config, server: &Config| {
        let mut pair = Pair::of(client, server);
        pair.send(Client, 100);
        pair.send(Server, 100);
        pair.connect();
        let of = |side| {
            let data = pair.log.iter().filter(|s| s.from == side && s.packet.kind.is_data());
            data.map(|sent| sent.ecn).collect::<Vec<_>>()
        };
        assert!(pair.log.iter().all(|s| s.packet.kind.is_data() || s.ecn == Ecn::NotEct));
        (of(Client), of(Server))
    };
    for ccid in [Ccid::Two, Ccid::Three, Ccid::Four] {
        let (on, off) = (Config::new(ccid), Config { ecn: Some(false), ..Config::new(ccid) });
        assert_eq!(marks(&on, &on), (vec![Ecn::Ect0], vec![Ecn::Ect0]), "{ccid:?}");
        assert_eq!(marks(&off, &on), (vec![Ecn::NotEct], vec![Ecn::NotEct]), "{ccid:?}");
        assert_eq!(marks(&on, &off), (vec![Ecn::NotEct], vec![Ecn::NotEct]), "{ccid:?}");
    }
}

/// §12.1: who cannot read ECN fields says so with a Mandatory Change.
#[test]
fn ecn_incapable_is_said() {
    let mut alone = Alone::client(&Config { ecn: Some(false), ..plain() });
    let request = alone.input(Input::Open).remove(0);
    let list = options(&request);
    let place = list
        .iter()
        .position(|option| *option == Opt::ChangeL(feature(name::ECN_INCAPABLE, &[1])))
        .expect("it is said");
    assert_eq!(list[place - 1], Opt::Mandatory);
}

/// §11.3, §11.4: a mark on the way comes back in the Ack Vector as state 1.
#[test]
fn a_mark_is_told() {
    let mut pair = Pair::connected(&plain());
    pair.on_wire(|sent| if sent.packet.kind.is_data() { Fate::Mark } else { Fate::Arrive });
    pair.send(Client, 100);
    pair.send(Client, 100);
    pair.drive_for(ms(400));
    let cells: Vec<u8> = pair
        .log
        .iter()
        .filter(|sent| sent.from == Server)
        .flat_map(|sent| options(&sent.packet))
        .filter_map(|option| match option {
            Opt::AckVector { nonce, cells } => {
                assert!(!nonce, "RFC 8311 §6");
                Some(cells[0] >> 6)
            }
            _ => None,
        })
        .collect();
    assert_eq!(cells.first(), Some(&1));
}

fn too_big(mtu: u32, seq: u64) -> Input {
    let quote = Quote {
        version: IpVersion::V4,
        ip_bytes: 1500,
        mark: 0,
        ttl: 60,
        dscp: 0,
        ecn: Ecn::NotEct,
        transport: Quoted::Dccp {
            seq: WireSeq::Extended(seq),
            kind: 2,
            data_offset: 4,
            ccval: 0,
            cscov: 0,
        },
    };
    let body = Body::TooBig { mtu, quote };
    Input::Packet { path: PathId(0), ecn: Ecn::NotEct, damage: Damage::None, body }
}

/// §14.1: Packet Too Big lowers the maximum packet size if it quotes a number still in the
/// acknowledgement window, and is garbage if it does not.
#[test]
fn path_mtu() {
    let mut alone = Alone::open_client(&plain(), &[]);
    // 20 of IPv4, 24 of `DataAck`, 32 kept for options.
    assert_eq!(alone.dccp.room(), 1500 - 20 - 24 - 32);
    for seq in [alone.last + 1, alone.isn - 1, alone.last + (1 << 30)] {
        alone.input(too_big(900, seq));
    }
    assert_eq!(alone.notes.garbage, [Garbage::OutOfWindow; 3]);
    assert_eq!(alone.dccp.room(), 1424);
    alone.input(too_big(900, alone.last));
    assert_eq!(alone.dccp.room(), 900 - 76);
    // It never grows, and no router may take everything.
    alone.input(too_big(1400, alone.last));
    assert_eq!(alone.dccp.room(), 900 - 76);
    alone.input(too_big(1, alone.last));
    assert_eq!(alone.dccp.room(), 0);
    let six = Dccp::client(&plain(), Dice::new(3, "alone")).over(IpVersion::V6);
    let mut alone = Alone::new(six);
    alone.input(Input::Open);
    alone.arrive(Kind::Response { ack: alone.ack(), service: SERVICE }, &[]);
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[]);
    alone.input(too_big(100, alone.last));
    // RFC 8200 §5: no link is smaller.
    assert_eq!(alone.dccp.room(), 1280 - 40 - 24 - 32);
}

/// §8.1.4, §8.5 step 11: a listener with Init Cookies remembers nothing until a client echoes one;
/// a lost handshake is found again from the cookie alone, with all that was negotiated.
#[test]
fn init_cookies() {
    let config = Config { init_cookie: true, ..Config::new(Ccid::Three) };
    let mut alone = Alone::listener(&config);
    let ccids = [Opt::ChangeL(feature(name::CCID, &[3])), Opt::ChangeR(feature(name::CCID, &[3]))];
    let answer = alone.arrive(Kind::Request { service: SERVICE }, &ccids);
    assert_eq!(kinds(&answer), [RESPONSE]);
    assert_eq!((alone.dccp.state(), alone.wake), (State::Listen, None));
    let cookie = |packet: &talkspurt_proto::dccp::Packet| {
        options(packet).iter().find_map(|option| match option {
            Opt::InitCookie(cookie) => Some(cookie.to_vec()),
            _ => None,
        })
    };
    let first = cookie(&answer[0]).expect("a cookie");
    // Another Request gets another, and the first is as good as before.
    let second = cookie(&alone.arrive(Kind::Request { service: SERVICE }, &ccids)[0]).unwrap();
    assert_ne!(first, second);
    let mut forged = first.clone();
    forged[3] ^= 1;
    let good = Kind::Ack { ack: answer[0].seq };
    let refused = alone.packet(Alone::make(PEER + 1, good, &[Opt::InitCookie(&forged)], 0));
    assert_eq!(reset(&refused).0, ResetCode::BAD_INIT_COOKIE);
    assert_eq!(alone.dccp.state(), State::Listen);
    alone.packet(Alone::make(PEER + 1, good, &[Opt::InitCookie(&first)], 0));
    assert_eq!((alone.dccp.state(), alone.events[0]), (State::Open, Event::Connected));
    for location in [Location::Here, Location::There] {
        assert_eq!(alone.dccp.feature(name::CCID, location), 3);
    }
    // Too late, and nobody is at home.
    let mut alone = Alone::listener(&config);
    let answer = alone.arrive(Kind::Request { service: SERVICE }, &ccids);
    let old = cookie(&answer[0]).unwrap();
    alone.now = at(480_001);
    let stale = Kind::Ack { ack: answer[0].seq };
    let refused = alone.packet(Alone::make(PEER + 1, stale, &[Opt::InitCookie(&old)], 0));
    assert_eq!(reset(&refused).0, ResetCode::BAD_INIT_COOKIE);
}

/// §8.1.4: a client echoes the cookie on every packet until the server is seen open.
#[test]
fn cookies_are_echoed() {
    let config = Config { init_cookie: true, ..plain() };
    let mut pair = Pair::new(&config);
    let mut lost = 0;
    pair.on_wire(move |sent| {
        let early = sent.from == Client && sent.packet.kind.number() != REQUEST;
        lost += u32::from(early);
        if early && lost <= 3 { Fate::Drop } else { Fate::Arrive }
    });
    pair.input(Client, Input::Open);
    pair.send(Client, 700);
    pair.send(Client, 701);
    pair.send(Client, 702);
    pair.drive_for(ms(3000));
    assert_eq!(pair.server.dccp.state(), State::Open);
    let echoed =
        |sent: &Sent| options(&sent.packet).iter().any(|o| matches!(o, Opt::InitCookie(_)));
    let client: Vec<&Sent> = pair.log.iter().filter(|sent| sent.from == Client).skip(1).collect();
    let first = client.iter().position(|sent| !sent.dropped).unwrap();
    assert!(first >= 3 && client[..=first].iter().all(|sent| echoed(sent)));
    pair.send(Server, 10);
    pair.drive_for(ms(200));
    pair.log.clear();
    pair.send(Client, 10);
    pair.drive_for(ms(200));
    assert_eq!(pair.client.dccp.state(), State::Open);
    assert!(!pair.log.iter().any(echoed));
}

/// §8.1.4: a Response may bear several cookies, and all come back; on other packets they mean
/// nothing.
#[test]
fn several_cookies() {
    let mut alone = Alone::client(&plain());
    alone.input(Input::Open);
    let cookies = [Opt::InitCookie(&[1; 60]), Opt::InitCookie(&[2; 3])];
    let response = Kind::Response { ack: alone.ack(), service: SERVICE };
    let answer = alone.arrive(response, &cookies);
    let echoed = |packet: &talkspurt_proto::dccp::Packet| {
        let list = options(packet).into_iter();
        list.filter(|option| matches!(option, Opt::InitCookie(_))).count()
    };
    assert!(cookies.iter().all(|cookie| options(&answer[0]).contains(cookie)));
    // §14: and take their room.
    assert_eq!(alone.dccp.room(), 1500 - 20 - 24 - 32 - 62 - 5);
    let answer = alone.input(Input::Close);
    assert_eq!((kinds(&answer), echoed(&answer[0])), (vec![CLOSE], 2));
    let mut alone = Alone::open_client(&plain(), &[]);
    alone.arrive(Kind::Ack { ack: alone.ack() }, &cookies);
    assert_eq!(echoed(&alone.send(10)[0]), 0);
}

/// §7.5.2: unless told otherwise, the Sequence Window follows the packets of a round trip.
#[test]
fn the_window_follows_the_flight() {
    let ask = |config: &Config| {
        let mut pair = Pair::connected(config);
        for _ in 0..4000 {
            pair.send(Client, 100);
        }
        pair.drive_for(ms(3000));
        let flight = pair.client.dccp.feature(name::SEQUENCE_WINDOW, Location::Here);
        assert_eq!(pair.server.dccp.feature(name::SEQUENCE_WINDOW, Location::There), flight);
        flight
    };
    let window = ask(&plain());
    assert!(window >= 256 && window.is_power_of_two(), "{window}");
    assert_eq!(ask(&Config { sequence_window: Some(500), ..plain() }), 500);
    // Under linux it stands still; either habit is a knob.
    let linux = || Config { profile: Profile::Linux, ..plain() };
    assert_eq!(ask(&linux()), 100);
    assert!(ask(&Config { sequence_window_follows: Some(true), ..linux() }) >= 256);
    assert_eq!(ask(&Config { sequence_window_follows: Some(false), ..plain() }), 100);
    let both = Config { sequence_window: Some(32), sequence_window_follows: Some(true), ..plain() };
    assert!(ask(&both) >= 256);
}

/// §13.1, §13.3: timestamps are echoed with the time they waited; the handshake is timed.
#[test]
fn timestamps() {
    let mut alone = Alone::open_client(&plain(), &[]);
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[Opt::Timestamp(777)]);
    alone.now += ms(3);
    let sent = alone.send(100);
    let echo = Opt::TimestampEcho { timestamp: 777, elapsed: 300 };
    assert!(options(&sent[0]).contains(&echo), "{sent:?}");
    let sent = alone.send(100);
    assert!(!options(&sent[0]).iter().any(|o| matches!(o, Opt::TimestampEcho { .. })));
    let mut pair = Pair::new(&plain());
    pair.input(Client, Input::Open);
    pair.drive_for(ms(160));
    for side in [Client, Server] {
        let rtt = pair.end(side).dccp.sender().and_then(|sender| sender.rtt());
        assert_eq!(rtt, Some(ms(100)), "{side:?}");
    }
}

/// §7.7: NDP Count tells the packets without data directly before, and only then.
#[test]
fn ndp_counts() {
    let config = Config { send_ndp_count: Some(true), ..plain() };
    let mut alone =
        Alone::open_client(&config, &[Opt::ChangeR(feature(name::SEND_NDP_COUNT, &[1]))]);
    assert_eq!(alone.dccp.feature(name::SEND_NDP_COUNT, Location::Here), 1);
    let count = |packets: &[talkspurt_proto::dccp::Packet]| {
        options(&packets[0]).iter().find_map(|option| match option {
            Opt::NdpCount(count) => Some(*count),
            _ => None,
        })
    };
    alone.send(10);
    assert_eq!(count(&alone.send(10)), None);
    for before in [None, Some(1), Some(2)] {
        let answer = alone.arrive(Kind::Sync { ack: alone.ack() }, &[]);
        assert_eq!((kinds(&answer), count(&answer)), (vec![SYNC_ACK], before));
    }
    assert_eq!(count(&alone.send(10)), Some(3));
    assert_eq!(count(&alone.send(10)), None);
}

/// §8.1: data on Request and Response is not delivered.
#[test]
fn data_in_the_handshake_is_ignored() {
    let mut alone = Alone::listener(&plain());
    assert_eq!(kinds(&alone.arrive_data(Kind::Request { service: SERVICE }, &[], 50)), [RESPONSE]);
    let mut client = Alone::client(&plain());
    client.input(Input::Open);
    client.arrive_data(Kind::Response { ack: client.ack(), service: SERVICE }, &[], 50);
    assert_eq!(client.dccp.state(), State::PartOpen);
    assert!(alone.received.is_empty() && client.received.is_empty());
}

/// A frame enters only when the CCID lets it go, one at a time; it leaves with the next poll.
#[test]
fn room_is_the_permit() {
    let mut alone = Alone::client(&plain());
    assert_eq!(alone.dccp.room(), 0);
    alone.input(Input::Open);
    assert_eq!(alone.dccp.room(), 0);
    alone.arrive(Kind::Response { ack: alone.ack(), service: SERVICE }, &[]);
    assert_eq!(alone.events, [Event::Connected, Event::Writable]);
    let mut sent = 0;
    while alone.dccp.room() > 0 {
        assert_eq!(alone.send(100).len(), 1);
        sent += 1;
    }
    // RFC 4341 §5, RFC 3390: four packets at first.
    assert_eq!(sent, 4);
    alone.events.clear();
    let vector = Opt::AckVector { nonce: false, cells: &[4] };
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[vector]);
    assert_eq!(alone.events, [Event::Writable]);
    assert!(alone.dccp.room() > 0);
}

/// §8.1.4: a cookie proves an address only if it holds for that address: one that a listener made
/// between other ends opens nothing, though the key is the same.
#[test]
fn a_cookie_of_other_ends_opens_nothing() {
    let config = Config { init_cookie: true, ..plain() };
    let listener = |ends: &[u8]| {
        let mut dccp = Dccp::listener(&config, Dice::new(3, "alone"));
        dccp.between(ends);
        Alone::new(dccp)
    };
    let (here, other) = (b"\xc0\x00\x02\x01\x13\x8c", b"\xc0\x00\x02\x02\x13\x8c");
    for (ends, opens) in [(here, true), (other, false)] {
        let mut made = listener(here);
        let response = made.arrive(Kind::Request { service: SERVICE }, &[]).remove(0);
        let list = options(&response);
        let cookie = list.iter().find(|option| matches!(option, Opt::InitCookie(_)));
        let mut asked = listener(ends);
        asked.seq = made.seq;
        let answer = asked.arrive(Kind::Ack { ack: made.ack() }, &[*cookie.expect("a cookie")]);
        assert_eq!(asked.dccp.state() == State::Open, opens);
        if !opens {
            assert_eq!(reset(&answer).0, ResetCode::BAD_INIT_COOKIE);
            assert_eq!(asked.dccp.state(), State::Listen);
        }
    }
}

/// RFC 6773: inside UDP the path MTU has 8 bytes less for DCCP.
#[test]
fn an_encapsulation_takes_its_bytes_off_the_room() {
    let room = |overhead_bytes| {
        let client = Dccp::client(&plain(), Dice::new(1, "client")).under(overhead_bytes);
        let mut pair = Pair::between(client, Dccp::listener(&plain(), Dice::new(1, "server")));
        pair.send(Client, 10);
        pair.send(Server, 10);
        pair.connect();
        let room = pair.client.dccp.room();
        assert!(room > 0);
        // All of it can be used, and the IP packet is within the path MTU.
        pair.log.clear();
        pair.send(Client, room as u32);
        let sent = pair.log.iter().find(|sent| sent.packet.kind.is_data()).expect("it left");
        assert!(ip_bytes(&sent.packet) + overhead_bytes as usize <= 1500);
        room
    };
    assert_eq!(room(0) - room(8), 8);
}
