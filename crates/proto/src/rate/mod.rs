//! Rate-based congestion control: the TFRC family (RFC 5348, 4342, 4828, 5622 and related) as one
//! machine with a profile.
//!
//! The sender's half decides through [`RateControl::permit`]; the receiver's half measures. Endpoints handle
//! sequence numbers, options and packets: `dccp::ccid3` for CCID 3 and 4, `tfrc` for the bare protocol.

mod average;
pub mod beritelli;
pub mod bucket;
pub mod config;
pub mod equation;
pub mod history;
pub mod ladder;
mod machine;
mod ns2;
mod pacing;
mod receive_set;
mod receiver;
mod restart;
mod sender;
pub mod timeout;
mod validation;

pub use config::{Config, FewIntervals, Idle, Kind, Parameters, ReceiveRate};
pub use history::{Arrival, Interval, LossHistory};
pub use machine::{Machine, RateControl};
pub use receiver::{Feedback, Receiver};
pub use sender::Sender;

use crate::time::{Duration, Instant};
pub use crate::transport::Rung;

/// Whether a packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Now.
    Now,
    /// At this instant, if no event occurs before.
    At(Instant),
    /// Not before feedback from the other side.
    Blocked,
}

/// Contents of a feedback packet for a sender.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// A round-trip time sample, if the packet gave one (RFC 5348 §4.3 step 1).
    pub rtt: Option<Duration>,
    /// When the last data packet it covers was sent (RFC 5348 §8.2.1: t_recvdata).
    pub covered: Instant,
    /// Rate at which data arrived, in bytes per second (X_recv).
    pub receive_rate: u64,
    /// Loss event rate (p), 0 to 1.
    pub loss_event_rate: f64,
    /// Spread of one-way delays since the last report, for controllers that use it.
    pub delay_variation: Option<Duration>,
}
