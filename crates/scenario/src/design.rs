//! Designs: points at which all factors have sampled values.
//!
//! A factor is an axis whose values belong to the points of the design. A [`Sample`] function provides points
//! of the unit cube; this module scales them to the ranges of the factors. For sensitivity indices it
//! combines the columns of two independent samples A and B (Saltelli et al., Variance based sensitivity
//! analysis of model output, Computer Physics Communications 181, 2010, table 2): the points are those of A,
//! those of B, and for each factor those of A with the factor's column of B.

use serde_json::Value as Json;
use talkspurt_proto::math;
use talkspurt_proto::rng::Rng;

use crate::axes::{Axis, MAX_AXES, Sampled, check_against, read_fields, read_one};
use crate::check::quantity::Quantity;
use crate::check::shape;
use crate::model::{Scale, Scenario};
use crate::path::{Origin, Path};
use crate::problem::Findings;
use crate::schema::TAG;
use crate::tree::{Tree, Value};

/// Name of the random stream whose first number seeds the sample.
const STREAM: &str = "design";

/// Digits of sampled numbers: of the number or of the width of its range, whichever are finer.
const DIGITS: i32 = 6;

/// A request for points of the unit cube.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// `latin_hypercube` or `sobol`.
    pub kind: String,
    /// Number of points.
    pub samples: usize,
    /// Numbers per point.
    pub dimensions: usize,
    /// Seed of the scrambling.
    pub seed: u64,
}

/// A function that returns points of the unit cube, or why it cannot.
pub type Sample<'a> = dyn Fn(&Sampling) -> Result<Vec<Vec<f64>>, String> + 'a;

/// A design, as shown with results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedDesign {
    /// `latin_hypercube` or `sobol`.
    pub kind: String,
    /// Points of the sample.
    pub samples: usize,
    /// Whether it has the further points for sensitivity indices.
    pub indices: bool,
    /// Points in all.
    pub points: usize,
}

/// A design before its points are sampled.
pub(crate) struct Design {
    shown: ResolvedDesign,
    /// The range of each factor; `None` for a list of values.
    ranges: Vec<Option<Range>>,
}

/// Ends of a range in the unit of its numbers.
#[derive(Clone)]
struct Range {
    number: Number,
    min: f64,
    max: f64,
    scale: Scale,
    origin: Origin,
}

/// The numbers of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    Quantity(Quantity),
    Whole,
    Real,
}

/// Reads the design, and appends its factors to the axes.
pub(crate) fn read(
    schema: &Json,
    tree: &Tree,
    axes: &mut Vec<Axis>,
    found: &mut Findings,
) -> Option<Design> {
    let written = tree.key("design")?;
    let table = Path::of(&["design"]);
    let factors = written.key("factors").map(Tree::list).unwrap_or_default();
    if factors.len() > MAX_AXES {
        let message = format!("{} factors; at most {MAX_AXES} are read", factors.len());
        found.add(table.key("factors"), message);
        return None;
    }
    let kind = written.key(TAG).and_then(Tree::as_text)?.to_owned();
    let samples = match written.key("samples")?.value {
        Value::Integer(samples) => usize::try_from(samples).unwrap_or(usize::MAX),
        _ => 0,
    };
    check_samples(&kind, samples, factors.len(), &table.key("samples"), found);
    let indices = kind == "sobol"
        && !matches!(written.key("indices").map(|it| &it.value), Some(Value::Boolean(false)));
    let times = if indices { factors.len() + 2 } else { 1 };
    let mut ranges = Vec::with_capacity(factors.len());
    for (index, factor) in factors.iter().enumerate() {
        let path = table.key("factors").index(index);
        if let Some((axis, range)) = read_factor(schema, tree, axes.len(), factor, &path, found) {
            check_against(axes, &axis, &path, found);
            axes.push(axis);
            ranges.push(range);
        }
    }
    let points = samples.saturating_mul(times);
    Some(Design { shown: ResolvedDesign { kind, samples, indices, points }, ranges })
}

