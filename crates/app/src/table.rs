//! Tables and lists in text files: link traces, delivery opportunities and sizes of video frames, as people,
//! loggers, spreadsheets and ffprobe write them.
//!
//! Cells are separated by commas, semicolons, tabs or bars and may be quoted; a byte-order mark, empty lines
//! and lines that begin with `#` are skipped. The reader is written here: the crate `csv` gives lines behind
//! comments wrong numbers, and separators must be found out in any case.

use std::path::Path;
use std::str::FromStr;

use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size, UnitError};

use crate::file::{self, Fault, Files};

/// Maximum lines of a file: a day of mahimahi's at 40 Mbit/s would have 288 million lines, surely by mistake.
pub const MAX_LINES: usize = 10_000_000;

/// A quantity that a column can hold.
#[derive(Debug)]
pub struct Quantity {
    /// Name of the column, without a unit.
    pub name: &'static str,
    /// Units with which the name can end, with their power of ten of the quantity's smallest unit.
    units: &'static [(&'static str, i32)],
    /// The unit of numbers without one, if only one makes sense.
    usual: Option<i32>,
}

const TIMES: &[(&str, i32)] = &[("s", 9), ("ms", 6), ("us", 3), ("ns", 0)];
/// An instant.
pub const TIME: Quantity = Quantity { name: "time", units: TIMES, usual: None };
/// A rate.
pub const RATE: Quantity = Quantity {
    name: "rate",
    units: &[("bps", 0), ("kbps", 3), ("Mbps", 6), ("Gbps", 9)],
    usual: None,
};
/// A delay.
pub const DELAY: Quantity = Quantity { name: "delay", units: TIMES, usual: None };
/// A probability.
pub const LOSS: Quantity = Quantity { name: "loss", units: &[("percent", -2)], usual: Some(0) };
/// A number of bytes.
pub const SIZE: Quantity = Quantity {
    name: "size",
    units: &[("B", 0), ("bytes", 0), ("kB", 3), ("MB", 6)],
    usual: Some(0),
};

/// The text of a file; an error is a phrase that follows the file's name.
///
/// # Errors
/// The fault of the file.
pub fn text(files: &dyn Files, path: &Path, expected: &str) -> Result<String, String> {
    let bytes = files.read(path, file::MAX_BYTES).map_err(|fault| match fault {
        Fault::NotAFile => format!("{fault}; expected {expected}"),
        _ => fault.to_string(),
    })?;
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err("is a text in UTF-16; save it as UTF-8".to_owned());
    }
    let text = String::from_utf8(bytes.into()).map_err(|_| "is not a text in UTF-8".to_owned())?;
    Ok(if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text })
}

/// The lines of a text with their cells.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    rest: &'a str,
    /// Number of the next line, from 1.
    next: usize,
    separator: char,
}

/// A line that is not empty.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its number, from 1.
    pub number: usize,
    /// Its cells, without quotes and without spaces around them.
    pub cells: Vec<String>,
}

