//! Speech with a codec ladder in whole runs: over TFRC-TB, over CCID 3 with a bucket and over
//! the delay-based controller, with intermittent TCP traffic.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use talkspurt_experiment::{Finished, Shared, run};
use talkspurt_flow::Disk;
use talkspurt_record::Tables;

const LADDER: &str = "codec = 'pcmu'\n\
    ladder = ['pcmu', 'g726-32', 'g728', 'g729', 'g723.1-6.3']\n";

/// A call of 60 s over 1.5 Mbit/s; 12 TCP flows from 20 to 40 s.
fn call(transport: &str, source: &str) -> Finished {
    let mut text = format!(
        "title = 'ladder'\nduration = '60s'\nrecord = {{ gauges = true, interval = '500ms' }}\n\
         [links.narrow]\nfrom = 'a'\nto = 'b'\nrate = '1500kbit/s'\ndelay = '20ms'\n\
         queue = {{ kind = 'droptail', packets = 25 }}\n\
         [flows.call]\nfrom = 'a'\nto = 'b'\n{transport}\nplayout = {{ buffer = '300ms' }}\n\
         [flows.call.source]\nkind = 'speech'\n\
         {source}\n"
    );
    for number in 0..12 {
        text += &format!(
            "[flows.web{number}]\nfrom = 'a'\nto = 'b'\nstart = '20s'\nstop = '40s'\n\
             transport = {{ kind = 'tcp', controller = 'newreno', send_buffer = '64kB' }}\nsource = {{ kind = 'bulk' }}\n"
        );
    }
    let study = talkspurt_scenario::load(&text, "test", Path::new("."), &[], None);
    let point = study.unwrap_or_else(|problems| panic!("{problems}\n{text}")).points.remove(0);
    run(&point, &Disk, None, Tables::memory(), true, &Shared::default()).expect("accounts balance")
}

fn floats(finished: &Finished, table: &str, column: &str) -> Vec<f64> {
    let table = finished.recording.table(table).expect("a table");
    let batch = &table.batches[0];
    batch[column].as_primitive::<Float64Type>().values().to_vec()
}

fn texts(finished: &Finished, table: &str, column: &str) -> Vec<String> {
    let table = finished.recording.table(table).expect("a table");
    table.batches[0][column].as_string::<i32>().iter().flatten().map(str::to_owned).collect()
}

/// The rung at the end of each half second of the call.
fn rungs(finished: &Finished) -> Vec<i64> {
    let table = finished.recording.table("series").expect("a table");
    let flows = texts(finished, "series", "flow");
    let rungs = table.batches[0]["encoding"].as_primitive::<Int64Type>();
    let call = flows.iter().zip(rungs).filter(|(flow, _)| *flow == "call");
    call.map(|(_, rung)| rung.expect("it has a ladder and uses it")).collect()
}

/// A gauge of the call's sender: instants in seconds, and values.
fn gauge(finished: &Finished, name: &str) -> Vec<(f64, f64)> {
    let (times, values) =
        (floats(finished, "gauges", "time_s"), floats(finished, "gauges", "value"));
    let keys = ["flow", "side", "gauge"].map(|column| texts(finished, "gauges", column));
    (0..times.len())
        .filter(|&row| keys[0][row] == "call" && keys[1][row] == "from" && keys[2][row] == name)
        .map(|row| (times[row], values[row]))
        .collect()
}

const TFRC_TB: &str =
    "transport = { kind = 'tfrc', rate = { oscillation_prevention = false, token_bucket = {} } }";

