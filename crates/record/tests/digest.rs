//! The digest depends on every field of every note and on nothing else.

mod support;

use bytes::Bytes;
use proptest::prelude::*;
use support::{
    Line, Told, dccp_ack, dccp_rtp, ms, packet, refusal, rtp, segment, tell, tfrc_feedback,
    tfrc_rtp,
};
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::dccp::{self, Kind, ResetCode, WireSeq};
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{BodyId, Ecn, IpVersion, Packet, Payload, Quote};
use talkspurt_proto::probe::{DropReason, Gauge, Note, Place, Playout, RxError};
use talkspurt_proto::rtcp::{Compound, ReportBlock};
use talkspurt_proto::tcp::{Flags, SackBlocks};
use talkspurt_proto::tfrc;
use talkspurt_proto::time::Duration;
use talkspurt_record::Digest;
use xxhash_rust::xxh3::xxh3_128;

fn digest(script: &[Told]) -> String {
    let mut digest = Digest::new(16, 16);
    tell(script, &mut digest);
    digest.hex()
}

fn one(line: Line) -> String {
    digest(&[Told { at: ms(1), place: Place::Link(0), line }])
}

/// The digests differ, and together match those first published.
#[track_caller]
fn all_differ(digests: &[String], frozen: &str) {
    let mut sorted = digests.to_vec();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), digests.len());
    assert!(digests.iter().all(|hex| hex.len() == 32));
    assert_eq!(format!("{:032x}", xxh3_128(digests.join(" ").as_bytes())), frozen);
}

#[test]
fn every_field_of_a_label_counts_but_the_pool_slot() {
    let base = packet(0, 1, 200, ms(5));
    let of = |change: &dyn Fn(&mut Packet)| {
        let mut packet = base;
        change(&mut packet);
        one(Line::Arrived(packet))
    };
    all_differ(
        &[
            of(&|_| {}),
            of(&|packet| packet.ip_bytes += 1),
            of(&|packet| packet.route += 1),
            of(&|packet| packet.flow += 1),
            of(&|packet| packet.number += 1),
            of(&|packet| packet.hop += 1),
            of(&|packet| packet.ecn = Ecn::Ce),
            of(&|packet| packet.dscp = 46),
            of(&|packet| packet.version = IpVersion::V6),
            of(&|packet| packet.sent = ms(6)),
        ],
        "4904fdf0d8fccd5e4a3e23c81c6b5949",
    );
    assert_eq!(of(&|_| {}), of(&|packet| packet.body = BodyId(99)));
}

#[test]
fn every_kind_of_note_and_each_of_its_fields_counts() {
    let label = packet(0, 1, 200, ms(5));
    let plain = |note| one(Line::Plain(note));
    all_differ(
        &[
            digest(&[]),
            one(Line::Enqueued(label, 1, 200)),
            one(Line::Enqueued(label, 2, 200)),
            one(Line::Enqueued(label, 1, 201)),
            one(Line::Dequeued(label, 1, 200)),
            one(Line::Arrived(label)),
            one(Line::Dropped(label, DropReason::Full)),
            one(Line::Dropped(label, DropReason::Down)),
            plain(Note::Generated { index: 1, bytes: 160, captured: ms(1) }),
            plain(Note::Generated { index: 2, bytes: 160, captured: ms(1) }),
            plain(Note::Generated { index: 1, bytes: 161, captured: ms(1) }),
            plain(Note::Generated { index: 1, bytes: 160, captured: ms(2) }),
            plain(Note::HandedOver { index: 1 }),
            plain(Note::Discarded { index: 1 }),
            plain(Note::Delivered { index: 1, bytes: 160 }),
            plain(Note::Delivered { index: 1, bytes: 161 }),
            plain(Note::Decided { index: 1, playout: Playout::Played(ms(1)) }),
            plain(Note::Decided { index: 1, playout: Playout::Late(ms(1)) }),
            plain(Note::Decided { index: 1, playout: Playout::Duplicate }),
            plain(Note::Gauge { gauge: Gauge::Cwnd, value: 1.0 }),
            plain(Note::Gauge { gauge: Gauge::Cwnd, value: 1.0 + f64::EPSILON }),
            plain(Note::Gauge { gauge: Gauge::Srtt, value: 1.0 }),
            plain(Note::Event(Event::Connected)),
            plain(Note::Event(Event::Reset)),
            plain(Note::RxError(RxError::Checksum)),
            plain(Note::RxError(RxError::BadAck)),
        ],
        "cc7450de0e904147eaa14a5fc41ff5b1",
    );
    // Pauses came later; a list of their own leaves the digest above as it was.
    all_differ(
        &[
            plain(Note::Decided { index: 1, playout: Playout::Duplicate }),
            plain(Note::Paused { index: 1, length: Duration::from_millis(1) }),
            plain(Note::Paused { index: 2, length: Duration::from_millis(1) }),
            plain(Note::Paused { index: 1, length: Duration::from_millis(2) }),
        ],
        "ad84ec3fa82c3f5f516029adf61d05b5",
    );
}

