//! Flows and frames: the account of each, its series, and violations.

use crate::support::{
    Line, Told, columns, counts, data, dccp_ack, dccp_rtp, floats, flow, layout, ms, near, packet,
    refusal, segment, side, tell, texts, tfrc_feedback, tfrc_rtp,
};
use crate::{call_and_bulk, call_script, link, peer, received, record, sent};
use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::probe::{DropReason, Note, Playout, UNNUMBERED};
use talkspurt_proto::time::Duration;
use talkspurt_record::{Layout, Recording, Stats};

/// Two frames of speech, the second on its way at the end, each in a packet of `ip_bytes` whose
/// transport header is `header` bytes long; and a packet without any between them.
fn framed(transport: &str, packets: [Body; 2], control: Body, header: u64, ip_bytes: u32) {
    let flows = vec![flow("call", transport, [side("speech", Some(20)), None])];
    let mut script = Vec::new();
    for (index, body) in (0_u32..).zip(packets) {
        let (at, number) = (ms(1020 + 20 * u64::from(index)), 2 * index);
        let captured = ms(1000 + 20 * u64::from(index));
        script.push(peer(at, 0, Note::Generated { index, bytes: 160, captured }));
        script.push(peer(at, 0, Note::HandedOver { index }));
        script.push(sent(0, number, ip_bytes, at, body.clone()));
        if index == 0 {
            let label = packet(0, number, ip_bytes, at);
            script.push(received(ms(1030), label, body));
            script.push(peer(ms(1030), 1, Note::Delivered { index, bytes: 160 }));
            let playout = Playout::Played(ms(1080));
            script.push(peer(ms(1030), 1, Note::Decided { index, playout }));
            script.push(sent(0, 1, 48, ms(1030), control.clone()));
        }
    }
    let recording = record(layout(flows, ms(1000), ms(3000), ms(1050)), &script);
    recording.conservation().unwrap();
    let call = &recording.flows[0];
    assert_eq!((call.sent_packets, call.control_packets, call.in_flight_packets), (2, 1, 1));
    assert_eq!(call.network_header_bytes, 2 * 20);
    assert_eq!(call.transport_header_bytes, 2 * header);
    assert_eq!(call.media_header_bytes, 2 * 12);
    assert_eq!(call.payload_bytes, 2 * 160);
    let fates: Vec<String> =
        texts(&recording.table("frames").unwrap(), "fate").into_iter().flatten().collect();
    assert_eq!(fates, ["played", "in_flight"]);
}

#[test]
fn a_frame_in_each_packet_of_dccp_and_tfrc() {
    // RFC 4340 §5.1: 16 bytes; RFC 5348's fields: 16 behind UDP's 8.
    framed("ccid3", [dccp_rtp(0, 160), dccp_rtp(1, 160)], dccp_ack(1), 16, 208);
    framed("tfrc", [tfrc_rtp(0, 160), tfrc_rtp(1, 160)], tfrc_feedback(), 24, 216);
}

