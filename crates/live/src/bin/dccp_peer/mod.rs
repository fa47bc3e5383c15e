//! Arguments, an echo test, results.

mod ask;
mod watch;

use std::error::Error;
use std::process::ExitCode;

use ask::{Ask, Role};
use clap::Parser as _;
use serde::Serialize;
use talkspurt_live::{EchoConfig, EchoReport, EchoTest, Line, RawIp, drive};
use talkspurt_proto::dccp::{Config, Dccp};
use talkspurt_proto::time::{Duration, Instant};
use watch::{Watch, bears_data};

use crate::peer::{ImpairmentCounts, chances};

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Said<'a> {
    Listening,
    Result {
        tally: &'a EchoReport,
        packets: &'a Watch,
        impairments: &'a ImpairmentCounts,
        unsent_packets: u64,
        seconds: f64,
    },
}

pub(crate) fn main() -> ExitCode {
    let ask = Ask::parse();
    let config = match ask.config() {
        Ok(config) => config,
        Err(found) => {
            found.iter().for_each(|wrong| eprintln!("dccp-peer: {wrong}"));
            return ExitCode::FAILURE;
        }
    };
    match run(&ask, &config) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("dccp-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the echo test; true if it ended before its limit.
fn run(ask: &Ask, config: &Config) -> Result<bool, Box<dyn Error>> {
    let port = RawIp::dccp(ask.local.ip())?;
    let rng = chances(ask.path.endpoint_seed, "dccp")?;
    let endpoint = match ask.role {
        Role::Client => Dccp::client(config, rng),
        Role::Server => Dccp::listener(config, rng),
    };
    let (setup, seen) = ask.path.setup(ask.local, ask.remote, bears_data)?;
    let mut line = Line::new(port, setup);
    let mut endpoint = endpoint.over(line.version());
    let mut app = EchoTest::new(terms(ask));
    let mut watch = Watch::default();
    if ask.role == Role::Server {
        say(&Said::Listening)?;
    }
    drive(&mut endpoint, &mut app, &mut line, &mut watch)?;
    let mut seen = seen.lock().expect("one thread");
    if let Some(capture) = seen.capture.take() {
        capture.finish()?;
    }
    say(&Said::Result {
        tally: app.tally(),
        packets: &watch,
        impairments: &seen.impairments,
        unsent_packets: line.unsent_packets(),
        seconds: line.now().as_secs_f64(),
    })?;
    Ok(!app.tally().gave_up)
}

fn terms(ask: &Ask) -> EchoConfig {
    EchoConfig {
        packets: ask.packets,
        bytes: ask.bytes,
        interval: ask.interval,
        connection: true,
        opens: ask.role == Role::Client,
        closes: ask.closes,
        quiet: ask.quiet,
        linger: Duration::from_millis(300),
        limit: Instant::ZERO + ask.limit,
    }
}

fn say(said: &Said<'_>) -> serde_json::Result<()> {
    println!("{}", serde_json::to_string(said)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use talkspurt_proto::dccp::WireSeq;
    use talkspurt_proto::endpoint::{Endpoint as _, Input, Output};

    use super::*;

    /// The Sequence Number of the first Request of a client with this seed.
    fn initial_number(seed: Option<u64>) -> WireSeq {
        let config = serde_json::from_str(r#"{"ccid": 2}"#).expect("a configuration");
        let mut client =
            Dccp::client(&config, chances(seed, "dccp").expect("the system has chances"));
        client.handle(Instant::ZERO, Input::Open, &mut ());
        match client.poll(Instant::ZERO, &mut ()) {
            Output::Transmit(transmit) => transmit.packet.seq,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn initial_sequence_numbers_are_of_the_seed_or_of_nobody() {
        // RFC 4340 §7.2. Three random 48-bit numbers are equal once in 2⁹⁶.
        let drawn = [None; 3].map(initial_number);
        assert!(drawn[0] != drawn[1] || drawn[1] != drawn[2], "{drawn:?}");
        assert_eq!(initial_number(Some(7)), initial_number(Some(7)));
    }
}
