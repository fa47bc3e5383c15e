//! The IP packets in a frame of a link layer: Ethernet (with VLAN tags, MPLS, PPPoE, LLC), IEEE 802.11 (with
//! the headers of four recorders), PPP, Cisco HDLC, frame relay, LLC over ATM, Linux cooked captures and packet
//! logs, BSD loopback, raw IP. What holds none is counted by its kind.

use std::collections::BTreeMap;
use std::fmt;

use crate::container::Packet;
use crate::media::be16;

/// Why a frame, or a part of it, has no IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// Frames of another protocol, by its EtherType (IEEE 802).
    EtherType(u16),
    /// Frames of LLC without an EtherType.
    Llc,
    /// Packets of PPP with another protocol: those that negotiate, or compressed headers.
    Ppp,
    /// Packets of MPLS in whose place after the labels there is no IP packet.
    Mpls,
    /// Frames of IEEE 802.11 for management and control, and data frames without data.
    WithoutData,
    /// Data frames of IEEE 802.11 with the Protected Frame bit.
    Encrypted,
    /// Fragments of data frames of IEEE 802.11.
    Fragment,
    /// Data frames of IEEE 802.11 that repeat the frame before them.
    Repeated,
    /// Frames whose receiver found the check sequence wrong.
    Damaged,
    /// Frames that end in their headers.
    Short,
    /// Frames of another address family, by its number on the machine that recorded them.
    Family(u32),
    /// Frames of frame relay with another protocol.
    Relay,
    /// Frames of a link type that is not read.
    LinkType(u32),
}

impl fmt::Display for Left {
    /// As the end of "Not imported: 12 …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EtherType(0x0806) => f.write_str("frames of ARP"),
            Self::EtherType(0x8863) => f.write_str("frames of PPPoE discovery"),
            Self::EtherType(0x888e) => f.write_str("frames of IEEE 802.1X"),
            Self::EtherType(0x88cc) => f.write_str("frames of LLDP"),
            Self::EtherType(kind) => write!(f, "frames of EtherType {kind:#06x}"),
            Self::Llc => f.write_str("frames of LLC without IP"),
            Self::Ppp => f.write_str("packets of PPP without IP"),
            Self::Mpls => f.write_str("packets of MPLS without IP"),
            Self::WithoutData => f.write_str("frames of IEEE 802.11 without data"),
            Self::Encrypted => f.write_str("encrypted frames of IEEE 802.11"),
            Self::Fragment => f.write_str("fragments of frames of IEEE 802.11"),
            Self::Repeated => f.write_str("repetitions of frames of IEEE 802.11"),
            Self::Damaged => f.write_str("frames with a wrong check sequence"),
            Self::Short => f.write_str("frames cut off before the IP header"),
            Self::Family(number) => write!(f, "frames of address family {number}"),
            Self::Relay => f.write_str("frames of frame relay without IP"),
            Self::LinkType(number) => match name(*number) {
                Some(name) => write!(f, "frames of link type {number} ({name})"),
                None => write!(f, "frames of link type {number}"),
            },
        }
    }
}

/// The usual link types that are not read.
fn name(link: u32) -> Option<&'static str> {
    Some(match link {
        6 => "Token Ring",
        10 => "FDDI",
        117 => "OpenBSD's packet filter",
        147..=162 => "reserved for private use",
        187 | 201 => "Bluetooth HCI",
        189 | 220 => "USB of Linux",
        195 | 215 | 230 | 283 => "IEEE 802.15.4",
        197 => "Endace ERF",
        227 => "CAN",
        240 => "netANALYZER",
        249 => "USBPcap",
        251 | 256 => "Bluetooth Low Energy",
        252 => "PDUs exported by Wireshark",
        253 => "netlink",
        _ => return None,
    })
}

/// A direction on a radio channel: receiver, transmitter and, in frames with quality of service, class.
type Way = ([u8; 6], [u8; 6], Option<u8>);

/// Reads the frames of one capture in their order.
#[derive(Debug, Default)]
pub struct Frames {
    /// The Sequence Control field of the last data frame.
    last: BTreeMap<Way, u16>,
}

