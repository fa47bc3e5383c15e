//! From text to runs: parse, change, expand, check; all errors at once.
//!
//! The order is: TOML → shapes → `--set` → axes → for each combination its shape, types, and meaning. A
//! finding shared by several combinations is reported once; if only some have it, they are named.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use talkspurt_app::file::{Disk, Files};
use talkspurt_proto::units::Rate;

use crate::association;
use crate::axes::ResolvedAxis;
use crate::check;
use crate::design::{ResolvedDesign, Sample};
use crate::expand;
use crate::link_profile;
use crate::model::{Flow, Replications, Scenario, Source, Trace, Transport};
use crate::network::Network;
use crate::path::{Origin, Path};
use crate::problem::{Finding, Findings, Problem, Problems, clip};
use crate::schema;
use crate::set;
use crate::shapes::{self, Shape};
use crate::tree::{Tree, Value};
use crate::variation::{self, Variation};
use crate::words::list;

/// Default limit of the send queue of video before a pacer: two seconds of 6 Mbit/s in packets of 1200 bytes,
/// the longest that libwebrtc's pacer holds.
const PACED_PACKETS: u32 = 1250;
/// Runs of one study, at most: more do not fit in memory as whole scenarios.
const MAX_RUNS: usize = 100_000;

/// Maximum length of a scenario's text: thousands of flows with every default written out.
const MAX_TEXT: usize = 16 << 20;
/// Problems that are reported; further ones are counted.
const MAX_TOLD: usize = 40;
/// Maximum shape errors for which the meaning of the rest is still checked.
const MAX_MENDED: usize = 200;
/// The rate of a link that has none because of another problem, so that only that one is reported.
const ANY_RATE: Rate = Rate::from_bps(10_000_000);
/// The tables that say what varies.
const VARIED: [&str; 2] = ["axes", "design"];
/// Findings after which no further combinations of the axes are checked.
const MAX_BAD: usize = 1_000;

/// A scenario file with all its runs.
#[derive(Clone, Debug)]
pub struct Study {
    /// One line for tables and reports.
    pub title: String,
    /// Its description, in Markdown.
    pub description: String,
    /// The axes, the slowest first, then the factors of the design.
    pub axes: Vec<ResolvedAxis>,
    /// The design whose points are run for each combination of the axes.
    pub design: Option<ResolvedDesign>,
    /// Replications of every combination.
    pub replications: u32,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// How files were read where that may surprise, such as columns that were not read.
    pub notes: Vec<String>,
    /// The runs: axes vary slowest first, then the points of the design, replications fastest.
    pub points: Vec<Point>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Point {
    /// Axis name and label of its value in this run.
    pub settings: Vec<(String, String)>,
    /// The replication, from 0.
    pub replicate: u32,
    /// The scenario to run: with the seed of the replication, no axes, absolute paths of recordings, and
    /// groups of flows as written.
    pub scenario: Scenario,
    /// Its network, shared by the replications.
    pub network: Arc<Network>,
}

impl Point {
    /// The seed of a replication, if this is the first.
    #[must_use]
    pub fn seed(&self, replicate: u32) -> u64 {
        self.scenario.seed + u64::from(replicate)
    }

    /// A replication, if this is the first.
    #[must_use]
    pub fn replicated(&self, replicate: u32) -> Self {
        let mut point = Self { replicate, ..self.clone() };
        point.scenario.seed = self.seed(replicate);
        point
    }

    /// The run with every member of its groups as a flow, as the engine needs it.
    #[must_use]
    pub fn expanded(&self) -> Cow<'_, Self> {
        match self.scenario.expanded() {
            Cow::Borrowed(_) => Cow::Borrowed(self),
            Cow::Owned(scenario) => Cow::Owned(Self {
                settings: self.settings.clone(),
                replicate: self.replicate,
                scenario,
                network: Arc::clone(&self.network),
            }),
        }
    }
}

/// Reads a scenario whose files are on disk.
///
/// `name` identifies the text in messages (its file name), `base` is the folder for relative paths of
/// recordings, `sets` are pairs of path and value that change single fields, and `seed` replaces the
/// scenario's own.
///
/// # Errors
/// All problems, each with its line where the text has one.
pub fn load(
    text: &str,
    name: &str,
    base: &FilePath,
    sets: &[(String, String)],
    seed: Option<u64>,
) -> Result<Study, Problems> {
    load_for(text, name, base, sets, seed, &Use::of(&Disk))
}

