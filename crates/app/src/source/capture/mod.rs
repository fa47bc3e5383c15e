//! The RTP packets of one source in a capture: capture time, length and header. Media is not examined.

use std::collections::BTreeMap;
use std::path::Path;

use talkspurt_capture::container;
use talkspurt_capture::frame::Frames;
use talkspurt_capture::headers::{self, Headers, Media, Transport};
use talkspurt_proto::time::Duration;

use crate::file::Files;

/// RTP's fixed header (RFC 3550 §5.1).
const RTP_HEADER: u32 = 12;

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
        let mut frames = Frames::default();
        for (number, frame) in (1..).zip(container::packets(bytes)?) {
            frames.each(&frame, &mut |found| {
                let headers = found.ok().and_then(|ip| headers::parse(ip, frame.cut).ok());
                if let Some(seen) = headers.and_then(|one| rtp(number, frame.nanos, &one)) {
                    sources.entry(seen.ssrc).or_default().push(seen);
                }
            });
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

/// The RTP header in a UDP packet, if it is one, but not in fragments, of which only the first would have it.
fn rtp(number: usize, nanos: u64, headers: &Headers) -> Option<Seen> {
    let Some(Media::Rtp { ssrc, timestamp, payload_type, marker, .. }) = headers.media else {
        return None;
    };
    if headers.transport != Transport::Udp || headers.part.is_some() {
        return None;
    }
    let payload_bytes = headers.payload_bytes.checked_sub(RTP_HEADER)?;
    Some(Seen { number, nanos, ssrc, timestamp, marker, payload_type, payload_bytes })
}

#[cfg(test)]
mod tests;
