//! RTCP packets as reports: RFC 3550 §6, reduced size (RFC 5506), extended reports (RFC 3611 §4), and feedback
//! (RFC 4585 §6, RFC 5104 §4, RFC 8888 §3). Transport-wide feedback and REMB are described by
//! draft-holmer-rmcat-transport-wide-cc-extensions and draft-alvestrand-rmcat-remb, and read as libwebrtc
//! does. `proto` reads report blocks, CNAMEs and feedback but for REMB, for the ends of simulated calls too;
//! unlike these, a capture has reports of any participant, other types, and packets that were cut off.

use serde::Serialize;
use talkspurt_proto::Rate;
use talkspurt_proto::octets::WireError;
use talkspurt_proto::rtcp::congestion::Stream;
use talkspurt_proto::rtcp::feedback::{
    IntraRequest, Lost, Message, RateLimit, Slice, TRANSPORT_WIDE, remb,
};
use talkspurt_proto::rtcp::wire::each_cname;
use talkspurt_proto::rtcp::{
    Feedback, NtpTime, PSFB, RTPFB, ReportBlock, SenderInfo, TransportWide,
};

// RFC 3550 §12.1 and RFC 3611 §2: packet types.
const SR: u8 = 200;
const RR: u8 = 201;
const SDES: u8 = 202;
const BYE: u8 = 203;
const APP: u8 = 204;
const XR: u8 = 207;

/// What one packet of a compound says; of an extended report, one block. `sender` and `reporter` are the SSRC
/// of the packet's sender, `media` and `ssrc` that of whom it is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields have the names of the RFCs")]
pub enum Report {
    /// Sender report (RFC 3550 §6.4.1).
    Sender { ssrc: u32, info: SenderInfo, blocks: Vec<ReportBlock> },
    /// Receiver report (RFC 3550 §6.4.2).
    Receiver { ssrc: u32, blocks: Vec<ReportBlock> },
    /// Canonical name (RFC 3550 §6.5.1).
    Cname { ssrc: u32, name: String },
    /// Goodbye (RFC 3550 §6.6).
    Bye { ssrcs: Vec<u32>, reason: Option<String> },
    /// Application-defined packet (RFC 3550 §6.7).
    App { ssrc: u32, subtype: u8, name: String },
    /// Receiver reference time (RFC 3611 §4.4).
    ReferenceTime { reporter: u32, ntp: NtpTime },
    /// Delay since the last receiver reference time (RFC 3611 §4.5), in 1/65536 s.
    ReferenceDelay { reporter: u32, ssrc: u32, last_rr: u32, delay_since_last_rr: u32 },
    /// Loss run lengths (RFC 3611 §4.1), counted. `end` is the number after the last.
    LossRuns {
        reporter: u32,
        ssrc: u32,
        begin: u16,
        end: u16,
        thinning: u8,
        received: u32,
        lost: u32,
    },
    /// Statistics summary (RFC 3611 §4.6).
    Statistics(Statistics),
    /// VoIP metrics (RFC 3611 §4.7).
    Voip(Voip),
    /// Another block of an extended report.
    Block { reporter: u32, block_type: u8, bytes: usize },
    /// Generic NACK (RFC 4585 §6.2.1): the packets named by PID and BLP.
    Nack { sender: u32, media: u32, lost: Vec<u16> },
    /// Transport-wide feedback.
    TransportWide {
        sender: u32,
        media: u32,
        #[serde(flatten)]
        report: TransportWide,
    },
    /// Congestion control feedback (RFC 8888 §3.1); the timestamp is in 1/65536 s.
    CongestionControl { sender: u32, timestamp: u32, streams: Vec<Stream> },
    /// TMMBR (RFC 5104 §4.2.1).
    RateRequest { sender: u32, limits: Vec<RateLimit> },
    /// TMMBN (RFC 5104 §4.2.2).
    RateNotification { sender: u32, limits: Vec<RateLimit> },
    /// Picture loss indication (RFC 4585 §6.3.1).
    PictureLoss { sender: u32, media: u32 },
    /// Slice loss indication (RFC 4585 §6.3.2).
    SliceLoss { sender: u32, media: u32, slices: Vec<Slice> },
    /// Reference picture selection indication (RFC 4585 §6.3.3).
    ReferencePicture { sender: u32, media: u32, payload_type: u8 },
    /// Full intra request (RFC 5104 §4.3.1).
    FullIntra { sender: u32, requests: Vec<IntraRequest> },
    /// Receiver estimated maximum bitrate.
    MaximumRate { sender: u32, bps: u64, ssrcs: Vec<u32> },
    /// Other application layer feedback (RFC 4585 §6.4), and other formats.
    Feedback { sender: u32, media: u32, packet_type: u8, format: u8, bytes: usize },
    /// A packet of another type.
    Other { packet_type: u8, bytes: usize },
}

