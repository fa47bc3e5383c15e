//! Congestion control feedback (RFC 8888 §3.1): a receiver's report on each RTP packet.
//!
//! The RFC is inconsistent on `num_reports`: sequence numbers "begin_seq to begin_seq+num_reports
//! inclusive", and 0 for no metric block. As in implementations, it is the number of metric blocks here.

use serde::{Serialize, Serializer};

use crate::octets::{WireError, at_least, ecn, u16_at, u32_at};
use crate::packet::Ecn;

/// Maximum metric blocks of one stream: a quarter of the sequence numbers.
pub const MAX_METRICS: usize = 16_384;

/// A report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CongestionControl {
    /// Streams that were received.
    pub streams: Vec<Stream>,
    /// The reference instant of arrivals: the middle 32 bits of an NTP time, in 1/65536 s.
    pub timestamp: u32,
}

/// Packets of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stream {
    /// Its SSRC.
    pub ssrc: u32,
    /// Sequence number of the first packet.
    pub begin: u16,
    /// Packets in the order of their sequence numbers; at most [`MAX_METRICS`] are written.
    pub metrics: Vec<Metric>,
}

impl Stream {
    fn written(&self) -> &[Metric] {
        &self.metrics[..self.metrics.len().min(MAX_METRICS)]
    }

    /// Each packet with its sequence number.
    pub fn packets(&self) -> impl Iterator<Item = (u16, Metric)> + '_ {
        self.metrics
            .iter()
            .enumerate()
            .map(|(offset, metric)| (self.begin.wrapping_add(offset as u16), *metric))
    }
}

impl CongestionControl {
    /// Bytes after the SSRC of the packet's sender.
    pub(super) fn content_bytes(&self) -> usize {
        let blocks = self.streams.iter().map(|one| (2 * one.written().len()).next_multiple_of(4));
        blocks.map(|bytes| 8 + bytes).sum::<usize>() + 4
    }

    pub(super) fn emit_content(&self, out: &mut Vec<u8>) {
        for stream in &self.streams {
            let metrics = stream.written();
            out.extend_from_slice(&stream.ssrc.to_be_bytes());
            out.extend_from_slice(&stream.begin.to_be_bytes());
            out.extend_from_slice(&(metrics.len() as u16).to_be_bytes());
            out.extend(metrics.iter().flat_map(|metric| metric.to_bits().to_be_bytes()));
            if metrics.len() % 2 == 1 {
                out.extend_from_slice(&[0, 0]);
            }
        }
        out.extend_from_slice(&self.timestamp.to_be_bytes());
    }

    /// Reads what follows the SSRC of the packet's sender.
    ///
    /// # Errors
    /// Truncated bytes, or more metric blocks than a report may have.
    pub(super) fn parse(mut bytes: &[u8]) -> Result<Self, WireError> {
        let mut streams = Vec::new();
        while bytes.len() > 4 {
            at_least(bytes, 8, "RTCP congestion control feedback")?;
            let (ssrc, begin, count) = (u32_at(bytes, 0), u16_at(bytes, 4), u16_at(bytes, 6));
            let count = usize::from(count);
            if count > MAX_METRICS {
                return Err(WireError::Malformed("RTCP congestion control feedback count"));
            }
            let end = 8 + (2 * count).next_multiple_of(4);
            at_least(bytes, end, "RTCP congestion control feedback")?;
            let blocks = bytes[8..8 + 2 * count].chunks_exact(2);
            let metrics = blocks.map(|block| Metric::from_bits(u16_at(block, 0))).collect();
            streams.push(Stream { ssrc, begin, metrics });
            bytes = &bytes[end..];
        }
        at_least(bytes, 4, "RTCP congestion control feedback")?;
        Ok(Self { streams, timestamp: u32_at(bytes, 0) })
    }
}
/// Report on one RTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Not received yet.
    NotReceived,
    /// Received, with the ECN bits of its IP header.
    Received {
        /// ECN field.
        ecn: Ecn,
        /// Arrival relative to the report timestamp.
        arrival: ArrivalOffset,
    },
}

/// Arrival time offset in units of 1/1024 s before the report timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalOffset {
    /// At most [`LARGEST_OFFSET`].
    Known(u16),
    /// More than [`LARGEST_OFFSET`].
    OverRange,
    /// Not measured, or after the report timestamp.
    Unavailable,
}

