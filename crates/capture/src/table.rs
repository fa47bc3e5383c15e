//! The packets of a capture as Arrow tables: one row per packet of TCP, UDP, SCTP or DCCP, and one per
//! DATA chunk of SCTP. Packets have the numbers of their frames, from 1, as in Wireshark; only an A-MSDU of
//! IEEE 802.11 has several.

use std::collections::{BTreeMap, BTreeSet};
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
    /// The frames without a row in `packets`, and why: `frame`, `why`.
    pub left_out: RecordBatch,
    /// All frames of the file.
    pub frames: u64,
    /// How many of them have no time in the file.
    pub untimed: u64,
}

/// In `left_out`: fragments that are part of a packet, whose row is that of the first.
pub const REASSEMBLED: &str = "reassembled";
/// In `left_out`: frames that repeat the one before them.
pub const REPEATED: &str = "duplicate";

/// Reads a file.
///
/// # Errors
/// The fault, as the end of a sentence that begins with the file's name.
pub fn read(file: &[u8]) -> Result<Tables, String> {
    let (mut rows, mut parts) = (Vec::new(), Parts::default());
    let mut link = Frames::default();
    let mut left: Vec<(u64, Why)> = Vec::new();
    let (mut frames, mut untimed) = (0, 0);
    for (number, packet) in (1_u64..).zip(container::packets(file)?) {
        frames = number;
        untimed += u64::from(!packet.timed);
        let (before, mut why) = (rows.len(), None);
        link.each(&packet, &mut |found| {
            let read = found.map(|ip| (ip, headers::parse(ip, packet.cut)));
            match read {
                Ok((ip, Ok(headers))) => {
                    let part = headers.part;
                    let at = ip.as_ptr() as usize - file.as_ptr() as usize;
                    rows.push(Row { frame: number, nanos: packet.nanos, at, headers });
                    if let Some(part) = part {
                        parts.add((packet.nanos, number), part, Some(rows.len() - 1), &mut rows);
                    }
                }
                Ok((_, Err(Unread::Fragment(part)))) => {
                    parts.add((packet.nanos, number), part, None, &mut rows);
                    why = Some(Why::Fragment);
                }
                Ok((_, Err(Unread::Other(other)))) => why = why.or(Some(Why::Other(other))),
                Err(found) => why = why.or(Some(Why::Left(found))),
            }
        });
        if let Some(why) = why.filter(|_| rows.len() == before) {
            left.push((number, why));
        }
    }
    if let Some((_, Why::Left(first @ Left::LinkType(_)))) =
        left.first().filter(|_| left.len() as u64 == frames)
        && left.iter().all(|(_, why)| *why == Why::Left(*first))
    {
        return Err(format!("has {first}, which are not read"));
    }
    Ok(Tables {
        packets: packets(&rows),
        chunks: chunks(&rows),
        left_out: left_out(&left, &parts.reassembled),
        frames,
        untimed,
    })
}

/// Why a frame has no row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Left(Left),
    Other(Other),
    Fragment,
}

fn left_out(left: &[(u64, Why)], reassembled: &BTreeSet<u64>) -> RecordBatch {
    let why = |(frame, why): &(u64, Why)| match why {
        Why::Left(Left::Repeated) => REPEATED.to_owned(),
        Why::Left(left) => left.to_string(),
        Why::Other(other) => other.to_string(),
        Why::Fragment if reassembled.contains(frame) => REASSEMBLED.to_owned(),
        // Without the first, which has the headers, or with a gap.
        Why::Fragment => "IP fragments".to_owned(),
    };
    batch(vec![count("frame", left, |one| Some(one.0)), text("why", left, why)])
}

/// Fragments of packets that are not complete yet.
#[derive(Default)]
struct Parts {
    /// Those of each packet.
    waiting: BTreeMap<(IpAddr, IpAddr, u32, u8), Vec<Waiting>>,
    /// Frames that belong to complete packets.
    reassembled: BTreeSet<u64>,
}

/// Time and number of the frame, place in the packet, and the row of the first.
type Waiting = ((u64, u64), Part, Option<usize>);

/// RFC 791 §3.2 suggests 15 s; Linux waits 30 s.
const REASSEMBLY_NS: u64 = 30_000_000_000;

impl Parts {
    /// Adds a fragment; the first one will have the given row. With the last that was missing, this row gets
    /// the lengths of the whole packet, and the time at which it was complete.
    fn add(&mut self, of: (u64, u64), part: Part, row: Option<usize>, rows: &mut [Row]) {
        let waiting = self.waiting.entry(part.of).or_default();
        waiting.retain(|((at, _), other, _)| {
            of.0.saturating_sub(*at) <= REASSEMBLY_NS && other.begin != part.begin
        });
        waiting.push((of, part, row));
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
        let whole = &mut rows[*row];
        for ((nanos, frame), part, _) in &waiting[1..] {
            self.reassembled.insert(*frame);
            whole.nanos = whole.nanos.max(*nanos);
            if of_tunnel {
                // The lengths are those of the packet in the tunnel, whose header says them.
                continue;
            }
            whole.headers.ip_bytes += part.ip_bytes;
            whole.headers.network_header_bytes += part.header_bytes;
            whole.headers.payload_bytes += part.bytes;
        }
        self.waiting.remove(&part.of);
    }
}

