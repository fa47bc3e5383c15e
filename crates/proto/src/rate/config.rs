//! The knobs of the rate machine, and how a profile and a protocol fill in those a scenario leaves
//! open. Nothing here decides anything at run time: what comes out is [`Parameters`], plain values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::time::Duration;
use crate::units::Size;

use super::{beritelli, bucket};

/// What an idle or data-limited sender may keep of its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// RFC 5348 §4.3 and §4.4: an idle sender keeps the initial rate (up to four packets in a round
    /// trip), a data-limited one the receive rates of better days.
    Rfc5348,
    /// RFC 3448 §4.3 and §4.4: twice what was last received; idle time halves it while at least four
    /// packets in a round trip were received, and slow start begins at one.
    Rfc3448,
    /// ns-2's TFRC (tcp/tfrc.cc): 300 B/s before the first feedback; at most twice what was last received,
    /// and at least a packet in a round trip, or the initial rate where the rate of a data-limited sender
    /// rises; it rises by a packet in a round trip each round trip; the nofeedback timer is of two round
    /// trips, halves the rate, and leaves a data-limited sender the initial one. Feedback does not change
    /// when the next packet leaves, except in slow start, where it leaves at once.
    Ns2,
    /// Linux (net/dccp/ccids/ccid3.c): twice what was last received, but after two round trips
    /// without sending the initial rate; the nofeedback timer halves, idle or not.
    Linux,
}

/// How a receiver measures the receive rate X_recv, and which of its values makes up the interval
/// before the first loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiveRate {
    /// RFC 5348 §6.2 and §6.3.1: over the last round trip, so that a pause does not count and one
    /// packet in a round trip is the least; the first loss is seeded with the maximum so far.
    Rfc5348,
    /// RFC 4342 §8.3 and §6.1.1: over the time since the last feedback, however long; the first loss
    /// is seeded with the most recent value. So do ns-2 and Linux.
    Rfc4342,
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

