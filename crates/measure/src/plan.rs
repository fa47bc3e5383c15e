//! What is measured: flows between the two ends, as both make the same scenario of it.
//!
//! A plan comes from the network. It has any transport of scenarios, within limits, and only the traffic below:
//! sources of scenarios could name files.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use talkspurt_app::codec::Codec;
use talkspurt_app::file::Disk;
use talkspurt_app::source::Config as Source;
use talkspurt_proto::media::breaker;
use talkspurt_proto::packet::IpVersion;
use talkspurt_proto::rtp;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};
use talkspurt_proto::wire::udp;
use talkspurt_scenario::model::Flow;
use talkspurt_scenario::{Point, resolve};

use crate::protocol::Protocol;
use crate::seal::OVERHEAD;
use crate::transport::Transport;
use crate::{Failure, codecs};

/// Quiet time before the flows, in which the clocks are compared over an idle path.
pub(crate) const LEAD: Duration = Duration::from_secs(1);
/// Time after the flows for late packets and closing connections.
pub(crate) const DRAIN: Duration = Duration::from_millis(1500);
/// Time between probes before and after the flows.
pub(crate) const QUIET_PROBES: Duration = Duration::from_millis(50);
/// Bytes of a question; the answer is as long.
pub(crate) const PROBE: usize = 16;
/// Bytes of a report on a flow.
pub(crate) const REPORT: usize = 17;
/// Most flows of a plan.
const MAX_FLOWS: usize = 16;
/// Payload of a packet of video, and the lowest rate of its encoder unless less is asked for.
const VIDEO_PACKET: u32 = 1100;
const VIDEO_MIN: u64 = 100_000;
/// Names of the two ends of a measurement, and of a call.
const ENDS: [&str; 2] = ["client", "server"];
const CALLERS: [&str; 2] = ["caller", "answerer"];
/// The ladder of TFRC-TB: G.711 and G.726 (Maldonado, Baset, Schulzrinne 2005).
const LADDER: [Codec; 5] =
    [Codec::Pcmu, Codec::G726At40, Codec::G726At32, Codec::G726At24, Codec::G726At16];

/// A measurement of flows at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Root of the random streams of both ends.
    pub seed: u64,
    /// How long the sources send.
    pub duration: u64,
    /// Longest IP packet on the path, in bytes.
    pub mtu: u16,
    /// Whether the path is IPv6.
    pub ipv6: bool,
    /// The flows.
    pub flows: Vec<FlowPlan>,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowPlan {
    /// Its name in tables.
    pub name: String,
    /// Its transport.
    pub transport: Transport,
    /// What the client sends.
    pub up: Option<Traffic>,
    /// What the server sends.
    pub down: Option<Traffic>,
}

/// Traffic of a direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Traffic {
    /// Constant bit rate: payload bits per second, and payload bytes per packet.
    Cbr {
        /// Bits per second of payload.
        rate: u64,
        /// Bytes of payload per packet.
        packet: u32,
    },
    /// Talkspurts of a codec with pauses.
    Talkspurts {
        /// The codec by its name in scenarios.
        codec: String,
    },
    /// As much as the transport permits, in packets of so many bytes of payload.
    Bulk {
        /// Bytes of payload per packet.
        packet: u32,
    },
    /// Video of an encoder, with repair.
    Video {
        /// Bits per second of RTP packets at most.
        rate: u64,
        /// The kind of the controller of its session in scenarios, which both directions share; absent where
        /// the transport asks for rates.
        controller: Option<String>,
    },
    /// What somebody says in a call.
    Speech {
        /// The codecs that both ends agreed on, by their names in scenarios, in order of preference.
        codecs: Vec<String>,
        /// As of video, but not needed.
        controller: Option<String>,
    },
}

