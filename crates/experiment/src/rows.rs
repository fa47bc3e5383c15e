//! A run once more, for its `packets` table: batch after batch while it goes on, so that a run of any
//! length can be written.

use talkspurt_record::{Digest, PacketRows, Table};
use talkspurt_scenario::Point;

use crate::Shared;
use crate::again::again;
use crate::layout::layout;

/// Runs a point and gives each batch of its `packets` table to `give`, in order; the run's digest.
/// `give` says whether it wants more.
///
/// # Errors
/// Words for what could not be read, or "cancelled".
pub fn rows(
    point: &Point,
    shared: &Shared,
    mut give: impl FnMut(Table) -> bool,
) -> Result<String, String> {
    let Point { scenario, network, .. } = point;
    let probe = (Digest::new(), PacketRows::new(layout(scenario, network)));
    let mut refused = false;
    let ((digest, rows), _) = again(point, probe, shared, |_, (_, rows)| {
        while let Some(batch) = rows.take() {
            refused = !give(batch);
            if refused {
                break;
            }
        }
        refused
    })?;
    if refused || !rows.rest().into_iter().all(give) {
        return Err("cancelled".to_owned());
    }
    Ok(digest.hex())
}
