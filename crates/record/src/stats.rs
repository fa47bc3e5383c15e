//! Streaming accounts per direction of a flow: the probe of large runs.
//!
//! No packet is kept: only two bits for each in flight, three for each voice frame, and sums. Every note
//! that belongs to an account is also returned as a [`Fact`], from which the [`Recorder`](crate::Recorder)
//! builds the tables that need memory.

use std::collections::{BTreeMap, BTreeSet};

use talkspurt_proto::body::{Body, Layers};
use talkspurt_proto::external::Class;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::prefetch::prefetch;
use talkspurt_proto::probe::{
    Gauge, Messages, Note, Place, Playout, Probe, RxError, StackNote, Topic, UNNUMBERED, Units,
};
use talkspurt_proto::time::{Duration, Instant};

use crate::account::Account;
use crate::frame_state::{FrameOutcome, FrameState};
use crate::layout::{Layout, RouteInfo, sender};
use crate::sum::Sum;
use crate::summary::{FlowSummary, MessageAccount};
use crate::video::{self, Video};
use crate::voice::Voice;

/// The accounts of every direction.
#[derive(Debug)]
pub struct Stats {
    routes: Vec<RouteInfo>,
    window: Window,
    /// By peer; `None` for a side without a source.
    accounts: Vec<Option<Account>>,
    /// By sending peer, for transports that report it: few flows do, and a field would enlarge all accounts.
    waits: BTreeMap<u32, Waits>,
    /// The last account of messages of each peer with an external stack, and how many it discarded in the
    /// window.
    messages: BTreeMap<u32, (Messages, u64)>,
    /// Pauses of playout before frames of the window: number and total length in nanoseconds.
    pauses: BTreeMap<u32, (u32, u64)>,
    /// The redundancy of received packets, by sending peer: few codecs have any.
    redundancy: BTreeMap<u32, Redundancy>,
    /// Packets and bytes of feedback about what each peer sends.
    feedback: BTreeMap<u32, (u64, u64)>,
    /// Packets and bytes of parity and retransmissions that each peer sends.
    repair: BTreeMap<(u32, bool), (u64, u64)>,
    /// Packets rejected by each peer.
    rejected: Vec<Rejected>,
    /// Packets that a router cut and of which fragments are on their way, by sending peer and number.
    cut: BTreeMap<(u32, u32), Pieces>,
    /// Units that datagrams of data without media delivered since a medium copied one, by sending peer, number
    /// and bytes: the transports do not drop copies, and nothing that was delivered before the first is
    /// delivered again. Number and bytes together are unique among units that do not overlap.
    delivered: BTreeSet<(u32, u32, u32)>,
}

/// The fragments of a packet.
#[derive(Clone, Copy, Debug)]
struct Pieces {
    on_their_way: u32,
    is_lost: bool,
}

impl Pieces {
    /// Of a packet before it is cut.
    const WHOLE: Self = Self { on_their_way: 1, is_lost: false };
}

/// Head-of-line waiting times of messages that were delivered in the window.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    all: Sum,
    held_back: u64,
    longest: u64,
}

/// The redundancy that a codec made of the frames delivered from the window.
#[derive(Clone, Copy, Debug, Default)]
struct Redundancy {
    /// Of the last packet: whether it has in-band FEC, and the depth of its deep redundancy.
    fec: Option<bool>,
    deep_s: Option<f64>,
    frames: u64,
    with_fec: u64,
    with_deep: u64,
    depths_s: f64,
}

impl Redundancy {
    fn count(&mut self) {
        let deep_s = self.deep_s.unwrap_or(0.0);
        self.frames += 1;
        self.with_fec += u64::from(self.fec == Some(true));
        self.with_deep += u64::from(deep_s > 0.0);
        self.depths_s += deep_s;
    }

