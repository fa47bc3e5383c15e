//! DCCP options (RFC 4340 §5.8): kept as wire bytes, read one by one.
//!
//! A packet without options needs no allocation; parsed options are re-serialised byte for byte.

use crate::octets;

/// Feature numbers (RFC 4340 §6.4; 192 of RFC 4342 §8.5, 128 of RFC 6323).
pub mod feature {
    /// Congestion Control ID (§10).
    pub const CCID: u8 = 1;
    /// Allow Short Sequence Numbers (§7.6.1).
    pub const ALLOW_SHORT_SEQNOS: u8 = 2;
    /// Sequence Window (§7.5.2).
    pub const SEQUENCE_WINDOW: u8 = 3;
    /// ECN Incapable (§12.1).
    pub const ECN_INCAPABLE: u8 = 4;
    /// Ack Ratio (§11.3).
    pub const ACK_RATIO: u8 = 5;
    /// Send Ack Vector (§11.5).
    pub const SEND_ACK_VECTOR: u8 = 6;
    /// Send NDP Count (§7.7.2).
    pub const SEND_NDP_COUNT: u8 = 7;
    /// Minimum Checksum Coverage (§9.2.1).
    pub const MINIMUM_CHECKSUM_COVERAGE: u8 = 8;
    /// Check Data Checksum (§9.3.1).
    pub const CHECK_DATA_CHECKSUM: u8 = 9;
    /// Send RTT Estimate (RFC 6323 §3).
    pub const SEND_RTT_ESTIMATE: u8 = 128;
    /// Send Loss Event Rate (RFC 4342 §8.4), of CCID 3 and 4.
    pub const SEND_LOSS_EVENT_RATE: u8 = 192;
}

