//! What travels: a small label that links read, and a body that only endpoints open.
//!
//! In simulation the parsed form of a packet travels; bytes exist only at the live edge and in
//! captures (`wire`). The label is copied from queue to queue, the body waits in the driver's pool.

use bytes::Bytes;

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

/// A parsed packet on the heap, which its receiver can take and reuse for one it sends. A taken one is
/// empty: reading it panics.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketBox<T>(Option<Box<T>>);

impl<T> PacketBox<T> {
    /// Puts a packet on the heap.
    #[must_use]
    pub fn new(packet: T) -> Self {
        Self(Some(Box::new(packet)))
    }
    /// Without a packet.
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
    /// Takes the packet out, and leaves none.
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
    /// The same memory with another packet in it.
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

/// The first bytes of a quoted packet's transport header. Its ports are its flow's and not kept.
///
/// Eight bytes with the ports are the least that RFC 792 asks for: they hold TCP's sequence number,
/// SCTP's Verification Tag or UDP's length. A protocol that recognises its packets by what is
/// further behind has more quoted, as RFC 1812 §4.3.2.3 and RFC 4443 §3.2 let a router do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    protocol: u8,
    len: u8,
    bytes: [u8; Self::MAX_BYTES],
}

impl Quoted {
    /// Most bytes behind the ports.
    pub const MAX_BYTES: usize = 12;

    /// The header of an IP protocol: its bytes behind the ports.
    ///
    /// # Panics
    /// If these are more than [`Self::MAX_BYTES`].
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
    /// Bytes quoted behind the IP header, ports included.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        4 + self.len as u32
    }
    /// What is quoted behind the ports.
    #[must_use]
    pub fn behind_ports(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
    /// The four bytes behind the ports, if this is a quote of that protocol.
    #[must_use]
    pub fn word(&self, protocol: u8) -> Option<u32> {
        let word = self.behind_ports().first_chunk()?;
        (self.protocol == protocol).then(|| u32::from_be_bytes(*word))
    }
}

const _: () = assert!(size_of::<Packet>() <= 40);
