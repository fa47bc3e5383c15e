//! Media against closed forms: bursts of loss, bit errors, copies, overtaking, cells.

use std::sync::atomic::AtomicBool;

use talkspurt_flow::Materials;
use talkspurt_proto::math;
use talkspurt_proto::probe::{Note, Place};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_scenario::model;
use talkspurt_sim::build::build;
use talkspurt_sim::medium::GilbertElliott;

use crate::support::{Look, flow, link, point, run, scenario, watch};

/// A flow of one packet size with nothing random in it: `payload` and 28 bytes of headers.
fn cbr(payload: u32, rate: &str) -> String {
    let source =
        format!("{{ kind = 'cbr', rate = '{rate}', packet = '{payload}B', noise = '0s' }}");
    flow("f", "a-z", "udp", &source, "start_spread = '0s'")
}

/// What became of each packet in the order sent: the arrival if it came, in nanoseconds.
fn fates(text: &str) -> Vec<Option<u64>> {
    let mut fates = Vec::new();
    watch(&point(text), &Look::default(), |now, place, note| match (place, note) {
        (Place::Link(0), Note::Dequeued { .. }) => fates.push(None),
        (Place::Link(0), Note::Arrived { packet }) if (packet.number as usize) < fates.len() => {
            fates[packet.number as usize] = Some(now.as_nanos());
        }
        _ => {}
    });
    fates
}

#[test]
fn bursts_have_the_mean_the_length_and_the_memory_of_the_chain() {
    let chain = model::GilbertElliott { p: 0.02, r: 0.25, h: 0.0, k: 1.0 };
    let mut rng = Rng::new(5, "chain");
    let mut state = GilbertElliott::new(chain, &mut rng);
    let lost: Vec<bool> = (0..2_000_000).map(|_| state.loses(&mut rng)).collect();
    let n = lost.len() as f64;
    let share = |count: usize| count as f64 / n;
    let mean = share(lost.iter().filter(|lost| **lost).count());
    // Stationary p / (p + r); the variance of the mean of a chain with memory λ = 1 − p − r is
    // π(1 − π)/n · (1 + λ)/(1 − λ): one standard error is 4.7e-4. Four of them.
    let (pi, memory) = (0.02 / 0.27, 1.0 - 0.27_f64);
    let error = (pi * (1.0 - pi) / n * (1.0 + memory) / (1.0 - memory)).sqrt();
    assert!((mean - pi).abs() < 4.0 * error, "{mean} is not {pi} ± {error}");
    // Bursts are geometric with mean 1/r and variance (1 − r)/r².
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    let length = mean * n / bursts;
    let error = (0.75_f64 / 0.0625 / bursts).sqrt();
    assert!((length - 4.0).abs() < 4.0 * error, "{length} is not 4 ± {error}");
    // The autocorrelation at lag j is λ^j.
    for lag in [1_u8, 2, 5, 10] {
        let apart = usize::from(lag);
        let both = share(lost.windows(apart + 1).filter(|w| w[0] && w[apart]).count());
        let correlation = (both - mean * mean) / (mean * (1.0 - mean));
        let expected = math::pow(memory, f64::from(lag));
        assert!((correlation - expected).abs() < 0.01, "lag {lag}: {correlation}, not {expected}");
    }
}

