//! Rates and times in a suitable unit.

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
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return zero.to_owned();
    }
    // 999.95 ms must not become 1000 ms: the unit is chosen by the rounded value.
    let fits = units.iter().find(|(_, size)| value.abs() >= size * 0.9995);
    let (name, size) = fits.unwrap_or(&units[units.len() - 1]);
    let shown = value / size;
    let text = if shown.abs() < 999.5 { general(shown, 3) } else { format!("{shown:.0}") };
    format!("{text} {name}").replace('-', "−")
}

/// A number with at most so many significant digits, without zeros at its end, as `%g` of C.
pub(crate) fn general(value: f64, digits: usize) -> String {
    let text = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let power: i32 = exponent.parse().unwrap_or(0);
    let short = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match usize::try_from(digits as i32 - 1 - power) {
        Ok(after) if power >= -4 => short(&format!("{value:.after$}")),
        _ => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", short(mantissa), power.abs())
        }
    }
}

/// A number rounded to so many decimals; zero has no sign.
pub(crate) fn rounded(value: f64, decimals: usize) -> f64 {
    format!("{value:.decimals$}").parse().unwrap_or(value) + 0.0
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
    fn numbers_are_as_c_prints_them() {
        let printed = [(1234.5, "1234.5"), (0.0001, "0.0001"), (0.000_012_5, "1.25e-05")];
        for (value, text) in printed.into_iter().chain([(1e6, "1e+06"), (99_999.95, "1e+05")]) {
            assert_eq!(general(value, 5), text);
        }
        assert!((rounded(0.125, 2) - 0.12).abs() < 1e-15);
    }

    #[test]
    fn five_digits_are_kept() {
        assert_eq!(short(123_456.0), 123_460.0);
        assert_eq!(short(-0.001_234_56), -0.001_234_6);
    }
}
