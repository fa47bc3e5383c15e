//! What a page asks of the simulator: a scenario is loaded, its runs are made, answered for, and opened.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use talkspurt_answer::{Axis, Flows, Frames, Input, MAX_FLOWS, Runs, answer};
use talkspurt_experiment::{Audio, Finished, Shared, excerpt, run, topology};
use talkspurt_proto::metric::View;
use talkspurt_proto::units::with_values;
use talkspurt_record::{Recording, Tables};
use talkspurt_scenario::{Point, Problem, Study, Use, load_for, numbers, to_toml};
use talkspurt_view as view;
use talkspurt_view::{Network, Rows, Run};

/// Frames of voice of all runs together that are kept for the causes of differences; a frame takes 33 bytes.
const MAX_FRAMES: usize = 1_000_000;
/// Bins of the series of all flows and links of a run; one takes about a hundred bytes.
const MAX_BINS: f64 = 1e6;
/// Tables that causes are found in.
const CAUSES: [&str; 4] = ["frames", "events", "gauges", "series"];

/// What a page asks. Each answer is a JSON object; `failed` in it is why there is no other.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Loads the text of a scenario: `problems`, or its runs and what it consists of.
    Load {
        /// Its absolute path, which the files that it names are relative to.
        path: String,
        /// The text.
        text: String,
        /// Fields that are changed, each with its new value.
        #[serde(default)]
        sets: Vec<(String, String)>,
    },
    /// Makes a run: its `digest`.
    Run {
        /// By number.
        run: usize,
    },
    /// The answer of all runs that were made, and their table.
    Answer,
    /// Opens a run, with its charts, tables and calls, whose sound can then be had.
    Open {
        /// By number.
        run: usize,
    },
    /// The `animation` of the packets of a run, which is opened and repeated for it, or a sentence why there is
    /// none.
    Animation {
        /// By number.
        run: usize,
    },
    /// The columns of a table of the opened run.
    Table {
        /// Its name.
        name: String,
    },
}

/// A run that was made.
struct Made {
    flows: Rows,
    /// For the causes of differences, while there is memory.
    recording: Option<Recording>,
}

/// A loaded scenario, and its runs.
#[derive(Default)]
pub struct Session {
    /// Files by absolute path.
    pub files: BTreeMap<PathBuf, Bytes>,
    watch: Option<fn(f64) -> bool>,
    study: Option<Study>,
    made: Vec<Option<Made>>,
    frames: usize,
    judged_by: Vec<&'static str>,
    opened: Option<Opened>,
}

struct Opened {
    number: usize,
    digest: String,
    run: Run,
    audio: Vec<Audio>,
    recording: Recording,
}

impl Session {
    /// An empty one. `watch` gets the share of a run that has passed; if it returns false, the run stops.
    #[must_use]
    pub fn watched(watch: fn(f64) -> bool) -> Self {
        Self { watch: Some(watch), ..Self::default() }
    }

    /// The answer to a request.
    pub fn ask(&mut self, request: &str) -> Value {
        let request = match serde_json::from_str(request) {
            Ok(request) => request,
            Err(error) => return json!({ "failed": error.to_string() }),
        };
        let answered = match request {
            Request::Load { path, text, sets } => Ok(self.load(Path::new(&path), &text, &sets)),
            Request::Run { run } => self.run(run),
            Request::Answer => self.answer(),
            Request::Open { run } => self.open(run),
            Request::Animation { run } => self.animation(run),
            Request::Table { name } => self.table(&name),
        };
        answered.unwrap_or_else(|failed| json!({ "failed": failed }))
    }

