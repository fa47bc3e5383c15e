//! Parameters of random sources: distributions of lengths, Poisson packets, short transfers, and the chain of a
//! two-way conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

/// Distribution of lengths or sizes; all have the configured mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Exponential (memoryless).
    #[default]
    Exponential,
    /// Heavy-tailed: P(X > x) = (k/x)^shape for x ≥ k, where k = mean · (shape − 1) / shape (as in ns-2's
    /// Application/Traffic/Pareto).
    Pareto {
        /// Tail index, above 1, since at 1 and below there is no mean. Up to 2 the variance is infinite, and
        /// the sum of many such sources is self-similar with H = (3 − shape) / 2 (Willinger et al. 1997).
        shape: f64,
    },
    /// Normally distributed logarithm: most values are small, and a few many times the mean.
    Lognormal {
        /// Standard deviation of the natural logarithm, above 0 and at most 5.
        sigma: f64,
    },
    /// All equal to the mean.
    Constant,
}

impl Distribution {
    /// Draws a value.
    pub(crate) fn draw(self, mean: f64, rng: &mut Rng) -> f64 {
        match self {
            Self::Exponential => rng.exponential_f64(mean),
            Self::Pareto { shape } => rng.pareto(mean, shape),
            Self::Lognormal { sigma } => rng.lognormal(mean, sigma),
            Self::Constant => mean,
        }
    }

    /// Draws a duration.
    pub(crate) fn span(self, mean: Duration, rng: &mut Rng) -> Duration {
        Duration::from_secs_f64(self.draw(mean.as_secs_f64(), rng))
    }
}

/// Packets at the instants of a Poisson process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Mean payload rate.
    pub rate: Rate,
    /// Payload per packet.
    pub packet: Size,
}

/// Greedy bursts and pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// Mean length of a burst; the first begins with the flow.
    pub on: Duration,
    /// Mean pause.
    pub off: Duration,
    /// Distribution of both lengths.
    #[serde(default)]
    pub spread: Distribution,
}

/// Short transfers in sequence over one connection, as fast as it permits, with think times between them:
/// browser traffic from one server with a persistent connection (RFC 9112 §9.3). Only the server-to-client
/// direction is modelled, without requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Web {
    /// Mean size of a transfer (12 kB: Barford and Crovella 1998 have a Pareto tail of index 1.1
    /// to 1.5 and sizes of this order).
    pub size: Size,
    /// Distribution of sizes.
    pub sizes: Distribution,
    /// Mean time from handing a transfer's last byte to the transport until the next transfer.
    pub think: Duration,
    /// Distribution of these times.
    pub thinks: Distribution,
    /// Payload per packet over a message-based transport; absent means 1000 B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
}

impl Default for Web {
    fn default() -> Self {
        Self {
            size: Size::from_bytes(12_000),
            sizes: Distribution::Pareto { shape: 1.2 },
            think: Duration::from_secs(1),
            thinks: Distribution::default(),
            packet: None,
        }
    }
}

/// A two-way conversation: the chain of ITU-T P.59 over four states (one talks, the other talks, both,
/// neither), all with exponential lengths. Single talk is followed by double talk or mutual silence; both of
/// these are followed, with equal chances, by single talk of either side. One chain drives both directions of a
/// flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conversation {
    /// Mean length of single talk (ITU-T P.59: 854 ms).
    pub single_talk: Duration,
    /// Mean double talk (ITU-T P.59: 226 ms).
    pub double_talk: Duration,
    /// Mean mutual silence (ITU-T P.59: 456 ms).
    pub mutual_silence: Duration,
    /// Probability that single talk is followed by double talk instead of mutual silence (ITU-T P.59: 0.4).
    pub interruption: f64,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            single_talk: Duration::from_millis(854),
            double_talk: Duration::from_millis(226),
            mutual_silence: Duration::from_millis(456),
            interruption: 0.4,
        }
    }
}
