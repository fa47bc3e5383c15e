//! The send path: source, RTP, send queue, and the transport as it has room.

use talkspurt_proto::body::{Bodies, Body};
use talkspurt_proto::endpoint::{Endpoint, Input};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{BodyId, Payload};
use talkspurt_proto::prefetch::prefetch;
use talkspurt_proto::probe::{Note, Probe, Stamped, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::rtp::rtx;
use talkspurt_proto::time::{Duration, Instant, earlier};
use talkspurt_proto::units::Rate;
use talkspurt_proto::{rfc4571, rtcp, rtp};

use super::Parts;
use super::noting;
use super::packets::{history, media_sender};
use super::session::{Asked, Controlled};
use crate::clock::Clock;
use crate::codec::{self, COMFORT_NOISE, Encoding};
use crate::flexfec;
use crate::send_queue::SendQueue;
use crate::source::{self, Material, Setting, Source, Unit};
use crate::transport::Transport;

/// Fields in the order of [`Peer`](super::Peer).
#[derive(Debug)]
#[repr(C)]
pub(super) struct Outgoing {
    media: Option<Box<Media>>,
    pub(super) generated: u32,
    stream: bool,
    /// Units of bulk data may be handed over jointly, as many as there is room for.
    joins: bool,
    /// The transport may have more room than at the last check.
    look: bool,
    /// There are repair packets or a pacer: packets go through [`Outgoing::feed_slowly`].
    pub(super) slowly: bool,
    source: Source,
    queue: SendQueue,
}

/// The fields needed for each packet are on the first cache line.
#[derive(Debug)]
#[repr(C, align(64))]
struct Media {
    rtp: rtp::Sender,
    /// RTP clock ticks per step of the media clock.
    ticks: u32,
    /// The last encoding recorded; initially the first.
    marked: u8,
    /// Its payload type.
    own: u8,
    /// Payload type of each encoding, the best first.
    payload_types: Vec<u8>,
    repair: Option<Box<flexfec::Sender>>,
    /// What it can repeat.
    history: Option<Box<rtx::History>>,
    /// Rates that the session and the transport request.
    asked: [Rate; 2],
    /// Share of retransmissions that the source left room for.
    share: f64,
}

/// What a source with a pacer or repair reads of its session.
pub(super) struct Link<'a> {
    pub(super) control: Option<Controlled<'a>>,
    pub(super) rtt: Duration,
    /// Requests of the receiver.
    pub(super) asked: Option<Asked>,
    /// It has not said BYE.
    pub(super) is_open: bool,
}

impl Link<'_> {
    /// Of a source without either.
    const fn none() -> Self {
        Self { control: None, rtt: Duration::ZERO, asked: None, is_open: true }
    }
}

/// No rate was requested.
const UNKNOWN: Rate = Rate::from_bps(u64::MAX);
/// The source hears of a share of retransmissions that differs by this.
const NEWS: f64 = 0.01;
/// In place of a frame's number: a repair packet, which is no frame. There are fewer units in a run.
pub(super) const REPAIR: u32 = u32::MAX;
/// The same for padding.
const PADDING: u32 = u32::MAX - 1;

#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::offset_of!(Media, payload_types) <= 64);

impl Media {
    fn new(rtp: rtp::Sender, ticks: u32, payload_types: Vec<u8>) -> Self {
        let asked = [UNKNOWN; 2];
        let (own, repair, history) = (payload_types[0], None, None);
        Self { rtp, ticks, marked: 0, own, payload_types, repair, history, asked, share: 0.0 }
    }
}

