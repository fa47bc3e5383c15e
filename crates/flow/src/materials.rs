//! File contents that sources need.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::Arc;

use talkspurt_app::file::Files;
use talkspurt_app::source::{Config, Material};
use talkspurt_scenario::model::Scenario;

/// File contents that the sources of a scenario need; each file is read once.
#[derive(Clone, Debug, Default)]
pub struct Materials {
    by_file: BTreeMap<Key, Material>,
}

/// A file, and the part that is used: a codec's name or a synchronisation source.
type Key = (PathBuf, String);

impl Materials {
    /// Reads the files named by the sources of a scenario.
    ///
    /// # Errors
    /// The first file that cannot be read.
    pub fn load(scenario: &Scenario, files: &dyn Files) -> Result<Self, String> {
        let mut materials = Self::default();
        for flow in scenario.flows.values() {
            for source in [Some(&flow.source), flow.reverse.as_ref()].into_iter().flatten() {
                let Some(key) = key(source) else { continue };
                if let Entry::Vacant(vacant) = materials.by_file.entry(key) {
                    vacant.insert(source.load(files)?);
                }
            }
        }
        Ok(materials)
    }

    /// The same for a run whose sound nobody hears. Packets have the same lengths.
    #[must_use]
    pub fn unheard(mut self) -> Self {
        for material in self.by_file.values_mut() {
            if let Material::Speech(recording) = material {
                Arc::make_mut(recording).is_unheard = true;
            }
        }
        self
    }

    /// Adds the material of a source without reading its file. A source without a file is ignored.
    pub fn insert(&mut self, source: &Config, material: Material) {
        if let Some(key) = key(source) {
            self.by_file.insert(key, material);
        }
    }

    /// The material of a source.
    #[must_use]
    pub fn of(&self, source: &Config) -> Material {
        key(source).and_then(|key| self.by_file.get(&key).cloned()).unwrap_or_default()
    }
}

fn key(source: &Config) -> Option<Key> {
    Some((source.file()?.to_owned(), source.part_of_file()))
}
