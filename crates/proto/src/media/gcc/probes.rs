//! When to probe, and what probes say (libwebrtc: `ProbeController`, `ProbeBitrateEstimator`).

use super::{Arrived, Bps, INFINITE, Micros, SECOND, bytes_in, rate_of, scaled};

/// Rates of the first probes, as multiples of the first estimate; of those that follow a success; and of those
/// sent while the sources leave capacity unused, which come this often.
const FIRST: [f64; 2] = [3.0, 6.0];
const FURTHER: f64 = 2.0;
const ALR: f64 = 2.0;
const ALR_INTERVAL: Micros = 5 * SECOND;
/// Share of a probe's rate from which another follows.
const SUCCESS: f64 = 0.7;
const LONGEST_WAIT: Micros = SECOND;
/// Largest probe where the rate is not limited, and beyond what the sources can use.
const MOST: Bps = 5_000_000;
const SURPLUS: i64 = 2;
/// A fall to this share of the estimate is large; if it passes within a time, a probe at a share of the old
/// estimate tells whether the capacity is back.
const LARGE_DROP: f64 = 0.66;
const DROP_TIMEOUT: Micros = 5 * SECOND;
const AFTER_DROP: f64 = 0.85;
const UNCERTAINTY: f64 = 0.05;
const DROP_INTERVAL: Micros = 5 * SECOND;
const ALR_ENDED: Micros = 3 * SECOND;
const LONG_AGO: Micros = -60 * SECOND;
/// A cluster.
pub(super) const PACKETS: u32 = 5;
pub(super) const DURATION: Micros = 15_000;
pub(super) const SPACING: Micros = 2_000;

/// A cluster to send: number and rate.
pub(super) type Cluster = (u32, Bps);

/// Decides when to probe.
#[derive(Debug)]
pub(super) struct Prober {
    max: Bps,
    alr_probing: bool,
    estimate: Bps,
    /// Growth is limited by neither losses nor delays.
    may_probe: bool,
    next: u32,
    last: Micros,
    /// A result above this is followed by another probe; `None` if no result is awaited.
    further: Option<Bps>,
    dropped: Micros,
    before_drop: Bps,
    drop_probed: Micros,
    alr_began: Option<Micros>,
    alr_ended: Option<Micros>,
    /// Clusters to send.
    pub(super) clusters: Vec<Cluster>,
}

impl Prober {
    /// Begins with the first probes. The sources can use `most`.
    pub(super) fn new(now: Micros, start: Bps, max: Bps, most: Bps, alr_probing: bool) -> Self {
        let max = if max == INFINITE { MOST } else { max };
        let mut prober = Self {
            max: max.min(most.saturating_mul(SURPLUS)),
            alr_probing,
            estimate: start,
            may_probe: true,
            next: 1,
            last: LONG_AGO,
            further: None,
            dropped: LONG_AGO,
            before_drop: 0,
            drop_probed: LONG_AGO,
            alr_began: None,
            alr_ended: None,
            clusters: Vec::new(),
        };
        prober.probe(now, &FIRST.map(|factor| scaled(start, factor)), true);
        prober
    }

    pub(super) fn set_alr(&mut self, began: Option<Micros>) {
        self.alr_began = began;
    }

    pub(super) fn end_alr(&mut self, now: Micros) {
        self.alr_ended = Some(now);
    }

    pub(super) fn set_estimate(&mut self, now: Micros, estimate: Bps, may_probe: bool) {
        self.may_probe = may_probe;
        if estimate < scaled(self.estimate, LARGE_DROP) {
            (self.dropped, self.before_drop) = (now, self.estimate);
        }
        self.estimate = estimate;
        if self.further.is_some_and(|least| estimate > least) {
            self.probe(now, &[scaled(estimate, FURTHER)], true);
        }
    }

    /// Probes if the capacity may be back after a large fall.
    pub(super) fn on_recovery(&mut self, now: Micros) {
        let was_alr = self.alr_ended.is_some_and(|at| now - at < ALR_ENDED);
        if self.further.is_some() || (self.alr_began.is_none() && !was_alr) {
            return;
        }
        let rate = scaled(self.before_drop, AFTER_DROP);
        if scaled(rate, 1.0 - UNCERTAINTY) > self.estimate
            && now - self.dropped < DROP_TIMEOUT
            && now - self.drop_probed > DROP_INTERVAL
        {
            self.drop_probed = now;
            self.probe(now, &[rate], false);
        }
    }

