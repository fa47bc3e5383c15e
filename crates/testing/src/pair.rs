use std::collections::VecDeque;
use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Output, Transmit};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, PathId, Payload};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

use crate::{Notes, data, ms};

/// An endpoint whose packets a [`Pair`] can log.
pub trait Logged: Endpoint<Packet: fmt::Debug> + Sized {
    /// A packet as tests see it in the log.
    type Entry: Clone + fmt::Debug;
    /// State needed to describe later packets, such as initial sequence numbers.
    type Memory: Default;
    /// The endpoint's information on delivered data, besides the data.
    type Delivered;
    /// Number of one-way delays until both ends are open.
    const HANDSHAKE: u64;

    /// Describes a packet that was sent.
    fn entry(memory: &mut Self::Memory, from: Side, packet: &Self::Packet) -> Self::Entry;
    /// The packet as it arrives.
    fn arrives(packet: &Self::Packet) -> Self::Packet;
    /// Bytes of the IP packet.
    fn ip_bytes(packet: &Self::Packet) -> u32;
    /// The report of a router that drops this packet because of its MTU.
    fn too_big(_packet: &Self::Packet, _mtu: u32) -> Input<Self::Packet> {
        panic!("no router limits the packets of this protocol")
    }
    /// The endpoint's information on data that it has just delivered after `before` bytes.
    fn delivered(&self, before: u64, frame: &Frame) -> Self::Delivered;
    /// True if the connection is established.
    fn is_open(&self) -> bool;
}

/// An end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It opens the connection.
    Client,
    /// It listens.
    Server,
}
use Side::{Client, Server};

impl Side {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Client => Server,
            Server => Client,
        }
    }
}

/// One end, and the events of its application.
#[derive(Debug)]
pub struct End<E: Logged> {
    /// The endpoint.
    pub endpoint: E,
    /// Its events.
    pub events: Vec<(Instant, Event)>,
    /// Data delivered, and when.
    pub received: Vec<(Instant, Frame)>,
    /// The endpoint's information on that data.
    pub delivered: Vec<E::Delivered>,
    /// Bytes of that data.
    pub count: u64,
    /// The endpoint's notes.
    pub notes: Notes,
    /// Its next deadline.
    pub wake: Option<Instant>,
    /// Frames the application passes on as soon as there is room.
    pub waiting: VecDeque<Frame>,
    /// When its outgoing wire becomes idle.
    free: Instant,
}

impl<E: Logged> End<E> {
    /// An end in its initial state.
    pub fn new(endpoint: E) -> Self {
        Self {
            endpoint,
            events: Vec::new(),
            received: Vec::new(),
            delivered: Vec::new(),
            count: 0,
            notes: Notes::default(),
            wake: None,
            waiting: VecDeque::new(),
            free: Instant::ZERO,
        }
    }

    /// True if this event occurred.
    pub fn saw(&self, event: Event) -> bool {
        self.events.iter().any(|(_, seen)| *seen == event)
    }

    /// The events, without [`Event::Writable`].
    pub fn life(&self) -> Vec<Event> {
        let life = self.events.iter().map(|(_, event)| *event);
        life.filter(|event| *event != Event::Writable).collect()
    }

    /// The frames received.
    pub fn frames(&self) -> Vec<Frame> {
        self.received.iter().map(|(_, frame)| frame.clone()).collect()
    }

    /// The real bytes received.
    pub fn bytes(&self) -> Vec<u8> {
        let real = self.received.iter().filter_map(|(_, frame)| match frame {
            Frame::Data(Payload::Real(bytes)) => Some(bytes.as_ref()),
            _ => None,
        });
        real.collect::<Vec<_>>().concat()
    }
}

/// A packet that was put on the wire; dereferences to its content.
#[derive(Clone, Debug)]
pub struct Sent<T> {
    /// When.
    pub at: Instant,
    /// By which end.
    pub from: Side,
    /// On which path.
    pub path: PathId,
    /// With which ECN field.
    pub ecn: Ecn,
    /// The wire dropped it.
    pub dropped: bool,
    /// The packet.
    pub entry: T,
}

impl<T> Deref for Sent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.entry
    }
}

/// What the wire does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It arrives.
    Arrive,
    /// It is lost.
    Drop,
    /// It arrives this much later, overtaken by others.
    Late(Duration),
    /// It arrives twice, the second time this much later.
    Twice(Duration),
    /// It arrives with Congestion Experienced.
    Mark,
    /// It arrives with damage beyond the checksum's coverage.
    Damage,
}

