//! DCCP under attack: packets of a real exchange, mutated, replayed, forged and sent to ends in
//! every state. Nothing panics, no input triggers a storm, deadlines do not lie in the past,
//! and an unproven address receives at most one packet for each of its own, at most three times
//! as long, and none by a timer.

use proptest::prelude::*;
use talkspurt_proto::dccp::{Ccid, Config, Dccp, Kind, Options, Packet, ResetCode, State, WireSeq};
use talkspurt_proto::endpoint::{Endpoint, Input, Output};
use talkspurt_proto::packet::PacketBox;
use talkspurt_proto::packet::{Damage, Ecn};
use talkspurt_proto::rng::Rng;
use talkspurt_testing::dccp::*;

/// Every packet of an exchange with all features: both directions, a change of CCID, loss.
fn exchange(ccid: Ccid) -> Vec<Packet> {
    let config = Config {
        data_checksum: true,
        send_rtt_estimate: true,
        ack_vector: true,
        init_cookie: true,
        ..Config::new(ccid)
    };
    let mut pair = Pair::new(&config);
    let mut count = 0_u32;
    pair.on_wire(move |_| {
        count += 1;
        if count.is_multiple_of(17) { Verdict::Drop } else { Verdict::Arrive }
    });
    pair.input(Client, Input::Open);
    for _ in 0..40 {
        pair.send(Client, 160);
        pair.send(Server, 80);
        pair.drive_for(ms(20));
    }
    pair.input(Server, Input::Close);
    pair.drive_for(ms(2000));
    pair.log.into_iter().map(|sent| sent.entry.packet).collect()
}

#[derive(Clone, Debug)]
enum Change {
    Seq(i64),
    Ack(i64),
    Kind(u8),
    Options(Vec<u8>),
    Flip(u16, u8),
    Cut(u16),
    Short,
    Cscov(u8),
    Nothing,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (-200_i64..200).prop_map(Change::Seq),
        any::<i64>().prop_map(Change::Seq),
        (-200_i64..200).prop_map(Change::Ack),
        any::<i64>().prop_map(Change::Ack),
        (0_u8..11).prop_map(Change::Kind),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Change::Options),
        (any::<u16>(), any::<u8>()).prop_map(|(at, bits)| Change::Flip(at, bits)),
        any::<u16>().prop_map(Change::Cut),
        Just(Change::Short),
        (0_u8..16).prop_map(Change::Cscov),
        Just(Change::Nothing),
    ]
}

fn moved(seq: WireSeq, by: i64) -> WireSeq {
    WireSeq::Extended(wire(seq).wrapping_add_signed(by) & ((1 << 48) - 1))
}

fn kind_of(number: u8, ack: WireSeq) -> Kind {
    let (service, code) = (0x5254_5041, ResetCode(number.wrapping_mul(3) % 14));
    match number {
        0 => Kind::Request { service },
        1 => Kind::Response { ack, service },
        2 => Kind::Data,
        3 => Kind::Ack { ack },
        4 => Kind::DataAck { ack },
        5 => Kind::CloseReq { ack },
        6 => Kind::Close { ack },
        7 => Kind::Reset { ack, code, data: [0; 3] },
        8 => Kind::Sync { ack },
        9 => Kind::SyncAck { ack },
        _ => Kind::Listen { service },
    }
}

fn mutate(packet: &mut Packet, change: &Change) {
    let ack = packet.kind.ack().unwrap_or(WireSeq::Extended(0));
    let mut bytes = packet.options.as_bytes().to_vec();
    match change {
        Change::Seq(by) => packet.seq = moved(packet.seq, *by),
        Change::Ack(by) => packet.kind = kind_of(packet.kind.number(), moved(ack, *by)),
        Change::Kind(number) => packet.kind = kind_of(*number, ack),
        Change::Options(new) => bytes.clone_from(new),
        Change::Flip(at, bits) => {
            let length = bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(usize::from(*at) % length) {
                *byte ^= bits;
            }
        }
        Change::Cut(at) => bytes.truncate(usize::from(*at) % (bytes.len() + 1)),
        Change::Short => packet.seq = WireSeq::Short((wire(packet.seq) & 0xff_ffff) as u32),
        Change::Cscov(cscov) => packet.cscov = *cscov,
        Change::Nothing => {}
    }
    packet.options = Options::from_bytes(&bytes);
}

