//! An excerpt of a run, packet by packet: when each reached a link, left its queue, and arrived or was
//! dropped. For the rest of the run, only packets in flight are kept in memory.

use std::collections::VecDeque;

use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;

use crate::columns::{Columns, Moment, Table};
use crate::in_flight::InFlight;
use crate::layout::Layout;
use crate::packets::HopOutcome;

/// When an excerpt begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this instant.
    At(Instant),
    /// Before the first drop in the measure window of a packet of a flow with this number or a higher one.
    BeforeDrop(u32),
    /// With the first packet in the measure window of a flow with this number or a higher one.
    WithPacket(u32),
}

/// A probe that keeps the packets of an excerpt. Its memory is bounded by the number of packets to keep and of
/// packets in flight.
#[derive(Debug)]
pub struct Excerpt {
    layout: Layout,
    begins: Begin,
    /// Every packet on a link from here on is kept.
    from: Instant,
    to: Instant,
    most: usize,
    /// Whether the excerpt has begun; until then only the most recent packets are kept.
    begun: bool,
    /// It is complete: no further note is taken.
    ended: bool,
    in_flight: InFlight<Hop>,
    gone: VecDeque<Hop>,
    next: u64,
}

/// The passage of a packet over one link.
#[derive(Clone, Copy, Debug)]
struct Hop {
    enqueued: Instant,
    dequeued: Moment,
    ended: Moment,
    /// Order of arrival at links.
    order: u64,
    sender: u32,
    number: u32,
    link: u32,
    ip_bytes: u32,
    fate: HopOutcome,
}

/// What an [`Excerpt`] kept.
#[derive(Debug)]
pub struct Shown {
    /// Its beginning.
    pub from: Instant,
    /// Its end, excluded; not after `from` if more packets than the limit were in flight at once.
    pub to: Instant,
    /// A row for each packet and link, in order of arrival at the link.
    pub hops: Table,
    /// How many of them were dropped.
    pub drops: usize,
}

/// The share of the kept packets that may precede the first drop, as a divisor.
const BEFORE: usize = 4;

impl Excerpt {
    /// At most `most` packets, counted on each link, that are on a link between its beginning and `to`.
    #[must_use]
    pub fn new(layout: Layout, begin: Begin, to: Instant, most: usize) -> Self {
        let from = if let Begin::At(from) = begin { Some(from) } else { None };
        Self {
            layout,
            begins: begin,
            from: from.unwrap_or(Instant::ZERO),
            to,
            most,
            begun: from.is_some(),
            ended: false,
            in_flight: InFlight::default(),
            gone: VecDeque::new(),
            next: 0,
        }
    }

    /// Names a flow that the layout reserved for real hosts.
    ///
    /// # Panics
    /// If the layout has no such flow.
    pub fn name_flow(&mut self, index: usize, name: &str) {
        name.clone_into(&mut self.layout.flows[index].name);
    }

    /// Whether it began with what it is to begin with.
    #[must_use]
    pub const fn begun(&self) -> bool {
        self.begun
    }

    /// Whether the excerpt is complete, once everything before `now` has been reported.
    #[must_use]
    pub fn complete(&self, now: Instant) -> bool {
        now >= self.to || self.holds(now, self.most)
    }

    /// Whether it has begun and holds so many packets.
    fn holds(&self, now: Instant, packets: usize) -> bool {
        self.begun && now > self.from && self.gone.len() + self.in_flight.count >= packets
    }

    /// The kept packets, once everything before `now` has been reported.
    #[must_use]
    pub fn finish(self, now: Instant) -> Shown {
        let (from, mut to) = (self.from, self.to.min(now));
        let in_flight = self.in_flight.into_all();
        let mut hops: Vec<Hop> = self.gone.into_iter().chain(in_flight).collect();
        hops.retain(|hop| hop.enqueued < to);
        hops.sort_by_key(|hop| (hop.enqueued, hop.order));
        if let Some(beyond) = hops.get(self.most) {
            to = beyond.enqueued;
            hops.retain(|hop| hop.enqueued < to);
        }
        let drops = hops.iter().filter(|hop| matches!(hop.fate, HopOutcome::Dropped(_))).count();
        Shown { from, to, hops: table(&hops, &self.layout), drops }
    }

