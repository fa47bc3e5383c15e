//! The receive path: from the transport through RTP and the jitter buffer to playout. Packets whose media is
//! not played go to `packets`.

use std::collections::BTreeMap;

use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::prefetch::prefetch;
use talkspurt_proto::probe::{Gauge, Note, Playout, Probe, RxError, Stamped, Topic};
use talkspurt_proto::rfc4571::Deframer;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::{rtp, wire};

use super::Parts;
use super::listener::Captured;
use super::outcome::{Kept, Outcome};
use super::packets::Packets;
use super::packets::{media_sender, number};
use super::session::Session;
use crate::clock::Clock;
use crate::codec::{self, COMFORT_NOISE, Encoding, Redundancy};
use crate::{flexfec, playout, source};

/// Handling of the media that the other side sends.
#[derive(Clone, Debug)]
pub enum Sink {
    /// It is played.
    Played(MediaSink),
    /// It is counted.
    Counted(source::PacketFormat),
}

/// Playout of speech from the other side.
#[derive(Clone, Debug)]
pub struct MediaSink {
    /// Encodings of the other side, best first, normally known from signalling; at least one.
    pub encodings: Vec<Encoding>,
    /// Parity packets beside them.
    pub flexfec: Option<flexfec::Config>,
    /// The jitter buffer.
    pub playout: playout::Config,
    /// Capture of the other side's first sample, by its clock.
    pub origin: Instant,
    /// Number of steps of the media clock to keep for rendering, whatever timestamps arrive: as many as the
    /// other side can send with one encoding.
    pub keep: usize,
}

/// Fields in the order of [`Peer`](super::Peer).
#[derive(Debug)]
#[repr(C)]
pub(super) struct Incoming {
    media: Option<Box<Media>>,
    packets: Option<Box<Packets>>,
    /// With speech in either direction of a stream: media and reports are framed (RFC 4571).
    deframer: Option<Box<Deframer>>,
    /// Unit of a stream without media, to number delivered data.
    unit_bytes: u64,
    bytes: u64,
    pub(super) stream: bool,
    /// Its session has a controller or repairs: read where the session itself is not needed.
    pub(super) is_controlled: bool,
}

/// Fields needed for each packet come first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Media {
    rtp: rtp::Receiver,
    /// Number of the latest packet, extended beyond 16 bits.
    latest: u32,
    /// RTP clock ticks per step of the media clock.
    ticks: u32,
    /// The other side's first RTP timestamp, normally known from signalling.
    first_timestamp: u32,
    first_sequence: u16,
    /// Packets may have the sound of others before them, or restore them together with repair packets.
    repeats: bool,
    /// The step of the media clock.
    step: Duration,
    /// Capture of the other side's first sample, by its clock.
    origin: Instant,
    /// Delay added by concealment, the maximum over the codecs.
    concealment: Duration,
    outcome: Outcome,
    buffer: playout::Buffer,
    /// Payload type and length of each encoding's packets.
    formats: Vec<(u8, u32)>,
    /// Length of each encoding's packets in steps.
    lengths: Vec<u32>,
}

/// Packets by which any redundancy within packets reaches back.
const MAX_REACH: u32 = 64;

// Two cache lines; the fields that the buffer needs first are on a third.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::offset_of!(Media, buffer) <= 2 * 64);

/// Content of an RTP packet.
#[derive(Clone, Copy)]
enum Content {
    /// Speech in the encoding of this index.
    Speech(usize),
    /// Comfort noise, as a keep-alive.
    Noise,
    /// Parity of speech packets.
    Repair,
}

