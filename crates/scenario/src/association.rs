//! Flows inside another flow's SCTP association or RTP session: they inherit its settings from its owner and
//! must not contradict them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use talkspurt_proto::sctp;

use crate::expand::Written;
use crate::model::{Flow, Scenario, Transport};
use crate::path::Path;
use crate::problem::Findings;
use crate::tree::Tree;
use crate::words::did_you_mean;

/// SCTP parameters that each flow sets for its own messages.
const OF_MESSAGES: [&str; 5] =
    ["kind", "association", "ordered", "lifetime", "max_retransmissions"];
/// Flows in another flow's session: feedback reports on at most 256 streams, and a flow can have two.
const MOST: usize = 100;
/// Flow fields that belong to the association.
const OF_ASSOCIATIONS: [&str; 5] = ["ip", "dscp", "sizing", "via", "paths"];

/// Copies the association's settings to every flow inside another flow's association.
pub(crate) fn adopt(scenario: &mut Scenario, tree: &Tree, written: &Written, found: &mut Findings) {
    let within = |flow: &Flow| flow.transport.association().map(str::to_owned);
    let flows = scenario.flows.iter();
    let guests: Vec<_> =
        flows.filter_map(|(name, flow)| Some((name.clone(), within(flow)?))).collect();
    let mut streams = BTreeMap::<String, u64>::new();
    for (name, owner) in guests {
        let path = Path::of(&["flows", &name]);
        let said = tree.key("flows").and_then(|flows| flows.key(written.name(&name)));
        if let Err((message, hint)) = may_own(scenario, &name, &owner) {
            found.add(path.key("transport").key("association"), message).hint(hint);
        } else if let Some(merged) = merged(&scenario.flows, (&name, &owner), said, &path, found) {
            scenario.flows.insert(name, merged);
            *streams.entry(owner).or_insert(1) += 1;
        }
    }
    for (owner, count) in streams {
        if let Transport::Sctp(sctp) = &scenario.flows[&owner].transport
            && sctp.multistreaming
            && count > sctp.streams.into()
        {
            let message = format!(
                "{} for {count} flows, each on a stream of its own (RFC 9260 §5.1.1)",
                sctp.streams
            );
            let path = Path::of(&["flows", &owner, "transport"]);
            found
                .add(path.key("streams"), message)
                .hint(format!("streams = {count}, or multistreaming = false"));
        }
    }
}

/// Gives the flows of another flow's session its controller.
pub(crate) fn join(scenario: &mut Scenario, found: &mut Findings) {
    let flows = &scenario.flows;
    let mut joined = Vec::new();
    for (name, flow) in flows {
        let Some(owner) = &flow.session else { continue };
        let path = Path::of(&["flows", name]);
        let session = path.key("session");
        let Some(other) = flows.get(owner) else {
            let others = flows.keys().map(String::as_str).filter(|other| *other != name);
            let hint = did_you_mean("flows", owner, others);
            found.add(session, format!("there is no flow {owner:?}")).hint(hint);
            continue;
        };
        let before = found.0.len();
        if owner == name {
            let hint = "leave it out: a flow has a session of its own".to_owned();
            found.add(session, "is this flow itself").hint(hint);
            continue;
        } else if let Some(third) = &other.session {
            let message =
                format!("{owner:?} has no session of its own: it shares that of {third:?}");
            found.add(session, message).hint(format!("session = {third:?}"));
        } else if other.controller.is_none() {
            let message = format!("{owner:?} has no `controller` to share");
            let hint = format!("give flows.{owner} one, such as {{ kind = \"nada\" }}");
            found.add(session, message).hint(hint);
        }
        // A resolved scenario says it of each flow.
        if flow.controller.is_some() && flow.controller != other.controller {
            let message = format!("belongs to the session, which is that of {owner:?}");
            found.add(path.key("controller"), message).hint("leave it out".to_owned());
        }
        for (key, is_equal) in [
            ("from", flow.from == other.from),
            ("to", flow.to == other.to),
            ("transport", flow.transport.protocol() == other.transport.protocol()),
            ("ip", flow.ip == other.ip),
            ("dscp", flow.dscp == other.dscp),
            ("via", flow.via == other.via),
        ] {
            if !is_equal {
                let message = format!("differs from that of {owner:?}, whose session it shares");
                found.add(path.key(key), message);
            }
        }
        if found.0.len() == before {
            joined.push((name.clone(), other.controller.clone()));
        }
    }
    let mut sizes = BTreeMap::<&str, usize>::new();
    for flow in flows.values() {
        *sizes.entry(flow.session.as_deref().unwrap_or_default()).or_default() += 1;
    }
    for (owner, size) in sizes.into_iter().filter(|(owner, size)| !owner.is_empty() && *size > MOST)
    {
        let message = format!("{size} flows share this session: at most {MOST}");
        found.add(Path::of(&["flows", owner, "controller"]), message);
    }
    for (name, controller) in joined {
        scenario.flows[&name].controller = controller;
    }
}

