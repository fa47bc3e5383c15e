//! The controller based on delay variation: Beritelli et al. (2002) as described by Maldonado et
//! al. (2005), step by step with numbers computed by hand.

use crate::rate_loop::told;
use talkspurt_proto::rate::beritelli::{Beritelli, Config};
use talkspurt_proto::rate::{Permit, RateControl, Report, Rung};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

const MS: Duration = Duration::from_millis(1);
/// G.711, G.726 at 32 kbit/s and G.729 in 20 ms: 80, 48 and 24 kbit/s with RTP, UDP and IP.
const LADDER: [Rung; 3] = [
    Rung { packet_bytes: 172, interval: Duration::from_millis(20) },
    Rung { packet_bytes: 92, interval: Duration::from_millis(20) },
    Rung { packet_bytes: 32, interval: Duration::from_millis(20) },
];

/// A report of ample capacity: as much arrives as can be requested.
fn report(rtt: Duration) -> Report {
    told(Some(rtt), Instant::ZERO, 1_000_000, 0.0)
}

/// A controller and the time, a report in every round trip of 100 ms.
struct Call(Beritelli, Instant);

impl Call {
    fn new(config: &Config, ladder: &[Rung]) -> Self {
        let mut controller = Beritelli::new(Instant::ZERO, config, ladder);
        controller.on_sent(Instant::ZERO, 172);
        Self(controller, Instant::ZERO)
    }
    fn hears(&mut self, report: &Report) -> u64 {
        self.1 += MS * 100;
        self.0.on_report(self.1, report, &mut ());
        self.0.rate().as_bps()
    }
    /// The rung that is requested, if there is a request.
    fn encoding(&mut self) -> Option<usize> {
        let rate = self.0.target_rate()?;
        LADDER.iter().position(|rung| rung.rate() == rate)
    }
    fn hears_rtt(&mut self, ms: u64) -> u64 {
        self.hears(&report(MS * ms))
    }
}

#[test]
fn variation_beyond_the_threshold_halves_and_slow_start_follows() {
    let config = Config { initial_rate: Some(Rate::from_bps(640_000)), ..Config::default() };
    let mut call = Call::new(&config, &[]);
    // Slow start doubles in a round trip.
    assert_eq!(call.hears_rtt(60), 1_280_000);
    // 20 ms is the threshold, not beyond it.
    assert_eq!(call.hears_rtt(80), 2_560_000);
    // 101 after 80 is.
    assert_eq!(call.hears_rtt(101), 1_280_000);
    // Slow start again, to three quarters of what was too much.
    assert_eq!(call.hears_rtt(101), 1_920_000);
    // Then a packet of 200 bytes more in a round trip: 0.9 of the old average and 0.1 of a sample.
    let rtt = [80, 101, 101, 101].iter().fold(60.0, |rtt, ms| 0.9 * rtt + 0.1 * f64::from(*ms));
    let added = call.hears_rtt(101) - 1_920_000;
    assert!((added as f64 - 1_600_000.0 / rtt).abs() < 1.0, "{added}");
}

#[test]
fn a_told_spread_of_one_way_delays_counts_before_round_trips() {
    let mut call = Call::new(&Config::default(), &LADDER);
    let calm = Report { delay_variation: Some(MS * 5), ..report(MS * 100) };
    assert_eq!(call.hears(&calm), 48_000);
    assert_eq!(call.hears(&Report { rtt: Some(MS * 300), ..calm }), 80_000, "the best rung's");
    let shaken = Report { delay_variation: Some(MS * 21), ..calm };
    assert_eq!(call.hears(&shaken), 40_000);
}

#[test]
fn one_cut_in_a_round_trip_and_loss_counts_as_congestion() {
    let config = Config { initial_rate: Some(Rate::from_bps(80_000)), ..Config::default() };
    let mut call = Call::new(&config, &LADDER);
    let lossy = |p| Report { loss_event_rate: p, ..report(MS * 100) };
    assert_eq!(call.hears(&lossy(0.01)), 40_000);
    // Within the round trip it is not cut again.
    call.0.on_report(call.1 + MS * 50, &lossy(0.02), &mut ());
    assert_eq!(call.0.rate().as_bps(), 40_000);
    // A loss event rate that falls is no new loss: half a round trip of slow start, ×√2.
    assert_eq!(call.hears(&lossy(0.015)), 56_569);
}

