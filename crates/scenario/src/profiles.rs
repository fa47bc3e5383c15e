//! The page of profiles: the meaning of `rfc`, `ns2` and `linux`, generated from the protocols' own
//! parameters.

use std::fmt::Write as _;

use serde_json::Value as Json;
use talkspurt_app::transport;
use talkspurt_proto::dccp::{self, ccid2};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate;
use talkspurt_proto::rate::config::{FewIntervals, Kind, Parameters as Rate};
use talkspurt_proto::time::Duration;

const PROFILES: [Profile; 3] = [Profile::Rfc, Profile::Ns2, Profile::Linux];

const OPENING: &str = "\
# Profiles

<!-- Generated from the machines' parameters: `cargo run -p talkspurt-scenario --bin schema`. -->

A profile is a named set of values for the parameters that a scenario does not set: those of the RFCs, those of
ns-2.35, on which most studies ran, or those of Linux (2.6.24 to 6.15). It is never a branch in the
code: every value below is a key of its own, unless it is in *italics*, and a key in the
scenario takes precedence. What each means is in the [scenario reference](scenario.md).

";

/// The page as Markdown.
pub(crate) fn page() -> String {
    let mut page = String::from(OPENING);
    section(
        &mut page,
        "Frames that wait in the send queue",
        "`send_queue.packets`",
        &[row("`packets`", |profile| transport::waiting_packets(profile).to_string())],
    );
    section(&mut page, "DCCP", "`kind = \"dccp\"` itself", &connection());
    section(&mut page, "CCID 2", "`transport.window` of `kind = \"dccp\"`", &window());
    for (title, kind, place) in [
        ("CCID 3", Kind::Ccid3, "`transport.rate` of `kind = \"dccp\"`"),
        ("CCID 4", Kind::Ccid4, "`transport.rate` of `kind = \"dccp\"`"),
        ("TFRC", Kind::Tfrc, "`transport.rate` of `kind = \"tfrc\"`"),
    ] {
        section(&mut page, title, place, &rates(kind));
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// A parameter and its value under each profile.
struct Row {
    name: &'static str,
    values: [String; 3],
}

fn row(name: &'static str, value: impl Fn(Profile) -> String) -> Row {
    Row { name, values: PROFILES.map(value) }
}

fn section(page: &mut String, title: &str, place: &str, rows: &[Row]) {
    let _ = write!(page, "## {title}\n\nParameters of {place}.\n\n");
    page.push_str("| parameter | `rfc` | `ns2` | `linux` |\n| --- | --- | --- | --- |\n");
    for Row { name, values: [rfc, ns2, linux] } in rows {
        let _ = writeln!(page, "| {name} | {rfc} | {ns2} | {linux} |");
    }
    page.push('\n');
}

fn connection() -> Vec<Row> {
    let of = |value: fn(&dccp::Config) -> String| {
        move |profile| value(&dccp::Config { profile, ..dccp::Config::new(dccp::Ccid::Two) })
    };
    vec![
        row("`sequence_window`", of(|config| config.initial_window().to_string())),
        row("`sequence_window_follows`", of(|config| config.window_follows().to_string())),
        row("`ecn`", of(|config| config.uses_ecn().to_string())),
        row(
            "*negotiations of Ack Ratio wait for a packet*",
            of(|config| config.ack_ratio_waits().to_string()),
        ),
    ]
}

fn window() -> Vec<Row> {
    let of = |value: fn(&ccid2::Parameters) -> String| {
        move |profile| value(&ccid2::Parameters::of(profile))
    };
    vec![
        row(
            "`initial_window`",
            of(|p| match p.initial_window_packets {
                Some(packets) => packets.to_string(),
                None => "2 to 4, by packet size".to_owned(),
            }),
        ),
        row(
            "`initial_ssthresh`",
            of(|p| match p.initial_ssthresh_packets {
                Some(packets) => packets.to_string(),
                None => "unbounded".to_owned(),
            }),
        ),
        row("`slow_start`", of(|p| word(p.slow_start))),
        row("`application_limited`", of(|p| word(p.application_limited))),
        row("`idle`", of(|p| word(p.idle))),
        row("*grows in the round trip after a loss*", of(|p| p.grows_in_recovery.to_string())),
        row("`initial_rto`", of(|p| p.initial_rto.to_string())),
        row("`min_rto`", of(|p| p.min_rto.to_string())),
        row("`max_rto`", of(|p| p.max_rto.to_string())),
        row("`ack_ratio`", of(|p| p.ack_ratio.to_string())),
        row("`ack_ratio_control`", of(|p| p.ack_ratio_control.to_string())),
        row("`ack_delay`", of(|p| p.ack_delay.map_or("no timer".to_owned(), |d| d.to_string()))),
        row("`elapsed_time`", of(|p| p.elapsed_time.to_string())),
        row("*holes and marks acknowledged at once*", of(|p| p.acknowledges_gaps.to_string())),
    ]
}

fn rates(kind: Kind) -> Vec<Row> {
    let of = |value: fn(&Rate) -> String| {
        move |profile| value(&rate::config::Config::default().resolve(profile, kind))
    };
    let mut rows = vec![
        row(
            "`nominal_size`",
            of(|p| match p.nominal_bytes {
                Some(bytes) => format!("{bytes} B"),
                None => "mean of what is sent".to_owned(),
            }),
        ),
        row("*header counted against small packets*", of(|p| format!("{} B", p.header_bytes))),
        row("`minimum_interval`", of(|p| span(p.minimum_interval))),
        row("*losses of short intervals counted*", of(|p| p.short_intervals.to_string())),
        row(
            "`initial_window`",
            of(|p| match p.initial_window {
                Some(packets) => packets.to_string(),
                None => "2 to 4, by packet size".to_owned(),
            }),
        ),
        row("`idle`", of(|p| word(p.idle))),
        row("`faster_restart`", of(|p| p.faster_restart.to_string())),
        row("`oscillation_prevention`", of(|p| p.oscillation_prevention.to_string())),
        row("`history_discounting`", of(|p| p.history_discounting.to_string())),
        row("`loss_intervals`", of(|p| p.loss_intervals.to_string())),
        row("`p_floor`", of(|p| p.p_floor.to_string())),
        row("`rtt_weight`", of(|p| p.rtt_weight.to_string())),
        row("*the same for its root*", of(|p| p.root_weight.to_string())),
        row(
            "*interval before the first loss stays in the average*",
            of(|p| p.first_interval_lasts.to_string()),
        ),
        row("*receiver averages the round-trip time*", of(|p| p.receiver_averages_rtt.to_string())),
        row(
            "*the open interval among few*",
            of(|p| {
                let words = match p.few_intervals {
                    FewIntervals::Replace => "takes the oldest's place",
                    FewIntervals::Join => "joins the others",
                    FewIntervals::Zero => "joins the others; missing ones are 0",
                };
                words.to_owned()
            }),
        ),
        row("*least of a discount*", of(|p| p.discount_threshold.to_string())),
        row("`timer_granularity`", of(|p| span(p.timer_granularity))),
        row(
            "`credit`",
            of(|p| match p.credit {
                Duration::MAX => "a round trip".to_owned(),
                credit => span(credit),
            }),
        ),
        row("`minimum_timeout`", of(|p| span(p.minimum_timeout))),
        row("`feedback_per_rtt`", of(|p| p.feedback_per_rtt.to_string())),
        row("*later packets that make one lost*", of(|p| p.ndupack.to_string())),
        row(
            "*feedback leaves with a packet, not by a timer*",
            of(|p| p.feedback_on_arrival.to_string()),
        ),
    ];
    // RFC 4342: the options and the counter of DCCP's half-connections.
    if kind != Kind::Tfrc {
        rows.extend([
            row("`counter_follows_acks`", of(|p| p.counter_follows_acks.to_string())),
            row("*counters compared modulo 16*", of(|p| p.counter_wraps.to_string())),
            row("`elapsed_time`", of(|p| p.elapsed_time.to_string())),
            row("`loss_intervals_option`", of(|p| p.loss_intervals_option.to_string())),
            row("`ask_loss_event_rate`", of(|p| p.ask_loss_event_rate.to_string())),
        ]);
    }
    rows
}

fn span(span: Duration) -> String {
    if span.is_zero() { "none".to_owned() } else { span.to_string() }
}

/// A value in scenario syntax.
fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Json::String(word)) => format!("`{word}`"),
        _ => unreachable!("a choice is a word"),
    }
}
