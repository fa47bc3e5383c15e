//! The notes of one end of a measurement, as bytes that the server sends to the client.
//!
//! [`Log`] is the probe of the end's peers and also takes what only the measurement knows: when datagrams of
//! the other end left and came. Times are those of the end's own clock.

use serde::{Deserialize, Serialize};
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::gauge::{Gauge, RxError};
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{Note, Place, Playout, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_proto::transport::Layers;

/// A note, with times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) at: u64,
    /// The peer that took it, as in [`Place::Peer`].
    pub(crate) peer: u16,
    pub(crate) what: What,
}

/// The content of a note: those of [`Note`] that the recorder uses, and others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum What {
    Generated {
        index: u32,
        bytes: u32,
        captured: u64,
    },
    Picture {
        is_key: bool,
    },
    Repair {
        bytes: u32,
        is_padding: bool,
    },
    HandedOver {
        index: u32,
    },
    Discarded {
        index: u32,
    },
    /// A packet left: its length on the wire as an IP packet, and its bytes by layer.
    Sent {
        number: u32,
        bytes: u32,
        transport: u16,
        media: u16,
        payload: u32,
    },
    /// A packet came, with payload or without: departure by the sender's clock.
    Received {
        number: u32,
        bytes: u32,
        sent: u64,
        payload: bool,
    },
    Delivered {
        index: u32,
        bytes: u32,
    },
    Played {
        index: u32,
        at: u64,
    },
    Recovered {
        index: u32,
        at: u64,
    },
    Late {
        index: u32,
        at: u64,
    },
    Paused {
        index: u32,
        nanos: u64,
    },
    InOrder {
        nanos: u64,
    },
    Encoding {
        rung: u8,
    },
    Rejected {
        why: u8,
    },
    Event {
        event: u8,
    },
    Gauge {
        gauge: u8,
        value: f64,
    },
    /// Another datagram came, which left then by the sender's clock.
    Heard {
        sent: u64,
    },
    /// A question was answered: when it left by our clock, and came by the other one.
    Answered {
        asked: u64,
        came: u64,
    },
    /// Time of a question's way there and back, less the time at the other end.
    RoundTrip {
        nanos: u64,
    },
}

/// Events of the `events` table, by number.
pub(crate) const EVENTS: [Event; 6] = [
    Event::Connected,
    Event::PeerClosed,
    Event::Closed,
    Event::Reset,
    Event::TimedOut,
    Event::Restarted,
];
/// Reasons for rejecting a packet, by number.
pub(crate) const RX_ERRORS: [RxError; 6] = [
    RxError::Malformed,
    RxError::Checksum,
    RxError::OutOfWindow,
    RxError::BadAck,
    RxError::OldTimestamp,
    RxError::Unexpected,
];
const GAUGES: usize = Gauge::METRICS.len();

/// The notes of an end in the order in which they were taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    bytes: Vec<u8>,
    /// The number of notes.
    pub(crate) rows: usize,
    /// By peer and gauge: the last value, as bits. A gauge is a step function: only its steps are kept.
    gauges: Vec<[Option<u64>; GAUGES]>,
}

impl Log {
    /// Most bytes of a note whose times are of the first day, as those of a plan.
    pub(crate) const LONGEST: usize = 40;

    pub(crate) fn add(&mut self, at: Instant, peer: usize, what: What) {
        let row = Row { at: at.as_nanos(), peer: peer as u16, what };
        self.rows += 1;
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(&row, bytes).expect("a row has a form in bytes");
    }

    /// A packet left.
    pub(crate) fn sent(&mut self, at: Instant, peer: usize, packet: &Packet, layers: Layers) {
        let Layers { transport, media, payload } = layers;
        let what = What::Sent {
            number: packet.number,
            bytes: packet.ip_bytes,
            transport: transport as u16,
            media: media as u16,
            payload,
        };
        self.add(at, peer, what);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Our own rows.
    pub(crate) fn own_rows(&self) -> Vec<Row> {
        Self::rows(&self.bytes, self.rows).expect("they were written here")
    }

    /// The rows of a log; stops at bytes that are none and at more than so many rows, and says so.
    pub(crate) fn rows(mut bytes: &[u8], most: usize) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        while !bytes.is_empty() {
            if rows.len() == most {
                return Err(
                    "the other end's notes are more than those of this plan can be".to_owned()
                );
            }
            let (row, rest) = postcard::take_from_bytes(bytes)
                .map_err(|error| format!("the other end's notes are damaged: {error}"))?;
            rows.push(row);
            bytes = rest;
        }
        Ok(rows)
    }

