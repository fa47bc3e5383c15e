//! Memory that a run takes, estimated from its scenario before it starts. The constants are measured: what the
//! process of `talkspurt run` takes at most, divided by what it has of each.

use talkspurt_app::file::Files;
use talkspurt_app::source::{Config as Source, Speech};
use talkspurt_app::transport::Config as Transport;
use talkspurt_proto::time::Duration;
use talkspurt_record::Tables;
use talkspurt_scenario::Point;
use talkspurt_scenario::model::{Flow, Scenario};

/// Bytes of a flow: both ends, accounts, and its row in the table of flows.
const FLOW: u64 = 16_500;
/// Bytes of a link, with both directions and its rows in the table of links.
const LINK: u64 = 25_000;
/// The same for the network's description in a folder, while that is written.
const LINK_STORED: u64 = 35_000;
/// A bin of a series while the run proceeds, and as a row of a table in memory.
const BIN: u64 = 170;
/// A frame of voice in the table of frames.
const FRAME: u64 = 32;
/// What series and delays have in memory before they continue in files.
const SPOOL: u64 = 8 << 20;

/// Bytes that a run takes beside the program: those of its flows and links, of which its summary needs as many
/// when it has ended, and those of what it records while it proceeds.
#[must_use]
pub fn memory(point: &Point, files: &dyn Files, tables: &Tables, is_heard: bool) -> (u64, u64) {
    let Scenario { duration, record, .. } = &point.scenario;
    let links = point.network.links.len() as u64;
    let in_memory = matches!(tables, Tables::Memory(_));
    let (mut parts, mut directions, mut delays) = (links / 2 * LINK, links, 0);
    let mut recorded = if in_memory { 0 } else { links / 2 * LINK_STORED };
    for alike in point.scenario.alike() {
        let (flow, members) = (&*alike.flow, u64::from(alike.count()));
        parts += members * (FLOW + transport(flow));
        for source in [Some(&flow.source), flow.reverse.as_ref()].into_iter().flatten() {
            directions += members;
            let Source::Speech(speech) = source else { continue };
            let end = flow.stop.map_or(*duration, |stop| stop.min(*duration));
            let spoken = end.saturating_sub(flow.start);
            let frames = spoken.as_nanos() / speech.packet.as_nanos().max(1);
            delays += members * frames * 8;
            if tables.keeps("frames") {
                recorded += members * FRAME * frames.next_power_of_two();
            }
            if is_heard {
                recorded += members * sound(speech, spoken, files);
            }
        }
    }
    if tables.keeps("series") {
        let bins = duration.as_nanos().div_ceil(record.interval.as_nanos().max(1));
        let series = bins.saturating_mul(directions).saturating_mul(BIN);
        recorded += if in_memory { series } else { series.min(2 * SPOOL) };
    }
    (parts, recorded + delays.min(2 * SPOOL))
}

/// Bytes that the transport of a flow takes beyond UDP's: its state, and what the source puts into its buffers.
fn transport(flow: &Flow) -> u64 {
    let is_bulk = matches!(flow.source, Source::Bulk(_));
    match flow.transport {
        Transport::Udp(_) => 0,
        // SCTP takes more than a window before it is sent.
        Transport::Sctp(_) if is_bulk => 214_000,
        Transport::Tcp(_) if is_bulk => 0,
        Transport::Tcp(_) | Transport::Sctp(_) => 6_500,
        _ => 18_000,
    }
}

/// Bytes of what is said and heard in one direction of a call, as samples, packets and times of playout.
fn sound(speech: &Speech, spoken: Duration, files: &dyn Files) -> u64 {
    let Some(file) = &speech.file else { return 0 };
    // A recording that is not repeated lasts no longer than with the lowest rate of samples of 16 bits.
    let most_s = files.length(file).map_or(f64::MAX, |length| length as f64 / 16_000.0);
    let spoken_s = spoken.as_secs_f64();
    let sounding_s = if speech.repeat { spoken_s } else { spoken_s.min(most_s) };
    let rate = |encoding: &talkspurt_app::codec::Encoding| {
        u64::from(encoding.codec.spec().sample_rate) * encoding.channels() as u64
    };
    let most = speech.encodings().iter().map(rate).max().unwrap_or(0);
    (sounding_s * (10 * most) as f64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use bytes::Bytes;
    use talkspurt_scenario::{Use, load_for};

    use super::*;

    #[test]
    fn a_recording_in_memory_is_as_long_as_it_is() {
        let text = "title = 'a call'\nduration = '60s'\n[links.line]\nfrom = 'a'\nto = 'b'\nrate = '1Mbit/s'\n\
                    delay = '1ms'\nqueue = { kind = 'droptail', packets = 9 }\n[flows.call]\nfrom = 'a'\n\
                    to = 'b'\ntransport = { kind = 'udp' }\n\
                    source = { kind = 'speech', codec = 'pcmu', file = 'speech.wav', repeat = false }\n";
        // One second at 8 kHz.
        let mut wav =
            b"RIFF\xa4\x3e\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0"
                .to_vec();
        wav.extend_from_slice(b"data\x80\x3e\0\0");
        wav.resize(44 + 16_000, 1);
        let files = BTreeMap::from([(PathBuf::from("/speech.wav"), Bytes::from(wav))]);
        let study = load_for(text, "call", Path::new("/"), &[], None, &Use::of(&files));
        let point = study.unwrap_or_else(|problems| panic!("{problems}")).points.remove(0);
        let need = |files| memory(&point, files, &Tables::memory(), true).1;
        // Of a file that is not there, the whole call is taken for speech.
        let missing = BTreeMap::<PathBuf, Bytes>::new();
        assert!(need(&missing) > need(&files) + 50 * 10 * 8_000);
    }
}
