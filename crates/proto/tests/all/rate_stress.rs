//! TFRC, CCID 3 and CCID 4 over random paths, with talk, pauses and bulk: the rate after silence
//! follows RFC 5348 and RFC 4342, and losses in either direction never stall the sender.

use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::{Ccid, Config, Dccp};
use talkspurt_proto::probe::Gauge;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::tfrc::{self, Packet, Tfrc};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_testing::road::{OnRoad, Road, Source};
use talkspurt_testing::{Verdict, at, kbps, ms};

fn is_data(body: &Body) -> bool {
    match body {
        Body::Tfrc(packet) => matches!(packet, Packet::Data(_)),
        Body::Dccp(packet) => packet.kind.is_data(),
        _ => false,
    }
}
fn seconds(span: f64) -> Duration {
    Duration::from_secs_f64(span)
}
/// Equally likely in any octave.
fn about(rng: &mut Rng, least: f64, most: f64) -> f64 {
    least * talkspurt_proto::math::pow(most / least, rng.unit())
}

#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    one_way: Duration,
    bytes: u32,
    loss: f64,
    marks: f64,
    late: f64,
}

impl Case {
    fn new(seed: u64) -> (Self, Rng) {
        let mut rng = Rng::new(seed, "case");
        let loss = [0.0, about(&mut rng, 0.001, 0.3)][seed as usize % 2];
        let case = Self {
            seed,
            one_way: seconds(about(&mut rng, 0.0005, 0.5)),
            bytes: about(&mut rng, 20.0, 1400.0) as u32,
            loss,
            marks: [0.0, 0.0, loss][seed as usize % 3],
            late: [0.0, 0.02][seed as usize / 2 % 2],
        };
        (case, rng)
    }
    /// Losses, marks and reordering, in both directions, from now on.
    fn disturb<E: OnRoad>(&self, road: &mut Road<E>, loss: f64) {
        for way in 0..2 {
            let (case, mut rng) = (*self, Rng::new(self.seed, ["there", "back"][way]));
            road.judge(way, move |_, body| {
                let data = is_data(body);
                if rng.chance(loss) {
                    if data && case.marks > 0.0 { Verdict::Mark } else { Verdict::Drop }
                } else if rng.chance(case.late) {
                    Verdict::Late(case.one_way / 4)
                } else {
                    Verdict::Arrive
                }
            });
        }
    }
}

/// X and R.
fn state<E>(road: &Road<E>) -> (f64, f64) {
    let notes = &road.ends[0].notes;
    (notes.last(Gauge::Rate).unwrap_or(0.0) / 8.0, notes.last(Gauge::Srtt).unwrap_or(0.2))
}
/// X_Bps, which limits X in any case.
fn equation<E>(road: &Road<E>) -> f64 {
    let notes = &road.ends[0].notes;
    if notes.last(Gauge::LossEventRate).unwrap_or(0.0) > 0.0 {
        notes.last(Gauge::EquationRate).unwrap() / 8.0
    } else {
        f64::INFINITY
    }
}

/// RFC 5348 §4.2, for packets of one size: `header` is that of small packets, counted with 1460 bytes.
fn initial(bytes: u32, header: Option<f64>, r: f64) -> f64 {
    let bytes = f64::from(bytes);
    match header {
        Some(header) => 4380.0 / r * bytes / (bytes + header),
        None => (4.0 * bytes).min((2.0 * bytes).max(4380.0)) / r,
    }
}

