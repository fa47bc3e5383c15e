//! Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1): a receiver's report on
//! each packet of all streams. It is read and written as by libwebrtc, but filled up with zeros as in the draft
//! instead of RTCP's padding.

use serde::Serialize;

use crate::octets::{WireError, at_least, u16_at, u32_at};
use crate::time::Instant;

/// Bytes of the fields before the status chunks.
const HEADER: usize = 8;
/// Bytes of an RTCP packet before them: its header, two SSRCs, and these fields.
const PACKET_HEADER: usize = 12 + HEADER;
/// Unit of arrival times.
const TICK_US: i64 = 250;
/// Unit of the reference time.
const REFERENCE_US: i64 = 64_000;
/// Bits of the reference time.
pub(super) const REFERENCE_BITS: u32 = 24;
/// Statuses in a vector of one bit, and of two bits.
const ONE_BIT: u16 = 14;
const TWO_BIT: u16 = 7;
/// Statuses in a run.
const RUN: u16 = 0x1fff;

/// A report. It is not written if it is on no packet or lacks times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TransportWide {
    /// Transport-wide sequence number of the first packet.
    pub base: u16,
    /// Packets reported on.
    pub count: u16,
    /// Origin of the arrival times: 24 bits, in 64 ms.
    pub reference_time: u32,
    /// Number of this feedback packet.
    pub feedback_count: u8,
    /// Packets received, in sending order: number, and time since the one before, or the origin, in 250 µs.
    /// Times are all there or all absent.
    pub received: Vec<(u16, Option<i16>)>,
}

impl TransportWide {
    /// Packets received, and their arrivals by the clock of the receiver in µs, whose origin is arbitrary.
    pub fn arrivals_us(&self) -> impl Iterator<Item = (u16, Option<i64>)> {
        let mut clock = i64::from(self.reference_time) * REFERENCE_US;
        self.received.iter().map(move |(number, delta)| {
            let at = delta.map(|delta| {
                clock += i64::from(delta) * TICK_US;
                clock
            });
            (*number, at)
        })
    }

    /// Each packet reported on, with its entry in a list of those received.
    pub(super) fn packets<T>(
        &self,
        received: impl Iterator<Item = (u16, T)>,
    ) -> impl Iterator<Item = (u16, Option<T>)> {
        let mut received = received.peekable();
        (0..self.count).map(move |place| {
            let number = self.base.wrapping_add(place);
            (number, received.next_if(|(one, _)| *one == number).map(|(_, entry)| entry))
        })
    }

    /// The time of each packet that was received.
    fn deltas(&self) -> impl Iterator<Item = Option<i16>> {
        let received = self.received.iter().map(|(number, delta)| (*number, delta.unwrap_or(0)));
        self.packets(received).map(|(_, delta)| delta)
    }

    fn chunks(&self, mut write: impl FnMut(u16)) {
        let mut open = Chunk::default();
        for delta in self.deltas() {
            open.push(delta.map_or(0, delta_bytes)).into_iter().for_each(&mut write);
        }
        while open.len > 0 {
            write(open.take(true));
        }
    }

    /// Bytes after the SSRC of the media source.
    pub(super) fn content_bytes(&self) -> usize {
        if self.count == 0 || self.received.iter().any(|(_, delta)| delta.is_none()) {
            return 0;
        }
        let mut bytes = HEADER;
        self.chunks(|_| bytes += 2);
        bytes +=
            self.deltas().flatten().map(|delta| usize::from(delta_bytes(delta))).sum::<usize>();
        bytes.next_multiple_of(4)
    }

    pub(super) fn emit_content(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.base.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
        let times = self.reference_time << 8 | u32::from(self.feedback_count);
        out.extend_from_slice(&times.to_be_bytes());
        self.chunks(|chunk| out.extend_from_slice(&chunk.to_be_bytes()));
        for delta in self.deltas().flatten() {
            let bytes = delta.to_be_bytes();
            out.extend_from_slice(&bytes[2 - usize::from(delta_bytes(delta))..]);
        }
        out.resize(start + (out.len() - start).next_multiple_of(4), 0);
    }

