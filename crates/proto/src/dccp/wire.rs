//! The DCCP header (RFC 4340 §5, RFC 5596 §2.2.1 for Listen) and its checksum over part or all of
//! the application data (§9.1, §9.2), over IPv4 and IPv6.
//!
//! The header is checked as in §8.5 step 1; options stay bytes. Application data that is no media
//! packet although media is expected stays data: the packet still acknowledges and counts.

use crate::octets::Tail;
use crate::packet::PacketBox;
use crate::transport::{Layers, PacketFormat};
use std::net::IpAddr;

use bytes::Bytes;

use crate::dccp::{Kind, Options, Packet, ResetCode, WireSeq};
use crate::frame;
use crate::frame::Frame;
use crate::octets::checksum::{Sum, crc32c};
use crate::octets::{Ends, Hints, WireError, at_least, u16_at, u32_at};
use crate::packet::{Damage, Quoted};

/// DCCP's protocol number (RFC 4340 §19.1).
pub const PROTOCOL: u8 = 33;
/// Bytes of a generic header with short sequence numbers (§5.1, X = 0).
pub const SHORT_HEADER: usize = 12;
/// Bytes of a generic header with extended sequence numbers (§5.1, X = 1).
pub const EXTENDED_HEADER: usize = 16;
/// Position of the checksum.
const CHECKSUM: std::ops::Range<usize> = 6..8;

/// Appends a packet; options are padded to a full word.
///
/// # Errors
/// [`WireError::TooLong`] if header and options exceed 255 words or the packet 65535 bytes;
/// [`WireError::Malformed`] for a packet the RFC cannot encode: numbers of two widths, short ones on
/// a type without them, a checksum that covers more data than there is.
pub fn emit(packet: &Packet, ends: &Ends, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    let covered = emit_unsummed(packet, ends, out)?;
    write_checksum(&mut out[start..], covered, ends.src, ends.dst);
    Ok(())
}

fn write_checksum(bytes: &mut [u8], covered: usize, src: IpAddr, dst: IpAddr) {
    bytes[CHECKSUM].fill(0);
    // §9.1: the length in the pseudo-header is the packet's, regardless of coverage.
    let sum = Sum::pseudo_header(src, dst, PROTOCOL, bytes.len());
    let checksum = sum.over(&bytes[..covered]).finish();
    bytes[CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
}

/// Writes the checksum of a packet whose bytes were changed.
///
/// # Errors
/// As [`check`], except for a wrong checksum.
pub fn sum(bytes: &mut [u8], src: IpAddr, dst: IpAddr) -> Result<(), WireError> {
    let header_bytes = check_header(bytes)?;
    let covered =
        covered(bytes[5], header_bytes, bytes.len()).ok_or(WireError::Checksum("DCCP"))?;
    write_checksum(bytes, covered, src, dst);
    Ok(())
}

/// Appends a packet whose checksum is zero; returns the number of bytes that a checksum covers.
pub(crate) fn emit_unsummed(
    packet: &Packet,
    ends: &Ends,
    out: &mut Vec<u8>,
) -> Result<usize, WireError> {
    let start = out.len();
    let header_bytes = packet.header_bytes();
    let words = u8::try_from(header_bytes / 4).map_err(|_| WireError::TooLong("DCCP header"))?;
    emit_ports(ends, out);
    emit_generic(&generic(packet, words), out)?;
    emit_type(&packet.kind, packet.seq.is_extended(), out)?;
    out.extend_from_slice(packet.options.as_bytes());
    out.resize(start + header_bytes, 0);
    frame::emit(&packet.payload, out);
    let bytes = out.len() - start;
    if bytes > usize::from(u16::MAX) {
        return Err(WireError::TooLong("DCCP packet"));
    }
    covered(packet.cscov, header_bytes, bytes)
        .ok_or(WireError::Malformed("DCCP checksum covers more data than there is"))
}

/// §9.2: number of bytes covered by the checksum; `None` if the coverage exceeds the data.
pub(crate) fn covered(cscov: u8, header_bytes: usize, bytes: usize) -> Option<usize> {
    match cscov & 0xf {
        0 => Some(bytes),
        words => Some(header_bytes + (usize::from(words) - 1) * 4).filter(|end| *end <= bytes),
    }
}

/// Bytes of both ports.
const PORTS: usize = 4;

/// The generic header without ports and checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generic {
    pub(super) data_offset: u8,
    pub(super) ccval: u8,
    pub(super) cscov: u8,
    pub(super) kind: u8,
    pub(super) seq: WireSeq,
}

fn generic(packet: &Packet, data_offset: u8) -> Generic {
    let Packet { ccval, cscov, seq, .. } = *packet;
    Generic { data_offset, ccval, cscov, kind: packet.kind.number(), seq }
}

fn emit_ports(ends: &Ends, out: &mut Vec<u8>) {
    out.extend_from_slice(&ends.src_port.to_be_bytes());
    out.extend_from_slice(&ends.dst_port.to_be_bytes());
}

