//! What a page shows of a run: charts, tables of texts, the outcome of each voice frame, the picture of the
//! network and the packets that move in it, as JSON.
//!
//! Tables of a run in, values for `charts.js`, `player.js` and `animation.js` out. Colours are those of the
//! figures.

#![forbid(unsafe_code)]

mod animation;
mod bars;
mod cautions;
mod chart;
mod charts;
mod frames;
mod inside;
mod layout;
mod network;
mod opinion;
mod picture;
mod rows;
mod style;
mod table;
mod text;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use talkspurt_scenario::model::Flow;

pub use animation::animation;
pub use bars::{Bar, bars};
pub use cautions::cautions;
pub use chart::{Chart, Line, Panel};
pub use charts::charts;
pub use frames::{Call, FATES, calls};
pub use inside::{GAUGE_LINES, GaugeLine};
pub use network::Network;
pub use opinion::{Window, over_time};
pub use picture::{Picture, Route, picture};
pub use rows::Rows;
pub use style::{Kind, Style, styles};
pub use table::{Cell, Column, Table, flow_columns, of_flows, of_links, of_study};

/// The tables of a run, and what is known of it.
pub struct Run {
    /// A row for each direction of a flow.
    pub flows: Rows,
    /// A row for each direction of a link.
    pub links: Rows,
    /// Flows over time.
    pub series: Rows,
    /// Links over time.
    pub link_series: Rows,
    /// Values inside endpoints, where they change.
    pub gauges: Rows,
    /// Frames of voice.
    pub frames: Rows,
    /// Frames of video.
    pub video_frames: Rows,
    /// Scores of segments of calls; a column for each model.
    pub scores: Rows,
    /// What is known beside the tables.
    pub told: Told,
}

/// What is known of a run beside its tables.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Told {
    /// The network, as `talkspurt_experiment::topology` describes it.
    pub topology: Value,
    /// Its length in seconds.
    pub duration_s: f64,
    /// The width of a bin of the series in seconds.
    pub interval_s: f64,
    /// Settings of the flows with speech, by name. Those of an import are not all known.
    #[serde(deserialize_with = "known")]
    pub flows: IndexMap<String, Flow>,
    /// Whether it is a capture or a trace.
    pub imported: bool,
    /// Name and label of the models of sound.
    pub models: Vec<(String, String)>,
}

impl Run {
    /// A run with these tables, by name; those that are not known have no rows.
    #[must_use]
    pub fn of(rows: impl Fn(&str) -> Rows, told: Told) -> Self {
        Self {
            flows: rows("flows"),
            links: rows("links"),
            series: rows("series"),
            link_series: rows("link_series"),
            gauges: rows("gauges"),
            frames: rows("frames"),
            video_frames: rows("video_frames"),
            scores: rows("scores"),
            told,
        }
    }

    /// The directions with speech.
    fn calls(&self) -> impl Iterator<Item = &str> {
        let speaks = |row: &usize| self.flows.text("source", *row) == Some("speech");
        (0..self.flows.len()).filter(speaks).filter_map(|row| self.flows.text("name", row))
    }

    /// The links that a direction of a flow passes on its first route.
    fn route(&self, direction: &str) -> Vec<String> {
        let (name, side) = sided(direction);
        let first = self.flow(name).and_then(|flow| flow["links"][side][0].as_array());
        let names = first.into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    }

    /// Whether no packet was dropped in the window of measurement, except those of contenders.
    #[must_use]
    pub fn is_lossless(&self) -> bool {
        let links = self.told.topology["links"].as_array().into_iter().flatten();
        let contenders: Vec<_> =
            links.filter(|link| link["contends"] == true).map(|link| &link["name"]).collect();
        let of_contender =
            |row| contenders.iter().any(|name| name.as_str() == self.links.text("name", row));
        let drops = |row| self.links.number("drops", row).unwrap_or(0.0);
        (0..self.links.len()).all(|row| of_contender(row) || drops(row) == 0.0)
    }

    fn flow(&self, name: &str) -> Option<&Value> {
        self.told.topology["flows"].as_array()?.iter().find(|flow| flow["name"] == name)
    }
}

fn known<'de, D: Deserializer<'de>>(given: D) -> Result<IndexMap<String, Flow>, D::Error> {
    let flows = IndexMap::<String, Value>::deserialize(given)?.into_iter();
    let known = flows.filter_map(|(name, flow)| Some((name, serde_json::from_value(flow).ok()?)));
    Ok(known.collect())
}

/// The flow of a direction, and the side that sends in it.
fn sided(direction: &str) -> (&str, &'static str) {
    direction.strip_suffix(".reverse").map_or((direction, "from"), |name| (name, "to"))
}