    /// Reads what follows the SSRC of the media source: as much as is there, and what is wrong with it.
    ///
    /// # Errors
    /// Bytes that end before the statuses.
    pub fn read(bytes: &[u8]) -> Result<(Self, Option<WireError>), WireError> {
        const TRUNCATED: WireError = WireError::Truncated("RTCP transport-wide feedback");
        at_least(bytes, HEADER, "RTCP transport-wide feedback")?;
        let (base, count) = (u16_at(bytes, 0), u16_at(bytes, 2));
        let mut left = count;
        let mut number = base;
        let mut rest = &bytes[HEADER..];
        // Packets received, each with the bytes of its time.
        let mut sizes: Vec<(u16, u8)> = Vec::new();
        while left > 0 {
            let Some((chunk, behind)) = rest.split_first_chunk() else { break };
            rest = behind;
            let chunk = u16::from_be_bytes(*chunk);
            let (symbols, symbol): (u16, &dyn Fn(u16) -> u16) = match chunk >> 14 {
                // A run of one symbol; a list of symbols with one bit, or with two.
                0 | 1 => (chunk & RUN, &|_| chunk >> 13),
                2 => (ONE_BIT, &|place| chunk >> (13 - place) & 1),
                _ => (TWO_BIT, &|place| chunk >> (12 - 2 * place) & 3),
            };
            for place in 0..symbols.min(left) {
                match symbol(place) {
                    0 => {}
                    size => sizes.push((number, size as u8)),
                }
                number = number.wrapping_add(1);
            }
            left -= symbols.min(left);
        }
        // Without room for all times there are none: the sender of the media may ask for that.
        let timed = rest.len() >= sizes.iter().map(|(_, size)| usize::from(*size)).sum();
        let mut wrong = (left > 0).then_some(TRUNCATED);
        if timed && sizes.iter().any(|(_, size)| *size == 3) {
            wrong = wrong.or(Some(WireError::Malformed("RTCP transport-wide feedback symbol")));
        }
        let timed = timed && wrong.is_none();
        let mut delta = |size: u8| {
            let (bytes, behind) = rest.split_at(size.into());
            rest = behind;
            match *bytes {
                [high, low] => i16::from_be_bytes([high, low]),
                _ => bytes[0].into(),
            }
        };
        let received =
            sizes.iter().map(|(number, size)| (*number, timed.then(|| delta(*size)))).collect();
        let (reference_time, feedback_count) = (u32_at(bytes, 4) >> 8, bytes[7]);
        Ok((Self { base, count, reference_time, feedback_count, received }, wrong))
    }
}

/// Bytes of the time of a packet, and its status.
fn delta_bytes(delta: i16) -> u16 {
    if u8::try_from(delta).is_ok() { 1 } else { 2 }
}

/// Statuses that are not written yet. Like libwebrtc's, a chunk is chosen once the next status does not fit it.
#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    /// The first ones; a run may be longer.
    statuses: [u16; ONE_BIT as usize],
    len: u16,
}

impl Chunk {
    fn statuses(&self) -> &[u16] {
        &self.statuses[..self.len.min(ONE_BIT).into()]
    }

    fn is_run_of(&self, status: u16) -> bool {
        self.statuses().iter().all(|one| *one == status)
    }

    fn fits(&self, status: u16) -> bool {
        let one_bit = status < 2 && self.statuses().iter().all(|one| *one < 2);
        self.len < TWO_BIT
            || self.len < ONE_BIT && one_bit
            || self.len < RUN && self.is_run_of(status)
    }

    /// Adds a status; returns the chunk for which it is one too many.
    fn push(&mut self, status: u16) -> Option<u16> {
        let full = (!self.fits(status)).then(|| self.take(false));
        if let Some(place) = self.statuses.get_mut(usize::from(self.len)) {
            *place = status;
        }
        self.len += 1;
        full
    }

    /// Removes a chunk, the last one or not.
    fn take(&mut self, is_last: bool) -> u16 {
        if self.is_run_of(self.statuses[0]) {
            return self.statuses[0] << 13 | std::mem::take(&mut self.len);
        }
        let one_bit = self.len == ONE_BIT || is_last && self.len > TWO_BIT;
        let (form, bits) = if one_bit { (0x8000, 1) } else { (0xc000, 2) };
        let taken = self.len.min(ONE_BIT / bits);
        let places = (1..).zip(&self.statuses[..taken.into()]);
        let chunk =
            places.fold(form, |chunk, (place, status)| chunk | status << (14 - bits * place));
        self.statuses.rotate_left(taken.into());
        self.len -= taken;
        chunk
    }
}

/// A report that is made packet by packet.
#[derive(Clone, Debug)]
pub(super) struct Builder {
    pub(super) report: TransportWide,
    /// Arrival of the last packet as the report tells it.
    last_us: i64,
    open: Chunk,
    /// Bytes of the RTCP packet without the open chunk.
    bytes: usize,
}

impl Builder {
    /// On packets from `base` on, of which the first that arrived did so then.
    pub(super) fn new(base: u16, arrived: Instant, feedback_count: u8) -> Self {
        let reference = us(arrived) / REFERENCE_US;
        let reference_time = reference as u32 & ((1 << REFERENCE_BITS) - 1);
        let report =
            TransportWide { base, reference_time, feedback_count, ..TransportWide::default() };
        let last_us = reference * REFERENCE_US;
        Self { report, last_us, open: Chunk::default(), bytes: PACKET_HEADER }
    }

