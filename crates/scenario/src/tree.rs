//! A scenario's text as a tree that records where each value was written.
//!
//! The text may come from the file, a `--set` or an axis; checks need not know which.

use indexmap::IndexMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::path::{Origin, Path, Step};
use crate::problem::{Finding, Findings, clip};

/// Syntax errors reported, at most.
const MAX_FAULTS: usize = 1_000;

/// A value and its location.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Datetime(String),
    List(Vec<Tree>),
    Table(IndexMap<String, Tree>),
}

impl Tree {
    /// Parses TOML; every syntax error is a finding.
    pub(crate) fn parse(text: &str) -> Result<Self, Findings> {
        let lines = Lines::of(text);
        let (table, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            let origin = Origin { line: Some(1), ..Origin::default() };
            return Ok(Self { value: lines.table(table.get_ref()), origin });
        }
        let mut faults = Findings::default();
        let open = unclosed(text);
        // After a duplicate header, every key below it would be reported again.
        let mut twice: Option<usize> = None;
        faults.1 = errors.len().saturating_sub(MAX_FAULTS);
        for error in errors.iter().take(MAX_FAULTS) {
            let offset = error.span().map_or(text.len(), |span| span.start);
            let header = text[..offset].rfind('\n').map_or(0, |at| at + 1);
            if let Some((at, bracket)) = open.filter(|(at, _)| *at < offset) {
                // All that follows is read as a part of it.
                faults.0.push(lines.unclosed(text, at, bracket));
                faults.1 = 0;
                break;
            }
            if error.message() == "duplicate key" {
                if twice.is_some_and(|first| !text[first..offset].contains("\n[")) {
                    continue;
                }
                twice = text[header..].starts_with('[').then_some(offset);
            }
            faults.0.push(lines.syntax(text, error));
        }
        Err(faults)
    }

    /// Parses one TOML value; `None` if invalid.
    pub(crate) fn parse_value(text: &str, origin: &Origin) -> Option<Self> {
        let value = DeValue::parse(text).ok()?;
        let mut tree = Lines::of(text).tree(&value);
        tree.stamp(&|_| origin.clone());
        Some(tree)
    }

    /// A value without a location.
    pub(crate) fn of(json: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        let value = match json {
            Json::String(text) => Value::Text(text.clone()),
            Json::Number(number) => number
                .as_i128()
                .map_or_else(|| Value::Float(number.as_f64().unwrap_or(f64::NAN)), Value::Integer),
            Json::Bool(boolean) => Value::Boolean(*boolean),
            Json::Array(list) => Value::List(list.iter().map(Self::of).collect()),
            Json::Object(table) => {
                // TOML has no null: such a key is absent.
                let present = table.iter().filter(|(_, value)| !value.is_null());
                Value::Table(present.map(|(key, it)| (key.clone(), Self::of(it))).collect())
            }
            Json::Null => Value::Text(String::new()),
        };
        Self { value, origin: Origin::default() }
    }

    /// A text value.
    pub(crate) fn text(text: &str, origin: &Origin) -> Self {
        Self { value: Value::Text(text.to_owned()), origin: origin.clone() }
    }

    /// Rewrites the origin of this value and all values inside.
    pub(crate) fn stamp(&mut self, origin: &dyn Fn(&Origin) -> Origin) {
        self.origin = origin(&self.origin);
        match &mut self.value {
            Value::List(list) => list.iter_mut().for_each(|tree| tree.stamp(origin)),
            Value::Table(table) => table.values_mut().for_each(|tree| tree.stamp(origin)),
            _ => {}
        }
    }

