//! Packets of DCCP by type, and resets.

use std::collections::BTreeMap;

use serde::Serialize;
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::Kind;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::wire::{self, Hints};

use super::Count;

/// A Reset that was sent or received.
#[derive(Debug, Serialize)]
struct Reset {
    sent: bool,
    code: u8,
    data: [u8; 3],
}

/// Packets of both directions.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Packets {
    sent: BTreeMap<&'static str, u64>,
    received: BTreeMap<&'static str, u64>,
    resets: Vec<Reset>,
}

impl Count for Packets {
    fn packet(&mut self, sent: bool, _: &Packet, body: &Body) {
        let Body::Dccp(packet) = body else { return };
        let counts = if sent { &mut self.sent } else { &mut self.received };
        *counts.entry(name(&packet.kind)).or_default() += 1;
        if let Kind::Reset { code, data, .. } = packet.kind {
            self.resets.push(Reset { sent, code: code.0, data });
        }
    }
}

const fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Request { .. } => "Request",
        Kind::Response { .. } => "Response",
        Kind::Data => "Data",
        Kind::Ack { .. } => "Ack",
        Kind::DataAck { .. } => "DataAck",
        Kind::CloseReq { .. } => "CloseReq",
        Kind::Close { .. } => "Close",
        Kind::Reset { .. } => "Reset",
        Kind::Sync { .. } => "Sync",
        Kind::SyncAck { .. } => "SyncAck",
        Kind::Listen { .. } => "Listen",
    }
}

/// Whether a packet carries application data.
pub(crate) fn bears_data(bytes: &[u8]) -> bool {
    wire::parse(bytes, Hints::default())
        .is_ok_and(|parsed| matches!(&parsed.body, Body::Dccp(packet) if packet.kind.is_data()))
}
