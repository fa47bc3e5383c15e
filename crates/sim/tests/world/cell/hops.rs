//! Cells in a world: packets crossing them, the access point's single queue, causes of loss, and
//! that observation changes nothing.

use std::collections::BTreeSet;

use talkspurt_proto::body::Body;
use talkspurt_proto::math;
use talkspurt_proto::probe::{Note, Place};
use talkspurt_proto::time::{Duration, Instant};

use crate::support::{Look, Run, flow, link, point, run, scenario, watch};

/// A café: an access point on a wire to `net`, with these stations.
pub(super) fn cafe(stations: &[&str], more: &str) -> String {
    let standard = if more.contains("standard") { "" } else { "standard = '802.11b'" };
    let queue =
        if more.contains("queue") { "" } else { "queue = { kind = 'droptail', packets = 50 }" };
    let stations: Vec<String> = stations
        .iter()
        .map(|station| {
            if station.contains('=') { (*station).to_owned() } else { format!("{station} = {{}}") }
        })
        .collect();
    let wire = link("wire", "ap-net", "100Mbit/s", "1ms", "");
    let stations = stations.join(", ");
    format!(
        "{wire}[cells.cafe]\naccess_point = 'ap'\nstations = {{ {stations} }}\n{standard}\n{queue}\n{more}\n"
    )
}

pub(super) fn cbr(name: &str, ends: &str, rate: &str, packet: u32, more: &str) -> String {
    let source = format!("{{ kind = 'cbr', rate = '{rate}', packet = '{packet}B', noise = '0s' }}");
    flow(name, ends, "udp", &source, more)
}

fn near(value: Option<f64>, expected: f64) {
    let value = value.expect("packets arrived");
    assert!((value - expected).abs() < 1e-9, "{value}, not {expected}");
}

#[test]
fn a_packet_that_finds_all_quiet_goes_at_once() {
    // 100 B in UDP and IPv4: 128 B, a frame of 164 B: 119.3 µs at 11 Mbit/s, told as 120. The wire
    // takes 128 B at 100 Mbit/s and 1 ms.
    let air = (192.0 + 120.0) * 1e-6;
    let wire = 128.0 * 8.0 / 100e6 + 1e-3;
    let run = run(&scenario(
        "10s",
        &[
            cafe(&["laptop", "phone"], ""),
            cbr("up", "laptop-net", "8kbit/s", 100, "start_spread = '0s'"),
            cbr("down", "net-phone", "8kbit/s", 100, "start = '20ms'\nstart_spread = '0s'"),
            cbr("across", "phone-laptop", "8kbit/s", 100, "start = '40ms'\nstart_spread = '0s'"),
        ],
    ));
    for name in ["up", "down"] {
        let flow = run.flow(name);
        assert_eq!(flow.lost_packets, 0);
        near(flow.delay_min_s, air + wire);
        near(flow.delay_max_s, air + wire);
    }
    // Through the access point, which contends with nobody once the acknowledgement is sent: 10 µs
    // and 248 µs after the frame; then DIFS and the backoff drawn, for the medium was busy.
    let across = run.flow("across");
    let least = 2.0 * air + (10.0 + 248.0 + 50.0) * 1e-6;
    assert!(across.delay_min_s.expect("some arrive") >= least - 1e-9);
    assert!(across.delay_max_s.expect("some arrive") <= least + 31.0 * 20e-6 + 1e-9);
    let steps = (across.delay_mean_s.expect("some arrive") - least) / 20e-6;
    // Some 100 draws from 0 to 31: 15.5 with a standard error of 0.92.
    assert!((steps - 15.5).abs() < 3.7, "{steps}");
    let sent = |name| run.link(name).sent_packets;
    assert_eq!(sent("cafe.laptop"), Some(run.flow("up").sent_packets));
    assert_eq!(sent("cafe.phone"), Some(across.sent_packets));
    assert_eq!(sent("cafe.ap"), Some(run.flow("down").sent_packets + across.sent_packets));
    // On the channel for frame, SIFS and acknowledgement.
    let busy = run.flow("up").sent_packets as f64 * (192.0 + 120.0 + 10.0 + 248.0) * 1e-6 / 10.0;
    near(run.link("cafe.laptop").utilisation, busy);
}

