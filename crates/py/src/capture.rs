//! The packets of a capture file, for `talkspurt import`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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