/// Parameters of rate-based congestion control (TFRC, CCID 3 and CCID 4). What is absent has the
/// profile's value, which the text of each names where it is not RFC 5348's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Segment size s of the equations, in bytes of payload. Absent: the mean of what is sent (RFC
    /// 5348 §4.1), with a token bucket the best codec's packet and its headers; under CCID 4 1460 B
    /// (RFC 5622 §3); under ns2 500 B for DCCP and 1000 B for TFRC (ns-2 `s_s_`, `packetSize_`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nominal_size: Option<Size>,
    /// Window of the initial rate, in packets in a round trip. Absent: min(4s, max(2s, 4380 B))
    /// (RFC 5348 §4.2); under ns2 for DCCP 1 (RFC 3448 §4.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// What an idle or data-limited sender may keep of its rate. Absent: `rfc5348`; under ns2
    /// `rfc3448` for DCCP and `ns2` for TFRC, under linux `linux`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// How X_recv is measured, and what seeds the first loss interval. Absent: `rfc5348`; under ns2
    /// and linux `rfc4342`. With `idle` at `rfc3448` and this at `rfc4342`, CCID 3 follows the letter
    /// of RFC 4342 and RFC 3448, which RFC 5348 revises.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_rate: Option<ReceiveRate>,
    /// Quadruple the rate in each round trip without congestion, up to what was achieved before
    /// (draft-ietf-dccp-tfrc-faster-restart-06). Absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faster_restart: Option<bool>,
    /// Slow down at once when the round-trip time grows (RFC 5348 §4.5, optional). Absent: true;
    /// under linux false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oscillation_prevention: Option<bool>,
    /// Let a long interval without loss outweigh older ones (RFC 5348 §5.5, optional). Absent: true;
    /// under linux, and under ns2 for DCCP, false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_discounting: Option<bool>,
    /// Loss intervals in the average (RFC 5348 §5.4: n), 2 to 28. Absent: 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_intervals: Option<u32>,
    /// Smallest loss event rate above zero that the equation is asked about. Absent: 0; under linux
    /// 0.0001, the first entry of its table, below which it cannot look (`TFRC_SMALLEST_P`); under
    /// ns2 for DCCP 0.00001 (`s_smallest_p_`). A floor bounds X at s/R · √(3/2p): a path faster than
    /// that keeps a standing queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_floor: Option<f64>,
    /// Weight of the old value in the mean round-trip time, 0 to 1 (RFC 5348 §4.3 step 2: q).
    /// Absent: 0.9; under ns2 for TFRC 0.95 (`df_`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_weight: Option<f64>,
    /// Shortest time between two packets. Absent: none; under CCID 4 10 ms (RFC 4828 §4.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_interval: Option<Duration>,
    /// Granularity of the sender's timer (RFC 5348 §8.3: t_gran): a packet may leave early by half of
    /// it. Absent: 0, since time is exact here; under ns2 for DCCP 10 ms (`s_os_time_gran_`), under
    /// linux 2 ms (`TFRC_T_DELTA` is half of it).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_granularity: Option<Duration>,
    /// Unused sending time a sender may make up for by a burst, never more than a round trip (RFC
    /// 5348 §4.6). Absent: 0; under linux a round trip (its own code sets no bound).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<Duration>,
    /// Shortest nofeedback timeout. Absent: 0 (RFC 5348 §4.3 has none; Linux prints 4R for its own
    /// even where that is 6 ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_timeout: Option<Duration>,
    /// Feedback packets in a round trip, loss apart, 1 to 4. Absent: 1 (RFC 5348 §6.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback_per_rtt: Option<u32>,
    /// DCCP only: the window counter runs ahead of the packets acknowledged by four at least (RFC
    /// 4342 §8.1, a SHOULD). Absent: true; under linux false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter_follows_acks: Option<bool>,
    /// DCCP only: required acknowledgements bear Elapsed Time (RFC 4342 §6, RFC 4340 §13.2). Absent:
    /// true; under linux false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_time: Option<bool>,
    /// DCCP only: required acknowledgements bear the Loss Intervals option (RFC 4342 §8.6), under
    /// CCID 4 with Dropped Packets (RFC 5622 §8.7); without it they bear Loss Event Rate. Absent:
    /// true; under linux false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_intervals_option: Option<bool>,
    /// DCCP only: the Loss Event Rate option is wanted (RFC 4342 §8.4: Send Loss Event Rate): a
    /// sender asks for it, Mandatory, and a receiver prefers to send it. Absent: false; under linux
    /// true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask_loss_event_rate: Option<bool>,
    /// TFRC-TB: a token bucket over the source's ladder of encodings. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_bucket: Option<bucket::Config>,
    /// Another controller in TFRC's place; a transport of its own names it, not a scenario's `rate`.
    #[serde(skip)]
    #[schemars(skip)]
    pub beritelli: Option<beritelli::Config>,
}