    fn add_to(&self, summary: &mut FlowSummary) {
        let share = |part: u64| (self.frames > 0).then(|| part as f64 / self.frames as f64);
        summary.fec_ratio = self.fec.and_then(|_| share(self.with_fec));
        summary.dred_ratio = self.deep_s.and_then(|_| share(self.with_deep));
        summary.dred_depth_mean_s =
            (self.with_deep > 0).then(|| self.depths_s / self.with_deep as f64);
    }
}

/// Packets that reached a peer in the measure window and were rejected.
#[derive(Clone, Copy, Debug, Default)]
struct Rejected {
    packets: u32,
    /// Of these, with a wrong checksum.
    damaged: u32,
}

/// An interpreted note: the direction it concerns and whether it falls into the measure window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    pub(crate) peer: usize,
    pub(crate) inside: bool,
    pub(crate) what: What,
}

/// What happened; [`What::Continued`]: more of a packet that was received.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Generated { captured: Instant, bytes: u32 },
    HandedOver { index: u32 },
    Discarded,
    Delivered { index: u32, bytes: u32 },
    Played { index: u32, at: Instant, after: Duration },
    Late { index: u32, at: Instant },
    Sent { bytes: u32 },
    Received { bytes: u32, delay: Duration },
    Continued { bytes: u32 },
    Lost,
    Encoding { rung: u8 },
}

#[derive(Clone, Copy, Debug)]
struct Window {
    from: u64,
    nanos: u64,
}

impl Window {
    #[inline(always)]
    fn holds(self, at: Instant) -> bool {
        at.as_nanos().wrapping_sub(self.from) < self.nanos
    }
}

