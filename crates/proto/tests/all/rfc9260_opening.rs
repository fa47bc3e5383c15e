//! How an SCTP association opens (RFC 9260 §5.1, §5.2.1), what is made of parameters and chunks that
//! nobody knows (§3.2), and of packets that belong to no association (§8.4, §8.5).

use crate::rfc9260_half::{data, from, init, invited, listener};
use bytes::Bytes;
use talkspurt_proto::endpoint::{Event, Input};
use talkspurt_proto::packet::PathId;
use talkspurt_proto::probe::RxError;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::sctp::{Cause, Chunk, Config, Init, Packet, Parameter, Sack, Sctp, State};
use talkspurt_proto::time::Duration;
use talkspurt_testing::sctp::{Client, End, Pair, Server, Verdict, answers, at, ms, packet, plain};

#[test]
fn section_5_1_four_packets_open_an_association() {
    let pair = Pair::connected(&plain());
    let seen: Vec<_> = pair.log.iter().map(|sent| (sent.at, sent.from, sent.kinds())).collect();
    let expected = [
        (at(0), Client, vec![1]),
        (at(50), Server, vec![2]),
        (at(100), Client, vec![10]),
        (at(150), Server, vec![11]),
    ];
    assert_eq!(seen, expected);
    // §5.1 A: the tag of INIT is zero; then each side's own is used.
    let (to_client, to_server) = pair.tags();
    let tags: Vec<u32> = pair.log.iter().map(|sent| sent.packet.tag).collect();
    assert_eq!(tags, [0, to_client, to_server, to_client]);
    assert_ne!(to_client, to_server);
    assert_eq!(pair.client.events, [(at(200), Event::Connected), (at(200), Event::Writable)]);
    assert_eq!(pair.server.events, [(at(150), Event::Connected), (at(150), Event::Writable)]);
}

#[test]
fn section_5_1_1_streams_are_the_lesser_of_both() {
    let few = Config { streams: 3, ..plain() };
    let mut pair = Pair::on_paths(&plain(), &few, 1);
    pair.connect();
    let how = talkspurt_proto::sctp::Sending { stream: 2, ..Default::default() };
    assert!(pair.send_how(Client, 1, 10, &how));
    let beyond = talkspurt_proto::sctp::Sending { stream: 3, ..Default::default() };
    assert!(!pair.send_how(Client, 1, 10, &beyond));
}

#[test]
fn section_5_1_3_a_listener_keeps_nothing_before_the_cookie_comes_back() {
    let mut server = listener(&plain());
    let (first, cookie) = invited(&mut server, 7);
    for tag in 8..1000 {
        let (other, _) = invited(&mut server, tag);
        assert_ne!(other.tag, first.tag);
    }
    assert_eq!(server.state(), State::Listen);
    // The first is as good as it was; a forged one opens nothing and is answered by nothing.
    for at_byte in [0, 20, cookie.len() - 1] {
        let mut forged = cookie.to_vec();
        forged[at_byte] ^= 1;
        let echo = vec![Chunk::CookieEcho(forged.into())];
        assert!(answers(&mut server, at(10), from(echo, first.tag)).is_empty());
    }
    let echo = || vec![Chunk::CookieEcho(cookie.clone())];
    // §8.5.1 D: under another tag neither.
    assert!(answers(&mut server, at(10), from(echo(), first.tag ^ 1)).is_empty());
    let sent = answers(&mut server, at(10), from(echo(), first.tag));
    assert_eq!(sent, [Packet::of(7, Chunk::CookieAck)]);
    assert_eq!(server.state(), State::Established);
}

