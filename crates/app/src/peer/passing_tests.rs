//! Datagrams that bypass their transport: there must be no visible difference.

use proptest::prelude::*;
use talkspurt_proto::body::Body;
use talkspurt_proto::packet::{Ecn, PathId};
use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::rtcp;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

use super::ladder_tests::{Shelf, parts, unheard};
use super::{Action, Parts, Peer, Sink, Sizing};
use crate::clock::Clock;
use crate::source::{self, Material, Speech, Video};
use crate::transport::Side;
use crate::{codec::Codec, playout};

const MS: Duration = Duration::from_millis(1);

/// All notes, in order.
#[derive(Default)]
struct Eye(Vec<String>);

impl Probe for Eye {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        self.0.push(format!("{now:?} {place:?} {note:?}"));
    }
}

#[derive(Clone, Copy, Debug)]
struct Talk {
    /// Whether both sides send, or one.
    both: bool,
    /// Video, several packets at a time, instead of speech.
    video: bool,
    rtcp: bool,
    noise: Duration,
    offset_nanos: u64,
    sizing: Sizing,
}

fn side(side: Side, talk: Talk) -> Parts {
    let speaks = talk.both || side == Side::Opens;
    let source = if talk.video {
        source::Config::Video(Video {
            file: None,
            repeat: false,
            repair: None,
            rate: Some(Rate::from_bps(800_000)),
            encoder: None,
            frame: None,
            packet: Size::from_bytes(1200),
            deadline: MS * 400,
            noise: talk.noise,
        })
    } else {
        source::Config::Speech(Speech { noise: talk.noise, ..unheard(Codec::Pcmu) })
    };
    let other_speaks = talk.both || side == Side::Answers;
    let base = parts(side, playout::Config::fixed(Duration::from_millis(60)));
    let played = parts(Side::Answers, playout::Config::fixed(Duration::from_millis(60))).sink;
    let counted = source.packet_format(&Material::None).map(Sink::Counted);
    Parts {
        source: speaks.then(|| (source, Material::None)),
        sink: if talk.video { counted } else { played }.filter(|_| other_speaks),
        // Reports so frequent that some are due together with a packet.
        others_until: None,
        rtcp: rtcp::Config {
            enabled: talk.rtcp,
            bandwidth_fraction: 1.0,
            minimum_interval: MS * 50,
            ..base.rtcp.clone()
        },
        clock: Clock::new(talk.offset_nanos, 0.0),
        sizing: talk.sizing,
        stop: Instant::ZERO + MS * 12_000,
        ..base
    }
}

/// A conversation over 30 ms each way, polled every millisecond; returns what each side noted and sent.
fn hold(talk: Talk, passes: bool) -> [Vec<String>; 2] {
    let mut peers = [Side::Opens, Side::Answers].map(|it| Peer::new(side(it, talk)));
    peers.iter_mut().for_each(|peer| peer.force_slow_path = !passes);
    let (mut eyes, mut shelf) = ([Eye::default(), Eye::default()], Shelf::default());
    let mut wire: Vec<(u64, usize, (PathId, Ecn), Body)> = Vec::new();
    for ms in 0..13_000 {
        let now = Instant::ZERO + MS * ms;
        let (due, later) = wire.into_iter().partition::<Vec<_>, _>(|(at, ..)| *at <= ms);
        wire = later;
        // Arrivals come before due work.
        let arrivals = due.into_iter().map(|(_, to, how, body)| (to, Some((how, body))));
        for (to, arrival) in arrivals.chain([(0, None), (1, None)]) {
            let (peer, eye) = (&mut peers[to], &mut eyes[to]);
            let is_news = if let Some((how, mut body)) = arrival {
                eye.0.push(format!("{now:?} received {body:?}"));
                peer.receive(now, how, &mut body, eye)
            } else {
                peer.wake(now, eye);
                true
            };
            while is_news
                && let Action::Send { path, ecn, ip_bytes, .. } = peer.poll(now, &mut shelf, eye)
            {
                let body = shelf.take();
                eye.0.push(format!("{now:?} sent {ip_bytes} {body:?}"));
                wire.push((ms + 30, 1 - to, (path, ecn), body));
            }
        }
    }
    eyes.map(|eye| eye.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Compares with the path through the transport, also when reports, several packets of one frame and
    /// arrivals coincide.
    #[test]
    fn a_short_way_is_the_long_one(
        (both, video, rtcp, ns2) in any::<(bool, bool, bool, bool)>(),
        noise in prop_oneof![Just(0), Just(1), Just(7)],
        offset_ms in 0_u64..30,
    ) {
        let sizing = if ns2 { Sizing::Ns2 } else { Sizing::Rfc };
        let offset_nanos = offset_ms * 1_000_000;
        let talk = Talk { both, video, rtcp, noise: MS * noise, offset_nanos, sizing };
        let [short, long] = [true, false].map(|passes| hold(talk, passes));
        let sent = short[0].iter().filter(|line| line.contains("sent")).count();
        prop_assert!(sent > 300, "{sent}");
        for (short, long) in short.iter().zip(&long) {
            let differs = short.iter().zip(long).find(|(short, long)| short != long);
            prop_assert_eq!(differs, None);
            prop_assert_eq!(short.len(), long.len());
        }
    }
}
