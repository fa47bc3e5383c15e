//! Talkspurts and silences: lengths drawn independently, one side of the conversation chain of ITU-T P.59, or
//! those of a recording.

use std::ops::Range;
use std::sync::Arc;

use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};

use super::config::{self, Distribution};

/// The talkspurts of one source.
#[derive(Debug)]
pub(super) enum Spurts {
    /// Independent of the other side.
    Alone { on: Duration, off: Duration, spread: Distribution },
    /// One side of a conversation.
    Together(Conversation),
    /// Of a recording.
    Recorded(Recorded),
}

impl Spurts {
    /// End of the talkspurt that begins at `start`; `start` if it begins with silence.
    pub(super) fn first(&mut self, start: Instant, rng: &mut Rng) -> Instant {
        match self {
            Self::Alone { on, spread, .. } => start + spread.span(*on, rng),
            Self::Together(conversation) => conversation.begin(start),
            Self::Recorded(recorded) => recorded.first(start),
        }
    }

    /// Beginning and end of the talkspurt after the one that ended at `end`.
    pub(super) fn next(&mut self, end: Instant, rng: &mut Rng) -> (Instant, Instant) {
        match self {
            Self::Alone { on, off, spread } => {
                let begin = end + spread.span(*off, rng);
                (begin, begin + spread.span(*on, rng))
            }
            Self::Together(conversation) => conversation.next_talk(),
            Self::Recorded(recorded) => recorded.next(),
        }
    }
}

/// The talkspurts of a recording, in whole steps of the media clock.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    active: Arc<[Range<Duration>]>,
    step: Duration,
    /// Length of the recording in whole steps.
    length: Duration,
    repeat: bool,
    /// Beginning of the current repetition.
    begins: Instant,
    next: usize,
}

impl Recorded {
    /// Those of a recording of this length whose speech is `active`.
    #[must_use]
    pub(super) fn new(
        active: Arc<[Range<Duration>]>,
        length: Duration,
        step: Duration,
        repeat: bool,
    ) -> Self {
        let length = step * length.as_nanos().div_ceil(step.as_nanos().max(1));
        Self { active, step, length, repeat, begins: Instant::ZERO, next: 0 }
    }

    /// The steps that contain any of this talkspurt, up to the end of the recording.
    fn whole(&self, active: &Range<Duration>) -> Range<Duration> {
        let step = self.step.as_nanos().max(1);
        let begin = self.step * (active.start.as_nanos() / step);
        begin..(self.step * active.end.as_nanos().div_ceil(step)).min(self.length)
    }

    fn first(&mut self, start: Instant) -> Instant {
        self.begins = start;
        match self.active.first().map(|active| self.whole(active)) {
            Some(active) if active.start.is_zero() => self.next().1,
            _ => start,
        }
    }

    /// After the last talkspurt, one that begins at the end of the recording, where nothing is left to send.
    fn next(&mut self) -> (Instant, Instant) {
        if self.next == self.active.len() {
            if !self.repeat {
                return (self.begins + self.length, Instant::HORIZON);
            }
            if self.active.is_empty() {
                return (Instant::HORIZON, Instant::HORIZON);
            }
            (self.begins, self.next) = (self.begins + self.length, 0);
        }
        let mut talk = self.whole(&self.active[self.next]);
        self.next += 1;
        // In whole steps, some pauses vanish.
        while let Some(after) = self.active.get(self.next).map(|active| self.whole(active))
            && after.start <= talk.end
        {
            talk.end = after.end;
            self.next += 1;
        }
        (self.begins + talk.start, self.begins + talk.end)
    }
}

/// State of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Single talk; true for the side that opens the flow.
    Single(bool),
    Double,
    Silence,
}

/// The chain, and the side whose talkspurts it yields. Both sides of a flow run the same chain with the same
/// rng, so they need not communicate.
#[derive(Clone, Debug)]
pub struct Conversation {
    config: config::Conversation,
    rng: Rng,
    opens: bool,
    state: State,
    /// End of the current state.
    ends: Instant,
}

