//! The workloads other simulators are measured on: N left hosts – L – R – N right hosts, flow i
//! from left i to right i, access links 100 Mbit/s, 1 ms, 1000 packets, core 20 ms.

use indexmap::IndexMap;
use talkspurt_app::source::{self, BulkConfig, Speech, Talkspurts};
use talkspurt_app::{codec::Codec, send_queue, transport};
use talkspurt_proto::tcp;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};
use talkspurt_scenario::model::{
    DropTail, Flow, Link, Measure, Queue, Record, Replications, Scenario,
};

/// A workload by name: `w1`, `w2`, `w2-N`, `w4` (W1 for 20 s), `w5-N`.
#[must_use]
pub(crate) fn by_name(name: &str, seconds: Option<u64>) -> Option<Scenario> {
    let scenario = match name {
        "w1" => bulk_tcp(50, Rate::from_bps(100_000_000), 250, seconds.unwrap_or(100)),
        "w4" => bulk_tcp(50, Rate::from_bps(100_000_000), 250, seconds.unwrap_or(20)),
        "w2" => voice(500, Rate::from_bps(50_000_000), 250, seconds.unwrap_or(100)),
        _ if name.starts_with("w2-") => {
            let flows: u32 = name.strip_prefix("w2-")?.parse().ok()?;
            let core = Rate::from_bps(100_000 * u64::from(flows));
            voice(flows, core, 250, seconds.unwrap_or(100))
        }
        _ => {
            let flows: u32 = name.strip_prefix("w5-")?.parse().ok()?;
            let core = Rate::from_bps(2_000_000 * u64::from(flows));
            bulk_tcp(flows, core, 5 * flows, seconds.unwrap_or(10))
        }
    };
    Some(scenario)
}

/// W1 and W5: SACK, 1000 B in 1040 B packets, one ACK per segment, initial window 10,
/// minimum RTO 200 ms, no timestamps, window never binding, start of flow i at i/N s.
fn bulk_tcp(flows: u32, core: Rate, buffer: u32, seconds: u64) -> Scenario {
    let mut config = tcp::Config::new(tcp::Controller::Sack);
    config.mss = Size::from_bytes(1000);
    config.delayed_ack = false;
    config.timestamps = false;
    config.min_rto = Duration::from_millis(200);
    config.receive_buffer = Size::from_bytes(64_000_000);
    config.send_buffer = Size::from_bytes(8_000_000);
    dumbbell(flows, core, buffer, seconds, |i| {
        let mut flow = flow(
            i,
            transport::Config::Tcp(config.clone()),
            source::Config::Bulk(BulkConfig::endless()),
        );
        flow.start = Duration::from_nanos(1_000_000_000 * u64::from(i) / u64::from(flows));
        flow
    })
}

/// W2: calls of 200 B IP packets, 50 a second; even ones talk all the time, odd ones in
/// exponential talkspurts of 1.004 s and silences of 1.587 s; random start within 20 ms.
fn voice(flows: u32, core: Rate, buffer: u32, seconds: u64) -> Scenario {
    dumbbell(flows, core, buffer, seconds, |i| {
        let speech = Speech {
            talkspurts: (i % 2 == 1).then(Talkspurts::p59),
            ..Speech::unheard(Codec::Pcmu)
        };
        let mut flow =
            flow(i, transport::Config::Udp(Default::default()), source::Config::Speech(speech));
        flow.start_spread = Some(Duration::from_millis(20));
        flow.rtcp.enabled = false;
        flow
    })
}

fn dumbbell(
    flows: u32,
    core: Rate,
    buffer: u32,
    seconds: u64,
    flow: impl Fn(u32) -> Flow,
) -> Scenario {
    let mut links = IndexMap::new();
    links.insert("core".to_owned(), link("L", "R", core, 20, buffer));
    let access = Rate::from_bps(100_000_000);
    for i in 0..flows {
        links.insert(format!("left{i}"), link(&format!("s{i}"), "L", access, 1, 1000));
        links.insert(format!("right{i}"), link("R", &format!("d{i}"), access, 1, 1000));
    }
    Scenario {
        title: "peer workload".to_owned(),
        description: String::new(),
        duration: Duration::from_secs(seconds),
        seed: 1,
        measure: Measure::default(),
        record: Record::default(),
        nodes: IndexMap::new(),
        topology: None,
        links,
        flows: (0..flows).map(|i| (format!("f{i}"), flow(i))).collect(),
        axes: Vec::new(),
        replications: Replications::default(),
    }
}

fn link(from: &str, to: &str, rate: Rate, delay_ms: u64, packets: u32) -> Link {
    let queue = Queue::Droptail(DropTail { packets: Some(packets), ..DropTail::default() });
    Link::plain(from, to, rate, Duration::from_millis(delay_ms), queue)
}

fn flow(i: u32, transport: transport::Config, source: source::Config) -> Flow {
    Flow {
        count: None,
        group: None,
        from: format!("s{i}"),
        to: format!("d{i}"),
        transport,
        source,
        reverse: None,
        start: Duration::ZERO,
        start_spread: None,
        stop: None,
        send_queue: send_queue::Config::default(),
        playout: Default::default(),
        quality: Default::default(),
        rtcp: Default::default(),
        ip: Default::default(),
        dscp: 0,
        sizing: Default::default(),
        via: None,
        paths: Vec::new(),
    }
}
