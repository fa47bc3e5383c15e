//! A fixed jitter buffer. A frame is played a constant time after its place in the recording, whatever its
//! length; the constant is set once, from the first arrival or from the sender's clock. It never adapts, so
//! every late frame can be attributed to the network. All arithmetic is integer: frame states are part of the
//! run's digest.

use talkspurt_proto::probe::Playout;
use talkspurt_proto::time::{Duration, Instant};

use super::Anchor;

/// A fixed jitter buffer for one stream of frames.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Fixed {
    buffer: Duration,
    anchor: Anchor,
    step: Duration,
    /// When sample 0 of the stream would be played; may be before the clock's origin.
    origin: Option<i64>,
    longest: Duration,
}

impl Fixed {
    /// A buffer for frames that begin at multiples of `step` and last up to `longest`; both are equal if all
    /// frames have one length.
    pub(super) fn new(buffer: Duration, anchor: Anchor, step: Duration, longest: Duration) -> Self {
        Self { buffer, anchor, step, origin: None, longest }
    }

    /// Decides on the frame that begins `index` steps after the start of the stream and arrived at `arrival` by
    /// the receiver's clock. `captured` is the instant of its first sample on the same clock, used only with
    /// [`Anchor::Capture`]. The result's instants are on the receiver's clock; a frame that arrives exactly
    /// when due is played.
    #[inline]
    pub(super) fn on_frame(&mut self, index: u32, captured: Instant, arrival: Instant) -> Playout {
        let due = match self.anchor {
            Anchor::Capture => captured + self.longest + self.buffer,
            Anchor::FirstArrival => self.due_after_first(index, arrival),
        };
        if arrival <= due { Playout::Played(due) } else { Playout::Late(due) }
    }

    fn due_after_first(&mut self, index: u32, arrival: Instant) -> Instant {
        // 290 years in either direction.
        let position = i64::from(index).saturating_mul(self.step.as_nanos() as i64);
        let origin = *self.origin.get_or_insert_with(|| {
            ((arrival + self.buffer).as_nanos() as i64).saturating_sub(position)
        });
        Instant::from_nanos(origin.saturating_add(position).max(0) as u64)
    }
}
