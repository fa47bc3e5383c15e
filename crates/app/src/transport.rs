//! The transports a flow can name, as one type without a virtual call.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::dccp::{self, Ccid, Dccp};
use talkspurt_proto::dice::Dice;
use talkspurt_proto::endpoint::{Endpoint, Input, Output};
use talkspurt_proto::packet::{Body, Damage, Ecn, IpVersion, PathId};
use talkspurt_proto::probe::Probe;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{self, Rung, beritelli};
use talkspurt_proto::rfc4571;
use talkspurt_proto::sctp::{self, Sctp};
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
    /// Datagram Congestion Control Protocol (RFC 4340), RTP in it as in RFC 5762.
    Dccp(Box<dccp::Config>),
    /// Stream Control Transmission Protocol (RFC 9260), a message in it for each packet of media.
    Sctp(Box<sctp::Config>),
    /// TCP-Friendly Rate Control over UDP (RFC 5348); with `rate.token_bucket` TFRC-TB.
    Tfrc(tfrc::Config),
    /// A controller that listens to the variation of delay (Beritelli et al. 2002), in the packets
    /// of TFRC.
    Beritelli(beritelli::Config),
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
            (Self::Dccp(config), side) => {
                let endpoint = match side {
                    Side::Opens => Dccp::client(config, dice),
                    Side::Answers => Dccp::listener(config, dice),
                };
                Transport::Dccp(Box::new(endpoint.over(version).with_ladder(ladder)))
            }
            (Self::Sctp(config), side) => {
                let endpoint = match side {
                    Side::Opens => Sctp::client(config, dice),
                    Side::Answers => Sctp::listener(config, dice),
                };
                Transport::Sctp(Box::new(endpoint.over(version)))
            }
            (Self::Tfrc(config), _) => {
                Transport::Tfrc(Box::new(Tfrc::with_ladder(config, dice, ladder)))
            }
            (Self::Beritelli(config), _) => {
                let rate = rate::Config { beritelli: Some(config.clone()), ..Default::default() };
                let config = tfrc::Config { rate, ..Default::default() };
                Transport::Tfrc(Box::new(Tfrc::with_ladder(&config, dice, ladder)))
            }
        }
    }

    /// The flow in whose association it travels, if that is another's.
    #[must_use]
    pub fn association(&self) -> Option<&str> {
        match self {
            Self::Sctp(config) => config.association.as_deref(),
            _ => None,
        }
    }

    /// True if it carries a stream of bytes, in which messages need framing.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// True if several writes in a row are as one: of a stream that takes whatever it has room for.
    /// With a mark for what is not sent yet, each write decides whether there may be another.
    #[must_use]
    pub fn joins_writes(&self) -> bool {
        matches!(self, Self::Tcp(config) if config.notsent_lowat.is_none())
    }

    /// True if a listener has no connection before the other side has called.
    #[must_use]
    pub fn has_handshake(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Dccp(_) | Self::Sctp(_))
    }

    /// Header bytes in front of a media packet that travels alone: UDP's 8, TCP's 20 with its
    /// timestamps (RFC 7323) and the two of length before it (RFC 4571), 16 of a DCCP-Data packet (12
    /// with short sequence numbers), SCTP's 12 and the 16 or 20 of a DATA or I-DATA chunk, or UDP's and
    /// the 16 of a TFRC data packet.
    #[must_use]
    pub fn header_bytes(&self) -> u32 {
        match self {
            Self::Udp(_) => 8,
            Self::Tcp(config) => {
                20 + if config.timestamps { 12 } else { 0 } + rfc4571::LENGTH_BYTES as u32
            }
            Self::Dccp(config) if config.allow_short_seqnos => 12,
            Self::Dccp(_) => 16,
            Self::Sctp(config) if config.interleaving => 12 + 20,
            Self::Sctp(_) => 12 + 16,
            Self::Tfrc(_) | Self::Beritelli(_) => 8 + 16,
        }
    }

    /// Bytes of a bulk source's unit unless it says otherwise: what one packet carries.
    #[must_use]
    pub fn unit_bytes(&self) -> u32 {
        match self {
            Self::Udp(_) | Self::Dccp(_) | Self::Sctp(_) | Self::Tfrc(_) | Self::Beritelli(_) => {
                1000
            }
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
    pub fn ns2_opening_bytes(&self) -> u32 {
        match self {
            Self::Dccp(config) if config.ccid.is_rate_based() => 104,
            _ => 88,
        }
    }

    /// What people call the protocol.
    #[must_use]
    pub const fn protocol(&self) -> &'static str {
        match self {
            Self::Udp(_) => "UDP",
            Self::Tcp(_) => "TCP",
            Self::Dccp(_) => "DCCP",
            Self::Sctp(_) => "SCTP",
            Self::Tfrc(_) | Self::Beritelli(_) => "TFRC",
        }
    }

    /// Bytes in front of what one packet carries, the IP header apart, at most: what the transport
    /// keeps free of the path's MTU.
    #[must_use]
    pub fn kept_bytes(&self) -> u32 {
        match self {
            Self::Dccp(_) => dccp::KEPT_BYTES,
            Self::Sctp(_) => sctp::KEPT_BYTES,
            _ => self.header_bytes(),
        }
    }

    /// Whose values its open knobs have.
    #[must_use]
    pub fn profile(&self) -> Profile {
        match self {
            Self::Udp(_) | Self::Tcp(_) | Self::Sctp(_) | Self::Beritelli(_) => Profile::Rfc,
            Self::Dccp(config) => config.profile,
            Self::Tfrc(config) => config.profile,
        }
    }

    /// Its name in tables: the kind and the controller if it has one, both where the directions
    /// differ; `-pr` for partially reliable and `-unordered` messages, and whose association carries them
    /// if it is another flow's; the profile if it is not that of the RFCs, as in `dccp-ccid2 (ns2)`.
    #[must_use]
    pub fn name(&self) -> String {
        let name = match self {
            Self::Udp(_) => "udp".to_owned(),
            Self::Tcp(config) => config.name(),
            Self::Dccp(config) => match (config.ccid_of(false), config.ccid_of(true)) {
                (one, other) if one == other => format!("dccp-ccid{}", ccid(one, &config.rate)),
                (one, other) => {
                    format!("dccp-ccid{}/{}", ccid(one, &config.rate), ccid(other, &config.rate))
                }
            },
            Self::Sctp(config) => {
                let partial = config.lifetime.is_some() || config.max_retransmissions.is_some();
                let order = if config.ordered { "" } else { "-unordered" };
                let partial = if partial { "-pr" } else { "" };
                let owner = config.association.as_ref();
                let within = owner.map_or_else(String::new, |owner| format!(" in {owner}"));
                format!("sctp{partial}{order}{within}")
            }
            Self::Tfrc(config) if config.rate.token_bucket.is_some() => "tfrc-tb".to_owned(),
            Self::Tfrc(_) => "tfrc".to_owned(),
            Self::Beritelli(_) => "beritelli".to_owned(),
        };
        match self.profile() {
            Profile::Rfc => name,
            Profile::Ns2 => format!("{name} (ns2)"),
            Profile::Linux => format!("{name} (linux)"),
        }
    }
}