/// Appends a generic header (§5.1) after its ports, with a checksum of zero.
pub(crate) fn emit_generic(header: &Generic, out: &mut Vec<u8>) -> Result<(), WireError> {
    let coverage = header.ccval << 4 | header.cscov & 0xf;
    out.extend_from_slice(&[header.data_offset, coverage, 0, 0]);
    match header.seq {
        WireSeq::Extended(seq) => {
            out.extend_from_slice(&[header.kind << 1 | 1, 0]);
            out.extend_from_slice(&seq.to_be_bytes()[2..]);
        }
        WireSeq::Short(seq) if allows_short(header.kind) => {
            out.push(header.kind << 1);
            out.extend_from_slice(&seq.to_be_bytes()[1..]);
        }
        WireSeq::Short(_) => return Err(SHORT_ON_WRONG_TYPE),
    }
    Ok(())
}

/// The start of a packet's header as quoted by a router: the whole generic header (§5.1) with a
/// checksum of zero, since a quote without Sequence Number would not identify a packet.
#[must_use]
pub fn quoted(packet: &Packet) -> Quoted {
    let header = generic(packet, (packet.header_bytes() / 4) as u8);
    let mut bytes = Vec::with_capacity(Quoted::MAX_BYTES);
    // Short numbers on a type without them (§5.1) have no encoding; such a packet is never sent.
    let _ = emit_generic(&header, &mut bytes);
    Quoted::new(PROTOCOL, &bytes)
}

/// The Sequence Number in a quote, which identifies the packet.
#[must_use]
pub fn quoted_seq(quoted: &Quoted) -> Option<WireSeq> {
    let bytes = quoted.behind_ports();
    let extended = bytes.get(4)? & 1 == 1;
    let complete = bytes.len() >= if extended { EXTENDED_HEADER } else { SHORT_HEADER } - PORTS;
    (quoted.protocol() == PROTOCOL && complete).then(|| seq_at(bytes, 8 - PORTS, extended))
}

/// How many bytes of a generic header a router quotes.
///
/// # Errors
/// Truncated bytes.
pub(crate) fn quoted_bytes(bytes: &[u8]) -> Result<usize, WireError> {
    at_least(bytes, SHORT_HEADER, "quoted DCCP header")?;
    let length = if is_extended(bytes) { EXTENDED_HEADER } else { SHORT_HEADER };
    at_least(bytes, length, "quoted DCCP header")?;
    Ok(length)
}

const SHORT_ON_WRONG_TYPE: WireError =
    WireError::Malformed("DCCP type has no short sequence numbers");

/// §5.1: X may be zero on Data, Ack and `DataAck` only.
const fn allows_short(kind: u8) -> bool {
    matches!(kind, 2..=4)
}

/// Appends acknowledgement subheader and type-specific fields (§5.2 to §5.7).
fn emit_type(kind: &Kind, extended: bool, out: &mut Vec<u8>) -> Result<(), WireError> {
    match kind.ack() {
        None => {}
        Some(WireSeq::Extended(ack)) if extended => {
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(&ack.to_be_bytes()[2..]);
        }
        Some(WireSeq::Short(ack)) if !extended => {
            out.push(0);
            out.extend_from_slice(&ack.to_be_bytes()[1..]);
        }
        Some(_) => return Err(WireError::Malformed("DCCP numbers are of two widths")),
    }
    match *kind {
        Kind::Request { service } | Kind::Response { service, .. } | Kind::Listen { service } => {
            out.extend_from_slice(&service.to_be_bytes());
        }
        Kind::Reset { code, data: [first, second, third], .. } => {
            out.extend_from_slice(&[code.0, first, second, third]);
        }
        _ => {}
    }
    Ok(())
}

/// Reads and checks a packet. Bits beyond the checksum's coverage may be wrong; a Data Checksum
/// option (§9.3), if present, determines the damage.
///
/// # Errors
/// Bytes that §8.5 step 1 drops: truncated, of unknown type, with an impossible data offset,
/// with short numbers where not allowed, a wrong checksum, or one that covers too much.
pub fn parse(
    bytes: &[u8],
    src: IpAddr,
    dst: IpAddr,
    hints: Hints,
) -> Result<(Ends, Packet, Damage), WireError> {
    let (header_bytes, covered) = check(bytes, src, dst)?;
    let packet = read(bytes, header_bytes, hints);
    let damage = match packet.options.data_checksum() {
        Some(crc) if covered < bytes.len() && crc != crc32c(&bytes[header_bytes..]) => {
            Damage::Payload
        }
        _ => Damage::None,
    };
    let ends = Ends { src, dst, src_port: u16_at(bytes, 0), dst_port: u16_at(bytes, 2) };
    Ok((ends, packet, damage))
}

/// §8.5 step 1: the header and its checksum. Returns the bytes of header and options, and those that the
/// checksum covers.
///
/// # Errors
/// As [`parse`].
pub fn check(bytes: &[u8], src: IpAddr, dst: IpAddr) -> Result<(usize, usize), WireError> {
    let header_bytes = check_header(bytes)?;
    // §9.2: a packet whose coverage exceeds its data is treated as one with a wrong checksum.
    let wrong = WireError::Checksum("DCCP");
    let covered = covered(bytes[5], header_bytes, bytes.len()).ok_or(wrong)?;
    let sum = Sum::pseudo_header(src, dst, PROTOCOL, bytes.len());
    if sum.over(&bytes[..covered]).finish() != 0 {
        return Err(wrong);
    }
    Ok((header_bytes, covered))
}