#[test]
fn a_link_loses_what_its_chain_says_in_both_states() {
    // Mean loss (1 − k) r/(p + r) + (1 − h) p/(p + r) = 0.1 · 0.8 + 0.6 · 0.2 = 0.2.
    let bursts = "gilbert_elliott = { p = 0.1, r = 0.4, h = 0.4, k = 0.9 }";
    let text =
        scenario("1000s", &[link("l", "a-z", "8Mbit/s", "0s", bursts), cbr(100, "80kbit/s")]);
    let fates = fates(&text);
    assert_eq!(fates.len(), 99_999);
    let lost = fates.iter().filter(|verdict| verdict.is_none()).count() as f64 / 1e5;
    // Independent losses: variance 0.16 / n; the covariances 0.04 · 0.5^j on both sides add 0.08.
    let error = (0.24_f64 / 1e5).sqrt();
    assert!((lost - 0.2).abs() < 4.0 * error, "{lost} is not 0.2 ± {error}");
    // Two in a row are lost oftener than 0.04: covariance (k − h)² π(1 − π) λ = 0.25 · 0.16 · 0.5.
    let both = fates.windows(2).filter(|w| w[0].is_none() && w[1].is_none()).count() as f64 / 1e5;
    assert!((both - (0.04 + 0.02)).abs() < 0.004, "{both}");
}

#[test]
fn bits_err_by_the_length_of_what_is_on_the_wire() {
    for (framing, payload, wire) in
        [("none", 100, 128), ("none", 1472, 1500), ("ethernet", 100, 166)]
    {
        let more = format!("bit_error_rate = 1e-5\nframing = '{framing}'");
        let flow = cbr(payload, &format!("{}bit/s", payload * 800));
        let text = scenario("1000s", &[link("l", "a-z", "8Mbit/s", "0s", &more), flow]);
        let fates = fates(&text);
        let n = fates.len() as f64;
        let lost = fates.iter().filter(|verdict| verdict.is_none()).count() as f64 / n;
        let expected = 1.0 - math::pow(1.0 - 1e-5, f64::from(8 * wire));
        let error = (expected * (1.0 - expected) / n).sqrt();
        assert!(
            (lost - expected).abs() < 4.0 * error,
            "{wire} bytes: {lost}, not {expected} ± {error}"
        );
        assert!(error < 0.05 * expected);
    }
}

#[test]
fn a_copy_arrives_behind_its_packet_and_stands_in_no_account() {
    let parts = |p: f64| {
        let links = link("l", "a-m", "8Mbit/s", "1ms", &format!("duplicate = {p:?}"))
            + &link("k", "m-z", "8Mbit/s", "1ms", "");
        scenario("100s", &[links, cbr(100, "80kbit/s")])
    };
    let run = run(&parts(0.25));
    // The second link carries packets and copies: 9999 · 1.25, standard error 43.
    let sent = run.link("k").sent_packets.unwrap();
    assert!((sent as f64 - 12_498.75).abs() < 4.0 * 43.4, "{sent}");
    let flow = run.flow("f");
    assert_eq!(flow.received_packets, flow.sent_packets);
    // Each byte once: 9999 packets of 100 bytes in 100 s.
    assert_eq!(flow.goodput_bps, Some(8.0 * flow.received_packets as f64));
    let always = point(&parts(1.0));
    let mut arrivals = Vec::new();
    watch(&always, &Look::default(), |now, place, note| {
        if let (Place::Peer(1), Note::Received { packet, .. }) = (place, note) {
            arrivals.push((now.as_nanos() % 10_000_000, packet.number != u32::MAX));
        }
    });
    // 128 bytes take 128 us and 1 ms, twice; the copy waits once for its packet.
    let (packet, copy) = ((2_256_000, true), (2_384_000, false));
    assert_eq!(arrivals.len(), 2 * 9_999);
    assert!(arrivals.chunks(2).all(|pair| pair == [packet, copy]), "{:?}", &arrivals[..4]);
}

/// Ten packets of 128 us in a row every 10 ms, a jitter of 1 ms.
fn crowded(reorder: bool) -> String {
    let more = format!("jitter = '1ms'\nreorder = {reorder}");
    let links = link("l", "a-z", "8Mbit/s", "0.4ms", &more);
    let flows = (0..10).map(|f| {
        let source = "{ kind = 'cbr', rate = '80kbit/s', packet = '100B', noise = '0s' }";
        flow(&format!("f{f}"), "a-z", "udp", source, "start_spread = '0s'")
    });
    scenario("100s", &[links, flows.collect()])
}

