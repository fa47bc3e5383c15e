//! RTCP feedback messages: RFC 4585 §6, RFC 5104 §4.2 and §4.3, RFC 8888 §3.1, and transport-wide feedback.

use serde::Serialize;

use super::congestion::CongestionControl;
use super::transport_wide::TransportWide;
use super::wire::emit_header;
use crate::octets::{WireError, at_least, u16_at, u32_at};
use crate::units::Rate;

/// Transport layer feedback (RFC 4585 §6.1).
pub const RTPFB: u8 = 205;
/// Payload-specific feedback (RFC 4585 §6.1).
pub const PSFB: u8 = 206;

// Formats of RTPFB: RFC 4585 §6.2, RFC 5104 §4.2, RFC 8888 §3.1; and of no RFC.
const NACK: u8 = 1;
const TMMBR: u8 = 3;
const TMMBN: u8 = 4;
const CCFB: u8 = 11;
/// Transport-wide feedback.
pub const TRANSPORT_WIDE: u8 = 15;
// Formats of PSFB: RFC 4585 §6.3, RFC 5104 §4.3.1.
const PLI: u8 = 1;
const SLI: u8 = 2;
const RPSI: u8 = 3;
const FIR: u8 = 4;
const AFB: u8 = 15;

/// Header and the SSRC of the packet's sender.
const SENDER_END: usize = 8;
/// The SSRC of the media source follows, except in RFC 8888.
const MEDIA_END: usize = 12;
/// The length field counts 16 bits of 32-bit words, less one.
const MAX_BYTES: usize = 4 << 16;

/// A feedback packet. It is not written if it is empty or exceeds the length field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// SSRC of the packet's sender.
    pub sender: u32,
    /// The message.
    pub message: Message,
}

/// A feedback message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Generic NACK (RFC 4585 §6.2.1).
    Nack {
        /// SSRC of the media source.
        media: u32,
        /// Packets that were lost.
        lost: Vec<Lost>,
    },
    /// Temporary Maximum Media Stream Bit Rate Request (RFC 5104 §4.2.1).
    RateRequest(Vec<RateLimit>),
    /// Temporary Maximum Media Stream Bit Rate Notification (RFC 5104 §4.2.2); an empty set is written.
    RateNotification(Vec<RateLimit>),
    /// Congestion control feedback (RFC 8888 §3.1).
    CongestionControl(CongestionControl),
    /// Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
    TransportWide {
        /// SSRC of one media source.
        media: u32,
        /// The report.
        report: TransportWide,
    },
    /// Picture Loss Indication (RFC 4585 §6.3.1).
    PictureLoss {
        /// SSRC of the media source.
        media: u32,
    },
    /// Slice Loss Indication (RFC 4585 §6.3.2).
    SliceLoss {
        /// SSRC of the media source.
        media: u32,
        /// Macroblocks that were lost.
        slices: Vec<Slice>,
    },
    /// Reference Picture Selection Indication (RFC 4585 §6.3.3).
    ReferencePicture {
        /// SSRC of the media source.
        media: u32,
        /// RTP payload type, 7 bits.
        payload_type: u8,
        /// The codec's bit string, to whole bytes.
        string: Vec<u8>,
        /// Unused bits of the last byte, 0 to 7.
        unused_bits: u8,
    },
    /// Full Intra Request (RFC 5104 §4.3.1).
    FullIntra(Vec<IntraRequest>),
    /// Application layer feedback (RFC 4585 §6.4), padded to a whole 32-bit word.
    Application {
        /// SSRC of the media source.
        media: u32,
        /// Application data.
        data: Vec<u8>,
    },
    /// An unknown format, kept unchanged and padded to a whole 32-bit word.
    Other {
        /// [`RTPFB`] or [`PSFB`].
        packet_type: u8,
        /// Format, 5 bits.
        format: u8,
        /// SSRC of the media source.
        media: u32,
        /// Feedback Control Information.
        data: Vec<u8>,
    },
}

/// Lost packets (RFC 4585 §6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Sequence number of a lost packet.
    pub first: u16,
    /// Bit i, counted from 0: packet `first + i + 1` is lost too.
    pub following: u16,
}

/// Macroblocks of a picture that were lost (RFC 4585 §6.3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Slice {
    /// The first, counted from 1; 13 bits.
    pub first: u16,
    /// How many; 13 bits.
    pub count: u16,
    /// Low bits of the picture's identifier; 6 bits.
    pub picture: u8,
}

/// A limit of a sender's bit rate (RFC 5104 §4.2.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RateLimit {
    /// The media sender.
    pub ssrc: u32,
    /// Maximum total media bit rate in bit/s; written with 17 bits, rounded down.
    pub bps: u64,
    /// Measured overhead of a packet in bytes; 9 bits.
    pub overhead: u16,
}

/// A request for a decoder refresh point (RFC 5104 §4.3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IntraRequest {
    /// The media sender.
    pub ssrc: u32,
    /// Command sequence number.
    pub sequence: u8,
}