fn check_samples(kind: &str, samples: usize, factors: usize, path: &Path, found: &mut Findings) {
    if kind == "sobol" && !samples.is_power_of_two() {
        let message =
            format!("{samples} is no power of two, which a balanced Sobol sequence needs");
        let above =
            samples.saturating_add(1).checked_next_power_of_two().unwrap_or(1 << (usize::BITS - 1));
        let near = if above > 4 { format!("{} or {above}", above / 2) } else { above.to_string() };
        found.add(path.clone(), message).hint(format!("use {near}"));
    } else if kind == "latin_hypercube" && samples < factors + 2 {
        let least = factors + 2;
        let message = format!("{samples} samples of {factors} factors: expected at least {least}");
        let hint = format!("{} would be ten for each factor", 10 * factors);
        found.add(path.clone(), message).hint(hint);
    }
}

fn read_factor(
    schema: &Json,
    tree: &Tree,
    index: usize,
    factor: &Tree,
    path: &Path,
    found: &mut Findings,
) -> Option<(Axis, Option<Range>)> {
    let of_range: Vec<&str> =
        ["min", "max", "scale"].into_iter().filter(|key| factor.key(key).is_some()).collect();
    if factor.key("values").is_some() {
        for key in &of_range {
            found
                .add(path.key(key), "belongs to a range: give either `min` and `max`, or `values`");
        }
        let mut axis = read_one(schema, tree, index, factor, path, found)?;
        axis.shown.factor = Some(Sampled::Values);
        return of_range.is_empty().then_some((axis, None));
    }
    let whole = found.0.len();
    if factor.key("labels").is_some() {
        found.add(path.key("labels"), "belongs to `values`, and this factor has none");
    }
    for key in ["min", "max"].into_iter().filter(|key| factor.key(key).is_none()) {
        let message = "missing (an end of the range)";
        found.add(path.key(key), message).hint("or list `values`".to_owned()).at(&factor.origin);
    }
    let fields = read_fields(schema, tree, factor, path, found);
    let typed: Vec<&(Path, &Json)> = fields.parts.iter().flatten().collect();
    let mut number = None;
    for (field, schema) in &typed {
        let its = Number::of(schema);
        if its.is_none() || number.is_some_and(|other| Some(other) != its) {
            let message = if its.is_none() {
                format!("{field} is neither a number nor a quantity, so it has no range")
            } else {
                format!("{field} has other units than {}", typed[0].0)
            };
            let key = if factor.key("paths").is_some() { "paths" } else { "path" };
            found.add(path.key(key), message).hint("list `values` instead".to_owned());
            return None;
        }
        number = its;
        for key in ["min", "max"] {
            if let Some(end) = factor.key(key) {
                shape::check(schema, end, &path.key(key), found);
            }
        }
    }
    if found.0.len() > whole {
        return None;
    }
    let range = Range::read(number?, factor, path, found)?;
    let scale = range.scale;
    Some((Axis::new(fields, path, None, Some(Sampled::Range(scale))), Some(range)))
}

impl Number {
    /// The numbers of a field with this schema.
    fn of(schema: &Json) -> Option<Self> {
        let is = |kind: &str| schema.get("type").and_then(Json::as_str) == Some(kind);
        let listed = ["enum", "const", "oneOf"].iter().any(|key| schema.get(key).is_some());
        let format = schema.get("format").and_then(Json::as_str).unwrap_or("");
        match Quantity::named(format) {
            _ if listed => None,
            Some(quantity) if is("string") => Some(Self::Quantity(quantity)),
            _ if is("integer") => Some(Self::Whole),
            _ if is("number") => Some(Self::Real),
            _ => None,
        }
    }

    /// A written value as a number.
    fn read(self, tree: &Tree) -> Option<f64> {
        let text = tree.as_text().unwrap_or("");
        match (self, &tree.value) {
            (Self::Quantity(quantity), _) => quantity.read(text).ok().map(|it| it as f64),
            (_, Value::Integer(integer)) => Some(*integer as f64),
            (_, Value::Float(float)) => Some(*float),
            _ => None,
        }
    }

    /// A number as it is written in a scenario.
    fn write(self, number: f64, origin: &Origin) -> Tree {
        let value = match self {
            Self::Quantity(quantity) => Value::Text(written(number as u64, quantity)),
            Self::Whole => Value::Integer(number as i128),
            Self::Real => Value::Float(number),
        };
        Tree { value, origin: origin.clone() }
    }
}

