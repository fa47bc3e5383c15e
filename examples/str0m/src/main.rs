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

#[cfg(test)]
mod tests {
    use super::*;
    use talkspurt_experiment::{Finished, run};
    use talkspurt_record::Tables;

    /// Video at the rate of the estimate over a link that falls from 1 Mbit/s to 300 kbit/s.
    fn finished(stack: &str) -> Finished {
        register();
        let text = format!(
            "title = 'a fall'
            duration = '20s'
            [links.l]
            from = 'a'
            to = 'b'
            rate = '1Mbit/s'
            delay = '30ms'
            queue = {{ kind = 'droptail', time = '300ms' }}
            steps = [{{ at = '10s', rate = '300kbit/s' }}]
            [flows.call]
            from = 'a'
            to = 'b'
            transport = {{ kind = 'external', stack = '{stack}' }}
            source = {{ kind = 'video', encoder = {{}} }}
            controller = {{ kind = 'fixed', rate = '1600kbit/s', circuit_breaker = false }}"
        );
        let study = talkspurt_scenario::load(&text, "test", Path::new("."), &[], None);
        let study = study.unwrap_or_else(|problems| panic!("{problems}"));
        let done = run(&study.points[0], &Disk, None, Tables::memory(), true, &Shared::default());
        done.unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[test]
    fn video_follows_the_estimate_and_every_message_has_a_place() {
        for stack in ["str0m-0.24.1", "str0m-0.25.0"] {
            let done = finished(stack);
            let flow = &done.recording.flows[0];
            let messages = flow.messages.expect("of a stack");
            assert_eq!(flow.transport, format!("{stack}+fixed (no breaker)"));
            // Half of 20 s at each rate carry 650 kbit/s.
            let goodput = flow.goodput_bps.expect("video");
            assert!((350e3..650e3).contains(&goodput), "{goodput}");
            // Reports of the session, and nothing else.
            assert_eq!(flow.discarded_packets, Some(messages.discarded));
            assert!((1..60).contains(&messages.discarded), "{messages:?}");
            assert!(messages.delivered > 800, "{messages:?}");
            assert!(flow.sent_packets > messages.delivered && flow.control_packets > 10);
        }
    }

    /// Whatever the thread has drawn before, and whenever the stack was registered.
    #[test]
    fn a_run_is_the_same_again() {
        for stack in ["str0m-0.24.1", "str0m-0.25.0"] {
            let first = finished(stack).digest;
            let again = std::thread::spawn(move || {
                fastrand::seed(99);
                let digest = finished(stack).digest;
                let mut others = fastrand::Rng::with_seed(99);
                assert_eq!(fastrand::u64(..), others.u64(..), "the thread's numbers are its own");
                digest
            });
            assert_eq!(again.join().expect("no failure"), first);
        }
    }
}
