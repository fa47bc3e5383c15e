//! Time as integers: an [`Instant`] on a clock and the [`Duration`] between two of them.
//!
//! Both count nanoseconds in 64 bits. Protocols never read a clock: the driver (the simulator's
//! schedule, or the wall clock of a live run) passes `now` to every call.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in time: nanoseconds since the clock's origin (in simulation, the start of the run).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time in nanoseconds, never negative.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);
    /// The last instant a schedule can hold: 48 bits of nanoseconds, 78 hours. Timers clamp to it.
    pub const HORIZON: Self = Self((1 << 48) - 1);

    /// The instant this many nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the origin, for figures and reports only.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Time from `earlier` to this instant, zero if `earlier` is the later one.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The longest representable span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of this many nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// A span of this many microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }
    /// A span of this many milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }
    /// A span of this many seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }
    /// A span from seconds as a float, rounded to the nearest nanosecond; negative becomes zero.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(crate::math::round_u64(secs * 1e9))
    }
    /// The span in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The span in seconds, for equations, figures and reports.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// True for a span of zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// This span less `other`, zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// The distance between two spans, whichever is longer.
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

/// Implements an operator on two operands by an expression of them.
macro_rules! operator {
    ($trait:ident, $name:ident: $left:ty, $right:ty => $out:ty, |$a:ident, $b:ident| $value:expr) => {
        impl $trait<$right> for $left {
            type Output = $out;
            fn $name(self, $b: $right) -> $out {
                let $a = self;
                $value
            }
        }
    };
}
operator!(Add, add: Instant, Duration => Instant, |at, span| Instant(at.0.saturating_add(span.0)));
operator!(Sub, sub: Instant, Duration => Instant, |at, span| Instant(at.0 - span.0));
// Panics in debug builds if `earlier` is the later one, which is a bug in this workspace.
operator!(Sub, sub: Instant, Instant => Duration, |at, earlier| Duration(at.0 - earlier.0));
operator!(Add, add: Duration, Duration => Duration, |a, b| Duration(a.0.saturating_add(b.0)));
operator!(Sub, sub: Duration, Duration => Duration, |a, b| Duration(a.0 - b.0));
operator!(Mul, mul: Duration, u64 => Duration, |span, times| Duration(span.0.saturating_mul(times)));
operator!(Div, div: Duration, u64 => Duration, |span, parts| Duration(span.0 / parts));

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
impl Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Clears a deadline if it was reached; returns whether it was.
pub(crate) fn due(deadline: &mut Option<Instant>, now: Instant) -> bool {
    deadline.take_if(|at| *at <= now).is_some()
}

/// The earlier of two deadlines, if there is any.
#[inline]
#[must_use]
pub fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
