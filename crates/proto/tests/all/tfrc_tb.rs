//! TFRC-TB (Maldonado, Baset and Schulzrinne 2005): its guarantees for any rate and any packets,
//! and its token accounts against sums computed by hand. The fair rate is scripted, so that the test
//! computes every integral itself.

use crate::rate_loop::told;
use proptest::prelude::*;
use talkspurt_proto::gauge::EndpointProbe;
use talkspurt_proto::probe::{Gauge, Note, Place, Probe, Topic};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::bucket::{Bucket, Config};
use talkspurt_proto::rate::{self, Kind, Machine, Permit, RateControl, Report, Rung};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

/// A controller whose rate is set by the test.
#[derive(Debug)]
struct Script {
    rate: Rate,
    evidence: Rate,
    receive_rate: u64,
    sent_bytes: u64,
    blocked: bool,
}

impl RateControl for Script {
    fn permit(&mut self, _: Instant, _: u32) -> Permit {
        if self.blocked { Permit::Blocked } else { Permit::Now }
    }
    fn on_unused(&mut self, _: Instant) {}
    fn on_sent(&mut self, _: Instant, bytes: u32) {
        self.sent_bytes += u64::from(bytes);
    }
    fn on_report<P: EndpointProbe>(&mut self, _: Instant, report: &Report, _: &mut P) {
        self.receive_rate = report.receive_rate;
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn on_timeout<P: EndpointProbe>(&mut self, _: Instant, _: &mut P) {}
    fn rate(&self) -> Rate {
        self.rate
    }
    fn rtt(&self) -> Option<Duration> {
        None
    }
    fn evidence(&self) -> Rate {
        self.evidence
    }
    fn set_initial_rtt<P: EndpointProbe>(&mut self, _: Instant, _: Duration, _: &mut P) {}
    fn segment_size(&self) -> f64 {
        0.0
    }
}

const MS: Duration = Duration::from_millis(1);
/// G.711, G.726 at 32 kbit/s, G.728, G.729 in 20 ms and G.723.1 in 30 ms, behind RTP's 12 bytes.
const LADDER: [Rung; 5] = [
    Rung { packet_bytes: 172, interval: Duration::from_millis(20) },
    Rung { packet_bytes: 92, interval: Duration::from_millis(20) },
    Rung { packet_bytes: 52, interval: Duration::from_millis(20) },
    Rung { packet_bytes: 32, interval: Duration::from_millis(20) },
    Rung { packet_bytes: 36, interval: Duration::from_millis(30) },
];
/// Their rates with 28 bytes of IP and UDP: 200 B in 20 ms and so on; 64 B in 30 ms is 17066.7.
const RATES: [u64; 5] = [80_000, 48_000, 32_000, 24_000, 17_067];

fn kbps(kilobits: u64) -> Rate {
    Rate::from_bps(1000 * kilobits)
}

/// A bucket, its clock, and a source that has a packet in every interval of the rung.
struct Talk {
    bucket: Bucket<Script>,
    now: Instant,
    due: Instant,
    talking: bool,
    encodings: Vec<(Instant, u8)>,
    departures: Vec<Instant>,
}

fn script(rate: Rate, evidence: Rate) -> Script {
    Script { rate, evidence, receive_rate: 0, sent_bytes: 0, blocked: false }
}

fn talk(config: &Config, rate: Rate, evidence: Rate) -> Talk {
    let bucket =
        Bucket::new(Instant::ZERO, config, &LADDER, Duration::ZERO, script(rate, evidence));
    let (now, due) = (Instant::ZERO, Instant::ZERO);
    Talk { bucket, now, due, talking: true, encodings: Vec::new(), departures: Vec::new() }
}

impl Talk {
    fn set(&mut self, rate: Rate, evidence: Rate) {
        self.bucket.inform(self.now, |inner| (inner.rate, inner.evidence) = (rate, evidence));
    }
    /// Lets time pass, a millisecond at a time.
    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            if self.bucket.deadline().is_some_and(|at| at <= self.now) {
                self.bucket.on_timeout(self.now, &mut ());
            }
            let rate = self.bucket.target_rate();
            let rung = rate.and_then(|rate| LADDER.iter().position(|rung| rung.rate() == rate));
            self.encodings.extend(rung.map(|rung| (self.now, rung as u8)));
            let rung = LADDER[usize::from(self.bucket.rung())];
            while self.talking
                && self.due <= self.now
                && self.bucket.permit(self.now, rung.packet_bytes) == Permit::Now
            {
                self.bucket.on_sent(self.now, rung.packet_bytes);
                self.departures.push(self.now);
                self.due += rung.interval;
            }
            self.now += MS;
        }
    }
    fn tokens(&mut self) -> u64 {
        // The permit is requested to update the accounts.
        self.bucket.permit(self.now, 0);
        self.bucket.tokens().as_bytes()
    }
}

