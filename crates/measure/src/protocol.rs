//! The protocols of packets directly in IP.

use talkspurt_proto::sctp::CHUNK_HEADER;
use talkspurt_proto::time::Duration;
use talkspurt_proto::wire::{dccp, sctp};

use crate::seal::OVERHEAD;

/// Bytes of SCTP's element with the seal: its header, the seal, and the Chunk Length of a chunk it extends.
pub(crate) const ELEMENT: usize = CHUNK_HEADER + OVERHEAD + 2;

/// A protocol of packets directly in IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Dccp,
    Sctp,
}

impl Protocol {
    pub(crate) const ALL: [Self; 2] = [Self::Dccp, Self::Sctp];

    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Dccp => dccp::PROTOCOL,
            Self::Sctp => sctp::PROTOCOL,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Dccp => "DCCP",
            Self::Sctp => "SCTP",
        }
    }

    /// What an end says that has heard nothing of the protocol since the flow began.
    pub(crate) fn unheard(self, since: Duration) -> String {
        let (name, number) = (self.name(), self.number());
        format!(
            "no {name} packet came from the other end within {since}: something on the path drops IP protocol \
             {number}"
        )
    }

    /// Bytes that sealing adds to a packet.
    pub(crate) const fn overhead(self) -> usize {
        match self {
            Self::Dccp => OVERHEAD,
            Self::Sctp => ELEMENT,
        }
    }
}