impl Range {
    fn read(number: Number, factor: &Tree, path: &Path, found: &mut Findings) -> Option<Self> {
        let (low, high) = (factor.key("min")?, factor.key("max")?);
        let (min, max) = (number.read(low)?, number.read(high)?);
        let is_log = factor.key("scale").and_then(Tree::as_text) == Some("log");
        let scale = if is_log { Scale::Log } else { Scale::Linear };
        let said =
            |tree: &Tree| tree.described().replace("the number ", "").replace("the text ", "");
        if min >= max {
            let message = format!("{} must be below max, which is {}", said(low), said(high));
            found.add(path.key("min"), message).at(&low.origin);
            return None;
        }
        if is_log && min <= 0.0 {
            let message =
                format!("{} has no logarithm: with scale = \"log\", above zero", said(low));
            found.add(path.key("min"), message).at(&low.origin);
            return None;
        }
        let origin = Origin { sampled: true, ..low.origin.clone() };
        Some(Self { number, min, max, scale, origin })
    }

    /// The number at `unit`, from 0 to 1.
    fn at(&self, unit: f64) -> f64 {
        // Each whole number of a linear range has an interval of the same length.
        let max = if self.number == Number::Whole { self.max + 1.0 } else { self.max };
        let exact = match self.scale {
            Scale::Linear => self.min + unit * (max - self.min),
            Scale::Log => {
                let (low, high) = (math::ln(self.min), math::ln(max));
                math::exp(low + unit * (high - low))
            }
        };
        let number = match self.number {
            Number::Whole => exact.floor(),
            Number::Real => rounded(exact, self.max - self.min),
            Number::Quantity(_) => rounded(exact, self.max - self.min).round(),
        };
        number.clamp(self.min, self.max)
    }

    /// The distinct values at these places in ascending order, and which of them each place has.
    fn values(&self, units: impl Iterator<Item = f64>) -> (Vec<Tree>, Vec<usize>) {
        let numbers: Vec<f64> = units.map(|unit| self.at(unit)).collect();
        let mut distinct = numbers.clone();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        let place = |number: &f64| distinct.partition_point(|other| other < number);
        let choices = numbers.iter().map(place).collect();
        let values = distinct.iter().map(|it| self.number.write(*it, &self.origin)).collect();
        (values, choices)
    }
}

