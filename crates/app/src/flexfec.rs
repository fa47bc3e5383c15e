//! Parity packets beside a stream of speech (FlexFEC, RFC 8627): parameters, the sender's repair stream, and
//! the receiver's restoration of lost packets. The codes themselves are in `talkspurt_proto::rtp::flexfec`.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::octets::{Hints, WireError};
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rate::Rung;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::rtp::{self, flexfec, wire};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_proto::validate::{ConfigError, ConfigErrors};

/// A dynamic RTP payload type, assigned by signalling, which this value replaces.
pub const PAYLOAD_TYPE: u8 = 122;
/// Bytes by which a repair packet is longer than the longest packet that it protects: the FEC header, and the
/// protected source in the CSRC list.
pub const EXTRA_BYTES: u32 = (flexfec::HEADER_BYTES + rtp::CSRC_BYTES) as u32;
/// Longest time that a block may span: nobody waits longer for speech.
pub const LONGEST_BLOCK: Duration = Duration::from_secs(60);
/// RFC 8627 §4.2.2.2: D has eight bits, and D = 1 means row parity.
const ROWS: RangeInclusive<u16> = 2..=255;
/// Packets by which arrivals may be out of order beyond the block.
const REORDERING: u32 = 256;
/// Packets without which a pause of the sender ends a block.
const PAUSE_PACKETS: u64 = 2;

/// Parity packets (FlexFEC, RFC 8627).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Packets in a row (L), which are consecutive.
    #[schemars(range(min = 1, max = 255))]
    pub columns: u8,
    /// Rows in a block (D), 2 to 255; only with column parity, which needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u16>,
    /// What the repair packets protect.
    #[serde(default)]
    pub parity: Parity,
}

/// What repair packets protect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Parity {
    /// Each row, by one repair packet after it: against single losses. The shortest delay.
    #[default]
    Rows,
    /// Each column, by one repair packet after the column's last packet: against bursts of up to `columns`
    /// packets.
    Columns,
    /// Both. The repair packets of columns follow the block.
    Both,
}

impl Config {
    /// What contradicts itself or the packets of this duration.
    #[must_use]
    pub fn errors(&self, packet: Duration) -> Vec<ConfigError> {
        let mut found = ConfigErrors::default();
        match (self.parity, self.rows) {
            (Parity::Rows, Some(_)) => found.add_with_hint(
                "rows",
                "row parity has one row in a block",
                "leave it out, or set parity to \"columns\" or \"both\"",
            ),
            (Parity::Columns | Parity::Both, None) => {
                found.add_with_hint("rows", "column parity needs the number of rows", "rows = 4");
            }
            (_, Some(rows)) if !ROWS.contains(&rows) => {
                let (least, most) = ROWS.into_inner();
                let why = format!("{rows} is no length of a column: {least} to {most}");
                found.add("rows", why);
            }
            _ => {
                let packets = u64::from(self.block().packets());
                let whole = u128::from(packet.as_nanos()) * u128::from(packets);
                if whole > u128::from(LONGEST_BLOCK.as_nanos()) {
                    let why = format!(
                        "a block of {packets} packets of {packet} spans more than {LONGEST_BLOCK}"
                    );
                    found.add("columns", why);
                }
            }
        }
        found.0
    }

    fn block(&self) -> flexfec::Block {
        let parity = match self.parity {
            Parity::Rows => flexfec::Parity::Rows,
            Parity::Columns => flexfec::Parity::Columns,
            Parity::Both => flexfec::Parity::Both,
        };
        let rows = self.rows.and_then(|rows| u8::try_from(rows).ok()).unwrap_or(1);
        flexfec::Block { columns: self.columns.max(1), rows, parity }
    }

    /// Number of packets in a block, or in a row if only rows are protected.
    #[must_use]
    pub fn packets(&self) -> u32 {
        self.block().packets()
    }

    /// The rate of source packets, RTP headers included, if these and repair packets are sent at `total`.
    #[must_use]
    pub fn source_rate(&self, total: Rate, packet: Duration) -> Rate {
        // Of a block of n source packets and k repair packets, each of the latter is longer by its header:
        // total = n B + k (B + extra).
        let (n, k) = (u128::from(self.packets()), u128::from(self.block().repair_packets()));
        let extra = u128::from(EXTRA_BYTES) * 8 * 1_000_000_000;
        let extra = extra * k / (n * u128::from(packet.as_nanos().max(1)));
        let left = u128::from(total.as_bps()).saturating_sub(extra);
        Rate::from_bps((left * n / (n + k)) as u64)
    }

    /// Packets of this size with those that protect them: as many more as repair packets have bytes.
    #[must_use]
    pub fn protected(&self, rung: Rung) -> Rung {
        let (n, k) = (u64::from(self.packets()), u64::from(self.block().repair_packets()));
        let own = u64::from(rung.packet_bytes);
        let all = n * own + k * (own + u64::from(EXTRA_BYTES));
        let interval = u128::from(rung.interval.as_nanos()) * u128::from(n * own) / u128::from(all);
        Rung { interval: Duration::from_nanos(interval as u64), ..rung }
    }
}

/// The sender's repair stream.
#[derive(Debug)]
pub(crate) struct Sender {
    config: Config,
    packet: Duration,
    rtp: rtp::Sender,
    encoder: flexfec::Encoder,
    /// Time without a packet after which the block ends.
    pause: Duration,
    /// When that is, by the local clock.
    pub(crate) ends: Option<Instant>,
    /// The source packet as bytes.
    bytes: Vec<u8>,
}

