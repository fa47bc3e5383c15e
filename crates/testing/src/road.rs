//! Two endpoints of any protocol, a link in each direction and a source at each end. A link has a rate, a
//! DropTail queue, a delay, and a function that decides which packets are lost.

use std::collections::{BTreeMap, VecDeque};

use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Output, Transmit};
use talkspurt_proto::packet::{Damage, Ecn, PathId};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

use crate::{Notes, Verdict, data};

/// What an end sends.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// Nothing.
    Silent,
    /// As much as it can, in packets of this many bytes.
    Greedy(u32),
    /// A packet of `bytes` each `interval`. Up to `queue` of them wait for room, first in, first out; a full
    /// queue drops new ones.
    Steady {
        /// Bytes of each.
        bytes: u32,
        /// Time between two.
        interval: Duration,
        /// Maximum length of the queue.
        queue: usize,
    },
}

/// One end and the events of its application.
pub struct End<E> {
    /// The endpoint.
    pub endpoint: E,
    /// What its application sends.
    pub source: Source,
    /// Its events.
    pub events: Vec<(Instant, Event)>,
    /// Arrival times and bytes of data.
    pub received: Vec<(Instant, usize)>,
    /// Its notes.
    pub notes: Notes,
    wake: Option<Instant>,
    tick: Instant,
    waiting: VecDeque<u32>,
}

impl<E> End<E> {
    fn new(endpoint: E) -> Self {
        Self {
            endpoint,
            source: Source::Silent,
            events: Vec::new(),
            received: Vec::new(),
            notes: Notes::default(),
            wake: None,
            tick: Instant::ZERO,
            waiting: VecDeque::new(),
        }
    }
    /// True if this event occurred.
    pub fn saw(&self, event: Event) -> bool {
        self.events.iter().any(|(_, seen)| *seen == event)
    }
    /// Data received in a span, in bit/s.
    pub fn throughput(&self, from: Instant, to: Instant) -> f64 {
        let bytes: usize =
            self.received.iter().filter(|it| it.0 > from && it.0 <= to).map(|it| it.1).sum();
        bytes as f64 * 8.0 / to.saturating_since(from).as_secs_f64()
    }
}

/// An unmarked, undamaged packet on the first path.
const UNMARKED: Arrival = Arrival { path: PathId(0), ecn: Ecn::NotEct, damage: Damage::None };

type Judge = Box<dyn FnMut(Instant, &Body) -> Verdict>;

/// One direction.
pub struct Way {
    /// One-way delay.
    pub delay: Duration,
    /// Rate of the link; without one there is no queueing.
    pub rate: Option<Rate>,
    /// Bytes of framing the rate counts besides the IP packet.
    pub framing: u32,
    /// Maximum packets in the queue, including the one in transmission.
    pub limit: usize,
    /// Queue length from which packets are marked.
    pub mark_from: usize,
    /// Decides on every packet.
    pub judge: Judge,
    /// Departure times of the packets in the queue.
    queue: VecDeque<Instant>,
    /// Packets that the queue dropped.
    pub dropped: usize,
}

/// A packet that was sent.
pub struct Sent {
    /// When.
    pub at: Instant,
    /// By the end with this index.
    pub from: usize,
    /// With which ECN field.
    pub ecn: Ecn,
    /// The packet.
    pub body: Body,
    /// Its fate on the link.
    pub verdict: Verdict,
}

/// An endpoint whose packets are bodies.
pub trait OnRoad: Endpoint<Packet: Into<Body> + TryFrom<Body, Error = Body>> {}

impl<E: Endpoint<Packet: Into<Body> + TryFrom<Body, Error = Body>>> OnRoad for E {}

/// Two endpoints, the links between them and their sources.
pub struct Road<E> {
    /// The current time.
    pub now: Instant,
    /// The opening end, and the other.
    pub ends: [End<E>; 2],
    /// From each end to the other.
    pub ways: [Way; 2],
    /// The packets sent.
    pub log: Vec<Sent>,
    /// True if packets sent are kept in `log`.
    pub keep: bool,
    flying: BTreeMap<(Instant, u64), (usize, Arrival, Body)>,
    order: u64,
}

impl<E: OnRoad> Road<E> {
    /// Two endpoints, with links of this delay.
    pub fn new(client: E, listener: E, delay: Duration) -> Self {
        let way = || Way {
            delay,
            rate: None,
            framing: 0,
            limit: usize::MAX,
            mark_from: usize::MAX,
            judge: Box::new(|_, _| Verdict::Arrive),
            queue: VecDeque::new(),
            dropped: 0,
        };
        Self {
            now: Instant::ZERO,
            ends: [End::new(client), End::new(listener)],
            ways: [way(), way()],
            log: Vec::new(),
            keep: true,
            flying: BTreeMap::new(),
            order: 0,
        }
    }

    /// Decides on every packet that this end sends from now on.
    pub fn judge(&mut self, from: usize, judge: impl FnMut(Instant, &Body) -> Verdict + 'static) {
        self.ways[from].judge = Box::new(judge);
    }

    /// Opens the connection.
    pub fn open(&mut self) {
        self.input(0, Input::Open);
    }

    /// The same, with this source at the end that opens.
    pub fn open_with(&mut self, source: Source) {
        self.ends[0].source = source;
        self.open();
    }

    /// Gives an input to one end.
    pub fn input(&mut self, end: usize, input: Input<E::Packet>) {
        let it = &mut self.ends[end];
        it.endpoint.handle(self.now, input, &mut it.notes);
        self.settle(end);
    }