impl Lost {
    /// The shortest list for these sequence numbers, which must ascend (modulo 65536).
    #[must_use]
    pub fn list(sequences: &[u16]) -> Vec<Self> {
        let mut list: Vec<Self> = Vec::new();
        for &sequence in sequences {
            match list.last_mut() {
                Some(last) if (1..=16).contains(&sequence.wrapping_sub(last.first)) => {
                    last.following |= 1 << (sequence.wrapping_sub(last.first) - 1);
                }
                Some(last) if sequence == last.first => {}
                _ => list.push(Self { first: sequence, following: 0 }),
            }
        }
        list
    }

    /// The sequence numbers.
    pub fn sequences(self) -> impl Iterator<Item = u16> {
        let following = (0..16).filter(move |bit| self.following >> bit & 1 == 1);
        std::iter::once(self.first)
            .chain(following.map(move |bit| self.first.wrapping_add(bit + 1)))
    }
}

impl RateLimit {
    fn emit(self, out: &mut Vec<u8>) {
        let exponent = (u64::BITS - self.bps.leading_zeros()).saturating_sub(17);
        let mantissa = (self.bps >> exponent) as u32;
        out.extend_from_slice(&self.ssrc.to_be_bytes());
        let bits = exponent << 26 | mantissa << 9 | u32::from(self.overhead.min(0x1ff));
        out.extend_from_slice(&bits.to_be_bytes());
    }

    /// A rate beyond 64 bits saturates.
    fn read(entry: &[u8]) -> Self {
        let bits = u32_at(entry, 4);
        let rate = u128::from(bits >> 9 & 0x1_ffff) << (bits >> 26);
        Self {
            ssrc: u32_at(entry, 0),
            bps: u64::try_from(rate).unwrap_or(u64::MAX),
            overhead: (bits & 0x1ff) as u16,
        }
    }
}

/// The rate to which a receiver wants its senders limited, if application layer feedback asks for it (REMB,
/// draft-alvestrand-rmcat-remb-03 §2.2).
#[must_use]
pub fn remb(data: &[u8]) -> Option<Rate> {
    let data = data.strip_prefix(b"REMB").filter(|data| data.len() >= 4)?;
    let bits = u32_at(data, 0);
    let rate = u128::from(bits & 0x3_ffff) << (bits >> 18 & 0x3f);
    Some(Rate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX)))
}

impl Message {
    /// Packet type, format, and the SSRC of the media source if there is a field for it.
    fn header(&self) -> (u8, u8, Option<u32>) {
        match self {
            Self::Nack { media, .. } => (RTPFB, NACK, Some(*media)),
            // RFC 5104 §4.2.1.2, §4.2.2.2, §4.3.1.2: the media source is zero.
            Self::RateRequest(_) => (RTPFB, TMMBR, Some(0)),
            Self::RateNotification(_) => (RTPFB, TMMBN, Some(0)),
            Self::FullIntra(_) => (PSFB, FIR, Some(0)),
            Self::CongestionControl(_) => (RTPFB, CCFB, None),
            Self::TransportWide { media, .. } => (RTPFB, TRANSPORT_WIDE, Some(*media)),
            Self::PictureLoss { media } => (PSFB, PLI, Some(*media)),
            Self::SliceLoss { media, .. } => (PSFB, SLI, Some(*media)),
            Self::ReferencePicture { media, .. } => (PSFB, RPSI, Some(*media)),
            Self::Application { media, .. } => (PSFB, AFB, Some(*media)),
            Self::Other { packet_type, format, media, .. } => {
                (*packet_type, *format & 0x1f, Some(*media))
            }
        }
    }

    /// Bytes after the header and the SSRCs.
    fn content_bytes(&self) -> usize {
        match self {
            Self::Nack { lost, .. } => 4 * lost.len(),
            Self::RateRequest(limits) | Self::RateNotification(limits) => 8 * limits.len(),
            Self::CongestionControl(report) => report.content_bytes(),
            Self::TransportWide { report, .. } => report.content_bytes(),
            Self::PictureLoss { .. } => 0,
            Self::SliceLoss { slices, .. } => 4 * slices.len(),
            Self::ReferencePicture { string, .. } => (2 + string.len()).next_multiple_of(4),
            Self::FullIntra(requests) => 8 * requests.len(),
            Self::Application { data, .. } | Self::Other { data, .. } => {
                data.len().next_multiple_of(4)
            }
        }
    }

    /// RFC 4585 §6.1: at least one message. An empty notification means no limit.
    fn says_something(&self) -> bool {
        self.content_bytes() > 0
            || matches!(
                self,
                Self::PictureLoss { .. } | Self::RateNotification(_) | Self::Other { .. }
            )
    }

