//! Queueing theory: the mean wait, the mean number and the loss of M/M/1/K, and the waits of classes
//! under strict priority (Cobham 1954), as confidence intervals over batches.

use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

use crate::lone_link::{Arrival, Verdict, fates};

/// A byte takes a microsecond.
const RATE: Rate = Rate::from_bps(8_000_000);
const BATCHES: usize = 25;
/// Student's t with 24 degrees of freedom exceeds this twice in a thousand times.
const T: f64 = 3.47;

/// Poisson arrivals of one class: packets of a mean length, exponential or all the same.
struct Class {
    dscp: u8,
    gap: Duration,
    bytes: u64,
    exponential: bool,
}

impl Class {
    fn arrivals(&self, span: Duration) -> Vec<Arrival> {
        let mut rng = Rng::new(11, &format!("class {}", self.dscp));
        let (mut at, mut all) = (Instant::ZERO, Vec::new());
        loop {
            at += rng.exponential(self.gap);
            if at >= Instant::ZERO + span {
                return all;
            }
            let service = Duration::from_micros(self.bytes);
            let bytes = match self.exponential {
                true => (rng.exponential(service).as_nanos() / 1000).max(1) as u32,
                false => self.bytes as u32,
            };
            all.push(Arrival { at, bytes, dscp: self.dscp });
        }
    }
    fn load(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.gap.as_secs_f64()
    }
    /// λ E[S²]/2, in seconds.
    fn residual(&self) -> f64 {
        let factor = if self.exponential { 2.0 } else { 1.0 };
        self.load() * self.bytes as f64 / 1e6 * factor / 2.0
    }
}

/// Asserts that the mean over batches of equal length does not differ from theory by more than
/// chance, and that chance is small.
fn assert_mean(what: &str, samples: &[f64], theory: f64) {
    let size = samples.len() / BATCHES;
    let means: Vec<f64> = samples
        .chunks_exact(size)
        .take(BATCHES)
        .map(|batch| batch.iter().sum::<f64>() / size as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / BATCHES as f64;
    let variance =
        means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (BATCHES - 1) as f64;
    let half = T * (variance / BATCHES as f64).sqrt();
    println!("{what}: {mean:.6} ± {half:.6}, in theory {theory:.6}");
    assert!(half < 0.05 * theory, "{what}: ± {half} says little about {theory}");
    assert!((mean - theory).abs() < half, "{what}: {mean} ± {half}, in theory {theory}");
}

#[test]
fn m_m_1_k_loses_and_waits_as_its_closed_form_says() {
    // (gap, K): loads of 0.8 and 1.25, and 1 where the formula has a limit.
    for (gap, places) in [(1250, 5), (1250, 8), (800, 5), (1000, 8)] {
        let class =
            Class { dscp: 0, gap: Duration::from_micros(gap), bytes: 1000, exponential: true };
        let arrivals = class.arrivals(Duration::from_secs(1500));
        let words = format!("kind = 'droptail', packets = {}", places - 1);
        let fates = fates(&words, RATE, 65_535, &arrivals);
        let lost: Vec<f64> =
            fates.iter().map(|verdict| f64::from(verdict.start().is_none())).collect();
        let waits: Vec<f64> = fates
            .iter()
            .zip(&arrivals)
            .filter_map(|(verdict, arrival)| Some((verdict.start()? - arrival.at).as_secs_f64()))
            .collect();
        // Probabilities of 0 … K in the system are proportional to ρ^n; an arrival at K is lost.
        let load = class.load();
        let weights: Vec<f64> =
            (0..=places).map(|n| std::iter::repeat_n(load, n).product::<f64>()).collect();
        let all: f64 = weights.iter().sum();
        let loss = weights[places] / all;
        let inside: f64 = (0_u32..).zip(&weights).map(|(n, w)| f64::from(n) * w).sum::<f64>() / all;
        // Little: L = λ (1 − P_K) (W_q + 1/μ).
        let wait = inside * class.gap.as_secs_f64() / (1.0 - loss) - 0.001;
        assert_mean(&format!("loss, ρ = {load}, K = {places}"), &lost, loss);
        assert_mean(&format!("wait, ρ = {load}, K = {places}"), &waits, wait);
    }
}

#[test]
fn classes_wait_as_cobham_says() {
    // Speech of one length, exponential middle, long packets below.
    let class = |dscp, gap, bytes, exponential| Class {
        dscp,
        gap: Duration::from_micros(gap),
        bytes,
        exponential,
    };
    let classes =
        [class(46, 1000, 200, false), class(26, 2500, 500, true), class(0, 4000, 1500, false)];
    let mut arrivals: Vec<Arrival> = Vec::new();
    for class in &classes {
        arrivals.extend(class.arrivals(Duration::from_secs(600)));
    }
    arrivals.sort_by_key(|arrival| arrival.at);
    let endless = "queue = { kind = 'droptail', packets = 1000000 }";
    let words = format!(
        "kind = 'priority', bands = [{{ dscp = [46], {endless} }}, {{ dscp = [26], {endless} }}, {{ {endless} }}]"
    );
    let fates = fates(&words, RATE, 65_535, &arrivals);
    let residual: f64 = classes.iter().map(Class::residual).sum();
    let mut above = 0.0;
    for class in &classes {
        let waits: Vec<f64> = fates
            .iter()
            .zip(&arrivals)
            .filter(|(_, arrival)| arrival.dscp == class.dscp)
            .map(|(verdict, arrival)| match verdict {
                Verdict::Sent(start, _) => (*start - arrival.at).as_secs_f64(),
                Verdict::Dropped(_) => panic!("no queue is full"),
            })
            .collect();
        // W_k = R / ((1 − σ_{k−1}) (1 − σ_k)).
        let with = above + class.load();
        let theory = residual / ((1.0 - above) * (1.0 - with));
        assert_mean(&format!("class {}", class.dscp), &waits, theory);
        above = with;
    }
}