    fn load(&mut self, path: &Path, text: &str, sets: &[(String, String)]) -> Value {
        let base = path.parent().unwrap_or(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let sample: &talkspurt_scenario::Sample<'_> =
            &|_| Err("a page cannot sample a design: use `talkspurt run`".to_owned());
        let wanted = Use { sample, ..Use::of(&self.files) };
        let study = match load_for(text, &name, base, sets, None, &wanted) {
            Ok(study) => study,
            Err(problems) => {
                let problems: Vec<_> = problems.0.iter().map(told).collect();
                return json!({ "problems": problems });
            }
        };
        let numbers = numbers(text).into_iter();
        let first = &study.points[0].scenario;
        let found = json!({
            "title": study.title,
            "description": study.description,
            "notes": study.notes,
            "axes": study.axes.iter().map(|axis| json!({
                "name": axis.name, "path": axis.path, "labels": axis.labels,
                "numbers": axis.numbers.as_ref().map(|numbers| &numbers.values),
            })).collect::<Vec<_>>(),
            "runs": study.points.iter().map(|point| json!({
                "settings": labels(point), "replicate": point.replicate,
            })).collect::<Vec<_>>(),
            "replications": study.replications,
            "confidence": study.confidence,
            "duration_s": first.duration.as_secs_f64(),
            "flows": first.alike().iter().map(|alike| alike.count()).sum::<u32>(),
            "numbers": numbers.map(|(path, line, text)| json!({
                "path": path, "line": line, "text": text,
            })).collect::<Vec<_>>(),
        });
        self.made = study.points.iter().map(|_| None).collect();
        (self.frames, self.opened) = (0, None);
        self.study = Some(study);
        found
    }

    fn point(&self, number: usize) -> Result<&Point, String> {
        let study = self.study.as_ref().ok_or("no scenario is loaded")?;
        study.points.get(number).ok_or_else(|| format!("there is no run {number}"))
    }

    fn finished(&self, point: &Point, tables: Tables) -> Result<Finished, String> {
        let scenario = &point.scenario;
        let interval = scenario.record.interval.as_secs_f64();
        let many = 2.0 * (point.network.links.len() + point.network.routes.len()) as f64;
        let bins = many * scenario.duration.as_secs_f64() / interval;
        if interval > 0.0 && bins > MAX_BINS {
            return Err(format!(
                "its series have {bins:.0} bins, more than fit a page: set `record.interval` to more \
                 than {interval} s, or use the command"
            ));
        }
        let shared = Shared { watch: self.watch, ..Shared::default() };
        run(point, &self.files, None, tables, &shared).map_err(|failure| failure.to_string())
    }

    fn run(&mut self, number: usize) -> Result<Value, String> {
        let point = self.point(number)?;
        let alone = self.made.len() == 1;
        let tables = match (alone, self.frames < MAX_FRAMES) {
            (true, _) => Tables::memory(),
            (_, true) => Tables::named(&CAUSES.map(str::to_owned)),
            _ => Tables::named(&[]),
        };
        let finished = self.finished(point, tables)?;
        let digest = finished.digest.clone();
        let flows = Rows::of(&finished.recording.table("flows").expect("every run has flows"));
        let recording = if alone {
            self.opened = Some(opened(number, point, finished));
            None
        } else {
            self.frames += finished.recording.table("frames").map_or(0, |frames| {
                frames.batches.iter().map(|batch| batch.num_rows()).sum::<usize>()
            });
            Some(finished.recording)
        };
        self.made[number] = Some(Made { flows, recording });
        Ok(json!({ "digest": digest }))
    }

    fn answer(&mut self) -> Result<Value, String> {
        let study = self.study.as_ref().ok_or("no scenario is loaded")?;
        let axes = study.axes.iter().map(|axis| Axis {
            name: axis.name.clone(),
            path: axis.path.clone(),
            labels: axis.labels.clone(),
            numeric: axis.numbers.is_some(),
            factor: axis.factor.is_some(),
        });
        let (mut runs, mut numbers, mut flows) = (Vec::new(), Vec::new(), Flows::default());
        for (number, made) in self.made.iter().enumerate() {
            let Some(made) = made else { continue };
            let point = &study.points[number];
            add(&mut flows, &made.flows, runs.len());
            numbers.push(number);
            runs.push(talkspurt_answer::Run {
                settings: labels(point),
                replicate: point.replicate,
                duration_s: point.scenario.duration.as_secs_f64(),
            });
        }
        let input = Input {
            axes: axes.collect(),
            replications: study.replications as usize,
            confidence: study.confidence,
            runs,
            flows,
        };
        let found = answer(&input, &Details { session: self, numbers: &numbers });
        let settings: Vec<_> = input.runs.iter().map(|run| run.settings.clone()).collect();
        let rows = Rows::stacked(
            numbers.iter().filter_map(|number| self.made[*number].as_ref().map(|made| &made.flows)),
        );
        let metrics = view::flow_columns(&rows, View::ReportStudyCalls, &found.judged_by);
        let names: Vec<_> = input.axes.iter().map(|axis| axis.name.clone()).collect();
        let run_of = &input.flows.run;
        let table = view::of_study(&names, &rows, &settings, run_of, &metrics, study.confidence);
        let found_json = json!({ "answer": found, "table": table });
        self.judged_by = found.judged_by;
        Ok(found_json)
    }

    /// Opens a run, if it is not open.
    fn opened(&mut self, number: usize) -> Result<&Opened, String> {
        if self.opened.as_ref().is_none_or(|opened| opened.number != number) {
            let point = self.point(number)?;
            let finished = self.finished(point, Tables::memory())?;
            self.opened = Some(opened(number, point, finished));
        }
        self.opened.as_ref().ok_or_else(|| "no run is open".to_owned())
    }

    fn open(&mut self, number: usize) -> Result<Value, String> {
        self.opened(number)?;
        let Some(Opened { digest, run, audio, .. }) = &self.opened else {
            return Err("no run is open".to_owned());
        };
        let sounds: Vec<_> = audio
            .iter()
            .map(|one| {
                json!({
                    "flow": one.flow, "rate": one.sample_rate, "channels": one.channels,
                })
            })
            .collect();
        let point = self.point(number)?;
        let network = Network::deserialize(&run.topology).map_err(|error| error.to_string())?;
        Ok(json!({
            "settings": labels(point),
            "seed": point.scenario.seed,
            "digest": digest,
            "duration_s": run.duration_s,
            "charts": view::charts(run),
            "calls": view::calls(run),
            "fates": view::FATES,
            "sounds": sounds,
            "topology": run.topology,
            "picture": view::picture(&network, &run.flows),
            "tables": {
                "calls": view::of_flows(run, View::ReportCalls, &self.judged_by),
                "flows": view::of_flows(run, View::ReportFlows, &[]),
                "links": view::of_links(run),
            },
            "resolved": to_toml(&point.scenario),
        }))
    }

    fn animation(&mut self, number: usize) -> Result<Value, String> {
        let most = self.point(number)?.scenario.record.animation.packets as usize;
        if most == 0 {
            let none = "the scenario asks for none (record.animation.packets = 0).";
            return Ok(json!({ "animation": none }));
        }
        let lossless = self.opened(number)?.run.is_lossless();
        let shared = Shared { watch: self.watch, ..Shared::default() };
        let (begins, shown) = excerpt(self.point(number)?, &self.files, lossless, &shared)
            .map_err(|failure| failure.to_string())?;
        let Run { topology, flows, .. } = &self.opened(number)?.run;
        let network = Network::deserialize(topology).map_err(|error| error.to_string())?;
        let interval_s = (shown.from.as_secs_f64(), shown.to.as_secs_f64());
        let hops = Rows::of(&shown.hops);
        Ok(json!({
            "animation": view::animation(&network, flows, &hops, interval_s, most, begins),
        }))
    }

    fn table(&self, name: &str) -> Result<Value, String> {
        let opened = self.opened.as_ref().ok_or("no run is open")?;
        let table = opened.recording.table(name).ok_or_else(|| format!("no table is {name}"))?;
        let rows = Rows::of(&table);
        let texts = rows.texts().map(|(name, texts)| (name.to_owned(), json!(texts)));
        let numbers = rows.numbers().map(|(name, numbers)| (name.to_owned(), json!(numbers)));
        Ok(Value::Object(texts.chain(numbers).collect::<Map<_, _>>()))
    }

    /// The samples of a call of the opened run, little endian: what was sent, or what was heard.
    #[must_use]
    pub fn sound(&self, number: usize, received: bool) -> Vec<u8> {
        let one = self.opened.as_ref().and_then(|opened| opened.audio.get(number));
        let samples = one.map(|one| if received { &one.received } else { &one.sent });
        samples.into_iter().flatten().flat_map(|sample| sample.to_le_bytes()).collect()
    }
}

fn opened(number: usize, point: &Point, finished: Finished) -> Opened {
    let Finished { digest, recording, audio, duration_s, .. } = finished;
    let network = topology(&point.scenario, &point.network);
    let interval_s = point.scenario.record.interval.as_secs_f64();
    let run = Run::of(&recording, network, duration_s, interval_s);
    Opened { number, digest, run, audio, recording }
}

fn told(problem: &Problem) -> Value {
    let Problem { line, path, message, hint, .. } = problem;
    json!({ "line": line, "path": path, "message": message, "hint": hint })
}

/// Quantities as numbers of their base unit.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(mut table) if table.contains_key("quantity") => {
            table.remove("value").unwrap_or_default()
        }
        Value::Object(table) => table.into_iter().map(|(key, value)| (key, plain(value))).collect(),
        Value::Array(list) => list.into_iter().map(plain).collect(),
        other => other,
    }
}

