//! What a user sees of a call while it lasts: rates, codecs, loss, buffer and an estimate of the opinion score,
//! from the notes of this end alone. The tables of the call, made from the notes of both ends, replace it.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use talkspurt_app::codec::Encoding;
use talkspurt_app::source;
use talkspurt_experiment::{Heard, opinion};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_scenario::model::Flow;

use crate::notes::What;
use crate::shared::Sample;

/// Samples over which is averaged.
const WINDOW: usize = 10;

/// The time between two samples.
#[derive(Debug, Default)]
struct Tick {
    seconds: f64,
    sent_bytes: u64,
    received_bytes: u64,
    /// Frames whose time of playout has come, and those played of them.
    due: u64,
    played: u64,
    /// Time of these between arrival and playout, in seconds.
    waited_s: f64,
    waits: u32,
    /// Frames played by encoding.
    heard: Vec<u64>,
}

/// The state of a call.
#[derive(Debug, Default)]
pub(crate) struct View {
    ticks: VecDeque<Tick>,
    at: Instant,
    round_trip: Option<Duration>,
    /// The encoding that we send.
    rung: usize,
    /// Frames that have arrived and not been played, with the time.
    arrived: BTreeMap<u32, u64>,
    /// One more than the highest frame whose time has come.
    next: u32,
    heard: Vec<u64>,
}

impl View {
    /// Takes what happened since the last sample.
    pub(crate) fn take(&mut self, sample: &Sample) {
        let seconds = (sample.at - self.at).as_secs_f64();
        self.at = sample.at;
        let mut tick = Tick { seconds, ..Tick::default() };
        for row in &sample.rows {
            match row.what {
                What::Sent { bytes, .. } => tick.sent_bytes += u64::from(bytes),
                What::Received { bytes, .. } => tick.received_bytes += u64::from(bytes),
                What::Encoding { rung } => self.rung = rung.into(),
                What::RoundTrip { nanos } => self.round_trip = Some(Duration::from_nanos(nanos)),
                What::Delivered { index, .. } => {
                    self.arrived.insert(index, row.at);
                }
                What::Played { index, at } | What::Recovered { index, at } => {
                    tick.played += 1;
                    self.decided(index, &mut tick);
                    if let Some(came) = self.arrived.remove(&index) {
                        tick.waited_s += (at.saturating_sub(came)) as f64 / 1e9;
                        tick.waits += 1;
                    }
                }
                What::Late { index, .. } => {
                    self.arrived.remove(&index);
                    self.decided(index, &mut tick);
                }
                _ => {}
            }
        }
        let before = |at: usize| self.heard.get(at).copied().unwrap_or(0);
        let heard = sample.heard.iter().enumerate();
        tick.heard = heard.map(|(at, frames)| frames.saturating_sub(before(at))).collect();
        self.heard.clone_from(&sample.heard);
        // What was lost in the buffer is not remembered for ever.
        self.arrived = self.arrived.split_off(&self.next.saturating_sub(1000));
        self.ticks.push_back(tick);
        if self.ticks.len() > WINDOW {
            self.ticks.pop_front();
        }
    }

    /// The time of a frame has come. The frames before it that never came are due, too.
    fn decided(&mut self, index: u32, tick: &mut Tick) {
        let next = index.saturating_add(1);
        tick.due += u64::from(next.saturating_sub(self.next));
        self.next = self.next.max(next);
    }

