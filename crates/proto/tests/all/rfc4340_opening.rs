//! RFC 4340, clause by clause: how a connection opens (§8.1), including Init Cookies.

use bytes::Bytes;
use talkspurt_proto::dccp::options::{Opt, feature as name};
use talkspurt_proto::dccp::{
    Ccid, Config, Dccp, Kind, Location, ResetCode, Service, State, WireSeq,
};
use talkspurt_proto::endpoint::{Endpoint, Event, Input, Listener as _};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, Payload};
use talkspurt_proto::probe::RxError;
use talkspurt_proto::rng::Rng;
use talkspurt_testing::dccp::*;

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
    assert_eq!(pair.client.endpoint.state(), State::PartOpen);
    pair.drive_until(at(150));
    assert_eq!(pair.server.endpoint.state(), State::Open);
    for side in [Client, Server] {
        assert_eq!(pair.end(side).life(), [Event::Connected]);
        for _ in 0..3 {
            pair.send(side, 160);
        }
    }
    pair.drive_for(ms(500));
    assert_eq!(pair.client.endpoint.state(), State::Open);
    assert_eq!((pair.client.received.len(), pair.server.received.len()), (3, 3));
    assert!(pair.client.notes.rx_error.is_empty() && pair.server.notes.rx_error.is_empty());
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
                let dccp = &pair.end(side).endpoint;
                assert_eq!(dccp.feature(name::CCID, location), ccid as u64);
                assert!(pair.end(side).notes.rx_error.is_empty(), "{ccid:?} {back:?} {side:?}");
            }
            pair.input(Server, Input::Close);
            pair.drive_for(ms(1000));
            assert_eq!(pair.client.endpoint.state(), State::TimeWait);
            assert_eq!(pair.server.endpoint.state(), State::Closed);
        }
    }
}

/// §7.1, §7.3: initial numbers are 48 random bits; every packet counts.
#[test]
fn numbers() {
    let isn = |name| {
        let mut alone = Alone::new(Dccp::client(&plain(), Rng::new(1, name)));
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
    let mut alone = Alone::opening(&plain());
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
    assert_eq!((alone.endpoint.state(), alone.wake), (State::Closed, None));
}

/// §8.1.1: every repetition carries the Changes again, and a Response to any of them opens.
#[test]
fn a_lost_request_costs_a_second() {
    let mut pair = Pair::new(&Config::new(Ccid::Three));
    let mut lost = false;
    pair.on_wire(move |sent| {
        if sent.is(Client, REQUEST) && !lost {
            lost = true;
            Verdict::Drop
        } else {
            Verdict::Arrive
        }
    });
    pair.input(Client, Input::Open);
    pair.drive_until(at(1200));
    assert_eq!(pair.client.events[0], (at(1100), Event::Connected));
    assert_eq!(pair.client.endpoint.feature(name::CCID, Location::Here), 3);
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
        assert_eq!((alone.endpoint.state(), alone.wake), (State::Listen, None));
    }
    // A Response of another service ends a client.
    let mut alone = Alone::opening(&plain());
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
    assert_eq!((alone.endpoint.state(), alone.wake), (State::Listen, None));
    assert!(alone.events.is_empty());
}

