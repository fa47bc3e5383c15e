//! Rows of a table by column.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::DataType;
use indexmap::{IndexMap, IndexSet};
use talkspurt_record::Table;

/// Rows of a table. A column that is not there has no values.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    length: usize,
    numbers: IndexMap<String, Vec<Option<f64>>>,
    texts: IndexMap<String, Texts>,
}

/// A column of texts, most of which occur often.
#[derive(Clone, Debug, Default)]
struct Texts {
    words: IndexSet<String>,
    places: Vec<Option<usize>>,
}

impl Texts {
    fn extend<'a>(&mut self, texts: impl IntoIterator<Item = Option<&'a str>>) {
        let mut last = None;
        for text in texts {
            if let Some(text) = text
                && last.is_none_or(|(word, _)| word != text)
            {
                let place = self.words.get_index_of(text);
                last = Some((
                    text,
                    place.unwrap_or_else(|| self.words.insert_full(text.to_owned()).0),
                ));
            }
            self.places.push(text.and(last).map(|(_, place)| place));
        }
    }

    fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        self.places.iter().map(|place| Some(self.words[(*place)?].as_str()))
    }
}

impl Rows {
    /// The rows of a table, of whose columns those of texts, integers of 64 bits and floats count.
    #[must_use]
    pub fn of(table: &Table) -> Self {
        let length = table.batches.iter().map(|batch| batch.num_rows()).sum();
        let mut rows = Self { length, ..Self::default() };
        for (place, field) in table.schema.fields().iter().enumerate() {
            let parts = table.batches.iter().map(|batch| batch.column(place));
            let name = field.name().clone();
            if is_text(field.data_type()) {
                let all = rows.texts.entry(name).or_default();
                parts.for_each(|part| all.extend(texts(part)));
            } else {
                rows.numbers.insert(name, parts.flat_map(numbers).collect());
            }
        }
        rows
    }

    /// The rows of several tables with the same columns, one below the other.
    #[must_use]
    pub fn stacked<'a>(tables: impl Iterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for rows in tables {
            all.length += rows.length;
            for (name, values) in &rows.numbers {
                all.numbers.entry(name.clone()).or_default().extend(values);
            }
            for (name, values) in &rows.texts {
                all.texts.entry(name.clone()).or_default().extend(values.iter());
            }
        }
        all
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// A number of a row.
    #[must_use]
    pub fn number(&self, column: &str, row: usize) -> Option<f64> {
        self.numbers.get(column)?.get(row).copied().flatten()
    }

    /// A text of a row.
    #[must_use]
    pub fn text(&self, column: &str, row: usize) -> Option<&str> {
        let Texts { words, places } = self.texts.get(column)?;
        Some(&words[(*places.get(row)?)?])
    }

    /// The values of a column of numbers, by row.
    pub fn column(&self, name: &str) -> impl Iterator<Item = Option<f64>> {
        self.numbers.get(name).into_iter().flatten().copied()
    }

    /// Whether a column has a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.column(name).flatten().next().is_some()
    }

    /// The columns of numbers.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, &[Option<f64>])> {
        self.numbers.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// The columns of texts.
    pub fn texts(&self) -> impl Iterator<Item = (&str, Vec<Option<&str>>)> {
        self.texts.iter().map(|(name, texts)| (name.as_str(), texts.iter().collect()))
    }

    /// The places of the rows with each text of a column, by first occurrence.
    #[must_use]
    pub fn by(&self, column: &str) -> IndexMap<&str, Vec<usize>> {
        let Some(texts) = self.texts.get(column) else { return IndexMap::new() };
        let mut found = vec![Vec::new(); texts.words.len()];
        for (row, place) in texts.places.iter().enumerate() {
            place.into_iter().for_each(|place| found[*place].push(row));
        }
        texts.words.iter().map(String::as_str).zip(found).collect()
    }

    /// The places of the rows with a text in a column.
    #[must_use]
    pub fn with(&self, column: &str, text: &str) -> Vec<usize> {
        let Some(texts) = self.texts.get(column) else { return Vec::new() };
        let word = texts.words.get_index_of(text);
        let there = |row: &usize| word.is_some() && texts.places[*row] == word;
        (0..self.length).filter(there).collect()
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, words) => is_text(words),
        _ => false,
    }
}

/// The texts of a part of a column for which [`is_text`].
fn texts(part: &ArrayRef) -> Vec<Option<&str>> {
    if let Some(texts) = part.as_string_opt::<i32>() {
        texts.iter().collect()
    } else if let Some(texts) = part.as_string_opt::<i64>() {
        texts.iter().collect()
    } else if let Some(texts) = part.as_string_view_opt() {
        texts.iter().collect()
    } else if let Some(kept) = part.as_any_dictionary_opt().filter(|kept| !kept.values().is_empty())
    {
        let (words, keys) = (texts(kept.values()), kept.normalized_keys());
        (0..part.len()).map(|row| words[keys[row]].filter(|_| part.is_valid(row))).collect()
    } else {
        vec![None; part.len()]
    }
}

fn numbers(part: &ArrayRef) -> Vec<Option<f64>> {
    if let Some(counts) = part.as_primitive_opt::<Int64Type>() {
        counts.iter().map(|count| count.map(|count| count as f64)).collect()
    } else if let Some(floats) = part.as_primitive_opt::<Float64Type>() {
        floats.iter().map(|value| value.filter(|value| !value.is_nan())).collect()
    } else {
        vec![None; part.len()]
    }
}
