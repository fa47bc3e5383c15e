//! The packets of a capture file, for `talkspurt import`.

use bytes::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use talkspurt_app::playout;
use talkspurt_capture::round_trip::round_trips;
use talkspurt_capture::{rtcp, sdp};
use talkspurt_experiment::{Stream, StreamPacket};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::validate::Validate;
use talkspurt_scenario::model::Flow;

use crate::outcome::{Outcome, Table};

/// Of a pcap or pcapng file: its packets, their DATA chunks of SCTP, and the frames without a packet, each as a
/// table; the number of frames, and of those without a time.
#[pyfunction]
pub(crate) fn capture(py: Python<'_>, file: &[u8]) -> PyResult<(Table, Table, Table, u64, u64)> {
    let read = py.detach(|| talkspurt_capture::table::read(file)).map_err(PyValueError::new_err)?;
    let table = |rows: arrow_array::RecordBatch| Table::new(rows.into());
    let tables = [read.packets, read.chunks, read.left_out].map(table);
    let [packets, chunks, left_out] = tables;
    Ok((packets, chunks, left_out, read.frames, read.untimed))
}

/// A packet of a stream, times in nanoseconds: its place on the media clock, when its first sample was
/// captured, when it left and arrived, the index of its length (none: comfort noise), its marker, the length
/// of its payload, and where in the file its captured payload begins and ends.
type Row = (u64, u64, Option<u64>, Option<u64>, Option<usize>, bool, u32, Option<(usize, usize)>);

/// Plays a captured stream of a flow (JSON as in a resolved scenario) through its jitter buffer, and scores it.
/// `lengths` are those of its packets in nanoseconds, the most frequent first. The file, if it is given, has
/// payloads, and so their redundancy. The result has one direction, `call`.
#[pyfunction]
pub(crate) fn listen(
    py: Python<'_>,
    flow: &str,
    lengths: Vec<u64>,
    rows: Vec<Row>,
    end_ns: u64,
    file: Option<&[u8]>,
    sounds: bool,
) -> PyResult<Outcome> {
    let flow: Flow =
        serde_json::from_str(flow).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let known = lengths.len();
    if known == 0 || lengths.contains(&0) {
        return Err(PyValueError::new_err("lengths: expected at least one, above 0"));
    }
    let at = |nanos: u64| Instant::from_nanos(nanos);
    let packet = |row: Row| {
        let (media, captured, sent, arrived, length, marker, payload_bytes, payload) = row;
        let bytes = payload.and_then(|(from, to)| file?.get(from..to));
        StreamPacket {
            media: Duration::from_nanos(media),
            captured: at(captured),
            sent: sent.map(at),
            arrived: arrived.map(at),
            length: length.map(|index| index.min(known - 1)),
            marker,
            payload_bytes,
            payload: bytes.map(Bytes::copy_from_slice),
        }
    };
    let stream = Stream {
        flow: &flow,
        lengths: lengths.into_iter().map(Duration::from_nanos).collect(),
        packets: rows.into_iter().map(packet).collect(),
        end: at(end_ns),
        sounds,
    };
    let listened = py.detach(|| talkspurt_experiment::listen(&stream));
    listened.map(Outcome::new).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The settings of a jitter buffer (JSON as in a scenario), with their kind.
#[pyfunction]
pub(crate) fn jitter_buffer(settings: &str) -> PyResult<String> {
    let read: playout::Config =
        serde_json::from_str(settings).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let errors: Vec<_> =
        read.errors().iter().map(|error| format!("{}: {}", error.key, error.why)).collect();
    if !errors.is_empty() {
        return Err(PyValueError::new_err(errors.join("; ")));
    }
    serde_json::to_string(&read.with_defaults())
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The media of a session description, alone or in a message of SIP or SAP, as JSON; none if there is none. If
/// `cut`, bytes at its end are missing.
#[pyfunction]
#[pyo3(name = "sdp")]
pub(crate) fn sdp_media(text: &[u8], cut: bool) -> Option<String> {
    let found = sdp::find(text, cut).map(|(_, media)| media);
    let found = found.or_else(|| if cut { None } else { sdp::parse(text) });
    found.map(|media| json!(media).to_string())
}

/// The encodings of the payload types of RFC 3551: number, name and clock rate.
#[pyfunction]
pub(crate) fn rtp_payloads() -> Vec<(u8, String, u32)> {
    let known = (0..128).filter_map(|number| Some((number, sdp::fixed(number)?)));
    known.map(|(number, format)| (number, format.encoding, format.clock_hz)).collect()
}

/// The reports in a compound RTCP packet as JSON. The last one, of the kind `cut`, says why others are missing.
/// A `whole` packet that is not plain RTCP is only of the kind `encrypted`.
#[pyfunction]
#[pyo3(name = "rtcp")]
pub(crate) fn rtcp_reports(packet: &[u8], whole: bool) -> String {
    if whole && !rtcp::plain(packet) {
        let ssrc = packet.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        return json!([{ "kind": "encrypted", "ssrc": ssrc }]).to_string();
    }
    let (reports, why) = match rtcp::parse(packet) {
        Ok(reports) => (reports, None),
        Err(cut) => (cut.read, Some(cut.why)),
    };
    let mut list: Vec<_> = reports.iter().map(|report| json!(report)).collect();
    list.extend(why.map(|why| json!({ "kind": "cut", "why": why.to_string() })));
    Value::from(list).to_string()
}

/// Round-trip times by the reports of RTCP packets with their times in nanoseconds, in order, as JSON.
#[pyfunction]
pub(crate) fn rtcp_round_trips(packets: Vec<(u64, Vec<u8>)>) -> String {
    let read = |(time, packet): &(u64, Vec<u8>)| {
        let reports = rtcp::parse(packet).unwrap_or_else(|cut| cut.read);
        reports.into_iter().map(|report| (*time, report)).collect::<Vec<_>>()
    };
    let reports: Vec<_> = packets.iter().flat_map(read).collect();
    json!(round_trips(reports.iter().map(|(time, report)| (*time, report)))).to_string()
}
