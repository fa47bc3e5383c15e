//! The transport header of an IP packet, through tunnels (`tunnel`), and what its payload is (`media`).
//! Checksums are not examined, because network interfaces often fill them in after the capture; lengths come
//! from the headers, because a capture may hold only the beginning of each packet. SCTP: RFC 9260 §3, in UDP
//! RFC 6951; DCCP: RFC 4340 §5.1, in UDP RFC 6773.

use std::fmt;
use std::net::IpAddr;
use std::ops::Range;

use etherparse::{IpNumber, LaxIpSlice, TcpHeaderSlice, UdpHeaderSlice};

use crate::media::{self, be16, be32};
use crate::tunnel::{self, Inside};

pub use crate::media::Media;
pub use crate::tunnel::Tunnel;

/// RFC 6951 §5.1: the UDP port of encapsulated SCTP.
const SCTP_IN_UDP: u16 = 9899;
/// RFC 9260 §3.2: the type of a SACK chunk.
const SACK: u8 = 3;
/// RFC 6773 §5: the UDP port of encapsulated DCCP.
const DCCP_IN_UDP: u16 = 6511;

/// Contents of the headers of one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Sender.
    pub src: IpAddr,
    /// Receiver.
    pub dst: IpAddr,
    /// IPv4's Identification; IPv6 has none.
    pub ip_id: Option<u16>,
    /// IPv4's Time to Live, IPv6's Hop Limit.
    pub hop_limit: u8,
    /// Length of the IP packet.
    pub ip_bytes: u32,
    /// Length of the IP header with its options or extension headers.
    pub network_header_bytes: u32,
    /// Length of the transport header, with that of UDP if the transport is encapsulated. SCTP: the common
    /// header and the chunk headers of user data. TURN over UDP: also the message around its application data,
    /// and padding.
    pub transport_header_bytes: u32,
    /// Length of the transport's payload; of a message of TURN, that of its application data.
    pub payload_bytes: u32,
    /// Ports of the transport: source and destination.
    pub ports: (u16, u16),
    /// Header of the transport.
    pub transport: Transport,
    /// What the payload is of UDP, or of DCCP's data, unless none of it was captured.
    pub media: Option<Media>,
    /// Where the bytes of this payload that were captured are in the IP packet that was read.
    pub payload: Option<Range<u32>>,
    /// Hash of UDP's payload, to know a datagram again; of its first 64 bytes, and none if they were cut off.
    pub digest: Option<u64>,
    /// Which part of a datagram this is, if it is the first fragment.
    pub part: Option<Part>,
}

/// Of which IP packet a fragment is a part, and which part (RFC 791 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What all fragments of a packet have in common: addresses, identification and protocol.
    pub of: (IpAddr, IpAddr, u32, u8),
    /// Place of its first byte in the packet's payload.
    pub begin: u32,
    /// Bytes of the payload.
    pub bytes: u32,
    /// Whether it is the last one.
    pub last: bool,
    /// Length of this fragment.
    pub ip_bytes: u32,
    /// Length of the headers before the payload.
    pub header_bytes: u32,
    /// Whether the packet is a tunnel. Only the first fragment says it of those over UDP.
    pub of_tunnel: bool,
}

/// The fields of a transport header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP.
    Tcp {
        /// Sequence number.
        seq: u32,
        /// Acknowledgement number, if the packet has one.
        ack: Option<u32>,
        /// SYN.
        syn: bool,
        /// FIN.
        fin: bool,
        /// RST.
        rst: bool,
    },
    /// SCTP.
    Sctp {
        /// Type of the first chunk.
        kind: u8,
        /// DATA and I-DATA chunks that were captured.
        chunks: Vec<Chunk>,
        /// Cumulative TSN Ack of its last SACK (RFC 9260 §3.3.4).
        ack: Option<u32>,
        /// Whether the capture ends before the last chunk begins.
        cut: bool,
    },
    /// DCCP.
    Dccp {
        /// Packet type.
        kind: u8,
        /// Sequence number: 48 bits, or their lower 24.
        seq: u64,
        /// Whether all 48 bits are there.
        extended: bool,
    },
}

