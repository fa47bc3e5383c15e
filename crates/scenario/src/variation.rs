//! What varies in a study: axes, and a design.

use serde_json::Value as Json;

use crate::axes::{Axis, read_list};
use crate::design::{self, ResolvedDesign, Sample};
use crate::expand;
use crate::path::Path;
use crate::problem::Findings;
use crate::tree::Tree;

/// What varies in a study.
#[derive(Default)]
pub(crate) struct Variation {
    /// The axes, then the factors of the design.
    pub(crate) axes: Vec<Axis>,
    /// How many of them are factors, and their design.
    pub(crate) design: Option<(usize, ResolvedDesign)>,
}

impl Variation {
    /// All fields that vary, each with the table of its axis.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.axes.iter().flat_map(|axis| axis.fields().map(|field| (field, &axis.table)))
    }

    /// The axes without the factors of the design.
    fn lists(&self) -> &[Axis] {
        let factors = self.design.as_ref().map_or(0, |(factors, _)| *factors);
        &self.axes[..self.axes.len() - factors]
    }

    /// Points of the design; 1 without one.
    fn points(&self) -> usize {
        self.design.as_ref().map_or(1, |(_, design)| design.points)
    }

    /// The number of combinations.
    pub(crate) fn count(&self) -> usize {
        let product = |product: usize, axis: &Axis| product.saturating_mul(axis.choices.len());
        self.lists().iter().fold(self.points(), product)
    }

    /// The labels of combination `number` by axis name, and the tree with its values. The first axis varies
    /// slowest, and the points of the design fastest.
    pub(crate) fn combination(
        &self,
        tree: &Tree,
        number: usize,
        found: &mut Findings,
    ) -> (Vec<(String, String)>, Tree) {
        let mut tree = tree.clone();
        let mut settings = Vec::with_capacity(self.axes.len());
        let mut below = self.count();
        let lists = self.lists().len();
        for (index, axis) in self.axes.iter().enumerate() {
            let step = if index < lists {
                below /= axis.choices.len();
                number / below % axis.choices.len()
            } else {
                number % self.points()
            };
            let choice = axis.choices[step];
            settings.push((axis.shown.name.clone(), axis.shown.labels[choice].clone()));
            for (field, value) in axis.puts(choice) {
                if !tree.put(field, value.clone()) {
                    let message = "a plain value is in the way of this axis";
                    found.add(field.clone(), message).at(&value.origin);
                }
            }
        }
        (settings, tree)
    }
}

/// Reads the axes and the design of a tree in which both have a valid shape.
pub(crate) fn read(
    schema: &Json,
    tree: &Tree,
    sample: &Sample<'_>,
    found: &mut Findings,
) -> Variation {
    let table = Path::of(&["axes"]);
    let mut axes = read_list(schema, tree, &table, found);
    let whole = found.0.len();
    let design = design::read(schema, tree, &mut axes, found);
    name(tree, &mut axes, found);
    if found.0.len() > whole {
        return Variation { axes, design: None };
    }
    let design = design.and_then(|design| design.sample(tree, &mut axes, sample, found));
    Variation { axes, design }
}

/// Gives each member of a group whose fields vary a table of its own.
pub(crate) fn leave_groups(tree: &mut Tree) {
    let lists = [&["axes"][..], &["design", "factors"]].map(Path::of);
    let varied: Vec<&Tree> =
        lists.iter().filter_map(|list| tree.at(list)).flat_map(Tree::list).collect();
    let one = varied.iter().filter_map(|axis| axis.key("path"));
    let several = varied.iter().filter_map(|axis| axis.key("paths")).flat_map(Tree::list);
    let paths: Vec<String> =
        one.chain(several).filter_map(Tree::as_text).map(str::to_owned).collect();
    paths.iter().for_each(|path| expand::leave(tree, path));
}

/// Names the axes: as written, else by the last word of the path, else by the whole path.
fn name(tree: &Tree, axes: &mut [Axis], found: &mut Findings) {
    let last = |axis: &Axis| {
        let paths = axis.shown.path.split(", ");
        paths.map(|path| path.rsplit('.').next().unwrap_or("")).collect::<Vec<_>>().join("+")
    };
    let lasts: Vec<String> = axes.iter().map(last).collect();
    let mut taken: Vec<String> = Vec::new();
    for (index, axis) in axes.iter_mut().enumerate() {
        let place = axis.table.key("name");
        let given = tree.at(&place).and_then(Tree::as_text);
        let alone = lasts.iter().filter(|other| **other == lasts[index]).count() == 1;
        axis.shown.name = match given {
            Some(given) => given.to_owned(),
            None if alone => lasts[index].clone(),
            None => axis.shown.path.clone(),
        };
        if axis.shown.name.trim().is_empty() || taken.contains(&axis.shown.name) {
            found.add(place, format!("{:?} must be a name no other axis has", axis.shown.name));
        }
        taken.push(axis.shown.name.clone());
    }
}