impl Conversation {
    /// The side that opens the flow (or the other) in a conversation whose chain uses `rng`.
    #[must_use]
    pub fn new(config: config::Conversation, rng: Rng, opens: bool) -> Self {
        Self { config, rng, opens, state: State::Silence, ends: Instant::ZERO }
    }

    /// Starts single talk of either side, with equal chances.
    fn begin(&mut self, start: Instant) -> Instant {
        let first = self.rng.chance(0.5);
        self.enter(start, State::Single(first));
        if self.talks() { self.end_of_talk() } else { start }
    }

    fn next_talk(&mut self) -> (Instant, Instant) {
        let mut begin = self.step();
        while !self.talks() {
            begin = self.step();
        }
        (begin, self.end_of_talk())
    }

    /// Skips the states in which this side keeps talking, beginning with the current one.
    fn end_of_talk(&mut self) -> Instant {
        let mut end = self.ends;
        while self.talks() {
            end = self.ends;
            self.step();
        }
        end
    }

    /// Moves to the next state; returns when it began.
    fn step(&mut self) -> Instant {
        let next = match self.state {
            State::Single(_) if self.rng.chance(self.config.interruption) => State::Double,
            State::Single(_) => State::Silence,
            State::Double | State::Silence => State::Single(self.rng.chance(0.5)),
        };
        let began = self.ends;
        self.enter(began, next);
        began
    }

    fn enter(&mut self, at: Instant, state: State) {
        let mean = match state {
            State::Single(_) => self.config.single_talk,
            State::Double => self.config.double_talk,
            State::Silence => self.config.mutual_silence,
        };
        self.state = state;
        self.ends = at + self.rng.exponential(mean);
    }

