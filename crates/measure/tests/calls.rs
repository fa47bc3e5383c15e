//! Calls on the loopback interface, with real voices in both directions.
#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::path::Path;

use talkspurt_app::codec::{Codec, Encoding};
use talkspurt_measure::{
    Called, Config, Failure, Invitation, Privileges, Secret, Server, Session, Target, Transport,
    Voice, Watch,
};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

const SECRET: &[u8] = b"a secret of tests";

fn secret() -> Secret {
    Secret::new(SECRET).expect("it is long")
}

fn voice(name: &str, codecs: &[&str]) -> Voice {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../speech").join(name);
    let codecs: Vec<_> = codecs.iter().map(|it| (*it).to_owned()).collect();
    Voice::open(&file, &codecs).expect("it is a recording")
}

fn server(codecs: &[&str]) -> Server {
    let config = Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        max_rate: Rate::from_bps(4_000_000),
        max_duration: Duration::from_secs(60),
        max_sessions: 1,
        ports: None,
        privileges: Privileges::Kept,
        direct: false,
        voice: Some(voice("french-woman.wav", codecs)),
    };
    Server::start(config, secret()).expect("loopback has ports")
}

fn invitation(transport: &str, seconds: u64) -> Invitation {
    let transport = Transport::named(transport).expect("it is known");
    let duration = Duration::from_secs(seconds).as_nanos();
    let (controller, codecs) = (None, Vec::new());
    Invitation { seed: 4, duration, mtu: 1500, ipv6: false, transport, controller, codecs }
}

fn connect(server: &Server) -> Result<Session, Failure> {
    let local = server.local();
    Session::connect(&Target { host: local.ip().to_string(), port: local.port() }, &secret())
}

/// The caller's results, and the answerer's.
fn call(server: &Server, transport: &str, offer: &[&str]) -> [Called; 2] {
    let mut caller = connect(server).expect("it is there");
    let voice = voice("english-man.wav", offer);
    let called = caller.call(invitation(transport, 3), &voice, &Watch::default(), drop);
    let called = called.unwrap_or_else(|why| panic!("{transport:?}: {why}"));
    [called, answered(server)]
}

