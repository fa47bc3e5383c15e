//! A decoder that follows the concealment of what it misses. The state of an adaptive decoder (G.722, G.726)
//! is that after the last packet that it got; the next one was encoded after others, and decoded from the wrong
//! state it can click at full scale. Here the concealed sound of the gap is encoded, and the decoder adapts to
//! the codes as to those of packets.

use std::collections::VecDeque;

use talkspurt_proto::time::Duration;

use super::{Decoder, Encoding};
use crate::conceal;

/// Sound from which concealment continues, and the most that is concealed: it has faded long before.
const HISTORY: Duration = Duration::from_millis(60);
const MAX_GAP: Duration = Duration::from_millis(200);

/// An adaptive decoder that follows G.711 Appendix I.
#[derive(Debug)]
pub(super) struct Following {
    decoder: Box<dyn Decoder>,
    rate: u32,
    /// The last sound, and the number of samples that are missing since.
    heard: VecDeque<i16>,
    missing: usize,
    most: usize,
}

impl Following {
    pub(super) fn new(decoder: Box<dyn Decoder>, encoding: &Encoding) -> Self {
        let most = encoding.samples_for(MAX_GAP);
        let heard = vec![0; encoding.samples_for(HISTORY)].into();
        Self { decoder, rate: encoding.codec.spec().sample_rate, heard, missing: 0, most }
    }

    fn remember(&mut self, pcm: &[i16]) {
        let length = self.heard.len();
        self.heard.extend(pcm);
        self.heard.drain(..self.heard.len() - length);
    }

    fn follow(&mut self) {
        let missing = std::mem::take(&mut self.missing).min(self.most);
        let mut pcm: Vec<i16> = self.heard.iter().copied().collect();
        let begins = pcm.len();
        pcm.resize(begins + missing, 0);
        let end = pcm.len();
        conceal::appendix_i(&mut pcm, begins..end, end, self.rate);
        self.decoder.follow(&pcm[..begins], &pcm[begins..]);
        self.remember(&pcm[begins..]);
    }
}

impl Decoder for Following {
    fn decode(&mut self, payload: &[u8]) -> Vec<i16> {
        if self.missing > 0 {
            self.follow();
        }
        let pcm = self.decoder.decode(payload);
        self.remember(&pcm);
        pcm
    }
    fn conceal(&mut self, samples: usize) -> Option<Vec<i16>> {
        self.missing += samples;
        None
    }
}