impl Frames {
    /// Hands over each IP packet of a frame. An A-MSDU of IEEE 802.11 has several.
    pub fn each<'a>(&mut self, packet: &Packet<'a>, found: &mut dyn FnMut(Result<&'a [u8], Left>)) {
        let bytes = packet.bytes;
        match packet.link {
            0 | 108 => found(loopback(bytes)),
            1 => found(ethernet(bytes)),
            // PPP; with HDLC-like framing, PPPoE without Ethernet, or behind a byte for the direction.
            9 | 50 => found(ppp(bytes)),
            51 => found(pppoe(bytes)),
            204 => found(bytes.get(1..).ok_or(Left::Short).and_then(ppp)),
            12 | 14 | 101 | 228 | 229 => found(Ok(bytes)),
            // RFC 2684 over ATM.
            100 => found(llc(bytes)),
            // Cisco HDLC: an address and a control byte.
            104 => found(typed(bytes, 2, 4)),
            107 => found(relay(bytes)),
            // IEEE 802.11, plain, or behind the header of a recorder.
            105 => self.wireless(bytes, false, found),
            127 => match radiotap(bytes) {
                Ok((frame, padded)) => self.wireless(frame, padded, found),
                Err(left) => found(Err(left)),
            },
            119 | 163 => match prism(bytes) {
                Ok(frame) => self.wireless(frame, false, found),
                Err(left) => found(Err(left)),
            },
            192 => match ppi(bytes) {
                Ok((192, _)) => found(Err(Left::LinkType(192))),
                Ok((link, bytes)) => self.each(&Packet { link, bytes, ..*packet }, found),
                Err(left) => found(Err(left)),
            },
            // Linux cooked, versions 1 and 2.
            113 => found(typed(bytes, 14, 16)),
            276 => found(typed(bytes, 0, 20)),
            239 => found(nflog(bytes)),
            other => found(Err(Left::LinkType(other))),
        }
    }

    /// IEEE 802.11-2020 §9.3.2: a data frame.
    fn wireless<'a>(
        &mut self,
        bytes: &'a [u8],
        padded: bool,
        found: &mut dyn FnMut(Result<&'a [u8], Left>),
    ) {
        let head = match self.head(bytes) {
            Ok(head) => head,
            Err(left) => return found(Err(left)),
        };
        // The receiver may have padded the header to whole words.
        let at = if padded { head.bytes.next_multiple_of(4) } else { head.bytes };
        let Some(mut rest) = bytes.get(at..) else { return found(Err(Left::Short)) };
        if !head.aggregate {
            return found(llc(rest));
        }
        // §9.3.2.2: subframes with two addresses and a length, each padded to whole words but the last. The
        // check sequence of four bytes may follow.
        while rest.len() >= 14 {
            let length = usize::from(be16(rest, 12).unwrap_or(0));
            let end = rest.len().min(14 + length);
            found(llc(&rest[14..end]));
            rest = rest.get((14 + length).next_multiple_of(4)..).unwrap_or(&[]);
        }
    }

    fn head(&mut self, bytes: &[u8]) -> Result<Head, Left> {
        let &[kind, flags, ..] = bytes else { return Err(Left::Short) };
        // §9.2.4.1: type 2 is data; bit 2 of the subtype, no data; bit 3, quality of service.
        if kind & 0x0f != 0x08 || kind & 0x40 != 0 {
            return Err(Left::WithoutData);
        }
        let (quality, both) = (kind & 0x80 != 0, flags & 3 == 3);
        let mut length = if both { 30 } else { 24 };
        let field = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let control = if quality { field(length).ok_or(Left::Short)? } else { 0 };
        if quality {
            // The +HTC bit says that the HT Control field follows.
            length += if flags & 0x80 == 0 { 2 } else { 6 };
        }
        if flags & 0x40 != 0 {
            return Err(Left::Encrypted);
        }
        let sequence = field(22).ok_or(Left::Short)?;
        let address = |at: usize| *bytes[at..].first_chunk().expect("24 bytes are there");
        let class = quality.then_some((control & 0xf) as u8);
        // §10.3.2.14: a frame with the Retry bit and the numbers of the one before it is a duplicate.
        let before = self.last.insert((address(4), address(10), class), sequence);
        if flags & 0x08 != 0 && before == Some(sequence) {
            return Err(Left::Repeated);
        }
        if flags & 0x04 != 0 || sequence & 0xf != 0 {
            return Err(Left::Fragment);
        }
        Ok(Head { bytes: length, aggregate: control & 0x80 != 0 })
    }
}

