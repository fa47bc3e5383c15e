//! Groups of flows: `count = 500` makes 500 flows like one, `call-1` to `call-500`.
//!
//! A scenario keeps its groups as written. The checks look at one member of a group whose members differ only
//! in their names; the engine gets all flows by [`Scenario::expanded`]. A flow named like a member, with the
//! group's name in `group`, replaces that member. A finding in several members is reported once, for the
//! group as written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use indexmap::IndexMap;

use crate::model::{Flow, Scenario, Transport};
use crate::path::{Path, Step};
use crate::problem::Findings;
use crate::tree::{Tree, Value};

/// Flows of one `count`, at most: more than the schedule has slots for.
const MOST: u32 = 131_072;

/// Flows that differ only in their names.
pub struct Alike<'a> {
    /// The name as written: of the flow, or of its group.
    name: &'a str,
    /// The numbers of the members; `None` for a flow outside groups.
    numbers: Option<RangeInclusive<u32>>,
    /// One of the flows.
    pub flow: Cow<'a, Flow>,
}

impl Alike<'_> {
    /// Number of flows.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.numbers.as_ref().map_or(1, |numbers| numbers.end() - numbers.start() + 1)
    }

    /// The name of the group and the numbers of the members, for flows of a group.
    #[must_use]
    pub fn members(&self) -> Option<(&str, RangeInclusive<u32>)> {
        Some((self.name, self.numbers.clone()?))
    }

    /// The names of the flows.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let single = self.numbers.is_none().then(|| self.name.to_owned());
        let numbers = self.numbers.clone().into_iter().flatten();
        single.into_iter().chain(numbers.map(|number| member(self.name, number)))
    }
}

impl Scenario {
    /// All flows in order, those of a group together as far as they differ only in their names.
    #[must_use]
    pub fn alike(&self) -> Vec<Alike<'_>> {
        let mut own: BTreeMap<&str, BTreeMap<u32, &Flow>> = BTreeMap::new();
        for (name, flow) in &self.flows {
            if let Some((group, number)) = replaces(&self.flows, name, flow) {
                own.entry(group).or_default().insert(number, flow);
            }
        }
        let mut all = Vec::with_capacity(self.flows.len());
        for (name, flow) in &self.flows {
            match flow.count {
                None if replaces(&self.flows, name, flow).is_some() => {}
                None => all.push(Alike { name, numbers: None, flow: Cow::Borrowed(flow) }),
                // Reported by the checks.
                Some(0 | MOST..) => {
                    all.push(Alike { name, numbers: None, flow: Cow::Borrowed(flow) });
                }
                Some(count) => {
                    let own = own.remove(name.as_str()).unwrap_or_default();
                    group(name, flow, count, &own, &mut all);
                }
            }
        }
        all
    }

    /// The scenario with every member of its groups as a flow.
    #[must_use]
    pub fn expanded(&self) -> Cow<'_, Self> {
        if self.flows.values().all(|flow| flow.count.is_none()) {
            return Cow::Borrowed(self);
        }
        let mut flows = IndexMap::with_capacity(self.flow_count());
        for alike in self.alike() {
            flows.extend(alike.names().map(|name| (name, alike.flow.clone().into_owned())));
        }
        Cow::Owned(Self { flows, ..self.clone() })
    }

    /// Number of flows, members of groups included.
    #[must_use]
    pub fn flow_count(&self) -> usize {
        self.alike().iter().map(|alike| alike.count() as usize).sum()
    }
}

/// The members of a group, of which some have a table of their `own`.
fn group<'a>(
    name: &'a str,
    flow: &'a Flow,
    count: u32,
    own: &BTreeMap<u32, &'a Flow>,
    all: &mut Vec<Alike<'a>>,
) {
    let most = if varies(flow) { 1 } else { count };
    let mut first = 1;
    while first <= count {
        let (last, flow) = match own.get(&first) {
            Some(flow) => (first, Cow::Borrowed(*flow)),
            None => {
                let next = own.range(first..).next().map_or(count + 1, |(number, _)| *number);
                let one = Flow { count: None, group: Some(name.to_owned()), ..flow.clone() };
                ((next - 1).min(first + most - 1), Cow::Owned(numbered(one, first)))
            }
        };
        all.push(Alike { name, numbers: Some(first..=last), flow });
        first = last + 1;
    }
}

fn member(group: &str, number: u32) -> String {
    format!("{group}-{number}")
}

/// The group and the number of the member with this name.
fn split(name: &str) -> Option<(&str, u32)> {
    let (group, number) = name.rsplit_once('-')?;
    let number: u32 = number.parse().ok()?;
    (number > 0 && member(group, number) == name).then_some((group, number))
}

/// The group and the number of the member that a flow replaces.
fn replaces<'a>(
    flows: &IndexMap<String, Flow>,
    name: &'a str,
    flow: &Flow,
) -> Option<(&'a str, u32)> {
    let (group, number) = split(name)?;
    let is_member = flow.count.is_none() && flow.group.as_deref() == Some(group);
    let count = flows.get(group).filter(|_| is_member)?.count?;
    (number <= count).then_some((group, number))
}

/// The names in a flow that may contain a `*`: of its nodes, and of the flows that it shares something with.
fn names_of_nodes(flow: &mut Flow) -> impl Iterator<Item = &mut String> {
    let owner = match &mut flow.transport {
        Transport::Sctp(sctp) => sctp.association.as_mut(),
        _ => None,
    };
    let ways = flow.via.iter_mut().chain(&mut flow.paths).flatten();
    let others = owner.into_iter().chain(&mut flow.session).chain(&mut flow.coupled);
    [&mut flow.from, &mut flow.to].into_iter().chain(ways).chain(others)
}

