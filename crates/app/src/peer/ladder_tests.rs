//! A sender that changes its codec during a call, and a receiver that follows by the packets alone: two peers
//! over a path of 30 ms.

use talkspurt_proto::body::{Bodies, Body};
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{BodyId, IpVersion, PathId};
use talkspurt_proto::probe::{Note, Place, Playout, Probe, RxError, Stamped};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::{rtcp, udp};

use super::{Action, MediaSink, Parts, Peer, Sink, Sizing};
use crate::clock::Clock;
use crate::codec::Codec;
use crate::source::{self, Speech};
use crate::transport::{self, Side};
use crate::{playout, send_queue};

const MS: Duration = Duration::from_millis(1);

#[derive(Debug, PartialEq)]
enum Seen {
    Made(u32, u32, u64),
    Rung(u8),
    Played(u32, u64),
    RxError(RxError),
}

/// Notes, in milliseconds.
#[derive(Default)]
struct Eye(Vec<Seen>);

impl Probe for Eye {
    fn wants(&self, _: talkspurt_proto::probe::Topic) -> bool {
        true
    }
    fn record(&mut self, _: Instant, _: Place, note: &Note<'_>) {
        let ms = |at: Instant| at.as_nanos() / 1_000_000;
        match *note {
            Note::Generated { index, bytes, captured } => {
                self.0.push(Seen::Made(index, bytes, ms(captured)));
            }
            Note::Encoding(rung) => self.0.push(Seen::Rung(rung)),
            Note::Decided { index, playout: Playout::Played(at) } => {
                self.0.push(Seen::Played(index, ms(at)));
            }
            Note::RxError(rx_error) => self.0.push(Seen::RxError(rx_error)),
            _ => {}
        }
    }
}

/// Packets of this codec without audio.
pub(super) fn unheard(codec: Codec) -> Speech {
    serde_json::from_value(serde_json::json!({ "codec": codec })).expect("a codec suffices")
}

fn speech() -> Speech {
    Speech {
        ladder: vec![Codec::Pcmu, Codec::G728, Codec::G7231At63, Codec::G7231At53],
        noise: Duration::ZERO,
        ..unheard(Codec::Pcmu)
    }
}

/// Holds a packet's body until it is taken, one at a time.
#[derive(Default)]
pub(super) struct Shelf(Option<Body>);

impl Shelf {
    pub(super) fn take(&mut self) -> Body {
        self.0.take().expect("a packet was sent")
    }
}

impl Bodies for Shelf {
    fn put(&mut self, body: impl FnOnce() -> Body) -> BodyId {
        self.0 = Some(body());
        BodyId(0)
    }
}

pub(super) fn parts(side: Side, playout: playout::Config) -> Parts {
    let opens = side == Side::Opens;
    let sink = MediaSink {
        encodings: speech().encodings(),
        flexfec: None,
        playout,
        origin: Instant::ZERO,
        keep: 0,
    };
    let sink = Sink::Played(sink);
    Parts {
        number: u32::from(!opens),
        side,
        transport: transport::Config::Udp(udp::Config::default()),
        clock: Clock::default(),
        version: IpVersion::V4,
        addresses: Vec::new(),
        dscp: 0,
        sizing: Sizing::Rfc,
        start: Instant::ZERO,
        stop: Instant::ZERO + MS * 400,
        source: opens.then(|| (source::Config::Speech(speech()), source::Material::None)),
        send_queue: send_queue::Config::default(),
        sink: (!opens).then_some(sink),
        others_until: None,
        rtcp: rtcp::Config { enabled: false, ..rtcp::Config::default() },
        control: None,
        priority: 1.0,
        seed: 1,
        name: if opens { "from" } else { "to" }.to_owned(),
        other: if opens { "to" } else { "from" }.to_owned(),
    }
}

/// A call of 400 ms whose controller requests these rungs at these milliseconds; returns the notes of both
/// sides, and the packets sent: time, payload type, timestamp relative to the first.
fn call(asked: &[(u64, u8)], playout: playout::Config) -> (Vec<Seen>, Vec<(u64, u8, u32)>, Peer) {
    let (mut eye, mut shelf) = (Eye::default(), Shelf::default());
    let mut from = Peer::new(parts(Side::Opens, playout));
    let mut to = Peer::new(parts(Side::Answers, playout));
    let (mut packets, mut wire, mut first) = (Vec::new(), Vec::new(), None);
    for ms in 0..=600 {
        let now = Instant::ZERO + MS * ms;
        from.wake(now, &mut eye);
        for (_, rung) in asked.iter().filter(|(at, _)| *at == ms) {
            let probe = &mut Stamped { probe: &mut eye, now, peer: 0 };
            let rate = speech().encodings()[usize::from(*rung)].rung().rate();
            from.on_event(now, Event::TargetRate(rate), probe);
        }
        while let Action::Send { path, ecn, .. } = from.poll(now, &mut shelf, &mut eye) {
            let body = shelf.take();
            if let Body::Udp(Frame::Rtp(rtp)) = &body {
                let since = rtp.timestamp.wrapping_sub(*first.get_or_insert(rtp.timestamp));
                packets.push((ms, rtp.payload_type, since));
            }
            wire.push((ms + 30, (path, ecn), body));
        }
        while wire.first().is_some_and(|(at, ..)| *at <= ms) {
            let (_, how, mut body) = wire.remove(0);
            to.receive(now, how, &mut body, &mut eye);
            while let Action::Send { .. } = to.poll(now, &mut shelf, &mut eye) {}
        }
    }
    (eye.0, packets, to)
}