/// Checks which sessions are coupled, and what a `priority` weighs.
pub(crate) fn couple(scenario: &Scenario, found: &mut Findings) {
    let flows = &scenario.flows;
    for (name, flow) in flows {
        let path = Path::of(&["flows", name]);
        let others = || flows.iter().filter(|(other, _)| *other != name);
        let shares = |other: &Flow| {
            let names = [&other.session, &other.coupled].map(Option::as_deref);
            names.contains(&Some(name.as_str()))
        };
        let is_alone = flow.session.is_none() && flow.coupled.is_none();
        if is_alone && flow.priority != 1.0 && !others().any(|(_, other)| shares(other)) {
            let message =
                "weighs flows that share a `session` or are `coupled`, and this one is alone";
            let hint = "leave it out, or name a flow in `session` or `coupled`".to_owned();
            found.add(path.key("priority"), message).hint(hint);
        }
        let Some(owner) = &flow.coupled else { continue };
        let coupled = path.key("coupled");
        let Some(other) = flows.get(owner) else {
            let hint = did_you_mean("flows", owner, others().map(|(other, _)| other.as_str()));
            found.add(coupled, format!("there is no flow {owner:?}")).hint(hint);
            continue;
        };
        let can = |flow: &Flow| {
            flow.controller.as_ref().is_some_and(|it| it.build().coupled_rate().is_some())
        };
        let fault = if owner == name {
            Some(("is this flow itself".to_owned(), "leave it out".to_owned()))
        } else if let Some(session) = &flow.session {
            let message = format!("belongs to the session, which is that of {session:?}");
            Some((message, format!("flows.{session}.coupled = {owner:?}")))
        } else if let Some(third) = other.session.as_ref().or(other.coupled.as_ref()) {
            let message = format!("{owner:?} belongs to {third:?}");
            Some((message, format!("coupled = {third:?}")))
        } else if !can(flow) || !can(other) {
            let which = if can(flow) { owner } else { name };
            let message =
                format!("RFC 8699 couples controllers of kind \"nada\", and {which:?} has another");
            Some((message, "use `session`, which gives several flows one controller".to_owned()))
        } else if flow.from != other.from {
            let message =
                format!("{owner:?} is sent by {:?}, and this flow by {:?}", other.from, flow.from);
            Some((message, "couple flows that one node sends".to_owned()))
        } else {
            None
        };
        if let Some((message, hint)) = fault {
            found.add(coupled, message).hint(hint);
        }
    }
}