/// Statistics summary (RFC 3611 §4.6); `None` where a flag says that there is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// SSRC of the packet's sender.
    pub reporter: u32,
    /// The source.
    pub ssrc: u32,
    /// Sequence number of the first packet.
    pub begin: u16,
    /// The number after that of the last one.
    pub end: u16,
    /// Packets lost.
    pub lost: Option<u32>,
    /// Packets that were duplicates.
    pub duplicates: Option<u32>,
    /// Minimum, maximum, mean and standard deviation of the relative transit time, in timestamp units.
    pub jitter: Option<[u32; 4]>,
    /// The same of the Time to Live or Hop Limit.
    pub hop_limit: Option<[u8; 4]>,
}

/// VoIP metrics (RFC 3611 §4.7); `None` for the value 127, where it says "unavailable".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Voip {
    /// SSRC of the packet's sender.
    pub reporter: u32,
    /// The source.
    pub ssrc: u32,
    /// Packets lost, in 1/256.
    pub loss_rate: u8,
    /// Packets discarded, in 1/256.
    pub discard_rate: u8,
    /// Packets lost or discarded in bursts, in 1/256.
    pub burst_density: u8,
    /// Packets lost or discarded in gaps, in 1/256.
    pub gap_density: u8,
    /// Mean duration of bursts.
    pub burst_ms: u16,
    /// Mean duration of gaps.
    pub gap_ms: u16,
    /// Round-trip time.
    pub round_trip_ms: u16,
    /// Delay of the end system.
    pub end_system_ms: u16,
    /// Signal level in dBm0.
    pub signal_dbm0: Option<i8>,
    /// Noise level in dBm0.
    pub noise_dbm0: Option<i8>,
    /// Residual echo return loss.
    pub echo_return_loss_db: Option<u8>,
    /// Packets received between losses that end a burst.
    pub gap_min: u8,
    /// R factor.
    pub r_factor: Option<u8>,
    /// R factor of another segment of the path.
    pub external_r_factor: Option<u8>,
    /// Mean opinion score of listening, in 1/10.
    pub mos_lq: Option<u8>,
    /// Mean opinion score of conversing, in 1/10.
    pub mos_cq: Option<u8>,
    /// Concealment and kind of the jitter buffer (§4.7.6).
    pub receiver_config: u8,
    /// Nominal delay of the jitter buffer.
    pub buffer_nominal_ms: u16,
    /// Its current maximum.
    pub buffer_maximum_ms: u16,
    /// Its largest possible maximum.
    pub buffer_absolute_ms: u16,
}

/// A packet was not read completely.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{why}")]
pub struct Cut {
    /// What was read. A list in the last report may be incomplete.
    pub read: Vec<Report>,
    /// The first thing wrong.
    pub why: WireError,
}

/// Reads a compound packet, or one of reduced size. Lists are bounded by the bytes; transport-wide feedback
/// without times has at most 65,535 packets.
///
/// # Errors
/// Bytes that are cut off or malformed, with what could be read. An encrypted packet (SRTCP) has any content:
/// ask [`plain`] before.
pub fn parse(bytes: &[u8]) -> Result<Vec<Report>, Cut> {
    let (mut read, mut rest, mut why) = (Vec::new(), bytes, None);
    while !rest.is_empty() {
        match next(rest) {
            Ok((part, behind)) => {
                // What follows a malformed packet is read.
                let wrong = part.read(&mut read).err();
                let cut = part.cut.then_some(WireError::Truncated("RTCP packet"));
                why = why.or(cut).or(wrong);
                rest = behind;
            }
            Err(wrong) => {
                why = why.or(Some(wrong));
                break;
            }
        }
    }
    match why {
        Some(why) => Err(Cut { read, why }),
        None => Ok(read),
    }
}

