//! The two packets of bare TFRC, with exactly the fields of RFC 5348.

use crate::frame::Frame;

/// A datagram of bare TFRC.
#[derive(Clone, Debug, PartialEq)]
pub enum Packet {
    /// From the sender of data.
    Data(Data),
    /// From its receiver.
    Feedback(Feedback),
}

/// RFC 5348 §3.2.1.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// Sequence number; counts data packets, wraps.
    pub seq: u32,
    /// When it was sent, in microseconds of the sender's clock; wraps.
    pub timestamp: u32,
    /// The sender's estimate of the round-trip time in microseconds; 0 while unknown.
    pub rtt: u32,
    /// t_RTO of the sender's equation in units of 100 ms, if it is not four round-trip times; otherwise 0.
    pub timeout: u8,
    /// What it carries.
    pub payload: Frame,
}

/// RFC 5348 §3.2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// t_recvdata: timestamp of the last data packet received.
    pub timestamp: u32,
    /// t_delay: time between its arrival and this packet, in microseconds.
    pub delay: u32,
    /// X_recv in bytes per second.
    pub receive_rate: u32,
    /// The receiver's estimate of p, as 2³² − 1 times it, rounded.
    pub loss_event_rate: u32,
}

impl Packet {
    /// Bytes in front of the payload, without UDP's header: type, flags and fields.
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        match self {
            Self::Data(_) => 16,
            Self::Feedback(_) => 20,
        }
    }
}