/// A DATA chunk of SCTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Transmission Sequence Number.
    pub tsn: u32,
    /// Stream Identifier.
    pub stream: u16,
    /// Bytes of user data.
    pub bytes: u32,
}

/// Why a packet has no headers here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is no packet of TCP, UDP, SCTP or DCCP, or they are not there.
    Other(Other),
    /// A fragment after the first, which holds the headers.
    Fragment(Part),
}

impl From<Other> for Unread {
    fn from(other: Other) -> Self {
        Self::Other(other)
    }
}

/// What an IP packet is if it is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Other {
    /// Of another protocol, by its number.
    Protocol(u8),
    /// A tunnel of something other than IP.
    Tunnel(Tunnel),
    /// The capture ends inside the headers, or they contradict each other.
    Cut,
}

impl fmt::Display for Other {
    /// As the end of "Not imported: 12 …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(number) => match IpNumber(*number).keyword_str() {
                Some(name) => write!(f, "packets of {name}"),
                None => write!(f, "packets of IP protocol {number}"),
            },
            Self::Tunnel(tunnel) => write!(f, "packets of {tunnel} without IP"),
            Self::Cut => f.write_str("packets cut off in their headers"),
        }
    }
}

/// Tunnels in each other that are followed.
const MAX_TUNNELS: u8 = 8;

/// Reads the headers of an IP packet of which `cut` bytes were not captured. Of a tunnel, they are those of the
/// packet in it: the headers around it are like framing.
///
/// # Errors
/// Why there are none.
pub fn parse(bytes: &[u8], cut: usize) -> Result<Headers, Unread> {
    inside(bytes, cut, MAX_TUNNELS, bytes.as_ptr() as usize)
}

/// `origin` is the address of the packet that was read.
fn inside(bytes: &[u8], cut: usize, tunnels: u8, origin: usize) -> Result<Headers, Unread> {
    let (ip, fault) = LaxIpSlice::from_slice(bytes).map_err(|_| Other::Cut)?;
    // Behind a fault in extension headers, etherparse 0.21 iterates beyond their end.
    if fault.is_some() {
        return Err(Other::Cut.into());
    }
    let (hop_limit, ip_id, told) = match &ip {
        LaxIpSlice::Ipv4(v4) => {
            let header = v4.header();
            (header.ttl(), Some(header.identification()), usize::from(header.total_len()))
        }
        LaxIpSlice::Ipv6(v6) => {
            let length = usize::from(v6.header().payload_length());
            (v6.header().hop_limit(), None, if length == 0 { 0 } else { 40 + length })
        }
    };
    let payload = ip.payload();
    let header = payload.payload.as_ptr() as usize - bytes.as_ptr() as usize;
    // Segmentation by the network interface leaves no length in packets over 64 KiB.
    let ip_bytes = if told == 0 { bytes.len() + cut } else { told };
    let length = ip_bytes.checked_sub(header).ok_or(Other::Cut)?;
    let opened = tunnel::open(payload.ip_number, payload.payload).filter(|_| tunnels > 0);
    let part = fragment(&ip).map(|(identification, begin, last)| Part {
        of: (ip.source_addr(), ip.destination_addr(), identification, payload.ip_number.0),
        begin,
        bytes: narrow(length),
        last,
        ip_bytes: narrow(ip_bytes),
        header_bytes: narrow(header),
        of_tunnel: begin == 0 && opened.is_some(),
    });
    // A fragment has a length, which no interface leaves out.
    if part.is_some() && told == 0 {
        return Err(Other::Cut.into());
    }
    if let Some(part) = part.filter(|part| part.begin > 0) {
        return Err(Unread::Fragment(part));
    }
    if let Some(opened) = opened {
        let packet = match opened {
            Inside::Packet(packet) => packet,
            Inside::Other(tunnel) => return Err(Other::Tunnel(tunnel).into()),
            Inside::Cut => return Err(Other::Cut.into()),
        };
        let headers = inside(packet, cut, tunnels - 1, origin)?;
        return Ok(Headers { part: headers.part.or(part), ..headers });
    }
    let at = payload.payload.as_ptr() as usize - origin;
    let inner = transport(payload.ip_number, payload.payload, length, at)?;
    Ok(Headers {
        src: ip.source_addr(),
        dst: ip.destination_addr(),
        ip_id,
        hop_limit,
        ip_bytes: narrow(ip_bytes),
        network_header_bytes: narrow(header),
        transport_header_bytes: narrow(inner.header),
        payload_bytes: narrow(length.checked_sub(inner.header).ok_or(Other::Cut)?),
        ports: inner.ports,
        transport: inner.transport,
        media: inner.media,
        payload: inner.payload,
        digest: inner.digest,
        part,
    })
}

