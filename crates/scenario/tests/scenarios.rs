//! The scenarios that are shipped: each loads, is written out in full, and loads again to the same.

use std::path::{Path, PathBuf};

use talkspurt_app::file::Disk;
use talkspurt_scenario::{Problems, Sampling, Study, Use, load, load_for, schema, to_toml};

mod stage;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The shipped folder, or until recordings are shipped beside it a stage with one.
fn base() -> PathBuf {
    if root().join("speech").is_dir() { root().join("scenarios") } else { stage::folder() }
}

/// Names within `scenarios/`, and texts.
fn shipped() -> Vec<(String, String)> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("scenarios are shipped");
        entries.map(|entry| entry.expect("readable folder").path()).collect()
    };
    let top = root().join("scenarios");
    let (folders, mut files): (Vec<_>, Vec<_>) =
        entries(&top).into_iter().partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| entries(folder)));
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(&top).expect("inside").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).expect("readable"))
    };
    files.iter().map(read).collect()
}

/// The folder that a scenario's files are relative to.
fn beside(name: &str) -> PathBuf {
    base().join(name).parent().expect("a folder").to_path_buf()
}

/// Reads a shipped scenario; the points of a design lie on the diagonal of the cube.
fn read(name: &str, text: &str) -> Result<Study, Problems> {
    let diagonal = |asked: &Sampling| {
        let count = asked.samples;
        Ok((0..count).map(|k| vec![k as f64 / count as f64; asked.dimensions]).collect())
    };
    let wanted = Use { sample: &diagonal, ..Use::of(&Disk) };
    load_for(text, name, &beside(name), &[], None, &wanted)
}

fn study(name: &str) -> Study {
    let text = shipped().into_iter().find(|(n, _)| n == name).expect("shipped").1;
    read(name, &text).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn every_point_of_every_scenario_is_written_out_and_read_back() {
    for (name, text) in shipped() {
        let study = read(&name, &text).unwrap_or_else(|p| panic!("{p}"));
        // Those of a large study differ in a few values: a hundred of them, from end to end.
        let step = study.points.len().div_ceil(100);
        for point in study.points.iter().step_by(step) {
            let resolved = to_toml(&point.scenario);
            let elsewhere = Path::new("/nowhere");
            let again = load(&resolved, "resolved.toml", elsewhere, &[], None)
                .unwrap_or_else(|problems| panic!("{name}: {problems}\n{resolved}"));
            assert_eq!(again.points.len(), 1);
            assert_eq!(again.points[0].scenario, point.scenario, "{name}");
            assert_eq!(again.points[0].network, point.network, "{name}");
            assert_eq!(to_toml(&again.points[0].scenario), resolved, "{name}");
        }
    }
}

#[test]
fn defaults_are_written_out() {
    let resolved = to_toml(&study("first-call.toml").points[0].scenario);
    for line in [
        "mtu = \"1500B\"",
        "framing = \"none\"",
        "delayed_ack = true",
        "min_rto = \"1s\"",
        "dscp = 0",
        "noise = \"1ms\"",
    ] {
        assert!(resolved.contains(line), "{line} in\n{resolved}");
    }
    assert!(!resolved.contains("axes"), "{resolved}");
}

#[test]
fn every_scenario_names_its_schema_and_explains_itself() {
    for (name, text) in shipped() {
        let up = "../".repeat(1 + name.matches('/').count());
        let head = format!("#:schema {up}schema/scenario.schema.json\n");
        assert!(text.starts_with(&head), "{name}");
        let study = read(&name, &text).unwrap_or_else(|p| panic!("{p}"));
        assert!(study.description.len() > 200, "{name}");
    }
}

#[test]
fn the_demo_puts_call_and_bulk_into_one_queue_and_keeps_the_worlds_apart() {
    let study = study("first-call.toml");
    let point = &study.points[0];
    let route = |flow: &str| {
        let index = point.scenario.flows.get_index_of(flow).expect(flow);
        &point.network.routes[index][0].forward
    };
    assert_eq!(route("call"), route("bulk-beside-udp"));
    assert_eq!(route("call-over-tcp"), route("bulk-beside-tcp"));
    let worlds = ["call", "call-over-tcp", "call-alone", "call-over-tcp-alone"];
    for (i, a) in worlds.iter().enumerate() {
        assert_eq!(route(a).len(), 3);
        for b in &worlds[i + 1..] {
            assert!(route(a).iter().all(|link| !route(b).contains(link)), "{a} and {b}");
        }
    }
}

#[test]
fn the_study_makes_every_combination_with_the_same_seeds() {
    let study = study("which-transport.toml");
    assert_eq!(study.axes[0].name, "transport");
    assert_eq!(study.axes[1].name, "one-way delay");
    assert_eq!(study.axes[1].labels, ["20ms", "300ms"]);
    assert_eq!((study.replications, study.points.len()), (5, 20));
    for (index, point) in study.points.iter().enumerate() {
        assert_eq!(point.replicate as usize, index % 5);
        assert_eq!(point.scenario.seed, 1 + index as u64 % 5);
    }
}

#[test]
fn generated_files_are_up_to_date() {
    let check = std::process::Command::new(env!("CARGO_BIN_EXE_schema")).arg("--check").output();
    let check = check.expect("the program is built with its tests");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}

#[test]
fn the_schema_hides_nothing_and_needs_no_null() {
    // But for a queue that stands in a queue.
    let text = schema().to_string().replace("\"$ref\":\"#/$defs/Queue\"", "");
    for word in ["$ref", "\"null\"", "anyOf"] {
        assert!(!text.contains(word), "{word}");
    }
}