impl Traffic {
    /// Its source in a scenario; null if it has none of the codecs.
    fn source(&self, transport: &Transport) -> Value {
        match self {
            Self::Speech { codecs, .. } => {
                let codecs: Vec<_> = codecs.iter().filter_map(|it| codecs::codec(it)).collect();
                let rungs = codecs::rungs(transport, &codecs);
                let [first, others @ ..] = &rungs[..] else { return Value::Null };
                let ladder = rungs.iter().map(|it| it.codec).collect::<Vec<_>>();
                let ladder = (!others.is_empty()).then_some(ladder);
                json!({
                    "kind": "speech", "codec": first.codec, "packet": first.packet, "ladder": ladder,
                })
            }
            Self::Cbr { rate, packet } => {
                json!({ "kind": "cbr", "rate": Rate::from_bps(*rate), "packet": size(*packet) })
            }
            Self::Talkspurts { codec } => {
                let steps_down = transport.chooses() && codec == LADDER[0].word();
                let ladder = steps_down.then_some(LADDER);
                json!({ "kind": "speech", "codec": codec, "ladder": ladder, "talkspurts": {} })
            }
            Self::Video { rate, .. } => {
                let [least, most] = [VIDEO_MIN.min(*rate), *rate].map(Rate::from_bps);
                json!({
                    "kind": "video", "packet": size(VIDEO_PACKET), "repair": {},
                    "encoder": { "min": least, "max": most },
                })
            }
            // The simulator's TCP has segments, and no such units.
            Self::Bulk { .. } if transport.is_stream() => json!({ "kind": "bulk" }),
            Self::Bulk { packet } => json!({ "kind": "bulk", "packet": size(*packet) }),
        }
    }

    /// Payload in bits per second, if it is known, and in bytes per packet; and whether RTP carries it.
    fn payload(&self) -> Option<(u64, u64, bool)> {
        match *self {
            Self::Cbr { rate, packet } => Some((rate, u64::from(packet), false)),
            // The codec of the highest rate.
            Self::Speech { ref codecs, .. } => {
                let codecs = codecs.iter().filter_map(|it| codecs::codec(it));
                let rates = codecs.map(codecs::encoding).map(|it| {
                    let bytes = it.payload_bytes() as u64;
                    (8 * bytes * 1_000_000_000 / it.packet.as_nanos(), bytes)
                });
                rates.max().map(|(rate, bytes)| (rate, bytes, true))
            }
            Self::Video { rate, .. } => Some((rate, u64::from(VIDEO_PACKET), true)),
            // G.711, the codec of the highest rate.
            Self::Talkspurts { .. } => Some((64_000, 160, true)),
            Self::Bulk { .. } => None,
        }
    }

    /// The controller of its session in a scenario. It counts whole IP packets, and what is repeated.
    fn controller(&self, outer: u64) -> Option<Value> {
        let (Self::Video { controller: Some(kind), .. }
        | Self::Speech { controller: Some(kind), .. }) = self
        else {
            return None;
        };
        let (rate, bytes, _) = self.payload()?;
        let (least, most) = match self {
            Self::Video { .. } => (VIDEO_MIN.min(rate), rate.saturating_add(rate / 8)),
            // Opus at its lowest rate is mostly headers.
            _ => {
                let whole = rate * (bytes + rtp::HEADER_BYTES as u64 + outer) / bytes.max(1);
                (whole / 3, whole + whole / 8)
            }
        };
        let [least, most] = [least, most].map(Rate::from_bps);
        Some(match kind.as_str() {
            "fixed" => json!({ "kind": kind, "rate": most }),
            _ => json!({ "kind": kind, "min": least, "max": most }),
        })
    }
}

impl Plan {
    /// When the sources stop.
    pub(crate) fn stop(&self) -> Instant {
        Instant::ZERO + LEAD + Duration::from_nanos(self.duration)
    }

    /// When the measurement ends.
    pub(crate) fn end(&self) -> Instant {
        self.stop() + DRAIN
    }

    /// Whether it is a call.
    pub(crate) fn is_call(&self) -> bool {
        let speech = |traffic: &Option<Traffic>| matches!(traffic, Some(Traffic::Speech { .. }));
        self.flows.iter().any(|flow| speech(&flow.up) || speech(&flow.down))
    }

    /// Names of the two ends, the client first.
    pub(crate) fn ends(&self) -> [&'static str; 2] {
        if self.is_call() { CALLERS } else { ENDS }
    }

    /// The protocols of its flows directly over IP.
    pub(crate) fn direct(&self) -> Vec<Protocol> {
        let needs =
            |it: &Protocol| self.flows.iter().any(|flow| flow.transport.direct() == Some(*it));
        Protocol::ALL.into_iter().filter(needs).collect()
    }

    /// Whether the client opens a flow: the end that sends, the client if both do.
    pub(crate) fn client_opens(&self, flow: usize) -> bool {
        self.flows[flow].up.is_some()
    }

