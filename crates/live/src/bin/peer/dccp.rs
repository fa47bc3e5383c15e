//! DCCP: arguments, their checks before a socket is opened, an echo test.

use std::error::Error;

use clap::Args;
use talkspurt_live::{Line, RawIp, Setup};
use talkspurt_proto::dccp::{Config, Dccp, KEPT_BYTES};
use talkspurt_proto::packet::IpVersion;
use talkspurt_proto::time::Duration;
use talkspurt_proto::validate::{ConfigError, Validate};
use talkspurt_proto::wire::dccp::PROTOCOL;

use crate::echo::{Echo, converse};
use crate::ends::{Ends, Role};
use crate::rig::Impaired;
use crate::watch::Watch;
use crate::watch::dccp::{Packets, bears_data};

#[derive(Debug, Args)]
pub(crate) struct Ask {
    #[command(flatten)]
    ends: Ends,
    /// The connection's parameters as JSON, as in a scenario: {"ccid": 3, "service": "SC=42"}.
    #[arg(long)]
    dccp: String,
    #[command(flatten)]
    echo: Echo,
}

/// Runs the echo test; true if it ended before its limit.
pub(crate) fn run(ask: &Ask) -> Result<bool, Box<dyn Error>> {
    let config = ask.config().map_err(|found| found.join("\n"))?;
    let Ask { ends, echo, .. } = ask;
    let port = RawIp::open(ends.local.ip(), PROTOCOL)?;
    let rng = ends.chances("dccp")?;
    let endpoint = match ends.role {
        Role::Client => Dccp::client(&config, rng),
        Role::Server => Dccp::listener(&config, rng),
    };
    let (path, seen) = ends.path.impairing(bears_data)?;
    let line = Line::new(Impaired::new(port, path), Setup::new(ends.local, ends.remote));
    let endpoint = endpoint.over(line.version());
    let test = echo.test(ends, Duration::from_millis(300));
    converse(ends, endpoint, test, (line, &seen), Watch::<Packets>::default())
}

impl Ask {
    /// The connection's parameters, or all errors in the arguments.
    fn config(&self) -> Result<Config, Vec<String>> {
        let Self { ends, echo, .. } = self;
        let mut found: Vec<String> = ends.error().into_iter().collect();
        let config: Config = match serde_json::from_str(&self.dccp) {
            Ok(config) => config,
            Err(error) => {
                found.push(format!("--dccp: {error}"));
                return Err(found);
            }
        };
        for ConfigError { key, why, hint } in config.errors() {
            let hint = hint.map_or_else(String::new, |hint| format!(" – {hint}"));
            found.push(format!("--dccp: {key}: {why}{hint}"));
        }
        // RFC 5596 §2.2.1: a Listen is sent to a client known beforehand.
        if config.listen_packets && !ends.opens() && ends.remote.is_none() {
            found.push("--dccp: with listen_packets, --remote must say where they go".to_owned());
        }
        let version = if ends.local.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let kept = u64::from(version.header_bytes() + KEPT_BYTES);
        let most = config.mtu.as_bytes().saturating_sub(kept);
        if echo.bytes > most {
            found.push(format!("--bytes: a packet of the mtu {} holds {most}", config.mtu));
        }
        if found.is_empty() { Ok(config) } else { Err(found) }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use talkspurt_proto::dccp::WireSeq;
    use talkspurt_proto::endpoint::{Endpoint as _, Input, Output};
    use talkspurt_proto::time::Instant;

    use super::*;
    use crate::ends::chances;

    fn parsed(words: &str) -> Result<Ask, clap::Error> {
        let program = ["peer", "dccp"].into_iter();
        match crate::Ask::try_parse_from(program.chain(words.split_whitespace()))? {
            crate::Ask::Dccp(ask) => Ok(ask),
            other => panic!("{other:?}"),
        }
    }

    /// The error for these arguments.
    fn refusal(words: &str) -> String {
        match parsed(words) {
            Ok(ask) => ask.config().expect_err(words).join("\n"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let server = r#"server --local 10.0.0.1:5001 --dccp {"ccid":2}"#;
        for (words, name) in [
            ("--bytes 7", "--bytes"),
            ("--bytes 0", "--bytes"),
            ("--bytes 1496", "--bytes"),
            ("--loss 2", "--loss"),
            ("--loss=-0.1", "--loss"),
            ("--loss NaN", "--loss"),
            ("--held 1.5", "--held"),
            ("--packets 1000001", "--packets"),
            ("--remote [fd33::1]:5001", "--remote"),
            ("--remote 10.0.0.2:0", "--remote"),
        ] {
            let refusal = refusal(&format!("{server} {words}"));
            assert!(refusal.contains(name), "{words}: {refusal}");
        }
        let client = refusal(r#"client --local 10.0.0.1:5001 --dccp {"ccid":2}"#);
        assert!(client.contains("--remote"), "{client}");
        let knobs = r#"--dccp {"ccid":2,"listen_packets":true}"#;
        let listens = refusal(&format!("server --local 10.0.0.1:5001 {knobs}"));
        assert!(listens.contains("--remote"), "{listens}");
        let unknown = refusal(r#"server --local 10.0.0.1:5001 --dccp {"ccid":5}"#);
        assert!(unknown.contains("--dccp"), "{unknown}");
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let knobs = r#"{"ccid":3,"sequence_window":31,"mtu":"60B","give_up":"0ms","msl":"2h","checksum_coverage":1,"window":{"min_rto":"0ms"},"rate":{"loss_intervals":1,"token_bucket":{"depth":"1GB"}}}"#;
        let words = format!("server --local 10.0.0.1:5001 --remote [fd33::1]:5001 --dccp {knobs}");
        let refusal = refusal(&words);
        assert_eq!(
            refusal.lines().collect::<Vec<_>>(),
            [
                "--local and --remote: one is IPv4, the other IPv6",
                "--dccp: sequence_window: 31 packets is not a Sequence Window: 32 to 70368744177663 \
                 (RFC 4340 §7.5.2)",
                "--dccp: checksum_coverage: the other side takes only packets that are covered whole \
                 (RFC 4340 §9.2.1) – minimum_checksum_coverage = 1 or less lets it take these",
                "--dccp: give_up: 0ms: a timer needs time",
                "--dccp: msl: 2h is out of range: at most 1h",
                "--dccp: mtu: 60B is not the size of an IP packet: 68B to 65535B",
                "--dccp: window: these are parameters of CCID 2, which neither direction uses – those of \
                 CCID 3 and 4 are in `rate`",
                "--dccp: window.min_rto: 0ms: a timer needs time",
                "--dccp: rate.loss_intervals: 1: between 2 and 28 are kept",
                "--dccp: rate.token_bucket.depth: 1GB is out of range: at most 100MB – 0B keeps no \
                 tokens at all",
                "--bytes: a packet of the mtu 60B holds 0",
            ]
        );
    }

    #[test]
    fn what_can_be_is_taken() {
        let words = r#"server --local 10.0.0.1:5001 --dccp {"ccid":2} --loss 1 --bytes 8"#;
        let ask = parsed(words).expect("all of it can be");
        assert!(ask.config().is_ok());
    }

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
