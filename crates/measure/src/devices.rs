//! The sound devices of a call: what a microphone gives, and what a loudspeaker plays.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use talkspurt_app::codec::Encoding;
use talkspurt_app::playout::Live;
use talkspurt_app::recording::Microphone;

use crate::lock::lock;

/// The sound devices of one end of a call, which work at the sample rate of the codecs.
#[derive(Debug)]
pub struct Devices {
    pub(super) encodings: Vec<Encoding>,
    pub(super) microphone: Option<Arc<Microphone>>,
    pub(super) heard: Option<Mutex<VecDeque<i16>>>,
}

impl Devices {
    /// Samples per second and channel, and channels.
    #[must_use]
    pub fn format(&self) -> (u32, usize) {
        (self.encodings[0].codec.spec().sample_rate, self.encodings[0].channels())
    }

    /// Samples of the microphone have come.
    pub fn say(&self, samples: &[i16]) {
        if let Some(microphone) = &self.microphone {
            microphone.push(samples);
        }
    }

    /// What the loudspeaker is to play after what was returned before.
    #[must_use]
    pub fn hear(&self) -> Vec<i16> {
        self.heard.as_ref().map_or_else(Vec::new, |heard| lock(heard).drain(..).collect())
    }

    /// The player of what arrives, if there is a loudspeaker.
    pub(crate) fn player(&self) -> Option<Live> {
        self.heard.as_ref().map(|_| Live::new(&self.encodings))
    }

    pub(crate) fn play(&self, samples: Vec<i16>) {
        if let Some(heard) = &self.heard {
            let (mut heard, (rate, channels)) = (lock(heard), self.format());
            heard.extend(samples);
            // A loudspeaker that plays nothing takes no memory.
            let extra = heard.len().saturating_sub(rate as usize * channels);
            heard.drain(..extra);
        }
    }
}
