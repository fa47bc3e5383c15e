//! The transports a flow can name: one table generates a configuration, a statically dispatched endpoint, and
//! the methods of both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::{self, Dccp};
use talkspurt_proto::endpoint::{Arrival, Endpoint, Input, Listener, Output};
use talkspurt_proto::external::{self, External};
use talkspurt_proto::gauge::{EndpointNote, EndpointProbe, RxError};
use talkspurt_proto::packet::{Damage, IpVersion};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::beritelli;
use talkspurt_proto::sctp::{self, Sctp};
use talkspurt_proto::tcp::{self, Tcp};
use talkspurt_proto::tfrc::{self, Tfrc};
use talkspurt_proto::time::Instant;
pub use talkspurt_proto::transport::{Setup, Side, TransportConfig};
use talkspurt_proto::udp::{self, Udp};
use talkspurt_proto::units::Size;
use talkspurt_proto::validate::{ConfigError, Validate};

use crate::send_queue;

/// Generates [`Config`] and [`Transport`], with methods that delegate to the active variant. A row names
/// configurations, the endpoint that they build, and the [`Body`] variant of its packets; a packet of another
/// variant is refused.
///
/// An `inlined` endpoint is inlined at its call sites, where the compiler knows the kind of input; the others
/// are too large for that. One that `listens` implements [`Listener`].
macro_rules! transports {
    ($(
        $($(#[$about:meta])* $config:ident($config_type:ty)),+
            => $how:ident $kind:ident($type:ty) in $body:ident $(, $listens:ident)?;
    )*) => {
        /// Transport of a flow.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Config {
            $($($(#[$about])* $config($config_type),)+)*
        }

        macro_rules! of_config {
            ($of:expr, $asked:ident => $call:expr) => {
                match $of {
                    $($(Config::$config($asked) => $call,)+)*
                }
            };
        }

        impl Config {
            /// The endpoint of one side.
            #[must_use]
            pub fn build(&self, setup: Setup<'_>) -> Transport {
                match self {
                    $($(Self::$config(config) => Transport::$kind(config.build(setup).into()),)+)*
                }
            }
        }

        /// Any endpoint. Its tag is explicit: finding one in a niche of UDP takes twice as many instructions.
        #[derive(Debug)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "each variant holds the endpoint that it is named after")]
        pub enum Transport {
            $($kind($type),)*
        }

        macro_rules! of_endpoint {
            ($of:expr, $asked:ident => $call:expr) => {
                match $of {
                    $(Transport::$kind($asked) => $call,)*
                }
            };
        }

        impl Endpoint for Transport {
            type Packet = Body;

            #[inline(always)]
            fn handle<P: EndpointProbe>(&mut self, now: Instant, input: Input<Body>, probe: &mut P) {
                let other = match input {
                    Input::Packet { arrival, mut packet } => {
                        return self.receive(now, arrival, &mut packet, probe);
                    }
                    other => other,
                };
                match self {
                    $(Self::$kind(_endpoint) => if_inlined!(
                        $how,
                        _endpoint.handle(now, other.map(no_packet), probe),
                        self.handle_out_of_line(now, other, probe)
                    ),)*
                }
            }

            #[inline(always)]
            fn receive<P: EndpointProbe>(
                &mut self,
                now: Instant,
                arrival: Arrival,
                body: &mut Body,
                probe: &mut P,
            ) {
                match (self, body) {
                    $((Self::$kind(endpoint), Body::$body(packet)) => {
                        endpoint.receive(now, arrival, packet, probe);
                    })*
                    (transport, body) => transport.receive_other(now, arrival, body, probe),
                }
            }

            #[inline]
            fn poll<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) -> Output<Body> {
                match self {
                    $(Self::$kind(endpoint) => endpoint.poll(now, probe).map(Body::$body),)*
                }
            }
            #[inline]
            fn send_capacity(&self) -> usize {
                of_endpoint!(self, endpoint => endpoint.send_capacity())
            }
            fn closes_both_ways(&self) -> bool {
                of_endpoint!(self, endpoint => endpoint.closes_both_ways())
            }
            #[inline]
            fn max_message(&self) -> usize {
                of_endpoint!(self, endpoint => endpoint.max_message())
            }
        }

        /// An endpoint that does not implement it listens to nobody.
        impl Listener for Transport {
            fn is_listening(&self) -> bool {
                match self {
                    $($(Self::$kind($listens) => $listens.is_listening(),)?)*
                    _ => false,
                }
            }
            fn between(&mut self, ends: &[u8]) {
                match self {
                    $($(Self::$kind($listens) => $listens.between(ends),)?)*
                    _ => {}
                }
            }
            fn recognises(&self, body: &Body) -> bool {
                match (self, body) {
                    $($((Self::$kind($listens), Body::$body(packet)) => $listens.recognises(packet),)?)*
                    _ => false,
                }
            }
        }
    };
}

/// The first expression for `inlined` rows, the second for others.
macro_rules! if_inlined {
    (inlined, $inlined:expr, $called:expr) => {
        $inlined
    };
    (called, $inlined:expr, $called:expr) => {
        $called
    };
}

transports! {
    /// User Datagram Protocol (RFC 768).
    Udp(udp::Config) => inlined Udp(Udp) in Udp;
    /// Transmission Control Protocol (RFC 9293); media is framed as in RFC 4571.
    Tcp(tcp::Config) => inlined Tcp(Box<Tcp>) in Tcp;
    /// Datagram Congestion Control Protocol (RFC 4340), RTP in it as in RFC 5762.
    Dccp(Box<dccp::Config>) => called Dccp(Box<Dccp>) in Dccp, listens;
    /// Stream Control Transmission Protocol (RFC 9260), with one message per media packet.
    Sctp(Box<sctp::Config>) => inlined Sctp(Box<Sctp>) in Sctp, listens;
    /// TCP-Friendly Rate Control over UDP (RFC 5348); with `rate.token_bucket` TFRC-TB.
    Tfrc(tfrc::Config),
    /// A controller that reacts to delay variation (Beritelli et al. 2002), in the packets of TFRC.
    Beritelli(beritelli::Config)
        => inlined Tfrc(Box<Tfrc>) in Tfrc;
    /// A stack supplied by a Rust program.
    #[schemars(extend("unlisted" = true))]
    External(external::Config) => called External(Box<External>) in External;
}

/// Methods of [`TransportConfig`], of the configuration that it is.
macro_rules! of_kind {
    ($($name:ident -> $type:ty;)*) => {
        impl Config {$(
            #[doc = concat!("`", stringify!($name), "` of [`TransportConfig`], or of its supertraits.")]
            #[must_use]
            pub fn $name(&self) -> $type {
                of_config!(self, config => config.$name())
            }
        )*}
    };
}

of_kind! {
    association -> Option<&str>;
    is_stream -> bool;
    joins_writes -> bool;
    has_window -> bool;
    has_handshake -> bool;
    header_bytes -> u32;
    max_header_bytes -> u32;
    unit_bytes -> u32;
    protocol -> &'static str;
    profile -> Profile;
    errors -> Vec<ConfigError>;
}

impl Config {
    /// [`TransportConfig::fit`].
    pub fn fit(&mut self, mtu: Size, version: IpVersion) {
        of_config!(self, config => config.fit(mtu, version));
    }

    /// True if it asks sources for rates ([`Event::TargetRate`](talkspurt_proto::endpoint::Event::TargetRate)).
    #[must_use]
    pub fn asks_for_rates(&self) -> bool {
        match self {
            Self::Tfrc(_) | Self::Beritelli(_) => true,
            Self::Dccp(dccp) => dccp.ccid.is_rate_based(),
            _ => false,
        }
    }

    /// Its default limit of the send queue in frames.
    #[must_use]
    pub fn waiting_packets(&self) -> u32 {
        waiting_packets(self.profile())
    }

    /// The transports that a name alone selects, their [`Self::name`]: each kind with its defaults, if all of
    /// its parameters have one, and variants.
    pub fn named() -> impl Iterator<Item = Self> {
        let schema = schemars::schema_for!(Self).to_value();
        let kinds = schema["oneOf"].as_array().cloned().unwrap_or_default().into_iter();
        let kinds = kinds.map(|it| json!({ "kind": it["properties"]["kind"]["const"] }));
        let variants = VARIANTS.map(|it| serde_json::from_str(it).expect("a variant is JSON"));
        kinds.chain(variants).filter_map(|it| serde_json::from_value(it).ok())
    }

    /// Its name in tables: [`TransportConfig::name`], and the profile if it is not that of the RFCs, as in
    /// `dccp-ccid2 (ns2)`.
    #[must_use]
    pub fn name(&self) -> String {
        let name = of_config!(self, config => config.name());
        match self.profile() {
            Profile::Rfc => name,
            Profile::Ns2 => format!("{name} (ns2)"),
            Profile::Linux => format!("{name} (linux)"),
        }
    }
}

/// Configurations with a name of their own, by what differs from the defaults. TFRC-TB has the parameters of
/// its study (Maldonado, Baset, Schulzrinne 2005).
const VARIANTS: [&str; 4] = [
    r#"{ "kind": "tfrc", "rate": { "token_bucket": { "depth": "8kB", "step_up": "2s" } } }"#,
    r#"{ "kind": "dccp", "ccid": 2 }"#,
    r#"{ "kind": "dccp", "ccid": 3 }"#,
    r#"{ "kind": "dccp", "ccid": 4 }"#,
];

/// Send queue limits of the implementations: ns-2.35's DCCP holds 1000 frames, Linux's `tx_qlen` is 5; the RFCs
/// define none, and 50 frames of 20 ms are a second of speech.
#[must_use]
pub const fn waiting_packets(profile: Profile) -> u32 {
    match profile {
        Profile::Rfc => send_queue::Config::PACKETS,
        Profile::Ns2 => 1000,
        Profile::Linux => 5,
    }
}

/// For inputs other than packets, which go to [`Endpoint::receive`].
fn no_packet<T>(_: Body) -> T {
    unreachable!("packets go to `receive`")
}

impl Transport {
    /// True if a frame handed over now would leave unchanged and at once, and an arriving one would be
    /// delivered so: UDP when it holds nothing. A driver may then bypass the endpoint.
    #[inline]
    #[must_use]
    pub const fn can_bypass(&self) -> bool {
        matches!(self, Self::Udp(endpoint) if endpoint.is_empty())
    }

    #[inline(never)]
    fn handle_out_of_line<P: EndpointProbe>(
        &mut self,
        now: Instant,
        input: Input<Body>,
        probe: &mut P,
    ) {
        of_endpoint!(self, endpoint => endpoint.handle(now, input.map(no_packet), probe));
    }

    /// A router's message, or a packet of another protocol.
    #[cold]
    fn receive_other<P: EndpointProbe>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        body: &mut Body,
        probe: &mut P,
    ) {
        if let (Self::External(endpoint), Body::Udp(frame)) = (&mut *self, &mut *body) {
            // From a network: nothing on the wire tells whose datagram it is.
            let mut datagram = std::mem::take(frame).into();
            return endpoint.receive(now, arrival, &mut datagram, probe);
        }
        let error = match body {
            // RFC 792, RFC 4443 §2.3: the checksum covers the whole message.
            _ if arrival.damage == Damage::Payload => RxError::Checksum,
            Body::TooBig { mtu, quote } => {
                let input = Input::TooBig { path: arrival.path, mtu: *mtu, quote: *quote };
                return self.handle(now, input, probe);
            }
            _ => RxError::Unexpected,
        };
        probe.note(now, EndpointNote::RxError(error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkspurt_proto::endpoint::Transmit;
    use talkspurt_proto::rng::Rng;

    #[test]
    fn each_name_selects_one_transport() {
        let names: Vec<_> = Config::named().map(|it| it.name()).collect();
        for name in ["udp", "sctp", "tfrc", "tfrc-tb", "dccp-ccid2", "dccp-ccid3", "dccp-ccid4"] {
            assert_eq!(names.iter().filter(|it| *it == name).count(), 1, "{names:?}");
        }
    }

    /// RFC 6951 §5.4: a packet with the Verification Tag of an association comes from its peer.
    #[test]
    fn an_association_recognises_its_peer() {
        let end = |side, stream| {
            let config = Config::Sctp(Box::default());
            let version = IpVersion::V4;
            config.build(Setup {
                side,
                version,
                addresses: &[],
                ladder: &[],
                any_rate: false,
                rng: Rng::new(1, stream),
            })
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
                    recognised.push(to.recognises(&transmit.packet));
                    let Transmit { path, ecn, packet } = transmit;
                    let arrival = Arrival { path, ecn, damage: Damage::None };
                    to.handle(now, Input::Packet { arrival, packet }, &mut ());
                    assert!(!to.recognises(&Body::default()));
                }
            }
        }
        // INIT has the tag zero; COOKIE ECHO and COOKIE ACK have the peer's.
        assert_eq!((recognised.first(), recognised.last()), (Some(&false), Some(&true)));
    }
}