/// A packet: its frame and time, where in the file it begins, and its headers.
struct Row {
    frame: u64,
    nanos: u64,
    at: usize,
    headers: Headers,
}

impl Row {
    /// A place in the packet as one in the file.
    fn place(&self, at: u32) -> u64 {
        self.at as u64 + u64::from(at)
    }
}

/// A field of RTP; `None` of other media.
macro_rules! rtp {
    ($media:expr, $field:ident) => {
        match *$media {
            Media::Rtp { $field, .. } => Some(u64::from($field)),
            _ => None,
        }
    };
}

fn packets(rows: &[Row]) -> RecordBatch {
    let number =
        |name, get: fn(&Headers) -> Option<u64>| count(name, rows, |row| get(&row.headers));
    let is =
        |name, get: fn(&Transport) -> bool| flag(name, rows, |row| get(&row.headers.transport));
    let of_rtp = |name, get: fn(&Media) -> Option<u64>| {
        count(name, rows, |row| row.headers.media.as_ref().and_then(get))
    };
    // The payload of the transport or, of RTP, the media, as far as it was captured.
    let payload = |row: &Row| match &row.headers.media {
        Some(Media::Rtp { payload, .. }) => payload.clone(),
        _ => row.headers.payload.clone(),
    };
    batch(vec![
        count("frame", rows, |row| Some(row.frame)),
        count("time_ns", rows, |row| Some(row.nanos)),
        text("src", rows, |row| row.headers.src.to_string()),
        text("dst", rows, |row| row.headers.dst.to_string()),
        number("src_port", |it| Some(it.ports.0.into())),
        number("dst_port", |it| Some(it.ports.1.into())),
        text("protocol", rows, |row| protocol(&row.headers).to_owned()),
        number("ip_id", |it| it.ip_id.map(Into::into)),
        number("hop_limit", |it| Some(it.hop_limit.into())),
        number("ip_bytes", |it| Some(it.ip_bytes.into())),
        number("network_header_bytes", |it| Some(it.network_header_bytes.into())),
        number("transport_header_bytes", |it| Some(it.transport_header_bytes.into())),
        number("payload_bytes", |it| Some(it.payload_bytes.into())),
        number("kind", kind),
        number("seq", seq),
        number("ack", ack),
        is("syn", |it| matches!(it, Transport::Tcp { syn: true, .. })),
        is("fin", |it| matches!(it, Transport::Tcp { fin: true, .. })),
        is("rst", |it| matches!(it, Transport::Tcp { rst: true, .. })),
        is("short_seq", |it| matches!(it, Transport::Dccp { extended: false, .. })),
        is("chunks_cut", |it| matches!(it, Transport::Sctp { cut: true, .. })),
        number("digest", |it| it.digest),
        maybe_text("content", rows, |row| row.headers.media.as_ref().map(content)),
        of_rtp("rtp_ssrc", |it| rtp!(it, ssrc)),
        of_rtp("rtp_seq", |it| rtp!(it, seq)),
        of_rtp("rtp_timestamp", |it| rtp!(it, timestamp)),
        of_rtp("rtp_type", |it| rtp!(it, payload_type)),
        of_rtp("rtp_marker", |it| rtp!(it, marker)),
        of_rtp("rtp_header_bytes", |it| rtp!(it, header_bytes)),
        of_rtp("rtp_padding_bytes", |it| rtp!(it, padding_bytes)),
        count("payload_at", rows, |row| Some(row.place(payload(row)?.start))),
        count("payload_end", rows, |row| Some(row.place(payload(row)?.end))),
    ])
}

const fn content(media: &Media) -> &'static str {
    match media {
        Media::Rtp { .. } => "rtp",
        Media::Rtcp => "rtcp",
        Media::Stun => "stun",
        Media::Dtls => "dtls",
        Media::Zrtp => "zrtp",
        Media::TurnChannel => "turn",
        Media::Other => "other",
    }
}

fn chunks(rows: &[Row]) -> RecordBatch {
    let all: Vec<_> = rows
        .iter()
        .filter_map(|row| match &row.headers.transport {
            Transport::Sctp { chunks, .. } => Some(chunks.iter().map(|chunk| (row.frame, *chunk))),
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

fn ack(headers: &Headers) -> Option<u64> {
    match headers.transport {
        Transport::Tcp { ack, .. } | Transport::Sctp { ack, .. } => ack.map(Into::into),
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

fn maybe_text<T>(name: &str, rows: &[T], get: impl Fn(&T) -> Option<&'static str>) -> Column {
    let array: StringArray = rows.iter().map(get).collect();
    (Field::new(name, DataType::Utf8, true), Arc::new(array))
}

fn flag<T>(name: &str, rows: &[T], get: impl Fn(&T) -> bool) -> Column {
    let array: BooleanArray = rows.iter().map(|row| Some(get(row))).collect();
    (Field::new(name, DataType::Boolean, true), Arc::new(array))
}

fn batch(columns: Vec<Column>) -> RecordBatch {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .expect("columns of one table are of one length")
}
