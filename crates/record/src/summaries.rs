//! The summaries of several runs as one table: a table of one row takes as much time and memory as one of
//! hundreds.

use std::sync::Arc;
use std::{iter, mem};

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use crate::columns::{Columns, Table};
use crate::layout::LinkInfo;
use crate::links::{self, LinkSummary};
use crate::recording::Recording;
use crate::summary::{self, FlowSummary};

/// Rows of the tables of flows and links, each with the number of its run.
#[derive(Debug, Default)]
pub struct Summaries {
    flows: (Vec<u64>, Vec<FlowSummary>),
    links: (Vec<u64>, Vec<LinkInfo>, Vec<LinkSummary>),
}

impl Summaries {
    /// Adds the rows of a run.
    pub fn add(&mut self, run: u64, recording: &Recording) {
        let (runs, rows) = &mut self.flows;
        runs.extend(iter::repeat_n(run, recording.flows.len()));
        rows.extend_from_slice(&recording.flows);
        let (runs, infos, rows) = &mut self.links;
        runs.extend(iter::repeat_n(run, recording.links.len()));
        infos.extend_from_slice(&recording.layout.links);
        rows.extend_from_slice(&recording.links);
    }

    /// The rows of a table by name, in the order in which they were added, behind a column `run`; they do not
    /// stay here. `None` for another table.
    pub fn take(&mut self, name: &str) -> Option<Table> {
        let (runs, batch) = match name {
            "flows" => {
                let (runs, rows) = mem::take(&mut self.flows);
                (runs, summary::table(&rows))
            }
            "links" => {
                let (runs, infos, rows) = mem::take(&mut self.links);
                (runs, links::table(&infos, &rows))
            }
            _ => return None,
        };
        let first = Columns::default().count("run", runs.into_iter()).finish();
        Some(beside(&first, &batch).into())
    }
}

/// The columns of two tables with as many rows.
fn beside(left: &RecordBatch, right: &RecordBatch) -> RecordBatch {
    let (first, second) = (left.schema(), right.schema());
    let fields: Vec<_> = first.fields().iter().chain(second.fields()).cloned().collect();
    let columns = left.columns().iter().chain(right.columns()).cloned().collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("as many rows")
}