#[test]
fn frames_of_one_instant_collide_and_are_sent_again() {
    let of = |offset: &str| {
        run(&scenario(
            "10s",
            &[
                cafe(&["laptop", "phone"], ""),
                cbr("one", "laptop-net", "8kbit/s", 100, "start_spread = '0s'"),
                cbr(
                    "two",
                    "phone-net",
                    "8kbit/s",
                    100,
                    &format!("start = '{offset}'\nstart_spread = '0s'"),
                ),
            ],
        ))
    };
    let count = |run: &Run, what: fn(&talkspurt_record::LinkSummary) -> Option<u64>| {
        ["cafe.laptop", "cafe.phone"].map(|name| what(run.link(name)).expect("a whole window"))
    };
    let apart = of("50ms");
    assert_eq!(count(&apart, |link| link.collisions), [0, 0]);
    assert_eq!(count(&apart, |link| link.retries), [0, 0]);
    let together = of("0s");
    let [one, two] = count(&together, |link| link.collisions);
    assert_eq!(one, two);
    // Each of 99 pairs once, and again if both draw the same of 64 numbers.
    let pairs = together.flow("one").sent_packets;
    assert!((98..=100).contains(&pairs) && (pairs..pairs + 10).contains(&one), "{one}");
    assert_eq!(count(&together, |link| link.retries), [one, two]);
    assert_eq!(together.flow("one").lost_packets + together.flow("two").lost_packets, 0);
}

#[test]
fn what_nobody_understands_is_given_up_at_the_retry_limit() {
    for (words, tries) in [
        ("", 7),
        ("short_retry_limit = 3", 3),
        // The RTS is not understood either.
        ("rts_threshold = '0B'", 7),
    ] {
        let run = run(&scenario(
            "10s",
            &[
                cafe(&["laptop = { snr_db = -20.0 }"], words),
                cbr("up", "laptop-net", "8kbit/s", 100, "start_spread = '0s'\nstop = '9s'"),
            ],
        ));
        let link = run.link("cafe.laptop");
        assert_eq!((link.drops, link.drops_retries), (Some(90), Some(90)));
        assert_eq!(link.sent_packets, Some(90));
        assert_eq!(link.retries, Some(90 * (tries - 1)), "{words}");
        assert_eq!(link.collisions, Some(0));
        assert_eq!(run.flow("up").lost_packets, 90);
    }
}

/// A frame of 164 B takes 192 and 120 µs at 11 Mbit/s, one of 564 B 192 and 411 µs.
#[test]
fn what_is_given_up_is_dropped_when_it_has_left_the_air() {
    let lost = |stations: &[&str], more: &[String]| {
        let mut parts = vec![
            cafe(stations, "short_retry_limit = 1"),
            cbr("up", "laptop-net", "8kbit/s", 100, "start_spread = '0s'\nstop = '1s'"),
        ];
        parts.extend_from_slice(more);
        let mut told: [Vec<_>; 2] = Default::default();
        watch(&point(&scenario("2s", &parts)), &Look::default(), |now, place, note| match note {
            Note::Dequeued { packet, .. } => told[0].push((place, packet.flow, now)),
            Note::Dropped { packet, .. } => told[1].push((place, packet.flow, now)),
            _ => {}
        });
        for all in &mut told {
            all.sort_unstable_by_key(|(_, flow, now)| (*flow, *now));
        }
        told
    };
    let micros = Duration::from_micros;
    let [began, dropped] = lost(&["laptop = { snr_db = -20.0 }"], &[]);
    let ends = |began: &[(Place, u32, Instant)], airtimes: [u64; 2]| -> Vec<_> {
        let end = |(place, flow, at): &(Place, u32, Instant)| {
            (*place, *flow, *at + micros(192 + airtimes[*flow as usize]))
        };
        began.iter().map(end).collect()
    };
    assert_eq!(began.len(), 10);
    assert_eq!(dropped, ends(&began, [120, 0]));
    // Of two that collide, each at its own end; nobody else loses a frame.
    let other = "start_spread = '0s'\nstop = '1s'";
    let both = [cbr("two", "phone-net", "40kbit/s", 500, other)];
    let [began, dropped] = lost(&["laptop", "phone"], &both);
    let began: Vec<_> = began.into_iter().filter(|(place, ..)| *place != Place::Link(0)).collect();
    assert_eq!(began.len(), 20);
    assert_eq!(dropped, ends(&began, [120, 411]));
}

