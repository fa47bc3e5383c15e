//! Rate control: fixed, ARF, or modelled on Minstrel. A transmitter has one instance per receiver.

use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Instant;
use talkspurt_scenario::model;

use super::timing::Timing;

/// Rate control towards one receiver; rates are indices into [`Timing::rates`].
#[derive(Clone, Debug)]
pub enum Rates {
    /// A constant rate.
    Fixed(usize),
    /// Automatic rate fallback.
    Arf(Arf),
    /// Modelled on Minstrel.
    Minstrel(Box<Minstrel>),
}

impl Rates {
    /// The configured rate control.
    #[must_use]
    pub fn new(words: &model::RateControl, timing: &Timing) -> Self {
        let highest = timing.rates.len() - 1;
        match words {
            model::RateControl::Fixed(fixed) => {
                let bps = fixed.rate.as_bps();
                let at = timing.rates.iter().position(|rate| rate.bps == bps);
                Self::Fixed(at.unwrap_or(highest))
            }
            model::RateControl::Arf(words) => Self::Arf(Arf::new(*words, highest)),
            model::RateControl::Minstrel(words) => {
                Self::Minstrel(Box::new(Minstrel::new(*words, timing)))
            }
        }
    }

    /// The rate for a frame's next transmission, after `failed` failures.
    pub fn choose(&mut self, failed: u32, now: Instant, rng: &mut Rng) -> usize {
        match self {
            Self::Fixed(rate) => *rate,
            Self::Arf(arf) => arf.rate,
            Self::Minstrel(minstrel) => minstrel.choose(failed, now, rng),
        }
    }

    /// Whether a data frame sent at that rate was acknowledged.
    pub fn learn(&mut self, rate: usize, acknowledged: bool) {
        match self {
            Self::Fixed(_) => {}
            Self::Arf(arf) => arf.learn(acknowledged),
            Self::Minstrel(minstrel) => minstrel.tries[rate].count(acknowledged),
        }
    }
}

/// Kamerman and Monteban, *WaveLAN-II: a high-performance wireless LAN for the unlicensed band* (1997).
#[derive(Clone, Debug)]
pub struct Arf {
    words: model::Arf,
    rate: usize,
    highest: usize,
    acknowledged: u32,
    failed: u32,
    since: u32,
    /// The rate was just raised and nothing was sent at it yet.
    on_trial: bool,
}

impl Arf {
    fn new(words: model::Arf, highest: usize) -> Self {
        Self {
            words,
            rate: highest,
            highest,
            acknowledged: 0,
            failed: 0,
            since: 0,
            on_trial: false,
        }
    }

    fn learn(&mut self, acknowledged: bool) {
        let on_trial = std::mem::take(&mut self.on_trial);
        self.since += 1;
        if acknowledged {
            self.acknowledged += 1;
            self.failed = 0;
            let due = self.acknowledged >= self.words.up_after || self.since >= self.words.timer;
            if due && self.rate < self.highest {
                self.turn(self.rate + 1);
                self.on_trial = true;
            }
        } else {
            self.acknowledged = 0;
            self.failed += 1;
            if on_trial || self.failed >= self.words.down_after {
                self.turn(self.rate.saturating_sub(1));
            }
        }
    }

    fn turn(&mut self, rate: usize) {
        self.rate = rate;
        self.acknowledged = 0;
        self.failed = 0;
        self.since = 0;
    }
}

/// Outcomes of the frames sent at one rate.
#[derive(Clone, Copy, Debug, Default)]
struct Tries {
    sent: u32,
    acknowledged: u32,
    /// Moving average of the acknowledged share; `None` before the first frame.
    share: Option<f64>,
}

impl Tries {
    fn count(&mut self, acknowledged: bool) {
        self.sent += 1;
        self.acknowledged += u32::from(acknowledged);
    }
}

/// Rates by expected throughput: the acknowledged share over the time of a frame of 1200 bytes.
#[derive(Clone, Debug)]
pub struct Minstrel {
    words: model::Minstrel,
    tries: Vec<Tries>,
    /// Duration of a frame at each rate, in seconds.
    airtime: Vec<f64>,
    updated: Instant,
    best: usize,
    second: usize,
    surest: usize,
    /// The rate that the current frame samples.
    sample: Option<usize>,
}

/// Frame length for which Linux's Minstrel rates throughput.
const USUAL_BYTES: u64 = 1200;
/// Transmissions at each rate of a frame's chain before the next rate.
const EACH: u32 = 2;

impl Minstrel {
    fn new(words: model::Minstrel, timing: &Timing) -> Self {
        let airtime = |rate: &super::timing::DataRate| {
            (rate.mode.airtime(USUAL_BYTES) + timing.sifs + rate.ack + timing.difs).as_secs_f64()
        };
        Self {
            words,
            tries: vec![Tries::default(); timing.rates.len()],
            airtime: timing.rates.iter().map(airtime).collect(),
            updated: Instant::ZERO,
            best: 0,
            second: 0,
            surest: 0,
            sample: None,
        }
    }

    fn choose(&mut self, failed: u32, now: Instant, rng: &mut Rng) -> usize {
        if now.saturating_since(self.updated) >= self.words.update {
            self.update(now);
        }
        if failed == 0 {
            let samples = self.words.sample > 0.0 && rng.chance(self.words.sample);
            self.sample = samples.then(|| rng.below(self.tries.len() as u64) as usize);
        }
        // A sample slower than the best is used only after a failure, so it costs nothing without losses.
        let mut chain = [self.best, self.second, self.surest, 0];
        if let Some(sample) = self.sample {
            let faster = self.airtime[sample] < self.airtime[self.best];
            chain = if faster {
                [sample, self.best, self.surest, 0]
            } else {
                [self.best, sample, self.surest, 0]
            };
        }
        chain[(failed / EACH).min(3) as usize]
    }

    fn update(&mut self, now: Instant) {
        self.updated = now;
        for tries in &mut self.tries {
            if tries.sent > 0 {
                let share = f64::from(tries.acknowledged) / f64::from(tries.sent);
                let weight = self.words.weight;
                tries.share =
                    Some(tries.share.map_or(share, |old| old * weight + share * (1.0 - weight)));
            }
            (tries.sent, tries.acknowledged) = (0, 0);
        }
        let share = |at: usize| self.tries[at].share.unwrap_or(0.0);
        // Below one in ten, a rate counts as unusable.
        let promise = |at: usize| {
            let share = share(at);
            if share < 0.1 { 0.0 } else { share / self.airtime[at] }
        };
        let order = |score: &dyn Fn(usize) -> f64, but: Option<usize>| {
            let others = (0..self.tries.len()).filter(|at| Some(*at) != but);
            others.fold(
                0,
                |best, at| if score(at) > score(best) || Some(best) == but { at } else { best },
            )
        };
        let best = order(&promise, None);
        let second = order(&promise, Some(best));
        // Of the rates that hardly fail, the fastest.
        let surest = (0..self.tries.len()).rev().find(|at| share(*at) >= 0.95);
        let surest = surest.unwrap_or_else(|| order(&share, None));
        (self.best, self.second, self.surest) = (best, second, surest);
    }
}
