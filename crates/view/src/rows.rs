//! Rows of a table by column.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, new_empty_array};
use arrow_schema::DataType;
use indexmap::{IndexMap, IndexSet};
use serde::Deserialize;
use talkspurt_record::Table;

/// Rows of a table. A column that is not there has no values. In JSON it is an object of columns.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "IndexMap<String, Column>")]
pub struct Rows {
    length: usize,
    numbers: IndexMap<String, Vec<Option<f64>>>,
    /// Equal texts of a table are shared: a table of gauges has millions.
    texts: IndexMap<String, Vec<Option<Arc<str>>>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Column {
    Numbers(Vec<Option<f64>>),
    Texts(Vec<Option<String>>),
}

impl From<IndexMap<String, Column>> for Rows {
    fn from(columns: IndexMap<String, Column>) -> Self {
        let (mut rows, mut shared) = (Self::default(), IndexSet::new());
        for (name, column) in columns {
            let length = match column {
                Column::Numbers(values) => rows.numbers.entry(name).or_insert(values).len(),
                Column::Texts(values) => {
                    let texts = values.into_iter().map(|it| Some(share(&mut shared, &it?)));
                    rows.texts.entry(name).or_insert(texts.collect()).len()
                }
            };
            rows.length = rows.length.max(length);
        }
        rows
    }
}

impl Rows {
    /// The rows of a table, of whose columns those of texts, integers of 64 bits and floats count.
    #[must_use]
    pub fn of(table: &Table) -> Self {
        let length = table.batches.iter().map(|batch| batch.num_rows()).sum();
        let mut rows = Self { length, ..Self::default() };
        let mut shared = IndexSet::new();
        for (place, field) in table.schema.fields().iter().enumerate() {
            let parts = table.batches.iter().map(|batch| batch.column(place));
            let name = field.name().clone();
            if texts(&new_empty_array(field.data_type())).is_some() {
                let all = parts.filter_map(texts).flatten();
                rows.texts.insert(name, all.map(|text| Some(share(&mut shared, text?))).collect());
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
                all.texts.entry(name.clone()).or_default().extend_from_slice(values);
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
        self.texts.get(column)?.get(row)?.as_deref()
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
        let all = self.texts.iter();
        all.map(|(name, texts)| (name.as_str(), texts.iter().map(Option::as_deref).collect()))
    }

    /// The places of the rows with each text of a column, by first occurrence.
    #[must_use]
    pub fn by(&self, column: &str) -> IndexMap<&str, Vec<usize>> {
        let mut found: IndexMap<&str, Vec<usize>> = IndexMap::new();
        for (row, text) in self.texts.get(column).into_iter().flatten().enumerate() {
            found.entry(text.as_deref().unwrap_or_default()).or_default().push(row);
        }
        found
    }

    /// The places of the rows with a text in a column.
    #[must_use]
    pub fn with(&self, column: &str, text: &str) -> Vec<usize> {
        (0..self.length).filter(|&row| self.text(column, row) == Some(text)).collect()
    }
}

fn share(shared: &mut IndexSet<Arc<str>>, text: &str) -> Arc<str> {
    shared.get(text).cloned().unwrap_or_else(|| {
        let text: Arc<str> = text.into();
        shared.insert(text.clone());
        text
    })
}

/// The texts of an array; none of another type.
fn texts(part: &ArrayRef) -> Option<Vec<Option<&str>>> {
    Some(match part.data_type() {
        DataType::Utf8 => part.as_string::<i32>().iter().collect(),
        DataType::LargeUtf8 => part.as_string::<i64>().iter().collect(),
        DataType::Utf8View => part.as_string_view().iter().collect(),
        DataType::Dictionary(..) => {
            let kept = part.as_any_dictionary();
            let words = texts(kept.values())?;
            // Keys of an array without words cannot be normalized.
            let keys = if words.is_empty() { Vec::new() } else { kept.normalized_keys() };
            let word = |row: usize| words[keys[row]];
            (0..part.len()).map(|row| part.is_valid(row).then(|| word(row)).flatten()).collect()
        }
        _ => return None,
    })
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

#[cfg(test)]
mod tests {
    use arrow_array::types::Int8Type;
    use arrow_array::{
        DictionaryArray, LargeStringArray, RecordBatch, StringArray, StringViewArray,
    };

    use super::*;

    #[test]
    fn texts_of_all_types_are_read() {
        let expected = [Some("a"), None, Some("b"), Some("a")];
        let columns: [(&str, ArrayRef); 5] = [
            ("plain", Arc::new(StringArray::from(expected.to_vec()))),
            ("large", Arc::new(LargeStringArray::from(expected.to_vec()))),
            ("view", Arc::new(StringViewArray::from(expected.to_vec()))),
            ("kept", Arc::new(expected.into_iter().collect::<DictionaryArray<Int8Type>>())),
            ("none", Arc::new([None; 4].into_iter().collect::<DictionaryArray<Int8Type>>())),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("equal lengths");
        let rows = Rows::of(&Table { schema: batch.schema(), batches: vec![batch.clone(), batch] });
        assert_eq!(rows.len(), 8);
        for (name, texts) in rows.texts() {
            let expected = if name == "none" { [None; 4] } else { expected };
            assert_eq!(texts, [expected, expected].concat(), "{name}");
        }
        assert_eq!((rows.texts().count(), rows.with("kept", "a")), (5, vec![0, 3, 4, 7]));
    }
}
