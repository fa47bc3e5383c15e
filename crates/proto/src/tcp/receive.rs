//! The receive side: acceptability of segments, the offered window, and when to acknowledge
//! (RFC 9293 §3.8.6 and §3.10.7.4, RFC 5681 §4.2, RFC 7323 §4 and §5).

use super::reassembly::{Reassembly, Took};
use super::report::Report;
use super::segment::SackBlocks;
use crate::packet::Payload;
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// RFC 7323 §5.5: a timestamp kept for longer than this is invalid.
const STALE_TIMESTAMP: Duration = Duration::from_secs(24 * 24 * 3600);

/// The RCV variables of RFC 9293 §3.3.1 and dependent state.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// IRS.
    pub(super) irs: Seq,
    /// RCV.NXT.
    pub(super) nxt: Seq,
    /// The farthest right edge ever offered: RCV.NXT + RCV.WND.
    edge: Seq,
    /// Size of the receive buffer; the application empties it at once.
    buffer: u64,
    /// Rcv.Wind.Shift (RFC 7323 §2.2), 0 unless negotiated.
    pub(super) shift: u8,
    /// Last.ACK.sent (RFC 7323 §4.3).
    acked: Seq,
    /// An acknowledgement must leave now.
    pub(super) ack_now: bool,
    /// Payload of the largest segment seen: "full-sized" for this peer.
    full: u64,
    /// Minimum step of the offered edge.
    step: u64,
    /// Position of the peer's FIN.
    pub(super) fin: Option<Seq>,
    /// TS.Recent and when it was set.
    recent: Option<(u32, Instant)>,
    pub(super) reassembly: Reassembly,
    /// What is reported of `reassembly`, if the SACK option was negotiated.
    pub(super) report: Option<Box<Report>>,
}

impl Receiver {
    pub(super) fn new(buffer: u64, mss: u64) -> Self {
        let buffer = buffer.clamp(1, 65_535 << 14);
        let start = Seq::first(0);
        Self {
            irs: start,
            nxt: start,
            edge: start,
            buffer,
            acked: start,
            full: 1,
            step: (buffer / 2).min(mss),
            ..Self::default()
        }
    }

    /// The shift that lets the whole buffer be offered (RFC 7323 §2.3: at most 14).
    pub(super) fn wanted_shift(&self) -> u8 {
        (0..14).find(|shift| self.buffer >> shift <= 65_535).unwrap_or(14)
    }

    /// A SYN sets the start of the peer's sequence numbers.
    pub(super) fn begin(&mut self, irs: u32) {
        self.irs = Seq::first(irs);
        self.nxt = self.irs + 1;
        self.edge = self.nxt + u64::from(self.first_window());
        self.acked = self.nxt;
    }

    /// The window a SYN offers; it is never scaled (RFC 7323 §2.2).
    pub(super) fn first_window(&self) -> u16 {
        self.buffer.min(65_535) as u16
    }

    /// RFC 9293 §3.10.7.4, first check. A pure acknowledgement at the very edge is also accepted: a
    /// peer that has filled the window can send no other.
    #[inline]
    pub(super) fn accepts(&self, seq: Seq, len: u64) -> bool {
        if len == 0 {
            self.nxt <= seq && seq <= self.edge
        } else {
            seq < self.edge && seq + len > self.nxt
        }
    }

    /// RCV.NXT =< `seq` < RCV.NXT + RCV.WND.
    pub(super) fn is_inside(&self, seq: Seq) -> bool {
        self.nxt <= seq && seq < self.edge
    }

    /// RFC 7323 §5.3 R1: older than the last timestamp, unless that has expired.
    #[inline]
    pub(super) fn is_old(&self, now: Instant, tsval: u32) -> bool {
        self.recent.is_some_and(|(recent, at)| {
            (tsval.wrapping_sub(recent) as i32) < 0 && now.saturating_since(at) < STALE_TIMESTAMP
        })
    }

    /// RFC 7323 §4.3 (2): remembers the timestamp of the segment that advances the window's left
    /// edge; with delayed acknowledgements the earliest unacknowledged one.
    #[inline]
    pub(super) fn note_timestamp(&mut self, now: Instant, seq: Seq, tsval: u32) {
        if seq <= self.acked {
            self.recent = Some((tsval, now));
        }
    }

