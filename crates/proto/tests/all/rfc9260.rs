//! SCTP by RFC 9260: the handshake, tags, SACKs, retransmission, congestion control and the end of an
//! association, each as it shows on the wire and in time.

use crate::sctp_pair::{
    Client, End, Fate, Pair, Server, answers, at, bytes_of, message, ms, packet, plain,
};
use bytes::Bytes;
use talkspurt_proto::dice::Dice;
use talkspurt_proto::endpoint::{Endpoint, Event, Input};
use talkspurt_proto::packet::{Body, Damage, Ecn, IpVersion, PathId, Quote, Quoted};
use talkspurt_proto::probe::Garbage;
use talkspurt_proto::sctp::{
    Cause, Chunk, Config, Data, Init, Number, Packet, Parameter, Sack, Sctp, State,
};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

fn listener(config: &Config) -> Sctp {
    Sctp::listener(config, Dice::new(1, "server"))
}

fn init(tag: u32) -> Init {
    Init { tag, a_rwnd: 100_000, outbound: 10, inbound: 10, tsn: 1000, parameters: Vec::new() }
}

fn from(chunks: Vec<Chunk>, tag: u32) -> Input {
    packet(PathId(0), Packet { tag, chunks })
}

fn data(tsn: u32, bytes: &'static [u8]) -> Data {
    Data {
        immediate: false,
        unordered: false,
        beginning: true,
        ending: true,
        tsn,
        stream: 0,
        number: Number::Ssn(0),
        ppid: 0,
        payload: talkspurt_proto::packet::Frame::Data(talkspurt_proto::packet::Payload::Real(
            Bytes::from_static(bytes),
        )),
    }
}

/// A listener that an INIT with this tag was sent to: its answer, and the cookie in it.
fn invited(server: &mut Sctp, tag: u32) -> (Init, Bytes) {
    let sent = answers(server, at(0), from(vec![Chunk::Init(init(tag))], 0));
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].tag, tag);
    let Chunk::InitAck(ack) = &sent[0].chunks[0] else { panic!("no INIT ACK") };
    let cookie = ack.parameters.iter().find_map(|parameter| match parameter {
        Parameter::StateCookie(cookie) => Some(cookie.clone()),
        _ => None,
    });
    (ack.clone(), cookie.expect("a cookie"))
}

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
    assert_eq!(pair.client.sctp.state(), State::Established);
}

#[test]
fn section_5_2_1_both_ends_may_open_at_once() {
    let mut pair = Pair::new(&plain());
    pair.server = End::new(Sctp::client(&plain(), Dice::new(2, "other")));
    pair.input(Client, Input::Open);
    pair.input(Server, Input::Open);
    pair.drive_for(ms(500));
    assert_eq!(pair.client.sctp.state(), State::Established);
    assert_eq!(pair.server.sctp.state(), State::Established);
    pair.send(Client, 1, 100);
    pair.send(Server, 2, 100);
    pair.drive_for(ms(500));
    assert_eq!((pair.client.numbers(), pair.server.numbers()), (vec![2], vec![1]));
}

