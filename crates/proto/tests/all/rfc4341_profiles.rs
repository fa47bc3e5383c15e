//! Effects of CCID 2's parameters and profiles on a path: windows round trip by round trip, the square
//! root law, and the windows of ns-2.

use crate::ccid2_half::{Bench, MS, Path, Verdict, at, rfc};
use talkspurt_proto::dccp::ackvec::State;
use talkspurt_proto::dccp::ccid2::{Config, Parameters};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Duration;
use talkspurt_proto::validate::ConfigError;

#[test]
fn profiles_begin_with_their_windows_and_thresholds() {
    let mut ns2 = Bench::new(&Parameters::of(Profile::Ns2));
    assert_eq!(ns2.fill(), 3);
    let config = Config { initial_ssthresh: Some(20), ..Config::default() };
    let bench = Bench::new(&config.resolve(Profile::Ns2));
    assert_eq!(bench.sender.threshold(), Some(20));
    let mut linux = Bench::new(&Parameters::of(Profile::Linux));
    assert_eq!(linux.fill(), 4);
}

#[test]
fn configs_that_make_no_sense_are_refused_by_name() {
    let check = |config: Config| config.errors(Profile::Rfc);
    let default = Config::default;
    assert_eq!(check(default()), []);
    assert_eq!(check(Config { max_rto: Some(MS * 1000), ..default() }), []);
    assert_eq!(
        check(Config { max_rto: Some(MS * 999), ..default() }),
        [ConfigError::new("min_rto", "1s is longer than max_rto (999ms)")]
    );
    // Linux has a shorter minimum timeout; the same value can be configured.
    let short = Config { max_rto: Some(MS * 999), ..default() };
    assert_eq!(short.errors(Profile::Linux), []);
    let second = Duration::from_secs(1);
    let impossible = Config {
        initial_window: Some(0),
        initial_ssthresh: Some(1),
        ack_ratio: Some(0),
        ack_delay: Some(Duration::ZERO),
        initial_rto: Some(second * 3601),
        min_rto: Some(Duration::ZERO),
        max_rto: Some(Duration::ZERO),
        ..default()
    };
    let wrong = ConfigError::new;
    assert_eq!(
        check(impossible),
        [
            wrong("initial_window", "0 packets: nothing could ever be sent; RFC 3390 has 2 to 4"),
            wrong(
                "initial_ssthresh",
                "1: the threshold is never less than 2 packets (RFC 4341 §5)"
            ),
            wrong("ack_ratio", "0: CCID 2 needs acknowledgements (RFC 4341 §6)"),
            wrong("initial_rto", "3601s is out of range: at most 1h"),
            wrong("ack_delay", "0ms: a timer needs time"),
            wrong("max_rto", "0ms: a timer needs time"),
            wrong("min_rto", "0ms: a timer needs time"),
        ]
    );
    let most = Config {
        initial_window: Some(65_535),
        initial_ssthresh: Some(2),
        ack_ratio: Some(1),
        ack_delay: Some(second * 60),
        initial_rto: Some(second * 3600),
        max_rto: Some(second * 3600),
        ..default()
    };
    assert_eq!(check(most), []);
    let huge = Config { initial_window: Some(65_536), ..default() };
    assert_eq!(
        check(huge),
        [ConfigError::new("initial_window", "65536 packets are out of range: at most 65535")]
    );
}

#[test]
fn slow_start_per_round_trip_half_as_much_again_or_doubled() {
    // 300 ms, no loss, always data: packets that leave in each round trip.
    let counts = |parameters: &Parameters| {
        let mut path = Path::new(parameters, MS * 300);
        path.run(at(300 * 7), None, |_| Verdict::Arrives);
        path.per_rtt()[..7].to_vec()
    };
    // By hand from four: two acknowledgements of two, each adds one: 6; three: 9; four, and the
    // ninth waits for the next: 13 (its acknowledgement comes with the window after) …
    let rfc = counts(&rfc());
    assert_eq!(rfc[..3], [4, 6, 9]);
    // Odd ones out wait for a later acknowledgement, so single rounds scatter; four of them do not.
    let factor = (rfc[6] as f64 / rfc[2] as f64).sqrt().sqrt();
    assert!((1.45..=1.5).contains(&factor), "{rfc:?}");
    // ns-2 doubles; from four, so that nothing is left over at Ack Ratio 2.
    let ns2 =
        counts(&Parameters { initial_window_packets: Some(4), ..Parameters::of(Profile::Ns2) });
    assert_eq!(ns2, [4, 8, 16, 32, 64, 128, 256]);
}