/// A bucket that uses its best rung at once, and after any rise of the rate.
fn eager() -> Config {
    Config { initial_rung: Some(0), step_up: Duration::ZERO, ..Config::default() }
}

#[test]
fn what_the_fair_rate_leaves_over_fills_the_bucket() {
    // 112 kbit/s less G.711's 80 are 4000 bytes a second.
    let mut talk = talk(&eager(), kbps(112), kbps(112));
    talk.pass(Duration::from_secs(1));
    let tokens = talk.tokens();
    // Whole packets leave: the sum is exact to one of them.
    assert!(tokens.abs_diff(4000) <= 200, "{tokens}");
    talk.pass(Duration::from_secs(10));
    assert_eq!(talk.tokens(), 8000, "no more than the depth");
    assert_eq!(talk.departures.len(), 550, "the source's pace, whatever X allows");
}

#[test]
fn tokens_hold_the_codec_until_they_are_spent() {
    let mut talk = talk(&eager(), kbps(112), kbps(112));
    talk.pass(Duration::from_secs(3));
    assert_eq!(talk.tokens(), 8000);
    // G.711 at a fair rate for G.726: 32 kbit/s short, 8000 bytes last two seconds.
    talk.set(kbps(48), kbps(48));
    talk.pass(Duration::from_secs(10));
    let [(at, rung)] = talk.encodings[..] else { panic!("{:?}", talk.encodings) };
    assert_eq!(rung, 1);
    let held = at - (Instant::ZERO + Duration::from_secs(3));
    // A packet's interval on either side.
    assert!(held.abs_diff(Duration::from_secs(2)) <= Duration::from_millis(40), "{held}");
    // A hundred packets of G.711 in those two seconds, and no gap at the change.
    let gaps = talk.departures.windows(2).map(|pair| pair[1] - pair[0]);
    assert_eq!(gaps.max(), Some(Duration::from_millis(20)));
}

#[test]
fn without_depth_it_is_a_plain_ladder() {
    let config = Config { depth: Size::from_bytes(0), ..eager() };
    let mut talk = talk(&config, kbps(80), kbps(80));
    talk.pass(Duration::from_secs(2));
    assert_eq!((talk.tokens(), talk.encodings.len()), (0, 0));
    for (step, rate) in [48_000, 47_999, 31_999, 23_999, 17_067, 17_066].into_iter().enumerate() {
        talk.set(Rate::from_bps(rate), Rate::from_bps(rate));
        talk.pass(MS * 2);
        assert_eq!(usize::from(talk.bucket.rung()), (step + 1).min(4), "{rate}");
    }
}

#[test]
fn doubling_what_was_received_mints_nothing() {
    // Slow start: X is twice what arrived, and nothing showed that the path carries more.
    let mut talk = talk(&eager(), kbps(160), kbps(80));
    talk.pass(Duration::from_secs(5));
    assert_eq!(talk.tokens(), 0);
    // Evidence of 88 kbit/s gives a thousand bytes per second, regardless of X.
    talk.set(kbps(1000), kbps(88));
    talk.pass(Duration::from_secs(5));
    let tokens = talk.tokens();
    assert!(tokens.abs_diff(5000) <= 200, "{tokens}");
}

#[test]
fn silence_mints_no_more_than_talk() {
    let mut talk = talk(&eager(), kbps(96), kbps(96));
    talk.talking = false;
    talk.pass(Duration::from_secs(2));
    let tokens = talk.tokens();
    assert!(tokens.abs_diff(4000) <= 200, "{tokens}");
    talk.set(kbps(80), kbps(80));
    talk.pass(Duration::from_secs(9));
    assert!(talk.tokens().abs_diff(tokens) <= 200);
}

#[test]
fn below_the_lowest_codec_packets_leave_at_the_fair_rate() {
    let config = Config { initial_rung: None, ..eager() };
    // 64 bytes at 8 kbit/s: one in 64 ms.
    let mut talk = talk(&config, kbps(8), kbps(8));
    talk.pass(Duration::from_secs(2));
    assert_eq!(talk.encodings, [(Instant::ZERO, 4)]);
    // The source offers one per 30 ms: queued packets leave as soon as permitted.
    let gaps: Vec<_> = talk.departures.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() > 25 && gaps.iter().all(|gap| *gap == MS * 64), "{gaps:?}");
}