    /// Bytes of the headers of IP and UDP and of the seal.
    pub(crate) const fn outer(&self) -> u64 {
        let version = if self.ipv6 { IpVersion::V6 } else { IpVersion::V4 };
        version.header_bytes() as u64 + (udp::HEADER + OVERHEAD) as u64
    }

    /// Bytes of a unit over TCP that count for the limit of the rate: those of a segment of its own.
    pub(crate) fn stream_bytes(&self, payload: usize) -> u32 {
        (self.outer() + Transport::Tcp(None).header_bytes()) as u32 + payload as u32
    }

    /// Rate of the answers, and of the questions, as IP packets.
    pub(crate) const fn answers(&self) -> Rate {
        Rate::from_bps(8 * (self.outer() + PROBE as u64) * per_second(QUIET_PROBES))
    }

    /// Packets with payload a second, of both directions and all flows whose rate is known.
    pub(crate) fn packets_per_second(&self) -> u64 {
        let all = self.flows.iter().flat_map(|flow| [&flow.up, &flow.down]).flatten();
        // Frames of few packets, and what is repeated.
        let videos = all.clone().filter(|it| matches!(it, Traffic::Video { .. })).count() as u64;
        let known = all.filter_map(Traffic::payload);
        let packets = |(rate, bytes, _): (u64, u64, bool)| rate / (8 * bytes.max(1)) + 1;
        known.fold(100 * videos, |sum, it| sum.saturating_add(packets(it)))
    }

    /// Whether a flow sends as much as its transport permits.
    pub(crate) fn has_bulk(&self) -> bool {
        let mut all = self.flows.iter().flat_map(|flow| [&flow.up, &flow.down]).flatten();
        all.any(|traffic| matches!(traffic, Traffic::Bulk { .. }))
    }

    /// Rate of a direction as IP packets, in bits per second, as far as it is known: that of probes, answers
    /// and reports, and of flows without bulk and without acknowledgements and options.
    fn known(&self, up: bool) -> u64 {
        let report = 8 * (self.outer() + (self.flows.len() * REPORT) as u64);
        let control = 2 * self.answers().as_bps() + report * per_second(breaker::INTERVAL);
        self.flows.iter().fold(control, |sum, flow| {
            let traffic = if up { &flow.up } else { &flow.down };
            let Some((rate, packet, in_rtp)) = traffic.as_ref().and_then(Traffic::payload) else {
                return sum;
            };
            let media = if in_rtp { rtp::HEADER_BYTES as u64 } else { 0 };
            let whole = packet + media + flow.transport.header_bytes() + self.outer();
            let all = u128::from(rate) * u128::from(whole) / u128::from(packet.max(1));
            sum.saturating_add(u64::try_from(all).unwrap_or(u64::MAX))
        })
    }

    /// Sum of the rates of both directions as IP packets, as far as they are known.
    pub(crate) fn rate(&self) -> Rate {
        Rate::from_bps(self.known(true).saturating_add(self.known(false)))
    }

    /// The parts of the limit of a session that the client may send, and the server. Each has what is known of
    /// its direction. Of the rest, bulk in one direction gets seven eighths, and the other direction's
    /// acknowledgements one; otherwise both get half.
    pub(crate) fn shares(&self, limit: Rate) -> [Rate; 2] {
        let bulk = |traffic: &Option<Traffic>| matches!(traffic, Some(Traffic::Bulk { .. }));
        let ups = self.flows.iter().any(|flow| bulk(&flow.up));
        let downs = self.flows.iter().any(|flow| bulk(&flow.down));
        let rest = limit.as_bps().saturating_sub(self.rate().as_bps());
        let up = match (ups, downs) {
            (true, false) => rest - rest / 8,
            (false, true) => rest / 8,
            _ => rest / 2,
        };
        [self.known(true) + up, self.known(false) + (rest - up)].map(Rate::from_bps)
    }

    /// The scenario of the plan. Its only link stands for the path, of which nothing is known.
    ///
    /// # Errors
    /// All that is wrong, by flow.
    pub fn point(&self) -> Result<Point, Failure> {
        self.check()?;
        let mut point = resolve(&self.scenario(), &Disk).map_err(|problems| {
            let words = problems.0.iter().map(|problem| match &problem.path {
                path if path.is_empty() => problem.message.clone(),
                path => format!("{path}: {}", problem.message),
            });
            Failure::Input(words.collect::<Vec<_>>().join("; "))
        })?;
        if self.is_call() {
            point.scenario.flows.values_mut().for_each(name_files);
        }
        Ok(point)
    }

