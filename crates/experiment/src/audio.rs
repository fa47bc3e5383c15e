//! For the ear: what was said and heard, and what G.107 thinks of it.

use talkspurt_app::codec::step;
use talkspurt_app::{playout, quality, source};
use talkspurt_flow::Materials;
use talkspurt_proto::probe::Probe;
use talkspurt_proto::time::Duration;
use talkspurt_record::{FlowSummary, Quality};
use talkspurt_scenario::model::{Flow, Scenario};
use talkspurt_sim::world::World;

/// The speech of one direction of a flow.
pub struct Audio {
    /// Name of the direction.
    pub flow: String,
    /// What was said.
    pub sent: Vec<i16>,
    /// What was heard, of the same length.
    pub received: Vec<i16>,
    /// Samples per second.
    pub sample_rate: u32,
}

/// The sides of a flow that speak: direction name, its speech source, the peer that hears it.
fn directions(
    scenario: &Scenario,
) -> impl Iterator<Item = (String, &Flow, &source::Config, usize)> {
    scenario.flows.iter().enumerate().flat_map(|(number, (name, flow))| {
        let forth = (name.clone(), flow, &flow.source, 2 * number + 1);
        let back = flow
            .reverse
            .as_ref()
            .map(|source| (format!("{name}.reverse"), flow, source, 2 * number));
        std::iter::once(forth).chain(back)
    })
}

/// Renders what every side of every flow said and heard.
pub(crate) fn render<P: Probe>(
    scenario: &Scenario,
    materials: &Materials,
    world: &World<P>,
) -> Vec<Audio> {
    let (mut audio, peers) = (Vec::new(), world.peers());
    for (name, flow, source, ear) in directions(scenario) {
        let (source::Config::Speech(speech), source::Material::Speech(recording)) =
            (source, materials.of(source))
        else {
            continue;
        };
        let (codec, encodings) = (speech.codec, speech.encodings());
        let spoken = codec.samples_for(peers[ear ^ 1].spoken());
        let mut sent = recording.sent.to_vec();
        if speech.repeat {
            // What was sent: the recording padded to whole steps of the media clock, over and over.
            let step = codec.samples_for(step(&encodings));
            let (last, whole) = (sent.len() - 1, sent.len().next_multiple_of(step));
            sent = (0..spoken).map(|at| sent[(at % whole).min(last)]).collect();
        } else {
            sent.truncate(spoken);
        }
        let how = flow.playout.concealment;
        let received = playout::render(&encodings, how, peers[ear].played(), sent.len()).pcm;
        audio.push(Audio { flow: name, sent, received, sample_rate: codec.sample_rate() });
    }
    audio
}

/// The opinion score of a flow; empty for one that is not speech, or of which nothing was judged.
///
/// A call of which nothing was heard in time is scored too, with all its frames lost: leaving it
/// out would favour whatever fails completely.
#[must_use]
pub fn score(scenario: &Scenario, summary: &FlowSummary) -> Quality {
    let found = directions(scenario).find(|(name, ..)| *name == summary.name);
    let (Some((_, flow, source, _)), Some(loss)) = (found, summary.loss_ratio) else {
        return Quality::default();
    };
    let mouth_to_ear_s = summary.mouth_to_ear_p50_s.or(summary.mouth_to_ear_max_s);
    let burst_ratio = summary.burst_ratio;
    let heard = Heard { played: &summary.played_by_rung, mouth_to_ear_s, loss, burst_ratio };
    opinion(flow, source, &heard)
}

/// What was heard of some of a call's frames.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// Frames played, by rung of the ladder; empty for a source that never changed it.
    pub played: &'a [u64],
    /// From a sound's capture to its playing; absent where nothing was played.
    pub mouth_to_ear_s: Option<f64>,
    /// Share of frames missing or late.
    pub loss: f64,
    /// ITU-T G.107's burst ratio; absent without a loss.
    pub burst_ratio: Option<f64>,
}

/// What G.107 thinks of what was heard of a source; empty for one that is not speech.
#[must_use]
pub fn opinion(flow: &Flow, source: &source::Config, told: &Heard<'_>) -> Quality {
    let source::Config::Speech(speech) = source else { return Quality::default() };
    let known = told.mouth_to_ear_s;
    let delay = known.map_or_else(|| unheard_delay(flow, speech), Duration::from_secs_f64);
    let encodings = speech.encodings();
    let heard: Vec<_> = match told.played {
        [] => vec![(speech.codec, 1)],
        played => encodings.iter().map(|it| it.codec).zip(played.iter().copied()).collect(),
    };
    // Where nothing was heard, no codec was: the best is taken.
    let nothing = heard.iter().all(|(_, frames)| *frames == 0);
    let heard = if nothing { vec![(speech.codec, 1)] } else { heard };
    let score = quality::score(
        &flow.quality,
        &heard,
        flow.playout.concealment,
        delay,
        told.loss,
        told.burst_ratio.unwrap_or(1.0),
    );
    let unheard = if known.is_none() { "Nothing was heard in time. " } else { "" };
    Quality {
        r_factor: score.r,
        mos: score.mos,
        mos_lost_to_delay: score.lost_to_delay,
        mos_lost_to_loss: score.lost_to_loss,
        mos_lost_to_codec: score.lost_to_codec,
        note: Some(format!("{unheard}{}", score.note)),
    }
}

/// The delay of a call of which nothing was played: what playout would have made it, or, where
/// that counts from a first arrival that never came, none.
fn unheard_delay(flow: &Flow, speech: &source::Speech) -> Duration {
    match flow.playout.anchor {
        playout::Anchor::Capture => {
            let encodings = speech.encodings();
            let longest = encodings.iter().map(|encoding| encoding.packet).max();
            let concealed =
                encodings.iter().map(|it| it.codec.concealment_delay(flow.playout.concealment));
            longest.unwrap_or_default() + flow.playout.buffer + concealed.max().unwrap_or_default()
        }
        playout::Anchor::FirstArrival => Duration::ZERO,
    }
}
