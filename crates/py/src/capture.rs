//! The packets of a capture file, for `talkspurt import`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use talkspurt_capture::{rtcp, sdp};

use crate::outcome::Table;

/// Kinds of frames and packets, with their numbers.
type Counts = Vec<(String, u64)>;

/// Packets and DATA chunks of a pcap or pcapng file as tables, the number of frames, and what was left out.
#[pyfunction]
pub(crate) fn capture(py: Python<'_>, file: &[u8]) -> PyResult<(Table, Table, u64, Counts)> {
    let read = py.detach(|| talkspurt_capture::table::read(file)).map_err(PyValueError::new_err)?;
    Ok((
        Table::new(read.packets.into()),
        Table::new(read.chunks.into()),
        read.frames,
        read.left_out,
    ))
}

/// The media of a session description as JSON; none if it is not one.
#[pyfunction]
#[pyo3(name = "sdp")]
pub(crate) fn sdp_media(text: &[u8]) -> Option<String> {
    sdp::parse(text).map(|media| serde_json::to_string(&media).expect("text keys"))
}

/// The reports in a compound RTCP packet as JSON. The last one, of the kind `cut`, says why others are missing.
#[pyfunction]
#[pyo3(name = "rtcp")]
pub(crate) fn rtcp_reports(packet: &[u8]) -> String {
    let (reports, why) = match rtcp::parse(packet) {
        Ok(reports) => (reports, None),
        Err(cut) => (cut.read, Some(cut.why)),
    };
    let mut list: Vec<_> = reports.iter().map(|report| json!(report)).collect();
    list.extend(why.map(|why| json!({ "kind": "cut", "why": why.to_string() })));
    Value::from(list).to_string()
}