    fn talks(&self) -> bool {
        match self.state {
            State::Single(who) => who == self.opens,
            State::Double => true,
            State::Silence => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Talkspurts of both sides until `end`, in seconds.
    fn both(seed: u64, end: f64) -> [Vec<(f64, f64)>; 2] {
        [true, false].map(|opens| {
            let rng = Rng::new(seed, "flow/call/from/conversation");
            let chain = Conversation::new(config::Conversation::default(), rng, opens);
            let mut spurts = Spurts::Together(chain);
            // The other rng must have no effect.
            let mut other = Rng::new(u64::from(opens), "other");
            let mut until = spurts.first(Instant::ZERO, &mut other);
            let mut talk = vec![(0.0, until.as_secs_f64())];
            while until.as_secs_f64() < end {
                let begin;
                (begin, until) = spurts.next(until, &mut other);
                assert!(begin < until);
                talk.push((begin.as_secs_f64(), until.as_secs_f64()));
            }
            talk
        })
    }

    /// Shares of time with talk of each side, double talk and silence, over `end` seconds, measured from the
    /// talkspurts of both sides, not from the chain.
    fn shares(talk: &[Vec<(f64, f64)>; 2], end: f64) -> [f64; 4] {
        let mut edges: Vec<(f64, usize, i32)> = Vec::new();
        for (side, spurts) in talk.iter().enumerate() {
            for &(from, to) in spurts {
                edges.extend([(from.min(end), side, 1), (to.min(end), side, -1)]);
            }
        }
        edges.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut talking, mut before, mut time) = ([0, 0], 0.0, [0.0; 4]);
        for (at, side, change) in edges.into_iter().chain([(end, 0, 0)]) {
            let span = at - before;
            time[0] += span * f64::from(talking[0]);
            time[1] += span * f64::from(talking[1]);
            time[2] += span * f64::from(talking[0] * talking[1]);
            time[3] += span * f64::from((1 - talking[0]) * (1 - talking[1]));
            (before, talking[side]) = (at, talking[side] + change);
        }
        time.map(|time| time / end)
    }

    /// The closed form. A cycle is one single talk and the state that follows: 854 + 0.4 · 226 + 0.6 · 456 ms.
    #[test]
    fn shares_of_time_are_those_of_the_chain_and_near_those_of_p59() {
        let runs: Vec<[f64; 4]> =
            (0..20).map(|seed| shares(&both(seed, 10_000.0), 10_000.0)).collect();
        let mean = |which: usize| runs.iter().map(|run| run[which]).sum::<f64>() / 20.0;
        let error = |which: usize| {
            let m = mean(which);
            let square: f64 = runs.iter().map(|run| (run[which] - m) * (run[which] - m)).sum();
            (square / 19.0 / 20.0).sqrt()
        };
        let cycle = 0.854 + 0.4 * 0.226 + 0.6 * 0.456;
        let (double, silence) = (0.4 * 0.226 / cycle, 0.6 * 0.456 / cycle);
        let single = 0.854 / cycle / 2.0 + double;
        for (which, expected) in [(0, single), (1, single), (2, double), (3, silence)] {
            let (measured, error) = (mean(which), error(which));
            assert!(
                (measured - expected).abs() < 4.0 * error && error < 0.002,
                "{which}: {measured} ± {error}, not {expected}"
            );
        }
        // Table 1/P.59, averages of measured conversations: mutual silence 22.48 %, double talk 6.59 %, talk
        // 38.53 %. They are inconsistent, since 2 · 38.53 − 6.59 + 22.48 is 92.95 % and not 100: the chain
        // matches the first, and talks more than the third.
        assert!((mean(3) - 0.2248).abs() < 0.003, "{}", mean(3));
        assert!((mean(2) - 0.0659).abs() < 0.012, "{}", mean(2));
        assert!((mean(0) - 0.3853).abs() < 0.045, "{}", mean(0));
    }

    #[test]
    fn a_side_never_talks_past_its_own_next_talk() {
        for spurts in both(7, 1000.0) {
            assert!(spurts.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }

    /// Slope of the variance of the mean of m bins over m, on logarithmic scales, for the sum of `many`
    /// sources: 2H − 2 (the variance-time plot of Leland et al. 1994). Bins of 10 s, m from 1 to 32.
    fn variance_time_slope(spread: Distribution, many: u64) -> f64 {
        const BINS: usize = 10_000;
        let mut work = vec![0.0; BINS];
        let (on, off) = (Duration::from_secs(1), Duration::from_secs(2));
        for source in 0..many {
            let mut rng = Rng::new(source, "variance-time");
            let mut spurts = Spurts::Alone { on, off, spread };
            let (mut begin, mut end) = (Instant::ZERO, spurts.first(Instant::ZERO, &mut rng));
            while begin.as_secs_f64() < 10.0 * BINS as f64 {
                let (mut from, to) = (begin.as_secs_f64() / 10.0, end.as_secs_f64() / 10.0);
                while from < to.min(BINS as f64) {
                    let next = (from.floor() + 1.0).min(to);
                    work[from as usize] += next - from;
                    from = next;
                }
                (begin, end) = spurts.next(end, &mut rng);
            }
        }
        let points: Vec<(f64, f64)> = [1, 2, 4, 8, 16, 32]
            .map(|m| {
                let means: Vec<f64> =
                    work.chunks_exact(m).map(|bins| bins.iter().sum::<f64>() / m as f64).collect();
                let mean = means.iter().sum::<f64>() / means.len() as f64;
                let square = means.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
                (m as f64, square / means.len() as f64)
            })
            .map(|(m, variance)| {
                (talkspurt_proto::math::ln(m), talkspurt_proto::math::ln(variance))
            })
            .to_vec();
        let n = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0 / n, sum.1 + p.1 / n));
        let covariance: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
        covariance / points.iter().map(|p| (p.0 - x) * (p.0 - x)).sum::<f64>()
    }

    /// Willinger et al. 1997: the sum of many sources with tails of index α is self-similar with H = (3 − α) /
    /// 2, 0.75 here, so the slope is −0.5; without tails H is 0.5 and the slope −1.
    #[test]
    fn many_pareto_sources_are_self_similar_together() {
        let heavy = variance_time_slope(Distribution::Pareto { shape: 1.5 }, 100);
        let light = variance_time_slope(Distribution::Exponential, 100);
        assert!((heavy + 0.5).abs() < 0.1, "{heavy}");
        assert!((light + 1.0).abs() < 0.1, "{light}");
    }
}
