//! Rows of a table by column.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array as _, ArrayRef};
use indexmap::IndexMap;
use talkspurt_record::Table;

/// Rows of a table. A column that is not there has no values.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    length: usize,
    numbers: IndexMap<String, Vec<Option<f64>>>,
    texts: IndexMap<String, Vec<Option<String>>>,
}

impl Rows {
    /// The rows of a table.
    #[must_use]
    pub fn of(table: &Table) -> Self {
        let length = table.batches.iter().map(|batch| batch.num_rows()).sum();
        let mut rows = Self { length, ..Self::default() };
        for (place, field) in table.schema.fields().iter().enumerate() {
            let parts = || table.batches.iter().map(|batch| batch.column(place));
            let name = field.name().clone();
            if parts().all(|part| part.as_string_opt::<i32>().is_some()) {
                rows.texts.insert(name, parts().flat_map(texts).collect());
            } else {
                rows.numbers.insert(name, parts().flat_map(numbers).collect());
            }
        }
        rows
    }

    /// Rows with these columns.
    #[must_use]
    pub fn with(
        numbers: IndexMap<String, Vec<Option<f64>>>,
        texts: IndexMap<String, Vec<Option<String>>>,
    ) -> Self {
        let lengths = numbers.values().map(Vec::len).chain(texts.values().map(Vec::len));
        Self { length: lengths.max().unwrap_or(0), numbers, texts }
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
    pub fn texts(&self) -> impl Iterator<Item = (&str, &[Option<String>])> {
        self.texts.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
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
}

fn texts(part: &ArrayRef) -> Vec<Option<String>> {
    part.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
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
