//! Speech from a sound device, which comes while it is sent.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Packets that may wait. The device's clock is not ours: if it is faster, samples pile up and the oldest are
/// left out; if it is slower, there is silence now and then.
const MAX_WAITING: usize = 5;

/// Samples of a sound device.
#[derive(Debug, Default)]
pub struct Microphone(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<i16>,
    said: Vec<i16>,
}

impl Microphone {
    /// Samples have come, at the sample rate and in the channels of its recording.
    pub fn push(&self, samples: &[i16]) {
        self.state().waiting.extend(samples);
    }

    /// What was said so far: all samples that were taken, in order.
    #[must_use]
    pub fn said(&self) -> Vec<i16> {
        self.state().said.clone()
    }

    /// The next packet of so many samples; silence in place of those that have not come.
    pub(crate) fn take(&self, samples: usize) -> Vec<i16> {
        let mut state = self.state();
        if state.waiting.len() > MAX_WAITING * samples {
            let extra = state.waiting.len() - 2 * samples;
            state.waiting.drain(..extra);
        }
        let there = samples.min(state.waiting.len());
        let mut packet: Vec<_> = state.waiting.drain(..there).collect();
        packet.resize(samples, 0);
        state.said.extend(&packet);
        packet
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_pass_in_order_and_gaps_are_silent() {
        let microphone = Microphone::default();
        microphone.push(&[1, 2, 3]);
        assert_eq!(microphone.take(2), [1, 2]);
        assert_eq!(microphone.take(2), [3, 0]);
        microphone.push(&(0..100).collect::<Vec<_>>());
        assert_eq!(microphone.take(4), [92, 93, 94, 95], "the oldest are left out");
        assert_eq!(microphone.said(), [1, 2, 3, 0, 92, 93, 94, 95]);
    }
}
