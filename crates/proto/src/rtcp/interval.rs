//! How long to wait between reports: the algorithm of RFC 3550 §6.3.1 and A.7 in integers.

use crate::rng::Rng;
use crate::time::Duration;

/// What the interval depends on (RFC 3550 §6.3, state variables).
#[derive(Clone, Copy, Debug)]
pub(super) struct Census {
    /// Participants, this one included.
    pub members: u64,
    /// Recent senders of media.
    pub senders: u64,
    /// Whether this one is a sender.
    pub we_sent: bool,
    /// No report has been sent yet.
    pub initial: bool,
    /// Mean length of compound packets with UDP and IP headers, in 1/16 bytes.
    pub mean_size_x16: u64,
}

/// Bounds of the interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// RTCP's share of the session bandwidth in bytes per second.
    pub bytes_per_second: u64,
    /// Lower bound of the deterministic interval.
    pub minimum: Duration,
}

/// RFC 3550 §6.3.1, the deterministic calculated interval T_d.
pub(super) fn deterministic(census: &Census, share: &Share) -> Duration {
    // §6.2: the delay before the first report is half as long.
    let minimum = if census.initial { share.minimum / 2 } else { share.minimum };
    let Census { members, senders, .. } = *census;
    // §6.3.1 step 1: a quarter of the bandwidth for senders while they are at most a quarter.
    let (n, numerator, denominator) = match (senders * 4 <= members, census.we_sent) {
        (true, true) => (senders, 1, 4),
        (true, false) => (members - senders, 3, 4),
        (false, _) => (members, 1, 1),
    };
    let bandwidth = u128::from(share.bytes_per_second.max(1)) * numerator;
    let nanos = u128::from(census.mean_size_x16) * u128::from(n) * denominator * 1_000_000_000
        / (16 * bandwidth);
    Duration::from_nanos(nanos.try_into().unwrap_or(u64::MAX)).max(minimum)
}

/// RFC 3550 §6.3.1, the randomised interval T: uniform from half to three halves of T_d, divided by
/// e − 3/2 to compensate for reconsideration.
pub(super) fn randomised(deterministic: Duration, rng: &mut Rng) -> Duration {
    let spread = deterministic / 2 + rng.span(deterministic);
    let nanos = u128::from(spread.as_nanos()) * 1_000_000_000 / 1_218_281_828;
    Duration::from_nanos(nanos as u64)
}