impl Outgoing {
    pub(super) fn new(
        config: &source::Config,
        material: &Material,
        parts: &Parts,
        rng: Rng,
    ) -> Self {
        let (start, stop) = (parts.clock.local(parts.start), parts.clock.local(parts.stop));
        let media = match config {
            source::Config::Speech(speech) => {
                let encodings = speech.encodings();
                let codec = speech.codec;
                let clock = (encodings[0].payload_type(), codec.spec().rtp_clock);
                let mut rtp = media_sender(parts.seed, &parts.name, clock);
                rtp.anchor(start + speech.lead, 0);
                let ticks = codec.ticks_for(codec::step(&encodings));
                let payload_types = encodings.iter().map(Encoding::payload_type).collect();
                let repair = speech.flexfec.map(|config| {
                    let rng = Rng::new(parts.seed, &format!("{}/flexfec", parts.name));
                    let times = (speech.packet, speech.noise);
                    let origin = start + speech.lead;
                    flexfec::Sender::new(config, times, codec.spec().rtp_clock, origin, rng)
                });
                let media = Media::new(rtp, ticks, payload_types);
                Some(Box::new(Media { repair: repair.map(Box::new), ..media }))
            }
            _ => config.packet_format(material).map(|format| {
                let clock = (format.payload_type, format.clock_hz);
                let mut rtp = media_sender(parts.seed, &parts.name, clock);
                rtp.anchor(start, 0);
                let history = |_| Box::new(history(parts.seed, &parts.name, format.clock_hz));
                let history = format.repair.map(history);
                Box::new(Media { history, ..Media::new(rtp, 1, vec![format.payload_type]) })
            }),
        };
        let setting = Setting { rng, conversation: parts.conversation(), start, stop };
        Self {
            source: config.build(material, parts.transport.unit_bytes(), setting),
            queue: SendQueue::new(parts.send_queue),
            stream: parts.transport.is_stream(),
            joins: parts.transport.joins_writes(),
            generated: 0,
            look: true,
            slowly: media.as_ref().is_some_and(|media| {
                parts.control.is_some() || media.repair.is_some() || media.history.is_some()
            }),
            media,
        }
    }

    pub(super) fn look_for_room(&mut self) {
        self.look = true;
    }

    /// A controller requests this rate: the transport's, or else the session's. The lower of the two holds.
    pub(super) fn set_target_rate(&mut self, rate: Rate, of_transport: bool) {
        let lower = self.media.as_mut().map(|media| {
            media.asked[usize::from(of_transport)] = rate;
            media.asked[0].min(media.asked[1])
        });
        self.tell_source(lower.unwrap_or(rate));
    }

    /// The source gets what repair leaves of a rate.
    fn tell_source(&mut self, rate: Rate) {
        let repairs = self.media.as_mut().and_then(|media| {
            media.share = media.history.as_ref()?.share();
            Some(media.share)
        });
        let rate = match (self.repair(), repairs) {
            (Some(repair), _) => repair.source_rate(rate),
            (None, Some(share)) => Rate::from_bps((rate.as_bps() as f64 * (1.0 - share)) as u64),
            (None, None) => rate,
        };
        self.source.set_target_rate(rate);
    }

    /// Tells the source when more or less is repeated than before.
    fn follow_repair(&mut self) {
        let Some(media) = &self.media else { return };
        let rate = media.asked[0].min(media.asked[1]);
        let share = media.history.as_ref().map_or(media.share, |history| history.share());
        if (share - media.share).abs() > NEWS && rate < UNKNOWN {
            self.tell_source(rate);
        }
    }

    fn repair(&self) -> Option<&flexfec::Sender> {
        self.media.as_ref().and_then(|media| media.repair.as_deref())
    }

    /// The receiver reported this share of lost packets, 0 to 1.
    pub(super) fn set_expected_loss(&mut self, loss: f64) {
        if let Source::Timed(timed) = &mut self.source {
            timed.set_expected_loss(loss);
        }
    }

    pub(super) fn rtp(&self) -> Option<&rtp::Sender> {
        self.media.as_ref().map(|media| &media.rtp)
    }

    /// When it is due, by the local clock.
    #[inline]
    pub(super) fn due(&self, local: Instant) -> Option<Instant> {
        let due = self.source.due(local);
        if self.slowly { earlier(due, self.repair().and_then(|it| it.ends)) } else { due }
    }

    /// True if nothing is due now but will be later, over a transport that always has room.
    #[inline]
    pub(super) fn is_quiet(&self, local: Instant) -> bool {
        debug_assert!(self.queue.is_empty(), "what there is room for does not wait");
        let clocked = matches!(self.source, Source::Timed(_) | Source::Paced(_));
        clocked && self.due(local).is_some_and(|at| at > local)
    }

    /// See [`Peer::spoken`](super::Peer::spoken).
    pub(super) fn spoken(&self) -> Duration {
        if let Source::Timed(timed) = &self.source { timed.spoken() } else { Duration::ZERO }
    }

    #[inline]
    pub(super) fn is_done(&self, local: Instant) -> bool {
        self.source.is_done(local) && self.queue.is_empty()
    }