fn narrow(length: usize) -> u32 {
    u32::try_from(length).expect("a packet is shorter than 4 GiB")
}

/// Identification, place in bytes and whether it is the last one, of a fragment.
fn fragment(ip: &LaxIpSlice<'_>) -> Option<(u32, u32, bool)> {
    let (identification, units, more) = match ip {
        LaxIpSlice::Ipv4(v4) => {
            let header = v4.header();
            let units = header.fragments_offset().value();
            (header.identification().into(), units, header.more_fragments())
        }
        LaxIpSlice::Ipv6(v6) => v6.extensions().clone().into_iter().find_map(|one| {
            let etherparse::Ipv6ExtensionSlice::Fragment(part) = one else { return None };
            Some((part.identification(), part.fragment_offset().value(), part.more_fragments()))
        })?,
    };
    (units > 0 || more).then_some((identification, u32::from(units) * 8, !more))
}

/// What follows an IP header.
struct Inner {
    header: usize,
    ports: (u16, u16),
    transport: Transport,
    media: Option<Media>,
    payload: Option<Range<u32>>,
    digest: Option<u64>,
}

/// The bytes begin at `at` in the IP packet that was read.
fn transport(kind: IpNumber, bytes: &[u8], length: usize, at: usize) -> Result<Inner, Other> {
    match kind {
        IpNumber::UDP => udp(bytes, length, at),
        IpNumber::TCP => tcp(bytes),
        IpNumber::SCTP => sctp(bytes, length),
        IpNumber::DCCP => dccp(bytes, length, at),
        _ => Err(Other::Protocol(kind.0)),
    }
}

fn udp(bytes: &[u8], length: usize, at: usize) -> Result<Inner, Other> {
    let header = UdpHeaderSlice::from_slice(bytes).map_err(|_| Other::Cut)?;
    let ports = (header.source_port(), header.destination_port());
    let length = length.checked_sub(8).ok_or(Other::Cut)?;
    let (rest, at) = (&bytes[8..], at + 8);
    let inside = |port| ports.0 == port || ports.1 == port;
    let encapsulated = if inside(DCCP_IN_UDP) {
        dccp(rest, length, at).ok()
    } else if inside(SCTP_IN_UDP) {
        sctp(rest, length).ok()
    } else {
        None
    };
    if let Some(inner) = encapsulated {
        return Ok(Inner { header: inner.header + 8, ..inner });
    }
    // A fragment is shorter than its datagram, which may have no length if segmentation is left to the network
    // interface.
    let datagram = usize::from(header.length()).checked_sub(8).unwrap_or(length);
    let whole = &rest[..rest.len().min(datagram)];
    let digest = digest(rest, length);
    let Some((begin, size)) = media::relayed(whole, datagram) else {
        let (media, payload) = content(whole, datagram, at);
        return Ok(Inner { header: 8, ports, transport: Transport::Udp, media, payload, digest });
    };
    let data = whole.get(begin..whole.len().min(begin + size)).unwrap_or(&[]);
    let (inner, payload) = content(data, size, at + begin);
    Ok(Inner {
        header: 8 + datagram - size,
        ports,
        transport: Transport::Udp,
        media: Some(inner.unwrap_or_else(|| media::classify(whole, datagram, at))),
        payload,
        digest,
    })
}

