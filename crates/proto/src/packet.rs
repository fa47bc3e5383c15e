//! What travels: a small label that links read, and a body that only endpoints open.
//!
//! In simulation the parsed form of a packet travels; bytes exist only at the live edge and in
//! captures (`wire`). The label is copied from queue to queue, the body waits in the driver's pool.

use bytes::Bytes;

use crate::dccp;
use crate::rtcp;
use crate::rtp;
use crate::sctp;
use crate::tcp;
use crate::tfrc;
use crate::time::Instant;

/// Hops a packet may take when it leaves its sender.
pub const INITIAL_TTL: u8 = 64;

/// Which of an association's paths a packet takes; 0 for single-homed transports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u8);

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// 00: not ECN-capable.
    #[default]
    NotEct = 0,
    /// 01: ECN-capable, used by L4S senders (RFC 9331); never sent by classic transports.
    Ect1 = 1,
    /// 10: ECN-capable.
    Ect0 = 2,
    /// 11: congestion experienced.
    Ce = 3,
}

/// Version of the IP header in front of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum IpVersion {
    /// 20 bytes without options (RFC 791).
    #[default]
    V4 = 4,
    /// 40 bytes without extension headers (RFC 8200).
    V6 = 6,
}

impl IpVersion {
    /// Bytes of the header.
    #[must_use]
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

/// Whether a packet's payload arrived as it was sent (for partial checksums).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damage {
    /// Every bit as sent.
    #[default]
    None,
    /// Bits beyond the checksum's coverage differ.
    Payload,
}

/// Handle of a body in the driver's pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyId(pub u32);

/// Where the bodies of travelling packets are kept.
pub trait Bodies {
    /// Keeps a body until its packet arrives or is lost; it is made where it goes.
    fn put(&mut self, body: impl FnOnce() -> Body) -> BodyId;
}

/// The label of a packet: all that queues and links may know of it.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Where its body waits.
    pub body: BodyId,
    /// IP packet length in bytes (IPv4 total length; IPv6 payload length + 40), link framing apart.
    pub ip_bytes: u32,
    /// The route it follows: the index of the peer that sent it; ways back from routers come after.
    pub route: u32,
    /// The flow it belongs to, as numbered by the scenario.
    pub flow: u32,
    /// Number among the packets its peer sent, from 0.
    pub number: u32,
    /// How many links of its route it has been sent on.
    pub hop: u8,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its DSCP (RFC 2474), 0 for best effort.
    pub dscp: u8,
    /// Its IP version.
    pub version: IpVersion,
    /// When its endpoint handed it to the first link, in true time.
    pub sent: Instant,
}

impl Packet {
    /// Hash of the flow and direction, for disciplines that keep flows apart (RFC 8290 §4.1).
    #[must_use]
    pub fn flow_hash(&self) -> u32 {
        let mixed = (u64::from(self.flow) << 32 | u64::from(self.route))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as u32
    }

    /// What the IP header calls it by: over IPv4 the identification, its number modulo 2¹⁶ (any
    /// value would do, RFC 6864 §4.1); over IPv6 the flow label, 20 bits of the flow hash and not
    /// zero (RFC 6437 §2).
    #[must_use]
    pub fn mark(&self) -> u32 {
        match self.version {
            IpVersion::V4 => self.number & 0xffff,
            IpVersion::V6 => (self.flow_hash() & 0xf_ffff).max(1),
        }
    }

    /// Its time to live, or hop limit: that of the sender less the links behind it.
    #[must_use]
    pub const fn ttl(&self) -> u8 {
        INITIAL_TTL.saturating_sub(self.hop)
    }
}

/// Application bytes. A stream is all virtual or all real, never mixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Bytes nobody looks at: their number, and their place in the stream that produced them.
    Virtual {
        /// Offset of the first byte in the source's stream.
        offset: u64,
        /// How many; as wide as a pointer, so that a payload is copied word by word.
        len: u64,
    },
    /// Bytes that matter, shared with the recording they were cut from.
    Real(Bytes),
}

impl Payload {
    /// Its length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Virtual { len, .. } => *len as usize,
            Self::Real(bytes) => bytes.len(),
        }
    }
    /// True if it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self::Virtual { offset: 0, len: 0 }
    }
}

/// One unit of application data, as handed to and delivered by an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Bytes without further structure (bulk, constant bit rate, a stream's bytes).
    Data(Payload),
    /// A media packet (RFC 3550).
    Rtp(rtp::Packet),
    /// A compound control packet (RFC 3550 §6.1).
    Rtcp(Box<rtcp::Compound>),
}

