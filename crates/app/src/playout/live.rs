//! Plays a stream while it comes, for a sound device. What is kept of a call is rendered afterwards by
//! [`render`](super::render()), which knows what follows a gap; here, the decoders and G.711 Appendix I
//! continue what came before, and a change of pace is a cross-fade within a step.

use std::collections::VecDeque;

use talkspurt_proto::time::Duration;

use super::{Received, Stretch};
use crate::codec::{self, Concealment, Decoder, Encoding};
use crate::conceal;

/// Sound kept for concealment.
const HISTORY: Duration = Duration::from_millis(100);

/// Decodes what an adaptive buffer has decided to play, in order.
#[derive(Debug)]
pub struct Live {
    decoders: Vec<Option<Box<dyn Decoder>>>,
    /// Steps per packet of each encoding.
    lengths: Vec<usize>,
    present: usize,
    rate: u32,
    channels: usize,
    /// Samples per step, all channels.
    samples: usize,
    /// The stretch that is played, and the steps of it that were.
    at: (usize, u32),
    /// Decoded sound of the steps to come.
    decoded: VecDeque<i16>,
    history: Vec<i16>,
}

impl Live {
    /// A player for encodings of one sample rate; at least one.
    ///
    /// # Panics
    /// Without `encodings`.
    #[must_use]
    pub fn new(encodings: &[Encoding]) -> Self {
        let (step, best) = (codec::step(encodings), &encodings[0]);
        let steps = |it: &Encoding| (it.packet.as_nanos() / step.as_nanos()).max(1) as usize;
        Self {
            decoders: encodings.iter().map(|it| it.receiver(Concealment::default())).collect(),
            lengths: encodings.iter().map(steps).collect(),
            present: 0,
            rate: best.codec.spec().sample_rate,
            channels: best.channels(),
            samples: best.samples_for(step).max(1),
            at: (0, 0),
            decoded: VecDeque::new(),
            history: Vec::new(),
        }
    }

    /// The sound of what was decided since the last call; both arguments only grow.
    pub fn play(&mut self, played: &[Option<Received>], timeline: &[Stretch]) -> Vec<i16> {
        let mut out = Vec::new();
        while let Some(stretch) = timeline.get(self.at.0) {
            match *stretch {
                Stretch::Media { from, steps, out: nanos } => {
                    while self.at.1 < steps {
                        let slot = (from + self.at.1) as usize;
                        let sound = self.sound(played.get(slot).and_then(Option::as_ref));
                        let wanted = self.samples_in(nanos / u64::from(steps.max(1)));
                        out.extend(paced(&sound, wanted, self.channels));
                        self.at.1 += 1;
                    }
                }
                Stretch::Expansion(nanos) if self.at.1 == 0 => {
                    let mut left = self.samples_in(nanos);
                    while left > 0 {
                        let part = left.min(self.samples);
                        out.extend(self.concealed(part));
                        left -= part;
                    }
                    self.at.1 = 1;
                }
                Stretch::Silence(nanos) if self.at.1 == 0 => {
                    out.resize(out.len() + self.samples_in(nanos), 0);
                    self.at.1 = 1;
                }
                _ => {}
            }
            // The last stretch may become longer.
            if self.at.0 + 1 == timeline.len() {
                break;
            }
            self.at = (self.at.0 + 1, 0);
        }
        out
    }

    fn samples_in(&self, nanos: u64) -> usize {
        let per_channel = u128::from(nanos) * u128::from(self.rate) / 1_000_000_000;
        per_channel as usize * self.channels
    }

    /// The sound of the next step.
    fn sound(&mut self, received: Option<&Received>) -> Vec<i16> {
        if let Some(Received { payload, encoding: Some(encoding), ahead: 0, .. }) = received {
            self.present = *encoding;
            if let Some(decoder) = &mut self.decoders[*encoding] {
                let mut pcm = decoder.decode(payload);
                // A damaged packet may have any length.
                pcm.resize(self.lengths[*encoding] * self.samples, 0);
                self.decoded = pcm.into();
            }
        }
        if self.decoded.is_empty() {
            return self.concealed(self.samples);
        }
        let there = self.samples.min(self.decoded.len());
        let sound: Vec<_> = self.decoded.drain(..there).collect();
        self.remember(&sound);
        sound
    }

    fn concealed(&mut self, samples: usize) -> Vec<i16> {
        let decoder = self.decoders[self.present].as_deref_mut();
        let sound = decoder.and_then(|decoder| decoder.conceal(samples)).unwrap_or_else(|| {
            let start = self.history.len();
            let mut pcm = self.history.clone();
            pcm.resize(start + samples, 0);
            conceal::appendix_i(&mut pcm, start..start + samples, start + samples, self.rate);
            pcm.split_off(start)
        });
        self.remember(&sound);
        sound
    }

    fn remember(&mut self, sound: &[i16]) {
        self.history.extend(sound);
        let most = self.samples_in(HISTORY.as_nanos());
        let extra = self.history.len().saturating_sub(most);
        self.history.drain(..extra);
    }
}

/// A step in another length: its beginning fades into its end.
fn paced(sound: &[i16], wanted: usize, channels: usize) -> Vec<i16> {
    let len = sound.len();
    if wanted == len || wanted == 0 || len == 0 {
        return sound[..len.min(wanted)].to_vec();
    }
    let head = |at: usize| sound[at.min(len - channels + at % channels)];
    let tail = |at: usize| match (at + len).checked_sub(wanted) {
        Some(place) => sound[place],
        None => sound[at % channels],
    };
    let sample = |at: usize| {
        let part = at as f64 / wanted as f64;
        (f64::from(head(at)) * (1.0 - part) + f64::from(tail(at)) * part).round() as i16
    };
    (0..wanted).map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;

    #[test]
    fn gaps_are_concealed_and_paces_kept() {
        let encodings = [Encoding::new(Codec::Pcmu, Duration::from_millis(20))];
        let mut encoder = encodings[0].encoder().expect("it has sound");
        let wave: Vec<_> = (0..1600).map(|at| (at * 700 % 16_000 - 8000) as i16).collect();
        let packet = |slot: usize| {
            let payload = encoder.encode(&wave[slot * 160..][..160], None);
            Some(Received { payload, encoding: Some(0), index: 0, marker: false, ahead: 0 })
        };
        let mut played: Vec<_> = (0..10).map(packet).collect();
        played[7] = None;
        let ms = 1_000_000;
        let timeline = [
            Stretch::Silence(5 * ms),
            Stretch::Media { from: 0, steps: 8, out: 8 * 20 * ms },
            Stretch::Expansion(30 * ms),
            Stretch::Media { from: 8, steps: 1, out: 16 * ms },
            Stretch::Media { from: 9, steps: 1, out: 25 * ms },
        ];
        let mut live = Live::new(&encodings);
        let out = live.play(&played, &timeline);
        assert_eq!(out.len(), 8 * (5 + 160 + 30 + 16 + 25));
        let loud = |ms: std::ops::Range<usize>| {
            out[8 * ms.start..8 * ms.end].iter().map(|it| it.abs()).max() > Some(4000)
        };
        assert!(!loud(0..5) && loud(5..145) && loud(145..165) && loud(195..236));
    }
}
