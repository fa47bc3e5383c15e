//! Why an option is worse than the best, from what both measured:
//!
//! 1. The E-model divides the MOS lost by each call into shares of delay, loss and codec, which add up
//!    (`mos_lost_to_…`). A share counts that makes up [`MAIN`] of the difference or more. Where calls are
//!    judged by delay and unheard speech, the measures in which one is worse count.
//! 2. Each frame that was not heard has a cause, decided from its times, the delay of the network and the
//!    congestion window; pauses of adaptive playout are a cause of their own. Causes that make up [`PART`] of
//!    the additional unheard speech are named.
//! 3. Delay is the handshake's or the network's if that accounts for half of the additional mouth-to-ear delay.
//!
//! If the measures do not decide, the measured difference is stated, or no cause.

use std::ops::Range;

use indexmap::IndexMap;
use serde_json::Value;

use crate::judge::Told;
use crate::text::{show, with_unit};
use crate::{Choice, Flows, Input, Measure, Question, Runs, WITHOUT_SCORE, metric};

/// The least share of a difference in MOS.
const MAIN: f64 = 0.3;
/// The least share of unheard speech.
const PART: f64 = 0.25;
/// Calls whose frames are read for a cause: of each of 10 000 runs, that takes longer than the runs.
const MAX_CALLS: usize = 200;

/// The frames of a call, and what decides their causes. All times are in seconds of the run.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    /// The window of measurement.
    pub window: Range<f64>,
    /// When each was captured.
    pub captured: Vec<Option<f64>>,
    /// When it was handed to the transport.
    pub handed_over: Vec<Option<f64>>,
    /// When it was delivered.
    pub delivered: Vec<Option<f64>>,
    /// When its playout was due.
    pub playout: Vec<Option<f64>>,
    /// Its outcome, as the frames table names it.
    pub fate: Vec<Option<String>>,
    /// Changes of the sender's congestion window, in bytes, by time.
    pub cwnd: Vec<(f64, f64)>,
    /// Changes of its data in flight.
    pub flight: Vec<(f64, f64)>,
    /// When its connection was open; `None` without a handshake.
    pub opened: Option<f64>,
    /// Mean size of a frame in bytes.
    pub frame_bytes: f64,
}

/// Why a frame was not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Cause {
    /// It was captured before the connection was open.
    Handshake,
    /// A transport that does not retransmit handed it to the network, and it was never delivered.
    NetworkLoss,
    /// A transport that does not retransmit delivered it too late, and no later after its hand-over than the
    /// slowest packet of the flow took through the network.
    NetworkDelay,
    /// The send queue discarded it; or it would have been in time without its wait there; or it took longer
    /// than the slowest packet, and at its hand-over the congestion window had no room for a segment.
    Rate,
    /// A transport that delivers in order delivered it late, at the same instant as more data than one segment
    /// holds: segments that had arrived before were waiting for an earlier one.
    HeadOfLine,
    /// A transport that retransmits delivered it in a single segment, later than the slowest packet and three
    /// or more least one-way delays after its hand-over, while the congestion window had room.
    Retransmission,
    /// Adaptive playout stood still.
    Pauses,
    /// The measures do not decide it.
    Unknown,
}

use Cause::{
    Handshake, HeadOfLine, NetworkDelay, NetworkLoss, Pauses, Rate, Retransmission, Unknown,
};

/// The causes that sentences name.
const NAMED: [Cause; 7] =
    [HeadOfLine, Rate, Retransmission, NetworkLoss, NetworkDelay, Handshake, Pauses];

impl Cause {
    /// In words, with its share of the speech.
    fn words(self, share: &str) -> String {
        match self {
            HeadOfLine => format!("head-of-line blocking: {share} too late"),
            Rate => format!("congestion control: {share} waited too long at the sender"),
            Retransmission => format!("retransmission: {share} too late"),
            NetworkLoss => format!("speech lost in the network: {share}"),
            NetworkDelay => format!("delay variation in the network: {share} too late"),
            Handshake => format!("handshake: {share} waited for the connection"),
            Pauses => format!("pauses of playout: {share}"),
            Unknown => format!("unheard speech: {share}"),
        }
    }
}

