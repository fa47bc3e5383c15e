//! Parameters of rate control, and their defaults by profile and protocol. The result is
//! [`Parameters`], plain values; no decision here is made at run time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::{Profile, parameters};
use crate::time::Duration;
use crate::units::Size;

use super::{beritelli, bucket};

/// Rate limit of an idle or data-limited sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// RFC 5348 §4.3 and §4.4: an idle sender keeps the initial rate (up to four packets per round
    /// trip), a data-limited sender its earlier, higher receive rates.
    Rfc5348,
    /// RFC 3448 §4.3 and §4.4: twice the last receive rate. Idle time halves it while at least four
    /// packets per round trip were received; slow start begins at one.
    Rfc3448,
    /// ns-2's TFRC (tcp/tfrc.cc): 300 B/s before the first feedback; then at most twice the last
    /// receive rate, and at least one packet per round trip, or the initial rate while a data-limited
    /// sender's rate rises. It rises by one packet per round trip each round trip. The nofeedback timer
    /// lasts two round trips and halves the rate, but leaves a data-limited sender the initial rate.
    /// Feedback does not reschedule the next packet, except in slow start, where it is sent at once.
    Ns2,
    /// Linux (net/dccp/ccids/ccid3.c): twice the last receive rate, but the initial rate after two
    /// round trips without sending; the nofeedback timer halves the rate, idle or not.
    Linux,
}

/// How a receiver measures the receive rate X_recv, and which of its values determines the interval
/// before the first loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiveRate {
    /// RFC 5348 §6.2 and §6.3.1: over the last round trip, so that pauses do not count and the minimum
    /// is one packet per round trip; the first loss interval follows from the maximum so far.
    Rfc5348,
    /// RFC 4342 §8.3 and §6.1.1: over the time since the last feedback, however long; the first loss
    /// interval follows from the most recent value. Also used by ns-2 and Linux.
    Rfc4342,
}

/// The protocol that uses the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// DCCP's CCID 3 (RFC 4342).
    Ccid3,
    /// DCCP's CCID 4 (RFC 5622), the small-packet variant of RFC 4828.
    Ccid4,
    /// Bare TFRC (RFC 5348).
    Tfrc,
}

