//! Writes `schema/scenario.schema.json`, the pages of `docs/reference` on scenarios, and its `profiles.md` from
//! the scenario's types; with `--check` it writes nothing and fails if they are out of date.

mod profiles;
mod reference;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => {
            eprintln!("usage: schema [--check]");
            return ExitCode::from(2);
        }
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut code = ExitCode::SUCCESS;
    for (name, text) in reference::generated() {
        let path: PathBuf = root.join(&name);
        let before = std::fs::read_to_string(&path).ok();
        if before.as_deref() == Some(&text) {
            continue;
        }
        if check {
            let what = if before.is_some() { "differs from the types" } else { "is missing" };
            eprintln!("{name} {what}; run: cargo run -p talkspurt-scenario --bin schema");
            code = ExitCode::FAILURE;
        } else if let Err(why) = write(&path, &text) {
            eprintln!("cannot write {name}: {why}");
            code = ExitCode::FAILURE;
        } else {
            println!("wrote {name}");
        }
    }
    code
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}
