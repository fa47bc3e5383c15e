//! A run of four seconds small enough to compute every column of every table on paper. The measure
//! window is [1 s, 3 s), bins are 1 s wide.

mod calls;
mod kept;
mod links;
#[path = "../support/mod.rs"]
mod support;

use support::{Line, Told, control, flow, layout, ms, packet, rtp, side, tell};
use talkspurt_proto::body::Body;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, Note, Place, Playout};
use talkspurt_proto::time::Instant;
use talkspurt_record::{Layout, Options, Recorder, Recording};

fn call_and_bulk() -> Layout {
    let flows = vec![
        flow("call", "udp", [side("speech", Some(20)), None]),
        flow("web", "tcp", [side("cbr", None), side("cbr", None)]),
    ];
    layout(flows, ms(1000), ms(3000), ms(4000))
}

fn peer(at: Instant, peer: u32, note: Note<'static>) -> Told {
    Told { at, place: Place::Peer(peer), line: Line::Plain(note) }
}

fn sent(peer: u32, number: u32, ip_bytes: u32, at: Instant, body: Body) -> Told {
    let line = Line::Sent(packet(peer, number, ip_bytes, at), body);
    Told { at, place: Place::Peer(peer), line }
}

fn received(at: Instant, label: Packet, body: Body) -> Told {
    let place = Place::Peer(label.route ^ 1);
    Told { at, place, line: Line::Received(label, body) }
}

fn link(at: Instant, line: Line) -> Told {
    Told { at, place: Place::Link(0), line }
}

/// Frames captured 20 ms before they are handed over and sent, in an IP packet of 200 bytes
/// (20 + 8 + 12 + 160). `None`: it stays in the network; `Some(None)`: it is lost 5 ms later.
fn voice(script: &mut Vec<Told>, index: u32, captured: u64, delay: Option<Option<u64>>) {
    let (handed, label) = (captured + 20, packet(0, index + 1, 200, ms(captured + 20)));
    let generated = Note::Generated { index, bytes: 160, captured: ms(captured) };
    script.push(peer(ms(handed), 0, generated));
    script.push(peer(ms(handed), 0, Note::HandedOver { index }));
    script.push(sent(0, index + 1, 200, ms(handed), rtp(index, 160)));
    match delay {
        None => {}
        Some(None) => {
            script.push(link(ms(handed + 5), Line::Dropped(label, DropReason::Full)));
        }
        Some(Some(delay)) => {
            let arrival = ms(handed + delay);
            script.push(received(arrival, label, rtp(index, 160)));
            script.push(peer(arrival, 1, Note::Delivered { index, bytes: 160 }));
            // Playout 60 ms after handing over.
            let playout = ms(handed + 60);
            let playout =
                if delay > 60 { Playout::Late(playout) } else { Playout::Played(playout) };
            script.push(peer(arrival, 1, Note::Decided { index, playout }));
        }
    }
}

fn call_script() -> Vec<Told> {
    let mut script = Vec::new();
    // A control packet before the window, number 0; one in it and one after it below.
    script.push(sent(0, 0, 60, ms(970), control()));
    voice(&mut script, 0, 960, Some(Some(30))); // captured and sent before the window
    voice(&mut script, 1, 980, Some(Some(30))); // captured before, sent in it (1000)
    voice(&mut script, 2, 1000, Some(Some(40)));
    voice(&mut script, 3, 1020, Some(None)); // lost at 1045
    voice(&mut script, 4, 1040, Some(None)); // lost at 1065
    voice(&mut script, 5, 1060, Some(Some(70))); // late
    voice(&mut script, 6, 1080, Some(Some(30)));
    // Discarded at 1115, never sent.
    let generated = Note::Generated { index: 7, bytes: 160, captured: ms(1100) };
    script.push(peer(ms(1115), 0, generated));
    script.push(peer(ms(1115), 0, Note::Discarded { index: 7 }));
    // Number 8, which the discarded frame did not take.
    script.push(sent(0, 8, 60, ms(1500), control()));
    voice(&mut script, 8, 2960, None); // sent at 2980, in flight at the end
    voice(&mut script, 9, 2990, Some(Some(20))); // captured in, sent at 3010 outside
    let generated = Note::Generated { index: 10, bytes: 160, captured: ms(2995) };
    script.push(peer(ms(3015), 0, generated)); // still queued at the end
    script.push(sent(0, 11, 60, ms(3016), control()));
    script.sort_by_key(|told| told.at);
    script
}

fn record(layout: Layout, script: &[Told]) -> Recording {
    let mut recorder = Recorder::new(layout, Options { gauges: true, sojourn: false });
    tell(script, &mut recorder);
    recorder.finish().unwrap()
}
