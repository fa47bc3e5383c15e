//! Results besides the data: packets of both directions, errors, and the last value of every gauge.

pub(crate) mod dccp;
pub(crate) mod sctp;
pub(crate) mod tcp;

use std::collections::BTreeMap;

use serde::Serialize;
use talkspurt_proto::body::Body;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;

/// Counts the packets of one protocol.
pub(crate) trait Count: Default + Serialize {
    /// A packet of ours that was `sent`, or one of the peer.
    fn packet(&mut self, sent: bool, label: &Packet, body: &Body);
}

/// Notes of a probe.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Watch<C> {
    #[serde(flatten)]
    counts: C,
    rx_error: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
}

impl<C: Count> Probe for Watch<C> {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, _: Instant, _: Place, note: &Note<'_>) {
        match note {
            Note::Sent { packet, body } => self.counts.packet(true, packet, body),
            Note::Received { packet, body } => self.counts.packet(false, packet, body),
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
