//! A run in a folder as the Python package writes and reads it, so that a Rust program's runs can be reported:
//! `talkspurt report FOLDER`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::DataType;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use talkspurt_flow::Files;
use talkspurt_record::{Folder, Recording, StoreError, Tables};
use talkspurt_scenario::{Point, to_toml};

use crate::{Failure, Finished, Shared, run, topology};

/// Version of the format of folders, as in `python/talkspurt`.
const FORMAT: u32 = 1;

/// Runs one point of a study and writes its tables, scenario, topology and manifest to a new folder; audio is
/// not written.
///
/// # Errors
/// As [`run`]; the folder exists already or cannot be written.
pub fn run_into(
    point: &Point,
    files: &dyn Files,
    folder: &Path,
    shared: &Shared,
) -> Result<Finished, Failure> {
    fs::create_dir(folder).map_err(|error| failed(folder, error))?;
    let meanings = Arc::default();
    let tables = Tables::Folder(Folder { path: folder.to_owned(), meanings });
    let finished = run(point, files, Some(folder), tables, true, shared)?;
    let scenario = to_toml(&point.scenario);
    let manifest = manifest(point, &finished, &scenario);
    let network = topology(&point.scenario, &point.network);
    for (name, text) in [
        ("scenario.toml", scenario),
        ("topology.json", format!("{network:#}\n")),
        ("manifest.json", format!("{manifest:#}\n")),
    ] {
        let file = folder.join(name);
        fs::write(&file, text).map_err(|error| failed(&file, error))?;
    }
    Ok(finished)
}

fn failed(path: &Path, error: std::io::Error) -> Failure {
    Failure::Store(StoreError { path: path.to_owned(), error })
}

fn manifest(point: &Point, finished: &Finished, scenario: &str) -> Value {
    let Point { scenario: model, .. } = point;
    let recording = &finished.recording;
    let settings = point.settings.iter().map(|(axis, label)| (axis.clone(), label.as_str().into()));
    let unwritten = Recording::TABLES.into_iter().filter(|name| !recording.stored().contains(name));
    let empty = unwritten.filter_map(|name| Some((name.to_owned(), columns(recording, name)?)));
    let hash = Sha256::digest(scenario.as_bytes());
    let hash = hash.iter().take(6).fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    });
    json!({
        "talkspurt": env!("CARGO_PKG_VERSION"), "format": FORMAT, "kind": "result",
        "made_of": { "scenario": hash, "files": {} },
        "name": "run", "title": model.title, "description": model.description,
        "settings": settings.collect::<Map<_, _>>(), "replicate": point.replicate, "seed": model.seed,
        "digest": finished.digest, "duration_s": finished.duration_s,
        "hops": finished.hops, "events": finished.events, "cpu_s": finished.cpu_s,
        "empty_tables": empty.collect::<Map<_, _>>(), "speech_start_s": {},
    })
}

/// The columns of a table, with their types as polars names them.
#[must_use]
pub fn columns(recording: &Recording, name: &str) -> Option<Value> {
    let table = recording.table(name)?;
    let fields = table.schema.fields().iter();
    let types = fields.map(|field| (field.name().clone(), type_name(field.data_type()).into()));
    Some(Value::Object(types.collect()))
}

/// The name that polars has for a type of a column.
#[must_use]
pub fn type_name(of: &DataType) -> &'static str {
    match of {
        DataType::Utf8 => "String",
        DataType::Int64 => "Int64",
        _ => "Float64",
    }
}