impl Verdict {
    /// Lost, or not.
    #[must_use]
    pub const fn drop_if(lost: bool) -> Self {
        if lost { Self::Drop } else { Self::Arrive }
    }
}

type Wire<T> = Box<dyn FnMut(&Sent<T>) -> Verdict>;

struct Flight<P> {
    at: Instant,
    order: usize,
    to: Side,
    arrival: Arrival,
    packet: P,
}

/// Two endpoints and the wire between them.
pub struct Pair<E: Logged> {
    /// The current time.
    pub now: Instant,
    /// The end that opens.
    pub client: End<E>,
    /// The end that listens.
    pub server: End<E>,
    /// The packets sent.
    pub log: Vec<Sent<E::Entry>>,
    /// One-way delay.
    pub delay: Duration,
    /// Rate of the wire in each direction, with an unlimited queue; without one, transmission takes no time.
    pub rate: Option<Rate>,
    /// The largest IP packet that passes.
    pub mtu: u32,
    wire: Wire<E::Entry>,
    flying: Vec<Flight<E::Packet>>,
    order: usize,
    memory: E::Memory,
}

impl<E: Logged> fmt::Debug for Pair<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair")
            .field("now", &self.now)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

impl<E: Logged> Pair<E> {
    /// Two endpoints, 50 ms apart.
    pub fn between(client: E, server: E) -> Self {
        Self {
            now: Instant::ZERO,
            client: End::new(client),
            server: End::new(server),
            log: Vec::new(),
            delay: ms(50),
            rate: None,
            mtu: u32::MAX,
            wire: Box::new(|_| Verdict::Arrive),
            flying: Vec::new(),
            order: 0,
            memory: E::Memory::default(),
        }
    }

    /// One of the ends.
    pub fn end(&mut self, side: Side) -> &mut End<E> {
        match side {
            Client => &mut self.client,
            Server => &mut self.server,
        }
    }

    /// Decides on every packet sent from now on.
    pub fn on_wire(&mut self, wire: impl FnMut(&Sent<E::Entry>) -> Verdict + 'static) {
        self.wire = Box::new(wire);
    }

    /// Decides on those packets for which `counts` is true by their number, counted from 1 from now on; all
    /// others arrive.
    pub fn judge_counted(
        &mut self,
        mut counts: impl FnMut(&Sent<E::Entry>) -> bool + 'static,
        mut judge: impl FnMut(usize) -> Verdict + 'static,
    ) {
        let mut count = 0;
        self.on_wire(move |sent| {
            if !counts(sent) {
                return Verdict::Arrive;
            }
            count += 1;
            judge(count)
        });
    }

    /// Drops packets of `from` with these numbers, counted from 1 from now on among those for which
    /// `counts` is true.
    pub fn drop_counted(
        &mut self,
        from: Side,
        numbers: &[usize],
        counts: impl Fn(&E::Entry) -> bool + 'static,
    ) {
        let numbers = numbers.to_vec();
        let drop = move |count| Verdict::drop_if(numbers.contains(&count));
        self.judge_counted(move |sent| sent.from == from && counts(sent), drop);
    }

    /// Gives an input to one end.
    pub fn input(&mut self, side: Side, input: Input<E::Packet>) {
        let now = self.now;
        let end = self.end(side);
        end.endpoint.handle(now, input, &mut end.notes);
        self.settle(side);
    }

    /// Opens, and waits for the handshake.
    pub fn connect(&mut self) {
        self.input(Client, Input::Open);
        self.drive_for(self.delay * E::HANDSHAKE);
        assert!(self.client.endpoint.is_open() && self.server.endpoint.is_open());
    }

    /// Queues virtual bytes.
    pub fn send_virtual(&mut self, side: Side, bytes: u32) {
        self.send_frame(side, data(bytes));
    }

    /// Queues real bytes.
    pub fn send_real(&mut self, side: Side, bytes: &[u8]) {
        self.send_frame(side, Frame::Data(Payload::Real(Bytes::copy_from_slice(bytes))));
    }

    /// Queues a frame; it is passed on as soon as there is room.
    pub fn send_frame(&mut self, side: Side, frame: Frame) {
        self.end(side).waiting.push_back(frame);
        self.settle(side);
    }