#[test]
fn every_header_field_and_every_byte_that_matters_counts() {
    let label = packet(0, 1, 200, ms(5));
    let sent = |body: Body| one(Line::Sent(label, body));
    let tcp = |change: &dyn Fn(&mut talkspurt_proto::tcp::Segment)| {
        let Body::Tcp(mut segment) = segment(1, 100) else { unreachable!() };
        change(&mut segment);
        sent(Body::Tcp(segment))
    };
    let voice = |change: &dyn Fn(&mut talkspurt_proto::rtp::Packet)| {
        let Body::Udp(Frame::Rtp(mut packet)) = rtp(3, 160) else { unreachable!() };
        change(&mut packet);
        sent(Body::Udp(Frame::Rtp(packet)))
    };
    let report = |change: &dyn Fn(&mut Compound)| {
        let mut compound = Compound { ssrc: 7, cname: "a".into(), ..Compound::default() };
        compound.reports = vec![ReportBlock::default()];
        change(&mut compound);
        sent(Body::Udp(Frame::Rtcp(Box::new(compound))))
    };
    let too_big = |mtu: u32, change: &dyn Fn(&mut Quote)| {
        let Body::TooBig { mut quote, .. } = refusal(mtu) else { unreachable!() };
        change(&mut quote);
        sent(Body::TooBig { mtu, quote })
    };
    all_differ(
        &[
            tcp(&|_| {}),
            tcp(&|segment| segment.seq += 1),
            tcp(&|segment| segment.ack += 1),
            tcp(&|segment| segment.window += 1),
            tcp(&|segment| segment.flags = Flags::SYN),
            tcp(&|segment| segment.mss = Some(0)),
            tcp(&|segment| segment.mss = Some(1460)),
            tcp(&|segment| segment.window_scale = Some(0)),
            tcp(&|segment| segment.timestamps = None),
            tcp(&|segment| segment.sack_permitted = true),
            tcp(&|segment| segment.sack = SackBlocks::of([(1, 2)])),
            tcp(&|segment| segment.sack = SackBlocks::of([(1, 3)])),
            tcp(&|segment| segment.sack = SackBlocks::of([(1, 2), (4, 5)])),
            tcp(&|segment| segment.timestamps = Some((1, 3))),
            tcp(&|segment| segment.payload = Payload::Virtual { offset: 2, len: 100 }),
            tcp(&|segment| segment.payload = Payload::Virtual { offset: 1, len: 101 }),
            voice(&|_| {}),
            voice(&|packet| packet.payload_type = 8),
            voice(&|packet| packet.marker = true),
            voice(&|packet| packet.sequence += 1),
            voice(&|packet| packet.timestamp += 1),
            voice(&|packet| packet.ssrc += 1),
            voice(&|packet| packet.transport = Some(0)),
            voice(&|packet| packet.transport = Some(1)),
            voice(&|packet| packet.padding = 1),
            voice(&|packet| packet.payload = Payload::Real(Bytes::from_static(&[0; 161]))),
            tcp(&|segment| segment.payload = Payload::Real(Bytes::from_static(&[0; 100]))),
            report(&|_| {}),
            report(&|compound| compound.ssrc = 8),
            report(&|compound| compound.cname = "b".into()),
            report(&|compound| compound.reports[0].jitter = 1),
            too_big(576, &|_| {}),
            too_big(577, &|_| {}),
            too_big(577, &|quote| quote.ip_bytes += 1),
            too_big(577, &|quote| quote.mark += 1),
            too_big(577, &|quote| quote.ttl -= 1),
            too_big(577, &|quote| quote.dscp = 46),
            too_big(577, &|quote| quote.ecn = Ecn::Ce),
            too_big(577, &|quote| quote.transport = talkspurt_proto::udp::wire::quoted(8)),
            too_big(577, &|quote| quote.transport = talkspurt_proto::tcp::wire::quoted(2)),
            one(Line::Received(label, refusal(577))),
            one(Line::Answered(label, label, refusal(577))),
        ],
        "47aabff0a253056fc2692d65793491fa",
    );
    // A recording's content does not affect the run, only its length does.
    let said =
        |byte: u8| voice(&|packet| packet.payload = Payload::Real(Bytes::from(vec![byte; 160])));
    assert_eq!(said(0), said(1));
}

