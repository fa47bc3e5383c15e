//! Quantities as people write them: `"20ms"`, `"64kbit/s"`, `"1500B"`.
//!
//! A quantity carries its unit in its type and in its text. Parsing is exact (decimal digits to an integer,
//! never through a float). Bare numbers are rejected: a missing unit is the most common mistake in a scenario.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::time::Duration;

/// A rate in bits per second.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// A size in bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u64);

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// No number, or a missing or unknown unit.
    #[error("\"{text}\" is not a {what}: write a number and a unit, such as {example}")]
    Form {
        /// What was expected: "duration", "rate", "size".
        what: &'static str,
        /// Well-formed examples.
        example: &'static str,
        /// What was found.
        text: String,
    },
    /// More digits than 64 bits of the smallest unit can hold, or a fraction of that unit.
    #[error("\"{text}\" is outside what a {what} can hold (whole {smallest}, 64 bits)")]
    Range {
        /// What was expected.
        what: &'static str,
        /// The smallest unit.
        smallest: &'static str,
        /// What was found.
        text: String,
    },
}

struct Kind {
    what: &'static str,
    example: &'static str,
    smallest: &'static str,
    /// The unit of numbers, and how many of the smallest unit it is.
    unit: &'static str,
    per_unit: f64,
    /// Unit text and how many of the smallest unit it is, largest first.
    units: &'static [(&'static str, u64)],
}

const DURATION: Kind = Kind {
    what: "duration",
    example: "\"20ms\", \"1.5s\" or \"2min\"",
    smallest: "nanoseconds",
    unit: "s",
    per_unit: 1e9,
    units: &[
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ],
};
const RATE: Kind = Kind {
    what: "rate",
    example: "\"64kbit/s\", \"2Mbit/s\" or \"1Gbit/s\"",
    smallest: "bit/s",
    unit: "bit/s",
    per_unit: 1.0,
    units: &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)],
};
const SIZE: Kind = Kind {
    what: "size",
    example: "\"1500B\", \"64kB\" or \"1MB\"",
    smallest: "bytes",
    unit: "B",
    per_unit: 1.0,
    units: &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)],
};

fn parse(kind: &Kind, text: &str) -> Result<u64, UnitError> {
    let form = || UnitError::Form { what: kind.what, example: kind.example, text: text.to_owned() };
    let range =
        || UnitError::Range { what: kind.what, smallest: kind.smallest, text: text.to_owned() };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(form)?;
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim_start();
    let scale = kind.units.iter().find(|(name, _)| *name == unit).ok_or_else(form)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return Err(form());
    }
    let mut value =
        whole.parse::<u64>().ok().and_then(|w| w.checked_mul(scale)).ok_or_else(range)?;
    let mut place = scale;
    for digit in fraction.bytes().map(|b| u64::from(b - b'0')) {
        if place % 10 != 0 && digit != 0 {
            return Err(range());
        }
        place /= 10;
        value = value.checked_add(digit * place).ok_or_else(range)?;
    }
    Ok(value)
}

