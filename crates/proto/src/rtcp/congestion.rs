//! Packet metric blocks of congestion control feedback (RFC 8888 §3.1).

/// What a report says of one RTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Not received yet.
    NotReceived,
    /// Received, with the ECN bits of its IP header.
    Received {
        /// ECN field, 0 to 3.
        ecn: u8,
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
        Self::Received { ecn: (bits >> 13 & 3) as u8, arrival }
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
        0x8000 | ((ecn & 3) as u16) << 13 | offset
    }
}

#[cfg(test)]
mod tests {
    use super::{ArrivalOffset, Metric};

    #[test]
    fn reads_the_fields_of_section_3_1() {
        let received = |ecn, arrival| Metric::Received { ecn, arrival };
        // R, ECN and offset: 1 11 0001000000000 is half a second with CE.
        assert_eq!(Metric::from_bits(0xe200), received(3, ArrivalOffset::Known(512)));
        assert_eq!(Metric::from_bits(0x9ffd), received(0, ArrivalOffset::Known(8189)));
        assert_eq!(Metric::from_bits(0x9ffe), received(0, ArrivalOffset::OverRange));
        assert_eq!(Metric::from_bits(0xbfff), received(1, ArrivalOffset::Unavailable));
        assert_eq!(Metric::from_bits(0x7fff), Metric::NotReceived);
        assert_eq!(Metric::NotReceived.to_bits(), 0);
        assert_eq!(received(0, ArrivalOffset::Known(8190)).to_bits(), 0x9ffe);
    }

    #[test]
    fn every_received_value_survives_a_round_trip() {
        for bits in 0x8000..=0xffff {
            assert_eq!(Metric::from_bits(bits).to_bits(), bits);
        }
    }
}
