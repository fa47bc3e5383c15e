//! Whole connections: bytes arrive as sent over any network, and bulk data fills a link.

use proptest::prelude::*;
use talkspurt_proto::endpoint::{Endpoint, Event, Input};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::tcp::{Config, Controller, Flags, LossRecovery, SackBlocks, Segment, State};
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::{Rate, Size};
use talkspurt_testing::tcp::*;

#[test]
fn a_call_from_open_to_close() {
    let mut pair = Pair::connected(&Config::new(Controller::Newreno));
    pair.send_real(Client, b"hello");
    pair.send_real(Server, b"good day");
    pair.drive_for(ms(200));
    assert_eq!((&*pair.server.bytes(), &*pair.client.bytes()), (&b"hello"[..], &b"good day"[..]));
    pair.input(Client, Input::Close);
    pair.drive_for(ms(200));
    assert!(pair.server.saw(Event::PeerClosed));
    pair.input(Server, Input::Close);
    pair.drive();
    for end in [&pair.client, &pair.server] {
        assert!(end.saw(Event::Connected) && end.saw(Event::Closed));
        assert_eq!(end.endpoint.state(), State::Closed);
        assert!(end.notes.rx_error.is_empty());
    }
}

#[test]
fn bulk_fills_a_link() {
    // 8 Mbit/s, 1000-byte segments in 1040-byte packets, RTT 40 ms: 38.5 packets in flight.
    let mut pair = Pair::connected(&plain());
    (pair.rate, pair.delay) = (Some(Rate::from_bps(8_000_000)), ms(20));
    let fill = |pair: &mut Pair| {
        while pair.client.endpoint.send_capacity() >= 1000 {
            pair.send(Client, 1000);
        }
    };
    fill(&mut pair);
    pair.drive_for(ms(2000));
    let before = pair.server.count;
    for _ in 0..50 {
        fill(&mut pair);
        pair.drive_for(ms(100));
    }
    let goodput = (pair.server.count - before) as f64 * 8.0 / 5.0;
    // Exactly 1000/1040 of the rate, but for the segments cut off at either end.
    assert!((goodput / (8e6 * 1000.0 / 1040.0) - 1.0).abs() < 0.002, "{goodput}");
}

#[test]
fn the_application_hears_of_room() {
    let config = Config { send_buffer: Size::from_bytes(20_000), ..plain() };
    let mut pair = Pair::connected(&config);
    pair.send(Client, 20_000);
    assert_eq!(pair.client.endpoint.send_capacity(), 0);
    pair.drive_for(ms(500));
    assert!(pair.client.saw(Event::Writable));
    assert_eq!(pair.client.endpoint.send_capacity(), 20_000);
}

/// With `notsent_lowat` the endpoint takes what is sent soon and no more, and says when there is room:
/// when data leaves, and not only when it is acknowledged.
#[test]
fn the_low_water_mark() {
    let mut config = plain();
    config.initial_window = 4;
    config.notsent_lowat = Some(Size::from_bytes(1500));
    let mut alone = Alone::opening(&config);
    let buffer = config.send_buffer.as_bytes() as usize;
    assert_eq!(alone.endpoint.send_capacity(), buffer);
    alone.send(1000);
    assert_eq!(alone.endpoint.send_capacity(), buffer - 1000);
    alone.send(1000);
    // 2000 bytes wait: the mark is passed.
    assert_eq!(alone.endpoint.send_capacity(), 0);
    let answer = alone.syn(Flags::SYN | Flags::ACK, 1);
    alone.segment(answer);
    // All is sent, and none acknowledged.
    let writable = |alone: &Alone| alone.events.contains(&Event::Writable);
    assert_eq!((alone.endpoint.send_capacity(), writable(&alone)), (buffer - 2000, true));
    for room in [buffer - 3000, buffer - 4000, buffer - 5000, 0] {
        alone.send(1000);
        assert_eq!(alone.endpoint.send_capacity(), room);
    }
    alone.events.clear();
    // Four in flight, two wait; an acknowledgement lets one go.
    assert_eq!(alone.arrive(Flags::ACK, 1, 1001, 0).len(), 2);
    assert_eq!((alone.endpoint.send_capacity(), writable(&alone)), (buffer - 5000, true));
    // What is sent again was sent before.
    alone.wait();
    assert_eq!(alone.endpoint.send_capacity(), buffer - 5000);
    // The send buffer bounds it as well.
    config.send_buffer = Size::from_bytes(1200);
    assert_eq!(Alone::client(&config).endpoint.send_capacity(), 1200);
}

