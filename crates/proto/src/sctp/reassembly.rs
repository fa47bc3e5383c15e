//! Reassembles messages and delivers those of a stream in order (RFC 9260 §6.5, §6.6, §6.9;
//! RFC 8260 §2.2 for I-DATA). It counts what it holds; the receiver limits it.

use std::collections::{BTreeMap, VecDeque};

use super::packet::{Data, Number, Skipped};
use crate::frame;
use crate::frame::Frame;
use crate::packet::Payload;
use crate::seq::Seq;
use crate::time::Instant;

/// Text of an ABORT: parts do not belong to one message.
pub(super) type Violation = &'static str;

/// Incomplete messages, and those that wait for earlier ones.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// Parts of DATA chunks by TSN: the parts of a message have consecutive TSNs.
    parts: BTreeMap<Seq, Data>,
    /// Parts of I-DATA chunks by stream, order and message.
    mixed: BTreeMap<(u16, bool, u32), BTreeMap<u32, Data>>,
    streams: BTreeMap<u16, Stream>,
    held: Held,
    pub(super) ready: VecDeque<Message>,
}

/// A whole message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) frame: Frame,
    pub(super) ppid: u32,
    /// When its last part arrived.
    pub(super) whole: Instant,
}

/// Parts and waiting messages held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// Of user data.
    pub(super) bytes: usize,
    pub(super) pieces: usize,
}

impl Held {
    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.pieces += 1;
    }
    fn remove(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.pieces = self.pieces.saturating_sub(1);
    }
}

/// Order of a stream. Its numbers do not wrap, unlike those on the wire.
#[derive(Debug, Default)]
struct Stream {
    next: u64,
    waiting: BTreeMap<u64, Message>,
}

impl Stream {
    /// The number nearest to `next` with this number on the wire.
    fn near(&self, number: Number) -> Option<u64> {
        let distance = match number {
            Number::Ssn(ssn) => i64::from(ssn.wrapping_sub(self.next as u16) as i16),
            Number::Mid(mid, _) => i64::from(mid.wrapping_sub(self.next as u32) as i32),
        };
        self.next.checked_add_signed(distance)
    }
}

impl Reassembly {
    /// Bytes of memory held: user data, and overhead of each part and message and stream.
    pub(super) fn footprint(&self) -> usize {
        let mixed = self.mixed.values().map(|parts| 64 + parts.len() * size_of::<Data>());
        let streams = self.streams.values();
        let streams =
            streams.map(|one| size_of::<Stream>() + one.waiting.len() * size_of::<Message>());
        self.held.bytes
            + self.parts.len() * size_of::<Data>()
            + mixed.sum::<usize>()
            + streams.sum::<usize>()
            + self.ready.len() * size_of::<Message>()
    }

    pub(super) fn held(&self) -> Held {
        self.held
    }

    /// Adds a chunk not received before.
    pub(super) fn add(&mut self, now: Instant, tsn: Seq, data: Data) -> Result<(), Violation> {
        if data.beginning && data.ending {
            let Data { stream, unordered, number, ppid, payload: frame, .. } = data;
            self.complete(stream, unordered, number, Message { frame, ppid, whole: now });
            return Ok(());
        }
        self.held.add(data.payload.wire_bytes());
        match data.number {
            Number::Ssn(_) => self.add_part(now, tsn, data),
            Number::Mid(mid, fsn) => self.add_mixed(now, mid, fsn, data),
        }
    }

    fn add_part(&mut self, now: Instant, tsn: Seq, data: Data) -> Result<(), Violation> {
        for (before, after) in [(tsn.back(1), tsn), (tsn, tsn + 1)] {
            let one = if before == tsn { Some(&data) } else { self.parts.get(&before) };
            let next = if after == tsn { Some(&data) } else { self.parts.get(&after) };
            if let (Some(one), Some(next)) = (one, next) {
                fits(one, next)?;
            }
        }
        self.parts.insert(tsn, data);
        let (mut first, mut last) = (tsn, tsn);
        // Forwards first: parts mostly arrive in order; backwards only once the end is found.
        while !self.parts[&last].ending {
            last += 1;
            if !self.parts.contains_key(&last) {
                return Ok(());
            }
        }
        while !self.parts[&first].beginning {
            first = first.back(1);
            if !self.parts.contains_key(&first) {
                return Ok(());
            }
        }
        let mut later = self.parts.split_off(&first);
        let mut rest = later.split_off(&(last + 1));
        self.parts.append(&mut rest);
        self.join(now, later.into_values());
        Ok(())
    }

    fn add_mixed(&mut self, now: Instant, mid: u32, fsn: u32, data: Data) -> Result<(), Violation> {
        let key = (data.stream, data.unordered, mid);
        let parts = self.mixed.entry(key).or_default();
        let beyond = parts.last_key_value().is_some_and(|(end, last)| last.ending && fsn > *end);
        let within = data.ending && parts.last_key_value().is_some_and(|(last, _)| *last > fsn);
        let bytes = data.payload.wire_bytes();
        if beyond || within || parts.insert(fsn, data).is_some() {
            self.held.remove(bytes);
            return Err("parts of a message overlap");
        }
        let count = parts.len() as u64;
        let whole = parts.last_key_value().is_some_and(|(end, last)| {
            last.ending
                && u64::from(*end) + 1 == count
                && parts.values().next().is_some_and(|p| p.beginning)
        });
        if whole {
            let parts = self.mixed.remove(&key).expect("just found");
            self.join(now, parts.into_values());
        }
        Ok(())
    }