fn run<E: OnRoad>(mut road: Road<E>, case: Case, mut rng: Rng, header: Option<f64>) {
    road.keep = false;
    for way in &mut road.ways {
        (way.rate, way.limit) = (Some(kbps(1500)), 60);
    }
    let talk = |rng: &mut Rng| match rng.bits() % 3 {
        0 => Source::Greedy(case.bytes),
        1 => Source::Steady { bytes: case.bytes, interval: ms(20), queue: 50 },
        _ => {
            let interval = seconds(about(rng, 0.002, 1.0));
            Source::Steady { bytes: case.bytes, interval, queue: 50 }
        }
    };
    road.open_with(Source::Greedy(case.bytes));
    road.drive_for(seconds(2.0) + case.one_way * 10);
    case.disturb(&mut road, case.loss);
    for _ in 0..6 {
        road.ends[0].source = talk(&mut rng);
        let span = seconds(about(&mut rng, 0.05, 4.0)) + case.one_way * 4;
        road.drive_for(span);
        road.ends[0].source = Source::Silent;
        // Data in flight arrives; the timers that began with it expire.
        case.disturb(&mut road, 0.0);
        let (x, r) = state(&road);
        let settle = 12.0 * r + 8.0 * f64::from(case.bytes.max(1460)) / x.max(1.0);
        road.drive_for(seconds(settle.min(400.0)));
        let (entry, _) = state(&road);
        let loss = |road: &Road<E>| road.ends[0].notes.last(Gauge::LossEventRate).unwrap_or(0.0);
        let p = loss(&road);
        road.drive_for(seconds(about(&mut rng, 0.01, 120.0)));
        let (x, r) = state(&road);
        let floor = entry.min(initial(case.bytes, header, r)) * 0.999;
        // RFC 5348 §4.4, RFC 4342 §5.1: silence takes no more than that.
        assert!(x >= floor, "{case:?}: {x} B/s after silence, {entry} before, floor {floor}");
        // RFC 5348 §4.3, appendix C.1: nor does the first feedback after it.
        let interval = seconds(3.0 * r);
        road.ends[0].source = Source::Steady { bytes: case.bytes, interval, queue: 1 };
        let before = road.ends[1].received.len();
        road.drive_for(seconds(6.5 * r));
        let (x, latest) = state(&road);
        let r = r.max(latest);
        let floor = entry.min(initial(case.bytes, header, r)).min(equation(&road)) * 0.999;
        // Losses from before the silence that are detected only now are another reason.
        if loss(&road) <= p {
            assert!(x >= floor, "{case:?}: {x} B/s with feedback after silence, floor {floor}");
        }
        if entry > 20.0 * f64::from(case.bytes) && entry > 30_000.0 {
            assert!(road.ends[1].received.len() > before, "{case:?}: nothing came");
        }
        case.disturb(&mut road, case.loss);
    }
    // Without losses it comes back, from wherever it was: s/t_mbi is one packet in 64 s.
    case.disturb(&mut road, 0.0);
    road.ends[0].source = Source::Greedy(case.bytes);
    let start = road.now;
    road.drive_for(Duration::from_secs(200));
    let (from, to) = (start + Duration::from_secs(150), start + Duration::from_secs(200));
    let got = road.ends[1].throughput(from, to) / 8.0;
    let (x, r) = state(&road);
    let least =
        initial(case.bytes, header, r).min(1500e3 / 8.0 * 0.4).min(100.0 * f64::from(case.bytes));
    assert!(got > 0.5 * least, "{case:?}: {got} B/s of at least {least}; X {x}, R {r}");
}

fn dccp(ccid: Ccid, one_way: Duration) -> Road<Dccp> {
    let config = Config::new(ccid);
    Road::new(
        Dccp::client(&config, Rng::new(1, "client")),
        Dccp::listener(&config, Rng::new(1, "listener")),
        one_way,
    )
}

fn cases(transport: u64) -> impl Iterator<Item = (Case, Rng)> {
    let count = std::env::var("RATE_STRESS").ok().and_then(|it| it.parse().ok()).unwrap_or(12);
    (0..count).map(move |number| Case::new(1000 * transport + number))
}

#[test]
fn tfrc() {
    for (case, rng) in cases(1) {
        let config = tfrc::Config { ecn: case.marks > 0.0, ..tfrc::Config::default() };
        let road = Road::new(
            Tfrc::client(&config, Rng::new(1, "client")),
            Tfrc::listener(&config, Rng::new(1, "listener")),
            case.one_way,
        );
        run(road, case, rng, None);
    }
}

#[test]
fn ccid_3() {
    for (case, rng) in cases(2) {
        run(dccp(Ccid::Three, case.one_way), case, rng, None);
    }
}

#[test]
fn ccid_4() {
    for (case, rng) in cases(3) {
        run(dccp(Ccid::Four, case.one_way), case, rng, Some(36.0));
    }
}

/// One loss at any moment of a talkspurt leaves TFRC and CCID 3 with rates of one order: both seed the
/// history with the maximum X_recv (RFC 5348 §6.3.1).
#[test]
fn one_loss_in_a_talkspurt() {
    let rate = |mut x: Vec<(Instant, f64)>| x.pop().map_or(0.0, |it| it.1);
    for after in [0_u64, 60, 200, 1000] {
        let mut rates = Vec::new();
        let judge = |begin: Instant| {
            let mut done = false;
            move |now: Instant, body: &Body| {
                let hit = !done && is_data(body) && now >= begin;
                done |= hit;
                if hit { Verdict::Drop } else { Verdict::Arrive }
            }
        };
        let speech = Source::Steady { bytes: 172, interval: ms(20), queue: 50 };
        let begin = at(65_000 + after);
        let mut tfrc = Road::new(
            Tfrc::client(&tfrc::Config::default(), Rng::new(1, "client")),
            Tfrc::listener(&tfrc::Config::default(), Rng::new(1, "listener")),
            ms(50),
        );
        let mut ccid_3 = dccp(Ccid::Three, ms(50));
        macro_rules! measure {
            ($road:expr) => {{
                let road = &mut $road;
                road.judge(0, judge(begin));
                road.open_with(speech);
                road.drive_until(at(5000));
                road.ends[0].source = Source::Silent;
                road.drive_until(at(65_000));
                road.ends[0].source = speech;
                road.drive_until(begin + ms(400));
                assert!(road.ends[0].notes.last(Gauge::LossEventRate) > Some(0.0));
                rates.push(rate(road.ends[0].notes.series(Gauge::EquationRate).collect()));
            }};
        }
        measure!(tfrc);
        measure!(ccid_3);
        println!("{after} ms: {rates:?} bit/s");
        assert!(rates.iter().all(|rate| *rate > 60_000.0), "{after} ms: {rates:?} bit/s");
        let ratio = rates[0] / rates[1];
        assert!((0.5..2.0).contains(&ratio), "{after} ms: {rates:?} bit/s");
    }
}
