//! Joins the sound of a ladder's codecs, which may have different sample rates: all of it is converted to the
//! highest, and the sound of one codec is cross-faded into that of the next.
//!
//! Sound of one codec without a gap is a run, which is converted as a whole when it ends. At a change, the old
//! codec is continued for the length of the fade by its decoder or, where that conceals nothing, by repeating
//! the last pitch period (ITU-T G.711 Appendix I). Codecs of one sample rate whose decoders reproduce the
//! waveform itself (G.711, G.726) follow each other without a fade.

use crate::codec::Encoding;
use crate::conceal;
use crate::recording::resample;

/// Cross-fades last 1/200 s.
const FADES_PER_SECOND: usize = 200;
/// Sound around a run that the filter of the conversion reads: 1/50 s, its chunk.
const MARGINS_PER_SECOND: usize = 50;

/// The received sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Linear PCM at the codec's rate, the highest in a ladder; two channels are interleaved.
    pub pcm: Vec<i16>,
    /// Gaps left to the flow's concealment, before stretching: first sample and length of all channels,
    /// adjacent ones joined.
    pub gaps: Vec<(usize, usize)>,
}

/// Sound of the present codec.
#[derive(Debug)]
struct Run {
    voice: usize,
    /// At the codec's rate.
    pcm: Vec<i16>,
    /// Its length after conversion.
    samples: usize,
}

/// The sound so far, and the run that has not ended.
#[derive(Debug)]
pub(super) struct Mix {
    heard: Heard,
    /// Sample rate of each codec, and whether it reproduces the waveform.
    codecs: Vec<(u32, bool)>,
    rate: u32,
    run: Option<Run>,
    /// The sound of the codec before the run, to be faded out.
    tail: Vec<i16>,
    /// There is nothing to convert or to fade.
    plain: bool,
}

impl Mix {
    pub(super) fn new(encodings: &[Encoding], total_samples: usize) -> Self {
        let properties = |it: &Encoding| (it.codec.spec().sample_rate, !it.codec.conceals());
        let codecs: Vec<_> = encodings.iter().map(properties).collect();
        let rate = codecs.iter().map(|(rate, _)| *rate).max().unwrap_or_default();
        let mut mix = Self {
            heard: Heard { pcm: Vec::with_capacity(total_samples), gaps: Vec::new() },
            codecs,
            rate,
            run: None,
            tail: Vec::new(),
            plain: false,
        };
        mix.plain = (1..mix.codecs.len()).all(|voice| mix.is_seamless(0, voice));
        mix
    }

    fn is_seamless(&self, one: usize, other: usize) -> bool {
        let ((one_rate, one_wave), (other_rate, other_wave)) =
            (self.codecs[one], self.codecs[other]);
        one == other || (one_rate == other_rate && one_wave && other_wave)
    }

    /// Samples so far.
    pub(super) fn len(&self) -> usize {
        self.heard.pcm.len() + self.run.as_ref().map_or(0, |run| run.samples)
    }

    /// Samples of a codec that are `samples` of the result, or more.
    pub(super) fn own(&self, voice: usize, samples: usize) -> usize {
        if self.plain { samples } else { samples.div_ceil(self.factor(voice)) }
    }

    fn factor(&self, voice: usize) -> usize {
        (self.rate / self.codecs[voice].0.max(1)).max(1) as usize
    }

    /// If the sound of this codec follows that of another with a fade: the other, and the samples by which its
    /// decoder may continue it, for [`Mix::end`].
    pub(super) fn change(&self, to: usize) -> Option<(usize, usize)> {
        let run = self.run.as_ref().filter(|run| !self.is_seamless(run.voice, to))?;
        Some((run.voice, self.codecs[run.voice].0 as usize / FADES_PER_SECOND))
    }

    /// Appends sound of a codec at its rate, which is `samples` of the result.
    pub(super) fn play(&mut self, voice: usize, sound: &[i16], samples: usize) {
        if self.plain {
            self.heard.pcm.extend_from_slice(sound);
            return;
        }
        if self.run.as_ref().is_some_and(|run| !self.is_seamless(run.voice, voice)) {
            self.cut();
        }
        let run = self.run.get_or_insert_with(|| Run { voice, pcm: Vec::new(), samples: 0 });
        run.voice = voice;
        run.pcm.extend_from_slice(sound);
        run.samples += samples;
    }

    /// A gap of `samples` of the result.
    pub(super) fn gap(&mut self, samples: usize) {
        self.cut();
        let start = self.heard.pcm.len();
        match self.heard.gaps.last_mut() {
            Some((first, len)) if *first + *len == start => *len += samples,
            _ => self.heard.gaps.push((start, samples)),
        }
        self.heard.pcm.resize(start + samples, 0);
    }

    /// Ends the run, if there is one, without a fade.
    fn cut(&mut self) {
        if let Some(run) = self.run.take() {
            self.convert(&run, 0);
        }
        self.tail.clear();
    }

    /// Ends the run with a fade, continued by its decoder or by its last pitch period.
    pub(super) fn end(&mut self, continued: Option<Vec<i16>>) {
        let Some(mut run) = self.run.take() else { return };
        let (rate, start) = (self.codecs[run.voice].0, run.pcm.len());
        let fade = rate as usize / FADES_PER_SECOND;
        match continued.filter(|sound| sound.len() >= fade) {
            Some(sound) => run.pcm.extend_from_slice(&sound[..fade]),
            None => {
                run.pcm.resize(start + fade, 0);
                conceal::appendix_i(&mut run.pcm, start..start + fade, start + fade, rate);
            }
        }
        self.convert(&run, fade);
    }