    /// Whether this end has the congestion controllers that it is to send with.
    ///
    /// # Errors
    /// By flow, what is missing.
    pub fn check_controllers(&self, client: bool) -> Result<(), Failure> {
        let faults = self.flows.iter().filter_map(|flow| {
            let sends = if client { &flow.up } else { &flow.down };
            let Transport::Tcp(Some(controller)) = &flow.transport else { return None };
            let fault = sends.as_ref().and_then(|_| controller.check().err());
            fault.map(|fault| format!("{}: {fault}", flow.name))
        });
        let faults: Vec<_> = faults.collect();
        if faults.is_empty() { Ok(()) } else { Err(Failure::System(faults.join("; "))) }
    }

    /// Whether the route to the other end, of this MTU in bytes, carries what this end sends directly over IP,
    /// which is not fragmented.
    ///
    /// # Errors
    /// By flow, what is too long.
    pub(crate) fn check_route(&self, client: bool, mtu: Option<u32>) -> Result<(), Failure> {
        let Some(route) = mtu.and_then(|mtu| u16::try_from(mtu).ok()) else { return Ok(()) };
        let most = largest(route.min(self.mtu));
        let end = self.ends()[usize::from(!client)];
        let faults = self.flows.iter().filter_map(|flow| {
            flow.transport.direct()?;
            let sends = if client { &flow.up } else { &flow.down };
            let (Traffic::Cbr { packet, .. } | Traffic::Bulk { packet }) = sends.as_ref()? else {
                return None;
            };
            let fault = format!(
                "{}: packets of {packet} B: expected at most {most} B, as the route from the {end} has an MTU of \
                 {route} B, and packets directly over IP are not fragmented",
                flow.name
            );
            (*packet > u32::from(most)).then_some(fault)
        });
        let faults: Vec<_> = faults.collect();
        if faults.is_empty() { Ok(()) } else { Err(Failure::Input(faults.join("; "))) }
    }

    fn check(&self) -> Result<(), Failure> {
        let mut faults = Vec::new();
        if self.flows.is_empty() || self.flows.len() > MAX_FLOWS {
            faults.push(format!("{} flows: expected 1 to {MAX_FLOWS}", self.flows.len()));
        }
        if !(576..=9000).contains(&self.mtu) {
            faults.push(format!("an MTU of {} bytes: expected 576 to 9000", self.mtu));
        }
        let second = Duration::from_secs(1).as_nanos();
        if !(second..=3600 * second).contains(&self.duration) {
            faults.push("duration: expected 1 s to 1 h".to_owned());
        }
        if i64::try_from(self.seed).is_err() {
            faults.push(format!("a seed of {}: expected 0 to {}", self.seed, i64::MAX));
        }
        let mut names = BTreeSet::new();
        for flow in &self.flows {
            let plain = |text: &str| {
                !text.is_empty()
                    && text.len() <= 40
                    && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
            };
            if !plain(&flow.name) {
                faults.push("name of a flow: expected letters, digits and - _ .".to_owned());
                continue;
            }
            if !names.insert(&flow.name) {
                faults.push(format!(
                    "two flows are named {}: each needs a name of its own",
                    flow.name
                ));
            }
            let fault = |what: &str| format!("{}: {what}", flow.name);
            faults.extend(flow.transport.fault().map(|what| fault(&what)));
            if flow.up.is_none() && flow.down.is_none() {
                faults.push(fault("it sends in no direction"));
            }
            for traffic in [&flow.up, &flow.down].into_iter().flatten() {
                match traffic {
                    Traffic::Bulk { .. } if flow.transport.is_plain_udp() => faults.push(fault(
                        "bulk over UDP has no rate; use constant bit rate at the rate to test",
                    )),
                    Traffic::Cbr { rate: 0, .. } => faults.push(fault("a rate of 0")),
                    Traffic::Cbr { packet, .. } | Traffic::Bulk { packet }
                        if *packet < 8 || *packet > u32::from(largest(self.mtu)) =>
                    {
                        faults.push(fault(&format!(
                            "packets of {packet} B: expected 8 B to {} B, the most that fits an MTU of {}",
                            largest(self.mtu),
                            self.mtu
                        )));
                    }
                    Traffic::Video { rate, .. } if *rate < 10_000 => {
                        faults.push(fault("video: expected a rate of 10 kbit/s or more"));
                    }
                    Traffic::Video { controller: Some(kind), .. }
                    | Traffic::Speech { controller: Some(kind), .. }
                        if !plain(kind) =>
                    {
                        faults.push(fault("name of a controller: expected letters and digits"));
                    }
                    Traffic::Video { controller: None, .. } if flow.transport.is_plain_udp() => {
                        faults.push(fault("video over UDP needs a --controller, such as nada"));
                    }
                    Traffic::Talkspurts { codec } if !plain(codec) => {
                        faults.push(fault("name of a codec: expected letters, digits and - _ ."));
                    }
                    Traffic::Speech { codecs, .. }
                        if codecs.is_empty()
                            || codecs.iter().any(|it| codecs::codec(it).is_none()) =>
                    {
                        faults.push(fault("codecs of a call: expected names of codecs with sound"));
                    }
                    _ => {}
                }
            }
        }
        // Both directions of a flow may have the same fault.
        faults.dedup();
        if faults.is_empty() { Ok(()) } else { Err(Failure::Input(faults.join("; "))) }
    }

