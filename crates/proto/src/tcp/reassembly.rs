//! Bytes that arrived out of order, kept until the gap before them is filled, and bytes ready for
//! the application. Segments may come in any order, overlap or repeat; memory is bounded by the
//! receive window and by [`MAX_PIECES`].

use std::collections::VecDeque;

use bytes::Bytes;

use crate::frame::Frame;
use crate::packet::Payload;
use crate::seq::Seq;

/// Pieces kept beyond the first gap; a segment that would add another is dropped and retransmitted
/// later. Adjacent virtual pieces are merged.
const MAX_PIECES: usize = 4096;

/// Outcome for a segment's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took {
    /// They continue the stream, and nothing was missing.
    InOrder,
    /// They continue the stream while later bytes are already here (RFC 5681 §4.2).
    FilledGap,
    /// They are kept beyond a gap, or were already here.
    OutOfOrder,
    /// Virtual bytes in a real stream, or vice versa.
    Refused,
}

#[derive(Debug)]
struct Piece {
    start: Seq,
    end: Seq,
    /// Empty in a virtual stream.
    bytes: Bytes,
}

#[derive(Debug, Default)]
#[repr(u8)]
enum Ready {
    /// No data has arrived yet.
    #[default]
    Unknown,
    /// Bytes delivered to the application, and bytes waiting for it.
    Virtual {
        delivered: u64,
        waiting: u64,
    },
    Real(VecDeque<Bytes>),
}

/// The receive store.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// Ascending and disjoint.
    pieces: VecDeque<Piece>,
    ready: Ready,
}

impl Reassembly {
    /// Bytes of memory held.
    pub(super) fn footprint(&self) -> usize {
        let ready = match &self.ready {
            Ready::Real(queue) => queue.iter().map(|bytes| bytes.len() + size_of::<Bytes>()).sum(),
            Ready::Virtual { .. } | Ready::Unknown => 0,
        };
        let pieces = self.pieces.iter().map(|piece| piece.bytes.len() + size_of::<Piece>());
        ready + pieces.sum::<usize>()
    }

    /// Takes `payload`, which begins at `seq` and lies within the window, and advances `nxt` over
    /// everything now in order.
    #[inline(always)]
    pub(super) fn take(&mut self, nxt: &mut Seq, seq: Seq, payload: Payload) -> Took {
        let end = seq + payload.len() as u64;
        if let (Ready::Virtual { waiting, .. }, Payload::Virtual { len, .. }) =
            (&mut self.ready, &payload)
            && seq == *nxt
            && self.pieces.is_empty()
            && *len > 0
        {
            // Fast path for most segments, equivalent to what follows.
            *waiting += len;
            *nxt = end;
            return Took::InOrder;
        }
        self.take_otherwise(nxt, seq, payload)
    }

    #[inline(never)]
    fn take_otherwise(&mut self, nxt: &mut Seq, seq: Seq, payload: Payload) -> Took {
        let end = seq + payload.len() as u64;
        let Some(bytes) = self.admit(payload) else { return Took::Refused };
        if end <= *nxt || seq == end {
            return Took::OutOfOrder;
        }
        if seq > *nxt {
            self.keep(Piece { start: seq, end, bytes });
            return Took::OutOfOrder;
        }
        self.ready_up_to(nxt, Piece { start: seq, end, bytes });
        if self.pieces.is_empty() {
            return Took::InOrder;
        }
        while self.pieces.front().is_some_and(|piece| piece.start <= *nxt) {
            if let Some(piece) = self.pieces.pop_front() {
                self.ready_up_to(nxt, piece);
            }
        }
        Took::FilledGap
    }

    /// True if no data lies beyond a gap.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The contiguous run that contains `seq`, if that is kept. Adjacent real pieces stay separate.
    pub(super) fn run(&self, seq: Seq) -> Option<(Seq, Seq)> {
        let at = self.after(seq);
        let piece = self.pieces.get(at).filter(|piece| piece.start <= seq)?;
        if let Ready::Virtual { .. } = self.ready {
            // Adjacent pieces are merged.
            return Some((piece.start, piece.end));
        }
        let after = self.pieces.range(at + 1..);
        let end = after.fold(piece.end, |end, next| if next.start == end { next.end } else { end });
        let before = self.pieces.range(..at).rev();
        let start =
            before.fold(piece.start, |start, p| if p.end == start { p.start } else { start });
        Some((start, end))
    }

    /// The first sequence number kept.
    pub(super) fn begin(&self) -> Option<Seq> {
        self.pieces.front().map(|piece| piece.start)
    }

    /// True if no further piece fits, so that the last may have been dropped.
    pub(super) fn is_full(&self) -> bool {
        self.pieces.len() >= MAX_PIECES
    }

    /// The first piece that ends after `seq`: mostly the last, or none.
    fn after(&self, seq: Seq) -> usize {
        match self.pieces.back() {
            Some(last) if last.start <= seq => self.pieces.len() - usize::from(seq < last.end),
            _ => self.pieces.partition_point(|piece| piece.end <= seq),
        }
    }

