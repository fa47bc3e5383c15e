//! Packets that arrive in fragments: what their receivers get is counted when all have arrived.

use std::collections::VecDeque;

use talkspurt_proto::time::{Duration, Instant};

use crate::flows::Cut;
use crate::packet::{PacketInfo, Segment, segment};

/// Packets of which fragments are kept; of a longer series, the oldest are forgotten.
const MAX_PACKETS: usize = 64;
/// How long fragments wait for the others: Linux's `ipfrag_time`.
const WAIT: Duration = Duration::from_secs(30);

/// The packets of which some fragments have arrived.
#[derive(Debug, Default)]
pub(crate) struct Fragments(VecDeque<(Cut, Part)>);

/// What has arrived of a packet.
#[derive(Clone, Copy, Debug)]
struct Part {
    since: Instant,
    /// Bytes of its data, and how many it has, once the last fragment has told.
    bytes: u32,
    all: Option<u32>,
    payload: u32,
    segment: Option<Segment>,
}

impl Fragments {
    /// A fragment arrived, which is no copy. If its packet is complete now: the payload, and what it is as a
    /// TCP segment.
    pub(crate) fn add(
        &mut self,
        now: Instant,
        seen: &PacketInfo,
    ) -> Option<(u32, Option<Segment>)> {
        let fragment = seen.fragment?;
        let cut = (seen.src, seen.dst, seen.real.protocol, fragment.of);
        let known = self
            .0
            .iter()
            .position(|(known, part)| *known == cut && now.saturating_since(part.since) < WAIT);
        let mut part = match known {
            Some(at) => self.0.remove(at)?.1,
            None => Part { since: now, bytes: 0, all: None, payload: 0, segment: None },
        };
        part.bytes = part.bytes.saturating_add(fragment.length);
        part.payload = part.payload.saturating_add(seen.real.layers.payload);
        if !fragment.has_more {
            part.all = Some(fragment.offset + fragment.length);
        }
        if seen.has_headers {
            // Its numbers are those of the whole packet, less the payload that is in the other fragments.
            part.segment = segment(&seen.real).map(|segment| Segment {
                numbers: segment.numbers - seen.real.layers.payload,
                ..segment
            });
        }
        if part.all.is_some_and(|all| part.bytes >= all) {
            let add =
                |segment: Segment| Segment { numbers: segment.numbers + part.payload, ..segment };
            return Some((part.payload, part.segment.map(add)));
        }
        self.0.truncate(MAX_PACKETS - 1);
        self.0.push_front((cut, part));
        None
    }
}
