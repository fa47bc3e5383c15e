//! What the send path tells a probe about its frames.

use talkspurt_proto::probe::{Note, Probe, Stamped, Topic, Units};
use talkspurt_proto::rtp::vp8::{Begins, begins};
use talkspurt_proto::time::Instant;

use super::outgoing::REPAIR;
use crate::clock::Clock;
use crate::source::Unit;

pub(super) fn discarded<P: Probe>(local: Instant, index: u32, probe: &mut Stamped<'_, P>) {
    if index != REPAIR {
        probe.record(local, probe.place(), &Note::Discarded { index });
    }
}

#[inline]
pub(super) fn handed_over<P: Probe>(local: Instant, index: u32, probe: &mut Stamped<'_, P>) {
    if probe.wants(Topic::Frame) {
        probe.record(local, probe.place(), &Note::HandedOver { index });
    }
}

/// Records that a picture begins.
pub(super) fn picture<P: Probe>(local: Instant, unit: &Unit, probe: &mut Stamped<'_, P>) {
    let is_key = match begins(&unit.payload) {
        Some(Begins::Key) => true,
        Some(Begins::Inter) => false,
        Some(Begins::Nothing) | None => return,
    };
    if probe.wants(Topic::Frame) {
        probe.record(local, probe.place(), &Note::Picture { is_key });
    }
}

#[inline]
pub(super) fn generated<P: Probe>(
    local: Instant,
    clock: &Clock,
    unit: &Unit,
    probe: &mut Stamped<'_, P>,
) {
    if probe.wants(Topic::Frame) {
        let captured = clock.truth(unit.captured);
        let bytes = unit.payload.len() as u32;
        probe.record(local, probe.place(), &Note::Generated { index: unit.index, bytes, captured });
    }
}

/// Notes units of bulk data. Not inlined: the loop in it would take the registers of the code around it. Its
/// arguments are in registers too.
#[inline(never)]
pub(super) fn units<P: Probe>(
    local: Instant,
    captured: Instant,
    (first, end): (u32, u32),
    bytes: u32,
    probe: &mut Stamped<'_, P>,
) {
    probe.record_units(local, probe.place(), Units { first, end, bytes, captured });
}