    /// Requests what it needs for the next unit.
    pub(super) fn prefetch(&self) {
        if let Some(media) = &self.media {
            prefetch(&**media, 1);
        }
        if let Source::Timed(timed) = &self.source {
            prefetch(&**timed, 3);
        }
    }

    /// Hands over what there is room for. If the transport `passes` a single frame unchanged, the frame is put
    /// into `bodies` instead; returns the bytes of its media header and payload, and its handle.
    #[inline]
    pub(super) fn feed<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        (transport, passes): (&mut Transport, bool),
        bodies: &mut impl Bodies,
        probe: &mut Stamped<'_, P>,
    ) -> Option<(u32, u32, BodyId)> {
        // The queue is served before new frames may overflow it.
        if self.look && !self.queue.is_empty() {
            self.drain(local, transport, &mut Link::none(), probe);
        }
        let prefix = self.prefix();
        match &mut self.source {
            source @ (Source::Timed(_) | Source::Paced(_) | Source::Other(_)) => {
                let mut fresh = false;
                // Processed in place: moving a unit just written stalls.
                while let Some(unit) = &mut source.take(local) {
                    self.generated += 1;
                    if let Some(media) = &mut self.media {
                        mark_encoding(local, media, unit, probe);
                    }
                    noting::generated(local, clock, unit, probe);
                    let index = unit.index;
                    let header = if self.media.is_some() { rtp::HEADER_BYTES } else { 0 };
                    let bytes = prefix + header + unit.payload.len();
                    if self.queue.is_empty() && bytes <= transport.send_capacity() {
                        let is_last = |due| due > local;
                        if passes && transport.can_bypass() && source.due(local).is_none_or(is_last)
                        {
                            noting::handed_over(local, index, probe);
                            // Built in place, for the same reason.
                            self.look = false;
                            let (media, payload) = (self.media.as_deref_mut(), unit.payload.len());
                            let body = bodies.put(|| Body::Udp(frame(media, unit)));
                            return Some((header as u32, payload as u32, body));
                        }
                        let frame = frame(self.media.as_deref_mut(), unit);
                        hand_over(local, index, frame, prefix > 0, transport, probe);
                        continue;
                    }
                    let frame = frame(self.media.as_deref_mut(), unit);
                    wait(&mut self.queue, local, index, frame, probe);
                    fresh = true;
                }
                if fresh {
                    self.drain(local, transport, &mut Link::none(), probe);
                }
            }
            // After a pause nothing else triggers a check.
            Source::Bulk(bulk) if self.look || bulk.pauses() => {
                let (mut room, largest) = (transport.send_capacity(), transport.max_message());
                let most = if self.joins { u32::MAX } else { 1 };
                while let Some(units) = bulk.take(local, (room, largest), most) {
                    self.generated += units.count;
                    if probe.wants(Topic::Frame) {
                        let numbers = (units.first, units.first + units.count);
                        noting::units(
                            local,
                            clock.truth(local),
                            numbers,
                            units.bytes as u32,
                            probe,
                        );
                    }
                    let payload = units.payload();
                    let len = payload.len();
                    transport.handle(local, Input::Frame(Frame::Data(payload)), probe);
                    room = if self.joins { room - len } else { transport.send_capacity() };
                }
            }
            Source::Bulk(_) => {}
        }
        self.look = false;
        None
    }

    /// Answers the requests of the receiver.
    #[cold]
    fn answer<P: Probe>(
        &mut self,
        local: Instant,
        asked: &Asked,
        transport: &mut Transport,
        link: &mut Link<'_>,
        probe: &mut Stamped<'_, P>,
    ) {
        if asked.key {
            self.source.request_key_frame(local, false);
        }
        let (places, prefix) = (self.queue.places(), self.prefix());
        let mut waits = Vec::new();
        for sequence in &asked.lost {
            let goes = waits.is_empty() && room(local, transport, link) > 0;
            let history = self.media.as_mut().and_then(|media| media.history.as_mut());
            let history = history.filter(|_| goes || waits.len() < places);
            let Some(packet) = history.and_then(|it| it.again(local, *sequence, link.rtt)) else {
                continue;
            };
            let frame = numbered(Frame::Rtp(packet), link);
            if goes && prefix + frame.wire_bytes() <= room(local, transport, link) {
                self.leave(local, REPAIR, frame, transport, link, probe);
            } else {
                waits.push(frame);
            }
        }
        // Before all that was sent never.
        while let Some(frame) = waits.pop() {
            self.queue.push_first(local, REPAIR, frame);
        }
    }

    /// The same for a source whose packets are protected or paced.
    #[inline(never)]
    pub(super) fn feed_slowly<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        transport: &mut Transport,
        link: &mut Link<'_>,
        probe: &mut Stamped<'_, P>,
    ) {
        if link.control.as_ref().is_some_and(|it| it.control.is_stopped()) {
            self.give_up(local, clock, probe);
            return;
        }
        if let Some(it) = &mut link.control {
            it.control.start(local);
        }
        if let Some(asked) = link.asked.take() {
            self.answer(local, &asked, transport, link, probe);
        }
        // As above, the queue is served first.
        if !self.queue.is_empty() {
            self.drain(local, transport, link, probe);
        }
        self.follow_repair();
        let Some(media) = &mut self.media else { return };
        let control = link.control.as_ref().map(|it| (it.control.backlog(), it.control.skip()));
        if control.is_some() || media.history.is_some() {
            let (backlog, skip) = control.unwrap_or_default();
            self.source.set_backlog(backlog.max(self.queue.wait(local)), skip);
        }
        let mut found = Vec::new();
        while let Some(unit) = &mut self.source.take(local) {
            self.generated += 1;
            mark_encoding(local, media, unit, probe);
            if media.history.is_some() {
                noting::picture(local, unit, probe);
            }
            noting::generated(local, clock, unit, probe);
            let (index, is_speech) = (unit.index, !unit.keep_alive);
            let frame = numbered(frame(Some(media), unit), link);
            let repair = match (&frame, &mut media.repair) {
                (Frame::Rtp(packet), Some(repair)) => repair.on_packet(local, packet, is_speech),
                _ => Vec::new(),
            };
            found.push((index, frame));
            found.extend(repair.into_iter().map(|frame| (REPAIR, numbered(frame, link))));
        }
        let (is_over, ssrc) = (self.source.is_done(local), media.rtp.ssrc());
        let rest = media.repair.as_mut().map(|repair| repair.end_block(local, is_over, ssrc));
        let rest = rest.into_iter().flatten();
        found.extend(rest.map(|frame| (REPAIR, numbered(frame, link))));
        let prefix = self.prefix();
        for (index, frame) in found {
            if let Some(it) = &mut link.control {
                it.control.on_packet_queued(local, frame.wire_bytes());
            }
            self.begin_probe(local, transport, link, probe);
            let room = room(local, transport, link);
            if self.queue.is_empty() && prefix + frame.wire_bytes() <= room {
                self.leave(local, index, frame, transport, link, probe);
            } else if wait(&mut self.queue, local, index, frame, probe) {
                self.break_chain(local);
            }
        }
        self.drain(local, transport, link, probe);
        self.look = false;
        if let Some(it) = &mut link.control {
            it.control.on_queue(local, it.number, self.queue.bytes());
        }
        self.fill(local, transport, link, probe);
    }

    /// Sends the padding that the control wants, if this flow has packets to repeat.
    fn fill<P: Probe>(
        &mut self,
        local: Instant,
        transport: &mut Transport,
        link: &mut Link<'_>,
        probe: &mut Stamped<'_, P>,
    ) {
        while let Some(bytes) = link.control.as_ref().and_then(|it| it.control.padding(local)) {
            if !self.pad(local, bytes, transport, link, probe) {
                break;
            }
        }
        if let Some(it) = &mut link.control {
            it.control.end_burst(local);
        }
    }

    /// True if it can send padding: it repairs what it sends, something of it has left, and more will.
    fn fills(&self, local: Instant, is_open: bool) -> bool {
        if !is_open || self.source.is_done(local) {
            return false;
        }
        let media = self.media.as_ref().filter(|media| media.rtp.packets() > 0);
        media.is_some_and(|media| media.history.is_some())
    }

    fn drain<P: Probe>(
        &mut self,
        local: Instant,
        transport: &mut Transport,
        link: &mut Link<'_>,
        probe: &mut Stamped<'_, P>,
    ) {
        let prefix = self.prefix();
        let mut is_broken = false;
        let largest = transport.max_message().saturating_sub(prefix);
        loop {
            is_broken |= expire(&mut self.queue, local, probe);
            // RFC 4340 §14: packets larger than the path allows are not fragmented.
            while let Some(index) = self.queue.expel(largest) {
                noting::discarded(local, index, probe);
                is_broken = true;
            }
            if !self.queue.is_empty() {
                self.begin_probe(local, transport, link, probe);
            }
            let room = room(local, transport, link).saturating_sub(prefix);
            let Some((index, frame)) = self.queue.pop(room) else { break };
            self.leave(local, index, frame, transport, link, probe);
        }
        if is_broken {
            self.break_chain(local);
        }
    }

    /// A packet was discarded: what follows it cannot be decoded without a key frame.
    fn break_chain(&mut self, local: Instant) {
        if self.media.as_ref().is_some_and(|media| media.history.is_some()) {
            self.source.request_key_frame(local, true);
        }
    }

    /// Sends a small packet of padding before all others of a probe, as libwebrtc does, so that the time of the
    /// next one says something.
    fn begin_probe<P: Probe>(
        &mut self,
        local: Instant,
        transport: &mut Transport,
        link: &mut Link<'_>,
        probe: &mut Stamped<'_, P>,
    ) {
        if link.control.as_ref().is_some_and(|it| it.control.begins_probe(local)) {
            self.pad(local, 1, transport, link, probe);
        }
    }

    /// Sends a packet of padding where `bytes` are missing, if the transport has room for one.
    fn pad<P: Probe>(
        &mut self,
        local: Instant,
        bytes: usize,
        transport: &mut Transport,
        link: &mut Link<'_>,
        probe: &mut Stamped<'_, P>,
    ) -> bool {
        let room = transport.send_capacity().saturating_sub(self.prefix() + rtp::TRANSPORT_BYTES);
        let fills = self.fills(local, link.is_open);
        let history = self.media.as_mut().and_then(|media| media.history.as_mut());
        let Some(packet) = history.filter(|_| fills).and_then(|it| it.padding(bytes, room)) else {
            return false;
        };
        self.leave(local, PADDING, numbered(Frame::Rtp(packet), link), transport, link, probe);
        true
    }

    /// Hands a frame over that the pacer counts and the receiver may request again.
    fn leave<P: Probe>(
        &mut self,
        local: Instant,
        index: u32,
        mut frame: Frame,
        transport: &mut Transport,
        link: &mut Link<'_>,
        probe: &mut Stamped<'_, P>,
    ) {
        if let Frame::Rtp(packet) = &mut frame {
            if let Some(it) = &mut link.control {
                it.control.on_sent(local, it.number, packet, index == PADDING);
            }
            if let Some(media) = &mut self.media
                && let Some(history) = &mut media.history
            {
                match index {
                    REPAIR => history.on_repeated(local, packet),
                    PADDING => {}
                    _ => history.on_sent(local, packet, link.rtt),
                }
            }
        }
        hand_over(local, index, frame, self.prefix() > 0, transport, probe);
    }

    /// Discards what waits and what the source makes: nothing is sent any more.
    #[cold]
    fn give_up<P: Probe>(&mut self, local: Instant, clock: &Clock, probe: &mut Stamped<'_, P>) {
        let tells = self.media.as_ref().is_some_and(|media| media.history.is_some());
        while let Some(unit) = self.source.take(local) {
            self.generated += 1;
            if tells {
                noting::picture(local, &unit, probe);
            }
            noting::generated(local, clock, &unit, probe);
            let frame = Frame::Data(Payload::default());
            wait(&mut self.queue, local, unit.index, frame, probe);
        }
        while let Some((index, _)) = self.queue.pop(usize::MAX) {
            noting::discarded(local, index, probe);
        }
        if let Some(media) = &mut self.media
            && let Some(repair) = &mut media.repair
        {
            // Its parity would protect what was discarded.
            drop(repair.end_block(local, true, media.rtp.ssrc()));
        }
        self.look = false;
    }

    /// When a packet that waits for the pacer may leave. One that waits for the transport leaves at its word.
    pub(super) fn paced(
        &self,
        local: Instant,
        it: &Controlled<'_>,
        is_open: bool,
    ) -> Option<Instant> {
        let opens = Some(it.control.opens(it.number)).filter(|_| !self.queue.is_empty());
        let fills = it.control.fills().filter(|_| self.fills(local, is_open));
        earlier(opens.filter(|at| *at > local), fills.filter(|at| *at > local))
    }

    /// RFC 4571 §2: two length bytes precede each media packet in a stream.
    fn prefix(&self) -> usize {
        if self.stream && self.media.is_some() { rfc4571::LENGTH_BYTES } else { 0 }
    }
}

