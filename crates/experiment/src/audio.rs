//! Speech of a run: reference and degraded audio, and the E-model score (G.107).

use talkspurt_app::codec::{Codec, Encoding, step};
use talkspurt_app::quality::estimate::{Listening, estimate};
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
    /// The reference signal; two channels are interleaved.
    pub sent: Vec<i16>,
    /// The degraded signal, of the same length unless playout was adaptive.
    pub received: Vec<i16>,
    /// Samples per second and channel.
    pub sample_rate: u32,
    /// Channels of both, 1 or 2.
    pub channels: usize,
    /// When the first sample of the reference was captured, in seconds of the run.
    pub start_s: f64,
}

/// The speaking sides of a flow: direction name, its speech source, the receiving peer.
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

/// Renders the reference and degraded audio of every direction of every flow.
#[must_use]
pub fn render<P: Probe>(
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
        let (encodings, channels) = (speech.encodings(), recording.channels);
        let spoken = recording.samples_for(peers[ear ^ 1].spoken());
        let mut sent = recording.sent.to_vec();
        if speech.repeat {
            // Reference: the recording padded to whole steps of the media clock and repeated.
            let step = recording.samples_for(step(&encodings));
            let (len, whole) = (sent.len(), sent.len().next_multiple_of(step));
            let held = len - channels;
            let at = |at: usize| sent[if at < len { at } else { held + at % channels }];
            sent = (0..spoken).map(|place| at(place % whole)).collect();
        } else {
            sent.truncate(spoken);
        }
        let how = flow.playout.concealment;
        let other = ear ^ 1;
        let ear = &peers[ear];
        let played = (ear.played(), ear.timeline());
        let said = Some(playout::Spoken {
            recording: &recording,
            repeat: speech.repeat,
            sent: peers[other].generated(),
        });
        let received = playout::render(&encodings, how, played.0, played.1, sent.len(), said).pcm;
        let sample_rate = recording.sample_rate;
        let start_s = talkspurt_flow::capture_start(scenario, &name, flow, speech).as_secs_f64();
        audio.push(Audio { flow: name, sent, received, sample_rate, channels, start_s });
    }
    audio
}

/// The opinion score of each row of the `flows` table of a scenario; empty if it is not speech or nothing was
/// measured.
///
/// A call without any frame in time is scored too, with all frames lost: leaving it out would favour
/// complete failures.
pub fn scores<'a>(
    scenario: &'a Scenario,
    flows: &'a [FlowSummary],
) -> impl Iterator<Item = Quality> + 'a {
    sources(scenario).zip(flows).map(|((flow, source), summary)| {
        told(summary).map_or_else(Quality::default, |heard| opinion(flow, source, &heard))
    })
}

/// The playout statistics of a row of the `flows` table; `None` if nothing was measured.
pub(crate) fn told(summary: &FlowSummary) -> Option<Heard<'_>> {
    let sent = summary.handed_over_packets.max(1) as f64;
    Some(Heard {
        played: &summary.played_by_rung,
        mouth_to_ear_s: summary.mouth_to_ear_mean_s,
        loss: summary.concealed_ratio?,
        burst_ratio: summary.burst_ratio,
        recovered: summary.recovered_packets.unwrap_or(0) as f64 / sent,
        payload_bytes: Some(summary.payload_bytes as f64 / sent),
        fec_ratio: summary.fec_ratio,
        dred_ratio: summary.dred_ratio,
    })
}

/// For each row of the `flows` table, what is heard in place of codecs without an encoder; `None` without
/// such codecs or without a recording.
pub(crate) fn stand_ins(scenario: &Scenario) -> impl Iterator<Item = Option<String>> {
    sources(scenario).map(|(_, source)| match source {
        source::Config::Speech(speech) => speech.stand_ins(),
        _ => None,
    })
}

