//! What waits for a link's transmitter: the queue disciplines and their knobs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

/// A queue discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Queue {
    /// First in, first out, dropping what does not fit.
    Droptail(DropTail),
    /// Random early detection (Floyd and Jacobson 1993).
    Red(Red),
    /// Controlled delay (RFC 8289).
    Codel(Codel),
    /// A queue with controlled delay for each flow, served in turns (RFC 8290).
    FqCodel(FqCodel),
    /// Proportional integral controller, enhanced (RFC 8033).
    Pie(Pie),
}

/// Limits of a DropTail queue; the packet in transmission is not counted. At least one is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropTail {
    /// Packets that may wait, 1 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub packets: Option<u32>,
    /// Bytes (of IP packets) that may wait, 1B or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// Time that what waits may take to send, link framing not counted, above zero: with `rate`, a
    /// number of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// Counts as ns-2.35 does: a queue of N `packets` holds N − 1, for its `DropTail::enque` drops
    /// when the queue with the newcomer would be N long.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ns2: bool,
}

/// Random early detection: drops or marks packets with a probability that grows with the average
/// queue (Floyd and Jacobson 1993); `adaptive` moves `max_p` so that the average stays half-way
/// between the thresholds (Floyd, Gummadi and Shenker 2001).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Packets that may wait, 1 or more; in byte mode, so many times `mean_packet`.
    #[schemars(range(min = 1))]
    pub packets: u32,
    /// Average from which on packets are dropped, in packets (in byte mode, of `mean_packet`).
    /// Absent: half of what the link sends in `target_delay`, 5 or more (Floyd et al. 2001 §5.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_threshold: Option<f64>,
    /// Average at which `max_p` is reached. Absent: three times `min_threshold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_threshold: Option<f64>,
    /// Probability of a drop just below `max_threshold`, above 0 and at most 1; where `adaptive`
    /// begins.
    #[serde(default = "Red::default_max_p")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_p: f64,
    /// Weight of a new sample in the average, above 0 and at most 1. Absent: 1 − e^(−1/C) with C the
    /// packets of `mean_packet` that the link sends in a second (Floyd et al. 2001 §5.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: Option<f64>,
    /// Whether the probability rises on to 1 between `max_threshold` and twice that (Floyd 2000)
    /// instead of at once.
    #[serde(default = "yes")]
    pub gentle: bool,
    /// What is averaged and weighed.
    #[serde(default)]
    pub mode: RedMode,
    /// Length of a usual packet: in byte mode the unit of all that is said in packets, and always
    /// the step in which the average of an idle queue decays (ns-2 `mean_pktsize_`).
    #[serde(default = "Red::default_mean_packet")]
    pub mean_packet: Size,
    /// Whether `max_p` adapts, twice a second.
    #[serde(default, skip_serializing_if = "is_false")]
    pub adaptive: bool,
    /// Delay that thresholds left out are computed for, above zero.
    #[serde(default = "Red::default_target_delay")]
    pub target_delay: Duration,
    /// Whether packets of ends that understand ECN are marked instead of dropped, while the average
    /// is not so high that every packet goes (RFC 3168 §7).
    #[serde(default, skip_serializing_if = "is_false")]
    pub ecn: bool,
    /// Counts as ns-2.35's `red.cc` does: the packet with which the average rises beyond
    /// `min_threshold` passes and counts as 1, none is dropped before count · p reaches 1
    /// (`wait_`), nor while fewer than two packets wait.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ns2: bool,
}

/// What RED averages and weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RedMode {
    /// Packets, whatever their length.
    #[default]
    Packets,
    /// Bytes: a packet twice as long is dropped twice as often (ns-2 `queue_in_bytes_`, `bytes_`).
    Bytes,
}

/// Controlled delay: once packets have waited longer than `target` for an `interval`, one is
/// dropped from the head, and others after interval/√2, interval/√3 … until the wait is short again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Codel {
    /// Packets that may wait, 1 or more.
    #[serde(default = "Codel::default_packets")]
    #[schemars(range(min = 1))]
    pub packets: u32,
    /// Wait that is acceptable for longer than an interval, above zero (RFC 8289 §4.3).
    #[serde(default = "Codel::default_target")]
    pub target: Duration,
    /// Time of the order of the longest usual round trip, longer than `target` (RFC 8289 §4.2).
    #[serde(default = "Codel::default_interval")]
    pub interval: Duration,
    /// Whether packets of ends that understand ECN are marked instead of dropped.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ecn: bool,
}

