//! STAMP, the Simple Two-way Active Measurement Protocol (RFC 8762): a reflector and a sender, with or without
//! authentication. It measures against equipment of others, which has no server of ours.
//!
//! The reflector is stateful (§4.2): it numbers what it reflects, so that losses on the way there and back are
//! told apart. It never answers with more bytes than it got: packets shorter than the base packet, which §4.6
//! would answer in full, get no answer. Timestamps are in the NTP format; those of a peer in the PTP format are
//! understood. Extensions (RFC 8972) are copied, not interpreted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use talkspurt_live::{Clock, Datagram, UdpPort};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

use crate::Failure;
use crate::clocks::{Point, Relation};

/// Length of the base packet without authentication (§4.2.1).
const OPEN: usize = 44;
/// What a sender needs of a reply without authentication. A reflector of TWAMP Light, with which a sender of
/// STAMP works together (§4.6), sends 41 bytes at least, the last of them the TTL (RFC 5357 §4.2.1). Some leave
/// it out.
const LIGHT: usize = 38;
/// With authentication (§4.2.2): six blocks of 16 octets, and the HMAC of these.
const AUTHENTIC: usize = 112;
const COVERED: usize = 96;
/// Seconds from 1900, where NTP's time begins, to 1970.
const NTP_EPOCH: u64 = 2_208_988_800;
/// An error of at most 1 s, not known to be synchronised (RFC 4656 §4.1.2: 2^(32 − 32) · 1).
const ERROR: u16 = 32 << 8 | 1;
/// Bit Z of the error estimate: PTP's format (RFC 8186 §2.3).
const PTP: u16 = 1 << 14;
/// Sessions whose packets are numbered.
const MAX_SESSIONS: usize = 1024;
/// Time for the last packets.
const DRAIN: Duration = Duration::from_secs(1);

/// The key of authenticated mode, if it is used.
pub type StampKey = Option<Vec<u8>>;

/// Shortest packet of a mode, in bytes of UDP payload.
#[must_use]
pub const fn stamp_bytes(authenticated: bool) -> u32 {
    if authenticated { AUTHENTIC as u32 } else { OPEN as u32 }
}

/// Offsets of the fields that the two modes have at different places.
struct Fields {
    base: usize,
    timestamp: usize,
    error: usize,
    received: usize,
    sender_sequence: usize,
    sender_timestamp: usize,
    sender_error: usize,
    sender_ttl: usize,
}

const OPEN_FIELDS: Fields = Fields {
    base: OPEN,
    timestamp: 4,
    error: 12,
    received: 16,
    sender_sequence: 24,
    sender_timestamp: 28,
    sender_error: 36,
    sender_ttl: 40,
};

const AUTHENTIC_FIELDS: Fields = Fields {
    base: AUTHENTIC,
    timestamp: 16,
    error: 24,
    received: 32,
    sender_sequence: 48,
    sender_timestamp: 64,
    sender_error: 72,
    sender_ttl: 80,
};

const fn fields(key: &StampKey) -> &'static Fields {
    if key.is_some() { &AUTHENTIC_FIELDS } else { &OPEN_FIELDS }
}

fn put(packet: &mut [u8], at: usize, bytes: &[u8]) {
    packet[at..at + bytes.len()].copy_from_slice(bytes);
}

fn get<const N: usize>(packet: &[u8], at: usize) -> [u8; N] {
    *packet[at..].first_chunk().expect("the base packet is there")
}

fn mac(key: &[u8], packet: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(&packet[..COVERED]);
    mac
}

fn sign(key: &StampKey, packet: &mut [u8]) {
    if let Some(key) = key {
        let tag = mac(key, packet).finalize().into_bytes();
        put(packet, COVERED, &tag[..AUTHENTIC - COVERED]);
    }
}

/// Whether it is long enough and, in authenticated mode, authentic.
fn is_valid(key: &StampKey, packet: &[u8]) -> bool {
    packet.len() >= fields(key).base
        && key.as_ref().is_none_or(|key| {
            mac(key, packet).verify_truncated_left(&packet[COVERED..AUTHENTIC]).is_ok()
        })
}