/// Finds why each option that is worse than the first is so.
pub(crate) fn explain(input: &Input, runs: &dyn Runs, question: &mut Question) {
    if !question.instrument.calls {
        return;
    }
    for other in 1..question.options.len() {
        let (best, worse) = (&question.options[0], &question.options[other]);
        let told = |at: usize| question.told(at, worse.differences[at].as_ref()) == Told::Worse;
        let names = (0..question.measures.len()).filter(|&at| told(at));
        let names: Vec<_> = names.map(|at| question.measures[at]).collect();
        if names.is_empty() {
            continue;
        }
        let pair = Pair::of(input, runs, best, worse);
        let said: Vec<String> = match names[0] {
            "mos" => pair.of_mos(worse),
            "estimated_mos" => pair.of_estimate(),
            _ => names.iter().flat_map(|name| pair.of_measure(name)).collect(),
        };
        question.options[other].cause = said.join(", ");
    }
}

/// The rows of two options, over the seeds that both have.
struct Pair<'a> {
    input: &'a Input,
    runs: &'a dyn Runs,
    better: Vec<usize>,
    worse: Vec<usize>,
}

impl<'a> Pair<'a> {
    fn of(input: &'a Input, runs: &'a dyn Runs, better: &Choice, worse: &Choice) -> Self {
        let replicate = |row: usize| input.runs[input.flows.run[row]].replicate;
        let common = |of: &Choice, with: &Choice| -> Vec<usize> {
            let seeds: Vec<_> = with.rows.iter().map(|&row| replicate(row)).collect();
            of.rows.iter().copied().filter(|&row| seeds.contains(&replicate(row))).collect()
        };
        Self { input, runs, better: common(better, worse), worse: common(worse, better) }
    }

    fn both(&self, name: &str) -> Option<(f64, f64)> {
        let mean = |rows: &[usize]| self.input.flows.mean(rows.iter().copied(), name);
        Some((mean(&self.worse)?, mean(&self.better)?))
    }

    fn of_mos(&self, worse: &Choice) -> Vec<String> {
        let difference = worse.differences[0].as_ref().map_or(0.0, |it| it.mean.mean.abs());
        let parts = ["loss", "delay", "codec"].map(|what| {
            let (worse, better) = self.both(&format!("mos_lost_to_{what}"))?;
            Some((what, (worse - better) / difference))
        });
        let Some(mut parts) = parts.into_iter().collect::<Option<Vec<_>>>() else {
            return Vec::new();
        };
        parts.sort_by(|one, other| other.1.total_cmp(&one.1));
        let main = parts.iter().filter(|(_, share)| *share >= MAIN);
        main.flat_map(|(what, _)| match *what {
            "loss" => self.of_loss(true),
            "delay" => self.of_delay(true),
            _ => self.of_codec(),
        })
        .collect()
    }

    /// An estimate has no shares: what differs is named.
    fn of_estimate(&self) -> Vec<String> {
        let more = |measure: &Measure| {
            self.both(measure.name).is_some_and(|(worse, better)| worse - better >= measure.least)
        };
        let [delay, unheard] = WITHOUT_SCORE;
        let mut said = if more(unheard) { self.of_loss(true) } else { Vec::new() };
        said.extend(more(delay).then(|| self.of_delay(true)).into_iter().flatten());
        said
    }

    fn of_measure(&self, name: &str) -> Vec<String> {
        match name {
            "concealed_ratio" => self.of_loss(false),
            _ => self.of_delay(false),
        }
    }

    /// `told` is whether a share without a cause is to be named: not where it is the measure.
    fn of_loss(&self, told: bool) -> Vec<String> {
        let (Some(worse), Some(better)) = (self.shares(&self.worse), self.shares(&self.better))
        else {
            return Vec::new();
        };
        let (total, least) = (worse.values().sum::<f64>(), better.values().sum::<f64>());
        let more = total - least;
        if more < PART * total {
            return self.of_bursts();
        }
        let share = |of: &IndexMap<Cause, f64>, cause| of.get(&cause).copied().unwrap_or_default();
        let mut parts = NAMED.map(|cause| (cause, share(&worse, cause) - share(&better, cause)));
        parts.sort_by(|one, other| other.1.total_cmp(&one.1));
        let named: Vec<_> = parts.into_iter().filter(|(_, part)| *part >= PART * more).collect();
        if named.iter().map(|(_, part)| part).sum::<f64>() < more / 2.0 {
            return told.then(|| Unknown.words(&instead(total, least))).into_iter().collect();
        }
        let words = |(cause, _): (Cause, f64)| {
            cause.words(&instead(share(&worse, cause), share(&better, cause)))
        };
        named.into_iter().map(words).collect()
    }

