//! SCTP: arguments, their checks before a socket is opened, an echo test.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::{Args, value_parser};
use talkspurt_live::{Encapsulation, Inside, Line, Port, RawIp, Setup, UdpPort};
use talkspurt_proto::packet::PathId;
use talkspurt_proto::sctp::{Config, Sctp};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::wire::sctp::PROTOCOL;
use talkspurt_proto::wire::udp;

use crate::echo::{Echo, converse};
use crate::ends::{Ends, Role};
use crate::rig::Impaired;
use crate::round_robin::RoundRobin;
use crate::watch::Watch;
use crate::watch::sctp::{Packets, bears_data};

#[derive(Debug, Args)]
pub(crate) struct Ask {
    #[command(flatten)]
    ends: Ends,
    /// A further path, OURS=THEIRS: addresses of the same hosts.
    #[arg(long = "path", value_parser = pair)]
    further: Vec<(IpAddr, IpAddr)>,
    /// Outage of a path, as NUMBER@FROM..UNTIL, such as 0@2s..1min; the first path is 0.
    #[arg(long = "cut", value_parser = cut)]
    cuts: Vec<(PathId, Instant, Instant)>,
    /// UDP encapsulation (RFC 6951): our port, and the peer's if known, as OURS or OURS:THEIRS.
    #[arg(long, value_parser = encapsulation)]
    udp: Option<Encapsulation>,
    /// The association's parameters as JSON, as in a scenario: {"ordered": false}.
    #[arg(long, default_value = "{}")]
    sctp: String,
    /// Messages that the peer sends.
    #[arg(long, default_value_t = 100)]
    awaited: u64,
    /// Number of streams, used round robin.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u16).range(1..))]
    streams: u16,
    #[command(flatten)]
    echo: Echo,
}

/// Runs the echo test; true if it ended before its limit.
pub(crate) fn run(ask: &Ask) -> Result<bool, Box<dyn Error>> {
    let config = ask.config()?;
    let here = ask.ends.local.ip();
    match ask.udp {
        Some(udp) => over(ask, &config, UdpPort::bind(SocketAddr::new(here, udp.local_port))?),
        None if ask.further.is_empty() => over(ask, &config, RawIp::open(here, PROTOCOL)?),
        // One socket receives for all addresses.
        None => over(ask, &config, RawIp::open(Ipv4Addr::UNSPECIFIED.into(), PROTOCOL)?),
    }
}

fn over<L: Port>(ask: &Ask, config: &Config, port: L) -> Result<bool, Box<dyn Error>> {
    let Ask { ends, echo, .. } = ask;
    let rng = ends.chances("sctp")?;
    let sctp = match ends.role {
        Role::Client => Sctp::client(config, rng),
        Role::Server => Sctp::listener(config, rng),
    };
    let inside = ask.udp.map(|udp| udp.inside);
    let (mut path, seen) = ends.path.impairing(move |bytes| bears_data(bytes, inside))?;
    path.further.clone_from(&ask.further);
    path.cuts.clone_from(&ask.cuts);
    let mut setup = Setup::new(ends.local, ends.remote);
    setup.further.clone_from(&ask.further);
    setup.encapsulation = ask.udp;
    let line = Line::new(Impaired::new(port, path), setup);
    let mut sctp = sctp.over(line.version());
    if ask.udp.is_some() {
        // RFC 6951 §5.6: the UDP header is present too.
        sctp = sctp.under(udp::HEADER as u32);
    }
    if !ask.further.is_empty() {
        // RFC 9260 §3.3.2.1: a multihomed endpoint lists all its addresses.
        let addresses: Vec<IpAddr> =
            [ends.local.ip()].into_iter().chain(ask.further.iter().map(|path| path.0)).collect();
        sctp = sctp.on_paths(addresses.len() as u8).with_addresses(&addresses);
    }
    // With losses the last packet may be lost: a SHUTDOWN ACK is repeated after RTO.Min, 1 s, or slightly
    // later, and then needs an answer (RFC 9260 §8.4 rule 5).
    let linger = Duration::from_millis(if ends.path.loss > 0.0 { 2500 } else { 300 });
    let test = echo.test(ends, linger).awaiting(ask.awaited).on_streams(ask.streams.into());
    let endpoint = RoundRobin::new(sctp, ask.streams);
    converse(ends, endpoint, test, (line, &seen), Watch::<Packets>::default())
}

impl Ask {
    /// The association's parameters, or an error in the arguments.
    fn config(&self) -> Result<Config, String> {
        let config: Config =
            serde_json::from_str(&self.sctp).map_err(|error| format!("--sctp: {error}"))?;
        if let Some(error) = self.ends.error() {
            return Err(error);
        }
        let four = self.ends.local.is_ipv4();
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
        if self.ends.opens() && self.udp.is_some_and(|udp| udp.remote_port == 0) {
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn ask(words: &str) -> Result<Config, String> {
        let program = ["peer", "sctp"].into_iter();
        match crate::Ask::try_parse_from(program.chain(words.split_whitespace())) {
            Ok(crate::Ask::Sctp(ask)) => ask.config(),
            other => Err(other.map_or_else(|error| error.to_string(), |ask| format!("{ask:?}"))),
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
