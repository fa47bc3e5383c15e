//! RFC 4340, clause by clause: data and its checksums (§9), ECN (§12), timestamps (§13) and path MTU
//! (§14).

use talkspurt_proto::dccp::ccid::Sender as _;
use talkspurt_proto::dccp::options::{Opt, feature as name};
use talkspurt_proto::dccp::{Ccid, Config, Dccp, Kind, Location, Packet, Service, WireSeq};
use talkspurt_proto::endpoint::{Endpoint, Event, Input};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::PacketBox;
use talkspurt_proto::packet::{Ecn, IpVersion, PathId, Payload};
use talkspurt_proto::probe::{Gauge, RxError};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::wire::checksum::crc32c;
use talkspurt_testing::dccp::*;

const SERVICE: u32 = Service::RTP_AUDIO.0;

/// §9.1: packets damaged under the checksum are dropped.
#[test]
fn damage_under_the_checksum() {
    let mut pair = Pair::connected(&plain());
    pair.on_wire(|sent| if sent.packet.kind.is_data() { Verdict::Damage } else { Verdict::Arrive });
    pair.send(Client, 100);
    pair.drive_for(ms(90));
    assert!(pair.server.received.is_empty());
    assert_eq!(pair.server.notes.rx_error, [RxError::Checksum]);
}

/// §9.2, §9.2.1: with Minimum Checksum Coverage agreed, data leaves partly covered, and arrives
/// though it was damaged beyond.
#[test]
fn partial_checksums() {
    let config = Config { checksum_coverage: 3, minimum_checksum_coverage: 2, ..plain() };
    let mut pair = Pair::connected(&config);
    assert_eq!(pair.client.endpoint.feature(name::MINIMUM_CHECKSUM_COVERAGE, Location::There), 2);
    pair.on_wire(|sent| if sent.packet.kind.is_data() { Verdict::Damage } else { Verdict::Arrive });
    pair.send(Client, 100);
    // As many bytes as are covered: all, so that damage kills it; fewer: 0 covers them.
    pair.send(Client, 8);
    pair.send(Client, 4);
    pair.drive_for(ms(90));
    let coverage: Vec<u8> =
        pair.log.iter().filter(|s| s.packet.kind.is_data()).map(|s| s.packet.cscov).collect();
    assert_eq!(coverage, [3, 3, 0]);
    assert_eq!(pair.server.frames(), [data(100)]);
    assert_eq!(pair.server.notes.rx_error, [RxError::Checksum; 2]);
    // Where the other end requires more than this one would cover, all is covered.
    let strict = Config { minimum_checksum_coverage: 5, ..config.clone() };
    let mut pair = Pair::of(&config, &strict);
    pair.send(Client, 100);
    pair.send(Server, 100);
    pair.connect();
    assert_eq!(pair.client.endpoint.feature(name::MINIMUM_CHECKSUM_COVERAGE, Location::There), 0);
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
    assert_eq!(alone.notes.rx_error, [RxError::Unexpected]);
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
    assert_eq!(alone.notes.rx_error.last(), Some(&RxError::Malformed));
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
            if hurt { Verdict::Damage } else { Verdict::Arrive }
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
    assert_eq!(pair.client.endpoint.feature(name::CHECK_DATA_CHECKSUM, Location::There), 1);
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
    assert_eq!(alone.notes.rx_error, [RxError::Checksum]);
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
    // On an acknowledgement, whose application data area is empty: the CRC-32c of nothing is 0.
    for (crc, reported) in [(0, false), (1, true)] {
        let mut alone = Alone::open_client(&plain(), &[]);
        let mut ack = Alone::make(alone.seq + 1, Kind::Ack { ack: alone.ack() }, &[], 0);
        ack.options = with(&[Opt::DataChecksum(crc)]);
        ack.payload = Frame::Data(Payload::Real(bytes::Bytes::new()));
        alone.packet(ack);
        alone.seq += 1;
        alone.arrive_data(Kind::Data, &[], 20);
        alone.arrive_data(Kind::Data, &[], 20);
        let mut told = alone.sent.iter().flat_map(options);
        assert_eq!(told.any(|option| matches!(option, Opt::DataDropped(_))), reported);
    }
}

/// §12: data is sent ECT(0), never ECT(1) (RFC 8311 §6), unless one side cannot read marks. RFC 4341 §3:
/// acknowledgements of CCID 2 are too.
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
        let acks = client.uses_ecn() && server.uses_ecn() && client.ccid == Ccid::Two;
        let acks = if acks { Ecn::Ect0 } else { Ecn::NotEct };
        for sent in pair.log.iter().filter(|sent| !sent.packet.kind.is_data()) {
            let is_ack = sent.packet.kind.number() == ACK;
            assert_eq!(sent.ecn, if is_ack { acks } else { Ecn::NotEct }, "{sent:?}");
        }
        (of(Client), of(Server))
    };
    for ccid in [Ccid::Two, Ccid::Three, Ccid::Four] {
        let (on, off) = (Config::new(ccid), Config { ecn: Some(false), ..Config::new(ccid) });
        assert_eq!(marks(&on, &on), (vec![Ecn::Ect0], vec![Ecn::Ect0]), "{ccid:?}");
        assert_eq!(marks(&off, &on), (vec![Ecn::NotEct], vec![Ecn::NotEct]), "{ccid:?}");
        assert_eq!(marks(&on, &off), (vec![Ecn::NotEct], vec![Ecn::NotEct]), "{ccid:?}");
        // ns-2's agents have it on, Linux cannot.
        let of = |profile| Config { profile, ..Config::new(ccid) };
        for (profile, mark) in [(Profile::Ns2, Ecn::Ect0), (Profile::Linux, Ecn::NotEct)] {
            let both = marks(&of(profile), &of(profile));
            assert_eq!(both, (vec![mark], vec![mark]), "{ccid:?} {profile:?}");
        }
    }
}

