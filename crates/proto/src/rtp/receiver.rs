//! The receiving side of one RTP stream: packet validation (RFC 3550 A.1), losses (A.3) and jitter
//! (A.8), in the RFC's integer arithmetic.

use super::Packet;
use super::sender::ticks;
use crate::time::Instant;

/// RFC 3550 A.1.
const MAX_DROPOUT: u16 = 3000;
/// RFC 3550 A.1.
const MAX_MISORDER: u16 = 100;
/// RFC 3550 A.1.
const MIN_SEQUENTIAL: u32 = 2;
const SEQUENCE_MODULUS: u32 = 1 << 16;

/// Receiver state for one source.
#[derive(Clone, Debug)]
pub struct Receiver {
    clock_rate_hz: u32,
    min_sequential: u32,
    source: Option<Source>,
    /// A.8: the last packet's relative transit time, in ticks modulo 2³².
    transit: Option<u32>,
    /// A.8: the estimate, scaled by 16.
    jitter_x16: u32,
}

/// RFC 3550 A.1, `struct source`.
#[derive(Clone, Debug)]
struct Source {
    ssrc: u32,
    max_seq: u16,
    cycles: u32,
    base_seq: u16,
    bad_seq: Option<u16>,
    probation: u32,
    received: u32,
    expected_prior: u32,
    received_prior: u32,
}

/// Verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It belongs to the stream and is counted.
    Valid,
    /// Not counted: the source must first send enough packets in sequence (RFC 3550 A.1).
    Probation,
    /// Its sequence number is too far off; if the next one follows it, the source has restarted.
    OutOfRange,
    /// It belongs to another source.
    OtherSource,
}

/// Contents of a report block (RFC 3550 §6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// The source of the packets.
    pub ssrc: u32,
    /// Lost since the last report, in 1/256 of those expected.
    pub fraction_lost: u8,
    /// Lost in all; negative when duplicates outnumber losses; 24 bits.
    pub cumulative_lost: i32,
    /// Highest sequence number received, with the count of its cycles above it.
    pub highest_sequence: u32,
    /// Interarrival jitter in ticks of the media clock.
    pub jitter: u32,
}

impl Source {
    /// A source, on probation from its first packet.
    fn first_heard(packet: &Packet, min_sequential: u32) -> Self {
        let mut source = Self {
            ssrc: packet.ssrc,
            max_seq: packet.sequence.wrapping_sub(1),
            cycles: 0,
            base_seq: packet.sequence,
            bad_seq: None,
            probation: min_sequential,
            received: 0,
            expected_prior: 0,
            received_prior: 0,
        };
        if min_sequential == 0 {
            source.restart(packet.sequence);
        }
        source
    }

    /// RFC 3550 A.1, `init_seq`.
    fn restart(&mut self, seq: u16) {
        self.base_seq = seq;
        self.max_seq = seq;
        self.bad_seq = None;
        self.cycles = 0;
        self.received = 0;
        self.expected_prior = 0;
        self.received_prior = 0;
    }

    /// RFC 3550 A.1, `update_seq`.
    fn update(&mut self, seq: u16) -> Arrival {
        let udelta = seq.wrapping_sub(self.max_seq);
        if self.probation > 0 {
            return self.prove(seq, udelta);
        }
        if udelta < MAX_DROPOUT {
            if seq < self.max_seq {
                self.cycles = self.cycles.wrapping_add(SEQUENCE_MODULUS);
            }
            self.max_seq = seq;
        } else if u32::from(udelta) <= SEQUENCE_MODULUS - u32::from(MAX_MISORDER) {
            // Two packets in sequence after a jump: the other side restarted.
            if self.bad_seq == Some(seq) {
                self.restart(seq);
            } else {
                self.bad_seq = Some(seq.wrapping_add(1));
                return Arrival::OutOfRange;
            }
        }
        self.received = self.received.wrapping_add(1);
        Arrival::Valid
    }

    fn prove(&mut self, seq: u16, udelta: u16) -> Arrival {
        self.max_seq = seq;
        if udelta != 1 {
            self.probation = MIN_SEQUENTIAL - 1;
            return Arrival::Probation;
        }
        self.probation -= 1;
        if self.probation > 0 {
            return Arrival::Probation;
        }
        self.restart(seq);
        self.received = 1;
        Arrival::Valid
    }

    /// RFC 3550 A.3, `extended_max`.
    const fn extended_max(&self) -> u32 {
        self.cycles.wrapping_add(self.max_seq as u32)
    }
    /// RFC 3550 A.3.
    const fn expected(&self) -> u32 {
        self.extended_max().wrapping_sub(self.base_seq as u32).wrapping_add(1)
    }
}

