//! A Parquet file written one row group at a time (apache/parquet-format: `parquet.thrift` and
//! `Encodings.md`), for the one table with a row per packet and hop. Python writes the short tables of a
//! run.
//!
//! A column chunk is one page, preceded by a dictionary page for strings and repeated numbers. Nothing is
//! compressed: an index has the bit width of its dictionary, and times shrink little for many times the
//! work. Memory holds one group and one encoded column of it.

mod encode;
mod thrift;

use std::io;

use crate::file::Output;
use encode::{absences, counts, indices, seconds, width, words};
use thrift::Thrift;

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
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
}

/// A file written in row groups.
#[derive(Debug)]
pub(crate) struct Parquet {
    output: Output,
    columns: &'static [Column],
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
    pub(crate) fn new(output: Output, columns: &'static [Column]) -> Self {
        let groups = Vec::new();
        let mut file = Self { output, columns, written: 0, rows: 0, groups, page: Vec::new() };
        file.write(MAGIC);
        file
    }

    /// Writes a row group: `rows` values of each column.
    pub(crate) fn group(&mut self, rows: usize, values: &[Values<'_>]) {
        let chunks = values.iter().map(|values| self.chunk(rows, *values)).collect();
        self.rows += rows as u64;
        self.groups.push(Group { rows: rows as u64, chunks });
    }

    /// Whether a write failed; [`Parquet::finish`] returns the error.
    pub(crate) const fn failed(&self) -> bool {
        self.output.failed()
    }

    /// Writes the footer and completes the file.
    ///
    /// # Errors
    /// The first write error; there is then no file.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let footer = self.footer();
        self.write(&footer);
        self.write(&(footer.len() as u32).to_le_bytes());
        self.write(MAGIC);
        self.output.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.output.write(bytes);
        self.written += bytes.len() as u64;
    }

    fn chunk(&mut self, rows: usize, values: Values<'_>) -> Chunk {
        let begin = self.written;
        let mut page = std::mem::take(&mut self.page);
        page.clear();
        let length = match values {
            Values::Words(all, _) => {
                words(all, &mut page);
                Some(all.len())
            }
            Values::Among(all, _) => {
                counts(all, &mut page);
                Some(all.len())
            }
            Values::Counts(_) | Values::Seconds(_) => None,
        };
        if let Some(length) = length {
            self.write_page(DICTIONARY_PAGE, PLAIN, length, &page);
            page.clear();
        }
        let mut span = None;
        match values {
            Values::Words(_, each) | Values::Among(_, each) => {
                let bits = width(length.unwrap_or_default());
                page.push(bits as u8);
                indices(each, bits, &mut page);
            }
            Values::Counts(all) => counts(all, &mut page),
            Values::Seconds(all) => {
                span = Span::of(all);
                absences(all, &mut page);
                seconds(all, &mut page);
            }
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
        for column in self.columns {
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
        meta.text(6, concat!("talkspurt ", env!("CARGO_PKG_VERSION")));
        // `ColumnOrder`: each column has the order of its type.
        meta.list(7, self.columns.len());
        for _ in self.columns {
            meta.item().begin(1).end().end();
        }
        meta.end();
        meta.bytes().to_vec()
    }
}

impl Column {
    const fn stored(&self) -> i32 {
        match self.kind {
            Kind::Text => BYTE_ARRAY,
            Kind::Count => INT64,
            Kind::Seconds => DOUBLE,
        }
    }
}

/// `SchemaElement`.
fn schema(column: &Column, meta: &mut Thrift) {
    let repetition = if column.kind == Kind::Seconds { OPTIONAL } else { REQUIRED };
    meta.item().i32(1, column.stored()).i32(3, repetition).text(4, column.name);
    if column.kind == Kind::Text {
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
    meta.integers(2, encodings).texts(3, &[column.name]).i32(4, UNCOMPRESSED);
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
