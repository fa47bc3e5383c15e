//! IEEE 802.11 cells: an access point and its stations, which contend for one channel.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::units::{Rate, Size};

use super::Queue;

/// An access point and its stations on one channel, all in range of each other. Between each station and the
/// access point there is one hop per direction, which routes use like a link; stations reach each other through
/// the access point. Channel access is by the distributed coordination function (IEEE 802.11 §10.3): sense the
/// channel, wait for DIFS and a random number of slots, send, await the acknowledgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Node of the access point; created if `nodes` does not list it.
    pub access_point: String,
    /// Stations by node name, 1 to 1024.
    pub stations: IndexMap<String, Station>,
    /// Physical layer of all nodes of the cell.
    pub standard: Standard,
    /// Whether 802.11b frames above 1 Mbit/s have the short preamble of 96 µs instead of 192 µs.
    #[serde(default)]
    pub short_preamble: bool,
    /// Whether 802.11g and 802.11n use slots of 20 µs, as required beside 802.11b stations, instead of
    /// 9 µs. 802.11b slots are always long.
    #[serde(default)]
    pub long_slot: bool,
    /// Rate control of data frames; absent means fixed at the highest rate of the standard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateControl>,
    /// Rates of control frames: an acknowledgement is sent at the highest of these that is not above
    /// its data frame's rate. Empty: 1 and 2 Mbit/s in 802.11b, 6, 12 and 24 Mbit/s in the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub basic_rates: Vec<Rate>,
    /// Frame length, including MAC header and FCS, above which RTS and CTS are used; absent means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rts_threshold: Option<Size>,
    /// Transmissions of a frame, or of its RTS, after which it is dropped (IEEE 802.11: dot11ShortRetryLimit).
    #[serde(default = "Cell::default_short_retry_limit")]
    #[schemars(range(min = 1, max = 255))]
    pub short_retry_limit: u32,
    /// Transmissions of a frame with RTS after which it is dropped (dot11LongRetryLimit).
    #[serde(default = "Cell::default_long_retry_limit")]
    #[schemars(range(min = 1, max = 255))]
    pub long_retry_limit: u32,
    /// Initial contention window: the backoff is drawn from 0 to this many slots. A power of two minus
    /// one; absent means 31 in 802.11b, 15 in the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 32_767))]
    pub cw_min: Option<u32>,
    /// Maximum contention window; the window doubles with each failed transmission.
    #[serde(default = "Cell::default_cw_max")]
    #[schemars(range(min = 0, max = 32_767))]
    pub cw_max: u32,
    /// Queue of the access point, shared by all stations, and settings of each station's own queue
    /// unless the station overrides them.
    pub queue: Queue,
    /// Longest IP packet, at most 2296B: a frame carries 2304 bytes, of which LLC and SNAP take 8.
    #[serde(default = "Cell::default_mtu")]
    pub mtu: Size,
    /// Signal-to-noise ratio in decibels at both ends, in 22 MHz for 802.11b and 20 MHz for the others;
    /// it determines loss together with rate and length. Absent means that only collisions cause loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -20.0, max = 100.0))]
    pub snr_db: Option<f64>,
    /// Whether a collision is received as an erroneous frame, so that all others wait for EIFS after it
    /// (IEEE 802.11 §10.3.2.3.7; Wu et al. 2002). Otherwise no receiver decodes the preambles of frames
    /// that start together, as in ns-3, and the others wait for DIFS.
    #[serde(default = "yes")]
    pub eifs_after_collision: bool,
    /// Additional stations that always have a frame for the access point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contenders: Option<Contenders>,
}

/// Settings of a station.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Queue of the station; absent means a queue like the cell's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Rate control of frames from and to the station; absent means as the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateControl>,
    /// Signal-to-noise ratio in decibels, at the station and of its frames at the access point; absent
    /// means that of the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -20.0, max = 100.0))]
    pub snr_db: Option<f64>,
}

/// Identical stations that always have a frame to send. Their packets belong to no flow: they take time
/// on the channel and end at the access point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contenders {
    /// Number of stations, at most 1024.
    #[schemars(range(min = 1, max = 1024))]
    pub count: u32,
    /// Length of their IP packets, from 1B to the cell's `mtu`.
    #[serde(default = "Cell::default_mtu")]
    pub packet: Size,
    /// Rate control of their frames; absent means as the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateControl>,
    /// Signal-to-noise ratio in decibels; absent means that of the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -20.0, max = 100.0))]
    pub snr_db: Option<f64>,
}

/// A physical layer in the 2.4 GHz band.
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
    /// A fixed rate.
    Fixed(Fixed),
    /// Automatic rate fallback (Kamerman and Monteban 1997).
    Arf(Arf),
    /// After Linux's Minstrel: samples rates at random and uses those with the highest expected throughput.
    Minstrel(Minstrel),
}

/// A fixed rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// One of the standard's rates.
    pub rate: Rate,
}

/// Steps up after consecutive acknowledgements or many frames, and down after consecutive failures; if
/// the first frame after a step up fails, steps back at once. Starts at the highest rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Arf {
    /// Consecutive acknowledgements before a step up, 1 or more.
    #[schemars(range(min = 1))]
    pub up_after: u32,
    /// Consecutive failures before a step down, 1 or more.
    #[schemars(range(min = 1))]
    pub down_after: u32,
    /// Transmissions since the last rate change or failed step up after which a step up is tried in any
    /// case, 1 or more.
    #[schemars(range(min = 1))]
    pub timer: u32,
}

impl Default for Arf {
    fn default() -> Self {
        Self { up_after: 10, down_after: 2, timer: 15 }
    }
}

/// Keeps a moving average of the share of acknowledged frames per rate. A frame is sent first at the rate with
/// the highest expected throughput, then at the second best, the most reliable and the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Minstrel {
    /// Time between updates of the averages, above zero.
    pub update: talkspurt_proto::time::Duration,
    /// Share of frames that sample another rate, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample: f64,
    /// Weight of the old average, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: f64,
}

impl Default for Minstrel {
    fn default() -> Self {
        Self {
            update: talkspurt_proto::time::Duration::from_millis(100),
            sample: 0.1,
            weight: 0.75,
        }
    }
}

impl Cell {
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
    talkspurt_proto::defaults! {
        default_short_retry_limit: u32 = 7;
        default_long_retry_limit: u32 = 4;
        default_cw_max: u32 = 1023;
        default_mtu: Size = Size::from_bytes(1500);
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

const fn yes() -> bool {
    true
}