/// A time since the Unix epoch in NTP's format (RFC 5905 §6).
fn ntp(time: Duration) -> u64 {
    let (seconds, nanos) = (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
    (seconds + NTP_EPOCH) << 32 | ((nanos << 32) / 1_000_000_000)
}

/// Nanoseconds of a timestamp, in either format; from its own epoch.
fn nanos(timestamp: u64, error: u16) -> u64 {
    let (seconds, fraction) = (timestamp >> 32, timestamp & 0xffff_ffff);
    let fraction =
        if error & PTP == 0 { (fraction * 1_000_000_000).div_ceil(1 << 32) } else { fraction };
    seconds * 1_000_000_000 + fraction
}

/// A sender's packet of this length.
pub(crate) fn request(key: &StampKey, bytes: usize, sequence: u32, now: Duration) -> Vec<u8> {
    let at = fields(key);
    let mut packet = vec![0; bytes.max(at.base)];
    put(&mut packet, 0, &sequence.to_be_bytes());
    put(&mut packet, at.timestamp, &ntp(now).to_be_bytes());
    put(&mut packet, at.error, &ERROR.to_be_bytes());
    sign(key, &mut packet);
    packet
}

/// The reflected packet (§4.3): as long as the request, with what is beyond the base packet copied.
pub(crate) fn reflected(
    key: &StampKey,
    request: &[u8],
    sequence: u32,
    ttl: u8,
    received: Duration,
    now: Duration,
) -> Vec<u8> {
    let at = fields(key);
    let mut packet = request.to_vec();
    packet[..at.base].fill(0);
    put(&mut packet, 0, &sequence.to_be_bytes());
    put(&mut packet, at.timestamp, &ntp(now).to_be_bytes());
    put(&mut packet, at.error, &ERROR.to_be_bytes());
    put(&mut packet, at.received, &ntp(received).to_be_bytes());
    put(&mut packet, at.sender_sequence, &request[..4]);
    put(&mut packet, at.sender_timestamp, &request[at.timestamp..at.timestamp + 8]);
    put(&mut packet, at.sender_error, &request[at.error..at.error + 2]);
    packet[at.sender_ttl] = ttl;
    sign(key, &mut packet);
    packet
}

/// What a reflected packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    sequence: u32,
    sender_sequence: u32,
    /// By the reflector's clock, in nanoseconds.
    received: u64,
    left: u64,
    /// That of the sender's packet at the reflector.
    ttl: Option<u8>,
}

impl Reply {
    pub(crate) fn parse(key: &StampKey, packet: &[u8]) -> Option<Self> {
        let is_reply = if key.is_some() { is_valid(key, packet) } else { packet.len() >= LIGHT };
        if !is_reply {
            return None;
        }
        let at = fields(key);
        let error = u16::from_be_bytes(get(packet, at.error));
        let time = |at| nanos(u64::from_be_bytes(get(packet, at)), error);
        Some(Self {
            sequence: u32::from_be_bytes(get(packet, 0)),
            sender_sequence: u32::from_be_bytes(get(packet, at.sender_sequence)),
            received: time(at.received),
            left: time(at.timestamp),
            ttl: packet.get(at.sender_ttl).copied(),
        })
    }
}

/// Time without packets after which a packet with number zero begins a session. Earlier it is a copy, or late.
const SESSION_IDLE: Duration = Duration::from_secs(10);

/// A session's packets so far, and when the last one came.
type Session = (u32, Instant);

/// A Session-Reflector.
pub(crate) struct Reflector {
    port: UdpPort,
    key: StampKey,
    limit: Rate,
    clock: Clock,
    sessions: BTreeMap<SocketAddr, Session>,
    /// When the packets so far would have been reflected at the limit.
    busy_until: Instant,
}

impl Reflector {
    /// Listens on this address; reflects at most this rate, of UDP payload.
    pub(crate) fn bind(at: SocketAddr, key: StampKey, limit: Rate) -> io::Result<Self> {
        let (clock, port) = (Clock::start(), UdpPort::bind(at)?);
        let (sessions, busy_until) = (BTreeMap::new(), Instant::ZERO);
        Ok(Self { port, key, limit, clock, sessions, busy_until })
    }

    pub(crate) const fn local(&self) -> SocketAddr {
        self.port.local()
    }

