//! Server and client on the loopback interface: every transport, the accounts of the run that comes out, and
//! the limits of the server. Attacks are in `tests/test_measure.py`.
#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::sync::Mutex;

use talkspurt_measure::{
    Config, FlowPlan, Measured, Measurement, Plan, Secret, Server, Target, Traffic, Transport,
    Watch,
};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

const SECRET: &[u8] = b"a secret of tests";

fn server(change: impl Fn(&mut Config)) -> Server {
    let mut config = Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        max_rate: Rate::from_bps(50_000_000),
        max_duration: Duration::from_secs(60),
        max_sessions: 4,
        ports: None,
        user: "nobody".to_owned(),
        stamp: None,
    };
    change(&mut config);
    // Started as root, the first server gives up the privileges of all tests: not while another starts.
    static STARTS: Mutex<()> = Mutex::new(());
    let _one_by_one = STARTS.lock();
    Server::start(config, Secret::new(SECRET).expect("it is long")).expect("loopback has ports")
}

fn connect(server: &Server) -> Measurement {
    let local = server.local();
    let target = Target { host: local.ip().to_string(), port: local.port() };
    Measurement::connect(&target, &Secret::new(SECRET).expect("it is long")).expect("it is there")
}

fn flow(name: &str, transport: Transport, up: Option<Traffic>, down: Option<Traffic>) -> FlowPlan {
    FlowPlan { name: name.to_owned(), transport, up, down }
}

fn plan(flows: Vec<FlowPlan>) -> Plan {
    Plan { seed: 5, duration: Duration::from_secs(2).as_nanos(), mtu: 1500, ipv6: false, flows }
}

fn cbr(rate: u64, packet: u32) -> Option<Traffic> {
    Some(Traffic::Cbr { rate, packet })
}

/// A packet every 20 ms for two seconds each way: all arrive, and every account balances.
#[test]
fn constant_bit_rate_arrives_over_every_transport() {
    let server = server(|_| {});
    let flows = Transport::NAMES
        .map(|(transport, name)| flow(name, transport, cbr(64_000, 160), cbr(64_000, 160)));
    let mut plan = plan(flows.to_vec());
    plan.flows.retain(|flow| flow.transport != Transport::TfrcTb);
    let Measured { finished, facts, broken, .. } =
        connect(&server).run(&plan, &Watch::default()).expect("it runs");
    assert_eq!(broken, None);
    finished.recording.conservation().expect("every account balances");
    assert_eq!(finished.recording.flows.len(), 12);
    for flow in &finished.recording.flows {
        assert_eq!(flow.lost_packets, 0, "{}: {facts}", flow.name);
        // The server's sources start a little later than the window, which is by the client's clock.
        assert!((97..=102).contains(&flow.generated_packets), "{}", flow.name);
        // Rate-controlled senders begin slowly, but nothing may be lost on loopback.
        assert!(flow.received_packets >= 60, "{}: {}", flow.name, flow.received_packets);
        let delay = flow.delay_p50_s.expect("the clocks are related");
        assert!((0.0..0.2).contains(&delay), "{}: {delay}", flow.name);
    }
    let bound = facts["clock_offset_bound_s"].as_f64().expect("the clocks are related");
    assert!(bound < 0.01, "{facts}");
}

/// A session beyond the permitted number is refused in words, and does not disturb the first.
#[test]
fn sessions_are_limited() {
    let server = server(|config| config.max_sessions = 1);
    let plan = plan(vec![flow("udp", Transport::Udp, None, cbr(64_000, 160))]);
    std::thread::scope(|scope| {
        let mut session = connect(&server);
        let watch = Watch::default();
        let (first, watched) = (&plan, watch.clone());
        let first = scope.spawn(move || session.run(first, &watched).expect("it is the first"));
        while watch.passed().as_nanos() == 0 {
            std::thread::yield_now();
        }
        let refused = connect(&server).run(&plan, &Watch::default()).err();
        assert!(refused.is_some_and(|why| why.0.contains("as many as it permits")));
        assert_eq!(first.join().expect("no panic").broken, None);
    });
}