#[test]
fn the_listener_follows_by_payload_type_and_playout_keeps_its_pace() {
    let (seen, packets, to) =
        call(&[(50, 2), (150, 1)], playout::Config::fixed(Duration::from_millis(60)));
    // Departures in whole milliseconds: the look-ahead of 7.5 ms appears as 8.
    let expected = [
        (20, 0, 0),
        (40, 0, 160),
        // Begun before the change at 50.
        (60, 0, 320),
        (98, 4, 480),
        (128, 4, 720),
        // Requested at 150: begun at 120, finished as G.723.1.
        (158, 4, 960),
        (170, 15, 1200),
        (190, 15, 1360),
    ];
    assert_eq!(packets[..8], expected);
    let rungs: Vec<_> = seen.iter().filter(|seen| matches!(seen, Seen::Rung(_))).collect();
    assert_eq!(rungs, [&Seen::Rung(2), &Seen::Rung(1)]);
    // The mark comes just before the first frame it applies to.
    let mark = seen.iter().position(|seen| *seen == Seen::Rung(2)).expect("marked");
    assert_eq!(seen[mark + 1], Seen::Made(3, 24, 60));
    // First arrival at 50, played 60 later, and 3.75 for the concealment of G.711: every frame is played 113.75
    // ms after its first sample, whatever its length.
    let captured = |index: u32| {
        let made = seen.iter().find_map(|seen| match seen {
            Seen::Made(number, _, captured) if *number == index => Some(*captured),
            _ => None,
        });
        made.expect("made before played")
    };
    let mut played = 0;
    for seen in &seen {
        if let Seen::Played(index, at) = seen {
            assert_eq!(*at, captured(*index) + 113, "{index}");
            played += 1;
        }
    }
    assert_eq!(played, packets.len());
    // Three of G.711, three of G.723.1, and G.728 from 150 to 400: 12 whole packets of 20 ms.
    assert_eq!(to.heard(), [3, 12, 3, 0]);
    assert!(!seen.iter().any(|seen| matches!(seen, Seen::RxError(_))));
}

#[test]
fn two_rates_of_one_payload_type_are_told_apart_by_length() {
    let (_, packets, to) =
        call(&[(0, 2), (200, 3)], playout::Config::fixed(Duration::from_millis(60)));
    assert!(packets.iter().all(|(_, payload_type, _)| *payload_type == 4));
    // 6.3 kbit/s from 0 to 210, then 5.3 until the stop: packets complete, look-ahead included, by 400 are
    // those of 210 to 390.
    assert_eq!(to.heard(), [0, 0, 7, 6]);
}

#[test]
fn by_the_senders_clock_the_longest_packet_sets_the_delay() {
    let config = playout::Config {
        anchor: Some(playout::Anchor::Capture),
        ..playout::Config::fixed(MS * 50)
    };
    let (seen, ..) = call(&[(50, 2)], config);
    // 30 ms of packet, 50 of buffer, 3.75 of concealment, for short packets and long ones.
    let first = seen.iter().find(|seen| matches!(seen, Seen::Played(0, _)));
    assert_eq!(first, Some(&Seen::Played(0, 83)));
    let fourth = seen.iter().find(|seen| matches!(seen, Seen::Played(3, _)));
    assert_eq!(fourth, Some(&Seen::Played(3, 60 + 83)));
}

#[test]
fn what_was_not_agreed_on_is_ignored() {
    let mut eye = Eye::default();
    let mut to = Peer::new(parts(Side::Answers, playout::Config::fixed(Duration::from_millis(60))));
    let mut sender = super::packets::media_sender(1, "from", (18, 8000));
    let payload = talkspurt_proto::packet::Payload::Virtual { offset: 0, len: 20 };
    let packet = sender.packet(0, true, payload);
    let mut body = Body::Udp(Frame::Rtp(packet));
    let ecn = talkspurt_proto::packet::Ecn::NotEct;
    to.receive(Instant::ZERO + MS, (PathId(0), ecn), &mut body, &mut eye);
    while let Action::Send { .. } = to.poll(Instant::ZERO + MS, &mut Shelf::default(), &mut eye) {}
    assert_eq!(eye.0, [Seen::RxError(RxError::Unexpected)]);
    assert_eq!(to.heard(), [0; 4]);
}