/// What a scenario is read for.
#[derive(Clone, Copy)]
pub struct Use<'a> {
    /// Where the files are that the scenario names.
    pub files: &'a dyn Files,
    /// Samples designs.
    pub sample: &'a Sample<'a>,
    /// Cancels the reading when it returns true.
    pub stopped: &'a dyn Fn() -> bool,
    /// Whether runs record series, so that their bins must fit memory.
    pub series: bool,
    /// Whether programs run at nodes, so that the scenario needs no flow of its own.
    pub hosts: bool,
}

impl<'a> Use<'a> {
    /// One run with series, of flows, with these files.
    #[must_use]
    pub fn of(files: &'a dyn Files) -> Self {
        let sample: &Sample<'_> = &|_| {
            Err("a design is sampled in Python: use talkspurt.run or `talkspurt run`".to_owned())
        };
        Self { files, sample, stopped: &|| false, series: true, hosts: false }
    }
}

/// Like [`load`], but for this use.
///
/// # Errors
/// Like [`load`]; the problems found before cancellation.
pub fn load_for(
    text: &str,
    name: &str,
    base: &FilePath,
    sets: &[(String, String)],
    seed: Option<u64>,
    wanted: &Use<'_>,
) -> Result<Study, Problems> {
    let shape = Shape::None;
    let schema = schema::cached();
    let mut reader = Reader { name, base, sets, schema, shape, wanted };
    if text.len() > MAX_TEXT {
        let mut found = Findings::default();
        let length = text.len();
        let message = format!("has {length} bytes; at most {MAX_TEXT} are read as a scenario");
        found.add(Path::default(), message);
        return Err(reader.problems(
            found,
            &Tree::text("", &Origin::default()),
            &Variation::default(),
        ));
    }
    let mut tree = Tree::parse(text).map_err(|found| {
        reader.problems(found, &Tree::text("", &Origin::default()), &Variation::default())
    })?;
    let mut found = Findings::default();
    if wanted.hosts && tree.key("flows").is_none() {
        let (value, origin) = (Value::Table(indexmap::IndexMap::new()), Origin::default());
        tree.put(&Path::of(&["flows"]), Tree { value, origin });
    }
    let run = tree.key("duration").and_then(set::duration);
    set::apply(reader.schema, &mut tree, sets, set::shapes, &mut found);
    reader.shape = shapes::expand(reader.schema, &mut tree, &mut found);
    let reached = set::apply(reader.schema, &mut tree, sets, |path| !set::shapes(path), &mut found);
    set::keep_window(run, &mut tree, sets);
    if let Some(seed) = seed {
        let value = Value::Integer(seed.into());
        tree.put(&Path::of(&["seed"]), Tree { value, origin: Origin::default() });
    }
    variation::leave_groups(&mut tree);
    let variation = reader.variation(&tree, &reached, &mut found);
    // Each combination copies the tree, so leave out the values of all axes.
    let mut bare = tree.clone();
    for table in VARIED {
        bare.take(&Path::of(&[table]));
    }
    let combinations = reader.combinations(&bare, &variation, &mut found);
    if !found.0.is_empty() {
        return Err(reader.problems(found, &tree, &variation));
    }
    Ok(study(variation, combinations, found.2))
}

/// Resolves a scenario of one run whose parts are values of a program.
///
/// # Errors
/// All problems, without lines.
pub fn resolve(scenario: &serde_json::Value, files: &dyn Files) -> Result<Point, Problems> {
    let (schema, shape) = (schema::cached(), Shape::None);
    let base = FilePath::new(".");
    let reader = Reader { name: "", base, sets: &[], schema, shape, wanted: &Use::of(files) };
    let (tree, mut found) = (Tree::of(scenario), Findings::default());
    let one = reader.one(&tree, &mut found);
    let (scenario, network) =
        one.ok_or_else(|| reader.problems(found, &tree, &Variation::default()))?;
    Ok(Point { settings: Vec::new(), replicate: 0, scenario, network })
}

/// One checked combination of the axes' values.
struct Combination {
    settings: Vec<(String, String)>,
    scenario: Scenario,
    network: Arc<Network>,
}

struct Reader<'a> {
    name: &'a str,
    base: &'a FilePath,
    sets: &'a [(String, String)],
    schema: &'a serde_json::Value,
    shape: Shape,
    wanted: &'a Use<'a>,
}

