//! One link under scripted arrivals: the fate of each packet and its time. For disciplines specified
//! by theory and RFCs in bytes, code points and instants.

use talkspurt_proto::body::{Bodies, Body};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Packet, Payload};
use talkspurt_proto::probe::{DropReason, Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::Rate;
use talkspurt_scenario::model;
use talkspurt_sim::link::Link;
use talkspurt_sim::pool::Pool;

use crate::support::{flow, link, parts, point, scenario};

/// A packet on its way to the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) bytes: u32,
    pub(crate) dscp: u8,
}

/// Its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its transmission began then, with this code point.
    Sent(Instant, u8),
    Dropped(DropReason),
}

impl Verdict {
    pub(crate) fn start(self) -> Option<Instant> {
        match self {
            Self::Sent(start, _) => Some(start),
            Self::Dropped(_) => None,
        }
    }
}

/// A queue's TOML, for a link of this MTU.
pub(crate) fn words(toml: &str, mtu: u32) -> model::Queue {
    let more = format!("mtu = '{mtu}B'\nqueue = {{ {toml} }}");
    let udp = "{ kind = 'cbr', rate = '8kbit/s', packet = '20B' }";
    let parts = [link("l", "a-z", "1Mbit/s", "0s", &more), flow("f", "a-z", "udp", udp, "")];
    point(&scenario("1s", &parts)).scenario.links["l"].queue.clone()
}

/// What a link does with arrivals in order of time, each by its number.
pub(crate) fn fates(queue: &str, rate: Rate, mtu: u32, arrivals: &[Arrival]) -> Vec<Verdict> {
    let mut link = Link::new(parts(&words(queue, mtu), rate, mtu));
    let (mut pool, mut journal) = (Pool::default(), Journal(vec![None; arrivals.len()]));
    for (number, arrival) in (0..).zip(arrivals) {
        let body = pool.put(|| Body::Udp(Frame::Data(Payload::default())));
        let Arrival { at, bytes, dscp } = *arrival;
        let packet = Packet { body, ip_bytes: bytes, number, dscp, sent: at, ..Packet::default() };
        let _ = link.offer(at, &packet, &mut pool, &mut journal);
        // What has arrived makes room in memory.
        while let Some(packet) = link.arrived(at).copied() {
            link.let_go(at, &packet, &mut journal);
            pool.take(packet.body);
        }
    }
    link.advance(Instant::HORIZON, &mut pool, &mut journal);
    journal.0.into_iter().map(|verdict| verdict.expect("every packet ends somewhere")).collect()
}

struct Journal(Vec<Option<Verdict>>);

impl Probe for Journal {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, now: Instant, _: Place, note: &Note<'_>) {
        let (packet, verdict) = match note {
            Note::Dequeued { packet, .. } => (packet, Verdict::Sent(now, packet.dscp)),
            Note::Dropped { packet, why } => (packet, Verdict::Dropped(*why)),
            _ => return,
        };
        let before = self.0[packet.number as usize].replace(verdict);
        assert_eq!(before, None, "{packet:?} ends twice");
    }
}
