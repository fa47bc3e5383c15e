//! Messages to send, by stream; their fragmentation into chunks (RFC 9260 §6.9) and scheduling (RFC 8260 §3).

use std::collections::VecDeque;

use super::config::Scheduler;
use super::packet::{Data, Number};
use crate::frame;
use crate::frame::Frame;
use crate::packet::Payload;
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// How a message is to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Its stream.
    pub stream: u16,
    /// Payload Protocol Identifier: names the application to the peer's applications
    /// (RFC 9260 §3.3.1); 0: unspecified.
    pub ppid: u32,
    /// Delivered without regard to order.
    pub unordered: bool,
    /// Given up this long after it was handed over (RFC 3758 §4).
    pub lifetime: Option<Duration>,
    /// Given up beyond this many retransmissions (RFC 7496 §3.1).
    pub max_retransmissions: Option<u32>,
    /// Given up for messages of a lower value when the send buffer is full (RFC 7496 §3.2).
    pub priority: Option<u32>,
}

/// When a message is given up, and its priority.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policy {
    pub(super) expires: Option<Instant>,
    pub(super) max_retransmissions: Option<u32>,
    pub(super) priority: Option<u32>,
}

impl Policy {
    /// RFC 3758 §4, RFC 7496 §3.1
    pub(super) fn gives_up(&self, now: Instant, transmissions: u32) -> bool {
        self.expired(now) || self.max_retransmissions.is_some_and(|most| transmissions > most)
    }
    fn expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// A pending message, or the rest of one.
#[derive(Debug)]
struct Message {
    id: u64,
    rest: Frame,
    ppid: u32,
    unordered: bool,
    policy: Policy,
    /// Its number and parts sent, once a part was sent.
    begun: Option<Number>,
}

/// Pending messages.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Streams with pending messages, ascending.
    streams: Vec<(u16, VecDeque<Message>)>,
    /// Next numbers by stream, ascending: ordered and unordered ones separately.
    numbers: Vec<(u16, (u32, u32))>,
    next_id: u64,
    bytes: usize,
    /// No message expires before this; absent: none expires.
    lasts_until: Option<Instant>,
    /// Whether a message of a stream may expire before one ahead of it.
    mixed: bool,
    /// The stream whose message has begun, or that sent last.
    turn: Option<u16>,
    scheduler: Scheduler,
    pub(super) interleaving: bool,
}

