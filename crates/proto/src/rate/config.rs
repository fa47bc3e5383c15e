//! The knobs of the rate machine, and how a profile and a protocol fill in those a scenario leaves
//! open. Nothing here decides anything at run time: what comes out is [`Parameters`], plain values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::time::Duration;
use crate::units::Size;

/// What an idle or data-limited sender may keep of its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// RFC 5348 §4.3 and §4.4: an idle sender keeps the initial rate (four packets of up to 1095
    /// bytes in a round trip), a data-limited one the receive rates of better days.
    Rfc5348,
    /// RFC 3448 §4.3 and §4.4: twice what was last received, and idle time halves down to two
    /// packets in a round trip.
    Rfc3448,
}

/// Which protocol the machine serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// DCCP's CCID 3 (RFC 4342).
    Ccid3,
    /// DCCP's CCID 4 (RFC 5622), the small-packet variant of RFC 4828.
    Ccid4,
    /// Bare TFRC (RFC 5348).
    Tfrc,
}

/// Knobs of rate-based congestion control. What is absent has the profile's value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Segment size s of the equations; absent: the mean of the last packets sent, except under
    /// CCID 4 (1460 B).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nominal_size: Option<Size>,
}

/// The machine's values, all decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Segment size s in bytes; `None`: the mean of what is sent (RFC 5348 §4.1).
    pub nominal_bytes: Option<u32>,
    /// Bytes of headers counted against small packets (RFC 4828 §4.2: H); 0: no correction.
    pub header_bytes: u32,
    /// Shortest time between two packets (RFC 4828 §4.3); zero: none.
    pub minimum_interval: Duration,
    /// Count the losses of intervals of at most two round trips (RFC 4828 §4.4).
    pub short_intervals: bool,
    /// What an idle sender keeps.
    pub idle: Idle,
    /// Faster restart (draft-ietf-dccp-tfrc-faster-restart-06).
    pub faster_restart: bool,
    /// Oscillation prevention (RFC 5348 §4.5).
    pub oscillation_prevention: bool,
    /// History discounting (RFC 5348 §5.5).
    pub history_discounting: bool,
    /// Smallest loss event rate above zero the equation is asked about.
    pub p_floor: f64,
    /// Weight of the old value in the average of round-trip times (RFC 5348 §4.3 step 2: q).
    pub rtt_weight: f64,
    /// Granularity of the sender's timer (RFC 5348 §8.3: t_gran).
    pub timer_granularity: Duration,
    /// Unused sending time a sender may make up for by a burst (RFC 5348 §4.6).
    pub credit: Duration,
    /// Loss intervals in the average (RFC 5348 §5.4: n).
    pub loss_intervals: usize,
    /// Later packets that make a missing one lost (RFC 5348 §5.1: NDUPACK).
    pub ndupack: u32,
    /// Feedback packets in a round trip (RFC 5348 §6.2: one).
    pub feedback_per_rtt: u32,
}

impl Config {
    /// The machine's values under a profile.
    #[must_use]
    pub fn resolve(&self, _profile: Profile, kind: Kind) -> Parameters {
        let small = kind == Kind::Ccid4;
        Parameters {
            nominal_bytes: self
                .nominal_size
                .map(|size| u32::try_from(size.as_bytes()).unwrap_or(u32::MAX))
                .or(small.then_some(1460)),
            header_bytes: if small { 40 } else { 0 },
            minimum_interval: if small { Duration::from_millis(10) } else { Duration::ZERO },
            short_intervals: small,
            idle: Idle::Rfc5348,
            faster_restart: false,
            oscillation_prevention: true,
            history_discounting: true,
            p_floor: 0.0,
            rtt_weight: 0.9,
            timer_granularity: Duration::ZERO,
            credit: Duration::ZERO,
            loss_intervals: 8,
            ndupack: 3,
            feedback_per_rtt: 1,
        }
    }
}
