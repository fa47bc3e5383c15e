//! What a page asks of the simulator: a scenario is loaded, its runs are made, answered for, and opened.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use talkspurt_answer::{Axis, Flows, Frames, Input, MAX_FLOWS, Runs, answer};
use talkspurt_app::codec::opus::LACKING;
use talkspurt_experiment::{Audio, Finished, Shared, excerpt, run, topology};
use talkspurt_proto::metric::View;
use talkspurt_record::{Recording, Tables};
use talkspurt_scenario::{
    Point, Problem, Study, Use, load_for, numbers, resolved, to_toml, values,
};
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
    /// Takes the runs of a results folder in place of those of a scenario.
    Results(Results),
    /// Takes tables of a run of a results folder: its flows to answer for it, all others to open it.
    Tables {
        /// By number.
        run: usize,
        /// By name.
        tables: BTreeMap<String, Rows>,
    },
    /// Makes a run: its `digest`.
    Run {
        /// By number.
        run: usize,
    },
    /// The answer of all runs that were made, and their table.
    Answer,
    /// Opens a run, with its charts, tables and calls, whose sound can then be had, and all columns of its
    /// flows and links.
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
}

/// The runs of a results folder, of one run or of a study.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    axes: Vec<Axis>,
    replications: usize,
    confidence: f64,
    runs: Vec<Told>,
}

/// What a results folder says of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    settings: Vec<String>,
    replicate: u32,
    seed: u64,
    digest: Option<String>,
    duration_s: f64,
    /// The resolved scenario.
    scenario: String,
    topology: Value,
    /// Whether it is a capture or a trace.
    imported: bool,
}

impl Told {
    /// The values of its scenario, quantities as numbers.
    fn values(&self) -> Result<Value, String> {
        values(&self.scenario).map(plain).map_err(|error| format!("scenario.toml: {error}"))
    }
}

/// Where the runs come from.
enum Source {
    Scenario(Box<Study>),
    Folder(Results),
}

impl Default for Source {
    fn default() -> Self {
        Self::Folder(Results::default())
    }
}

/// Tables of a run.
enum Tabled {
    Recorded(Box<Recording>),
    Read(BTreeMap<String, Rows>),
}

impl Tabled {
    fn rows(&self, name: &str) -> Option<Rows> {
        match self {
            Self::Recorded(recording) => recording.table(name).map(|table| Rows::of(&table)),
            Self::Read(tables) => tables.get(name).cloned(),
        }
    }
}

/// A run that was made, or read from a folder.
struct Made {
    flows: Rows,
    /// For the causes of differences, while there is memory.
    tables: Option<Tabled>,
}

/// Loaded runs: those of a scenario, or those of a results folder.
#[derive(Default)]
pub struct Session {
    /// Files by absolute path.
    pub files: BTreeMap<PathBuf, Bytes>,
    watch: Option<fn(f64) -> bool>,
    source: Source,
    made: Vec<Option<Made>>,
    frames: usize,
    judged_by: Vec<&'static str>,
    opened: Option<Opened>,
}

