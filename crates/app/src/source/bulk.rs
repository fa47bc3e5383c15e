//! Bulk data: continuously, in bursts between pauses, or transfer after transfer.

use talkspurt_proto::math::round_u64;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Instant;

use super::config::{self, Pauses, Web};

/// A greedy source; its unit is one full segment.
#[derive(Debug)]
pub struct Bulk {
    unit_bytes: u32,
    offset: u64,
    left: u64,
    index: u32,
    start: Instant,
    stop: Instant,
    cycle: Option<Box<Cycle>>,
}

/// Consecutive units of bulk data of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// Number of the first, from 0.
    pub first: u32,
    /// Number of units.
    pub count: u32,
    /// Bytes of each.
    pub bytes: u64,
    /// Bytes before the first.
    pub offset: u64,
}

impl Units {
    /// Their payload.
    #[inline]
    #[must_use]
    pub fn payload(self) -> Payload {
        Payload::Virtual { offset: self.offset, len: self.bytes * u64::from(self.count) }
    }
}

/// Bursts and pauses.
#[derive(Debug)]
struct Cycle {
    rng: Rng,
    /// When the next burst begins, or the current one began.
    resumes: Instant,
    burst: Burst,
}

/// The end of a burst.
#[derive(Debug)]
enum Burst {
    /// At an instant.
    Until(Pauses, Instant),
    /// After this many bytes.
    Left(Web, u64),
}

impl Bulk {
    /// A source of units of `unit_bytes`.
    #[must_use]
    pub fn new(
        config: &config::Bulk,
        unit_bytes: u32,
        rng: Rng,
        start: Instant,
        stop: Instant,
    ) -> Self {
        let left = config.total.map_or(u64::MAX, talkspurt_proto::units::Size::as_bytes);
        let cycle = config.pauses.map(|pauses| Cycle::pauses(pauses, rng, start));
        Self::of(unit_bytes, left, cycle, start, stop)
    }

    /// Transfer after transfer in units of `unit_bytes`, the last of each possibly shorter.
    #[must_use]
    pub fn web(config: &Web, unit_bytes: u32, rng: Rng, start: Instant, stop: Instant) -> Self {
        Self::of(unit_bytes, u64::MAX, Some(Cycle::web(config, rng, start)), start, stop)
    }

    /// A source that sends nothing.
    #[must_use]
    pub fn silent(stop: Instant) -> Self {
        Self::of(1, 0, None, stop, stop)
    }

    fn of(unit_bytes: u32, left: u64, cycle: Option<Cycle>, start: Instant, stop: Instant) -> Self {
        let unit_bytes = unit_bytes.max(1);
        Self { unit_bytes, offset: 0, left, index: 0, start, stop, cycle: cycle.map(Box::new) }
    }

    /// When it next begins or resumes, if that is in the future.
    #[inline]
    #[must_use]
    pub fn resumes(&self, now: Instant) -> Option<Instant> {
        let at = self.cycle.as_ref().map_or(self.start, |cycle| cycle.resumes);
        Some(at).filter(|at| *at > now)
    }

    /// True if a pause may have ended since the last check for room.
    #[inline]
    #[must_use]
    pub fn pauses(&self) -> bool {
        self.cycle.is_some()
    }

    /// The next units, as many as fit in `room` bytes and at most `most`, if it is time. If the path now
    /// carries at most `largest` bytes per packet, units are cut to that; otherwise they would wait forever.
    #[inline]
    pub fn take(
        &mut self,
        now: Instant,
        (room, largest): (usize, usize),
        most: u32,
    ) -> Option<Units> {
        let mut left = self.left;
        if let Some(cycle) = &mut self.cycle {
            left = left.min(cycle.may_send(now));
        }
        let bytes = u64::from(self.unit_bytes).min(left).min(largest as u64);
        let room = left.min(room as u64);
        if bytes == 0 || bytes > room || now < self.start || now >= self.stop {
            return None;
        }
        // Mostly there is room for only one.
        let count = if room < 2 * bytes { 1 } else { u64::from(most).min(room / bytes) };
        let units = Units { first: self.index, count: count as u32, bytes, offset: self.offset };
        self.offset += count * bytes;
        self.left -= count * bytes;
        self.index = self.index.checked_add(units.count).expect(super::UNITS_FIT);
        if let Some(cycle) = &mut self.cycle {
            cycle.sent(now, count * bytes);
        }
        Some(units)
    }