/// Of each packet, when it was sent on the link and when it arrived.
fn flights(text: &str, look: &Look) -> Vec<(u64, u64)> {
    let mut begun = std::collections::BTreeMap::new();
    let mut flights = Vec::new();
    watch(&point(text), look, |now, place, note| match (place, note) {
        (Place::Link(0), Note::Dequeued { packet, .. }) => {
            begun.insert((packet.flow, packet.number), now.as_nanos());
        }
        (Place::Link(0), Note::Arrived { packet }) => {
            flights.push((begun[&(packet.flow, packet.number)], now.as_nanos()));
        }
        _ => {}
    });
    flights
}

#[test]
fn packets_overtake_only_where_they_may_and_each_flies_as_long_as_it_was_drawn() {
    let passed = |flights: &[(u64, u64)]| flights.windows(2).filter(|w| w[1].0 < w[0].0).count();
    assert_eq!(passed(&flights(&crowded(false), &Look::default())), 0);
    let free = flights(&crowded(true), &Look::default());
    assert!(passed(&free) > free.len() / 10, "{} of {}", passed(&free), free.len());
    assert!(free.windows(2).all(|w| w[0].1 <= w[1].1));
    // Uniform in [0, 1 ms) beyond 128 us and 0.4 ms, for every packet: order takes nothing from it.
    let further: Vec<u64> = free.iter().map(|(begun, arrived)| arrived - begun - 528_000).collect();
    let n = further.len() as f64;
    assert!(further.iter().all(|further| *further < 1_000_000));
    let mean = further.iter().sum::<u64>() as f64 / n;
    let error = 1e6 / 12_f64.sqrt() / n.sqrt();
    assert!((mean - 5e5).abs() < 4.0 * error, "{mean} ± {error}");
    // Looking at the link in between finds the same, to the nanosecond.
    let settle_every = Some(Duration::from_micros(77));
    assert_eq!(free, flights(&crowded(true), &Look { settle_every, ..Look::default() }));
}

#[test]
fn overtaking_costs_few_events() {
    let events = |reorder: bool| {
        let point = point(&crowded(reorder));
        let mut world = build(&point.scenario, &point.network, &Materials::default(), ());
        world.run_until(Instant::ZERO + point.scenario.duration, &AtomicBool::new(false));
        (world.events() as f64, world.hops() as f64)
    };
    let ((ordered, hops), (free, same)) = (events(false), events(true));
    assert_eq!(hops, same);
    // Ten packets take 1.28 ms: the least delay of 0.4 ms fits thrice into it, ten hops in all.
    assert!(
        free - ordered <= 0.4 * hops,
        "{ordered} events in order, {free} out of it, {hops} hops"
    );
}

#[test]
fn all_at_once_loses_count_of_nothing_however_often_it_is_looked_at() {
    let all = "jitter = '3ms'\nreorder = true\nduplicate = 0.3\nbit_error_rate = 1e-5
        gilbert_elliott = { p = 0.1, r = 0.3 }
        steps = [{ at = '0.3s', rate = '0bit/s', delay = '9ms' }, { at = '0.4s', rate = '1Mbit/s' },
            { at = '0.7s', delay = '1ms', loss = 0.2 }]
        events = [{ at = '0.5s', state = 'down' }, { at = '0.6s', state = 'up' }]";
    let links = link("l", "a-m", "8Mbit/s", "4ms", all) + &link("k", "m-z", "8Mbit/s", "1ms", all);
    let tcp = flow("t", "a-z", "tcp", "{ kind = 'bulk' }", "");
    let text = scenario("2s", &[links, cbr(100, "400kbit/s"), tcp]);
    let plain = run(&text);
    for every in [13, 700, 41_000] {
        let settle_every = Some(Duration::from_micros(every));
        let look = Look { settle_every, ..Look::default() };
        let settled = watch(&point(&text), &look, |_, _, _| {});
        assert_eq!(plain.digest, settled.digest);
        assert_eq!(plain.links, settled.links);
    }
    assert!(plain.flow("f").received_packets > 100 && plain.flow("f").lost_packets > 100);
}

