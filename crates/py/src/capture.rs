//! The packets of a capture file, for `talkspurt import`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::outcome::Table;

/// Packets and DATA chunks of a pcap or pcapng file as tables, and the numbers of frames: all,
/// without IP, of other protocols, fragments, cut off.
#[pyfunction]
pub(crate) fn capture(py: Python<'_>, file: &[u8]) -> PyResult<(Table, Table, [u64; 5])> {
    let read = py.detach(|| talkspurt_capture::table::read(file)).map_err(PyValueError::new_err)?;
    let counts = [read.frames, read.not_ip, read.other_protocols, read.fragments, read.cut];
    Ok((Table::new(read.packets.into()), Table::new(read.chunks.into()), counts))
}
