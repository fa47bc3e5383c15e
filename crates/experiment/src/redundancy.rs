//! Which redundancy the encoder of a call had no room for, and the bit rate that has it.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use talkspurt_app::codec::{Codec, Encoding, opus};
use talkspurt_app::source;
use talkspurt_flow::Materials;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;
use talkspurt_record::FlowSummary;
use talkspurt_scenario::model::Scenario;

use crate::audio::sources;

/// Bit rates that are tried, in kbit/s.
const RATES: [u64; 12] = [16, 20, 24, 28, 32, 36, 40, 48, 64, 80, 96, 128];
/// The part of the recording that is encoded at each.
const TRIED: Duration = Duration::from_secs(10);
/// Answers that are kept.
const MAX_KNOWN: usize = 1000;

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
    let loss = summary.lost_packets as f64 / summary.sent_packets.max(1) as f64;
    let told = encoding.opus.expected_loss.map(opus::percent);
    let expected = f64::from(told.unwrap_or_else(|| opus::reported_percent(loss))) / 100.0;
    let lack = |kind: Kind, share: f64| {
        let share = if share == 0.0 { "none".to_owned() } else { percent(share) };
        let head = format!("{share} of the packets have {}", kind.name);
        if expected == 0.0 {
            return format!(
                "{head}: the encoder expects no loss (`expected_loss` in `opus` sets it)"
            );
        }
        let first = recording.samples_for(TRIED).min(recording.sent.len());
        let key = format!("{speech:?} {expected} {}", kind.name);
        let enough = memoised(key, || enough(&kind, &encoding, expected, &recording.sent[..first]));
        let remedy = match enough {
            Some((rate, share)) => {
                format!("with {}, {} of the packets have it", kbps(rate), percent(share))
            }
            None => format!("nor has a rate up to {} kbit/s", RATES[RATES.len() - 1]),
        };
        format!(
            "{head}: at {} of expected loss, {} have no room for it beside the speech; {remedy}",
            percent(expected),
            kbps(encoding.opus.bitrate)
        )
    };
    let near = summary.fec_ratio.filter(|share| *share == 0.0).map(|share| lack(FEC, share));
    let deep =
        summary.dred_ratio.filter(|share| *share < DRED.enough).map(|share| lack(DRED, share));
    let said: Vec<_> = [near, deep].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// A kind of redundancy.
struct Kind {
    name: &'static str,
    /// The share of packets that is enough.
    enough: f64,
    of: fn((f64, f64)) -> f64,
}

/// Packets of pauses have none.
const FEC: Kind = Kind { name: "in-band FEC", enough: 0.5, of: |shares| shares.0 };
/// With fewer, many losses are too far from a packet that has it.
const DRED: Kind = Kind { name: "DRED", enough: 0.8, of: |shares| shares.1 };

type Found = Option<(Rate, f64)>;

/// The least of [`RATES`] with enough redundancy, and the share of packets that have it.
fn enough(kind: &Kind, encoding: &Encoding, expected_loss: f64, pcm: &[i16]) -> Found {
    let rates = RATES.map(|kbps| Rate::from_bps(1000 * kbps)).into_iter();
    rates.filter(|rate| *rate > encoding.opus.bitrate).find_map(|bitrate| {
        let expected_loss = Some(expected_loss);
        let opus = opus::Config { bitrate, expected_loss, ..encoding.opus };
        let shares = opus::redundant_shares(&Encoding { opus, red: 0, ..*encoding }, pcm);
        Some((bitrate, (kind.of)(shares))).filter(|it| it.1 >= kind.enough)
    })
}

/// What was found for a call: the runs of a study, and the calls of a run, ask the same again.
fn memoised(key: String, find: impl FnOnce() -> Found) -> Found {
    static KNOWN: LazyLock<Mutex<BTreeMap<String, Found>>> = LazyLock::new(Mutex::default);
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(&key) {
        return *found;
    }
    let found = find();
    let mut known = lock();
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    known.insert(key, found);
    found
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn kbps(rate: Rate) -> String {
    format!("{} kbit/s", rate.as_bps() as f64 / 1e3)
}
