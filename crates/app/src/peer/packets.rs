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

/// What one side of a flow can repeat, from which the other side gets the SSRC of retransmissions.
pub(super) fn history(seed: u64, name: &str, clock_hz: u32) -> rtx::History {
    rtx::History::new(RTX_TYPE, clock_hz, &mut Rng::new(seed, &format!("{name}/rtx")))
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
    /// Of the retransmissions, normally known from signalling.
    again: u32,
    /// The other side has left.
    is_over: bool,
}

/// Bytes of a PLI, and of a NACK with one entry; each further one has four (RFC 4585 §6.1, §6.2.1 and §6.3.1).
const REQUEST: usize = 16;
/// A packet that only fills the path repeats one that may have been lost with all around it.
const MOST_AHEAD: i16 = 1000;
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
            again: history(seed, other, format.clock_hz).ssrc(),
            is_over: false,
        }
    }

    pub(super) fn decoded(&self) -> u64 {
        self.pictures.as_ref().map_or(0, Pictures::decoded)
    }

    /// When it has something to request.
    pub(super) fn due(&self) -> Option<Instant> {
        self.pictures.as_ref().filter(|_| !self.is_over).and_then(Pictures::due)
    }

    /// RFC 4588 §5.3: nothing is requested from who has left.
    pub(super) const fn end(&mut self) {
        self.is_over = true;
    }

    /// The requests that are due, for a packet of at most this many bytes; what has no room remains due.
    pub(super) fn requests(&mut self, local: Instant, rtt: Duration, room: usize) -> Vec<Message> {
        let most = room.min(LONGEST_FEEDBACK).saturating_sub(2 * REQUEST) / 4 + 1;
        let Some(pictures) = self.pictures.as_mut().filter(|_| room >= 2 * REQUEST) else {
            return Vec::new();
        };
        let requests = pictures.take(local, rtt, most);
        let (media, lost) = (self.origin.ssrc(), Lost::list(&requests.lost));
        let nack = (!lost.is_empty()).then_some(Message::Nack { media, lost });
        nack.into_iter().chain(requests.key.then_some(Message::PictureLoss { media })).collect()
    }

    pub(super) fn on_rtp<P: Probe>(
        &mut self,
        local: Instant,
        packet: &rtp::Packet,
        probe: &mut Stamped<'_, P>,
    ) {
        let (payload_type, ssrc) = (self.format.payload_type, self.origin.ssrc());
        let is_again = packet.payload_type == RTX_TYPE && packet.ssrc == self.again;
        let restored = self.pictures.as_ref().filter(|_| is_again).and_then(|_| {
            let packet = rtx::original(packet, payload_type, ssrc)?;
            // What was sent long after the latest that arrived is not repeated before it.
            let first = self.origin.first_sequence();
            let ahead = packet.sequence.wrapping_sub(first).wrapping_sub(self.latest as u16) as i16;
            (ahead < MOST_AHEAD).then_some(packet)
        });
        if is_again && restored.is_none() {
            // Padding, or a repeated packet that is of no use.
            return;
        }
        let packet = restored.as_ref().unwrap_or(packet);
        // RFC 3550 §5.1: an unknown payload type is ignored.
        if packet.payload_type != payload_type {
            probe.record(local, probe.place(), &Note::RxError(RxError::Unexpected));
            return;
        }
        // Retransmissions are a stream of their own, of which nothing is reported.
        let is_own =
            restored.is_some() || self.rtp.on_packet(local, packet) != Arrival::OtherSource;
        if let Some(pictures) = self.pictures.as_mut().filter(|_| is_own) {
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
