//! Command-line arguments and their checks before a socket is opened.

use std::net::{IpAddr, SocketAddr};

use clap::{Parser, ValueEnum, value_parser};
use talkspurt_live::{Encapsulation, Inside};
use talkspurt_proto::packet::PathId;
use talkspurt_proto::sctp::Config;
use talkspurt_proto::time::{Duration, Instant};

use crate::peer::{Path, address};

/// Runs an SCTP echo test with a peer over raw IP or UDP and prints the results.
#[derive(Debug, Parser)]
pub(super) struct Ask {
    /// Whether it opens the association or waits for one.
    pub(super) role: Role,
    /// Our address and port.
    #[arg(long, value_parser = address)]
    pub(super) local: SocketAddr,
    /// The peer's; a server may leave it out.
    #[arg(long, required_if_eq("role", "client"), value_parser = address)]
    pub(super) remote: Option<SocketAddr>,
    /// A further path, OURS=THEIRS: addresses of the same hosts.
    #[arg(long = "path", value_parser = pair)]
    pub(super) further: Vec<(IpAddr, IpAddr)>,
    /// Outage of a path, as NUMBER@FROM..UNTIL, such as 0@2s..1min; the first path is 0.
    #[arg(long = "cut", value_parser = cut)]
    pub(super) cuts: Vec<(PathId, Instant, Instant)>,
    /// UDP encapsulation (RFC 6951): our port, and the peer's if known, as OURS or OURS:THEIRS.
    #[arg(long, value_parser = encapsulation)]
    pub(super) udp: Option<Encapsulation>,
    /// The association's parameters as JSON, as in a scenario: {"ordered": false}.
    #[arg(long, default_value = "{}")]
    sctp: String,
    /// Messages to send, a million at most.
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(..=1_000_000))]
    pub(super) packets: u64,
    /// Messages that the peer sends.
    #[arg(long, default_value_t = 100)]
    pub(super) awaited: u64,
    /// Message length in bytes, a multiple of 8.
    #[arg(long, default_value_t = 160, value_parser = whole_words)]
    pub(super) bytes: u64,
    /// Number of streams, used round robin.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u16).range(1..))]
    pub(super) streams: u16,
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
    /// The association's parameters, or an error in the arguments.
    pub(super) fn config(&self) -> Result<Config, String> {
        let config: Config =
            serde_json::from_str(&self.sctp).map_err(|error| format!("--sctp: {error}"))?;
        let four = self.local.is_ipv4();
        if self.remote.is_some_and(|remote| remote.is_ipv4() != four) {
            return Err("--local and --remote: one is IPv4, the other IPv6".to_owned());
        }
        if !self.further.is_empty() {
            if self.udp.is_some() || !four || self.further.iter().any(|(_, to)| !to.is_ipv4()) {
                return Err("--path: several paths there are over raw IPv4 only".to_owned());
            }
            if self.further.len() > 7 {
                return Err("--path: eight paths are the most".to_owned());
            }
        }
        if let Some(cut) = self.cuts.iter().find(|cut| usize::from(cut.0.0) > self.further.len()) {
            return Err(format!("--cut: there is no path {}", cut.0.0));
        }
        if self.role == Role::Client && self.udp.is_some_and(|udp| udp.remote_port == 0) {
            return Err("--udp: a client must know the peer's port".to_owned());
        }
        if self.streams > config.streams {
            return Err(format!("--streams: the association has {}", config.streams));
        }
        Ok(config)
    }
}

fn pair(text: &str) -> Result<(IpAddr, IpAddr), String> {
    let wrong = || "not ADDRESS=ADDRESS".to_owned();
    let (ours, theirs) = text.split_once('=').ok_or_else(wrong)?;
    let (ours, theirs) = (ours.parse().map_err(|_| wrong())?, theirs.parse().map_err(|_| wrong())?);
    Ok((ours, theirs))
}

fn cut(text: &str) -> Result<(PathId, Instant, Instant), String> {
    let wrong = || "not NUMBER@FROM..UNTIL".to_owned();
    let (path, times) = text.split_once('@').ok_or_else(wrong)?;
    let (from, until) = times.split_once("..").ok_or_else(wrong)?;
    let at = |text: &str| -> Result<Instant, String> {
        Ok(Instant::ZERO + text.parse::<Duration>().map_err(|_| wrong())?)
    };
    Ok((PathId(path.parse().map_err(|_| wrong())?), at(from)?, at(until)?))
}

fn encapsulation(text: &str) -> Result<Encapsulation, String> {
    let wrong = |_| "not a UDP port, or two with a colon between".to_owned();
    let (ours, theirs) = text.split_once(':').unwrap_or((text, "0"));
    let local_port = ours.parse().map_err(wrong)?;
    let remote_port = theirs.parse().map_err(wrong)?;
    Ok(Encapsulation { inside: Inside::Sctp, local_port, remote_port })
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

    fn ask(words: &str) -> Result<Config, String> {
        let program = std::iter::once("sctp-peer");
        match Ask::try_parse_from(program.chain(words.split_whitespace())) {
            Ok(ask) => ask.config(),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (words, name) in [
            ("--bytes 7", "--bytes"),
            ("--loss 2", "--loss"),
            ("--packets 1000001", "--packets"),
            ("--remote [fd33::1]:5001", "--remote"),
            ("--path 10.0.1.1", "--path"),
            ("--path 10.0.1.1=10.0.1.2 --udp 9899", "--path"),
            ("--cut 1@1s..2s", "--cut"),
            ("--cut 0@1s", "--cut"),
            ("--udp 70000", "--udp"),
            ("--streams 11", "--streams"),
            (r#"--sctp {"stream":1}"#, "--sctp"),
        ] {
            let refusal = ask(&format!("server --local 10.0.0.1:5001 {words}")).expect_err(words);
            assert!(refusal.contains(name), "{words}: {refusal}");
        }
        for (words, name) in [("", "--remote"), ("--remote 10.0.0.2:5001 --udp 9899", "--udp")] {
            let refusal = ask(&format!("client --local 10.0.0.1:5001 {words}")).expect_err(words);
            assert!(refusal.contains(name), "{words}: {refusal}");
        }
    }

    #[test]
    fn what_can_be_is_taken() {
        let two = "--path 10.0.1.1=10.0.1.2 --cut 1@500ms..1min";
        ask(&format!("server --local 10.0.0.1:5001 --loss 1 {two}")).expect("all of it can be");
    }
}
