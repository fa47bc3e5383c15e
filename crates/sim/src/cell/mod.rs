//! A cell of IEEE 802.11: transmitters that contend for one channel by the distributed coordination function
//! (IEEE 802.11-2016 §10.3), all within range of each other.
//!
//! Like a link, a cell is processed late. The outcome of a transmission is computed when it starts: which
//! others start at that instant, what is received, when the channel becomes idle, and when each backoff
//! resumes. The next start follows from that, so neither slots nor the ends of transmissions are events; the
//! world handles only starts, while packets are queued, and arrivals. The cost of a start is two passes over
//! the transmitters.
//!
//! Transmissions that start less than a slot apart do not collide: carrier sense is immediate, as if
//! propagation took no time. Where the standard allows several behaviours, this model uses these: a frame that
//! finds the medium idle for DIFS is sent at once; a sender without an answer waits for the timeout of
//! §10.3.2.9 and then DIFS; all others wait EIFS after a failed frame.

mod backoff;
pub mod errors;
pub mod rates;
pub mod timing;
mod transmitter;

use std::collections::VecDeque;

use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, LinkCounters, Note, Place, Probe, Topic};
use talkspurt_proto::time::{Duration, Instant};

use crate::link::Offered;
use crate::pool::Pool;
use backoff::Backoff;
use errors::Channel;
use timing::{Timing, control_bytes};
use transmitter::Transmitter;

pub use transmitter::{Load, Parts as TransmitterParts};

/// The parts of a cell.
#[derive(Debug)]
pub struct Parts {
    /// Its intervals.
    pub timing: Timing,
    /// Smallest and largest contention window.
    pub windows: (u32, u32),
    /// Short and long retry limit.
    pub retry_limits: (u32, u32),
    /// Longest IP packet.
    pub mtu: u32,
    /// The access point, the stations, then the contenders.
    pub transmitters: Vec<TransmitterParts>,
    /// For each of them, the channel to the access point; the access point's own entry is ignored. `None`: no
    /// errors.
    pub channels: Vec<Option<Channel>>,
}

/// Traffic from contenders to the access point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets received.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A running cell.
#[derive(Debug)]
pub struct Cell {
    timing: Timing,
    retry_limits: (u32, u32),
    /// Longest IP packet it takes.
    pub mtu: u32,
    transmitters: Vec<Transmitter>,
    backoffs: Vec<Backoff>,
    channels: Vec<Option<Channel>>,
    /// The channel is busy until then.
    busy_until: Instant,
    /// Transmitters that start at the current instant.
    starting: Vec<usize>,
    /// The next start, unless another frame comes first.
    next_start: Option<Instant>,
    /// Whether packets are queued, apart from contenders' frames.
    packets_wait: bool,
    /// Packets received, with the time of reception and the link they were sent on.
    flight: VecDeque<(Instant, u32, Packet)>,
    /// Packets that reached the retry limit, with the end of their last transmission and the transmitter.
    given_up: Vec<(Instant, usize, Packet)>,
    /// Traffic from contenders to the access point.
    pub tally: Received,
    /// How long contenders were sending, each instant once, and until when.
    contended: (Duration, Instant),
}

/// Outcome of a transmission without collision.
struct TxOutcome {
    /// When the data was received.
    understood: Option<Instant>,
    acknowledged: bool,
    /// When the channel becomes idle.
    end: Instant,
    /// When the sender's backoff resumes, and when the others' do.
    resume: (Instant, Instant),
    /// The data failed after RTS and CTS.
    after_rts: bool,
    /// Data was sent at this rate, so the rate control learns from the outcome.
    data_at: Option<usize>,
}