    /// For similar shares of unheard speech: whether the gaps are longer.
    fn of_bursts(&self) -> Vec<String> {
        let found =
            self.both("burst_ratio").filter(|(worse, better)| *worse >= better * (1.0 + PART));
        let ratio = metric("burst_ratio").expect("a metric");
        let words = found.map(|(worse, better)| {
            format!(
                "longer gaps: burst ratio {} instead of {}",
                show(ratio, worse),
                show(ratio, better)
            )
        });
        words.into_iter().collect()
    }

    /// `told` is whether the delay is to be named: not where it is the measure.
    fn of_delay(&self, told: bool) -> Vec<String> {
        let Some((worse, better)) = self.both("mouth_to_ear_mean_s") else { return Vec::new() };
        if worse - better < 1e-3 {
            return Vec::new();
        }
        let ear = metric("mouth_to_ear_mean_s").expect("a metric");
        let said = told.then(|| {
            let worse = with_unit(ear, &show(ear, worse));
            format!("mouth-to-ear delay of {worse} instead of {}", show(ear, better))
        });
        let of = |name: &str| {
            let mean = |rows: &[usize]| {
                self.input.flows.mean(rows.iter().copied(), name).unwrap_or_default()
            };
            mean(&self.worse) - mean(&self.better)
        };
        let parts = [("handshake_wait_s", "handshake delay"), ("delay_mean_s", "network delay")];
        let part = parts.into_iter().find(|(name, _)| of(name) >= (worse - better) / 2.0);
        match (part, said) {
            (Some((_, words)), Some(said)) => vec![format!("{words}, {said}")],
            (Some((_, words)), None) => vec![words.to_owned()],
            (None, said) => said.into_iter().collect(),
        }
    }

    fn of_codec(&self) -> Vec<String> {
        let lost = metric("mos_lost_to_codec").expect("a metric");
        let found = self.both(lost.name);
        let words = found.map(|(worse, better)| {
            format!("codec: costs {} MOS instead of {}", show(lost, worse), show(lost, better))
        });
        words.into_iter().collect()
    }

    /// The share of each cause in what was to be heard; together, the unheard share of the table. `None`
    /// without frames.
    fn shares(&self, rows: &[usize]) -> Option<IndexMap<Cause, f64>> {
        let flows = &self.input.flows;
        let mut shares: IndexMap<_, f64> = IndexMap::new();
        for &row in rows.iter().take(MAX_CALLS) {
            let Some(call) = Call::of(self.input, self.runs, row) else { continue };
            let causes = call.causes();
            let unheard = flows.value(row, "concealed_ratio").unwrap_or_default();
            // concealed = (lost + pauses) / (judged + pauses), all in frames.
            let pauses = flows.value(row, "loss_ratio").filter(|lost| *lost < 1.0);
            let pauses = pauses.map_or(0.0, |lost| ((unheard - lost) / (1.0 - lost)).max(0.0));
            for cause in causes.iter().flatten() {
                *shares.entry(*cause).or_default() += (1.0 - pauses) / causes.len() as f64;
            }
            *shares.entry(Pauses).or_default() += pauses;
        }
        // The mean of shares is the table's where every call has its frames; of the calls that were read, it is
        // scaled to it, so that no part exceeds the whole.
        let (all, unheard) =
            (shares.values().sum::<f64>(), flows.mean(rows.iter().copied(), "concealed_ratio")?);
        if all > 0.0 {
            shares.values_mut().for_each(|share| *share *= unheard / all);
        }
        (!shares.is_empty()).then_some(shares)
    }
}

fn instead(worse: f64, better: f64) -> String {
    let share = metric("concealed_ratio").expect("a metric");
    let (worse, better) = (show(share, worse), show(share, better));
    let none = better == show(share, 0.0);
    if none {
        with_unit(share, &worse)
    } else {
        format!("{worse} instead of {}", with_unit(share, &better))
    }
}

/// Transports that never retransmit, and wait only in the send queue.
const DATAGRAMS: [&str; 4] = ["udp", "dccp", "tfrc", "beritelli"];
/// Transports that retransmit, with congestion control.
const STREAMS: [&str; 2] = ["tcp", "sctp"];

/// A call of a run, with what decides the causes of its frames.
struct Call<'a> {
    flows: &'a Flows,
    row: usize,
    frames: Frames,
    transport: Value,
    /// The end of the run.
    end: f64,
}

impl<'a> Call<'a> {
    fn of(input: &'a Input, runs: &dyn Runs, row: usize) -> Option<Self> {
        let (flows, run) = (&input.flows, input.flows.run[row]);
        let flow = &flows.name[row];
        let frames = runs.frames(run, flow)?;
        let transport = runs.flow(run, flow.strip_suffix(".reverse").unwrap_or(flow))?;
        let transport = transport.get("transport")?.clone();
        Some(Self { flows, row, frames, transport, end: input.runs[run].duration_s })
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.flows.value(self.row, name)
    }