/// Data both ways on one connection: acknowledgements ride on it, and few go alone.
#[test]
fn two_way_traffic_piggybacks() {
    let mut pair = Pair::connected(&Config::new(Controller::Cubic));
    pair.log.clear();
    for _ in 0..200 {
        pair.send(Client, 172);
        pair.drive_for(ms(10));
        pair.send(Server, 172);
        pair.drive_for(ms(10));
    }
    for side in [Client, Server] {
        let alone = pair.sent(side).len() - pair.data(side).len();
        assert_eq!(pair.data(side).len(), 200);
        assert!(alone <= 2, "{side:?}: {alone} of {}", pair.sent(side).len());
        // Each tells of what came before it.
        let acks: Vec<u32> = pair.data(side).iter().map(|sent| sent.ack).collect();
        assert!(acks.is_sorted() && acks[199] - acks[0] > 172 * 180);
    }
}

fn arbitrary_segment() -> impl Strategy<Value = Segment> {
    let number = || {
        prop_oneof![
            4 => (-70_000_i64..70_000).prop_map(|d| d as u32),
            1 => any::<u32>(),
        ]
    };
    let payload = prop_oneof![
        3 => Just(0_u32),
        3 => 0..3000_u32,
        1 => Just(u32::MAX),
    ];
    let options = (
        proptest::option::of(any::<u16>()),
        proptest::option::of(any::<u8>()),
        proptest::option::of((number(), number())),
        proptest::collection::vec((number(), number()), 0..4),
    );
    (number(), number(), any::<u16>(), 0..32_u8, options, payload, any::<bool>()).prop_map(
        |(seq, ack, window, flags, (mss, window_scale, timestamps, blocks), len, real)| Segment {
            seq,
            ack,
            window,
            flags: Flags(flags),
            mss,
            window_scale,
            sack_permitted: seq & 1 == 0,
            timestamps,
            sack: SackBlocks::of(blocks),
            payload: if real && len < 3000 {
                Payload::Real(vec![7; len as usize].into())
            } else {
                virtually(len)
            },
        },
    )
}

