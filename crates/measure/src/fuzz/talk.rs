//! Two ends of a measurement or a call, by a script: datagrams are delivered, lost, repeated, changed and
//! forged by somebody who has the keys, while time passes.

use std::net::IpAddr;
use std::sync::{LazyLock, Mutex, PoisonError};

use talkspurt_app::codec::Codec;
use talkspurt_flow::Materials;
use talkspurt_proto::time::Duration;
use talkspurt_scenario::Point;
use talkspurt_testing::fuzz::Script;

use super::{LIMIT, PLAN};
use crate::call::{CallEnd, Voice};
use crate::codecs::names;
use crate::invitation::Invitation;
use crate::media::{Media, MediaOutcome};
use crate::merge::{End, merge};
use crate::plan::{LEAD, Plan};
use crate::seal::{Header, Kind};
use crate::shared::Shared;
use crate::transport::Transport;
use crate::view::View;
use crate::wire::Wire;

/// Steps of a script that are played; more would only be slower.
const MAX_STEPS: usize = 200;
/// Datagrams of each end that are remembered for repetitions.
const MAX_LOGGED: usize = 32;

/// Calls, by transport, in codecs of different kinds.
static CALLS: LazyLock<Vec<Invitation>> = LazyLock::new(|| {
    let codecs: &[&[Codec]] = &[
        &[Codec::Pcmu],
        &[Codec::Opus],
        &[Codec::Pcmu, Codec::G726At32, Codec::G726At16],
        &[Codec::G722],
    ];
    let transports = ["udp", "tfrc-tb", "dccp-ccid3", "sctp"];
    let pairs = transports.into_iter().flat_map(|it| codecs.iter().map(move |of| (it, *of)));
    let invite = |(transport, codecs): (&str, &[Codec])| Invitation {
        seed: 3,
        duration: Duration::from_secs(2).as_nanos(),
        mtu: 1500,
        ipv6: false,
        transport: Transport::known(transport),
        controller: matches!(codecs, [Codec::Opus]).then(|| "nada".to_owned()),
        codecs: names(codecs),
    };
    pairs.map(invite).collect()
});

/// Plays a script, whose first byte says what the two ends do.
pub fn talk(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    match usize::from(script.byte()).checked_sub(64) {
        None => {
            let (plan, point) = &*PLAN;
            measurement(plan, point, &mut script);
        }
        Some(which) => call(&CALLS[which % CALLS.len()], &mut script),
    }
}

/// What the ends of a measurement note by a script.
#[cfg(test)]
pub(super) fn noted(script: &[u8]) -> [MediaOutcome; 2] {
    let (plan, point) = &*PLAN;
    measurement(plan, point, &mut Script::new(script))
}

/// The ends of a plan that a server has accepted begin.
pub(super) fn begin(plan: &Plan) {
    let point = plan.point().expect("it was accepted");
    if !plan.flows.iter().any(|flow| flow.transport.is_stream()) {
        measurement(plan, &point, &mut Script::new(&[2, 0, 2, 0]));
    }
}

fn measurement(plan: &Plan, point: &Point, script: &mut Script<'_>) -> [MediaOutcome; 2] {
    let shared = [(); 2].map(|()| Shared::default());
    let [client, server] = Wire::pair().expect("loopback has ports");
    let materials = Materials::default();
    let files = (point, &materials);
    let ends = [
        Media::new(plan, files, client, true, LIMIT, None, &shared[0]),
        Media::new(plan, files, server, false, LIMIT, None, &shared[1]),
    ];
    let ran = play(ends, script, |_| {});
    conclude(plan, point, &ran);
    ran
}

fn call(invitation: &Invitation, script: &mut Script<'_>) {
    let shared = [(); 2].map(|()| Shared::default());
    let voice = Voice::of_microphone(&invitation.codecs).expect("codecs of calls");
    let voice = voice.with_loudspeaker();
    let agreed = (!invitation.in_handshake()).then(|| voice.codecs().to_vec());
    let ends = [None, Some(IpAddr::from([127, 0, 0, 1]))].map(|greeted_by| {
        let (invitation, agreed) = (invitation.clone(), agreed.clone());
        CallEnd { invitation, voice: &voice, agreed, limit: LIMIT, greeted_by }
    });
    let settle = |at: usize| {
        let agreed = ends[at].agreed.as_deref();
        Mutex::new(agreed.map(|it| ends[at].settle(it, &shared[at]).expect("it has codecs")))
    };
    let states = [settle(0), settle(1)];
    let materials = [0, 1].map(|at: usize| {
        let state = states[at].lock().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().map_or_else(Materials::default, |it| ends[at].materials(it))
    });
    let plan = invitation.plan(agreed.as_deref());
    let point = plan.point().expect("a call");
    let wires = Wire::pair().expect("loopback has ports");
    let mut wires = wires.into_iter();
    let mut media = |at: usize, offer: Option<&[u8]>| {
        let mut opening = agreed.is_none().then(|| ends[at].opening(&states[at], &shared[at]));
        if let (Some(opening), Some(offer)) = (&mut opening, offer) {
            offer.clone_into(&mut opening.offer);
        }
        let wire = wires.next().expect("one for each end");
        Media::new(&plan, (&point, &materials[at]), wire, at == 0, LIMIT, opening, &shared[at])
    };
    // What a hostile caller offers.
    let length = usize::from(script.byte()).saturating_sub(128);
    let offer = Some(script.bytes(length)).filter(|offer| !offer.is_empty());
    let both = [media(0, offer), media(1, None)];
    let ran = play(both, script, |at| {
        let devices = shared[at].devices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(devices) = &*devices {
            devices.say(&[1000; 160]);
            drop(devices.hear());
        }
    });
    let mut settled = None;
    for (at, ran) in ran.iter().enumerate() {
        ends[at].show(&shared[at], &states[at], &mut View::default());
        if let Some(agreed) = &*states[at].lock().unwrap_or_else(PoisonError::into_inner) {
            let [said, heard] = ends[at].sounds(agreed, &ran.peers, &ran.ended);
            // At most 4.5 s, in two channels at 48 kHz.
            assert!(said.len().max(heard.len()) <= 432_000, "{} {}", said.len(), heard.len());
            settled = Some(invitation.plan(Some(&agreed.codecs)));
        }
    }
    if let Some(plan) = settled {
        let point = plan.point().expect("a call");
        conclude(&plan, &point, &ran);
    }
}

