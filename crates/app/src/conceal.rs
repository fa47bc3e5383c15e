//! Packet-loss concealment of ITU-T G.711 Appendix I: a gap is filled with repetitions of the last pitch
//! period, fading to silence after 60 ms. The Appendix is for 8 kHz; for a multiple of this rate, all numbers
//! of samples are the same multiple.
//!
//! The Appendix delays its output by 3.75 ms so that the sound just before an erasure can still be blended into
//! its replacement. Here a whole call is rendered at once, so nothing is delayed: the same samples, at most 30,
//! are rewritten in place. Received samples therefore differ from the decoder's only within a quarter of a
//! pitch period before an erasure (at most 30 samples, 3.75 ms) and within the overlap after it (at most 80
//! samples, 10 ms).

use std::ops::Range;

/// 10 ms at 8 kHz, the Appendix's frame and the step of all processing.
const FRAME: usize = 80;
/// Pitch periods searched, in samples: 200 Hz down to 66 Hz.
const PITCH: std::ops::RangeInclusive<usize> = 40..=120;
/// The last 20 ms are matched against earlier samples.
const TEMPLATE: usize = 160;
/// Three of the longest pitch periods and the quarter period blended into them.
const HISTORY: usize = 3 * *PITCH.end() + *PITCH.end() / 4;
/// Lower bound of energies used as divisors: below it any pitch period is acceptable.
const QUIET: f64 = 250.0;

/// Fills `gap` of `pcm`, at a `rate` that is a multiple of 8 kHz, in place. `until` is the end of the received
/// samples after it; the overlap at the erasure's end stays before it.
pub fn appendix_i(pcm: &mut [i16], gap: Range<usize>, until: usize, rate: u32) {
    let unit = (rate / 8000).max(1) as usize;
    let mut synthesis = Synthesis::after(&pcm[..gap.start], unit);
    // Appendix I: the tail is blended into the period that follows it.
    for back in 1..=synthesis.quarter.min(gap.start) {
        pcm[gap.start - back] = quantise(synthesis.tail(back));
    }
    for sample in &mut pcm[gap.clone()] {
        *sample = quantise(synthesis.next());
    }
    let overlap = synthesis.overlap(gap.len());
    let level = gain(gap.len(), unit);
    for (k, sample) in pcm[gap.end..until].iter_mut().take(overlap).enumerate() {
        let received = f64::from(*sample);
        *sample = quantise(blend(level * synthesis.wave(), received, k, overlap));
    }
}

/// The waveform that replaces lost samples.
struct Synthesis {
    /// The sample rate in units of 8 kHz.
    unit: usize,
    history: Vec<f64>,
    /// Samples in a pitch period.
    pitch: usize,
    /// A quarter of it: the length of a blend.
    quarter: usize,
    /// Samples since the erasure began.
    age: usize,
    /// The cycle being repeated.
    cycle: Cycle,
    /// The shorter cycle it replaces.
    before: Cycle,
    /// Progress of that blend, up to a quarter period.
    blended: usize,
}

/// The last `periods` pitch periods, repeated.
#[derive(Clone, Copy)]
struct Cycle {
    periods: usize,
    position: usize,
}

impl Synthesis {
    fn after(heard: &[i16], unit: usize) -> Self {
        let mut history = vec![0.0; HISTORY * unit];
        for (slot, &x) in history.iter_mut().rev().zip(heard.iter().rev()) {
            *slot = f64::from(x);
        }
        let pitch = pitch_of(&history, unit);
        let cycle = Cycle { periods: 1, position: 0 };
        let quarter = pitch / 4;
        Self { unit, history, pitch, quarter, age: 0, cycle, before: cycle, blended: quarter }
    }

    /// The sample at `position` of a cycle. Its last quarter period is blended into the samples before its
    /// start, so that the repetition is seamless.
    fn at(&self, cycle: Cycle) -> f64 {
        let length = cycle.periods * self.pitch;
        let index = self.history.len() - length + cycle.position;
        match (cycle.position + self.quarter).checked_sub(length) {
            Some(k) => blend(self.history[index], self.history[index - length], k, self.quarter),
            None => self.history[index],
        }
    }