/// The chance of a frame is that of its bytes; the acknowledgement's is added. With RTS the long
/// limit counts.
#[test]
fn frames_come_through_as_often_as_the_model_says() {
    // 164 B at 11 Mbit/s and 5 dB, and 14 B at 2 Mbit/s.
    use talkspurt_sim::cell::{errors::byte_survives_ln, timing::Mode};
    let snr = math::pow(10.0, 0.5);
    let passes =
        |rate, bytes: f64| math::exp(bytes * byte_survives_ln(Mode::Dsss(rate, false), snr));
    let chance = passes(11_000_000, 164.0) * passes(2_000_000, 14.0);
    assert!((0.3..0.7).contains(&chance), "{chance}");
    let run = run(&scenario(
        "200s",
        &[
            cafe(&["laptop = { snr_db = 5.0 }"], "short_retry_limit = 1"),
            cbr("up", "laptop-net", "80kbit/s", 100, ""),
        ],
    ));
    let link = run.link("cafe.laptop");
    let (sent, lost) = (link.sent_packets.expect("whole"), run.flow("up").lost_packets);
    // Decoded, whether or not the sender receives the acknowledgement.
    let arrived = passes(11_000_000, 164.0);
    let share = 1.0 - lost as f64 / sent as f64;
    let error = (arrived * (1.0 - arrived) / sent as f64).sqrt();
    assert!((share - arrived).abs() < 4.0 * error, "{share}, not {arrived} ± {error}");
}

#[test]
fn one_queue_at_the_access_point_serves_all_stations() {
    let of = |snr: &str, down: &str| {
        let stations = [format!("far = {{ snr_db = {snr} }}"), "near".to_owned()];
        let stations: Vec<&str> = stations.iter().map(String::as_str).collect();
        run(&scenario(
            "10s",
            &[
                cafe(&stations, ""),
                cbr("bad", "net-far", down, 1000, ""),
                cbr("good", "net-near", "100kbit/s", 100, ""),
            ],
        ))
    };
    let quiet = of("40.0", "600kbit/s");
    assert_eq!(quiet.flow("good").lost_packets, 0);
    // Frames to the far station are all in vain; what waits behind them waits, too.
    let blocked = of("-20.0", "600kbit/s");
    let shared = blocked.link("cafe.ap");
    assert!(shared.drops_retries > Some(100) && shared.drops_full > Some(100), "{shared:?}");
    let delay = |run: &Run| run.flow("good").delay_p50_s.expect("some arrive");
    assert!(delay(&blocked) > 50.0 * delay(&quiet), "{} {}", delay(&blocked), delay(&quiet));
    assert!(blocked.flow("good").lost_packets > 100);
}

#[test]
fn packets_too_long_for_a_cell_are_answered() {
    // Neither end's own link is the cell, so both learn of its MTU from the routers before it.
    let text = scenario(
        "20s",
        &[
            cafe(&["laptop", "phone"], "mtu = '1000B'"),
            link("lan", "laptop-printer", "100Mbit/s", "1ms", ""),
            flow("up", "printer-net", "tcp", "{ kind = 'bulk', total = '1MB' }", ""),
            flow("down", "net-printer", "tcp", "{ kind = 'bulk', total = '1MB' }", ""),
        ],
    );
    let mut told = [0_u64; 4];
    let run = watch(&point(&text), &Look::default(), |_, place, note| {
        if let (Place::Peer(peer), Note::Received { body: Body::TooBig { mtu, .. }, .. }) =
            (place, note)
        {
            assert_eq!(*mtu, 1000);
            told[peer as usize] += 1;
        }
    });
    let too_big = |name| run.link(name).drops_too_big.expect("a whole window");
    for (flow, link, peer) in [("up", "cafe.laptop", 0), ("down", "cafe.ap", 2)] {
        assert!(told[peer] > 0, "{flow}");
        assert_eq!(too_big(link), told[peer], "{flow}");
        assert!(run.flow(flow).payload_bytes >= 1_000_000, "{flow}");
    }
}

