//! The recordings a scenario plays: they must be there before the run starts.

use std::fs::File;
use std::path::Path as FilePath;

use talkspurt_app::source;

use crate::model::Scenario;
use crate::path::Path;
use crate::problem::Findings;
use crate::words::nearest;

/// Checks that every recording can be opened.
pub(super) fn check_recordings(scenario: &Scenario, found: &mut Findings) {
    for (name, flow) in &scenario.flows {
        let sides = [("source", Some(&flow.source)), ("reverse", flow.reverse.as_ref())];
        for (side, source) in sides {
            let Some(source::Config::Speech(speech)) = source else { continue };
            if let Err(why) = readable(&speech.file) {
                found
                    .add(
                        Path::of(&["flows", name, side, "file"]),
                        format!("cannot read {}: {why}", speech.file.display()),
                    )
                    .hint(neighbour(&speech.file));
            }
        }
    }
}

fn readable(file: &FilePath) -> Result<(), String> {
    let opened = File::open(file).map_err(|e| plain(&e))?;
    let about = opened.metadata().map_err(|e| plain(&e))?;
    if about.is_dir() {
        return Err("it is a folder".to_owned());
    }
    if about.len() == 0 {
        return Err("it is empty".to_owned());
    }
    Ok(())
}

/// The system's words without its error number.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "it may not be read".to_owned(),
        _ => error.to_string(),
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