/// §8.5 step 1 up to the checksum; returns the length of header and options.
pub(crate) fn check_header(bytes: &[u8]) -> Result<usize, WireError> {
    at_least(bytes, SHORT_HEADER, "DCCP header")?;
    let kind = type_of(bytes);
    let header_bytes = usize::from(bytes[4]) * 4;
    let fixed =
        fixed_bytes(kind, is_extended(bytes)).ok_or(WireError::Unsupported("DCCP packet type"))?;
    if header_bytes < fixed {
        return Err(WireError::Malformed("DCCP data offset is below the type's header"));
    }
    if header_bytes > bytes.len() {
        return Err(WireError::Malformed("DCCP data offset is beyond the packet"));
    }
    if !is_extended(bytes) && !allows_short(kind) {
        return Err(SHORT_ON_WRONG_TYPE);
    }
    Ok(header_bytes)
}

const fn type_of(bytes: &[u8]) -> u8 {
    bytes[8] >> 1 & 0xf
}
const fn is_extended(bytes: &[u8]) -> bool {
    bytes[8] & 1 == 1
}

/// Bytes of a type's header without options; `None` for the reserved types, 11 to 15.
const fn fixed_bytes(kind: u8, extended: bool) -> Option<usize> {
    let (generic, ack) = if extended { (EXTENDED_HEADER, 8) } else { (SHORT_HEADER, 4) };
    match kind {
        0 | 10 => Some(generic + 4),
        1 | 7 => Some(generic + ack + 4),
        2 => Some(generic),
        3..=6 | 8 | 9 => Some(generic + ack),
        _ => None,
    }
}

/// Reads a packet whose header was already checked.
pub(crate) fn read(bytes: &[u8], header_bytes: usize, hints: Hints) -> Packet {
    let (kind, extended) = (type_of(bytes), is_extended(bytes));
    let fixed = fixed_bytes(kind, extended).expect("the type was checked");
    let options = Options::from_bytes(&bytes[fixed..header_bytes]);
    let data = Bytes::copy_from_slice(&bytes[header_bytes..]);
    Packet {
        seq: seq_at(bytes, 8, extended),
        ccval: bytes[5] >> 4,
        cscov: bytes[5] & 0xf,
        kind: read_type(bytes, kind, extended, fixed),
        options,
        payload: frame(kind, data, hints),
    }
}

/// The low 48 bits of the eight bytes at `at`, or the low 24 of the four.
fn seq_at(bytes: &[u8], at: usize, extended: bool) -> WireSeq {
    if extended {
        let high = u64::from(u16_at(bytes, at + 2));
        WireSeq::Extended(high << 32 | u64::from(u32_at(bytes, at + 4)))
    } else {
        WireSeq::Short(u32_at(bytes, at) & 0xff_ffff)
    }
}

fn read_type(bytes: &[u8], kind: u8, extended: bool, fixed: usize) -> Kind {
    // A type without acknowledgement has its own four bytes in this place, or the caller's bytes.
    let ack = || seq_at(bytes, if extended { EXTENDED_HEADER } else { SHORT_HEADER }, extended);
    let last = || u32_at(bytes, fixed - 4);
    match kind {
        0 => Kind::Request { service: last() },
        1 => Kind::Response { ack: ack(), service: last() },
        2 => Kind::Data,
        3 => Kind::Ack { ack: ack() },
        4 => Kind::DataAck { ack: ack() },
        5 => Kind::CloseReq { ack: ack() },
        6 => Kind::Close { ack: ack() },
        7 => {
            let [code, data @ ..] = last().to_be_bytes();
            Kind::Reset { ack: ack(), code: ResetCode(code), data }
        }
        8 => Kind::Sync { ack: ack() },
        9 => Kind::SyncAck { ack: ack() },
        _ => Kind::Listen { service: last() },
    }
}

/// RFC 5762 §4.1: an RTP or RTCP packet is the application data of a packet that carries data.
fn frame(kind: u8, data: Bytes, hints: Hints) -> Frame {
    let media = hints.media && matches!(kind, 0 | 1 | 2 | 4);
    frame::carried(data, Hints { media, ..hints })
}

impl PacketFormat for PacketBox<Packet> {
    const PROTOCOL: u8 = PROTOCOL;

    #[inline(always)]
    fn layers(&self) -> Layers {
        let (media, payload) = self.payload.lengths();
        let transport = self.header_bytes() as u32;
        Layers { transport, media: media as u32, payload: payload as u32 }
    }
    fn quoted(&self) -> Quoted {
        quoted(self)
    }
    fn emit(&self, ends: &Ends, out: &mut Vec<u8>) -> Result<Tail, WireError> {
        emit(self, ends, out).map(|()| Tail::default())
    }
}