    /// True when no more units will follow.
    #[inline]
    #[must_use]
    pub fn is_done(&self, now: Instant) -> bool {
        self.left == 0 || now >= self.stop
    }
}

impl Cycle {
    fn pauses(pauses: Pauses, mut rng: Rng, start: Instant) -> Self {
        let until = start + pauses.spread.span(pauses.on, &mut rng);
        Self { rng, resumes: start, burst: Burst::Until(pauses, until) }
    }

    fn web(web: &Web, mut rng: Rng, start: Instant) -> Self {
        let size = transfer(web, &mut rng);
        Self { rng, resumes: start, burst: Burst::Left(web.clone(), size) }
    }

    /// Bytes that may be sent now.
    fn may_send(&mut self, now: Instant) -> u64 {
        if let Burst::Until(pauses, until) = &mut self.burst {
            while now >= *until {
                self.resumes = *until + pauses.spread.span(pauses.off, &mut self.rng);
                *until = self.resumes + pauses.spread.span(pauses.on, &mut self.rng);
            }
        }
        match &self.burst {
            _ if now < self.resumes => 0,
            Burst::Until(..) => u64::MAX,
            Burst::Left(_, left) => *left,
        }
    }

    fn sent(&mut self, now: Instant, bytes: u64) {
        let Burst::Left(web, left) = &mut self.burst else { return };
        *left -= bytes;
        if *left == 0 {
            self.resumes = now + web.thinks.span(web.think, &mut self.rng);
            *left = transfer(web, &mut self.rng);
        }
    }
}