/// Drops frames that have waited too long; whether there were any.
fn expire<P: Probe>(queue: &mut SendQueue, local: Instant, probe: &mut Stamped<'_, P>) -> bool {
    let mut is_any = false;
    while let Some(index) = queue.expire(local) {
        noting::discarded(local, index, probe);
        is_any |= index != REPAIR;
    }
    is_any
}

/// Adds a frame to the queue; whether it or another was dropped for it.
fn wait<P: Probe>(
    queue: &mut SendQueue,
    local: Instant,
    index: u32,
    frame: Frame,
    probe: &mut Stamped<'_, P>,
) -> bool {
    let is_stale = expire(queue, local, probe);
    let dropped = queue.push(local, index, frame);
    if let Some(dropped) = dropped {
        noting::discarded(local, dropped, probe);
    }
    is_stale || dropped.is_some_and(|index| index != REPAIR)
}

/// Bytes for which transport and pacer have room.
fn room(local: Instant, transport: &Transport, link: &Link<'_>) -> usize {
    let waits = link.control.as_ref().is_some_and(|it| it.control.opens(it.number) > local);
    if waits { 0 } else { transport.send_capacity() }
}

/// The frame as it will leave: with room for a transport-wide sequence number, if packets have one.
fn numbered(mut frame: Frame, link: &Link<'_>) -> Frame {
    if let Frame::Rtp(packet) = &mut frame {
        packet.transport = link.control.as_ref().filter(|it| it.control.is_numbered()).map(|_| 0);
    }
    frame
}

