//! Cells of IEEE 802.11: an access point, its stations and the one channel they contend for.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::units::{Rate, Size};

use super::Queue;

/// An access point and its stations on one channel, each heard by all. Between each station and the
/// access point there is a hop either way, which routes may take like a link; stations reach each
/// other through the access point. Who sends when is settled by the distributed coordination
/// function (IEEE 802.11 §10.3): listen, wait for DIFS and a random number of slots, send, await the
/// acknowledgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Node that is the access point; it comes into being by being named.
    pub access_point: String,
    /// Stations by the names of their nodes, at least one; 1024 at most.
    pub stations: IndexMap<String, Station>,
    /// Which of the standard's physical layers all use.
    pub standard: Standard,
    /// Whether frames of 802.11b above 1 Mbit/s have the short preamble of 96 µs instead of 192 µs.
    #[serde(default)]
    pub short_preamble: bool,
    /// Whether 802.11g and 802.11n keep slots of 20 µs, as they must beside stations of 802.11b;
    /// else slots last 9 µs. Those of 802.11b are always long.
    #[serde(default)]
    pub long_slot: bool,
    /// How fast data frames are sent; absent means at the highest rate of the standard, fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateControl>,
    /// Rates of control frames: an acknowledgement is sent at the highest of these that is not above
    /// its data frame's rate. Empty: 1 and 2 Mbit/s in 802.11b, 6, 12 and 24 Mbit/s in the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub basic_rates: Vec<Rate>,
    /// Length of a frame, MAC header and check included, above which it is announced by RTS and CTS;
    /// absent: none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rts_threshold: Option<Size>,
    /// Transmissions of a frame, or of the RTS before it, after which it is dropped (IEEE 802.11:
    /// dot11ShortRetryLimit).
    #[serde(default = "Cell::default_short_retry_limit")]
    #[schemars(range(min = 1, max = 255))]
    pub short_retry_limit: u32,
    /// Transmissions of a frame announced by RTS after which it is dropped (dot11LongRetryLimit).
    #[serde(default = "Cell::default_long_retry_limit")]
    #[schemars(range(min = 1, max = 255))]
    pub long_retry_limit: u32,
    /// Slots of the first contention window: a number from 0 to this is drawn. A power of two less
    /// one; absent: 31 in 802.11b, 15 in the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 32_767))]
    pub cw_min: Option<u32>,
    /// Where the window stops growing; it doubles with each transmission that fails.
    #[serde(default = "Cell::default_cw_max")]
    #[schemars(range(min = 0, max = 32_767))]
    pub cw_max: u32,
    /// What waits at the access point, one queue for all stations, and in a queue of its own at each
    /// station that names no other.
    pub queue: Queue,
    /// Longest IP packet, 2296B at most: a frame carries 2304 bytes, of which LLC and SNAP take 8.
    #[serde(default = "Cell::default_mtu")]
    pub mtu: Size,
    /// Ratio of signal to noise in decibels, in 22 MHz for 802.11b and 20 MHz for the others, at both
    /// ends; what is lost follows from it, the rate and the length. Absent: only collisions lose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -20.0, max = 100.0))]
    pub snr_db: Option<f64>,
    /// Whether a collision is heard as a frame in error, so that all others wait for EIFS after it
    /// (IEEE 802.11 §10.3.2.3.7; Wu et al. 2002). If not, no receiver makes out the preambles of frames
    /// that start together, as in ns-3, and the others wait for DIFS.
    #[serde(default = "yes")]
    pub eifs_after_collision: bool,
    /// Further stations that have always a frame for the access point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contenders: Option<Contenders>,
}

/// What a station has of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// What waits at it; absent means a queue like the cell's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// How fast it sends, and the access point to it; absent means as the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateControl>,
    /// Ratio of signal to noise in decibels, at it and of its frames at the access point; absent
    /// means that of the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -20.0, max = 100.0))]
    pub snr_db: Option<f64>,
}

/// Stations that have always a frame to send, all alike. What they carry is nobody's flow: it takes
/// time on the channel and ends at the access point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contenders {
    /// How many; 1024 at most.
    #[schemars(range(min = 1, max = 1024))]
    pub count: u32,
    /// Length of their IP packets, 1B or more and not above the cell's `mtu`.
    #[serde(default = "Cell::default_mtu")]
    pub packet: Size,
    /// How fast they send; absent means as the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateControl>,
    /// Ratio of signal to noise in decibels; absent means that of the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -20.0, max = 100.0))]
    pub snr_db: Option<f64>,
}

/// A physical layer in the band at 2.4 GHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Standard {
    /// HR/DSSS: 1, 2, 5.5 and 11 Mbit/s (IEEE 802.11 §16).
    #[serde(rename = "802.11b")]
    B,
    /// ERP-OFDM: 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s (IEEE 802.11 §18).
    #[serde(rename = "802.11g")]
    G,
    /// HT, mixed format, 20 MHz, one stream, guard interval 800 ns: 6.5, 13, 19.5, 26, 39, 52, 58.5
    /// and 65 Mbit/s (IEEE 802.11 §19). QoS data frames, one at a time.
    #[serde(rename = "802.11n")]
    N,
}

