//! The recordings a scenario plays: they must be there before the run starts.

use std::path::Path as FilePath;

use talkspurt_app::recording::Recording;
use talkspurt_app::source;

use crate::model::Scenario;
use crate::path::Path;
use crate::problem::Findings;
use crate::words::nearest;

/// Checks that every recording can be read, decoded and encoded, by reading it.
pub(super) fn check_recordings(scenario: &Scenario, found: &mut Findings) {
    let mut sound = Vec::new();
    for (name, flow) in &scenario.flows {
        let sides = [("source", Some(&flow.source)), ("reverse", flow.reverse.as_ref())];
        for (side, source) in sides {
            let Some(source::Config::Speech(speech)) = source else { continue };
            let Some(file) = &speech.file else { continue };
            let known = (file.clone(), speech.codec.name());
            if sound.contains(&known) {
                continue;
            }
            match Recording::open(file, speech.codec) {
                Ok(_) => sound.push(known),
                Err(fault) => {
                    let path = Path::of(&["flows", name, side, "file"]);
                    let finding = found.add(path, fault.to_string());
                    if let Some(hint) = neighbour(file).filter(|_| !file.exists()) {
                        finding.hint(hint);
                    }
                }
            }
        }
    }
}

/// A WAV file beside the missing one with a similar name.
fn neighbour(file: &FilePath) -> Option<String> {
    let mut names: Vec<String> = std::fs::read_dir(file.parent()?)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.to_lowercase().ends_with(".wav"))
        .collect();
    names.sort();
    let near = nearest(file.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    if file.file_name()? == near { None } else { Some(format!("did you mean {near:?}?")) }
}