/// The machine's values, all decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Segment size s in bytes; `None`: the mean of what is sent (RFC 5348 §4.1).
    pub nominal_bytes: Option<u32>,
    /// Packets of the initial rate's window; `None`: min(4s, max(2s, 4380 B)).
    pub initial_window: Option<u32>,
    /// Bytes of headers counted against small packets (RFC 4828 §4.2: H; RFC 5622 §5: 36); 0: no
    /// correction.
    pub header_bytes: u32,
    /// Shortest time between two packets (RFC 4828 §4.3); zero: none.
    pub minimum_interval: Duration,
    /// Count the losses of intervals of at most two round trips (RFC 4828 §4.4).
    pub short_intervals: bool,
    /// What an idle sender keeps.
    pub idle: Idle,
    /// How X_recv is measured, and what seeds the first loss interval.
    pub receive_rate: ReceiveRate,
    /// The equation is that of ns-2's TFRC (`formula.h`, `p_to_b`): t_RTO is the timeout of a TCP whose
    /// clock ticks every 100 ms (`tcp_tick_`), and the chance of a timeout is at most 1. RFC 5348 §3.1
    /// recommends t_RTO = 4R and has no bound.
    pub ns2_timeout: bool,
    /// Faster restart (draft-ietf-dccp-tfrc-faster-restart-06).
    pub faster_restart: bool,
    /// Oscillation prevention (RFC 5348 §4.5).
    pub oscillation_prevention: bool,
    /// History discounting (RFC 5348 §5.5).
    pub history_discounting: bool,
    /// The least an old interval's weight is multiplied with at a time (RFC 5348 §5.5: THRESHOLD,
    /// 0.25; ns-2's TFRC: 0.5, `minDiscountRatio_`).
    pub discount_threshold: f64,
    /// While fewer than n loss intervals have closed, the open one is averaged with all of them, and
    /// not in place of the oldest: ns-2's TFRC (`tfrc-sink.cc`, `est_loss_WALI`). By RFC 5348 §5.4 I_0
    /// to I_(k-1) stand against I_1 to I_k, so that the oldest comes back when the open one closes.
    pub open_interval_joins: bool,
    /// Smallest loss event rate above zero the equation is asked about.
    pub p_floor: f64,
    /// Weight of the old value in the average of round-trip times (RFC 5348 §4.3 step 2: q).
    pub rtt_weight: f64,
    /// The same in the average of their roots (RFC 5348 §4.5: q2); ns-2's TFRC has one for both.
    pub root_weight: f64,
    /// Granularity of the sender's timer (RFC 5348 §8.3: t_gran).
    pub timer_granularity: Duration,
    /// Unused sending time a sender may make up for by a burst (RFC 5348 §4.6).
    pub credit: Duration,
    /// Shortest nofeedback timeout.
    pub minimum_timeout: Duration,
    /// Loss intervals in the average (RFC 5348 §5.4: n).
    pub loss_intervals: usize,
    /// The interval before the first loss, made up from the receive rate (RFC 5348 §6.3.1), stays in
    /// the average as the others do. Linux forgets it at the second loss event.
    pub first_interval_lasts: bool,
    /// Window counters are compared as the four bits of a packet's header. ns-2's DCCP: a loss whose
    /// counter is 0 to 4 above that of the last event's first loss, modulo 16, counts to that event
    /// however long ago it was.
    pub counter_wraps: bool,
    /// Losses of one gap begin one loss event at most: ns-2's TFRC (`PreciseLoss_`), whose event needs
    /// a packet that was sent after later feedback. RFC 5348 §5.2 tells them apart by time.
    pub event_needs_arrival: bool,
    /// Later packets that make a missing one lost (RFC 5348 §5.1: NDUPACK, 3; ns-2's TFRC: 1,
    /// `numPkts_`).
    pub ndupack: u32,
    /// Feedback packets in a round trip (RFC 5348 §6.2: one).
    pub feedback_per_rtt: u32,
    /// Feedback leaves with the packet that arrives a round trip or more after the last, and a timer
    /// of one and a half only makes up for silence: ns-2's TFRC (`tfrc-sink.cc`, `recv` and `nextpkt`).
    /// RFC 5348 §6.2 has a timer of one.
    pub feedback_on_arrival: bool,
    /// An acknowledgement moves the window counter four beyond the packet it acknowledges (RFC 4342
    /// §8.1, a SHOULD).
    pub counter_follows_acks: bool,
    /// Required acknowledgements bear Elapsed Time (RFC 4342 §6).
    pub elapsed_time: bool,
    /// Required acknowledgements bear Loss Intervals (RFC 4342 §8.6), under CCID 4 with Dropped
    /// Packets; otherwise Loss Event Rate.
    pub loss_intervals_option: bool,
    /// Send Loss Event Rate is asked for, and preferred (RFC 4342 §8.4).
    pub ask_loss_event_rate: bool,
    /// The bucket of TFRC-TB.
    pub token_bucket: Option<bucket::Config>,
    /// The controller that listens to delay, in TFRC's place.
    pub beritelli: Option<beritelli::Config>,
}

