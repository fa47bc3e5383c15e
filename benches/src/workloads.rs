//! The workloads for comparisons with other simulators: N left hosts – L – R – N right hosts, flow i from
//! left i to right i, access links 100 Mbit/s, 1 ms, 1000 packets, core 20 ms.

use indexmap::IndexMap;
use serde_json::json;
use talkspurt_app::source::{self, BulkConfig, Speech, Talkspurts};
use talkspurt_app::{codec::Codec, playout, send_queue, transport};
use talkspurt_proto::dccp::{self, Ccid};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};
use talkspurt_proto::{tcp, tfrc};
use talkspurt_scenario::model::{
    Back, DropTail, Flow, Link, Measure, Queue, Record, Red, RedMode, Replications, Scenario,
    Sizing,
};

/// Workload names, for the usage message.
pub(crate) const NAMES: &str = "w1|w2|w2-N|w2a|w3|w3d|w4|w4-pcapng|w4-parquet|w5-N|w6-N|w7";

/// Bytes of an IP packet of bulk TCP data; its service time at the core is the hosts' noise.
const SEGMENT: u64 = 1040;

/// A workload by name, optionally with host noise: bulk data is delayed by a uniform draw of up to a
/// service time of the core, which breaks phase effects (speech has its own noise).
#[must_use]
pub(crate) fn by_name(name: &str, seconds: Option<u64>, noise: bool) -> Option<Scenario> {
    let mbps = |rate: u64| Rate::from_bps(1_000_000 * rate);
    let (stem, number) = name.split_once('-').unwrap_or((name, ""));
    let count = || number.parse::<u32>().ok().filter(|count| *count > 0);
    if noise && matches!(stem, "w2" | "w2a" | "w6" | "w7") {
        return None;
    }
    let core = |rate, queue| Core { rate, queue, noise };
    let scenario = match (stem, number) {
        ("w1", "") => bulk(50, &core(mbps(100), drop_tail(250)), seconds.unwrap_or(100)),
        ("w4", "" | "pcapng" | "parquet") => {
            bulk(50, &core(mbps(100), drop_tail(250)), seconds.unwrap_or(20))
        }
        ("w2", "") => voice(500, seconds.unwrap_or(100), playout()),
        ("w2", _) => voice(count()?, seconds.unwrap_or(100), playout()),
        ("w2a", "") => voice(500, seconds.unwrap_or(100), playout::Config::default()),
        ("w3", "") => {
            let kinds = [sack(), tfrc()];
            mixed(&kinds, 32, &core(mbps(15), red()), seconds.unwrap_or(200))
        }
        ("w3d", "") => {
            let kinds = [sack(), dccp(Ccid::Two), dccp(Ccid::Three), sctp()];
            mixed(&kinds, 16, &core(mbps(15), red()), seconds.unwrap_or(200))
        }
        ("w5", _) => {
            let flows = count()?;
            let core = core(mbps(2 * u64::from(flows)), drop_tail(5 * flows));
            bulk(flows, &core, seconds.unwrap_or(10))
        }
        ("w7", "") => controlled(500, seconds.unwrap_or(100)),
        ("w6", _) => saturated(count()?, seconds.unwrap_or(100)),
        _ => return None,
    };
    Some(scenario)
}

/// The link between the routers.
struct Core {
    rate: Rate,
    queue: Queue,
    noise: bool,
}

/// W1, W4 and W5: bulk TCP, start of flow i at i/N s.
fn bulk(flows: u32, core: &Core, seconds: u64) -> Scenario {
    mixed(&[sack()], flows, core, seconds)
}

/// `each` bulk flows of each kind over one core, those of a kind starting within a second.
fn mixed(kinds: &[transport::Config], each: u32, core: &Core, seconds: u64) -> Scenario {
    let flows = each * kinds.len() as u32;
    dumbbell(flows, core, seconds, |i| {
        let transport = kinds[(i / each) as usize].clone();
        let ns2 = transport.profile() == Profile::Ns2;
        let mut flow = flow(i, transport, source::Config::Bulk(BulkConfig::default()));
        flow.start = Duration::from_nanos(1_000_000_000 * u64::from(i % each) / u64::from(each));
        if ns2 {
            flow.sizing = Sizing::Ns2;
        }
        flow
    })
}

/// SACK, 1000 B in 1040 B packets, one ACK per segment, initial window 10, minimum RTO 200 ms, no
/// timestamps, window never binding.
fn sack() -> transport::Config {
    let mut config = tcp::Config::new(tcp::Controller::Sack);
    config.mss = Size::from_bytes(1000);
    config.delayed_ack = false;
    config.timestamps = false;
    config.min_rto = Duration::from_millis(200);
    config.receive_buffer = Size::from_bytes(64_000_000);
    config.send_buffer = Size::from_bytes(8_000_000);
    transport::Config::Tcp(config)
}

fn tfrc() -> transport::Config {
    transport::Config::Tfrc(tfrc::Config { profile: Profile::Ns2, ..tfrc::Config::default() })
}

fn dccp(ccid: Ccid) -> transport::Config {
    let config = dccp::Config { profile: Profile::Ns2, ..dccp::Config::new(ccid) };
    transport::Config::Dccp(Box::new(config))
}

fn sctp() -> transport::Config {
    transport::Config::Sctp(Box::default())
}