impl Media {
    pub(super) fn new(sink: MediaSink, seed: u64, other: &str) -> Self {
        let codec = sink.encodings[0].codec;
        let step = codec::step(&sink.encodings);
        let longest = sink.encodings.iter().map(|encoding| encoding.packet).max();
        let delay =
            |encoding: &Encoding| encoding.codec.concealment_delay(sink.playout.concealment);
        let format = |it: &Encoding| (it.payload_type(), it.payload_bytes() as u32);
        let formats: Vec<_> = sink.encodings.iter().map(format).collect();
        let inspector = |it: &Encoding| it.decoder().filter(|decoder| decoder.redundancy() > 0);
        let inspectors: Vec<_> = sink.encodings.iter().map(inspector).collect();
        let repeats = sink.encodings[0].red > 0 || inspectors.iter().any(Option::is_some);
        let repeats = repeats || sink.flexfec.is_some();
        // Frames among which a lost one may be restored.
        let block = sink.flexfec.map_or(0, |flexfec| flexfec.packets());
        let reach = if repeats { MAX_REACH.max(block) } else { 0 };
        let steps = |it: &Encoding| (it.packet.as_nanos() / step.as_nanos()).max(1) as u32;
        let lengths: Vec<u32> = sink.encodings.iter().map(steps).collect();
        let sender =
            media_sender(seed, other, (sink.encodings[0].payload_type(), codec.spec().rtp_clock));
        Self {
            rtp: rtp::Receiver::announced(codec.spec().rtp_clock),
            latest: 0,
            ticks: codec.ticks_for(step),
            first_timestamp: sender.first_timestamp(),
            first_sequence: sender.first_sequence(),
            step,
            origin: sink.origin,
            concealment: sink.encodings.iter().map(delay).max().unwrap_or_default(),
            outcome: Outcome {
                present: 0,
                steps: lengths[0],
                format: formats[0],
                heard_now: 0,
                kept: Box::new(Kept {
                    most: sink.keep,
                    copies: sink.encodings[0].red.into(),
                    inspectors,
                    played: Vec::new(),
                    heard: vec![0; formats.len()],
                    repair: sink.flexfec.map(|it| flexfec::Receiver::new(&it, sender.ssrc())),
                    restored: BTreeMap::new(),
                }),
            },
            buffer: playout::Buffer::new(
                &sink.playout,
                (step, longest.unwrap_or(step)),
                sink.keep > 0,
                reach,
            ),
            repeats,
            lengths,
            formats,
        }
    }

    /// The content of a packet by its payload type and, where two encodings share one (G.723.1's rates), its
    /// length; `None` if it was not negotiated.
    #[inline]
    fn content(&mut self, packet: &rtp::Packet) -> Option<Content> {
        let exact = (packet.payload_type, packet.payload.len() as u32);
        let outcome = &self.outcome;
        if outcome.format == exact {
            Some(Content::Speech(outcome.present as usize))
        } else {
            self.other(exact)
        }
    }

    /// [`Media::content`] for a packet of another format than the previous one.
    #[inline(never)]
    fn other(&mut self, exact: (u8, u32)) -> Option<Content> {
        if let Some(encoding) = self.formats.iter().position(|format| *format == exact) {
            let outcome = &mut self.outcome;
            outcome.kept.heard[outcome.present as usize] += std::mem::take(&mut outcome.heard_now);
            (outcome.present, outcome.format) = (encoding as u32, exact);
            outcome.steps = self.lengths[encoding];
            return Some(Content::Speech(encoding));
        }
        // The last packet of a recording may be shorter, and those of a codec of variable rate have any length.
        match self.formats.iter().position(|(kind, _)| *kind == exact.0) {
            Some(encoding) => Some(Content::Speech(encoding)),
            None if exact.0 == COMFORT_NOISE => Some(Content::Noise),
            None if exact.0 == flexfec::PAYLOAD_TYPE && self.outcome.kept.repair.is_some() => {
                Some(Content::Repair)
            }
            None => None,
        }
    }
}