    fn scenario(&self) -> Value {
        let at = |at: Instant| at - Instant::ZERO;
        let [here, there] = self.ends();
        let flows = self.flows.iter().enumerate().map(|(number, flow)| {
            let FlowPlan { name, transport, up, down } = flow;
            let opens = self.client_opens(number);
            let (from, to) = if opens { (here, there) } else { (there, here) };
            let (first, second) = if opens { (up, down) } else { (down, &None) };
            let source = |traffic: &Option<Traffic>| Some(traffic.as_ref()?.source(transport));
            let controller =
                [first, second].into_iter().flatten().find_map(|it| it.controller(self.outer()));
            let said = json!({
                "from": from, "to": to, "ip": if self.ipv6 { "v6" } else { "v4" }, "start": LEAD,
                "stop": at(self.stop()), "transport": transport.scenario(),
                "source": source(first), "reverse": source(second),
                "controller": controller,
            });
            (name.clone(), said)
        });
        json!({
            "title": if self.is_call() { "A call" } else { "A measurement" },
            "duration": at(self.end()),
            "seed": self.seed,
            "measure": { "from": LEAD, "to": at(self.stop()) },
            "record": { "interval": Duration::from_millis(100), "gauges": true },
            "links": { "path": {
                "from": here, "to": there, "rate": Rate::from_bps(100_000_000_000),
                "delay": Duration::from_millis(1),
                // The seal, and the UDP header around DCCP and SCTP.
                "mtu": size(u32::from(self.mtu) - (OVERHEAD + udp::HEADER) as u32),
                "queue": { "kind": "droptail", "packets": 1000 },
            } },
            "flows": flows.collect::<serde_json::Map<_, _>>(),
        })
    }
}

fn size(bytes: u32) -> Size {
    Size::from_bytes(bytes.into())
}

/// Names what both ends of a call say. These are no files: each end has the sound of its own.
fn name_files(flow: &mut Flow) {
    let Flow { source, reverse, from, to, .. } = flow;
    for (source, speaker) in [(Some(source), from), (reverse.as_mut(), to)] {
        if let Some(Source::Speech(speech)) = source {
            speech.file = Some(format!("{speaker}.wav").into());
        }
    }
}

/// The most payload that every transport can carry in a packet of this MTU.
pub(crate) const fn largest(mtu: u16) -> u16 {
    // IPv6 and UDP, the seal, and the headers of DCCP with its options.
    mtu.saturating_sub(40 + 8 + OVERHEAD as u16 + 90)
}