impl Parameters {
    /// RFC 5348's, with those of RFC 4828 where the kind asks for them.
    fn rfc(kind: Kind) -> Self {
        let small = kind == Kind::Ccid4;
        Self {
            nominal_bytes: small.then_some(1460),
            initial_window: None,
            // RFC 5622 §5: IPv4 and DCCP-Data with 48-bit numbers.
            header_bytes: if small { 36 } else { 0 },
            minimum_interval: if small { Duration::from_millis(10) } else { Duration::ZERO },
            short_intervals: small,
            idle: Idle::Rfc5348,
            receive_rate: ReceiveRate::Rfc5348,
            ns2_timeout: false,
            faster_restart: false,
            oscillation_prevention: true,
            history_discounting: true,
            discount_threshold: 0.25,
            open_interval_joins: false,
            p_floor: 0.0,
            rtt_weight: 0.9,
            root_weight: 0.9,
            timer_granularity: Duration::ZERO,
            credit: Duration::ZERO,
            minimum_timeout: Duration::ZERO,
            loss_intervals: 8,
            first_interval_lasts: true,
            counter_wraps: false,
            event_needs_arrival: false,
            ndupack: 3,
            feedback_per_rtt: 1,
            feedback_on_arrival: false,
            counter_follows_acks: true,
            elapsed_time: true,
            loss_intervals_option: true,
            ask_loss_event_rate: false,
            token_bucket: None,
            beritelli: None,
        }
    }

    /// A profile's values.
    fn of(profile: Profile, kind: Kind) -> Self {
        let rfc = Self::rfc(kind);
        match (profile, kind) {
            (Profile::Rfc, _) => rfc,
            (Profile::Ns2, Kind::Tfrc) => Self {
                nominal_bytes: Some(1000),
                rtt_weight: 0.95,
                root_weight: 0.95,
                discount_threshold: 0.5,
                open_interval_joins: true,
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
                p_floor: 1e-5,
                counter_wraps: true,
                timer_granularity: Duration::from_millis(10),
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
    /// The machine's values under a profile.
    #[must_use]
    pub fn resolve(&self, profile: Profile, kind: Kind) -> Parameters {
        let base = Parameters::of(profile, kind);
        let bytes = |size: Size| u32::try_from(size.as_bytes()).unwrap_or(u32::MAX);
        Parameters {
            nominal_bytes: self.nominal_size.map(bytes).or(base.nominal_bytes),
            initial_window: self.initial_window.or(base.initial_window),
            header_bytes: base.header_bytes,
            minimum_interval: self.minimum_interval.unwrap_or(base.minimum_interval),
            short_intervals: base.short_intervals,
            idle: self.idle.unwrap_or(base.idle),
            receive_rate: self.receive_rate.unwrap_or(base.receive_rate),
            ns2_timeout: base.ns2_timeout,
            faster_restart: self.faster_restart.unwrap_or(base.faster_restart),
            oscillation_prevention: self
                .oscillation_prevention
                .unwrap_or(base.oscillation_prevention),
            history_discounting: self.history_discounting.unwrap_or(base.history_discounting),
            discount_threshold: base.discount_threshold,
            open_interval_joins: base.open_interval_joins,
            p_floor: self.p_floor.unwrap_or(base.p_floor),
            rtt_weight: self.rtt_weight.unwrap_or(base.rtt_weight),
            root_weight: base.root_weight,
            timer_granularity: self.timer_granularity.unwrap_or(base.timer_granularity),
            credit: self.credit.unwrap_or(base.credit),
            minimum_timeout: self.minimum_timeout.unwrap_or(base.minimum_timeout),
            loss_intervals: self.loss_intervals.map_or(base.loss_intervals, |n| n as usize),
            first_interval_lasts: base.first_interval_lasts,
            counter_wraps: base.counter_wraps,
            event_needs_arrival: base.event_needs_arrival,
            ndupack: base.ndupack,
            feedback_per_rtt: self.feedback_per_rtt.unwrap_or(base.feedback_per_rtt),
            feedback_on_arrival: base.feedback_on_arrival,
            counter_follows_acks: self.counter_follows_acks.unwrap_or(base.counter_follows_acks),
            elapsed_time: self.elapsed_time.unwrap_or(base.elapsed_time),
            loss_intervals_option: self.loss_intervals_option.unwrap_or(base.loss_intervals_option),
            ask_loss_event_rate: self.ask_loss_event_rate.unwrap_or(base.ask_loss_event_rate),
            token_bucket: self.token_bucket.clone(),
            beritelli: self.beritelli.clone(),
        }
    }
}
