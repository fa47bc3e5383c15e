//! Links: what is between two samples of their counters, and how long packets stood.

use crate::call_and_bulk;
use crate::support::{columns, counts, floats, ms, packet, texts};
use talkspurt_proto::packet::{BodyId, Packet};
use talkspurt_proto::probe::{Control, LinkCounters, Note, Place, Probe, Topic};
use talkspurt_proto::time::Duration;
use talkspurt_record::{Layout, Options, Recorder};

fn counters(sent: u64, busy_ms: u64, area: u64, peak: u32, full: u64) -> LinkCounters {
    LinkCounters {
        sent_packets: sent,
        sent_bytes: 200 * sent,
        drops: [full, 1, 2, 3, 4, 5],
        marks: 10 * full,
        retries: 7 * full,
        collisions: 3 * full,
        busy: Duration::from_millis(busy_ms),
        // As if it could send 2 Mbit/s while it was busy, and nothing else.
        capacity: Some(u128::from(busy_ms) * 2_000_000_000_000),
        queue_area_packets: u128::from(area) * 1_000_000_000,
        queue_area_bytes: u128::from(area) * 200_000_000_000,
        queue_packets: 0,
        queue_bytes: 0,
        queue_max_packets: peak,
        control: Control {
            average_packets: Some(busy_ms as f64),
            drop_probability: Some(0.5),
            ..Control::default()
        },
    }
}

#[test]
fn links_are_differences_between_samples() {
    let layout = Layout { from: ms(1500), ..call_and_bulk() };
    let mut recorder = Recorder::new(layout, Options::default());
    let still = LinkCounters::default();
    // (ms, sent, busy ms, packet-seconds of queue, peak since the last sample, drops of `full`)
    for (at, sent, busy, area, peak, full) in [
        (1000, 10, 500, 1, 9, 0),
        (1500, 15, 600, 2, 8, 1),
        (2000, 20, 1000, 4, 5, 1),
        (3000, 40, 1800, 8, 6, 3),
        (3000, 40, 1800, 8, 0, 3),
        (4000, 50, 2000, 9, 7, 3),
    ] {
        recorder.sample(ms(at), &[counters(sent, busy, area, peak, full), still]);
    }
    let recording = recorder.finish().unwrap();
    let links = recording.table("links").unwrap();
    assert_eq!(
        columns(&links).join(" "),
        "name from to rate_bps utilisation sent_packets sent_bytes drops drops_full drops_early \
         drops_medium drops_down drops_too_big drops_retries marks retries collisions queue_mean_packets queue_max_packets queue_mean_bytes \
         sojourn_mean_s sojourn_p50_s sojourn_p95_s sojourn_p99_s sojourn_max_s"
    );
    assert_eq!(texts(&links, "name"), ["wire", "wire.back"].map(|name| Some(name.to_owned())));
    assert_eq!(texts(&links, "from")[1].as_deref(), Some("bob"));
    assert_eq!(counts(&links, "rate_bps"), [Some(1_000_000); 2]);
    // The window is 1.5 s long.
    assert_eq!(floats(&links, "utilisation"), [Some(0.8), Some(0.0)]);
    assert_eq!(counts(&links, "sent_packets"), [Some(25), Some(0)]);
    assert_eq!(counts(&links, "sent_bytes"), [Some(5000), Some(0)]);
    assert_eq!(counts(&links, "drops"), [Some(2), Some(0)]);
    assert_eq!(counts(&links, "drops_full"), [Some(2), Some(0)]);
    assert_eq!(counts(&links, "marks"), [Some(20), Some(0)]);
    assert_eq!(counts(&links, "retries"), [Some(14), Some(0)]);
    assert_eq!(counts(&links, "collisions"), [Some(6), Some(0)]);
    assert_eq!(counts(&links, "drops_medium"), [Some(0), Some(0)]);
    assert_eq!(counts(&links, "drops_retries"), [Some(0), Some(0)]);
    assert_eq!(floats(&links, "queue_mean_packets"), [Some(4.0), Some(0.0)]);
    assert_eq!(floats(&links, "queue_mean_bytes"), [Some(800.0), Some(0.0)]);
    assert_eq!(counts(&links, "queue_max_packets"), [Some(6), Some(0)]);

    let series = recording.table("link_series").unwrap();
    assert_eq!(
        columns(&series).join(" "),
        "link time_s queue_packets queue_bytes utilisation capacity_bps drops marks sojourn_mean_s sojourn_max_s \
         average_packets drop_probability drops_per_second tokens_bytes"
    );
    assert_eq!(floats(&series, "time_s")[..4], [1.0, 2.0, 3.0, 4.0].map(Some));
    assert_eq!(floats(&series, "utilisation")[..4], [0.5, 0.5, 0.8, 0.2].map(Some));
    let capacity = [1e6, 1e6, 1.6e6, 0.4e6].map(Some);
    assert_eq!(floats(&series, "capacity_bps"), [&capacity[..], &[None; 4]].concat());
    assert_eq!(floats(&series, "queue_packets")[..4], [1.0, 3.0, 4.0, 1.0].map(Some));
    assert_eq!(floats(&series, "queue_bytes")[..4], [200.0, 600.0, 800.0, 200.0].map(Some));
    // The first bin holds what the counters began with: 1 + 2 + 3 + 4 + 5.
    assert_eq!(counts(&series, "drops")[..4], [15, 1, 2, 0].map(Some));
    assert_eq!(counts(&series, "marks")[..4], [0, 10, 20, 0].map(Some));
    // As they are at the end of the bin.
    assert_eq!(floats(&series, "average_packets")[..4], [500.0, 1000.0, 1800.0, 2000.0].map(Some));
    assert_eq!(floats(&series, "drop_probability")[..4], [Some(0.5); 4]);
    assert_eq!(floats(&series, "tokens_bytes")[..4], [None; 4]);
    assert_eq!(floats(&series, "sojourn_mean_s")[..4], [None; 4]);
}