impl<'a> Lines<'a> {
    /// The lines of a text. The separator is the first of its first line.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = Self { rest, next: 1, separator: ',' };
        lines.skip_empty();
        let head = lines.rest.lines().next().unwrap_or_default();
        let mut quoted = false;
        let separator = head.chars().find(|c| {
            quoted ^= *c == '"';
            !quoted && matches!(c, ',' | ';' | '\t' | '|')
        });
        lines.separator = separator.unwrap_or(',');
        lines
    }

    /// Passes over empty lines and comments.
    fn skip_empty(&mut self) {
        loop {
            let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            if self.rest.is_empty() || !(line.trim().is_empty() || line.trim().starts_with('#')) {
                return;
            }
            (self.rest, self.next) = (rest, self.next + 1);
        }
    }

    /// The next cell, and whether the line ends with it.
    fn cell(&mut self) -> (String, bool) {
        let mut cell = String::new();
        let space = |c: char| c == ' ' || c == '\r';
        if let Some(quoted) = self.rest.trim_start_matches(space).strip_prefix('"') {
            // Two quotes stand for one.
            let mut parts = quoted.split('"').peekable();
            let mut used = 0;
            while let Some(part) = parts.next() {
                cell.push_str(part);
                used += part.len() + 1;
                match parts.peek() {
                    Some(&"") if quoted[used..].starts_with('"') => {
                        parts.next();
                        used += 1;
                        cell.push('"');
                    }
                    _ => break,
                }
            }
            self.next += cell.matches('\n').count();
            self.rest = quoted.get(used..).unwrap_or_default();
        }
        let end = self.rest.find([self.separator, '\n']);
        let (last, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        cell.push_str(last);
        let ends = !rest.starts_with(self.separator);
        self.next += usize::from(ends);
        self.rest = rest.get(1..).unwrap_or_default();
        (cell.trim().to_owned(), ends)
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        loop {
            self.skip_empty();
            if self.rest.is_empty() {
                return None;
            }
            let (number, mut cells) = (self.next, Vec::new());
            loop {
                let (cell, ends) = self.cell();
                cells.push(cell);
                // A separator at the very end is followed by an empty cell.
                if ends {
                    break;
                }
            }
            // A spreadsheet also writes rows and columns without content.
            if cells.iter().any(|cell| !cell.is_empty()) {
                return Some(Line { number, cells });
            }
        }
    }
}

/// A table whose first line names the columns.
#[derive(Debug)]
pub struct Table<'a> {
    columns: Vec<Column>,
    width: usize,
    lines: Lines<'a>,
    count: usize,
    /// Names of the columns that are not read.
    pub others: Vec<String>,
}

#[derive(Debug)]
struct Column {
    at: usize,
    quantity: &'static Quantity,
    /// Power of ten of the numbers, if the column has a unit.
    power: Option<i32>,
}

impl<'a> Table<'a> {
    /// Reads the names of the columns. Names of other columns are kept in `others`.
    ///
    /// # Errors
    /// The fault of the first line.
    pub fn of(text: &'a str, quantities: &[&'static Quantity]) -> Result<Self, String> {
        let mut lines = Lines::of(text);
        let head = lines.next().ok_or("is empty: it has no line of column names")?;
        let mut columns: Vec<Column> = Vec::new();
        let mut others: Vec<(&str, Option<&Quantity>)> = Vec::new();
        for (at, name) in head.cells.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let (word, unit) = named(name);
            let quantity =
                quantities.iter().copied().find(|known| known.name.eq_ignore_ascii_case(word));
            let power = match (quantity, unit) {
                (None, _) => None,
                (Some(_), "") => Some(None),
                (Some(quantity), unit) => quantity.power(unit).map(Some),
            };
            match quantity.zip(power) {
                Some((quantity, power)) => columns.push(Column { at, quantity, power }),
                None => others.push((name, quantity)),
            }
        }
        let count = |quantity: &Quantity| {
            columns.iter().filter(|column| column.quantity.name == quantity.name).count()
        };
        if columns.is_empty()
            && let Some(number) = head.cells.iter().find(|cell| cell.parse::<f64>().is_ok())
        {
            let example: Vec<_> =
                quantities.iter().take(2).map(|known| known.examples(1).remove(0)).collect();
            return Err(format!(
                "its first line has no column names but {number:?}: write for example {} above it",
                example.join(",")
            ));
        }
        // A column of a quantity in an unknown unit is no other column, unless the quantity has its own.
        let meant = others.iter().find(|(_, quantity)| quantity.is_some_and(|of| count(of) == 0));
        if let Some((name, Some(quantity))) = meant {
            let names = quantity.examples(usize::MAX).join(", ");
            return Err(format!("unknown column {name:?}: with numbers it is {names}"));
        }
        if quantities.iter().any(|quantity| count(quantity) > 1) {
            return Err("names a column twice".to_owned());
        }
        let others = others.into_iter().map(|(name, _)| name.to_owned()).collect();
        Ok(Self { columns, width: head.cells.len(), lines, count: 0, others })
    }

    /// Whether it has a column of this quantity.
    #[must_use]
    pub fn has(&self, quantity: &Quantity) -> bool {
        self.columns.iter().any(|column| column.quantity.name == quantity.name)
    }

    /// The next row.
    ///
    /// # Errors
    /// A row that has not a cell for each column, and too many rows.
    pub fn row(&mut self) -> Result<Option<Row<'_>>, String> {
        let Some(Line { number, mut cells }) = self.lines.next() else { return Ok(None) };
        self.count += 1;
        if self.count > MAX_LINES {
            return Err(format!("has more than {MAX_LINES} lines, the most that are read"));
        }
        while cells.len() > self.width && cells.last().is_some_and(String::is_empty) {
            cells.pop();
        }
        if cells.len() != self.width {
            let (cells, columns) = (cells.len(), self.width);
            return Err(format!("line {number}: {cells} cells for {columns} columns"));
        }
        let comma = self.lines.separator == ';';
        Ok(Some(Row { number, cells, columns: &self.columns, comma }))
    }
}

