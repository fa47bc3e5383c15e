//! Streaming accounts per direction of a flow: the probe of large runs.
//!
//! No packet is kept: two bits for each in flight, one byte for each frame of voice, and sums.
//! Every note that belongs to an account also comes out as a [`Fact`], from which the
//! [`Recorder`](crate::Recorder) builds what needs memory.

use talkspurt_proto::packet::{Body, Layers, Packet};
use talkspurt_proto::probe::{Note, Place, Playout, Probe, Topic, UNNUMBERED};
use talkspurt_proto::time::{Duration, Instant};

use crate::jitter::Jitter;
use crate::layout::{Direction, Layout, RouteInfo, sender};
use crate::pending::Pending;
use crate::summary::{FlowSummary, Quality};
use crate::voice::{Fate, FrameFate, Voice, burst_ratio};

/// The accounts of every direction.
#[derive(Debug)]
pub struct Stats {
    routes: Vec<RouteInfo>,
    window: Window,
    /// By peer; `None` for a side without a source.
    accounts: Vec<Option<Box<Account>>>,
}

/// A note understood: which direction it concerns and whether it falls into the measure window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    pub(crate) peer: usize,
    pub(crate) inside: bool,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Generated { captured: Instant },
    HandedOver { index: u32 },
    Discarded,
    Delivered { index: u32, bytes: u32 },
    Played { index: u32, at: Instant, after: Option<Duration> },
    Late { index: u32, at: Instant },
    Sent { bytes: u32 },
    Received { bytes: u32, delay: Duration },
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    from: Instant,
    to: Instant,
}

impl Window {
    fn holds(self, at: Instant) -> bool {
        self.from <= at && at < self.to
    }
}

/// The numbers of the packets (or frames) that belong to the window: they are consecutive,
/// because numbers grow with time.
#[derive(Clone, Copy, Debug, Default)]
struct Cohort {
    first: u32,
    end: u32,
}

impl Cohort {
    fn admit(&mut self, number: u32) {
        if self.first == self.end {
            self.first = number;
        }
        self.end = number + 1;
    }
    fn holds(self, number: u32) -> bool {
        self.first <= number && number < self.end
    }
}

#[derive(Debug, Default)]
struct Account {
    frames: Frames,
    packets: Packets,
    voice: Option<Voice>,
    jitter: Jitter,
    delay: Delay,
    mouth_to_ear_max: Option<Duration>,
    arrived_bytes: u64,
    delivered_bytes: u64,
    unaccounted: u64,
}

#[derive(Debug, Default)]
struct Frames {
    pending: Pending,
    cohort: Cohort,
    generated: u64,
    handed_over: u64,
    discarded: u64,
}

#[derive(Debug, Default)]
struct Packets {
    pending: Pending,
    cohort: Cohort,
    sent: u64,
    received: u64,
    lost: u64,
    control: u64,
    sent_bytes: u64,
    received_bytes: u64,
    network: u64,
    transport: u64,
    media: u64,
    payload: u64,
    /// Every packet with payload carries one frame (UDP), as against a stream of bytes.
    one_frame_each: bool,
}

#[derive(Debug, Default)]
struct Delay {
    min: u64,
    max: u64,
    sum: u128,
    count: u64,
}