impl Receiver {
    /// A receiver that accepts a source after two packets in sequence (RFC 3550 A.1), with the
    /// media clock at `clock_rate_hz`.
    #[must_use]
    pub const fn new(clock_rate_hz: u32) -> Self {
        Self {
            clock_rate_hz,
            min_sequential: MIN_SEQUENTIAL,
            source: None,
            transit: None,
            jitter_x16: 0,
        }
    }

    /// A receiver that accepts the first source at its first packet, because signalling announced
    /// it; so every packet of the stream is counted.
    #[must_use]
    pub const fn announced(clock_rate_hz: u32) -> Self {
        Self { min_sequential: 0, ..Self::new(clock_rate_hz) }
    }

    /// Validates and counts a packet that arrived at `now` by the receiver's clock.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet) -> Arrival {
        let min_sequential = self.min_sequential;
        let source = self.source.get_or_insert_with(|| Source::first_heard(packet, min_sequential));
        if source.ssrc != packet.ssrc {
            return Arrival::OtherSource;
        }
        let arrival = source.update(packet.sequence);
        if arrival == Arrival::Valid {
            self.on_transit(ticks(now.as_nanos(), self.clock_rate_hz), packet.timestamp);
        }
        arrival
    }

    /// RFC 3550 A.8; no estimate from the first packet.
    fn on_transit(&mut self, arrival: u32, timestamp: u32) {
        let transit = arrival.wrapping_sub(timestamp);
        if let Some(last) = self.transit {
            let d = (transit.wrapping_sub(last) as i32).unsigned_abs();
            let decay = self.jitter_x16.wrapping_add(8) >> 4;
            self.jitter_x16 = self.jitter_x16.wrapping_add(d).wrapping_sub(decay);
        }
        self.transit = Some(transit);
    }

    /// The current source, if any.
    #[must_use]
    pub fn ssrc(&self) -> Option<u32> {
        self.source.as_ref().map(|source| source.ssrc)
    }
    /// Packets counted, duplicates and late ones included.
    #[must_use]
    pub fn received(&self) -> u32 {
        self.source.as_ref().map_or(0, |source| source.received)
    }
    /// Highest sequence number received, extended by the count of its cycles (RFC 3550 §6.4.1).
    #[must_use]
    pub fn highest_sequence(&self) -> Option<u32> {
        self.valid().map(Source::extended_max)
    }
    /// Packets expected less packets received, duplicates included (RFC 3550 A.3); 24 bits.
    #[must_use]
    pub fn cumulative_lost(&self) -> i32 {
        self.valid().map_or(0, |source| {
            (source.expected().wrapping_sub(source.received) as i32).clamp(-0x80_0000, 0x7f_ffff)
        })
    }
    /// Interarrival jitter in ticks of the media clock, as reported (RFC 3550 A.8).
    #[must_use]
    pub const fn jitter_ticks(&self) -> u32 {
        self.jitter_x16 >> 4
    }
    /// Interarrival jitter in seconds, with the four bits that reports leave out.
    #[must_use]
    pub fn jitter_seconds(&self) -> f64 {
        f64::from(self.jitter_x16) / 16.0 / f64::from(self.clock_rate_hz)
    }

    /// The report on the source, `None` before it is valid; begins a new report interval.
    pub fn report(&mut self) -> Option<Reception> {
        let (cumulative_lost, jitter) = (self.cumulative_lost(), self.jitter_ticks());
        let source = self.source.as_mut().filter(|source| source.probation == 0)?;
        let expected = source.expected();
        let expected_interval = expected.wrapping_sub(source.expected_prior);
        let received_interval = source.received.wrapping_sub(source.received_prior);
        source.expected_prior = expected;
        source.received_prior = source.received;
        Some(Reception {
            ssrc: source.ssrc,
            fraction_lost: fraction(expected_interval, received_interval),
            cumulative_lost,
            highest_sequence: source.extended_max(),
            jitter,
        })
    }

    fn valid(&self) -> Option<&Source> {
        self.source.as_ref().filter(|source| source.probation == 0)
    }
}

/// RFC 3550 A.3: lost in 1/256 of expected; zero when duplicates outnumber losses.
fn fraction(expected: u32, received: u32) -> u8 {
    let lost = i64::from(expected) - i64::from(received);
    if expected == 0 || lost <= 0 {
        return 0;
    }
    ((lost << 8) / i64::from(expected)).min(255) as u8
}