    /// Delivers a packet that no end sent.
    pub fn inject(&mut self, to: usize, body: Body) {
        self.input(to, arriving(UNMARKED, body));
    }

    /// Sends one packet of data, with or without a source.
    pub fn send(&mut self, end: usize, bytes: u32) {
        self.input(end, Input::Frame(data(bytes)));
    }

    /// Lets time pass until nothing more happens, or until `limit`.
    pub fn drive_until(&mut self, limit: Instant) {
        for end in 0..2 {
            self.feed(end);
        }
        while let Some(next) = self.next().filter(|next| *next <= limit) {
            self.now = self.now.max(next);
            self.step();
        }
        self.now = self.now.max(limit);
    }
    /// Lets this much time pass.
    pub fn drive_for(&mut self, span: Duration) {
        self.drive_until(self.now + span);
    }

    fn next(&self) -> Option<Instant> {
        let flying = self.flying.keys().next().map(|key| key.0);
        let ticks = self.ends.iter().map(|end| match end.source {
            Source::Steady { .. } => Some(end.tick),
            Source::Silent | Source::Greedy(_) => None,
        });
        let wakes = self.ends.iter().map(|end| end.wake);
        ticks.chain(wakes).chain([flying]).flatten().min()
    }

    fn step(&mut self) {
        if let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, arrival, body) = entry.remove();
            return self.input(to, arriving(arrival, body));
        }
        for end in 0..2 {
            if self.ends[end].wake.is_some_and(|wake| wake <= self.now) {
                return self.input(end, Input::Timeout);
            }
            let it = &mut self.ends[end];
            if let Source::Steady { bytes, interval, queue } = it.source
                && it.tick <= self.now
            {
                it.tick += interval;
                if it.waiting.len() < queue {
                    it.waiting.push_back(bytes);
                }
                return self.feed(end);
            }
        }
    }

    /// Passes on the source's data while there is room.
    fn feed(&mut self, end: usize) {
        loop {
            let it = &mut self.ends[end];
            let bytes = match it.source {
                Source::Silent => return,
                Source::Greedy(bytes) => bytes,
                Source::Steady { .. } => {
                    let Some(bytes) = it.waiting.front() else { return };
                    *bytes
                }
            };
            if it.endpoint.send_capacity() < bytes as usize {
                return;
            }
            it.waiting.pop_front();
            it.endpoint.handle(self.now, Input::Frame(data(bytes)), &mut it.notes);
            self.settle_quietly(end);
        }
    }

    fn settle(&mut self, end: usize) {
        self.settle_quietly(end);
        self.feed(end);
    }

    fn settle_quietly(&mut self, end: usize) {
        loop {
            let (now, it) = (self.now, &mut self.ends[end]);
            match it.endpoint.poll(now, &mut it.notes) {
                Output::Transmit(transmit) => self.put(end, transmit),
                Output::Deliver(frame) => it.received.push((now, frame.wire_bytes())),
                Output::Event(event) => it.events.push((now, event)),
                Output::Idle { until } => {
                    it.wake = until;
                    return;
                }
            }
        }
    }

    fn put(&mut self, from: usize, transmit: Transmit<E::Packet>) {
        let Transmit { mut ecn, packet, .. } = transmit;
        let body: Body = packet.into();
        let (now, way) = (self.now, &mut self.ways[from]);
        let mut verdict = (way.judge)(now, &body);
        while way.queue.front().is_some_and(|gone| *gone <= now) {
            way.queue.pop_front();
        }
        if way.queue.len() >= way.limit {
            verdict = Verdict::Drop;
            way.dropped += 1;
        } else if way.queue.len() >= way.mark_from {
            verdict = Verdict::Mark;
        }
        if self.keep {
            self.log.push(Sent { at: now, from, ecn, body: body.clone(), verdict });
        }
        if verdict == Verdict::Drop {
            return;
        }
        if verdict == Verdict::Mark && ecn == Ecn::Ect0 {
            ecn = Ecn::Ce;
        }
        let damage = if verdict == Verdict::Damage { Damage::Payload } else { Damage::None };
        let layers = body.layers();
        let bytes = way.framing + 20 + layers.transport + layers.media + layers.payload;
        let gone = match way.rate {
            None => now,
            Some(rate) => {
                let start = way.queue.back().copied().unwrap_or(now).max(now);
                let gone = start + rate.time_for(bytes.into()).expect("a rate above zero");
                way.queue.push_back(gone);
                gone
            }
        };
        let first = gone + way.delay;
        let times = match verdict {
            Verdict::Late(late) => [Some(first + late), None],
            Verdict::Twice(later) => [Some(first), Some(first + later)],
            _ => [Some(first), None],
        };
        for at in times.into_iter().flatten() {
            self.order += 1;
            let arrival = Arrival { ecn, damage, ..UNMARKED };
            self.flying.insert((at, self.order), (1 - from, arrival, body.clone()));
        }
    }
}

fn arriving<T: TryFrom<Body, Error = Body>>(arrival: Arrival, body: Body) -> Input<T> {
    input_of(arrival, body).expect("a packet of the same protocol")
}

/// A body as an input of an endpoint with packet type `T`.
///
/// # Errors
/// Returns the body of another protocol unchanged.
pub fn input_of<T: TryFrom<Body, Error = Body>>(
    arrival: Arrival,
    body: Body,
) -> Result<Input<T>, Body> {
    match body {
        Body::TooBig { mtu, quote } => Ok(Input::TooBig { path: arrival.path, mtu, quote }),
        body => body.try_into().map(|packet| Input::Packet { arrival, packet }),
    }
}
