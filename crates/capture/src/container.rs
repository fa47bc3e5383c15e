//! Frames in a capture file: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng).

use std::ops::Range;

/// A frame as captured.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Capture time since 1970, or since any other instant that the recorder chose.
    pub nanos: u64,
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
    let cut = || "ends in the middle of a packet".to_owned();
    match file.first_chunk::<4>() {
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => pcapng(file).ok_or_else(cut)?,
        Some([0xd4, 0xc3, 0xb2, 0xa1]) => pcap(file, Order::Little, 1000).ok_or_else(cut),
        Some([0xa1, 0xb2, 0xc3, 0xd4]) => pcap(file, Order::Big, 1000).ok_or_else(cut),
        Some([0x4d, 0x3c, 0xb2, 0xa1]) => pcap(file, Order::Little, 1).ok_or_else(cut),
        Some([0xa1, 0xb2, 0x3c, 0x4d]) => pcap(file, Order::Big, 1).ok_or_else(cut),
        _ => Err("is neither pcap nor pcapng".to_owned()),
    }
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

/// `None` if the file is truncated.
fn pcap(file: &[u8], order: Order, unit: u64) -> Option<Vec<Packet<'_>>> {
    // The upper bits of the link type hold the length of the frame check sequence.
    let link = order.u32(file, 20)? & 0xffff;
    let (mut at, mut packets) = (24, Vec::new());
    while at < file.len() {
        let seconds = u64::from(order.u32(file, at)?);
        let fraction = u64::from(order.u32(file, at + 4)?);
        let length = order.u32(file, at + 8)? as usize;
        let cut = (order.u32(file, at + 12)? as usize).saturating_sub(length);
        let bytes = file.get(span(at + 16, length)?)?;
        let nanos = seconds * 1_000_000_000 + fraction * unit;
        packets.push(Packet { nanos, cut, link, bytes });
        at += 16 + length;
    }
    Some(packets)
}

/// An interface of a section: its link type, and its clock ticks per second.
#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    ticks: u128,
    /// Seconds to be added to every time.
    offset_s: i64,
}

/// `None` if the file is truncated; an error if its contents are invalid.
fn pcapng(file: &[u8]) -> Option<Result<Vec<Packet<'_>>, String>> {
    let (mut at, mut order) = (0, Order::Little);
    let (mut interfaces, mut packets): (Vec<Interface>, Vec<Packet<'_>>) = (Vec::new(), Vec::new());
    while at < file.len() {
        if file.get(at..at + 4)? == [0x0a, 0x0d, 0x0d, 0x0a] {
            // §4.1: the magic determines the byte order of the section; its interfaces are its own.
            order = if file.get(at + 8..at + 12)? == [0x1a, 0x2b, 0x3c, 0x4d] {
                Order::Big
            } else {
                Order::Little
            };
            interfaces.clear();
        }
        let kind = order.u32(file, at)?;
        let length = order.u32(file, at + 4)? as usize;
        if length < 12 {
            return Some(Err(format!("has a block of {length} bytes")));
        }
        let block = file.get(span(at, length)?)?;
        match kind {
            1 => interfaces.push(interface(order, block)?),
            6 => {
                let number = order.u32(block, 8)?;
                let Some(interface) = interfaces.get(number as usize) else {
                    return Some(Err(format!(
                        "has a packet of interface {number}, which is not there"
                    )));
                };
                let high = u64::from(order.u32(block, 12)?);
                let ticks = u128::from(high << 32 | u64::from(order.u32(block, 16)?));
                let captured = order.u32(block, 20)? as usize;
                let cut = (order.u32(block, 24)? as usize).saturating_sub(captured);
                let bytes = block.get(span(28, captured)?)?;
                let nanos = i128::try_from(ticks * 1_000_000_000 / interface.ticks).ok()?
                    + i128::from(interface.offset_s) * 1_000_000_000;
                let Ok(nanos) = u64::try_from(nanos) else {
                    return Some(Err("has a packet with a time outside 1970 to 2554".to_owned()));
                };
                packets.push(Packet { nanos, cut, link: interface.link, bytes });
            }
            2 => return Some(Err("has packets in obsolete packet blocks".to_owned())),
            3 => return Some(Err("has packets without a time (simple packet blocks)".to_owned())),
            _ => {}
        }
        at += length;
    }
    Some(Ok(packets))
}

/// §4.2: the link type, and from the options the clock resolution (9, by default microseconds) and the offset
/// of its times in seconds (14).
fn interface(order: Order, block: &[u8]) -> Option<Interface> {
    let link = u32::from(order.u16(block, 8)?);
    let (mut at, mut ticks, mut offset_s) = (16, 1_000_000_u128, 0);
    while at + 4 <= block.len() - 4 {
        let (code, length) = (order.u16(block, at)?, usize::from(order.u16(block, at + 2)?));
        if code == 0 {
            break;
        }
        if code == 9 {
            let resolution = *block.get(at + 4)?;
            let exponent = u32::from(resolution & 0x7f).min(38);
            ticks = if resolution >> 7 == 1 { 1 << exponent } else { 10_u128.pow(exponent) };
        }
        if code == 14 {
            let (one, other) = (order.u32(block, at + 4)?, order.u32(block, at + 8)?);
            let (high, low) = match order {
                Order::Little => (other, one),
                Order::Big => (one, other),
            };
            offset_s = (u64::from(high) << 32 | u64::from(low)).cast_signed();
        }
        at += 4 + length.next_multiple_of(4);
    }
    Some(Interface { link, ticks, offset_s })
}

fn span(from: usize, length: usize) -> Option<Range<usize>> {
    Some(from..from.checked_add(length)?)
}