    /// Last.ACK.sent ≤ SEG.SEQ + SEG.LEN, for a segment with data: not even its last byte is older than the
    /// last acknowledgement.
    pub(super) fn reaches_edge(&self, seq: Seq, len: u64) -> bool {
        len > 0 && self.acked <= seq + len
    }

    /// The timestamp of the peer's SYN.
    pub(super) fn first_timestamp(&mut self, now: Instant, tsval: u32) {
        self.recent = Some((tsval, now));
    }

    /// TSecr of the next segment.
    #[inline]
    pub(super) fn echo(&self) -> u32 {
        self.recent.map_or(0, |(tsval, _)| tsval)
    }

    /// Takes the payload of an acceptable segment, trimmed to the window and to the peer's FIN.
    #[inline(always)]
    pub(super) fn take(&mut self, mut seq: Seq, mut payload: Payload) -> Took {
        self.full = self.full.max(payload.len() as u64);
        let edge = self.fin.map_or(self.edge, |fin| self.edge.min(fin));
        let (before, len) = (self.nxt.since(seq), payload.len() as u64);
        if seq != self.nxt {
            self.note_duplicate(seq, len);
        }
        let after = (seq + len).since(edge);
        if before > 0 || after > 0 {
            let before = before.min(len);
            payload = trim(payload, before, after.min(len - before));
            seq += before;
        }
        let took = self.reassembly.take(&mut self.nxt, seq, payload);
        if let Some(report) = self.report.as_mut().filter(|_| took == Took::OutOfOrder) {
            report.after(seq, &self.reassembly);
        }
        took
    }

    /// The peer's FIN arrived. It is kept even if data before it is missing.
    pub(super) fn take_fin(&mut self, fin: Seq) {
        // RFC 5681 §4.2: out-of-order segments are acknowledged at once, and a FIN in order, too.
        self.ack_now = true;
        let known = self.fin.is_some();
        let place = *self.fin.get_or_insert(fin);
        if let Some(report) = self.report.as_mut().filter(|_| place > self.nxt) {
            report.on_fin(place, known && place == fin, &self.reassembly);
        }
    }

    /// All data has arrived; RCV.NXT advances over the FIN.
    pub(super) fn pass_fin(&mut self) {
        self.nxt += 1;
        self.ack_now = true;
        if let Some(report) = &mut self.report {
            report.on_end();
        }
    }

    /// RFC 2883 §4: duplicate data is reported.
    #[inline(never)]
    pub(super) fn note_duplicate(&mut self, seq: Seq, len: u64) {
        if let Some(report) = &mut self.report {
            report.before(seq, seq + len, self.nxt, &self.reassembly);
        }
    }

    /// True if an acknowledgement has SACK blocks to carry.
    #[inline]
    pub(super) fn has_blocks(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.has_blocks(&self.reassembly))
    }

    /// The SACK option, in at most `room` bytes.
    pub(super) fn blocks(&mut self, room: usize) -> Option<Box<SackBlocks>> {
        self.report.as_mut()?.blocks(room, &self.reassembly)
    }

    /// RFC 5681 §4.2: every second full-sized segment is acknowledged at once.
    #[inline]
    pub(super) fn second_segment(&self) -> bool {
        self.nxt.since(self.acked) >= 2 * self.full
    }

    /// The RCV.NXT and shifted window of a segment leaving now. The edge moves only by significant
    /// steps (RFC 9293 §3.8.6.2.2) and never back; rounding may hide its low bits from the peer,
    /// but data there is still accepted (RFC 7323 §2.4).
    #[inline]
    pub(super) fn acknowledge(&mut self, shift: u8) -> (u32, u16) {
        let wish = self.nxt + self.buffer.min(65_535 << shift);
        if wish.since(self.edge) >= self.step {
            self.edge = wish;
        }
        self.acked = self.nxt;
        self.ack_now = false;
        let window = self.edge.since(self.nxt) >> shift;
        (self.nxt.wire(), window.min(65_535) as u16)
    }
}

fn trim(payload: Payload, before: u64, after: u64) -> Payload {
    match payload {
        Payload::Virtual { offset, len } => {
            Payload::Virtual { offset: offset.wrapping_add(before), len: len - before - after }
        }
        Payload::Real(bytes) => {
            Payload::Real(bytes.slice(before as usize..bytes.len() - after as usize))
        }
    }
}