/// A row of a table. Each quantity is `None` without a column or in an empty cell.
#[derive(Debug)]
pub struct Row<'a> {
    /// Number of its line, from 1.
    pub number: usize,
    cells: Vec<String>,
    columns: &'a [Column],
    /// Whether decimals follow a comma: spreadsheets then write semicolons between cells.
    comma: bool,
}

impl Row<'_> {
    /// An instant in nanoseconds, which may be before zero.
    ///
    /// # Errors
    /// What is not one.
    pub fn time(&self) -> Result<Option<i64>, String> {
        self.of(&TIME, |text| {
            let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
            Ok(sign * i64::try_from(text.parse::<Duration>()?.as_nanos()).unwrap_or(i64::MAX))
        })
    }
    /// A delay.
    ///
    /// # Errors
    /// What is not one.
    pub fn delay(&self) -> Result<Option<Duration>, String> {
        self.positive(&DELAY, Duration::as_nanos, Duration::from_nanos)
    }
    /// A rate.
    ///
    /// # Errors
    /// What is not one.
    pub fn rate(&self) -> Result<Option<Rate>, String> {
        self.positive(&RATE, Rate::as_bps, Rate::from_bps)
    }
    /// A number of bytes.
    ///
    /// # Errors
    /// What is not one.
    pub fn size(&self) -> Result<Option<Size>, String> {
        self.positive(&SIZE, Size::as_bytes, Size::from_bytes)
    }
    /// A probability.
    ///
    /// # Errors
    /// What is not one.
    pub fn loss(&self) -> Result<Option<f64>, String> {
        let Some((text, power)) = self.cell(&LOSS) else { return Ok(None) };
        let whole = if power == Some(-2) { 100.0 } else { 1.0 };
        let value = self.point(text).parse::<f64>().ok().map(|value| value / whole);
        let why = || format!("{text:?} is not a probability, 0 to {whole}");
        value.filter(|loss| (0.0..=1.0).contains(loss)).ok_or_else(why).map(Some)
    }

    fn cell(&self, quantity: &Quantity) -> Option<(&str, Option<i32>)> {
        let column = self.columns.iter().find(|column| column.quantity.name == quantity.name)?;
        Some((&*self.cells[column.at], column.power)).filter(|(text, _)| !text.is_empty())
    }

    /// A quantity in its smallest unit. A cell that has its own unit is read by `with_unit`.
    fn of(
        &self,
        quantity: &Quantity,
        with_unit: impl Fn(&str) -> Result<i64, UnitError>,
    ) -> Result<Option<i64>, String> {
        let Some((text, power)) = self.cell(quantity) else { return Ok(None) };
        let number = |power| {
            let value = decimal(&self.point(text), power);
            value.ok_or_else(|| format!("{text:?} is not a number, or too great"))
        };
        if let Some(power) = power {
            return number(power).map(Some);
        }
        let fault = match with_unit(&self.point(text)) {
            Ok(value) => return Ok(Some(value)),
            Err(fault) => fault,
        };
        match (quantity.usual, text.parse::<f64>().is_ok()) {
            (Some(power), true) => number(power).map(Some),
            (None, true) => {
                let names = quantity.examples(usize::MAX).join(", ");
                Err(format!("{fault}; or name the column by its unit: {names}"))
            }
            _ => Err(fault.to_string()),
        }
    }

    fn point(&self, text: &str) -> String {
        if self.comma { text.replace(',', ".") } else { text.to_owned() }
    }

    /// A quantity that is not negative.
    fn positive<T: FromStr<Err = UnitError>>(
        &self,
        quantity: &Quantity,
        number: fn(T) -> u64,
        of: fn(u64) -> T,
    ) -> Result<Option<T>, String> {
        let value =
            self.of(quantity, |text| Ok(i64::try_from(number(text.parse()?)).unwrap_or(i64::MAX)))?;
        let text = || self.cell(quantity).map_or("", |(text, _)| text);
        let fault = |_| format!("{:?} is not a number from zero on", text());
        value.map(|value| u64::try_from(value).map(of).map_err(fault)).transpose()
    }
}