/// How the rate of data frames is chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RateControl {
    /// One rate for all.
    Fixed(Fixed),
    /// Automatic rate fallback (Kamerman and Monteban 1997).
    Arf(Arf),
    /// After Linux's Minstrel: tries rates at random now and then, and uses those that promise most.
    Minstrel(Minstrel),
}

/// One rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// One of the standard's.
    pub rate: Rate,
}

/// Up after some acknowledgements in a row or many frames, down after failures in a row; if the first
/// frame after a step up fails, back at once. Starts at the highest rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arf {
    /// Acknowledgements in a row for a step up, 1 or more.
    #[serde(default = "Arf::default_up_after")]
    #[schemars(range(min = 1))]
    pub up_after: u32,
    /// Failures in a row for a step down, 1 or more.
    #[serde(default = "Arf::default_down_after")]
    #[schemars(range(min = 1))]
    pub down_after: u32,
    /// Transmissions since the last change of rate, or failure to step up, after which a step up is
    /// tried in any case, 1 or more.
    #[serde(default = "Arf::default_timer")]
    #[schemars(range(min = 1))]
    pub timer: u32,
}

/// Per rate a moving average of the share of frames acknowledged; a frame's transmissions go first at
/// the rate of most expected throughput, then the second best, then the surest, then the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Minstrel {
    /// Time between two looks at the averages, above zero.
    #[serde(default = "Minstrel::default_update")]
    pub update: talkspurt_proto::time::Duration,
    /// Share of frames that try another rate, 0 to 1.
    #[serde(default = "Minstrel::default_sample")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample: f64,
    /// Weight of the old average, 0 to 1.
    #[serde(default = "Minstrel::default_weight")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: f64,
}

impl Cell {
    /// A cell without stations, with defaults for all optional fields; its access point is `ap`.
    #[must_use]
    pub fn plain(standard: Standard, queue: Queue) -> Self {
        Self {
            access_point: "ap".to_owned(),
            stations: IndexMap::new(),
            standard,
            short_preamble: false,
            long_slot: false,
            rate: None,
            basic_rates: Vec::new(),
            rts_threshold: None,
            short_retry_limit: Self::default_short_retry_limit(),
            long_retry_limit: Self::default_long_retry_limit(),
            cw_min: None,
            cw_max: Self::default_cw_max(),
            queue,
            mtu: Self::default_mtu(),
            snr_db: None,
            eifs_after_collision: true,
            contenders: None,
        }
    }
    /// The first contention window.
    #[must_use]
    pub fn first_window(&self) -> u32 {
        self.cw_min.unwrap_or(if self.standard == Standard::B { 31 } else { 15 })
    }
    /// Rates of control frames, in ascending order.
    #[must_use]
    pub fn control_rates(&self) -> Vec<Rate> {
        let mut rates = self.basic_rates.clone();
        if rates.is_empty() {
            let usual: &[u64] = if self.standard == Standard::B { &[1, 2] } else { &[6, 12, 24] };
            rates = usual.iter().map(|rate| Rate::from_bps(rate * 1_000_000)).collect();
        }
        rates.sort_unstable();
        rates
    }
    /// The default rate selection of the cell's data frames.
    #[must_use]
    pub fn usual_rate(&self) -> RateControl {
        self.rate.clone().unwrap_or(RateControl::Fixed(Fixed { rate: self.highest_rate() }))
    }
    /// The highest rate of the standard.
    #[must_use]
    pub fn highest_rate(&self) -> Rate {
        Rate::from_bps(*self.standard.rates().last().expect("a standard has rates"))
    }
    const fn default_short_retry_limit() -> u32 {
        7
    }
    const fn default_long_retry_limit() -> u32 {
        4
    }
    const fn default_cw_max() -> u32 {
        1023
    }
    const fn default_mtu() -> Size {
        Size::from_bytes(1500)
    }
}

impl Standard {
    /// Rates of data frames in bit/s, in ascending order.
    #[must_use]
    pub const fn rates(self) -> &'static [u64] {
        const M: u64 = 1_000_000;
        match self {
            Self::B => &[M, 2 * M, 5_500_000, 11 * M],
            Self::G => &[6 * M, 9 * M, 12 * M, 18 * M, 24 * M, 36 * M, 48 * M, 54 * M],
            Self::N => &[6_500_000, 13 * M, 19_500_000, 26 * M, 39 * M, 52 * M, 58_500_000, 65 * M],
        }
    }
    /// Rates that control frames may have in bit/s, in ascending order.
    #[must_use]
    pub const fn control_rates(self) -> &'static [u64] {
        match self {
            Self::B => Self::B.rates(),
            Self::G | Self::N => Self::G.rates(),
        }
    }
    /// Its name in a scenario.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::B => "802.11b",
            Self::G => "802.11g",
            Self::N => "802.11n",
        }
    }
}

impl Arf {
    const fn default_up_after() -> u32 {
        10
    }
    const fn default_down_after() -> u32 {
        2
    }
    const fn default_timer() -> u32 {
        15
    }
}

impl Minstrel {
    const fn default_update() -> talkspurt_proto::time::Duration {
        talkspurt_proto::time::Duration::from_millis(100)
    }
    const fn default_sample() -> f64 {
        0.1
    }
    const fn default_weight() -> f64 {
        0.75
    }
}

const fn yes() -> bool {
    true
}
