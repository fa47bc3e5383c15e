//! A sender and a receiver of the rate machine on a path of fixed delay, without packets: what
//! bare TFRC does (RFC 5348 §3.2), with plain numbers in place of its datagrams. Its own small loop,
//! so that it shares nothing with the simulator.

use std::collections::VecDeque;

use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{
    Arrival, Config, Feedback, Kind, Parameters, Permit, RateControl, Receiver, Report, Sender,
};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Size;
pub use talkspurt_testing::{Notes, at, ms};

/// RFC 5348 with s = 1000 and nothing optional.
pub fn plain() -> Parameters {
    let config = Config {
        nominal_size: Some(Size::from_bytes(1000)),
        oscillation_prevention: Some(false),
        history_discounting: Some(false),
        ..Config::default()
    };
    config.resolve(Profile::Rfc, Kind::Tfrc)
}

pub fn rfc(kind: Kind) -> Parameters {
    Config::default().resolve(Profile::Rfc, kind)
}

/// What feedback told a sender.
pub fn told(rtt: Option<Duration>, covered: Instant, receive_rate: u64, p: f64) -> Report {
    Report { rtt, covered, receive_rate, loss_event_rate: p, delay_variation: None }
}

/// A bottleneck: bytes per second, packets that may wait, bytes around each payload.
#[derive(Clone, Copy)]
pub struct Bottleneck {
    pub rate: f64,
    pub limit: usize,
    pub overhead: u32,
}

struct Flying {
    arrives: Instant,
    seq: u64,
    bytes: u32,
    rtt: Option<Duration>,
}

pub struct Loop {
    pub now: Instant,
    pub sender: Sender,
    pub receiver: Receiver,
    pub notes: Notes,
    pub there: Duration,
    pub back: Duration,
    pub bottleneck: Option<Bottleneck>,
    /// Packets of this size, one each interval; a zero interval is a source that never runs dry.
    pub source: (u32, Duration),
    /// Numbers lost on the way.
    pub lose: fn(u64) -> bool,
    next_unit: Instant,
    queued: u64,
    /// Units that wait are dropped beyond this.
    pub queue_limit: u64,
    seq: u64,
    departures: VecDeque<Instant>,
    data: VecDeque<Flying>,
    sent: VecDeque<(u64, Instant)>,
    feedback: VecDeque<(Instant, Feedback)>,
    /// When packets left, and their bytes.
    pub left: Vec<(Instant, u32)>,
    /// When feedback reached the sender.
    pub heard: Vec<(Instant, Feedback)>,
}

impl Loop {
    pub fn new(parameters: &Parameters, there: Duration, back: Duration) -> Self {
        Self {
            now: Instant::ZERO,
            sender: Sender::new(Instant::ZERO, parameters),
            receiver: Receiver::new(parameters),
            notes: Notes::default(),
            there,
            back,
            bottleneck: None,
            source: (1000, Duration::ZERO),
            lose: |_| false,
            next_unit: Instant::ZERO,
            queued: 0,
            queue_limit: u64::MAX,
            seq: 0,
            departures: VecDeque::new(),
            data: VecDeque::new(),
            sent: VecDeque::new(),
            feedback: VecDeque::new(),
            left: Vec::new(),
            heard: Vec::new(),
        }
    }

    /// Changes what the source makes, from now on.
    pub fn talk(&mut self, bytes: u32, interval: Duration) {
        self.source = (bytes, interval);
        self.next_unit = self.now;
    }

    fn greedy(&self) -> bool {
        self.source.1.is_zero()
    }

    fn has_data(&self) -> bool {
        self.greedy() || self.queued > 0
    }

