//! Relative delays of arrivals and the target delay: libwebrtc's `PacketArrivalHistory`, `DelayManager`,
//! `UnderrunOptimizer`, `ReorderOptimizer` and `Histogram`. Times are in milliseconds, those of the receiver a
//! multiple of [`TICK`].

use std::collections::VecDeque;

/// NetEq is asked for sound every 10 ms, and its clock stands still in between.
pub(super) const TICK: i64 = 10;
/// Delays are relative to the fastest packet of the last two seconds of the stream.
const WINDOW: i64 = 2000;
const BUCKET: i64 = 20;
const BUCKETS: usize = 100;
/// Each value of the histogram of late packets is the largest delay of half a second.
const INTERVAL: i64 = 500;
const UNDERRUN_FORGETTING: f64 = 0.983;
const REORDER_FORGETTING: f64 = 0.9993;
/// Delay that is as bad as the loss of one packet in a hundred.
const MS_PER_LOSS_PERCENT: i64 = 20;
/// One, as a share of a histogram, and as a forgetting factor.
const ONE: i64 = 1 << 30;
const WHOLE: i64 = 1 << 15;

/// A packet: when it arrived and its place in the stream.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: i64,
    place: i64,
}

impl Arrival {
    fn offset(&self) -> i64 {
        self.at - self.place
    }
}

/// Arrivals of the last two seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// Packets in order whose offset is smaller, or larger, than those of all after them.
    fastest: VecDeque<Arrival>,
    slowest: VecDeque<Arrival>,
    newest: Option<i64>,
    packets: u64,
}

impl History {
    /// A packet arrived. Returns its relative delay, and true if it was overtaken; `None` without a meaningful
    /// delay.
    pub(super) fn arrive(&mut self, at: i64, place: i64) -> Option<(i64, bool)> {
        if self.newest.is_some_and(|newest| place + WINDOW < newest) {
            return None;
        }
        self.packets += 1;
        let overtaken = self.newest.is_some_and(|newest| place < newest);
        if !overtaken {
            self.newest = Some(place);
            let arrival = Arrival { at, place };
            for arrivals in [&mut self.fastest, &mut self.slowest] {
                while arrivals.front().is_some_and(|oldest| oldest.place + WINDOW < place) {
                    arrivals.pop_front();
                }
            }
            while self.fastest.back().is_some_and(|it| arrival.offset() <= it.offset()) {
                self.fastest.pop_back();
            }
            while self.slowest.back().is_some_and(|it| arrival.offset() >= it.offset()) {
                self.slowest.pop_back();
            }
            self.fastest.push_back(arrival);
            self.slowest.push_back(arrival);
        }
        (self.packets >= 2).then(|| (self.delay(at, place), overtaken))
    }

    /// How much later than the fastest packet it is, at the place of the stream.
    pub(super) fn delay(&self, at: i64, place: i64) -> i64 {
        self.fastest.front().map_or(0, |fastest| (at - place - fastest.offset()).max(0))
    }

    /// How much earlier than the fastest packet it is.
    pub(super) fn lead(&self, at: i64, place: i64) -> i64 {
        self.fastest.front().map_or(0, |fastest| fastest.offset() - (at - place))
    }

    /// The relative delay of the slowest packet.
    pub(super) fn largest(&self) -> i64 {
        self.slowest.front().map_or(0, |slowest| self.delay(slowest.at, slowest.place))
    }
}

/// Shares of delays in buckets of 20 ms up to two seconds; old values are forgotten.
#[derive(Clone, Debug)]
struct Histogram {
    shares: [i32; BUCKETS],
    forgetting: i64,
    steady: i64,
    values: i64,
}

impl Histogram {
    fn new(forgetting: f64) -> Self {
        // A half, a quarter, …; the first is slightly more, so that the sum is one.
        let mut rest = 0x4002_u16;
        let shares = std::array::from_fn(|_| {
            rest >>= 1;
            i32::from(rest) << 16
        });
        Self { shares, forgetting: 0, steady: (WHOLE as f64 * forgetting) as i64, values: 0 }
    }

    fn add(&mut self, bucket: usize) {
        let mut excess = -ONE;
        for share in &mut self.shares {
            *share = ((i64::from(*share) * self.forgetting) >> 15) as i32;
            excess += i64::from(*share);
        }
        let new = (WHOLE - self.forgetting) << 15;
        self.shares[bucket] += new as i32;
        excess += new;
        // Rounding is made up for at the beginning.
        for share in &mut self.shares {
            if excess == 0 {
                break;
            }
            let correction = excess.abs().min(i64::from(*share >> 4)) * -excess.signum();
            *share += correction as i32;
            excess += correction;
        }
        self.values += 1;
        // The first values have the weight of two, so that it fills quickly.
        let first = WHOLE as f64 * (1.0 - 2.0 / (self.values + 1) as f64);
        self.forgetting = (first as i64).clamp(0, self.steady);
    }

    fn quantile(&self, share: i64) -> usize {
        let mut above = ONE;
        let found = self.shares.iter().position(|it| {
            above -= i64::from(*it);
            above <= ONE - share
        });
        found.unwrap_or(BUCKETS - 1)
    }
}

/// The target delay.
#[derive(Clone, Debug)]
pub(super) struct DelayManager {
    quantile: i64,
    late: Histogram,
    /// When the current interval began, and its largest delay.
    interval: Option<i64>,
    largest: i64,
    /// Delay for packets in order.
    underrun: Option<i64>,
    reordered: Histogram,
    initial: i64,
    pub(super) target: i64,
}

impl DelayManager {
    pub(super) fn new(quantile: f64, initial: i64) -> Self {
        Self {
            quantile: (quantile * ONE as f64) as i64,
            late: Histogram::new(UNDERRUN_FORGETTING),
            interval: None,
            largest: 0,
            underrun: None,
            reordered: Histogram::new(REORDER_FORGETTING),
            initial,
            target: initial,
        }
    }

    /// A packet arrived at `now` with this relative delay.
    pub(super) fn update(&mut self, now: i64, delay: i64, overtaken: bool) {
        if !overtaken {
            self.update_underrun(now, delay);
        }
        let in_order = self.underrun.unwrap_or(self.initial);
        // Only of delays below two seconds.
        let bucket = if overtaken { (delay / BUCKET) as usize } else { 0 };
        if bucket < BUCKETS {
            self.reordered.add(bucket);
        }
        self.target = in_order.max((1 + self.cheapest(in_order)) * BUCKET);
    }

    fn update_underrun(&mut self, now: i64, delay: i64) {
        let began = *self.interval.get_or_insert(now);
        let ended = now - began > INTERVAL;
        let value = self.largest;
        if ended {
            (self.interval, self.largest) = (Some(now), 0);
        }
        self.largest = self.largest.max(delay);
        if ended {
            let bucket = (value / BUCKET) as usize;
            if bucket < BUCKETS {
                self.late.add(bucket);
            }
            self.underrun = Some((1 + self.late.quantile(self.quantile) as i64) * BUCKET);
        }
    }

    /// The bucket at which the delay beyond `in_order` and the loss of overtaken packets cost least.
    fn cheapest(&self, in_order: i64) -> i64 {
        let mut lost = ONE;
        let mut best = (i64::MAX, 0);
        for (bucket, share) in (0..).zip(&self.reordered.shares) {
            lost -= i64::from(*share);
            let delay = (bucket * BUCKET - in_order).max(0) << 30;
            let cost = delay + 100 * MS_PER_LOSS_PERCENT * lost;
            if cost < best.0 {
                best = (cost, bucket);
            }
            if lost == 0 {
                break;
            }
        }
        best.1
    }
}
