//! Delays, loads and queues that can be worked out on paper.

use talkspurt_proto::body::{Bodies, Body};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Packet, Payload};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_record::FlowSummary;
use talkspurt_scenario::model;
use talkspurt_sim::link::{Link, Parts};
use talkspurt_sim::pool::Pool;

use crate::support::{Run, flow, link, parts, run, scenario};

/// A flow of one packet size with nothing random in it.
fn cbr(payload: u32, rate: &str) -> String {
    format!("{{ kind = 'cbr', rate = '{rate}', packet = '{payload}B', noise = '0s' }}")
}

/// The one delay all packets of a lone flow have, in nanoseconds.
fn delay(links: &[String], source: &str, more: &str) -> u64 {
    let flow = flow("f", "a-z", "udp", source, more);
    let run = run(&scenario("2s", &[links.concat(), flow]));
    let flow = run.flow("f");
    assert!(flow.received_packets > 10);
    let nanos =
        |seconds: Option<f64>| Duration::from_secs_f64(seconds.expect("received")).as_nanos();
    assert_eq!(nanos(flow.delay_min_s), nanos(flow.delay_max_s));
    nanos(flow.delay_max_s)
}

#[test]
fn a_packet_of_128_bytes_over_256_kbit_and_50_ms_takes_54_ms() {
    let links = [link("l", "a-z", "256kbit/s", "50ms", "")];
    // 128 · 8 / 256 000 s = 4 ms.
    assert_eq!(delay(&links, &cbr(128, "32kbit/s"), "sizing = 'ns2'"), 54_000_000);
    // By the RFCs: UDP 8 and IPv4 20, or IPv6 40.
    assert_eq!(delay(&links, &cbr(100, "32kbit/s"), ""), 54_000_000);
    assert_eq!(delay(&links, &cbr(80, "32kbit/s"), "ip = 'v6'"), 54_000_000);
    assert_eq!(delay(&links, &cbr(128, "32kbit/s"), ""), 54_875_000);
    // Speech of 20 ms: 160 + RTP 12 + 28 = 200 bytes, 6.25 ms; ns-2 counts the 160 alone.
    let speech = "{ kind = 'speech', codec = 'pcmu' }";
    let quiet = "rtcp = { enabled = false }\n";
    assert_eq!(delay(&links, speech, quiet), 56_250_000);
    assert_eq!(delay(&links, speech, &format!("{quiet}sizing = 'ns2'")), 55_000_000);
}

#[test]
fn jitter_is_uniform_and_keeps_order() {
    // A packet every 20 ms, 4 ms to send, 50 ms to fly.
    let over = |jitter: &str| {
        let link = link("l", "a-z", "256kbit/s", "50ms", &format!("jitter = '{jitter}'"));
        run(&scenario("400s", &[link, flow("f", "a-z", "udp", &cbr(100, "40kbit/s"), "")]))
    };
    let further =
        |run: &Run, delay: fn(&FlowSummary) -> Option<f64>| delay(run.flow("f")).unwrap() - 0.054;
    let run = over("10ms");
    let count = f64::from(u32::try_from(run.flow("f").received_packets).unwrap());
    assert!(count > 19_990.0);
    // The mean of uniform draws, within four of its standard deviations; the ends nearly reached.
    let deviation = 0.010 / 12_f64.sqrt() / count.sqrt();
    assert!((further(&run, |flow| flow.delay_mean_s) - 0.005).abs() < 4.0 * deviation);
    assert!((0.0..0.000_01).contains(&further(&run, |flow| flow.delay_min_s)));
    assert!((0.009_99..0.010).contains(&further(&run, |flow| flow.delay_max_s)));

    // With draws up to 100 ms a packet waits for the four before it: F(x) = ∏ min(1, (x + 20 k)/100).
    let run = over("100ms");
    let share =
        |x: f64| -> f64 { (0..5).map(|k| ((x + 20.0 * f64::from(k)) / 100.0).min(1.0)).product() };
    let mean: f64 = (0..1000).map(|i| 0.1 * (1.0 - share(0.05 + 0.1 * f64::from(i)))).sum();
    let measured = 1e3 * further(&run, |flow| flow.delay_mean_s);
    assert!((measured / mean - 1.0).abs() < 0.01, "{measured} ms, on paper {mean}");
}

