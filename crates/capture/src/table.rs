//! The packets of a capture as Arrow tables: one row per packet of TCP, UDP, SCTP or DCCP, and one per
//! DATA chunk of SCTP. Packets have the numbers of their frames, from 1, as in Wireshark; only an A-MSDU of
//! IEEE 802.11 has several.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::container;
use crate::frame::{Frames, Left};
use crate::headers::{self, Headers, Media, Other, Part, Transport, Unread};

/// The tables of a capture, and what is in none of them.
#[derive(Clone, Debug)]
pub struct Tables {
    /// One row per packet.
    pub packets: RecordBatch,
    /// One row per DATA chunk: `frame`, `tsn`, `stream`, `bytes`.
    pub chunks: RecordBatch,
    /// All frames of the file.
    pub frames: u64,
    /// Frames, packets and fragments that are in no table: what they are, and how many.
    pub left_out: Vec<(String, u64)>,
}

/// Reads a file.
///
/// # Errors
/// The fault, as the end of a sentence that begins with the file's name.
pub fn read(file: &[u8]) -> Result<Tables, String> {
    let (mut rows, mut frames, mut parts) = (Vec::new(), 0, Parts::default());
    let mut link = Frames::default();
    let (mut of_link, mut of_ip) = (BTreeMap::<Left, u64>::new(), BTreeMap::<Other, u64>::new());
    for (number, packet) in (1_u64..).zip(container::packets(file)?) {
        frames = number;
        link.each(&packet, &mut |found| match found.map(|ip| headers::parse(ip, packet.cut)) {
            Ok(Ok(headers)) => {
                let part = headers.part;
                rows.push((number, packet.nanos, headers));
                if let Some(part) = part {
                    parts.add(packet.nanos, part, Some(rows.len() - 1), &mut rows);
                }
            }
            Ok(Err(Unread::Fragment(part))) => parts.add(packet.nanos, part, None, &mut rows),
            Ok(Err(Unread::Other(other))) => *of_ip.entry(other).or_default() += 1,
            Err(left) => *of_link.entry(left).or_default() += 1,
        });
    }
    if let Some((left @ Left::LinkType(_), _)) =
        of_link.first_key_value().filter(|(_, count)| **count == frames)
    {
        return Err(format!("has {left}, which are not read"));
    }
    let mut left_out: Vec<_> = of_link.iter().map(|(left, n)| (left.to_string(), *n)).collect();
    left_out.extend(of_ip.iter().map(|(other, n)| (other.to_string(), *n)));
    if parts.without_first > 0 {
        // Without the first, which has the headers.
        left_out.push(("IP fragments".to_owned(), parts.without_first));
    }
    Ok(Tables { packets: packets(&rows), chunks: chunks(&rows), frames, left_out })
}

/// Fragments of packets that are not complete yet.
#[derive(Default)]
struct Parts {
    /// Time, place and row of each, by packet.
    waiting: BTreeMap<(IpAddr, IpAddr, u32, u8), Vec<Waiting>>,
    /// Those that belong to no complete packet, but first ones.
    without_first: u64,
}

type Waiting = (u64, Part, Option<usize>);

/// RFC 791 §3.2 suggests 15 s; Linux waits 30 s.
const REASSEMBLY_NS: u64 = 30_000_000_000;

impl Parts {
    /// Adds a fragment; the first one will have the given row. With the last that was missing, this row gets
    /// the lengths of the whole packet, and the time at which it was complete.
    fn add(&mut self, nanos: u64, part: Part, row: Option<usize>, rows: &mut [Row]) {
        self.without_first += u64::from(row.is_none());
        let waiting = self.waiting.entry(part.of).or_default();
        waiting.retain(|(at, other, _)| {
            nanos.saturating_sub(*at) <= REASSEMBLY_NS && other.begin != part.begin
        });
        waiting.push((nanos, part, row));
        waiting.sort_by_key(|(_, part, _)| part.begin);
        let mut end = 0;
        for (_, part, _) in &*waiting {
            if part.begin != end {
                return;
            }
            end += part.bytes;
        }
        let (Some((_, Part { last: true, .. }, _)), Some((_, _, Some(row)))) =
            (waiting.last(), waiting.first())
        else {
            return;
        };
        let of_tunnel = waiting[0].1.of_tunnel;
        let (_, at, whole) = &mut rows[*row];
        for (nanos, part, _) in &waiting[1..] {
            *at = (*at).max(*nanos);
            if of_tunnel {
                // The lengths are those of the packet in the tunnel, whose header says them.
                continue;
            }
            whole.ip_bytes += part.ip_bytes;
            whole.network_header_bytes += part.header_bytes;
            whole.payload_bytes += part.bytes;
        }
        self.without_first -= waiting.len() as u64 - 1;
        self.waiting.remove(&part.of);
    }
}

type Row = (u64, u64, Headers);