#[test]
fn the_codec_follows_the_network_and_comes_back() {
    let finished = call(TFRC_TB, LADDER);
    let rungs = rungs(&finished);
    // Alone on the link, G.711 soon; under twelve flows something less; G.711 again at the end.
    assert!(rungs[10..39].iter().all(|rung| *rung == 0), "{rungs:?}");
    assert!(rungs[44..80].iter().any(|rung| *rung >= 1), "{rungs:?}");
    assert_eq!(rungs.last(), Some(&0), "{rungs:?}");
    let call = &finished.recording.flows[0];
    // Every rung used was also played, and the counts of played frames match.
    let played: u64 = call.played_by_rung.iter().sum();
    let unheard = call.late_packets.expect("speech") + call.missing_packets.expect("speech");
    assert!(call.played_by_rung[0] > 1500, "{:?}", call.played_by_rung);
    let generated = call.generated_packets.expect("simulated");
    assert!(played + unheard <= generated && played + unheard + 5 > generated);
    // The events name each change: the controller's request, then the source's change.
    let events = texts(&finished, "events", "event");
    let times = floats(&finished, "events", "time_s");
    let changes: Vec<_> =
        events.iter().zip(times).filter(|(e, _)| e.starts_with("encoding_")).collect();
    let wishes = gauge(&finished, "encoding");
    assert!(changes.len() >= 3, "{changes:?}");
    for (event, at) in changes {
        let wish = wishes.iter().rfind(|(when, _)| *when <= at).expect("asked before");
        // The unit under way is finished first: up to 30 ms, look-ahead and noise.
        let asked = wishes.iter().filter(|(when, _)| *when <= at && *when > at - 0.06);
        let mut asked = asked.chain([wish]).map(|(_, rung)| format!("encoding_{rung}"));
        assert!(asked.any(|name| name == *event), "{event} at {at}: {wishes:?}");
    }
}

#[test]
fn the_call_takes_no_more_than_tfrc_would() {
    let finished = call(TFRC_TB, LADDER);
    let call = &finished.recording.flows[0];
    // ∫X from the record, in bytes with the 28 of headers that are counted; one packet a second
    // before the first report.
    let rates = gauge(&finished, "rate");
    let ends = rates.iter().skip(1).map(|(at, _)| *at).chain([60.0]);
    let fair: f64 = rates.iter().zip(ends).map(|((at, x), end)| x * (end - at) / 8.0).sum();
    let counted = call.payload_bytes + call.media_header_bytes + 28 * call.sent_packets;
    assert!((counted as f64) < fair + 2.0 * 200.0, "{counted} {fair}");
    // And through the contest, half a second at a time, with all that the bucket may hold.
    let tokens = gauge(&finished, "tokens");
    assert!(tokens.iter().all(|(_, bytes)| (0.0..=8000.0).contains(bytes)));
    assert!(tokens.iter().any(|(_, bytes)| *bytes > 7999.0));
    assert!(tokens.iter().any(|(_, bytes)| *bytes < 200.0));
}

#[test]
fn other_controllers_climb_the_ladder_too() {
    let others = [
        ("transport = { kind = 'beritelli' }", true),
        ("transport = { kind = 'dccp', ccid = 3, rate = { token_bucket = {} } }", true),
        // CCID 4 computes with 1460 bytes (RFC 5622 §3): its share is a TCP's in bytes, and a
        // thirteenth of 1.5 Mbit/s pays for G.711.
        ("transport = { kind = 'dccp', ccid = 4, rate = { token_bucket = {} } }", false),
    ];
    for (transport, falls) in others {
        let finished = call(transport, LADDER);
        let rungs = rungs(&finished);
        assert!(rungs[20..39].contains(&0), "{transport}: {rungs:?}");
        assert_eq!(rungs[44..80].iter().any(|rung| *rung > 0), falls, "{transport}: {rungs:?}");
        assert!(rungs[100..].contains(&0), "{transport}: {rungs:?}");
    }
}

#[test]
fn over_udp_nobody_asks_and_the_best_is_kept() {
    let finished = call("transport = { kind = 'udp' }", LADDER);
    assert!(finished.recording.flows[0].played_by_rung.is_empty());
    let fixed = call("transport = { kind = 'udp' }", "codec = 'pcmu'");
    assert_eq!(finished.recording.flows[0].sent_bytes, fixed.recording.flows[0].sent_bytes);
}

#[test]
fn keep_alive_packets_cross_in_silence() {
    let spurts = format!("{LADDER}talkspurts = {{ on = '1s', off = '2s' }}\n");
    // Over UDP, where both have the same codec all the time.
    let udp = "transport = { kind = 'udp' }";
    let plain = call(udp, &spurts);
    let kept = call(udp, &format!("{spurts}keep_alive = {{ every = '200ms' }}\n"));
    let packets =
        |finished: &Finished| finished.recording.flows[0].generated_packets.expect("simulated");
    let added = packets(&kept) - packets(&plain);
    // Two thirds of a minute in silence, five a second; a silence of exponential length spoils the
    // last of each.
    assert!((100..=220).contains(&added), "{added}");
}
