//! Results besides the messages: packets by type, resets, rx_error and the last value of every gauge.

use std::collections::BTreeMap;

use serde::Serialize;
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::Kind;
use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::{self, Hints};

/// A Reset that was sent or received.
#[derive(Debug, Serialize)]
pub(super) struct Reset {
    sent: bool,
    code: u8,
    data: [u8; 3],
}

/// Notes of a probe.
#[derive(Debug, Default, Serialize)]
pub(super) struct Watch {
    sent: BTreeMap<&'static str, u64>,
    received: BTreeMap<&'static str, u64>,
    resets: Vec<Reset>,
    rx_error: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
}

impl Watch {
    fn packet(&mut self, body: &Body, sent: bool) {
        let Body::Dccp(packet) = body else { return };
        let counts = if sent { &mut self.sent } else { &mut self.received };
        *counts.entry(name(&packet.kind)).or_default() += 1;
        if let Kind::Reset { code, data, .. } = packet.kind {
            self.resets.push(Reset { sent, code: code.0, data });
        }
    }
}

impl Probe for Watch {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, _: Instant, _: Place, note: &Note<'_>) {
        match note {
            Note::Sent { body, .. } => self.packet(body, true),
            Note::Received { body, .. } => self.packet(body, false),
            Note::RxError(rx_error) => {
                *self.rx_error.entry(format!("{rx_error:?}")).or_default() += 1;
            }
            Note::Gauge { gauge, value } => {
                self.gauges.insert(format!("{gauge:?}"), *value);
            }
            _ => {}
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
pub(super) fn bears_data(bytes: &[u8]) -> bool {
    wire::parse(bytes, Hints::default())
        .is_ok_and(|parsed| matches!(&parsed.body, Body::Dccp(packet) if packet.kind.is_data()))
}
