//! Bytes that the application handed over and the peer has not acknowledged, by stream offset.
//!
//! A virtual stream is two counters. A real one is a queue of the application's own `Bytes`, cut
//! without copying; only a segment that spans several of them is copied.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::packet::Payload;

/// The send buffer.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Offset after the last byte handed over.
    written: u64,
    /// Offset of the first byte not yet acknowledged.
    released: u64,
    store: Store,
}

#[derive(Debug, Default)]
enum Store {
    /// No data was handed over yet.
    #[default]
    Unknown,
    Virtual,
    /// Chunks and the offset of each one's first byte, ascending.
    Real(VecDeque<(u64, Bytes)>),
}

impl Outgoing {
    /// Appends the application's payload. Panics if virtual and real bytes are mixed.
    #[inline]
    pub(super) fn push(&mut self, payload: &mut Payload) {
        let len = payload.len() as u64;
        match (&self.store, &payload) {
            (Store::Virtual, Payload::Virtual { .. }) => {}
            _ => self.keep(payload),
        }
        self.written += len;
    }

    /// [`Outgoing::push`] for payloads that are stored.
    #[inline(never)]
    fn keep(&mut self, payload: &mut Payload) {
        match (&mut self.store, payload) {
            (store @ Store::Unknown, Payload::Virtual { .. }) => *store = Store::Virtual,
            (store @ Store::Unknown, Payload::Real(bytes)) => {
                *store = Store::Real(VecDeque::from([(self.written, std::mem::take(bytes))]));
            }
            (Store::Real(chunks), Payload::Real(bytes)) => {
                chunks.push_back((self.written, std::mem::take(bytes)));
            }
            _ => panic!("the application mixed virtual and real bytes in one TCP stream"),
        }
    }

    /// `len` bytes from `offset`, which must lie between the released and the written offset.
    #[inline]
    pub(super) fn slice(&self, offset: u64, len: u64) -> Payload {
        match &self.store {
            Store::Real(chunks) if len > 0 => Payload::Real(cut(chunks, offset, len as usize)),
            _ => Payload::Virtual { offset, len },
        }
    }

    /// Drops everything before `offset`.
    #[inline]
    pub(super) fn release(&mut self, offset: u64) {
        self.released = self.released.max(offset.min(self.written));
        if let Store::Real(chunks) = &mut self.store {
            while chunks.front().is_some_and(|(at, bytes)| at + bytes.len() as u64 <= self.released)
            {
                chunks.pop_front();
            }
        }
    }

    /// Bytes handed over in total.
    #[inline]
    pub(super) const fn written(&self) -> u64 {
        self.written
    }
    /// Bytes acknowledged in total.
    #[inline]
    pub(super) const fn released(&self) -> u64 {
        self.released
    }
    /// Bytes still kept.
    #[inline]
    pub(super) const fn kept(&self) -> u64 {
        self.written - self.released
    }
}

fn cut(chunks: &VecDeque<(u64, Bytes)>, offset: u64, len: usize) -> Bytes {
    let first = chunks.partition_point(|(at, _)| *at <= offset).saturating_sub(1);
    let Some((at, bytes)) = chunks.get(first) else { return Bytes::new() };
    let skip = (offset - at) as usize;
    if skip + len <= bytes.len() {
        return bytes.slice(skip..skip + len);
    }
    let mut joined = BytesMut::with_capacity(len);
    joined.extend_from_slice(&bytes[skip..]);
    for (_, bytes) in chunks.range(first + 1..) {
        let missing = len - joined.len();
        joined.extend_from_slice(&bytes[..missing.min(bytes.len())]);
        if joined.len() == len {
            break;
        }
    }
    joined.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_stream_is_cut_anywhere() {
        let mut outgoing = Outgoing::default();
        for word in ["abc", "d", "efghij"] {
            outgoing.push(&mut Payload::Real(Bytes::from_static(word.as_bytes())));
        }
        let cut = |outgoing: &Outgoing, offset, len| match outgoing.slice(offset, len) {
            Payload::Real(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Payload::Virtual { .. } => panic!("virtual"),
        };
        assert_eq!(cut(&outgoing, 0, 10), "abcdefghij");
        assert_eq!(cut(&outgoing, 2, 4), "cdef");
        outgoing.release(5);
        assert_eq!(outgoing.kept(), 5);
        assert_eq!(cut(&outgoing, 5, 5), "fghij");
    }
}