/// `2`, `3`, or `3-tb` where the machine of CCID 3 has another head.
fn ccid(ccid: Ccid, rate: &rate::Config) -> String {
    let head = match ccid {
        Ccid::Two => "",
        _ if rate.token_bucket.is_some() => "-tb",
        _ => "",
    };
    format!("{}{head}", u8::from(ccid))
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

/// Any endpoint. Which one is asked at every step of a packet's way, so it has a tag of its own: one
/// hidden in a field of UDP takes as many instructions again to be found.
#[derive(Debug)]
#[repr(u8)]
pub enum Transport {
    /// UDP.
    Udp(Udp),
    /// TCP.
    Tcp(Box<Tcp>),
    /// DCCP.
    Dccp(Box<Dccp>),
    /// SCTP.
    Sctp(Box<Sctp>),
    /// Bare TFRC.
    Tfrc(Box<Tfrc>),
}

impl Transport {
    /// With a path to the other side from each of these addresses of this end, if it knows several;
    /// it tells the other side of those that its first packet does not show.
    #[must_use]
    pub fn over_paths(self, addresses: &[IpAddr]) -> Self {
        match (self, addresses) {
            (Self::Sctp(endpoint), [_, others @ ..]) => {
                let count = u8::try_from(addresses.len()).expect("paths are counted in eight bits");
                Self::Sctp(Box::new(endpoint.on_paths(count).with_addresses(others)))
            }
            (this, _) => this,
        }
    }

    /// True if what is handed over now leaves as it is and at once, and what arrives is delivered so: of
    /// datagrams when nothing waits. Who asks may spare them the way.
    #[inline]
    #[must_use]
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Udp(endpoint) if endpoint.is_empty())
    }

    /// Bytes of the longest message it carries at all, permit or not: what is longer never leaves.
    #[inline]
    #[must_use]
    pub fn largest(&self) -> usize {
        match self {
            // UDP sends what it is given; TCP and SCTP cut it.
            Self::Udp(_) | Self::Tcp(_) | Self::Sctp(_) => usize::MAX,
            Self::Dccp(endpoint) => endpoint.largest(),
            Self::Tfrc(endpoint) => endpoint.largest(),
        }
    }
}