    /// Reflects until it is asked to stop.
    pub(crate) fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            // An error of an earlier packet, for example an unreachable sender.
            let Ok(Some(datagram)) = self.port.receive_datagram(Some(Duration::from_millis(100)))
            else {
                continue;
            };
            if let Some(packet) = self.answer(&datagram, self.clock.now()) {
                // What the system refuses is lost.
                let _ = self.port.send_datagram(&packet, datagram.from, datagram.class);
            }
        }
    }

    /// What is reflected of a packet, if anything.
    pub(crate) fn answer(&mut self, datagram: &Datagram, now: Instant) -> Option<Vec<u8>> {
        const BURST: Duration = Duration::from_millis(100);
        let came = Clock::date();
        let Datagram { bytes, from, ttl, .. } = datagram;
        if !is_valid(&self.key, bytes) {
            return None;
        }
        let takes = self.limit.time_for(bytes.len() as u64)?;
        if self.busy_until > now + BURST {
            return None;
        }
        self.busy_until = self.busy_until.max(now) + takes;
        if self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(from) {
            let oldest = self.sessions.iter().min_by_key(|(_, (_, last))| *last);
            let oldest = oldest.map(|(address, _)| *address);
            oldest.and_then(|address| self.sessions.remove(&address));
        }
        let (count, last) = self.sessions.entry(*from).or_insert((0, now));
        // §4.2.1: the sender's numbers begin at zero with each session; §4.3.1: ours do, too.
        if bytes[..4] == [0; 4] && now >= *last + SESSION_IDLE {
            *count = 0;
        }
        let sequence = *count;
        (*count, *last) = (count.wrapping_add(1), now);
        Some(reflected(&self.key, bytes, sequence, ttl.unwrap_or(255), came, Clock::date()))
    }
}

/// What a sender sends.
#[derive(Clone, Debug)]
pub struct StampConfig {
    /// Name or address of the reflector.
    pub host: String,
    /// Its UDP port, 862 unless it was configured otherwise (§4).
    pub port: u16,
    /// The key of authenticated mode.
    pub key: StampKey,
    /// Bytes of UDP payload; at least those of the base packet.
    pub bytes: usize,
    /// Time between two packets.
    pub interval: Duration,
    /// For how long packets are sent.
    pub duration: Duration,
}

/// A packet that came back.
#[derive(Clone, Copy, Debug)]
struct Trip {
    number: u32,
    sent: u64,
    came_back: u64,
    reply: Reply,
}