fn busy(queue: &str, more: &str) -> String {
    let words = format!("queue = {queue}\nsnr_db = 9.0\n{more}");
    scenario(
        "6s",
        &[
            cafe(&["a", "b", "c"], &words),
            flow("download", "net-a", "tcp", "{ kind = 'bulk' }", ""),
            flow("upload", "b-net", "tcp", "{ kind = 'bulk' }", "start = '10ms'"),
            flow("across", "c-a", "tcp", "{ kind = 'bulk' }", "start = '20ms'"),
            flow(
                "call",
                "a-net",
                "udp",
                "{ kind = 'speech', codec = 'pcmu' }",
                "reverse = { kind = 'speech', codec = 'pcmu' }",
            ),
        ],
    )
}

#[test]
fn any_discipline_waits_in_a_cell_and_looking_on_changes_nothing() {
    for queue in [
        "{ kind = 'droptail', packets = 20 }",
        "{ kind = 'red', packets = 60, min_threshold = 5.0 }",
        "{ kind = 'codel' }",
        "{ kind = 'fq_codel' }",
        "{ kind = 'pie' }",
    ] {
        for more in [
            "",
            "rts_threshold = '500B'",
            "rate = { kind = 'arf' }",
            "rate = { kind = 'minstrel' }\ncontenders = { count = 3 }",
        ] {
            let text = busy(queue, more);
            let plain = run(&text);
            let look = Look {
                packets: true,
                settle_every: Some(Duration::from_micros(700)),
                ..Look::default()
            };
            let watched = watch(&point(&text), &look, |_, _, _| {});
            assert_eq!(plain.digest, watched.digest, "{queue} {more}");
            assert_eq!(plain.hops, watched.hops);
            for name in ["download", "upload", "across"] {
                assert!(plain.flow(name).payload_bytes > 10_000, "{queue} {more}: {name}");
            }
        }
    }
}

#[test]
fn another_station_changes_no_other_random_stream() {
    let of = |stations: &[&str]| {
        let text = scenario(
            "5s",
            &[cafe(stations, "snr_db = 7.0"), cbr("up", "a-net", "1Mbit/s", 500, "")],
        );
        let mut arrivals = Vec::new();
        watch(&point(&text), &Look::default(), |now, place, note| {
            if matches!((place, note), (Place::Peer(1), Note::Received { .. })) {
                arrivals.push(now);
            }
        });
        arrivals
    };
    assert_eq!(of(&["a"]), of(&["a", "b"]));
}

#[test]
fn a_frame_understood_twice_is_delivered_once() {
    // At −1.5 dB many an acknowledgement at 2 Mbit/s is lost, and its data comes again.
    let words =
        "rate = { kind = 'fixed', rate = '2Mbit/s' }\nsnr_db = -1.5\nshort_retry_limit = 20";
    let text = scenario("60s", &[cafe(&["a"], words), cbr("up", "a-net", "8kbit/s", 10, "")]);
    let (mut numbers, mut twice) = (BTreeSet::new(), 0);
    let run = watch(&point(&text), &Look::default(), |_, place, note| {
        if let (Place::Peer(1), Note::Received { packet, .. }) = (place, note) {
            twice += u32::from(!numbers.insert(packet.number));
        }
    });
    let retries = run.link("cafe.a").retries.expect("a whole window");
    assert!(retries > 1000, "{retries}");
    assert_eq!(twice, 0);
    assert_eq!(run.flow("up").received_packets, numbers.len() as u64);
}