fn write(kind: &Kind, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let smallest = kind.units[kind.units.len() - 1];
    // Hours and minutes read badly as decimals: they are written only when whole.
    let (unit, scale) = *kind
        .units
        .iter()
        .find(|(_, scale)| value >= *scale && value.is_multiple_of(*scale))
        .or_else(|| {
            kind.units
                .iter()
                .find(|(_, scale)| value >= *scale && scale.is_multiple_of(10) && decimal(*scale))
        })
        .unwrap_or(&smallest);
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{whole}{unit}");
    }
    let digits = scale.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    write!(f, "{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

fn decimal(scale: u64) -> bool {
    10_u64.pow(scale.ilog10()) == scale
}

impl Rate {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// A rate of this many bits per second.
    #[must_use]
    pub const fn from_bps(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }
    /// Bits per second.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Time to send `bytes` at this rate, rounded up to a nanosecond; `None` at rate zero.
    #[must_use]
    pub fn time_for(self, bytes: u64) -> Option<Duration> {
        if self.0 == 0 {
            return None;
        }
        let nanos = match bytes.checked_mul(8_000_000_000) {
            Some(bit_nanos) => bit_nanos.div_ceil(self.0),
            None => (u128::from(bytes) * 8_000_000_000)
                .div_ceil(u128::from(self.0))
                .try_into()
                .unwrap_or(u64::MAX),
        };
        Some(Duration::from_nanos(nanos))
    }
}

impl Size {
    /// A size of this many bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }
    /// Bytes.
    #[must_use]
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

thread_local! {
    /// Whether quantities are serialised by [`with_values`].
    static WITH_VALUES: Cell<bool> = const { Cell::new(false) };
}

/// Runs `serialise`. Quantities that it serialises in this thread are objects with the keys `quantity` (the
/// text), `value` (a number) and `unit` (`s`, `bit/s` or `B`), so that a reader needs no parser for quantities.
pub fn with_values<T>(serialise: impl FnOnce() -> T) -> T {
    WITH_VALUES.set(true);
    let result = serialise();
    WITH_VALUES.set(false);
    result
}

macro_rules! quantity {
    ($type:ident, $kind:expr, $get:ident, $from:path) => {
        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                parse(&$kind, text).map($from)
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write(&$kind, self.$get(), f)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if !WITH_VALUES.get() {
                    return serializer.collect_str(self);
                }
                let mut quantity = serializer.serialize_struct("Quantity", 3)?;
                quantity.serialize_field("quantity", &self.to_string())?;
                quantity.serialize_field("unit", $kind.unit)?;
                quantity.serialize_field("value", &(self.$get() as f64 / $kind.per_unit))?;
                quantity.end()
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let units: Vec<_> = $kind.units.iter().map(|(unit, _)| *unit).collect();
                json_schema!({
                    "type": "string",
                    "format": $kind.what,
                    "description": format!("A {}: a number and a unit, such as {}.", $kind.what, $kind.example),
                    "pattern": format!("^[0-9]+(\\.[0-9]+)? ?({})$", units.join("|")),
                })
            }
        }
    };
}
quantity!(Duration, DURATION, as_nanos, Duration::from_nanos);
quantity!(Rate, RATE, as_bps, Rate::from_bps);
quantity!(Size, SIZE, as_bytes, Size::from_bytes);

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("20ms".parse(), Ok(Duration::from_millis(20)));
        assert_eq!("1.5 s".parse(), Ok(Duration::from_millis(1500)));
        assert_eq!("2min".parse(), Ok(Duration::from_secs(120)));
        assert_eq!("1.5min".parse(), Ok(Duration::from_secs(90)));
        assert_eq!("64kbit/s".parse(), Ok(Rate::from_bps(64_000)));
        assert_eq!("1.5Mbit/s".parse(), Ok(Rate::from_bps(1_500_000)));
        assert_eq!("1500B".parse(), Ok(Size::from_bytes(1500)));
    }

    #[test]
    fn refuses_what_has_no_meaning() {
        for bad in ["", "20", "ms", "-5ms", "1..5s", "5.s", "20 Ms", "1e3s", "20msx", "0.5ns"] {
            assert!(bad.parse::<Duration>().is_err(), "{bad}");
        }
        assert!("99999999999h".parse::<Duration>().is_err());
        assert!("64kbps".parse::<Rate>().is_err());
    }

    #[test]
    fn sending_time_is_rounded_up() {
        assert_eq!(Rate::from_bps(256_000).time_for(128), Some(Duration::from_millis(4)));
        assert_eq!(Rate::from_bps(3).time_for(1), Some(Duration::from_nanos(2_666_666_667)));
        assert_eq!(Rate::ZERO.time_for(1), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(nanos: u64, bps: u64, bytes: u64) {
            let (d, r, s) = (Duration::from_nanos(nanos), Rate::from_bps(bps), Size::from_bytes(bytes));
            prop_assert_eq!(d.to_string().parse(), Ok(d));
            prop_assert_eq!(r.to_string().parse(), Ok(r));
            prop_assert_eq!(s.to_string().parse(), Ok(s));
        }
    }
}
