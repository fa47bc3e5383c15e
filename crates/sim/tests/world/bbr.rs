//! BBR beside CUBIC at one bottleneck (draft-ietf-ccwg-bbr-06 §5.3.3.8, coexistence).

use crate::support::{flow, link, run, scenario};

/// Shares of the bottleneck, 10 Mbit/s and 40 ms there and back, that a BBR and a CUBIC flow get in
/// 200 s, with a buffer of so many packets; the pipe holds 34.
fn shares(buffer: u32, seed: u64) -> (f64, f64) {
    let queue = format!("queue = {{ kind = 'droptail', packets = {buffer} }}");
    let links = [
        link("a", "a-l", "100Mbit/s", "1ms", ""),
        link("b", "b-l", "100Mbit/s", "1ms", ""),
        link("core", "l-z", "10Mbit/s", "19ms", &queue),
    ];
    let tcp = |controller: &str| format!("{{ kind = 'tcp', controller = '{controller}' }}");
    let flows = [
        flow("f", "a-z", &tcp("bbr"), "{ kind = 'bulk' }", ""),
        flow("g", "b-z", &tcp("cubic"), "{ kind = 'bulk' }", "start = '1s'"),
    ];
    let head = format!("seed = {seed}\n");
    let measure = "[measure]\nfrom = '20s'\n".to_owned();
    let run = run(&scenario("220s", &[head, links.concat(), flows.concat(), measure]));
    // Of each 1500 bytes, 1448 are data.
    let share = |name: &str| run.flow(name).goodput_bps.expect("measured") / 10e6 * 1500.0 / 1448.0;
    (share("f"), share("g"))
}

/// With a buffer of one pipe, and of eight, neither starves the other, and together they use the link.
/// (BBR gets 0.52 to 0.59 of it here.)
#[test]
fn beside_cubic() {
    for buffer in [34, 272] {
        for seed in 1..4 {
            let (bbr, cubic) = shares(buffer, seed);
            assert!(bbr + cubic > 0.95, "{buffer}: {bbr} {cubic}");
            assert!(bbr > 0.3 && cubic > 0.3, "{buffer}: {bbr} {cubic}");
        }
    }
}
