//! What both ends of a flow know of its RTP stream, and RTP that is counted but not played: video and captured
//! packets. The recorder, which knows the packets of each frame, reports the state of frames.

use talkspurt_proto::probe::{Gauge, Note, Probe, RxError, Stamped, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::rtcp::{Lost, Message};
use talkspurt_proto::rtp::{self, Arrival, Pictures, rtx};
use talkspurt_proto::time::{Duration, Instant};

use super::session::LONGEST_FEEDBACK;
use crate::source::PacketFormat;

/// The RTP sender of one side of a flow, from which the other side gets the first timestamp.
pub(super) fn media_sender(
    seed: u64,
    name: &str,
    (payload_type, clock_hz): (u8, u32),
) -> rtp::Sender {
    let mut rng = Rng::new(seed, &format!("{name}/rtp"));
    rtp::Sender::new(payload_type, clock_hz, &mut rng)
}

/// The number of a packet from 0, by the sequence number nearest to the latest (RFC 3550 A.1); `first` is that
/// of the first packet.
pub(super) fn number(first: u16, latest: &mut u32, sequence: u16) -> u32 {
    let offset = sequence.wrapping_sub(first);
    let ahead = offset.wrapping_sub(*latest as u16) as i16;
    let number = latest.saturating_add_signed(i32::from(ahead));
    *latest = number.max(*latest);
    number
}

#[derive(Debug)]
pub(super) struct Packets {
    format: PacketFormat,
    /// The other side's RTP sender before its first packet, normally known from signalling.
    origin: rtp::Sender,
    /// Number of the latest packet, extended beyond 16 bits.
    latest: u32,
    pub(super) rtp: rtp::Receiver,
    pictures: Option<Pictures>,
}

/// Entries of four bytes behind the twelve of a NACK's header (RFC 4585 §6.2.1).
const MOST_ENTRIES: usize = (LONGEST_FEEDBACK - 12) / 4;
/// Payload type of retransmissions, which signalling would assign.
pub(super) const RTX_TYPE: u8 = 97;

impl Packets {
    pub(super) fn new(format: PacketFormat, seed: u64, other: &str) -> Self {
        let origin = media_sender(seed, other, (format.payload_type, format.clock_hz));
        Self {
            format,
            origin,
            latest: 0,
            rtp: rtp::Receiver::announced(format.clock_hz),
            pictures: format.repair.map(|repair| Pictures::new(repair.nack)),
        }
    }

    pub(super) fn decoded(&self) -> u64 {
        self.pictures.as_ref().map_or(0, Pictures::decoded)
    }

    /// When it has something to request.
    pub(super) fn due(&self) -> Option<Instant> {
        self.pictures.as_ref().and_then(Pictures::due)
    }

    /// The requests that are due.
    pub(super) fn requests(&mut self, local: Instant, rtt: Duration) -> Vec<Message> {
        let Some(pictures) = &mut self.pictures else { return Vec::new() };
        let requests = pictures.take(local, rtt);
        let media = self.origin.ssrc();
        let lost = Lost::list(&requests.lost);
        let nacks =
            lost.chunks(MOST_ENTRIES).map(|lost| Message::Nack { media, lost: lost.into() });
        nacks.chain(requests.key.then_some(Message::PictureLoss { media })).collect()
    }

    pub(super) fn on_rtp<P: Probe>(
        &mut self,
        local: Instant,
        packet: &rtp::Packet,
        probe: &mut Stamped<'_, P>,
    ) {
        let (payload_type, ssrc) = (self.format.payload_type, self.origin.ssrc());
        let restored = (packet.payload_type == RTX_TYPE && self.pictures.is_some())
            .then(|| rtx::original(packet, payload_type, ssrc))
            .flatten();
        let packet = restored.as_ref().unwrap_or(packet);
        // RFC 3550 §5.1: an unknown payload type is ignored.
        if packet.payload_type != payload_type {
            probe.record(local, probe.place(), &Note::RxError(RxError::Unexpected));
            return;
        }
        // RFC 4588 §6.2: the reports on the original stream do not count retransmissions.
        let is_valid = restored.is_some() || self.rtp.on_packet(local, packet) == Arrival::Valid;
        if let Some(pictures) = self.pictures.as_mut().filter(|_| is_valid) {
            pictures.on_packet(local, packet);
        }
        let index = number(self.origin.first_sequence(), &mut self.latest, packet.sequence);
        if probe.wants(Topic::Gauge) {
            let note = Note::Gauge { gauge: Gauge::Jitter, value: self.rtp.jitter_seconds() };
            probe.record(local, probe.place(), &note);
        }
        if probe.wants(Topic::Frame) {
            let bytes = packet.payload.len() as u32;
            probe.record(local, probe.place(), &Note::Delivered { index, bytes });
        }
    }
}