fn labels(point: &Point) -> Vec<String> {
    point.settings.iter().map(|(_, label)| label.clone()).collect()
}

/// Adds the flows of a run to those of an answer.
fn add(flows: &mut Flows, rows: &Rows, run: usize) {
    let owned = |name: &str, row| rows.text(name, row).map(str::to_owned);
    for row in 0..rows.len() {
        flows.run.push(run);
        flows.name.push(owned("name", row).unwrap_or_default());
        flows.transport.push(owned("transport", row));
        flows.group.push(owned("group", row));
        flows.quality_limits.push(owned("quality_limits", row));
        flows.quality_note.push(owned("quality_note", row));
        flows.estimate_limits.push(owned("estimate_limits", row));
        flows.stand_in.push(owned("stand_in", row));
        for name in talkspurt_answer::METRICS {
            flows.numbers.entry(name.to_owned()).or_default().push(rows.number(name, row));
        }
    }
}

/// What an answer reads of single runs.
struct Details<'a> {
    session: &'a Session,
    /// The runs of the answer, as points of the study.
    numbers: &'a [usize],
}

impl Details<'_> {
    fn point(&self, run: usize) -> Option<&Point> {
        self.session.point(*self.numbers.get(run)?).ok()
    }

    fn recording(&self, run: usize) -> Option<&Recording> {
        let number = *self.numbers.get(run)?;
        let opened = self.session.opened.as_ref().filter(|opened| opened.number == number);
        let kept = self.session.made[number].as_ref()?.recording.as_ref();
        kept.or(opened.map(|opened| &opened.recording))
    }

    /// The resolved flows and links, and the routes of each flow.
    fn resolved(&self, run: usize) -> Option<(Value, Map<String, Value>)> {
        let point = self.point(run)?.expanded();
        let told = plain(with_values(|| serde_json::to_value(&point.scenario)).ok()?);
        let routes = topology(&point.scenario, &point.network)["flows"].take();
        let routes = routes
            .as_array()?
            .iter()
            .filter_map(|flow| Some((flow["name"].as_str()?.to_owned(), flow["links"].clone())));
        Some((told, routes.collect()))
    }
}

