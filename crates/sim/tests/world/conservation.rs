//! Packets are conserved: random small networks with losses, outages, packets too long for a link,
//! full send queues and clocks that disagree. The assertions are
//! those of every run in [`crate::support`], of the world at its end and of each flow's account.

use std::sync::Arc;

use proptest::prelude::*;
use talkspurt_proto::units::Size;
use talkspurt_scenario::Point;

use crate::support::{self, Look, flow, link, scenario};

fn a_link(index: usize) -> impl Strategy<Value = String> {
    let rate = prop::sample::select(vec!["64kbit/s", "300kbit/s", "2Mbit/s", "100Mbit/s"]);
    let delay = prop::sample::select(vec!["0ms", "3ms", "40ms", "300ms"]);
    let queue =
        prop::sample::select(vec!["packets = 1", "packets = 5", "packets = 40", "bytes = '3kB'"]);
    let loss = prop::sample::select(vec![0.0, 0.01, 0.2]);
    let framing = prop::sample::select(vec!["none", "ethernet", "ppp"]);
    let events = prop::collection::btree_set(1_u32..3000, 0..4);
    (rate, delay, queue, loss, framing, events).prop_map(
        move |(rate, delay, queue, loss, framing, events)| {
            let events = events.iter().zip(["down", "up"].iter().cycle());
            let events = events.map(|(at, state)| format!("{{ at = '{at}ms', state = '{state}' }}"));
            let events = events.collect::<Vec<_>>().join(", ");
            let more = format!(
                "queue = {{ kind = 'droptail', {queue} }}\nloss = {loss:?}\nframing = '{framing}'\nevents = [{events}]\n"
            );
            // A ring, so that ways forth and back may differ.
            let ends = format!("n{index}-n{}", (index + 1) % 4);
            link(&format!("l{index}"), &ends, rate, delay, &more)
        },
    )
}

fn a_source(tcp: bool) -> impl Strategy<Value = String> {
    let mut sources = vec![
        "{ kind = 'speech', codec = 'pcmu' }",
        "{ kind = 'speech', codec = 'pcma', packet = '60ms', talkspurts = {}, noise = '30ms' }",
        "{ kind = 'cbr', rate = '200kbit/s', packet = '900B' }",
        "{ kind = 'cbr', rate = '10kbit/s', packet = '20B' }",
        "{ kind = 'on_off', rate = '2Mbit/s', packet = '300B', on = '50ms', off = '100ms' }",
    ];
    if tcp {
        sources.extend([
            "{ kind = 'bulk' }",
            "{ kind = 'bulk', total = '20kB' }",
            "{ kind = 'bulk', total = '1B' }",
        ]);
    }
    prop::sample::select(sources).prop_map(str::to_owned)
}

fn a_flow(index: usize) -> impl Strategy<Value = String> {
    let transport = prop::sample::select(vec![
        "udp",
        "{ kind = 'tcp', controller = 'newreno', min_rto = '200ms', msl = '100ms', send_buffer = '4kB' }",
        "{ kind = 'tcp', controller = 'newreno', delayed_ack = false, timestamps = false, max_retransmissions = 2 }",
        "{ kind = 'tcp', controller = 'newreno', nagle = true, receive_buffer = '5kB', window_scaling = false }",
    ]);
    let more = prop::sample::select(vec![
        "",
        "ip = 'v6'\n",
        "sizing = 'ns2'\n",
        "send_queue = { packets = 2, drop = 'oldest' }\nstop = '2s'\n",
        "send_queue = { packets = 1 }\nplayout = { buffer = '0s', anchor = 'capture' }\nstart = '1s'\n",
    ]);
    (transport, 0_usize..4, 1_usize..4, more).prop_flat_map(move |(transport, from, step, more)| {
        let tcp = transport != "udp";
        (a_source(tcp), prop::option::of(a_source(tcp))).prop_map(move |(source, reverse)| {
            let ends = format!("n{from}-n{}", (from + step) % 4);
            let reverse = reverse.map_or(String::new(), |source| format!("reverse = {source}\n"));
            flow(&format!("f{index}"), &ends, transport, &source, &format!("{more}{reverse}"))
        })
    })
}

fn clocks() -> impl Strategy<Value = String> {
    (0_u32..3, -300_i32..300).prop_map(|(offset, ppm)| {
        format!("[nodes.n0]\nclock_offset = '{offset}s'\nclock_drift_ppm = {ppm}\n")
    })
}

fn a_network() -> impl Strategy<Value = Point> {
    let links: Vec<_> = (0..4).map(a_link).collect();
    let flows = (1_usize..5).prop_flat_map(|n| (0..n).map(a_flow).collect::<Vec<_>>());
    let mtus = prop::collection::vec(prop::sample::select(vec![1500, 1500, 1280, 600, 120, 68]), 4);
    (links, flows, clocks(), mtus, 0_u64..1000).prop_map(|(links, flows, clocks, mtus, seed)| {
        let text =
            scenario("4s", &[vec![format!("seed = {seed}\n"), clocks], links, flows].concat());
        let mut point = support::point(&text);
        // Checks would refuse datagrams that cannot pass, and IPv6 where it may not be; the
        // network must bear it.
        let network = Arc::make_mut(&mut point.network);
        for (index, link) in network.links.iter_mut().enumerate() {
            link.mtu = Size::from_bytes(mtus[index / 2]);
        }
        point
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_packet_and_frame_is_accounted_for(point in a_network()) {
        let run = support::watch(&point, &Look { packets: true, ..Look::default() }, |_, _, _| {});
        // What the flows lost is what the links dropped, routers' own packets apart.
        let dropped: u64 = run.links.iter().filter_map(|link| link.drops).sum();
        let lost: u64 = run.flows.iter().map(|flow| flow.lost_packets).sum();
        prop_assert!(lost <= dropped);
        for flow in &run.flows {
            let layers = flow.network_header_bytes
                + flow.transport_header_bytes
                + flow.media_header_bytes
                + flow.payload_bytes;
            prop_assert!(flow.sent_bytes <= layers);
            if let Some(loss) = flow.loss_ratio {
                prop_assert!((0.0..=1.0).contains(&loss));
            }
        }
    }
}