    fn is_step(&mut self, peer: u32, gauge: Gauge, value: f64) -> bool {
        let peer = peer as usize;
        if self.gauges.len() <= peer {
            self.gauges.resize(peer + 1, [None; GAUGES]);
        }
        let bits = Some(value.to_bits());
        std::mem::replace(&mut self.gauges[peer][gauge as usize], bits) != bits
    }
}

impl Probe for Log {
    fn wants(&self, topic: Topic) -> bool {
        !matches!(topic, Topic::Hop | Topic::Drop)
    }

    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        let Place::Peer(peer) = place else { return };
        let what = match note {
            Note::Generated { index, bytes, captured } => {
                What::Generated { index: *index, bytes: *bytes, captured: captured.as_nanos() }
            }
            Note::Picture { is_key } => What::Picture { is_key: *is_key },
            Note::Repair { bytes, is_padding } => {
                What::Repair { bytes: *bytes, is_padding: *is_padding }
            }
            Note::HandedOver { index } => What::HandedOver { index: *index },
            Note::Discarded { index } => What::Discarded { index: *index },
            Note::Delivered { index, bytes } => What::Delivered { index: *index, bytes: *bytes },
            Note::InOrder { waited } => What::InOrder { nanos: waited.as_nanos() },
            Note::Decided { index, playout } => match playout {
                Playout::Played(at) => What::Played { index: *index, at: at.as_nanos() },
                Playout::Recovered(at) => What::Recovered { index: *index, at: at.as_nanos() },
                Playout::Late(at) => What::Late { index: *index, at: at.as_nanos() },
                Playout::Duplicate => return,
            },
            Note::Paused { index, length } => {
                What::Paused { index: *index, nanos: length.as_nanos() }
            }
            Note::Gauge { gauge, value } => {
                if !self.is_step(peer, *gauge, *value) {
                    return;
                }
                What::Gauge { gauge: *gauge as u8, value: *value }
            }
            Note::Event(event) => {
                let Some(event) = EVENTS.iter().position(|known| known == event) else { return };
                What::Event { event: event as u8 }
            }
            Note::Encoding(rung) => What::Encoding { rung: *rung },
            Note::RxError(why) => What::Rejected { why: *why as u8 },
            // Packets are added by the loop that sends and receives them, which knows their numbers.
            _ => return,
        };
        self.add(now, peer as usize, what);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_stand_for_the_same_at_both_ends() {
        for number in 0..GAUGES as u8 {
            assert_eq!(Gauge::from_number(number).map(|gauge| gauge as u8), Some(number));
        }
        assert_eq!(Gauge::from_number(GAUGES as u8), None);
        for (number, error) in RX_ERRORS.into_iter().enumerate() {
            assert_eq!(error as usize, number);
        }
    }

    #[test]
    fn rows_come_back() {
        let mut log = Log::default();
        let sent = What::Sent { number: 7, bytes: 238, transport: 8, media: 12, payload: 160 };
        log.add(Instant::from_nanos(5), 1, sent);
        log.add(Instant::from_nanos(9), 300, What::Gauge { gauge: 3, value: 0.25 });
        let rows = log.own_rows();
        assert!(Log::rows(log.bytes(), 1).is_err_and(|why| why.contains("more than those")));
        assert_eq!(rows[0], Row { at: 5, peer: 1, what: sent });
        assert_eq!((rows[1].at, rows[1].peer, rows.len()), (9, 300, 2));
    }

    proptest! {
        /// Whatever a server sends, the client does not panic.
        #[test]
        fn any_bytes_are_rows_or_an_error(bytes: Vec<u8>) {
            let _ = Log::rows(&bytes, usize::MAX);
        }
    }
}
