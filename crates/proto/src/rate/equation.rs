//! The throughput equation (RFC 5348 §3.1) and its inverse in p, which gives the first loss
//! interval (§6.3.1). Pure functions of floats: s in bytes, R in seconds, X in bytes per second.

/// Smallest loss event rate of the inverse: an interval of 10¹² packets.
const SMALLEST: f64 = 1e-12;

/// X_Bps: the rate of a TCP with segments of `s` bytes, round trips of `r` seconds and a loss event rate `p`,
/// in bytes per second (RFC 5348 §3.1 with the recommended b = 1 and t_RTO = 4R). Infinite at `p` = 0.
#[must_use]
pub fn throughput(s: f64, r: f64, p: f64) -> f64 {
    throughput_of(s, r, p, 1.0, 4.0 * r)
}

/// The full equation: `b` packets acknowledged by one acknowledgement and a retransmission
/// timeout of `t_rto` seconds.
#[must_use]
pub fn throughput_of(s: f64, r: f64, p: f64, b: f64, t_rto: f64) -> f64 {
    let losses = (2.0 * b * p / 3.0).sqrt();
    let timeouts = 3.0 * (3.0 * b * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
    s / (r * losses + t_rto * timeouts)
}

/// The equation of ns-2's TFRC (`formula.h`): the probability that a loss causes a timeout,
/// 3√(3p/8), is at most 1.
#[must_use]
pub fn bounded_throughput(s: f64, r: f64, p: f64, t_rto: f64) -> f64 {
    let losses = (2.0 * p / 3.0).sqrt();
    let timeouts = (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    s / (r * losses + t_rto * timeouts)
}

/// The loss event rate at which [`throughput`] is `x`, clamped to 10⁻¹² to 1. It is found by
/// bisection on the logarithm, since p spans many orders of magnitude.
#[must_use]
pub fn loss_event_rate(s: f64, r: f64, x: f64) -> f64 {
    loss_event_rate_of(x, |p| throughput(s, r, p))
}

/// The same for any equation that decreases with p.
#[must_use]
pub fn loss_event_rate_of(x: f64, throughput: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (SMALLEST, 1.0);
    if throughput(high) >= x {
        return high;
    }
    if throughput(low) <= x {
        return low;
    }
    for _ in 0..64 {
        let middle = (low * high).sqrt();
        if throughput(middle) > x {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