/// The largest offset a report carries as a number: 8189/1024 s.
pub const LARGEST_OFFSET: u16 = 0x1ffd;

impl Metric {
    /// Reads the 16 bits.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        // RFC 8888 §3.1: without R the other bits MUST be ignored.
        if bits & 0x8000 == 0 {
            return Self::NotReceived;
        }
        let arrival = match bits & 0x1fff {
            0x1fff => ArrivalOffset::Unavailable,
            0x1ffe => ArrivalOffset::OverRange,
            offset => ArrivalOffset::Known(offset),
        };
        Self::Received { ecn: ecn((bits >> 13 & 3) as u8), arrival }
    }

    /// The 16 bits.
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        let Self::Received { ecn, arrival } = self else { return 0 };
        let offset = match arrival {
            ArrivalOffset::Unavailable => 0x1fff,
            ArrivalOffset::Known(offset) if offset <= LARGEST_OFFSET => offset,
            ArrivalOffset::Known(_) | ArrivalOffset::OverRange => 0x1ffe,
        };
        0x8000 | (ecn as u16) << 13 | offset
    }
}

impl Serialize for Metric {
    /// Nothing if it was not received, otherwise the values of the two fields: ECN and arrival time offset.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bits = self.to_bits();
        (bits != 0).then_some((bits >> 13 & 3, bits & 0x1fff)).serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::{ArrivalOffset, CongestionControl, Metric, Stream};
    use crate::packet::Ecn;

    #[test]
    fn reads_the_fields_of_section_3_1() {
        let received = |ecn, arrival| Metric::Received { ecn, arrival };
        // R, ECN and offset: 1 11 0001000000000 is half a second with CE.
        assert_eq!(Metric::from_bits(0xe200), received(Ecn::Ce, ArrivalOffset::Known(512)));
        assert_eq!(Metric::from_bits(0x9ffd), received(Ecn::NotEct, ArrivalOffset::Known(8189)));
        assert_eq!(Metric::from_bits(0x9ffe), received(Ecn::NotEct, ArrivalOffset::OverRange));
        assert_eq!(Metric::from_bits(0xbfff), received(Ecn::Ect1, ArrivalOffset::Unavailable));
        assert_eq!(Metric::from_bits(0x7fff), Metric::NotReceived);
        assert_eq!(Metric::NotReceived.to_bits(), 0);
        assert_eq!(received(Ecn::NotEct, ArrivalOffset::Known(8190)).to_bits(), 0x9ffe);
    }

    /// Two streams, one with an odd number of packets, written by hand after the figure of §3.1.
    #[test]
    fn the_figure_of_section_3_1() {
        let metric = |bits| Metric::from_bits(bits);
        let report = CongestionControl {
            streams: vec![
                Stream { ssrc: 0x0102_0304, begin: 0xffff, metrics: vec![metric(0x8200); 3] },
                Stream { ssrc: 5, begin: 7, metrics: vec![] },
            ],
            timestamp: 0xaabb_ccdd,
        };
        let bytes = [
            1, 2, 3, 4, 0xff, 0xff, 0, 3, 0x82, 0, 0x82, 0, 0x82, 0, 0, 0, // the first
            0, 0, 0, 5, 0, 7, 0, 0, // the second
            0xaa, 0xbb, 0xcc, 0xdd,
        ];
        let mut out = Vec::new();
        report.emit_content(&mut out);
        assert_eq!((out.as_slice(), report.content_bytes()), (&bytes[..], bytes.len()));
        assert_eq!(CongestionControl::parse(&bytes).as_ref(), Ok(&report));
        let sequences: Vec<_> = report.streams[0].packets().map(|(number, _)| number).collect();
        assert_eq!(sequences, [0xffff, 0, 1]);
        for end in 0..bytes.len() {
            // Cut after the first block it is a whole report; its timestamp is the next block's bytes.
            let cut = CongestionControl::parse(&bytes[..end]);
            assert_eq!(cut.is_ok(), matches!(end, 4 | 20), "{end}");
        }
    }

    #[test]
    fn every_received_value_survives_a_round_trip() {
        for bits in 0x8000..=0xffff {
            assert_eq!(Metric::from_bits(bits).to_bits(), bits);
        }
    }
}