/// An address nobody has proven gets one packet for a packet; an INIT ACK has 108 bytes at most.
#[test]
fn unproven_addresses_get_one_packet_for_a_packet() {
    let chunks = [
        Chunk::Init(init(7)),
        Chunk::Data(data(1, b"x")),
        Chunk::Sack(Sack::default()),
        Chunk::Heartbeat(Bytes::from_static(&[0, 1, 0, 4])),
        Chunk::Shutdown { cumulative: 1 },
        Chunk::ShutdownAck,
        Chunk::CookieEcho(Bytes::from_static(&[0; 57])),
        Chunk::CookieAck,
        Chunk::Abort { reflected: false, causes: vec![] },
        Chunk::Unknown { kind: 0xff, flags: 0, value: Bytes::new() },
    ];
    for chunk in &chunks {
        for many in [1, 5] {
            let tag = if matches!(chunk, Chunk::Init(_)) { 0 } else { 9 };
            let mut server = listener(&plain());
            let asked = Packet { tag, chunks: vec![chunk.clone(); many] };
            let sent = answers(&mut server, at(0), packet(PathId(0), asked.clone()));
            assert!(sent.len() <= 1, "{asked:?}: {sent:?}");
            assert!(sent.iter().all(|answer| answer.wire_bytes() <= 108), "{sent:?}");
            assert_eq!(server.state(), State::Listen);
        }
    }
}

/// What an INIT is answered with: less than three times its bytes over IP, reports included, of which
/// there are 512 bytes at most (§3.2.2).
#[test]
fn an_init_ack_is_no_amplifier() {
    for (interleaving, least) in [(false, 100), (true, 108)] {
        for unknown in [0, 1, 50, 300] {
            let report = Parameter::Unknown { kind: 0xc123, value: Bytes::new() };
            let parameters = vec![report; unknown];
            let asked = Packet::of(0, Chunk::Init(Init { parameters, ..init(7) }));
            assert_eq!(asked.wire_bytes(), 32 + 4 * unknown);
            let mut server = listener(&Config { interleaving, ..plain() });
            let sent = answers(&mut server, at(0), packet(PathId(0), asked.clone()));
            assert_eq!(sent[0].wire_bytes(), least + (8 * unknown).min(512));
            assert!(20 + sent[0].wire_bytes() <= 3 * (20 + asked.wire_bytes()));
        }
    }
}

/// Of a listener's addresses a bare INIT is told as many as three times its bytes hold; one that names
/// as many of its own is told all.
#[test]
fn addresses_do_not_make_an_init_ack_an_amplifier() {
    let ours: Vec<std::net::IpAddr> = (1..=8_u8).map(|host| [10, 0, 0, host].into()).collect();
    let told = |theirs: u8| {
        let named = (1..=theirs).map(|host| Parameter::Ipv4([10, 0, 1, host].into()));
        let asked = Packet::of(0, Chunk::Init(Init { parameters: named.collect(), ..init(7) }));
        let mut server = listener(&plain()).on_paths(8).with_addresses(&ours);
        let sent = answers(&mut server, at(0), packet(PathId(0), asked.clone()));
        assert!(20 + sent[0].wire_bytes() <= 3 * (20 + asked.wire_bytes()));
        let Chunk::InitAck(answer) = &sent[0].chunks[0] else { panic!("no INIT ACK") };
        answer.parameters.iter().filter(|one| matches!(one, Parameter::Ipv4(_))).count()
    };
    // 100 + 8 · 4 and a header are 152 of at most 3 · 52.
    assert_eq!((told(0), told(8)), (4, 8));
}

#[test]
fn section_5_1_5_and_5_2_6_a_stale_cookie_is_reported_and_a_fresher_asked_for() {
    let config = Config { cookie_life: ms(60), ..plain() };
    // The COOKIE ECHO comes 100 ms after its cookie was sealed.
    let mut pair = Pair::on_paths(&plain(), &config, 1);
    pair.input(Client, Input::Open);
    pair.drive_for(ms(250));
    let error = pair.sent_by(Server).find(|sent| sent.has(9)).expect("an ERROR");
    let Chunk::Error(causes) = &error.packet.chunks[0] else { panic!("no ERROR") };
    assert_eq!(causes[..], [Cause::stale_cookie(40_000)]);
    let again = pair.sent_by(Client).last().expect("an INIT");
    let Chunk::Init(init) = &again.packet.chunks[0] else { panic!("no INIT") };
    assert!(init.parameters.contains(&Parameter::CookiePreservative(1040)));
    // The listener lets a cookie live twice as long at most: 120 ms, and that is enough.
    pair.drive_for(ms(400));
    assert_eq!(pair.client.endpoint.state(), State::Established);
}

