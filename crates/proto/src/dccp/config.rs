//! Parameters of a DCCP connection, the same at both ends. Absent ones have the profile's value, which
//! is decided only in [`Config`]'s accessors.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::service::Service;
use super::{Dccp, KEPT_BYTES};
use super::{ccid2, seqno};
use crate::packet::IpVersion;
use crate::profile::Profile;
use crate::rate;
use crate::time::Duration;
use crate::transport::{Setup, Side, TransportConfig};
use crate::units::Size;

/// A Congestion Control Identifier (RFC 4340 §10), written as its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
#[repr(u8)]
pub enum Ccid {
    /// TCP-like (RFC 4341).
    Two = 2,
    /// TFRC (RFC 4342).
    Three = 3,
    /// TFRC for small packets (RFC 5622).
    Four = 4,
}

/// This number is not a supported CCID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("CCID {0} is not known: 2, 3 and 4 are")]
pub struct UnknownCcid(u8);

impl TryFrom<u8> for Ccid {
    type Error = UnknownCcid;
    fn try_from(number: u8) -> Result<Self, UnknownCcid> {
        match number {
            2 => Ok(Self::Two),
            3 => Ok(Self::Three),
            4 => Ok(Self::Four),
            _ => Err(UnknownCcid(number)),
        }
    }
}
impl From<Ccid> for u8 {
    fn from(ccid: Ccid) -> Self {
        ccid as Self
    }
}
impl Ccid {
    /// True for the CCIDs of the TFRC family.
    #[must_use]
    pub const fn is_rate_based(self) -> bool {
        matches!(self, Self::Three | Self::Four)
    }
}
impl JsonSchema for Ccid {
    fn schema_name() -> Cow<'static, str> {
        "Ccid".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Congestion Control Identifier: 2 (RFC 4341), 3 (RFC 4342) or 4 (RFC 5622).",
            "enum": [2, 3, 4],
        })
    }
}

/// Parameters of both ends of a DCCP connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Congestion control of data sent by the opening side: 2, 3 or 4; there is no default.
    pub ccid: Ccid,
    /// Congestion control of data sent by the answering side; absent: the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ccid_back: Option<Ccid>,
    /// Profile that provides absent parameters: `rfc`, `ns2` or `linux`.
    #[serde(default)]
    pub profile: Profile,
    /// Service Code of the connection (RFC 5595); the default is an RTP audio session (RFC 5762 §5.2).
    #[serde(default = "Config::default_service")]
    pub service: Service,
    /// Initial Sequence Window in packets, 32 or more (RFC 4340 §7.5.2). Absent: 100; under `ns2` the
    /// maximum, since ns-2.35 accepts every sequence number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_window: Option<u64>,
    /// The Sequence Windows of both ends grow to five times the packets per round trip, as RFC 4340 §7.5.2
    /// recommends. Absent: true, but false under `ns2` and where `sequence_window` is given. (In Linux the
    /// window follows what CCID 2 sends, also down to 32, and the Ack Ratio follows the other end's.)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_window_follows: Option<bool>,
    /// Sequence numbers of 24 bits on Data, Ack and `DataAck` if both sides agree (RFC 4340 §7.6).
    #[serde(default)]
    pub allow_short_seqnos: bool,
    /// ECN: data packets are sent ECT(0) and marks are read (RFC 4340 §12). Absent: true; under `linux` false.
    /// ns-2's agents use it (`use_ecn_local_`, `use_ecn_remote_`: 1), and its RED marks their packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Checksum Coverage of data packets, up to 15 (RFC 4340 §9.2): 0 covers everything, n the first
    /// 4(n − 1) bytes of application data.
    #[serde(default)]
    pub checksum_coverage: u8,
    /// Minimum Checksum Coverage accepted (RFC 4340 §9.2.1); 0 requires full coverage.
    #[serde(default)]
    pub minimum_checksum_coverage: u8,
    /// A CRC-32c of the application data on every data packet (RFC 4340 §9.3).
    #[serde(default)]
    pub data_checksum: bool,
    /// NDP Count on packets that follow non-data packets (RFC 4340 §7.7). Absent: true with CCID 3 and
    /// 4, whose receivers need it to distinguish lost data from lost acknowledgements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_ndp_count: Option<bool>,
    /// The sender reports its round-trip time to the receiver (RFC 6323), with CCID 3 and 4.
    #[serde(default)]
    pub send_rtt_estimate: bool,
    /// Ack Vectors with CCID 3 and 4 too (RFC 4342 §8); CCID 2 always uses them.
    #[serde(default)]
    pub ack_vector: bool,
    /// The answering side keeps no state until the client has echoed an Init Cookie (RFC 4340 §8.1.4).
    #[serde(default)]
    pub init_cookie: bool,
    /// The answering side sends DCCP-Listen packets to open middleboxes (RFC 5596).
    #[serde(default)]
    pub listen_packets: bool,
    /// The answering side holds TIMEWAIT when it closes first, by sending Close instead of CloseReq
    /// (RFC 4340 §8.3).
    #[serde(default)]
    pub server_timewait: bool,
    /// Maximum segment lifetime; TIMEWAIT lasts twice as long (RFC 4340 §3.4 says 2 min).
    #[serde(default = "Config::default_msl")]
    pub msl: Duration,
    /// Initial retransmission timeout of a Request (RFC 4340 §8.1.1: about 1 s); it doubles each time.
    #[serde(default = "Config::default_request_timeout")]
    pub request_timeout: Duration,
    /// Maximum retransmission timeout of any packet (RFC 4340 §8.1.1, §8.3, §6.6.3: 64 s).
    #[serde(default = "Config::default_max_timeout")]
    pub max_timeout: Duration,
    /// Time after which an unanswered Request is abandoned (RFC 4340 §8.1.1 suggests 3 min).
    #[serde(default = "Config::default_give_up")]
    pub give_up: Duration,
    /// Initial estimate of the path MTU; lowered by Packet Too Big (RFC 4340 §14).
    #[serde(default = "Config::default_mtu")]
    pub mtu: Size,
    /// Parameters of CCID 2.
    #[serde(default)]
    pub window: ccid2::Config,
    /// Parameters of CCID 3 and 4.
    #[serde(default)]
    pub rate: rate::Config,
}

