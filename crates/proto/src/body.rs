//! The parsed form of every packet the laboratory can carry, above the IP header.
//!
//! This is the only place that names all packet formats. A transport whose packets look like
//! another's needs no entry.

use bytes::Bytes;

use crate::dccp;
use crate::frame::Frame;
use crate::octets::{Ends, Tail, WireError};
use crate::packet::{BodyId, Packet, PacketBox, Payload, Quote, Quoted};
pub use crate::transport::Layers;
use crate::transport::PacketFormat;
use crate::{external, rtp, sctp, tcp, tfrc};

/// Storage for the bodies of packets in flight.
pub trait Bodies {
    /// Stores a body, built in place, until its packet arrives or is lost.
    fn put(&mut self, body: impl FnOnce() -> Body) -> BodyId;
}

/// Defines [`Body`] and what it forwards to the packet format of each variant.
macro_rules! bodies {
    ($($(#[$doc:meta])* $kind:ident($packet:ty),)*) => {
        /// The parsed form of everything above the IP header.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Body {
            $($(#[$doc])* $kind($packet),)*
            /// ICMP "fragmentation needed" or ICMPv6 "packet too big" (RFC 1191, 8201) from a router.
            TooBig {
                /// MTU of the refusing link, in bytes of IP packet.
                mtu: u32,
                /// The refused packet.
                quote: Quote,
            },
            /// A whole IP packet of a real host, unparsed.
            Real(Box<RealPacket>),
        }

        $(impl From<$packet> for Body {
            fn from(packet: $packet) -> Self {
                Self::$kind(packet)
            }
        }
        impl TryFrom<Body> for $packet {
            type Error = Body;
            fn try_from(body: Body) -> Result<Self, Body> {
                match body {
                    Body::$kind(packet) => Ok(packet),
                    other => Err(other),
                }
            }
        })*

        impl Body {
            /// Its bytes by layer.
            #[inline(always)]
            #[must_use]
            pub fn layers(&self) -> Layers {
                match self {
                    $(Self::$kind(packet) => packet.layers(),)*
                    // RFC 792: eight bytes, then the offending IP header and the quoted part of its data.
                    Self::TooBig { quote, .. } => {
                        let payload = quote.version.header_bytes() + quote.transport.bytes();
                        Layers { transport: 8, media: 0, payload }
                    }
                    Self::Real(packet) => packet.layers,
                }
            }

            /// What a router quotes of it; `None` for a router's own message, and for a real packet, whose
            /// bytes are quoted.
            fn quoted(&self) -> Option<Quoted> {
                match self {
                    $(Self::$kind(packet) => Some(packet.quoted()),)*
                    Self::TooBig { .. } | Self::Real(_) => None,
                }
            }

            /// Number of the protocol in the IP header.
            #[must_use]
            pub fn protocol(&self, icmp: u8) -> u8 {
                match self {
                    $(Self::$kind(_) => <$packet>::PROTOCOL,)*
                    Self::TooBig { .. } => icmp,
                    Self::Real(packet) => packet.protocol,
                }
            }

            /// Appends its bytes behind the IP header, except for virtual ones at the end. A router's
            /// message quotes an IP header, so `wire` writes it and this appends nothing.
            pub(crate) fn emit(&self, ends: &Ends, out: &mut Vec<u8>) -> Result<Tail, WireError> {
                match self {
                    $(Self::$kind(packet) => packet.emit(ends, out),)*
                    Self::TooBig { .. } => Ok(Tail::default()),
                    Self::Real(_) => Err(WireError::Unsupported("packet with an IP header")),
                }
            }
        }
    };
}

bodies! {
    /// A UDP datagram (RFC 768) and what it carries.
    Udp(Frame),
    /// A TCP segment (RFC 9293 §3.1).
    Tcp(tcp::Segment),
    /// A DCCP packet (RFC 4340 §5), boxed to keep `Body` small.
    Dccp(PacketBox<dccp::Packet>),
    /// An SCTP packet (RFC 9260 §3), boxed like DCCP's.
    Sctp(PacketBox<sctp::Packet>),
    /// A UDP datagram of bare TFRC (RFC 5348 §3.2).
    Tfrc(tfrc::Packet),
    /// A UDP datagram of an external stack.
    External(external::Datagram),
}

/// An IP packet of a real host, with what links, counters and routers need to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct RealPacket {
    /// The packet as its host sent it.
    pub bytes: Bytes,
    /// Its bytes by layer; IPv4 options and IPv6 extension headers count as part of the transport's header.
    pub layers: Layers,
    /// Its protocol.
    pub protocol: u8,
    /// Time to live, or hop limit, when it left its host.
    pub ttl: u8,
}

impl Default for Body {
    /// An empty datagram.
    fn default() -> Self {
        Self::Udp(Frame::default())
    }
}

impl Quote {
    /// The quote of a packet as it reached the router; `None` for a real packet, and for a router's own
    /// message, which never triggers another (RFC 1122 §3.2.2, RFC 4443 §2.4 (e)).
    #[must_use]
    pub fn of(packet: &Packet, body: &Body) -> Option<Self> {
        let bytes = body.layers().total();
        let transport = body.quoted()?;
        Some(Self {
            version: packet.version,
            ip_bytes: packet.version.header_bytes() + bytes,
            mark: packet.mark(),
            ttl: packet.ttl(),
            dscp: packet.dscp,
            ecn: packet.ecn,
            transport,
        })
    }
}

impl Body {
    /// True if dropping it certainly frees nothing, as for most received bodies: their payload is
    /// virtual or was taken.
    #[inline(always)]
    #[must_use]
    pub fn owns_nothing(&self) -> bool {
        match self {
            // All fields are listed so that a new one must be checked here.
            Self::Tcp(tcp::Segment {
                sack,
                payload,
                seq: _,
                ack: _,
                window: _,
                flags: _,
                mss: _,
                window_scale: _,
                sack_permitted: _,
                timestamps: _,
            }) => sack.is_none() && matches!(payload, Payload::Virtual { .. }),
            Self::Udp(Frame::Data(payload) | Frame::Rtp(rtp::Packet { payload, .. })) => {
                matches!(payload, Payload::Virtual { .. })
            }
            _ => false,
        }
    }
}

const _: () = assert!(size_of::<Body>() <= 128);
