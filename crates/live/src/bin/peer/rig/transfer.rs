//! A file in each direction over a stream connection (TCP): ours is sent as the endpoint has room, the peer's
//! is stored. Comparing both ends is left to the caller.

use bytes::Bytes;
use serde::Serialize;
use talkspurt_proto::endpoint::{Event, Input};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::time::{Duration, Instant};

use super::{App, Step};

/// Bytes handed over at a time.
const PIECE: usize = 65_536;

/// Parameters of the transfer.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Whether we open the connection.
    pub(crate) opens: bool,
    /// Data to send.
    pub(crate) send: Bytes,
    /// Whether our direction closes as soon as all data is sent; otherwise after the peer has closed.
    pub(crate) closes: bool,
    /// Time to wait for the peer's last packets after the end.
    pub(crate) linger: Duration,
    /// Time limit.
    pub(crate) limit: Instant,
}

/// Results, without the data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Record {
    /// Bytes handed to the endpoint.
    pub(crate) sent_bytes: u64,
    /// Bytes delivered.
    pub(crate) received_bytes: u64,
    /// Events of the connection, with their time in microseconds of the clock.
    pub(crate) events: Vec<(String, u64)>,
    /// Whether the limit was reached.
    pub(crate) gave_up: bool,
}

/// One side of the transfer.
#[derive(Debug)]
pub(crate) struct Transfer {
    plan: Plan,
    record: Record,
    received: Vec<u8>,
    opened: bool,
    connected: bool,
    peer_closed: bool,
    closed: bool,
    ended: Option<Instant>,
}

impl Transfer {
    /// A side that has sent nothing yet.
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            opened: !plan.opens,
            plan,
            record: Record::default(),
            received: Vec::new(),
            connected: false,
            peer_closed: false,
            closed: false,
            ended: None,
        }
    }

    /// The results so far.
    pub(crate) const fn record(&self) -> &Record {
        &self.record
    }

    /// Data received from the peer.
    pub(crate) fn received(&self) -> &[u8] {
        &self.received
    }

    /// The next piece, once there is room for all of it: small pieces would make small segments.
    fn next_piece(&mut self, room: usize) -> Option<Bytes> {
        let length = self.plan.send.len().min(PIECE);
        (length > 0 && room >= length).then(|| self.plan.send.split_to(length))
    }
}

impl App for Transfer {
    fn on_frame(&mut self, _: Instant, frame: Frame) {
        match frame {
            Frame::Data(Payload::Real(bytes)) => self.received.extend_from_slice(&bytes),
            // Bytes from a wire are real unless hints say otherwise, and TCP carries no media.
            other => panic!("a stream from a wire delivered {other:?}"),
        }
        self.record.received_bytes = self.received.len() as u64;
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Connected => self.connected = true,
            Event::PeerClosed => self.peer_closed = true,
            Event::Closed | Event::Reset | Event::TimedOut => {
                self.ended = Some(now + self.plan.linger);
            }
            // TCP does not emit the last two.
            Event::Writable | Event::TargetRate(_) | Event::Restarted => return,
        }
        self.record.events.push((format!("{event:?}"), now.as_nanos() / 1000));
    }

    fn step(&mut self, now: Instant, room: usize) -> Step {
        if self.record.gave_up || self.ended.is_some_and(|end| end <= now) {
            return Step::Stop;
        }
        if now >= self.plan.limit {
            self.record.gave_up = true;
            return Step::Do(Input::Abort);
        }
        if !self.opened {
            self.opened = true;
            return Step::Do(Input::Open);
        }
        if self.connected && self.ended.is_none() {
            if let Some(piece) = self.next_piece(room) {
                self.record.sent_bytes += piece.len() as u64;
                return Step::Do(Input::Frame(Frame::Data(Payload::Real(piece))));
            }
            let all = self.plan.send.is_empty() && (self.plan.closes || self.peer_closed);
            if all && !self.closed {
                self.closed = true;
                return Step::Do(Input::Close);
            }
        }
        Step::Wait(self.ended.into_iter().chain([self.plan.limit]).min())
    }
}
