//! A family of colours per kind of traffic, a shade and a marker per transport: as in `figures/style.py`;
//! `tests/test_report.py` compares both.

use indexmap::IndexMap;
use serde::Serialize;

use crate::Rows;

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Speech.
    Voice,
    /// Video.
    Video,
    /// All else.
    Bulk,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Voice, Self::Video, Self::Bulk];

    fn of(source: &str) -> Self {
        match source {
            "speech" => Self::Voice,
            "video" => Self::Video,
            _ => Self::Bulk,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Voice => "voice",
            Self::Video => "video",
            Self::Bulk => "bulk",
        }
    }

    /// The shades of UDP, TCP, DCCP and SCTP.
    const fn shades(self) -> [u32; 4] {
        match self {
            Self::Voice => [0x1F_76D2, 0x84_8AD6, 0x6D_69FA, 0x6C_6AB1],
            Self::Video => [0xF9_6023, 0x99_5E2B, 0xD1_3131, 0xC4_5F20],
            Self::Bulk => [0x2F_A094, 0x2A_8664, 0x66_9C72, 0x08_7870],
        }
    }
}

/// Shade and marker of each transport, the longer name first.
const TRANSPORTS: [(&str, usize, &str); 11] = [
    ("dccp-ccid2", 2, "^"),
    ("dccp-ccid3", 2, "v"),
    ("dccp-ccid4", 2, "<"),
    ("beritelli", 1, "h"),
    ("tfrc-tb", 3, "p"),
    ("dccp", 2, "^"),
    ("icmp", 0, "*"),
    ("sctp", 3, "D"),
    ("tfrc", 0, "P"),
    ("udp", 0, "o"),
    ("tcp", 1, "s"),
];

const DASHES: [&[f64]; 5] = [&[], &[6.0, 2.5], &[2.0, 2.0], &[8.0, 2.0, 2.0, 2.0], &[12.0, 3.0]];
/// Darkening (below 0) or lightening of a colour when the dashes repeat.
const SHADES: [f64; 3] = [0.0, -0.25, 0.25];

/// Colour, dashes and marker of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Style {
    /// `#` and six hexadecimal digits.
    pub colour: String,
    /// Its marker, as matplotlib names it.
    pub marker: &'static str,
    /// Dashes; none for a solid line.
    pub dashes: &'static [f64],
    /// Its kind of traffic.
    pub kind: Kind,
    /// Whether it is only there to disturb others.
    pub in_background: bool,
}

/// A style for each direction of a flow: from its transport, its source, and its place among flows like it.
/// Beside calls, video and programs, other flows are in the background.
#[must_use]
pub fn styles(flows: &Rows) -> IndexMap<String, Style> {
    let source = |row| flows.text("source", row).unwrap_or_default();
    let is_media = |source| matches!(source, "speech" | "video" | "real");
    let media = (0..flows.len()).any(|row| is_media(source(row)));
    let mut seen: IndexMap<u32, usize> = IndexMap::new();
    let style = |row| {
        let kind = Kind::of(source(row));
        let word = flows.text("transport", row).unwrap_or_default().to_lowercase();
        let word = word.replace(['/', '_'], "-");
        let known = TRANSPORTS.iter().find(|(name, ..)| word.starts_with(name));
        let (shade, marker) = known.map_or((0, "X"), |(_, shade, marker)| (*shade, *marker));
        let base = kind.shades()[shade];
        let place = seen.entry(base).or_default();
        let mixed = SHADES[*place / DASHES.len() % SHADES.len()];
        let dashes = DASHES[*place % DASHES.len()];
        *place += 1;
        let in_background = media && !is_media(source(row));
        let name = flows.text("name", row).unwrap_or_default().to_owned();
        (name, Style { colour: mix(base, mixed), marker, dashes, kind, in_background })
    };
    (0..flows.len()).map(style).collect()
}

/// A colour mixed with black or white.
fn mix(colour: u32, share: f64) -> String {
    let end = if share > 0.0 { 255.0 } else { 0.0 };
    let part = |shift: u32| {
        let part = f64::from(colour >> shift & 0xFF);
        (part + share.abs() * (end - part)).round_ties_even() as u32
    };
    format!("#{:02X}{:02X}{:02X}", part(16), part(8), part(0))
}