/// The header of a data frame of IEEE 802.11.
struct Head {
    bytes: usize,
    /// Whether the body is an A-MSDU.
    aggregate: bool,
}

/// The IP packet in an Ethernet frame.
///
/// # Errors
/// What it has instead.
pub fn ethernet(bytes: &[u8]) -> Result<&[u8], Left> {
    // IEEE 802.3: up to 1500 it is a length, and LLC follows.
    match be16(bytes, 12) {
        Some(length @ ..=1500) => {
            let end = bytes.len().min(14 + usize::from(length));
            llc(bytes.get(14..end).ok_or(Left::Short)?)
        }
        _ => typed(bytes, 12, 14),
    }
}

/// The IP packet at `skip`, by the EtherType at `at`.
fn typed(bytes: &[u8], at: usize, mut skip: usize) -> Result<&[u8], Left> {
    let mut kind = be16(bytes, at).ok_or(Left::Short)?;
    // IEEE 802.1Q: a tag, followed by the type.
    while matches!(kind, 0x8100 | 0x88a8) {
        kind = be16(bytes, skip + 2).ok_or(Left::Short)?;
        skip += 4;
    }
    let rest = bytes.get(skip..).ok_or(Left::Short)?;
    match kind {
        0x0800 | 0x86dd => Ok(rest),
        0x8847 | 0x8848 => mpls(rest),
        0x8864 => pppoe(rest),
        other => Err(Left::EtherType(other)),
    }
}

/// IEEE 802.2 with the Subnetwork Access Protocol: an EtherType behind `aa aa 03` and an organisation, which
/// is 0 (RFC 1042), or `0000f8` between bridges.
fn llc(bytes: &[u8]) -> Result<&[u8], Left> {
    match bytes {
        [0xaa, 0xaa, 3, 0, 0, 0 | 0xf8, ..] => typed(bytes, 6, 8),
        _ => Err(Left::Llc),
    }
}

/// RFC 3032 §2.1: entries of four bytes, of which the last has the bit S. No field says what follows; the
/// first four bits are a version of IP, or not.
fn mpls(mut bytes: &[u8]) -> Result<&[u8], Left> {
    loop {
        let (entry, rest) = bytes.split_first_chunk::<4>().ok_or(Left::Short)?;
        bytes = rest;
        if entry[2] & 1 == 1 {
            break;
        }
    }
    match bytes.first().map(|first| first >> 4) {
        Some(4 | 6) => Ok(bytes),
        Some(_) => Err(Left::Mpls),
        None => Err(Left::Short),
    }
}

/// RFC 2516 §4: six bytes of header in a session, then PPP.
fn pppoe(bytes: &[u8]) -> Result<&[u8], Left> {
    let end = 6 + usize::from(be16(bytes, 4).ok_or(Left::Short)?);
    ppp(bytes.get(6..bytes.len().min(end)).ok_or(Left::Short)?)
}

/// RFC 1661 §2, behind the address and control fields of RFC 1662 §3.1 if they are there. A protocol with a
/// first byte that is odd has one byte.
fn ppp(bytes: &[u8]) -> Result<&[u8], Left> {
    let bytes = bytes.strip_prefix(&[0xff, 3]).unwrap_or(bytes);
    match bytes {
        [0x21 | 0x57, rest @ ..] | [0, 0x21 | 0x57, rest @ ..] => Ok(rest),
        [_, _, ..] => Err(Left::Ppp),
        _ => Err(Left::Short),
    }
}

/// BSD: a family of four bytes, in the byte order of the recorder or, from OpenBSD, in that of the network. The
/// number of IPv6 differs among systems.
fn loopback(bytes: &[u8]) -> Result<&[u8], Left> {
    let (family, rest) = bytes.split_first_chunk().ok_or(Left::Short)?;
    let family = match u32::from_le_bytes(*family) {
        small @ ..=0xffff => small,
        _ => u32::from_be_bytes(*family),
    };
    match family {
        2 | 10 | 24 | 28 | 30 => Ok(rest),
        other => Err(Left::Family(other)),
    }
}