    /// Adds a packet behind some that were lost; false if the time between packets or the RTCP packet would be
    /// too long.
    pub(super) fn push(&mut self, lost: u16, arrived: Instant, most_bytes: usize) -> bool {
        // Rounded like libwebrtc's.
        let since = us(arrived) - self.last_us;
        let half = if since < 0 { -TICK_US / 2 } else { TICK_US / 2 };
        let Ok(delta) = i16::try_from((since + half) / TICK_US) else { return false };
        let Some(place) = self.report.count.checked_add(lost).filter(|place| *place < u16::MAX)
        else {
            return false;
        };
        let size = delta_bytes(delta);
        let (mut open, mut bytes) = (self.open, self.bytes + usize::from(size));
        for status in std::iter::repeat_n(0, lost.into()).chain([size]) {
            bytes += if open.push(status).is_some() { 2 } else { 0 };
        }
        if (bytes + 2).next_multiple_of(4) > most_bytes {
            return false;
        }
        (self.open, self.bytes) = (open, bytes);
        self.last_us += i64::from(delta) * TICK_US;
        self.report.count = place + 1;
        self.report.received.push((self.report.base.wrapping_add(place), Some(delta)));
        true
    }
}

fn us(at: Instant) -> i64 {
    (at.as_nanos() / 1000) as i64
}

/// An arrival, with the unwrapped reference time of its report.
pub(super) fn instant(report: &TransportWide, reference: u64, us: i64) -> Instant {
    let since = us - i64::from(report.reference_time) * REFERENCE_US;
    let origin = reference.saturating_mul(REFERENCE_US as u64);
    Instant::from_nanos(origin.saturating_add_signed(since).saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status chunks of a report on packets with these times, which is read as it was written.
    fn chunks(deltas: &[Option<i16>]) -> Vec<u16> {
        let base = 65_530_u16;
        let received = (0..).zip(deltas).filter_map(|(place, delta)| {
            delta.map(|delta| (base.wrapping_add(place), Some(delta)))
        });
        let report = TransportWide {
            base,
            count: deltas.len() as u16,
            reference_time: 0xab_cdef,
            feedback_count: 9,
            received: received.collect(),
        };
        let mut out = Vec::new();
        report.emit_content(&mut out);
        assert_eq!(out.len(), report.content_bytes());
        assert_eq!(out[4..8], [0xab, 0xcd, 0xef, 9]);
        assert_eq!(TransportWide::read(&out), Ok((report.clone(), None)));
        let mut words = Vec::new();
        report.chunks(|chunk| words.push(chunk));
        words
    }

    /// Cases of libwebrtc's transport_feedback_unittest.cc, with as many chunks as there.
    #[test]
    fn chunks_are_those_of_libwebrtc() {
        let at = |places: &[usize], delta: i16| {
            let mut deltas = vec![None; places[places.len() - 1] + 1];
            places.iter().for_each(|place| deltas[*place] = Some(delta));
            deltas
        };
        let (small, large) = (4, 256);
        // OneBitVector, TwoBitVector and TwoBitVectorFull.
        assert_eq!(chunks(&at(&[0, 1, 6, 7, 8, 9, 12], small)), [0xb0f2]);
        assert_eq!(chunks(&at(&[0, 1, 5, 6], large)), [0xe80a]);
        assert_eq!(chunks(&at(&[0, 1, 5, 6, 7], large)), [0xe80a, 0x4001]);
        // MaxRle and MinRle.
        assert_eq!(chunks(&at(&[0, 8205], small)), [0xa000, 0x1fff, 0x2001]);
        assert_eq!(chunks(&at(&[0, 29], small)), [0xa000, 15, 0x2001]);
        // OneToTwoBitVector, its SimpleSplit and its Split.
        let mixed = |place: usize| {
            let mut deltas = at(&[0, place], large);
            deltas[0] = Some(small);
            deltas
        };
        assert_eq!(chunks(&mixed(6)), [0xd002]);
        assert_eq!(chunks(&mixed(7)), [0xd000, 0x4001]);
        let mut split = vec![Some(small); 22];
        split[8] = Some(large);
        assert_eq!(chunks(&split), [0x2008, 0xe555, 0x2007]);
    }

    #[test]
    fn what_cannot_be_written_is_not() {
        let untimed = TransportWide { count: 1, received: vec![(0, None)], ..Default::default() };
        assert_eq!(untimed.content_bytes(), 0);
        assert_eq!(TransportWide::default().content_bytes(), 0);
        assert!(TransportWide::read(&[0; 7]).is_err());
    }
}