#[test]
fn how_long_packets_stood_in_queues() {
    let layout = Layout { from: ms(1500), ..call_and_bulk() };
    let recorder =
        |sojourn| Recorder::new(layout.clone(), Options { sojourn, ..Options::default() });
    assert!(!recorder(false).wants(Topic::Hop));
    let mut recorder = recorder(true);
    assert!(recorder.wants(Topic::Hop));
    // (slot of the body, came, went on, in ms): a slot is used again, one is dropped in between,
    // and they leave out of turn. The window begins at 1500 ms, and bins are a second long.
    let stays =
        [(7, 900, 1000), (3, 1400, 1500), (7, 1450, 1501), (3, 1900, 2000), (4, 1910, 1930)];
    let mut told = Vec::new();
    for (slot, came, went) in stays {
        let label = Packet { body: BodyId(slot), ..packet(0, 0, 200, ms(came)) };
        told.push((ms(came), label, false));
        told.push((ms(went), label, true));
    }
    told.sort_by_key(|(at, ..)| *at);
    for (at, packet, leaves) in told {
        let (packet, packets, bytes) = (&packet, 1, 200);
        let note = match leaves {
            true => Note::Dequeued { packet, packets, bytes },
            false => Note::Enqueued { packet, packets, bytes },
        };
        recorder.record(at, Place::Link(0), &note);
    }
    let lost = Packet { body: BodyId(3), ..packet(0, 0, 200, ms(2100)) };
    let note = Note::Enqueued { packet: &lost, packets: 1, bytes: 200 };
    recorder.record(ms(2100), Place::Link(0), &note);
    for at in [1000, 1500, 2000, 3000, 4000] {
        let counters = counters(0, 0, 0, 0, 0);
        recorder.sample(ms(at), &[counters, counters]);
    }
    let recording = recorder.finish().unwrap();
    let links = recording.table("links").unwrap();
    // 51, 100 and 20 ms.
    let mean = floats(&links, "sojourn_mean_s");
    assert!((mean[0].unwrap() - 0.057).abs() < 1e-12 && mean[1].is_none(), "{mean:?}");
    assert_eq!(floats(&links, "sojourn_p50_s"), [Some(0.051), None]);
    for column in ["sojourn_p95_s", "sojourn_p99_s", "sojourn_max_s"] {
        assert_eq!(floats(&links, column), [Some(0.1), None]);
    }
    let series = recording.table("link_series").unwrap();
    let means = floats(&series, "sojourn_mean_s");
    assert_eq!((means[0], means[2], means[4]), (Some(0.1), None, None));
    // 100, 51, 100 and 20 ms.
    assert!((means[1].unwrap() - 0.067_75).abs() < 1e-12);
    assert_eq!(floats(&series, "sojourn_max_s")[..3], [Some(0.1), Some(0.1), None]);
}

#[test]
fn a_window_that_was_not_sampled_has_no_values() {
    let mut recorder = Recorder::new(call_and_bulk(), Options::default());
    recorder.sample(ms(4000), &[counters(1, 1, 1, 1, 1), LinkCounters::default()]);
    let links = recorder.finish().unwrap().table("links").unwrap();
    assert_eq!(floats(&links, "utilisation"), [None, None]);
    assert_eq!(counts(&links, "drops"), [None, None]);
}