#[test]
fn section_5_2_1_both_ends_may_open_at_once() {
    let mut pair = Pair::new(&plain());
    pair.server = End::new(Sctp::client(&plain(), Rng::new(2, "other")));
    pair.input(Client, Input::Open);
    pair.input(Server, Input::Open);
    pair.drive_for(ms(500));
    assert_eq!(pair.client.endpoint.state(), State::Established);
    assert_eq!(pair.server.endpoint.state(), State::Established);
    pair.send(Client, 1, 100);
    pair.send(Server, 2, 100);
    pair.drive_for(ms(500));
    assert_eq!((pair.client.numbers(), pair.server.numbers()), (vec![2], vec![1]));
}

#[test]
fn section_5_1_init_and_cookie_echo_are_repeated_with_back_off() {
    let mut pair = Pair::new(&plain());
    pair.on_wire(|_| Verdict::Drop);
    pair.input(Client, Input::Open);
    pair.drive_for(Duration::from_secs(600));
    let times: Vec<_> = pair.sent_by(Client).map(|sent| sent.at).collect();
    // RTO.Initial 1 s doubles up to RTO.Max 60 s; Max.Init.Retransmits is 8.
    let expected = [0, 1, 3, 7, 15, 31, 63, 123, 183].map(|s| at(s * 1000));
    assert_eq!(times, expected);
    assert_eq!(pair.client.events, [(at(243_000), Event::TimedOut)]);

    let mut pair = Pair::new(&plain());
    let mut echoes = 0;
    pair.on_wire(move |sent| {
        echoes += usize::from(sent.has(10));
        if sent.has(10) && echoes <= 2 { Verdict::Drop } else { Verdict::Arrive }
    });
    pair.input(Client, Input::Open);
    pair.drive_for(Duration::from_secs(5));
    let echoes: Vec<_> = pair.sent_by(Client).filter(|s| s.has(10)).map(|s| s.at).collect();
    assert_eq!(echoes, [at(100), at(1100), at(3100)]);
    assert!(pair.client.saw(Event::Connected));
}

#[test]
fn section_5_2_4_d_a_repeated_cookie_echo_is_acknowledged_again() {
    let mut pair = Pair::new(&plain());
    let mut acks = 0;
    pair.on_wire(move |sent| {
        acks += usize::from(sent.has(11));
        if sent.has(11) && acks == 1 { Verdict::Drop } else { Verdict::Arrive }
    });
    pair.input(Client, Input::Open);
    pair.drive_for(ms(1500));
    assert_eq!(pair.sent_by(Server).filter(|sent| sent.has(11)).count(), 2);
    assert_eq!(pair.server.events.iter().filter(|e| e.1 == Event::Connected).count(), 1);
    assert!(pair.client.saw(Event::Connected));
}

#[test]
fn section_3_2_1_unknown_parameters_are_reported_as_their_type_asks() {
    let unknown = |kind| Parameter::Unknown { kind, value: Bytes::from_static(&[1, 2, 3, 4]) };
    // The first bit lets the rest be read, the second asks for a report.
    let cases: [(u16, usize, bool); 4] =
        [(0x3fff, 0, false), (0x7fff, 1, false), (0xbfff, 0, true), (0xffff, 1, true)];
    for (kind, reports, reads_on) in cases {
        let mut server = listener(&plain());
        let mut asked = init(7);
        asked.parameters = vec![unknown(kind), unknown(0xfffe)];
        let sent = answers(&mut server, at(0), from(vec![Chunk::Init(asked)], 0));
        let Chunk::InitAck(ack) = &sent[0].chunks[0] else { panic!("no INIT ACK") };
        let told = |p: &&Parameter| matches!(p, Parameter::Unrecognized(_));
        let expected = reports + usize::from(reads_on);
        assert_eq!(ack.parameters.iter().filter(told).count(), expected, "{kind:#x}");
    }
}

