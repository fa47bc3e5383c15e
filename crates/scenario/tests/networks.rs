//! The links of `docs/networks.md`: each is that of a scenario in `scenarios/networks`, and the
//! satellites' delays are those of geometry.

use std::path::Path;

use talkspurt_proto::math;
use talkspurt_proto::time::Duration;
use talkspurt_scenario::link_profile::LinkProfile;
use talkspurt_scenario::model::{Link, Step};
use talkspurt_scenario::{Study, load};

fn repository(file: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    std::fs::read_to_string(&file).unwrap_or_else(|fault| panic!("{}: {fault}", file.display()))
}

fn study(text: &str, sets: &[(&str, &str)]) -> Study {
    let sets: Vec<_> = sets.iter().map(|(p, v)| ((*p).to_owned(), (*v).to_owned())).collect();
    let study = load(text, "page", Path::new("."), &sets, None);
    study.unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// The page's block of TOML with this link, as the one link of a scenario.
fn of_page(name: &str) -> Link {
    let page = repository("docs/networks.md");
    let mut blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let head = format!("[links.{name}]");
    let block = blocks.find(|block| block.starts_with(&head)).expect("a block of this link");
    let ends = |end| {
        let line = block.lines().find_map(|line| line.strip_prefix(&format!("{end} = ")));
        line.expect("its ends").to_owned()
    };
    let flow = format!(
        "[flows.f]\nfrom = {}\nto = {}\ntransport = {{ kind = 'udp' }}\n\
         source = {{ kind = 'cbr', rate = '64kbit/s', packet = '160B' }}\n",
        ends("from"),
        ends("to")
    );
    let text = format!("title = 'test'\nduration = '120s'\n{block}\n{flow}");
    study(&text, &[]).points[0].scenario.links[name].clone()
}

fn shipped(file: &str, sets: &[(&str, &str)]) -> Study {
    study(&repository(&format!("scenarios/networks/{file}.toml")), sets)
}

#[test]
fn the_links_of_the_page_are_those_of_scenarios() {
    for (file, link) in [
        ("geo", "geo"),
        ("leo", "leo"),
        ("dsl", "dsl"),
        ("lte", "lte"),
        ("cafe", "cafe"),
        ("steps", "line"),
    ] {
        assert_eq!(of_page(link), shipped(file, &[]).points[0].scenario.links[link], "{link}");
    }
    let cafe = of_page("cafe").gilbert_elliott.expect("bursts");
    assert!((cafe.p / (cafe.p + cafe.r) - 0.03).abs() < 1e-4);
}

/// Up to a satellite of this height in metres and down, seen at this elevation from both ends: by the
/// law of cosines in the triangle of the Earth's centre, station and satellite.
fn there(height: f64, degrees: f64) -> f64 {
    let (radius, light) = (6_378_137.0, 299_792_458.0);
    let orbit = radius + height;
    // The angle at the satellite by the law of sines, and so the one at the centre.
    let horizon = (90.0 + degrees).to_radians();
    let sine = radius * math::sin(horizon) / orbit;
    let nadir = asin(sine);
    let centre = std::f64::consts::PI - horizon - nadir;
    let square = radius * radius + orbit * orbit - 2.0 * radius * orbit * math::cos(centre);
    2.0 * square.sqrt() / light
}

/// By Newton's method: sine and cosine are available.
fn asin(sine: f64) -> f64 {
    (0..50).fold(0.0, |x, _| x - (math::sin(x) - sine) / math::cos(x).max(1e-9))
}

fn same(delay: Duration, seconds: f64) {
    assert!((delay.as_secs_f64() - seconds).abs() < 2e-9, "{delay} is not {seconds} s");
}

#[test]
fn the_way_over_a_geostationary_satellite_is_that_of_geometry() {
    // RFC 2488 §2 tells of 239.6 ms right below it and of 279.0 ms at the edge of its view.
    for (degrees, told) in [(90.0, 0.2396), (0.0, 0.2790)] {
        assert!((there(35_786e3, degrees) / told - 1.0).abs() < 0.004, "{degrees}");
    }
    for degrees in [30.0, 90.0, 5.0, 0.0] {
        let sets = [("links.geo.orbit.elevations", format!("[{degrees}]"))];
        let sets: Vec<_> = sets.iter().map(|(p, v)| (*p, v.as_str())).collect();
        let study = shipped("geo", &sets);
        for link in &study.points[0].network.links {
            same(link.delay, there(35_786e3, degrees));
            assert_eq!(link.course, None);
        }
    }
}

fn steps(course: Option<&LinkProfile>) -> Vec<Step> {
    match course {
        Some(LinkProfile::Steps(steps)) => steps.to_vec(),
        other => panic!("no steps: {other:?}"),
    }
}

#[test]
fn a_low_satellite_hands_over_every_15_seconds() {
    let elevations = [60.0, 40.0, 70.0, 33.0, 48.0, 25.0, 55.0, 90.0];
    // Longer than the list lasts: the first follows the last.
    let study = shipped("leo", &[("duration", "200s"), ("links.leo.back", "{ delay = \"10ms\" }")]);
    let network = &study.points[0].network;
    for (link, ground) in network.links.iter().zip([0.015, 0.010]) {
        same(link.delay, ground + there(550e3, elevations[0]));
        let all = steps(link.course.as_ref());
        assert_eq!(all.len(), 2 * 13);
        for (number, pair) in (1..).zip(all.chunks(2)) {
            let [change, end] = pair else { panic!("pairs") };
            assert_eq!(change.at, Duration::from_secs(15) * number);
            let degrees = elevations[number as usize % elevations.len()];
            same(change.delay.expect("a delay"), ground + there(550e3, degrees));
            assert_eq!(change.loss, Some(0.5));
            assert_eq!(end.at, change.at + Duration::from_millis(50));
            assert_eq!((end.delay, end.loss), (None, Some(0.0)));
        }
    }
}

#[test]
fn routes_go_by_the_delay_over_the_satellite() {
    let more = "[links.cable]\nfrom = 'station'\nto = 'hub'\nrate = '1Mbit/s'\ndelay = '257ms'\n\
                queue = { kind = 'droptail', packets = 5 }\n";
    let text = repository("scenarios/networks/geo.toml") + more;
    let network = &study(&text, &[]).points[0].network;
    assert_eq!(network.links[network.routes[0][0].forward[0]].name, "cable");
}