impl Queue {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        Self { scheduler, ..Self::default() }
    }
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Adds a message.
    #[inline(always)]
    pub(super) fn push(&mut self, now: Instant, frame: Frame, bytes: usize, how: &Sending) {
        self.bytes += bytes;
        let policy = Policy {
            expires: how.lifetime.map(|life| now + life),
            max_retransmissions: how.max_retransmissions,
            priority: how.priority,
        };
        let (id, ppid, unordered) = (self.next_id, how.ppid, how.unordered);
        self.next_id += 1;
        let message = Message { id, rest: frame, ppid, unordered, policy, begun: None };
        let waiting = entry(&mut self.streams, how.stream);
        if policy.expires.is_some() {
            self.lasts_until = [self.lasts_until, policy.expires].into_iter().flatten().min();
            let ahead = waiting.back().map(|last| last.policy.expires);
            self.mixed |= ahead.is_some_and(|at| at.is_none() || at > policy.expires);
        }
        waiting.push_back(message);
    }

    /// The index of the stream to send from next.
    #[inline]
    fn pick(&self) -> Option<usize> {
        if self.streams.len() < 2 {
            return (!self.streams.is_empty()).then_some(0);
        }
        // RFC 9260 §6.9: without interleaving, a message that has begun is finished first.
        if let Some(turn) = self.turn
            && !self.interleaving
            && let Ok(at) = find(&self.streams, turn)
            && self.streams[at].1.front().is_some_and(|message| message.begun.is_some())
        {
            return Some(at);
        }
        match self.scheduler {
            Scheduler::Fcfs => (0..self.streams.len()).min_by_key(|at| self.streams[*at].1[0].id),
            Scheduler::RoundRobin => {
                let after = self.turn.map_or(0, |turn| u32::from(turn) + 1);
                let at = self.streams.partition_point(|(stream, _)| u32::from(*stream) < after);
                Some(at % self.streams.len())
            }
            Scheduler::Priority => Some(0),
        }
    }

    /// Bytes of the next chunk, at most `longest`; `None` without one.
    #[inline]
    pub(super) fn next_bytes(&self, longest: usize) -> Option<usize> {
        let message = self.streams[self.pick()?].1.front()?;
        let header = if self.interleaving { 20 } else { 16 };
        Some((header + message.rest.wire_bytes()).next_multiple_of(4).min(longest))
    }

    /// Takes the next chunk, of at most `longest` bytes, with this TSN and for this path.
    pub(super) fn cut(&mut self, longest: usize, tsn: Seq, path: usize) -> Option<Sent> {
        let at = self.pick()?;
        let header = if self.interleaving { 20 } else { 16 };
        let most = longest.saturating_sub(header).max(1);
        let (stream, waiting) = &mut self.streams[at];
        let stream = *stream;
        self.turn = Some(stream);
        let message = waiting.front_mut()?;
        let (id, unordered, policy) = (message.id, message.unordered, message.policy);
        let beginning = message.begun.is_none();
        let next = entry(&mut self.numbers, stream);
        let number = message.begun.unwrap_or(fresh(*next, self.interleaving, unordered));
        // RFC 9260 §3.3.1: in every part; RFC 8260 §2.1: only in the first of an I-DATA message.
        let ppid = if beginning || !self.interleaving { message.ppid } else { 0 };
        if beginning {
            let next = if unordered { &mut next.1 } else { &mut next.0 };
            *next = next.wrapping_add(1);
        }
        let (part, rest) = split(std::mem::replace(&mut message.rest, nothing()), most);
        let ending = rest.is_none();
        match rest {
            Some(rest) => {
                message.rest = rest;
                message.begun = Some(match number {
                    Number::Ssn(_) => number,
                    Number::Mid(mid, fsn) => Number::Mid(mid, fsn + 1),
                });
            }
            None => {
                waiting.pop_front();
                if waiting.is_empty() {
                    self.streams.remove(at);
                }
            }
        }
        self.bytes -= part.wire_bytes();
        let data = Data {
            immediate: false,
            unordered,
            beginning,
            ending,
            tsn: tsn.wire(),
            stream,
            number,
            ppid,
            payload: part,
        };
        Some(Sent::new(data, tsn, id, policy, path))
    }

    /// Whether a message has expired: checked for every packet, with megabytes pending.
    #[inline]
    pub(super) fn expires(&self, now: Instant) -> bool {
        self.lasts_until.is_some_and(|until| until <= now)
    }

    /// Drops expired messages. One that was partly sent stays and is reported, as its sent parts must
    /// be given up too. `true` if there is any.
    pub(super) fn expire(&mut self, now: Instant, begun: &mut Vec<u64>) -> bool {
        if !self.expires(now) {
            return false;
        }
        let (mut bytes, already) = (0, begun.len());
        let mut lasts_until: Option<Instant> = None;
        for (_, waiting) in &mut self.streams {
            if !self.mixed {
                // Those that expire are the first: of many that wait, few are looked at.
                let mut at = 0;
                while let Some(message) = waiting.get(at).filter(|one| one.policy.expired(now)) {
                    if message.begun.is_some() {
                        begun.push(message.id);
                        at += 1;
                    } else {
                        bytes += message.rest.wire_bytes();
                        waiting.remove(at);
                    }
                }
                let next = waiting.get(at).and_then(|message| message.policy.expires);
                lasts_until = [lasts_until, next].into_iter().flatten().min();
                continue;
            }
            waiting.retain(|message| {
                let gone = message.policy.expired(now);
                if !gone {
                    lasts_until = [lasts_until, message.policy.expires].into_iter().flatten().min();
                }
                if gone && message.begun.is_some() {
                    begun.push(message.id);
                } else if gone {
                    bytes += message.rest.wire_bytes();
                }
                !gone || message.begun.is_some()
            });
        }
        self.streams.retain(|(_, waiting)| !waiting.is_empty());
        self.lasts_until = lasts_until;
        self.bytes -= bytes;
        bytes > 0 || begun.len() > already
    }

    /// Drops the rest of a message whose parts were given up. Returns an empty last chunk if it was
    /// partly sent.
    pub(super) fn forget(&mut self, id: u64) -> Option<Data> {
        let mut last = None;
        for (stream, waiting) in &mut self.streams {
            let at = waiting.iter().position(|message| message.id == id);
            if let Some(message) = at.and_then(|at| waiting.remove(at)) {
                self.bytes -= message.rest.wire_bytes();
                last = message.begun.map(|number| Data {
                    immediate: false,
                    unordered: message.unordered,
                    beginning: false,
                    ending: true,
                    tsn: 0,
                    stream: *stream,
                    number,
                    ppid: 0,
                    payload: nothing(),
                });
            }
        }
        self.streams.retain(|(_, waiting)| !waiting.is_empty());
        last
    }

    /// RFC 7496 §3.2: makes room for a message of this priority by dropping pending ones of less
    /// importance, the least important and youngest first, until `wanted` bytes are free.
    pub(super) fn displace(&mut self, priority: u32, mut wanted: usize) {
        while wanted > 0 {
            let lesser = self
                .streams
                .iter()
                .flat_map(|(_, waiting)| waiting)
                .filter(|m| m.begun.is_none() && m.policy.priority.is_some_and(|p| p > priority))
                .max_by_key(|m| (m.policy.priority, m.id));
            let Some((id, bytes)) = lesser.map(|m| (m.id, m.rest.wire_bytes())) else { break };
            self.forget(id);
            wanted = wanted.saturating_sub(bytes);
        }
    }
}