/// What a payload is, and where.
fn content(bytes: &[u8], length: usize, at: usize) -> (Option<Media>, Option<Range<u32>>) {
    if bytes.is_empty() {
        return (None, None);
    }
    let payload = media::range(at, at + bytes.len());
    (Some(media::classify(bytes, length, at)), Some(payload))
}

fn tcp(bytes: &[u8]) -> Result<Inner, Other> {
    // The options may be cut off.
    let fixed = bytes.get(..20).ok_or(Other::Cut)?;
    let header = usize::from(fixed[12] >> 4) * 4;
    let mut whole = [0; 60];
    let there = bytes.len().min(header).min(60);
    whole[..there].copy_from_slice(&bytes[..there]);
    let tcp = TcpHeaderSlice::from_slice(&whole).map_err(|_| Other::Cut)?;
    Ok(Inner {
        header,
        ports: (tcp.source_port(), tcp.destination_port()),
        transport: Transport::Tcp {
            seq: tcp.sequence_number(),
            ack: tcp.ack().then(|| tcp.acknowledgment_number()),
            syn: tcp.syn(),
            fin: tcp.fin(),
            rst: tcp.rst(),
        },
        media: None,
        payload: None,
        digest: None,
    })
}

fn sctp(bytes: &[u8], length: usize) -> Result<Inner, Other> {
    let read = || {
        let ports = (be16(bytes, 0)?, be16(bytes, 2)?);
        let kind = *bytes.get(12)?;
        let (mut at, mut chunks, mut data, mut ack) = (12, Vec::new(), 0, None);
        while at + 4 <= bytes.len() {
            let size = usize::from(be16(bytes, at + 2)?);
            // RFC 9260 §3.3.1, and I-DATA of RFC 8260 §2.1.
            let head = match bytes[at] {
                0 => 16,
                64 => 20,
                _ => 0,
            };
            if size < 4.max(head) {
                break;
            }
            if bytes[at] == SACK {
                ack = be32(bytes, at + 4).or(ack);
            }
            if head > 0 {
                let Some(tsn) = be32(bytes, at + 4) else { break };
                let stream = be16(bytes, at + 8).unwrap_or(0);
                data += size - head;
                chunks.push(Chunk { tsn, stream, bytes: narrow(size - head) });
            }
            at += size.next_multiple_of(4);
        }
        let (header, cut) = (length.checked_sub(data)?, at < length);
        let transport = Transport::Sctp { kind, chunks, ack, cut };
        Some(Inner { header, ports, transport, media: None, payload: None, digest: None })
    };
    read().ok_or(Other::Cut)
}

fn dccp(bytes: &[u8], length: usize, at: usize) -> Result<Inner, Other> {
    let read = || {
        let header = usize::from(*bytes.get(4)?) * 4;
        let (kind, extended) = (bytes.get(8)? >> 1 & 0xf, bytes[8] & 1 == 1);
        let seq = if extended {
            u64::from(be16(bytes, 10)?) << 32 | u64::from(be32(bytes, 12)?)
        } else {
            u64::from(be32(bytes, 8)? & 0xff_ffff)
        };
        if kind > 9 || header < if extended { 16 } else { 12 } {
            return None;
        }
        // DCCP-Data and DCCP-DataAck; RTP over DCCP is RFC 5762.
        let data = bytes.get(header..).filter(|_| matches!(kind, 2 | 4)).unwrap_or(&[]);
        let (media, payload) = content(data, length.saturating_sub(header), at + header);
        Some(Inner {
            header,
            ports: (be16(bytes, 0)?, be16(bytes, 2)?),
            transport: Transport::Dccp { kind, seq, extended },
            media,
            payload,
            digest: None,
        })
    };
    read().ok_or(Other::Cut)
}

/// FNV-1a of the first 64 bytes.
fn digest(bytes: &[u8], length: usize) -> Option<u64> {
    let first = bytes.get(..length.min(64))?;
    Some(first.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    }))
}