    /// Appends a run whose last `fade` samples become the tail.
    fn convert(&mut self, run: &Run, fade: usize) {
        let (rate, factor) = (self.codecs[run.voice].0, self.factor(run.voice));
        let mut sound =
            if factor == 1 { run.pcm.clone() } else { raised(&run.pcm, rate, self.rate) };
        let tail = sound.split_off(run.samples.min(sound.len()));
        let fading = self.tail.len();
        for (k, (new, old)) in sound.iter_mut().zip(&self.tail).enumerate() {
            let part = (k as f64 + 0.5) / fading as f64;
            let mixed = f64::from(*old) * (1.0 - part) + f64::from(*new) * part;
            *new = mixed.round() as i16;
        }
        self.heard.pcm.append(&mut sound);
        self.tail = tail;
        self.tail.truncate(fade * factor);
    }

    /// The whole sound.
    pub(super) fn finish(mut self) -> Heard {
        self.cut();
        self.heard
    }
}

/// Sound at a higher sample rate. At both ends the filter reads the sound mirrored at its end.
fn raised(pcm: &[i16], from: u32, to: u32) -> Vec<i16> {
    let (Some(&first), Some(&last)) = (pcm.first(), pcm.last()) else { return Vec::new() };
    let margin = from as usize / MARGINS_PER_SECOND;
    let mirrored = |end: i16, at: i16| 2.0 * f64::from(end) - f64::from(at);
    let back = |k: usize| mirrored(first, pcm[k.min(pcm.len() - 1)]);
    let forth = |k: usize| mirrored(last, pcm[pcm.len() - 1 - k.min(pcm.len() - 1)]);
    let sound = (1..=margin).rev().map(back).chain(pcm.iter().map(|&x| f64::from(x)));
    let padded: Vec<f64> = sound.chain((1..=margin).map(forth)).collect();
    let factor = (to / from) as usize;
    let raised = resample(padded, from, to);
    let own = raised.into_iter().skip(margin * factor).take(pcm.len() * factor);
    own.map(|x| x.round() as i16).collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the results are compared with tolerances")]
mod tests {
    use talkspurt_proto::time::Duration;

    use super::*;
    use crate::codec::Codec;

    /// A tone of 400 Hz at this rate.
    fn tone(rate: usize, range: std::ops::Range<usize>) -> Vec<i16> {
        let at = |k: usize| (std::f64::consts::TAU * 400.0 * k as f64 / rate as f64).sin();
        range.map(|k| (at(k) * 8000.0) as i16).collect()
    }

    #[test]
    fn a_tone_continues_through_changes_of_codec_and_rate() {
        let packet = Duration::from_millis(20);
        let ladder = [Codec::Opus, Codec::Pcmu, Codec::G729, Codec::G722];
        let encodings = ladder.map(|codec| Encoding::new(codec, packet));
        let mut mix = Mix::new(&encodings, 0);
        // One second each, in packets of 20 ms.
        for (voice, encoding) in encodings.iter().enumerate().cycle().take(2 * ladder.len()) {
            let (rate, second) = (encoding.codec.spec().sample_rate as usize, mix.len() / 48_000);
            for packet in 0..50 {
                let start = second * rate + packet * rate / 50;
                if mix.change(voice).is_some() {
                    mix.end(None);
                }
                mix.play(voice, &tone(rate, start..start + rate / 50), 960);
            }
        }
        let heard = mix.finish();
        assert_eq!((heard.pcm.len(), heard.gaps.len()), (8 * 48_000, 0));
        // The tone itself at 48 kHz, within 40 dB: no step, no gap, no shift.
        let ideal = tone(48_000, 0..heard.pcm.len());
        let error = heard.pcm.iter().zip(&ideal).map(|(a, b)| (a - b).unsigned_abs()).max();
        assert!(error < Some(80), "{error:?}");
    }

    #[test]
    fn the_fade_takes_5_ms() {
        let packet = Duration::from_millis(20);
        let encodings = [Codec::Pcmu, Codec::G729].map(|codec| Encoding::new(codec, packet));
        let mut mix = Mix::new(&encodings, 0);
        mix.play(0, &[6000; 160], 160);
        assert_eq!(mix.change(1), Some((0, 40)));
        mix.end(Some(vec![6000; 40]));
        mix.play(1, &[-6000; 160], 160);
        let heard = mix.finish().pcm;
        assert_eq!((heard[159], heard[200], heard.len()), (6000, -6000, 320));
        assert!(heard[159..=200].is_sorted_by(|a, b| a > b), "{:?}", &heard[155..205]);
    }

    #[test]
    fn codecs_of_one_waveform_and_rate_are_not_changed() {
        let packet = Duration::from_millis(20);
        let encodings = [Codec::Pcmu, Codec::G726At40].map(|codec| Encoding::new(codec, packet));
        let mut mix = Mix::new(&encodings, 0);
        mix.play(0, &[6000; 160], 160);
        assert_eq!(mix.change(1), None);
        mix.play(1, &[-6000; 160], 160);
        assert_eq!(mix.finish().pcm, [[6000; 160], [-6000; 160]].concat());
    }
}
