//! Checks the recordings of a scenario before the run starts.

use std::path::{Path as FilePath, PathBuf};

use talkspurt_app::file::Files;
use talkspurt_app::recording::Recording;
use talkspurt_app::source;
use talkspurt_proto::time::Duration;

use crate::model::{Flow, Scenario};
use crate::path::Path;
use crate::problem::Findings;
use crate::words::nearest;

/// Speech kept for listening, over all flows of a run: reference, degraded signal and the frames between
/// take five bytes a sample, 1.7 GB in 12 hours.
const MAX_SPEECH: Duration = Duration::from_secs(12 * 3600);

/// Checks that every recording can be read, decoded and encoded, by doing so, and that the speech of the
/// `run` fits the limit.
pub(super) fn check_recordings(
    scenario: &Scenario,
    files: &dyn Files,
    run: Duration,
    found: &mut Findings,
) {
    let mut sound: Vec<((PathBuf, &str), Duration)> = Vec::new();
    let mut kept = Duration::ZERO;
    for (name, flow) in &scenario.flows {
        let sides = [("source", Some(&flow.source)), ("reverse", flow.reverse.as_ref())];
        for (side, source) in sides {
            let Some(source::Config::Speech(speech)) = source else { continue };
            let Some(file) = &speech.file else { continue };
            // Codecs without an encoder were reported before.
            if speech.encodings().iter().any(|it| it.mute_error().is_some()) {
                continue;
            }
            let known = (file.clone(), speech.codec.spec().name);
            let length = match sound.iter().find(|(other, _)| *other == known) {
                Some((_, length)) => *length,
                None => match Recording::open(files, file, &speech.encodings(), None) {
                    Ok(recording) => recording.duration(),
                    Err(fault) => {
                        let path = Path::of(&["flows", name, side, "file"]);
                        let hint = neighbour(files, file);
                        found.add(path, fault.to_string()).hint(hint);
                        continue;
                    }
                },
            };
            sound.push((known, length));
            kept += said(flow, speech, length, run) * flow.members() as u64;
        }
    }
    if kept > MAX_SPEECH && run < Duration::MAX {
        let message = format!(
            "{:.1} hours of recorded speech in all flows; at most {:.0} are kept in memory to be heard",
            kept.as_secs_f64() / 3600.0,
            MAX_SPEECH.as_secs_f64() / 3600.0
        );
        let hint = "without `file` packets are the same, only unheard".to_owned();
        found.add(Path::of(&["flows"]), message).hint(hint);
    }
}

/// The duration of speech in the run from a recording of this `length`.
fn said(flow: &Flow, speech: &source::Speech, length: Duration, run: Duration) -> Duration {
    let end = flow.stop.unwrap_or(run).min(run);
    let time = end.saturating_sub(flow.start + speech.lead);
    if speech.repeat { time } else { time.min(length) }
}

/// A WAV file in the same folder with a similar name, if there is none with this name.
fn neighbour(files: &dyn Files, file: &FilePath) -> Option<String> {
    let mut names = files.names(file.parent()?);
    let name = file.file_name()?.to_str()?;
    if names.iter().any(|other| other == name) {
        return None;
    }
    names.retain(|name| name.to_lowercase().ends_with(".wav"));
    names.sort();
    let near = nearest(name, names.iter().map(String::as_str))?;
    Some(format!("did you mean {near:?}?"))
}
