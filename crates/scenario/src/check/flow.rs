//! Checks flows: existing ends, sources that the transport can carry, packet sizes, order of times.

use talkspurt_app::file::Files;
use talkspurt_app::source::Config;
use talkspurt_proto::media::FeedbackFormat;
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::rtp;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;
use talkspurt_proto::validate::Validate;

use super::plain;
use super::side::{MAX_NOISE, Side, spurts};
use super::time::at_most;
use crate::model::{Flow, IpVersion, Scenario, Transport};
use crate::network::{Network, Routes};
use crate::path::Path;
use crate::problem::Findings;

/// RFC 8200 §5: every link supports packets of 1280 octets.
const MIN_MTU_V6: Size = Size::from_bytes(1280);
pub(super) fn check(
    scenario: &Scenario,
    network: &Network,
    files: &dyn Files,
    run: Duration,
    found: &mut Findings,
) {
    for (index, (name, flow)) in scenario.flows.iter().enumerate() {
        let path = Path::of(&["flows", name]);
        times(&path, flow, run, found);
        // A flow without a route was reported before; its MTU is unknown.
        let least = |of: fn(&Routes) -> &Vec<usize>| {
            let ways = network.routes.get(index)?.iter().map(of);
            let links: Vec<usize> = ways.flatten().copied().collect();
            let rate = links.iter().map(|link| network.links[*link].highest_rate()).min()?;
            Some((network.mtu(&links), rate))
        };
        let least = [least(|routes| &routes.forward), least(|routes| &routes.backward)];
        let owner =
            flow.session.as_ref().and_then(|owner| scenario.flows.get(owner)).unwrap_or(flow);
        let numbers = owner.controller.as_ref().map(|controller| controller.feedback());
        let is_numbered = numbers == Some(FeedbackFormat::TransportWide);
        let extension = if is_numbered { rtp::TRANSPORT_BYTES as u64 } else { 0 };
        let sources = [("source", Some(&flow.source)), ("reverse", flow.reverse.as_ref())];
        for ((key, source), least) in sources.into_iter().zip(least) {
            let side = Side { path: path.key(key), flow, files, run, least, extension };
            source.into_iter().for_each(|source| check_source(&side, source, found));
        }
        found.add_errors(&path.key("transport"), flow.transport.errors());
        bucket(&path.key("transport"), flow, found);
        controller(&path.key("controller"), flow, found);
        found.add_errors(&path.key("quality"), flow.quality.errors());
        for (place, declared) in flow.quality.codecs.iter().enumerate() {
            let path = path.key("quality").key("codecs").index(place).key("source");
            plain(path, "a source", &declared.source, &[], found);
        }
        found.add_errors(&path.key("send_queue"), flow.send_queue.errors());
        found.add_errors(&path.key("playout"), flow.playout.errors());
        let mtu = least.iter().flatten().map(|(mtu, _)| *mtu).min();
        if let Some(mtu) = mtu.filter(|m| flow.ip == IpVersion::V6 && *m < MIN_MTU_V6) {
            let message = format!(
                "IPv6 needs links that carry 1280B (RFC 8200 §5); the least on this flow's way is {mtu}"
            );
            found.add(path.key("ip"), message);
        }
    }
}

/// A controller needs RTP to control, and reports.
fn controller(path: &Path, flow: &Flow, found: &mut Findings) {
    let Some(config) = &flow.controller else { return };
    found.add_errors(path, config.errors());
    let sources = || std::iter::once(&flow.source).chain(&flow.reverse);
    if let Some(data) = sources().find(|source| !source.is_media()) {
        let message = "needs sources that send RTP: \"speech\", \"video\" or \"replay\"";
        let hint = format!("leave it out; \"{}\" has the transport's control", data.kind());
        found.add(path.clone(), message).hint(hint);
    } else if !flow.rtcp.enabled {
        let hint = "leave `rtcp.enabled` out".to_owned();
        found.add(path.clone(), "needs the feedback that RTCP carries, and it is off").hint(hint);
    }
    if config.ecn() != Ecn::NotEct && !matches!(flow.transport, Transport::Udp(_)) {
        let message =
            format!("{} has its own; only packets of UDP carry it", flow.transport.protocol());
        found.add(path.key("ecn"), message).hint("leave it out".to_owned());
    }
    if flow.transport.association().is_some() {
        let message = "not for a flow in another flow's association";
        found.add(path.clone(), message).hint("give the flow a transport of its own".to_owned());
    }
}

/// The token bucket must hold the units that a source sends, and the initial rung must exist.
fn bucket(path: &Path, flow: &Flow, found: &mut Findings) {
    let rate = match &flow.transport {
        Transport::Dccp(config) => &config.rate,
        Transport::Tfrc(config) => &config.rate,
        _ => return,
    };
    let Some(bucket) = &rate.token_bucket else { return };
    let path = path.key("rate").key("token_bucket");
    let rungs = std::iter::once(&flow.source).chain(&flow.reverse).map(|it| it.rungs().len());
    let most = rungs.max().unwrap_or(0);
    if most == 0 {
        let message = "this source has no one rate for a bucket to hold";
        found.add(path, message).hint("leave it out, or use another source".to_owned());
    } else if let Some(rung) = bucket.initial_rung.filter(|rung| usize::from(*rung) >= most) {
        let message =
            format!("{rung} is no rung of a ladder of {most}, which are 0 to {}", most - 1);
        found.add(path.key("initial_rung"), message);
    }
}

fn times(path: &Path, flow: &Flow, run: Duration, found: &mut Findings) {
    if flow.start >= run {
        let message = format!("{} is not before the end of the run ({run})", flow.start);
        found.add(path.key("start"), message);
        return;
    }
    if let Some(stop) = flow.stop.filter(|stop| *stop <= flow.start) {
        let message = format!("{stop} is not after the start ({})", flow.start);
        found.add(path.key("stop"), message);
    }
    let end = flow.stop.unwrap_or(run).min(run);
    if let Some(spread) = flow.start_spread
        && end > flow.start
        && flow.start + spread > end
    {
        let message = format!(
            "{spread} may put the start after the flow's end ({end}); it starts at {}",
            flow.start
        );
        found.add(path.key("start_spread"), message);
    }
}

/// Checks the source of one side.
fn check_source(side: &Side<'_>, source: &Config, found: &mut Findings) {
    match source {
        Config::Speech(speech) => side.speech(speech, found),
        Config::Cbr(cbr) => {
            side.clocked(cbr.rate, cbr.packet, found);
            at_most(side.path.key("noise"), cbr.noise, MAX_NOISE, found);
        }
        Config::OnOff(on_off) => {
            side.clocked(on_off.rate, on_off.packet, found);
            at_most(side.path.key("noise"), on_off.noise, MAX_NOISE, found);
            spurts(&side.path, on_off.on, on_off.off, on_off.spread, found);
        }
        Config::Poisson(poisson) => side.clocked(poisson.rate, poisson.packet, found),
        Config::Video(video) => side.video(video, found),
        Config::Replay(replay) => side.replay(replay, found),
        Config::Bulk(bulk) => side.bulk(bulk, found),
        Config::Web(web) => side.web(web, found),
        Config::External(_) => {}
    }
    found.add_errors(&side.path, source.errors());
}
