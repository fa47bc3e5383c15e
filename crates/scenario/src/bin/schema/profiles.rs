//! The page of profiles: the meaning of `rfc`, `ns2` and `linux`, generated from the protocols' own parameters.

use std::fmt::Write as _;

use serde_json::Value as Json;
use talkspurt_app::transport;
use talkspurt_proto::dccp::{self, ccid2};
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate;
use talkspurt_proto::rate::config::{FewIntervals, Kind};
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

/// Rows of values of `$p`, the parameters of a profile.
macro_rules! rows {
    ($of:expr, $p:ident; $($name:literal: $value:expr,)*) => {
        vec![$(Row {
            name: $name,
            values: PROFILES.map(|profile| {
                let $p = $of(profile);
                $value.to_string()
            }),
        }),*]
    };
}

/// The page as Markdown.
pub(crate) fn page() -> String {
    let mut page = String::from(OPENING);
    section(
        &mut page,
        "Frames that wait in the send queue",
        "`send_queue.packets`",
        rows!(|profile: Profile| profile, p; "`packets`": transport::waiting_packets(p),),
    );
    section(&mut page, "DCCP", "`kind = \"dccp\"` itself", connection());
    section(&mut page, "CCID 2", "`transport.window` of `kind = \"dccp\"`", window());
    for (title, kind, place) in [
        ("CCID 3", Kind::Ccid3, "`transport.rate` of `kind = \"dccp\"`"),
        ("CCID 4", Kind::Ccid4, "`transport.rate` of `kind = \"dccp\"`"),
        ("TFRC", Kind::Tfrc, "`transport.rate` of `kind = \"tfrc\"`"),
    ] {
        section(&mut page, title, place, rates(kind));
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

fn section(page: &mut String, title: &str, place: &str, rows: Vec<Row>) {
    let _ = write!(page, "## {title}\n\nParameters of {place}.\n\n");
    page.push_str("| parameter | `rfc` | `ns2` | `linux` |\n| --- | --- | --- | --- |\n");
    for Row { name, values: [rfc, ns2, linux] } in rows {
        let _ = writeln!(page, "| {name} | {rfc} | {ns2} | {linux} |");
    }
    page.push('\n');
}

fn connection() -> Vec<Row> {
    let of = |profile| dccp::Config { profile, ..dccp::Config::new(dccp::Ccid::Two) };
    rows! { of, config;
        "`sequence_window`": config.initial_window(),
        "`sequence_window_follows`": config.window_follows(),
        "`ecn`": config.uses_ecn(),
        "*negotiations of Ack Ratio wait for a packet*": config.ack_ratio_waits(),
    }
}

fn window() -> Vec<Row> {
    rows! { ccid2::Parameters::of, p;
        "`initial_window`": or(p.initial_window_packets, "2 to 4, by packet size"),
        "`initial_ssthresh`": or(p.initial_ssthresh_packets, "unbounded"),
        "`slow_start`": word(p.slow_start),
        "`application_limited`": word(p.application_limited),
        "`idle`": word(p.idle),
        "*grows in the round trip after a loss*": p.grows_in_recovery,
        "`initial_rto`": p.initial_rto,
        "`min_rto`": p.min_rto,
        "`max_rto`": p.max_rto,
        "`ack_ratio`": p.ack_ratio,
        "`ack_ratio_control`": p.ack_ratio_control,
        "`ack_delay`": or(p.ack_delay, "no timer"),
        "`elapsed_time`": p.elapsed_time,
        "*holes and marks acknowledged at once*": p.acknowledges_gaps,
    }
}

fn rates(kind: Kind) -> Vec<Row> {
    let of = |profile| rate::config::Config::default().resolve(profile, kind);
    let mut rows = rows! { of, p;
        "`nominal_size`":
            p.nominal_bytes.map_or("mean of what is sent".to_owned(), |bytes| format!("{bytes} B")),
        "*header counted against small packets*": format!("{} B", p.header_bytes),
        "`minimum_interval`": span(p.minimum_interval),
        "*losses of short intervals counted*": p.short_intervals,
        "`initial_window`": or(p.initial_window, "2 to 4, by packet size"),
        "`idle`": word(p.idle),
        "`faster_restart`": p.faster_restart,
        "`oscillation_prevention`": p.oscillation_prevention,
        "`history_discounting`": p.history_discounting,
        "`loss_intervals`": p.loss_intervals,
        "`p_floor`": p.p_floor,
        "`rtt_weight`": p.rtt_weight,
        "*the same for its root*": p.root_weight,
        "*interval before the first loss stays in the average*": p.first_interval_lasts,
        "*receiver averages the round-trip time*": p.receiver_averages_rtt,
        "*the open interval among few*": match p.few_intervals {
            FewIntervals::Replace => "takes the oldest's place",
            FewIntervals::Join => "joins the others",
            FewIntervals::Zero => "joins the others; missing ones are 0",
        },
        "*least of a discount*": p.discount_threshold,
        "`timer_granularity`": span(p.timer_granularity),
        "`credit`": match p.credit {
            Duration::MAX => "a round trip".to_owned(),
            credit => span(credit),
        },
        "`minimum_timeout`": span(p.minimum_timeout),
        "`feedback_per_rtt`": p.feedback_per_rtt,
        "*later packets that make one lost*": p.ndupack,
        "*feedback leaves with a packet, not by a timer*": p.feedback_on_arrival,
    };
    // RFC 4342: the options and the counter of DCCP's half-connections.
    if kind != Kind::Tfrc {
        rows.extend(rows! { of, p;
            "`counter_follows_acks`": p.counter_follows_acks,
            "*counters compared modulo 16*": p.counter_wraps,
            "`elapsed_time`": p.elapsed_time,
            "`loss_intervals_option`": p.loss_intervals_option,
            "`ask_loss_event_rate`": p.ask_loss_event_rate,
        });
    }
    rows
}

fn or(value: Option<impl ToString>, absent: &str) -> String {
    value.map_or_else(|| absent.to_owned(), |value| value.to_string())
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