/// A quantity in the largest unit that is not above it, such as `45.5893ms`, which is shorter than the exact
/// number of nanoseconds.
fn written(number: u64, quantity: Quantity) -> String {
    let units: &[(&str, u32)] = match quantity {
        Quantity::Duration => &[("s", 9), ("ms", 6), ("us", 3), ("ns", 0)],
        Quantity::Rate => &[("Gbit/s", 9), ("Mbit/s", 6), ("kbit/s", 3), ("bit/s", 0)],
        Quantity::Size => &[("GB", 9), ("MB", 6), ("kB", 3), ("B", 0)],
    };
    let fits = |(_, zeros): &&(&str, u32)| number >= 10_u64.pow(*zeros);
    let (unit, zeros) = *units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
    let scale = 10_u64.pow(zeros);
    let (whole, rest) = (number / scale, number % scale);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let fraction = format!("{rest:0width$}", width = zeros as usize);
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

/// A number with a few digits, so that it is readable and exact in tables.
fn rounded(number: f64, width: f64) -> f64 {
    let scale = width.min(number.abs());
    if scale == 0.0 {
        return number;
    }
    let shown = format!("{scale:e}");
    let exponent: i32 = shown.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let decimals = DIGITS - 1 - exponent;
    let text = match usize::try_from(decimals) {
        Ok(decimals) => format!("{number:.decimals$}"),
        Err(_) => {
            let unit = math::pow(10.0, f64::from(-decimals));
            ((number / unit).round() * unit).to_string()
        }
    };
    text.parse().unwrap_or(number)
}

impl Design {
    /// Samples the points, and gives each factor its values. `None` if that is not possible.
    pub(crate) fn sample(
        self,
        tree: &Tree,
        axes: &mut [Axis],
        sample: &Sample<'_>,
        found: &mut Findings,
    ) -> Option<(usize, ResolvedDesign)> {
        let factors = self.ranges.len();
        let seed = match tree.key("seed").map(|seed| &seed.value) {
            Some(Value::Integer(seed)) => u64::try_from(*seed).unwrap_or(0), // reported with the runs
            _ => Scenario::default_seed(),
        };
        let ResolvedDesign { ref kind, samples, indices, .. } = self.shown;
        let dimensions = if indices { 2 * factors } else { factors };
        let seed = Rng::new(seed, STREAM).bits();
        let asked = Sampling { kind: kind.clone(), samples, dimensions, seed };
        let cube = match sample(&asked) {
            Ok(cube) => cube,
            Err(why) => {
                found.add(Path::of(&["design"]), why);
                return None;
            }
        };
        let first = axes.len() - factors;
        for (index, (axis, range)) in axes[first..].iter_mut().zip(&self.ranges).enumerate() {
            let units = column(&cube, index, factors, indices);
            match range {
                None => axis.choose(units),
                Some(range) => {
                    let (values, choices) = range.values(units);
                    axis.set_values(values, choices);
                }
            }
        }
        Some((factors, self.shown))
    }
}

/// The numbers of one factor at all points.
fn column(
    cube: &[Vec<f64>],
    index: usize,
    factors: usize,
    indices: bool,
) -> impl Iterator<Item = f64> {
    let second = factors + index;
    // For each block of points, the column of the cube: A, B, and A with one column of B.
    let blocks: Vec<usize> = if indices {
        let mixed = (0..factors).map(|other| if other == index { second } else { index });
        [index, second].into_iter().chain(mixed).collect()
    } else {
        vec![index]
    };
    blocks.into_iter().flat_map(move |block| cube.iter().map(move |point| point[block]))
}

#[cfg(test)]
mod tests {
    use talkspurt_proto::time::Duration;
    use talkspurt_proto::units::Rate;

    use super::*;

    fn range(number: Number, min: f64, max: f64, scale: Scale) -> Range {
        Range { number, min, max, scale, origin: Origin::default() }
    }

    #[test]
    fn a_range_is_divided_evenly_on_its_scale() {
        let linear = range(Number::Real, -1.0, 3.0, Scale::Linear);
        assert_eq!([0.0, 0.25, 0.999_999_9].map(|unit| linear.at(unit)), [-1.0, 0.0, 3.0]);
        let log = range(Number::Real, 0.01, 1.0, Scale::Log);
        assert_eq!([0.0, 0.5].map(|unit| log.at(unit)), [0.01, 0.1]);
        // Each of the numbers 3, 4 and 5 has a third.
        let whole = range(Number::Whole, 3.0, 5.0, Scale::Linear);
        let units = [0.0, 0.333, 0.334, 0.666, 0.667, 0.999_999];
        assert_eq!(units.map(|unit| whole.at(unit)), [3.0, 3.0, 4.0, 4.0, 5.0, 5.0]);
        // A narrow range keeps six digits of its width.
        let narrow = range(Number::Real, 1000.0, 1000.001, Scale::Linear);
        assert_eq!(narrow.at(0.123_456_789), 1_000.000_123_457);
    }

    #[test]
    fn sampled_quantities_are_read_back() {
        for number in [0, 1, 999, 1000, 45_589_300, 60_000_000_000, 12_345_678_901] {
            let text = written(number, Quantity::Duration);
            assert_eq!(text.parse::<Duration>().map(Duration::as_nanos), Ok(number), "{text}");
            let text = written(number, Quantity::Rate);
            assert_eq!(text.parse::<Rate>().map(Rate::as_bps), Ok(number), "{text}");
        }
        assert_eq!(written(45_589_300, Quantity::Duration), "45.5893ms");
    }

    #[test]
    fn points_for_indices_have_one_column_of_the_second_sample() {
        let cube = [vec![1.0, 2.0, 3.0, 4.0], vec![5.0, 6.0, 7.0, 8.0]];
        let of = |index| column(&cube, index, 2, true).collect::<Vec<_>>();
        // A, B, A with the first column of B, A with the second.
        assert_eq!(of(0), [1.0, 5.0, 3.0, 7.0, 3.0, 7.0, 1.0, 5.0]);
        assert_eq!(of(1), [2.0, 6.0, 4.0, 8.0, 2.0, 6.0, 4.0, 8.0]);
        assert_eq!(column(&cube, 1, 4, false).collect::<Vec<_>>(), [2.0, 6.0]);
    }
}