#[test]
fn section_3_2_unknown_chunks_are_reported_as_their_type_asks() {
    let unknown = |kind| Chunk::Unknown { kind, flags: 0, value: Bytes::from_static(&[9]) };
    for (kind, reports, reads_on) in
        [(0x3f, false, false), (0x7f, true, false), (0xbf, false, true), (0xff, true, true)]
    {
        let mut pair = Pair::connected(&plain());
        let (_, tag) = pair.tags();
        let tsn = pair.first_tsn(Client);
        let before = pair.log.len();
        pair.forge(Server, tag, vec![unknown(kind), Chunk::Data(data(tsn, b"x"))]);
        assert_eq!(pair.server.received.len(), usize::from(reads_on), "{kind:#x}");
        let error = pair.log[before..].iter().find(|sent| sent.has(9));
        assert_eq!(error.is_some(), reports, "{kind:#x}");
        if let Some(error) = error {
            let expected = Cause::new(Cause::UNRECOGNIZED_CHUNK, vec![kind, 0, 0, 5, 9]);
            assert!(error.packet.chunks.contains(&Chunk::Error(vec![expected])));
        }
    }
}

#[test]
fn section_8_5_a_wrong_tag_is_not_read() {
    let mut pair = Pair::connected(&plain());
    let (_, tag) = pair.tags();
    let tsn = pair.first_tsn(Client);
    let before = pair.log.len();
    let abort = |reflected| vec![Chunk::Abort { reflected, causes: vec![] }];
    pair.forge(Server, tag ^ 1, vec![Chunk::Data(data(tsn, b"x"))]);
    pair.forge(Server, tag ^ 1, abort(false));
    // §8.5.1 B: with the T bit the tag is that of packets to the peer.
    pair.forge(Server, tag, abort(true));
    pair.forge(Server, tag ^ 1, abort(true));
    assert_eq!(pair.log.len(), before);
    assert_eq!(pair.server.notes.rx_error, [RxError::OutOfWindow; 4]);
    assert_eq!(pair.server.endpoint.state(), State::Established);
    let (to_client, _) = pair.tags();
    pair.forge(Server, to_client, abort(true));
    assert!(pair.server.saw(Event::Reset));
}

#[test]
fn section_8_4_packets_out_of_the_blue() {
    let mut server = listener(&plain());
    let reflected = true;
    let strays: [(Chunk, Option<Chunk>); 6] = [
        (Chunk::Data(data(1, b"x")), Some(Chunk::Abort { reflected, causes: vec![] })),
        (Chunk::Sack(Sack::default()), Some(Chunk::Abort { reflected, causes: vec![] })),
        (Chunk::ShutdownAck, Some(Chunk::ShutdownComplete { reflected })),
        (Chunk::Abort { reflected: false, causes: vec![] }, None),
        (Chunk::ShutdownComplete { reflected: false }, None),
        (Chunk::CookieAck, None),
    ];
    for (stray, answer) in strays {
        let sent = answers(&mut server, at(0), from(vec![stray], 77));
        let expected: Vec<_> = answer.into_iter().map(|chunk| Packet::of(77, chunk)).collect();
        assert_eq!(sent, expected);
    }
}

