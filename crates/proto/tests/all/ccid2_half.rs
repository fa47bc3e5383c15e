//! The two halves of a CCID 2 half-connection without a connection: by hand, packet by packet
//! ([`Bench`]), and over a path with a delay and scripted losses and marks ([`Path`]).
//! Acknowledgements are transferred as option bytes.

use std::collections::BTreeMap;

use talkspurt_proto::dccp::ackvec::State;
use talkspurt_proto::dccp::ccid::{Acknowledgement, Arrival, Departure};
use talkspurt_proto::dccp::ccid::{Receiver as _, Sender as _};
use talkspurt_proto::dccp::ccid2::{Limited, Parameters, Receiver, Sender};
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::dccp::{AckVector, Options, SeqNo};
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::Permit;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_testing::dccp::with;

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) fn seq(number: u64) -> SeqNo {
    SeqNo::first(number)
}

pub(crate) fn at(ms: u64) -> Instant {
    Instant::ZERO + MS * ms
}

/// Cells of an Ack Vector from runs, newest first.
pub(crate) fn vector(runs: &[(State, u8)]) -> Vec<u8> {
    runs.iter().map(|(state, count)| (*state as u8) << 6 | (count - 1)).collect()
}

pub(crate) fn rfc() -> Parameters {
    Parameters::of(Profile::Rfc)
}

/// A window of ten from the start, so that hand computation is easy; growth unlimited.
pub(crate) fn wide(ssthresh: Option<u64>) -> Parameters {
    Parameters {
        initial_window_packets: Some(10),
        initial_ssthresh_packets: ssthresh,
        application_limited: Limited::Grow,
        ..rfc()
    }
}

/// A sender with scripted input.
pub(crate) struct Bench {
    pub(crate) sender: Sender,
    pub(crate) now: Instant,
    pub(crate) next: u64,
    /// Number of the other side's next packet.
    pub(crate) peer: u64,
}

impl Bench {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self { sender: Sender::new(parameters), now: at(0), next: 1, peer: 1 }
    }
    /// One that has sent what it may.
    pub(crate) fn full(parameters: &Parameters) -> Self {
        let mut bench = Self::new(parameters);
        bench.fill();
        bench
    }
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now += MS * ms;
    }
    pub(crate) fn may(&mut self) -> bool {
        self.sender.permit(self.now) == Permit::Now
    }
    /// Sends a packet of so many bytes of data, or none.
    pub(crate) fn send(&mut self, data_bytes: Option<u32>) -> u64 {
        let number = self.next;
        self.next += 1;
        let departure = Departure { seq: seq(number), data_bytes };
        self.sender.on_sent(self.now, &departure, &mut ());
        number
    }
    /// Sends data until the sender forbids it; returns how many packets.
    pub(crate) fn fill(&mut self) -> u64 {
        let before = self.next;
        while self.may() {
            self.send(Some(172));
        }
        self.next - before
    }
    /// Sends up to so many data packets.
    pub(crate) fn some(&mut self, packets: u64) {
        for _ in 0..packets {
            assert!(self.may());
            self.send(Some(172));
        }
    }
    /// An acknowledgement of `ack` with these runs, newest first.
    pub(crate) fn ack(&mut self, ack: u64, runs: &[(State, u8)]) {
        let options = with(&[Opt::AckVector { nonce: false, cells: &vector(runs) }]);
        self.hear(ack, &options);
    }
    pub(crate) fn hear(&mut self, ack: u64, options: &Options) {
        let number = self.peer;
        self.peer += 1;
        self.hear_as(number, ack, options, Ecn::NotEct, (None, None));
    }
    pub(crate) fn hear_as(
        &mut self,
        number: u64,
        ack: u64,
        options: &Options,
        ecn: Ecn,
        (elapsed, echo_rtt): (Option<Duration>, Option<Duration>),
    ) {
        let own = seq(number);
        let arrival = Arrival { seq: own, data_bytes: None, ccval: 0, ecn, ndp: None, options };
        self.sender.on_arrival(self.now, &arrival);
        let ack = Acknowledgement { seq: own, ack: seq(ack), options, ecn, elapsed, echo_rtt };
        self.sender.on_ack(self.now, &ack, &mut ());
    }
    /// Acknowledges everything from `from` to `to` two by two, as a receiver would.
    pub(crate) fn ack_pairs(&mut self, from: u64, to: u64) {
        let mut number = from + 1;
        while number < to {
            self.ack(number, &[(State::Received, 2)]);
            number += 2;
        }
        self.ack(to, &[(State::Received, 2)]);
    }
    /// cwnd, ssthresh and pipe.
    pub(crate) fn state(&self) -> (u64, Option<u64>, u64) {
        (self.sender.window(), self.sender.threshold(), self.sender.pipe())
    }
    pub(crate) fn timeout(&mut self) {
        self.now = self.sender.deadline().expect("a timer runs");
        self.sender.on_timeout(self.now, &mut ());
    }
}

/// What a path does to a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Arrives,
    Marked,
    Lost,
}

enum Event {
    Data(u64, Verdict),
    Ack { number: u64, ack: SeqNo, options: Options },
}

/// Sender and receiver with a fixed delay between them, and an application.
pub(crate) struct Path {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    vector: AckVector,
    pub(crate) rtt: Duration,
    now: Instant,
    events: BTreeMap<(Instant, u64), Event>,
    order: u64,
    next: u64,
    peer: u64,
    /// When each data packet left.
    pub(crate) departures: Vec<Instant>,
    pub(crate) acks: u64,
    /// Packets waiting in the application, and when the next is due.
    pub(crate) waiting: u64,
    due: Instant,
    /// Most data packets in the network at once.
    pub(crate) most: u64,
}

