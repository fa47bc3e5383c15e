//! The packets of a run as a table on disk, written during the run.

use std::path::Path;

use talkspurt_record::{Layout, Output, PacketTable};

use crate::Failure;

/// Creates `packets.parquet` in an existing folder.
pub(crate) fn create(folder: &Path, layout: &Layout) -> Result<PacketTable, Failure> {
    let output = Output::create(folder.join("packets.parquet")).map_err(Failure::output)?;
    Ok(PacketTable::new(output, layout))
}

/// Completes the table.
pub(crate) fn finish(packets: PacketTable) -> Result<(), Failure> {
    packets
        .finish()
        .map_err(|error| Failure::Output(format!("the packets could not be written: {error}")))
}
