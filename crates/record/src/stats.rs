//! Streaming accounts per direction of a flow: the probe of large runs.
//!
//! No packet is kept: two bits for each in flight, one byte for each frame of voice, and sums.
//! Every note that belongs to an account also comes out as a [`Fact`], from which the
//! [`Recorder`](crate::Recorder) builds what needs memory.

use talkspurt_proto::endpoint::Event;
use talkspurt_proto::packet::{Body, Layers, Packet};
use talkspurt_proto::probe::{Note, Place, Playout, Probe, Topic, UNNUMBERED};
use talkspurt_proto::time::{Duration, Instant};

use crate::account::Account;
use crate::layout::{Layout, RouteInfo, sender};
use crate::summary::FlowSummary;
use crate::video::{self, Video};
use crate::voice::{Fate, FrameFate, Voice};

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
    Generated { captured: Instant, bytes: u32 },
    HandedOver { index: u32 },
    Discarded,
    Delivered { index: u32, bytes: u32 },
    Played { index: u32, at: Instant, after: Option<Duration> },
    Late { index: u32, at: Instant },
    Sent { bytes: u32 },
    Received { bytes: u32, delay: Duration },
    Lost,
    Encoding { rung: u8 },
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

impl Stats {
    /// Empty accounts for the flows of `layout`.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        let account = |side: &Option<crate::SideInfo>| {
            let side = side.as_ref()?;
            let voice = side.frame.map(|frame| Voice::new(frame, layout.duration));
            let video = side.deadline.map(Video::new);
            Some(Box::new(Account { voice, video, ..Account::default() }))
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
            let mut summary = account.summary(&direction, seconds);
            let end = Instant::ZERO + layout.duration;
            let video = account.video.as_ref();
            summary.video = video.map(|video| video.summary(layout.from, layout.to, end));
            Some(summary)
        });
        let rows: Vec<_> = rows.collect();
        for row in &rows {
            debug_assert_eq!(row.conservation(), Ok(()));
        }
        rows
    }

    /// Takes a note into its account and tells what it meant, if anything. Inlined, so that where
    /// nobody asks what it meant no fact is made.
    #[inline(always)]
    pub(crate) fn take(&mut self, now: Instant, place: Place, note: &Note<'_>) -> Option<Fact> {
        match (place, note) {
            (Place::Peer(peer), Note::Sent { packet, body }) => {
                self.sent(peer as usize, packet, body)
            }
            (Place::Peer(peer), Note::Received { packet, .. }) => {
                self.received(now, peer as usize ^ 1, packet)
            }
            (Place::Link(_), Note::Dropped { packet, .. }) => self.dropped(packet),
            (Place::Peer(peer), Note::Generated { index, captured, bytes }) => {
                self.generated(peer as usize, *index, *captured, *bytes)
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
            (Place::Peer(peer), Note::Event(Event::Encoding(rung))) => {
                self.encoding(peer as usize, *rung)
            }
            _ => None,
        }
    }

    /// The frames a peer makes from now on are in another rung of its ladder.
    fn encoding(&mut self, peer: usize, rung: u8) -> Option<Fact> {
        self.account(peer)?.voice.as_mut()?.encoding(rung);
        Some(Fact { peer, inside: false, what: What::Encoding { rung } })
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
        account.packets.one_frame_each = !matches!(body, Body::Tcp(_));
        if inside {
            account.packets.count_sent(packet.ip_bytes, layers);
        }
        Some(Fact { peer, inside, what: What::Sent { bytes: packet.ip_bytes } })
    }

    fn received(&mut self, now: Instant, peer: usize, packet: &Packet) -> Option<Fact> {
        if packet.number == UNNUMBERED {
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
        if account.voice.is_none() && account.video.is_none() {
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

    fn generated(
        &mut self,
        peer: usize,
        index: u32,
        captured: Instant,
        bytes: u32,
    ) -> Option<Fact> {
        let inside = self.window.holds(captured);
        let account = self.account(peer)?;
        let mut fits = account.frames.pending.open(index, true);
        if let Some(voice) = &mut account.voice {
            fits &= voice.generated(index, captured.as_nanos());
        }
        if let Some(video) = &mut account.video {
            fits &= video.generated(index, captured, bytes);
        }
        if !fits {
            account.unaccounted += 1;
            return None;
        }
        if inside {
            account.frames.cohort.admit(index);
            account.frames.generated += 1;
        }
        Some(Fact { peer, inside, what: What::Generated { captured, bytes } })
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
            // RFC 3550 A.8 compares arrivals with the media clock, which goes on in silence.
            let media_time = voice.captured(index).map_or(now, Instant::from_nanos);
            account.jitter.arrive(media_time, now, inside);
        }
        if let Some(video) = &mut account.video {
            // As with a frame of speech.
            let media_time = video.delivered(index, now)?;
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

    /// The frames of several packets, by the peer that sent them.
    pub(crate) fn into_videos(self) -> Vec<(usize, Vec<video::Frame>)> {
        let accounts = self.accounts.into_iter().enumerate();
        let videos = accounts.filter_map(|(peer, account)| Some((peer, account?.video?)));
        videos.map(|(peer, video)| (peer, video.into_frames())).collect()
    }

    /// The rung of the ladder each frame of a peer was sent in; empty for one that never changed it.
    pub(crate) fn frame_rungs(&self, peer: usize) -> Vec<u8> {
        let Some(Some(account)) = self.accounts.get(peer) else { return Vec::new() };
        let Some(voice) = account.voice.as_ref().filter(|voice| voice.has_rungs()) else {
            return Vec::new();
        };
        (0..voice.fates.len() as u32).map(|index| voice.rung(index)).collect()
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
        matches!(topic, Topic::Packet | Topic::Drop | Topic::Frame | Topic::Event)
    }
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        self.take(now, place, note);
    }
}

/// The layers of a packet with payload; `None` for control packets: reports, and acknowledgements,
/// feedback and the opening and closing of a transport of its own.
fn data_layers(body: &Body) -> Option<Layers> {
    if matches!(body, Body::TooBig { .. }) {
        return None;
    }
    Some(body.layers()).filter(|layers| layers.payload > 0)
}
