//! qlog of every endpoint (draft-ietf-quic-qlog-main-schema and -quic-events at version 0.3, JSON text
//! sequences of RFC 7464), for qvis and other readers: packets sent and received, congestion windows and
//! round-trip times under QUIC's names, everything else under the name `talkspurt`.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use talkspurt_proto::probe::{Gauge, Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;

use crate::file::Output;
use crate::layout::Layout;
use crate::recorder::{encoding_name, event_name};

/// A probe that writes a file for each endpoint.
#[derive(Debug)]
pub struct Qlog {
    outputs: Vec<Output>,
    text: String,
}

impl Qlog {
    /// Creates the files `FLOW.from.sqlog` and `FLOW.to.sqlog` in a folder; `name` turns a flow's name into
    /// a file name.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn create(
        folder: &Path,
        layout: &Layout,
        title: &str,
        name: impl Fn(&str) -> String,
    ) -> io::Result<Self> {
        let mut outputs = Vec::new();
        for flow in &layout.flows {
            for (side, node, point) in [("from", &flow.from, "client"), ("to", &flow.to, "server")]
            {
                let file = format!("{}.{side}.sqlog", name(&flow.name));
                let output = Output::create(folder.join(file))?;
                let mut output = output.one_of(2 * layout.flows.len());
                let head = format!(
                    "\u{1e}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":{},\
                     \"trace\":{{\"title\":{},\"vantage_point\":{{\"name\":{},\"type\":\"{point}\"}},\
                     \"common_fields\":{{\"protocol_type\":[{}],\"time_format\":\"relative\",\
                     \"reference_time\":0}}}}}}\n",
                    quoted(title),
                    quoted(&flow.name),
                    quoted(node),
                    quoted(&flow.transport),
                );
                output.write(head.as_bytes());
                outputs.push(output);
            }
        }
        Ok(Self { outputs, text: String::new() })
    }

    /// Whether a write failed, so that the run may stop early.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.outputs.iter().any(Output::failed)
    }

    /// Completes all files.
    ///
    /// # Errors
    /// The first file error; the other files are completed regardless.
    pub fn finish(self) -> io::Result<()> {
        let finished: Vec<_> = self.outputs.into_iter().map(Output::finish).collect();
        finished.into_iter().collect()
    }

    fn event(&mut self, now: Instant, peer: u32, name: &str, data: std::fmt::Arguments<'_>) {
        let Some(output) = self.outputs.get_mut(peer as usize) else { return };
        self.text.clear();
        let milliseconds = now.as_nanos() as f64 / 1e6;
        let _ = writeln!(
            self.text,
            "\u{1e}{{\"time\":{milliseconds},\"name\":\"{name}\",\"data\":{{{data}}}}}"
        );
        output.write(self.text.as_bytes());
    }

    fn gauge(&mut self, now: Instant, peer: u32, gauge: Gauge, value: f64) {
        // JSON has no number for an absent value, such as an unbounded threshold.
        if !value.is_finite() {
            return;
        }
        let metric = match gauge {
            Gauge::Cwnd => ("congestion_window", 1.0),
            Gauge::Ssthresh => ("ssthresh", 1.0),
            Gauge::Flight => ("bytes_in_flight", 1.0),
            Gauge::Srtt => ("smoothed_rtt", 1e3),
            Gauge::MinRtt => ("min_rtt", 1e3),
            Gauge::PacingRate => ("pacing_rate", 1.0),
            other => {
                let name = other.name();
                return self.event(
                    now,
                    peer,
                    "talkspurt:gauge_updated",
                    format_args!("\"gauge\":\"{name}\",\"value\":{value}"),
                );
            }
        };
        let (name, unit) = metric;
        let value = value * unit;
        self.event(now, peer, "recovery:metrics_updated", format_args!("\"{name}\":{value}"));
    }

    fn connection_event(&mut self, now: Instant, peer: u32, event: Option<&str>) {
        if let Some(event) = event {
            self.event(now, peer, "talkspurt:event", format_args!("\"event\":\"{event}\""));
        }
    }
}

impl Probe for Qlog {
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Packet | Topic::Gauge | Topic::Event)
    }

    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        let Place::Peer(peer) = place else { return };
        match note {
            Note::Sent { packet, .. } | Note::Received { packet, .. } => {
                let sent = matches!(note, Note::Sent { .. });
                let name = if sent { "transport:packet_sent" } else { "transport:packet_received" };
                let (number, bytes) = (packet.number, packet.ip_bytes);
                self.event(
                    now,
                    peer,
                    name,
                    format_args!(
                        "\"header\":{{\"packet_type\":\"unknown\",\"packet_number\":{number}}},\
                         \"raw\":{{\"length\":{bytes}}}"
                    ),
                );
            }
            Note::Gauge { gauge, value } => self.gauge(now, peer, *gauge, *value),
            Note::Event(event) => self.connection_event(now, peer, event_name(*event)),
            Note::Encoding(rung) => self.connection_event(now, peer, encoding_name(*rung)),
            _ => {}
        }
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
