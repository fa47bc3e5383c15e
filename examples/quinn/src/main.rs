//! Runs a scenario whose flows can name the stack `quinn`, and writes its folder for `talkspurt report`:
//!
//! ```sh
//! cargo run --release -- SCENARIO.toml FOLDER
//! talkspurt report FOLDER
//! ```

mod plain;
mod quic;

use std::path::Path;
use std::process::ExitCode;

use talkspurt_experiment::{Disk, Shared, run_into};
use talkspurt_proto::external;

fn run(scenario: &Path, folder: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(scenario).map_err(|error| error.to_string())?;
    let base = scenario.parent().unwrap_or(Path::new("."));
    let study = talkspurt_scenario::load(&text, &scenario.to_string_lossy(), base, &[], None);
    let study = study.map_err(|problems| problems.to_string())?;
    let done = run_into(&study.points[0], &Disk, folder, &Shared::default());
    done.map(|done| done.digest).map_err(|failure| failure.to_string())
}

fn main() -> ExitCode {
    external::register(quic::kind());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scenario, folder] = &arguments[..] else {
        eprintln!("talkspurt-quinn SCENARIO.toml FOLDER");
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

    /// A second of a link at 500 kbit/s carries 62 messages of 1000 bytes at most; `rate` is the source's.
    fn finished(rate: &str) -> Finished {
        external::register(quic::kind());
        let text = format!(
            "title = 'overload'
            duration = '20s'
            [links.l]
            from = 'a'
            to = 'b'
            rate = '500kbit/s'
            delay = '30ms'
            queue = {{ kind = 'droptail', packets = 30 }}
            [flows.messages]
            from = 'a'
            to = 'b'
            transport = {{ kind = 'external', stack = 'quinn' }}
            source = {{ kind = 'cbr', rate = '{rate}', packet = '1000B' }}"
        );
        let study = talkspurt_scenario::load(&text, "test", Path::new("."), &[], None);
        let study = study.unwrap_or_else(|problems| panic!("{problems}"));
        let done = run(&study.points[0], &Disk, None, Tables::memory(), true, &Shared::default());
        done.unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[test]
    fn every_message_has_a_place_at_overload() {
        let done = finished("1Mbit/s");
        let flow = &done.recording.flows[0];
        let messages = flow.messages.expect("of a stack");
        assert_eq!(flow.transport, "quinn 0.11.19");
        // 125 messages a second are handed over, half of which the link carries.
        assert!((2300..=2500).contains(&messages.handed_over), "{messages:?}");
        assert!((900..1500).contains(&messages.discarded), "{messages:?}");
        assert_eq!(flow.discarded_packets, Some(messages.discarded));
        // Packets of one message each: what was sent was delivered, lost or is on its way.
        assert_eq!(flow.payload_bytes, 1000 * flow.sent_packets);
        assert_eq!(messages.delivered, flow.received_packets);
        // The rest: lost in the network, in flight, and in the queue of 64 kB and the library's of 4 kB.
        let rest =
            messages.in_flight().expect("a balance") - flow.lost_packets - flow.in_flight_packets;
        assert!((40..=70).contains(&rest), "{rest}: {messages:?}");
        assert!(flow.goodput_bps.expect("data") > 400_000.0, "{:?}", flow.goodput_bps);
        assert_eq!(done.digest, finished("1Mbit/s").digest);
    }

    #[test]
    fn nothing_is_discarded_below_the_rate_of_the_link() {
        let done = finished("250kbit/s");
        let flow = &done.recording.flows[0];
        let messages = flow.messages.expect("of a stack");
        assert_eq!((messages.discarded, flow.lost_packets), (0, 0));
        assert!(
            messages.in_flight().expect("a balance") <= flow.in_flight_packets + 1,
            "{messages:?}"
        );
    }
}