parameters! {
    /// Parameters of rate-based congestion control (TFRC, CCID 3 and CCID 4). Absent ones have the
    /// profile's value, stated where it differs from RFC 5348.
    pub struct Config {
        /// Segment size s of the equations, in bytes of payload. Absent: the mean of the packets sent (RFC
        /// 5348 §4.1), or with a token bucket the best codec's packet with headers; under CCID 4 1460 B
        /// (RFC 5622 §3); under ns2 500 B for DCCP and 1000 B for TFRC (ns-2 `s_s_`, `packetSize_`).
        nominal_size -> Size,
        /// Window of the initial rate, in packets per round trip. Absent: min(4s, max(2s, 4380 B)) (RFC
        /// 5348 §4.2); under ns2 for DCCP 1 (RFC 3448 §4.2).
        initial_window -> u32,
        /// Rate limit of an idle or data-limited sender. Absent: `rfc5348`; under ns2 `rfc3448` for DCCP
        /// and `ns2` for TFRC, under linux `linux`.
        idle: Idle = Idle::Rfc5348,
        /// How X_recv is measured, and which value determines the first loss interval. Absent: `rfc5348`;
        /// under ns2 and linux `rfc4342`. With `idle` at `rfc3448` and this at `rfc4342`, CCID 3 follows
        /// RFC 4342 and RFC 3448 literally, which RFC 5348 revises.
        receive_rate: ReceiveRate = ReceiveRate::Rfc5348,
        /// Quadruple the rate each round trip without congestion, up to the rate achieved before
        /// (draft-ietf-dccp-tfrc-faster-restart-06). Absent: false.
        faster_restart: bool = false,
        /// Slow down at once when the round-trip time grows (RFC 5348 §4.5, optional). Absent: true;
        /// under linux false.
        oscillation_prevention: bool = true,
        /// Let a long interval without loss outweigh older ones (RFC 5348 §5.5, optional). Absent: true;
        /// under linux, and under ns2 for DCCP, false.
        history_discounting: bool = true,
        /// Loss intervals in the average (RFC 5348 §5.4: n), 2 to 28. Absent: 8.
        loss_intervals -> u32,
        /// Smallest loss event rate above zero used in the equation. Absent: 0; under linux 0.0001, the
        /// first entry of its table (`TFRC_SMALLEST_P`); under ns2 for DCCP 0.00001 (`s_smallest_p_`). A
        /// floor limits X to s/R · √(3/2p): on a faster path a standing queue keeps R up.
        p_floor: f64 = 0.0,
        /// Weight of the old value in the smoothed round-trip time, 0 to 1 (RFC 5348 §4.3 step 2: q).
        /// Absent: 0.9; under ns2 for TFRC 0.95 (`df_`).
        rtt_weight: f64 = 0.9,
        /// Shortest time between two packets. Absent: none; under CCID 4 10 ms (RFC 4828 §4.3).
        minimum_interval: Duration = Duration::ZERO,
        /// Granularity of the sender's timer (RFC 5348 §8.3: t_gran): a packet may leave early by half of
        /// it. Absent: 0, as simulated time is exact; under ns2 for DCCP 10 ms (`s_os_time_gran_`), under
        /// linux 2 ms (`TFRC_T_DELTA` is half of it).
        timer_granularity: Duration = Duration::ZERO,
        /// Unused sending time that a sender may use later in a burst, at most a round trip (RFC 5348
        /// §4.6). Absent: 0; under linux a round trip (its own code sets no limit).
        credit: Duration = Duration::ZERO,
        /// Minimum nofeedback timeout. Absent: 0 (RFC 5348 §4.3 has none; Linux logs 4R for its own even if
        /// that is 6 ms).
        minimum_timeout: Duration = Duration::ZERO,
        /// Feedback packets per round trip, besides those sent on loss, 1 to 4. Absent: 1 (RFC 5348 §6.2).
        feedback_per_rtt: u32 = 1,
        /// DCCP only: keep the window counter at least four ahead of the acknowledged packets (RFC 4342
        /// §8.1, a SHOULD). Absent: true; under linux false.
        counter_follows_acks: bool = true,
        /// DCCP only: required acknowledgements carry Elapsed Time (RFC 4342 §6, RFC 4340 §13.2). Absent:
        /// true; under linux false.
        elapsed_time: bool = true,
        /// DCCP only: required acknowledgements carry the Loss Intervals option (RFC 4342 §8.6), under CCID
        /// 4 with Dropped Packets (RFC 5622 §8.7), instead of Loss Event Rate. Absent: true; under linux and
        /// ns2 false.
        loss_intervals_option: bool = true,
        /// DCCP only: request the Loss Event Rate option (RFC 4342 §8.4: Send Loss Event Rate): the sender
        /// requests it as Mandatory, and the receiver prefers to send it. Absent: false; under linux true.
        ask_loss_event_rate: bool = false,
        /// TFRC-TB: a token bucket over the source's ladder of encodings. Absent: none.
        token_bucket -> bucket::Config,
        /// Controller used instead of TFRC; set by its own transport, not by a scenario's `rate`.
        #[serde(skip)]
        #[schemars(skip)]
        beritelli -> beritelli::Config,
    }

    /// The resolved values.
    pub struct Parameters {
        /// Segment size s in bytes; `None`: the mean of what is sent (RFC 5348 §4.1).
        nominal_bytes: Option<u32> = None,
        /// Packets of the initial rate's window; `None`: min(4s, max(2s, 4380 B)).
        initial_window: Option<u32> = None,
        /// Bytes of headers counted against small packets (RFC 4828 §4.2: H; RFC 5622 §5: 36); 0: no
        /// correction.
        header_bytes: u32 = 0,
        /// Count each loss in intervals of at most two round trips (RFC 4828 §4.4).
        short_intervals: bool = false,
        /// Use the equation of ns-2's TFRC (`formula.h`, `p_to_b`): t_RTO is the timeout of a TCP whose
        /// clock ticks every 100 ms (`tcp_tick_`), and the probability of a timeout is at most 1. RFC 5348
        /// §3.1 recommends t_RTO = 4R and has no bound.
        ns2_timeout: bool = false,
        /// Minimum factor of one discount of an old interval's weight (RFC 5348 §5.5: THRESHOLD, 0.25;
        /// ns-2's TFRC: 0.5, `minDiscountRatio_`).
        discount_threshold: f64 = 0.25,
        /// The receiver of CCID 3 and 4 averages round-trip times of whole rounds; false: each packet gives
        /// one, and the last counts, as in ns-2 (`dccp_tfrc.cc`, `sampleRTT`).
        receiver_averages_rtt: bool = true,
        /// The average while fewer than n loss intervals have closed.
        few_intervals: FewIntervals = FewIntervals::Replace,
        /// The same for the average of their roots (RFC 5348 §4.5: q2); ns-2's TFRC has one for both.
        root_weight: f64 = 0.9,
        /// Loss intervals in the average (RFC 5348 §5.4: n).
        loss_intervals: usize = 8,
        /// The interval before the first loss, derived from the receive rate (RFC 5348 §6.3.1), stays in
        /// the average like the others. Linux drops it at the second loss event.
        first_interval_lasts: bool = true,
        /// Window counters are compared as the four bits in the header. ns-2's DCCP: a loss whose
        /// counter is 0 to 4 above that of the last event's first loss, modulo 16, belongs to that event
        /// however long ago it was.
        counter_wraps: bool = false,
        /// Losses of one gap begin at most one loss event: ns-2's TFRC (`PreciseLoss_`), whose event needs
        /// a packet sent after later feedback. RFC 5348 §5.2 separates them by time.
        event_needs_arrival: bool = false,
        /// Later packets after which a missing one is lost (RFC 5348 §5.1: NDUPACK, 3; ns-2's TFRC: 1,
        /// `numPkts_`).
        ndupack: u32 = 3,
        /// Feedback is sent with the packet that arrives a round trip or more after the last feedback, and
        /// a timer of one and a half only covers silence: ns-2's TFRC (`tfrc-sink.cc`, `recv` and
        /// `nextpkt`). RFC 5348 §6.2 has a timer of one.
        feedback_on_arrival: bool = false,
        /// The token bucket of TFRC-TB.
        token_bucket: Option<bucket::Config> = None,
        /// The controller that reacts to delay, in place of TFRC.
        beritelli: Option<beritelli::Config> = None,
    }
}