    fn is(&self, key: &str) -> Option<bool> {
        self.transport.get(key)?.as_bool()
    }

    /// Of each frame of the window whose fate is known, as for `loss_ratio`: why it was not heard, if so.
    fn causes(&self) -> Vec<Option<Cause>> {
        let frames = &self.frames;
        let waits: Vec<_> = frames
            .handed_over
            .iter()
            .zip(&frames.captured)
            .map(|(handed_over, captured)| Some((*handed_over)? - (*captured)?))
            .collect();
        // Packetisation is the same for all frames.
        let least = waits.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let mut together: IndexMap<u64, u32> = IndexMap::new();
        for delivered in frames.delivered.iter().flatten() {
            *together.entry(delivered.to_bits()).or_default() += 1;
        }
        let latest = self.value("mouth_to_ear_max_s").unwrap_or_default();
        let judged = (0..frames.captured.len()).filter_map(|at| {
            let (captured, fate) = (frames.captured[at]?, frames.fate[at].as_deref());
            let known = matches!(fate, Some("played" | "recovered" | "late" | "discarded"));
            let due = captured + latest < self.end - 1e-9;
            if !frames.window.contains(&captured) || !(known || due) {
                return None;
            }
            let heard = matches!(fate, Some("played" | "recovered"));
            let released =
                frames.delivered[at].map_or(0, |delivered| together[&delivered.to_bits()]);
            let wait = waits[at].map(|wait| wait - least);
            Some((!heard).then(|| self.cause(at, fate.unwrap_or_default(), wait, released)))
        });
        judged.collect()
    }

    /// The first rule that holds decides; a rule without its measures does not hold.
    fn cause(&self, at: usize, fate: &str, wait: Option<f64>, released: u32) -> Cause {
        let kind = self.transport.get("kind").and_then(Value::as_str).unwrap_or_default();
        let (datagrams, stream) = (DATAGRAMS.contains(&kind), STREAMS.contains(&kind));
        let controlled = stream || datagrams && kind != "udp";
        let gives_up = ["lifetime", "max_retransmissions"]
            .iter()
            .any(|key| self.transport.get(key).is_some_and(|it| !it.is_null()));
        let reliable = stream && !gives_up;
        let segment = ["mss", "mtu"].iter().find_map(|key| self.transport.get(key)?.as_f64());
        let segment = segment.unwrap_or(f64::INFINITY);
        let lost_some = self.value("lost_packets").is_some_and(|lost| lost > 0.0);

        let frames = &self.frames;
        let room = frames.handed_over[at]
            .and_then(|time| Some(before(&frames.cwnd, time)? - before(&frames.flight, time)?));
        let (full, has_room) =
            (room.is_some_and(|it| it < segment), room.is_some_and(|it| it >= segment));
        let transit = frames.delivered[at].zip(frames.handed_over[at]).map(|(to, from)| to - from);
        let in_network =
            transit.is_some_and(|it| it <= self.value("delay_max_s").unwrap_or_default() + 1e-9);
        let again = transit
            .is_some_and(|it| it >= 3.0 * self.value("delay_min_s").unwrap_or(f64::INFINITY));
        let early = frames.opened.zip(frames.captured[at]).is_some_and(|(open, it)| it < open);
        let without_wait = frames.delivered[at].zip(wait).zip(frames.playout[at]);
        let without_wait = without_wait.is_some_and(|((to, wait), due)| to - wait <= due);
        let ordered = stream && self.is("ordered").unwrap_or(true);
        let nagle = self.is("nagle").unwrap_or_default();
        match fate {
            _ if early => Handshake,
            "discarded" | "queued" if controlled => Rate,
            "lost" if lost_some && (datagrams || has_room && !reliable) => NetworkLoss,
            "late" if controlled && without_wait => Rate,
            "late" if in_network && datagrams => NetworkDelay,
            "late" if ordered && f64::from(released) * frames.frame_bytes > segment => HeadOfLine,
            "late" if in_network => Unknown,
            "late" if full => Rate,
            "late" if has_room && again && lost_some && reliable && !nagle => Retransmission,
            _ => Unknown,
        }
    }
}

/// The last value up to a time.
fn before(changes: &[(f64, f64)], time: f64) -> Option<f64> {
    let after = changes.partition_point(|(at, _)| *at <= time);
    Some(changes[after.checked_sub(1)?].1)
}
