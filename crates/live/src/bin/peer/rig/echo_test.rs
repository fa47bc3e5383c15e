//! A self-checking test: a given number of numbered messages at a constant pace, each a piece of a known stream
//! ([`pattern`]), so that the receiver can verify every byte.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use talkspurt_proto::endpoint::{Event, Input};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::wire::pattern;

use super::{App, Step};

/// Parameters of the test.
#[derive(Clone, Debug)]
pub(crate) struct EchoConfig {
    /// Messages to send; the peer sends as many.
    pub(crate) packets: u64,
    /// Message length in bytes, in both directions; a multiple of eight.
    pub(crate) bytes: u64,
    /// Time between two messages.
    pub(crate) interval: Duration,
    /// Whether there is a connection to open and close.
    pub(crate) connection: bool,
    /// Whether we open it.
    pub(crate) opens: bool,
    /// Whether we close it, once all is sent and the peer is finished.
    pub(crate) closes: bool,
    /// Silence after which the peer is considered finished if messages are missing.
    pub(crate) quiet: Duration,
    /// Time to wait for late packets once all came, and for the peer's last packets after the end.
    pub(crate) linger: Duration,
    /// Time limit.
    pub(crate) limit: Instant,
}

/// Results of the test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct EchoReport {
    /// Messages handed to the endpoint.
    pub(crate) sent_packets: u64,
    /// Their bytes.
    pub(crate) sent_bytes: u64,
    /// Messages delivered that match the peer's stream.
    pub(crate) received_packets: u64,
    /// Their bytes.
    pub(crate) received_bytes: u64,
    /// Distinct messages among them.
    pub(crate) distinct_packets: u64,
    /// Delivered after a message of the same stream with a higher number.
    pub(crate) reordered_packets: u64,
    /// Delivered but not matching the peer's stream.
    pub(crate) foreign_packets: u64,
    /// Microseconds from the first message delivered to the last.
    pub(crate) receiving_us: u64,
    /// The longest time between two messages.
    pub(crate) longest_silence_us: u64,
    /// Events of the connection, in order.
    pub(crate) events: Vec<String>,
    /// Whether the limit was reached.
    pub(crate) gave_up: bool,
}

/// One side of the test.
#[derive(Debug)]
pub(crate) struct EchoTest {
    terms: EchoConfig,
    tally: EchoReport,
    /// Messages that the peer sends.
    awaited: u64,
    /// Number of streams, used round robin in both directions.
    streams: u64,
    seen: BTreeSet<u64>,
    /// The highest number of each stream.
    highest: BTreeMap<u64, u64>,
    first: Option<Instant>,
    next: Instant,
    heard: Instant,
    opened: bool,
    talking: bool,
    closing: bool,
    ended: Option<Instant>,
}

impl EchoTest {
    /// A side that has sent nothing yet.
    ///
    /// # Panics
    /// If a message is not a multiple of eight bytes.
    pub(crate) fn new(terms: EchoConfig) -> Self {
        assert!(terms.bytes > 0 && terms.bytes.is_multiple_of(8), "messages hold whole words");
        Self {
            talking: !terms.connection,
            opened: !terms.opens,
            awaited: terms.packets,
            streams: 1,
            terms,
            tally: EchoReport::default(),
            seen: BTreeSet::new(),
            highest: BTreeMap::new(),
            first: None,
            next: Instant::ZERO,
            heard: Instant::ZERO,
            closing: false,
            ended: None,
        }
    }

    /// Sets the number of messages from the peer, if it differs from ours.
    pub(crate) const fn awaiting(mut self, packets: u64) -> Self {
        self.awaited = packets;
        self
    }

    /// Sends messages round robin over this many streams, each ordered separately.
    pub(crate) const fn on_streams(mut self, streams: u64) -> Self {
        self.streams = streams;
        self
    }

    /// The results so far.
    pub(crate) const fn tally(&self) -> &EchoReport {
        &self.tally
    }