impl Quantity {
    /// The power of ten of a unit, in capital or small letters. A B in a rate may mean bytes.
    fn power(&self, unit: &str) -> Option<i32> {
        let unit = &*unit.replace("bit/s", "bps").replace("b/s", "bps");
        if self.name == RATE.name && unit.contains('B') {
            return None;
        }
        let exact = self.units.iter().find(|(known, _)| *known == unit);
        let near = || self.units.iter().find(|(known, _)| known.eq_ignore_ascii_case(unit));
        exact.or_else(near).map(|(_, power)| *power)
    }

    /// Names of columns with units, at most this many.
    fn examples(&self, most: usize) -> Vec<String> {
        let units = self.units.iter().take(most);
        units.map(|(unit, _)| format!("{}_{unit}", self.name)).collect()
    }
}

/// The quantity and the unit in the name of a column: `time_s`, `time (s)`, `Time [s]`.
fn named(name: &str) -> (&str, &str) {
    let word = name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len());
    let (word, unit) = name.split_at(word);
    let unit = unit.trim_matches(['_', ' ', '(', ')', '[', ']']);
    (word, if unit == "%" { "percent" } else { unit })
}

/// An instant in nanoseconds as a duration with its sign, for messages.
#[must_use]
pub fn signed(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    format!("{sign}{}", Duration::from_nanos(nanos.unsigned_abs()))
}

/// A decimal number times a power of ten, rounded to the nearest integer; exact without an exponent.
#[must_use]
pub fn decimal(text: &str, power: i32) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = !(whole.is_empty() && fraction.is_empty())
        && whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    if !plain {
        let scale: f64 = format!("1e{power}").parse().ok()?;
        let value = text.parse::<f64>().ok()? * scale;
        return (value.abs() < 9e18).then(|| value.round() as i64);
    }
    let mut value = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()? };
    let mut places = fraction.bytes().map(|digit| i64::from(digit - b'0'));
    for _ in 0..power {
        value = value.checked_mul(10)?.checked_add(places.next().unwrap_or(0))?;
    }
    value = value.checked_add(i64::from(places.next().is_some_and(|digit| digit >= 5)))?;
    Some(if negative { -value } else { value })
}