/// The sources of a scenario and their flows, in order of the rows of the `flows` table.
pub(crate) fn sources(scenario: &Scenario) -> impl Iterator<Item = (&Flow, &source::Config)> {
    scenario.flows.values().flat_map(|flow| {
        let sources = std::iter::once(&flow.source).chain(&flow.reverse);
        sources.map(move |source| (flow, source))
    })
}

/// Playout statistics of some frames of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heard<'a> {
    /// Frames played, by rung of the ladder; empty for a source that never changed rung.
    pub played: &'a [u64],
    /// Mouth-to-ear delay; absent if nothing was played.
    pub mouth_to_ear_s: Option<f64>,
    /// Share of frames missing or late.
    pub loss: f64,
    /// ITU-T G.107's burst ratio; absent without loss.
    pub burst_ratio: Option<f64>,
    /// Share of frames recovered from the redundancy of others.
    pub recovered: f64,
    /// Mean payload of a packet, where a transport may have changed the bit rate; absent if not known.
    pub payload_bytes: Option<f64>,
    /// Share of packets with in-band FEC, whatever was configured.
    pub fec_ratio: Option<f64>,
    /// Share of packets with DRED.
    pub dred_ratio: Option<f64>,
}

/// The E-model score (G.107) of a source's playout statistics; empty if it is not speech.
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
    // If nothing was played, the best codec is assumed.
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
    // Of a ladder, its rung in Opus.
    let of_opus = encodings.iter().find(|it| it.codec == Codec::Opus).unwrap_or(&encodings[0]);
    let listening = Listening {
        heard: &heard,
        opus: &of_opus.opus,
        opus_bps: opus_bps(of_opus, told.payload_bytes.filter(|_| encodings.len() == 1)),
        concealment: flow.playout.concealment,
        packet: encodings[0].packet,
        unheard: told.loss,
        burst_ratio: told.burst_ratio.unwrap_or(1.0),
        recovered: told.recovered,
        has_fec: told.fec_ratio.unwrap_or_default() > 0.0,
        has_dred: told.dred_ratio.unwrap_or_default() > 0.0,
    };
    let estimate = estimate(&flow.quality, &listening, delay);
    let unheard = if known.is_none() { "Nothing was heard in time. " } else { "" };
    Quality {
        r_factor: score.r,
        mos: score.mos,
        r_bound: score.bounds.map(|(r, _)| r),
        mos_bound: score.bounds.map(|(_, mos)| mos),
        mos_lost_to_delay: score.lost_to_delay,
        mos_lost_to_loss: score.lost_to_loss,
        mos_lost_to_codec: score.lost_to_codec,
        limits: (!score.limits.is_empty()).then(|| score.limits.join("; ")),
        note: Some(format!("{unheard}{}", score.note)),
        estimated_mos: estimate.mos,
        estimated_mos_bound: estimate.bound,
        estimate_limits: (!estimate.limits.is_empty()).then(|| estimate.limits.join("; ")),
    }
}

/// Mean bit rate of the speech: what is configured, or less if less was sent, as on the request of a transport.
/// Copies (RED) are beside it, and retransmissions count as payload of a stream.
fn opus_bps(encoding: &Encoding, payload_bytes: Option<f64>) -> f64 {
    let configured = encoding.opus.bitrate.as_bps() as f64;
    let copies = f64::from(encoding.red) + 1.0;
    let sent = payload_bytes.map(|bytes| 8.0 * bytes / copies / encoding.packet.as_secs_f64());
    sent.map_or(configured, |sent| sent.min(configured))
}

/// The delay of a call without any played frame: the nominal playout delay, or zero if playout
/// depends on arrivals that never came.
fn unheard_delay(flow: &Flow, speech: &source::Speech) -> Duration {
    if flow.playout.anchor != Some(playout::Anchor::Capture) {
        return Duration::ZERO;
    }
    let encodings = speech.encodings();
    let longest = encodings.iter().map(|encoding| encoding.packet).max();
    let concealed = encodings.iter().map(|it| it.codec.concealment_delay(flow.playout.concealment));
    longest.unwrap_or_default() + flow.playout.buffer() + concealed.max().unwrap_or_default()
}
