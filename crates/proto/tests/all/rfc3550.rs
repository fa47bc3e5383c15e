//! RFC 3550, clause by clause: receiver statistics and the timing of RTCP reports. Expected
//! numbers come from the RFC's text or from the independent recomputation next to them.

use proptest::prelude::*;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::rtcp::{Compound, Config, Message, NtpTime, ReportBlock, SenderInfo, Session};
use talkspurt_proto::rtp::{Arrival, Packet, Receiver, Sender};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

const RATE: u32 = 8000;

fn packet(sequence: u16, timestamp: u32) -> Packet {
    let payload = Payload::Virtual { offset: 0, len: 160 };
    Packet { sequence, timestamp, ssrc: 7, payload, ..Packet::default() }
}
fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}
fn feed(receiver: &mut Receiver, sequences: impl IntoIterator<Item = u16>) -> Vec<Arrival> {
    sequences.into_iter().map(|s| receiver.on_packet(Instant::ZERO, &packet(s, 0))).collect()
}

#[test]
fn section_5_1_sequence_numbers_and_timestamps_advance_and_wrap() {
    let mut sender = Sender::starting_at(1, 0, RATE, 65_535, u32::MAX - 100);
    let payload = || Payload::Virtual { offset: 0, len: 160 };
    let first = sender.packet(0, true, payload());
    let second = sender.packet(160, false, payload());
    assert_eq!((first.sequence, first.timestamp, first.marker), (65_535, u32::MAX - 100, true));
    assert_eq!((second.sequence, second.timestamp, second.marker), (0, 59, false));
    assert_eq!(second.timestamp.wrapping_sub(sender.first_timestamp()), 160);
    assert_eq!((sender.packets(), sender.octets()), (2, 320));
}