/// §8.1.5: in PARTOPEN every packet acknowledges; the Ack is repeated after 200 ms, then ever more
/// slowly; anything but a Response or Sync ends it; 4 MSL give it up.
#[test]
fn part_open() {
    let opened = || {
        let mut alone = Alone::opening(&plain());
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
    assert_eq!(alone.endpoint.state(), State::PartOpen);
    alone.arrive_data(Kind::Data, &[], 10);
    assert_eq!(alone.endpoint.state(), State::Open);
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
    assert_eq!(pair.client.endpoint.state(), State::PartOpen);
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
    // An acknowledgement too long for a full packet: every other packet lost.
    for _ in 0..20 {
        alone.seq += 1;
        let wire = (alone.seq + 1) & ((1 << 48) - 1);
        alone.seq = wire;
        let packet = Alone::make(wire, Kind::Data, &[], 1);
        alone.endpoint.handle(
            alone.now,
            arriving(packet, Ecn::NotEct, Damage::None),
            &mut alone.notes,
        );
    }
    let room = u32::try_from(alone.endpoint.send_capacity()).unwrap();
    let sent = alone.send(room);
    assert_eq!(kinds(&sent), [ACK, DATA]);
    assert!(sent.iter().all(|packet| ip_bytes(packet) <= 1500));
    assert_eq!(sent[1].payload, data(room));
}

/// §8.5 step 4: in REQUEST only a Response or Reset that acknowledges a Request counts.
#[test]
fn request_waits_for_its_response() {
    let mut alone = Alone::opening(&plain());
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
        assert_eq!(alone.endpoint.state(), State::Request);
    }
    // A forged Reset is neither accepted nor answered.
    let forged = Kind::Reset { ack: ack(isn + 99), code: ResetCode::CLOSED, data: [0; 3] };
    assert!(alone.arrive(forged, &[]).is_empty());
    assert_eq!(alone.notes.rx_error, [RxError::Unexpected; 6]);
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
    assert_eq!(listener.endpoint.state(), State::Listen);
    // RFC 5595 §3.3.1
    let answer = closed.arrive(Kind::Request { service: SERVICE }, &[]);
    assert_eq!(reset(&answer).0, ResetCode::CONNECTION_REFUSED);
}

/// §8.5 step 7, OSR: a Response duplicated by the network after the connection opened is accepted.
#[test]
fn an_overtaken_response_is_ignored() {
    let mut alone = Alone::opening(&plain());
    let response = Kind::Response { ack: alone.ack(), service: SERVICE };
    alone.arrive(response, &[]);
    alone.seq += 1;
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[]);
    let late = Alone::make(alone.seq - 1, response, &[], 0);
    assert!(alone.packet(late).is_empty());
    assert!(alone.notes.rx_error.is_empty());
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
    assert_eq!((alone.endpoint.state(), alone.wake), (State::Listen, None));
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
    assert_eq!(alone.endpoint.state(), State::Listen);
    alone.packet(Alone::make(PEER + 1, good, &[Opt::InitCookie(&first)], 0));
    assert_eq!((alone.endpoint.state(), alone.events[0]), (State::Open, Event::Connected));
    for location in [Location::Here, Location::There] {
        assert_eq!(alone.endpoint.feature(name::CCID, location), 3);
    }
    // Too late: there is no connection.
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
        if early && lost <= 3 { Verdict::Drop } else { Verdict::Arrive }
    });
    pair.input(Client, Input::Open);
    pair.send(Client, 700);
    pair.send(Client, 701);
    pair.send(Client, 702);
    pair.drive_for(ms(3000));
    assert_eq!(pair.server.endpoint.state(), State::Open);
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
    assert_eq!(pair.client.endpoint.state(), State::Open);
    assert!(!pair.log.iter().any(echoed));
}

/// §8.1.4: a Response may bear several cookies, and all come back; on other packets they mean
/// nothing.
#[test]
fn several_cookies() {
    let mut alone = Alone::opening(&plain());
    let cookies = [Opt::InitCookie(&[1; 60]), Opt::InitCookie(&[2; 3])];
    let response = Kind::Response { ack: alone.ack(), service: SERVICE };
    let answer = alone.arrive(response, &[&cookies[..], &CONFIRMS].concat());
    let echoed = |packet: &talkspurt_proto::dccp::Packet| {
        let list = options(packet).into_iter();
        list.filter(|option| matches!(option, Opt::InitCookie(_))).count()
    };
    assert!(cookies.iter().all(|cookie| options(&answer[0]).contains(cookie)));
    // §14: and reduce the room for data.
    assert_eq!(alone.endpoint.send_capacity(), 1500 - 20 - 24 - 32 - 62 - 5);
    let answer = alone.input(Input::Close);
    assert_eq!((kinds(&answer), echoed(&answer[0])), (vec![CLOSE], 2));
    let mut alone = Alone::open_client(&plain(), &[]);
    alone.arrive(Kind::Ack { ack: alone.ack() }, &cookies);
    assert_eq!(echoed(&alone.send(10)[0]), 0);
}