    /// Lets time pass until nothing is in flight and no timer runs, or until `limit`.
    pub fn drive_until(&mut self, limit: Instant) {
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

    /// Lets time pass until nothing more happens.
    pub fn drive(&mut self) {
        while let Some(next) = self.next() {
            assert!(next < Instant::HORIZON, "the pair never comes to rest");
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn next(&self) -> Option<Instant> {
        let flying = self.flying.iter().map(|flight| flight.at).min();
        [flying, self.client.wake, self.server.wake].into_iter().flatten().min()
    }

    fn step(&mut self) {
        let first = (0..self.flying.len())
            .min_by_key(|i| (self.flying[*i].at, self.flying[*i].order))
            .filter(|i| self.flying[*i].at <= self.now);
        if let Some(i) = first {
            let Flight { to, arrival, packet, .. } = self.flying.swap_remove(i);
            return self.input(to, Input::Packet { arrival, packet });
        }
        for side in [Client, Server] {
            let now = self.now;
            if self.end(side).wake.is_some_and(|wake| wake <= now) {
                return self.input(side, Input::Timeout);
            }
        }
    }

    /// Polls an end until it is idle, and passes on queued frames.
    pub fn settle(&mut self, side: Side) {
        let now = self.now;
        for turn in 0.. {
            assert!(turn < 100_000, "the endpoint never becomes idle");
            let end = self.end(side);
            match end.endpoint.poll(now, &mut end.notes) {
                Output::Transmit(transmit) => self.put(side, transmit),
                Output::Deliver(frame) => {
                    end.delivered.push(end.endpoint.delivered(end.count, &frame));
                    end.count += frame.wire_bytes() as u64;
                    end.received.push((now, frame));
                }
                Output::Event(event) => end.events.push((now, event)),
                Output::Idle { until } => {
                    let is_future = until.is_none_or(|until| until >= now);
                    assert!(is_future, "the deadline is in the past");
                    end.wake = until;
                    let room = end.endpoint.send_capacity();
                    let fits = |frame: &Frame| room > 0 && frame.wire_bytes() <= room;
                    if !end.waiting.front().is_some_and(fits) {
                        return;
                    }
                    let frame = end.waiting.pop_front().expect("there is one");
                    end.endpoint.handle(now, Input::Frame(frame), &mut end.notes);
                }
            }
        }
    }

    fn put(&mut self, from: Side, transmit: Transmit<E::Packet>) {
        let Transmit { path, ecn, packet } = transmit;
        let entry = E::entry(&mut self.memory, from, &packet);
        let mut sent = Sent { at: self.now, from, path, ecn, dropped: false, entry };
        let ip_bytes = E::ip_bytes(&packet);
        if ip_bytes > self.mtu {
            sent.dropped = true;
            self.log.push(sent);
            let (now, news) = (self.now, E::too_big(&packet, self.mtu));
            let end = self.end(from);
            return end.endpoint.handle(now, news, &mut end.notes);
        }
        let verdict = (self.wire)(&sent);
        sent.dropped = verdict == Verdict::Drop;
        self.log.push(sent);
        let start = self.now.max(self.end(from).free);
        let on_wire = self.rate.and_then(|rate| rate.time_for(ip_bytes.into()));
        let gone = start + on_wire.unwrap_or(Duration::ZERO);
        self.end(from).free = gone;
        let at = gone + self.delay;
        let arrival = Arrival { path, ecn, damage: Damage::None };
        let mut fly = |at: Instant, arrival: Arrival| {
            self.order += 1;
            let (order, to, packet) = (self.order, from.other(), E::arrives(&packet));
            self.flying.push(Flight { at, order, to, arrival, packet });
        };
        match verdict {
            Verdict::Drop => {}
            Verdict::Arrive => fly(at, arrival),
            Verdict::Mark => fly(at, Arrival { ecn: Ecn::Ce, ..arrival }),
            Verdict::Damage => fly(at, Arrival { damage: Damage::Payload, ..arrival }),
            Verdict::Late(late) => fly(at + late, arrival),
            Verdict::Twice(later) => {
                fly(at, arrival);
                fly(at + later, arrival);
            }
        }
    }

    /// The packets sent by an end.
    pub fn sent(&self, from: Side) -> Vec<&Sent<E::Entry>> {
        self.log.iter().filter(|sent| sent.from == from).collect()
    }
}