impl Default for Frame {
    /// No bytes.
    fn default() -> Self {
        Self::Data(Payload::default())
    }
}

impl Frame {
    /// Bytes of media-layer header (RTP 12, or all of an RTCP packet) and of payload.
    #[inline]
    #[must_use]
    pub fn lengths(&self) -> (usize, usize) {
        match self {
            Self::Data(payload) => (0, payload.len()),
            Self::Rtp(packet) => (packet.header_bytes(), packet.payload.len()),
            Self::Rtcp(compound) => (compound.wire_bytes(), 0),
        }
    }
    /// Length on the wire in bytes.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        let (header, payload) = self.lengths();
        header + payload
    }
}

/// The parsed form of everything above the IP header.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A UDP datagram (RFC 768) and what it carries.
    Udp(Frame),
    /// A TCP segment (RFC 9293 §3.1).
    Tcp(tcp::Segment),
    /// A DCCP packet (RFC 4340 §5); boxed, lest every body be as long.
    Dccp(Box<dccp::Packet>),
    /// An SCTP packet (RFC 9260 §3); boxed as DCCP's.
    Sctp(Box<sctp::Packet>),
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

impl Default for Body {
    /// A datagram of nothing.
    fn default() -> Self {
        Self::Udp(Frame::default())
    }
}

/// What a router quotes of a packet it refused: whatever makes, with addresses and ports, its IP
/// header and as many bytes behind it as let its sender know it again ([`Quoted::bytes`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// IP version.
    pub version: IpVersion,
    /// Its length with every header at its length in the RFCs.
    pub ip_bytes: u32,
    /// IPv4 identification (16 bits) or IPv6 flow label (20 bits).
    pub mark: u32,
    /// Time to live, or hop limit, at the router.
    pub ttl: u8,
    /// DSCP.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// What stood behind the IP header.
    pub transport: Quoted,
}

/// The transport of a quoted packet; ports are its flow's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoted {
    /// A datagram, as long as the packet has room.
    Udp,
    /// A segment.
    Tcp {
        /// Its sequence number.
        seq: u32,
    },
    /// A DCCP packet: its generic header but for the checksum (RFC 4340 §5.1).
    Dccp {
        /// Its Sequence Number, by which its sender knows it again.
        seq: dccp::WireSeq,
        /// Type.
        kind: u8,
        /// Data Offset, in words.
        data_offset: u8,
        /// CCVal.
        ccval: u8,
        /// Checksum Coverage.
        cscov: u8,
    },
    /// An SCTP packet.
    Sctp {
        /// Its Verification Tag, by which its sender knows it again (RFC 9260 §10).
        tag: u32,
    },
}

impl Quoted {
    /// Bytes quoted behind the IP header. Eight, the least that RFC 792 asks for, hold ports and
    /// TCP's sequence number, SCTP's Verification Tag or UDP's length. DCCP's number stands behind them, and a quote that
    /// shows none could be anybody's; so all of the generic header is quoted, as RFC 1812
    /// §4.3.2.3 and RFC 4443 §3.2 let a router do.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Udp | Self::Tcp { .. } | Self::Sctp { .. } => 8,
            Self::Dccp { seq, .. } if seq.is_extended() => 16,
            Self::Dccp { .. } => 12,
        }
    }
}

impl Quote {
    /// The quote of a packet, as it reached the router; `None` for a router's own message, which
    /// is never answered by another (RFC 1122 §3.2.2, RFC 4443 §2.4 (e)).
    #[must_use]
    pub fn of(packet: &Packet, body: &Body) -> Option<Self> {
        let transport = match body {
            Body::Udp(_) | Body::Tfrc(_) => Quoted::Udp,
            Body::Tcp(segment) => Quoted::Tcp { seq: segment.seq },
            Body::Dccp(packet) => {
                let dccp::Packet { seq, ccval, cscov, .. } = **packet;
                let data_offset = (packet.header_bytes() / 4) as u8;
                Quoted::Dccp { seq, kind: packet.kind.number(), data_offset, ccval, cscov }
            }
            Body::Sctp(packet) => Quoted::Sctp { tag: packet.tag },
            Body::TooBig { .. } => return None,
        };
        let Layers { transport: header, media, payload } = body.layers();
        Some(Self {
            version: packet.version,
            ip_bytes: packet.version.header_bytes() + header + media + payload,
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

const _: () = assert!(size_of::<Packet>() <= 40);
const _: () = assert!(size_of::<Body>() <= 128);