/// Types of options that belong to a half-connection's CCID.
pub mod ccid_option {
    /// Loss Event Rate (RFC 4342 §8.5).
    pub const LOSS_EVENT_RATE: u8 = 192;
    /// Loss Intervals (RFC 4342 §8.6).
    pub const LOSS_INTERVALS: u8 = 193;
    /// Receive Rate (RFC 4342 §8.3).
    pub const RECEIVE_RATE: u8 = 194;
    /// Dropped Packets (RFC 5622 §5).
    pub const DROPPED_PACKETS: u8 = 195;
    /// RTT Estimate (RFC 6323 §3.1): from sender to receiver.
    pub const RTT_ESTIMATE: u8 = 128;
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opt<'a> {
    /// 0 (§5.8.1).
    Padding,
    /// 1: the next option must be understood (§5.8.2).
    Mandatory,
    /// 2 (§11.6).
    SlowReceiver,
    /// 32: the feature's location is the sender of this option (§6.1).
    ChangeL(Feature<'a>),
    /// 33 (§6.2).
    ConfirmL(Feature<'a>),
    /// 34: the feature's location is the receiver of this option (§6.1).
    ChangeR(Feature<'a>),
    /// 35 (§6.2).
    ConfirmR(Feature<'a>),
    /// 36 (§8.1.4).
    InitCookie(&'a [u8]),
    /// 37: non-data packets directly before this one (§7.7).
    NdpCount(u64),
    /// 38 and 39 (§11.4): runs, each two bits of state and six of length.
    AckVector {
        /// True for type 39; never sent, since RFC 8311 §6 removed the nonce.
        nonce: bool,
        /// The runs.
        cells: &'a [u8],
    },
    /// 40 (§11.7).
    DataDropped(&'a [u8]),
    /// 41 (§13.1).
    Timestamp(u32),
    /// 42 (§13.3); elapsed time in units of 10 µs, 0 if absent.
    TimestampEcho {
        /// The timestamp echoed.
        timestamp: u32,
        /// Time between its arrival and this packet.
        elapsed: u32,
    },
    /// 43: time since the acknowledged packet arrived, in units of 10 µs (§13.2).
    ElapsedTime(u32),
    /// 44: CRC-32c of the application data (§9.3).
    DataChecksum(u32),
    /// 128 to 255: the CCID's (§10.3); 128 to 191 from HC-sender, 192 to 255 from HC-receiver.
    Ccid {
        /// Type.
        kind: u8,
        /// Its bytes.
        value: &'a [u8],
    },
    /// Any other.
    Unknown {
        /// Type.
        kind: u8,
        /// Its bytes.
        value: &'a [u8],
    },
}

/// Content of the four feature negotiation options (§6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature<'a> {
    /// Feature number.
    pub number: u8,
    /// Value or preference list; empty in a Confirm that refuses.
    pub value: &'a [u8],
}

/// Bytes that are invalid for their option type (§5.8). If the length is impossible, nothing
/// after them can be read; if it is only wrong for the type, reading continues after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The option's type.
    pub kind: u8,
}

/// The options of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(Vec<u8>);

impl Options {
    /// Bytes held.
    pub(super) fn footprint(&self) -> usize {
        self.0.capacity()
    }

    /// Empty, with memory reserved for the options of an acknowledgement.
    pub(super) fn of_an_ack() -> Self {
        Self(Vec::with_capacity(128))
    }
    /// The bytes of an options field.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
    /// The wire bytes, without the Padding that [`Options::pad`] adds.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The options in order. An option with an impossible length ends the iteration (§5.8: it and
    /// the rest are ignored).
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: &self.0 }
    }
    /// True if an option of this type may be present: checks only types and lengths, which is much
    /// cheaper than reading all options.
    #[must_use]
    pub(super) fn may_have(&self, kind: u8) -> bool {
        let mut rest = self.as_bytes();
        while let [first, after @ ..] = rest {
            if *first == kind {
                return true;
            }
            // §5.8: types 0 to 31 are single bytes.
            let len =
                if *first < 32 { 1 } else { after.first().map_or(0, |len| usize::from(*len)) };
            match rest.get(len..) {
                Some(behind) if len > usize::from(*first >= 32) => rest = behind,
                _ => return false,
            }
        }
        false
    }
    /// True if Slow Receiver is present (§11.6), which has no value.
    #[must_use]
    pub(super) fn has_slow_receiver(&self) -> bool {
        self.may_have(2)
    }
    /// The CRC-32c of the application data in a Data Checksum option (§9.3).
    #[must_use]
    pub fn data_checksum(&self) -> Option<u32> {
        self.iter().find_map(|option| match option {
            Ok(Opt::DataChecksum(crc)) => Some(crc),
            _ => None,
        })
    }
    /// Pads to a multiple of four bytes.
    pub fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Appends encoded options.
    pub fn append(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends an option.
    ///
    /// # Panics
    /// If its value is longer than the 253 bytes an option can hold; callers split those that may
    /// be.
    pub fn push(&mut self, option: Opt<'_>) {
        match option {
            Opt::Padding => self.0.push(0),
            Opt::Mandatory => self.0.push(1),
            Opt::SlowReceiver => self.0.push(2),
            Opt::ChangeL(feature) => self.push_feature(32, feature),
            Opt::ConfirmL(feature) => self.push_feature(33, feature),
            Opt::ChangeR(feature) => self.push_feature(34, feature),
            Opt::ConfirmR(feature) => self.push_feature(35, feature),
            Opt::InitCookie(cookie) => self.push_parts(36, &[cookie]),
            Opt::NdpCount(count) => {
                // §7.7: the fewest bytes, one to six.
                let bytes = count.min((1 << 48) - 1).to_be_bytes();
                let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(7);
                self.push_parts(37, &[&bytes[first..]]);
            }
            Opt::AckVector { nonce, cells } => self.push_parts(38 + u8::from(nonce), &[cells]),
            Opt::DataDropped(blocks) => self.push_parts(40, &[blocks]),
            Opt::Timestamp(timestamp) => self.push_parts(41, &[&timestamp.to_be_bytes()]),
            Opt::TimestampEcho { timestamp, elapsed } => {
                self.push_parts(42, &[&timestamp.to_be_bytes(), short(&elapsed.to_be_bytes(), 0)]);
            }
            // §13.2: two bytes, or four.
            Opt::ElapsedTime(elapsed) => {
                self.push_parts(43, &[short(&elapsed.to_be_bytes(), 2)]);
            }
            Opt::DataChecksum(crc) => self.push_parts(44, &[&crc.to_be_bytes()]),
            // §5.8: types 0 to 31 are single bytes.
            Opt::Unknown { kind: kind @ 0..32, .. } => self.0.push(kind),
            Opt::Ccid { kind, value } | Opt::Unknown { kind, value } => {
                self.push_parts(kind, &[value]);
            }
        }
    }

    /// Appends an option with this value.
    ///
    /// # Panics
    /// As [`Options::push`].
    pub(super) fn push_bytes(&mut self, kind: u8, value: impl ExactSizeIterator<Item = u8>) {
        let len = u8::try_from(2 + value.len()).expect("an option holds at most 253 bytes");
        self.0.extend_from_slice(&[kind, len]);
        self.0.extend(value);
    }

    fn push_feature(&mut self, kind: u8, feature: Feature<'_>) {
        self.push_parts(kind, &[&[feature.number], feature.value]);
    }

    fn push_parts(&mut self, kind: u8, parts: &[&[u8]]) {
        let len = 2 + parts.iter().map(|part| part.len()).sum::<usize>();
        let len = u8::try_from(len).expect("an option holds at most 253 bytes");
        self.0.extend_from_slice(&[kind, len]);
        parts.iter().for_each(|part| self.0.extend_from_slice(part));
    }
}

/// The four bytes of a number, or its low two if they suffice, or none if it is 0 and `least` is 0.
fn short(bytes: &[u8; 4], least: usize) -> &[u8] {
    match (bytes, least) {
        ([0, 0, 0, 0], 0) => &[],
        ([0, 0, _, _], _) => &bytes[2..],
        _ => bytes,
    }
}

/// Reads options one by one.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<Opt<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, after) = self.rest.split_first()?;
        // §5.8: types 0 to 31 are single bytes.
        if kind < 32 {
            self.rest = after;
            return Some(Ok(match kind {
                0 => Opt::Padding,
                1 => Opt::Mandatory,
                2 => Opt::SlowReceiver,
                kind => Opt::Unknown { kind, value: &[] },
            }));
        }
        let len = after.first().map_or(0, |len| usize::from(*len));
        if len < 2 || len > self.rest.len() {
            self.rest = &[];
            return Some(Err(Malformed { kind }));
        }
        let (option, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(read(kind, &option[2..]))
    }
}

fn read(kind: u8, value: &[u8]) -> Result<Opt<'_>, Malformed> {
    let feature = || match value.split_first() {
        Some((&number, value)) => Ok(Feature { number, value }),
        None => Err(Malformed { kind }),
    };
    let number = |range: std::ops::RangeInclusive<usize>| {
        if range.contains(&value.len()) {
            Ok(octets::number(value))
        } else {
            Err(Malformed { kind })
        }
    };
    Ok(match kind {
        32 => Opt::ChangeL(feature()?),
        33 => Opt::ConfirmL(feature()?),
        34 => Opt::ChangeR(feature()?),
        35 => Opt::ConfirmR(feature()?),
        36 => Opt::InitCookie(value),
        37 => Opt::NdpCount(number(1..=6)?),
        38 | 39 => Opt::AckVector { nonce: kind == 39, cells: value },
        40 => Opt::DataDropped(value),
        41 => Opt::Timestamp(number(4..=4)? as u32),
        42 => match value.len() {
            4 | 6 | 8 => {
                let (stamp, elapsed) = value.split_at(4);
                let [timestamp, elapsed] = [stamp, elapsed].map(|it| octets::number(it) as u32);
                Opt::TimestampEcho { timestamp, elapsed }
            }
            _ => return Err(Malformed { kind }),
        },
        43 if value.len() == 3 => return Err(Malformed { kind }),
        43 => Opt::ElapsedTime(number(2..=4)? as u32),
        44 => Opt::DataChecksum(number(4..=4)? as u32),
        128.. => Opt::Ccid { kind, value },
        _ => Opt::Unknown { kind, value },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// The check of types and lengths finds every option that reading finds, in any bytes.
    #[test]
    fn a_look_misses_nothing_that_is_read() {
        let mut rng = Rng::new(1, "options");
        let (mut slow, mut dropped) = (0, 0);
        for _ in 0..20_000 {
            let mut byte = || [0, 1, 2, 2, 3, 4, 5, 38, 40, 40, 128, 255][rng.bits() as usize % 12];
            let bytes: Vec<u8> = (0..12).map(|_| byte()).collect();
            let options = Options::from_bytes(&bytes);
            let reads = |wanted: fn(&Opt<'_>) -> bool| {
                options.iter().any(|option| option.is_ok_and(|option| wanted(&option)))
            };
            let is_slow = reads(|option| *option == Opt::SlowReceiver);
            assert_eq!(options.has_slow_receiver(), is_slow, "{bytes:?}");
            let drops = reads(|option| matches!(option, Opt::DataDropped(_)));
            assert!(options.may_have(40) || !drops, "{bytes:?}");
            (slow, dropped) = (slow + u32::from(is_slow), dropped + u32::from(drops));
        }
        assert!(slow > 1000 && dropped > 1000, "{slow} and {dropped} of 20000");
    }
}