    fn join(&mut self, now: Instant, parts: impl Iterator<Item = Data>) {
        let mut parts = parts.peekable();
        let Some(Data { stream, unordered, number, ppid, .. }) = parts.peek().cloned() else {
            return;
        };
        let mut frames = Vec::new();
        for part in parts {
            self.held.remove(part.payload.wire_bytes());
            frames.push(part.payload);
        }
        let message = Message { frame: joined(&frames), ppid, whole: now };
        self.complete(stream, unordered, number, message);
    }

    /// A message is whole.
    fn complete(&mut self, stream: u16, unordered: bool, number: Number, message: Message) {
        // §6.6: unordered messages do not wait.
        if unordered {
            return self.ready.push_back(message);
        }
        let order = self.streams.entry(stream).or_default();
        match order.near(number) {
            // The next one, as usual.
            Some(turn) if turn == order.next => {
                order.next += 1;
                let waits = !order.waiting.is_empty();
                self.ready.push_back(message);
                if waits {
                    self.release(stream);
                }
            }
            Some(turn) if turn > order.next => {
                self.held.add(message.frame.wire_bytes());
                if let Some(twin) = order.waiting.insert(turn, message) {
                    self.held.remove(twin.frame.wire_bytes());
                }
            }
            // Delivered before: a number used twice.
            _ => {}
        }
    }

    fn release(&mut self, stream: u16) {
        let Some(order) = self.streams.get_mut(&stream) else { return };
        while let Some(message) = order.waiting.remove(&order.next) {
            self.held.remove(message.frame.wire_bytes());
            self.ready.push_back(message);
            order.next += 1;
        }
    }

    /// The peer gave up TSNs up to `tsn`, and messages of streams up to the numbers (RFC 3758 §3.6;
    /// RFC 8260 §2.3.1).
    pub(super) fn skip(&mut self, tsn: Seq, skipped: &Skipped) {
        let later = self.parts.split_off(&(tsn + 1));
        for part in std::mem::replace(&mut self.parts, later).into_values() {
            self.held.remove(part.payload.wire_bytes());
        }
        // RFC 3758 §3.6: following parts that do not begin a message lack its first part.
        let mut next = tsn + 1;
        while let Some(part) = self.parts.get(&next).filter(|part| !part.beginning) {
            self.held.remove(part.payload.wire_bytes());
            let ending = part.ending;
            self.parts.remove(&next);
            if ending {
                break;
            }
            next += 1;
        }
        match skipped {
            Skipped::Ssn(skipped) => {
                for (stream, ssn) in skipped {
                    self.skip_stream(*stream, Number::Ssn(*ssn));
                }
            }
            Skipped::Mid(skipped) => {
                for (stream, unordered, mid) in skipped {
                    self.drop_mixed(*stream, *unordered, *mid);
                    if !unordered {
                        self.skip_stream(*stream, Number::Mid(*mid, 0));
                    }
                }
            }
        }
    }

    fn drop_mixed(&mut self, stream: u16, unordered: bool, mid: u32) {
        let gone: Vec<_> = self
            .mixed
            .range((stream, unordered, 0)..=(stream, unordered, u32::MAX))
            .map(|(key, _)| *key)
            .filter(|key| mid.wrapping_sub(key.2) < 1 << 31)
            .collect();
        for key in gone {
            for part in self.mixed.remove(&key).into_iter().flat_map(BTreeMap::into_values) {
                self.held.remove(part.payload.wire_bytes());
            }
        }
    }

    fn skip_stream(&mut self, stream: u16, number: Number) {
        let order = self.streams.entry(stream).or_default();
        let Some(last) = order.near(number).filter(|last| *last >= order.next) else { return };
        // Earlier ones that waited are complete and leave in order.
        let later = order.waiting.split_off(&(last + 1));
        for message in std::mem::replace(&mut order.waiting, later).into_values() {
            self.held.remove(message.frame.wire_bytes());
            self.ready.push_back(message);
        }
        order.next = last + 1;
        self.release(stream);
    }
}

/// Checks that two chunks may have consecutive TSNs (§6.9).
fn fits(one: &Data, next: &Data) -> Result<(), Violation> {
    if one.ending != next.beginning {
        return Err("a message begins or goes on where it must not");
    }
    let same =
        (one.stream, one.unordered, one.number) == (next.stream, next.unordered, next.number);
    // §3.3.1: an unordered message's number is ignored.
    let same = same || one.unordered && next.unordered && one.stream == next.stream;
    if one.ending || same { Ok(()) } else { Err("parts of a message are on two streams") }
}

/// Joins parts of a frame: virtual if contiguous in their stream, else bytes.
fn joined(parts: &[Frame]) -> Frame {
    let mut end = None;
    let mut start = 0;
    for part in parts {
        match part {
            Frame::Data(Payload::Virtual { offset, len }) if end.is_none_or(|e| e == *offset) => {
                if end.is_none() {
                    start = *offset;
                }
                end = Some(offset.wrapping_add(*len));
            }
            _ => {
                let mut bytes = Vec::new();
                parts.iter().for_each(|part| frame::emit(part, &mut bytes));
                return Frame::Data(Payload::Real(bytes.into()));
            }
        }
    }
    let len = end.map_or(0, |end| end.wrapping_sub(start));
    Frame::Data(Payload::Virtual { offset: start, len })
}