/// §8.1: data on Request and Response is not delivered. §8.1.3, §11.7: it is reported with Drop Code 0.
#[test]
fn data_in_the_handshake_is_dropped() {
    let reported = Opt::DataDropped(&[0x80]);
    let mut alone = Alone::listener(&plain());
    let answer = alone.arrive_data(Kind::Request { service: SERVICE }, &[], 50);
    assert_eq!(kinds(&answer), [RESPONSE]);
    assert!(options(&answer[0]).contains(&reported));
    let mut client = Alone::client(&plain());
    client.input(Input::Open);
    let response = Kind::Response { ack: client.ack(), service: SERVICE };
    let answer = client.arrive_data(response, &[], 50);
    assert!(options(&answer[0]).contains(&reported));
    assert_eq!(client.endpoint.state(), State::PartOpen);
    assert!(alone.received.is_empty() && client.received.is_empty());
}

/// §8.1.1, §8.1.3: Request and Response carry the data of applications that agree on something with it, at
/// each repetition too. It is not reported as dropped, and no amplification: a Response without room has none.
#[test]
fn applications_agree_in_the_handshake() {
    let data = |packet: &talkspurt_proto::dccp::Packet| match &packet.payload {
        Frame::Data(Payload::Real(bytes)) => bytes.clone(),
        other => panic!("no bytes: {other:?}"),
    };
    let mut client = Alone::client(&plain());
    client.endpoint.set_opening_data(Bytes::from_static(b"offer"));
    let request = client.input(Input::Open);
    assert_eq!((kinds(&request), data(&request[0]).as_ref()), (vec![REQUEST], &b"offer"[..]));
    client.now = at(5000);
    let again = client.input(Input::Timeout);
    assert_eq!((kinds(&again), data(&again[0]).as_ref()), (vec![REQUEST], &b"offer"[..]));
    let response = Kind::Response { ack: client.ack(), service: SERVICE };
    let answer = client.arrive_data(response, &[], 50);
    assert_eq!(client.endpoint.state(), State::PartOpen);
    assert!(!options(&answer[0]).iter().any(|it| matches!(it, Opt::DataDropped(_))));

    for (answer, fits) in [(&b"answer"[..], true), (&[7; 400], false)] {
        let mut server = Alone::listener(&plain());
        server.endpoint.set_opening_data(Bytes::from_static(answer));
        let response = server.arrive_data(Kind::Request { service: SERVICE }, &[], 50);
        assert_eq!(kinds(&response), [RESPONSE]);
        assert!(!options(&response[0]).iter().any(|it| matches!(it, Opt::DataDropped(_))));
        assert_eq!(response[0].payload.wire_bytes(), if fits { answer.len() } else { 0 });
        assert!(client.received.is_empty() && server.received.is_empty());
    }
}

/// §8.1.4: a cookie proves an address only if it is valid for that address: one made between other
/// ends is rejected, though the key is the same.
#[test]
fn a_cookie_of_other_ends_opens_nothing() {
    let config = Config { init_cookie: true, ..plain() };
    let listener = |ends: &[u8]| {
        let mut dccp = Dccp::listener(&config, Rng::new(3, "alone"));
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
        assert_eq!(asked.endpoint.state() == State::Open, opens);
        if !opens {
            assert_eq!(reset(&answer).0, ResetCode::BAD_INIT_COOKIE);
            assert_eq!(asked.endpoint.state(), State::Listen);
        }
    }
}
