//! Frames in a capture file: pcap (draft-ietf-opsawg-pcap), also as modified by Kuznetzov, and pcapng
//! (draft-ietf-opsawg-pcapng). What a file says of its lengths is checked against the bytes that are there.

use std::ops::Range;

/// A frame as captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Capture time since 1970, or since any other instant that the recorder chose. A Simple Packet Block has
    /// none: its packet gets the time of the packet before it in the file or, if no packet before it has one,
    /// that of the first packet that has.
    pub nanos: u64,
    /// Whether the file has a time for it.
    pub timed: bool,
    /// Bytes of the frame behind those that were captured.
    pub cut: usize,
    /// The link type of its interface.
    pub link: u32,
    /// The bytes that were captured.
    pub bytes: &'a [u8],
}

/// All frames of a file.
///
/// # Errors
/// The fault, as the end of a sentence that begins with the file's name.
pub fn packets(file: &[u8]) -> Result<Vec<Packet<'_>>, String> {
    use Order::{Big, Little};
    let (order, unit, header) = match file.first_chunk::<4>() {
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => return pcapng(file),
        Some([0xd4, 0xc3, 0xb2, 0xa1]) => (Little, 1000, 16),
        Some([0xa1, 0xb2, 0xc3, 0xd4]) => (Big, 1000, 16),
        Some([0x4d, 0x3c, 0xb2, 0xa1]) => (Little, 1, 16),
        Some([0xa1, 0xb2, 0x3c, 0x4d]) => (Big, 1, 16),
        // Kuznetzov's format adds interface, protocol and type to the header of a packet.
        Some([0x34, 0xcd, 0xb2, 0xa1]) => (Little, 1000, 24),
        Some([0xa1, 0xb2, 0xcd, 0x34]) => (Big, 1000, 24),
        _ => return Err("is neither pcap nor pcapng".to_owned()),
    };
    pcap(file, order, unit, header).ok_or_else(cut)
}

fn cut() -> String {
    "ends in the middle of a packet".to_owned()
}

#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let raw = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(raw),
            Self::Big => u16::from_be_bytes(raw),
        })
    }
    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let raw = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(raw),
            Self::Big => u32::from_be_bytes(raw),
        })
    }
}

/// `None` if the file is truncated. Each packet has a header of so many bytes.
fn pcap(file: &[u8], order: Order, unit: u64, header: usize) -> Option<Vec<Packet<'_>>> {
    // The upper bits of the link type hold the length of the frame check sequence.
    let link = order.u32(file, 20)? & 0xffff;
    let (mut at, mut packets) = (24, Vec::new());
    while at < file.len() {
        let seconds = u64::from(order.u32(file, at)?);
        let fraction = u64::from(order.u32(file, at + 4)?);
        let length = order.u32(file, at + 8)? as usize;
        let cut = (order.u32(file, at + 12)? as usize).saturating_sub(length);
        let bytes = file.get(span(at + header, length)?)?;
        let nanos = seconds * 1_000_000_000 + fraction * unit;
        packets.push(Packet { nanos, timed: true, cut, link, bytes });
        at += header + length;
    }
    Some(packets)
}

/// An interface of a section: its link type, and its clock.
#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    /// Bytes of each packet that it captures; 0: all.
    most: u32,
    /// The exponent of a tick of its clock, in seconds: 10 to minus this or, with the upper bit, 2.
    resolution: u8,
    /// Seconds to be added to every time.
    offset_s: i64,
}

impl Interface {
    fn nanos(self, ticks: u64) -> Result<u64, String> {
        let base: u128 = if self.resolution >> 7 == 1 { 2 } else { 10 };
        let exponent = u32::from(self.resolution & 0x7f);
        // With finer ones, 64 bits would not hold a second.
        let per_second = base.checked_pow(exponent).filter(|it| *it <= u128::from(u64::MAX));
        let per_second = per_second.ok_or_else(|| {
            format!("has times in units of {base}^-{exponent} s, which are not read")
        })?;
        let nanos = u128::from(ticks) * 1_000_000_000 / per_second;
        let offset = i128::from(self.offset_s) * 1_000_000_000;
        // Tables hold times in 63 bits.
        let nanos = i64::try_from(nanos.cast_signed() + offset).ok();
        nanos
            .and_then(|nanos| u64::try_from(nanos).ok())
            .ok_or_else(|| "has a packet with a time outside 1970 to 2262".to_owned())
    }
}