/// An INIT whose values are not allowed opens nothing. ABORT answers it under its own tag; without a
/// tag nothing does, also where nobody listens.
#[test]
fn section_3_3_2_an_init_with_values_not_allowed_is_discarded() {
    let mut server = listener(&plain());
    let mut closed = Sctp::client(&plain(), Rng::new(1, "closed"));
    for end in [&mut server, &mut closed] {
        let asked = Packet::of(0, Chunk::Init(init(0)));
        assert_eq!(answers(end, at(0), packet(PathId(0), asked)), []);
    }
    let kinds = |init: Init, server: &mut Sctp| {
        let sent = answers(server, at(0), packet(PathId(0), Packet::of(0, Chunk::Init(init))));
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].tag, 7);
        sent[0].chunks[0].number()
    };
    assert_eq!(kinds(Init { a_rwnd: 1499, ..init(7) }, &mut server), 6);
    assert_eq!(kinds(Init { outbound: 0, ..init(7) }, &mut server), 6);
    assert_eq!(kinds(Init { inbound: 0, ..init(7) }, &mut server), 6);
    assert_eq!(kinds(Init { a_rwnd: 1500, ..init(7) }, &mut server), 2);
}

/// An INIT ACK without a tag or without streams ends the attempt, and ABORT tells the peer; one with
/// a window below 1500 bytes is answered by ABORT and leaves the state.
#[test]
fn section_3_3_3_an_init_ack_with_values_not_allowed_is_answered_by_abort() {
    let cases = [
        (Init { tag: 0, ..init(7) }, true, State::Closed),
        (Init { outbound: 0, ..init(7) }, false, State::Closed),
        (Init { inbound: 0, ..init(7) }, false, State::Closed),
        (Init { a_rwnd: 1499, ..init(7) }, false, State::CookieWait),
    ];
    for (mut answer, reflects, state) in cases {
        let mut client = Sctp::client(&plain(), Rng::new(1, "client"));
        let first = answers(&mut client, at(0), Input::Open);
        let Chunk::Init(asked) = &first[0].chunks[0] else { panic!("{first:?}") };
        let tag = asked.tag;
        answer.parameters.push(Parameter::StateCookie(Bytes::from_static(&[1; 20])));
        let under = if reflects { tag } else { 7 };
        let came = Packet::of(tag, Chunk::InitAck(answer));
        let sent = answers(&mut client, at(50), packet(PathId(0), came));
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].tag, under);
        let Chunk::Abort { reflected, .. } = &sent[0].chunks[0] else { panic!("{sent:?}") };
        assert_eq!((*reflected, client.state()), (reflects, state));
    }
}

/// What the INIT ACK has that is not understood is reported behind the COOKIE ECHO, in one packet.
#[test]
fn section_3_2_2_unknown_parameters_of_an_init_ack_are_reported() {
    let unknown = |kind| Parameter::Unknown { kind, value: Bytes::from_static(&[9]) };
    let cookie = Bytes::from_static(&[1; 20]);
    // §3.2.1: the second bit asks for the report, the first lets the rest be read.
    let first = |kind: u16| [&kind.to_be_bytes()[..], &[0, 5, 9]].concat();
    let both = |kind| [&first(kind)[..], &[0, 0, 0], &first(0xfffe)].concat();
    let cases = [
        (0x3fff, vec![]),
        (0x7fff, first(0x7fff)),
        (0xbfff, first(0xfffe)),
        (0xffff, both(0xffff)),
    ];
    for (kind, expected) in cases {
        let mut client = Sctp::client(&plain(), Rng::new(1, "client"));
        let asked = answers(&mut client, at(0), Input::Open);
        let Chunk::Init(Init { tag, .. }) = &asked[0].chunks[0] else { panic!("{asked:?}") };
        let parameters =
            vec![Parameter::StateCookie(cookie.clone()), unknown(kind), unknown(0xfffe)];
        let came = Chunk::InitAck(Init { parameters, ..init(7) });
        let sent = answers(&mut client, at(50), from(vec![came], *tag));
        let mut chunks = vec![Chunk::CookieEcho(cookie.clone())];
        if !expected.is_empty() {
            let cause = Cause::new(Cause::UNRECOGNIZED_PARAMETERS, expected);
            chunks.push(Chunk::Error(vec![cause]));
        }
        assert_eq!(sent, [Packet { tag: 7, chunks }], "{kind:#x}");
    }
}