/// A stream's index, or where to insert it.
fn find<T>(entries: &[(u16, T)], stream: u16) -> Result<usize, usize> {
    entries.binary_search_by_key(&stream, |(number, _)| *number)
}

/// A stream's entry.
#[inline]
fn entry<T: Default>(entries: &mut Vec<(u16, T)>, stream: u16) -> &mut T {
    // Most associations use one stream.
    let first = entries.first().is_some_and(|(number, _)| *number == stream);
    let at = if first { 0 } else { find_or_insert(entries, stream) };
    &mut entries[at].1
}

#[inline(never)]
fn find_or_insert<T: Default>(entries: &mut Vec<(u16, T)>, stream: u16) -> usize {
    find(entries, stream).unwrap_or_else(|at| {
        entries.insert(at, (stream, T::default()));
        at
    })
}

/// The number of a new message.
fn fresh((ordered, unordered): (u32, u32), interleaving: bool, is_unordered: bool) -> Number {
    match (interleaving, is_unordered) {
        (false, false) => Number::Ssn(ordered as u16),
        // RFC 9260 §3.3.1: an unordered message's number is ignored.
        (false, true) => Number::Ssn(0),
        (true, false) => Number::Mid(ordered, 0),
        (true, true) => Number::Mid(unordered, 0),
    }
}

/// Replaces a frame that is being cut.
fn nothing() -> Frame {
    Frame::Data(Payload::default())
}

