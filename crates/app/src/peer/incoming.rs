//! The way in: from the transport through RTP and the jitter buffer to the ear.

use bytes::Bytes;
use talkspurt_proto::dice::Dice;
use talkspurt_proto::packet::{Frame, Payload};
use talkspurt_proto::probe::{Gauge, Note, Playout, Probe, Stamped, Topic};
use talkspurt_proto::rfc4571::Deframer;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::{rtcp, rtp};

use super::Parts;
use crate::clock::Clock;
use crate::codec::Codec;
use crate::playout;

/// What a peer plays when the other side sends speech.
#[derive(Clone, Debug)]
pub struct MediaSink {
    /// The other side's codec.
    pub codec: Codec,
    /// Speech in one packet.
    pub packet: Duration,
    /// The jitter buffer.
    pub playout: playout::Config,
    /// Capture of the other side's first sample, by its clock.
    pub origin: Instant,
    /// Frames of what was played to keep for rendering: as many as the other side can send. A
    /// timestamp from afar asks for no more.
    pub keep: usize,
}

#[derive(Debug)]
pub(super) struct Incoming {
    media: Option<Media>,
    /// Unit of a stream without media, to number what is delivered.
    unit_bytes: u64,
    bytes: u64,
    stream: bool,
    /// Speech in either direction of a stream: media and reports come framed (RFC 4571).
    deframer: Option<Deframer>,
}

#[derive(Debug)]
struct Media {
    sink: MediaSink,
    samples: u32,
    /// The other side's RTP sender before its first packet: what signalling would have told.
    origin: rtp::Sender,
    /// Number of the latest packet, extended beyond 16 bits.
    latest: u32,
    rtp: rtp::Receiver,
    buffer: playout::Buffer,
    played: Vec<Option<Bytes>>,
}

/// The RTP sender of one side of a flow, from which the other side learns the first timestamp.
pub(super) fn media_sender(seed: u64, name: &str, codec: Codec) -> rtp::Sender {
    let mut dice = Dice::new(seed, &format!("{name}/rtp"));
    rtp::Sender::new(codec.payload_type(), codec.rtp_clock(), &mut dice)
}

impl Media {
    /// The number of a packet from 0, by the sequence number nearest to the latest (RFC 3550 A.1).
    fn number(&mut self, sequence: u16) -> u32 {
        let offset = sequence.wrapping_sub(self.origin.first_sequence());
        let ahead = offset.wrapping_sub(self.latest as u16) as i16;
        let number = self.latest.saturating_add_signed(i32::from(ahead));
        self.latest = self.latest.max(number);
        number
    }
}

impl Incoming {
    pub(super) fn new(parts: &Parts) -> Self {
        let stream = parts.transport.is_stream();
        let media = parts.sink.clone().map(|sink| Media {
            samples: sink.codec.samples_for(sink.packet) as u32,
            origin: media_sender(parts.seed, &parts.other, sink.codec),
            latest: 0,
            rtp: rtp::Receiver::announced(sink.codec.rtp_clock()),
            buffer: playout::Buffer::new(sink.playout, sink.packet),
            played: Vec::new(),
            sink,
        });
        let speaks = matches!(parts.source, Some((crate::source::Config::Speech(_), _)));
        let deframer = (stream && (speaks || media.is_some())).then(Deframer::default);
        let unit_bytes = u64::from(parts.transport.unit_bytes());
        Self { media, unit_bytes, bytes: 0, stream, deframer }
    }

    pub(super) fn rtp(&mut self) -> Option<&mut rtp::Receiver> {
        self.media.as_mut().map(|media| &mut media.rtp)
    }

    pub(super) fn is_stream(&self) -> bool {
        self.stream
    }

    pub(super) fn played(&self) -> &[Option<Bytes>] {
        self.media.as_ref().map_or(&[], |media| &media.played)
    }

