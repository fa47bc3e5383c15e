//! Statistics of the segments of TCP: retransmissions and options.

use serde::Serialize;
use talkspurt_proto::body::Body;
use talkspurt_proto::packet::{Ecn, Packet};
use talkspurt_proto::tcp::{Flags, Segment};
use talkspurt_proto::wire::{self, Hints};

use super::Count;

/// Segments of one direction.
#[derive(Debug, Default, Serialize)]
struct Segments {
    segments: u64,
    data_segments: u64,
    data_bytes: u64,
    /// Data segments that begin before the end of an earlier one.
    again_segments: u64,
    longest_payload_bytes: u64,
    with_sack: u64,
    sack_blocks: u64,
    /// Most blocks in one option.
    most_blocks: u64,
    /// First blocks that report a duplicate (RFC 2883 §4).
    d_sacks: u64,
    ect: u64,
    ce: u64,
    ece: u64,
    cwr: u64,
    fin: u64,
    rst: u64,
    /// Pure acknowledgements with a zero window.
    closed_windows: u64,
    /// The options of the SYN.
    syn: Vec<String>,
    #[serde(skip)]
    end: Option<u32>,
}

impl Segments {
    fn count(&mut self, ecn: Ecn, segment: &Segment) {
        let has = |flag| u64::from(segment.flags.contains(flag));
        self.segments += 1;
        self.ect += u64::from(matches!(ecn, Ecn::Ect0 | Ecn::Ect1));
        self.ce += u64::from(ecn == Ecn::Ce);
        if segment.flags.contains(Flags::SYN) {
            return self.begin(segment);
        }
        self.ece += has(Flags::ECE);
        self.cwr += has(Flags::CWR);
        self.fin += has(Flags::FIN);
        self.rst += has(Flags::RST);
        self.closed_windows += u64::from(segment.window == 0 && has(Flags::RST) == 0);
        self.blocks(segment);
        self.data(segment);
    }

    fn begin(&mut self, syn: &Segment) {
        let mut options = Vec::new();
        options.extend(syn.mss.map(|mss| format!("MSS {mss}")));
        options.extend(syn.window_scale.map(|shift| format!("window scale {shift}")));
        options.extend(syn.sack_permitted.then(|| "SACK permitted".to_owned()));
        options.extend(syn.timestamps.map(|_| "timestamps".to_owned()));
        options.extend(syn.flags.contains(Flags::ECE).then(|| "ECN".to_owned()));
        self.syn = options;
    }

    fn data(&mut self, segment: &Segment) {
        let length = segment.payload.len() as u32;
        if length == 0 {
            return;
        }
        self.data_segments += 1;
        self.data_bytes += u64::from(length);
        self.longest_payload_bytes = self.longest_payload_bytes.max(u64::from(length));
        let (start, after) = (segment.seq, segment.seq.wrapping_add(length));
        let end = self.end.unwrap_or(start);
        self.again_segments += u64::from((start.wrapping_sub(end) as i32) < 0);
        if (after.wrapping_sub(end) as i32) > 0 {
            self.end = Some(after);
        }
    }

    fn blocks(&mut self, segment: &Segment) {
        let Some(sack) = &segment.sack else { return };
        let blocks = sack.as_slice();
        self.with_sack += 1;
        self.sack_blocks += blocks.len() as u64;
        self.most_blocks = self.most_blocks.max(blocks.len() as u64);
        let from = |number: u32, start: u32| number.wrapping_sub(start) as i32;
        let duplicate = match *blocks {
            // RFC 2883 §4.1
            [(_, right), ..] if from(right, segment.ack) <= 0 => true,
            // RFC 2883 §4.2
            [(left, right), (outer, until), ..] => {
                from(left, outer) >= 0 && from(until, right) >= 0
            }
            _ => false,
        };
        self.d_sacks += u64::from(duplicate);
    }
}

/// Segments of both directions.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Both {
    sent: Segments,
    received: Segments,
}

impl Count for Both {
    fn packet(&mut self, sent: bool, label: &Packet, body: &Body) {
        let Body::Tcp(segment) = body else { return };
        let way = if sent { &mut self.sent } else { &mut self.received };
        way.count(label.ecn, segment);
    }
}

/// Whether a packet carries application data.
pub(crate) fn bears_data(bytes: &[u8]) -> bool {
    wire::parse(bytes, Hints::default()).is_ok_and(
        |parsed| matches!(&parsed.body, Body::Tcp(segment) if !segment.payload.is_empty()),
    )
}