impl Reader<'_> {
    fn variation(&self, tree: &Tree, reached: &[Vec<Path>], found: &mut Findings) -> Variation {
        let whole = found.0.len();
        for table in VARIED {
            if let Some(written) = tree.key(table) {
                let shape = &self.schema["properties"][table];
                check::shape::check(shape, written, &Path::of(&[table]), found);
            }
        }
        if found.0.len() > whole {
            return Variation::default();
        }
        let variation = variation::read(self.schema, tree, self.wanted.sample, found);
        for (number, fields) in reached.iter().enumerate() {
            let table =
                |field: &Path| variation.fields().find(|(f, _)| f.holds(field)).map(|(_, t)| t);
            let undone = fields.iter().find_map(|field| Some((field, table(field)?)));
            if let Some((field, table)) = undone {
                let origin = Origin { set: Some(number), ..Origin::default() };
                let is_axis = Path::of(&["axes"]).holds(table);
                let (what, hint) = if is_axis {
                    (
                        "an axis",
                        "the axis: --set 'axes.0.values=[…]', or --set 'axes=[]'".to_owned(),
                    )
                } else {
                    ("the design", format!("the factor: --set '{table}.max=…'"))
                };
                found
                    .add(
                        field.clone(),
                        format!("{what} varies this field, which would undo the change"),
                    )
                    .hint(format!("change {hint}"))
                    .at(&origin);
            }
        }
        if found.0.len() > whole { Variation::default() } else { variation }
    }

    fn combinations(
        &self,
        tree: &Tree,
        variation: &Variation,
        found: &mut Findings,
    ) -> Vec<Combination> {
        let count = variation.count();
        if count > MAX_RUNS {
            let (table, what) = match &variation.design {
                None => ("axes", "the axes make"),
                Some(_) => ("design", "the axes and the points of the design make"),
            };
            let message = format!("{what} {count} combinations; at most {MAX_RUNS} are run");
            found.add(Path::of(&[table]), message);
            return Vec::new();
        }
        let mut good = Vec::new();
        let mut bad: Vec<(Finding, usize, String)> = Vec::new();
        let mut places: BTreeMap<Same, usize> = BTreeMap::new();
        let designed = variation.design.is_some();
        let mut tried = 0;
        for number in 0..count {
            if bad.len() > MAX_BAD {
                break;
            }
            if (self.wanted.stopped)() {
                found.add(Path::default(), "stopped while it was read");
                return Vec::new();
            }
            tried += 1;
            let mut here = Findings::default();
            let (settings, mut tree) = variation.combination(tree, number, &mut here);
            let mut rateless = self.rates_of_traces(&mut tree);
            let one = self.one(&tree, &mut here);
            here.0.append(&mut rateless);
            for note in std::mem::take(&mut here.2).into_iter().filter(|_| one.is_some()) {
                if !found.2.contains(&note) {
                    found.2.push(note);
                }
            }
            self.shape.tell(&mut here);
            if let Some((scenario, network)) = one {
                good.push(Combination { settings: settings.clone(), scenario, network });
            }
            found.1 = found.1.max(here.1);
            for finding in here.0 {
                let place = *places.entry(same(&finding, designed)).or_insert(bad.len());
                match bad.get_mut(place) {
                    Some((_, times, _)) => *times += 1,
                    None => bad.push((finding, 1, told(&settings))),
                }
            }
        }
        for (mut finding, times, settings) in bad {
            let from_axis = finding.origin.as_ref().is_some_and(|o| o.axis.is_some());
            if times < tried && !from_axis {
                let when = match designed {
                    true => format!(" (at {times} of {tried} points, such as {settings})"),
                    false => format!(" (when {settings})"),
                };
                finding.message.push_str(&when);
            }
            found.0.push(finding);
        }
        let runs = good.first().map_or(0, |c| c.scenario.replications.count as usize) * count;
        if runs > MAX_RUNS {
            let message = format!("{runs} runs in all; at most {MAX_RUNS} are run");
            found.add(Path::of(&["replications", "count"]), message);
        }
        good
    }

    /// Sets the rate of links that have only a trace; returns those whose trace has none.
    fn rates_of_traces(&self, tree: &mut Tree) -> Vec<Finding> {
        let mut lacking = Vec::new();
        let Some(links) = tree.key("links") else { return lacking };
        let mut rates = Vec::new();
        for name in links.keys() {
            let Some(link) = links.key(name).filter(|link| link.key("rate").is_none()) else {
                continue;
            };
            let Some(written) = link.key("trace") else { continue };
            let path = Path::of(&["links", name, "rate"]);
            let read = serde_json::from_value(written.json()).ok().and_then(|mut trace: Trace| {
                let file = &mut trace.file_mut().file;
                *file = self.absolute(file);
                link_profile::rate(&trace, self.wanted.files).ok()
            });
            let rate = match read {
                Some(Some(rate)) => rate,
                Some(None) => {
                    let message = "missing, and the trace has no rate above zero".to_owned();
                    let mut finding = Finding::new(path.clone(), message);
                    finding.hint("give the link a `rate`".to_owned()).at(&link.origin);
                    lacking.push(finding);
                    ANY_RATE
                }
                // The checks of the trace say why: a missing rate is only a consequence.
                None => ANY_RATE,
            };
            rates.push((path, Tree::text(&format!("{}bit/s", rate.as_bps()), &written.origin)));
        }
        for (path, rate) in rates {
            tree.put(&path, rate);
        }
        lacking
    }

    /// Checks one combination; findings carry their origin.
    fn one(&self, tree: &Tree, found: &mut Findings) -> Option<(Scenario, Arc<Network>)> {
        check::shape::check(self.schema, tree, &Path::default(), found);
        let none = tree.key("links").is_none() && tree.key("cells").is_none();
        if matches!(self.shape, Shape::None) && none {
            let message = "missing (links by name, a `topology` that makes them, or `cells`)";
            found.add(Path::of(&["links"]), message).at(&tree.origin);
        }
        if matches!(self.shape, Shape::Broken) {
            return None; // its problems were reported; the network is unknown
        }
        if found.0.len() > MAX_MENDED {
            return None;
        }
        let taken: Vec<Path> = found.0.iter().map(|finding| finding.path.clone()).collect();
        let mended;
        let tree = if found.0.is_empty() {
            tree
        } else {
            mended = without(tree, found)?;
            &mended
        };
        let mut scenario: Scenario = match serde_json::from_value(tree.json()) {
            Ok(scenario) => scenario,
            Err(_) if !found.0.is_empty() => return None,
            Err(fault) => {
                let message = format!("the schema allows what the reader does not: {fault}");
                let hint = "this is an error in talkspurt; please report it".to_owned();
                found.add(Path::default(), message).hint(hint).at(&tree.origin);
                return None;
            }
        };
        // Members of an association or a session are completed when they have its settings.
        let alone = |flow: &&mut Flow| flow.within().is_none();
        scenario.flows.values_mut().filter(alone).for_each(|flow| self.complete(flow));
        for link in scenario.links.values_mut() {
            let back = link.back.iter_mut().filter_map(|back| back.trace.as_mut());
            for trace in link.trace.iter_mut().chain(back) {
                let file = &mut trace.file_mut().file;
                *file = self.absolute(file);
            }
        }
        let mut expanded = Findings::default();
        let (mut checked, written, counts) = expand::checked(&scenario, &mut expanded);
        association::adopt(&mut checked, tree, &written, &mut expanded);
        association::join(&mut checked, &mut expanded);
        association::couple(&checked, &mut expanded);
        let rest = checked.flows.values_mut().filter(|flow| !alone(flow));
        rest.for_each(|flow| self.complete(flow));
        let Use { files, series, hosts, .. } = *self.wanted;
        let (mut network, mut wrong) = check::meaning(&checked, files, series, hosts);
        wrong.0.splice(0..0, expanded.0);
        written.restore(&mut wrong);
        // What is missing may be a field that was removed: it was reported.
        wrong.0.retain(|finding| !taken.iter().any(|field| finding.follows_from(field)));
        for mut finding in wrong.0 {
            finding.origin.get_or_insert_with(|| tree.origin_of(&finding.path).clone());
            found.0.push(finding);
        }
        found.2.append(&mut wrong.2);
        if !found.0.is_empty() {
            return None;
        }
        let routes = network.routes.into_iter().zip(counts);
        network.routes =
            routes.flat_map(|(paths, count)| iter::repeat_n(paths, count as usize)).collect();
        expand::keep_adopted(&mut scenario, checked);
        for flow in scenario.flows.values_mut() {
            flow.playout = flow.playout.with_defaults();
            for source in iter::once(&mut flow.source).chain(&mut flow.reverse) {
                if let talkspurt_app::source::Config::Speech(speech) = source {
                    speech.name_stand_in();
                }
            }
        }
        Some((scenario, Arc::new(network)))
    }

    /// Fills in what depends on other fields, and makes paths absolute.
    fn complete(&self, flow: &mut Flow) {
        let is_paced = flow.controller.is_some() && matches!(flow.transport, Transport::Udp(_));
        let waiting = match &flow.source {
            // The pacer's, which holds no speech.
            Source::Video(_) | Source::Replay(_) if is_paced => PACED_PACKETS,
            // Its encoder skips frames while the queue takes too long.
            Source::Video(video) if video.repair.is_some() => PACED_PACKETS,
            _ => flow.transport.waiting_packets(),
        };
        flow.send_queue.packets.get_or_insert(waiting);
        let sources = iter::once(&mut flow.source).chain(flow.reverse.as_mut());
        for source in sources {
            if let Some(file) = source.file_mut() {
                *file = self.absolute(file);
            }
        }
    }

    /// An absolute path of a recording or trace.
    fn absolute(&self, file: &FilePath) -> PathBuf {
        self.wanted.files.absolute(&self.base.join(file))
    }

    /// Adds the location to each finding, in file order.
    fn problems(&self, found: Findings, tree: &Tree, variation: &Variation) -> Problems {
        let mut problems: Vec<Problem> = Vec::new();
        let mut known: BTreeSet<Problem> = BTreeSet::new();
        let more = found.1;
        for finding in found.0 {
            let origin =
                finding.origin.clone().unwrap_or_else(|| tree.origin_of(&finding.path).clone());
            let mut problem = finding.placeless();
            problem.file = match origin.set.and_then(|number| self.sets.get(number)) {
                Some((path, value)) => clip(format!("--set {path}={value}"), 120),
                None => self.name.to_owned(),
            };
            problem.line = origin.line;
            if let Some((axis, value)) = origin.axis {
                let axis = variation.axes.get(axis).map_or("", |axis| &axis.shown.name);
                problem.message =
                    format!("value {} of axis {axis:?}: {}", value + 1, problem.message);
            }
            if known.insert(problem.clone()) {
                problems.push(problem);
            }
        }
        problems.sort_by_key(|problem| (problem.line.is_none(), problem.line));
        let more = more + problems.len().saturating_sub(MAX_TOLD);
        if more > 0 {
            problems.truncate(MAX_TOLD);
            let rest = Finding::new(Path::default(), format!("and {more} more problems"));
            problems.push(Problem { file: self.name.to_owned(), ..rest.placeless() });
        }
        Problems(problems)
    }
}

