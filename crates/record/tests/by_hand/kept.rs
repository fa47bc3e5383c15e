//! Gauges, events and packets: rows kept as they happen, when asked for.

use crate::support::{Line, Told, columns, counts, data, floats, ms, packet, tell, texts};
use crate::{call_and_bulk, link, peer, record, sent};
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::probe::{DropReason, Garbage, Gauge, Note, Place, Probe, Topic, UNNUMBERED};
use talkspurt_record::{Options, Recorder};

#[test]
fn gauges_keep_their_steps_and_events_their_names() {
    let gauge = |value| Note::Gauge { gauge: Gauge::Cwnd, value };
    let script = [
        peer(ms(10), 2, gauge(1460.0)),
        peer(ms(20), 2, gauge(1460.0)),
        peer(ms(30), 3, gauge(1460.0)),
        peer(ms(40), 2, gauge(2920.0)),
        peer(ms(40), 1, Note::Gauge { gauge: Gauge::RtcpRtt, value: 0.5 }),
        peer(ms(50), 2, Note::Event(Event::Connected)),
        peer(ms(51), 2, Note::Event(Event::Writable)),
        peer(ms(52), 3, Note::Event(Event::TimedOut)),
        peer(ms(53), 1, Note::Garbage(Garbage::Checksum)),
    ];
    let recording = record(call_and_bulk(), &script);
    let gauges = recording.table("gauges").unwrap();
    assert_eq!(columns(&gauges), ["time_s", "flow", "side", "gauge", "value"]);
    assert_eq!(floats(&gauges, "time_s"), [0.01, 0.03, 0.04, 0.04].map(Some));
    assert_eq!(floats(&gauges, "value"), [1460.0, 1460.0, 2920.0, 0.5].map(Some));
    let words = |table, name| texts(table, name).into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(words(&gauges, "side"), ["from", "to", "from", "to"]);
    assert_eq!(words(&gauges, "flow"), ["web", "web", "web", "call"]);
    assert_eq!(words(&gauges, "gauge"), ["cwnd", "cwnd", "cwnd", "rtcp_rtt"]);
    let events = recording.table("events").unwrap();
    assert_eq!(columns(&events), ["time_s", "flow", "side", "event"]);
    assert_eq!(words(&events, "event"), ["connected", "timed_out", "garbage_checksum"]);
    assert_eq!(words(&events, "side"), ["from", "to", "to"]);
}

#[test]
fn every_hop_of_a_packet_is_a_row() {
    let label = |number| packet(0, number, 200, ms(1000));
    let script = [
        link(ms(1000), Line::Enqueued(label(0), 1, 200)),
        link(ms(1000), Line::Dequeued(label(0), 0, 0)),
        link(ms(1001), Line::Enqueued(label(1), 1, 200)),
        link(ms(1002), Line::Enqueued(label(2), 2, 400)),
        link(ms(1003), Line::Dropped(label(3), DropReason::Full)),
        link(ms(1004), Line::Dequeued(label(1), 1, 200)),
        link(ms(1010), Line::Arrived(label(0))),
        link(ms(1011), Line::Dropped(label(1), DropReason::Medium)),
        link(ms(1012), Line::Dequeued(label(2), 0, 0)),
        link(ms(1013), Line::Enqueued(label(4), 1, 200)),
        Told { at: ms(1010), place: Place::Link(1), line: Line::Enqueued(label(0), 1, 200) },
        link(ms(1014), Line::Dropped(packet(0, UNNUMBERED, 56, ms(0)), DropReason::Full)),
    ];
    let mut script = Vec::from(script);
    let sends = (0..5).map(|number| sent(0, number, 200, ms(1000), data(172)));
    script.splice(0..0, sends);
    let recording = record(call_and_bulk(), &script);
    let packets = recording.table("packets").unwrap();
    assert_eq!(
        columns(&packets).join(" "),
        "flow side number link ip_bytes enqueued_s dequeued_s received_s fate"
    );
    assert_eq!(counts(&packets, "number"), [0, 1, 2, 3, 4, 0].map(Some));
    let fates: Vec<String> = texts(&packets, "fate").into_iter().flatten().collect();
    assert_eq!(fates, ["received", "medium", "in_flight", "full", "queued", "queued"]);
    assert_eq!(floats(&packets, "enqueued_s"), [1.0, 1.001, 1.002, 1.003, 1.013, 1.01].map(Some));
    let dequeued = [Some(1.0), Some(1.004), Some(1.012), None, None, None];
    assert_eq!(floats(&packets, "dequeued_s"), dequeued);
    assert_eq!(floats(&packets, "received_s"), [Some(1.01), None, None, None, None, None]);
    assert_eq!(texts(&packets, "link")[5].as_deref(), Some("wire.back"));
    assert_eq!(texts(&packets, "side")[0].as_deref(), Some("from"));
    assert_eq!(counts(&packets, "ip_bytes"), [Some(200); 6]);
}

#[test]
fn packets_are_kept_only_when_asked_for() {
    let recorder = Recorder::new(call_and_bulk(), Options::default());
    assert!(!recorder.wants(Topic::Hop));
    assert!(recorder.finish().table("packets").is_none());
    let options = Options { packets: true, ..Options::default() };
    assert!(Recorder::new(call_and_bulk(), options).wants(Topic::Hop));
}

#[test]
fn gauges_are_kept_only_when_asked_for() {
    let told = [peer(ms(10), 2, Note::Gauge { gauge: Gauge::Cwnd, value: 1460.0 })];
    for gauges in [false, true] {
        let options = Options { gauges, ..Options::default() };
        let mut recorder = Recorder::new(call_and_bulk(), options);
        assert_eq!(recorder.wants(Topic::Gauge), gauges);
        // Told all the same, as beside a probe that wants them.
        tell(&told, &mut recorder);
        let table = recorder.finish().table("gauges").unwrap();
        assert_eq!(texts(&table, "gauge").len(), usize::from(gauges));
    }
}