#[test]
fn an_application_that_does_not_fill_the_window_does_not_widen_it() {
    // Ten packets a second at 300 ms are three in flight, and the initial window is four: half as
    // much again is six. ns-2 adds one for each of the 200 packets of twenty seconds.
    for (profile, windows) in [(Profile::Rfc, 6..=6), (Profile::Ns2, 180..=203)] {
        let mut path = Path::new(&Parameters::of(profile), MS * 300);
        path.run(at(20_000), Some(MS * 100), |_| Verdict::Arrives);
        assert!(windows.contains(&path.sender.window()), "{}", path.sender.window());
    }
    // G.711's 50 a second need fifteen. What waits meanwhile makes the flight larger for a while,
    // and the window is never more than half above that.
    let mut path = Path::new(&rfc(), MS * 300);
    path.run(at(60_000), Some(MS * 20), |_| Verdict::Arrives);
    assert!(path.most < 40, "{}", path.most);
    assert!((15..=path.most * 3 / 2).contains(&path.sender.window()), "{}", path.sender.window());
}

/// The measure of the square root law, packets a round trip times √p, over ten minutes at 100 ms;
/// one packet in 1/p is lost, or each with probability p.
fn constant_of_the_law(parameters: &Parameters, p: f64, mut rng: Option<Rng>) -> f64 {
    let mut path = Path::new(parameters, MS * 100);
    let period = (1.0 / p).round() as u64;
    let seconds = 600;
    path.run(at(seconds * 1000), None, |number| {
        let lost = match &mut rng {
            Some(rng) => rng.chance(p),
            None => number % period == period - 1,
        };
        if lost { Verdict::Lost } else { Verdict::Arrives }
    });
    // The first sixth is slow start's.
    let from = at(seconds * 1000 / 6);
    let packets = path.departures.iter().filter(|at| **at >= from).count() as f64;
    let rounds = (seconds * 5 / 6 * 10) as f64;
    packets / rounds * p.sqrt()
}

/// The law including rounds without growth: from W/2 the window grows by one per round trip to W,
/// when a packet is lost; detection takes a round trip, and the round trip after it adds nothing.
/// Packets: 1/p = 3/8 W² + 5/4 W; round trips: W/2 + 2.
fn law_of_small_windows(p: f64) -> f64 {
    let window = (-1.25 + (1.25_f64 * 1.25 + 1.5 / p).sqrt()) / 0.75;
    1.0 / p / (window / 2.0 + 2.0) * p.sqrt()
}

#[test]
fn throughput_follows_the_square_root_law() {
    // One loss in each 1/p packets: √(3/2) = 1.22 packets a round trip times 1/√p (Mathis, Semke,
    // Mahdavi, Ott 1997) in the limit; halves rounded down cost the rest.
    for (p, band) in [(0.003, 0.94..1.0), (0.001, 0.96..1.0)] {
        let constant = constant_of_the_law(&rfc(), p, None);
        let of_law = constant / law_of_small_windows(p);
        assert!(band.contains(&of_law), "p = {p}: {constant:.3}, {of_law:.3} of the law");
        assert!((0.88..=1.0).contains(&(constant / 1.5_f64.sqrt())), "p = {p}: {constant:.3}");
    }
    // Independent losses: 1.31 (Ott, Kemperman, Mathis 1996).
    let constant = constant_of_the_law(&rfc(), 0.001, Some(Rng::new(1, "loss")));
    assert!((0.9..=1.1).contains(&(constant / 1.31)), "independent: {constant:.3}");
}

#[test]
fn marks_cost_what_losses_cost_and_nothing_is_lost() {
    let mut path = Path::new(&rfc(), MS * 100);
    path.run(at(300_000), None, |number| {
        if number % 333 == 332 { Verdict::Marked } else { Verdict::Arrives }
    });
    let rounds = 3000.0;
    let constant = path.departures.len() as f64 / rounds / 333_f64.sqrt();
    assert!((1.10..=1.30).contains(&constant), "{constant:.3}");
    // Ack Ratio 2: an acknowledgement for two packets, and one more for each mark.
    let ratio = path.acks as f64 / path.departures.len() as f64;
    assert!((0.5..0.52).contains(&ratio), "{ratio}");
}

