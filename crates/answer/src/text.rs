//! Numbers with their units, and lists of words.

use talkspurt_proto::math::pow;
use talkspurt_proto::metric::Metric;

/// A number in the shown unit, with narrow spaces between thousands and a true minus.
#[must_use]
pub fn show(metric: &Metric, value: f64) -> String {
    let digits = usize::from(metric.digits);
    let text = format!("{:.digits$}", value.abs() * metric.scale);
    let (whole, part) = text.split_at(text.find('.').unwrap_or(text.len()));
    let zero = text.bytes().all(|digit| matches!(digit, b'0' | b'.'));
    let mut shown = String::from(if value < 0.0 && !zero { "−" } else { "" });
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    shown + part
}

/// Half of an interval after "±": "<" and the last shown digit if it is smaller.
#[must_use]
pub fn half(metric: &Metric, half: f64) -> String {
    if is_zero(metric, half) {
        format!("<{:.*}", usize::from(metric.digits), step(metric))
    } else {
        show(metric, half)
    }
}

/// Whether a number is shown as 0.
pub(crate) fn is_zero(metric: &Metric, value: f64) -> bool {
    value.abs() * metric.scale < step(metric) / 2.0
}

/// The place of its last digit, in the shown unit.
fn step(metric: &Metric) -> f64 {
    pow(10.0, -f64::from(metric.digits))
}

/// A number with its unit, on one line.
pub(crate) fn with_unit(metric: &Metric, text: &str) -> String {
    if metric.shown_unit.is_empty() {
        text.to_owned()
    } else {
        format!("{text}\u{a0}{}", metric.shown_unit)
    }
}

/// Words in a list: "a, b and c".
pub(crate) fn listed(mut words: Vec<String>) -> String {
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} and {last}", words.join(", ")) }
}

/// At most `most` of the words, and the number of the others.
pub(crate) fn some(mut words: Vec<String>, most: usize) -> Vec<String> {
    let more = words.len().saturating_sub(most);
    words.truncate(most);
    if more > 0 {
        words.push(format!("{more} more"));
    }
    words
}
