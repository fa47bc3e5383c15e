//! Where values of a scenario come from.

/// The location of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin {
    /// Line of the file, from 1.
    pub(crate) line: Option<u32>,
    /// The index of its `--set`.
    pub(crate) set: Option<usize>,
    /// The indices of its axis and of the axis value.
    pub(crate) axis: Option<(usize, usize)>,
    /// Whether it was sampled from a range of a design.
    pub(crate) sampled: bool,
}