/// Draws the size of a transfer, at least one byte.
fn transfer(web: &Web, rng: &mut Rng) -> u64 {
    round_u64(web.sizes.draw(web.size.as_bytes() as f64, rng)).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::config::Distribution;
    use super::*;
    use talkspurt_proto::time::Duration;
    use talkspurt_proto::units::Size;

    const STOP: Instant = Instant::from_nanos(200_000_000_000_000);
    const MS: Duration = Duration::from_millis(1);

    /// Units of a transport that takes one every millisecond: time and length.
    fn units(bulk: &mut Bulk, count: usize) -> Vec<(u64, usize)> {
        let (mut now, mut taken) = (Instant::ZERO, Vec::new());
        while taken.len() < count {
            now = bulk.resumes(now).unwrap_or(now);
            if let Some(unit) = bulk.take(now, (5000, 5000), 1) {
                taken.push((now.as_nanos(), unit.bytes as usize));
            }
            now += MS;
        }
        taken
    }

    #[test]
    fn pauses_begin_and_end_when_they_should() {
        let pauses = Pauses { on: MS * 10, off: MS * 30, spread: Distribution::Constant };
        let config = config::Bulk { pauses: Some(pauses), ..config::Bulk::default() };
        let mut bulk = Bulk::new(&config, 1000, Rng::new(1, "bulk"), Instant::ZERO, STOP);
        let times: Vec<u64> = units(&mut bulk, 30).iter().map(|(at, _)| at / 1_000_000).collect();
        let expected: Vec<u64> = (0..10).chain(40..50).chain(80..90).collect();
        assert_eq!(times, expected);
        // The source was not polled for a long time: the cycle went on regardless.
        let ms = |ms| Instant::ZERO + MS * ms;
        assert!(bulk.take(ms(4005), (1000, 1000), 1).is_some());
        assert!(bulk.take(ms(4010), (1000, 1000), 1).is_none());
        assert_eq!(bulk.resumes(ms(4010)), Some(ms(4040)));
    }

    #[test]
    fn transfers_are_cut_into_units_and_followed_by_thought() {
        let web = Web {
            size: Size::from_bytes(2500),
            sizes: Distribution::Constant,
            think: MS * 100,
            thinks: Distribution::Constant,
            packet: None,
        };
        let mut bulk = Bulk::web(&web, 1000, Rng::new(1, "web"), Instant::ZERO, STOP);
        let ms = |ms: u64| ms * 1_000_000;
        let expected = [
            (0, 1000),
            (ms(1), 1000),
            (ms(2), 500),
            (ms(102), 1000),
            (ms(103), 1000),
            (ms(104), 500),
        ];
        assert_eq!(units(&mut bulk, 6), expected);
    }

    /// All that there is room for, taken jointly or unit by unit: the same units at the same times.
    #[test]
    fn units_in_a_row_are_those_apart() {
        let pauses = Pauses { on: MS * 10, off: MS * 30, spread: Distribution::Exponential };
        let (endless, total) = (config::Bulk::default(), Some(Size::from_bytes(123_456)));
        let web = Web {
            size: Size::from_bytes(12_000),
            sizes: Distribution::Pareto { shape: 1.5 },
            think: MS * 100,
            thinks: Distribution::Exponential,
            packet: None,
        };
        let bulk = |config: &config::Bulk| {
            Bulk::new(config, 1000, Rng::new(3, "bulk"), Instant::ZERO, STOP)
        };
        let sources = || {
            [
                bulk(&config::Bulk { total, ..endless.clone() }),
                bulk(&config::Bulk { pauses: Some(pauses), ..endless.clone() }),
                Bulk::web(&web, 1000, Rng::new(3, "web"), Instant::ZERO, STOP),
            ]
        };
        for (mut apart, mut in_a_row) in sources().into_iter().zip(sources()) {
            let (mut longest, mut all) = (0, 0);
            for ms in 0..2000 {
                let (now, largest) = (Instant::ZERO + MS * ms, 1200 - ms as usize / 4);
                let (mut room, mut left) = (ms as usize * 7919 % 9000, ms as usize * 7919 % 9000);
                while let Some(units) = in_a_row.take(now, (room, largest), u32::MAX) {
                    longest = longest.max(units.count);
                    for index in units.first..units.first + units.count {
                        let one = apart.take(now, (left, largest), 1).expect("there is one more");
                        assert_eq!((one.first, one.count, one.bytes), (index, 1, units.bytes));
                        assert_eq!(one.offset, all);
                        all += one.bytes;
                        left -= one.bytes as usize;
                    }
                    room -= units.payload().len();
                    assert_eq!(room, left);
                }
                assert_eq!(apart.take(now, (left, largest), 1), None);
                assert_eq!(apart.is_done(now), in_a_row.is_done(now));
            }
            assert!(longest > 5, "{longest}");
        }
    }

    /// Sizes of transfers: P(X > x) = (k/x)^1.5 with k = 4000, and think times with an exponential
    /// distribution's mean.
    #[test]
    fn transfers_and_thoughts_have_their_distributions() {
        const COUNT: usize = 20_000;
        let web = Web {
            size: Size::from_bytes(12_000),
            sizes: Distribution::Pareto { shape: 1.5 },
            think: Duration::from_secs(1),
            thinks: Distribution::Exponential,
            packet: None,
        };
        let mut bulk = Bulk::web(&web, u32::MAX, Rng::new(2, "web"), Instant::ZERO, STOP);
        let (mut now, mut sizes, mut thought) = (Instant::ZERO, Vec::new(), 0.0);
        while sizes.len() < COUNT {
            let unit = bulk.take(now, (usize::MAX, usize::MAX), 1).expect("its turn has come");
            sizes.push(unit.bytes as usize);
            let next = bulk.resumes(now).expect("time to think");
            thought += (next - now).as_secs_f64();
            now = next;
        }
        for (bound, expected) in [(3999, 1.0), (16_000, 0.125), (400_000, 0.001)] {
            let beyond = sizes.iter().filter(|size| **size > bound).count() as f64;
            let error = (expected * (1.0 - expected) / COUNT as f64).sqrt();
            assert!((beyond / COUNT as f64 - expected).abs() <= 4.0 * error, "{bound}: {beyond}");
        }
        let mean = thought / COUNT as f64;
        assert!((mean - 1.0).abs() < 4.0 / (COUNT as f64).sqrt(), "{mean}");
    }
}