#[test]
fn section_5_1_init_and_cookie_echo_are_repeated_with_back_off() {
    let mut pair = Pair::new(&plain());
    pair.on_wire(|_| Fate::Drop);
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
        if sent.has(10) && echoes <= 2 { Fate::Drop } else { Fate::Arrive }
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
        if sent.has(11) && acks == 1 { Fate::Drop } else { Fate::Arrive }
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
    assert_eq!(pair.server.notes.0, [Garbage::OutOfWindow; 4]);
    assert_eq!(pair.server.sctp.state(), State::Established);
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

#[test]
fn section_6_2_sacks_come_every_second_packet_or_after_200_ms() {
    let config = Config { sack_frequency: 2, bundling: false, ..plain() };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    // §5.1: the first of all at once.
    pair.send(Client, 0, 100);
    pair.drive_for(ms(100));
    pair.send(Client, 1, 100);
    pair.drive_for(ms(400));
    pair.send(Client, 2, 100);
    pair.send(Client, 3, 100);
    pair.drive_for(ms(400));
    let sacks: Vec<_> = pair.sent_by(Server).filter(|s| s.has(3)).map(|s| s.at).collect();
    assert_eq!(sacks, [50, 100 + 50 + 200, 500 + 50].map(|after| start + ms(after)));
}

#[test]
fn section_6_7_gaps_and_duplicates_are_told_of_at_once() {
    let config = Config { sack_frequency: 2, bundling: false, ..plain() };
    let mut pair = Pair::connected(&config);
    let tsn = pair.first_tsn(Client);
    let mut count = 0;
    pair.on_wire(move |sent| {
        count += usize::from(sent.has_data());
        match count {
            2 if sent.has_data() => Fate::Drop,
            4 if sent.has_data() => Fate::Twice,
            _ => Fate::Arrive,
        }
    });
    for number in 1..=4 {
        pair.send(Client, number, 100);
    }
    pair.drive_for(ms(60));
    let sacks: Vec<_> = pair.sent_by(Server).filter_map(|sent| sent.sack().cloned()).collect();
    // §5.1 for packet 1. Packet 3 shows the gap, 4 widens the block, its copy is a duplicate.
    assert_eq!(sacks.len(), 4);
    assert!(sacks.iter().all(|sack| sack.cumulative == tsn));
    assert_eq!(sacks[0].gaps, []);
    let sacks = &sacks[1..];
    assert_eq!(sacks[0].gaps, [(2, 2)]);
    assert_eq!((sacks[1].gaps.clone(), sacks[1].duplicates.len()), (vec![(2, 3)], 0));
    assert_eq!(sacks[2].duplicates, [tsn.wrapping_add(3)]);
}

#[test]
fn section_6_6_order_is_kept_or_not_as_wanted() {
    for (ordered, expected) in [(true, vec![1, 2, 3]), (false, vec![2, 3, 1])] {
        let mut pair = Pair::connected(&Config { ordered, bundling: false, ..plain() });
        pair.drop_data(Client, &[1]);
        for number in 1..=3 {
            pair.send(Client, number, 100);
        }
        pair.drive_for(Duration::from_secs(3));
        assert_eq!(pair.server.numbers(), expected);
        let unordered = pair.log.iter().flat_map(|s| s.data()).all(|data| data.unordered);
        assert_eq!(unordered, !ordered);
    }
}

#[test]
fn section_6_9_long_messages_are_cut_and_put_together() {
    for (ordered, lost) in [(true, vec![]), (false, vec![2]), (true, vec![1, 3])] {
        let mut pair = Pair::connected(&Config { ordered, ..plain() });
        pair.drop_data(Client, &lost);
        pair.send(Client, 1, 3500);
        pair.send(Client, 2, 10);
        pair.drive_for(Duration::from_secs(10));
        let mut received: Vec<_> = pair.server.received.iter().map(|r| bytes_of(&r.1)).collect();
        received.sort();
        assert_eq!(received, [bytes_of(&message(1, 3500)), bytes_of(&message(2, 10))]);
        let parts: Vec<_> = pair
            .sent_by(Client)
            .flat_map(|sent| sent.data())
            .take(4)
            .map(|d| (d.beginning, d.ending, d.payload.wire_bytes()))
            .collect();
        let (first, middle, last) = ((true, false, 1000), (false, false, 1000), (false, true, 500));
        assert_eq!(parts, [first, middle, middle, last]);
    }
}

#[test]
fn section_6_10_messages_that_wait_share_packets() {
    for (bundling, packets) in [(true, 2), (false, 11)] {
        let mut pair = Pair::new(&Config { bundling, ..plain() });
        pair.connect();
        // The first leaves at once; the others are handed over before the endpoint is asked.
        let now = pair.now;
        for number in 0..11 {
            let how = pair.client.sctp.sending();
            assert!(pair.client.sctp.send(now, message(number, 80), &how));
        }
        pair.settle(Client);
        pair.drive_for(ms(300));
        assert_eq!(pair.server.numbers(), (0..11).collect::<Vec<u8>>());
        let sent: Vec<_> = pair.sent_by(Client).filter(|sent| sent.has_data()).collect();
        // 96 bytes a chunk: ten in 1016.
        assert_eq!(sent.len(), packets);
        assert!(sent.iter().all(|sent| sent.packet.wire_bytes() + 20 <= 1048));
    }
}

#[test]
fn section_6_1_nagle_holds_back_what_does_not_fill_a_packet() {
    let mut pair = Pair::connected(&Config { nagle: true, ..plain() });
    let start = pair.now;
    pair.send(Client, 1, 100);
    pair.send(Client, 2, 100);
    pair.send(Client, 3, 100);
    pair.drive_for(ms(500));
    let sent: Vec<_> = pair.sent_by(Client).filter(|s| s.has_data()).collect();
    assert_eq!(sent.iter().map(|s| s.at).collect::<Vec<_>>(), [start, start + ms(100)]);
    assert_eq!(sent[1].data().count(), 2);
}

#[test]
fn section_5_1_the_first_data_is_acknowledged_at_once() {
    let mut pair = Pair::connected(&Config { sack_frequency: 2, ..plain() });
    let start = pair.now;
    pair.send(Client, 1, 100);
    pair.drive_for(ms(150));
    pair.send(Client, 2, 100);
    pair.drive_for(ms(600));
    let sacks: Vec<_> = pair.sent_by(Server).filter(|s| s.kinds() == [3]).map(|s| s.at).collect();
    // 50 ms there; then §6.2: 200 ms.
    assert_eq!(sacks, [50, 150 + 50 + 200].map(|after| start + ms(after)));
}

/// ns-2.35 (sctp/sctp.cc, `eSendNewDataChunks`): however much waits, it leaves when a SACK comes in.
#[test]
fn new_data_may_wait_for_sacks() {
    let mut pair = Pair::connected(&Config { ack_clocked: true, ..plain() });
    let start = pair.now;
    for number in 0..13 {
        pair.send(Client, number, 100);
    }
    pair.drive_for(ms(500));
    let sent: Vec<_> = pair.sent_by(Client).filter(|s| s.has_data()).collect();
    // The first alone; with its SACK two packets of eight and four chunks, though eight would have
    // filled a packet before.
    let seen: Vec<_> = sent.iter().map(|s| (s.at, s.data().count())).collect();
    assert_eq!(seen, [(start, 1), (start + ms(100), 8), (start + ms(100), 4)]);
    // Nothing in flight: a message need not wait for a SACK that will not come.
    let later = pair.now;
    pair.send(Client, 14, 100);
    pair.drive_for(ms(10));
    assert_eq!(pair.sent_by(Client).filter(|s| s.has_data()).last().unwrap().at, later);
}

#[test]
fn section_7_2_1_slow_start_and_the_initial_window() {
    // PMDCS 1016: min(4 · 1016, max(2 · 1016, 4404)) = 4064.
    let mut pair = Pair::connected(&plain());
    assert_eq!(pair.client.sctp.window(PathId(0)), Some((4064, None)));
    for number in 0..30 {
        pair.send(Client, number, 1000);
    }
    let sent = |pair: &Pair| pair.sent_by(Client).filter(|s| s.has_data()).count();
    assert_eq!(sent(&pair), 4);
    pair.drive_for(ms(100));
    // Each SACK frees a chunk and adds one, but only while the window was full before it.
    let (window, _) = pair.client.sctp.window(PathId(0)).unwrap();
    assert!((5 * 1016..=8 * 1016).contains(&window), "{window}");
    let mtu = Config { mtu: Size::from_bytes(1500), ..plain() };
    // PMDCS 1468: max(2936, 4404) = 4404.
    assert_eq!(Sctp::client(&mtu, Dice::new(1, "a")).window(PathId(0)), Some((4404, None)));
}

#[test]
fn section_7_2_2_congestion_avoidance_adds_a_chunk_a_window() {
    let config = Config { initial_ssthresh: Some(Size::from_bytes(1016)), ..plain() };
    let mut pair = Pair::connected(&config);
    for number in 0..200 {
        pair.send(Client, number, 1000);
    }
    let mut windows = Vec::new();
    for _ in 0..6 {
        windows.push(pair.client.sctp.window(PathId(0)).unwrap().0);
        pair.drive_for(ms(100));
    }
    let steps: Vec<_> = windows.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(windows[0], 4064);
    assert!(steps.iter().all(|step| *step == 1016 || *step == 0), "{windows:?}");
    assert!(windows[5] >= 4064 + 4 * 1016, "{windows:?}");
}

#[test]
fn section_7_2_4_three_missing_reports_retransmit_and_halve() {
    let config = Config { initial_window: Some(Size::from_bytes(20_320)), ..plain() };
    let config = Config { max_burst: 100, ..config };
    let mut pair = Pair::connected(&config);
    let tsn = pair.first_tsn(Client);
    pair.drop_data(Client, &[1]);
    let start = pair.now;
    for number in 0..20 {
        pair.send(Client, number, 1000);
    }
    pair.drive_for(ms(450));
    let again: Vec<_> = pair
        .sent_by(Client)
        .filter(|sent| sent.data().any(|data| data.tsn == tsn))
        .map(|sent| sent.at)
        .collect();
    // The SACKs of packets 2, 3 and 4 come back together after 100 ms: long before T3.
    assert_eq!(again, [start, start + ms(100)]);
    assert_eq!(pair.client.sctp.window(PathId(0)).unwrap().1, Some(20_320 / 2));
    assert_eq!(pair.server.numbers(), (0..20).collect::<Vec<u8>>());
}

#[test]
fn section_7_2_4_two_missing_reports_are_not_enough() {
    let mut pair = Pair::connected(&plain());
    let tsn = pair.first_tsn(Client);
    let start = pair.now;
    let mut count = 0;
    pair.on_wire(move |sent| {
        count += usize::from(sent.has_data());
        if sent.has_data() && count == 1 { Fate::Late(ms(30)) } else { Fate::Arrive }
    });
    for number in 0..3 {
        pair.send(Client, number, 1000);
    }
    pair.drive_for(ms(900));
    let copies = pair.sent_by(Client).flat_map(|s| s.data()).filter(|d| d.tsn == tsn).count();
    assert_eq!(copies, 1);
    assert_eq!(pair.server.received.last().unwrap().0, start + ms(80));
}

#[test]
fn section_6_3_3_t3_backs_off_and_leaves_one_chunk() {
    let mut pair = Pair::connected(&plain());
    let start = pair.now;
    let mut count = 0;
    pair.on_wire(move |sent| {
        count += usize::from(sent.has_data());
        if sent.has_data() && count <= 6 { Fate::Drop } else { Fate::Arrive }
    });
    for number in 0..4 {
        pair.send(Client, number, 1000);
    }
    pair.drive_for(ms(999));
    pair.drive_for(ms(2));
    // §7.2.3: cwnd is one chunk, ssthresh four at least.
    assert_eq!(pair.client.sctp.window(PathId(0)), Some((1016, Some(4064))));
    pair.drive_for(Duration::from_secs(20));
    let times: Vec<_> = pair.sent_by(Client).filter(|s| s.has_data()).map(|s| s.at).collect();
    assert_eq!(times[..4], [start; 4]);
    let seconds = |s: u64| start + Duration::from_secs(s);
    assert_eq!(times[4..7], [seconds(1), seconds(3), seconds(7)]);
    assert_eq!(pair.server.numbers(), [0, 1, 2, 3]);
}

#[test]
fn section_8_1_the_association_is_given_up() {
    let config = Config { rto_max: Duration::from_secs(1), ..plain() };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.on_wire(|_| Fate::Drop);
    pair.send(Client, 1, 100);
    pair.drive_for(Duration::from_secs(30));
    // Association.Max.Retrans 10: ten retransmissions, and at the next timeout the end.
    let sent = pair.sent_by(Client).filter(|sent| sent.has_data()).count();
    assert_eq!(sent, 11);
    let end = start + Duration::from_secs(11);
    assert_eq!(pair.client.events.last(), Some(&(end, Event::TimedOut)));
}

#[test]
fn section_6_2_1_the_peers_window_is_respected_and_probed() {
    let small = Config { receive_buffer: Size::from_bytes(2500), ..plain() };
    let mut pair = Pair::on_paths(&plain(), &small, 1);
    pair.connect();
    // Ordered messages behind a lost one stay in the receiver's buffer.
    pair.drop_data(Client, &[1]);
    for number in 0..6 {
        pair.send(Client, number, 1000);
    }
    // a_rwnd of 2500 lets two chunks out.
    assert_eq!(pair.sent_by(Client).filter(|s| s.has_data()).count(), 2);
    pair.drive_for(ms(60));
    let sack = pair.sent_by(Server).filter_map(|sent| sent.sack()).last().unwrap();
    assert_eq!(sack.a_rwnd, 1500);
    pair.drive_for(Duration::from_secs(20));
    assert_eq!(pair.server.numbers(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn section_6_2_1_a_sack_for_what_was_not_sent_is_not_believed() {
    let mut pair = Pair::connected(&plain());
    let (tag, _) = pair.tags();
    let tsn = pair.first_tsn(Client);
    pair.on_wire(|_| Fate::Drop);
    pair.send(Client, 1, 100);
    let a_rwnd = 100_000;
    let lies = [
        Sack { cumulative: tsn.wrapping_add(1), a_rwnd, ..Sack::default() },
        Sack { cumulative: tsn.wrapping_sub(1), a_rwnd, gaps: vec![(2, 3)], ..Sack::default() },
        Sack { cumulative: tsn.wrapping_sub(1), a_rwnd, gaps: vec![(3, 2)], ..Sack::default() },
    ];
    for lie in lies {
        pair.forge(Client, tag, vec![Chunk::Sack(lie)]);
    }
    assert_eq!(pair.client.notes.0, [Garbage::BadAck; 3]);
    let room = pair.client.sctp.room();
    assert_eq!(room, 4_000_000 - 100);
    let truth = Sack { cumulative: tsn, a_rwnd, ..Sack::default() };
    pair.forge(Client, tag, vec![Chunk::Sack(truth)]);
    assert_eq!(pair.client.sctp.room(), 4_000_000);
}

#[test]
fn section_7_3_packet_too_big_is_believed_of_ones_own_packets_only() {
    let mut pair = Pair::connected(&Config { mtu: Size::from_bytes(1500), ..plain() });
    let (_, tag) = pair.tags();
    let too_big = |tag| {
        let quote = Quote {
            version: IpVersion::V4,
            ip_bytes: 1500,
            mark: 0,
            ttl: 60,
            dscp: 0,
            ecn: Ecn::NotEct,
            transport: Quoted::Sctp { tag },
        };
        let body = Body::TooBig { mtu: 1048, quote };
        Input::Packet { path: PathId(0), ecn: Ecn::NotEct, damage: Damage::None, body }
    };
    pair.send(Client, 1, 10);
    pair.input(Client, too_big(tag ^ 1));
    assert_eq!(pair.client.notes.0, [Garbage::OutOfWindow]);
    pair.send(Client, 2, 5000);
    pair.input(Client, too_big(tag));
    pair.drive_for(ms(500));
    pair.send(Client, 3, 5000);
    pair.drive_for(ms(500));
    let longest =
        pair.sent_by(Client).filter(|s| s.at > at(500)).map(|s| s.packet.wire_bytes() + 20).max();
    assert_eq!(longest, Some(1048));
}

#[test]
fn section_9_2_shutdown_waits_for_data() {
    let mut pair = Pair::connected(&plain());
    for number in 0..10 {
        pair.send(Client, number, 1000);
    }
    pair.input(Client, Input::Close);
    assert_eq!(pair.client.sctp.room(), 0);
    pair.drive_for(Duration::from_secs(2));
    assert_eq!(pair.server.numbers(), (0..10).collect::<Vec<u8>>());
    let kinds: Vec<_> = pair.log.iter().rev().take(3).map(|s| (s.from, s.kinds())).collect();
    assert_eq!(kinds, [(Client, vec![14]), (Server, vec![8]), (Client, vec![7])]);
    assert!(pair.client.saw(Event::Closed) && pair.server.saw(Event::Closed));
    assert!(pair.server.saw(Event::PeerClosed));
}

#[test]
fn section_9_2_the_other_side_sends_what_it_has_before_it_agrees() {
    let mut pair = Pair::connected(&plain());
    for number in 0..10 {
        pair.send(Server, number, 1000);
    }
    pair.input(Client, Input::Close);
    pair.drive_for(Duration::from_secs(2));
    assert_eq!(pair.client.numbers(), (0..10).collect::<Vec<u8>>());
    assert!(pair.client.saw(Event::Closed) && pair.server.saw(Event::Closed));
}

#[test]
fn section_9_2_lost_shutdowns_are_repeated() {
    for lost in [7, 8, 14] {
        let mut pair = Pair::connected(&plain());
        let mut gone = false;
        pair.on_wire(move |sent| {
            let drop = sent.has(lost) && !gone;
            gone |= drop;
            if drop { Fate::Drop } else { Fate::Arrive }
        });
        pair.input(Client, Input::Close);
        pair.drive_for(Duration::from_secs(10));
        assert!(pair.client.saw(Event::Closed) && pair.server.saw(Event::Closed), "{lost}");
        assert!(!pair.client.saw(Event::Reset) && !pair.server.saw(Event::Reset), "{lost}");
    }
}

#[test]
fn section_9_2_both_may_close_at_once() {
    let mut pair = Pair::connected(&plain());
    pair.input(Client, Input::Close);
    pair.input(Server, Input::Close);
    pair.drive_for(Duration::from_secs(10));
    assert!(pair.client.saw(Event::Closed) && pair.server.saw(Event::Closed));
}

#[test]
fn section_9_1_abort_says_why() {
    let mut pair = Pair::connected(&plain());
    pair.input(Client, Input::Abort);
    pair.drive_for(ms(100));
    let Chunk::Abort { reflected: false, causes } = &pair.log.last().unwrap().packet.chunks[0]
    else {
        panic!("no ABORT")
    };
    assert_eq!(causes[..], [Cause::new(Cause::USER_INITIATED_ABORT, "")]);
    assert!(pair.client.saw(Event::Reset) && pair.server.saw(Event::Reset));
}

#[test]
fn section_6_2_and_6_5_data_that_must_not_be() {
    // No user data: ABORT.
    let mut pair = Pair::connected(&plain());
    let (_, tag) = pair.tags();
    let tsn = pair.first_tsn(Client);
    pair.forge(Server, tag, vec![Chunk::Data(data(tsn, b""))]);
    let Chunk::Abort { causes, .. } = &pair.log.last().unwrap().packet.chunks[0] else {
        panic!("no ABORT")
    };
    assert_eq!(causes[..], [Cause::no_user_data(tsn)]);
    // A stream that does not exist: acknowledged and reported.
    let mut pair = Pair::connected(&plain());
    let stray = Data { stream: 10, ..data(tsn, b"x") };
    pair.forge(Server, tag, vec![Chunk::Data(stray)]);
    let answer = pair.log.last().unwrap();
    assert!(answer.packet.chunks.contains(&Chunk::Error(vec![Cause::invalid_stream(10)])));
    assert_eq!(answer.sack().map(|sack| sack.cumulative), Some(tsn));
    assert!(pair.server.received.is_empty());
}

#[test]
fn parts_that_overlap_end_the_association() {
    let mut pair = Pair::connected(&plain());
    let (_, tag) = pair.tags();
    let tsn = pair.first_tsn(Client);
    let part = Data { ending: false, ..data(tsn, b"first part") };
    // A message begins where the one before it must go on.
    let other = Data { tsn: tsn.wrapping_add(1), ending: false, ..data(tsn, b"no") };
    pair.forge(Server, tag, vec![Chunk::Data(part), Chunk::Data(other)]);
    let Chunk::Abort { causes, .. } = &pair.log.last().unwrap().packet.chunks[0] else {
        panic!("no ABORT")
    };
    assert_eq!(causes[0].code, Cause::PROTOCOL_VIOLATION);
    assert!(pair.server.saw(Event::Reset));
}

#[test]
fn section_8_3_idle_paths_are_asked() {
    let config = Config { heartbeat_interval: Duration::from_secs(5), ..plain() };
    let mut pair = Pair::connected(&config);
    pair.drive_for(Duration::from_secs(60));
    let asked = pair.sent_by(Client).filter(|sent| sent.has(4)).count();
    let answered = pair.sent_by(Server).filter(|sent| sent.has(5)).count();
    // HB.interval, RTO 1 s, give or take half of it.
    assert!((9..=11).contains(&asked), "{asked}");
    assert_eq!(asked, answered);
}

/// Numbers of the wire wrap; the association goes on.
#[test]
fn stream_sequence_numbers_wrap() {
    let config = Config { sack_frequency: 2, mtu: Size::from_bytes(60_000), ..Config::default() };
    let mut pair = Pair::connected(&config);
    let how = pair.client.sctp.sending();
    for _ in 0..140 {
        let now = pair.now;
        for number in 0..500_usize {
            assert!(pair.client.sctp.send(now, message(number as u8, 2), &how));
        }
        pair.settle(Client);
        pair.drive_for(Duration::from_secs(3));
        pair.log.clear();
    }
    assert_eq!(pair.server.received.len(), 70_000);
}

/// Found with a Linux kernel: a SHUTDOWN whose path had failed was repeated there until the
/// association was given up, for no data was under way to tell.
#[test]
fn section_6_4_1_a_shutdown_that_times_out_goes_another_way() {
    let config = plain();
    let mut pair = Pair::on_paths(&config, &config, 2);
    pair.connect();
    pair.drive_for(ms(2000));
    pair.on_wire(|sent| if sent.path == PathId(0) { Fate::Drop } else { Fate::Arrive });
    pair.input(Client, Input::Close);
    pair.drive_for(ms(10_000));
    let shutdowns: Vec<_> =
        pair.sent_by(Client).filter(|sent| sent.has(7)).map(|sent| sent.path).collect();
    // The answer goes where the SHUTDOWN did not come from, times out, and finds the other way too.
    assert_eq!(shutdowns[..2], [PathId(0), PathId(1)]);
    assert!(pair.client.saw(Event::Closed) && pair.server.saw(Event::Closed));
}

/// The cookie of an INIT ACK, and the tag that the COOKIE ECHO needs.
fn cookie_of(packet: &Packet) -> (u32, u32, Bytes) {
    let Chunk::InitAck(ack) = &packet.chunks[0] else { panic!("no INIT ACK: {packet:?}") };
    let cookie = ack.parameters.iter().find_map(|parameter| match parameter {
        Parameter::StateCookie(cookie) => Some(cookie.clone()),
        _ => None,
    });
    (ack.tag, ack.tsn, cookie.expect("a cookie"))
}

/// A peer that has lost its association and knows nothing of it opens anew with this tag; the
/// server's answer to its INIT.
fn init_again(pair: &mut Pair, tag: u32) -> (u32, u32, Bytes) {
    let before = pair.log.len();
    pair.forge(Server, 0, vec![Chunk::Init(init(tag))]);
    assert_eq!(pair.log.len(), before + 1, "one packet for one packet");
    let sent = pair.log.last().expect("an answer");
    assert_eq!(sent.packet.tag, tag);
    cookie_of(&sent.packet)
}

#[test]
fn section_5_2_2_and_5_2_4_a_a_peer_that_restarts_is_heard_again() {
    let mut pair = Pair::connected(&plain());
    pair.drop_data(Server, &[1, 2, 3, 4, 5, 6, 7, 8]);
    for number in 0..6 {
        pair.send(Server, number, 900);
    }
    pair.drive_for(ms(3000));
    let (_, old_tag) = pair.tags();
    let old_tsn = pair.first_tsn(Server);
    // The client dies; what it sends is not heard any more.
    pair.on_wire(|sent| if sent.from == Client { Fate::Drop } else { Fate::Arrive });
    let (tag, tsn, cookie) = init_again(&mut pair, 77);
    assert_ne!(tag, old_tag, "§5.3.1: a restart has a tag of its own");
    assert_ne!(tsn, old_tsn);
    // Until the cookie comes the association stands as it was.
    assert!(!pair.server.saw(Event::Restarted));
    assert!(pair.server.sctp.room() < 4_000_000);
    let before = pair.log.len();
    pair.forge(Server, tag, vec![Chunk::CookieEcho(cookie), Chunk::Data(data(1000, b"anew"))]);
    let answers: Vec<_> = pair.log[before..].iter().map(|sent| &sent.packet).collect();
    assert_eq!(answers[0].tag, 77, "the peer's new tag");
    assert_eq!(answers[0].chunks[0], Chunk::CookieAck);
    assert!(pair.server.saw(Event::Restarted) && !pair.server.saw(Event::Reset));
    assert_eq!(pair.server.sctp.state(), State::Established);
    // The new TSN is the cookie's, and what was under way is forgotten.
    assert_eq!(
        pair.server.received.last().map(|(_, frame)| bytes_of(frame)),
        Some(b"anew".to_vec())
    );
    assert_eq!(pair.server.sctp.room(), 4_000_000);
    assert_eq!(pair.server.sctp.window(PathId(0)), Some((4 * 1016, None)), "windows begin anew");
    // What it sends has the new tag and begins at the new Initial TSN.
    let before = pair.log.len();
    pair.send(Server, 9, 100);
    let sent = &pair.log[before];
    assert_eq!((sent.packet.tag, sent.data().next().map(|data| data.tsn)), (77, Some(tsn)));
    // The old tag is nobody's.
    let received = pair.server.received.len();
    pair.forge(Server, old_tag, vec![Chunk::Data(data(1001, b"old"))]);
    assert_eq!(pair.server.received.len(), received);
}

#[test]
fn section_5_2_4_c_a_cookie_without_tie_tags_restarts_nothing() {
    // A cookie sealed before the association stood is an old one: nobody has restarted.
    let mut server = listener(&plain());
    let (ack, cookie) = invited(&mut server, 5);
    let (late_ack, late) = invited(&mut server, 6);
    let opened = answers(&mut server, at(1), from(vec![Chunk::CookieEcho(cookie)], ack.tag));
    assert_eq!(opened[0].chunks, [Chunk::CookieAck]);
    let answered = answers(&mut server, at(2), from(vec![Chunk::CookieEcho(late)], late_ack.tag));
    assert!(answered.is_empty(), "{answered:?}");
    // It is still the first one's.
    let heard = answers(&mut server, at(3), from(vec![Chunk::Heartbeat(Bytes::new())], ack.tag));
    assert_eq!((heard.len(), heard[0].tag), (1, 5));
}

#[test]
fn section_5_2_4_a_cookie_of_an_association_before_restarts_nothing() {
    // Restarted twice: the Tie-Tags of the first restart's cookie are not those of the association
    // that came of it.
    let mut pair = Pair::connected(&plain());
    pair.on_wire(|sent| if sent.from == Client { Fate::Drop } else { Fate::Arrive });
    let (first_tag, _, first) = init_again(&mut pair, 77);
    let (second_tag, _, second) = init_again(&mut pair, 78);
    pair.forge(Server, first_tag, vec![Chunk::CookieEcho(first)]);
    let before = pair.log.len();
    pair.forge(Server, second_tag, vec![Chunk::CookieEcho(second)]);
    assert_eq!(pair.log.len(), before, "discarded");
    let restarts = pair.server.events.iter().filter(|(_, event)| *event == Event::Restarted);
    assert_eq!(restarts.count(), 1);
}

#[test]
fn section_5_2_4_a_in_shutdown_ack_sent_the_shutdown_goes_on() {
    let mut pair = Pair::connected(&plain());
    let (tag, _, cookie) = init_again(&mut pair, 77);
    // The client closes and its SHUTDOWN COMPLETE never comes.
    pair.on_wire(
        |sent| {
            if sent.from == Client && sent.has(14) { Fate::Drop } else { Fate::Arrive }
        },
    );
    pair.input(Client, Input::Close);
    pair.drive_for(ms(220));
    assert_eq!(pair.server.sctp.state(), State::ShutdownAckSent);
    let before = pair.log.len();
    pair.forge(Server, tag, vec![Chunk::CookieEcho(cookie)]);
    let Chunk::Error(causes) = &pair.log[before].packet.chunks[1] else { panic!("no ERROR") };
    assert_eq!(pair.log[before].kinds(), [8, 9]);
    assert_eq!(causes[0].code, Cause::COOKIE_WHILE_SHUTTING_DOWN);
    assert!(!pair.server.saw(Event::Restarted));
}

#[test]
fn section_5_2_2_tie_tags_say_nothing_of_the_tags() {
    let mut pair = Pair::connected(&plain());
    let (to_client, to_server) = pair.tags();
    let (_, _, cookie) = init_again(&mut pair, 77);
    for tag in [to_client, to_server] {
        let bytes = tag.to_be_bytes();
        assert!(cookie.windows(4).all(|window| window != bytes), "a tag in the open");
    }
}
