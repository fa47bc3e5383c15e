//! The sending side of one RTP stream: stamps frames with sequence number, timestamp and SSRC
//! (RFC 3550 §5.1) and counts what a sender report needs (§6.4.1).

use super::Packet;
use crate::packet::Payload;
use crate::rng::Rng;
use crate::time::Instant;

/// One synchronisation source.
#[derive(Clone, Debug)]
pub struct Sender {
    ssrc: u32,
    payload_type: u8,
    clock_rate_hz: u32,
    first_sequence: u16,
    next_sequence: u16,
    first_timestamp: u32,
    last_offset: u32,
    anchor: Option<(Instant, u32)>,
    packets: u32,
    octets: u32,
}

impl Sender {
    /// A stream of this payload type, its media clock at `clock_rate_hz` (RFC 3551 §4.5.14: 8000
    /// for G.711), SSRC and the first sequence number and timestamp drawn from `rng`
    /// (RFC 3550 §5.1: they should be random).
    ///
    /// # Panics
    /// If the payload type is one a receiver cannot tell from RTCP (RFC 5761 §4) or above 127.
    #[must_use]
    pub fn new(payload_type: u8, clock_rate_hz: u32, rng: &mut Rng) -> Self {
        let ssrc = rng.bits() as u32;
        let (sequence, timestamp) = (rng.bits() as u16, rng.bits() as u32);
        Self::starting_at(ssrc, payload_type, clock_rate_hz, sequence, timestamp)
    }

    /// A stream whose SSRC and first numbers are given.
    ///
    /// # Panics
    /// As [`Sender::new`].
    #[must_use]
    pub fn starting_at(
        ssrc: u32,
        payload_type: u8,
        clock_rate_hz: u32,
        first_sequence: u16,
        first_timestamp: u32,
    ) -> Self {
        assert!(
            matches!(payload_type, 0..=63 | 96..=127),
            "RTP payload type {payload_type} cannot share a port with RTCP (RFC 5761 §4)"
        );
        Self {
            ssrc,
            payload_type,
            clock_rate_hz,
            first_sequence,
            next_sequence: first_sequence,
            first_timestamp,
            last_offset: 0,
            anchor: None,
            packets: 0,
            octets: 0,
        }
    }

    /// The packets from now on are of this payload type (RFC 3550 §5.1: a source may change it
    /// within a session), with the same media clock.
    pub const fn encode_as(&mut self, payload_type: u8) {
        self.payload_type = payload_type;
    }

    /// Stamps one frame. `media_offset` counts ticks of the media clock from the first sample of
    /// the stream to the first sample of this frame; `marker` says that a talkspurt begins.
    #[inline]
    pub fn packet(&mut self, media_offset: u32, marker: bool, payload: Payload) -> Packet {
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        self.last_offset = media_offset;
        // RFC 3550 §6.4.1: both counts wrap; octets exclude header and padding.
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(payload.len() as u32);
        Packet {
            payload_type: self.payload_type,
            marker,
            sequence,
            timestamp: self.first_timestamp.wrapping_add(media_offset),
            ssrc: self.ssrc,
            csrc: None,
            transport: None,
            padding: 0,
            payload,
        }
    }

    /// States that the sample at `media_offset` was captured at `now` by the sender's clock, so that a sender
    /// report can give the media clock of any instant. Called again when the source restarts its clock.
    pub const fn anchor(&mut self, now: Instant, media_offset: u32) {
        self.anchor = Some((now, media_offset));
    }

    /// The media clock at `now` (RFC 3550 §6.4.1: not the timestamp of the last packet, but that
    /// of the instant). Before [`Sender::anchor`] was called, the last packet's timestamp.
    #[must_use]
    pub fn timestamp_at(&self, now: Instant) -> u32 {
        let offset = match self.anchor {
            None => self.last_offset,
            Some((then, offset)) if now >= then => {
                offset.wrapping_add(ticks((now - then).as_nanos(), self.clock_rate_hz))
            }
            Some((then, offset)) => {
                offset.wrapping_sub(ticks((then - now).as_nanos(), self.clock_rate_hz))
            }
        };
        self.first_timestamp.wrapping_add(offset)
    }

    /// The timestamp of the stream's first sample.
    #[must_use]
    pub const fn first_timestamp(&self) -> u32 {
        self.first_timestamp
    }
    /// The sequence number of its first packet.
    #[must_use]
    pub const fn first_sequence(&self) -> u16 {
        self.first_sequence
    }
    /// Its synchronisation source.
    #[must_use]
    pub const fn ssrc(&self) -> u32 {
        self.ssrc
    }
    /// Packets sent, modulo 2³² (RFC 3550 §6.4.1).
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.packets
    }
    /// Payload octets sent, modulo 2³² (RFC 3550 §6.4.1).
    #[must_use]
    pub const fn octets(&self) -> u32 {
        self.octets
    }
}

/// Whole ticks of a clock in this many nanoseconds, modulo 2³².
#[inline]
pub(super) fn ticks(nanos: u64, clock_rate_hz: u32) -> u32 {
    const SECOND: u64 = 1_000_000_000;
    // 64 bits suffice for 26 days at 8 kHz; the constant divisor needs no division.
    match nanos.checked_mul(u64::from(clock_rate_hz)) {
        Some(scaled) => (scaled / SECOND) as u32,
        None => (u128::from(nanos) * u128::from(clock_rate_hz) / u128::from(SECOND)) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Below and above the limit of 64 bits.
        #[test]
        fn ticks_are_whole_and_wrap(nanos in prop_oneof![any::<u64>(), 0..1_u64 << 52], hz in prop_oneof![Just(8000), Just(90_000), any::<u32>()]) {
            let exact = u128::from(nanos) * u128::from(hz) / 1_000_000_000;
            prop_assert_eq!(ticks(nanos, hz), exact as u32);
        }
    }
}