#[test]
fn every_field_of_dccp_counts() {
    let label = packet(0, 1, 200, ms(5));
    let sent = |body: Body| one(Line::Sent(label, body));
    let dccp = |base: Body, change: &dyn Fn(&mut dccp::Packet)| {
        let Body::Dccp(mut packet) = base else { unreachable!() };
        change(&mut packet);
        sent(Body::Dccp(packet))
    };
    let speech = |change: &dyn Fn(&mut dccp::Packet)| dccp(dccp_rtp(3, 160), change);
    let kind = |kind: Kind| dccp(dccp_ack(7), &|packet| packet.kind = kind);
    let (ack, other) = (WireSeq::Extended(7), WireSeq::Extended(8));
    let (code, service) = (ResetCode::CLOSED, 1);
    let mut digests = vec![
        speech(&|_| {}),
        speech(&|packet| packet.seq = other),
        speech(&|packet| packet.seq = WireSeq::Short(3)),
        speech(&|packet| packet.ccval = 1),
        speech(&|packet| packet.cscov = 1),
        speech(&|packet| packet.options.push(Opt::SlowReceiver)),
        speech(&|packet| packet.options.push(Opt::Timestamp(0))),
        speech(&|packet| packet.options.push(Opt::Timestamp(1))),
        speech(&|packet| packet.payload = Frame::Data(Payload::Virtual { offset: 0, len: 172 })),
        dccp(dccp_rtp(4, 160), &|packet| packet.seq = WireSeq::Extended(3)),
        dccp(dccp_rtp(3, 161), &|_| {}),
    ];
    digests.extend(
        [
            Kind::Request { service },
            Kind::Request { service: 2 },
            Kind::Response { ack, service },
            Kind::Response { ack: other, service },
            Kind::Response { ack, service: 2 },
            Kind::Data,
            Kind::Ack { ack },
            Kind::Ack { ack: other },
            Kind::Ack { ack: WireSeq::Short(7) },
            Kind::DataAck { ack },
            Kind::CloseReq { ack },
            Kind::Close { ack },
            Kind::Reset { ack, code, data: [0; 3] },
            Kind::Reset { ack, code: ResetCode::ABORTED, data: [0; 3] },
            Kind::Reset { ack, code, data: [1, 0, 0] },
            Kind::Reset { ack, code, data: [0, 1, 0] },
            Kind::Reset { ack, code, data: [0, 0, 1] },
            Kind::Sync { ack },
            Kind::SyncAck { ack },
            Kind::Listen { service },
        ]
        .map(kind),
    );
    let quoted = |change: &dyn Fn(&mut dccp::Packet), length: u32| {
        let Body::Dccp(mut packet) = dccp_rtp(3, 160) else { unreachable!() };
        change(&mut packet);
        let mut quote = Quote::of(&label, &Body::Dccp(packet)).expect("no answer");
        quote.ip_bytes = length;
        sent(Body::TooBig { mtu: 576, quote })
    };
    digests.extend([
        quoted(&|_| {}, 1000),
        quoted(&|_| {}, 1001),
        quoted(&|packet| packet.seq = other, 1000),
        quoted(&|packet| packet.seq = WireSeq::Short(3), 1000),
        quoted(&|packet| packet.kind = Kind::DataAck { ack }, 1000),
        quoted(&|packet| packet.options.push(Opt::SlowReceiver), 1000),
        quoted(&|packet| packet.ccval = 1, 1000),
        quoted(&|packet| packet.cscov = 1, 1000),
    ]);
    all_differ(&digests, "29c85d788bf791500d30c0cf61a79cc1");
}

