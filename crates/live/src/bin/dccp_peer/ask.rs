//! Command-line arguments and their checks before a socket is opened.

use std::net::SocketAddr;

use clap::{Parser, ValueEnum, value_parser};
use talkspurt_proto::dccp::{Config, KEPT_BYTES};
use talkspurt_proto::packet::IpVersion;
use talkspurt_proto::time::Duration;
use talkspurt_proto::validate::{ConfigError, Validate};

use crate::peer::{Path, address};

/// Runs a DCCP echo test with a peer over raw IP and prints the results.
#[derive(Debug, Parser)]
pub(super) struct Ask {
    /// Whether it opens the connection or waits for one.
    pub(super) role: Role,
    /// Our address and port.
    #[arg(long, value_parser = address)]
    pub(super) local: SocketAddr,
    /// The peer's; a server may leave it out, unless it sends DCCP-Listen packets.
    #[arg(long, required_if_eq("role", "client"), value_parser = address)]
    pub(super) remote: Option<SocketAddr>,
    /// The connection's parameters as JSON, as in a scenario: {"ccid": 3, "service": "SC=42"}.
    #[arg(long)]
    dccp: String,
    /// Messages to send, a million at most.
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(..=1_000_000))]
    pub(super) packets: u64,
    /// Message length in bytes, a multiple of 8 that fits a packet.
    #[arg(long, default_value_t = 160, value_parser = whole_words)]
    pub(super) bytes: u64,
    /// Time between two messages.
    #[arg(long, default_value = "20ms")]
    pub(super) interval: Duration,
    /// Closes when all messages are sent and nothing arrived for --quiet.
    #[arg(long)]
    pub(super) closes: bool,
    /// Silence after which the peer is considered finished.
    #[arg(long, default_value = "700ms")]
    pub(super) quiet: Duration,
    /// Time limit of the run.
    #[arg(long, default_value = "20s")]
    pub(super) limit: Duration,
    #[command(flatten)]
    pub(super) path: Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Role {
    Client,
    Server,
}

impl Ask {
    /// The connection's parameters, or all errors in the arguments.
    pub(super) fn config(&self) -> Result<Config, Vec<String>> {
        let mut found = Vec::new();
        if let Some(remote) = self.remote
            && remote.is_ipv4() != self.local.is_ipv4()
        {
            found.push("--local and --remote: one is IPv4, the other IPv6".to_owned());
        }
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
        if config.listen_packets && self.role == Role::Server && self.remote.is_none() {
            found.push("--dccp: with listen_packets, --remote must say where they go".to_owned());
        }
        let version = if self.local.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let kept = u64::from(version.header_bytes() + KEPT_BYTES);
        let most = config.mtu.as_bytes().saturating_sub(kept);
        if self.bytes > most {
            found.push(format!("--bytes: a packet of the mtu {} holds {most}", config.mtu));
        }
        if found.is_empty() { Ok(config) } else { Err(found) }
    }
}

fn whole_words(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(bytes) if bytes > 0 && bytes % 8 == 0 => Ok(bytes),
        _ => Err("not a positive multiple of 8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error for these arguments.
    fn refusal(words: &str) -> String {
        let program = std::iter::once("dccp-peer");
        match Ask::try_parse_from(program.chain(words.split_whitespace())) {
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
        let words =
            r#"dccp-peer server --local 10.0.0.1:5001 --dccp {"ccid":2} --loss 1 --bytes 8"#;
        let ask = Ask::try_parse_from(words.split_whitespace()).expect("all of it can be");
        assert!(ask.config().is_ok());
    }
}
