//! The transports a flow can name, as one type without a virtual call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::dice::Dice;
use talkspurt_proto::endpoint::{Endpoint, Input, Output};
use talkspurt_proto::packet::IpVersion;
use talkspurt_proto::probe::Probe;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::Rung;
use talkspurt_proto::rfc4571;
use talkspurt_proto::tcp::{self, Tcp};
use talkspurt_proto::tfrc::{self, Tfrc};
use talkspurt_proto::time::Instant;
use talkspurt_proto::udp::{self, Udp};

use crate::send_queue;

/// What carries a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Config {
    /// User Datagram Protocol (RFC 768).
    Udp(udp::Config),
    /// Transmission Control Protocol (RFC 9293); media is framed as in RFC 4571.
    Tcp(tcp::Config),
    /// TCP-Friendly Rate Control over UDP (RFC 5348).
    Tfrc(tfrc::Config),
}

/// Which end of a connection a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It opens.
    Opens,
    /// It answers.
    Answers,
}

impl Config {
    /// The endpoint of one side, for packets of this IP version and a source that can send in these
    /// ways, best first; none for a side that only listens, and for bulk.
    #[must_use]
    pub fn build(&self, side: Side, version: IpVersion, dice: Dice, ladder: &[Rung]) -> Transport {
        match (self, side) {
            (Self::Udp(config), _) => Transport::Udp(Udp::new(config)),
            (Self::Tcp(config), Side::Opens) => {
                Transport::Tcp(Box::new(Tcp::client(config, dice).over(version)))
            }
            (Self::Tcp(config), Side::Answers) => {
                Transport::Tcp(Box::new(Tcp::listener(config, dice).over(version)))
            }
            (Self::Tfrc(config), _) => {
                Transport::Tfrc(Box::new(Tfrc::with_ladder(config, dice, ladder)))
            }
        }
    }

    /// True if it carries a stream of bytes, in which messages need framing.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// True if a listener has no connection before the other side has called.
    #[must_use]
    pub fn has_handshake(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// Header bytes in front of a media packet that travels alone: UDP's 8, TCP's 20 with its
    /// timestamps (RFC 7323) and the two of length before it (RFC 4571), or UDP's and the 16 of a
    /// TFRC data packet.
    #[must_use]
    pub fn header_bytes(&self) -> u32 {
        match self {
            Self::Udp(_) => 8,
            Self::Tcp(config) => {
                20 + if config.timestamps { 12 } else { 0 } + rfc4571::LENGTH_BYTES as u32
            }
            Self::Tfrc(_) => 8 + 16,
        }
    }

    /// Bytes of a bulk source's unit unless it says otherwise: what one packet carries.
    #[must_use]
    pub fn unit_bytes(&self) -> u32 {
        match self {
            Self::Udp(_) | Self::Tfrc(_) => 1000,
            Self::Tcp(config) => config.mss.as_bytes() as u32,
        }
    }

    /// Frames that wait for it in the send queue, unless a flow says otherwise.
    #[must_use]
    pub fn waiting_packets(&self) -> u32 {
        waiting_packets(self.profile())
    }

    /// Bytes of a DCCP Request or Response as ns-2.35 counts them: its CCIDs ask for many features.
    #[must_use]
    pub const fn ns2_opening_bytes(&self) -> u32 {
        88
    }

    /// What people call the protocol.
    #[must_use]
    pub const fn protocol(&self) -> &'static str {
        match self {
            Self::Udp(_) => "UDP",
            Self::Tcp(_) => "TCP",
            Self::Tfrc(_) => "TFRC",
        }
    }

    /// Whose values its open knobs have.
    #[must_use]
    pub fn profile(&self) -> Profile {
        match self {
            Self::Udp(_) | Self::Tcp(_) => Profile::Rfc,
            Self::Tfrc(config) => config.profile,
        }
    }

    /// Its name in tables: the kind and the controller if it has one; the profile if it is not that
    /// of the RFCs, as in `tfrc (ns2)`.
    #[must_use]
    pub fn name(&self) -> String {
        let name = match self {
            Self::Udp(_) => "udp",
            Self::Tcp(config) => match config.controller {
                tcp::Controller::Newreno => "tcp-newreno",
            },
            Self::Tfrc(_) => "tfrc",
        };
        match self.profile() {
            Profile::Rfc => name.to_owned(),
            Profile::Ns2 => format!("{name} (ns2)"),
            Profile::Linux => format!("{name} (linux)"),
        }
    }
}

/// Frames that wait in the send queues of these implementations: ns-2.35's DCCP holds 1000, Linux's
/// `tx_qlen` is 5; the RFCs have none, and 50 frames of 20 ms are a second of speech.
#[must_use]
pub const fn waiting_packets(profile: Profile) -> u32 {
    match profile {
        Profile::Rfc => send_queue::Config::PACKETS,
        Profile::Ns2 => 1000,
        Profile::Linux => 5,
    }
}

/// Any endpoint.
#[derive(Debug)]
pub enum Transport {
    /// UDP.
    Udp(Udp),
    /// TCP.
    Tcp(Box<Tcp>),
    /// Bare TFRC.
    Tfrc(Box<Tfrc>),
}

macro_rules! dispatch {
    ($transport:expr, $endpoint:ident => $call:expr) => {
        match $transport {
            Transport::Udp($endpoint) => $call,
            Transport::Tcp($endpoint) => $call,
            Transport::Tfrc($endpoint) => $call,
        }
    };
}

impl Endpoint for Transport {
    #[inline]
    fn handle<P: Probe>(&mut self, now: Instant, input: Input, probe: &mut P) {
        dispatch!(self, endpoint => endpoint.handle(now, input, probe));
    }
    #[inline]
    fn poll<P: Probe>(&mut self, now: Instant, probe: &mut P) -> Output {
        dispatch!(self, endpoint => endpoint.poll(now, probe))
    }
    #[inline]
    fn room(&self) -> usize {
        dispatch!(self, endpoint => endpoint.room())
    }
}
