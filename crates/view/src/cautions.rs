//! What to know before results are compared, from the flows of a run or of a whole study.

use indexmap::IndexMap;

use crate::Rows;
use crate::text::{general, time};

/// Share of a flow's packets rejected though intact, above which a warning is given. A few are common when a
/// connection closes.
const REJECTED: f64 = 0.01;
/// Flows named individually in each kind of warning, at most.
const MAX_FLOWS: usize = 5;

/// The warnings. Columns that are not there, as in results of earlier versions, have none.
#[must_use]
pub fn cautions(flows: &Rows) -> Vec<String> {
    let kinds = [late_openings(flows), rejections(flows), redundancy(flows)];
    kinds.into_iter().flat_map(few).collect()
}

/// Frames that waited for a handshake, which delays playout.
fn late_openings(flows: &Rows) -> Vec<String> {
    let mut waits: IndexMap<String, f64> = IndexMap::new();
    for row in 0..flows.len() {
        let wait = flows.number("handshake_wait_s", row).filter(|wait| *wait != 0.0);
        let Some(wait) = wait else { continue };
        let longest = waits.entry(name(flows, row)).or_default();
        *longest = longest.max(wait);
    }
    let said = waits.into_iter().map(|(name, wait)| {
        // Rounded up to half a second, on top of the source's value.
        format!(
            "{name}: the first frame waited {} for the handshake. A fixed playout buffer that counts from its \
             arrival is that much later for the whole call; an adaptive one catches up. Add {} s or more to \
             `lead` of its source to compare it with transports without a handshake",
            time(wait),
            general((wait * 2.0).ceil() / 2.0, 6)
        )
    });
    said.collect()
}

/// Intact packets that the other end rejected. TCP rejects retransmissions it already has.
fn rejections(flows: &Rows) -> Vec<String> {
    let mut totals: IndexMap<String, (f64, f64)> = IndexMap::new();
    for row in 0..flows.len() {
        let of = |column| flows.number(column, row);
        // One end of a measurement alone does not know all of these.
        let known = (|| {
            let refused = of("rejected_packets")? - of("damaged_packets")?;
            Some((refused, of("sent_packets")? + of("control_packets")?))
        })();
        let is_tcp = flows.text("transport", row).is_some_and(|it| it.starts_with("tcp"));
        let Some((refused, sent)) = known.filter(|_| !is_tcp) else { continue };
        let total = totals.entry(name(flows, row)).or_default();
        (total.0, total.1) = (total.0 + refused, total.1 + sent);
    }
    totals.retain(|_, (refused, sent)| *refused > REJECTED * *sent);
    let said = totals.into_iter().map(|(name, (refused, sent))| {
        // What arrives in the window of measurement may have been sent before it.
        let share = match sent > 0.0 {
            true => format!(" ({:.1}\u{a0}% of those sent)", 100.0 * refused / sent),
            false => String::new(),
        };
        format!(
            "{name}: the ends refused {refused} packets that were not damaged{share}; `rejected_packets` counts \
             them, the events of the flow say why"
        )
    });
    said.collect()
}

/// Redundancy that the encoder of a call had no room for.
fn redundancy(flows: &Rows) -> Vec<String> {
    // One of the runs of a setting, and of numbers that differ from run to run.
    let mut kinds: IndexMap<(String, String), String> = IndexMap::new();
    for row in 0..flows.len() {
        let Some(note) = flows.text("redundancy_note", row).filter(|it| !it.is_empty()) else {
            continue;
        };
        let kind = note.chars().filter(|letter| !letter.is_numeric()).collect();
        let name = name(flows, row);
        let said = format!("{name}: {note}");
        kinds.insert((name, kind), said);
    }
    kinds.into_values().collect()
}

fn name(flows: &Rows, row: usize) -> String {
    match flows.text("group", row).filter(|group| !group.is_empty()) {
        Some(group) => format!("{group} (of a group)"),
        None => flows.text("name", row).unwrap_or_default().to_owned(),
    }
}

fn few(mut said: Vec<String>) -> Vec<String> {
    let more = said.len().saturating_sub(MAX_FLOWS);
    if more > 0 {
        said.truncate(MAX_FLOWS);
        said.push(format!("and {more} more flows likewise"));
    }
    said
}
