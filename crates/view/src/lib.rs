//! What a page shows of a run: charts, tables of texts, the outcome of each voice frame, the picture of the
//! network and the packets that move in it, as JSON.
//!
//! Tables of a run in, values for `charts.js`, `player.js` and `animation.js` out. Colours are those of the figures.

#![forbid(unsafe_code)]

mod animation;
mod charts;
mod frames;
mod layout;
mod network;
mod picture;
mod rows;
mod style;
mod table;
mod text;

use serde_json::Value;
use talkspurt_record::Recording;

pub use animation::animation;
pub use charts::{Chart, Line, Panel, charts};
pub use frames::{Call, FATES, calls};
pub use network::Network;
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
    /// The network, as `talkspurt_experiment::topology` describes it.
    pub topology: Value,
    /// Its length in seconds.
    pub duration_s: f64,
    /// The width of a bin of the series in seconds.
    pub interval_s: f64,
}

impl Run {
    /// What a recording has, with the network as `talkspurt_experiment::topology` describes it.
    #[must_use]
    pub fn of(recording: &Recording, topology: Value, duration_s: f64, interval_s: f64) -> Self {
        let rows = |name| recording.table(name).map(|table| Rows::of(&table)).unwrap_or_default();
        Self {
            flows: rows("flows"),
            links: rows("links"),
            series: rows("series"),
            link_series: rows("link_series"),
            gauges: rows("gauges"),
            frames: rows("frames"),
            topology,
            duration_s,
            interval_s,
        }
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
        let links = self.topology["links"].as_array().into_iter().flatten();
        let contenders: Vec<_> =
            links.filter(|link| link["contends"] == true).map(|link| &link["name"]).collect();
        let of_contender =
            |row| contenders.iter().any(|name| name.as_str() == self.links.text("name", row));
        let drops = |row| self.links.number("drops", row).unwrap_or(0.0);
        (0..self.links.len()).all(|row| of_contender(row) || drops(row) == 0.0)
    }

    fn flow(&self, name: &str) -> Option<&Value> {
        self.topology["flows"].as_array()?.iter().find(|flow| flow["name"] == name)
    }
}

/// The flow of a direction, and the side that sends in it.
fn sided(direction: &str) -> (&str, &'static str) {
    direction.strip_suffix(".reverse").map_or((direction, "from"), |name| (name, "to"))
}
