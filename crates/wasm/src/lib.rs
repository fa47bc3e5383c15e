//! The simulator as a WebAssembly module without imports: the text of a scenario and its files in, tables out.
//!
//! `make wasm` builds and tests it. A page writes bytes to memory that `reserve` gives, adds files by
//! absolute path, and runs a scenario in a folder of them. There is no DRED and no deep PLC.

#[cfg(target_arch = "wasm32")]
pub mod abi;
#[cfg(target_arch = "wasm32")]
mod libc;

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array as _, ArrayRef};
use serde_json::{Value, json};
use talkspurt_app::file::Files;
use talkspurt_experiment::{Shared, run};
use talkspurt_record::{Table, Tables};
use talkspurt_scenario::{Point, Use, load_for};

/// Runs all points of a scenario. The result is JSON: `runs`, each with its settings, digest and the columns of
/// its flows and links by name; or `problems`, a text for each; or `failed`, a text.
#[must_use]
pub fn answer(text: &str, path: &Path, files: &dyn Files) -> Value {
    let base = path.parent().unwrap_or(path);
    let study = match load_for(text, &path.to_string_lossy(), base, &[], None, &Use::of(files)) {
        Ok(study) => study,
        Err(problems) => {
            let texts: Vec<_> = problems.0.iter().map(ToString::to_string).collect();
            return json!({ "problems": texts });
        }
    };
    let runs: Result<Vec<_>, _> = study.points.iter().map(|point| one(point, files)).collect();
    match runs {
        Ok(runs) => json!({ "title": study.title, "runs": runs }),
        Err(failed) => json!({ "failed": failed }),
    }
}

fn one(point: &Point, files: &dyn Files) -> Result<Value, String> {
    let finished = run(point, files, None, Tables::named(&[]), &Shared::default());
    let finished = finished.map_err(|failure| failure.to_string())?;
    let table = |name| finished.recording.table(name).map(|table| columns(&table));
    Ok(json!({
        "settings": point.settings,
        "replicate": point.replicate,
        "digest": finished.digest,
        "flows": table("flows"),
        "links": table("links"),
    }))
}

/// The values of each column by its name.
fn columns(table: &Table) -> Value {
    let fields = table.schema.fields().iter().enumerate();
    let column = |index: usize| {
        let parts = table.batches.iter().map(|batch| batch.column(index));
        parts.flat_map(|part| (0..part.len()).map(|row| cell(part, row))).collect::<Vec<_>>()
    };
    Value::Object(
        fields.map(|(index, field)| (field.name().clone(), column(index).into())).collect(),
    )
}

fn cell(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    if let Some(texts) = column.as_string_opt::<i32>() {
        texts.value(row).into()
    } else if let Some(counts) = column.as_primitive_opt::<Int64Type>() {
        counts.value(row).into()
    } else {
        column.as_primitive::<Float64Type>().value(row).into()
    }
}