/// Runs a Session-Sender; returns what it measured. `progress` is called now and then with the time passed,
/// and returns whether to go on.
///
/// # Errors
/// In words: the reflector's name has no address, or no packet came back.
pub fn send_stamp(
    config: &StampConfig,
    mut progress: impl FnMut(Duration) -> bool,
) -> Result<Value, Failure> {
    let StampConfig { host, port, key, bytes, interval, duration } = config;
    let failed = |error: io::Error| Failure(format!("{host}: {error}"));
    let found = (host.as_str(), *port).to_socket_addrs().map_err(failed)?.collect::<Vec<_>>();
    let first = found.first().ok_or_else(|| Failure(format!("{host}: has no address")))?;
    // A name may have addresses of which not all have a reflector.
    let answers = |to: &&SocketAddr| found.len() == 1 || is_reflector(key, **to).unwrap_or(false);
    let to = *found.iter().find(answers).unwrap_or(first);
    let mut socket = towards(to).map_err(failed)?;
    let clock = Clock::start();
    let (mut sent, mut trips, mut refused) = (Vec::new(), Vec::new(), 0_u64);
    let (mut seen, mut repeated) = (BTreeSet::new(), 0_u64);
    let end = Instant::ZERO + *duration;
    let mut next = Instant::ZERO;
    let mut stopped = None;
    let unsent = loop {
        let now = clock.now();
        if stopped.is_none() && (!progress(now - Instant::ZERO) || now >= end) {
            stopped = Some(now);
        }
        if stopped.is_some_and(|at| now >= at + DRAIN || trips.len() >= sent.len()) {
            break sent.iter().filter(|at: &&Option<Instant>| at.is_none()).count();
        }
        if stopped.is_none() && now >= next {
            let packet = request(key, *bytes, sent.len() as u32, Clock::date());
            let left = socket.send_datagram(&packet, to, 0).is_ok();
            sent.push(left.then_some(now));
            next += *interval;
        }
        let due = stopped.map_or(next.min(now + Duration::from_millis(50)), |at| at + DRAIN);
        let received = socket.receive_datagram(Some(due.saturating_since(clock.now())));
        let Ok(Some(datagram)) = received else { continue };
        let came_back = clock.now().as_nanos();
        let reply =
            Some(datagram).filter(|it| it.from.ip().to_canonical() == to.ip().to_canonical());
        let reply = reply.and_then(|it| Reply::parse(key, &it.bytes));
        let number = reply.map_or(u32::MAX, |reply| reply.sender_sequence);
        match (reply, sent.get(number as usize)) {
            (Some(_), _) if seen.contains(&number) => repeated += 1,
            (Some(reply), Some(Some(at))) => {
                seen.insert(number);
                trips.push(Trip { number, sent: at.as_nanos(), came_back, reply });
            }
            _ => refused += 1,
        }
    };
    if trips.is_empty() {
        let mode = if key.is_some() { "authenticated" } else { "unauthenticated" };
        let others = match refused {
            0 => String::new(),
            some => format!(", but {some} that are no replies to them"),
        };
        return Err(Failure(format!(
            "{to}: none of {} STAMP packets came back{others}; is there a reflector in {mode} mode, and with this \
             key?",
            sent.len()
        )));
    }
    let mut facts = summary(sent.len(), &trips);
    for (name, count) in [
        ("unsent_packets", unsent as u64),
        ("repeated_packets", repeated),
        ("refused_packets", refused),
    ] {
        facts[name] = count.into();
    }
    facts["reflector"] = to.to_string().into();
    facts["authenticated"] = key.is_some().into();
    facts["packet_bytes"] = bytes.max(&fields(key).base).to_owned().into();
    Ok(facts)
}

/// A socket for this destination.
fn towards(to: SocketAddr) -> io::Result<UdpPort> {
    UdpPort::bind(if to.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() })
}