impl Media {
    /// A repair packet may restore lost ones.
    #[cold]
    fn on_repair<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        packet: &rtp::Packet,
        probe: &mut Stamped<'_, P>,
    ) {
        let Some(repair) = &mut self.outcome.kept.repair else { return };
        match repair.on_repair(packet) {
            Ok(restored) => {
                for packet in restored {
                    self.on_restored(local, clock, &packet, probe);
                }
            }
            Err(error) => {
                probe.record(local, probe.place(), &Note::RxError(error.rx_error()));
            }
        }
    }

    /// A lost packet was restored. It counts neither as received nor as delivered.
    #[cold]
    fn on_restored<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        packet: &rtp::Packet,
        probe: &mut Stamped<'_, P>,
    ) {
        let encoding = match self.content(packet) {
            Some(Content::Speech(encoding)) => Some(encoding as u8),
            Some(Content::Noise) => None,
            Some(Content::Repair) | None => return,
        };
        let slot = packet.timestamp.wrapping_sub(self.first_timestamp) / self.ticks.max(1);
        let index = number(self.first_sequence, &mut self.latest, packet.sequence);
        let captured = self.origin + self.step * u64::from(slot);
        let steps = encoding.map_or(1, |encoding| self.lengths[usize::from(encoding)]);
        let Self { buffer, outcome, concealment, .. } = self;
        let repeats = outcome.restored(packet, (slot, index), encoding);
        let frame = playout::Frame { slot, steps, index, encoding, repeats };
        buffer.on_restored(frame, captured, local, |decision| {
            outcome.decided(local, *concealment, clock, decision, probe);
        });
    }

    /// A packet of media arrived.
    #[inline]
    fn on_packet<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        (packet, content): (&mut rtp::Packet, Content),
        probe: &mut Stamped<'_, P>,
    ) {
        self.rtp.on_packet(local, packet);
        let slot = packet.timestamp.wrapping_sub(self.first_timestamp) / self.ticks.max(1);
        let index = number(self.first_sequence, &mut self.latest, packet.sequence);
        let encoding = match content {
            Content::Speech(encoding) => Some(encoding as u8),
            Content::Noise | Content::Repair => None,
        };
        if probe.wants(Topic::Gauge) {
            let note = Note::Gauge { gauge: Gauge::Jitter, value: self.rtp.jitter_seconds() };
            probe.record(local, probe.place(), &note);
        }
        let mut repeats = 0;
        if self.repeats {
            let redundancy = self.outcome.redundancy(packet, encoding);
            repeats = redundancy.packets as u16;
            // Before the delivery, which counts packets by them.
            tell(local, &redundancy, probe);
        }
        if probe.wants(Topic::Frame) {
            let bytes = packet.payload.len() as u32;
            probe.record(local, probe.place(), &Note::Delivered { index, bytes });
        }
        let captured = self.origin + self.step * u64::from(slot);
        let steps = match content {
            Content::Speech(encoding) if encoding == self.outcome.present as usize => {
                self.outcome.steps
            }
            Content::Speech(encoding) => self.lengths[encoding],
            Content::Noise | Content::Repair => 1,
        };
        let mut restored = Vec::new();
        if self.repeats {
            restored = self.outcome.restore(packet);
        }
        let frame = playout::Frame { slot, steps, index, encoding, repeats };
        // False if it was discarded; a frame that waits may still be played.
        let mut is_kept = true;
        let Self { buffer, outcome, concealment, .. } = self;
        buffer.on_frame(frame, captured, local, |decision| {
            if decision.frame.slot == slot {
                is_kept = matches!(decision.playout, Playout::Played(_));
            }
            outcome.decided(local, *concealment, clock, decision, probe);
        });
        if probe.wants(Topic::Gauge)
            && let Some([delay, target]) = self.buffer.gauges()
        {
            for (gauge, value) in [(Gauge::PlayoutDelay, delay), (Gauge::PlayoutTarget, target)] {
                let note = Note::Gauge { gauge, value: value.as_secs_f64() };
                probe.record(local, probe.place(), &note);
            }
        }
        if let (true, Payload::Real(bytes)) = (is_kept, &mut packet.payload) {
            let (payload, marker) = (std::mem::take(bytes), packet.marker);
            let encoding = encoding.map(usize::from);
            let received = playout::Received { payload, encoding, index, marker, ahead: 0 };
            self.outcome.keep(slot as usize, received);
        }
        for packet in restored {
            self.on_restored(local, clock, &packet, probe);
        }
    }
}

/// What [`Listener`](super::Listener) needs.
impl Media {
    /// Takes a packet whose number and place on the media clock are known.
    pub(super) fn on_captured<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        captured: Captured,
        probe: &mut Stamped<'_, P>,
    ) {
        let Captured { index, ticks, encoding, marker, payload } = captured;
        let (payload_type, content) = match encoding {
            Some(encoding) => (self.formats[encoding].0, Content::Speech(encoding)),
            None => (COMFORT_NOISE, Content::Noise),
        };
        let mut packet = rtp::Packet {
            payload_type,
            marker,
            sequence: self.first_sequence.wrapping_add(index as u16),
            timestamp: self.first_timestamp.wrapping_add(ticks),
            ssrc: 0,
            csrc: None,
            transport: None,
            padding: 0,
            payload,
        };
        self.on_packet(local, clock, (&mut packet, content), probe);
    }

    pub(super) fn finish<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        probe: &mut Stamped<'_, P>,
    ) {
        let Self { buffer, outcome, concealment, .. } = self;
        buffer.finish(|decision| outcome.decided(local, *concealment, clock, decision, probe));
    }

    pub(super) fn played(&self) -> &[Option<playout::Received>] {
        &self.outcome.kept.played
    }

    pub(super) fn timeline(&self) -> Option<&[playout::Stretch]> {
        self.buffer.timeline()
    }
}

