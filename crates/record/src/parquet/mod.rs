//! A Parquet file written one row group at a time (apache/parquet-format: `parquet.thrift` and
//! `Encodings.md`). The `parquet` crate takes longer for the same columns (docs/tuning.md).
//!
//! A column chunk is one page, preceded by a dictionary page for strings and repeated numbers. Nothing is
//! compressed: an index has the bit width of its dictionary, and times shrink little for many times the
//! work. Memory holds one group and one encoded column of it.

mod batch;
mod encode;
mod thrift;

use std::borrow::Cow;
use std::io;

use crate::file::Output;
use encode::{absences, bits, counts, dictionary, indices, levels, seconds, width, words};
use thrift::Thrift;

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: Cow<'static, str>,
    kind: Kind,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text, never null.
    Text,
    /// 64-bit integers, never null.
    Count,
    /// Seconds as floats; NaN means null.
    Seconds,
    /// Text.
    MaybeText,
    /// 64-bit integers.
    MaybeCount,
    /// Floats.
    Number,
}

impl Kind {
    const fn is_optional(self) -> bool {
        matches!(self, Self::Seconds | Self::MaybeText | Self::MaybeCount | Self::Number)
    }
}

/// The values of a column in a group of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values<'a> {
    /// Text: indices into a list of words.
    Words(&'a [String], &'a [u32]),
    /// Integers: indices into a list of values.
    Among(&'a [i64], &'a [u32]),
    Counts(&'a [i64]),
    Seconds(&'a [f64]),
    /// Integers or floats of an optional column, as bits: which rows have one, empty if all have; and those
    /// there are.
    Bits(&'a [bool], &'a [u64]),
    /// Text of an optional column.
    MaybeWords(&'a [bool], &'a [String], &'a [u32]),
}

/// A file written in row groups.
#[derive(Debug)]
pub(crate) struct Parquet {
    output: Output,
    columns: Vec<Column>,
    /// Metadata under the key `talkspurt.columns`.
    meanings: Option<String>,
    /// Bytes written so far.
    written: u64,
    rows: u64,
    groups: Vec<Group>,
    /// The page being written.
    page: Vec<u8>,
}

#[derive(Debug)]
struct Group {
    rows: u64,
    chunks: Vec<Chunk>,
}

/// Location of a column chunk.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    dictionary: Option<u64>,
    data: u64,
    bytes: u64,
    span: Option<Span>,
}

/// Minimum, maximum and null count of the seconds in a group, so that readers of a part of a run can skip
/// groups.
#[derive(Clone, Copy, Debug)]
struct Span {
    least: f64,
    greatest: f64,
    absent: u64,
}

impl Span {
    /// None if there are no values.
    fn of(all: &[f64]) -> Option<Self> {
        let there = || all.iter().copied().filter(|value| !value.is_nan());
        let (least, greatest) = (there().reduce(f64::min)?, there().reduce(f64::max)?);
        Some(Self { least, greatest, absent: (all.len() - there().count()) as u64 })
    }

    /// None if there are no values, or if one is not a number.
    fn of_bits(all: &[u64], absent: usize) -> Option<Self> {
        let floats = || all.iter().map(|bits| f64::from_bits(*bits));
        let (least, greatest) = (floats().reduce(f64::min)?, floats().reduce(f64::max)?);
        let ordered = floats().all(|value| !value.is_nan());
        ordered.then_some(Self { least, greatest, absent: absent as u64 })
    }
}

// parquet.thrift: Encoding, PageType, Type, FieldRepetitionType, ConvertedType, CompressionCodec.
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const UTF8: i32 = 0;
const UNCOMPRESSED: i32 = 0;
const MAGIC: &[u8] = b"PAR1";

impl Parquet {
    /// Creates a table with these columns.
    pub(crate) fn new(output: Output, columns: Vec<Column>) -> Self {
        let mut file = Self {
            output,
            columns,
            meanings: None,
            written: 0,
            rows: 0,
            groups: Vec::new(),
            page: Vec::new(),
        };
        file.write(MAGIC);
        file
    }

    /// Adds metadata: JSON of the meanings of the columns.
    pub(crate) fn with_meanings(mut self, meanings: Option<String>) -> Self {
        self.meanings = meanings;
        self
    }

    /// Writes a row group: `rows` values of each column.
    pub(crate) fn group(&mut self, rows: usize, values: &[Values<'_>]) {
        let kinds: Vec<Kind> = self.columns.iter().map(|column| column.kind).collect();
        let each = kinds.into_iter().zip(values);
        let chunks = each.map(|(kind, values)| self.chunk(kind, rows, *values)).collect();
        self.rows += rows as u64;
        self.groups.push(Group { rows: rows as u64, chunks });
    }

    /// Whether a write failed; [`Parquet::finish`] returns the error.
    pub(crate) const fn failed(&self) -> bool {
        self.output.failed()
    }

    /// Writes the footer and completes the file, also on disk.
    ///
    /// # Errors
    /// The first write error; there is then no file.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.completed().finish()
    }

    /// The same without waiting for the disk, for a folder that is flushed as a whole.
    ///
    /// # Errors
    /// The first write error, without the file's name; there is then no file.
    pub(crate) fn finish_quickly(self) -> io::Result<()> {
        self.completed().finish_quickly()
    }

    fn completed(mut self) -> Output {
        let footer = self.footer();
        self.write(&footer);
        self.write(&(footer.len() as u32).to_le_bytes());
        self.write(MAGIC);
        self.output
    }

    fn write(&mut self, bytes: &[u8]) {
        self.output.write(bytes);
        self.written += bytes.len() as u64;
    }

    fn chunk(&mut self, kind: Kind, rows: usize, values: Values<'_>) -> Chunk {
        let begin = self.written;
        let mut page = std::mem::take(&mut self.page);
        page.clear();
        let known = match values {
            Values::Bits(_, all) => dictionary(all),
            _ => None,
        };
        let known = known.as_ref().map(|(all, each)| (&all[..], &each[..]));
        let length = dictionary_page(values, known.map(|(all, _)| all), &mut page);
        if let Some(length) = length {
            self.write_page(DICTIONARY_PAGE, PLAIN, length, &page);
            page.clear();
        }
        let span = match values {
            Values::Seconds(all) => Span::of(all),
            Values::Bits(_, all) if kind == Kind::Number => {
                Span::of_bits(known.map_or(all, |(all, _)| all), rows - all.len())
            }
            _ => None,
        };
        match values {
            Values::Seconds(all) => absences(all, &mut page),
            Values::Bits(present, _) | Values::MaybeWords(present, ..) => {
                levels(rows, present, &mut page);
            }
            Values::Words(..) | Values::Among(..) | Values::Counts(_) => {}
        }
        match (values, known) {
            (
                Values::Words(_, each) | Values::Among(_, each) | Values::MaybeWords(_, _, each),
                _,
            ) => {
                among(length, each, &mut page);
            }
            (Values::Bits(..), Some((_, each))) => among(length, each, &mut page),
            (Values::Bits(_, all), None) => bits(all, &mut page),
            (Values::Counts(all), _) => counts(all, &mut page),
            (Values::Seconds(all), _) => seconds(all, &mut page),
        }
        let data = self.written;
        let encoding = if length.is_some() { RLE_DICTIONARY } else { PLAIN };
        self.write_page(DATA_PAGE, encoding, rows, &page);
        self.page = page;
        Chunk { dictionary: length.map(|_| begin), data, bytes: self.written - begin, span }
    }

    /// Writes a page of `values` values, preceded by its header.
    fn write_page(&mut self, kind: i32, encoding: i32, values: usize, page: &[u8]) {
        let mut header = Thrift::default();
        header.i32(1, kind).i32(2, page.len() as i32).i32(3, page.len() as i32);
        // The header of a data page or of a dictionary page.
        header.begin(if kind == DATA_PAGE { 5 } else { 7 });
        header.i32(1, values as i32).i32(2, encoding);
        if kind == DATA_PAGE {
            header.i32(3, RLE).i32(4, RLE);
        }
        header.end().end();
        self.write(header.bytes());
        self.write(page);
    }

    /// `FileMetaData`.
    fn footer(&self) -> Vec<u8> {
        let mut meta = Thrift::default();
        meta.i32(1, 1).list(2, self.columns.len() + 1);
        meta.item().text(4, "schema").i32(5, self.columns.len() as i32).end();
        for column in &self.columns {
            schema(column, &mut meta);
        }
        meta.i64(3, self.rows as i64).list(4, self.groups.len());
        for group in &self.groups {
            meta.item().list(1, group.chunks.len());
            for (column, chunk) in self.columns.iter().zip(&group.chunks) {
                about(column, chunk, group.rows, &mut meta);
            }
            let bytes: u64 = group.chunks.iter().map(|chunk| chunk.bytes).sum();
            meta.i64(2, bytes as i64).i64(3, group.rows as i64).end();
        }
        if let Some(meanings) = &self.meanings {
            // `KeyValue`.
            meta.list(5, 1).item().text(1, "talkspurt.columns").text(2, meanings).end();
        }
        meta.text(6, concat!("talkspurt ", env!("CARGO_PKG_VERSION")));
        // `ColumnOrder`: each column has the order of its type.
        meta.list(7, self.columns.len());
        for _ in &self.columns {
            meta.item().begin(1).end().end();
        }
        meta.end();
        meta.bytes().to_vec()
    }
}

/// Writes the values of a dictionary, and returns their number; `None` if the column has none.
fn dictionary_page(values: Values<'_>, known: Option<&[u64]>, page: &mut Vec<u8>) -> Option<usize> {
    match (values, known) {
        (Values::Words(all, _) | Values::MaybeWords(_, all, _), _) if !all.is_empty() => {
            words(all, page);
            Some(all.len())
        }
        (Values::Among(all, _), _) => {
            counts(all, page);
            Some(all.len())
        }
        (_, Some(all)) => {
            bits(all, page);
            Some(all.len())
        }
        _ => None,
    }
}

/// Indices into a dictionary of this length; none without a dictionary.
fn among(length: Option<usize>, each: &[u32], page: &mut Vec<u8>) {
    if let Some(length) = length {
        let bits = width(length);
        page.push(bits as u8);
        indices(each, bits, page);
    }
}

impl Column {
    pub(crate) const fn of(name: &'static str, kind: Kind) -> Self {
        Self { name: Cow::Borrowed(name), kind }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    const fn stored(&self) -> i32 {
        match self.kind {
            Kind::Text | Kind::MaybeText => BYTE_ARRAY,
            Kind::Count | Kind::MaybeCount => INT64,
            Kind::Seconds | Kind::Number => DOUBLE,
        }
    }
}

/// `SchemaElement`.
fn schema(column: &Column, meta: &mut Thrift) {
    let repetition = if column.kind.is_optional() { OPTIONAL } else { REQUIRED };
    meta.item().i32(1, column.stored()).i32(3, repetition).text(4, &column.name);
    if column.stored() == BYTE_ARRAY {
        // `LogicalType` STRING, and its legacy name.
        meta.i32(6, UTF8).begin(10).begin(1).end().end();
    }
    meta.end();
}

/// `ColumnChunk` with its `ColumnMetaData`.
fn about(column: &Column, chunk: &Chunk, rows: u64, meta: &mut Thrift) {
    meta.item().i64(2, 0).begin(3).i32(1, column.stored());
    let encodings: &[i32] = match chunk.dictionary {
        Some(_) => &[PLAIN, RLE, RLE_DICTIONARY],
        None => &[PLAIN, RLE],
    };
    meta.integers(2, encodings).texts(3, &[&column.name]).i32(4, UNCOMPRESSED);
    let bytes = chunk.bytes as i64;
    meta.i64(5, rows as i64).i64(6, bytes).i64(7, bytes).i64(9, chunk.data as i64);
    if let Some(dictionary) = chunk.dictionary {
        meta.i64(11, dictionary as i64);
    }
    if let Some(Span { least, greatest, absent }) = chunk.span {
        // `Statistics`.
        meta.begin(12).i64(3, absent as i64);
        meta.binary(5, &greatest.to_le_bytes()).binary(6, &least.to_le_bytes()).end();
    }
    meta.end().end();
}
