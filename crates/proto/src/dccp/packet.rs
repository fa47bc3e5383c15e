//! A DCCP packet as endpoints see it (RFC 4340 §5). [`wire`](super::wire) reads and writes its bytes.

use super::options::Options;
use super::seqno::WireSeq;
use crate::frame::Frame;

/// A DCCP packet without ports and checksum.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Sequence Number (§5.1), all 48 bits or the low 24.
    pub seq: WireSeq,
    /// CCVal: used by the sender's CCID (§5.1); 4 bits.
    pub ccval: u8,
    /// Checksum Coverage (§9.2): 0 covers everything, n > 0 the first 4(n − 1) bytes of the
    /// application data; 4 bits.
    pub cscov: u8,
    /// Type and type-specific fields.
    pub kind: Kind,
    /// Options (§5.8), padding included.
    pub options: Options,
    /// Application data; used only on Data, DataAck, Request and Response.
    pub payload: Frame,
}

/// The types of packets (RFC 4340 §5.1; RFC 5596 §2.2.1 for Listen).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 0: opens a connection.
    Request {
        /// Service Code (§8.1.2).
        service: u32,
    },
    /// 1: answers a Request.
    Response {
        /// Acknowledgement Number.
        ack: WireSeq,
        /// Service Code.
        service: u32,
    },
    /// 2: application data.
    Data,
    /// 3: acknowledgement.
    Ack {
        /// Acknowledgement Number.
        ack: WireSeq,
    },
    /// 4: application data and acknowledgement.
    DataAck {
        /// Acknowledgement Number.
        ack: WireSeq,
    },
    /// 5: the server asks the client to close.
    CloseReq {
        /// Acknowledgement Number.
        ack: WireSeq,
    },
    /// 6: closes.
    Close {
        /// Acknowledgement Number.
        ack: WireSeq,
    },
    /// 7: the connection is over.
    Reset {
        /// Acknowledgement Number.
        ack: WireSeq,
        /// Why.
        code: ResetCode,
        /// Data 1 to 3 (§5.6).
        data: [u8; 3],
    },
    /// 8: synchronises sequence numbers.
    Sync {
        /// Acknowledgement Number: the Sequence Number of the packet that caused it.
        ack: WireSeq,
    },
    /// 9: answers a Sync.
    SyncAck {
        /// Acknowledgement Number: the Sequence Number of the Sync.
        ack: WireSeq,
    },
    /// 10: opens a middlebox towards a client (RFC 5596).
    Listen {
        /// Service Code.
        service: u32,
    },
}

/// Reset Codes (RFC 4340 §5.6); an open set, since peers may send any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetCode(pub u8);

impl ResetCode {
    /// The Reset packet type.
    pub const TYPE: u8 = 7;
    /// 0: unspecified.
    pub const UNSPECIFIED: Self = Self(0);
    /// 1: normal close.
    pub const CLOSED: Self = Self(1);
    /// 2: the application gave up.
    pub const ABORTED: Self = Self(2);
    /// 3: the peer has no such connection.
    pub const NO_CONNECTION: Self = Self(3);
    /// 4: the type was not expected; data 1 is the type.
    pub const PACKET_ERROR: Self = Self(4);
    /// 5: an option was invalid; data are its type and first two bytes.
    pub const OPTION_ERROR: Self = Self(5);
    /// 6: a Mandatory option was not understood; data as in Option Error.
    pub const MANDATORY_ERROR: Self = Self(6);
    /// 7: no listener on the port.
    pub const CONNECTION_REFUSED: Self = Self(7);
    /// 8: the port serves another Service Code.
    pub const BAD_SERVICE_CODE: Self = Self(8);
    /// 10: the Init Cookie was invalid or missing.
    pub const BAD_INIT_COOKIE: Self = Self(10);
}

impl Kind {
    /// The Type field.
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::Request { .. } => 0,
            Self::Response { .. } => 1,
            Self::Data => 2,
            Self::Ack { .. } => 3,
            Self::DataAck { .. } => 4,
            Self::CloseReq { .. } => 5,
            Self::Close { .. } => 6,
            Self::Reset { .. } => 7,
            Self::Sync { .. } => 8,
            Self::SyncAck { .. } => 9,
            Self::Listen { .. } => 10,
        }
    }

    /// The Acknowledgement Number, for types that have one.
    #[must_use]
    pub const fn ack(&self) -> Option<WireSeq> {
        match *self {
            Self::Request { .. } | Self::Data | Self::Listen { .. } => None,
            Self::Response { ack, .. }
            | Self::Ack { ack }
            | Self::DataAck { ack }
            | Self::CloseReq { ack }
            | Self::Close { ack }
            | Self::Reset { ack, .. }
            | Self::Sync { ack }
            | Self::SyncAck { ack } => Some(ack),
        }
    }

    /// True for Data and `DataAck`, which carry application data on an open connection.
    #[must_use]
    pub const fn is_data(&self) -> bool {
        matches!(self, Self::Data | Self::DataAck { .. })
    }
}

impl Packet {
    /// Bytes of generic header, acknowledgement subheader, type-specific fields and options (§5.1 to
    /// §5.8): the Data Offset times four.
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        let generic = if self.seq.is_extended() { 16 } else { 12 };
        let ack = match self.kind.ack() {
            None => 0,
            Some(_) if self.seq.is_extended() => 8,
            Some(_) => 4,
        };
        let own = match self.kind {
            Kind::Request { .. }
            | Kind::Response { .. }
            | Kind::Reset { .. }
            | Kind::Listen { .. } => 4,
            _ => 0,
        };
        generic + ack + own + self.options.as_bytes().len().next_multiple_of(4)
    }
}
