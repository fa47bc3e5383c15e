//! The links of `docs/networks.md`: each loads, and the satellites' delays are those of geometry.

use std::path::Path;

use talkspurt_proto::math;
use talkspurt_proto::time::Duration;
use talkspurt_scenario::model::Link;

/// The page's blocks of TOML, each as the one link of a scenario.
fn link(name: &str) -> Link {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/networks.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
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
    let study = talkspurt_scenario::load(&text, "page", Path::new("."), &[], None);
    let study = study.unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    study.points[0].scenario.links[name].clone()
}

/// Up to a satellite of this height in metres and down, seen at this elevation from both ends.
fn there(height: f64, degrees: f64) -> f64 {
    let (radius, light) = (6_378_137.0, 299_792_458.0);
    let zenith = radius * math::sin(degrees.to_radians());
    2.0 * ((zenith * zenith + 2.0 * radius * height + height * height).sqrt() - zenith) / light
}

fn same(delay: Duration, seconds: f64) {
    assert!((delay.as_secs_f64() - seconds).abs() < 1e-9, "{delay} is not {seconds} s");
}

#[test]
fn the_way_over_a_geostationary_satellite_is_that_of_geometry() {
    same(link("geo").delay, there(35_786e3, 30.0));
    assert!((there(35_786e3, 90.0) - 0.23874).abs() < 5e-6);
}

#[test]
fn a_low_satellite_hands_over_every_15_seconds() {
    let leo = link("leo");
    let elevations = [60.0, 40.0, 70.0, 33.0, 48.0, 25.0, 55.0, 90.0];
    let moves: Vec<(Duration, Duration)> =
        leo.steps.iter().filter_map(|step| Some((step.at, step.delay?))).collect();
    assert_eq!(moves.len(), 7);
    same(leo.delay, 0.015 + there(550e3, elevations[0]));
    for (number, ((at, delay), degrees)) in (1..).zip(moves.iter().zip(&elevations[1..])) {
        assert_eq!(*at, Duration::from_secs(15 * number));
        same(*delay, 0.015 + there(550e3, *degrees));
    }
}

#[test]
fn the_other_links_of_the_page_load() {
    let cafe = link("cafe").gilbert_elliott.expect("bursts");
    assert!((cafe.p / (cafe.p + cafe.r) - 0.03).abs() < 1e-4);
    for name in ["line", "dsl", "lte"] {
        link(name);
    }
}