/// The tree without the fields of invalid shape, so that the meaning of the others can still be checked;
/// `None` if a whole node, link or flow would be removed.
fn without(tree: &Tree, found: &Findings) -> Option<Tree> {
    let whole = |finding: &Finding| {
        finding.path.0.len() <= 2
            && ["nodes", "links", "flows"].iter().any(|t| Path::of(&[t]).holds(&finding.path))
    };
    if found.0.iter().any(whole) {
        return None;
    }
    let mut mended = tree.clone();
    // In reverse, so that list indices stay valid.
    for finding in found.0.iter().rev() {
        mended.take(&finding.path);
    }
    Some(mended)
}

/// Identity of a problem: the field or, for an axis value, the value wherever it was applied. Problems of
/// values sampled for one field are one problem, though each names its value; at the points of a design, so
/// are problems of other fields that differ in numbers only.
type Same = (String, Option<Origin>, Option<Path>);

fn same(finding: &Finding, designed: bool) -> Same {
    let from_axis = finding.origin.as_ref().is_some_and(|o| o.axis.is_some());
    let path = (!from_axis).then(|| finding.path.clone());
    let sampled = finding.origin.as_ref().is_some_and(|o| o.sampled);
    let mut message = if sampled { String::new() } else { finding.message.clone() };
    if designed {
        message.retain(|letter| !letter.is_ascii_digit() && letter != '.');
    }
    (message, finding.origin.clone(), path)
}

fn told(settings: &[(String, String)]) -> String {
    let words: Vec<String> =
        settings.iter().map(|(axis, label)| format!("{axis} = {label}")).collect();
    list(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn study(variation: Variation, combinations: Vec<Combination>, notes: Vec<String>) -> Study {
    let first = &combinations[0].scenario;
    let Replications { count, confidence } = first.replications;
    let (title, description) = (first.title.clone(), first.description.clone());
    let mut points = Vec::with_capacity(combinations.len() * count as usize);
    for Combination { settings, mut scenario, network } in combinations {
        scenario.replications = Replications { count: 1, confidence };
        let first = Point { settings, replicate: 0, scenario, network };
        points.extend((0..count).map(|replicate| first.replicated(replicate)));
    }
    let axes = variation.axes.into_iter().map(|axis| axis.shown).collect();
    let design = variation.design.map(|(_, design)| design);
    Study { title, description, axes, design, replications: count, confidence, notes, points }
}