#[test]
fn hops_add_up() {
    let links = [
        link("l0", "a-b", "1Mbit/s", "3ms", ""),
        link("l1", "b-c", "7Mbit/s", "0s", "framing = 'ppp'"),
        link("l2", "c-z", "3Mbit/s", "41us", "framing = 'ethernet'"),
    ];
    // 500 bytes; times rounded up to a nanosecond: 507 · 8 / 7 µs and 538 · 8 / 3 µs.
    let hops = (4_000_000 + 3_000_000) + 579_429 + (1_434_667 + 41_000);
    assert_eq!(delay(&links, &cbr(472, "100kbit/s"), ""), hops);
}

#[test]
fn framing_is_exact() {
    // On 8 Mbit/s a byte lasts a microsecond.
    let on = |framing: &str, ip_bytes: u32| {
        let links = [link("l", "a-z", "8Mbit/s", "0s", &format!("framing = '{framing}'"))];
        delay(&links, &cbr(ip_bytes - 28, &format!("{}bit/s", 80 * (ip_bytes - 28))), "") / 1000
    };
    // IEEE 802.3: 8 + 14 + 4 + 12 = 38 around at least 46.
    assert_eq!([29, 45, 46, 47, 1500].map(|bytes| on("ethernet", bytes)), [84, 84, 84, 85, 1538]);
    assert_eq!([29, 1500].map(|bytes| on("ppp", bytes)), [36, 1507]);
    assert_eq!([29, 1500].map(|bytes| on("none", bytes)), [29, 1500]);
}

#[test]
fn a_lone_flow_uses_its_share() {
    // 128 bytes every 4 ms on 1 Mbit/s: 1.024 ms of 4.
    let links = link("l", "a-z", "1Mbit/s", "5ms", "");
    let flow = flow("f", "a-z", "udp", &cbr(128, "256kbit/s"), "sizing = 'ns2'");
    let run = run(&scenario("10s", &[links, flow, "[measure]\nfrom = '1s'\nto = '9s'\n".into()]));
    let link = run.link("l");
    assert!((link.utilisation.unwrap() - 0.256).abs() < 1e-12);
    assert_eq!(link.queue_mean_packets, Some(0.0));
    assert_eq!(link.sent_packets, Some(2000));
    assert_eq!(run.link("l.back").utilisation, Some(0.0));
    assert!((run.flow("f").throughput_bps.unwrap() - 256e3).abs() < 1.0);
}

#[test]
fn a_transmission_counts_for_the_window_as_far_as_it_lies_in_it() {
    // 1000 bytes on 8 kbit/s take a second: from 2 to 3 s, from 4 to 5 s and so on.
    let links = link("l", "a-z", "8kbit/s", "5ms", "mtu = '1000B'");
    let flow = flow("f", "a-z", "udp", &cbr(972, "3888bit/s"), "start_spread = '0s'");
    let measure = "[measure]\nfrom = '2250ms'\nto = '4750ms'\n".to_owned();
    let run = run(&scenario("10s", &[links, flow, measure]));
    assert_eq!(run.link("l").utilisation, Some(0.6));
    assert_eq!(run.link("l").sent_packets, Some(1));
}

/// Four packets of 125 bytes arrive together every 10 ms; each takes 1 ms.
fn four_at_once(queue: &str) -> crate::support::Run {
    let links =
        link("l", "a-z", "1Mbit/s", "5ms", &format!("queue = {{ kind = 'droptail', {queue} }}"));
    let more = "sizing = 'ns2'\nstart_spread = '0s'";
    let flows =
        [0, 1, 2, 3].map(|f| flow(&format!("f{f}"), "a-z", "udp", &cbr(125, "100kbit/s"), more));
    run(&scenario("10s", &[links, flows.concat(), "[measure]\nfrom = '1s'\nto = '9s'\n".into()]))
}

