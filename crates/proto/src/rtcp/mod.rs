//! RTCP, the reports beside RTP (RFC 3550 §6): what a compound packet holds ([`Compound`]) and
//! when one is due and what it says ([`Session`]).
//!
//! Reports are made from an [`rtp::Sender`](crate::rtp::Sender) and an
//! [`rtp::Receiver`](crate::rtp::Receiver) and turned into bytes by [`wire`](crate::wire::rtcp).

pub mod ccfb;
mod compound;
mod interval;
mod ntp;
mod session;
pub mod wire;

pub use compound::{Compound, MAX_REPORTS, ReportBlock, SenderInfo};
pub use ntp::NtpTime;
pub use session::{Config, Session};