macro_rules! dispatch {
    ($transport:expr, $endpoint:ident => $call:expr) => {
        match $transport {
            Transport::Udp($endpoint) => $call,
            Transport::Tcp($endpoint) => $call,
            Transport::Dccp($endpoint) => $call,
            Transport::Sctp($endpoint) => $call,
            Transport::Tfrc($endpoint) => $call,
        }
    };
}

impl Transport {
    /// [`Endpoint::handle`] of DCCP.
    #[inline(never)]
    fn handle_more<P: Probe>(&mut self, now: Instant, input: Input, probe: &mut P) {
        dispatch!(self, endpoint => endpoint.handle(now, input, probe));
    }
}

impl Endpoint for Transport {
    #[inline(always)]
    fn handle<P: Probe>(&mut self, now: Instant, input: Input, probe: &mut P) {
        match self {
            // So little that a call costs more.
            Self::Udp(endpoint) => endpoint.handle(now, input, probe),
            // What comes in is known where this is called, and asked no more.
            Self::Tcp(endpoint) => endpoint.handle(now, input, probe),
            Self::Sctp(endpoint) => endpoint.handle(now, input, probe),
            Self::Tfrc(endpoint) => endpoint.handle(now, input, probe),
            _ => self.handle_more(now, input, probe),
        }
    }
    #[inline(always)]
    fn receive<P: Probe>(
        &mut self,
        now: Instant,
        about: (PathId, Ecn, Damage),
        body: &mut Body,
        probe: &mut P,
    ) {
        dispatch!(self, endpoint => endpoint.receive(now, about, body, probe));
    }
    #[inline]
    fn poll<P: Probe>(&mut self, now: Instant, probe: &mut P) -> Output {
        dispatch!(self, endpoint => endpoint.poll(now, probe))
    }
    #[inline]
    fn room(&self) -> usize {
        dispatch!(self, endpoint => endpoint.room())
    }
    fn is_listening(&self) -> bool {
        dispatch!(self, endpoint => endpoint.is_listening())
    }
    fn between(&mut self, ends: &[u8]) {
        dispatch!(self, endpoint => endpoint.between(ends));
    }
    fn recognises(&self, body: &Body) -> bool {
        dispatch!(self, endpoint => endpoint.recognises(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The methods declared after `start` and before the closing brace at the start of a line.
    fn methods(source: &'static str, start: &str) -> Vec<&'static str> {
        let from = source.find(start).expect("the block is there");
        let block = &source[from..];
        let end = block.find("\n}").expect("the block ends");
        let name = |line: &'static str| line.strip_prefix("    fn ")?.split(['<', '(']).next();
        block[..end].lines().filter_map(name).collect()
    }

    /// A method with a default body that is not forwarded compiles, and answers for no protocol.
    #[test]
    fn every_method_of_an_endpoint_is_forwarded() {
        let declared = include_str!("../../proto/src/endpoint.rs");
        let declared = methods(declared, "pub trait Endpoint {");
        let forwarded = methods(include_str!("transport.rs"), "impl Endpoint for Transport {");
        assert!(declared.len() >= 7 && declared.contains(&"handle"), "{declared:?}");
        for method in declared {
            assert!(forwarded.contains(&method), "{method} is not forwarded");
        }
    }

    /// RFC 6951 §5.4: a packet with the Verification Tag of an association is its peer's.
    #[test]
    fn an_association_recognises_its_peer() {
        let end = |side, stream| {
            let config = Config::Sctp(Box::default());
            config.build(side, IpVersion::V4, Dice::new(1, stream), &[])
        };
        let (mut client, mut server) = (end(Side::Opens, "client"), end(Side::Answers, "server"));
        let now = Instant::ZERO;
        client.handle(now, Input::Open, &mut ());
        let mut recognised = Vec::new();
        for _ in 0..4 {
            for towards_server in [true, false] {
                let (from, to) = match towards_server {
                    true => (&mut client, &mut server),
                    false => (&mut server, &mut client),
                };
                while let Output::Transmit(transmit) = from.poll(now, &mut ()) {
                    recognised.push(to.recognises(&transmit.body));
                    let (path, ecn, body) = (transmit.path, transmit.ecn, transmit.body);
                    to.handle(
                        now,
                        Input::Packet { path, ecn, damage: Damage::None, body },
                        &mut (),
                    );
                    assert!(!to.recognises(&Body::default()));
                }
            }
        }
        // INIT has the tag zero; COOKIE ECHO and COOKIE ACK have the peer's.
        assert_eq!((recognised.first(), recognised.last()), (Some(&false), Some(&true)));
    }
}