fn answered(server: &Server) -> Called {
    for _ in 0..1000 {
        if let Some(called) = server.called() {
            return called;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the answerer has no results");
}

/// Share of the frames of 20 ms that are found in a sound, bit by bit.
fn share(frames: &[i16], length: usize, sound: &[i16]) -> f64 {
    // Silence is everywhere.
    let frames: Vec<_> =
        frames.chunks_exact(length).filter(|it| it.iter().any(|it| it.abs() > 500)).collect();
    let found = frames.iter().filter(|frame| sound.windows(length).any(|it| it == **frame));
    found.count() as f64 / frames.len() as f64
}

#[test]
fn both_ends_hear_what_the_other_says() {
    let server = server(&["g722", "g726-32", "pcmu", "g726-16"]);
    let ladder = ["pcmu", "g726-32", "g726-16"];
    // A busy machine delays packets, whereupon the buffer stretches some frames. TFRC-TB needs two seconds to
    // reach G.711.
    for (transport, offer, agreed, least) in [
        ("udp", &["opus", "pcmu", "g722"][..], &["pcmu", "g722"][..], 0.5),
        ("dccp-ccid3", &["opus", "pcmu", "g726-32"], &["pcmu", "g726-32"], 0.5),
        ("tfrc-tb", &ladder, &ladder, 0.1),
    ] {
        let results = call(&server, transport, offer);
        for (end, role) in results.iter().zip(["caller", "answerer"]) {
            assert_eq!(end.broken, None, "{transport:?} {role}");
            assert_eq!(end.facts["call"]["codecs"], serde_json::json!(agreed), "{transport:?}");
            assert_eq!(end.facts["call"]["role"], role);
            let finished = end.finished.as_ref().expect("notes were exchanged");
            finished.recording.conservation().expect("every account balances");
            assert_eq!(finished.audio.len(), 2);
            for (flow, audio) in finished.recording.flows.iter().zip(&finished.audio) {
                assert!(flow.received_packets > 100, "{transport:?}: {}", flow.received_packets);
                assert!(flow.quality.mos.is_some());
                if transport == "tfrc-tb" {
                    let rungs = flow.played_by_rung.iter().filter(|played| **played > 0).count();
                    assert!(rungs > 1, "{:?}", flow.played_by_rung);
                }
                // The first codec is G.711, whose output is its input rounded to the steps of the µ-law.
                let encoding = Encoding::new(Codec::Pcmu, Duration::from_millis(20));
                let mut encoder = encoding.encoder().expect("it has sound");
                let mut decoder = encoding.decoder().expect("it has sound");
                let coded = decoder.decode(&encoder.encode(&audio.sent, None));
                let found = share(&coded, 160, &audio.received);
                assert!(found > least, "{transport:?} {role} {}: {found}", audio.flow);
            }
        }
        let [ours, theirs] = results;
        let [ours, theirs] = [ours, theirs].map(|it| (it.finished.expect("checked"), it.heard.pcm));
        for (a, b) in ours.0.audio.iter().zip(&theirs.0.audio) {
            assert!(a.sent == b.sent && a.received == b.received, "both have both sounds");
        }
        assert_eq!((&ours.0.audio[1].received, &ours.0.audio[0].received), (&ours.1, &theirs.1));
        assert_ne!(ours.1, theirs.1);
    }
}

#[test]
fn a_session_with_a_controller_has_feedback_in_both_directions() {
    let server = server(&["opus"]);
    for (transport, controller) in [("udp", "gcc"), ("udp", "nada"), ("sctp", "fixed")] {
        let mut caller = connect(&server).expect("it is there");
        let controller = Some(controller.to_owned());
        let asked = Invitation { controller: controller.clone(), ..invitation(transport, 3) };
        let voice = voice("english-man.wav", &["opus"]);
        let called = caller.call(asked, &voice, &Watch::default(), drop).expect("there is a call");
        for end in [called, answered(&server)] {
            assert_eq!(end.broken, None, "{transport} {controller:?}");
            assert_eq!(end.facts["call"]["controller"].as_str(), controller.as_deref());
            let finished = end.finished.expect("notes were exchanged");
            for flow in &finished.recording.flows {
                assert!(flow.received_packets > 100, "{}: {}", flow.name, flow.received_packets);
                // Reports of RTCP come every few seconds.
                assert!(transport != "udp" || flow.control_packets > 10, "{}", flow.name);
                assert!(flow.quality.estimated_mos.is_some_and(|it| it > 3.0), "{}", flow.name);
            }
        }
    }
}

/// An end waits five seconds for notes, and a busy one may need longer to keep what it knows before it gives them.
#[test]
fn an_end_at_work_is_not_given_up() {
    let server = server(&["pcmu"]);
    let mut caller = connect(&server).expect("it is there");
    let voice = voice("english-man.wav", &["pcmu"]);
    let keep = |_| std::thread::sleep(std::time::Duration::from_secs(6));
    let called = caller.call(invitation("udp", 1), &voice, &Watch::default(), keep);
    let called = called.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!([called.broken, answered(&server).broken], [None, None]);
}

/// On the control connection as in DCCP's handshake, with words for the caller; the answerer waits on.
#[test]
fn without_a_common_codec_there_is_no_call() {
    let server = server(&["g722"]);
    for transport in ["tfrc", "dccp-ccid2"] {
        let mut caller = connect(&server).expect("it is there");
        let voice = voice("english-man.wav", &["pcmu", "opus"]);
        let called = caller.call(invitation(transport, 3), &voice, &Watch::default(), drop);
        let Some(Failure::Refused(why)) = called.err() else { panic!("nothing in common") };
        let words = "no common codec: the caller offers pcmu, opus; the answerer has g722";
        assert!(why.contains(words), "{transport:?}: {why}");
    }
    assert!(server.called().is_none());
}

/// Either end can hang up; both keep what was heard. A second call is busy meanwhile.
#[test]
fn either_end_hangs_up() {
    let server = server(&["pcmu"]);
    for by_caller in [true, false] {
        let watch = Watch::default();
        let watched = watch.clone();
        let voice = voice("english-man.wav", &["pcmu"]);
        let mut caller = connect(&server).expect("it is there");
        let call = {
            let voice = voice.clone();
            std::thread::spawn(move || caller.call(invitation("udp", 50), &voice, &watched, drop))
        };
        while watch.passed() < Duration::from_secs(3) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let view = watch.view().expect("a call has a view");
        let view: serde_json::Value = serde_json::from_str(&view).expect("it is JSON");
        assert_eq!(view["sent"]["codec"], "G.711 µ-law", "{view}");
        assert!(view["heard"]["rate_bps"].as_f64() > Some(40_000.0), "{view}");
        assert!(view["heard"]["mos"].as_f64() >= Some(1.0), "{view}");
        let second = connect(&server).and_then(|mut caller| {
            caller.call(invitation("udp", 3), &voice, &Watch::default(), drop)
        });
        assert!(matches!(second, Err(Failure::Refused(why)) if why.contains("busy")));
        match by_caller {
            true => watch.stop(),
            false => server.call().expect("there is a call").stop(),
        }
        let ours = call.join().expect("no panic").expect("there was a call");
        let theirs = answered(&server);
        for end in [&ours, &theirs] {
            assert_eq!(end.broken, None);
            let by = if by_caller { "caller" } else { "answerer" };
            assert_eq!(end.facts["call"]["hung_up"], by);
            let seconds = end.heard.pcm.len() as f64 / f64::from(end.heard.sample_rate);
            assert!((1.5..20.0).contains(&seconds), "{seconds} s");
            assert!(end.heard.pcm.iter().any(|sample| sample.abs() > 500));
        }
    }
}