impl Stats {
    /// Empty accounts for the flows of `layout`.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        let account = |side: &Option<crate::SideInfo>| {
            let voice = side.as_ref()?.frame.map(|frame| Voice::new(frame, layout.duration));
            Some(Box::new(Account { voice, ..Account::default() }))
        };
        Self {
            routes: layout.routes.clone(),
            window: Window { from: layout.from, to: layout.to },
            accounts: layout.flows.iter().flat_map(|flow| flow.sides.iter().map(account)).collect(),
        }
    }

    /// Closes the accounts: one row per side with a source, in order of flows and sides. Quantiles
    /// are absent, for no delay was kept. Panics in debug builds if an account does not balance;
    /// in release builds [`FlowSummary::conservation`] tells.
    #[must_use]
    pub fn finish(&self, layout: &Layout) -> Vec<FlowSummary> {
        let seconds = layout.window().as_secs_f64();
        let rows = layout.directions().filter_map(|direction| {
            let account = self.accounts[direction.peer].as_ref()?;
            Some(account.summary(&direction, seconds))
        });
        let rows: Vec<_> = rows.collect();
        for row in &rows {
            debug_assert_eq!(row.conservation(), Ok(()));
        }
        rows
    }

    /// Takes a note into its account and tells what it meant, if anything.
    pub(crate) fn take(&mut self, now: Instant, place: Place, note: &Note<'_>) -> Option<Fact> {
        match (place, note) {
            (Place::Peer(peer), Note::Sent { packet, body }) => {
                self.sent(peer as usize, packet, body)
            }
            (Place::Peer(peer), Note::Received { packet, body }) => {
                self.received(now, peer as usize ^ 1, packet, body)
            }
            (Place::Link(_), Note::Dropped { packet, .. }) => self.dropped(packet),
            (Place::Peer(peer), Note::Generated { index, captured, .. }) => {
                self.generated(peer as usize, *index, *captured)
            }
            (Place::Peer(peer), Note::HandedOver { index }) => {
                self.left_queue(peer as usize, *index, Fate::HandedOver)
            }
            (Place::Peer(peer), Note::Discarded { index }) => {
                self.left_queue(peer as usize, *index, Fate::Discarded)
            }
            (Place::Peer(peer), Note::Delivered { index, bytes }) => {
                self.delivered(now, peer as usize ^ 1, *index, *bytes)
            }
            (Place::Peer(peer), Note::Decided { index, playout }) => {
                self.decided(peer as usize ^ 1, *index, *playout)
            }
            _ => None,
        }
    }

    fn account(&mut self, peer: usize) -> Option<&mut Account> {
        self.accounts.get_mut(peer)?.as_deref_mut()
    }

    fn sent(&mut self, peer: usize, packet: &Packet, body: &Body) -> Option<Fact> {
        let inside = self.window.holds(packet.sent);
        let account = self.account(peer)?;
        let layers = data_layers(body);
        if !account.packets.pending.open(packet.number, layers.is_some()) {
            account.unaccounted += 1;
            return None;
        }
        if inside {
            account.packets.cohort.admit(packet.number);
        }
        let Some(layers) = layers else {
            account.packets.control += u64::from(inside);
            return None;
        };
        account.packets.one_frame_each = matches!(body, Body::Udp(_));
        if inside {
            account.packets.count_sent(packet.ip_bytes, layers);
        }
        Some(Fact { peer, inside, what: What::Sent { bytes: packet.ip_bytes } })
    }

    fn received(
        &mut self,
        now: Instant,
        peer: usize,
        packet: &Packet,
        body: &Body,
    ) -> Option<Fact> {
        if matches!(body, Body::TooBig { .. }) {
            return None;
        }
        let inside = self.window.holds(packet.sent);
        let arrived_inside = self.window.holds(now);
        let account = self.account(peer)?;
        if !account.settle(packet.number)? {
            return None;
        }
        let delay = now.saturating_since(packet.sent);
        if inside {
            account.packets.received += 1;
            account.packets.received_bytes += u64::from(packet.ip_bytes);
            account.delay.add(delay);
        }
        if arrived_inside {
            account.arrived_bytes += u64::from(packet.ip_bytes);
        }
        if account.voice.is_none() {
            account.jitter.arrive(packet.sent, now, inside);
        }
        Some(Fact { peer, inside, what: What::Received { bytes: packet.ip_bytes, delay } })
    }

    fn dropped(&mut self, packet: &Packet) -> Option<Fact> {
        if packet.number == UNNUMBERED {
            return None;
        }
        let peer = sender(&self.routes, packet)?;
        let inside = self.window.holds(packet.sent);
        let account = self.account(peer)?;
        if !account.settle(packet.number)? {
            return None;
        }
        account.packets.lost += u64::from(inside);
        Some(Fact { peer, inside, what: What::Lost })
    }

    fn generated(&mut self, peer: usize, index: u32, captured: Instant) -> Option<Fact> {
        let inside = self.window.holds(captured);
        let account = self.account(peer)?;
        let mut fits = account.frames.pending.open(index, true);
        if let Some(voice) = &mut account.voice {
            fits &= voice.generated(index, captured.as_nanos());
        }
        if !fits {
            account.unaccounted += 1;
            return None;
        }
        if inside {
            account.frames.cohort.admit(index);
            account.frames.generated += 1;
        }
        Some(Fact { peer, inside, what: What::Generated { captured } })
    }

    fn left_queue(&mut self, peer: usize, index: u32, fate: Fate) -> Option<Fact> {
        let account = self.account(peer)?;
        if account.frames.pending.settle(index).is_none() {
            account.unaccounted += 1;
            return None;
        }
        if let Some(voice) = &mut account.voice {
            voice.set(index, fate);
        }
        let inside = account.frames.cohort.holds(index);
        let handed_over = fate == Fate::HandedOver;
        account.frames.handed_over += u64::from(inside && handed_over);
        account.frames.discarded += u64::from(inside && !handed_over);
        let what = if handed_over { What::HandedOver { index } } else { What::Discarded };
        Some(Fact { peer, inside, what })
    }

    fn delivered(&mut self, now: Instant, peer: usize, index: u32, bytes: u32) -> Option<Fact> {
        let delivered_inside = self.window.holds(now);
        let account = self.account(peer)?;
        let inside = account.frames.cohort.holds(index);
        if let Some(voice) = &mut account.voice {
            // A duplicate, or a number the sender never gave: the network's doing, not ours.
            if voice.fates.get(index as usize) != Some(&Fate::HandedOver) {
                return None;
            }
            voice.set(index, Fate::Delivered);
            let media_time = Instant::ZERO + voice.frame * u64::from(index);
            account.jitter.arrive(media_time, now, inside);
        }
        account.delivered_bytes += if delivered_inside { u64::from(bytes) } else { 0 };
        Some(Fact { peer, inside, what: What::Delivered { index, bytes } })
    }

    fn decided(&mut self, peer: usize, index: u32, playout: Playout) -> Option<Fact> {
        let account = self.account(peer)?;
        let inside = account.frames.cohort.holds(index);
        let voice = account.voice.as_mut()?;
        if voice.fates.get(index as usize) != Some(&Fate::Delivered) {
            return None;
        }
        let what = match playout {
            Playout::Duplicate => return None,
            Playout::Late(at) => {
                voice.set(index, Fate::Late);
                What::Late { index, at }
            }
            Playout::Played(at) => {
                voice.set(index, Fate::Played);
                let captured = voice.captured(index).map(Instant::from_nanos);
                let after = captured.map(|captured| at.saturating_since(captured));
                if inside {
                    account.mouth_to_ear_max = account.mouth_to_ear_max.max(after);
                }
                What::Played { index, at, after }
            }
        };
        Some(Fact { peer, inside, what })
    }

    /// What became of each frame a peer sent. `broken` if its connection ended in failure, so that
    /// a stream will not deliver what it holds.
    pub(crate) fn frame_fates(&self, peer: usize, broken: bool) -> Vec<FrameFate> {
        let Some(Some(account)) = self.accounts.get(peer) else { return Vec::new() };
        let Some(voice) = &account.voice else { return Vec::new() };
        if !account.packets.one_frame_each {
            return voice.outcome(|_| !broken);
        }
        let mut travelling = account.packets.pending.open_data_from_end();
        travelling.sort_unstable();
        voice.outcome(|rank| travelling.binary_search(&rank).is_ok())
    }
}

