//! What a link's medium does to packets beyond delay and independent loss, and how rate, delay and
//! loss change with time.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;
use talkspurt_proto::validate::{ConfigError, ConfigErrors, Validate};

/// Loss in bursts: a chain of two states that takes a step a packet (Gilbert 1960, Elliott 1963; the
/// letters are those of Hasslinger and Hohlfeld 2008). Of all packets p / (p + r) meet the bad state,
/// for 1 / r packets in a row on average; the chain begins in a state drawn with these shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability of going from the good state to the bad one, per packet, above 0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub p: f64,
    /// Probability of going from the bad state to the good one, per packet, above 0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub r: f64,
    /// Probability that a packet survives the bad state; 0 is Gilbert's simple model.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub h: f64,
    /// Probability that a packet survives the good state.
    #[serde(default = "GilbertElliott::default_k")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub k: f64,
}

impl Validate for GilbertElliott {
    fn errors(&self) -> Vec<ConfigError> {
        let mut found = ConfigErrors::default();
        for (key, _) in [("p", self.p), ("r", self.r)].into_iter().filter(|(_, p)| *p == 0.0) {
            let why = "at 0 the chain stays in one state for ever";
            found.add_with_hint(key, why, "without bursts, give `loss`");
        }
        found.0
    }
}

impl GilbertElliott {
    const fn default_k() -> f64 {
        1.0
    }
}

/// From an instant on, other conditions; what is absent stays as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When, within the run.
    pub at: Duration,
    /// Bits the transmitter sends per second from then on; a packet in transmission goes on at the new
    /// rate. 0bit/s lets packets wait, until a later step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay of packets whose transmission ends from then on, at most 1h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Probability that a packet whose transmission ends from then on is lost on the medium, 0 to 1;
    /// takes the place of `loss` or `gilbert_elliott`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: Option<f64>,
}

/// Conditions read from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Trace {
    /// A trace of mahimahi (Netravali et al. 2015): each line is a time in milliseconds, never less
    /// than the one before, at which 1500 bytes (link framing included) may leave; what no packet in
    /// the queue needs of them is lost. It begins again when its last time is reached. `rate` is then
    /// only nominal, for tables and figures.
    Mahimahi(TraceFile),
    /// Comma-separated: the first line names the columns, `time` and any of `rate`, `delay` and
    /// `loss`; each further line is a step (see `steps`) with quantities as in a scenario, and an
    /// empty cell leaves the value as it was. Empty lines and lines that begin with `#` are passed
    /// over.
    Csv(TraceFile),
}

/// A satellite in the middle of a link. What it adds to `delay` is computed: light from a station to
/// the satellite and down to another that sees it at the same elevation, both on a sphere of the
/// Earth's equatorial radius (WGS 84).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Orbit {
    /// Height of the satellites above ground in kilometres: 35786 is geostationary.
    #[schemars(range(min = 100.0, max = 500_000.0))]
    pub altitude_km: f64,
    /// Angles above the horizon at which the satellites stand, in degrees: the first carries the link
    /// at the start, and each hands it over to the next, the last to the first.
    #[schemars(length(min = 1), inner(range(min = 0.0, max = 90.0)))]
    pub elevations: Vec<f64>,
    /// Time from one hand-over to the next, 1ms or more; the first is as long after the start. Absent
    /// means that there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Duration>,
    /// Probability that a packet is lost in the `gap` after a hand-over, in place of `loss`, 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gap_loss: f64,
    /// How long a hand-over disturbs; shorter than `handover`.
    #[serde(default = "Orbit::default_gap")]
    pub gap: Duration,
}

impl Orbit {
    const fn default_gap() -> Duration {
        Duration::from_millis(50)
    }
}

/// A file of conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// The file; relative to the scenario's folder.
    pub file: PathBuf,
}

impl Trace {
    /// Its path.
    #[must_use]
    pub const fn file(&self) -> &PathBuf {
        match self {
            Self::Mahimahi(trace) | Self::Csv(trace) => &trace.file,
        }
    }
    /// Its path, mutable.
    pub const fn file_mut(&mut self) -> &mut PathBuf {
        match self {
            Self::Mahimahi(trace) | Self::Csv(trace) => &mut trace.file,
        }
    }
}