/// How the open loss interval is averaged with the closed ones while fewer than n have closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FewIntervals {
    /// RFC 5348 §5.4: I_0 to I_(k-1) are compared with I_1 to I_k, so that the open one takes the oldest's
    /// place, which returns when it closes.
    Replace,
    /// It is averaged with all of them: ns-2's TFRC (`tfrc-sink.cc`, `est_loss_WALI`).
    Join,
    /// The same, and those that are missing count as empty: ns-2's CCID 3 (`dccp_tfrc.cc`,
    /// `tfrc_calcImean`), whose rate after the first loss is far below the one it had reached.
    Zero,
}

impl Parameters {
    /// The values of a profile.
    fn of(profile: Profile, kind: Kind) -> Self {
        let rfc = match kind {
            Kind::Ccid3 | Kind::Tfrc => Self::RFC,
            Kind::Ccid4 => Self {
                nominal_bytes: Some(1460),
                // RFC 5622 §5: IPv4 and DCCP-Data with 48-bit numbers.
                header_bytes: 36,
                minimum_interval: Duration::from_millis(10),
                short_intervals: true,
                ..Self::RFC
            },
        };
        match (profile, kind) {
            (Profile::Rfc, _) => rfc,
            (Profile::Ns2, Kind::Tfrc) => Self {
                nominal_bytes: Some(1000),
                rtt_weight: 0.95,
                root_weight: 0.95,
                discount_threshold: 0.5,
                few_intervals: FewIntervals::Join,
                ndupack: 1,
                feedback_on_arrival: true,
                idle: Idle::Ns2,
                event_needs_arrival: true,
                receive_rate: ReceiveRate::Rfc4342,
                ns2_timeout: true,
                ..rfc
            },
            (Profile::Ns2, _) => Self {
                nominal_bytes: rfc.nominal_bytes.or(Some(500)),
                initial_window: Some(1),
                idle: Idle::Rfc3448,
                receive_rate: ReceiveRate::Rfc4342,
                history_discounting: false,
                receiver_averages_rtt: false,
                few_intervals: FewIntervals::Zero,
                p_floor: 1e-5,
                counter_wraps: true,
                timer_granularity: Duration::from_millis(10),
                // Its receiver sends Loss Event Rate, and its sender uses that.
                loss_intervals_option: false,
                ..rfc
            },
            (Profile::Linux, _) => Self {
                idle: Idle::Linux,
                receive_rate: ReceiveRate::Rfc4342,
                oscillation_prevention: false,
                history_discounting: false,
                p_floor: 1e-4,
                first_interval_lasts: false,
                timer_granularity: Duration::from_millis(2),
                credit: Duration::MAX,
                counter_follows_acks: false,
                elapsed_time: false,
                loss_intervals_option: false,
                ask_loss_event_rate: true,
                ..rfc
            },
        }
    }
}

impl Config {
    /// Resolves the values under a profile.
    #[must_use]
    pub fn resolve(&self, profile: Profile, kind: Kind) -> Parameters {
        let all = Parameters::of(profile, kind).replaced_by(self);
        let bytes = |size: Size| u32::try_from(size.as_bytes()).unwrap_or(u32::MAX);
        Parameters {
            nominal_bytes: self.nominal_size.map(bytes).or(all.nominal_bytes),
            initial_window: self.initial_window.or(all.initial_window),
            loss_intervals: self.loss_intervals.map_or(all.loss_intervals, |n| n as usize),
            token_bucket: self.token_bucket.clone(),
            beritelli: self.beritelli.clone(),
            ..all
        }
    }
}