/// Makes a run of what both ends noted.
fn conclude(plan: &Plan, point: &Point, ran: &[MediaOutcome; 2]) {
    let [client, server] =
        ran.each_ref().map(|ran| End { rows: ran.log.own_rows(), ended: ran.ended.clone() });
    merge(plan, point, client, Some(server)).expect("no file fails");
}

fn play(
    mut ends: [Media<'_>; 2],
    script: &mut Script<'_>,
    mut each: impl FnMut(usize),
) -> [MediaOutcome; 2] {
    let mut logs = [Vec::new(), Vec::new()];
    // The flows begin.
    ends.iter_mut().for_each(|end| end.pass(LEAD));
    for _ in 0..MAX_STEPS {
        if script.is_over() {
            break;
        }
        match script.byte() % 8 {
            0..=2 => {
                let spans = [20, 1, 5, 100, 300, 1000];
                let time = Duration::from_millis(script.pick(&spans));
                let mut is_over = false;
                for (at, end) in ends.iter_mut().enumerate() {
                    end.pass(time);
                    each(at);
                    is_over |= end.turn().is_none();
                }
                // Nothing is received any more.
                if is_over {
                    break;
                }
            }
            // All that is on the way.
            3 => {
                for to in [0, 1] {
                    for _ in 0..16 {
                        deliver(&mut ends[to], &mut logs[to], |_, _| true);
                    }
                }
            }
            4 => {
                let to = usize::from(script.bit());
                let keep = script.bit();
                deliver(&mut ends[to], &mut logs[to], |_, _| keep);
            }
            5 => {
                let to = usize::from(script.bit());
                deliver(&mut ends[to], &mut logs[to], |header, payload| {
                    alter(header, payload, script);
                    true
                });
            }
            6 => {
                let to = usize::from(script.bit());
                let which = usize::from(script.byte());
                let log: &[(Header, Vec<u8>)] = &logs[to];
                if let Some((mut header, mut payload)) = log.get(which % log.len().max(1)).cloned()
                {
                    alter(&mut header, &mut payload, script);
                    ends[to].receive(&header, &payload, script.byte());
                }
            }
            _ => {
                let to = usize::from(script.bit());
                let kind = script.pick(&Kind::ALL);
                let (flow, number) = (script.byte() % 8, script.u32());
                let sent = u64::from(script.u32()) << (script.byte() % 33);
                let length = usize::from(script.byte());
                let header = Header { kind, flow, number, sent };
                ends[to].receive(&header, script.bytes(length), script.byte());
            }
        }
    }
    ends.map(|end| end.finish(None))
}

/// The next datagram on the way to an end arrives, unless it is lost.
fn deliver(
    end: &mut Media<'_>,
    log: &mut Vec<(Header, Vec<u8>)>,
    change: impl FnOnce(&mut Header, &mut Vec<u8>) -> bool,
) {
    let Some((mut header, mut payload, class)) = end.next_datagram() else { return };
    if log.len() < MAX_LOGGED {
        log.push((header, payload.clone()));
    }
    if change(&mut header, &mut payload) {
        end.receive(&header, &payload, class);
    }
}

fn alter(header: &mut Header, payload: &mut Vec<u8>, script: &mut Script<'_>) {
    for _ in 0..=script.byte() % 4 {
        let at = usize::from(script.byte());
        match script.byte() % 8 {
            0..=2 => {
                if let Some(byte) = payload.get_mut(at) {
                    *byte = script.byte();
                }
            }
            3 => {
                if let Some(two) = payload.get_mut(at..at + 2) {
                    two.copy_from_slice(&script.u16().to_be_bytes());
                }
            }
            4 => payload.truncate(at),
            5 => {
                let length = usize::from(script.byte());
                payload.extend_from_slice(script.bytes(length));
            }
            6 => header.number = header.number.wrapping_add_signed(script.step()),
            _ => header.sent = header.sent.wrapping_add_signed(i64::from(script.step()) << 20),
        }
    }
}
