//! Packets: a small label that links read, and a body that only endpoints open.
//!
//! In simulation the parsed form of a packet travels; bytes exist only at the live edge and in
//! captures (`wire`). The label is copied from queue to queue; the body stays in the driver's pool.

use bytes::Bytes;

use crate::time::Instant;

/// TTL or hop limit of a packet when it leaves its sender.
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
    /// Smallest MTU of any link (RFC 791 §3.2, RFC 8200 §5): a router that reports less is not believed.
    #[must_use]
    pub const fn least_mtu(self) -> u32 {
        match self {
            Self::V4 => 68,
            Self::V6 => 1280,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyId(pub u32);

/// The label of a packet: the only part that queues and links read. Its fields are ordered so that it is
/// read as four words of 64 bits.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Packet {
    /// Handle of its body.
    pub body: BodyId,
    /// IP packet length in bytes (IPv4 total length; IPv6 payload length + 40), without link framing.
    pub ip_bytes: u32,
    /// Its route: the index of the sending peer; return routes of routers follow these.
    pub route: u32,
    /// The flow it belongs to, as numbered by the scenario.
    pub flow: u32,
    /// How many links of its route it has been sent on.
    pub hop: u8,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its DSCP (RFC 2474), 0 for best effort.
    pub dscp: u8,
    /// Its IP version.
    pub version: IpVersion,
    /// Number among the packets its peer sent, from 0.
    pub number: u32,
    /// When its endpoint handed it to the first link, in true time.
    pub sent: Instant,
}

impl Packet {
    /// Hash of the flow and direction, for disciplines that separate flows (RFC 8290 §4.1).
    #[must_use]
    pub fn flow_hash(&self) -> u32 {
        let mixed = (u64::from(self.flow) << 32 | u64::from(self.route))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as u32
    }

    /// Its identifier in the IP header: over IPv4 the identification, its number modulo 2¹⁶ (any value is
    /// allowed, RFC 6864 §4.1); over IPv6 the flow label, 20 bits of the flow hash and non-zero (RFC 6437 §2).
    #[must_use]
    pub fn mark(&self) -> u32 {
        match self.version {
            IpVersion::V4 => self.number & 0xffff,
            IpVersion::V6 => (self.flow_hash() & 0xf_ffff).max(1),
        }
    }

    /// Its time to live, or hop limit: the initial value minus the links traversed.
    #[must_use]
    pub const fn ttl(&self) -> u8 {
        INITIAL_TTL.saturating_sub(self.hop)
    }
}

/// A parsed packet on the heap, whose memory its receiver can take and reuse for a packet it sends.
/// After that it is empty: reading it panics.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketBox<T>(Option<Box<T>>);

impl<T> PacketBox<T> {
    /// Puts a packet on the heap.
    #[must_use]
    pub fn new(packet: T) -> Self {
        Self(Some(Box::new(packet)))
    }
    /// An empty box.
    #[must_use]
    pub const fn empty() -> Self {
        Self(None)
    }
    /// True if its packet was taken.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }
    /// The packet, unless it was taken.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }
    /// Takes the packet out and leaves the box empty.
    #[must_use]
    pub const fn take(&mut self) -> Self {
        Self(self.0.take())
    }
    /// The packet itself.
    ///
    /// # Panics
    /// If it was taken.
    #[must_use]
    pub fn into_inner(self) -> T {
        *self.0.expect("the packet was taken")
    }
    /// Reuses the memory for another packet.
    #[must_use]
    pub fn with(self, packet: T) -> Self {
        match self.0 {
            Some(mut place) => {
                *place = packet;
                Self(Some(place))
            }
            None => Self::new(packet),
        }
    }
}

impl<T> Default for PacketBox<T> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T> std::ops::Deref for PacketBox<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().expect("the packet was taken")
    }
}

impl<T> std::ops::DerefMut for PacketBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect("the packet was taken")
    }
}

/// Application bytes. A stream is all virtual or all real, never mixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Bytes without content: their number, and their offset in the source's stream.
    Virtual {
        /// Offset of the first byte in the source's stream.
        offset: u64,
        /// How many; as wide as a pointer, so that a payload is copied word by word.
        len: u64,
    },
    /// Actual bytes, shared with the recording they were cut from.
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

/// The part of a refused packet that a router quotes: what determines, with addresses and ports,
/// its IP header and the bytes after it by which the sender recognises it ([`Quoted::bytes`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// IP version.
    pub version: IpVersion,
    /// Its length with every header as long as in the RFCs.
    pub ip_bytes: u32,
    /// IPv4 identification (16 bits) or IPv6 flow label (20 bits).
    pub mark: u32,
    /// Time to live, or hop limit, at the router.
    pub ttl: u8,
    /// DSCP.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// The quoted part after the IP header.
    pub transport: Quoted,
}

/// The first bytes of a quoted packet's transport header. The ports follow from the flow and are not stored.
///
/// RFC 792 requires at least eight bytes including the ports: they hold TCP's sequence number,
/// SCTP's Verification Tag or UDP's length. A protocol that recognises its packets by later bytes
/// has more quoted, as RFC 1812 §4.3.2.3 and RFC 4443 §3.2 allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    protocol: u8,
    len: u8,
    bytes: [u8; Self::MAX_BYTES],
}

impl Quoted {
    /// Maximum number of bytes after the ports.
    pub const MAX_BYTES: usize = 12;

    /// The header of an IP protocol, given its bytes after the ports.
    ///
    /// # Panics
    /// If there are more than [`Self::MAX_BYTES`].
    #[must_use]
    pub fn new(protocol: u8, behind_ports: &[u8]) -> Self {
        let mut bytes = [0; Self::MAX_BYTES];
        bytes[..behind_ports.len()].copy_from_slice(behind_ports);
        Self { protocol, len: behind_ports.len() as u8, bytes }
    }
    /// The IP protocol.
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        self.protocol
    }
    /// Bytes quoted after the IP header, including the ports.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        4 + self.len as u32
    }
    /// The bytes quoted after the ports.
    #[must_use]
    pub fn behind_ports(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
    /// The four bytes after the ports, if this is a quote of that protocol.
    #[must_use]
    pub fn word(&self, protocol: u8) -> Option<u32> {
        let word = self.behind_ports().first_chunk()?;
        (self.protocol == protocol).then(|| u32::from_be_bytes(*word))
    }
}

const _: () = assert!(size_of::<Packet>() == 32);