/// Whether a packet to this address comes back within a second.
fn is_reflector(key: &StampKey, to: SocketAddr) -> io::Result<bool> {
    let mut socket = towards(to)?;
    let clock = Clock::start();
    socket.send_datagram(&request(key, 0, 0, Clock::date()), to, 0)?;
    let until = Instant::ZERO + Duration::from_secs(1);
    while clock.now() < until {
        let datagram = socket.receive_datagram(Some(until.saturating_since(clock.now())))?;
        if datagram.is_some_and(|it| Reply::parse(key, &it.bytes).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn summary(sent: usize, trips: &[Trip]) -> Value {
    // Numbers keep their precision only as differences from a time of the session.
    let began = trips[0].reply.received;
    let theirs = |time: u64| time.wrapping_sub(began) as i64 as f64 / 1e9;
    let ours = |time: u64| time as f64 / 1e9;
    let there = |trip: &Trip| theirs(trip.reply.received) - ours(trip.sent);
    let back = |trip: &Trip| ours(trip.came_back) - theirs(trip.reply.left);
    let to: Vec<_> = trips.iter().map(|it| Point { x: ours(it.sent), y: there(it) }).collect();
    let from: Vec<_> =
        trips.iter().map(|it| Point { x: ours(it.came_back), y: back(it) }).collect();
    let round_trip = |trip: &Trip| {
        let reflector = trip.reply.left.saturating_sub(trip.reply.received);
        (trip.came_back - trip.sent).saturating_sub(reflector) as f64 / 1e9
    };
    let least = trips.iter().map(round_trip).fold(f64::INFINITY, f64::min);
    let relation = Relation::of(&to, &from, least).ok();
    let shift = |x: f64| relation.map(|it| it.offset_s + it.drift * x);
    let one_way = |delays: Vec<Option<f64>>| {
        let delays: Option<Vec<f64>> = delays.into_iter().collect();
        delays.map(spread)
    };
    let delays = [
        one_way(to.iter().map(|it| Some(it.y - shift(it.x)?)).collect()),
        one_way(from.iter().map(|it| Some(it.y + shift(it.x)?)).collect()),
    ];
    let highest = trips.iter().map(|trip| u64::from(trip.reply.sequence) + 1).max().unwrap_or(0);
    let numbered = trips.iter().any(|trip| trip.reply.sequence != trip.number);
    // Without any loss, a stateful reflector's numbers are the sender's, too.
    let told = numbered || trips.len() == sent;
    let (sent, received) = (sent as u64, trips.len() as u64);
    let mut latest = 0;
    let overtaken = trips.iter().filter(|trip| {
        let overtaken = trip.number < latest;
        latest = latest.max(trip.number);
        overtaken
    });
    json!({
        "sent_packets": sent,
        "received_packets": received,
        "lost_packets": sent - received,
        "lost_there_packets": told.then(|| sent.saturating_sub(highest)),
        "lost_back_packets": told.then(|| highest.saturating_sub(received)),
        "reordered_packets": overtaken.count(),
        "rtt": spread(trips.iter().map(round_trip).collect()),
        "delay_there": delays[0],
        "delay_back": delays[1],
        "clock_offset_bound_s": relation.map(|it| it.bound_s),
        "clock_drift_ppm": relation.filter(|it| it.found).map(|it| it.drift * 1e6),
        "ttl_there": trips[0].reply.ttl,
    })
}

/// Quantiles in seconds, and the delay variation (RFC 5481 §4.2: 95 % − minimum).
fn spread(mut values: Vec<f64>) -> Value {
    values.sort_by(f64::total_cmp);
    let rank = |share: f64| values[((share * values.len() as f64).ceil() as usize).max(1) - 1];
    let (least, high) = (rank(0.0), rank(0.95));
    json!({
        "min_s": least, "p50_s": rank(0.5), "p95_s": high, "max_s": rank(1.0),
        "variation_s": high - least,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 8762 figures 2 and 5, octet by octet.
    #[test]
    fn open_packets_have_the_fields_of_the_rfc() {
        let time = Duration::from_nanos(1_500_000_000);
        let mut sent = request(&None, 0, 0x0102_0304, time);
        let seconds = (NTP_EPOCH + 1).to_be_bytes();
        let mut expected = vec![1, 2, 3, 4];
        expected.extend(&seconds[4..]);
        expected.extend([0x80, 0, 0, 0, 32, 1]);
        expected.resize(44, 0);
        assert_eq!(sent, expected);
        sent.extend(b"extension");
        let back = reflected(&None, &sent, 9, 61, time, time);
        let mut expected = vec![0, 0, 0, 9];
        expected.extend(&sent[4..14]);
        expected.extend([0, 0]);
        expected.extend(&sent[4..12]);
        expected.extend([1, 2, 3, 4]);
        expected.extend(&sent[4..14]);
        expected.extend([0, 0, 61, 0, 0, 0]);
        expected.extend(b"extension");
        assert_eq!(back, expected);
        let nanos = (NTP_EPOCH + 1) * 1_000_000_000 + 500_000_000;
        let reply = Reply {
            sequence: 9,
            sender_sequence: 0x0102_0304,
            received: nanos,
            left: nanos,
            ttl: Some(61),
        };
        assert_eq!(Reply::parse(&None, &back), Some(reply));
        // TWAMP Light.
        assert_eq!(Reply::parse(&None, &back[..41]), Some(reply));
        assert_eq!(Reply::parse(&None, &back[..38]), Some(Reply { ttl: None, ..reply }));
        assert_eq!(Reply::parse(&None, &back[..37]), None);
    }

    /// RFC 8762 figures 4 and 6, and §4.4: HMAC-SHA-256 over six blocks, truncated to 128 bits.
    #[test]
    fn authentic_packets_are_verified() {
        let (key, other) = (Some(b"key".to_vec()), Some(b"kez".to_vec()));
        let time = Duration::from_secs(7);
        let sent = request(&key, 0, 5, time);
        assert_eq!((sent.len(), &sent[..4], sent[25]), (112, &[0, 0, 0, 5][..], 1));
        assert!(is_valid(&key, &sent) && !is_valid(&other, &sent));
        let back = reflected(&key, &sent, 3, 64, time, time);
        assert_eq!(back.len(), sent.len());
        let reply = Reply::parse(&key, &back).expect("it is authentic");
        assert_eq!((reply.sequence, reply.sender_sequence, reply.ttl), (3, 5, Some(64)));
        for at in 0..112 {
            let mut damaged = back.clone();
            damaged[at] ^= 1;
            assert_eq!(Reply::parse(&key, &damaged), None, "octet {at}");
        }
    }

    #[test]
    fn timestamps_come_back_in_both_formats() {
        for nanos_since in [0, 1, 999_999_999, 1_700_000_000_123_456_789] {
            let time = Duration::from_nanos(nanos_since);
            let expected = NTP_EPOCH * 1_000_000_000 + nanos_since;
            assert!(nanos(ntp(time), ERROR).abs_diff(expected) <= 1);
        }
        // RFC 8186 §2.1: seconds and nanoseconds.
        assert_eq!(nanos(5 << 32 | 250, ERROR | PTP), 5_000_000_250);
    }

    /// The sender numbers 10 packets; 2 are lost there and 1 back.
    #[test]
    fn losses_there_and_back_are_told_apart() {
        let reached = [0, 1, 2, 4, 5, 7, 8, 9];
        let trips = reached.into_iter().enumerate().filter(|(sequence, _)| *sequence != 4);
        let trips: Vec<_> = trips
            .map(|(sequence, number)| {
                let sent = u64::from(number) * 20_000_000;
                let received = (1 << 62) + sent + 10_000_000;
                let (left, ttl) = (received + 1_000_000, Some(60));
                let sequence = sequence as u32;
                let reply = Reply { sequence, sender_sequence: number, received, left, ttl };
                Trip { number, sent, came_back: sent + 31_000_000, reply }
            })
            .collect();
        let facts = summary(10, &trips);
        assert_eq!(facts["lost_there_packets"], 2);
        assert_eq!(facts["lost_back_packets"], 1);
        // 10 ms there, 1 ms at the reflector, 20 ms back: the offset is known within 15 ms.
        let near =
            |value: &Value, ms: f64| (value.as_f64().unwrap_or(-1.0) * 1e3 - ms).abs() < 1e-3;
        assert!(near(&facts["rtt"]["p50_s"], 30.0), "{facts}");
        assert!(near(&facts["clock_offset_bound_s"], 15.0), "{facts}");
        assert!(near(&facts["delay_there"]["p50_s"], 15.0), "{facts}");
        assert!(near(&facts["delay_back"]["variation_s"], 0.0), "{facts}");
    }

    /// RFC 8762 §4.3.1: the reflector's numbers are those of a session. A copy of its first packet, or one with
    /// a forged address, begins no other.
    #[test]
    fn a_repeated_first_packet_begins_no_session() {
        let at = SocketAddr::from(([127, 0, 0, 1], 0));
        let limit = Rate::from_bps(1_000_000_000);
        let mut reflector = Reflector::bind(at, None, limit).expect("loopback has ports");
        let mut numbered = |second: u64, number: u32| {
            let bytes = request(&None, 0, number, Duration::ZERO);
            let datagram = Datagram { bytes, from: at, class: 0, ttl: None, overruns: 0 };
            let now = Instant::ZERO + Duration::from_secs(second);
            let answer = reflector.answer(&datagram, now).expect("it is valid");
            u32::from_be_bytes(get(&answer, 0))
        };
        let numbers = [(0, 0), (1, 1), (2, 0), (3, 2), (12, 3), (13, 0), (23, 0), (24, 1)]
            .map(|(second, number)| numbered(second, number));
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 0, 1]);
    }

    proptest! {
        /// Whatever comes, nothing panics, and no answer is longer than what came.
        #[test]
        fn any_bytes_get_no_longer_answer(bytes: Vec<u8>, keyed: bool) {
            let key = keyed.then(|| b"key".to_vec());
            let at = SocketAddr::from(([127, 0, 0, 1], 0));
            let limit = Rate::from_bps(1_000_000_000);
            let mut reflector = Reflector::bind(at, key.clone(), limit).expect("loopback has ports");
            let _ = Reply::parse(&key, &bytes);
            let length = bytes.len();
            let datagram = Datagram { bytes, from: at, class: 0, ttl: None, overruns: 0 };
            if let Some(answer) = reflector.answer(&datagram, Instant::ZERO) {
                prop_assert_eq!(answer.len(), length);
            }
        }
    }
}