/// Queues with controlled delay, one for each flow by its hash; a deficit round robin serves them,
/// those of new flows first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FqCodel {
    /// Packets that may wait in all queues, 1 or more; beyond that the longest queue loses up to
    /// half its packets, 64 at most (RFC 8290 §5.2.1, §4.1.2).
    #[serde(default = "FqCodel::default_packets")]
    #[schemars(range(min = 1))]
    pub packets: u32,
    /// Queues, 1 or more; flows whose hashes agree share one (RFC 8290 §5.2.4).
    #[serde(default = "FqCodel::default_queues")]
    #[schemars(range(min = 1, max = 65_536))]
    pub queues: u32,
    /// Bytes a queue may send in its turn, 1B or more (RFC 8290 §5.2.3).
    #[serde(default = "FqCodel::default_quantum")]
    pub quantum: Size,
    /// As of CoDel, in each queue.
    #[serde(default = "Codel::default_target")]
    pub target: Duration,
    /// As of CoDel, in each queue.
    #[serde(default = "Codel::default_interval")]
    pub interval: Duration,
    /// Whether packets of ends that understand ECN are marked instead of dropped (RFC 8290 §5.2.6).
    #[serde(default = "yes")]
    pub ecn: bool,
}

/// Drops or marks arrivals with a probability that a controller moves by how far the wait is from
/// its target, and by how fast it grows. The wait is that of the last packet to leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pie {
    /// Packets that may wait, 1 or more.
    #[serde(default = "Codel::default_packets")]
    #[schemars(range(min = 1))]
    pub packets: u32,
    /// Wait to be held, above zero (RFC 8033 §4.1: QDELAY_REF).
    #[serde(default = "Pie::default_target")]
    pub target: Duration,
    /// Time between two moves of the probability, above zero (RFC 8033 §4.2: T_UPDATE).
    #[serde(default = "Pie::default_update")]
    pub update: Duration,
    /// Weight of the distance from the target, per second (RFC 8033 §4.2).
    #[serde(default = "Pie::default_alpha")]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub alpha: f64,
    /// Weight of the growth of the wait, per second (RFC 8033 §4.2).
    #[serde(default = "Pie::default_beta")]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub beta: f64,
    /// Time for which a burst into a quiet queue passes untouched (RFC 8033 §4.4: MAX_BURST).
    #[serde(default = "Pie::default_max_burst")]
    pub max_burst: Duration,
    /// Whether packets of ends that understand ECN are marked instead of dropped.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ecn: bool,
    /// Probability from which on even those are dropped, 0 to 1 (RFC 8033 §5.1: mark_ecnth).
    #[serde(default = "Pie::default_mark_below")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mark_below: f64,
}

impl Red {
    const fn default_max_p() -> f64 {
        0.1
    }
    const fn default_mean_packet() -> Size {
        Size::from_bytes(1000)
    }
    const fn default_target_delay() -> Duration {
        Duration::from_nanos(5_000_000)
    }
}

impl Codel {
    const fn default_packets() -> u32 {
        1000
    }
    const fn default_target() -> Duration {
        Duration::from_nanos(5_000_000)
    }
    const fn default_interval() -> Duration {
        Duration::from_nanos(100_000_000)
    }
}

impl FqCodel {
    const fn default_packets() -> u32 {
        10_240
    }
    const fn default_queues() -> u32 {
        1024
    }
    const fn default_quantum() -> Size {
        Size::from_bytes(1514)
    }
}

impl Pie {
    const fn default_target() -> Duration {
        Duration::from_nanos(15_000_000)
    }
    const fn default_update() -> Duration {
        Duration::from_nanos(15_000_000)
    }
    const fn default_alpha() -> f64 {
        0.125
    }
    const fn default_beta() -> f64 {
        1.25
    }
    const fn default_max_burst() -> Duration {
        Duration::from_nanos(150_000_000)
    }
    const fn default_mark_below() -> f64 {
        0.1
    }
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// In a few words, for pictures and tables.
impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Droptail(limits) => {
                let packets = limits.packets.map(|packets| format!("{packets} packets"));
                let bytes = limits.bytes.map(|bytes| bytes.to_string());
                let time = limits.time.map(|time| time.to_string());
                let limits: Vec<_> = [packets, bytes, time].into_iter().flatten().collect();
                write!(f, "DropTail {}", limits.join(", "))
            }
            Self::Red(red) => {
                let name = if red.adaptive { "Adaptive RED" } else { "RED" };
                write!(f, "{name} {} packets", red.packets)
            }
            Self::Codel(codel) => write!(f, "CoDel {}, {}", codel.target, codel.interval),
            Self::FqCodel(codel) => write!(f, "FQ-CoDel {}, {}", codel.target, codel.interval),
            Self::Pie(pie) => write!(f, "PIE {}", pie.target),
        }
    }
}
