//! Parameters of what is drawn: how lengths spread about their mean, Poisson packets, short transfers,
//! and the chain of a two-way conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::rate::Rung;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};
use talkspurt_proto::validate::Validate;

use super::unit_of;
use crate::source::bulk::Bulk;
use crate::source::{Material, Paced, Setting, Source, SourceConfig, one_rung};

/// How drawn lengths or sizes spread about their mean, which is kept whatever the spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Memoryless.
    #[default]
    Exponential,
    /// Heavy-tailed: P(X > x) = (k/x)^shape for x ≥ k, where k = mean · (shape − 1) / shape
    /// (ns-2's Application/Traffic/Pareto has the same).
    Pareto {
        /// Tail index, above 1: at 1 and below there is no mean. Up to 2 the variance is infinite,
        /// and many such sources together are self-similar with H = (3 − shape) / 2 (Willinger et
        /// al. 1997).
        shape: f64,
    },
    /// The logarithm is normal: most are small, and a few many times the mean.
    Lognormal {
        /// Standard deviation of the natural logarithm, above 0 and at most 5.
        sigma: f64,
    },
    /// All equal to the mean.
    Constant,
}

impl Distribution {
    /// One draw.
    pub(crate) fn draw(self, mean: f64, rng: &mut Rng) -> f64 {
        match self {
            Self::Exponential => rng.exponential_f64(mean),
            Self::Pareto { shape } => rng.pareto(mean, shape),
            Self::Lognormal { sigma } => rng.lognormal(mean, sigma),
            Self::Constant => mean,
        }
    }

    /// One drawn length of time.
    pub(crate) fn span(self, mean: Duration, rng: &mut Rng) -> Duration {
        Duration::from_secs_f64(self.draw(mean.as_secs_f64(), rng))
    }
}

/// Packets at the instants of a Poisson process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Mean rate of payload.
    pub rate: Rate,
    /// Payload of one packet.
    pub packet: Size,
}

/// Bursts of greed and pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// Mean time for which the source is greedy; the first such time begins with the flow.
    pub on: Duration,
    /// Mean pause.
    pub off: Duration,
    /// How both spread about their means.
    #[serde(default)]
    pub spread: Distribution,
}

/// Short transfers one after another over one connection, as fast as it takes them, with time to
/// think between: what a browser asks of one server that keeps the connection (RFC 9112 §9.3).
/// Only what goes from the server to the client is there, no requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Mean size of a transfer (12 kB: Barford and Crovella 1998 have a Pareto tail of index 1.1
    /// to 1.5 and sizes of this order).
    #[serde(default = "Web::default_size")]
    pub size: Size,
    /// How sizes spread about it.
    #[serde(default = "Web::default_sizes")]
    pub sizes: Distribution,
    /// Mean time from a transfer's last byte going into the transport to the next transfer.
    #[serde(default = "Web::default_think")]
    pub think: Duration,
    /// How these times spread about it.
    #[serde(default)]
    pub thinks: Distribution,
    /// Payload of one packet over a transport that keeps messages apart; absent means 1000 B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
}

impl Web {
    const fn default_size() -> Size {
        Size::from_bytes(12_000)
    }
    const fn default_sizes() -> Distribution {
        Distribution::Pareto { shape: 1.2 }
    }
    const fn default_think() -> Duration {
        Duration::from_secs(1)
    }
}

/// Two people who take turns: the chain of ITU-T P.59 over four states (one talks, the other talks,
/// both, neither), the lengths of all states being exponential. Where one talks, the next state is
/// double talk or mutual silence; from both of these it is, with equal chances, one of the two
/// alone. One chain drives both directions of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conversation {
    /// Mean time for which one talks alone (ITU-T P.59: 854 ms).
    pub single_talk: Duration,
    /// Mean double talk (ITU-T P.59: 226 ms).
    pub double_talk: Duration,
    /// Mean mutual silence (ITU-T P.59: 456 ms).
    pub mutual_silence: Duration,
    /// Probability that double talk and not mutual silence follows where one talked alone
    /// (ITU-T P.59: 0.4).
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

impl Validate for Poisson {}

impl SourceConfig for Poisson {
    fn build(&self, _: &Material, _: u32, setting: Setting) -> Source {
        let Setting { rng, start, stop, .. } = setting;
        Source::Paced(Box::new(Paced::poisson(self, rng, start, stop)))
    }
    fn interval(&self) -> Option<Duration> {
        self.rate.time_for(self.packet.as_bytes())
    }
    fn rungs(&self) -> Vec<Rung> {
        one_rung(self.packet, self.interval())
    }
}

impl Validate for Web {}

impl SourceConfig for Web {
    fn build(&self, _: &Material, unit_bytes: u32, setting: Setting) -> Source {
        let Setting { rng, start, stop, .. } = setting;
        Source::Bulk(Bulk::web(self, unit_of(self.packet, unit_bytes), rng, start, stop))
    }
}