#[test]
fn a_permit_is_promised_to_the_nanosecond() {
    let mut talk = talk(&eager(), Rate::from_bps(70_001), Rate::ZERO);
    let first = talk.bucket.permit(talk.now, 172);
    talk.bucket.on_sent(talk.now, 172);
    // 200 bytes at 70001 bit/s, rounded up.
    let due = Instant::from_nanos(1_600_000_000_000_u64.div_ceil(70_001));
    assert_eq!((first, talk.bucket.permit(talk.now, 172)), (Permit::Now, Permit::At(due)));
    let early = Instant::from_nanos(due.as_nanos() - 1);
    assert_eq!(talk.bucket.permit(early, 172), Permit::At(due));
    assert_eq!(talk.bucket.permit(due, 172), Permit::Now);
}

#[test]
fn tokens_are_no_burst() {
    let mut talk = talk(&eager(), kbps(112), kbps(112));
    talk.talking = false;
    talk.pass(Duration::from_secs(10));
    assert_eq!(talk.tokens(), 8000);
    // A backlog leaves at X: two packets at once, then one in 200 B / 112 kbit/s.
    let mut left = 0;
    while talk.bucket.permit(talk.now, 172) == Permit::Now {
        talk.bucket.on_sent(talk.now, 172);
        left += 1;
    }
    assert_eq!(left, 2);
    let spacing = Duration::from_nanos(1_600_000_000_000_u64.div_ceil(112_000));
    assert_eq!(talk.bucket.permit(talk.now, 172), Permit::At(talk.now + spacing));
}

#[test]
fn a_worse_codec_keeps_no_pace_for_longer_packets() {
    let config = Config { depth: Size::from_bytes(0), initial_rung: None, ..eager() };
    let mut talk = talk(&config, kbps(80), kbps(80));
    talk.pass(MS * 10);
    talk.talking = false;
    talk.pass(Duration::from_secs(1));
    assert_eq!(talk.bucket.rung(), 0);
    talk.set(kbps(10), kbps(10));
    talk.pass(MS);
    let mut left = 0;
    while talk.bucket.permit(talk.now, 36) == Permit::Now {
        talk.bucket.on_sent(talk.now, 36);
        left += 1;
    }
    assert_eq!((talk.bucket.rung(), left), (4, 2), "two of G.723.1, not six");
}

#[test]
fn tokens_for_less_than_a_packet_hold_nothing() {
    // A packet of G.711 at 48 kbit/s is 80 bytes short.
    for (depth, rung) in [(79, 1), (80, 0)] {
        let config = Config { depth: Size::from_bytes(depth), ..eager() };
        let mut talk = talk(&config, kbps(112), kbps(112));
        talk.pass(Duration::from_secs(1));
        talk.talking = false;
        assert_eq!(talk.tokens(), depth);
        talk.set(kbps(48), kbps(48));
        talk.bucket.on_timeout(talk.now, &mut ());
        assert_eq!(talk.bucket.rung(), rung, "{depth}");
    }
}

#[test]
fn the_pace_is_the_codecs_while_tokens_last_and_the_fair_rate_after() {
    for (depth, micros) in [(8000, 20_000), (50, 25_000), (0, 33_334)] {
        let config = Config { depth: Size::from_bytes(depth), ..eager() };
        let mut talk = talk(&config, kbps(112), kbps(112));
        talk.talking = false;
        talk.pass(Duration::from_secs(3));
        while talk.bucket.permit(talk.now, 172) == Permit::Now {
            talk.bucket.on_sent(talk.now, 172);
        }
        assert_eq!(talk.tokens(), depth);
        talk.set(kbps(48), kbps(48));
        // 1600 bits at 80 kbit/s; 400 bits of tokens last 12.5 ms and 1000 bits, the rest comes at
        // 48 kbit/s; without tokens all of it does.
        let Permit::At(at) = talk.bucket.permit(talk.now, 172) else { panic!("nothing is left") };
        assert_eq!((at - talk.now).as_nanos().div_ceil(1000), micros, "{depth}");
    }
}

