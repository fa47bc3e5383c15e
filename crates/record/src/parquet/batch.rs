//! Row groups from Arrow batches of text, integers and floats.

use std::borrow::Cow;
use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Schema};

use super::{Column, Kind, Parquet, Values};

impl Column {
    /// The columns of a batch.
    pub(crate) fn of_schema(schema: &Schema) -> Vec<Self> {
        let column = |field: &std::sync::Arc<arrow_schema::Field>| {
            let kind = match field.data_type() {
                DataType::Utf8 => Kind::MaybeText,
                DataType::Int64 => Kind::MaybeCount,
                DataType::Float64 => Kind::Number,
                other => unreachable!("no table has a column of {other}"),
            };
            Self { name: Cow::Owned(field.name().clone()), kind }
        };
        schema.fields().iter().map(column).collect()
    }
}

/// The values of a column.
enum Held {
    Bits(Vec<bool>, Vec<u64>),
    Words(Vec<bool>, Vec<String>, Vec<u32>),
}

impl Held {
    fn of(column: &ArrayRef) -> Self {
        let present: Vec<bool> = match column.null_count() {
            0 => Vec::new(),
            _ => (0..column.len()).map(|row| column.is_valid(row)).collect(),
        };
        match column.data_type() {
            DataType::Utf8 => {
                let (words, indices) = words(column.as_string());
                Self::Words(present, words, indices)
            }
            DataType::Int64 => {
                let values = column.as_primitive::<Int64Type>().iter();
                Self::Bits(present, values.flatten().map(|value| value as u64).collect())
            }
            _ => {
                let values = column.as_primitive::<Float64Type>().iter();
                Self::Bits(present, values.flatten().map(f64::to_bits).collect())
            }
        }
    }

    fn values(&self) -> Values<'_> {
        match self {
            Self::Bits(present, bits) => Values::Bits(present, bits),
            Self::Words(present, words, indices) => Values::MaybeWords(present, words, indices),
        }
    }
}

/// The distinct texts, and the index of each.
fn words(texts: &StringArray) -> (Vec<String>, Vec<u32>) {
    let (mut known, mut words) = (BTreeMap::new(), Vec::new());
    let mut last: Option<(&str, u32)> = None;
    let indices = texts.iter().flatten().map(|text| {
        // Most columns repeat a text many times in a row.
        if let Some((_, index)) = last.filter(|(before, _)| *before == text) {
            return index;
        }
        let index = *known.entry(text).or_insert_with(|| {
            words.push(text.to_owned());
            words.len() as u32 - 1
        });
        last = Some((text, index));
        index
    });
    let indices = indices.collect();
    (words, indices)
}

impl Parquet {
    /// Writes a batch with the columns of this file as a row group.
    pub(crate) fn batch(&mut self, batch: &RecordBatch) {
        let held: Vec<Held> = batch.columns().iter().map(Held::of).collect();
        let values: Vec<Values<'_>> = held.iter().map(Held::values).collect();
        self.group(batch.num_rows(), &values);
    }
}