#[test]
fn the_account_of_a_call() {
    let recording = record(call_and_bulk(), &call_script());
    recording.conservation().unwrap();
    let call = &recording.flows[0];
    assert_eq!((&*call.name, &*call.from, &*call.to), ("call", "alice", "bob"));
    assert_eq!((&*call.transport, &*call.source), ("udp", "speech"));
    // Frames 2 to 10 were captured in the window.
    assert_eq!(call.generated_packets, Some(9));
    assert_eq!(call.handed_over_packets, 7);
    assert_eq!(call.queued_packets, Some(1));
    assert_eq!(call.discarded_packets, Some(1));
    // Frames 1 to 6 and 8 were sent in it.
    assert_eq!(call.sent_packets, 7);
    assert_eq!(call.received_packets, 4);
    assert_eq!(call.lost_packets, 2);
    assert_eq!(call.in_flight_packets, 1);
    assert_eq!(call.control_packets, 1);
    assert_eq!(call.sent_bytes, 1400);
    assert_eq!(call.received_bytes, 800);
    assert_eq!(call.network_header_bytes, 140);
    assert_eq!(call.transport_header_bytes, 56);
    assert_eq!(call.media_header_bytes, 84);
    assert_eq!(call.payload_bytes, 1120);
    // Arrived in the window: frames 0 (1010), 1, 2, 5, 6; not 9 (3030). Two seconds.
    assert_eq!(call.throughput_bps, Some(5.0 * 200.0 * 8.0 / 2.0));
    assert_eq!(call.goodput_bps, Some(5.0 * 160.0 * 8.0 / 2.0));
    // Delays 30, 40, 70, 30 ms.
    assert_eq!(call.delay_min_s, Some(0.030));
    assert!(near(call.delay_mean_s, Some(0.0425), 1e-12));
    assert_eq!(call.delay_p50_s, Some(0.030));
    assert_eq!(call.delay_p95_s, Some(0.070));
    assert_eq!(call.delay_p99_s, Some(0.070));
    assert_eq!(call.delay_max_s, Some(0.070));
    // Played in the window's cohort: 2, 6, 9, each 80 ms after capture.
    assert_eq!(call.mouth_to_ear_p50_s, Some(0.080));
    assert_eq!(call.mouth_to_ear_max_s, Some(0.080));
    assert_eq!(call.late_packets, Some(1));
    // Frames 3, 4 (lost), 7 (discarded), 8 (in flight), 10 (queued).
    assert_eq!(call.missing_packets, Some(5));
    assert!(near(call.loss_ratio, Some(6.0 / 9.0), 1e-12));
    // Runs: 3-4-5, 7-8, 10: mean 2, times 1 − 6/9.
    assert!(near(call.burst_ratio, Some(2.0 / 3.0), 1e-12));
    // The first of them.
    assert_eq!(call.longest_gap_s, Some(0.060));
    // Frames 0, 1, 2, 6, 5, 9 arrive at 1010, 1030, 1060, 1130, 1150, 3030 ms; less their capture
    // that is 50, 50, 60, 50, 90, 40, so |D| is 0, 10, 10, 40, 50 and J after each is 0, 0.625,
    // 1.2109375, 3.63525390625, 6.533050537109375; all but frame 1's count.
    let mean = (0.625 + 1.210_937_5 + 3.635_253_906_25 + 6.533_050_537_109_375) / 4.0;
    assert!(near(call.jitter_s, Some(mean * 1e-3), 1e-9), "{:?}", call.jitter_s);
}

#[test]
fn pauses_of_playout_count_as_concealment() {
    let mut script = call_script();
    let played = |told: &Told| {
        matches!(told.line, Line::Plain(Note::Decided { index: 6, playout: Playout::Played(_) }))
    };
    let at = script.iter().position(played).expect("frame 6 is played");
    let paused =
        |index| peer(ms(1130), 1, Note::Paused { index, length: Duration::from_millis(30) });
    // Before frame 6, which is in the window, and before frame 0, which is not.
    script.insert(at, paused(6));
    script.insert(at, paused(0));
    let recording = record(call_and_bulk(), &script);
    let paused = floats(&recording.table("frames").unwrap(), "paused_s");
    assert_eq!(paused[..8], [0.030, 0.0, 0.0, 0.0, 0.0, 0.0, 0.030, 0.0].map(Some));
    let call = &recording.flows[0];
    assert_eq!(call.paused_s, Some(0.030));
    assert!(near(call.loss_ratio, Some(6.0 / 9.0), 1e-12));
    // One and a half frames more are concealed, of as many more.
    assert!(near(call.concealed_ratio, Some(7.5 / 10.5), 1e-12));
    let parts = [call.unheard_lost_ratio, call.unheard_late_ratio, call.unheard_paused_ratio];
    let parts: f64 = parts.into_iter().flatten().sum();
    assert!(near(Some(parts), call.concealed_ratio, 1e-12));
    assert!(near(call.unheard_paused_ratio, Some(1.5 / 10.5), 1e-12));
    // A fourth run: mean 7.5 / 4, times 1 − 7.5 / 10.5.
    assert!(near(call.burst_ratio, Some(7.5 / 4.0 * 3.0 / 10.5), 1e-12));
    assert_eq!(record(call_and_bulk(), &call_script()).flows[0].paused_s, Some(0.0));
}

#[test]
fn frames_of_a_call() {
    let frames = record(call_and_bulk(), &call_script()).table("frames").unwrap();
    assert_eq!(
        columns(&frames),
        [
            "flow",
            "index",
            "captured_s",
            "handed_over_s",
            "delivered_s",
            "playout_s",
            "paused_s",
            "fate",
            "encoding"
        ]
    );
    // No flow has a ladder.
    assert_eq!(counts(&frames, "encoding"), [None; 11]);
    let fates: Vec<String> = texts(&frames, "fate").into_iter().flatten().collect();
    assert_eq!(
        fates,
        [
            "played",
            "played",
            "played",
            "lost",
            "lost",
            "late",
            "played",
            "discarded",
            "in_flight",
            "played",
            "queued"
        ]
    );
    assert_eq!(counts(&frames, "index"), (0..11).map(Some).collect::<Vec<_>>());
    assert!(texts(&frames, "flow").iter().all(|flow| flow.as_deref() == Some("call")));
    assert_eq!(floats(&frames, "captured_s")[7], Some(1.1));
    assert_eq!(floats(&frames, "handed_over_s")[6..8], [Some(1.1), None]);
    assert_eq!(floats(&frames, "delivered_s")[3..6], [None, None, Some(1.15)]);
    assert_eq!(floats(&frames, "playout_s")[4..7], [None, Some(1.14), Some(1.16)]);
}