#[test]
fn packets_keep_their_distance_and_a_block_within_is_one_without() {
    let inner = script(kbps(500), kbps(500));
    let now = Instant::ZERO + MS * 100;
    let mut bucket = Bucket::new(Instant::ZERO, &eager(), &LADDER, MS * 10, inner);
    assert_eq!(bucket.permit(now, 172), Permit::Now);
    bucket.on_sent(now, 172);
    assert_eq!(bucket.permit(now + MS * 9, 172), Permit::At(now + MS * 10));
    assert_eq!(bucket.permit(now + MS * 10, 172), Permit::Now);
    bucket.inform(now + MS * 10, |inner| inner.blocked = true);
    assert_eq!(bucket.permit(now + MS * 20, 172), Permit::Blocked);
}

#[test]
fn a_better_codec_waits_for_its_time_and_its_tokens() {
    let config = Config { step_up: Duration::from_millis(500), ..Config::default() };
    let mut plain = talk(&config, kbps(24), kbps(24));
    plain.pass(Duration::from_millis(499));
    assert_eq!(plain.bucket.rung(), 4);
    plain.pass(Duration::from_millis(10));
    assert_eq!(plain.bucket.rung(), 3, "X paid for G.729 from the start");
    // A short rise changes nothing.
    plain.set(kbps(32), kbps(32));
    plain.pass(Duration::from_millis(400));
    plain.set(kbps(31), kbps(31));
    plain.pass(Duration::from_millis(400));
    assert_eq!(plain.bucket.rung(), 3);
    // One that does skips rungs.
    plain.set(kbps(100), kbps(100));
    plain.pass(Duration::from_millis(510));
    assert_eq!(plain.bucket.rung(), 0);

    // With half of 8000 bytes asked for: 100 less 17.067 kbit/s fill them in 0.386 s.
    let config = Config { step_up: Duration::ZERO, step_up_tokens: 0.5, ..config };
    let mut frugal = talk(&config, kbps(100), kbps(100));
    frugal.pass(Duration::from_millis(380));
    assert_eq!(frugal.bucket.rung(), 4);
    frugal.pass(Duration::from_millis(45));
    assert_eq!(frugal.bucket.rung(), 0);
}

#[test]
fn what_was_received_is_counted_with_headers() {
    let mut talk = talk(&eager(), kbps(80), kbps(80));
    talk.pass(Duration::from_millis(100));
    // 172 bytes, fifty times a second, of packets that count 200.
    let report = told(None, talk.now, 8600, 0.0);
    talk.bucket.on_report(talk.now, &report, &mut ());
    let inner = talk.bucket.inner();
    assert_eq!((inner.receive_rate, inner.sent_bytes), (10_000, 200 * 5));
}

#[test]
fn after_a_change_of_codec_no_report_is_counted_too_high() {
    let mut talk = talk(&eager(), kbps(80), kbps(80));
    let mut hears = |sent: u32| {
        talk.now += MS * 100;
        talk.bucket.on_sent(talk.now, sent);
        let report = told(None, talk.now, 1600, 0.0);
        talk.bucket.on_report(talk.now, &report, &mut ());
        talk.bucket.inner().receive_rate
    };
    // 28 bytes for each 172, as long as the report may speak of such; then for each 32.
    assert_eq!([hears(172), hears(32), hears(32)], [1860, 1860, 3000]);
}

/// Records gauges.
#[derive(Default)]
struct Gauges(Vec<(Gauge, f64)>);

impl Probe for Gauges {
    fn wants(&self, topic: Topic) -> bool {
        topic == Topic::Gauge
    }
    fn record(&mut self, _: Instant, _: Place, note: &Note<'_>) {
        if let Note::Gauge { gauge, value } = note {
            self.0.push((*gauge, *value));
        }
    }
}

#[test]
fn tokens_and_codec_are_on_the_record() {
    let mut gauges = Gauges::default();
    let mut talk = talk(&eager(), kbps(112), kbps(112));
    talk.pass(Duration::from_secs(5));
    talk.bucket.on_timeout(talk.now, &mut gauges);
    assert_eq!(gauges.0, [(Gauge::Tokens, 8000.0), (Gauge::Encoding, 0.0)]);
    talk.set(kbps(10), kbps(10));
    talk.pass(Duration::from_secs(2));
    talk.bucket.on_timeout(talk.now, &mut gauges);
    assert_eq!(gauges.0.last(), Some(&(Gauge::Encoding, 4.0)));
}

/// Over the real TFRC: a controller at G.711's best, fed packets of 200 bytes and reports.
fn over_tfrc() -> (Machine, Instant) {
    let config = rate::Config { token_bucket: Some(eager()), ..rate::Config::default() };
    let parameters = config.resolve(Profile::Rfc, Kind::Tfrc);
    (Machine::build(Instant::ZERO, &parameters, &LADDER), Instant::ZERO)
}