/// Handles an input; returns the number of packets sent and their bytes.
fn handle(
    dccp: &mut Dccp,
    now: talkspurt_proto::time::Instant,
    input: Input<PacketBox<Packet>>,
) -> (usize, usize) {
    dccp.handle(now, input, &mut ());
    let (mut packets, mut bytes) = (0, 0);
    for _ in 0..64 {
        match dccp.poll(now, &mut ()) {
            Output::Transmit(transmit) => {
                let packet = transmit.packet;
                assert!(packet.header_bytes() <= 1020);
                packets += 1;
                bytes += ip_bytes(&packet);
            }
            Output::Deliver(_) | Output::Event(_) => {}
            Output::Idle { until } => {
                assert!(until.is_none_or(|until| until >= now), "{until:?} is before {now:?}");
                return (packets, bytes);
            }
        }
    }
    panic!("one input is answered by a storm");
}

/// An event at an end: a packet of the exchange, changed, or time, or data to send.
fn happenings() -> impl Strategy<Value = Vec<(u16, Vec<Change>, u8, u8)>> {
    let one = (any::<u16>(), prop::collection::vec(change(), 0..3), any::<u8>(), any::<u8>());
    prop::collection::vec(one, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn mutated_packets(
        which in 0_usize..3,
        server: bool,
        open: bool,
        cookie: bool,
        list in happenings(),
    ) {
        let ccid = [Ccid::Two, Ccid::Three, Ccid::Four][which];
        let recorded = exchange(ccid);
        let config = Config { init_cookie: cookie, ack_vector: true, ..Config::new(ccid) };
        let side = if server { Server } else { Client };
        let kept = Config { init_cookie: false, ..config.clone() };
        let mut alone = match (side, open) {
            (Server, false) => Alone::listener(&config),
            (Client, false) => Alone::client(&config),
            (Server, true) => Alone::open_server(&kept, &[]),
            (Client, true) => Alone::open_client(&kept, &[]),
        };
        if side == Client && !open {
            alone.input(Input::Open);
        }
        let mut now = alone.now;
        for (index, changes, time, data) in list {
            let mut packet = recorded[usize::from(index) % recorded.len()].clone();
            // Half of them fit the connection except for the change.
            if index % 2 == 0 {
                alone.seq = (alone.seq + 1) & ((1 << 48) - 1);
                packet.seq = WireSeq::Extended(alone.seq);
                if packet.kind.ack().is_some() {
                    packet.kind = match packet.kind {
                        Kind::Response { service, .. } => Kind::Response { ack: alone.ack(), service },
                        kind => kind_of(kind.number(), alone.ack()),
                    };
                }
            }
            changes.iter().for_each(|change| mutate(&mut packet, change));
            let damage = if time % 8 == 0 { Damage::Payload } else { Damage::None };
            let ecn = if time % 5 == 0 { Ecn::Ce } else { Ecn::Ect0 };
            let before = alone.sent.len();
            alone.input(arriving(packet, ecn, damage));
            prop_assert!(alone.sent.len() - before <= 8, "a storm");
            if data % 3 == 0 && alone.endpoint.send_capacity() >= 100 {
                alone.send(100);
            }
            now += ms(u64::from(time));
            if now > alone.now {
                alone.pass(now - alone.now);
            }
            if data == 255 {
                alone.input(if time % 2 == 0 { Input::Close } else { Input::Abort });
            }
        }
    }

    #[test]
    fn unproven_addresses(cookie: bool, list in happenings()) {
        let recorded = exchange(Ccid::Three);
        let config = Config { init_cookie: cookie, ..Config::new(Ccid::Three) };
        let mut dccp = Dccp::listener(&config, Rng::new(9, "victim"));
        let mut now = talkspurt_proto::time::Instant::ZERO;
        for (index, changes, time, _) in list {
            let mut packet = recorded[usize::from(index) % recorded.len()].clone();
            if index % 3 == 0 {
                packet.kind = kind_of(0, WireSeq::Extended(0));
            }
            changes.iter().for_each(|change| mutate(&mut packet, change));
            let size = ip_bytes(&packet);
            let (packets, bytes) = handle(&mut dccp, now, arriving(packet, Ecn::NotEct, Damage::None));
            // Knowing our initial number proves the address.
            if dccp.state() >= State::PartOpen {
                break;
            }
            prop_assert!(packets <= 1, "{} packets for one", packets);
            prop_assert!(bytes <= 3 * size, "{} bytes for {}", bytes, size);
            now += ms(u64::from(time) * 1000);
            prop_assert_eq!(handle(&mut dccp, now, Input::Timeout), (0, 0));
        }
    }
}

/// The least a Request can be, 40 bytes, is answered by at most 120, with and without a cookie.
#[test]
fn the_smallest_request() {
    for init_cookie in [false, true] {
        for ccid in [Ccid::Two, Ccid::Three] {
            let config = Config { init_cookie, ecn: Some(false), ..Config::new(ccid) };
            let mut alone = Alone::listener(&config);
            let wants: u8 = ccid.into();
            // Under CCID 3 a Request without Changes is refused or answered, but never at length.
            let answer = alone.arrive(Kind::Request { service: 0x5254_5041 }, &[]);
            assert_eq!(answer.len(), 1, "CCID {wants}");
            assert!(ip_bytes(&answer[0]) <= 3 * 40, "{}", ip_bytes(&answer[0]));
        }
    }
}

/// Maximum bytes held by an end, whatever arrives.
const MAX_BYTES: usize = 4 << 20;

/// A peer that sends a hundred thousand packets inside the windows, with random other content: gaps,
/// marks, random options, options that make a CCID keep state, rare acknowledgements.
/// A connection that ends is opened again.
#[test]
fn memory_is_bounded() {
    let mut rng = Rng::new(5, "hostile");
    let mut greatest = 0;
    for ccid in [Ccid::Two, Ccid::Three, Ccid::Four] {
        let config = Config { ack_vector: true, ..Config::new(ccid) };
        let wanted = [ccid as u8];
        let list = [
            talkspurt_proto::dccp::options::Opt::ChangeL(feature(1, &wanted)),
            talkspurt_proto::dccp::options::Opt::ChangeR(feature(1, &wanted)),
        ];
        let mut alone = Alone::open_server(&config, &list);
        let mut lives = 1;
        for _ in 0..34_000 {
            let bits = rng.bits();
            let [_, step, ecn, length, first, time, data, old] = bits.to_le_bytes();
            if alone.endpoint.state() != State::Open {
                alone = Alone::open_server(&config, &list);
                lives += 1;
            }
            alone.seq =
                (alone.seq + 1 + u64::from(step % 8) * u64::from(step / 192)) & ((1 << 48) - 1);
            let ack = alone.ack_back(u64::from(old % 16));
            let kind = [Kind::Data, Kind::DataAck { ack }, Kind::Ack { ack }, Kind::Data];
            let kind = kind[usize::from(bits as u8 & 3)];
            // Types that do not end the connection, random values.
            let types = [38, 37, 40, 41, 42, 43, 192, 193, 194, 195, 36, 35];
            let mut bytes = Vec::new();
            for _ in 0..length % 4 {
                let random = rng.bits().to_le_bytes();
                let long = usize::from(random[0] % 7);
                bytes.extend([types[usize::from(random[7]) % types.len()], 2 + long as u8]);
                bytes.extend(&random[1..=long]);
            }
            let mut packet = Alone::make(alone.seq, kind, &[], u32::from(first));
            packet.ccval = first & 15;
            packet.options = Options::from_bytes(&bytes);
            let ecn = if ecn < 40 { Ecn::Ce } else { Ecn::Ect0 };
            alone.input(arriving(packet, ecn, Damage::None));
            if data % 2 == 0 && alone.endpoint.send_capacity() >= 100 {
                alone.send(100);
            }
            // Mostly a burst, now and then a pause.
            if time == 0 {
                alone.pass(ms(u64::from(data)));
            }
            alone.sent.clear();
            alone.received.clear();
            alone.events.clear();
            alone.notes = Notes::default();
            greatest = greatest.max(alone.endpoint.footprint());
        }
        println!("CCID {wanted:?}: {lives} connections, at most {greatest} bytes");
        assert!(greatest > 0 && greatest <= MAX_BYTES, "CCID {wanted:?} holds {greatest} bytes");
    }
}