    pub(super) fn process(&mut self, now: Micros) {
        if now - self.last > LONGEST_WAIT {
            self.further = None;
        }
        if self.further.is_some() || !self.alr_probing {
            return;
        }
        if self.alr_began.is_some_and(|at| now >= at.max(self.last) + ALR_INTERVAL) {
            self.probe(now, &[scaled(self.estimate, ALR)], true);
        }
    }

    fn probe(&mut self, now: Micros, rates: &[Bps], further: bool) {
        if !self.may_probe {
            return;
        }
        let mut further = further;
        let mut last = 0;
        for rate in rates {
            further &= *rate < self.max;
            last = (*rate).min(self.max);
            self.clusters.push((self.next, last));
            self.next += 1;
        }
        self.last = now;
        self.further = further.then(|| scaled(last, SUCCESS));
    }
}

/// Shares of a cluster's packets and bytes that must have arrived.
const ARRIVED: f64 = 0.8;
/// Arrivals faster than this multiple of sending are a fault.
const FASTEST: f64 = 2.0;
/// Below this share of the rate of sending, arrivals show the capacity, of which this much is used.
const UNSATURATED: f64 = 0.9_f32 as f64;
const USED: f64 = 0.95_f32 as f64;
const LONGEST: Micros = SECOND;
const KEPT: Micros = SECOND;

/// What arrived of a cluster.
#[derive(Clone, Copy, Debug)]
struct Received {
    id: u32,
    packets: u32,
    bytes: i64,
    /// First and last, and bytes of the last packet sent and the first that arrived.
    sent: (Micros, Micros),
    arrived: (Micros, Micros),
    last_bytes: i64,
    first_bytes: i64,
}

/// Measures what arrives of clusters.
#[derive(Debug, Default)]
pub(super) struct Results {
    received: Vec<Received>,
}

impl Results {
    /// Takes in a packet of a cluster of this rate that arrived; the capacity if it is known now.
    pub(super) fn on_packet(&mut self, packet: &Arrived, id: u32, rate: Bps) -> Option<Bps> {
        self.received.retain(|it| it.arrived.1 + KEPT >= packet.arrived);
        let (sent, arrived) = ((packet.sent, packet.sent), (packet.arrived, packet.arrived));
        let place = self.received.iter().position(|it| it.id == id).unwrap_or_else(|| {
            let (last_bytes, first_bytes) = (packet.bytes, packet.bytes);
            let (packets, bytes) = (0, 0);
            self.received.push(Received {
                id,
                packets,
                bytes,
                sent,
                arrived,
                last_bytes,
                first_bytes,
            });
            self.received.len() - 1
        });
        let it = &mut self.received[place];
        it.sent.0 = it.sent.0.min(packet.sent);
        if packet.sent > it.sent.1 {
            (it.sent.1, it.last_bytes) = (packet.sent, packet.bytes);
        }
        if packet.arrived < it.arrived.0 {
            (it.arrived.0, it.first_bytes) = (packet.arrived, packet.bytes);
        }
        it.arrived.1 = it.arrived.1.max(packet.arrived);
        it.bytes += packet.bytes;
        it.packets += 1;
        let least = scaled(bytes_in(rate, DURATION), ARRIVED);
        if it.packets < (f64::from(PACKETS) * ARRIVED) as u32 || it.bytes < least {
            return None;
        }
        let (sending, arriving) = (it.sent.1 - it.sent.0, it.arrived.1 - it.arrived.0);
        let is_valid = |time| (1..=LONGEST).contains(&time);
        if !is_valid(sending) || !is_valid(arriving) {
            return None;
        }
        let sent = rate_of(it.bytes - it.last_bytes, sending);
        let received = rate_of(it.bytes - it.first_bytes, arriving);
        if received as f64 / sent as f64 > FASTEST {
            return None;
        }
        if received < scaled(sent, UNSATURATED) {
            return Some(scaled(received, USED));
        }
        Some(sent.min(received))
    }
}
