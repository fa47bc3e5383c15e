//! Transmission times.

use std::sync::Arc;

use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_scenario::link_profile::{LinkProfile, OPPORTUNITY};

/// Nanoseconds of a millisecond, the unit of mahimahi's traces.
const MILLISECOND: u64 = 1_000_000;

/// Bits that a transmitter sends per second.
#[derive(Clone, Debug)]
pub enum Capacity {
    /// A rate whose byte time is a whole number of nanoseconds: a multiplication instead of a division.
    PerByte(Duration),
    /// Any other rate; packet times are rounded up to a nanosecond.
    Fixed(Rate),
    /// Rates from given instants on, the first at zero; the end of a packet is rounded up to a nanosecond.
    Stepped(Box<[(Instant, Rate)]>),
    /// Instants at which a number of bytes may leave.
    Opportunities(Box<Opportunities>),
}

impl Capacity {
    /// A constant rate.
    #[must_use]
    pub fn fixed(rate: Rate) -> Self {
        const BYTE: u64 = 8_000_000_000;
        match rate.as_bps() {
            bps if bps != 0 && BYTE.is_multiple_of(bps) => {
                Self::PerByte(Duration::from_nanos(BYTE / bps))
            }
            _ => Self::Fixed(rate),
        }
    }

    /// A rate, possibly changed by a link profile.
    #[must_use]
    pub fn of(rate: Rate, course: Option<&LinkProfile>) -> Self {
        match course {
            Some(LinkProfile::Opportunities(times)) => {
                Self::Opportunities(Box::new(Opportunities::new(Arc::clone(times))))
            }
            Some(LinkProfile::Steps(steps)) if steps.iter().any(|step| step.rate.is_some()) => {
                let later = steps.iter().filter_map(|step| Some((step.at, step.rate?)));
                let later = later.map(|(at, rate)| (Instant::ZERO + at, rate));
                Self::Stepped(std::iter::once((Instant::ZERO, rate)).chain(later).collect())
            }
            _ => Self::fixed(rate),
        }
    }

    /// When a transmission of `bytes` begun at `start` ends; `None` means never.
    #[inline(always)]
    #[must_use]
    pub fn finish(&mut self, start: Instant, bytes: u64) -> Option<Instant> {
        match self {
            Self::PerByte(byte) => Some(start + *byte * bytes),
            _ => self.finish_otherwise(start, bytes),
        }
    }

    #[inline(never)]
    fn finish_otherwise(&mut self, start: Instant, bytes: u64) -> Option<Instant> {
        match self {
            Self::PerByte(byte) => Some(start + *byte * bytes),
            Self::Fixed(rate) => rate.time_for(bytes).map(|time| start + time),
            Self::Stepped(steps) => stepped(steps, start, bytes),
            Self::Opportunities(trace) => Some(trace.finish(start, bytes)),
        }
    }

    /// The integral of the rate from zero to `now`, in bit/s times nanoseconds.
    #[must_use]
    pub fn until(&self, now: Instant) -> u128 {
        let second = Duration::from_secs(1).as_nanos();
        let over = |rate: Rate, from: Instant, to: Instant| {
            u128::from(rate.as_bps()) * u128::from((to - from).as_nanos())
        };
        match self {
            Self::PerByte(byte) => {
                u128::from(now.as_nanos()) * u128::from(8 * second / byte.as_nanos())
            }
            Self::Fixed(rate) => over(*rate, Instant::ZERO, now),
            Self::Stepped(steps) => {
                let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([now]);
                let pieces = steps.iter().zip(ends).take_while(|((from, _), _)| *from < now);
                pieces.map(|((from, rate), end)| over(*rate, *from, end.min(now))).sum()
            }
            Self::Opportunities(trace) => {
                u128::from(trace.first(now)) * u128::from(OPPORTUNITY * 8) * u128::from(second)
            }
        }
    }

    /// The rate above zero that is the last of those after change number `seen` up to `now`, and the number of
    /// the last change.
    pub(crate) fn changed(&self, seen: usize, now: Instant) -> (Option<Rate>, usize) {
        let Self::Stepped(steps) = self else { return (None, seen) };
        let last = seen + steps[seen..].partition_point(|(at, _)| *at <= now);
        let mut rates = steps[seen..last].iter().rev().map(|(_, rate)| *rate);
        (rates.find(|rate| *rate != Rate::ZERO), last)
    }

    /// Aborts the current transmission.
    pub(crate) fn break_off(&mut self) {
        if let Self::Opportunities(trace) = self {
            trace.current = None;
        }
    }
}

/// Work is counted in bits times 10⁹, an integer at any rate.
fn stepped(steps: &[(Instant, Rate)], start: Instant, bytes: u64) -> Option<Instant> {
    let mut work = u128::from(bytes) * 8 * 1_000_000_000;
    let mut now = start;
    // The first step is at zero, so one precedes `start`.
    let first = steps.partition_point(|(from, _)| *from <= start).saturating_sub(1);
    for (at, (_, rate)) in steps.iter().enumerate().skip(first) {
        let end = steps.get(at + 1).map(|(from, _)| *from);
        let rate = u128::from(rate.as_bps());
        let possible = end.map(|end| rate * u128::from((end - now).as_nanos()));
        match (end, possible) {
            (Some(end), Some(possible)) if possible < work => {
                work -= possible;
                now = end;
            }
            _ if rate == 0 => return None,
            _ => {
                let nanos = u64::try_from(work.div_ceil(rate)).ok()?;
                return Some(now + Duration::from_nanos(nanos));
            }
        }
    }
    None
}

/// Periodic opportunities to send (mahimahi's link emulation, Netravali et al. 2015, §4.2): each sends queued
/// bytes in order and across packet boundaries; unused bytes are lost.
#[derive(Clone, Debug)]
pub struct Opportunities {
    /// In milliseconds, ascending; the last is the period.
    times: Arc<[u64]>,
    /// The current opportunity, by its number since the start, and its remaining bytes.
    current: Option<(u64, u64)>,
}

impl Opportunities {
    /// Opportunities at these milliseconds, ascending, the last above zero.
    #[must_use]
    pub fn new(times: Arc<[u64]>) -> Self {
        Self { times, current: None }
    }

    fn time(&self, number: u64) -> Instant {
        let count = self.times.len() as u64;
        let period = self.times[self.times.len() - 1];
        let within = self.times[(number % count) as usize];
        Instant::ZERO + Duration::from_nanos((number / count * period + within) * MILLISECOND)
    }

    /// The first opportunity at or after an instant.
    fn first(&self, now: Instant) -> u64 {
        let count = self.times.len() as u64;
        let period = self.times[self.times.len() - 1] * MILLISECOND;
        // The last instant of a period is the zero of the next and belongs to both.
        let round = now.as_nanos().saturating_sub(1) / period;
        let within = now.as_nanos() - round * period;
        let at = self.times.partition_point(|time| time * MILLISECOND < within) as u64;
        round * count + at
    }

    fn finish(&mut self, start: Instant, bytes: u64) -> Instant {
        let mut next = self.first(start);
        let mut wanted = bytes;
        if let Some((number, left)) = self.current
            && number >= next
        {
            if left >= wanted {
                self.current = Some((number, left - wanted));
                return self.time(number);
            }
            wanted -= left;
            next = number + 1;
        }
        // At least one, even for a packet of no bytes.
        let more = wanted.div_ceil(OPPORTUNITY).max(1);
        let last = next + more - 1;
        self.current = Some((last, more * OPPORTUNITY - wanted));
        self.time(last)
    }
}