impl Incoming {
    pub(super) fn new(parts: &Parts) -> Self {
        let stream = parts.transport.is_stream();
        let (media, packets) = match parts.sink.clone() {
            None => (None, None),
            Some(Sink::Played(sink)) => {
                (Some(Box::new(Media::new(sink, parts.seed, &parts.other))), None)
            }
            Some(Sink::Counted(format)) => {
                (None, Some(Box::new(Packets::new(format, parts.seed, &parts.other))))
            }
        };
        let speaks = parts.source.as_ref().is_some_and(|(source, _)| source.is_media());
        let deframer = (stream && (speaks || parts.sink.is_some())).then(Box::default);
        let unit_bytes = u64::from(parts.transport.unit_bytes());
        let is_controlled = parts.control.is_some() || parts.repairs();
        Self { media, packets, deframer, unit_bytes, bytes: 0, stream, is_controlled }
    }

    /// The packets of video, which may be repaired.
    pub(super) fn packets(&mut self) -> Option<&mut Packets> {
        self.packets.as_deref_mut()
    }

    pub(super) fn decoded(&self) -> u64 {
        self.packets.as_ref().map_or(0, |packets| packets.decoded())
    }

    /// When repair is to be requested.
    pub(super) fn requests_due(&self) -> Option<Instant> {
        self.packets.as_ref().and_then(|packets| packets.due())
    }

    pub(super) fn rtp(&mut self) -> Option<&mut rtp::Receiver> {
        match (&mut self.media, &mut self.packets) {
            (Some(media), _) => Some(&mut media.rtp),
            (None, Some(packets)) => Some(&mut packets.rtp),
            (None, None) => None,
        }
    }

    /// True if the other side sends media.
    pub(super) const fn has_media(&self) -> bool {
        self.media.is_some() || self.packets.is_some()
    }

    pub(super) fn played(&self) -> &[Option<playout::Received>] {
        self.media.as_ref().map_or(&[], |media| media.played())
    }

    pub(super) fn timeline(&self) -> Option<&[playout::Stretch]> {
        self.media.as_ref().and_then(|media| media.timeline())
    }

    pub(super) fn heard(&self) -> Vec<u64> {
        let Some(media) = &self.media else { return Vec::new() };
        let mut heard = media.outcome.kept.heard.clone();
        heard[media.outcome.present as usize] += media.outcome.heard_now;
        heard
    }

    #[inline]
    pub(super) fn deliver<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        frame: &mut Frame,
        session: &mut Option<Box<Session>>,
        probe: &mut Stamped<'_, P>,
    ) {
        let Frame::Data(payload) = frame else {
            return self.on_message(local, clock, frame, session, probe);
        };
        if let (Some(deframer), Payload::Real(bytes)) = (&mut self.deframer, &*payload) {
            deframer.push(bytes.clone());
            while let Some(mut frame) = self.deframer.as_deref_mut().and_then(Iterator::next) {
                self.on_message(local, clock, &mut frame, session, probe);
            }
            return;
        }
        // A media packet that SCTP fragmented arrives as bytes (RFC 9260 §6.9).
        if let (Some(hints), Payload::Real(bytes)) = (self.cut_media(), &*payload)
            && let Ok(mut frame) = wire::parse_media(bytes, hints)
        {
            return self.on_message(local, clock, &mut frame, session, probe);
        }
        self.on_data(local, payload, probe);
    }

    /// Hints for parsing bytes as a media packet, if media is expected and not as a stream.
    fn cut_media(&self) -> Option<wire::Hints> {
        let media = !self.stream && (self.media.is_some() || self.packets.is_some());
        media.then(wire::Hints::default)
    }

    fn on_data<P: Probe>(&mut self, local: Instant, payload: &Payload, probe: &mut Stamped<'_, P>) {
        let len = payload.len() as u64;
        if probe.wants(Topic::Frame) {
            // A message carries its offset in the source's stream; stream data is counted.
            let index = match payload {
                Payload::Virtual { offset, len } if !self.stream => offset / (*len).max(1),
                _ => self.bytes / self.unit_bytes,
            };
            let note = Note::Delivered { index: index as u32, bytes: len as u32 };
            probe.record(local, probe.place(), &note);
        }
        self.bytes += len;
    }

    pub(super) fn prefetch(&self) {
        if let Some(media) = &self.media {
            prefetch(&**media, 4);
        }
    }

    pub(super) fn prefetch_playout(&self) {
        if let Some(media) = &self.media {
            media.buffer.prefetch();
        }
    }

    pub(super) fn prefetch_frames(&self) {
        if let Some(media) = &self.media {
            media.buffer.prefetch_frames();
        }
    }

    fn on_message<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        frame: &mut Frame,
        session: &mut Option<Box<Session>>,
        probe: &mut Stamped<'_, P>,
    ) {
        match (frame, session) {
            (Frame::Rtp(packet), session) => {
                if self.is_controlled
                    && let Some(mut it) = Session::control_of(session)
                {
                    it.control.on_media(local, packet);
                }
                self.on_rtp(local, clock, packet, probe);
            }
            (Frame::Rtcp(compound), Some(session)) => {
                if let Some(member) = &session.control {
                    member.lock().control.on_rtcp(local, compound, probe);
                }
                let rtt = session.rtcp.on_report(local, compound);
                let blocks = &compound.reports;
                if let Some(member) = session.control.as_ref().filter(|_| !blocks.is_empty()) {
                    member.lock().control.on_receiver_reports(local, blocks, rtt);
                }
                session.on_requests(compound);
                if let Some(packets) = self.packets.as_mut().filter(|_| session.rtcp.peer_left()) {
                    packets.end();
                }
                if let Some(rtt) = rtt.filter(|_| probe.wants(Topic::Gauge)) {
                    let note = Note::Gauge { gauge: Gauge::RtcpRtt, value: rtt.as_secs_f64() };
                    probe.record(local, probe.place(), &note);
                }
            }
            _ => {}
        }
    }

    fn on_rtp<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        packet: &mut rtp::Packet,
        probe: &mut Stamped<'_, P>,
    ) {
        if let Some(packets) = &mut self.packets {
            return packets.on_rtp(local, packet, probe);
        }
        let Some(media) = &mut self.media else { return };
        // RFC 3550 §5.1: an unknown payload type is ignored.
        let Some(content) = media.content(packet) else {
            probe.record(local, probe.place(), &Note::RxError(RxError::Unexpected));
            return;
        };
        if matches!(content, Content::Repair) {
            return media.on_repair(local, clock, packet, probe);
        }
        media.on_packet(local, clock, (packet, content), probe);
    }

    /// Decides on all media that waits for its playout: the run is over.
    pub(super) fn finish<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        probe: &mut Stamped<'_, P>,
    ) {
        if let Some(media) = &mut self.media {
            media.finish(local, clock, probe);
        }
    }
}