impl Path {
    pub(crate) fn new(parameters: &Parameters, rtt: Duration) -> Self {
        let mut receiver = Receiver::new(parameters);
        receiver.set_rtt(rtt);
        Self {
            sender: Sender::new(parameters),
            receiver,
            vector: AckVector::new(),
            rtt,
            now: at(0),
            events: BTreeMap::new(),
            order: 0,
            next: 1,
            peer: 1,
            departures: Vec::new(),
            acks: 0,
            waiting: 0,
            due: at(0),
            most: 0,
        }
    }

    fn plan(&mut self, when: Instant, event: Event) {
        self.order += 1;
        self.events.insert((when, self.order), event);
    }

    /// Runs until `end` with an application that always has data, or one that has a packet every
    /// `interval`; `verdict` decides about the n-th data packet, from 0.
    pub(crate) fn run(
        &mut self,
        end: Instant,
        interval: Option<Duration>,
        mut verdict: impl FnMut(u64) -> Verdict,
    ) {
        while self.now < end {
            while let Some(interval) = interval.filter(|_| self.due <= self.now) {
                self.waiting += 1;
                self.due += interval;
            }
            while (interval.is_none() || self.waiting > 0)
                && self.sender.permit(self.now) == Permit::Now
            {
                self.waiting = self.waiting.saturating_sub(1);
                self.send(&mut verdict);
            }
            self.acknowledge();
            let timers =
                [self.sender.deadline(), self.receiver.deadline(), interval.map(|_| self.due)];
            let wake = timers.into_iter().flatten().min().map(|wake| wake.max(self.now));
            let event = self.events.first_key_value().map(|((when, _), _)| *when);
            if event.into_iter().chain(wake).min().is_some_and(|next| next > end) {
                self.now = end;
                return;
            }
            match (event, wake) {
                (None, None) => return,
                (Some(when), wake) if wake.is_none_or(|wake| when <= wake) => {
                    self.now = when;
                    let (_, event) = self.events.pop_first().expect("it was seen");
                    self.take(event);
                }
                (_, wake) => {
                    self.now = wake.expect("one of the two");
                    self.tick();
                }
            }
        }
    }

    fn send(&mut self, verdict: &mut impl FnMut(u64) -> Verdict) {
        let departure = Departure { seq: seq(self.next), data_bytes: Some(1000) };
        self.sender.on_sent(self.now, &departure, &mut ());
        if self.sender.owes_ack() {
            // The peer's newest acknowledgement that has arrived is not looked up here: half a
            // round trip ago is as good.
            self.vector.on_ack_of_ack(seq(self.peer.saturating_sub(1)), &Options::default());
        }
        self.most = self.most.max(self.sender.pipe());
        let verdict = verdict(self.departures.len() as u64);
        self.departures.push(self.now);
        if verdict != Verdict::Lost {
            self.plan(self.now + self.rtt / 2, Event::Data(self.next, verdict));
        }
        self.next += 1;
    }

    fn acknowledge(&mut self) {
        if self.receiver.wants_ack(self.now) {
            let mut options = Options::default();
            self.receiver.acknowledge(self.now, false, &mut self.vector, &mut options);
            let (number, ack) = (self.peer, self.vector.newest().expect("a packet came"));
            self.vector.on_sent(seq(number));
            self.peer += 1;
            self.acks += 1;
            self.plan(self.now + self.rtt / 2, Event::Ack { number, ack, options });
        }
    }

    fn take(&mut self, event: Event) {
        let none = Options::default();
        match event {
            Event::Data(number, verdict) => {
                let ecn = if verdict == Verdict::Marked { Ecn::Ce } else { Ecn::Ect0 };
                self.vector.on_packet(seq(number), ecn);
                let arrival = Arrival {
                    seq: seq(number),
                    data_bytes: Some(1000),
                    ccval: 0,
                    ecn,
                    ndp: None,
                    options: &none,
                };
                self.receiver.on_packet(self.now, &arrival, &mut ());
            }
            Event::Ack { number, ack, options } => {
                let elapsed = options.iter().find_map(|option| match option {
                    Ok(Opt::ElapsedTime(units)) => {
                        Some(Duration::from_micros(10) * u64::from(units))
                    }
                    _ => None,
                });
                let (own, ecn) = (seq(number), Ecn::NotEct);
                let arrival = Arrival {
                    seq: own,
                    data_bytes: None,
                    ccval: 0,
                    ecn,
                    ndp: None,
                    options: &options,
                };
                self.sender.on_arrival(self.now, &arrival);
                let ack = Acknowledgement {
                    seq: own,
                    ack,
                    options: &options,
                    ecn,
                    elapsed,
                    echo_rtt: None,
                };
                self.sender.on_ack(self.now, &ack, &mut ());
                if let Some(ratio) = self.sender.ack_ratio() {
                    self.receiver.set_ack_ratio(ratio);
                }
            }
        }
    }

    fn tick(&mut self) {
        if self.sender.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.sender.on_timeout(self.now, &mut ());
        }
        if self.receiver.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.receiver.on_timeout(self.now);
        }
    }

    /// Data packets that left in each round trip from the first on.
    pub(crate) fn per_rtt(&self) -> Vec<usize> {
        let mut counts = Vec::new();
        for departure in &self.departures {
            let round =
                (departure.saturating_since(at(0)).as_nanos() / self.rtt.as_nanos()) as usize;
            counts.resize(counts.len().max(round + 1), 0);
            counts[round] += 1;
        }
        counts
    }
}