    #[inline]
    pub(super) fn deliver<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        frame: Frame,
        session: &mut Option<rtcp::Session>,
        probe: &mut Stamped<'_, P>,
    ) {
        let Frame::Data(payload) = frame else {
            return self.on_message(local, clock, frame, session, probe);
        };
        if let (Some(deframer), Payload::Real(bytes)) = (&mut self.deframer, &payload) {
            deframer.push(bytes.clone());
            while let Some(frame) = self.deframer.as_mut().and_then(Iterator::next) {
                self.on_message(local, clock, frame, session, probe);
            }
            return;
        }
        self.on_data(local, &payload, probe);
    }

    fn on_data<P: Probe>(&mut self, local: Instant, payload: &Payload, probe: &mut Stamped<'_, P>) {
        let len = payload.len() as u64;
        if probe.wants(Topic::Frame) {
            // A message brings its own place in the source's stream, a stream is counted.
            let index = match payload {
                Payload::Virtual { offset, len } if !self.stream => offset / (*len).max(1),
                _ => self.bytes / self.unit_bytes,
            };
            let note = Note::Delivered { index: index as u32, bytes: len as u32 };
            probe.record(local, probe.place, &note);
        }
        self.bytes += len;
    }

    fn on_message<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        frame: Frame,
        session: &mut Option<rtcp::Session>,
        probe: &mut Stamped<'_, P>,
    ) {
        match (frame, session) {
            (Frame::Rtp(packet), _) => self.on_rtp(local, clock, packet, probe),
            (Frame::Rtcp(compound), Some(session)) => {
                let rtt = session.on_report(local, &compound);
                if let Some(rtt) = rtt.filter(|_| probe.wants(Topic::Gauge)) {
                    let note = Note::Gauge { gauge: Gauge::RtcpRtt, value: rtt.as_secs_f64() };
                    probe.record(local, probe.place, &note);
                }
            }
            _ => {}
        }
    }

    fn on_rtp<P: Probe>(
        &mut self,
        local: Instant,
        clock: &Clock,
        packet: rtp::Packet,
        probe: &mut Stamped<'_, P>,
    ) {
        let Some(media) = &mut self.media else { return };
        media.rtp.on_packet(local, &packet);
        let slot = media.origin.media_offset(packet.timestamp) / media.samples.max(1);
        let index = media.number(packet.sequence);
        if probe.wants(Topic::Gauge) {
            let note = Note::Gauge { gauge: Gauge::Jitter, value: media.rtp.jitter_seconds() };
            probe.record(local, probe.place, &note);
        }
        let captured = media.sink.origin + media.sink.packet * u64::from(slot);
        let decision = media.buffer.on_frame(slot, captured, local);
        if probe.wants(Topic::Frame) {
            let bytes = packet.payload.len() as u32;
            probe.record(local, probe.place, &Note::Delivered { index, bytes });
            let playout = match decision {
                Playout::Played(at) => {
                    let heard = at + media.sink.playout.concealment.delay();
                    Playout::Played(clock.truth(heard))
                }
                Playout::Late(at) => Playout::Late(clock.truth(at)),
                Playout::Duplicate => Playout::Duplicate,
            };
            probe.record(local, probe.place, &Note::Decided { index, playout });
        }
        let place = slot as usize;
        if let (true, Playout::Played(_), Payload::Real(bytes)) =
            (place < media.sink.keep, decision, packet.payload)
        {
            if media.played.len() <= place {
                media.played.resize(place + 1, None);
            }
            media.played[place] = Some(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{self, Side};
    use talkspurt_proto::packet::IpVersion;
    use talkspurt_proto::probe::Place;
    use talkspurt_proto::udp;

    /// The listening side of a call of which `keep` frames of 20 ms are kept.
    fn listener(keep: usize) -> Parts {
        let (codec, packet) = (Codec::Pcmu, Duration::from_millis(20));
        let playout = playout::Config::default();
        Parts {
            place: Place::Peer(1),
            side: Side::Answers,
            transport: transport::Config::Udp(udp::Config::default()),
            clock: Clock::default(),
            version: IpVersion::V4,
            dscp: 0,
            sizing: super::super::Sizing::Rfc,
            start: Instant::ZERO,
            stop: Instant::HORIZON,
            source: None,
            send_queue: crate::send_queue::Config::default(),
            sink: Some(MediaSink { codec, packet, playout, origin: Instant::ZERO, keep }),
            rtcp: rtcp::Config::default(),
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
        let mut sender = media_sender(parts.seed, &parts.other, Codec::Pcmu);
        for slot in [0, KEEP as u64 - 1, KEEP as u64] {
            let payload = Payload::Real(vec![7; 160].into());
            let packet = sender.packet(slot as u32 * 160, false, payload);
            let local = Instant::ZERO + Duration::from_millis(20) * (slot + 1);
            let probe = &mut Stamped { probe: &mut (), now: local, place: parts.place };
            incoming.deliver(local, &parts.clock, Frame::Rtp(packet), &mut None, probe);
        }
        assert_eq!(incoming.played().len(), KEEP);
        assert_eq!(incoming.played().iter().flatten().count(), 2);
    }
}