    /// The value of a key, if this is a table with that key.
    pub(crate) fn key(&self, key: &str) -> Option<&Self> {
        if let Value::Table(table) = &self.value { table.get(key) } else { None }
    }
    /// The keys of a table, empty for other values.
    pub(crate) fn keys(&self) -> Vec<&str> {
        match &self.value {
            Value::Table(table) => table.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
    /// The elements of a list, empty for other values.
    pub(crate) fn list(&self) -> &[Self] {
        if let Value::List(list) = &self.value { list } else { &[] }
    }
    /// The text, if it is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }
    fn step(&self, step: &Step) -> Option<&Self> {
        match step {
            Step::Key(key) => self.key(key),
            Step::Index(index) => self.list().get(*index),
        }
    }
    fn step_mut(&mut self, step: &Step) -> Option<&mut Self> {
        match (step, &mut self.value) {
            (Step::Key(key), Value::Table(table)) => table.get_mut(key),
            (Step::Index(index), Value::List(list)) => list.get_mut(*index),
            _ => None,
        }
    }

    /// The value at `path`, if there is one.
    pub(crate) fn at(&self, path: &Path) -> Option<&Self> {
        path.0.iter().try_fold(self, |tree, step| tree.step(step))
    }

    /// The value at a path.
    pub(crate) fn at_mut(&mut self, path: &Path) -> Option<&mut Self> {
        path.0.iter().try_fold(self, |tree, step| tree.step_mut(step))
    }

    /// The location of the field at `path`, or of the innermost existing table around it.
    pub(crate) fn origin_of(&self, path: &Path) -> &Origin {
        let mut tree = self;
        for step in &path.0 {
            match tree.step(step) {
                Some(inner) => tree = inner,
                None => break,
            }
        }
        &tree.origin
    }

    /// Writes a value at a path, creating tables as needed; false if a plain value is in the way.
    pub(crate) fn put(&mut self, path: &Path, value: Self) -> bool {
        let Some((last, way)) = path.0.split_last() else { return false };
        let mut tree = self;
        for step in way {
            if let (Step::Key(key), Value::Table(table)) = (step, &mut tree.value) {
                table.entry(key.clone()).or_insert_with(|| Self {
                    value: Value::Table(IndexMap::new()),
                    origin: value.origin.clone(),
                });
            }
            match tree.step_mut(step) {
                Some(inner) => tree = inner,
                None => return false,
            }
        }
        match (last, &mut tree.value) {
            (Step::Key(key), Value::Table(table)) => {
                table.insert(key.clone(), value);
                true
            }
            (Step::Index(_), Value::List(_)) => match tree.step_mut(last) {
                Some(place) => {
                    *place = value;
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    /// Removes a field, if it exists.
    pub(crate) fn take(&mut self, path: &Path) {
        let Some((last, way)) = path.0.split_last() else { return };
        let Some(tree) = self.at_mut(&Path(way.to_vec())) else { return };
        match (last, &mut tree.value) {
            (Step::Key(key), Value::Table(table)) => drop(table.shift_remove(key)),
            (Step::Index(index), Value::List(list)) if *index < list.len() => {
                list.remove(*index);
            }
            _ => {}
        }
    }

    /// Converts to JSON. Dates become text; the shape check has rejected them before.
    pub(crate) fn json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Text(text) | Value::Datetime(text) => Json::from(text.as_str()),
            Value::Integer(integer) => i64::try_from(*integer)
                .map(Json::from)
                .or_else(|_| u64::try_from(*integer).map(Json::from))
                .unwrap_or(Json::Null),
            Value::Float(float) => Json::from(*float),
            Value::Boolean(boolean) => Json::from(*boolean),
            Value::List(list) => list.iter().map(Self::json).collect(),
            Value::Table(table) => {
                Json::Object(table.iter().map(|(key, tree)| (key.clone(), tree.json())).collect())
            }
        }
    }

    /// The value as named in messages: `the number 20`, `a table`.
    pub(crate) fn described(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("the text {:?}", clip(text.clone(), 80)),
            Value::Integer(integer) => format!("the number {integer}"),
            Value::Float(float) => format!("the number {float}"),
            Value::Boolean(boolean) => boolean.to_string(),
            Value::Datetime(text) => format!("the date or time {text}"),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}

/// The brace or bracket of a value that is open where the next key or header begins a line, or at the end.
fn unclosed(text: &str) -> Option<(usize, char)> {
    let mut open: Vec<(usize, char)> = Vec::new();
    // Whether a comma, or the opening itself, is the last before a line: then a key may follow in a table.
    let (mut goes_on, mut at) = (false, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next()?;
        let starts = text[..at].trim_end_matches([' ', '\t']).ends_with('\n');
        if let Some(inner) = open.last().filter(|_| starts && !matches!(first, ' ' | '\t' | '\n')) {
            let line = rest.lines().next().unwrap_or_default();
            let key =
                line.trim_start_matches(|c: char| c.is_alphanumeric() || "-_.\"*".contains(c));
            let is_key = key.len() < line.len() && key.trim_start().starts_with('=');
            let name = line.trim_start_matches('[');
            let is_header = line.starts_with('[')
                && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && line.split('#').next().is_some_and(|it| it.trim_end().ends_with(']'))
                && !name.contains(',');
            if is_header || is_key && (inner.1 == '[' || !goes_on) {
                return Some(*inner);
            }
        }
        let length = match first {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => quoted(rest, first),
            '{' | '[' => {
                // A header is no value.
                let before = text[..at].rsplit('\n').next().unwrap_or_default();
                if !open.is_empty() || !before.trim_matches(['[', ' ', '\t']).is_empty() {
                    open.push((at, first));
                }
                1
            }
            '}' | ']' => {
                let opening = if first == '}' { '{' } else { '[' };
                if let Some(inner) = open.pop().filter(|(_, bracket)| *bracket != opening) {
                    return Some(inner);
                }
                1
            }
            other => other.len_utf8(),
        };
        if !first.is_whitespace() && first != '#' {
            goes_on = matches!(first, ',' | '{' | '[');
        }
        at += length;
    }
    open.last().copied()
}

/// The bytes of the text in quotes that begins here.
fn quoted(rest: &str, quote: char) -> usize {
    let long: String = [quote; 3].iter().collect();
    let (mark, ends_with_line) =
        if rest.starts_with(&long) { (long.as_str(), false) } else { (&long[..1], true) };
    let mut at = mark.len();
    while let Some(inner) = rest.get(at..).filter(|inner| !inner.is_empty()) {
        match inner.chars().next() {
            _ if inner.starts_with(mark) => return at + mark.len(),
            Some('\\') if quote == '"' => {
                at += 1 + inner[1..].chars().next().map_or(0, char::len_utf8);
            }
            Some('\n') if ends_with_line => return at,
            Some(other) => at += other.len_utf8(),
            None => break,
        }
    }
    rest.len()
}

/// Line starts of a text.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }
    fn line(&self, offset: usize) -> u32 {
        self.0.partition_point(|start| *start <= offset) as u32
    }
    fn origin(&self, offset: usize) -> Origin {
        Origin { line: Some(self.line(offset)), ..Origin::default() }
    }
    fn unclosed(&self, text: &str, at: usize, bracket: char) -> Finding {
        let (what, closing) = if bracket == '{' { ("brace", '}') } else { ("bracket", ']') };
        let line = text[at..].lines().next().unwrap_or_default();
        Finding {
            path: Path::default(),
            origin: Some(self.origin(at)),
            message: format!(
                "not TOML: a {what} is never closed, at `{}`",
                clip(line.to_owned(), 40)
            ),
            hint: Some(format!("write {closing} where its value ends")),
        }
    }
    fn syntax(&self, text: &str, error: &toml::de::Error) -> Finding {
        let offset = error.span().map_or(text.len(), |span| span.start);
        let words = text.get(offset..).and_then(|rest| rest.lines().next()).unwrap_or("").trim();
        let word = words.split([' ', ',', ']', '}', '#']).next().unwrap_or("");
        let (mut message, mut hint) = (error.message().replace('\n', ", "), None);
        if message.starts_with("string values must be quoted") {
            if word.is_empty() {
                "a value is missing".clone_into(&mut message);
            } else {
                "texts and quantities stand in quotes".clone_into(&mut message);
                hint = Some(format!("did you mean \"{word}\"?"));
            }
        }
        let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let before = text[..offset].trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let whole = &text[before..offset];
        let part = words.strip_prefix(',').filter(|rest| digit(rest) && digit(whole));
        if let Some(part) = part {
            let part = part.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            hint = Some(format!("decimals stand behind a point: did you mean {whole}.{part}?"));
        }
        let near = if words.is_empty() {
            String::new()
        } else {
            format!(", at `{}`", clip(words.to_owned(), 40))
        };
        Finding {
            path: Path::default(),
            origin: Some(self.origin(offset.min(text.trim_end().len()))),
            message: format!("not TOML: {message}{near}"),
            hint,
        }
    }
    fn tree(&self, value: &Spanned<DeValue<'_>>) -> Tree {
        let inner = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(integer) => Value::Integer(
                i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(i128::MAX),
            ),
            DeValue::Float(float) => Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Datetime(datetime) => Value::Datetime(datetime.to_string()),
            DeValue::Array(array) => Value::List(array.iter().map(|v| self.tree(v)).collect()),
            DeValue::Table(table) => self.table(table),
        };
        Tree { value: inner, origin: self.origin(value.span().start) }
    }
    fn table(&self, table: &DeTable<'_>) -> Value {
        // A value is on its key's line; a table under a header is on the header's.
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let key: &Spanned<std::borrow::Cow<'_, str>> = key;
            let mut tree = self.tree(value);
            tree.origin = self.origin(key.span().start);
            (key.get_ref().to_string(), tree)
        };
        Value::Table(table.iter().map(entry).collect())
    }
}
