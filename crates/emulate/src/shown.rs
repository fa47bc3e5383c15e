//! The packets that a report animates, kept while they pass: an emulation cannot be run again.

use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_record::{Begin, Excerpt, Layout, Shown};
use talkspurt_scenario::model::Scenario;

/// The excerpts of an emulation that may be shown, the best one first.
#[derive(Debug)]
pub(crate) struct Excerpts(Vec<(&'static str, Excerpt)>);

/// The excerpt that is shown.
#[derive(Debug)]
pub struct Excerpted {
    /// Why it begins where it does: `asked` by the scenario, before the first `drop` of a real packet, or with
    /// the first real `packet`.
    pub begins: &'static str,
    /// Its packets.
    pub shown: Shown,
}

impl Excerpts {
    /// Those of the scenario (`record.animation`), where flows of real packets have numbers from `first` on.
    pub(crate) fn new(scenario: &Scenario, layout: &Layout, first: u32) -> Self {
        let asked = &scenario.record.animation;
        let to = Instant::ZERO + asked.to.unwrap_or(scenario.duration);
        let begins = match asked.from {
            _ if asked.packets == 0 => Vec::new(),
            Some(from) => vec![("asked", Begin::At(Instant::ZERO + from))],
            None => vec![("drop", Begin::BeforeDrop(first)), ("packet", Begin::WithPacket(first))],
        };
        let excerpt =
            |(why, begin)| (why, Excerpt::new(layout.clone(), begin, to, asked.packets as usize));
        Self(begins.into_iter().map(excerpt).collect())
    }

    /// Names a flow: its first packet follows.
    pub(crate) fn name_flow(&mut self, index: usize, name: &str) {
        for (_, excerpt) in &mut self.0 {
            excerpt.name_flow(index, name);
        }
    }

    /// The first that began, once everything before `now` has been reported.
    pub(crate) fn finish(self, now: Instant) -> Option<Excerpted> {
        let (begins, excerpt) = self.0.into_iter().find(|(_, excerpt)| excerpt.begun())?;
        Some(Excerpted { begins, shown: excerpt.finish(now) })
    }
}

impl Probe for Excerpts {
    fn wants(&self, topic: Topic) -> bool {
        self.0.iter().any(|(_, excerpt)| excerpt.wants(topic))
    }

    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        for (_, excerpt) in &mut self.0 {
            excerpt.record(now, place, note);
        }
    }

    fn settled(&mut self, now: Instant) {
        for (_, excerpt) in &mut self.0 {
            excerpt.settled(now);
        }
    }
}