/// §12.1: an end that cannot read ECN fields says so with a Mandatory Change.
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

/// §12.1: until this is confirmed no data is accepted, and what arrives is reported with Drop Code 0.
#[test]
fn no_data_before_ecn_incapable_is_confirmed() {
    let config = Config { ecn: Some(false), ..plain() };
    let confirm = Opt::ConfirmR(feature(name::ECN_INCAPABLE, &[1, 1]));
    for (list, delivered) in [(&[][..], 0), (&[confirm][..], 1)] {
        let mut alone = Alone::open_client(&config, list);
        alone.arrive_data(Kind::Data, &[], 20);
        alone.arrive_data(Kind::DataAck { ack: alone.ack() }, &[], 20);
        assert_eq!(alone.received.len(), 2 * delivered);
        let reports = alone.sent.iter().flat_map(options);
        let reported = reports.filter(|option| matches!(option, Opt::DataDropped(_))).count();
        assert_eq!(reported > 0, delivered == 0);
    }
}

/// §11.3, §11.4: a mark on the way comes back in the Ack Vector as state 1.
#[test]
fn a_mark_is_told() {
    let mut pair = Pair::connected(&plain());
    pair.on_wire(|sent| if sent.packet.kind.is_data() { Verdict::Mark } else { Verdict::Arrive });
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

fn too_big(mtu: u32, seq: u64) -> Input<PacketBox<Packet>> {
    let packet = Alone::make(seq, Kind::Data, &[], 0);
    let quote = talkspurt_testing::quote(talkspurt_proto::wire::dccp::quoted(&packet));
    Input::TooBig { path: PathId(0), mtu, quote }
}

/// §14.1: Packet Too Big lowers the maximum packet size if it quotes a number still in the
/// acknowledgement window, and is rx_error if it does not.
#[test]
fn path_mtu() {
    let mut alone = Alone::open_client(&plain(), &[]);
    // 20 of IPv4, 24 of `DataAck`, 32 kept for options.
    assert_eq!(alone.endpoint.send_capacity(), 1500 - 20 - 24 - 32);
    for seq in [alone.last + 1, alone.isn - 1, alone.last + (1 << 30)] {
        alone.input(too_big(900, seq));
    }
    assert_eq!(alone.notes.rx_error, [RxError::OutOfWindow; 3]);
    assert_eq!(alone.endpoint.send_capacity(), 1424);
    alone.input(too_big(900, alone.last));
    assert_eq!(alone.endpoint.send_capacity(), 900 - 76);
    // It never grows, and a router cannot reduce it to nothing.
    alone.input(too_big(1400, alone.last));
    assert_eq!(alone.endpoint.send_capacity(), 900 - 76);
    alone.input(too_big(1, alone.last));
    assert_eq!(alone.endpoint.send_capacity(), 0);
    let six = Dccp::client(&plain(), Rng::new(3, "alone")).over(IpVersion::V6);
    let mut alone = Alone::new(six);
    alone.input(Input::Open);
    alone.arrive(Kind::Response { ack: alone.ack(), service: SERVICE }, &CONFIRMS);
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[]);
    alone.input(too_big(100, alone.last));
    // RFC 8200 §5: no link is smaller.
    assert_eq!(alone.endpoint.send_capacity(), 1280 - 40 - 24 - 32);
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
        let rtt = pair.end(side).endpoint.sender().and_then(|sender| sender.rtt());
        assert_eq!(rtt, Some(ms(100)), "{side:?}");
    }
}

/// A frame is accepted only when the CCID permits, one at a time; it leaves with the next poll.
#[test]
fn room_is_the_permit() {
    let mut alone = Alone::client(&plain());
    assert_eq!(alone.endpoint.send_capacity(), 0);
    alone.input(Input::Open);
    assert_eq!(alone.endpoint.send_capacity(), 0);
    alone.arrive(Kind::Response { ack: alone.ack(), service: SERVICE }, &CONFIRMS);
    assert_eq!(alone.events, [Event::Connected, Event::Writable]);
    let mut sent = 0;
    while alone.endpoint.send_capacity() > 0 {
        assert_eq!(alone.send(100).len(), 1);
        sent += 1;
    }
    // RFC 4341 §5, RFC 3390: four packets at first.
    assert_eq!(sent, 4);
    alone.events.clear();
    let vector = Opt::AckVector { nonce: false, cells: &[4] };
    alone.arrive(Kind::Ack { ack: alone.ack() }, &[vector]);
    assert_eq!(alone.events, [Event::Writable]);
    assert!(alone.endpoint.send_capacity() > 0);
}

/// RFC 6773: inside UDP the path MTU has 8 bytes less for DCCP.
#[test]
fn an_encapsulation_takes_its_bytes_off_the_room() {
    let room = |overhead_bytes| {
        let client = Dccp::client(&plain(), Rng::new(1, "client")).under(overhead_bytes);
        let mut pair = Pair::between(client, Dccp::listener(&plain(), Rng::new(1, "server")));
        pair.send(Client, 10);
        pair.send(Server, 10);
        pair.connect();
        let room = pair.client.endpoint.send_capacity();
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
