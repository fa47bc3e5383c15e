//! Runs a scenario whose flows can name the stacks `str0m-0.24.1` and `str0m-0.25.0`, and writes its folder for
//! `talkspurt report` and `talkspurt evaluate`:
//!
//! ```sh
//! cargo run --release -- SCENARIO.toml FOLDER
//! talkspurt report FOLDER
//! ```

// One glue for both versions of the library.
#![allow(clippy::duplicate_mod)]

#[cfg(test)]
#[path = "../../rtc/src/random.rs"]
mod random;
mod v0_24;
mod v0_25;

use std::path::Path;
use std::process::ExitCode;

use talkspurt_experiment::{Disk, Shared, run_into};
use talkspurt_proto::external;

fn register() {
    external::register(v0_24::kind());
    external::register(v0_25::kind());
}

fn run(scenario: &Path, folder: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(scenario).map_err(|error| error.to_string())?;
    let base = scenario.parent().unwrap_or(Path::new("."));
    let study = talkspurt_scenario::load(&text, &scenario.to_string_lossy(), base, &[], None);
    let study = study.map_err(|problems| problems.to_string())?;
    let done = run_into(&study.points[0], &Disk, folder, &Shared::default());
    done.map(|done| done.digest).map_err(|failure| failure.to_string())
}

fn main() -> ExitCode {
    register();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scenario, folder] = &arguments[..] else {
        eprintln!("talkspurt-str0m SCENARIO.toml FOLDER");
        return ExitCode::FAILURE;
    };
    match run(scenario.as_ref(), folder.as_ref()) {
        Ok(digest) => println!("{digest}"),
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