/// Brings an endpoint into one of the eleven states.
pub fn in_state(which: usize, config: &Config) -> Alone {
    let (ack, fin) = (Flags::ACK, Flags::FIN | Flags::ACK);
    let mut alone = match which {
        0 => Alone::client(config),
        1 => Alone::listener(config),
        2 => Alone::client(config),
        3 => Alone::listener(config),
        _ => Alone::established(config),
    };
    match which {
        2 => drop(alone.input(Input::Open)),
        3 => drop(alone.segment(alone.syn(Flags::SYN, 0))),
        5 => drop(alone.input(Input::Close)),
        6 => {
            alone.input(Input::Close);
            alone.arrive(ack, 1, 2, 0);
        }
        7 => drop(alone.arrive(fin, 1, 1, 0)),
        8 => {
            alone.input(Input::Close);
            alone.arrive(fin, 1, 1, 0);
        }
        9 => {
            alone.arrive(fin, 1, 1, 0);
            alone.input(Input::Close);
        }
        10 => {
            alone.input(Input::Close);
            alone.arrive(fin, 1, 2, 0);
        }
        _ => {}
    }
    let states = [
        State::Closed,
        State::Listen,
        State::SynSent,
        State::SynReceived,
        State::Established,
        State::FinWait1,
        State::FinWait2,
        State::CloseWait,
        State::Closing,
        State::LastAck,
        State::TimeWait,
    ];
    assert_eq!(alone.endpoint.state(), states[which]);
    alone
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_network_delivers_every_byte_and_closes(
        seed: u64,
        loss in 0..20_u32,
        (there, back) in (1..60_000_u64, 0..3_000_u64),
        chunk in 1..5000_usize,
        receive in 300..30_000_u64,
        mtu in prop_oneof![Just(u32::MAX), 200..600_u32],
        options: [bool; 4],
        controller in prop_oneof![
            Just(Controller::Tahoe),
            Just(Controller::Reno),
            Just(Controller::Newreno),
            Just(Controller::Sack),
            Just(Controller::Cubic),
            Just(Controller::Bbr),
            Just(Controller::Dctcp),
            Just(Controller::Prague),
        ],
        recovery in proptest::option::of(prop_oneof![
            Just(LossRecovery::Tahoe),
            Just(LossRecovery::Reno),
            Just(LossRecovery::Newreno),
            Just(LossRecovery::Sack),
            Just(LossRecovery::Rack),
        ]),
        (f_rto, pacing, ecn, stall) in any::<(Option<bool>, Option<bool>, bool, bool)>(),
    ) {
        // BBR goes by selective acknowledgements; a scenario refuses it the older recoveries.
        let recovery = recovery.filter(|_| controller != Controller::Bbr);
        let mut config = Config { recovery, f_rto, pacing, ..Config::new(controller) };
        config.ecn = ecn.then_some(true);
        config.mss = Size::from_bytes(500);
        [config.timestamps, config.window_scaling, config.delayed_ack, config.nagle] = options;
        config.receive_buffer = Size::from_bytes(receive);
        let mut text = talkspurt_proto::rng::Rng::new(seed, "text");
        let mut text = |len| (0..len).map(|_| text.bits() as u8).collect::<Vec<_>>();
        let (bytes, back) = (text(there), text(back));
        let mut pair = Pair::new(&config);
        let mut rng = talkspurt_proto::rng::Rng::new(seed, "wire");
        let mut count = 0;
        pair.on_wire(move |sent| match rng.below(100) as u32 {
            // A stall now and then makes timeouts that are needless.
            _ if stall && sent.from == Client && { count += 1; count / 10 % 5 == 4 } => {
                Verdict::Late(ms(3000 - count % 10))
            }
            roll if roll < loss => Verdict::Drop,
            roll if roll < loss + 5 => Verdict::Late(ms(1 + roll as u64 * 7)),
            roll if roll < loss + 10 => Verdict::Twice(ms(roll as u64 * 5)),
            _ => Verdict::Arrive,
        });
        pair.mtu = mtu;
        pair.input(Client, Input::Open);
        for piece in bytes.chunks(chunk) {
            pair.send_real(Client, piece);
        }
        for piece in back.chunks(chunk) {
            pair.send_real(Server, piece);
        }
        pair.input(Client, Input::Close);
        pair.drive_for(ms(100_000_000));
        prop_assert!(pair.server.saw(Event::PeerClosed), "{:?}", pair.client.events);
        pair.input(Server, Input::Close);
        pair.drive();
        prop_assert!(pair.server.bytes() == bytes);
        prop_assert!(pair.client.bytes() == back);
        for end in [&pair.client, &pair.server] {
            prop_assert!(end.saw(Event::Closed), "{:?}", end.events);
            prop_assert_eq!(end.endpoint.state(), State::Closed);
        }
    }

    #[test]
    fn any_segment_in_any_state_is_survived(
        which in 0..11_usize,
        timestamps: bool,
        recovery in proptest::option::of(prop_oneof![
            Just(LossRecovery::Sack),
            Just(LossRecovery::Rack),
        ]),
        real: bool,
        steps in proptest::collection::vec((arbitrary_segment(), 0..8_u8, any::<bool>()), 1..40),
    ) {
        let mut config = Config { recovery, ..plain() };
        config.timestamps = timestamps;
        let mut alone = in_state(which, &config);
        let mut handed = false;
        for (mut segment, act, near) in steps {
            if near {
                // Around the numbers in use, where the branches are.
                segment.seq = segment.seq.wrapping_add(PEER);
                segment.ack = segment.ack.wrapping_add(alone.isn);
                let blocks = segment.sack.map(|sack| sack.as_slice().to_vec()).unwrap_or_default();
                let near = |number: u32| number.wrapping_add(alone.isn);
                segment.sack = SackBlocks::of(blocks.into_iter().map(|(l, r)| (near(l), near(r))));
            }
            alone.segment(segment);
            match act {
                0 if alone.wake.is_some() => drop(alone.wait()),
                1 if !handed || alone.endpoint.send_capacity() > 3000 => {
                    handed = true;
                    let payload =
                        if real { Payload::Real(vec![1; 3000].into()) } else { virtually(3000) };
                    alone.input(Input::Frame(Frame::Data(payload)));
                }
                2 => drop(alone.input(Input::Close)),
                3 => drop(alone.input(refusal(
                    segment_mtu(alone.now),
                    alone.sent.last().map_or(0, |segment| segment.seq),
                ))),
                _ => alone.now += ms(17),
            }
            prop_assert!(alone.sent.len() < 20_000);
        }
    }
}

/// Some MTU or other.
fn segment_mtu(now: Instant) -> u32 {
    (now.as_nanos() % 1501) as u32
}