/// The rung whose rate is requested from the source.
fn asked(machine: &mut Machine) -> Option<usize> {
    let rate = machine.target_rate()?;
    Some(LADDER.iter().position(|rung| rung.rate() == rate).expect("the rate of a rung"))
}

/// Sends for a round trip of 100 ms and receives the report: five packets, 8600 B/s as received.
fn round_trip(machine: &mut Machine, now: &mut Instant, loss_event_rate: f64) -> Rate {
    let begun = *now;
    for _ in 0..5 {
        machine.on_sent(*now, 172);
        *now += MS * 20;
        machine.on_unused(*now);
    }
    let report = told(Some(MS * 100), begun, 8600, loss_event_rate);
    machine.on_report(*now, &report, &mut ());
    machine.rate()
}

fn tokens(machine: &Machine) -> u64 {
    let Machine::TokenBucket(bucket) = machine else { panic!("{machine:?}") };
    bucket.tokens().as_bytes()
}

#[test]
fn over_tfrc_slow_start_mints_nothing_and_the_equation_does() {
    let (mut machine, mut now) = over_tfrc();
    // RFC 5348 §4.2: four packets of s = 200 in a round trip, then doubling up to twice X_recv.
    assert_eq!(round_trip(&mut machine, &mut now, 0.0), Rate::from_bps(64_000));
    // That pays for G.726 only; packets of G.711 still under way use what it would leave over.
    assert_eq!(asked(&mut machine), Some(1));
    assert_eq!(round_trip(&mut machine, &mut now, 0.0), Rate::from_bps(128_000));
    assert_eq!((asked(&mut machine), tokens(&machine)), (Some(0), 0));
    // X_recv counts 200 bytes for 172: 80 kbit/s, as much as G.711 needs and no more.
    assert_eq!(machine.evidence(), Rate::from_bps(80_000));
    assert_eq!(round_trip(&mut machine, &mut now, 0.0), Rate::from_bps(160_000));
    assert_eq!(round_trip(&mut machine, &mut now, 0.0), Rate::from_bps(160_000));
    assert_eq!(tokens(&machine), 0);
    // Loss: the equation at s = 200, R = 0.1 s, p = 0.02.
    let (p, r) = (0.02_f64, 0.1_f64);
    let f = (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
    let equation = 8.0 * 200.0 / (r * f);
    let x = round_trip(&mut machine, &mut now, p).as_bps() as f64;
    assert!((x - equation).abs() < 1.0, "{x} {equation}");
    assert_eq!(machine.evidence().as_bps() as f64, x);
    // What it gives beyond 80 kbit/s for a second is in the bucket.
    for _ in 0..10 {
        round_trip(&mut machine, &mut now, p);
    }
    let expected = (x - 80_000.0) / 8.0;
    assert!((tokens(&machine) as f64 - expected).abs() <= 200.0, "{}", tokens(&machine));
}

#[test]
fn over_tfrc_the_codec_steps_down_when_the_tokens_are_gone() {
    let (mut machine, mut now) = over_tfrc();
    for _ in 0..20 {
        round_trip(&mut machine, &mut now, 0.02);
    }
    let kept = tokens(&machine);
    let Machine::TokenBucket(bucket) = &machine else { panic!("{machine:?}") };
    assert_eq!(bucket.rung(), 0, "back before anybody asked");
    assert_eq!(asked(&mut machine), None);
    // p = 6 % pays for 49.9 kbit/s: G.726, 30 short of G.711.
    let x = round_trip(&mut machine, &mut now, 0.06).as_bps();
    assert!((48_000..80_000).contains(&x), "{x}");
    let fell = now;
    while asked(&mut machine).is_none() {
        round_trip(&mut machine, &mut now, 0.06);
        assert!(now < Instant::ZERO + Duration::from_secs(60));
    }
    let Machine::TokenBucket(bucket) = &machine else { panic!("{machine:?}") };
    assert_eq!(bucket.rung(), 1);
    let held = (now - fell).as_secs_f64();
    let expected = kept as f64 * 8.0 / (80_000 - x) as f64;
    // To a report's interval and the packets the pace held.
    assert!((held - expected).abs() < 0.25, "{held} {expected}");
}

#[derive(Clone, Debug)]
enum Step {
    /// Time passes.
    Pass(Duration),
    /// The fair rate and its evidence change.
    Rate(u64, u64),
    /// The source offers a packet of the rung, or of another length.
    Offer(Option<u32>),
    /// Nothing to send.
    Unused,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u64..60_000_000).prop_map(|nanos| Step::Pass(Duration::from_nanos(nanos))),
        1 => (0_u64..3_000_000_000).prop_map(|nanos| Step::Pass(Duration::from_nanos(nanos))),
        2 => (0_u64..200_000, 0_u64..200_000).prop_map(|(x, shown)| Step::Rate(x, shown)),
        6 => Just(Step::Offer(None)),
        2 => (0_u32..2000).prop_map(|bytes| Step::Offer(Some(bytes))),
        1 => Just(Step::Unused),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// At every instant, bytes sent ≤ ∫X and one packet; tokens ≤ depth; tokens ≤ ∫min(X, shown).
    #[test]
    fn never_more_than_the_fair_rate_and_one_packet(
        steps in prop::collection::vec(step(), 1..300),
        depth in prop_oneof![Just(0_u64), 1_u64..20_000],
        initial_rung in prop::option::of(0_u8..7),
        step_up in 0_u64..2000,
        step_up_tokens in 0.0..1.0_f64,
        header_bytes in 0_u32..60,
    ) {
        let config = Config {
            depth: Size::from_bytes(depth),
            step_up: MS * step_up,
            step_up_tokens,
            header_bytes,
            initial_rung,
        };
        let mut talk = talk(&config, kbps(20), kbps(10));
        // In bits times nanoseconds.
        let (mut fair, mut shown, mut sent) = (0_u128, 0_u128, 0_u128);
        // The first packet may be of the first rung whether one is sent or not.
        let first = LADDER[usize::from(initial_rung.unwrap_or(4).min(4))].packet_bytes;
        let mut longest = first + header_bytes;
        for step in steps {
            match step {
                Step::Pass(span) => {
                    let inner = talk.bucket.inner();
                    let (x, e) = (inner.rate.as_bps(), inner.evidence.min(inner.rate).as_bps());
                    fair += u128::from(x) * u128::from(span.as_nanos());
                    shown += u128::from(e) * u128::from(span.as_nanos());
                    talk.now += span;
                }
                Step::Rate(x, e) => talk.set(Rate::from_bps(x), Rate::from_bps(e)),
                Step::Unused => talk.bucket.on_unused(talk.now),
                Step::Offer(bytes) => {
                    let rung = LADDER[usize::from(talk.bucket.rung())].packet_bytes;
                    let bytes = bytes.unwrap_or(rung);
                    match talk.bucket.permit(talk.now, bytes) {
                        Permit::Now => {
                            talk.bucket.on_sent(talk.now, bytes);
                            sent += u128::from(bytes + header_bytes) * 8_000_000_000;
                            longest = longest.max(bytes + header_bytes);
                        }
                        Permit::At(at) => prop_assert!(at > talk.now),
                        Permit::Blocked => {}
                    }
                }
            }
            if talk.bucket.deadline().is_some_and(|at| at <= talk.now) {
                talk.bucket.on_timeout(talk.now, &mut ());
                prop_assert!(talk.bucket.deadline().is_none_or(|at| at > talk.now));
            }
            let tokens = talk.tokens();
            prop_assert!(sent <= fair + u128::from(longest) * 8_000_000_000);
            prop_assert!(tokens <= depth);
            prop_assert!(u128::from(tokens) * 8_000_000_000 <= shown);
            prop_assert!(u128::from(tokens) * 8_000_000_000 + sent
                <= fair + u128::from(longest) * 8_000_000_000);
            prop_assert!(usize::from(talk.bucket.rung()) < LADDER.len());
        }
    }

    /// A plain ladder that follows at once never exceeds what X pays for, except at the lowest rung.
    #[test]
    fn a_plain_ladder_is_always_within_the_rate(rates in prop::collection::vec(0_u64..120_000, 1..50)) {
        let config = Config { depth: Size::from_bytes(0), ..eager() };
        let mut talk = talk(&config, kbps(80), kbps(80));
        for x in rates {
            talk.set(Rate::from_bps(x), Rate::from_bps(x));
            talk.bucket.on_timeout(talk.now, &mut ());
            let best = RATES.iter().position(|rate| *rate <= x).unwrap_or(4);
            prop_assert_eq!(usize::from(talk.bucket.rung()), best);
            talk.pass(MS * 50);
        }
    }
}