#[test]
fn series_of_a_call() {
    let series = record(call_and_bulk(), &call_script()).table("series").unwrap();
    assert_eq!(
        columns(&series),
        [
            "flow",
            "time_s",
            "generated_packets",
            "generated_bytes",
            "discarded_packets",
            "sent_packets",
            "sent_bytes",
            "received_packets",
            "received_bytes",
            "goodput_bps",
            "lost_packets",
            "delay_mean_s",
            "delay_max_s",
            "late_packets",
            "encoding"
        ]
    );
    let four = |name: &str| counts(&series, name)[..4].to_vec();
    assert_eq!(floats(&series, "time_s")[..5], [1.0, 2.0, 3.0, 4.0, 1.0].map(Some));
    // Frames come out of the source when handed over: 0 at 980, 1 to 7 in the second bin, 8 at
    // 2980, 9 and 10 in the last.
    assert_eq!(four("generated_packets"), [1, 7, 1, 2].map(Some));
    assert_eq!(four("generated_bytes"), [160, 1120, 160, 320].map(Some));
    assert_eq!(four("discarded_packets"), [0, 1, 0, 0].map(Some));
    assert_eq!(four("sent_packets"), [1, 6, 1, 1].map(Some));
    assert_eq!(four("sent_bytes"), [200, 1200, 200, 200].map(Some));
    assert_eq!(four("received_packets"), [0, 5, 0, 1].map(Some));
    assert_eq!(four("received_bytes"), [0, 1000, 0, 200].map(Some));
    assert_eq!(four("lost_packets"), [0, 2, 0, 0].map(Some));
    assert_eq!(four("late_packets"), [0, 1, 0, 0].map(Some));
    assert_eq!(floats(&series, "goodput_bps")[..4], [0.0, 6400.0, 0.0, 1280.0].map(Some));
    // 30, 30, 40, 70, 30 ms in the second bin.
    assert_eq!(floats(&series, "delay_mean_s")[..4], [None, Some(0.04), None, Some(0.02)]);
    assert_eq!(floats(&series, "delay_max_s")[..4], [None, Some(0.07), None, Some(0.02)]);
    // Not a voice flow: late has no meaning.
    assert_eq!(counts(&series, "late_packets")[4..], [None; 8]);
    // No flow has a ladder.
    assert_eq!(counts(&series, "encoding"), [None; 12]);
    let flows = texts(&series, "flow");
    assert_eq!(flows[4].as_deref(), Some("web"));
    assert_eq!(flows[8].as_deref(), Some("web.reverse"));
}

#[test]
fn what_happens_at_the_very_end_belongs_to_the_last_bin() {
    let label = packet(2, 0, 128, ms(3990));
    let script = [sent(2, 0, 128, ms(3990), data(100)), received(ms(4000), label, data(100))];
    let series = record(call_and_bulk(), &script).table("series").unwrap();
    assert_eq!(counts(&series, "received_packets")[4..8], [0, 0, 0, 1].map(Some));
    // A last bin that is shorter than the others is divided by its own length.
    let layout = Layout { interval: Duration::from_millis(1500), ..call_and_bulk() };
    let delivered = peer(ms(4000), 3, Note::Delivered { index: 0, bytes: 100 });
    let series = record(layout, &[delivered]).table("series").unwrap();
    assert_eq!(floats(&series, "time_s")[3..6], [1.5, 3.0, 4.0].map(Some));
    assert_eq!(floats(&series, "goodput_bps")[3..6], [0.0, 0.0, 800.0].map(Some));
}

