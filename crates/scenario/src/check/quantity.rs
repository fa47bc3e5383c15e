//! Numbers with units: parse errors, and likely corrections.

use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size, UnitError};

/// The quantity that the schema's `format` names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    Duration,
    Rate,
    Size,
}

impl Quantity {
    /// From the schema's `format`.
    pub(crate) fn named(format: &str) -> Option<Self> {
        match format {
            "duration" => Some(Self::Duration),
            "rate" => Some(Self::Rate),
            "size" => Some(Self::Size),
            _ => None,
        }
    }
    /// The nanoseconds, bit/s or bytes of a text.
    pub(crate) fn read(self, text: &str) -> Result<u64, UnitError> {
        match self {
            Self::Duration => text.parse().map(Duration::as_nanos),
            Self::Rate => text.parse().map(Rate::as_bps),
            Self::Size => text.parse().map(Size::as_bytes),
        }
    }
    /// Why the text is not a valid quantity; `None` if it is.
    pub(crate) fn fault(self, text: &str) -> Option<String> {
        let why = self.read(text).err()?.to_string();
        let below = text
            .trim()
            .strip_prefix('-')
            .is_some_and(|rest| self.fault(rest).is_none() || rest.trim().parse::<f64>().is_ok());
        Some(if below { format!("{text:?} is negative: write {}", self.wanted()) } else { why })
    }
    /// For example `a duration such as "20ms"`.
    pub(crate) const fn wanted(self) -> &'static str {
        match self {
            Self::Duration => "a duration with its unit, such as \"20ms\", \"1.5s\" or \"2min\"",
            Self::Rate => "a rate with its unit, such as \"64kbit/s\" or \"2Mbit/s\"",
            Self::Size => "a size with its unit, such as \"1500B\" or \"64kB\"",
        }
    }
    /// A likely correction of an invalid quantity.
    pub(crate) fn meant(self, text: &str) -> Option<String> {
        let text = text.trim();
        if let Some((whole, rest)) = text.split_once(',') {
            let is_number = |of: &str| of.starts_with(|c: char| c.is_ascii_digit());
            let pointed = format!("{whole}.{rest}");
            // A decimal comma; with more of them, thousands may be meant.
            return (is_number(whole) && is_number(rest) && !rest.contains([',', '.'])).then(
                || {
                    if self.fault(&pointed).is_none() {
                        Some(format!("decimals stand behind a point: did you mean {pointed:?}?"))
                    } else {
                        self.meant(&pointed)
                    }
                },
            )?;
        }
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let value: f64 = number.parse().ok()?;
        let options = match unit.trim() {
            "" => self.units_for_bare(value),
            word => vec![self.alias(word)?],
        };
        let texts: Vec<String> = options
            .into_iter()
            .filter_map(|(unit, times)| {
                let shown =
                    if times == 1.0 { number.to_owned() } else { (value * times).to_string() };
                let text = format!("{shown}{unit}");
                self.fault(&text).is_none().then(|| format!("{text:?}"))
            })
            .collect();
        if texts.is_empty() { None } else { Some(format!("did you mean {}?", texts.join(" or "))) }
    }
    fn units_for_bare(self, value: f64) -> Vec<(&'static str, f64)> {
        match self {
            Self::Duration if value.fract() != 0.0 => vec![("s", 1.0)],
            Self::Duration => vec![("ms", 1.0), ("s", 1.0)],
            Self::Rate if value >= 1000.0 => vec![("bit/s", 1.0)],
            Self::Rate => vec![("kbit/s", 1.0), ("Mbit/s", 1.0)],
            Self::Size => vec![("B", 1.0)],
        }
    }
    /// The unit for a word, and its factor.
    fn alias(self, word: &str) -> Option<(&'static str, f64)> {
        let lower = word.to_lowercase();
        Some(match self {
            Self::Duration => match lower.as_str() {
                "s" | "sec" | "secs" | "second" | "seconds" => ("s", 1.0),
                "ms" | "msec" | "msecs" | "milli" | "millis" | "millisecond" | "milliseconds" => {
                    ("ms", 1.0)
                }
                "us" | "µs" | "μs" | "usec" | "microsecond" | "microseconds" => ("us", 1.0),
                "ns" | "nsec" | "nanosecond" | "nanoseconds" => ("ns", 1.0),
                "m" | "min" | "mins" | "minute" | "minutes" => ("min", 1.0),
                "h" | "hr" | "hrs" | "hour" | "hours" => ("h", 1.0),
                "d" | "day" | "days" => ("h", 24.0),
                _ => return None,
            },
            Self::Rate => {
                let (unit, rest) = match lower.split_at_checked(1)? {
                    ("k", rest) => ("kbit/s", rest),
                    ("m", rest) => ("Mbit/s", rest),
                    ("g", rest) => ("Gbit/s", rest),
                    _ => ("bit/s", lower.as_str()),
                };
                let rest = rest.trim_end_matches("/second").trim_end_matches("/sec");
                // A capital B, or the word, means bytes.
                let bytes = word.contains("B/") || word.contains("Bps") || lower.contains("byte");
                match rest {
                    "" | "b" | "b/s" | "bps" | "bit" | "bits" | "bit/s" | "bits/s" | "bitps"
                    | "byte" | "bytes" | "byte/s" | "bytes/s" => {}
                    _ => return None,
                }
                (unit, if bytes { 8.0 } else { 1.0 })
            }
            Self::Size => match lower.as_str() {
                "b" | "byte" | "bytes" | "octet" | "octets" => ("B", 1.0),
                "k" | "kb" | "kbyte" | "kbytes" => ("kB", 1.0),
                "m" | "mb" | "mbyte" | "mbytes" => ("MB", 1.0),
                "g" | "gb" | "gbyte" | "gbytes" => ("GB", 1.0),
                "ki" | "kib" => ("B", 1024.0),
                "mi" | "mib" => ("B", 1_048_576.0),
                "bit" | "bits" => ("B", 0.125),
                _ => return None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity::{Duration, Rate, Size};

    #[test]
    fn offers_what_was_meant() {
        for (kind, written, meant) in [
            (Duration, "20", "did you mean \"20ms\" or \"20s\"?"),
            (Duration, "1.5", "did you mean \"1.5s\"?"),
            (Duration, "20 sec", "did you mean \"20s\"?"),
            (Duration, "20MS", "did you mean \"20ms\"?"),
            (Duration, "3days", "did you mean \"72h\"?"),
            (Rate, "2,5Mbit/s", "decimals stand behind a point: did you mean \"2.5Mbit/s\"?"),
            (Rate, "2,5 Mbps", "did you mean \"2.5Mbit/s\"?"),
            (Rate, "64kbps", "did you mean \"64kbit/s\"?"),
            (Rate, "2Mbps", "did you mean \"2Mbit/s\"?"),
            (Rate, "8kB/s", "did you mean \"64kbit/s\"?"),
            (Rate, "64", "did you mean \"64kbit/s\" or \"64Mbit/s\"?"),
            (Rate, "64000", "did you mean \"64000bit/s\"?"),
            (Size, "1500", "did you mean \"1500B\"?"),
            (Size, "64KiB", "did you mean \"65536B\"?"),
            (Size, "12000bits", "did you mean \"1500B\"?"),
        ] {
            assert_eq!(kind.meant(written).as_deref(), Some(meant), "{written}");
        }
        for (kind, written) in [(Duration, "soon"), (Duration, "5 apples"), (Rate, "20ms")] {
            // A millisecond is not a rate: Mbit/s would be a wrong hint.
            assert_eq!(kind.meant(written), None, "{written}");
        }
    }
}