impl Config {
    crate::defaults! {
        default_service: Service = Service::RTP_AUDIO;
        default_msl: Duration = Duration::from_secs(120);
        default_request_timeout: Duration = Duration::from_secs(1);
        default_max_timeout: Duration = Duration::from_secs(64);
        default_give_up: Duration = Duration::from_secs(180);
        default_mtu: Size = Size::from_bytes(1500);
    }

    /// The defaults with this CCID in both directions.
    #[must_use]
    pub fn new(ccid: Ccid) -> Self {
        Self {
            ccid,
            ccid_back: None,
            profile: Profile::Rfc,
            service: Self::default_service(),
            sequence_window: None,
            sequence_window_follows: None,
            allow_short_seqnos: false,
            ecn: None,
            checksum_coverage: 0,
            minimum_checksum_coverage: 0,
            data_checksum: false,
            send_ndp_count: None,
            send_rtt_estimate: false,
            ack_vector: false,
            init_cookie: false,
            listen_packets: false,
            server_timewait: false,
            msl: Self::default_msl(),
            request_timeout: Self::default_request_timeout(),
            max_timeout: Self::default_max_timeout(),
            give_up: Self::default_give_up(),
            mtu: Self::default_mtu(),
            window: ccid2::Config::default(),
            rate: rate::Config::default(),
        }
    }

    /// The CCID of what one side sends.
    #[must_use]
    pub fn ccid_of(&self, server: bool) -> Ccid {
        if server { self.ccid_back.unwrap_or(self.ccid) } else { self.ccid }
    }
    /// Whether ECN is used.
    #[must_use]
    pub fn uses_ecn(&self) -> bool {
        self.ecn.unwrap_or(match self.profile {
            Profile::Rfc | Profile::Ns2 => true,
            Profile::Linux => false,
        })
    }
    /// Whether packets of a half-connection under this CCID carry NDP Counts.
    #[must_use]
    pub fn counts_non_data(&self, ccid: Ccid) -> bool {
        self.send_ndp_count.unwrap_or(ccid.is_rate_based())
    }
    /// The initial Sequence Window.
    #[must_use]
    pub fn initial_window(&self) -> u64 {
        let open = match self.profile {
            Profile::Rfc | Profile::Linux => seqno::DEFAULT_WINDOW,
            Profile::Ns2 => self.most_window(),
        };
        self.sequence_window.unwrap_or(open).clamp(seqno::MIN_WINDOW, self.most_window())
    }
    /// The largest Sequence Window to request: with short numbers a quarter of their space, so that
    /// §7.6 extends each correctly.
    #[must_use]
    pub fn most_window(&self) -> u64 {
        if self.allow_short_seqnos { 1 << 22 } else { seqno::GREATEST_WINDOW }
    }
    /// Whether the Sequence Window follows the packets of a round trip.
    #[must_use]
    pub fn window_follows(&self) -> bool {
        let fixed = self.sequence_window.is_some() || self.profile == Profile::Ns2;
        self.sequence_window_follows.unwrap_or(!fixed)
    }
    /// Whether Changes and Confirms of Ack Ratio wait for a packet that leaves anyway (RFC 4340 §6.6.1: "may
    /// attach the option to a packet it would have generated anyway"), as in ns-2.
    #[must_use]
    pub fn ack_ratio_waits(&self) -> bool {
        self.profile == Profile::Ns2
    }
}

impl TransportConfig for Config {
    type Endpoint = Dccp;

    fn build(&self, setup: Setup<'_>) -> Dccp {
        let dccp = match setup.side {
            Side::Opens => Dccp::client(self, setup.rng),
            Side::Answers => Dccp::listener(self, setup.rng),
        };
        let dccp = dccp.over(setup.version).with_ladder(setup.ladder);
        if setup.any_rate { dccp.reporting_rate() } else { dccp }
    }
    /// `dccp-ccid2`, or `dccp-ccid2/3` where the directions differ; `-tb` with TFRC-TB.
    fn name(&self) -> String {
        let ccid = |ccid: Ccid| {
            let bucket = ccid != Ccid::Two && self.rate.token_bucket.is_some();
            format!("{}{}", u8::from(ccid), if bucket { "-tb" } else { "" })
        };
        match (self.ccid_of(false), self.ccid_of(true)) {
            (one, other) if one == other => format!("dccp-ccid{}", ccid(one)),
            (one, other) => format!("dccp-ccid{}/{}", ccid(one), ccid(other)),
        }
    }
    fn protocol(&self) -> &'static str {
        "DCCP"
    }
    /// 16 of a DCCP-Data packet, 12 with short sequence numbers.
    fn header_bytes(&self) -> u32 {
        if self.allow_short_seqnos { 12 } else { 16 }
    }
    fn max_header_bytes(&self) -> u32 {
        KEPT_BYTES
    }
    fn has_handshake(&self) -> bool {
        true
    }
    fn profile(&self) -> Profile {
        self.profile
    }
    /// RFC 4340 §14: the MTU itself.
    fn fit(&mut self, mtu: Size, _: IpVersion) {
        self.mtu = self.mtu.min(mtu);
    }
}