/// W2 and, with adaptive playout, W2a: calls with 200-byte IP packets, 50 per second; even ones talk all the
/// time, odd ones in exponential talkspurts of 1.004 s and silences of 1.587 s; random start within 20 ms.
fn voice(flows: u32, seconds: u64, playout: playout::Config) -> Scenario {
    let rate = Rate::from_bps(100_000 * u64::from(flows));
    let core = Core { rate, queue: drop_tail(250), noise: false };
    dumbbell(flows, &core, seconds, |i| {
        let talkspurts = (i % 2 == 1).then(Talkspurts::default);
        let speech = json!({ "codec": Codec::Pcmu, "talkspurts": talkspurts });
        let speech: Speech = serde_json::from_value(speech).expect("a codec suffices");
        let mut flow =
            flow(i, transport::Config::Udp(Default::default()), source::Config::Speech(speech));
        flow.start_spread = Some(Duration::from_millis(20));
        flow.rtcp.enabled = false;
        flow.playout = playout;
        flow
    })
}

/// W7: calls of speech and video in one session each under NADA, with adaptive playout, over a core that gives
/// a call three quarters of what it could send.
fn controlled(calls: u32, seconds: u64) -> Scenario {
    let rate = Rate::from_bps(1_200_000 * u64::from(calls));
    let core = Core { rate, queue: drop_tail(50 * calls), noise: false };
    let udp = || transport::Config::Udp(Default::default());
    let mut scenario = dumbbell(calls, &core, seconds, |i| {
        let video = serde_json::from_value(json!({ "encoder": {} })).expect("an encoder");
        let mut flow = flow(i, udp(), source::Config::Video(video));
        let nada = serde_json::from_value(json!({ "kind": "nada" })).expect("a controller");
        flow.controller = Some(nada);
        flow
    });
    for i in 0..calls {
        let speech = serde_json::from_value(json!({ "codec": Codec::Pcmu })).expect("a codec");
        let mut sound = flow(i, udp(), source::Config::Speech(speech));
        sound.session = Some(format!("f{i}"));
        sound.controller.clone_from(&scenario.flows[&format!("f{i}")].controller);
        scenario.flows.insert(format!("sound{i}"), sound);
    }
    scenario
}

/// The fixed playout buffer of W2.
fn playout() -> playout::Config {
    playout::Config::fixed(Duration::from_millis(60))
}

/// W6: stations that saturate an 802.11b access point, 1500 B at 11 Mbit/s, long preamble; collisions
/// as in ns-3.
fn saturated(count: u32, seconds: u64) -> Scenario {
    let cell = json!({
        "access_point": "ap", "stations": { "idle": {} }, "standard": "802.11b", "queue": drop_tail(10),
        "eifs_after_collision": false, "contenders": { "count": count, "packet": "1500B" },
    });
    let cell = serde_json::from_value(cell).expect("a cell");
    Scenario { cells: IndexMap::from([("cell".to_owned(), cell)]), ..bare(seconds) }
}

fn dumbbell(flows: u32, core: &Core, seconds: u64, flow: impl Fn(u32) -> Flow) -> Scenario {
    let mut links = IndexMap::new();
    links.insert("core".to_owned(), link("L", "R", core.rate, 20, core.queue.clone()));
    let access = Rate::from_bps(100_000_000);
    for i in 0..flows {
        let mut left = link(&format!("s{i}"), "L", access, 1, drop_tail(1000));
        if core.noise {
            left.jitter = core.rate.time_for(SEGMENT).unwrap_or_default();
            left.back = Some(Back { jitter: Some(Duration::ZERO), ..Back::default() });
        }
        links.insert(format!("left{i}"), left);
        links.insert(format!("right{i}"), link("R", &format!("d{i}"), access, 1, drop_tail(1000)));
    }
    let flows = (0..flows).map(|i| (format!("f{i}"), flow(i))).collect();
    Scenario { links, flows, ..bare(seconds) }
}

fn bare(seconds: u64) -> Scenario {
    Scenario {
        title: "peer workload".to_owned(),
        description: String::new(),
        duration: Duration::from_secs(seconds),
        seed: 1,
        measure: Measure::default(),
        record: Record::default(),
        nodes: IndexMap::new(),
        topology: None,
        links: IndexMap::new(),
        cells: IndexMap::new(),
        flows: IndexMap::new(),
        axes: Vec::new(),
        design: None,
        replications: Replications::default(),
    }
}

fn drop_tail(packets: u32) -> Queue {
    Queue::Droptail(DropTail { packets: Some(packets), ..DropTail::default() })
}

/// W3's queue, counted like ns-2.
fn red() -> Queue {
    Queue::Red(Red {
        packets: 200,
        follow_rate: false,
        min_threshold: Some(20.0),
        max_threshold: Some(80.0),
        max_p: 0.1,
        weight: Some(0.002),
        gentle: true,
        mode: RedMode::Packets,
        mean_packet: Size::from_bytes(1000),
        adaptive: false,
        target_delay: Duration::from_millis(5),
        ecn: false,
        ns2: true,
    })
}

fn link(from: &str, to: &str, rate: Rate, delay_ms: u64, queue: Queue) -> Link {
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
        controller: None,
        session: None,
        coupled: None,
        priority: 1.0,
        ip: Default::default(),
        dscp: 0,
        sizing: Default::default(),
        via: None,
        paths: Vec::new(),
    }
}