/// The first bytes of a frame, and the rest if there is one. Media longer than a chunk becomes bytes.
fn split(frame: Frame, most: usize) -> (Frame, Option<Frame>) {
    if frame.wire_bytes() <= most {
        return (frame, None);
    }
    match frame {
        Frame::Data(Payload::Virtual { offset, len }) => {
            let first = Payload::Virtual { offset, len: most as u64 };
            let rest = Payload::Virtual { offset: offset + most as u64, len: len - most as u64 };
            (Frame::Data(first), Some(Frame::Data(rest)))
        }
        Frame::Data(Payload::Real(mut bytes)) => {
            let rest = bytes.split_off(most);
            let part = |bytes| Frame::Data(Payload::Real(bytes));
            (part(bytes), Some(part(rest)))
        }
        media => {
            let mut bytes = Vec::with_capacity(media.wire_bytes());
            frame::emit(&media, &mut bytes);
            split(Frame::Data(Payload::Real(bytes.into())), most)
        }
    }
}

/// A chunk that was sent and that the peer may not have.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) data: Data,
    pub(super) tsn: Seq,
    pub(super) id: u64,
    pub(super) policy: Policy,
    pub(super) status: Status,
    /// Its last path.
    pub(super) path: usize,
    pub(super) transmissions: u32,
    /// Miss indications (RFC 9260 §7.2.4).
    pub(super) missing: u8,
    /// It has been fast retransmitted, which happens once.
    pub(super) fast: bool,
    /// To be sent on another path than before (§6.4.1).
    pub(super) elsewhere: bool,
    /// It was sent on more than one path.
    pub(super) moved: bool,
}

/// State of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// In flight.
    Flying,
    /// To be retransmitted.
    Marked,
    /// In a Gap Ack Block.
    Acked,
    /// Given up (RFC 3758 §3.5).
    Abandoned,
}

impl Sent {
    /// A chunk that is first sent on a path.
    pub(super) fn new(data: Data, tsn: Seq, id: u64, policy: Policy, path: usize) -> Self {
        Self {
            data,
            tsn,
            id,
            policy,
            status: Status::Flying,
            path,
            transmissions: 1,
            missing: 0,
            fast: false,
            elsewhere: false,
            moved: false,
        }
    }
    /// Bytes in a packet, which windows count.
    pub(super) fn wire_bytes(&self) -> u64 {
        (self.data.header_bytes() + self.data.payload.wire_bytes()).next_multiple_of(4) as u64
    }
    /// Bytes of user data, which the receiver's window counts.
    pub(super) fn user_bytes(&self) -> u64 {
        self.data.payload.wire_bytes() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left when each millisecond a message comes whose lifetime the pattern repeats.
    fn left(lifetimes: &[Option<u64>], at_ms: u64) -> (usize, usize) {
        let mut queue = Queue::default();
        for (ms, life) in (0..100).zip(lifetimes.iter().cycle()) {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let how = Sending { lifetime: life.map(Duration::from_millis), ..Sending::default() };
            queue.push(now, Frame::Data(Payload::Virtual { offset: 0, len: 10 }), 10, &how);
        }
        let now = Instant::ZERO + Duration::from_millis(at_ms);
        let gone = queue.expire(now, &mut Vec::new());
        assert_eq!(gone, queue.bytes() < 1000);
        // Nothing else expires at the same time, and the next instant is known.
        assert!(!queue.expire(now, &mut Vec::new()));
        (queue.bytes() / 10, queue.streams.first().map_or(0, |(_, waiting)| waiting.len()))
    }

    #[test]
    fn messages_expire_each_by_its_own_time_whatever_is_ahead() {
        // Of one lifetime, the first; of several, also those behind longer ones.
        assert_eq!(left(&[Some(50)], 49), (100, 100));
        assert_eq!(left(&[Some(50)], 79), (70, 70));
        assert_eq!(left(&[Some(50)], 500), (0, 0));
        assert_eq!(left(&[Some(500), Some(10)], 59), (75, 75));
        assert_eq!(left(&[None, Some(10)], 59), (75, 75));
        assert_eq!(left(&[Some(10), None], 500), (50, 50));
    }
}
