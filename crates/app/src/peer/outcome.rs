//! What was played of a stream of speech, and what is kept of it for rendering.

use std::collections::BTreeMap;

use talkspurt_proto::packet::Payload;
use talkspurt_proto::probe::{Note, Playout, Probe, Stamped, Topic};
use talkspurt_proto::rtp;
use talkspurt_proto::time::{Duration, Instant};

use crate::clock::Clock;
use crate::codec::{Decoder, Redundancy};
use crate::{flexfec, playout};

/// What has been played.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Outcome {
    /// Index of the previous packet's encoding, and frames played in it that are not yet in `heard`.
    pub(super) present: u32,
    /// Length of its packets in steps, kept beside it: that of every encoding is on two other cache lines.
    pub(super) steps: u32,
    /// Its packets: payload type and length.
    pub(super) format: (u8, u32),
    pub(super) heard_now: u64,
    pub(super) kept: Box<Kept>,
}

/// What is rarely needed of it.
#[derive(Debug)]
pub(super) struct Kept {
    /// Number of steps of the media clock to keep.
    pub(super) most: usize,
    /// Copies per packet without content.
    pub(super) copies: u16,
    /// By encoding: what tells the redundancy of a packet, where there may be any.
    pub(super) inspectors: Vec<Option<Box<dyn Decoder>>>,
    pub(super) played: Vec<Option<playout::Received>>,
    /// Frames played by encoding, excluding `heard_now`.
    pub(super) heard: Vec<u64>,
    pub(super) repair: Option<flexfec::Receiver>,
    /// Restored packets by the step at which they begin, and whether they were played.
    pub(super) restored: BTreeMap<u32, (playout::Received, bool)>,
}

impl Outcome {
    /// Counts and reports a decision of the jitter buffer.
    #[inline]
    pub(super) fn decided<P: Probe>(
        &mut self,
        local: Instant,
        concealment: Duration,
        clock: &Clock,
        decision: playout::Decision,
        probe: &mut Stamped<'_, P>,
    ) {
        let playout::Decision { frame, paused, from, playout } = decision;
        if probe.wants(Topic::Frame) {
            if !paused.is_zero() {
                let note = Note::Paused { index: frame.index, length: paused };
                probe.record(local, probe.place(), &note);
            }
            let playout = match playout {
                Playout::Played(at) => Playout::Played(clock.truth(at + concealment)),
                Playout::Recovered(at) => Playout::Recovered(clock.truth(at + concealment)),
                Playout::Late(at) => Playout::Late(clock.truth(at)),
                Playout::Duplicate => Playout::Duplicate,
            };
            probe.record(local, probe.place(), &Note::Decided { index: frame.index, playout });
        }
        match (playout, frame.encoding) {
            (Playout::Played(_), Some(encoding)) => {
                let counted = u32::from(encoding) == self.present;
                let kept = &mut self.kept;
                *if counted {
                    &mut self.heard_now
                } else {
                    &mut kept.heard[usize::from(encoding)]
                } += 1;
            }
            (Playout::Played(_), None) => {}
            _ => self.kept.missed(frame, from, playout),
        }
    }

    /// What a packet contains of the sound before it.
    #[inline(never)]
    pub(super) fn redundancy(&mut self, packet: &rtp::Packet, encoding: Option<u8>) -> Redundancy {
        let Some(encoding) = encoding else { return Redundancy::default() };
        match (&packet.payload, &mut self.kept.inspectors[usize::from(encoding)]) {
            (Payload::Real(bytes), Some(decoder)) => decoder.redundancy_in(bytes),
            (Payload::Virtual { .. }, _) => {
                Redundancy { packets: self.kept.copies.into(), ..Redundancy::default() }
            }
            _ => Redundancy::default(),
        }
    }

    /// The packets that can be restored with this one.
    pub(super) fn restore(&mut self, packet: &rtp::Packet) -> Vec<rtp::Packet> {
        self.kept.repair.as_mut().map_or_else(Vec::new, |repair| repair.on_source(packet))
    }

    /// Keeps a restored packet for rendering; returns the number of packets before it whose sound it contains.
    pub(super) fn restored(
        &mut self,
        packet: &rtp::Packet,
        (slot, index): (u32, u32),
        encoding: Option<u8>,
    ) -> u16 {
        let Kept { most, copies, restored, .. } = &mut *self.kept;
        // Without content, it is made of the bytes that virtual ones stand for.
        if *most == 0 {
            return *copies;
        }
        if let Payload::Real(payload) = &packet.payload
            && (slot as usize) < *most
        {
            let (payload, marker) = (payload.clone(), packet.marker);
            let encoding = encoding.map(usize::from);
            let received = playout::Received { payload, encoding, index, marker, ahead: 0 };
            restored.insert(slot, (received, false));
        }
        self.redundancy(packet, encoding).packets as u16
    }

    /// Keeps a packet for rendering.
    #[inline(never)]
    pub(super) fn keep(&mut self, place: usize, received: playout::Received) {
        let Kept { most, played, .. } = &mut *self.kept;
        if place >= *most {
            return;
        }
        if played.len() <= place {
            played.resize(place + 1, None);
        }
        played[place] = Some(received);
    }
}

impl Kept {
    /// A frame did not arrive in time, or twice.
    #[cold]
    fn missed(&mut self, frame: playout::Frame, from: u32, playout: Playout) {
        let slot = frame.slot as usize;
        match (playout, frame.encoding) {
            (Playout::Recovered(_), encoding) => {
                if let Some(encoding) = encoding {
                    self.heard[usize::from(encoding)] += 1;
                }
                // Its sound is in the packet that was kept or restored there.
                let packet = match self.restored.get_mut(&from) {
                    Some((packet, was_played)) => {
                        *was_played |= from == frame.slot;
                        &*packet
                    }
                    None => match self.played.get(from as usize) {
                        Some(Some(packet)) => packet,
                        _ => return,
                    },
                };
                let playout::Received { encoding, marker, .. } = *packet;
                let payload = packet.payload.clone();
                let (index, ahead) = (frame.index, from - frame.slot);
                if slot < self.most {
                    self.played.resize(self.played.len().max(slot + 1), None);
                    let marker = ahead == 0 && marker;
                    self.played[slot] =
                        Some(playout::Received { payload, encoding, index, marker, ahead });
                }
            }
            (Playout::Late(_), _) => {
                // Without what it was recovered from.
                if self.restored.get(&frame.slot).is_some_and(|(_, was_played)| *was_played) {
                    return;
                }
                let place = self.played.get_mut(slot);
                if let Some(own) = place.filter(|it| it.as_ref().is_some_and(|it| it.ahead == 0)) {
                    *own = None;
                }
            }
            _ => {}
        }
    }
}