    pub fn run_until(&mut self, end: Instant) {
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.step();
        }
        self.now = end;
    }

    fn next_event(&mut self) -> Option<Instant> {
        let permit = match self.sender.permit(self.now, self.source.0) {
            Permit::At(at) => Some(at),
            Permit::Now if self.has_data() => Some(self.now),
            _ => None,
        };
        let source = (!self.greedy()).then_some(self.next_unit);
        let data = self.data.front().map(|flying| flying.arrives);
        let feedback = self.feedback.front().map(|(arrives, _)| *arrives);
        let timers = [self.sender.deadline(), self.receiver.deadline()];
        [permit, source, data, feedback].into_iter().chain(timers).flatten().min()
    }

    fn step(&mut self) {
        let now = self.now;
        while !self.greedy() && self.next_unit <= now {
            self.queued = (self.queued + 1).min(self.queue_limit);
            self.next_unit += self.source.1;
        }
        self.arrive();
        self.receiver.on_timeout(now);
        self.answer();
        while self.feedback.front().is_some_and(|(arrives, _)| *arrives <= now) {
            let (_, feedback) = self.feedback.pop_front().unwrap();
            self.hear(feedback);
        }
        self.sender.on_timeout(now, &mut self.notes);
        while self.sender.permit(now, self.source.0) == Permit::Now {
            if !self.has_data() {
                self.sender.on_unused(now);
                break;
            }
            self.send();
        }
    }

    fn send(&mut self) {
        let (now, bytes) = (self.now, self.source.0);
        self.queued = self.queued.saturating_sub(1);
        let rtt = self.sender.rtt();
        self.sender.on_sent(now, bytes);
        self.left.push((now, bytes));
        let seq = self.seq;
        self.seq += 1;
        self.sent.push_back((seq, now));
        let mut departs = now;
        if let Some(bottleneck) = self.bottleneck {
            while self.departures.front().is_some_and(|departs| *departs <= now) {
                self.departures.pop_front();
            }
            // One is on the wire, the rest wait.
            if self.departures.len() > bottleneck.limit {
                return;
            }
            let took = f64::from(bytes + bottleneck.overhead) / bottleneck.rate;
            departs = self.departures.back().copied().unwrap_or(now).max(now)
                + Duration::from_secs_f64(took);
            self.departures.push_back(departs);
        }
        if !(self.lose)(seq) {
            self.data.push_back(Flying { arrives: departs + self.there, seq, bytes, rtt });
        }
    }

    fn arrive(&mut self) {
        while self.data.front().is_some_and(|flying| flying.arrives <= self.now) {
            let flying = self.data.pop_front().unwrap();
            let arrival = Arrival {
                seq: flying.seq,
                data_bytes: Some(flying.bytes),
                non_data_before: 0,
                marked: false,
                rtt: flying.rtt,
                counter: None,
            };
            self.receiver.on_packet(self.now, &arrival, &mut self.notes);
            self.answer();
        }
    }

    fn answer(&mut self) {
        if self.receiver.wants_feedback(self.now)
            && let Some(feedback) = self.receiver.feedback(self.now)
        {
            self.feedback.push_back((self.now + self.back, feedback));
        }
    }

    fn hear(&mut self, feedback: Feedback) {
        while self.sent.front().is_some_and(|(seq, _)| *seq < feedback.last) {
            self.sent.pop_front();
        }
        let covered = self.sent.front().expect("feedback answers what was sent").1;
        let rtt = Some((self.now - covered).saturating_sub(feedback.delay));
        let report = told(rtt, covered, feedback.receive_rate, feedback.loss_event_rate);
        self.heard.push((self.now, feedback));
        self.sender.on_report(self.now, &report, &mut self.notes);
    }

    /// Bits per second that left between two instants.
    pub fn throughput(&self, from: Instant, to: Instant) -> f64 {
        let bytes: u64 = self
            .left
            .iter()
            .filter(|(at, _)| *at >= from && *at < to)
            .map(|(_, bytes)| u64::from(*bytes))
            .sum();
        bytes as f64 * 8.0 / (to - from).as_secs_f64()
    }
}

/// A sender alone, told by hand what its receiver says.
pub struct Alone {
    pub now: Instant,
    pub sender: Sender,
    pub notes: Notes,
    pub s: u32,
}

impl Alone {
    /// Its packets are of `s` bytes; the first leaves at 0.
    pub fn new(parameters: &Parameters, s: u32) -> Self {
        let mut sender = Sender::new(Instant::ZERO, parameters);
        assert_eq!(sender.permit(Instant::ZERO, s), Permit::Now);
        sender.on_sent(Instant::ZERO, s);
        Self { now: Instant::ZERO, sender, notes: Notes::default(), s }
    }

    /// As [`Alone::new`], and the first feedback has come `rtt` later.
    pub fn started(parameters: &Parameters, s: u32, rtt: Duration) -> Self {
        let mut alone = Self::new(parameters, s);
        alone.report(alone.now + rtt, rtt, 0, 0.0);
        alone
    }

    /// Feedback at an instant, covering all that was sent until a round trip before.
    pub fn report(&mut self, at: Instant, rtt: Duration, receive_rate: u64, p: f64) {
        self.now = at;
        let covered = Instant::from_nanos(at.as_nanos().saturating_sub(rtt.as_nanos()));
        let report = told(Some(rtt), covered, receive_rate, p);
        self.sender.on_report(at, &report, &mut self.notes);
    }

    /// One that has sent until an instant.
    pub fn until(mut self, end: Instant) -> Self {
        self.send_until(end);
        self
    }

    /// Sends whenever it may until an instant, without heeding timers; how many packets.
    pub fn send_until(&mut self, end: Instant) -> usize {
        let mut count = 0;
        loop {
            match self.sender.permit(self.now, self.s) {
                Permit::Now => {
                    self.sender.on_sent(self.now, self.s);
                    count += 1;
                }
                Permit::At(at) if at <= end => self.now = at,
                _ => break,
            }
        }
        self.now = end;
        count
    }

    /// Waits for the nofeedback timer; how long it took.
    pub fn expire(&mut self) -> Duration {
        let deadline = self.sender.deadline().expect("the timer runs");
        let waited = deadline - self.now;
        self.now = deadline;
        self.sender.on_timeout(deadline, &mut self.notes);
        waited
    }

    /// One packet leaves now, whatever the schedule says, after a permit has gone unused.
    pub fn send_late(&mut self) {
        self.sender.on_unused(Instant::from_nanos(self.now.as_nanos() - 1));
        self.sender.on_sent(self.now, self.s);
    }

    pub fn rate(&self) -> f64 {
        self.sender.allowed_rate()
    }
}

/// Two numbers agree to a millionth.
pub fn same(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-6 * a.abs().max(b.abs()), "{a} is not {b}");
}