impl Sender {
    /// For source packets of this duration, which leave up to `noise` late; the media clock is 0 at `origin`.
    pub(crate) fn new(
        config: Config,
        (packet, noise): (Duration, Duration),
        clock_hz: u32,
        origin: Instant,
        mut rng: Rng,
    ) -> Self {
        let mut rtp = rtp::Sender::new(PAYLOAD_TYPE, clock_hz, &mut rng);
        rtp.anchor(origin, 0);
        Self {
            config,
            packet,
            rtp,
            encoder: flexfec::Encoder::new(config.block()),
            pause: packet * PAUSE_PACKETS + noise,
            ends: None,
            bytes: Vec::new(),
        }
    }

    /// The rate of source packets at a total rate.
    pub(crate) fn source_rate(&self, total: Rate) -> Rate {
        self.config.source_rate(total, self.packet)
    }

    /// A source packet is sent at `now`; returns the repair packets that follow it. One without speech begins
    /// no block.
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        packet: &rtp::Packet,
        is_speech: bool,
    ) -> Vec<Frame> {
        if !is_speech && !self.encoder.is_open() {
            return Vec::new();
        }
        self.bytes.clear();
        wire::emit(packet, &mut self.bytes);
        let repair = self.encoder.push(&self.bytes);
        self.ends = self.encoder.is_open().then(|| now + self.pause);
        self.packets(now, packet.ssrc, repair)
    }

    /// Repair packets of the source with this SSRC for a block that has ended early: after a pause, or because
    /// nothing more is sent.
    pub(crate) fn end_block(&mut self, now: Instant, is_over: bool, ssrc: u32) -> Vec<Frame> {
        if !is_over && self.ends.is_none_or(|ends| ends > now) {
            return Vec::new();
        }
        self.ends = None;
        let repair = self.encoder.flush();
        self.packets(now, ssrc, repair)
    }

    fn packets(&mut self, now: Instant, ssrc: u32, payloads: Vec<Bytes>) -> Vec<Frame> {
        // RFC 8627 §4.2.1: the timestamp is the time of transmission, the marker 0.
        let offset = self.rtp.timestamp_at(now).wrapping_sub(self.rtp.first_timestamp());
        let packet = |payload| {
            let packet = self.rtp.packet(offset, false, Payload::Real(payload));
            Frame::Rtp(rtp::Packet { csrc: NonZeroU32::new(ssrc), ..packet })
        };
        payloads.into_iter().map(packet).collect()
    }
}

/// Restores lost packets of the other side's stream.
#[derive(Debug)]
pub(crate) struct Receiver {
    decoder: flexfec::Decoder,
    ssrc: u32,
}

impl Receiver {
    /// For the stream of this SSRC.
    pub(crate) fn new(config: &Config, ssrc: u32) -> Self {
        let window = config.packets() + config.packets().min(REORDERING) + REORDERING;
        Self { decoder: flexfec::Decoder::new(ssrc, window), ssrc }
    }

    /// A source packet arrived; returns those that can be restored now.
    pub(crate) fn on_source(&mut self, packet: &rtp::Packet) -> Vec<rtp::Packet> {
        let mut bytes = Vec::with_capacity(packet.wire_bytes());
        // Parity is of packets before they are numbered.
        let plain = rtp::Packet { transport: packet.transport.map(|_| 0), ..packet.clone() };
        wire::emit(&plain, &mut bytes);
        parsed(&self.decoder.on_source(bytes.into()))
    }

    /// The same for a repair packet.
    ///
    /// # Errors
    /// Another source's repair packet, and bytes that are none.
    pub(crate) fn on_repair(
        &mut self,
        packet: &rtp::Packet,
    ) -> Result<Vec<rtp::Packet>, WireError> {
        if packet.csrc.map(NonZeroU32::get) != Some(self.ssrc) {
            return Err(WireError::Unsupported("repair of another source"));
        }
        let Payload::Real(payload) = &packet.payload else {
            return Err(WireError::Malformed("FEC header"));
        };
        self.decoder.on_repair(payload).map(|restored| parsed(&restored))
    }
}

/// Packets without those whose bytes, though restored, are no RTP packets.
fn parsed(restored: &[Bytes]) -> Vec<rtp::Packet> {
    restored.iter().filter_map(|bytes| wire::parse(bytes, Hints::default()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Duration = Duration::from_millis(20);

    #[test]
    fn a_total_rate_is_divided_between_source_and_repair_packets() {
        // 4 packets of 172 bytes and one of 188 in 80 ms: 876 bytes, 87.6 kbit/s; the former 68.8 kbit/s.
        let rows = Config { columns: 4, rows: None, parity: Parity::Rows };
        let source = Rate::from_bps(68_800);
        assert_eq!(rows.source_rate(Rate::from_bps(87_600), PACKET), source);
        let rung = rows.protected(Rung { packet_bytes: 172, interval: PACKET });
        assert_eq!(rung.packet_bytes, 172);
        assert!(rung.rate().as_bps().abs_diff(87_600) <= 1, "{:?}", rung.rate());
        // 12 packets, and 3 + 4 repair packets.
        let both = Config { columns: 4, rows: Some(3), parity: Parity::Both };
        let total = (12 * 172 + 7 * 188) * 8 * 1000 / 240;
        let found = both.source_rate(Rate::from_bps(total), PACKET).as_bps();
        assert!(found.abs_diff(68_800) <= 1, "{found}");
        assert_eq!(both.source_rate(Rate::from_bps(1), PACKET), Rate::ZERO);
    }
}
