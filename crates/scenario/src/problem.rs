//! Problems in a scenario, reported with enough context to correct them.
//!
//! Checks produce a `Finding`: a path, the expectation, and perhaps a hint. The loader then locates the
//! path in the text and converts it to a [`Problem`].

use std::fmt;
use std::path::Path as FilePath;

use talkspurt_proto::validate::ConfigError;

use crate::path::{Origin, Path};

/// One problem, and how to correct it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// File name, or the `--set PATH=VALUE` it came from; empty if unknown.
    pub file: String,
    /// Line of the file, from 1.
    pub line: Option<u32>,
    /// The field, such as `flows.call.transport.kind`; empty for the file as a whole.
    pub path: String,
    /// What is wrong and what was expected.
    pub message: String,
    /// A likely correction.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            f.write_str(&self.file)?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " – {hint}"))
    }
}

/// All problems of a scenario, in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A problem before its field is located in the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) path: Path,
    /// Its location, if the check saw the text.
    pub(crate) origin: Option<Origin>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Findings after which further ones are only counted.
const MOST: usize = 10_000;
/// Notes that are kept.
const MAX_NOTES: usize = 40;
/// Maximum letters of a displayed message, path or hint.
const LONGEST: usize = 400;

/// Collected problems, the number of those only counted, and notes: what is no problem but may surprise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings(pub(crate) Vec<Finding>, pub(crate) usize, pub(crate) Vec<String>);

impl Findings {
    /// Whether further findings are only counted.
    pub(crate) fn full(&self) -> bool {
        self.0.len() >= MOST
    }
    /// Reports that the field at `path` is wrong.
    pub(crate) fn add(&mut self, path: Path, message: impl Into<String>) -> &mut Finding {
        self.0.push(Finding::new(path, message.into()));
        self.0.last_mut().expect("just pushed")
    }
    /// Notes how the `file` that the field at `path` names was read.
    pub(crate) fn note(&mut self, path: &Path, file: &FilePath, note: &str) {
        let note = clip(format!("{path}: {}: {note}", file.display()), LONGEST);
        if !self.2.contains(&note) && self.2.len() < MAX_NOTES {
            self.2.push(note);
        }
    }
    /// Adds the errors of the configuration at `path`.
    pub(crate) fn add_errors(&mut self, path: &Path, errors: Vec<ConfigError>) {
        for ConfigError { key, why, hint } in errors {
            let path = if key.is_empty() { path.clone() } else { path.down(&key) };
            self.add(path, why).hint(hint);
        }
    }
}

impl Finding {
    /// The field at `path` is wrong.
    pub(crate) fn new(path: Path, message: String) -> Self {
        Self { path, origin: None, message, hint: None }
    }
    /// Whether it may be there only because this field is not: it is about the field, its table, or a neighbour
    /// that is not valid without it, as its message says.
    pub(crate) fn follows_from(&self, field: &Path) -> bool {
        let names = |name: &str| {
            let mut words = self.message.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.any(|word| word == name)
        };
        self.path == *field
            || self.path.is_table_of(field)
            || field.key_beside(&self.path).is_some_and(names)
    }
    /// Sets the likely correction.
    pub(crate) fn hint(&mut self, hint: impl Into<Option<String>>) -> &mut Self {
        self.hint = hint.into();
        self
    }
    /// Sets the location of the field.
    pub(crate) fn at(&mut self, origin: &Origin) -> &mut Self {
        self.origin = Some(origin.clone());
        self
    }
    /// The problem without a location, for scenarios that were not read from text.
    pub(crate) fn placeless(self) -> Problem {
        Problem {
            file: String::new(),
            line: None,
            path: clip(self.path.to_string(), LONGEST),
            message: clip(self.message, LONGEST),
            hint: self.hint.map(|hint| clip(hint, LONGEST)),
        }
    }
}

/// A text, truncated to a readable length.
pub(crate) fn clip(mut text: String, letters: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(letters) {
        text.truncate(end);
        text.push('…');
    }
    text
}
