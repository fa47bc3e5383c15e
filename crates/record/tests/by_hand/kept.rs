//! Gauges and events: rows kept as they happen, when asked for.

use crate::support::{columns, counts, floats, ms, tell, texts};
use crate::{call_and_bulk, peer, record};
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::probe::{Gauge, Note, Probe, RxError, Topic};
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
        peer(ms(53), 1, Note::RxError(RxError::Checksum)),
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
    assert_eq!(words(&events, "event"), ["connected", "timed_out", "rejected_checksum"]);
    assert_eq!(words(&events, "side"), ["from", "to", "to"]);
}

/// Rejected packets count with the direction they came on, and with the other one where their own side
/// has no source; in the measure window by the time they came (here from 1 s to 3 s).
#[test]
fn rejected_packets_count_by_direction() {
    let refused = |at, who, why| peer(at, who, Note::RxError(why));
    let script = [
        // The call's packets are refused by its listener; what comes back, by the caller.
        refused(ms(1500), 1, RxError::OutOfWindow),
        refused(ms(1600), 1, RxError::Checksum),
        refused(ms(1700), 0, RxError::BadAck),
        refused(ms(999), 1, RxError::Unexpected),
        refused(ms(3000), 1, RxError::Unexpected),
        // Both sides of the web flow have a source.
        refused(ms(2000), 2, RxError::Malformed),
        refused(ms(2000), 3, RxError::Checksum),
        refused(ms(2100), 3, RxError::Checksum),
    ];
    let flows = record(call_and_bulk(), &script).table("flows").unwrap();
    assert_eq!(texts(&flows, "name"), ["call", "web", "web.reverse"].map(|it| Some(it.to_owned())));
    assert_eq!(counts(&flows, "rejected_packets"), [3, 2, 1].map(Some));
    assert_eq!(counts(&flows, "damaged_packets"), [1, 2, 0].map(Some));
}

/// From the first frame, ready 20 ms after its first sample, to the opening of the connection.
#[test]
fn a_handshake_that_a_frame_waits_for_shows() {
    let wait = |opens: &[u64]| {
        let frame = Note::Generated { index: 0, bytes: 160, captured: ms(1000) };
        let mut script = vec![peer(ms(1020), 0, frame)];
        script.extend(opens.iter().map(|at| peer(ms(*at), 0, Note::Event(Event::Connected))));
        script.sort_by_key(|told| told.at);
        floats(&record(call_and_bulk(), &script).table("flows").unwrap(), "handshake_wait_s")[0]
    };
    assert_eq!(wait(&[]), None);
    assert_eq!(wait(&[400]), Some(0.0));
    assert_eq!(wait(&[1520]), Some(0.5));
}

#[test]
fn gauges_are_kept_only_when_asked_for() {
    let told = [peer(ms(10), 2, Note::Gauge { gauge: Gauge::Cwnd, value: 1460.0 })];
    for gauges in [false, true] {
        let options = Options { gauges, ..Options::default() };
        let mut recorder = Recorder::new(call_and_bulk(), options);
        assert_eq!(recorder.wants(Topic::Gauge), gauges);
        // Reported anyway, as beside a probe that wants them.
        tell(&told, &mut recorder);
        let table = recorder.finish().unwrap().table("gauges").unwrap();
        assert_eq!(texts(&table, "gauge").len(), usize::from(gauges));
    }
}