    /// The next bytes for the application.
    #[inline]
    pub(super) fn deliver(&mut self) -> Option<Frame> {
        match &mut self.ready {
            Ready::Virtual { delivered, waiting } if *waiting > 0 => {
                let len = (*waiting).min(u64::from(u32::MAX));
                let offset = *delivered;
                *delivered += len;
                *waiting -= len;
                Some(Frame::Data(Payload::Virtual { offset, len }))
            }
            Ready::Real(queue) => queue.pop_front().map(|b| Frame::Data(Payload::Real(b))),
            _ => None,
        }
    }

    /// The first bytes settle the kind of the stream; the other kind is refused afterwards.
    #[inline]
    fn admit(&mut self, payload: Payload) -> Option<Bytes> {
        match (&mut self.ready, payload) {
            (Ready::Virtual { .. }, Payload::Virtual { .. }) => Some(Bytes::new()),
            (Ready::Real(_), Payload::Real(bytes)) => Some(bytes),
            (ready @ Ready::Unknown, Payload::Virtual { .. }) => {
                *ready = Ready::Virtual { delivered: 0, waiting: 0 };
                Some(Bytes::new())
            }
            (ready @ Ready::Unknown, Payload::Real(bytes)) => {
                *ready = Ready::Real(VecDeque::new());
                Some(bytes)
            }
            _ => None,
        }
    }

    /// Moves the part of `piece` after `nxt` to the ready data.
    #[inline]
    fn ready_up_to(&mut self, nxt: &mut Seq, piece: Piece) {
        let new = piece.end.since(*nxt);
        if new == 0 {
            return;
        }
        match &mut self.ready {
            Ready::Real(queue) => {
                queue.push_back(piece.bytes.slice(nxt.since(piece.start) as usize..));
            }
            Ready::Virtual { waiting, .. } => *waiting += new,
            Ready::Unknown => {}
        }
        *nxt = piece.end;
    }

    fn keep(&mut self, piece: Piece) {
        if matches!(self.ready, Ready::Real(_)) { self.fill(piece) } else { self.merge(piece) }
    }

    /// Virtual: one piece with all adjacent ones.
    fn merge(&mut self, new: Piece) {
        let at = self.after(new.start.back(1));
        let Some(piece) = self.pieces.get_mut(at).filter(|piece| piece.start <= new.end) else {
            return self.insert(at, new);
        };
        piece.start = piece.start.min(new.start);
        piece.end = piece.end.max(new.end);
        let mut end = piece.end;
        while let Some(next) = self.pieces.get(at + 1).filter(|next| next.start <= end) {
            end = end.max(next.end);
            self.pieces.remove(at + 1);
        }
        self.pieces[at].end = end;
    }

    /// Real: only bytes not yet held.
    fn fill(&mut self, new: Piece) {
        let mut at = self.after(new.start);
        let mut from = new.start;
        while from < new.end {
            let (until, next) = match self.pieces.get(at) {
                Some(piece) if piece.start < new.end => (piece.start.max(from), piece.end),
                _ => (new.end, new.end),
            };
            if from < until {
                let cut = from.since(new.start) as usize..until.since(new.start) as usize;
                self.insert(at, Piece { start: from, end: until, bytes: new.bytes.slice(cut) });
                at += 1;
            }
            from = next;
            at += 1;
        }
    }

    fn insert(&mut self, at: usize, piece: Piece) {
        // Beyond the limit the farthest piece is dropped: the nearest data is needed first.
        if self.is_full() {
            if at >= self.pieces.len() {
                return;
            }
            self.pieces.pop_back();
        }
        self.pieces.insert(at.min(self.pieces.len()), piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn overlapping_pieces_make_the_text(
            pieces in proptest::collection::vec((0..200_usize, 1..40_usize), 0..200),
            real: bool,
        ) {
            let text: Vec<u8> = (0..240).map(|i| i as u8).collect();
            let start = Seq::first(u32::MAX - 100);
            let (mut nxt, mut reassembly) = (start, Reassembly::default());
            let (mut seen, mut got, mut count) = ([false; 240], Vec::new(), 0);
            for (at, len) in pieces {
                seen[at..at + len].fill(true);
                let payload = if real {
                    Payload::Real(Bytes::copy_from_slice(&text[at..at + len]))
                } else {
                    Payload::Virtual { offset: at as u64, len: len as u64 }
                };
                reassembly.take(&mut nxt, start + at as u64, payload);
                while let Some(Frame::Data(payload)) = reassembly.deliver() {
                    count += payload.len();
                    if let Payload::Real(bytes) = payload {
                        got.extend_from_slice(&bytes);
                    }
                }
                let whole = seen.iter().position(|seen| !seen).unwrap_or(240);
                prop_assert_eq!((nxt.since(start), count), (whole as u64, whole));
                prop_assert!(!real || got == text[..whole]);
                prop_assert!(reassembly.pieces.iter().all(|piece| piece.start > nxt));
            }
        }
    }

    #[test]
    fn memory_is_bounded_and_the_nearest_stays() {
        let start = Seq::first(0);
        let (mut nxt, mut reassembly) = (start, Reassembly::default());
        for i in (1..20_000_u64).rev() {
            let byte = Payload::Real(Bytes::from_static(b"x"));
            reassembly.take(&mut nxt, start + 2 * i, byte);
        }
        assert_eq!(reassembly.pieces.len(), MAX_PIECES);
        assert_eq!(reassembly.pieces.front().map(|piece| piece.start), Some(start + 2));
    }
}
