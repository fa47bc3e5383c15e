//! Two endpoints of any kind, a road of two ways between them, and a source at either end, in
//! virtual time. A way has a rate, a queue that drops from its tail, a delay, and somebody who
//! decides which packets are lost.

use std::collections::{BTreeMap, VecDeque};

use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Output, Transmit};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, PathId, Payload};
use talkspurt_proto::probe::{Gauge, Note, Place, Probe, RxError, Topic};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
pub const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}
pub const fn kbps(kilobits: u64) -> Rate {
    Rate::from_bps(kilobits * 1000)
}

/// Notes, kept.
#[derive(Default)]
pub struct Notes {
    pub rx_error: Vec<RxError>,
    pub gauges: Vec<(Instant, Gauge, f64)>,
}

impl Notes {
    pub fn last(&self, gauge: Gauge) -> Option<f64> {
        self.at(gauge, Instant::HORIZON)
    }
    /// The value a gauge had then.
    pub fn at(&self, gauge: Gauge, when: Instant) -> Option<f64> {
        self.series(gauge).take_while(|note| note.0 <= when).last().map(|note| note.1)
    }
    pub fn series(&self, gauge: Gauge) -> impl Iterator<Item = (Instant, f64)> + '_ {
        self.gauges.iter().filter(move |note| note.1 == gauge).map(|note| (note.0, note.2))
    }
    /// Mean over time of a gauge that holds until it is told anew.
    pub fn mean(&self, gauge: Gauge, from: Instant, to: Instant) -> f64 {
        let (mut area, mut last) = (0.0, (from, self.at(gauge, from).unwrap_or(0.0)));
        for (when, value) in self.series(gauge).filter(|note| note.0 > from && note.0 <= to) {
            area += last.1 * when.saturating_since(last.0).as_secs_f64();
            last = (when, value);
        }
        area += last.1 * to.saturating_since(last.0).as_secs_f64();
        area / to.saturating_since(from).as_secs_f64()
    }
}

impl Probe for Notes {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, now: Instant, _: Place, note: &Note<'_>) {
        match note {
            Note::RxError(rx_error) => self.rx_error.push(*rx_error),
            Note::Gauge { gauge, value } => self.gauges.push((now, *gauge, *value)),
            _ => {}
        }
    }
}

/// What an end wants to say.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    Silent,
    /// Always something to send, in packets of this many bytes.
    Greedy(u32),
    /// Packets of `bytes` each `interval`; `queue` of them wait for room, the oldest goes first and
    /// what finds it full is dropped.
    Steady {
        bytes: u32,
        interval: Duration,
        queue: usize,
    },
}

/// One end with what its application saw.
pub struct End<E> {
    pub endpoint: E,
    pub source: Source,
    pub events: Vec<(Instant, Event)>,
    /// When data came, and how many bytes.
    pub received: Vec<(Instant, usize)>,
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

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Arrive,
    Drop,
    /// Arrives with Congestion Experienced, if its sender can hear of it.
    Mark,
    /// Arrives twice.
    Twice,
    /// Arrives so much later.
    Late(Duration),
}

type Judge = Box<dyn FnMut(Instant, &Body) -> Verdict>;

/// One direction.
pub struct Way {
    pub delay: Duration,
    /// Without one, packets wait for nothing.
    pub rate: Option<Rate>,
    /// Bytes of framing the rate counts besides the IP packet.
    pub framing: u32,
    /// Packets that may wait, the one in transmission included.
    pub limit: usize,
    /// Packets in the queue from which on they are marked instead of nothing.
    pub mark_from: usize,
    pub judge: Judge,
    /// When the packets in the queue will have gone.
    queue: VecDeque<Instant>,
    pub dropped: usize,
}

/// A packet as it was put on the road.
pub struct Sent {
    pub at: Instant,
    /// By the end with this index.
    pub from: usize,
    pub ecn: Ecn,
    pub body: Body,
    pub verdict: Verdict,
}

/// An endpoint whose packets are bodies.
pub trait OnRoad: Endpoint<Packet: Into<Body> + TryFrom<Body, Error = Body>> {}

impl<E: Endpoint<Packet: Into<Body> + TryFrom<Body, Error = Body>>> OnRoad for E {}

pub struct Road<E> {
    pub now: Instant,
    /// The end that opens, and the other.
    pub ends: [End<E>; 2],
    /// From each end to the other.
    pub ways: [Way; 2],
    pub log: Vec<Sent>,
    /// Whether what is sent is kept in `log`.
    pub keep: bool,
    flying: BTreeMap<(Instant, u64), (usize, Ecn, Body)>,
    order: u64,
}

impl<E: OnRoad> Road<E> {
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

    /// Decides on every packet that end sends from now on.
    pub fn judge(&mut self, from: usize, judge: impl FnMut(Instant, &Body) -> Verdict + 'static) {
        self.ways[from].judge = Box::new(judge);
    }

    pub fn open(&mut self) {
        self.input(0, Input::Open);
    }

    pub fn input(&mut self, end: usize, input: Input<E::Packet>) {
        let it = &mut self.ends[end];
        it.endpoint.handle(self.now, input, &mut it.notes);
        self.settle(end);
    }

    /// A packet arrives that nobody put on the road.
    pub fn inject(&mut self, to: usize, body: Body) {
        self.input(to, arriving(Ecn::NotEct, body));
    }

    /// Hands over one packet of data whether there is a source or not.
    pub fn send(&mut self, end: usize, bytes: u32) {
        self.input(end, data(bytes));
    }

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
            let (to, ecn, body) = entry.remove();
            return self.input(to, arriving(ecn, body));
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

    /// The source hands over what there is room for.
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
            it.endpoint.handle(self.now, data(bytes), &mut it.notes);
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
        let late = if let Verdict::Late(late) = verdict { late } else { Duration::ZERO };
        let arrival = gone + way.delay + late;
        for _ in 0..=usize::from(verdict == Verdict::Twice) {
            self.order += 1;
            self.flying.insert((arrival, self.order), (1 - from, ecn, body.clone()));
        }
    }
}

fn data<T>(bytes: u32) -> Input<T> {
    Input::Frame(Frame::Data(Payload::Virtual { offset: 0, len: bytes.into() }))
}

fn arriving<T: TryFrom<Body, Error = Body>>(ecn: Ecn, body: Body) -> Input<T> {
    let arrival = Arrival { path: PathId(0), ecn, damage: Damage::None };
    body.into_input(arrival).expect("a packet of the same protocol")
}