/// Whether the members of a group differ in more than their names.
fn varies(flow: &Flow) -> bool {
    let owner = flow.within().into_iter().chain(flow.coupled.as_deref());
    let ways = flow.via.iter().chain(&flow.paths).flatten().map(String::as_str);
    ways.chain([flow.from.as_str(), &flow.to]).chain(owner).any(|name| name.contains('*'))
}

/// The flow with its number for every `*`.
fn numbered(mut flow: Flow, number: u32) -> Flow {
    for name in names_of_nodes(&mut flow).filter(|name| name.contains('*')) {
        *name = name.replace('*', &number.to_string());
    }
    flow
}

/// Names as written, by expanded name.
pub(crate) struct Written(BTreeMap<String, String>);

/// The flows to check, each of which stands for as many as its `count` says, and those numbers in order.
///
/// Members of an association or a session are checked one by one, as they refer to each other by name.
pub(crate) fn checked(scenario: &Scenario, found: &mut Findings) -> (Scenario, Written, Vec<u32>) {
    for (name, flow) in &scenario.flows {
        let Some(count) = flow.count else { continue };
        let path = Path::of(&["flows", name, "count"]);
        if count == 0 || count >= MOST {
            let message = format!("{count} flows: at least 1, and fewer than {MOST}");
            found.add(path, message);
            continue;
        }
        let taken = |other: &&String| split(other).is_some_and(|it| it.0 == name && it.1 <= count);
        for own in scenario.flows.keys().filter(taken) {
            if replaces(&scenario.flows, own, &scenario.flows[own]).is_none() {
                let message = format!("makes a flow {own:?}, and there is one of that name");
                found.add(path.clone(), message);
            }
        }
    }
    let shared = scenario.flows.values().any(|flow| flow.within().is_some());
    let (mut flows, mut counts) = (IndexMap::new(), Vec::new());
    let mut written = BTreeMap::new();
    for alike in scenario.alike() {
        // Names of members are as long as the last one's.
        let names = alike.names().skip(if shared { 0 } else { alike.count() as usize - 1 });
        for own in names {
            if alike.numbers.is_some() && !scenario.flows.contains_key(&own) {
                written.insert(own.clone(), alike.name.to_owned());
            }
            let count = if shared { 1 } else { alike.count() };
            let flow = alike.flow.clone().into_owned();
            flows.insert(own, Flow { count: Some(count).filter(|it| *it > 1), ..flow });
            counts.push(count);
        }
    }
    let scenario = Scenario { flows, ..scenario.clone() };
    (scenario, Written(written), counts)
}

/// Takes over the members of associations and sessions, which have adopted their settings; then each is a flow
/// of its own.
pub(crate) fn keep_adopted(scenario: &mut Scenario, checked: Scenario) {
    if scenario.flows.values().any(|flow| flow.within().is_some()) {
        scenario.flows = checked.flows;
    }
}

/// Gives the member of a group that a path names a table of its own, in which it can differ from the others.
pub(crate) fn leave(tree: &mut Tree, path: &str) {
    let Some(path) = Path::parse(path) else { return };
    let [Step::Key(table), Step::Key(name), ..] = &path.0[..] else { return };
    let Some(flows) = tree.key("flows").filter(|_| table == "flows") else { return };
    let Some((group, number)) = split(name).filter(|_| flows.key(name).is_none()) else { return };
    let Some(written) = flows.key(group) else { return };
    let count = written.key("count").map(|count| &count.value);
    if !matches!(count, Some(Value::Integer(count)) if (i128::from(number)..i128::from(MOST)).contains(count))
    {
        return;
    }
    let mut own = written.clone();
    own.take(&Path::of(&["count"]));
    let origin = own.origin.clone();
    own.put(&Path::of(&["group"]), Tree::text(group, &origin));
    let fields = [
        &["from"][..],
        &["to"],
        &["via"],
        &["paths"],
        &["session"],
        &["coupled"],
        &["transport", "association"],
    ];
    for field in fields {
        if let Some(field) = own.at_mut(&Path::of(field)) {
            number_names(field, number);
        }
    }
    tree.put(&Path::of(&["flows", name]), own);
}

/// Replaces `*` by the number in a name, or in lists of names.
fn number_names(tree: &mut Tree, number: u32) {
    match &mut tree.value {
        Value::Text(name) => *name = name.replace('*', &number.to_string()),
        Value::List(list) => list.iter_mut().for_each(|inner| number_names(inner, number)),
        _ => {}
    }
}

impl Written {
    /// The name as written.
    pub(crate) fn name<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.get(name).map_or(name, String::as_str)
    }

    /// Maps findings about members to the group as written, once each.
    pub(crate) fn restore(&self, found: &mut Findings) {
        if self.0.is_empty() {
            return;
        }
        for finding in &mut found.0 {
            finding.path = self.path(&finding.path);
        }
        let mut known = BTreeSet::new();
        found.0.retain(|finding| known.insert((finding.path.clone(), finding.message.clone())));
    }

    fn path(&self, path: &Path) -> Path {
        let mut path = path.clone();
        if let [Step::Key(table), Step::Key(name), ..] = &mut path.0[..]
            && table == "flows"
            && let Some(written) = self.0.get(name)
        {
            written.clone_into(name);
        }
        path
    }
}
