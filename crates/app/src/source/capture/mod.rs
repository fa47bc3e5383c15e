//! The RTP packets of one source in a capture: capture time, length and header. Media is not examined.

use std::collections::BTreeMap;
use std::path::Path;

use talkspurt_capture::container;
use talkspurt_proto::time::Duration;

use crate::file::Files;

/// RTP's fixed header (RFC 3550 §5.1).
const RTP_HEADER: usize = 12;

/// One source's packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Its synchronisation source.
    pub ssrc: u32,
    /// In time order, at least one.
    pub packets: Vec<Packet>,
}

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Capture time, relative to the first packet.
    pub at: Duration,
    /// Capture time of the first packet with its timestamp.
    pub captured: Duration,
    /// Its timestamp, relative to the first.
    pub ticks: u32,
    /// Its marker.
    pub marker: bool,
    /// Its payload type.
    pub payload_type: u8,
    /// Bytes beyond the fixed header: payload, and contributing sources, extension and padding.
    pub payload_bytes: u32,
}

/// Contents of an RTP header.
#[derive(Clone, Copy, Debug)]
struct Seen {
    number: usize,
    nanos: u64,
    ssrc: u32,
    timestamp: u32,
    marker: bool,
    payload_type: u8,
    payload_bytes: u32,
}

impl Capture {
    /// Reads a file.
    ///
    /// # Errors
    /// The fault, with the packet's number, from 1 as in Wireshark, if there is one.
    pub fn open(files: &dyn Files, path: &Path, ssrc: Option<u32>) -> Result<Self, String> {
        Self::parse(&super::bytes_of(files, path, "a capture")?, ssrc)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// As [`Capture::open`].
    pub fn parse(bytes: &[u8], ssrc: Option<u32>) -> Result<Self, String> {
        let mut sources: BTreeMap<u32, Vec<Seen>> = BTreeMap::new();
        for (number, frame) in (1..).zip(container::packets(bytes)?) {
            if let Some(seen) = rtp(number, &frame) {
                sources.entry(seen.ssrc).or_default().push(seen);
            }
        }
        // A source with RTP's version bits but only one packet is not RTP.
        if sources.values().any(|packets| packets.len() > 1) {
            sources.retain(|_, packets| packets.len() > 1);
        }
        let list =
            sources.iter().map(|(ssrc, packets)| format!("{ssrc} ({} packets)", packets.len()));
        let list = list.collect::<Vec<_>>().join(", ");
        let found = match ssrc {
            _ if sources.is_empty() => return Err("holds no RTP over UDP".to_owned()),
            Some(ssrc) => sources
                .get(&ssrc)
                .map(|packets| (ssrc, packets))
                .ok_or_else(|| format!("holds no RTP of the source {ssrc}; there are {list}"))?,
            None if sources.len() > 1 => {
                return Err(format!("holds RTP of several sources; name one as `ssrc`: {list}"));
            }
            None => sources.iter().next().map(|(ssrc, packets)| (*ssrc, packets)).expect("one"),
        };
        timed(found.0, found.1)
    }

    /// Time from the first packet to the last.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.packets.last().map_or(Duration::ZERO, |last| last.at)
    }

    /// Bytes of all packets beyond the fixed header.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.packets.iter().map(|packet| u64::from(packet.payload_bytes)).sum()
    }

    /// The longest packet, without the fixed header.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.packets.iter().map(|packet| packet.payload_bytes).max().unwrap_or(0)
    }

    /// Media clock rate by its first payload type: RFC 3551 §6, and 90000 for dynamic types, which are mostly
    /// video.
    #[must_use]
    pub fn clock(&self) -> u32 {
        match self.packets.first().map(|packet| packet.payload_type) {
            Some(0 | 3..=5 | 7..=9 | 12 | 13 | 15 | 18) => 8000,
            Some(6) => 16_000,
            Some(10 | 11) => 44_100,
            Some(16) => 11_025,
            Some(17) => 22_050,
            _ => 90_000,
        }
    }
}

fn timed(ssrc: u32, seen: &[Seen]) -> Result<Capture, String> {
    let first = seen[0];
    let (mut packets, mut before, mut captured) =
        (Vec::with_capacity(seen.len()), first, Duration::ZERO);
    for packet in seen {
        if packet.nanos < before.nanos {
            let number = packet.number;
            return Err(format!(
                "packet {number}: goes back in time, behind packet {}",
                before.number
            ));
        }
        let at = Duration::from_nanos(packet.nanos - first.nanos);
        if packet.timestamp != before.timestamp {
            captured = at;
        }
        packets.push(Packet {
            at,
            captured,
            ticks: packet.timestamp.wrapping_sub(first.timestamp),
            marker: packet.marker,
            payload_type: packet.payload_type,
            payload_bytes: packet.payload_bytes,
        });
        before = *packet;
    }
    Ok(Capture { ssrc, packets })
}

/// The RTP header in a UDP packet, if it is one. Lengths come from the headers, so a capture may be truncated
/// after the RTP header.
fn rtp(number: usize, frame: &container::Packet<'_>) -> Option<Seen> {
    let ip = container::ip(frame)?;
    let udp = match ip.first()? >> 4 {
        // No fragments: only the first would have the header.
        4 if ip.get(9) == Some(&17) && be16(ip, 6)? & 0x3fff == 0 => {
            ip.get(usize::from(ip[0] & 0xf) * 4..)?
        }
        6 if ip.get(6) == Some(&17) => ip.get(40..)?,
        _ => return None,
    };
    let length = usize::from(be16(udp, 4)?).checked_sub(8)?;
    let rtp = udp.get(8..)?;
    let payload_bytes = u32::try_from(length.checked_sub(RTP_HEADER)?).ok()?;
    let [first, second, ..] = *rtp else { return None };
    // RFC 5761 §4: values in place of payload types 64 to 95 are RTCP.
    let payload_type = second & 0x7f;
    if first >> 6 != 2 || (64..96).contains(&payload_type) {
        return None;
    }
    Some(Seen {
        number,
        nanos: frame.nanos,
        ssrc: be32(rtp, 8)?,
        timestamp: be32(rtp, 4)?,
        marker: second >> 7 == 1,
        payload_type,
        payload_bytes,
    })
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests;
