//! Parameters of standard network shapes. `shapes` expands them into links and nodes before any other part
//! reads the scenario.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use talkspurt_proto::time::Duration;

use super::flow::SOURCE;
use super::network::Link;

/// A standard topology.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Topology {
    /// Hosts on both sides of one link: `left-1`, `left-2` … at `west`, `right-1` … at `east`. Each
    /// host's link has the host's name; the link between is `bottleneck`.
    Dumbbell(Dumbbell),
    /// Nodes in a row: `node-1`, `node-2` …, joined by `hop-1`, `hop-2` ….
    Chain(Chain),
    /// Routers in a row, `router-1`, `router-2` …, joined by `bottleneck-1` …. Host `in` sends to `out`
    /// through all bottlenecks, `in-1` to `out-1` through `bottleneck-1` only, `in-2` to `out-2`
    /// through the second, and so on. Each host's link has the host's name.
    ParkingLot(ParkingLot),
    /// Two disjoint paths from `left` to `right`: over `north-west` and `north-east`, joined by
    /// `north`, and over `south-west` and `south-east`, joined by `south`. The links of the two hosts
    /// are `left-north`, `north-right`, `left-south` and `south-right`.
    TwoPaths(TwoPaths),
    /// A `server`, the link `wire` to a `base`, and one link to the base from each of `station-1`,
    /// `station-2` …. These links have the stations' names.
    WirelessEdge(WirelessEdge),
}

/// A dumbbell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Number of hosts on the left.
    #[schemars(range(min = 1, max = 10_000))]
    pub left: u32,
    /// Number of hosts on the right; absent means as many as on the left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub right: Option<u32>,
    /// The links between hosts and routers, from left to right.
    pub access: Alike,
    /// The links on the right; absent means as on the left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right_access: Option<Alike>,
    /// The link from `west` to `east`.
    pub bottleneck: Single,
}

/// A chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// Number of links in the row.
    #[schemars(range(min = 1, max = 255))]
    pub hops: u32,
    /// Settings of these links.
    pub hop: Alike,
}

/// A parking lot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParkingLot {
    /// Number of links between routers.
    #[schemars(range(min = 1, max = 253))]
    pub bottlenecks: u32,
    /// The links between hosts and routers: `in`, `in-1` … and `out`, `out-1` ….
    pub access: Alike,
    /// The links between routers.
    pub bottleneck: Alike,
}

/// Two disjoint paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TwoPaths {
    /// The four links of the two hosts, from left to right.
    pub access: Single,
    /// The link `north`.
    pub north: Single,
    /// The link `south`.
    pub south: Single,
}

/// A wireless edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WirelessEdge {
    /// Number of stations.
    #[schemars(range(min = 1, max = 10_000))]
    pub stations: u32,
    /// The link from the server to the base.
    pub wire: Single,
    /// The links from the stations to the base; `back` is the downlink. They are ordinary links, with
    /// losses and steps, and share nothing.
    pub radio: Alike,
}

/// A link without its ends, which the shape determines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Single(Map<String, Value>);

/// Links that are equal, except possibly in their delays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Alike(Map<String, Value>);

/// Marks the schema of a table whose keys are described elsewhere.
pub const LIKE: &str = "x-like";
/// The key for delays that increase over equal links.
pub const DELAY_TO: &str = "delay_to";

impl JsonSchema for Single {
    fn schema_name() -> Cow<'static, str> {
        "Single".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        shared(generator, "Single", |generator| without_ends(generator).to_value())
    }
}

impl JsonSchema for Alike {
    fn schema_name() -> Cow<'static, str> {
        "Alike".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        shared(generator, "Alike", |generator| {
            let mut delay_to = Duration::json_schema(generator);
            let meaning = "Propagation delay of the last of these links, at most 1h; `delay` is that of \
                           the first, and those between lie in equal steps. Absent means that all have \
                           the same.";
            delay_to.insert("description".to_owned(), json!(meaning));
            let _ = Single::json_schema(generator);
            let mut link = generator.definitions()["Single"].clone();
            link["properties"][DELAY_TO] = delay_to.to_value();
            link
        })
    }
}

/// Schemas that are referred to from several places, and are nested in none like them.
pub const SHARED: [&str; 3] = ["#/$defs/Single", "#/$defs/Alike", SOURCE];

/// Refers to a schema of several places, which is made once: that of links takes long.
fn shared(
    generator: &mut SchemaGenerator,
    name: &str,
    make: impl FnOnce(&mut SchemaGenerator) -> Value,
) -> Schema {
    if !generator.definitions().contains_key(name) {
        let made = make(generator);
        generator.definitions_mut().insert(name.to_owned(), made);
    }
    Schema::new_ref(format!("#/$defs/{name}"))
}

/// The schema of a link; a shape accepts all its keys except the ends.
fn without_ends(generator: &mut SchemaGenerator) -> Schema {
    let mut link = Link::json_schema(generator);
    let ends = ["from", "to"];
    link.insert(LIKE.to_owned(), json!("links.NAME"));
    if let Some(properties) = link.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|key, _| !ends.contains(&key.as_str()));
    }
    if let Some(required) = link.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|key| key.as_str().is_none_or(|key| !ends.contains(&key)));
    }
    link
}