/// Hands a frame to the transport, which has room for it and its length prefix.
#[inline(always)]
fn hand_over<P: Probe>(
    local: Instant,
    index: u32,
    frame: Frame,
    framed: bool,
    transport: &mut Transport,
    probe: &mut Stamped<'_, P>,
) {
    let bytes = frame.wire_bytes() as u32;
    let Some(frame) = (if framed { in_stream(&frame) } else { Some(frame) }) else { return };
    if index < PADDING {
        noting::handed_over(local, index, probe);
    } else if probe.wants(Topic::Frame) {
        let note = Note::Repair { bytes, is_padding: index == PADDING };
        probe.record(local, probe.place(), &note);
    }
    transport.handle(local, Input::Frame(frame), probe);
}

/// An RTCP packet as the transport carries it; `None` if it does not fit a stream.
pub(super) fn control(compound: rtcp::Compound, stream: bool) -> Option<Frame> {
    let frame = Frame::Rtcp(Box::new(compound));
    if stream { in_stream(&frame) } else { Some(frame) }
}

/// A message as a stream carries it; `None` if it is too long for the two length bytes, which the scenario's
/// checks exclude.
fn in_stream(frame: &Frame) -> Option<Frame> {
    rfc4571::frame(frame).map(|bytes| Frame::Data(Payload::Real(bytes)))
}

#[inline(always)]
fn frame(media: Option<&mut Media>, unit: &mut Unit) -> Frame {
    let payload = std::mem::take(&mut unit.payload);
    let Some(media) = media else { return Frame::Data(payload) };
    media.rtp.encode_as(if unit.keep_alive { COMFORT_NOISE } else { media.own });
    // RFC 3550 §5.1: the timestamp is the lower 32 bits.
    let timestamp = (unit.slot as u32).wrapping_mul(media.ticks);
    Frame::Rtp(media.rtp.packet(timestamp, unit.marker, payload))
}

/// Records a change of encoding at its first frame.
#[inline]
fn mark_encoding<P: Probe>(
    local: Instant,
    media: &mut Media,
    unit: &Unit,
    probe: &mut Stamped<'_, P>,
) {
    if media.marked == unit.encoding {
        return;
    }
    media.marked = unit.encoding;
    media.own = media.payload_types[usize::from(unit.encoding)];
    if probe.wants(Topic::Event) {
        probe.record(local, probe.place(), &Note::Encoding(unit.encoding));
    }
}
