//! Plays a stream that was captured elsewhere, as a peer plays one that it receives.

use talkspurt_proto::packet::Payload;
use talkspurt_proto::probe::{Probe, Stamped};
use talkspurt_proto::time::Instant;

use super::incoming::{Media, MediaSink};
use crate::clock::Clock;
use crate::playout;

/// A packet of a captured stream.
#[derive(Clone, Debug)]
pub struct Captured {
    /// Its number among all packets of the stream, from 0. Two successive arrivals are less than 32 768 apart.
    pub index: u32,
    /// Its RTP timestamp, relative to the first packet's.
    pub ticks: u32,
    /// Index of its encoding; `None` for comfort noise.
    pub encoding: Option<usize>,
    /// The marker of RTP.
    pub marker: bool,
    /// Encoded media; virtual if it was not captured.
    pub payload: Payload,
}

/// The receiving side of a stream without a transport: jitter buffer, redundancy and playout.
#[derive(Debug)]
pub struct Listener {
    media: Box<Media>,
    clock: Clock,
    number: u32,
}

impl Listener {
    /// A listener that reports as the peer of this number.
    #[must_use]
    pub fn new(sink: MediaSink, number: u32) -> Self {
        Self { media: Box::new(Media::new(sink, 0, "")), clock: Clock::default(), number }
    }

    /// Takes the packet that arrived at `now`; arrivals come in the order of time.
    ///
    /// # Panics
    /// If it refers to an encoding that the sink does not have.
    pub fn on_packet<P: Probe>(&mut self, now: Instant, packet: Captured, probe: &mut P) {
        let probe = &mut Stamped { probe, now, peer: self.number };
        self.media.on_captured(now, &self.clock, packet, probe);
    }

    /// Decides on all media that waits for its playout: the stream is over.
    pub fn finish<P: Probe>(&mut self, now: Instant, probe: &mut P) {
        let probe = &mut Stamped { probe, now, peer: self.number };
        self.media.finish(now, &self.clock, probe);
    }

    /// What was kept for rendering, by step of the media clock.
    #[must_use]
    pub fn played(&self) -> &[Option<playout::Received>] {
        self.media.played()
    }

    /// How it was played; `None` if every frame was played at its place in the stream.
    #[must_use]
    pub fn timeline(&self) -> Option<&[playout::Stretch]> {
        self.media.timeline()
    }
}