    fn emit_content(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nack { lost, .. } => {
                for Lost { first, following } in lost {
                    out.extend_from_slice(&first.to_be_bytes());
                    out.extend_from_slice(&following.to_be_bytes());
                }
            }
            Self::RateRequest(limits) | Self::RateNotification(limits) => {
                limits.iter().for_each(|limit| limit.emit(out));
            }
            Self::CongestionControl(report) => report.emit_content(out),
            Self::TransportWide { report, .. } => report.emit_content(out),
            Self::PictureLoss { .. } => {}
            Self::SliceLoss { slices, .. } => {
                for slice in slices {
                    let bits = u32::from(slice.first & 0x1fff) << 19
                        | u32::from(slice.count & 0x1fff) << 6
                        | u32::from(slice.picture & 0x3f);
                    out.extend_from_slice(&bits.to_be_bytes());
                }
            }
            Self::ReferencePicture { payload_type, string, unused_bits, .. } => {
                let padding = self.content_bytes() - 2 - string.len();
                let unused = 8 * padding as u8 + (unused_bits & 7);
                out.extend_from_slice(&[unused, payload_type & 0x7f]);
                out.extend_from_slice(string);
                out.resize(out.len() + padding, 0);
            }
            Self::FullIntra(requests) => {
                for IntraRequest { ssrc, sequence } in requests {
                    out.extend_from_slice(&ssrc.to_be_bytes());
                    out.extend_from_slice(&[*sequence, 0, 0, 0]);
                }
            }
            Self::Application { data, .. } | Self::Other { data, .. } => {
                out.extend_from_slice(data);
                out.resize(out.len() + self.content_bytes() - data.len(), 0);
            }
        }
    }
}

impl Feedback {
    /// Bytes on the wire; zero if it is not written.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        let start = if self.message.header().2.is_some() { MEDIA_END } else { SENDER_END };
        let bytes = start + self.message.content_bytes();
        if self.message.says_something() && bytes <= MAX_BYTES { bytes } else { 0 }
    }

    /// Appends the packet.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let bytes = self.wire_bytes();
        if bytes == 0 {
            return;
        }
        let (packet_type, format, media) = self.message.header();
        emit_header(format.into(), packet_type, bytes, out);
        out.extend_from_slice(&self.sender.to_be_bytes());
        out.extend(media.iter().flat_map(|media| media.to_be_bytes()));
        self.message.emit_content(out);
    }

    /// Reads what follows the header of a packet of type [`RTPFB`] or [`PSFB`].
    ///
    /// # Errors
    /// Truncated or malformed bytes.
    pub fn parse(packet_type: u8, format: u8, content: &[u8]) -> Result<Self, WireError> {
        at_least(content, 4, "RTCP feedback")?;
        let sender = u32_at(content, 0);
        if (packet_type, format) == (RTPFB, CCFB) {
            let message = Message::CongestionControl(CongestionControl::parse(&content[4..])?);
            return Ok(Self { sender, message });
        }
        at_least(content, 8, "RTCP feedback")?;
        let (media, data) = (u32_at(content, 4), &content[8..]);
        let entries = |bytes: usize| match data.len() % bytes {
            0 => Ok(data.chunks_exact(bytes)),
            _ => Err(WireError::Malformed("RTCP feedback length")),
        };
        let message = match (packet_type, format) {
            (RTPFB, NACK) => {
                let lost = entries(4)?
                    .map(|entry| Lost { first: u16_at(entry, 0), following: u16_at(entry, 2) });
                Message::Nack { media, lost: lost.collect() }
            }
            (RTPFB, TMMBR) => Message::RateRequest(entries(8)?.map(RateLimit::read).collect()),
            (RTPFB, TMMBN) => Message::RateNotification(entries(8)?.map(RateLimit::read).collect()),
            (RTPFB, TRANSPORT_WIDE) => match TransportWide::read(data)? {
                (report, None) => Message::TransportWide { media, report },
                (_, Some(wrong)) => return Err(wrong),
            },
            (PSFB, PLI) => Message::PictureLoss { media },
            (PSFB, SLI) => {
                let slices = entries(4)?.map(|entry| {
                    let bits = u32_at(entry, 0);
                    Slice {
                        first: (bits >> 19) as u16,
                        count: (bits >> 6 & 0x1fff) as u16,
                        picture: (bits & 0x3f) as u8,
                    }
                });
                Message::SliceLoss { media, slices: slices.collect() }
            }
            (PSFB, RPSI) => {
                let [unused, payload_type, string @ ..] = data else {
                    return Err(WireError::Truncated("RTCP RPSI"));
                };
                let end = string.len().checked_sub(usize::from(unused / 8));
                // A completely unused byte is padding.
                let Some(end) = end.filter(|end| *end > 0 || unused % 8 == 0) else {
                    return Err(WireError::Malformed("RTCP RPSI padding"));
                };
                Message::ReferencePicture {
                    media,
                    payload_type: payload_type & 0x7f,
                    string: string[..end].to_vec(),
                    unused_bits: unused % 8,
                }
            }
            (PSFB, FIR) => {
                let requests = entries(8)?
                    .map(|entry| IntraRequest { ssrc: u32_at(entry, 0), sequence: entry[4] });
                Message::FullIntra(requests.collect())
            }
            (PSFB, AFB) => Message::Application { media, data: data.to_vec() },
            _ => Message::Other { packet_type, format, media, data: data.to_vec() },
        };
        Ok(Self { sender, message })
    }
}
