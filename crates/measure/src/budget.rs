//! How much the other end may send after a measurement or a call. It follows from the plan, so that a hostile
//! end neither fills the memory nor holds this one up; an honest one needs a fraction.

use talkspurt_proto::time::Duration;

use crate::notes::Log;
use crate::plan::Plan;

/// Notes of a packet at one end: honest ends take about ten, of what is sent again and of
/// acknowledgements, too.
const ROWS: u64 = 20;
/// Packets a second of every flow besides those with its payload: handshakes, feedback, reports, probes.
const OTHERS: u64 = 50;
/// How many times our notes the other end's may be where the plan does not say how much is sent: bulk, of which
/// most may be lost on the way to us.
const TIMES: u64 = 8;
/// Bytes of notes in any case: as many notes take about as much memory.
const BYTES: usize = 1_000_000_000;
/// Time for the notes besides the length of the measurement: a path that carried the traffic carries them.
const MARGIN: Duration = Duration::from_secs(30);
/// The same after a user has asked for the end.
pub(crate) const LEAVE: Duration = Duration::from_secs(10);
/// Longest text of the other end for a user, in characters: what is wrong with sixteen flows.
const WORDS: usize = 4000;

/// What the other end may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Packets of the measurement that either end may speak of.
    pub(crate) packets: usize,
    /// Notes.
    pub(crate) rows: usize,
    /// Bytes of notes.
    pub(crate) bytes: usize,
    /// Time for all notes together.
    pub(crate) time: Duration,
}

impl Budget {
    /// For the notes of the other end of a plan, of which this end has so many.
    pub(crate) fn of(plan: &Plan, own_rows: usize) -> Self {
        let seconds = plan.end().as_nanos().div_ceil(1_000_000_000);
        let flows = plan.flows.len() as u64;
        let known = (plan.packets_per_second() + OTHERS * flows).saturating_mul(seconds);
        let bulk = if plan.has_bulk() { TIMES * own_rows as u64 } else { 0 };
        let packets = known.saturating_add(bulk);
        let rows = known.saturating_mul(ROWS).saturating_add(bulk);
        let [packets, rows] = [packets, rows].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let rows = rows.min(BYTES / Log::LONGEST);
        let bytes = rows * Log::LONGEST;
        Self { packets, rows, bytes, time: Duration::from_nanos(plan.duration) + MARGIN }
    }
}

/// What the other end says, as much of it as a user reads.
pub(crate) fn shortened(words: &str) -> String {
    words.chars().take(WORDS).collect()
}
