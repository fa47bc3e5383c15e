//! Which redundancy the encoder of a call had no room for, and the bit rate that has it.

use talkspurt_app::codec::{Codec, Encoding, opus};
use talkspurt_app::source;
use talkspurt_flow::Materials;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;
use talkspurt_record::FlowSummary;
use talkspurt_scenario::model::Scenario;

use crate::audio::sources;

/// If fewer packets have deep redundancy, many losses are too far from one that has.
const ENOUGH_DRED: f64 = 0.8;
/// In-band FEC is enough in fewer packets, because those of pauses have none.
const ENOUGH_FEC: f64 = 0.5;
/// Bit rates that are tried, in kbit/s.
const RATES: [u64; 12] = [16, 20, 24, 28, 32, 36, 40, 48, 64, 80, 96, 128];
/// The part of the recording that is encoded at each.
const TRIED: Duration = Duration::from_secs(10);
/// With less loss, reports of the receiver tell none.
const TOLD: f64 = 0.001;

/// For each row of the `flows` table, what its redundancy lacks; `None` if nothing.
pub(crate) fn notes(
    scenario: &Scenario,
    materials: &Materials,
    flows: &[FlowSummary],
) -> Vec<Option<String>> {
    let each = sources(scenario).zip(flows);
    each.map(|((_, source), summary)| note(source, materials, summary)).collect()
}

fn note(source: &source::Config, materials: &Materials, summary: &FlowSummary) -> Option<String> {
    let source::Config::Speech(speech) = source else { return None };
    let encoding = speech.encodings().first().copied().filter(|it| it.codec == Codec::Opus)?;
    let source::Material::Speech(recording) = materials.of(source) else { return None };
    let ten = recording.samples_for(TRIED).min(recording.sent.len());
    let loss = summary.lost_packets as f64 / summary.sent_packets.max(1) as f64;
    let told = if loss < TOLD { 0.0 } else { loss.max(0.01) };
    let expected = encoding.opus.expected_loss.unwrap_or(told);
    let near = summary.fec_ratio.filter(|share| *share == 0.0);
    let deep = summary.dred_ratio.filter(|share| *share < ENOUGH_DRED);
    let tried =
        |rate| opus::redundant_shares(&at(&encoding, rate, expected), &recording.sent[..ten]);
    let said = [
        near.map(|share| {
            lack("in-band FEC", share, &encoding, expected, |rate| {
                Some(tried(rate).0).filter(|share| *share >= ENOUGH_FEC)
            })
        }),
        deep.map(|share| {
            lack("DRED", share, &encoding, expected, |rate| {
                Some(tried(rate).1).filter(|share| *share >= ENOUGH_DRED)
            })
        }),
    ];
    let said: Vec<_> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// What is said of redundancy that only a share of the packets has, where `enough` is the share at a bit rate
/// that has enough of it.
fn lack(
    name: &str,
    share: f64,
    encoding: &Encoding,
    expected_loss: f64,
    enough: impl Fn(Rate) -> Option<f64>,
) -> String {
    let share = match share {
        0.0 => "none".to_owned(),
        share => format!("{:.0} %", 100.0 * share),
    };
    let head = format!("{share} of the packets have {name}");
    if expected_loss == 0.0 {
        return format!(
            "{head}: the encoder expects no loss, as the receiver reported none (`expected_loss` in `opus` \
             sets it)"
        );
    }
    let own = encoding.opus.bitrate;
    let higher = RATES.map(|kbps| Rate::from_bps(1000 * kbps)).into_iter();
    let mut higher = higher.filter(|rate| *rate > own);
    let remedy = match higher.find_map(|rate| Some((rate, enough(rate)?))) {
        Some((rate, share)) => {
            format!("with {}, {:.0} % of the packets have it", kbps(rate), 100.0 * share)
        }
        None => "nor has a higher rate".to_owned(),
    };
    let expected = 100.0 * expected_loss;
    format!(
        "{head}: at {expected:.0} % of expected loss, {} have no room for it beside the speech; {remedy}",
        kbps(own)
    )
}

fn kbps(rate: Rate) -> String {
    format!("{} kbit/s", rate.as_bps() as f64 / 1e3)
}

/// The encoding at another bit rate.
fn at(encoding: &Encoding, bitrate: Rate, expected_loss: f64) -> Encoding {
    let opus = opus::Config { bitrate, expected_loss: Some(expected_loss), ..encoding.opus };
    Encoding { opus, red: 0, ..*encoding }
}