impl Probe for Stats {
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Packet | Topic::Drop | Topic::Frame)
    }
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        self.take(now, place, note);
    }
}

/// The layers of a packet with payload; `None` for control packets.
fn data_layers(body: &Body) -> Option<Layers> {
    if matches!(body, Body::TooBig { .. }) {
        return None;
    }
    Some(body.layers()).filter(|layers| layers.payload > 0)
}

impl Packets {
    fn count_sent(&mut self, ip_bytes: u32, layers: Layers) {
        let above = layers.transport + layers.media + layers.payload;
        self.sent += 1;
        self.sent_bytes += u64::from(ip_bytes);
        self.network += u64::from(ip_bytes.saturating_sub(above));
        self.transport += u64::from(layers.transport);
        self.media += u64::from(layers.media);
        self.payload += u64::from(layers.payload);
    }
}

impl Delay {
    fn add(&mut self, delay: Duration) {
        let nanos = delay.as_nanos();
        self.min = if self.count == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.sum += u128::from(nanos);
        self.count += 1;
    }
    fn known(&self, nanos: u64) -> Option<f64> {
        (self.count > 0).then(|| Duration::from_nanos(nanos).as_secs_f64())
    }
    fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / 1e9 / self.count as f64)
    }
}

impl Account {
    /// Settles a packet and tells whether it carried data.
    fn settle(&mut self, number: u32) -> Option<bool> {
        let settled = self.packets.pending.settle(number);
        self.unaccounted += u64::from(settled.is_none());
        settled
    }