/// Whether a whole datagram can be RTCP without encryption: each packet has version 2 and a type from 192 to
/// 223 (RFC 5761 §4), and their lengths add up exactly. Any type may be the first (RFC 5506 §4.1).
///
/// SRTCP (RFC 3711 §3.4) encrypts all but the first eight bytes of a datagram and adds an index and an
/// authentication tag. A compound of one packet is followed by these, one of several has an encrypted header
/// after the first packet; either has another type or length, but for about one datagram in a million. SRTCP
/// that authenticates without encrypting is not plain either, and a datagram that was cut off never is: judge
/// by the others between the same ports. Nothing says of a single datagram that it is encrypted.
#[must_use]
pub fn plain(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(&[first, packet_type, high, low]) = rest.first_chunk() {
        let length = (usize::from(u16::from_be_bytes([high, low])) + 1) * 4;
        match rest.get(length..) {
            Some(behind) if first >> 6 == 2 && (192..=223).contains(&packet_type) => rest = behind,
            _ => return false,
        }
    }
    rest.is_empty() && !bytes.is_empty()
}

/// One packet of a compound: its count field, type and what follows the header, as far as it is there.
struct Part<'a> {
    count: u8,
    packet_type: u8,
    content: &'a [u8],
    cut: bool,
}

fn next(bytes: &[u8]) -> Result<(Part<'_>, &[u8]), WireError> {
    let Some(&[first, packet_type, high, low]) = bytes.first_chunk() else {
        return Err(WireError::Truncated("RTCP header"));
    };
    if first >> 6 != 2 {
        return Err(WireError::Malformed("RTCP version is not 2"));
    }
    let length = (usize::from(u16::from_be_bytes([high, low])) + 1) * 4;
    let cut = bytes.len() < length;
    let (packet, rest) = bytes.split_at(length.min(bytes.len()));
    let mut content = &packet[4..];
    // RFC 3550 §6.4.1: the last octet counts the padding. libwebrtc pads any packet of a compound.
    if let Some(padding) = content.last().filter(|_| first & 0x20 != 0 && !cut) {
        let end = content.len().checked_sub(usize::from((*padding).max(1)));
        content = &content[..end.ok_or(WireError::Malformed("RTCP padding"))?];
    }
    Ok((Part { count: first & 0x1f, packet_type, content, cut }, rest))
}