#[test]
fn every_field_of_tfrc_counts() {
    let label = packet(0, 1, 200, ms(5));
    let data = |change: &dyn Fn(&mut tfrc::Data)| {
        let Body::Tfrc(tfrc::Packet::Data(mut data)) = tfrc_rtp(3, 160) else { unreachable!() };
        change(&mut data);
        one(Line::Sent(label, Body::Tfrc(tfrc::Packet::Data(data))))
    };
    let feedback = |change: &dyn Fn(&mut tfrc::Feedback)| {
        let Body::Tfrc(tfrc::Packet::Feedback(mut feedback)) = tfrc_feedback() else {
            unreachable!()
        };
        change(&mut feedback);
        one(Line::Sent(label, Body::Tfrc(tfrc::Packet::Feedback(feedback))))
    };
    all_differ(
        &[
            one(Line::Sent(label, rtp(3, 160))),
            data(&|_| {}),
            data(&|data| data.seq += 1),
            data(&|data| data.timestamp += 1),
            data(&|data| data.rtt += 1),
            data(&|data| data.payload = Frame::Data(Payload::Virtual { offset: 0, len: 172 })),
            data(&|data| data.payload = Frame::Data(Payload::Virtual { offset: 0, len: 173 })),
            feedback(&|_| {}),
            feedback(&|feedback| feedback.timestamp += 1),
            feedback(&|feedback| feedback.delay += 1),
            feedback(&|feedback| feedback.receive_rate += 1),
            feedback(&|feedback| feedback.loss_event_rate += 1),
        ],
        "6974177a21a7f1033e1714834678af82",
    );
}

#[test]
fn time_and_place_count() {
    let at =
        |at, place| digest(&[Told { at, place, line: Line::Plain(Note::HandedOver { index: 0 }) }]);
    all_differ(
        &[
            at(ms(1), Place::Peer(0)),
            at(ms(2), Place::Peer(0)),
            at(ms(1), Place::Peer(1)),
            at(ms(1), Place::Link(0)),
            at(ms(1), Place::Link(1)),
        ],
        "03e9920bef860b0d080f1c9802296a10",
    );
}

fn scripts() -> impl Strategy<Value = (Vec<(u32, u32)>, Vec<usize>)> {
    prop::collection::vec((0_u32..5, any::<u32>()), 1..60).prop_flat_map(|notes| {
        let order: Vec<usize> = (0..notes.len()).collect();
        (Just(notes), Just(order).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn interleaving_of_places_does_not_count((notes, shuffled) in scripts()) {
        let place = |n: u32| if n < 2 { Place::Link(n) } else { Place::Peer(n) };
        let told = |index: usize| Told {
            at: ms(index as u64),
            place: place(notes[index].0),
            line: Line::Plain(Note::HandedOver { index: notes[index].1 }),
        };
        let in_order: Vec<Told> = (0..notes.len()).map(told).collect();
        // Another interleaving: the order of places is shuffled, each place keeps its own order.
        let mut next = [0; 5];
        let mixed: Vec<Told> = shuffled
            .iter()
            .map(|&slot| {
                let speaker = notes[slot].0;
                let own: Vec<usize> =
                    (0..notes.len()).filter(|&index| notes[index].0 == speaker).collect();
                next[speaker as usize] += 1;
                told(own[next[speaker as usize] - 1])
            })
            .collect();
        prop_assert_eq!(digest(&in_order), digest(&mixed));
        let mut swapped = in_order;
        swapped[0].at = ms(1_000_000);
        prop_assert_ne!(digest(&swapped), digest(&mixed));
    }
}

#[test]
fn order_within_a_place_counts_and_the_form_is_pinned() {
    let line = |index| Told {
        at: ms(1),
        place: Place::Peer(3),
        line: Line::Plain(Note::HandedOver { index }),
    };
    let (a, b) = (digest(&[line(1), line(2)]), digest(&[line(2), line(1)]));
    assert_ne!(a, b);
    // The canonical form, computed by hand: it changes only when every published digest changes.
    let fold = |(a, b): (u64, u64), [first, second]: [u64; 2]| {
        let first = (a ^ first).wrapping_mul(0xd134_2543_de82_ef95);
        let first = first.rotate_left(23);
        let second = (b ^ second).wrapping_mul(0xd134_2543_de82_ef95);
        (first.wrapping_add(second), first)
    };
    let empty = (0x1319_8a2e_0370_7344, 0x243f_6a88_85a3_08d3);
    let time = 1_000_000 << 15;
    let stream = [[1, time | 7], [2, time | 7]].into_iter().fold(empty, fold);
    let all = [[3 | 1 << 32, 0], [stream.0, stream.1]].into_iter().fold(empty, fold);
    let all = [[0, 0]; 5].into_iter().fold(all, fold);
    assert_eq!(a, format!("{:016x}{:016x}", all.1, all.0));
}