const fn per_second(interval: Duration) -> u64 {
    Duration::from_secs(1).as_nanos() / interval.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(transport: Transport, up: Option<Traffic>, down: Option<Traffic>) -> Plan {
        let flows = vec![FlowPlan { name: "flow-1".to_owned(), transport, up, down }];
        let duration = Duration::from_secs(5).as_nanos();
        Plan { seed: 7, duration, mtu: 1500, ipv6: false, flows }
    }

    #[test]
    fn every_transport_has_a_scenario_of_every_traffic_in_every_direction() {
        let cbr = Traffic::Cbr { rate: 1_000_000, packet: 1000 };
        let talk = Traffic::Talkspurts { codec: "pcmu".to_owned() };
        for transport in Transport::all() {
            let name = transport.name();
            assert_eq!(Transport::named(&name).as_ref(), Ok(&transport));
            for traffic in [cbr.clone(), talk.clone(), Traffic::Bulk { packet: 1200 }] {
                let bulk = matches!(traffic, Traffic::Bulk { .. });
                for (up, down) in [(true, false), (false, true), (true, true)] {
                    let given = |wanted: bool| wanted.then(|| traffic.clone());
                    let point = plan(transport.clone(), given(up), given(down)).point();
                    // The bucket of TFRC-TB holds what a codec sends.
                    if bulk && ["udp", "tfrc-tb"].contains(&&*name) {
                        assert!(point.is_err());
                    } else {
                        assert!(point.is_ok(), "{name} {traffic:?}: {:?}", point.err());
                    }
                }
            }
        }
    }

    /// Headers by hand: IPv6 40 or IPv4 20, UDP 8, seal 38, and TFRC 16, DCCP 16, SCTP 12 + 16, or RTP 12. In
    /// place of UDP's, TCP's has 20 and timestamps 12; a unit has its length in 2.
    #[test]
    fn the_rate_counts_all_headers() {
        let cbr = Traffic::Cbr { rate: 800_000, packet: 100 };
        let talk = Traffic::Talkspurts { codec: "pcmu".to_owned() };
        // 40 probes and answers and a report a second each way.
        let control = |ip: u64| 2 * 8 * (40 * (ip + 46 + 16) + (ip + 46 + 17));
        for (transport, header) in [
            ("udp", 0),
            ("tfrc", 16),
            ("dccp-ccid3", 16),
            ("sctp", 28),
            // The seal of SCTP is 44 long.
            ("dccp-ccid3-ip", 16 - 8),
            ("sctp-ip", 28 - 8 + 6),
            ("tcp", 32 - 8 + 2),
        ] {
            for (ipv6, ip) in [(false, 20), (true, 40)] {
                let mut plan =
                    plan(Transport::known(transport), Some(cbr.clone()), Some(talk.clone()));
                plan.ipv6 = ipv6;
                let up = 1000 * 8 * (100 + header + ip + 46);
                let down = 50 * 8 * (160 + 12 + header + ip + 46);
                assert_eq!(plan.rate().as_bps(), control(ip) + up + down, "{transport:?} {ipv6}");
            }
        }
    }

    #[test]
    fn the_shares_of_both_directions_are_the_limit() {
        let cbr = Some(Traffic::Cbr { rate: 64_000, packet: 160 });
        let bulk = Some(Traffic::Bulk { packet: 1200 });
        let limit = Rate::from_bps(4_000_000);
        for up in [&None, &cbr, &bulk] {
            for down in [&None, &cbr, &bulk] {
                let plan = plan(Transport::known("sctp"), up.clone(), down.clone());
                let [ours, theirs] = plan.shares(limit).map(Rate::as_bps);
                assert_eq!(ours + theirs, limit.as_bps(), "{up:?} {down:?}");
                assert!(ours >= plan.known(true) && theirs >= plan.known(false));
                if up == down {
                    assert_eq!(ours, theirs);
                }
            }
        }
    }

    #[test]
    fn packets_longer_than_the_route_of_their_sender_are_told() {
        let bulk = || Some(Traffic::Bulk { packet: 1200 });
        let checked = |transport, up, down, client, mtu| {
            plan(Transport::known(transport), up, down)
                .check_route(client, mtu)
                .map_err(|why| why.to_string())
        };
        let words = "flow-1: packets of 1200 B: expected at most 824 B, as the route from the client has an MTU \
                     of 1000 B, and packets directly over IP are not fragmented";
        for transport in ["dccp-ccid3-ip", "sctp-ip"] {
            assert_eq!(checked(transport, bulk(), None, true, Some(1000)), Err(words.to_owned()));
            assert_eq!(checked(transport, bulk(), None, false, Some(1000)), Ok(()));
            let there = checked(transport, bulk(), bulk(), false, Some(1000));
            assert!(there.is_err_and(|words| words.contains("from the server")));
            for mtu in [None, Some(1376), Some(65_536)] {
                assert_eq!(checked(transport, bulk(), None, true, mtu), Ok(()));
            }
            assert!(checked(transport, bulk(), None, true, Some(1375)).is_err());
        }
        // Datagrams of UDP are fragmented.
        assert_eq!(checked("sctp", bulk(), None, true, Some(1000)), Ok(()));
    }

    #[test]
    fn a_rate_that_no_number_holds_with_headers_is_told_as_it_was_asked_for() {
        for (asked, whole) in [(u64::MAX, u64::MAX), (1 << 62, (1 << 62) / 160 * 206)] {
            let cbr = Traffic::Cbr { rate: asked, packet: 160 };
            let known = plan(Transport::known("udp"), Some(cbr), None).rate().as_bps();
            assert!(known >= whole, "{asked} became {known}");
        }
    }

    #[test]
    fn flows_of_one_name_and_a_seed_beyond_toml_are_named() {
        let cbr = || Some(Traffic::Cbr { rate: 64_000, packet: 160 });
        let mut plan = plan(Transport::known("udp"), cbr(), cbr());
        plan.flows = vec![plan.flows[0].clone(); 3];
        plan.seed = u64::MAX;
        let words = plan.point().expect_err("it is bad").to_string();
        assert_eq!(
            words,
            "a seed of 18446744073709551615: expected 0 to 9223372036854775807; two flows are named flow-1: \
             each needs a name of its own"
        );
        (plan.seed, plan.flows[1].name) = (1, "flow-2".to_owned());
        // That is what the other direction of the first is called.
        plan.flows[2].name = "flow-1.reverse".to_owned();
        let words = plan.point().expect_err("it is bad").to_string();
        assert!(words.contains("flow-1.reverse") && !words.starts_with(':'), "{words}");
    }

    #[test]
    fn all_faults_of_a_plan_are_told_at_once() {
        let bad = Traffic::Cbr { rate: 0, packet: 9 };
        let talk = Traffic::Talkspurts { codec: "\"\nfile='x'".to_owned() };
        let mut plan = plan(Transport::known("udp"), Some(bad), Some(talk));
        (plan.mtu, plan.duration) = (100, 0);
        let words = plan.point().expect_err("it is bad").to_string();
        for part in ["MTU of 100", "duration", "rate of 0", "name of a codec"] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }

    /// What another end may say of a transport: configurations of scenarios, but none that nothing here
    /// carries, that shares the session of another flow, or that fills the memory.
    #[test]
    fn a_transport_between_two_machines_has_limits() {
        let cbr = || Some(Traffic::Cbr { rate: 64_000, packet: 160 });
        let told = |transport: Transport| {
            let bytes = postcard::to_stdvec(&transport).expect("a message can have it");
            assert_eq!(postcard::from_bytes(&bytes), Ok(transport.clone()));
            plan(transport, cbr(), None).point().map(drop).map_err(|why| why.to_string())
        };
        let of = |json: Value| serde_json::from_value(json).expect("a transport of scenarios");
        let in_udp = |json| told(Transport::InUdp(of(json)));
        for transport in Transport::all() {
            assert_eq!(told(transport), Ok(()));
        }
        assert_eq!(
            in_udp(json!({ "kind": "sctp", "send_buffer": "1MB", "ordered": false })),
            Ok(())
        );
        let words = |part: &str, told: Result<(), String>| {
            assert!(told.as_ref().is_err_and(|words| words.contains(part)), "{part}: {told:?}");
        };
        let tcp = json!({ "kind": "tcp", "controller": "cubic" });
        words("nothing here carries packets of tcp-cubic", in_udp(tcp));
        let over_ip = told(Transport::OverIp(of(json!({ "kind": "tfrc" }))));
        words("nothing here carries packets of tfrc-ip", over_ip);
        words("association", in_udp(json!({ "kind": "sctp", "association": "flow-1" })));
        words("16MB", in_udp(json!({ "kind": "sctp", "send_buffer": "1GB" })));
        words("1000000", in_udp(json!({ "kind": "sctp", "max_burst": 4_000_000_000_u32 })));
        // What a scenario must not have, either.
        words("flows.flow-1.transport.streams", in_udp(json!({ "kind": "sctp", "streams": 0 })));
        words(
            "transport.checksum_coverage",
            in_udp(json!({ "kind": "dccp", "ccid": 2, "checksum_coverage": 99 })),
        );
    }
}