/// Reports the redundancy that the codec made of a packet.
fn tell<P: Probe>(local: Instant, redundancy: &Redundancy, probe: &mut Stamped<'_, P>) {
    let fec = redundancy.fec.map(|has| (Gauge::Fec, f64::from(u8::from(has))));
    let deep = redundancy.deep.map(|deep| (Gauge::DredDepth, deep.as_secs_f64()));
    if probe.wants(Topic::Gauge) {
        for (gauge, value) in [fec, deep].into_iter().flatten() {
            probe.record(local, probe.place(), &Note::Gauge { gauge, value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;
    use crate::transport::{self, Side};
    use talkspurt_proto::packet::IpVersion;
    use talkspurt_proto::{rtcp, udp};

    /// The listening side of a call that keeps `keep` frames of 20 ms.
    fn listener(keep: usize) -> Parts {
        let (codec, packet) = (Codec::Pcmu, Duration::from_millis(20));
        let playout = playout::Config::default();
        Parts {
            number: 1,
            side: Side::Answers,
            transport: transport::Config::Udp(udp::Config::default()),
            clock: Clock::default(),
            version: IpVersion::V4,
            addresses: Vec::new(),
            dscp: 0,
            sizing: super::super::Sizing::Rfc,
            start: Instant::ZERO,
            stop: Instant::HORIZON,
            source: None,
            send_queue: crate::send_queue::Config::default(),
            sink: Some(Sink::Played(MediaSink {
                encodings: vec![Encoding::new(codec, packet)],
                flexfec: None,
                playout,
                origin: Instant::ZERO,
                keep,
            })),
            others_until: None,
            rtcp: rtcp::Config::default(),
            control: None,
            priority: 1.0,
            seed: 1,
            name: "to".to_owned(),
            other: "from".to_owned(),
        }
    }

    #[test]
    fn as_many_frames_are_kept_as_the_run_has_and_no_more() {
        const KEEP: usize = (1 << 20) + 2;
        let parts = listener(KEEP);
        let mut incoming = Incoming::new(&parts);
        let mut sender = media_sender(parts.seed, &parts.other, (0, 8000));
        for slot in [0, KEEP as u64 - 1, KEEP as u64] {
            let payload = Payload::Real(vec![7; 160].into());
            let packet = sender.packet(slot as u32 * 160, false, payload);
            let local = Instant::ZERO + Duration::from_millis(20) * (slot + 1);
            let probe = &mut Stamped { probe: &mut (), now: local, peer: parts.number };
            incoming.deliver(local, &parts.clock, &mut Frame::Rtp(packet), &mut None, probe);
        }
        assert_eq!(incoming.played().len(), KEEP);
        assert_eq!(incoming.played().iter().flatten().count(), 2);
    }
}