/// Instants of which several are equal, because a clock with coarse steps gave them, become instants at equal
/// distances up to the next step; after the last one, the distance is that of the step before. Returns a note
/// if there were any. The instants do not decrease.
///
/// # Errors
/// All are equal.
pub fn spread(times: &mut [i64]) -> Result<Option<String>, String> {
    let (mut from, mut before, mut moved) = (0, None, 0);
    while from < times.len() {
        let at = times[from];
        let end = from + times[from..].partition_point(|time| *time == at);
        let count = (end - from) as i64;
        if count > 1 {
            let [next, before] = [times.get(end).copied(), before].map(|time| time.map(i128::from));
            let here = i128::from(at);
            let step = next.map(|next| next - here).or(before.map(|before| here - before));
            let step = step.ok_or_else(|| {
                format!("all its {count} lines have the same time, so that no line lasts")
            })?;
            for (place, time) in (0..).zip(&mut times[from..end]) {
                let time_of_place = here + step * i128::from(place) / i128::from(count);
                *time = i64::try_from(time_of_place).unwrap_or(i64::MAX);
            }
            moved += count - 1;
        }
        (from, before) = (end, Some(at));
    }
    Ok((moved > 0).then(|| {
        format!("lines with the time of the line before, spread evenly up to the next: {moved}")
    }))
}

/// A note of the columns that are not read.
#[must_use]
pub fn unread(others: &[String]) -> Vec<String> {
    let names: Vec<_> = others.iter().map(|name| format!("{name:?}")).collect();
    let note = || format!("columns that are not read: {}", names.join(", "));
    (!names.is_empty()).then(note).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<(usize, Vec<String>)> {
        Lines::of(text).map(|line| (line.number, line.cells)).collect()
    }

    #[test]
    fn cells_may_be_quoted_and_lines_keep_their_numbers() {
        let text = "\u{feff}\"a\", b ,\"c \"\"d\"\"\"\r\n# no, line\r\n\r\n1,\"2\n3\",\n,,\n4,5,6";
        let own = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let expected = [
            (1, own(&["a", "b", "c \"d\""])),
            (4, own(&["1", "2\n3", ""])),
            (7, own(&["4", "5", "6"])),
        ];
        assert_eq!(cells(text), expected);
        assert_eq!(
            cells("time;rate, in kbps\n1;2,5"),
            [(1, own(&["time", "rate, in kbps"])), (2, own(&["1", "2,5"])),]
        );
        assert_eq!(cells("a\tb\n\t2\n"), [(1, own(&["a", "b"])), (2, own(&["", "2"]))]);
        assert_eq!(cells("\"never closed\n1,2\n"), [(1, own(&["never closed\n1,2"]))]);
    }

    #[test]
    fn numbers_are_exact() {
        assert_eq!(decimal("1582018702.123456789", 9), Some(1_582_018_702_123_456_789));
        assert_eq!(decimal("-0.04", 9), Some(-40_000_000));
        assert_eq!(decimal("0.33333333349", 9), Some(333_333_333));
        assert_eq!(decimal("0.3333333335", 9), Some(333_333_334));
        assert_eq!(decimal(".5", 3), Some(500));
        assert_eq!(decimal("1.5e6", 0), Some(1_500_000));
        let none = ["", "-", ".", "1.2.3", "inf", "nan", "1e30", "99999999999999999999", "1,5"];
        assert!(none.iter().all(|text| decimal(text, 0).is_none()));
    }

    #[test]
    fn equal_times_are_spread_over_their_step() {
        let spread = |times: &[i64]| {
            let mut times = times.to_vec();
            super::spread(&mut times).map(|note| (note.is_some(), times))
        };
        assert_eq!(spread(&[0, 10, 10, 20]), Ok((true, vec![0, 10, 15, 20])));
        assert_eq!(spread(&[0, 0, 30, 30, 30]), Ok((true, vec![0, 15, 30, 40, 50])));
        assert_eq!(spread(&[7]), Ok((false, vec![7])));
        assert!(spread(&[7, 7]).is_err());
    }
}