#[test]
fn atm_cells_are_counted_as_the_standards_do() {
    // On 8 Mbit/s a byte lasts a microsecond.
    let on = |framing: &str, ip_bytes: u32| {
        let link = link("l", "a-z", "8Mbit/s", "0s", &format!("framing = '{framing}'"));
        let text =
            scenario("1s", &[link, cbr(ip_bytes - 28, &format!("{}bit/s", 80 * (ip_bytes - 28)))]);
        let run = run(&text);
        (run.flow("f").delay_max_s.unwrap() * 1e6).round()
    };
    let cells = |n: u32| f64::from(53 * n);
    // 40 + 8 fill a cell; one byte more needs a second.
    assert_eq!([29, 40, 41, 88, 89].map(|b| on("atm_ipoa_vcmux", b)), [1, 1, 2, 2, 3].map(cells));
    // Bytes before a packet, with AAL5's 8: as `tc-stab` and `tc-cake` count them for the same lines.
    for (framing, overhead) in [
        ("atm_ipoa_vcmux", 8),
        ("atm_pppoa_vcmux", 10),
        ("atm_pppoa_llc", 14),
        ("atm_ipoa_llc", 16),
        ("atm_bridged_vcmux", 24),
        ("atm_bridged_llc", 32),
        ("atm_pppoe_vcmux", 32),
        ("atm_pppoe_llc", 40),
    ] {
        let fits = 4 * 48 - overhead;
        assert_eq!([on(framing, fits), on(framing, fits + 1)], [cells(4), cells(5)], "{framing}");
    }
    // RFC 2684 §5.1 with 1500 bytes: 1516 in 32 cells.
    assert_eq!(on("atm_ipoa_llc", 1500), cells(32));
}

/// What the tables say of frames, from packets alone, is what the receiver could decode: by loss, order, repair and
/// what the pacer and a full queue do to it.
#[test]
fn decodable_frames_are_those_that_the_receiver_decodes() {
    let mut some_are_lost = 0;
    for (seed, more, repair, rate) in [
        (1, "loss = 0.01", "{}", "600kbit/s"),
        (2, "loss = 0.1", "{}", "600kbit/s"),
        (3, "loss = 0.3", "{}", "600kbit/s"),
        (4, "loss = 0.03\njitter = '40ms'", "{}", "900kbit/s"),
        (5, "loss = 0.01", "{ nack = false }", "600kbit/s"),
        (6, "loss = 0.05", "{ nack = false }", "200kbit/s"),
        (7, "queue = { kind = 'droptail', packets = 20 }", "{}", "1500kbit/s"),
        (8, "gilbert_elliott = { p = 0.002, r = 0.1 }", "{}", "900kbit/s"),
    ] {
        let source = format!("{{ kind = 'video', encoder = {{}}, repair = {repair} }}");
        let fixed =
            format!("controller = {{ kind = 'fixed', rate = '{rate}', circuit_breaker = false }}");
        let parts = [
            link("l", "a-z", "1200kbit/s", "30ms", more),
            flow("v", "a-z", "udp", &source, &fixed),
        ];
        let text = format!("seed = {seed}\n{}", scenario("40s", &parts));
        let run = run(&text);
        let video = run.flow("v").video.as_ref().expect("video");
        assert_eq!(run.decoded[1], video.complete, "{more} {repair}");
        assert!(video.complete > 100, "{more} {repair}: {video:?}");
        some_are_lost += u32::from(video.complete < video.frames);
        let repaired = run.flow("v").repair_packets;
        assert_eq!(repaired.is_some(), repair == "{}", "{repaired:?}");
    }
    assert!(some_are_lost >= 4, "{some_are_lost}");
}