impl Part<'_> {
    fn read(&self, read: &mut Vec<Report>) -> Result<(), WireError> {
        match self.packet_type {
            SR | RR => self.report(read),
            SDES => each_cname(self.count.into(), self.content, |ssrc, name| {
                read.push(Report::Cname { ssrc, name: text(name) });
            }),
            BYE => self.bye(read),
            APP => {
                let ssrc = u32_at(self.content, 0)?;
                let name = self.content.get(4..8).ok_or(WireError::Truncated("RTCP APP"))?;
                read.push(Report::App { ssrc, subtype: self.count, name: text(name) });
                Ok(())
            }
            XR => self.extended(read),
            RTPFB if self.count == TRANSPORT_WIDE => self.transport_wide(read),
            RTPFB | PSFB => self.feedback(read),
            packet_type => {
                read.push(Report::Other { packet_type, bytes: self.content.len() });
                Ok(())
            }
        }
    }

    fn report(&self, read: &mut Vec<Report>) -> Result<(), WireError> {
        let ssrc = u32_at(self.content, 0)?;
        let mut rest = &self.content[4..];
        let info = if self.packet_type == SR {
            let (info, behind) =
                rest.split_first_chunk().ok_or(WireError::Truncated("RTCP report"))?;
            rest = behind;
            Some(SenderInfo::read(info))
        } else {
            None
        };
        let (blocks, _) = rest.as_chunks();
        let blocks: Vec<_> = blocks.iter().take(self.count.into()).map(ReportBlock::read).collect();
        let complete = blocks.len() == usize::from(self.count);
        read.push(match info {
            Some(info) => Report::Sender { ssrc, info, blocks },
            None => Report::Receiver { ssrc, blocks },
        });
        if complete { Ok(()) } else { Err(WireError::Truncated("RTCP report")) }
    }

    fn bye(&self, read: &mut Vec<Report>) -> Result<(), WireError> {
        let count = usize::from(self.count);
        let ssrcs = ssrcs(self.content, count);
        let complete = ssrcs.len() == count;
        // RFC 3550 §6.6: a length and text may follow.
        let reason = self.content.get(4 * count..).and_then(<[u8]>::split_first);
        let reason = reason.and_then(|(length, rest)| rest.get(..usize::from(*length)));
        read.push(Report::Bye { ssrcs, reason: reason.map(text) });
        if complete { Ok(()) } else { Err(WireError::Truncated("RTCP BYE")) }
    }

    /// RFC 3611 §3: blocks with a type, a field of it, and a length in words.
    fn extended(&self, read: &mut Vec<Report>) -> Result<(), WireError> {
        let reporter = u32_at(self.content, 0)?;
        let mut rest = &self.content[4..];
        while !rest.is_empty() {
            let truncated = WireError::Truncated("RTCP XR block");
            let (&[block_type, flags, high, low], behind) =
                rest.split_first_chunk().ok_or(truncated)?;
            let length = 4 * usize::from(u16::from_be_bytes([high, low]));
            let content = behind.get(..length).ok_or(truncated)?;
            block(reporter, block_type, flags, content, read)
                .ok_or(WireError::Malformed("RTCP XR block length"))?;
            rest = &behind[length..];
        }
        Ok(())
    }

    /// Also of feedback that is not complete, what is there.
    fn transport_wide(&self, read: &mut Vec<Report>) -> Result<(), WireError> {
        let (sender, media) = (u32_at(self.content, 0)?, u32_at(self.content, 4)?);
        let (report, wrong) = TransportWide::read(&self.content[8..])?;
        read.push(Report::TransportWide { sender, media, report });
        wrong.map_or(Ok(()), Err)
    }

    fn feedback(&self, read: &mut Vec<Report>) -> Result<(), WireError> {
        let (packet_type, format) = (self.packet_type, self.count);
        let Feedback { sender, message } = Feedback::parse(packet_type, format, self.content)?;
        read.push(match message {
            Message::Nack { media, lost } => {
                let lost = lost.into_iter().flat_map(Lost::sequences).collect();
                Report::Nack { sender, media, lost }
            }
            Message::RateRequest(limits) => Report::RateRequest { sender, limits },
            Message::RateNotification(limits) => Report::RateNotification { sender, limits },
            Message::CongestionControl(report) => {
                let (timestamp, streams) = (report.timestamp, report.streams);
                Report::CongestionControl { sender, timestamp, streams }
            }
            Message::TransportWide { media, report } => {
                Report::TransportWide { sender, media, report }
            }
            Message::PictureLoss { media } => Report::PictureLoss { sender, media },
            Message::SliceLoss { media, slices } => Report::SliceLoss { sender, media, slices },
            Message::ReferencePicture { media, payload_type, .. } => {
                Report::ReferencePicture { sender, media, payload_type }
            }
            Message::FullIntra(requests) => Report::FullIntra { sender, requests },
            Message::Application { data, .. } if data.starts_with(b"REMB") => {
                return maximum_rate(sender, &data, read);
            }
            Message::Application { media, data } | Message::Other { media, data, .. } => {
                Report::Feedback { sender, media, packet_type, format, bytes: data.len() }
            }
        });
        Ok(())
    }
}

/// A word `REMB`, the number of SSRCs, a rate with 6 bits of exponent and 18 of mantissa, and the SSRCs.
fn maximum_rate(sender: u32, data: &[u8], read: &mut Vec<Report>) -> Result<(), WireError> {
    let count = (u32_at(data, 4)? >> 24) as usize;
    let bps = remb(data).map_or(0, Rate::as_bps);
    let ssrcs = ssrcs(&data[8..], count);
    let complete = ssrcs.len() == count;
    read.push(Report::MaximumRate { sender, bps, ssrcs });
    if complete { Ok(()) } else { Err(WireError::Truncated("RTCP REMB")) }
}