    fn summary(&self, direction: &Direction<'_>, seconds: f64) -> FlowSummary {
        let (from, to) = direction.ends();
        let (frames, packets) = (&self.frames, &self.packets);
        let rate = |bytes: u64| (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds);
        let open = |pending: &Pending, cohort: Cohort| {
            pending.open_data().filter(|&number| cohort.holds(number)).count() as u64
        };
        let mut summary = FlowSummary {
            name: direction.name(),
            transport: direction.flow.transport.clone(),
            source: direction.source.source.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
            generated_packets: frames.generated,
            queued_packets: open(&frames.pending, frames.cohort),
            handed_over_packets: frames.handed_over,
            discarded_packets: frames.discarded,
            sent_packets: packets.sent,
            received_packets: packets.received,
            lost_packets: packets.lost,
            in_flight_packets: open(&packets.pending, packets.cohort),
            control_packets: packets.control,
            sent_bytes: packets.sent_bytes,
            received_bytes: packets.received_bytes,
            network_header_bytes: packets.network,
            transport_header_bytes: packets.transport,
            media_header_bytes: packets.media,
            payload_bytes: packets.payload,
            throughput_bps: rate(self.arrived_bytes),
            goodput_bps: rate(self.delivered_bytes),
            delay_min_s: self.delay.known(self.delay.min),
            delay_mean_s: self.delay.mean_s(),
            delay_max_s: self.delay.known(self.delay.max),
            mouth_to_ear_max_s: self.mouth_to_ear_max.map(Duration::as_secs_f64),
            jitter_s: self.jitter.mean_s(),
            quality: Quality::default(),
            unaccounted_notes: self.unaccounted,
            ..FlowSummary::default()
        };
        self.count_losses(&mut summary);
        summary
    }

    fn count_losses(&self, summary: &mut FlowSummary) {
        let Some(voice) = &self.voice else { return };
        let fates =
            &voice.fates[self.frames.cohort.first as usize..self.frames.cohort.end as usize];
        let missing = fates.iter().filter(|fate| fate.is_missing()).count();
        let late = fates.iter().filter(|fate| **fate == Fate::Late).count();
        summary.missing_packets = Some(missing as u64);
        summary.late_packets = Some(late as u64);
        summary.loss_ratio =
            (!fates.is_empty()).then(|| (missing + late) as f64 / fates.len() as f64);
        summary.burst_ratio =
            burst_ratio(fates.iter().map(|fate| fate.is_missing() || *fate == Fate::Late));
    }
}
