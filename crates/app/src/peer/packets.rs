//! RTP that is counted but not played: video and captured packets. The recorder, which knows the packets of
//! each frame, reports the state of frames.

use talkspurt_proto::probe::{Gauge, Note, Probe, RxError, Stamped, Topic};
use talkspurt_proto::rtp;
use talkspurt_proto::time::Instant;

use super::stream::{media_sender, number};
use crate::source::PacketFormat;

#[derive(Debug)]
pub(super) struct Packets {
    format: PacketFormat,
    /// The other side's RTP sender before its first packet, normally known from signalling.
    origin: rtp::Sender,
    /// Number of the latest packet, extended beyond 16 bits.
    latest: u32,
    pub(super) rtp: rtp::Receiver,
}

impl Packets {
    pub(super) fn new(format: PacketFormat, seed: u64, other: &str) -> Self {
        let origin = media_sender(seed, other, (format.payload_type, format.clock_hz));
        Self { format, origin, latest: 0, rtp: rtp::Receiver::announced(format.clock_hz) }
    }

    pub(super) fn on_rtp<P: Probe>(
        &mut self,
        local: Instant,
        packet: &rtp::Packet,
        probe: &mut Stamped<'_, P>,
    ) {
        // RFC 3550 §5.1: an unknown payload type is ignored.
        if packet.payload_type != self.format.payload_type {
            probe.record(local, probe.place(), &Note::RxError(RxError::Unexpected));
            return;
        }
        self.rtp.on_packet(local, packet);
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