#[test]
fn both_sides_of_a_connection_have_their_own_account() {
    let mut script = Vec::new();
    let at = ms(1500);
    for (sender, len) in [(2, 1000), (3, 500)] {
        // SYN, then data whose header has 20 + 12 bytes; the reverse side's data is in an IP
        // packet of its payload alone, as a sizing profile may have it.
        let ip_bytes = if sender == 2 { 20 + 32 + len } else { len };
        let generated = Note::Generated { index: 0, bytes: len, captured: at };
        script.push(peer(at, sender, generated));
        script.push(peer(at, sender, Note::HandedOver { index: 0 }));
        script.push(sent(sender, 0, 52, at, segment(0, 0)));
        script.push(sent(sender, 1, ip_bytes, at, segment(0, len)));
        let label = packet(sender, 1, ip_bytes, at);
        script.push(received(at + Duration::from_millis(100), label, segment(0, len)));
        let delivered = Note::Delivered { index: 0, bytes: len };
        script.push(peer(at + Duration::from_millis(100), sender ^ 1, delivered));
    }
    // A router's message to the sender is in no account, received or dropped.
    let news = packet(3, UNNUMBERED, 56, at);
    script.push(link(ms(1600), Line::Answered(news, news, refusal(576))));
    script.push(received(ms(1700), news, refusal(576)));
    script.push(link(ms(1700), Line::Dropped(news, DropReason::Full)));
    let recording = record(call_and_bulk(), &script);
    recording.conservation().unwrap();
    let [web, reverse] = &recording.flows[1..] else { panic!("two rows") };
    assert_eq!((&*web.name, &*web.from, &*web.to), ("web", "alice", "bob"));
    assert_eq!((&*reverse.name, &*reverse.from, &*reverse.to), ("web.reverse", "bob", "alice"));
    assert_eq!((web.sent_packets, web.received_packets, web.control_packets), (1, 1, 1));
    assert_eq!((web.sent_bytes, web.payload_bytes), (1052, 1000));
    assert_eq!((web.network_header_bytes, web.transport_header_bytes), (20, 32));
    assert_eq!((reverse.sent_bytes, reverse.payload_bytes), (500, 500));
    assert_eq!((reverse.network_header_bytes, reverse.transport_header_bytes), (0, 32));
    assert_eq!(web.goodput_bps, Some(4000.0));
    assert_eq!((web.late_packets, web.missing_packets), (None, None));
    assert_eq!((web.loss_ratio, web.burst_ratio, web.jitter_s), (None, None, None));
    assert_eq!(web.mouth_to_ear_max_s, None);
}

#[test]
fn nothing_seen_is_null_and_not_zero() {
    let empty = record(call_and_bulk(), &[]);
    let flows = empty.table("flows").unwrap();
    for name in [
        "delay_min_s",
        "delay_mean_s",
        "delay_p50_s",
        "delay_p95_s",
        "delay_p99_s",
        "delay_max_s",
        "mouth_to_ear_p50_s",
        "mouth_to_ear_mean_s",
        "mouth_to_ear_max_s",
        "jitter_s",
        "loss_ratio",
        "concealed_ratio",
        "burst_ratio",
        "longest_gap_s",
        "r_factor",
        "mos",
    ] {
        assert_eq!(floats(&flows, name), [None; 3], "{name}");
    }
    assert_eq!(floats(&flows, "goodput_bps"), [Some(0.0); 3]);
    assert_eq!(counts(&flows, "missing_packets"), [Some(0), None, None]);
    let nowhere = Layout { to: ms(1000), ..call_and_bulk() };
    let flows = record(nowhere, &call_script()).table("flows").unwrap();
    assert_eq!(floats(&flows, "goodput_bps"), [None; 3]);
    assert_eq!(counts(&flows, "sent_packets"), [Some(0); 3]);
}