    /// As JSON: rates as IP packets, what is heard from the `other` end's source, and what we send.
    pub(crate) fn shown(&self, flow: &Flow, other: &source::Config) -> Value {
        let source::Config::Speech(speech) = other else { return Value::Null };
        let encodings = speech.encodings();
        let sum = |of: fn(&Tick) -> u64| self.ticks.iter().map(of).sum::<u64>();
        let seconds: f64 = self.ticks.iter().map(|tick| tick.seconds).sum();
        let rate = |bytes: u64| (seconds > 0.0).then(|| 8.0 * bytes as f64 / seconds);
        let (due, played) = (sum(|tick| tick.due), sum(|tick| tick.played));
        let loss = (due > 0).then(|| 1.0 - played.min(due) as f64 / due as f64);
        let waits: u32 = self.ticks.iter().map(|tick| tick.waits).sum();
        let waited: f64 = self.ticks.iter().map(|tick| tick.waited_s).sum();
        let buffer = (waits > 0).then(|| waited / f64::from(waits));
        let heard: Vec<u64> = (0..encodings.len())
            .map(|at| self.ticks.iter().filter_map(|tick| tick.heard.get(at)).sum())
            .collect();
        let latest = self.ticks.iter().rev().find_map(|tick| {
            let most = (0..encodings.len()).max_by_key(|at| tick.heard.get(*at).copied());
            most.filter(|at| tick.heard.get(*at).is_some_and(|frames| *frames > 0))
        });
        let name = |it: &Encoding| it.codec.spec().name;
        let mouth_to_ear = buffer.map(|buffer| {
            let codec = latest.and_then(|at| encodings.get(at)).unwrap_or(&encodings[0]);
            let there = self.round_trip.map_or(0.0, |it| it.as_secs_f64() / 2.0);
            there + (codec.packet + codec.look_ahead()).as_secs_f64() + buffer
        });
        let quality = loss.zip(mouth_to_ear).map(|(loss, delay)| {
            let played = if encodings.len() > 1 { &heard[..] } else { &[] };
            let mouth_to_ear_s = Some(delay);
            opinion(flow, other, &Heard { played, mouth_to_ear_s, loss, ..Heard::default() })
        });
        json!({
            "passed_s": (self.at - Instant::ZERO).as_secs_f64(),
            "rtt_s": self.round_trip.map(Duration::as_secs_f64),
            "sent": {
                "rate_bps": rate(sum(|tick| tick.sent_bytes)),
                "codec": encodings.get(self.rung).map(name),
            },
            "heard": {
                "rate_bps": rate(sum(|tick| tick.received_bytes)),
                "codec": latest.and_then(|at| encodings.get(at)).map(name),
                "loss": loss,
                "buffer_s": buffer,
                "mos": quality.and_then(|quality| quality.mos),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::Row;
    use crate::transport::Transport;

    /// By hand: 50 packets of 238 bytes in half a second of which one in five is lost, each 60 ms in the
    /// buffer.
    #[test]
    fn a_view_has_rates_loss_and_buffer() {
        let invitation = crate::invitation::Invitation::example(Transport::known("udp"), &["pcmu"]);
        let point = invitation.plan(None).point().expect("it is a plan");
        let flow = &point.scenario.flows[0];
        let mut view = View::default();
        let mut rows = Vec::new();
        for index in (0..50).filter(|index| index % 5 != 1) {
            let at = u64::from(index) * 10_000_000;
            let what = What::Received { number: index, bytes: 238, sent: at, payload: true };
            rows.push(Row { at, peer: 0, what });
            rows.push(Row { at, peer: 0, what: What::Delivered { index, bytes: 160 } });
            let what = What::Played { index, at: at + 60_000_000 };
            rows.push(Row { at: at + 60_000_000, peer: 0, what });
        }
        rows.push(Row { at: 5, peer: 0, what: What::RoundTrip { nanos: 40_000_000 } });
        let at = Instant::ZERO + Duration::from_millis(500);
        view.take(&Sample { at, rows, heard: vec![40] });
        let shown = view.shown(flow, &flow.source);
        assert_eq!(shown["heard"]["rate_bps"], 40.0 * 238.0 * 8.0 / 0.5);
        assert_eq!(shown["heard"]["codec"], "G.711 µ-law");
        assert!((shown["heard"]["loss"].as_f64().expect("it is known") - 0.2).abs() < 1e-9);
        assert!((shown["heard"]["buffer_s"].as_f64().expect("it is known") - 0.06).abs() < 1e-9);
        assert_eq!(shown["rtt_s"], 0.04);
        let mos = shown["heard"]["mos"].as_f64().expect("G.711 has a score");
        // G.113: Ie,eff of G.711 with a fifth lost at random, concealed, is above 40.
        assert!((1.0..3.5).contains(&mos), "{mos}");
        for _ in 0..WINDOW {
            view.take(&Sample { at, rows: Vec::new(), heard: vec![40] });
        }
        assert_eq!(view.shown(flow, &flow.source)["heard"]["loss"], Value::Null, "long ago");
    }
}