/// A COOKIE ECHO that fills the packet leaves no room for the report, which must not go before the
/// COOKIE ACK has come.
#[test]
fn section_3_2_2_a_report_without_room_behind_the_cookie_is_not_sent() {
    let mut client = Sctp::client(&plain(), Rng::new(1, "client"));
    let asked = answers(&mut client, at(0), Input::Open);
    let Chunk::Init(Init { tag, .. }) = &asked[0].chunks[0] else { panic!("{asked:?}") };
    let cookie = Bytes::from_static(&[1; 1440]);
    let unknown = Parameter::Unknown { kind: 0xffff, value: Bytes::from_static(&[9; 40]) };
    let parameters = vec![Parameter::StateCookie(cookie.clone()), unknown];
    let came = Chunk::InitAck(Init { parameters, ..init(7) });
    let sent = answers(&mut client, at(50), from(vec![came], *tag));
    assert_eq!(sent, [Packet::of(7, Chunk::CookieEcho(cookie))]);
}

/// The OS of an INIT ACK must not exceed the MIS of the INIT. Streams beyond the MIS do not exist.
#[test]
fn section_3_3_3_an_init_ack_opens_no_more_streams_than_the_init_lets_in() {
    let mut client = Sctp::client(&Config { streams: 3, ..plain() }, Rng::new(1, "client"));
    let asked = answers(&mut client, at(0), Input::Open);
    let Chunk::Init(Init { tag, .. }) = &asked[0].chunks[0] else { panic!("{asked:?}") };
    let cookie = Parameter::StateCookie(Bytes::from_static(&[1; 20]));
    let came = Init { outbound: 4, parameters: vec![cookie], ..init(7) };
    answers(&mut client, at(50), from(vec![Chunk::InitAck(came)], *tag));
    answers(&mut client, at(100), from(vec![Chunk::CookieAck], *tag));
    assert_eq!(client.state(), State::Established);
    for (stream, tsn, refused) in [(2, 1000, false), (3, 1001, true)] {
        let data = talkspurt_proto::sctp::Data { stream, ..data(tsn, b"x") };
        let sent = answers(&mut client, at(150), from(vec![Chunk::Data(data)], *tag));
        let report = Chunk::Error(vec![Cause::invalid_stream(stream)]);
        let reported = sent.iter().any(|packet| packet.chunks.contains(&report));
        assert_eq!(reported, refused, "{stream}");
    }
}

/// The rules are tried in order: SHUTDOWN ACK (5) comes before ERROR and COOKIE ACK (7), and ABORT (2)
/// before all. An INIT ACK is in no rule before the last.
#[test]
fn section_8_4_rules_are_tried_in_order() {
    let abort = || Chunk::Abort { reflected: false, causes: vec![] };
    let error = Chunk::Error(vec![Cause::stale_cookie(1)]);
    let complete = Some(Chunk::ShutdownComplete { reflected: true });
    let cases = [
        (vec![Chunk::CookieAck, Chunk::ShutdownAck], complete.clone()),
        (vec![error.clone(), Chunk::ShutdownAck], complete),
        (vec![Chunk::ShutdownAck, abort()], None),
        (vec![error, Chunk::Sack(Sack::default())], None),
        (vec![Chunk::InitAck(init(7))], Some(Chunk::Abort { reflected: true, causes: vec![] })),
    ];
    let mut server = listener(&plain());
    for (chunks, answer) in cases {
        let sent = answers(&mut server, at(0), from(chunks, 77));
        let expected: Vec<_> = answer.into_iter().map(|chunk| Packet::of(77, chunk)).collect();
        assert_eq!(sent, expected);
    }
}