#[test]
fn the_flows_table_has_the_columns_of_the_contract() {
    let mut recording = record(call_and_bulk(), &call_script());
    recording.flows[0].quality.mos = Some(4.41);
    recording.flows[0].quality.note = Some("T = Ta".into());
    recording.flows[1].stand_in = Some("G.729: Opus".into());
    let flows = recording.table("flows").unwrap();
    assert_eq!(
        columns(&flows).join(" "),
        "name transport source from to group generated_packets queued_packets discarded_packets \
         sent_packets received_packets lost_packets in_flight_packets control_packets \
         feedback_packets feedback_bytes repair_packets repair_bytes padding_packets padding_bytes \
         rejected_packets damaged_packets sent_bytes \
         received_bytes network_header_bytes transport_header_bytes media_header_bytes \
         payload_bytes throughput_bps goodput_bps delay_min_s delay_mean_s delay_p50_s \
         delay_p95_s delay_p99_s delay_max_s mouth_to_ear_p50_s mouth_to_ear_mean_s mouth_to_ear_max_s \
         av_skew_s handshake_wait_s jitter_s \
         held_back_packets head_of_line_mean_s head_of_line_max_s \
         late_packets recovered_packets fec_ratio dred_ratio dred_depth_mean_s missing_packets \
         loss_ratio paused_s concealed_ratio \
         unheard_lost_ratio unheard_late_ratio unheard_paused_ratio burst_ratio longest_gap_s video_frames \
         video_frames_complete video_in_time_ratio video_frame_rate video_freezes video_frozen_s \
         video_longest_freeze_s video_frames_late frame_delay_p50_s frame_delay_p95_s \
         frame_delay_max_s r_factor mos r_bound mos_bound estimated_mos estimated_mos_bound \
         mos_lost_to_delay mos_lost_to_loss mos_lost_to_codec quality_limits quality_note \
         estimate_limits stand_in redundancy_note"
    );
    assert_eq!(floats(&flows, "mos"), [Some(4.41), None, None]);
    assert_eq!(texts(&flows, "quality_note")[..2], [Some("T = Ta".to_owned()), None]);
    assert_eq!(texts(&flows, "stand_in")[..2], [None, Some("G.729: Opus".to_owned())]);
    assert_eq!(counts(&flows, "sent_packets")[0], Some(7));
    assert_eq!(floats(&flows, "delay_max_s")[0], Some(0.07));
    assert!(recording.table("weather").is_none());
    for name in Recording::TABLES {
        assert!(recording.table(name).is_some(), "{name}");
    }
}

#[test]
fn streaming_statistics_agree_but_have_no_quantiles() {
    let layout = call_and_bulk();
    let mut stats = Stats::new(&layout);
    tell(&call_script(), &mut stats);
    let mut expected = record(layout.clone(), &call_script()).flows;
    for row in &mut expected {
        (row.delay_p50_s, row.delay_p95_s, row.delay_p99_s) = (None, None, None);
        (row.mouth_to_ear_p50_s, row.mouth_to_ear_mean_s) = (None, None);
    }
    assert_eq!(stats.finish(&layout), expected);
}

#[test]
fn a_broken_account_is_named() {
    let row = |change: &dyn Fn(&mut talkspurt_record::FlowSummary)| {
        let mut row = record(call_and_bulk(), &call_script()).flows.remove(0);
        change(&mut row);
        row.conservation()
    };
    assert_eq!(row(&|_| {}), Ok(()));
    let sent = row(&|row| row.lost_packets += 1).unwrap_err();
    assert_eq!(sent, "call: 7 packets sent, but 4 received + 3 lost + 1 in flight");
    let made = row(&|row| row.queued_packets = Some(0)).unwrap_err();
    assert_eq!(made, "call: 9 frames generated, but 0 queued + 7 handed over + 1 discarded");
    assert!(row(&|row| row.unaccounted_notes = 1).unwrap_err().contains("fit no packet"));
}

#[test]
fn a_packet_cannot_be_received_twice() {
    let label = packet(2, 0, 128, ms(1000));
    let twice = || received(ms(1100), label, data(100));
    let script = [sent(2, 0, 128, ms(1000), data(100)), twice(), twice()];
    let told = record(call_and_bulk(), &script).conservation().unwrap_err();
    assert!(told.contains("1 notes fit no packet"), "{told}");
}

#[test]
fn what_the_network_makes_up_is_no_error_of_ours() {
    // Frames that were never sent, or come again, from a confused or hostile network.
    let layout = call_and_bulk();
    let mut script = call_script();
    for index in [0, 2, 4_000_000_000] {
        script.push(peer(ms(3500), 1, Note::Delivered { index, bytes: 160 }));
        script.push(peer(ms(3500), 1, Note::Decided { index, playout: Playout::Late(ms(0)) }));
    }
    assert_eq!(record(layout.clone(), &script).flows, record(layout, &call_script()).flows);
}

#[test]
fn frames_in_a_broken_stream_are_lost() {
    let flows = vec![flow("call", "tcp", [side("speech", Some(20)), None])];
    let layout = layout(flows, ms(0), ms(4000), ms(4000));
    let frame = [
        peer(ms(20), 0, Note::Generated { index: 0, bytes: 160, captured: ms(0) }),
        peer(ms(20), 0, Note::HandedOver { index: 0 }),
    ];
    let fate = |recording: Recording| texts(&recording.table("frames").unwrap(), "fate");
    let alive = record(layout.clone(), &frame);
    assert_eq!(fate(alive)[0].as_deref(), Some("in_flight"));
    let mut script = Vec::from(frame);
    script.push(peer(ms(100), 1, Note::Event(Event::Reset)));
    assert_eq!(fate(record(layout, &script))[0].as_deref(), Some("lost"));
}