struct Opened {
    number: usize,
    digest: Option<String>,
    run: Run,
    audio: Vec<Audio>,
    tables: Tabled,
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
            Request::Results(results) => Ok(self.results(results)),
            Request::Tables { run, tables } => self.tables(run, tables),
            Request::Run { run } => self.run(run),
            Request::Answer => self.answer(),
            Request::Open { run } => self.open(run),
            Request::Animation { run } => self.animation(run),
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
                let needs_models = problems.0.iter().any(|it| it.message.contains(LACKING));
                let problems: Vec<_> = problems.0.iter().map(described).collect();
                return json!({ "problems": problems, "needs_models": needs_models });
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
        self.take(Source::Scenario(Box::new(study)));
        found
    }

    fn take(&mut self, source: Source) {
        let runs = match &source {
            Source::Scenario(study) => study.points.len(),
            Source::Folder(results) => results.runs.len(),
        };
        self.made = (0..runs).map(|_| None).collect();
        (self.frames, self.opened, self.source) = (0, None, source);
    }

    fn results(&mut self, results: Results) -> Value {
        self.take(Source::Folder(results));
        json!({})
    }

    fn tables(&mut self, number: usize, tables: BTreeMap<String, Rows>) -> Result<Value, String> {
        if matches!(self.source, Source::Scenario(_)) {
            return Err("no results folder is loaded".to_owned());
        }
        let made = self.made.get_mut(number).ok_or_else(|| format!("there is no run {number}"))?;
        let flows = tables.get("flows").cloned();
        let flows =
            flows.or_else(|| made.take().map(|made| made.flows)).ok_or("it has no flows")?;
        *made = Some(Made { flows, tables: Some(Tabled::Read(tables)) });
        Ok(json!({}))
    }

    fn point(&self, number: usize) -> Result<&Point, String> {
        let Source::Scenario(study) = &self.source else {
            return Err("no scenario is loaded".to_owned());
        };
        study.points.get(number).ok_or_else(|| format!("there is no run {number}"))
    }

    /// What is known of a run. Those of a scenario have groups of flows as written, or all their flows.
    fn told(&self, number: usize, all_flows: bool) -> Result<Cow<'_, Told>, String> {
        if let Source::Folder(results) = &self.source {
            let told = results.runs.get(number).map(Cow::Borrowed);
            return told.ok_or_else(|| format!("there is no run {number}"));
        }
        let point = self.point(number)?;
        let point = if all_flows { point.expanded() } else { Cow::Borrowed(point) };
        Ok(Cow::Owned(Told {
            settings: labels(&point),
            replicate: point.replicate,
            seed: point.scenario.seed,
            digest: None,
            duration_s: point.scenario.duration.as_secs_f64(),
            scenario: to_toml(&point.scenario),
            topology: topology(&point.scenario, &point.network),
            imported: false,
        }))
    }

    fn finished(&self, point: &Point, tables: Tables, is_heard: bool) -> Result<Finished, String> {
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
        run(point, &self.files, None, tables, is_heard, &shared)
            .map_err(|failure| failure.to_string())
    }

    fn run(&mut self, number: usize) -> Result<Value, String> {
        let point = self.point(number)?;
        let alone = self.made.len() == 1;
        let tables = match (alone, self.frames < MAX_FRAMES) {
            (true, _) => Tables::memory(),
            (_, true) => Tables::named(&CAUSES.map(str::to_owned)),
            _ => Tables::named(&[]),
        };
        // Of a study, a run is heard when it is opened.
        let finished = self.finished(point, tables, alone)?;
        let digest = finished.digest.clone();
        let flows = Rows::of(&finished.recording.table("flows").expect("every run has flows"));
        let kept = if alone {
            self.opened = Some(opened(number, point, finished));
            None
        } else {
            self.frames += finished.recording.table("frames").map_or(0, |frames| {
                frames.batches.iter().map(|batch| batch.num_rows()).sum::<usize>()
            });
            Some(Tabled::Recorded(Box::new(finished.recording)))
        };
        self.made[number] = Some(Made { flows, tables: kept });
        Ok(json!({ "digest": digest }))
    }

    /// What an answer is to be given to, without the runs.
    fn asked(&self) -> Input {
        let (axes, replications, confidence) = match &self.source {
            Source::Scenario(study) => {
                let axes = study.axes.iter().map(|axis| Axis {
                    name: axis.name.clone(),
                    path: axis.path.clone(),
                    labels: axis.labels.clone(),
                    numeric: axis.numbers.is_some(),
                    factor: axis.factor.is_some(),
                });
                (axes.collect(), study.replications as usize, study.confidence)
            }
            Source::Folder(Results { axes, replications, confidence, .. }) => {
                (axes.clone(), *replications, *confidence)
            }
        };
        Input { axes, replications, confidence, runs: Vec::new(), flows: Flows::default() }
    }

    fn answer(&mut self) -> Result<Value, String> {
        let (mut input, mut numbers) = (self.asked(), Vec::new());
        for (number, made) in self.made.iter().enumerate() {
            let Some(made) = made else { continue };
            add(&mut input.flows, &made.flows, input.runs.len());
            let told = self.told(number, false)?;
            let (settings, replicate) = (told.settings.clone(), told.replicate);
            let duration_s = told.duration_s;
            input.runs.push(talkspurt_answer::Run { settings, replicate, duration_s });
            numbers.push(number);
        }
        if numbers.is_empty() {
            return Err("no run was made".to_owned());
        }
        let found = answer(&input, &Details { session: self, numbers: &numbers });
        let settings: Vec<_> = input.runs.iter().map(|run| run.settings.clone()).collect();
        let rows = Rows::stacked(
            numbers.iter().filter_map(|number| self.made[*number].as_ref().map(|made| &made.flows)),
        );
        let metrics = view::flow_columns(&rows, View::ReportStudyCalls, &found.judged_by);
        let names: Vec<_> = input.axes.iter().map(|axis| axis.name.clone()).collect();
        let run_of = &input.flows.run;
        let table = view::of_study(&names, &rows, &settings, run_of, &metrics, input.confidence);
        let cautions = view::cautions(&rows);
        let found_json = json!({ "answer": found, "table": table, "cautions": cautions });
        self.judged_by = found.judged_by;
        Ok(found_json)
    }

    /// Opens a run, if it is not open.
    fn opened(&mut self, number: usize) -> Result<&Opened, String> {
        if self.opened.as_ref().is_none_or(|opened| opened.number != number) {
            self.opened = Some(if let Source::Folder(_) = &self.source {
                let told = self.told(number, false)?.into_owned();
                let tables = self.made[number].as_mut().and_then(|made| made.tables.take());
                read(number, told, tables.ok_or("its tables are not loaded")?)?
            } else {
                let point = self.point(number)?;
                opened(number, point, self.finished(point, Tables::memory(), true)?)
            });
        }
        self.opened.as_ref().ok_or_else(|| "no run is open".to_owned())
    }

    fn open(&mut self, number: usize) -> Result<Value, String> {
        self.opened(number)?;
        let Some(Opened { digest, run, audio, tables, .. }) = &self.opened else {
            return Err("no run is open".to_owned());
        };
        let told = self.told(number, false)?;
        let sounds: Vec<_> = audio
            .iter()
            .map(|one| {
                json!({
                    "flow": one.flow, "rate": one.sample_rate, "channels": one.channels,
                })
            })
            .collect();
        let network = Network::deserialize(&run.told.topology).ok();
        Ok(json!({
            "settings": told.settings,
            "seed": told.seed,
            "digest": digest,
            "duration_s": run.told.duration_s,
            "charts": view::charts(run),
            "calls": view::calls(run),
            "fates": view::FATES,
            "sounds": sounds,
            "topology": run.told.topology,
            "picture": network.map(|network| view::picture(&network, &run.flows)),
            "tables": {
                "calls": view::of_flows(run, View::ReportCalls, &self.judged_by),
                "flows": view::of_flows(run, View::ReportFlows, &[]),
                "links": view::of_links(run),
            },
            "columns": {
                "flows": columns(&tables.rows("flows").unwrap_or_default()),
                "links": columns(&tables.rows("links").unwrap_or_default()),
            },
            "resolved": told.scenario,
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
        let Run { told, flows, .. } = &self.opened(number)?.run;
        let network = Network::deserialize(&told.topology).map_err(|error| error.to_string())?;
        let interval_s = (shown.from.as_secs_f64(), shown.to.as_secs_f64());
        let hops = Rows::of(&shown.hops);
        Ok(json!({
            "animation": view::animation(&network, flows, &hops, interval_s, most, begins),
        }))
    }

    /// The samples of a call of the opened run, little endian: what was sent, or what was heard.
    #[must_use]
    pub fn sound(&self, number: usize, received: bool) -> Vec<u8> {
        let one = self.opened.as_ref().and_then(|opened| opened.audio.get(number));
        let samples = one.map(|one| if received { &one.received } else { &one.sent });
        samples.into_iter().flatten().flat_map(|sample| sample.to_le_bytes()).collect()
    }
}

fn columns(rows: &Rows) -> Value {
    let texts = rows.texts().map(|(name, texts)| (name.to_owned(), json!(texts)));
    let numbers = rows.numbers().map(|(name, numbers)| (name.to_owned(), json!(numbers)));
    Value::Object(texts.chain(numbers).collect())
}

fn opened(number: usize, point: &Point, finished: Finished) -> Opened {
    let Finished { digest, recording, audio, duration_s, .. } = finished;
    let told = view::Told {
        topology: topology(&point.scenario, &point.network),
        duration_s,
        interval_s: point.scenario.record.interval.as_secs_f64(),
        flows: point.scenario.expanded().into_owned().flows,
        ..view::Told::default()
    };
    let tables = Tabled::Recorded(Box::new(recording));
    let run = Run::of(|name| tables.rows(name).unwrap_or_default(), told);
    Opened { number, digest: Some(digest), run, audio, tables }
}

/// A run of a results folder, whose sound is in files of the page.
fn read(number: usize, told: Told, tables: Tabled) -> Result<Opened, String> {
    let scenario = resolved(&told.scenario);
    let known = view::Told {
        interval_s: told.values()?["record"]["interval"].as_f64().unwrap_or_default(),
        topology: told.topology,
        duration_s: told.duration_s,
        flows: scenario.map(|it| it.expanded().into_owned().flows).unwrap_or_default(),
        imported: told.imported,
        ..view::Told::default()
    };
    let run = Run::of(|name| tables.rows(name).unwrap_or_default(), known);
    Ok(Opened { number, digest: told.digest, run, audio: Vec::new(), tables })
}

fn described(problem: &Problem) -> Value {
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
    fn tables(&self, run: usize) -> Option<&Tabled> {
        let number = *self.numbers.get(run)?;
        let opened = self.session.opened.as_ref().filter(|opened| opened.number == number);
        let kept = self.session.made[number].as_ref()?.tables.as_ref();
        kept.or(opened.map(|opened| &opened.tables))
    }

    fn told(&self, run: usize) -> Option<Cow<'_, Told>> {
        self.session.told(*self.numbers.get(run)?, true).ok()
    }

    /// The resolved flows and links, and the routes of each flow.
    fn resolved(&self, run: usize) -> Option<(Value, Map<String, Value>)> {
        let told = self.told(run)?;
        let routes = told.topology["flows"].as_array()?.iter();
        let routes = routes
            .filter_map(|flow| Some((flow["name"].as_str()?.to_owned(), flow["links"].clone())));
        Some((told.values().ok()?, routes.collect()))
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
            if flows[&flow].is_null() {
                // Packets of a program in an emulation are equal only to themselves.
                flows[&flow] = json!({ "program": flow });
            }
            flows[flow]["routes"] = links;
        }
        Some(json!({ "flows": flows, "links": told["links"].take() }))
    }

    fn frames(&self, run: usize, flow: &str) -> Option<Frames> {
        let tables = self.tables(run)?;
        let rows = |name| tables.rows(name);
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
        let told = self.told(run)?;
        let values = told.values().ok()?;
        let measure = |key: &str| values["measure"][key].as_f64();
        let window = measure("from").unwrap_or(0.0)..measure("to").unwrap_or(told.duration_s);
        Some(Frames {
            window,
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
