//! The parsed form of every packet the laboratory can carry, above the IP header.
//!
//! This is the only place that names all packet formats. A transport whose packets look like
//! another's, or an external stack whose datagrams nobody parses, needs no entry.

use crate::dccp;
use crate::endpoint::{Arrival, Input};
use crate::frame::Frame;
use crate::packet::{BodyId, Packet, PacketBox, Payload, Quote};
use crate::{rtp, sctp, tcp, tfrc, udp};

/// Where the bodies of travelling packets are kept.
pub trait Bodies {
    /// Keeps a body until its packet arrives or is lost; it is made where it goes.
    fn put(&mut self, body: impl FnOnce() -> Body) -> BodyId;
}

/// The parsed form of everything above the IP header.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A UDP datagram (RFC 768) and what it carries.
    Udp(Frame),
    /// A TCP segment (RFC 9293 §3.1).
    Tcp(tcp::Segment),
    /// A DCCP packet (RFC 4340 §5); boxed, so that not every body is as long.
    Dccp(PacketBox<dccp::Packet>),
    /// An SCTP packet (RFC 9260 §3); boxed as DCCP's.
    Sctp(PacketBox<sctp::Packet>),
    /// A UDP datagram of bare TFRC (RFC 5348 §3.2).
    Tfrc(tfrc::Packet),
    /// ICMP "fragmentation needed" or ICMPv6 "packet too big" (RFC 1191, 8201) from a router.
    TooBig {
        /// MTU of the link that refused, in bytes of IP packet.
        mtu: u32,
        /// Which packet it refused.
        quote: Quote,
    },
}

/// Makes each packet type a body, and a body of that kind the packet again.
macro_rules! carried {
    ($($kind:ident($packet:ty)),*) => {
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
    };
}

carried!(
    Udp(Frame),
    Tcp(tcp::Segment),
    Dccp(PacketBox<dccp::Packet>),
    Sctp(PacketBox<sctp::Packet>),
    Tfrc(tfrc::Packet)
);

impl Default for Body {
    /// A datagram of nothing.
    fn default() -> Self {
        Self::Udp(Frame::default())
    }
}

impl Quote {
    /// The quote of a packet, as it reached the router; `None` for a router's own message, which
    /// is never answered by another (RFC 1122 §3.2.2, RFC 4443 §2.4 (e)).
    #[must_use]
    pub fn of(packet: &Packet, body: &Body) -> Option<Self> {
        let bytes = body.layers().total();
        let transport = match body {
            Body::Udp(_) | Body::Tfrc(_) => udp::wire::quoted(bytes),
            Body::Tcp(segment) => tcp::wire::quoted(segment.seq),
            Body::Dccp(packet) => dccp::wire::quoted(packet),
            Body::Sctp(packet) => sctp::wire::quoted(packet.tag),
            Body::TooBig { .. } => return None,
        };
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

/// Bytes of a packet by layer, the IP header apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Transport header with options: UDP 8, TCP 20–60, DCCP 12–1020; all of an SCTP packet that
    /// is no user data.
    pub transport: u32,
    /// Media header: RTP 12, RTCP all of it.
    pub media: u32,
    /// Application payload.
    pub payload: u32,
}

impl Layers {
    /// Bytes of all of them.
    #[must_use]
    pub const fn total(self) -> u32 {
        self.transport + self.media + self.payload
    }
}

impl Body {
    /// What it is to an endpoint whose packets are of type `T`.
    ///
    /// # Errors
    /// The body of another protocol, unchanged.
    pub fn into_input<T: TryFrom<Self, Error = Self>>(
        self,
        arrival: Arrival,
    ) -> Result<Input<T>, Self> {
        match self {
            Self::TooBig { mtu, quote } => Ok(Input::TooBig { path: arrival.path, mtu, quote }),
            body => body.try_into().map(|packet| Input::Packet { arrival, packet }),
        }
    }

    /// True if it surely has nothing to give back when it goes: of most bodies that were received, whose
    /// payload is virtual or was taken.
    #[inline(always)]
    #[must_use]
    pub fn owns_nothing(&self) -> bool {
        match self {
            // All fields named, so that one more is asked whether it owns anything.
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

    /// Its bytes, layer by layer.
    #[inline(always)]
    #[must_use]
    pub fn layers(&self) -> Layers {
        match self {
            Self::Udp(frame) => {
                let (media, payload) = frame.lengths();
                Layers { transport: 8, media: media as u32, payload: payload as u32 }
            }
            Self::Tcp(segment) => Layers {
                transport: segment.header_bytes() as u32,
                media: 0,
                payload: segment.payload.len() as u32,
            },
            Self::Dccp(packet) => {
                let (media, payload) = packet.payload.lengths();
                let transport = packet.header_bytes() as u32;
                Layers { transport, media: media as u32, payload: payload as u32 }
            }
            Self::Sctp(packet) => {
                let (transport, media, payload) = packet.lengths();
                Layers { transport: transport as u32, media: media as u32, payload: payload as u32 }
            }
            Self::Tfrc(packet) => {
                let (media, payload) = match packet {
                    tfrc::Packet::Data(data) => data.payload.lengths(),
                    tfrc::Packet::Feedback(_) => (0, 0),
                };
                let transport = 8 + packet.header_bytes() as u32;
                Layers { transport, media: media as u32, payload: payload as u32 }
            }
            // RFC 792: eight bytes, then the offending IP header and what is quoted of its data.
            Self::TooBig { quote, .. } => {
                let payload = quote.version.header_bytes() + quote.transport.bytes();
                Layers { transport: 8, media: 0, payload }
            }
        }
    }
}

const _: () = assert!(size_of::<Body>() <= 128);