    fn begin(&mut self, now: Instant, link: u32, packet: &Packet) {
        // Far more than are shown, of which the latest are not.
        if self.holds(now, 2 * self.most) {
            self.to = self.to.min(now);
        }
        if now >= self.to {
            return;
        }
        let Some(sender) = self.layout.sender(packet) else { return };
        let is_awaited = matches!(self.begins, Begin::WithPacket(first) if packet.flow >= first);
        if !self.begun && is_awaited && now >= self.layout.from {
            (self.begun, self.from) = (true, now);
            self.gone.clear();
        }
        let hop = Hop {
            enqueued: now,
            dequeued: Moment::NEVER,
            ended: Moment::NEVER,
            order: self.next,
            sender: sender as u32,
            number: packet.number,
            link,
            ip_bytes: packet.ip_bytes,
            fate: HopOutcome::Queued,
        };
        self.next += 1;
        self.in_flight.keep(packet, hop);
    }

    /// The current hop of a packet on this link.
    fn hop(&mut self, link: u32, packet: &Packet) -> Option<&mut Hop> {
        self.in_flight.get_mut(packet).filter(|hop| hop.link == link)
    }

    fn end(&mut self, now: Instant, link: u32, packet: &Packet, fate: HopOutcome) {
        if self.hop(link, packet).is_none() {
            return;
        }
        let Some(mut hop) = self.in_flight.take(packet) else { return };
        (hop.ended, hop.fate) = (now.into(), fate);
        if self.begun {
            if now >= self.from {
                self.gone.push_back(hop);
            }
            return;
        }
        self.gone.push_back(hop);
        let is_drop = matches!(fate, HopOutcome::Dropped(_)) && now >= self.layout.from;
        if is_drop && matches!(self.begins, Begin::BeforeDrop(first) if packet.flow >= first) {
            self.begun = true;
        } else if self.gone.len() > self.most / BEFORE {
            // Evicted packets had left by then: from that instant on, all are known.
            let forgotten = self.gone.pop_front().and_then(|hop| hop.ended.instant());
            self.from = forgotten.map_or(self.from, |ended| self.from.max(ended));
        }
    }

    fn dropped(&mut self, now: Instant, link: u32, packet: &Packet, why: DropReason) {
        // A packet dropped at enqueue has not been reported before.
        if self.hop(link, packet).is_none() {
            self.begin(now, link, packet);
        }
        self.end(now, link, packet, HopOutcome::Dropped(why));
    }
}

impl Probe for Excerpt {
    #[inline]
    fn wants(&self, topic: Topic) -> bool {
        !self.ended && matches!(topic, Topic::Hop | Topic::Drop | Topic::Packet)
    }

    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        let Place::Link(link) = place else { return };
        if self.ended {
            return;
        }
        match *note {
            Note::Enqueued { packet, .. } => self.begin(now, link, packet),
            Note::Dequeued { packet, .. } => {
                if let Some(hop) = self.hop(link, packet) {
                    (hop.dequeued, hop.fate) = (now.into(), HopOutcome::InFlight);
                }
            }
            Note::Arrived { packet } => self.end(now, link, packet, HopOutcome::Received),
            Note::Dropped { packet, why } => self.dropped(now, link, packet, why),
            Note::Copied { packet, .. } => {
                self.begin(now, link, packet);
                if let Some(hop) = self.hop(link, packet) {
                    (hop.dequeued, hop.fate) = (now.into(), HopOutcome::InFlight);
                }
            }
            _ => {}
        }
    }

    fn settled(&mut self, now: Instant) {
        if !self.ended && self.complete(now) {
            (self.ended, self.to) = (true, self.to.min(now));
        }
    }
}

fn table(hops: &[Hop], layout: &Layout) -> Table {
    let ended = |wanted: fn(&HopOutcome) -> bool| {
        let ended = move |hop: &Hop| if wanted(&hop.fate) { hop.ended } else { Moment::NEVER };
        hops.iter().map(ended)
    };
    Columns::default()
        .text("flow", hops.iter().map(|hop| layout.peer_name(hop.sender).0))
        .text("side", hops.iter().map(|hop| layout.peer_name(hop.sender).1))
        .count("number", hops.iter().map(|hop| hop.number.into()))
        .text("link", hops.iter().map(|hop| layout.links[hop.link as usize].name.as_str()))
        .count("ip_bytes", hops.iter().map(|hop| hop.ip_bytes.into()))
        .time("enqueued_s", hops.iter().map(|hop| hop.enqueued))
        .maybe_time("dequeued_s", hops.iter().map(|hop| hop.dequeued))
        .maybe_time("received_s", ended(|fate| matches!(fate, HopOutcome::Received)))
        .maybe_time("dropped_s", ended(|fate| matches!(fate, HopOutcome::Dropped(_))))
        .text("fate", hops.iter().map(|hop| hop.fate.name()))
        .finish()
        .into()
}