impl Runs for Details<'_> {
    fn flow(&self, run: usize, flow: &str) -> Option<Value> {
        let (mut told, mut routes) = self.resolved(run)?;
        let mut settings = told["flows"].get_mut(flow)?.take();
        settings["routes"] = routes.get_mut(flow)?.take();
        Some(settings)
    }

    fn network(&self, run: usize) -> Option<Value> {
        let (mut told, routes) = self.resolved(run)?;
        if routes.len() > MAX_FLOWS {
            return None;
        }
        let mut flows = told["flows"].take();
        for (flow, links) in routes {
            flows[flow]["routes"] = links;
        }
        Some(json!({ "flows": flows, "links": told["links"].take() }))
    }

    fn frames(&self, run: usize, flow: &str) -> Option<Frames> {
        let (point, recording) = (self.point(run)?, self.recording(run)?);
        let rows = |name| recording.table(name).map(|table| Rows::of(&table));
        let (frames, series) = (rows("frames")?, rows("series")?);
        let (gauges, events) = (rows("gauges")?, rows("events")?);
        let base = flow.strip_suffix(".reverse").unwrap_or(flow);
        let side = if base == flow { "from" } else { "to" };
        let places = frames.by("flow").get(flow).cloned().unwrap_or_default();
        let column = |name: &str| places.iter().map(|row| frames.number(name, *row)).collect();
        let own = |rows: &Rows, column: &str, word: &str| -> Vec<usize> {
            let of_side = |row: &usize| {
                rows.text("side", *row) == Some(side) && rows.text(column, *row) == Some(word)
            };
            let its = rows.by("flow").get(base).cloned().unwrap_or_default();
            its.into_iter().filter(of_side).collect()
        };
        let gauge = |name| -> Vec<(f64, f64)> {
            let at = own(&gauges, "gauge", name).into_iter();
            at.filter_map(|row| Some((gauges.number("time_s", row)?, gauges.number("value", row)?)))
                .collect()
        };
        let made = series.by("flow").get(flow).cloned().unwrap_or_default();
        let sum = |name| made.iter().filter_map(|row| series.number(name, *row)).sum::<f64>();
        let count = sum("generated_packets");
        let opened = own(&events, "event", "connected").into_iter();
        let window = &point.scenario.measure;
        let end = window.to.unwrap_or(point.scenario.duration);
        Some(Frames {
            window: window.from.as_secs_f64()..end.as_secs_f64(),
            captured: column("captured_s"),
            handed_over: column("handed_over_s"),
            delivered: column("delivered_s"),
            playout: column("playout_s"),
            fate: places.iter().map(|row| frames.text("fate", *row).map(str::to_owned)).collect(),
            cwnd: gauge("cwnd"),
            flight: gauge("flight"),
            opened: opened.filter_map(|row| events.number("time_s", row)).reduce(f64::min),
            frame_bytes: if count > 0.0 { sum("generated_bytes") / count } else { 0.0 },
        })
    }
}
