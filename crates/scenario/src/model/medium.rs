//! Effects of a link's medium beyond delay and independent loss, and changes of rate, delay and loss over time.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;
use talkspurt_proto::validate::{ConfigError, ConfigErrors, Validate};

/// Burst loss: a two-state Markov chain that advances once per packet (Gilbert 1960, Elliott 1963;
/// notation of Hasslinger and Hohlfeld 2008). A share p / (p + r) of all packets meets the bad state,
/// in runs of 1 / r packets on average. The initial state is drawn with these shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability of a transition from the good to the bad state, per packet, above 0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub p: f64,
    /// Probability of a transition from the bad to the good state, per packet, above 0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub r: f64,
    /// Probability that a packet survives in the bad state; 0 is Gilbert's simple model.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub h: f64,
    /// Probability that a packet survives in the good state.
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

/// New conditions from an instant on; absent fields keep their value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Time, within the run.
    pub at: Duration,
    /// New transmission rate; a packet in transmission continues at the new rate. With 0bit/s packets
    /// wait until a later step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay of packets whose transmission ends from then on, at most 1h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Probability that a packet whose transmission ends from then on is lost on the medium, 0 to 1;
    /// replaces `loss` or `gilbert_elliott`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss: Option<f64>,
}

/// Link conditions read from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Trace {
    /// A mahimahi trace (Netravali et al. 2015): each line is a time in milliseconds, not less than the
    /// previous one, at which 1500 bytes (link framing included) may leave; bytes that no queued packet uses
    /// are lost. The trace repeats after its last time. `rate` is then only nominal, for tables and figures.
    Mahimahi(TraceFile),
    /// A table, with commas, semicolons or tabs between the cells: the first line names the columns, `time`
    /// and any of `rate`, `delay` and `loss`; each further line is a step (see `steps`) with quantities as in
    /// a scenario. A name can end with the unit of plain numbers: `time_s`, `time_ms`, `time_us`, `rate_bps`,
    /// `rate_kbps`, `rate_Mbps`, `rate_Gbps`, `delay_s`, `delay_ms`, `delay_us`, `loss_percent`. An empty cell
    /// leaves the value unchanged. Lines with the same time are spread evenly up to the next time. Other
    /// columns are not read, as a note says. Empty lines and lines that begin with `#` are ignored.
    Csv(TraceFile),
}

/// A satellite in the middle of a link. The delay added to `delay` is that of light from a station to
/// the satellite and down to another that sees it at the same elevation, both on a sphere of the
/// Earth's equatorial radius (WGS 84).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Orbit {
    /// Altitude of the satellites above ground in kilometres; 35786 is geostationary.
    #[schemars(range(min = 100.0, max = 500_000.0))]
    pub altitude_km: f64,
    /// Elevations of the satellites above the horizon, in degrees. The first satellite carries the link
    /// at the start; each hands over to the next, and the last to the first.
    #[schemars(length(min = 1), inner(range(min = 0.0, max = 90.0)))]
    pub elevations: Vec<f64>,
    /// Time between hand-overs, 1ms or more; the first is this long after the start. Absent means no
    /// hand-overs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Duration>,
    /// Probability of packet loss in the `gap` after a hand-over, instead of `loss`, 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gap_loss: f64,
    /// Duration of the disturbance after a hand-over; shorter than `handover`.
    #[serde(default = "Orbit::default_gap")]
    pub gap: Duration,
}

impl Orbit {
    const fn default_gap() -> Duration {
        Duration::from_millis(50)
    }
}

/// A trace file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// Path of the file, relative to the scenario's folder.
    pub file: PathBuf,
    /// Whether times count from the first one in the file, as if that were 0, instead of from the start of the
    /// run. For times since 1970, or since a device was switched on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_first: bool,
}

impl Trace {
    /// Its file.
    #[must_use]
    pub const fn file(&self) -> &TraceFile {
        match self {
            Self::Mahimahi(trace) | Self::Csv(trace) => trace,
        }
    }
    /// Its file, mutable.
    pub const fn file_mut(&mut self) -> &mut TraceFile {
        match self {
            Self::Mahimahi(trace) | Self::Csv(trace) => trace,
        }
    }
}