    /// The replacement of the sample `back` before the erasure.
    fn tail(&self, back: usize) -> f64 {
        self.at(Cycle { periods: 1, position: self.pitch - back })
    }

    /// The next sample of the erasure.
    fn next(&mut self) -> f64 {
        // Appendix I: at 10 and 20 ms another pitch period joins the cycle, which would otherwise sound like a
        // tone; continuing in its first period keeps the phase.
        let frame = FRAME * self.unit;
        if self.age == frame || self.age == 2 * frame {
            self.before = self.cycle;
            self.blended = 0;
            self.cycle.periods += 1;
            let whole_periods = self.cycle.position.saturating_sub(1) / self.pitch;
            self.cycle.position -= whole_periods * self.pitch;
        }
        let sample = gain(self.age, self.unit) * self.wave();
        self.age += 1;
        sample
    }

    /// The next sample of the cycle at full level.
    fn wave(&mut self) -> f64 {
        let mut sample = self.at(self.cycle);
        if self.blended < self.quarter {
            sample = blend(self.at(self.before), sample, self.blended, self.quarter);
            self.blended += 1;
        }
        for cycle in [&mut self.cycle, &mut self.before] {
            cycle.position = (cycle.position + 1) % (cycle.periods * self.pitch);
        }
        sample
    }

    /// Appendix I: a quarter period after an erasure of 10 ms, 4 ms more for each further 10 ms, at most 10 ms.
    fn overlap(&self, erased: usize) -> usize {
        let frame = FRAME * self.unit;
        (self.quarter + 32 * self.unit * (erased.div_ceil(frame).max(1) - 1)).min(frame)
    }
}

/// Appendix I: full level for 10 ms, then down by a fifth every 10 ms; silent from 60 ms on.
fn gain(age: usize, unit: usize) -> f64 {
    let frame = FRAME * unit;
    (1.0 - 0.2 * age.saturating_sub(frame) as f64 / frame as f64).max(0.0)
}

/// Triangular cross-fade, sample `k` of `length`; the last one is all `to`.
fn blend(from: f64, to: f64, k: usize, length: usize) -> f64 {
    let share = (k + 1) as f64 / length as f64;
    from * (1.0 - share) + to * share
}

fn quantise(x: f64) -> i16 {
    x.round() as i16
}

/// The lag at which the last 20 ms best match earlier samples: first every other lag on every other sample (of
/// 8 kHz), then the neighbours of the best lag on all samples.
fn pitch_of(history: &[f64], unit: usize) -> usize {
    let (low, high) = (PITCH.start() * unit, PITCH.end() * unit);
    let coarse = best_lag(history, (low..=high).step_by(2 * unit), 2 * unit, unit);
    let near = (coarse - (2 * unit - 1)).max(low)..=(coarse + (2 * unit - 1)).min(high);
    best_lag(history, near, 1, unit)
}

fn best_lag(history: &[f64], lags: impl Iterator<Item = usize>, step: usize, unit: usize) -> usize {
    let (mut best, mut best_match) = (*PITCH.start() * unit, f64::NEG_INFINITY);
    for lag in lags {
        let likeness = likeness(history, lag, step, TEMPLATE * unit);
        if likeness > best_match {
            (best, best_match) = (lag, likeness);
        }
    }
    best
}

/// Cross-correlation of the last 20 ms, a `template` of as many samples, with the 20 ms `lag` before,
/// normalised by the energy of the latter.
fn likeness(history: &[f64], lag: usize, step: usize, template: usize) -> f64 {
    let (mut product, mut energy) = (0.0, 0.0);
    for index in (history.len() - template..history.len()).step_by(step) {
        let earlier = history[index - lag];
        product += history[index] * earlier;
        energy += earlier * earlier;
    }
    product / energy.max(QUIET).sqrt()
}