#[test]
fn a_periodic_queue_has_the_mean_of_its_triangle() {
    // Waiting: 1 + 2 + 3 ms of 10.
    let run = four_at_once("packets = 100");
    let link = run.link("l");
    assert!((link.queue_mean_packets.unwrap() - 0.6).abs() < 1e-12);
    assert!((link.queue_mean_bytes.unwrap() - 75.0).abs() < 1e-9);
    assert_eq!(link.queue_max_packets, Some(3));
    assert!((link.utilisation.unwrap() - 0.4).abs() < 1e-12);
    assert_eq!(link.drops, Some(0));
    // The flow that comes k-th waits k milliseconds.
    for (k, flow) in run.flows.iter().enumerate() {
        assert_eq!(flow.delay_min_s, Some((6 + k) as f64 / 1e3));
        assert_eq!(flow.delay_max_s, flow.delay_min_s);
    }
    // Two places: the fourth packet is dropped, eight hundred times; 1 + 2 ms of 10. By bytes alike.
    for queue in ["packets = 2", "bytes = '250B'", "bytes = '374B'"] {
        let run = four_at_once(queue);
        let link = run.link("l");
        assert!((link.queue_mean_packets.unwrap() - 0.3).abs() < 1e-12);
        assert_eq!(link.queue_max_packets, Some(2));
        assert_eq!((link.drops, link.drops_full), (Some(800), Some(800)));
        assert_eq!(run.flow("f3").received_packets, 0);
        assert_eq!(run.flow("f2").lost_packets, 0);
    }
}

/// Poisson arrivals of `load` for a server of one packet a millisecond, in batches: mean packets
/// waiting and load of each.
fn md1(load: f64, batches: usize) -> Vec<(f64, f64)> {
    const BATCH: Duration = Duration::from_secs(50);
    let rate = Rate::from_bps(1_000_000);
    let everything = model::Queue::Droptail(model::DropTail::default());
    let mut link = Link::new(Parts {
        delay: Duration::from_millis(1),
        rng: Rng::new(1, "md1"),
        ..parts(&everything, rate, 1500)
    });
    let (mut pool, mut rng) = (Pool::default(), Rng::new(3, "arrivals"));
    let mean = Duration::from_secs_f64(1e-3 / load);
    let (mut now, mut before) = (Instant::ZERO, link.counters(Instant::ZERO));
    let mut results = Vec::new();
    for batch in 1..=batches {
        let end = Instant::ZERO + BATCH * batch as u64;
        while now < end {
            while let Some(arrival) = link.next().filter(|next| *next <= now) {
                link.advance(arrival, &mut pool, &mut ());
                let packet = *link.arrived(arrival).expect("it is due");
                link.let_go(arrival, &packet, &mut ());
                pool.take(packet.body);
            }
            let body = pool.put(|| Body::Udp(Frame::Data(Payload::default())));
            let packet = Packet { body, ip_bytes: 125, sent: now, ..Packet::default() };
            let _ = link.offer(now, &packet, &mut pool, &mut ());
            now += rng.exponential(mean);
        }
        link.advance(end, &mut pool, &mut ());
        let after = link.counters(end);
        let area = (after.queue_area_packets - before.queue_area_packets) as f64;
        let busy = after.busy.saturating_sub(before.busy).as_secs_f64();
        results.push((area / BATCH.as_nanos() as f64, busy / BATCH.as_secs_f64()));
        before = after;
    }
    results
}

#[test]
fn poisson_arrivals_wait_as_pollaczek_and_khinchine_say() {
    for load in [0.3, 0.5, 0.8] {
        let batches = md1(load, 20);
        let n = batches.len() as f64;
        let mean = batches.iter().map(|b| b.0).sum::<f64>() / n;
        let variance = batches.iter().map(|b| (b.0 - mean) * (b.0 - mean)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt();
        // M/D/1: mean packets waiting is ρ² / 2(1 − ρ). Four standard errors, themselves small.
        let expected = load * load / (2.0 * (1.0 - load));
        assert!(error < 0.02 * expected, "{load}: {mean} ± {error}");
        assert!((mean - expected).abs() < 4.0 * error, "{load}: {mean} ± {error}, not {expected}");
        let busy = batches.iter().map(|b| b.1).sum::<f64>() / n;
        assert!((busy / load - 1.0).abs() < 0.01, "{busy}");
    }
}
