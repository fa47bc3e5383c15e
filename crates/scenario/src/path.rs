//! The path of a field, the keys from the top of a scenario to it, and where its value comes from.
//!
//! Written with dots, and list elements in brackets: `flows.call.via[1]`. A plain number is also an element
//! (`axes.0.values`), and `*` matches every name.

use std::fmt;

/// The location of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin {
    /// Line of the file, from 1.
    pub(crate) line: Option<u32>,
    /// The index of its `--set`.
    pub(crate) set: Option<usize>,
    /// The indices of its axis and of the axis value.
    pub(crate) axis: Option<(usize, usize)>,
    /// Whether it was sampled from a range of a design.
    pub(crate) sampled: bool,
}

/// One word of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// A key of a table, or a name.
    Key(String),
    /// An element of a list, from 0.
    Index(usize),
}

/// The steps from the top to a field; empty for the scenario itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Path(pub(crate) Vec<Step>);

impl Path {
    /// The path along these keys.
    pub(crate) fn of(keys: &[&str]) -> Self {
        Self(keys.iter().map(|key| Step::Key((*key).to_owned())).collect())
    }
    /// This path extended by a key.
    #[must_use]
    pub(crate) fn key(&self, key: &str) -> Self {
        self.and(Step::Key(key.to_owned()))
    }
    /// This path extended by steps in written form.
    pub(crate) fn down(&self, steps: &str) -> Self {
        let below = Self::parse(steps).expect("steps of our own are well written");
        Self([self.0.as_slice(), &below.0].concat())
    }
    /// This path extended by another.
    #[must_use]
    pub(crate) fn joined(&self, below: &Self) -> Self {
        Self([self.0.as_slice(), &below.0].concat())
    }
    /// This path extended by a list element.
    #[must_use]
    pub(crate) fn index(&self, index: usize) -> Self {
        self.and(Step::Index(index))
    }
    pub(crate) fn and(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
    /// True if `other` is this field or lies inside it.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
    /// True if `other` is a direct field of the table at this path.
    pub(crate) fn is_table_of(&self, other: &Self) -> bool {
        other.0.split_last().is_some_and(|(_, table)| table == self.0)
    }
    /// The key of this field, if `other` is a field of the same table.
    pub(crate) fn key_beside(&self, other: &Self) -> Option<&str> {
        let (Step::Key(key), table) = self.0.split_last()? else { return None };
        other.0.split_last().is_some_and(|(_, beside)| beside == table).then_some(key.as_str())
    }
    /// Parses a written path; an empty word gives `None`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        for word in text.trim().split('.') {
            let (word, indices) = word.split_once('[').unwrap_or((word, ""));
            if word.is_empty() {
                return None;
            }
            steps.push(Step::Key(word.to_owned()));
            for index in indices.split('[').filter(|i| !i.is_empty()) {
                steps.push(Step::Index(index.strip_suffix(']')?.parse().ok()?));
            }
        }
        Some(Self(steps))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => {
                    if place > 0 {
                        f.write_str(".")?;
                    }
                    if key.chars().all(|c| c.is_alphanumeric() || "_-*".contains(c)) {
                        f.write_str(key)?;
                    } else {
                        write!(f, "{key:?}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["duration", "flows.call.via[1]", "links.*.delay", "axes[0].values[2]"] {
            assert_eq!(Path::parse(text).map(|p| p.to_string()).as_deref(), Some(text));
        }
        for bad in ["", "a..b", ".a", "a.", "a[x]", "a[1"] {
            assert_eq!(Path::parse(bad), None, "{bad}");
        }
    }
}
