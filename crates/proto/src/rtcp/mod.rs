//! RTCP, the reports beside RTP (RFC 3550 §6): contents of a compound packet ([`Compound`]), timing
//! and contents of reports ([`Session`]), feedback messages ([`Feedback`]), and per-packet reports
//! for controllers ([`PacketReport`]).
//!
//! Reports are made from an [`rtp::Sender`](crate::rtp::Sender) and an
//! [`rtp::Receiver`](crate::rtp::Receiver) and turned into bytes by [`wire`](crate::wire::rtcp).

mod compound;
pub mod congestion;
pub mod feedback;
mod interval;
mod ntp;
pub mod packet_report;
mod session;
pub mod transport_wide;
pub mod wire;

pub use compound::{Compound, MAX_REPORTS, ReportBlock, SenderInfo};
pub use feedback::{Feedback, Lost, Message, PSFB, RTPFB};
pub use ntp::NtpTime;
pub use packet_report::{PacketReport, ReceivedPackets, SentPackets};
pub use session::{Config, Session};
pub use transport_wide::TransportWide;