/// Whether a flow's association may carry another flow; otherwise the problem, and a hint.
fn may_own(scenario: &Scenario, name: &str, owner: &str) -> Result<(), (String, Option<String>)> {
    let flows = &scenario.flows;
    let Some(flow) = flows.get(owner) else {
        let one_of = |flow: &&Flow| flow.group.as_deref() == Some(owner);
        let count = flows.values().filter(one_of).count();
        if count > 0 {
            let message = format!("{owner:?} is {count} flows, each with an association");
            let hint = format!("name one, such as \"{owner}-1\", or \"{owner}-*\" with a `count`");
            return Err((message, Some(hint)));
        }
        let others = flows.keys().map(String::as_str).filter(|other| *other != name);
        let others: Vec<&str> = others.collect();
        let hint = did_you_mean("flows", owner, others);
        return Err((format!("there is no flow {owner:?}"), hint));
    };
    if owner == name {
        let hint = "leave it out: a flow has an association of its own".to_owned();
        return Err(("is this flow itself".to_owned(), Some(hint)));
    }
    if !matches!(flow.transport, Transport::Sctp(_)) {
        let protocol = flow.transport.protocol();
        let message = format!("{owner:?} is carried by {protocol}, which has no streams to share");
        return Err((message, Some("only SCTP has associations".to_owned())));
    }
    match flow.transport.association() {
        None => Ok(()),
        Some(other) => {
            let message =
                format!("{owner:?} has no association of its own: it travels in that of {other:?}");
            let hint = "name the flow that has one".to_owned();
            Err((message, Some(hint)))
        }
    }
}

/// The flow with the owner's association settings; `None` if it contradicts them.
fn merged(
    flows: &indexmap::IndexMap<String, Flow>,
    (name, owner): (&str, &str),
    said: Option<&Tree>,
    path: &Path,
    found: &mut Findings,
) -> Option<Flow> {
    let (own, other) = (&flows[name], &flows[owner]);
    let before = found.0.len();
    for (key, one, two) in [("from", &own.from, &other.from), ("to", &own.to, &other.to)] {
        if one != two {
            let message = format!("is {one:?}, and the association of {owner:?} is not: {two:?}");
            found.add(path.key(key), message);
        }
    }
    if own.start < other.start {
        let message = format!(
            "{} is before {}, when {owner:?} opens the association",
            own.start, other.start
        );
        found.add(path.key("start"), message);
    }
    let is_of_association = |key: &&String| OF_ASSOCIATIONS.contains(&key.as_str());
    belongs(own, other, (said, path), owner, is_of_association, found);
    let said = said.and_then(|said| said.key("transport"));
    let is_of_association = |key: &&String| !OF_MESSAGES.contains(&key.as_str());
    let at = (said, &path.key("transport"));
    belongs(&own.transport, &other.transport, at, owner, is_of_association, found);
    let (Transport::Sctp(messages), Transport::Sctp(association)) =
        (&own.transport, &other.transport)
    else {
        return None;
    };
    let transport = sctp::Config {
        association: messages.association.clone(),
        ordered: messages.ordered,
        lifetime: messages.lifetime,
        max_retransmissions: messages.max_retransmissions,
        ..(**association).clone()
    };
    (found.0.len() == before).then(|| Flow {
        transport: Transport::Sctp(Box::new(transport)),
        ip: other.ip,
        dscp: other.dscp,
        sizing: other.sizing,
        via: other.via.clone(),
        paths: other.paths.clone(),
        ..own.clone()
    })
}

/// Association settings written in one table must equal the owner's.
fn belongs<T: Serialize>(
    own: &T,
    other: &T,
    (said, path): (Option<&Tree>, &Path),
    owner: &str,
    is_of_association: impl Fn(&&String) -> bool,
    found: &mut Findings,
) {
    let (own, other) = (table(own), table(other));
    let mut keys: Vec<&String> = own.keys().chain(other.keys()).filter(is_of_association).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let is_said = said.is_some_and(|said| said.key(key).is_some());
        if is_said && own.get(key) != other.get(key) {
            let message = format!("belongs to the association, and {owner:?} has it otherwise");
            let hint = format!("leave it out, or write it there: flows.{owner}");
            found.add(path.key(key), message).hint(hint);
        }
    }
}

fn table(of: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(table)) => table,
        other => unreachable!("a table becomes {other:?}"),
    }
}
