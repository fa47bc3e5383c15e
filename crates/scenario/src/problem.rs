//! What is wrong with a scenario, said so that its writer can mend it.
//!
//! Checks leave a `Finding`: a path, what was expected, perhaps a better word. Reading then looks
//! up where that path was written and makes a [`Problem`] of it.

use std::fmt;

use talkspurt_proto::validate::ConfigError;

use crate::path::Path;
use crate::tree::Origin;

/// One thing that is wrong, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// File name, or the `--set PATH=VALUE` it came from; empty when neither is known.
    pub file: String,
    /// Line of the file, from 1.
    pub line: Option<u32>,
    /// The field, such as `flows.call.transport.kind`; empty for the file as a whole.
    pub path: String,
    /// What is wrong and what was expected.
    pub message: String,
    /// What may have been meant.
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

/// Everything that is wrong with a scenario, in the order of the file.
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

/// A problem before it is known where its field was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) path: Path,
    /// Where it was written, if the check saw the text.
    pub(crate) origin: Option<Origin>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Findings beyond which no more are gathered, only counted.
const MOST: usize = 10_000;
/// Letters of a message, a path or a hint that are shown.
const LONGEST: usize = 400;

/// Problems gathered so far, and how many more were only counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings(pub(crate) Vec<Finding>, pub(crate) usize);

impl Findings {
    /// Whether so much is wrong that further faults of the same sort are only counted.
    pub(crate) fn full(&self) -> bool {
        self.0.len() >= MOST
    }
    /// Notes that the field at `path` is wrong.
    pub(crate) fn add(&mut self, path: Path, message: impl Into<String>) -> &mut Finding {
        self.0.push(Finding::new(path, message.into()));
        self.0.last_mut().expect("just pushed")
    }
    /// Adds the errors of a configuration that is at `path`.
    pub(crate) fn add_errors(&mut self, path: &Path, errors: Vec<ConfigError>) {
        for ConfigError { key, why, hint } in errors {
            let path = if key.is_empty() { path.clone() } else { path.down(&key) };
            self.add(path, why).hint(hint);
        }
    }
}

impl Finding {
    /// That the field at `path` is wrong.
    pub(crate) fn new(path: Path, message: String) -> Self {
        Self { path, origin: None, message, hint: None }
    }
    /// Says what may have been meant.
    pub(crate) fn hint(&mut self, hint: impl Into<Option<String>>) -> &mut Self {
        self.hint = hint.into();
        self
    }
    /// Says where the field was written.
    pub(crate) fn at(&mut self, origin: &Origin) -> &mut Self {
        self.origin = Some(origin.clone());
        self
    }
    /// The problem without a place, for scenarios that were not read from text.
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

/// A text, cut where a reader would stop.
pub(crate) fn clip(mut text: String, letters: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(letters) {
        text.truncate(end);
        text.push('…');
    }
    text
}