impl Stats {
    /// Empty accounts for the flows of `layout`.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        let account = |side: &Option<crate::SideInfo>| {
            let side = side.as_ref()?;
            let voice = side.frame.map(|frame| Voice::new(frame, layout.duration));
            let limits = side.deadline.map(|deadline| (deadline, side.rests));
            let video = limits.map(|limits| Box::new(Video::new(limits)));
            Some(Account { voice, video, ..Account::default() })
        };
        Self {
            rejected: vec![Rejected::default(); 2 * layout.flows.len()],
            routes: layout.routes.clone(),
            window: Window { from: layout.from.as_nanos(), nanos: layout.window().as_nanos() },
            accounts: layout.flows.iter().flat_map(|flow| flow.sides.iter().map(account)).collect(),
            waits: BTreeMap::new(),
            messages: BTreeMap::new(),
            pauses: BTreeMap::new(),
            redundancy: BTreeMap::new(),
            feedback: BTreeMap::new(),
            repair: BTreeMap::new(),
            cut: BTreeMap::new(),
            delivered: BTreeSet::new(),
        }
    }

    /// Closes the accounts: one row per side with a source, in order of flows and sides. Quantiles are
    /// absent, because no delay was kept. Whether the accounts balance says [`FlowSummary::conservation`];
    /// notes of another machine may be such that they do not.
    #[must_use]
    pub fn finish(&self, layout: &Layout) -> Vec<FlowSummary> {
        let seconds = layout.window().as_secs_f64();
        let rows = layout.directions().filter_map(|direction| {
            let account = self.accounts[direction.peer].as_ref()?;
            let pauses = self.pauses.get(&(direction.peer as u32)).copied().unwrap_or_default();
            let mut summary = account.summary(&direction, seconds, pauses);
            let end = Instant::ZERO + layout.duration;
            let video = account.video.as_ref();
            summary.video = video.map(|video| video.summary(layout.from, layout.to, end));
            if let Some(waits) = self.waits.get(&(direction.peer as u32)) {
                summary.held_back_packets = Some(waits.held_back);
                summary.head_of_line_mean_s = waits.all.mean(1e9);
                summary.head_of_line_max_s =
                    Some(Duration::from_nanos(waits.longest).as_secs_f64());
            }
            self.add_messages(direction.peer as u32, &mut summary);
            if let Some(redundancy) = self.redundancy.get(&(direction.peer as u32)) {
                redundancy.add_to(&mut summary);
            }
            if let Some((packets, bytes)) = self.feedback.get(&(direction.peer as u32)) {
                summary.feedback_packets = Some(*packets);
                summary.feedback_bytes = Some(*bytes);
            }
            let beside =
                |is_padding| self.repair.get(&(direction.peer as u32, is_padding)).copied();
            (summary.repair_packets, summary.repair_bytes) = beside(false).unzip();
            (summary.padding_packets, summary.padding_bytes) = beside(true).unzip();
            // A side without a source has no account, and sends only control packets.
            let other = direction.peer ^ 1;
            let own = self.accounts[other].is_none().then_some(direction.peer);
            if !direction.source.is_real() {
                let peers = || [Some(other), own].into_iter().flatten();
                let sum = |of: fn(&Rejected) -> u32| {
                    Some(peers().map(|peer| u64::from(of(&self.rejected[peer]))).sum())
                };
                summary.rejected_packets = sum(|counted| counted.packets);
                summary.damaged_packets = sum(|counted| counted.damaged);
            }
            Some(summary)
        });
        rows.collect()
    }

    /// Adds a note to its account and returns its meaning, if any. Inlined: the caller knows the kind of
    /// note, and if the result is unused, no fact is built.
    #[inline(always)]
    pub(crate) fn take(&mut self, now: Instant, place: Place, note: &Note<'_>) -> Option<Fact> {
        let (peer, inside, what) = match (place, note) {
            (Place::Peer(peer), Note::Generated { index, captured, bytes }) => {
                let inside = self.generated(peer, *index, *captured, *bytes)?;
                (peer, inside, What::Generated { captured: *captured, bytes: *bytes })
            }
            (Place::Peer(peer), Note::HandedOver { index }) => {
                let inside = self.left_queue(peer, *index, FrameState::HandedOver)?;
                (peer, inside, What::HandedOver { index: *index })
            }
            (Place::Peer(peer), Note::Discarded { index }) => {
                (peer, self.left_queue(peer, *index, FrameState::Discarded)?, What::Discarded)
            }
            (Place::Peer(peer), Note::Sent { packet, body }) => {
                let Some(layers) = data_layers(body) else {
                    self.control_sent(peer, packet, Some(body));
                    return None;
                };
                return self.sent(peer, packet, layers, matches!(body, Body::Tcp(_)));
            }
            (Place::Link(_), Note::Cut { packet, is_more: true, .. }) => {
                let peer = sender(&self.routes, packet)? as u32;
                if packet.number != UNNUMBERED {
                    let pieces = self.cut.entry((peer, packet.number)).or_insert(Pieces::WHOLE);
                    pieces.on_their_way += 1;
                }
                return None;
            }
            (
                Place::Link(_),
                Note::Copied { packet, body: Body::Udp(_) | Body::Tfrc(_) | Body::External(_) },
            ) => {
                let account = self.account(sender(&self.routes, packet)? as u32)?;
                account.copied = account.voice.is_none() && account.video.is_none();
                return None;
            }
            (Place::Link(_), Note::Dropped { packet, .. }) => {
                let (peer, inside) = self.dropped(packet)?;
                (peer, inside, What::Lost)
            }
            (Place::Peer(peer), Note::Received { packet, .. }) => {
                if packet.number == UNNUMBERED {
                    return None;
                }
                if !self.cut.is_empty() && self.is_incomplete(peer ^ 1, packet.number) {
                    let bytes = self.continued(now, peer ^ 1, packet)?;
                    return Some(Fact {
                        peer: peer as usize ^ 1,
                        inside: false,
                        what: What::Continued { bytes },
                    });
                }
                let inside = self.received(now, peer ^ 1, packet)?;
                let delay = now.saturating_since(packet.sent);
                (peer ^ 1, inside, What::Received { bytes: packet.ip_bytes, delay })
            }
            (Place::Peer(peer), Note::Delivered { index, bytes }) => {
                let inside = self.delivered(now, peer ^ 1, *index, *bytes)?;
                if inside && let Some(redundancy) = self.redundancy.get_mut(&(peer ^ 1)) {
                    redundancy.count();
                }
                (peer ^ 1, inside, What::Delivered { index: *index, bytes: *bytes })
            }
            (Place::Peer(peer), Note::Decided { index, playout: Playout::Played(at) }) => {
                let (inside, after) = self.played(peer ^ 1, *index, *at)?;
                (peer ^ 1, inside, What::Played { index: *index, at: *at, after })
            }
            (Place::Peer(peer), Note::Decided { index, playout: Playout::Recovered(at) }) => {
                let (inside, after) = self.recovered(peer ^ 1, *index, *at)?;
                (peer ^ 1, inside, What::Played { index: *index, at: *at, after })
            }
            (Place::Peer(peer), Note::Decided { index, playout: Playout::Late(at) }) => {
                let inside = self.late(peer ^ 1, *index)?;
                (peer ^ 1, inside, What::Late { index: *index, at: *at })
            }
            (Place::Peer(peer), Note::Paused { index, length }) => {
                if self.account(peer ^ 1)?.frames.holds(*index) {
                    let (number, total) = self.pauses.entry(peer ^ 1).or_default();
                    (*number, *total) = (*number + 1, *total + length.as_nanos());
                }
                return None;
            }
            (Place::Peer(peer), Note::InOrder { waited }) => {
                self.waited(now, peer ^ 1, *waited);
                return None;
            }
            (Place::Peer(peer), Note::Picture { is_key }) => {
                self.account(peer)?.video.as_mut()?.next_is_key = Some(*is_key);
                return None;
            }
            (Place::Peer(peer), Note::Repair { bytes, is_padding }) => {
                if self.window.holds(now) {
                    let (packets, total) = self.repair.entry((peer, *is_padding)).or_default();
                    (*packets, *total) = (*packets + 1, *total + u64::from(*bytes));
                }
                return None;
            }
            (Place::Peer(peer), Note::Encoding(rung)) => {
                self.account(peer)?.voice.as_mut()?.encoding(*rung);
                (peer, false, What::Encoding { rung: *rung })
            }
            (Place::Peer(peer), Note::RxError(why)) => {
                if self.window.holds(now) {
                    let rejected = self.rejected.get_mut(peer as usize)?;
                    rejected.packets += 1;
                    rejected.damaged += u32::from(*why == RxError::Checksum);
                }
                return None;
            }
            (Place::Peer(peer), Note::Stack(StackNote::Messages(messages))) => {
                let inside = self.window.holds(now);
                let (last, discarded) = self.messages.entry(peer).or_default();
                *discarded += if inside { messages.discarded - last.discarded } else { 0 };
                *last = *messages;
                return None;
            }
            _ => return None,
        };
        Some(Fact { peer: peer as usize, inside, what })
    }

    /// A gauge of a peer: those of received redundancy are of the next packet that it delivers.
    #[inline]
    pub(crate) fn gauge(&mut self, peer: u32, gauge: Gauge, value: f64) {
        if let Gauge::Fec | Gauge::DredDepth = gauge {
            let redundancy = self.redundancy.entry(peer ^ 1).or_default();
            match gauge {
                Gauge::Fec => redundancy.fec = Some(value > 0.0),
                _ => redundancy.deep_s = Some(value),
            }
        }
    }

    /// Frames that an external stack discarded were not sent: they count like those that its queue discarded.
    /// Reports among them do not, nor those that were handed over outside the window.
    fn add_messages(&self, peer: u32, summary: &mut FlowSummary) {
        let Some((own, discarded)) = self.messages.get(&peer) else { return };
        let (other, _) = self.messages.get(&(peer ^ 1)).copied().unwrap_or_default();
        let discarded = (*discarded).min(summary.handed_over_packets);
        summary.handed_over_packets -= discarded;
        summary.discarded_packets = summary.discarded_packets.map(|frames| frames + discarded);
        summary.messages = Some(MessageAccount {
            handed_over: own.accepted,
            delivered: other.delivered,
            discarded: own.discarded,
            lost: own.lost + other.lost,
            open: own.open,
        });
    }

    /// Notes of this peer will come soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, peer: u32) {
        if let Some(account) = self.accounts.get(peer as usize) {
            prefetch(account, 6);
        }
    }

    #[inline(always)]
    fn account(&mut self, peer: u32) -> Option<&mut Account> {
        self.accounts.get_mut(peer as usize)?.as_mut()
    }

    // Each of the following functions handles one kind of note and returns whether its subject falls into
    // the measure window; `None` if it fits no account.

    /// A packet with data left, with these bytes by layer.
    #[inline(always)]
    pub(crate) fn sent(
        &mut self,
        peer: u32,
        packet: &Packet,
        layers: Layers,
        in_stream: bool,
    ) -> Option<Fact> {
        let inside = self.window.holds(packet.sent);
        let account = self.account(peer)?;
        if !account.pending.open(packet.number, true) {
            account.unaccounted += 1;
            return None;
        }
        if inside {
            account.packets.admit(packet.number);
        }
        account.one_frame_each = !in_stream;
        if inside {
            account.count_sent(packet.ip_bytes, layers);
        }
        let what = What::Sent { bytes: packet.ip_bytes };
        Some(Fact { peer: peer as usize, inside, what })
    }

    /// A control packet left, with this content if it is at hand.
    #[inline(never)]
    pub(crate) fn control_sent(&mut self, peer: u32, packet: &Packet, body: Option<&Body>) {
        let inside = self.window.holds(packet.sent);
        if let Some(account) = self.account(peer) {
            if account.pending.open(packet.number, false) {
                if inside {
                    account.packets.admit(packet.number);
                }
                account.control += u32::from(inside);
            } else {
                account.unaccounted += 1;
            }
        }
        if let Some(Body::Udp(Frame::Rtcp(compound))) = body
            && compound.reduced
            && inside
        {
            let (packets, bytes) = self.feedback.entry(peer ^ 1).or_default();
            (*packets, *bytes) = (*packets + 1, *bytes + u64::from(packet.ip_bytes));
        }
    }

    /// A fragment of a packet that a router cut arrived: whether the packet is not received with it, because
    /// others are on their way, or one is lost.
    #[cold]
    fn is_incomplete(&mut self, peer: u32, number: u32) -> bool {
        let Some(pieces) = self.cut.get_mut(&(peer, number)) else { return false };
        pieces.on_their_way -= 1;
        let (left, is_lost) = (pieces.on_their_way, pieces.is_lost);
        if left == 0 {
            self.cut.remove(&(peer, number));
        }
        left > 0 || is_lost
    }

    /// A fragment was dropped: whether the packet was lost already.
    #[cold]
    fn was_lost(&mut self, peer: u32, number: u32) -> bool {
        let Some(pieces) = self.cut.get_mut(&(peer, number)) else { return false };
        pieces.on_their_way -= 1;
        let was_lost = std::mem::replace(&mut pieces.is_lost, true);
        if pieces.on_their_way == 0 {
            self.cut.remove(&(peer, number));
        }
        was_lost
    }

    /// The bytes of a fragment with which its packet is not received.
    #[cold]
    fn continued(&mut self, now: Instant, peer: u32, packet: &Packet) -> Option<u32> {
        let (inside, arrives_inside) = (self.window.holds(packet.sent), self.window.holds(now));
        self.account(peer)?.count_received(packet.ip_bytes, inside, arrives_inside);
        Some(packet.ip_bytes)
    }

    fn received(&mut self, now: Instant, peer: u32, packet: &Packet) -> Option<bool> {
        let inside = self.window.holds(packet.sent);
        let arrives_inside = self.window.holds(now);
        let account = self.account(peer)?;
        if !account.settle(packet.number)? {
            return None;
        }
        account.count_received(packet.ip_bytes, inside, arrives_inside);
        if inside {
            account.delay.add(now.saturating_since(packet.sent));
        }
        if account.voice.is_none() && account.video.is_none() {
            account.jitter.arrive(packet.sent, now, inside);
        }
        Some(inside)
    }

    fn dropped(&mut self, packet: &Packet) -> Option<(u32, bool)> {
        if packet.number == UNNUMBERED {
            return None;
        }
        let peer = sender(&self.routes, packet)? as u32;
        if !self.cut.is_empty() && self.was_lost(peer, packet.number) {
            return None;
        }
        let inside = self.window.holds(packet.sent);
        let account = self.account(peer)?;
        if !account.settle(packet.number)? {
            return None;
        }
        account.lost += u32::from(inside);
        Some((peer, inside))
    }

    fn generated(&mut self, peer: u32, index: u32, captured: Instant, bytes: u32) -> Option<bool> {
        let inside = self.window.holds(captured);
        let account = self.account(peer)?;
        let fits = match (&mut account.voice, &mut account.video) {
            (Some(voice), _) => voice.generated(index, captured.as_nanos()),
            (None, video) => {
                let fresh = account.units.pending.open(index, true);
                let video = video.as_mut();
                fresh & video.is_none_or(|video| video.generated(index, captured, bytes))
            }
        };
        if !fits {
            account.unaccounted += 1;
            return None;
        }
        if inside {
            account.frames.admit(index);
            account.generated += 1;
        }
        Some(inside)
    }

    /// Units of bulk data were generated and handed over; false, with no change, if this must be counted one by
    /// one.
    #[inline(always)]
    pub(crate) fn units(&mut self, peer: u32, units: Units) -> bool {
        let Units { first, end, captured, .. } = units;
        let inside = self.window.holds(captured);
        let Some(account) = self.account(peer) else { return false };
        let is_bulk = account.voice.is_none() && account.video.is_none();
        let is_new = first >= account.frames.end && first < end;
        if !(is_bulk && is_new && account.units.pending.pass(first, end)) {
            return false;
        }
        if inside {
            account.frames.admit_all(first, end);
            account.generated += end - first;
            account.units.handed_over += end - first;
        }
        true
    }

    #[inline(always)]
    fn left_queue(&mut self, peer: u32, index: u32, fate: FrameState) -> Option<bool> {
        let account = self.account(peer)?;
        let inside = account.frames.holds(index);
        let fits = match &mut account.voice {
            Some(voice) => voice.advance(index, FrameState::Queued, fate),
            None => account.units.leave(index, inside, fate),
        };
        account.unaccounted += u32::from(!fits);
        fits.then_some(inside)
    }

    fn delivered(&mut self, now: Instant, peer: u32, index: u32, bytes: u32) -> Option<bool> {
        let delivered_inside = self.window.holds(now);
        let account = self.account(peer)?;
        let inside = account.frames.holds(index);
        // RFC 3550 A.8 compares arrivals with the media clock, which continues during silence. A duplicate
        // or an unknown number is caused by the network.
        if let Some(voice) = &mut account.voice {
            if !voice.advance(index, FrameState::HandedOver, FrameState::Delivered) {
                return None;
            }
            account.jitter.arrive(Instant::from_nanos(voice.captured(index)), now, inside);
        } else if let Some(video) = &mut account.video {
            let is_behind = video.is_behind(index);
            let captured = video.delivered(index, now)?;
            if !is_behind {
                account.jitter.arrive(captured, now, inside);
            }
        } else if account.copied {
            return self.delivered_first(peer, index, bytes, delivered_inside).then_some(inside);
        }
        account.delivered_bytes += if delivered_inside { u64::from(bytes) } else { 0 };
        Some(inside)
    }

    /// Counts a unit of data after a copy, unless it was delivered before; whether it was not.
    #[cold]
    fn delivered_first(&mut self, peer: u32, index: u32, bytes: u32, inside: bool) -> bool {
        let first = self.delivered.insert((peer, index, bytes));
        if let Some(account) = self.account(peer).filter(|_| first && inside) {
            account.delivered_bytes += u64::from(bytes);
        }
        first
    }

    #[inline(never)]
    fn waited(&mut self, now: Instant, peer: u32, waited: Duration) {
        if self.window.holds(now) {
            let waits = self.waits.entry(peer).or_default();
            waits.all.add(waited.as_nanos());
            waits.held_back += u64::from(!waited.is_zero());
            waits.longest = waits.longest.max(waited.as_nanos());
        }
    }

    /// Also returns the time since its capture.
    #[inline]
    fn played(&mut self, peer: u32, index: u32, at: Instant) -> Option<(bool, Duration)> {
        self.heard(peer, index, at, |voice| {
            voice.advance(index, FrameState::Delivered, FrameState::Played)
        })
    }

    /// The same for a frame that was not delivered.
    #[cold]
    fn recovered(&mut self, peer: u32, index: u32, at: Instant) -> Option<(bool, Duration)> {
        self.heard(peer, index, at, |voice| {
            voice.advance(index, FrameState::HandedOver, FrameState::Recovered)
                || voice.advance(index, FrameState::Discarded, FrameState::DiscardedRecovered)
        })
    }

    #[inline(always)]
    fn heard(
        &mut self,
        peer: u32,
        index: u32,
        at: Instant,
        advances: impl FnOnce(&mut Voice) -> bool,
    ) -> Option<(bool, Duration)> {
        let account = self.account(peer)?;
        let inside = account.frames.holds(index);
        let voice = account.voice.as_mut()?;
        if !advances(voice) {
            return None;
        }
        let after = at.saturating_since(Instant::from_nanos(voice.captured(index)));
        if inside {
            account.mouth_to_ear_max = account.mouth_to_ear_max.max(after.as_nanos() + 1);
        }
        Some((inside, after))
    }

    fn late(&mut self, peer: u32, index: u32) -> Option<bool> {
        let account = self.account(peer)?;
        let fits = account.voice.as_mut()?.advance(index, FrameState::Delivered, FrameState::Late);
        fits.then(|| account.frames.holds(index))
    }

    /// Frames of several packets, by sending peer.
    pub(crate) fn into_videos(self) -> Vec<(usize, Vec<video::Frame>)> {
        let accounts = self.accounts.into_iter().enumerate();
        let videos = accounts.filter_map(|(peer, account)| Some((peer, *account?.video?)));
        videos.map(|(peer, video)| (peer, video.frames)).collect()
    }

    /// The rung in which each frame of a peer was sent; empty if it never changed.
    pub(crate) fn frame_rungs(&self, peer: usize) -> Vec<u8> {
        let Some(Some(account)) = self.accounts.get(peer) else { return Vec::new() };
        let Some(voice) = account.voice.as_ref().filter(|voice| voice.has_rungs()) else {
            return Vec::new();
        };
        (0..voice.count()).map(|index| voice.rung(index)).collect()
    }

    /// The outcome of each frame that a peer sent. `broken` if its connection failed, so that a stream will
    /// not deliver the data it holds.
    pub(crate) fn frame_fates(&self, peer: usize, broken: bool) -> Vec<FrameOutcome> {
        let Some(Some(account)) = self.accounts.get(peer) else { return Vec::new() };
        let Some(voice) = &account.voice else { return Vec::new() };
        if !account.one_frame_each {
            return voice.outcome(|_| !broken);
        }
        let mut travelling = account.pending.open_data_from_end();
        travelling.sort_unstable();
        voice.outcome(|rank| travelling.binary_search(&rank).is_ok())
    }
}

impl Probe for Stats {
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Packet | Topic::Drop | Topic::Frame | Topic::Event | Topic::Order)
    }
    #[inline(always)]
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        self.take(now, place, note);
    }
}

/// The layers of a packet with payload; `None` for control packets: reports, acknowledgements, feedback,
/// and connection set-up and release.
#[inline(always)]
fn data_layers(body: &Body) -> Option<Layers> {
    match body {
        Body::TooBig { .. } => return None,
        Body::External(datagram) if datagram.class == Class::Retransmission => {
            return Some(body.layers());
        }
        _ => {}
    }
    Some(body.layers()).filter(|layers| layers.payload > 0)
}