fn packets(rows: &[Row]) -> RecordBatch {
    batch(vec![
        count("frame", rows, |row| Some(row.0)),
        count("time_ns", rows, |row| Some(row.1)),
        text("src", rows, |row| row.2.src.to_string()),
        text("dst", rows, |row| row.2.dst.to_string()),
        count("src_port", rows, |row| Some(row.2.ports.0.into())),
        count("dst_port", rows, |row| Some(row.2.ports.1.into())),
        text("protocol", rows, |row| protocol(&row.2).to_owned()),
        count("ip_id", rows, |row| row.2.ip_id.map(Into::into)),
        count("hop_limit", rows, |row| Some(row.2.hop_limit.into())),
        count("ip_bytes", rows, |row| Some(row.2.ip_bytes.into())),
        count("network_header_bytes", rows, |row| Some(row.2.network_header_bytes.into())),
        count("transport_header_bytes", rows, |row| Some(row.2.transport_header_bytes.into())),
        count("payload_bytes", rows, |row| Some(row.2.payload_bytes.into())),
        count("kind", rows, |row| kind(&row.2)),
        count("seq", rows, |row| seq(&row.2)),
        count("ack", rows, |row| match row.2.transport {
            Transport::Tcp { ack, .. } => ack.map(Into::into),
            _ => None,
        }),
        flag("syn", rows, |row| matches!(row.2.transport, Transport::Tcp { syn: true, .. })),
        flag("fin", rows, |row| matches!(row.2.transport, Transport::Tcp { fin: true, .. })),
        flag("rst", rows, |row| matches!(row.2.transport, Transport::Tcp { rst: true, .. })),
        flag("short_seq", rows, |row| {
            matches!(row.2.transport, Transport::Dccp { extended: false, .. })
        }),
        flag("chunks_cut", rows, |row| {
            matches!(row.2.transport, Transport::Sctp { cut: true, .. })
        }),
        count("digest", rows, |row| row.2.digest),
        flag("rtcp", rows, |row| row.2.media == Some(Media::Rtcp)),
        media("rtp_ssrc", rows, |ssrc, _, _, _| ssrc.into()),
        media("rtp_seq", rows, |_, seq, _, _| seq.into()),
        media("rtp_timestamp", rows, |_, _, timestamp, _| timestamp.into()),
        media("rtp_type", rows, |_, _, _, (kind, _, _)| kind.into()),
        media("rtp_marker", rows, |_, _, _, (_, marker, _)| marker.into()),
        media("rtp_header_bytes", rows, |_, _, _, (_, _, bytes)| bytes.into()),
    ])
}

fn chunks(rows: &[Row]) -> RecordBatch {
    let all: Vec<_> = rows
        .iter()
        .filter_map(|row| match &row.2.transport {
            Transport::Sctp { chunks, .. } => Some(chunks.iter().map(|chunk| (row.0, *chunk))),
            _ => None,
        })
        .flatten()
        .collect();
    batch(vec![
        count("frame", &all, |one| Some(one.0)),
        count("tsn", &all, |one| Some(one.1.tsn.into())),
        count("stream", &all, |one| Some(one.1.stream.into())),
        count("bytes", &all, |one| Some(one.1.bytes.into())),
    ])
}

fn protocol(headers: &Headers) -> &'static str {
    match headers.transport {
        Transport::Udp => "udp",
        Transport::Tcp { .. } => "tcp",
        Transport::Sctp { .. } => "sctp",
        Transport::Dccp { .. } => "dccp",
    }
}

fn kind(headers: &Headers) -> Option<u64> {
    match headers.transport {
        Transport::Sctp { kind, .. } | Transport::Dccp { kind, .. } => Some(kind.into()),
        _ => None,
    }
}

fn seq(headers: &Headers) -> Option<u64> {
    match headers.transport {
        Transport::Tcp { seq, .. } => Some(seq.into()),
        Transport::Dccp { seq, .. } => Some(seq),
        _ => None,
    }
}

type Column = (Field, ArrayRef);

fn count<T>(name: &str, rows: &[T], get: impl Fn(&T) -> Option<u64>) -> Column {
    let values = rows.iter().map(|row| get(row).map(u64::cast_signed));
    let array: Int64Array = values.collect();
    (Field::new(name, DataType::Int64, true), Arc::new(array))
}

fn text<T>(name: &str, rows: &[T], get: impl Fn(&T) -> String) -> Column {
    let array: StringArray = rows.iter().map(|row| Some(get(row))).collect();
    (Field::new(name, DataType::Utf8, true), Arc::new(array))
}

fn flag<T>(name: &str, rows: &[T], get: impl Fn(&T) -> bool) -> Column {
    let array: BooleanArray = rows.iter().map(|row| Some(get(row))).collect();
    (Field::new(name, DataType::Boolean, true), Arc::new(array))
}

/// A column of RTP: of source, sequence number, timestamp; and payload type, marker, length of the header.
fn media(name: &str, rows: &[Row], get: fn(u32, u16, u32, (u8, bool, u32)) -> u64) -> Column {
    count(name, rows, |row| match row.2.media {
        Some(Media::Rtp { ssrc, seq, timestamp, payload_type, marker, header_bytes, .. }) => {
            Some(get(ssrc, seq, timestamp, (payload_type, marker, header_bytes)))
        }
        _ => None,
    })
}

fn batch(columns: Vec<Column>) -> RecordBatch {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .expect("columns of one table are of one length")
}
