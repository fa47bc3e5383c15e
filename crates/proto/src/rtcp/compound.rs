//! The parsed compound packet (RFC 3550 §6.1): a sender or receiver report, an SDES with the
//! CNAME, and possibly a BYE; or feedback alone (RFC 5506).

use serde::Serialize;

use super::{Feedback, NtpTime};
use crate::octets::u32_at;

/// Report blocks that one report can hold: the count has five bits (RFC 3550 §6.4.1).
pub const MAX_REPORTS: usize = 31;
/// Bytes that an SDES item can hold (RFC 3550 §6.5).
const MAX_CNAME: usize = 255;

/// A compound packet: a sender report (with [`SenderInfo`]) or a receiver report, then an SDES and feedback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compound {
    /// The reporter.
    pub ssrc: u32,
    /// Sender information; present makes this a sender report.
    pub sender: Option<SenderInfo>,
    /// What the reporter received, source by source; at most [`MAX_REPORTS`] are written.
    pub reports: Vec<ReportBlock>,
    /// Canonical name of the reporter (RFC 3550 §6.5.1); written up to 255 bytes of UTF-8, empty
    /// if a received packet had none.
    pub cname: String,
    /// Feedback packets (RFC 4585 §3.1: after reports and SDES).
    pub feedback: Vec<Feedback>,
    /// The reporter leaves (RFC 3550 §6.6).
    pub bye: bool,
    /// Only the feedback is written, without report and SDES: reduced-size RTCP (RFC 5506 §4.1).
    pub reduced: bool,
}

/// Sender information of a sender report (RFC 3550 §6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SenderInfo {
    /// The reporter's clock.
    pub ntp: NtpTime,
    /// The media clock at the same instant.
    pub rtp_timestamp: u32,
    /// Packets sent.
    pub packets: u32,
    /// Payload octets sent.
    pub octets: u32,
}

/// A report block (RFC 3550 §6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReportBlock {
    /// The source reported on.
    pub ssrc: u32,
    /// Lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Lost in all, 24 bits signed.
    pub cumulative_lost: i32,
    /// Extended highest sequence number received.
    pub highest_sequence: u32,
    /// Interarrival jitter in ticks of the media clock.
    pub jitter: u32,
    /// Middle 32 bits of the NTP time of the source's last sender report; 0 if there was none.
    pub last_sr: u32,
    /// From its arrival to this report, in 1/65536 s; 0 if there was none.
    pub delay_since_last_sr: u32,
}

impl SenderInfo {
    /// Reads the bytes after the SSRC of the sender.
    #[must_use]
    pub fn read(bytes: &[u8; 20]) -> Self {
        Self {
            ntp: NtpTime(u64::from(u32_at(bytes, 0)) << 32 | u64::from(u32_at(bytes, 4))),
            rtp_timestamp: u32_at(bytes, 8),
            packets: u32_at(bytes, 12),
            octets: u32_at(bytes, 16),
        }
    }
}

impl ReportBlock {
    /// Reads a block.
    #[must_use]
    pub fn read(bytes: &[u8; 24]) -> Self {
        Self {
            ssrc: u32_at(bytes, 0),
            fraction_lost: bytes[4],
            // The sign of 24 bits is extended.
            cumulative_lost: (u32_at(bytes, 4) << 8) as i32 >> 8,
            highest_sequence: u32_at(bytes, 8),
            jitter: u32_at(bytes, 12),
            last_sr: u32_at(bytes, 16),
            delay_since_last_sr: u32_at(bytes, 20),
        }
    }
}

impl Compound {
    /// The CNAME as far as it fits an SDES item, cut between characters.
    pub(crate) fn cname_written(&self) -> &str {
        let mut end = self.cname.len().min(MAX_CNAME);
        while !self.cname.is_char_boundary(end) {
            end -= 1;
        }
        &self.cname[..end]
    }
    /// The report blocks as far as they fit.
    pub(crate) fn reports_written(&self) -> &[ReportBlock] {
        &self.reports[..self.reports.len().min(MAX_REPORTS)]
    }
    /// Bytes of the SDES packet: header 4, SSRC 4, item 2 and text, at least one null, to a word.
    pub(crate) fn sdes_bytes(&self) -> usize {
        8 + (2 + self.cname_written().len() + 1).next_multiple_of(4)
    }
    /// Bytes of the SR or RR packet.
    pub(crate) fn report_bytes(&self) -> usize {
        8 + if self.sender.is_some() { 20 } else { 0 } + 24 * self.reports_written().len()
    }

    /// Length on the wire in bytes.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        let feedback: usize = self.feedback.iter().map(Feedback::wire_bytes).sum();
        let feedback = feedback + if self.bye { 8 } else { 0 };
        if self.reduced {
            return feedback;
        }
        self.report_bytes() + self.sdes_bytes() + feedback
    }
}
