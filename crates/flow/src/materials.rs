//! What sources need from files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use talkspurt_app::file::Files;
use talkspurt_app::recording::Recording;
use talkspurt_app::source::{Capture, Config, FrameTrace, Material};
use talkspurt_scenario::model::Scenario;

/// What the sources of a scenario need from files, each read once.
#[derive(Clone, Debug, Default)]
pub struct Materials {
    by_file: BTreeMap<Key, Material>,
}

/// A file, and what is taken from it: a codec's name or a synchronisation source.
type Key = (PathBuf, String);

impl Materials {
    /// Reads the files that the sources of a scenario name.
    ///
    /// # Errors
    /// The first file that cannot be read.
    pub fn load(scenario: &Scenario, files: &dyn Files) -> Result<Self, String> {
        let mut materials = Self::default();
        for flow in scenario.flows.values() {
            for source in [Some(&flow.source), flow.reverse.as_ref()].into_iter().flatten() {
                let Some(key) = key(source) else { continue };
                if !materials.by_file.contains_key(&key)
                    && let Some(material) = read(source, files)?
                {
                    materials.by_file.insert(key, material);
                }
            }
        }
        Ok(materials)
    }

    /// Adds what a source is to take from its file, without reading the file. A source without a file
    /// takes nothing.
    pub fn insert(&mut self, source: &Config, material: Material) {
        if let Some(key) = key(source) {
            self.by_file.insert(key, material);
        }
    }

    /// What a source takes from its file.
    #[must_use]
    pub fn of(&self, source: &Config) -> Material {
        key(source).and_then(|key| self.by_file.get(&key).cloned()).unwrap_or_default()
    }
}

fn read(source: &Config, files: &dyn Files) -> Result<Option<Material>, String> {
    let Some(path) = source.file() else { return Ok(None) };
    let named = |fault: String| format!("{}: {fault}", path.display());
    Ok(Some(match source {
        Config::Speech(speech) => {
            let recording = Recording::open(files, path, speech.codec);
            Material::Speech(Arc::new(recording.map_err(|fault| fault.to_string())?))
        }
        Config::Video(_) => {
            Material::Frames(Arc::new(FrameTrace::open(files, path).map_err(named)?))
        }
        Config::Replay(replay) => {
            let capture = Capture::open(files, path, replay.ssrc).map_err(named)?;
            Material::Packets(Arc::new(capture))
        }
        _ => return Ok(None),
    }))
}

fn key(source: &Config) -> Option<Key> {
    let file = source.file()?.to_owned();
    Some((
        file,
        match source {
            Config::Speech(speech) => speech.codec.name().to_owned(),
            Config::Replay(replay) => format!("{:?}", replay.ssrc),
            _ => String::new(),
        },
    ))
}
