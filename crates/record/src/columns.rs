//! Columns of a table, assembled as Arrow arrays. Counts are 64-bit integers, times are seconds as floats,
//! and missing values are null.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use talkspurt_proto::time::Instant;

/// A table as an Arrow stream gives it: a schema, and batches with that schema.
#[derive(Clone, Debug)]
pub struct Table {
    /// Names and types of the columns.
    pub schema: SchemaRef,
    /// The rows, in order; may be empty.
    pub batches: Vec<RecordBatch>,
}

impl From<RecordBatch> for Table {
    fn from(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }
}

#[derive(Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn push(mut self, name: &str, kind: DataType, array: ArrayRef) -> Self {
        self.fields.push(Field::new(name, kind, true));
        self.arrays.push(array);
        self
    }

    pub(crate) fn text<'a>(self, name: &str, values: impl Iterator<Item = &'a str>) -> Self {
        self.maybe_text(name, values.map(Some))
    }

    pub(crate) fn maybe_text<'a>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<&'a str>>,
    ) -> Self {
        self.push(name, DataType::Utf8, Arc::new(values.collect::<StringArray>()))
    }

    pub(crate) fn count(self, name: &str, values: impl Iterator<Item = u64>) -> Self {
        self.maybe_count(name, values.map(Some))
    }

    pub(crate) fn maybe_count(self, name: &str, values: impl Iterator<Item = Option<u64>>) -> Self {
        // A rate may have 64 bits, and a column's sign is one of them.
        let signed = |count| i64::try_from(count).unwrap_or(i64::MAX);
        let values = values.map(|value| value.map(signed));
        self.push(name, DataType::Int64, Arc::new(values.collect::<Int64Array>()))
    }

    pub(crate) fn float(self, name: &str, values: impl Iterator<Item = f64>) -> Self {
        self.maybe_float(name, values.map(Some))
    }

    pub(crate) fn maybe_float(self, name: &str, values: impl Iterator<Item = Option<f64>>) -> Self {
        self.push(name, DataType::Float64, Arc::new(values.collect::<Float64Array>()))
    }

    pub(crate) fn time(self, name: &str, values: impl Iterator<Item = Instant>) -> Self {
        self.float(name, values.map(Instant::as_secs_f64))
    }

    pub(crate) fn maybe_time(self, name: &str, values: impl Iterator<Item = Moment>) -> Self {
        self.maybe_float(name, values.map(Moment::as_secs_f64))
    }

    /// A column of numbers.
    pub(crate) fn number<T: Number>(self, name: &str, values: impl Iterator<Item = T>) -> Self {
        T::column(self, name, values)
    }

    pub(crate) fn finish(self) -> RecordBatch {
        let schema = Arc::new(Schema::new(self.fields));
        RecordBatch::try_new(schema, self.arrays).expect("columns of one table are of one length")
    }
}

/// A number type that a column can hold.
pub(crate) trait Number: Sized {
    fn column(columns: Columns, name: &str, values: impl Iterator<Item = Self>) -> Columns;
}

macro_rules! numbers {
    ($($type:ty: $column:ident;)*) => {
        $(impl Number for $type {
            fn column(columns: Columns, name: &str, values: impl Iterator<Item = Self>) -> Columns {
                columns.$column(name, values)
            }
        })*
    };
}
numbers! {
    u64: count;
    Option<u64>: maybe_count;
    Option<f64>: maybe_float;
}

/// Defines the row of a table as a struct, its metrics, and the function that adds their columns. The
/// metrics `of_fields` are computed from other fields.
macro_rules! summary {
    (
        $(#[$doc:meta])* $row:ident, $metrics:ident, $numbers:ident:
        fields { $($(#[$about:meta])* $field:ident: $kept:ty,)* }
        metrics { $($(#[doc = $meaning:literal])+ $name:ident: $type:ty = $metric:expr;)* }
        of_fields { $($(#[doc = $inner_doc:literal])+ $inner:ident = $get:expr, $inner_metric:expr;)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $row {
            $($(#[$about])* pub $field: $kept,)*
            $($(#[doc = $meaning])+ pub $name: $type,)*
        }

        /// The metrics of the table, in the order of its columns.
        pub const $metrics: &[Metric] = &[
            $(Metric { name: stringify!($name), meaning: concat!($($meaning),+), ..$metric },)*
            $(Metric { name: stringify!($inner), meaning: concat!($($inner_doc),+), ..$inner_metric },)*
        ];

        fn $numbers(columns: Columns, rows: &[$row]) -> Columns {
            $(let columns = columns.number(stringify!($name), rows.iter().map(|row| row.$name));)*
            $(
                let get: fn(&$row) -> _ = $get;
                let columns = columns.number(stringify!($inner), rows.iter().map(get));
            )*
            columns
        }
    };
}
pub(crate) use summary;

/// An optional instant in eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) const NEVER: Self = Self(u64::MAX);

    pub(crate) fn instant(self) -> Option<Instant> {
        (self != Self::NEVER).then(|| Instant::from_nanos(self.0))
    }

    fn as_secs_f64(self) -> Option<f64> {
        self.instant().map(Instant::as_secs_f64)
    }
}

impl From<Instant> for Moment {
    fn from(at: Instant) -> Self {
        Self(at.as_nanos())
    }
}