/// cwnd of ns-2.35's `Agent/DCCP/TCPlike` (Debian package ns2 2.35+dfsg-5, `trace cwnd_`): CBR of
/// 64 kb/s in packets of 160 B from t = 0 over one duplex link of 2 Mb/s, 300 ms, DropTail; the
/// Response comes at 0.6007 s; from there on every 1.2 s, first after 0.45 s; by `initial_ssthresh_`.
const NS2_WINDOWS: [(Option<u32>, [u64; 33]); 3] = [
    (
        Some(20),
        [
            3, 12, 21, 23, 25, 27, 29, 31, 32, 34, 36, 38, 40, 42, 44, 46, 48, 49, 51, 52, 53, 54,
            55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65,
        ],
    ),
    (
        Some(50),
        [
            3, 12, 48, 51, 53, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 68, 69, 70,
            71, 72, 73, 74, 74, 75, 76, 77, 77, 78, 79,
        ],
    ),
    (
        None,
        [
            3, 12, 48, 192, 266, 326, 386, 446, 506, 566, 626, 686, 746, 806, 866, 926, 986, 1046,
            1106, 1166, 1226, 1286, 1346, 1406, 1466, 1526, 1586, 1646, 1706, 1766, 1826, 1886,
            1946,
        ],
    ),
];

#[test]
fn the_ns2_profile_has_the_windows_of_ns_2() {
    for (initial_ssthresh, expected) in NS2_WINDOWS {
        let config = Config { initial_ssthresh, ..Config::default() };
        let parameters = config.resolve(Profile::Ns2);
        // 160 B and their headers take 0.75 ms at 2 Mb/s, an acknowledgement less.
        let mut path = Path::new(&parameters, Duration::from_micros(601_500));
        path.waiting = 30;
        for (sample, expected) in expected.into_iter().enumerate() {
            path.run(at(1200 * sample as u64 + 450), Some(MS * 20), |_| Verdict::Arrives);
            // An acknowledgement at the very instant of a sample counts on either side.
            let window = path.sender.window();
            assert!(window.abs_diff(expected) <= 1, "{initial_ssthresh:?} {sample}: {window}");
        }
    }
}

/// ns-2.35 (dccp/dccp_tcplike.cc, `updateCwnd`) grows for packets sent before the loss was detected,
/// and for those newly acknowledged with it; RFC 4341 does not
/// (`section_5_no_growth_from_packets_sent_before_the_event`).
#[test]
fn the_ns2_profile_grows_in_the_round_trip_of_a_loss() {
    let config =
        Config { initial_window: Some(10), initial_ssthresh: Some(2), ..Config::default() };
    let mut bench = Bench::new(&config.resolve(Profile::Ns2));
    assert_eq!(bench.fill(), 10);
    bench.ack(4, &[(State::Received, 3), (State::NotYet, 1)]);
    assert_eq!(bench.sender.window(), 5);
    // 5 to 10 are six: one step in a window of five.
    bench.ack(10, &[(State::Received, 9), (State::NotYet, 1)]);
    assert_eq!(bench.sender.window(), 6);
}

#[test]
fn the_ns2_profile_carries_under_loss_what_ns_2_carries() {
    // Data packets received from 20 to 120 s over a duplex link of 100 Mb/s, 50 ms and 1000 packets,
    // CBR of 8 Mb/s in packets of 1000 B from 0.1 s on, `ErrorModel/Periodic` with this period (unit
    // pkt, offset 1) as loss model towards the receiver.
    for (period, packets) in [(100, 11_405_u32), (333, 22_080), (1000, 37_612)] {
        let p = 1.0 / f64::from(period);
        let ns2 = f64::from(packets) / 1000.0 * p.sqrt();
        let ours = constant_of_the_law(&Parameters::of(Profile::Ns2), p, None);
        println!("{period}: {ours:.3} of {ns2:.3}");
        assert!((0.97..=1.04).contains(&(ours / ns2)), "{period}: {ours:.3} of {ns2:.3}");
    }
}