#[test]
fn section_5_1_first_numbers_are_random_but_repeat_under_a_seed() {
    let first = |seed| {
        let mut sender = Sender::new(0, RATE, &mut Rng::new(seed, "rtp"));
        let packet = sender.packet(0, false, Payload::default());
        (packet.ssrc, packet.sequence, packet.timestamp)
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}

#[test]
#[should_panic(expected = "RFC 5761")]
fn rfc_5761_section_4_payload_types_that_look_like_rtcp_are_refused() {
    let _ = Sender::starting_at(1, 72, RATE, 0, 0);
}

#[test]
fn a1_two_packets_in_sequence_make_a_source_valid() {
    use Arrival::{Probation, Valid};
    let mut receiver = Receiver::new(RATE);
    // 10 and 12 are not in sequence; 12 and 13 are, and counting begins with 13.
    assert_eq!(feed(&mut receiver, [10, 12, 13, 14]), [Probation, Probation, Valid, Valid]);
    assert_eq!(receiver.received(), 2);
    assert_eq!(receiver.highest_sequence(), Some(14));
    assert_eq!(receiver.cumulative_lost(), 0);
    assert!(Receiver::new(RATE).report().is_none());
}

#[test]
fn a1_an_announced_source_counts_from_its_first_packet() {
    let mut receiver = Receiver::announced(RATE);
    assert_eq!(feed(&mut receiver, [0, 1, 3]), [Arrival::Valid; 3]);
    assert_eq!((receiver.received(), receiver.cumulative_lost()), (3, 1));
    assert_eq!(receiver.highest_sequence(), Some(3));
}

#[test]
fn a1_cycles_extend_the_sequence_number() {
    let mut receiver = Receiver::announced(RATE);
    feed(&mut receiver, (65_000..=65_535).chain(0..=10));
    assert_eq!(receiver.highest_sequence(), Some(65_536 + 10));
    assert_eq!(receiver.cumulative_lost(), 0);
    // A packet from before the wrap comes late: reordered, no new cycle.
    feed(&mut receiver, [65_530]);
    assert_eq!(receiver.highest_sequence(), Some(65_536 + 10));
}

#[test]
fn a1_a_jump_is_believed_at_the_second_packet() {
    use Arrival::{OutOfRange, Valid};
    let mut receiver = Receiver::announced(RATE);
    feed(&mut receiver, 0..100);
    // MAX_DROPOUT is 3000: 99 + 2999 is a loss, 99 + 3000 a jump.
    assert_eq!(feed(&mut receiver.clone(), [99 + 2999]), [Valid]);
    assert_eq!(feed(&mut receiver.clone(), [99 + 3000]), [OutOfRange]);
    assert_eq!(
        feed(&mut receiver, [40_000, 50_000, 50_001, 50_002]),
        [OutOfRange, OutOfRange, Valid, Valid]
    );
    assert_eq!((receiver.received(), receiver.cumulative_lost()), (2, 0));
    // MAX_MISORDER is 100: 99 back is reordered, 101 back is a jump.
    assert_eq!(feed(&mut receiver.clone(), [50_002 - 99]), [Valid]);
    assert_eq!(feed(&mut receiver, [50_002 - 101]), [OutOfRange]);
}

#[test]
fn a1_another_source_is_told_apart() {
    let mut receiver = Receiver::announced(RATE);
    feed(&mut receiver, [1]);
    let stranger = Packet { ssrc: 8, ..packet(2, 0) };
    assert_eq!(receiver.on_packet(Instant::ZERO, &stranger), Arrival::OtherSource);
    assert_eq!((receiver.ssrc(), receiver.received()), (Some(7), 1));
}

#[test]
fn a3_losses_in_all_and_since_the_last_report() {
    let mut receiver = Receiver::announced(RATE);
    feed(&mut receiver, [0, 1, 2, 5, 6, 7, 8, 9]);
    let first = receiver.report().expect("valid");
    // 10 expected, 8 received: 2/10 × 256 = 51.2.
    assert_eq!((first.cumulative_lost, first.fraction_lost), (2, 51));
    feed(&mut receiver, [10, 11, 12, 19]);
    let second = receiver.report().expect("valid");
    // 10 more expected, 4 received: 6/10 × 256 = 153.6.
    assert_eq!((second.cumulative_lost, second.fraction_lost), (8, 153));
    assert_eq!((second.highest_sequence, second.ssrc), (19, 7));
    // Nothing new expected, so the fraction is 0.
    assert_eq!(receiver.report().expect("valid").fraction_lost, 0);
}

#[test]
fn a3_duplicates_make_the_loss_negative_and_the_fraction_zero() {
    let mut receiver = Receiver::announced(RATE);
    feed(&mut receiver, [0, 0, 0, 1]);
    let report = receiver.report().expect("valid");
    assert_eq!((report.cumulative_lost, report.fraction_lost), (-2, 0));
}

#[test]
fn a8_jitter_by_hand() {
    let mut receiver = Receiver::announced(RATE);
    // Transit times in ticks of 125 µs: 80, 120 (+40), 80 (−40), 80 (0).
    for (i, transit_ms) in [10_u64, 15, 10, 10].into_iter().enumerate() {
        receiver.on_packet(at(i as u64 * 20 + transit_ms), &packet(i as u16, i as u32 * 160));
    }
    // J×16: 40 − (8>>4) = 40; 40 + 40 − (48>>4) = 77; 77 + 0 − (85>>4) = 72.
    assert_eq!(receiver.jitter_ticks(), 72 >> 4);
    assert!((receiver.jitter_seconds() - 72.0 / 16.0 / 8000.0).abs() < 1e-15);
}

#[test]
fn a8_a_steady_delay_has_no_jitter_whatever_the_timestamp_wraps() {
    let mut receiver = Receiver::announced(RATE);
    let first = u32::MAX - 1000;
    for i in 0..100_u32 {
        let packet = packet(i as u16, first.wrapping_add(i * 160));
        receiver.on_packet(at(u64::from(i) * 20 + 137), &packet);
    }
    assert_eq!(receiver.jitter_seconds(), 0.0);
}

#[test]
fn section_6_4_1_jitter_converges_to_the_mean_difference() {
    let mut receiver = Receiver::announced(RATE);
    // Transit alternates by 4 ms = 32 ticks: |D| is always 32, so J → 32.
    for i in 0..1000_u32 {
        let now = at(u64::from(i) * 20 + 4 * u64::from(i % 2));
        receiver.on_packet(now, &packet(i as u16, i * 160));
    }
    assert!((receiver.jitter_seconds() - 0.004).abs() < 0.0001, "{}", receiver.jitter_seconds());
}

proptest! {
    /// The §6.4.1 recurrence in floating point, against the integer code of A.8: the scaled
    /// integer loses at most one unit a step, decaying by 15/16, so 16/16 tick in the limit.
    #[test]
    fn a8_integer_jitter_follows_the_formula(transits in prop::collection::vec(0_u32..400, 2..200)) {
        let mut receiver = Receiver::announced(RATE);
        let mut jitter = 0.0_f64;
        for (i, transit) in transits.iter().enumerate() {
            let arrival = Instant::from_nanos((i as u64 * 160 + u64::from(*transit)) * 125_000);
            receiver.on_packet(arrival, &packet(i as u16, i as u32 * 160));
            if i > 0 {
                let d = (f64::from(*transit) - f64::from(transits[i - 1])).abs();
                jitter += (d - jitter) / 16.0;
            }
        }
        let ticks = receiver.jitter_seconds() * f64::from(RATE);
        prop_assert!((ticks - jitter).abs() <= 1.0, "{} {}", ticks, jitter);
    }

    /// Losses and duplicates in any pattern: the cumulative count matches that of a set.
    #[test]
    fn a3_cumulative_loss_is_span_less_received(
        first: u16,
        fates in prop::collection::vec(0_u8..=2, 1..500),
    ) {
        let mut receiver = Receiver::announced(RATE);
        let (mut received, mut last) = (1_i32, 0_i32);
        receiver.on_packet(Instant::ZERO, &packet(first, 0));
        for (i, copies) in fates.iter().enumerate() {
            for _ in 0..*copies {
                receiver.on_packet(Instant::ZERO, &packet(first.wrapping_add(i as u16 + 1), 0));
                received += 1;
                last = i as i32 + 1;
            }
        }
        prop_assert_eq!(receiver.cumulative_lost(), last + 1 - received);
    }
}

fn session(config: &Config, seed: u64) -> Session {
    let rng = Rng::new(seed, "rtcp");
    Session::new(config, Rate::from_bps(80_000), 28, 1, "a@example".into(), Instant::ZERO, rng)
}
fn sending() -> Sender {
    let mut sender = Sender::starting_at(1, 0, RATE, 0, 0);
    sender.anchor(Instant::ZERO, 0);
    sender
}
fn speak(sender: &mut Sender) {
    let _ = sender.packet(0, false, Payload::Virtual { offset: 0, len: 160 });
}

#[test]
fn section_6_2_and_6_3_1_intervals_lie_where_the_rfc_puts_them() {
    // T_d = 5 s (2.5 s at first); T = T_d × [0.5, 1.5) / 1.21828 (§6.3.1).
    let bounds = |td: f64| (td * 0.5 / 1.21828, td * 1.5 / 1.21828);
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for seed in 0..200 {
        let mut session = session(&Config::default(), seed);
        let mut sender = sending();
        let mut previous: Option<Instant> = None;
        for _ in 0..10 {
            let due = session.next().expect("enabled");
            speak(&mut sender);
            if session.report(due, Some(&sender), None).is_some() {
                match previous {
                    None => first.push(due.as_secs_f64()),
                    Some(then) => later.push((due - then).as_secs_f64()),
                }
                previous = Some(due);
            }
        }
    }
    for (intervals, td) in [(&first, 2.5), (&later, 5.0)] {
        let (low, high) = bounds(td);
        // Reconsideration lengthens, but never beyond the longest draw.
        assert!(intervals.iter().all(|t| (low..=high).contains(t)), "{td}: {intervals:?}");
        // §6.3.1: divided by e − 3/2 so that, reconsidered, the mean is T_d again.
        let mean = intervals.iter().sum::<f64>() / intervals.len() as f64;
        assert!((mean / td - 1.0).abs() < 0.06, "{td}: {mean}");
    }
}

/// What a participant knows, by the variables of A.7.
struct Known {
    members: f64,
    peer_sends: bool,
    we_sent: bool,
    initial: bool,
    avg_rtcp_size: f64,
}

impl Known {
    /// A.7, without its random factor: the deterministic interval in seconds.
    fn interval(&self, mut rtcp_bw: f64, minimum: f64) -> f64 {
        let senders = f64::from(u8::from(self.we_sent)) + f64::from(u8::from(self.peer_sends));
        let mut n = self.members;
        if senders <= self.members * 0.25 {
            rtcp_bw *= if self.we_sent { 0.25 } else { 0.75 };
            n = if self.we_sent { senders } else { n - senders };
        }
        let minimum = if self.initial { minimum / 2.0 } else { minimum };
        (self.avg_rtcp_size * n / rtcp_bw).max(minimum)
    }

    /// §6.3.3 and RFC 5506 §3.4.2: every packet counts in the average, sent or received, feedback too.
    fn on_packet(&mut self, compound: &Compound) {
        let size = (compound.wire_bytes() + 28) as f64;
        self.avg_rtcp_size += (size - self.avg_rtcp_size) / 16.0;
    }
}

/// A thousand sessions of two participants with random bandwidths, shares, minima and feedback beside the reports:
/// what is waited lies where the RFC's own calculation in floating point puts it, and its mean is as long.
#[test]
fn section_6_3_1_intervals_of_random_sessions_follow_the_calculation_of_a_7() {
    let mut rng = Rng::new(1, "sessions");
    let (mut ratios, mut highs, mut thin) = (Vec::new(), 0.0, 0);
    for number in 0..1000 {
        let bps = talkspurt_proto::math::pow(10.0, 3.5 + 3.5 * rng.unit());
        let config = Config {
            bandwidth_fraction: 0.01 + 0.2 * rng.unit(),
            minimum_interval: Duration::from_secs_f64(5.0 * rng.unit() * rng.unit()),
            reduced_minimum: rng.chance(0.5),
            ..Config::default()
        };
        let session = Rate::from_bps(bps as u64);
        let mut least = config.minimum_interval.as_secs_f64();
        if config.reduced_minimum {
            least = least.min(360_000.0 / session.as_bps() as f64);
        }
        let rtcp_bw = (session.as_bps() as f64 * config.bandwidth_fraction / 8.0).round().max(1.0);
        let (speaks, feedback) = ([rng.chance(0.7), rng.chance(0.7)], rng.unit() * 3.0);
        let mut ends = [0, 1].map(|end| {
            let rng = Rng::new(number, ["a", "b"][end]);
            let name = "x".repeat(end * 9 + 1);
            Session::new(&config, session, 28, end as u32 + 1, name, Instant::ZERO, rng)
        });
        let mut senders = [0, 1].map(|end| {
            let mut sender = Sender::starting_at(end + 1, 0, RATE, 0, 0);
            sender.anchor(Instant::ZERO, 0);
            sender
        });
        let first = || Known {
            members: 1.0,
            peer_sends: false,
            we_sent: false,
            initial: true,
            avg_rtcp_size: 128.0,
        };
        let mut known = [first(), first()];
        let mut previous = [Instant::ZERO; 2];
        for _ in 0..40 {
            let due = ends.each_ref().map(|end| end.next().expect("enabled"));
            let own = usize::from(due[1] < due[0]);
            let (now, other) = (due[own], 1 - own);
            if speaks[own] {
                speak(&mut senders[own]);
            }
            // Feedback of the other end, before the report.
            for _ in 0..(rng.unit() * feedback) as u32 {
                let compound =
                    ends[other].feedback(vec![Message::PictureLoss { media: own as u32 + 1 }]);
                ends[own].on_report(now, &compound);
                known[other].on_packet(&compound);
                known[own].on_packet(&compound);
                known[own].members = 2.0;
            }
            let reported = ends[own].report(now, speaks[own].then_some(&senders[own]), None);
            // A sender once it has sent (§6.4), also where the report is put off.
            known[own].we_sent = speaks[own];
            if let Some(compound) = reported {
                assert_eq!(compound.sender.is_some(), speaks[own]);
                known[own].on_packet(&compound);
                known[own].initial = false;
                previous[own] = now;
                ends[other].on_report(now, &compound);
                known[other].on_packet(&compound);
                known[other].members = 2.0;
                known[other].peer_sends = speaks[own];
            }
            let waits = (ends[own].next().expect("enabled") - previous[own]).as_secs_f64();
            let ratio = waits / known[own].interval(rtcp_bw, least) * 1.218_281_828;
            // The average is kept in whole sixteenths, whose decay is rounded down: it is high by less than a byte.
            let high = 1.0 + 1.0 / known[own].avg_rtcp_size;
            assert!((0.5 - 1e-6..1.5 * high).contains(&ratio), "session {number}: {ratio}");
            thin += u32::from(known[own].interval(rtcp_bw, least) > least);
            if previous[own] == now {
                ratios.push(ratio);
                highs += high - 1.0;
            }
        }
    }
    assert!(thin > 8000 && ratios.len() > 15_000, "{thin} {}", ratios.len());
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    // Uniform on [0.5, 1.5): the standard error is 0.289/√n.
    let error = 4.0 * 0.289 / (ratios.len() as f64).sqrt();
    let highest = 1.0 + highs / ratios.len() as f64 + error;
    assert!((1.0 - error..highest).contains(&mean), "{mean} ± {error}");
}

#[test]
fn section_6_2_bandwidth_bounds_the_interval_of_a_thin_session() {
    // 8 kbit/s × 5 % = 50 byte/s; a first guess of 128 bytes and one member (a sender, more than
    // a quarter of the members): 128 / 50 = 2.56 s > 2.5 s.
    let shortest = |bps| {
        let make = |seed| {
            let rng = Rng::new(seed, "thin");
            let config = Config::default();
            Session::new(&config, Rate::from_bps(bps), 28, 1, String::new(), Instant::ZERO, rng)
        };
        (0..2000).filter_map(|seed| make(seed).next()).min().expect("enabled").as_secs_f64()
    };
    // No senders yet: three quarters of the bandwidth are for receivers (A.7), 128/37.5 = 3.41 s.
    assert!((shortest(8_000) / (128.0 / 37.5 * 0.5 / 1.218_28) - 1.0).abs() < 0.01);
    assert!((shortest(800_000) / (2.5 * 0.5 / 1.218_28) - 1.0).abs() < 0.01);
}

#[test]
fn section_6_2_reduced_minimum_is_360_over_kilobits() {
    let config = Config { reduced_minimum: true, ..Config::default() };
    let rng = |seed| Rng::new(seed, "reduced");
    let make = |seed| {
        Session::new(
            &config,
            Rate::from_bps(720_000),
            28,
            1,
            String::new(),
            Instant::ZERO,
            rng(seed),
        )
    };
    // 360/720 = 0.5 s, halved at first: all draws lie in 0.25 × [0.5, 1.5) / 1.21828.
    for seed in 0..100 {
        let t = make(seed).next().expect("enabled").as_secs_f64();
        assert!((0.1026..0.3079).contains(&t), "{t}");
    }
}

#[test]
fn reports_switched_off_are_never_due() {
    let config = Config { enabled: false, ..Config::default() };
    let mut session = session(&config, 1);
    assert_eq!(session.next(), None);
    assert_eq!(session.report(at(60_000), Some(&sending()), None), None);
    assert_eq!(session.bye(at(60_000), Some(&sending()), None), None);
}

/// Calls `report` at each due instant until a report comes.
fn next_report(
    session: &mut Session,
    sender: Option<&Sender>,
    mut receiver: Option<&mut Receiver>,
) -> (Instant, Compound) {
    loop {
        let due = session.next().expect("enabled");
        if let Some(report) = session.report(due, sender, receiver.as_deref_mut()) {
            return (due, report);
        }
    }
}

#[test]
fn section_6_4_sender_reports_end_two_reports_after_the_last_packet() {
    let mut session = session(&Config::default(), 3);
    let mut sender = sending();
    assert!(next_report(&mut session, Some(&sender), None).1.sender.is_none(), "nothing sent");
    speak(&mut sender);
    let kinds: Vec<bool> =
        (0..4).map(|_| next_report(&mut session, Some(&sender), None).1.sender.is_some()).collect();
    assert_eq!(kinds, [true, true, false, false]);
}

#[test]
fn section_6_4_1_sender_information() {
    let mut session = session(&Config::default(), 3);
    let mut sender = Sender::starting_at(1, 0, RATE, 0, 1000);
    sender.anchor(at(500), 0);
    speak(&mut sender);
    let (now, report) = next_report(&mut session, Some(&sender), None);
    let info = report.sender.expect("a sender report");
    let ticks = (now.as_nanos() - 500_000_000) / 125_000;
    assert_eq!(u64::from(info.rtp_timestamp), 1000 + ticks);
    assert_eq!((info.packets, info.octets), (1, 160));
    assert_eq!(info.ntp, NtpTime::from(now));
    assert_eq!((report.ssrc, report.cname.as_str(), report.bye), (1, "a@example", false));
}

#[test]
fn section_4_ntp_time_counts_from_1900() {
    assert_eq!(NtpTime::from(Instant::ZERO).0, 2_208_988_800 << 32);
    assert_eq!(NtpTime::from(at(1500)).0, (2_208_988_801 << 32) + (1 << 31));
    // §6.4.1, figure 2: ntp_sec and ntp_frac of SR(n), and the LSR that answers it.
    assert_eq!(NtpTime(0xb44d_b705_2000_0000).middle(), 0xb705_2000);
}

/// RFC 3550 figure 2: A = 0xb710:8000, DLSR = 5.25 s, LSR = 0xb705:2000, delay = 6.125 s.
#[test]
fn section_6_4_1_figure_2_round_trip() {
    let mut session = session(&Config::default(), 1);
    // An instant whose NTP middle is 0xb710:8000: that of 1970 has 0x7e80 above the point.
    let seconds = u64::from(0xb710_u16.wrapping_sub(0x7e80));
    let now = Instant::from_nanos(seconds * 1_000_000_000 + 500_000_000);
    assert_eq!(NtpTime::from(now).middle(), 0xb710_8000);
    let block = ReportBlock {
        ssrc: 1,
        last_sr: 0xb705_2000,
        delay_since_last_sr: 0x0005_4000,
        ..ReportBlock::default()
    };
    let report = Compound { ssrc: 2, reports: vec![block], ..Compound::default() };
    assert_eq!(session.on_report(now, &report), Some(Duration::from_millis(6125)));
    assert_eq!(session.rtt(), Some(Duration::from_millis(6125)));
    // Without a sender report before it there is nothing to compute.
    let silent = ReportBlock { last_sr: 0, ..block };
    let report = Compound { ssrc: 2, reports: vec![silent], ..Compound::default() };
    assert_eq!(session.on_report(now, &report), None);
    // A report block about another source is ignored.
    let other = ReportBlock { ssrc: 9, ..block };
    let report = Compound { ssrc: 2, reports: vec![other], ..Compound::default() };
    assert_eq!(session.on_report(now, &report), None);
}

/// Two participants whose clocks differ by hours: the round trip is still measured.
#[test]
fn section_6_4_1_round_trip_needs_no_common_clock() {
    let one_way = Duration::from_millis(270);
    let offset = Duration::from_secs(9_000);
    let mut a = session(&Config::default(), 1);
    let rng = Rng::new(1, "b");
    let start = Instant::ZERO + offset;
    let rate = Rate::from_bps(80_000);
    let mut b = Session::new(&Config::default(), rate, 28, 2, "b@example".into(), start, rng);
    let (mut sender, mut receiver) = (sending(), Receiver::announced(RATE));
    receiver.on_packet(start, &sender.packet(0, true, Payload::default()));

    // b's clock is ahead; take an a-report that reaches b before b's own report is due.
    let (sent, sr) = next_report(&mut a, Some(&sender), None);
    assert_eq!(b.on_report(sent + one_way + offset, &sr), None);
    let mut answer = next_report(&mut b, None, Some(&mut receiver));
    while answer.0 < sent + one_way + offset {
        answer = next_report(&mut b, None, Some(&mut receiver));
    }
    let arrival = Instant::ZERO + (answer.0 + one_way - start);
    let rtt = a.on_report(arrival, &answer.1).expect("answers our sender report");
    // LSR and DLSR each round down to 1/65536 s.
    assert!(rtt.abs_diff(one_way * 2) <= Duration::from_micros(46), "{rtt:?}");
}

#[test]
fn section_6_3_4_and_6_3_7_a_bye_ends_reports_and_speeds_the_others() {
    let mut session = session(&Config::default(), 5);
    let mut sender = sending();
    speak(&mut sender);
    let (now, _) = next_report(&mut session, Some(&sender), None);
    let hello = Compound { ssrc: 2, ..Compound::default() };
    session.on_report(now, &hello);
    let before = session.next().expect("enabled") - now;
    session.on_report(now, &Compound { bye: true, ..hello });
    // members/pmembers = 1/2.
    assert_eq!(session.next().expect("enabled") - now, before / 2);

    let bye = session.bye(now, Some(&sender), None).expect("it has reported before");
    assert!(bye.bye);
    assert_eq!(session.next(), None);
}

/// §6.3.5: five deterministic intervals of a receiver, whatever the minimum; here there is none.
/// Of 8 kbit/s a twentieth is 50 byte/s. The peer sends, so that of two members more than a
/// quarter do and all share alike: with a mean of 128 bytes, T_d = 2 · 128 / 50 = 5.12 s.
#[test]
fn section_6_3_5_the_peer_times_out_by_the_calculated_interval() {
    let config = Config { minimum_interval: Duration::ZERO, ..Config::default() };
    let known_after = |silence: Duration| {
        let rng = Rng::new(7, "timeout");
        let rate = Rate::from_bps(8_000);
        let mut session = Session::new(&config, rate, 28, 1, String::new(), Instant::ZERO, rng);
        let mut receiver = Receiver::announced(RATE);
        receiver.on_packet(Instant::ZERO, &packet(0, 0));
        // 100 bytes above the headers, which leaves the mean at 128.
        let report = Compound {
            ssrc: 7,
            sender: Some(SenderInfo { ntp: NtpTime(1 << 16), ..SenderInfo::default() }),
            cname: "c".repeat(100 - 28 - 8 - 3),
            ..Compound::default()
        };
        assert_eq!(report.wire_bytes(), 100);
        session.on_report(Instant::ZERO, &report);
        let now = Instant::ZERO + silence;
        let own = session.report(now, None, Some(&mut receiver)).expect("long due");
        own.reports[0].last_sr != 0
    };
    let limit = Duration::from_millis(5 * 5_120);
    assert!(known_after(limit));
    assert!(!known_after(limit + Duration::from_millis(1)));
}

/// §6.2: lower-layer headers count into a report's size, whichever they are.
#[test]
fn section_6_2_the_headers_below_lengthen_the_interval() {
    let first = |headers| {
        let (config, rng) = (Config::default(), Rng::new(1, "headers"));
        let rate = Rate::from_bps(8_000);
        let session = Session::new(&config, rate, headers, 1, String::new(), Instant::ZERO, rng);
        session.next().expect("enabled").as_secs_f64()
    };
    // IPv4 and UDP; IPv6 and TCP with timestamps and the two bytes of RFC 4571.
    assert!((first(74) / first(28) - 174.0 / 128.0).abs() < 1e-6);
}

#[test]
fn section_6_3_7_who_never_sent_says_no_bye() {
    let mut session = session(&Config::default(), 5);
    assert_eq!(session.bye(at(1), None, None), None);
}

#[test]
fn section_6_1_sizes_are_those_of_the_layout() {
    // RR: 8. SDES: 4 + 4 + (2 + 1 + 1 null) = 12.
    let mut compound = Compound { cname: "x".into(), ..Compound::default() };
    assert_eq!(compound.wire_bytes(), 8 + 12);
    // Five more: 2 + 6 fill two words, so a whole word of nulls must follow (§6.5).
    compound.cname = "abcdef".into();
    assert_eq!(compound.wire_bytes(), 8 + 8 + 12);
    compound.sender = Some(SenderInfo::default());
    compound.reports = vec![ReportBlock::default(); 2];
    compound.bye = true;
    assert_eq!(compound.wire_bytes(), 28 + 2 * 24 + 20 + 8);
    assert_eq!(Frame::Rtcp(Box::new(compound)).wire_bytes(), 28 + 2 * 24 + 20 + 8);
}

#[test]
fn knobs_are_read_with_their_defaults_and_unknown_ones_refused() {
    let config: Config = serde_json::from_str("{}").expect("all have defaults");
    assert_eq!(config, Config::default());
    assert_eq!(config.minimum_interval, Duration::from_secs(5));
    assert_eq!((config.enabled, config.bandwidth_fraction), (true, 0.05));
    assert!(serde_json::from_str::<Config>(r#"{"interval": "5s"}"#).is_err());
}

/// The share that an encoder expects to be lost: an average over ten seconds, in closed form.
#[test]
fn a_report_without_loss_does_not_make_the_loss_forgotten() {
    let mut session = session(&Config::default(), 1);
    let mut report = |millis: u64, fraction_lost: u8| {
        let block = ReportBlock { ssrc: 1, fraction_lost, ..ReportBlock::default() };
        let report = Compound { ssrc: 2, reports: vec![block], ..Compound::default() };
        session.on_report(at(millis), &report);
        let told = session.take_expected_loss();
        assert_eq!(session.take_expected_loss(), None, "no news");
        told.expect("a report came")
    };
    assert_eq!(report(1000, 64), 0.25);
    // exp(−5 s / 10 s).
    let keep = 0.606_530_659_712_633_4;
    assert!((report(6000, 0) - 0.25 * keep).abs() < 1e-12);
    assert!((report(11_000, 0) - 0.25 * keep * keep).abs() < 1e-12);
    let lossy = 0.25 * keep * keep;
    assert!((report(16_000, 128) - (lossy * keep + 0.5 * (1.0 - keep))).abs() < 1e-12);
    // A minute later nothing is left.
    assert!(report(76_000, 0) < 0.001);
}