    /// The number of a message, if it is one of the peer's.
    fn number(&self, frame: &Frame) -> Option<u64> {
        let bytes = self.terms.bytes;
        let offset = match frame {
            Frame::Data(payload) if payload.len() as u64 != bytes => return None,
            Frame::Data(Payload::Virtual { offset, .. }) => *offset,
            Frame::Data(Payload::Real(real)) => {
                let offset = pattern::offset_of(real)?;
                pattern::matches(offset, real).then_some(offset)?
            }
            Frame::Rtp(_) | Frame::Rtcp(_) => return None,
        };
        offset.is_multiple_of(bytes).then_some(offset / bytes)
    }

    fn message(&self) -> Frame {
        let len = self.terms.bytes;
        Frame::Data(Payload::Virtual { offset: self.tally.sent_packets * len, len })
    }

    const fn is_done(&self) -> bool {
        self.tally.sent_packets >= self.terms.packets
    }

    /// When the peer will be considered finished.
    fn quiet_at(&self) -> Option<Instant> {
        let waiting =
            self.is_done() && !self.closing && (self.terms.closes || !self.terms.connection);
        let all = self.tally.distinct_packets >= self.awaited;
        let silence = if all { self.terms.linger } else { self.terms.quiet };
        waiting.then(|| self.heard.max(self.next) + silence)
    }

    fn next_step(&mut self, now: Instant, room: usize) -> Option<Step> {
        if !self.opened {
            self.opened = true;
            return Some(Step::Do(Input::Open));
        }
        let due = self.talking && !self.closing && now >= self.next;
        if due && !self.is_done() && room as u64 >= self.terms.bytes {
            let message = self.message();
            self.tally.sent_packets += 1;
            self.tally.sent_bytes += self.terms.bytes;
            self.next = now + self.terms.interval;
            return Some(Step::Do(Input::Frame(message)));
        }
        let quiet = self.quiet_at().is_some_and(|at| at <= now);
        if !self.terms.connection {
            return quiet.then_some(Step::Stop);
        }
        if self.talking && quiet {
            self.closing = true;
            return Some(Step::Do(Input::Close));
        }
        None
    }
}

impl App for EchoTest {
    fn on_frame(&mut self, now: Instant, frame: Frame) {
        let silence = self.first.map_or(Duration::ZERO, |_| now.saturating_since(self.heard));
        self.heard = now;
        let Some(number) = self.number(&frame) else {
            self.tally.foreign_packets += 1;
            return;
        };
        self.tally.received_packets += 1;
        self.tally.received_bytes += self.terms.bytes;
        let began = *self.first.get_or_insert(now);
        self.tally.receiving_us = now.saturating_since(began).as_nanos() / 1000;
        let longest = &mut self.tally.longest_silence_us;
        *longest = (*longest).max(silence.as_nanos() / 1000);
        let highest = self.highest.entry(number % self.streams).or_insert(number);
        self.tally.reordered_packets += u64::from(*highest > number);
        *highest = number.max(*highest);
        self.tally.distinct_packets += u64::from(self.seen.insert(number));
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Connected => {
                self.talking = true;
                self.next = now;
            }
            Event::Closed | Event::Reset | Event::TimedOut => {
                self.talking = false;
                self.ended = Some(now + self.terms.linger);
            }
            Event::PeerClosed | Event::Writable | Event::TargetRate(_) | Event::Restarted => {}
        }
        if !matches!(event, Event::Writable | Event::TargetRate(_)) {
            self.tally.events.push(format!("{event:?}"));
        }
    }

    fn step(&mut self, now: Instant, room: usize) -> Step {
        if now >= self.terms.limit {
            self.tally.gave_up = true;
            return Step::Stop;
        }
        if self.ended.is_some_and(|end| end <= now) {
            return Step::Stop;
        }
        if let Some(step) = self.next_step(now, room) {
            return step;
        }
        // Without room, the endpoint's own deadline or a packet comes first.
        let next = (self.talking && !self.is_done() && self.next > now).then_some(self.next);
        let quiet = self.quiet_at().filter(|_| self.talking);
        let wake = [next, quiet, self.ended, Some(self.terms.limit)];
        Step::Wait(wake.into_iter().flatten().min())
    }
}
