//! Rates and times in a suitable unit.

use talkspurt_proto::math::log10;

const RATES: [(&str, f64); 4] = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)];
const TIMES: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)];

/// A rate.
pub(crate) fn rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, &RATES, "0 bit/s")
}

/// A time.
pub(crate) fn time(seconds: f64) -> String {
    scaled(seconds, &TIMES, "0 ms")
}

fn scaled(value: f64, units: &[(&str, f64)], zero: &str) -> String {
    if value == 0.0 {
        return zero.to_owned();
    }
    // 999.95 ms must not become 1000 ms: the unit is chosen by the rounded value.
    let fits = units.iter().find(|(_, size)| value.abs() >= size * 0.9995);
    let (name, size) = fits.unwrap_or(&units[units.len() - 1]);
    format!("{} {name}", digits(value / size, 3)).replace('-', "−")
}

/// A number with at most so many significant digits, without zeros at its end.
fn digits(value: f64, most: i32) -> String {
    let before = log10(value.abs()).floor() as i32 + 1;
    let after = usize::try_from(most - before).unwrap_or(0);
    let text = format!("{value:.after$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A number with five significant digits, which exceeds the resolution of a screen.
pub(crate) fn short(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit_the_rounded_value() {
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(rate(999_960.0), "1 Mbit/s");
        assert_eq!(rate(1_544_000.0), "1.54 Mbit/s");
        assert_eq!(rate(512_000.0), "512 kbit/s");
        assert_eq!(time(0.05), "50 ms");
        assert_eq!(time(2.5), "2.5 s");
    }

    #[test]
    fn five_digits_are_kept() {
        assert_eq!(short(123_456.0), 123_460.0);
        assert_eq!(short(-0.001_234_56), -0.001_234_6);
    }
}