#[test]
fn the_encoder_takes_the_best_rung_the_rate_pays_for() {
    let mut call = Call::new(&Config::default(), &LADDER);
    // The lowest at the start; the source begins with the best, so it is told.
    assert_eq!((call.encoding(), call.encoding()), (Some(2), None));
    assert_eq!((call.hears_rtt(100), call.encoding()), (48_000, Some(1)));
    assert_eq!((call.hears_rtt(100), call.encoding()), (80_000, Some(0)));
    assert_eq!((call.hears_rtt(100), call.encoding()), (80_000, None), "never more than the best");
    assert_eq!((call.hears_rtt(200), call.encoding()), (40_000, Some(2)));
}

#[test]
fn no_more_than_twice_what_arrives() {
    let config = Config { initial_rate: Some(Rate::from_bps(640_000)), ..Config::default() };
    let mut call = Call::new(&config, &[]);
    // 8600 B/s of 172-byte packets are 80 kbit/s with headers.
    let thin = Report { receive_rate: 8600, ..report(MS * 100) };
    assert_eq!(call.hears(&thin), 160_000);
    // However little arrives, four packets of 200 bytes in a round trip, or the lowest rung.
    let nothing = Report { receive_rate: 10, ..thin };
    assert_eq!(call.hears(&nothing), 64_000);
    let mut call = Call::new(&config, &LADDER);
    assert_eq!(call.hears(&nothing), 24_000);
}

#[test]
fn packets_are_paced_and_silence_from_afar_halves() {
    let config = Config { initial_rate: Some(Rate::from_bps(80_000)), ..Config::default() };
    let mut call = Call::new(&config, &LADDER);
    // 200 bytes at 80 kbit/s.
    assert_eq!(call.0.permit(Instant::ZERO, 172), Permit::At(Instant::ZERO + MS * 20));
    assert_eq!(call.0.permit(Instant::ZERO + MS * 20, 172), Permit::Now);
    // RFC 5348 §4.2: two seconds before anything is heard.
    let timeout = Instant::ZERO + Duration::from_secs(2);
    assert_eq!(call.0.deadline(), Some(timeout));
    call.0.on_timeout(timeout, &mut ());
    assert_eq!(call.0.rate().as_bps(), 40_000);
    // Nothing was sent since, so no report is expected.
    let idle = call.0.deadline().expect("a timer");
    call.0.on_timeout(idle, &mut ());
    assert_eq!(call.0.rate().as_bps(), 40_000);
}

#[test]
fn congestion_leaves_a_packet_in_a_round_trip() {
    let mut call = Call::new(&Config::default(), &LADDER);
    for shaken in 0..20 {
        call.hears(&Report { delay_variation: Some(MS * (21 + shaken)), ..report(MS * 90) });
    }
    // 200 bytes in 90 ms, and as long as nothing is worse the rate grows again.
    let least = (1600.0_f64 / 0.09).round() as u64;
    assert_eq!(call.0.rate().as_bps(), least);
    assert!(call.hears_rtt(90) > least);
}

#[test]
fn silence_is_made_up_for_by_a_round_trip_and_no_more() {
    let config = Config { initial_rate: Some(Rate::from_bps(80_000)), ..Config::default() };
    let mut call = Call::new(&config, &LADDER);
    call.hears_rtt(100);
    // 20 ms a packet: five fit a round trip of 100 ms, and the one that is due.
    let late = Instant::ZERO + Duration::from_secs(1);
    let mut left = 0;
    while call.0.permit(late, 172) == Permit::Now {
        call.0.on_sent(late, 172);
        left += 1;
    }
    assert_eq!(left, 6);
}