/// Linux's log of packets: family, version and group in four bytes, then attributes, of which the packet is
/// number 9. Each has its length, type and value, padded to whole words, in the byte order of the recorder; in
/// the other one, lengths are too great.
fn nflog(bytes: &[u8]) -> Result<&[u8], Left> {
    fn packet(mut rest: &[u8], number: fn([u8; 2]) -> u16) -> Option<&[u8]> {
        loop {
            let (length, kind) = (*rest.first_chunk()?, *rest.get(2..)?.first_chunk()?);
            let (length, kind) = (usize::from(number(length)), number(kind));
            if kind == 9 {
                return rest.get(4..rest.len().min(length));
            }
            rest = rest.get(length.max(4).next_multiple_of(4)..)?;
        }
    }
    let (head, rest) = bytes.split_first_chunk::<4>().ok_or(Left::Short)?;
    if !matches!(head[0], 2 | 10) {
        return Err(Left::Family(head[0].into()));
    }
    packet(rest, u16::from_le_bytes).or_else(|| packet(rest, u16::from_be_bytes)).ok_or(Left::Short)
}

/// An address, whose last byte is odd, then a control byte 3 and the protocol's number, or for Cisco's devices
/// an EtherType. The number of IPv4 is `cc`, that of IPv6 `8e`, and that of SNAP `80`, which may be padded.
fn relay(bytes: &[u8]) -> Result<&[u8], Left> {
    let last = bytes.iter().take(4).position(|byte| byte & 1 == 1).ok_or(Left::Short)?;
    match &bytes[last + 1..] {
        [3, 0xcc | 0x8e, rest @ ..] | [8, 0, rest @ ..] | [0x86, 0xdd, rest @ ..] => Ok(rest),
        [3, 0, 0x80, 0, 0, 0, rest @ ..] | [3, 0x80, 0, 0, 0, rest @ ..] => typed(rest, 0, 2),
        [] => Err(Left::Short),
        _ => Err(Left::Relay),
    }
}

/// The frame behind a header of Prism cards or of AVS, which both say their length. Recorders of AVS used the
/// link type of Prism too.
fn prism(bytes: &[u8]) -> Result<&[u8], Left> {
    let read = || {
        let big = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let length = match big(0)? {
            // AVS, by its version.
            0x8021_1001 | 0x8021_1002 => big(4)?,
            // In the byte order of the recorder.
            _ => big(4)?.min(big(4)?.swap_bytes()),
        };
        bytes.get(usize::try_from(length).ok()?..)
    };
    read().ok_or(Left::Short)
}

/// The link type of the frame behind a header of PPI, and the frame.
fn ppi(bytes: &[u8]) -> Result<(u32, &[u8]), Left> {
    let read = || {
        let length = u16::from_le_bytes(*bytes.get(2..)?.first_chunk()?);
        let link = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
        // Its length counts these eight bytes.
        Some((link, bytes.get(usize::from(length).max(8)..)?))
    };
    read().ok_or(Left::Short)
}

/// The frame behind a header of radiotap, and whether its own header is padded to whole words.
fn radiotap(bytes: &[u8]) -> Result<(&[u8], bool), Left> {
    let read = || {
        let length = usize::from(u16::from_le_bytes(*bytes.get(2..)?.first_chunk()?));
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        // Bit 31 of each word says that another one follows; then come the fields, of which the first two
        // are a time of eight bytes on a multiple of eight, and the flags.
        let (first, mut end) = (word(4)?, 8);
        while word(end - 4)? >> 31 == 1 {
            end += 4;
        }
        let at = if first & 1 == 1 { end.next_multiple_of(8) + 8 } else { end };
        let flags = if first & 2 == 2 { *bytes.get(at)? } else { 0 };
        Some((bytes.get(length..)?, flags))
    };
    let (frame, flags) = read().ok_or(Left::Short)?;
    if flags & 0x40 != 0 {
        return Err(Left::Damaged);
    }
    Ok((frame, flags & 0x20 != 0))
}
