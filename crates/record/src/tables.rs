//! The tables of a run as Parquet files in a folder. A table without rows has no file.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::file::Output;
use crate::parquet::{Column, Parquet};
use crate::spool::Beyond;

/// Rows of a group: a few megabytes while it is filled.
pub(crate) const GROUP_ROWS: usize = 1 << 16;

/// Names of all tables.
pub(crate) const NAMES: [&str; 8] =
    ["flows", "links", "series", "link_series", "gauges", "frames", "video_frames", "events"];

/// The tables that a recorder keeps besides those of flows and links, and where.
#[derive(Clone, Debug)]
pub enum Tables {
    /// Those with these names, in memory.
    Memory(Vec<&'static str>),
    /// All, in files.
    Folder(Folder),
}

impl Tables {
    /// All, in memory.
    #[must_use]
    pub fn memory() -> Self {
        Self::Memory(NAMES.to_vec())
    }

    /// Those with these names, in memory. Names that are not in
    /// [`Recording::TABLES`](crate::Recording::TABLES) are ignored.
    #[must_use]
    pub fn named(names: &[String]) -> Self {
        let known = NAMES.into_iter();
        Self::Memory(known.filter(|known| names.iter().any(|name| name == known)).collect())
    }

    /// Whether a table is kept.
    #[must_use]
    pub fn keeps(&self, table: &str) -> bool {
        match self {
            Self::Memory(names) => names.contains(&table),
            Self::Folder(_) => true,
        }
    }

    pub(crate) const fn folder(&self) -> Option<&Folder> {
        match self {
            Self::Memory(_) => None,
            Self::Folder(folder) => Some(folder),
        }
    }

    /// Where tables continue when their memory is full.
    pub(crate) fn beyond(&self) -> Beyond {
        self.folder().map_or(Beyond::Memory, |folder| Beyond::Folder(folder.path.clone()))
    }
}

/// JSON by table and column.
pub type Meanings = BTreeMap<String, BTreeMap<String, String>>;

/// A table that could not be written.
#[derive(Debug)]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

/// A folder for tables.
#[derive(Clone, Debug)]
pub struct Folder {
    /// An existing folder.
    pub path: PathBuf,
    /// By table and column: a JSON value of what the column means, for the metadata under the key
    /// `talkspurt.columns`.
    pub meanings: Arc<Meanings>,
}

impl Folder {
    /// Creates the file of a table. A failure is kept like a failure to write.
    pub(crate) fn create(&self, table: &str, columns: Vec<Column>) -> Parquet {
        let meanings = self.meanings.get(table).map(|meanings| {
            let names = columns.iter().map(Column::name);
            let known = names.filter_map(|name| meanings.get(name).map(|json| (name, json)));
            // Names of columns need no escapes.
            let fields: Vec<String> =
                known.map(|(name, json)| format!("\"{name}\": {json}")).collect();
            format!("{{{}}}", fields.join(", "))
        });
        let output = Output::create_or_fail(self.file(table));
        Parquet::new(output, columns).with_meanings(meanings)
    }

    pub(crate) fn file(&self, table: &str) -> PathBuf {
        self.path.join(format!("{table}.parquet"))
    }

    /// Writes a table of `rows` rows, which `part` returns in parts; returns whether it has rows.
    ///
    /// # Errors
    /// The first error of `part` or of writing.
    pub(crate) fn write(
        &self,
        table: &str,
        rows: usize,
        part: impl Fn(Range<usize>) -> io::Result<RecordBatch>,
    ) -> io::Result<bool> {
        let mut file = None;
        for rows in parts(rows) {
            let rows = part(rows)?;
            let columns = || Column::of_schema(&rows.schema());
            file.get_or_insert_with(|| self.create(table, columns())).batch(&rows);
        }
        file.map_or(Ok(false), |file| file.finish_quickly().map(|()| true))
    }
}

/// Rows `0..rows` in groups.
pub(crate) fn parts(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(GROUP_ROWS).map(move |first| first..(first + GROUP_ROWS).min(rows))
}