fn pcapng(file: &[u8]) -> Result<Vec<Packet<'_>>, String> {
    let (mut at, mut order) = (0, Order::Little);
    let (mut interfaces, mut packets): (Vec<Interface>, Vec<Packet<'_>>) = (Vec::new(), Vec::new());
    while at < file.len() {
        if file.get(span(at, 4).ok_or_else(cut)?) == Some(&[0x0a, 0x0d, 0x0d, 0x0a]) {
            // §4.1: the magic determines the byte order of the section; its interfaces are its own.
            order = match file.get(at + 8..at + 12).ok_or_else(cut)? {
                [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
                [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
                _ => return Err("has a section without the magic number of pcapng".to_owned()),
            };
            // Another major version has other blocks.
            let version = order.u16(file, at + 12).ok_or_else(cut)?;
            if version != 1 {
                return Err(format!(
                    "has a section of version {version} of pcapng, which is not read"
                ));
            }
            interfaces.clear();
        }
        let kind = order.u32(file, at).ok_or_else(cut)?;
        let length = order.u32(file, at + 4).ok_or_else(cut)? as usize;
        if length < 12 {
            return Err(format!("has a block of {length} bytes"));
        }
        let block = span(at, length).and_then(|whole| file.get(whole)).ok_or_else(cut)?;
        let short =
            || format!("has a block of {length} bytes, which is too short for its contents");
        match kind {
            1 => interfaces.push(interface(order, block).ok_or_else(short)?),
            // §4.3 the Enhanced Packet Block, and the obsolete one, whose interface has 16 bits; the others
            // count lost packets.
            2 | 6 => {
                let number = match kind {
                    2 => order.u16(block, 8).map(u32::from),
                    _ => order.u32(block, 8),
                };
                let interface = of(&interfaces, number.ok_or_else(short)?)?;
                let stamp = stamped(order, block).ok_or_else(short)?;
                let nanos = interface.nanos(stamp.ticks)?;
                let (cut, bytes) = (stamp.cut, stamp.bytes);
                packets.push(Packet { nanos, timed: true, cut, link: interface.link, bytes });
            }
            // §4.4: the Simple Packet Block is of interface 0, which may capture less than the packet.
            3 => {
                let interface = of(&interfaces, 0)?;
                let whole = order.u32(block, 8).ok_or_else(short)?;
                let most = if interface.most == 0 { u32::MAX } else { interface.most };
                let captured = whole.min(most) as usize;
                let bytes = block[..length - 4]
                    .get(12..)
                    .and_then(|data| data.get(..captured))
                    .ok_or_else(short)?;
                let (nanos, cut) =
                    (packets.last().map_or(0, |last| last.nanos), whole as usize - captured);
                packets.push(Packet { nanos, timed: false, cut, link: interface.link, bytes });
            }
            _ => {}
        }
        at += length;
    }
    let first = packets.iter().position(|packet| packet.timed);
    if let Some(first) = first {
        let nanos = packets[first].nanos;
        packets[..first].iter_mut().for_each(|packet| packet.nanos = nanos);
    } else if !packets.is_empty() {
        return Err(
            "has no times, since all its packets are in Simple Packet Blocks; record it with \
                    Enhanced Packet Blocks"
                .to_owned(),
        );
    }
    Ok(packets)
}

fn of(interfaces: &[Interface], number: u32) -> Result<Interface, String> {
    let found = interfaces.get(number as usize).copied();
    found.ok_or_else(|| format!("has a packet of interface {number}, which is not there"))
}

/// What an Enhanced Packet Block or an obsolete one holds behind its interface.
struct Stamped<'a> {
    ticks: u64,
    cut: usize,
    bytes: &'a [u8],
}

fn stamped(order: Order, block: &[u8]) -> Option<Stamped<'_>> {
    let high = u64::from(order.u32(block, 12)?);
    let ticks = high << 32 | u64::from(order.u32(block, 16)?);
    let captured = order.u32(block, 20)? as usize;
    let cut = (order.u32(block, 24)? as usize).saturating_sub(captured);
    let bytes = block[..block.len() - 4].get(span(28, captured)?)?;
    Some(Stamped { ticks, cut, bytes })
}

/// §4.2: the link type, and from the options the clock resolution (9, by default microseconds) and the offset
/// of its times in seconds (14).
fn interface(order: Order, block: &[u8]) -> Option<Interface> {
    let block = &block[..block.len() - 4];
    let (link, most) = (u32::from(order.u16(block, 8)?), order.u32(block, 12)?);
    let (mut at, mut resolution, mut offset_s) = (16, 6, 0);
    while at + 4 <= block.len() {
        let (code, length) = (order.u16(block, at)?, usize::from(order.u16(block, at + 2)?));
        match (code, length) {
            (0, _) => break,
            (9, 1) => resolution = *block.get(at + 4)?,
            (14, 8) => {
                let (one, other) = (order.u32(block, at + 4)?, order.u32(block, at + 8)?);
                let (high, low) = match order {
                    Order::Little => (other, one),
                    Order::Big => (one, other),
                };
                offset_s = (u64::from(high) << 32 | u64::from(low)).cast_signed();
            }
            _ => {}
        }
        at += 4 + length.next_multiple_of(4);
    }
    Some(Interface { link, most, resolution, offset_s })
}

fn span(from: usize, length: usize) -> Option<Range<usize>> {
    Some(from..from.checked_add(length)?)
}