/// Reads one block of an extended report; none if its length is not that of its type.
fn block(
    reporter: u32,
    block_type: u8,
    flags: u8,
    content: &[u8],
    read: &mut Vec<Report>,
) -> Option<()> {
    let word = |at| u32_at(content, at).ok();
    let half = |at| u16_at(content, at).ok();
    let exactly = |bytes| (content.len() == bytes).then_some(());
    read.push(match block_type {
        1 => {
            let (ssrc, begin, end) = (word(0)?, half(4)?, half(6)?);
            let thinning = flags & 0xf;
            let [received, lost] = events(begin, end, thinning, &content[8..]);
            Report::LossRuns { reporter, ssrc, begin, end, thinning, received, lost }
        }
        4 => {
            exactly(8)?;
            let ntp = NtpTime(u64::from(word(0)?) << 32 | u64::from(word(4)?));
            Report::ReferenceTime { reporter, ntp }
        }
        5 => {
            let (blocks, rest) = content.as_chunks::<12>();
            for block in blocks {
                read.push(Report::ReferenceDelay {
                    reporter,
                    ssrc: u32_at(block, 0).ok()?,
                    last_rr: u32_at(block, 4).ok()?,
                    delay_since_last_rr: u32_at(block, 8).ok()?,
                });
            }
            return rest.is_empty().then_some(());
        }
        6 => {
            exactly(36)?;
            let words = [word(16)?, word(20)?, word(24)?, word(28)?];
            Report::Statistics(Statistics {
                reporter,
                ssrc: word(0)?,
                begin: half(4)?,
                end: half(6)?,
                lost: word(8).filter(|_| flags & 0x80 != 0),
                duplicates: word(12).filter(|_| flags & 0x40 != 0),
                jitter: (flags & 0x20 != 0).then_some(words),
                hop_limit: content.last_chunk().copied().filter(|_| flags & 0x18 != 0),
            })
        }
        7 => {
            exactly(32)?;
            Report::Voip(voip(reporter, content)?)
        }
        _ => Report::Block { reporter, block_type, bytes: content.len() },
    });
    Some(())
}

fn voip(reporter: u32, content: &[u8]) -> Option<Voip> {
    let half = |at| u16_at(content, at).ok();
    let available = |at: usize| content.get(at).copied().filter(|value| *value != 127);
    Some(Voip {
        reporter,
        ssrc: u32_at(content, 0).ok()?,
        loss_rate: content[4],
        discard_rate: content[5],
        burst_density: content[6],
        gap_density: content[7],
        burst_ms: half(8)?,
        gap_ms: half(10)?,
        round_trip_ms: half(12)?,
        end_system_ms: half(14)?,
        signal_dbm0: available(16).map(u8::cast_signed),
        noise_dbm0: available(17).map(u8::cast_signed),
        echo_return_loss_db: available(18),
        gap_min: content[19],
        r_factor: available(20),
        external_r_factor: available(21),
        mos_lq: available(22),
        mos_cq: available(23),
        receiver_config: content[24],
        buffer_nominal_ms: half(26)?,
        buffer_maximum_ms: half(28)?,
        buffer_absolute_ms: half(30)?,
    })
}

/// Packets received and lost in the chunks of a Loss RLE block: of the sequence numbers from `begin` to before
/// `end`, those that are multiples of 2^`thinning`.
fn events(begin: u16, end: u16, thinning: u8, chunks: &[u8]) -> [u32; 2] {
    let step = 1_u32 << thinning;
    let begin = u32::from(begin);
    let length = u32::from(end.wrapping_sub(begin as u16));
    let mut left = (begin + length).div_ceil(step) - begin.div_ceil(step);
    let (mut received, mut lost) = (0, 0);
    for chunk in chunks.chunks_exact(2) {
        let chunk = u32::from(u16::from_be_bytes([chunk[0], chunk[1]]));
        // RFC 3611 §4.1.1 to 4.1.3: a run, or a vector of 15 bits; a run of none is a null chunk.
        let (bits, ones) = if chunk >> 15 == 0 {
            let run = (chunk & 0x3fff).min(left);
            (run, if chunk >> 14 == 1 { run } else { 0 })
        } else {
            let bits = left.min(15);
            (bits, ((chunk & 0x7fff) >> (15 - bits)).count_ones())
        };
        received += ones;
        lost += bits - ones;
        left -= bits;
    }
    [received, lost]
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ssrcs(bytes: &[u8], count: usize) -> Vec<u32> {
    bytes.as_chunks().0.iter().take(count).map(|word| u32::from_be_bytes(*word)).collect()
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, WireError> {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk);
    field.map(|field| u16::from_be_bytes(*field)).ok_or(WireError::Truncated("RTCP packet"))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, WireError> {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk);
    field.map(|field| u32::from_be_bytes(*field)).ok_or(WireError::Truncated("RTCP packet"))
}
