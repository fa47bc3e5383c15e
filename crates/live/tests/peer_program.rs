//! The program `peer` from a user's view, as far as it needs no root.
#![cfg(target_os = "linux")]

use std::process::Command;

/// Every invalid parameter is reported by name before a socket is opened, with an exit status.
#[test]
fn impossible_knobs_end_the_program_with_all_their_names() {
    let knobs = r#"{"ccid": 2, "sequence_window": 1, "request_timeout": "0ms",
        "window": {"initial_window": 0, "ack_ratio": 0}, "rate": {"p_floor": 2.0}}"#;
    let program = Command::new(env!("CARGO_BIN_EXE_peer"))
        .args(["dccp", "client", "--local", "127.0.0.1:5001", "--remote", "127.0.0.1:5002"])
        .args(["--bytes", "1496", "--dccp", knobs])
        .output()
        .expect("it runs");
    let told = String::from_utf8(program.stderr).expect("text");
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(program.status.code(), Some(1), "{told:?}");
    let names = [
        "sequence_window",
        "request_timeout",
        "rate",
        "window.initial_window",
        "window.ack_ratio",
        "rate.p_floor",
    ];
    assert_eq!(told.len(), names.len() + 1, "{told:?}");
    for (line, name) in told.iter().zip(names) {
        assert!(line.starts_with(&format!("peer: --dccp: {name}: ")), "{line}");
    }
    assert!(told[names.len()].starts_with("peer: --bytes: "), "{told:?}");
}
