//! What carries the packets of a transport of scenarios, or that the kernel's TCP carries a flow.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use talkspurt_app::transport::Config;
use talkspurt_live::{Encapsulation, Inside};
use talkspurt_proto::units::with_values;
use talkspurt_proto::wire::{dccp_udp, sctp_udp, udp};

use crate::Failure;
use crate::controller::Controller;
use crate::protocol::Protocol;
use crate::seal::OVERHEAD;

/// Header of a TCP segment with the timestamps option (RFC 7323).
const TCP_HEADER: usize = 32;
/// Bytes of the length in front of a sealed unit in a stream.
pub(crate) const STREAM_LENGTH: usize = 2;
/// The most that a parameter from the other end may say, as a number and in bytes: windows and buffers are
/// filled.
const MOST: f64 = 1e6;
const MAX_BYTES: f64 = 16e6;

/// A transport of scenarios with what carries its packets, or the kernel's TCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Transport {
    /// In datagrams of UDP: DCCP by RFC 6773, SCTP by RFC 6951.
    InUdp(#[serde(with = "text")] Config),
    /// As a protocol of IP: DCCP is number 33, and SCTP 132.
    OverIp(#[serde(with = "text")] Config),
    /// The kernel's TCP, with this congestion controller at the ends that send; absent: with the system's.
    Tcp(Option<Controller>),
}

/// A configuration as JSON in a text: a message tells no fields apart by name.
mod text {
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::Config;

    pub(super) fn serialize<S: Serializer>(config: &Config, to: S) -> Result<S::Ok, S::Error> {
        serde_json::to_string(config).map_err(S::Error::custom)?.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Config, D::Error> {
        serde_json::from_str(<&str>::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl Transport {
    /// A transport by its name, one of [`Self::all`] or `tcp-` and that of a congestion controller.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, Failure> {
        if let Some(controller) = name.strip_prefix("tcp-") {
            return Controller::named(controller).map(|it| Self::Tcp(Some(it)));
        }
        Self::all().find(|it| it.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::all().map(|it| it.name()).collect();
            let known = known.join(", ");
            Failure::Input(format!("unknown; there are {known}, tcp-CONTROLLER as in tcp-cubic"))
        })
    }

    /// Every transport that a name alone selects, TCP with the system's controller.
    pub fn all() -> impl Iterator<Item = Self> {
        let in_udp = Config::named().filter(|it| !it.is_stream()).map(Self::InUdp);
        let over_ip = Config::named().map(Self::OverIp).filter(|it| it.direct().is_some());
        in_udp.chain(over_ip).chain([Self::Tcp(None)])
    }

    #[cfg(any(test, fuzzing))]
    pub(crate) fn known(name: &str) -> Self {
        Self::named(name).expect("it has a name")
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::InUdp(config) => config.name(),
            Self::OverIp(config) => format!("{}-ip", config.name()),
            Self::Tcp(None) => "tcp".to_owned(),
            Self::Tcp(Some(controller)) => format!("tcp-{controller}"),
        }
    }

    /// What of it a flow between two machines must not have.
    pub(crate) fn fault(&self) -> Option<String> {
        let (Self::InUdp(config) | Self::OverIp(config)) = self else { return None };
        // A stack of a program has no form in a message.
        let values = with_values(|| serde_json::to_value(config)).ok();
        let is_misplaced = matches!(self, Self::OverIp(_)) && self.direct().is_none();
        if config.is_stream() || is_misplaced || values.is_none() {
            Some(format!("nothing here carries packets of {}", self.name()))
        } else if config.association().is_some() {
            Some("it shares no association: each flow has a session of its own".to_owned())
        } else {
            let much = "a parameter of its transport: expected at most 1000000, or 16MB";
            (!values.is_some_and(|it| is_small(&it))).then(|| much.to_owned())
        }
    }

    /// Whether it takes as much as is offered.
    pub(crate) const fn is_plain_udp(&self) -> bool {
        matches!(self, Self::InUdp(Config::Udp(_)))
    }

    /// Whether it is known to adapt its rate to the path.
    #[must_use]
    pub const fn is_responsive(&self) -> bool {
        match self {
            Self::InUdp(config) | Self::OverIp(config) => matches!(
                config,
                Config::Dccp(_) | Config::Sctp(_) | Config::Tfrc(_) | Config::Beritelli(_)
            ),
            Self::Tcp(_) => true,
        }
    }

    /// Whether it chooses among the codecs of a source, as the token bucket of TFRC-TB does.
    pub(crate) fn chooses(&self) -> bool {
        match self {
            Self::InUdp(Config::Tfrc(tfrc)) => tfrc.rate.token_bucket.is_some(),
            Self::InUdp(Config::Dccp(dccp)) | Self::OverIp(Config::Dccp(dccp)) => {
                dccp.rate.token_bucket.is_some()
            }
            _ => false,
        }
    }

    /// Whether its packets are those of DCCP.
    pub(crate) const fn is_dccp(&self) -> bool {
        matches!(self, Self::InUdp(Config::Dccp(_)) | Self::OverIp(Config::Dccp(_)))
    }

    /// Whether the kernel's TCP carries its units.
    pub(crate) const fn is_stream(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// The protocol, if its packets are directly in IP.
    pub(crate) const fn direct(&self) -> Option<Protocol> {
        match self {
            Self::OverIp(Config::Dccp(_)) => Some(Protocol::Dccp),
            Self::OverIp(Config::Sctp(_)) => Some(Protocol::Sctp),
            _ => None,
        }
    }

    /// Its table in a scenario.
    pub(crate) fn scenario(&self) -> Value {
        match self {
            Self::InUdp(config) | Self::OverIp(config) => json!(config),
            Self::Tcp(controller) => {
                let known = ["reno", "cubic", "bbr"].into_iter();
                let known =
                    known.into_iter().find(|it| controller.is_some_and(|of| of.name() == *it));
                json!({ "kind": "tcp", "controller": known.unwrap_or("cubic") })
            }
        }
    }

    /// Bytes of its header in a packet with payload, without options and what every packet has outside it.
    pub(crate) fn header_bytes(&self) -> u64 {
        let bytes = match self {
            Self::InUdp(config) | Self::OverIp(config) => config.header_bytes() as usize,
            Self::Tcp(_) => TCP_HEADER + STREAM_LENGTH,
        };
        match self.direct() {
            // The protocol's own seal in place of UDP and its seal.
            Some(protocol) => (bytes + protocol.overhead() - udp::HEADER - OVERHEAD) as u64,
            None if self.encapsulation().is_some() => bytes as u64,
            None => bytes.saturating_sub(udp::HEADER) as u64,
        }
    }

    /// Ports around it inside the datagram.
    pub(crate) fn encapsulation(&self) -> Option<Encapsulation> {
        let (inside, port) = match self {
            Self::InUdp(Config::Dccp(_)) => (Inside::Dccp, dccp_udp::PORT),
            Self::InUdp(Config::Sctp(_)) => (Inside::Sctp, sctp_udp::PORT),
            _ => return None,
        };
        Some(Encapsulation { inside, local_port: port, remote_port: port })
    }
}

/// Whether no number and no size of a configuration is too large.
fn is_small(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|it| it <= MOST),
        Value::Array(list) => list.iter().all(is_small),
        Value::Object(table) => match (table.get("unit"), table.get("value")) {
            (Some(unit), Some(value)) => {
                unit != "B" || value.as_f64().is_some_and(|it| it <= MAX_BYTES)
            }
            _ => table.values().all(is_small),
        },
        _ => true,
    }
}
