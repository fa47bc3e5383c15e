//! Chunks of SCTP by type, and data by path.

use std::collections::BTreeMap;

use serde::Serialize;
use talkspurt_live::Inside;
use talkspurt_proto::body::Body;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::sctp::{Chunk, Data};
use talkspurt_proto::wire::{ipv4, ipv6, udp};

use super::Count;

/// Packets of both directions.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Packets {
    sent: Way,
    received: Way,
}

impl Count for Packets {
    fn packet(&mut self, sent: bool, label: &Packet, body: &Body) {
        let way = if sent { &mut self.sent } else { &mut self.received };
        way.packet(label, body);
    }
}

/// One direction.
#[derive(Debug, Default, Serialize)]
struct Way {
    packets: u64,
    chunks: BTreeMap<String, u64>,
    /// DATA and I-DATA chunks by path.
    data: BTreeMap<u32, u64>,
    /// Those with a TSN not above all earlier ones: retransmitted or, from the peer, reordered.
    again: u64,
    /// Codes of the causes in ABORT and ERROR.
    causes: Vec<u16>,
    #[serde(skip)]
    highest: Option<u32>,
}

impl Way {
    fn packet(&mut self, label: &Packet, body: &Body) {
        let Body::Sctp(packet) = body else { return };
        self.packets += 1;
        for chunk in &packet.chunks {
            *self.chunks.entry(name(chunk)).or_default() += 1;
            match chunk {
                Chunk::Data(data) => self.data(label.route, data),
                Chunk::Abort { causes, .. } | Chunk::Error(causes) => {
                    self.causes.extend(causes.iter().map(|cause| cause.code));
                }
                _ => {}
            }
        }
    }

    fn data(&mut self, path: u32, data: &Data) {
        *self.data.entry(path).or_default() += 1;
        match self.highest {
            Some(highest) if highest.wrapping_sub(data.tsn) < 1 << 31 => self.again += 1,
            _ => self.highest = Some(data.tsn),
        }
    }
}

/// Whether a packet carries data, judged by its first two chunks to avoid parsing all of it.
pub(crate) fn bears_data(bytes: &[u8], inside: Option<Inside>) -> bool {
    let version = bytes.first().map_or(0, |byte| byte >> 4);
    let ip = if version == 4 { ipv4::HEADER } else { ipv6::HEADER };
    let chunks = ip + if inside.is_some() { udp::HEADER } else { 0 } + 12;
    let is_data = |at: usize| matches!(bytes.get(at), Some(0 | 64));
    let Some([3, _, high, low]) = bytes.get(chunks..chunks + 4) else { return is_data(chunks) };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    is_data(chunks + length.next_multiple_of(4))
}

fn name(chunk: &Chunk) -> String {
    let name = match chunk.number() {
        0 => "DATA",
        1 => "INIT",
        2 => "INIT ACK",
        3 => "SACK",
        4 => "HEARTBEAT",
        5 => "HEARTBEAT ACK",
        6 => "ABORT",
        7 => "SHUTDOWN",
        8 => "SHUTDOWN ACK",
        9 => "ERROR",
        10 => "COOKIE ECHO",
        11 => "COOKIE ACK",
        12 => "ECNE",
        13 => "CWR",
        14 => "SHUTDOWN COMPLETE",
        64 => "I-DATA",
        192 => "FORWARD TSN",
        194 => "I-FORWARD TSN",
        other => return format!("type {other}"),
    };
    name.to_owned()
}
