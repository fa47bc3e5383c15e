//! The transports of a flow, and what carries their packets.

use serde::{Deserialize, Serialize};
use talkspurt_live::{Encapsulation, Inside};
use talkspurt_proto::sctp::COMMON_HEADER;
use talkspurt_proto::wire::{dccp, dccp_udp, sctp_udp, tfrc, udp};

use crate::controller::Controller;
use crate::protocol::Protocol;
use crate::seal::OVERHEAD;

/// Header of a DATA chunk (RFC 9260 §3.3.1).
const SCTP_DATA: usize = 16;
/// Header of a TCP segment with the timestamps option (RFC 7323).
const TCP_HEADER: usize = 32;

/// Bytes of the length in front of a sealed unit in a stream.
pub(crate) const STREAM_LENGTH: usize = 2;

/// A transport: the kernel's TCP, or one of the simulator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// Plain UDP, with circuit breakers.
    Udp,
    /// TFRC (RFC 5348).
    Tfrc,
    /// TFRC with a token bucket.
    TfrcTb,
    /// DCCP with a CCID, 2, 3 or 4, in UDP (RFC 6773).
    Dccp(u8),
    /// SCTP in UDP (RFC 6951).
    Sctp,
    /// The kernel's TCP, with this congestion controller at the ends that send; absent: with the system's.
    Tcp(Option<Controller>),
    /// DCCP with a CCID, 2, 3 or 4, as protocol 33 of IP.
    DccpIp(u8),
    /// SCTP, as protocol 132 of IP.
    SctpIp,
}

impl Transport {
    /// A transport by its name, one of [`Self::NAMES`] or `tcp-` and that of a congestion controller.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, String> {
        if let Some((transport, _)) = Self::NAMES.iter().find(|(_, known)| *known == name) {
            return Ok(*transport);
        }
        if let Some(controller) = name.strip_prefix("tcp-") {
            return Controller::named(controller).map(|it| Self::Tcp(Some(it)));
        }
        let known = Self::NAMES.map(|(_, name)| name).join(", ");
        Err(format!("unknown; there are {known}, tcp-CONTROLLER as in tcp-cubic"))
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        if let Self::Tcp(Some(controller)) = self {
            return format!("tcp-{controller}");
        }
        let found = Self::NAMES.iter().find(|(transport, _)| *transport == self);
        found.map_or("dccp of an unknown CCID", |(_, name)| name).to_owned()
    }

    /// Every transport and its name; TCP with the system's controller.
    pub const NAMES: [(Self, &str); 12] = [
        (Self::Udp, "udp"),
        (Self::Tfrc, "tfrc"),
        (Self::TfrcTb, "tfrc-tb"),
        (Self::Dccp(2), "dccp-ccid2"),
        (Self::Dccp(3), "dccp-ccid3"),
        (Self::Dccp(4), "dccp-ccid4"),
        (Self::Sctp, "sctp"),
        (Self::DccpIp(2), "dccp-ccid2-ip"),
        (Self::DccpIp(3), "dccp-ccid3-ip"),
        (Self::DccpIp(4), "dccp-ccid4-ip"),
        (Self::SctpIp, "sctp-ip"),
        (Self::Tcp(None), "tcp"),
    ];

    /// Whether it adapts its rate to the path.
    #[must_use]
    pub fn is_responsive(self) -> bool {
        self != Self::Udp
    }

    /// Whether the kernel's TCP carries its units.
    pub(crate) const fn is_stream(self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// The protocol, if its packets are directly in IP.
    pub(crate) const fn direct(self) -> Option<Protocol> {
        match self {
            Self::DccpIp(_) => Some(Protocol::Dccp),
            Self::SctpIp => Some(Protocol::Sctp),
            _ => None,
        }
    }

    /// Its table in a scenario.
    pub(crate) fn scenario(self) -> String {
        match self {
            Self::Tcp(controller) => {
                let controller = controller.map_or_else(String::new, Into::into);
                let known = ["reno", "cubic", "bbr"].into_iter().find(|it| *it == controller);
                format!(r#"{{ kind = "tcp", controller = "{}" }}"#, known.unwrap_or("cubic"))
            }
            Self::Udp => r#"{ kind = "udp" }"#.to_owned(),
            Self::Tfrc => r#"{ kind = "tfrc" }"#.to_owned(),
            // The parameters of the study of TFRC-TB.
            Self::TfrcTb => {
                r#"{ kind = "tfrc", rate = { token_bucket = { depth = "8kB", step_up = "2s" } } }"#
                    .to_owned()
            }
            Self::Dccp(ccid) | Self::DccpIp(ccid) => {
                format!(r#"{{ kind = "dccp", ccid = {ccid} }}"#)
            }
            Self::Sctp | Self::SctpIp => r#"{ kind = "sctp" }"#.to_owned(),
        }
    }

    /// Bytes of its header in a packet with payload, without options and what every packet has outside it.
    pub(crate) const fn header_bytes(self) -> u64 {
        let bytes = match self {
            Self::Udp => 0,
            Self::Tfrc | Self::TfrcTb => tfrc::DATA_HEADER,
            Self::Dccp(_) | Self::DccpIp(_) => dccp::EXTENDED_HEADER,
            Self::Sctp | Self::SctpIp => COMMON_HEADER + SCTP_DATA,
            // That of a segment with timestamps in place of UDP's, and the length.
            Self::Tcp(_) => TCP_HEADER - udp::HEADER + STREAM_LENGTH,
        };
        match self.direct() {
            // The protocol's own seal in place of UDP and its seal.
            Some(protocol) => (bytes + protocol.overhead() - udp::HEADER - OVERHEAD) as u64,
            None => bytes as u64,
        }
    }

    /// Ports around it inside the datagram.
    pub(crate) fn encapsulation(self) -> Option<Encapsulation> {
        let (inside, port) = match self {
            Self::Dccp(_) => (Inside::Dccp, dccp_udp::PORT),
            Self::Sctp => (Inside::Sctp, sctp_udp::PORT),
            _ => return None,
        };
        Some(Encapsulation { inside, local_port: port, remote_port: port })
    }
}