impl Cell {
    /// An idle cell; contenders start at once.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let (cw_min, cw_max) = parts.windows;
        let transmitters: Vec<_> = parts.transmitters.into_iter().map(Transmitter::new).collect();
        let mut cell = Self {
            timing: parts.timing,
            retry_limits: parts.retry_limits,
            mtu: parts.mtu,
            backoffs: vec![Backoff::new(cw_min, cw_max); transmitters.len()],
            transmitters,
            channels: parts.channels,
            busy_until: Instant::ZERO,
            starting: Vec::new(),
            next_start: None,
            packets_wait: false,
            flight: VecDeque::new(),
            given_up: Vec::new(),
            tally: Received::default(),
            contended: (Duration::ZERO, Instant::ZERO),
        };
        for (transmitter, backoff) in cell.transmitters.iter_mut().zip(&mut cell.backoffs) {
            if transmitter.is_saturated() {
                // How long the medium was idle before is unknown.
                backoff.done(&mut transmitter.parts.rng);
                backoff.resume(Instant::ZERO + cell.timing.difs);
                backoff.want(Instant::ZERO);
            }
        }
        cell.plan();
        cell
    }

    /// Index among links of a transmitter.
    #[must_use]
    pub fn link(&self, transmitter: usize) -> u32 {
        self.transmitters[transmitter].parts.link
    }

    /// Next wake-up: the next arrival, or the next start while packets are queued.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        let start = self.next_start.filter(|_| self.packets_wait);
        let arrival = self.flight.front().map(|(at, ..)| *at);
        [start, arrival].into_iter().flatten().min()
    }

    /// Performs every start before `now`. Starts at `now` itself follow all arrivals of that instant, so that
    /// simultaneous frames collide.
    pub fn advance<P: Probe>(&mut self, now: Instant, pool: &mut Pool, probe: &mut P) {
        while let Some(at) = self.next_start.filter(|at| *at < now) {
            self.drop_before(at, pool, probe);
            self.start(at, pool, probe);
        }
        self.drop_before(now, pool, probe);
    }

    /// Drops the packets given up whose last transmission ended before `now`.
    fn drop_before<P: Probe>(&mut self, now: Instant, pool: &mut Pool, probe: &mut P) {
        while let Some(next) = self.given_up.iter().position(|(end, ..)| *end < now) {
            let (end, index, packet) = self.given_up.remove(next);
            self.transmitters[index].hop(end, pool, probe).0.refuse(packet, DropReason::Retries);
        }
    }

    /// Wake-up at `now`: performs starts up to and including that instant.
    pub fn wake<P: Probe>(&mut self, now: Instant, pool: &mut Pool, probe: &mut P) {
        self.advance(now + Duration::from_nanos(1), pool, probe);
    }

    /// A packet for receiver `to` reaches the queue of transmitter `from`.
    pub fn offer<P: Probe>(
        &mut self,
        now: Instant,
        (from, to): (u16, u16),
        packet: Packet,
        pool: &mut Pool,
        probe: &mut P,
    ) -> Offered {
        self.advance(now, pool, probe);
        let at = usize::from(from);
        let (transmitter, backoff) = (&mut self.transmitters[at], &mut self.backoffs[at]);
        if packet.ip_bytes > self.mtu {
            return Offered::TooBig;
        }
        transmitter.enqueue(now, (to, packet), pool, probe);
        let (waiting, _) = transmitter.waiting();
        if waiting > 0 && !backoff.contends() {
            if now < self.busy_until {
                backoff.meets_busy(&mut transmitter.parts.rng);
            }
            backoff.want(now);
            let ready = backoff.ready(self.timing.slot);
            self.next_start = self.next_start.into_iter().chain(ready).min();
            self.packets_wait = true;
        }
        // A packet sent at once has not waited.
        if backoff.ready(self.timing.slot) != Some(now) {
            let most = &mut transmitter.counters.queue_max_packets;
            *most = (*most).max(waiting);
        }
        Offered::Taken
    }

    /// Drops a packet that exceeds the MTU at its transmitter.
    pub fn refuse<P: Probe>(
        &mut self,
        now: Instant,
        from: u16,
        packet: Packet,
        (pool, probe): (&mut Pool, &mut P),
    ) {
        let transmitter = &mut self.transmitters[usize::from(from)];
        transmitter.hop(now, pool, probe).0.refuse(packet, DropReason::TooBig);
    }

    /// Removes the packet that arrives at `now`, if any.
    pub fn arrived<P: Probe>(&mut self, now: Instant, probe: &mut P) -> Option<Packet> {
        let (_, link, packet) = self.flight.front().filter(|(at, ..)| *at <= now).copied()?;
        if probe.wants(Topic::Hop) {
            probe.record(now, Place::Link(link), &Note::Arrived { packet: &packet });
        }
        self.flight.pop_front();
        Some(packet)
    }

    /// The counters of each link at `now`, to which the cell has been advanced: the access point, the stations,
    /// and all contenders together.
    pub fn counters(&self, now: Instant) -> impl Iterator<Item = LinkCounters> {
        let own = self.transmitters.iter().filter(|one| !one.is_saturated());
        let mut all: Option<LinkCounters> = None;
        for one in self.transmitters.iter().filter(|one| one.is_saturated()) {
            let one = one.counters(now);
            let sum = all.get_or_insert_default();
            sum.sent_packets += one.sent_packets;
            sum.sent_bytes += one.sent_bytes;
            sum.retries += one.retries;
            sum.collisions += one.collisions;
            sum.drops[DropReason::Retries as usize] += one.drops[DropReason::Retries as usize];
        }
        if let (Some(sum), (busy, until)) = (&mut all, self.contended) {
            sum.busy = busy.saturating_sub(until.saturating_since(now));
        }
        own.map(move |one| one.counters(now)).chain(all)
    }

    /// Resets every maximum queue length.
    pub fn forget_maxima(&mut self) {
        for one in &mut self.transmitters {
            one.counters.queue_max_packets = one.waiting().0;
        }
    }

    /// Packets inside: queued, in transmission, received and not yet passed on, or given up while still on the
    /// air.
    #[must_use]
    pub fn inside(&self) -> u64 {
        let held = self.transmitters.iter().map(|one| {
            let in_hands = one.frame.is_some_and(|frame| frame.packet.is_some());
            u64::from(one.waiting().0) + u64::from(in_hands)
        });
        held.sum::<u64>() + (self.flight.len() + self.given_up.len()) as u64
    }

    /// Transmissions started, including contenders'.
    #[must_use]
    pub fn sent_packets(&self) -> u64 {
        self.transmitters.iter().map(|one| one.counters.sent_packets).sum()
    }

    /// Packets dropped for any reason; contenders' frames do not count.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        let own = self.transmitters.iter().filter(|one| !one.is_saturated());
        own.flat_map(|one| one.counters.drops).sum()
    }

    /// Computes the next start.
    fn plan(&mut self) {
        let slot = self.timing.slot;
        (self.next_start, self.packets_wait) = (None, false);
        for (backoff, transmitter) in self.backoffs.iter().zip(&self.transmitters) {
            if let Some(ready) = backoff.ready(slot) {
                self.next_start = Some(self.next_start.map_or(ready, |next| next.min(ready)));
                self.packets_wait |= !transmitter.is_saturated();
            }
        }
    }

    /// Starts the transmitters whose turn is at `at`.
    fn start<P: Probe>(&mut self, at: Instant, pool: &mut Pool, probe: &mut P) {
        let slot = self.timing.slot;
        let mut starting = std::mem::take(&mut self.starting);
        starting.clear();
        for (index, backoff) in self.backoffs.iter_mut().enumerate() {
            let turn = backoff.ready(slot) == Some(at);
            if turn && self.transmitters[index].takes(at, backoff, pool, probe) {
                starting.push(index);
            }
        }
        match starting[..] {
            [] => {}
            [one] => self.alone(one, at),
            _ => self.collide(&starting, at),
        }
        self.starting = starting;
        self.plan();
    }

    /// The backoffs of all but the senders stop at `at` and resume at `from`.
    fn hold(&mut self, senders: &[usize], at: Instant, from: Instant) {
        let slot = self.timing.slot;
        let mut senders = senders.iter().copied().peekable();
        for (index, backoff) in self.backoffs.iter_mut().enumerate() {
            if senders.next_if_eq(&index).is_none() {
                backoff.interrupted(at, slot, &mut self.transmitters[index].parts.rng);
                backoff.resume(from);
            }
        }
    }

    /// A transmitter occupies the channel, alone or in a collision.
    fn sends(&mut self, index: usize, from: Instant, until: Instant) {
        let transmitter = &mut self.transmitters[index];
        transmitter.sends(from, until);
        if transmitter.is_saturated() {
            let (busy, known) = &mut self.contended;
            *busy += until.saturating_since(from.max(*known));
            *known = until.max(*known);
        }
    }

    fn alone(&mut self, index: usize, at: Instant) {
        let rate = self.choose(index, at);
        let exchange = self.exchange(index, rate, at);
        self.busy_until = exchange.end;
        self.hold(&[index], at, exchange.resume.1);
        self.sends(index, at, exchange.end);
        let transmitter = &mut self.transmitters[index];
        let receiver = transmitter.receiver();
        if let Some(rate) = exchange.data_at {
            transmitter.parts.rates[receiver].learn(rate, exchange.acknowledged);
        }
        if let Some(understood) = exchange.understood {
            self.understood(index, understood);
        }
        let (transmitter, backoff) = (&mut self.transmitters[index], &mut self.backoffs[index]);
        if exchange.acknowledged {
            transmitter.frame = None;
            backoff.done(&mut transmitter.parts.rng);
            backoff.resume(exchange.resume.0);
            self.look_on(index);
        } else {
            let sent_data = exchange.data_at.is_some();
            self.fail(index, exchange.after_rts, sent_data, exchange.end, exchange.resume.0);
        }
    }

    /// The rate of the current frame.
    fn choose(&mut self, index: usize, at: Instant) -> usize {
        let transmitter = &mut self.transmitters[index];
        let receiver = transmitter.receiver();
        let failed = transmitter.frame.map_or(0, |frame| frame.unacknowledged);
        let transmitter::Parts { rates, rng, .. } = &mut transmitter.parts;
        rates[receiver].choose(failed, at, rng)
    }

    /// RTS and CTS if configured, data, acknowledgement: how far the exchange gets.
    fn exchange(&mut self, index: usize, rate: usize, at: Instant) -> TxOutcome {
        let Timing { sifs, difs, eifs, overhead, rts_threshold, .. } = self.timing;
        let times = self.timing.rates[rate];
        let transmitter = &mut self.transmitters[index];
        let frame = transmitter.frame.expect("who sends has a frame");
        let far = if index == 0 { usize::from(frame.to) } else { index };
        let channel = self.channels[far].as_ref();
        let rng = &mut transmitter.parts.error_rng;
        let mut passes = |chance: &dyn Fn(&Channel) -> f64| {
            channel.is_none_or(|channel| rng.chance(chance(channel)))
        };
        let (ack_bytes, rts_bytes) = control_bytes();
        let bytes = u64::from(frame.ip_bytes) + overhead;
        let announced = bytes > rts_threshold;
        let unheard = |end: Instant, after_rts: bool, data_at: Option<usize>| TxOutcome {
            understood: None,
            acknowledged: false,
            end,
            resume: (end + times.timeout + difs, end + eifs),
            after_rts,
            data_at,
        };
        let mut now = at;
        if announced {
            now += times.rts;
            if !passes(&|channel| channel.control(rate, rts_bytes)) {
                return unheard(now, false, None);
            }
            now += sifs + times.ack;
            if !passes(&|channel| channel.control(rate, ack_bytes)) {
                // The received frame was not a CTS: the sender waits EIFS, too.
                return TxOutcome { resume: (now + eifs, now + eifs), ..unheard(now, false, None) };
            }
            now += sifs;
        }
        now += times.mode.airtime(bytes);
        if !passes(&|channel| channel.data(rate, bytes)) {
            return unheard(now, announced, Some(rate));
        }
        let end = now + sifs + times.ack;
        let acknowledged = passes(&|channel| channel.control(rate, ack_bytes));
        TxOutcome {
            understood: Some(now),
            acknowledged,
            end,
            resume: (end + if acknowledged { difs } else { eifs }, end + difs),
            after_rts: announced,
            data_at: Some(rate),
        }
    }

    /// A data frame reached its receiver, possibly as a repetition.
    fn understood(&mut self, index: usize, at: Instant) {
        let transmitter = &mut self.transmitters[index];
        let saturated = transmitter.is_saturated();
        let Some(frame) = &mut transmitter.frame else { return };
        if let Some(mut packet) = frame.packet.take() {
            packet.hop += 1;
            self.flight.push_back((at, transmitter.parts.link, packet));
        } else if saturated && !std::mem::replace(&mut frame.counted, true) {
            self.tally.packets += 1;
            self.tally.bytes += u64::from(frame.ip_bytes);
        }
    }

    fn collide(&mut self, starting: &[usize], at: Instant) {
        let (mut end, mut sent) = (at, Vec::with_capacity(starting.len()));
        for &index in starting {
            let rate = self.choose(index, at);
            let times = self.timing.rates[rate];
            let transmitter = &mut self.transmitters[index];
            let ip_bytes = transmitter.frame.map_or(0, |frame| frame.ip_bytes);
            let bytes = u64::from(ip_bytes) + self.timing.overhead;
            let announced = bytes > self.timing.rts_threshold;
            let own_end = at + if announced { times.rts } else { times.mode.airtime(bytes) };
            transmitter.counters.collisions += 1;
            if !announced {
                let receiver = transmitter.receiver();
                transmitter.parts.rates[receiver].learn(rate, false);
            }
            self.sends(index, at, own_end);
            sent.push((own_end, times.timeout, announced));
            end = end.max(own_end);
        }
        self.busy_until = end;
        self.hold(starting, at, end + self.timing.after_collision);
        for (&index, (own_end, timeout, announced)) in starting.iter().zip(sent) {
            let resume = (own_end + timeout).max(end) + self.timing.difs;
            self.fail(index, false, !announced, own_end, resume);
        }
    }

    /// A transmission that ended at `end` failed: the frame is retried or given up.
    fn fail(
        &mut self,
        index: usize,
        after_rts: bool,
        sent_data: bool,
        end: Instant,
        resume: Instant,
    ) {
        let (transmitter, backoff) = (&mut self.transmitters[index], &mut self.backoffs[index]);
        let Some(frame) = &mut transmitter.frame else { return };
        let (short, long) = &mut frame.failed;
        *(if after_rts { long } else { short }) += 1;
        frame.unacknowledged += u32::from(sent_data);
        // §10.3.4.4: at either limit the frame is dropped and the window reset.
        if frame.failed.0 >= self.retry_limits.0 || frame.failed.1 >= self.retry_limits.1 {
            self.given_up.extend(transmitter.give_up().map(|packet| (end, index, packet)));
            backoff.done(&mut transmitter.parts.rng);
        } else {
            transmitter.counters.retries += 1;
            backoff.failed(&mut transmitter.parts.rng);
        }
        backoff.resume(resume);
        self.look_on(index);
    }

    /// Whether a transmitter that has just sent contends for another frame.
    fn look_on(&mut self, index: usize) {
        let (transmitter, backoff) = (&self.transmitters[index], &mut self.backoffs[index]);
        if transmitter.frame.is_some() || transmitter.is_saturated() || transmitter.waiting().0 > 0
        {
            backoff.want(Instant::ZERO);
        } else {
            backoff.rest();
        }
    }
}
