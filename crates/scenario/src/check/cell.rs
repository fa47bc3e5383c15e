//! Checks 802.11 cells: members, rates of the standard, windows, limits.

use talkspurt_proto::units::{Rate, Size};

use super::network::{check_mtu, check_name, queue_of_cell};
use crate::model::{Cell, RateControl, Scenario, Standard};
use crate::path::Path;
use crate::problem::Findings;
use crate::words::list;

/// Stations of a cell, and contenders, at most.
const MAX_STATIONS: usize = 1024;
/// IEEE 802.11-2016 §9.2.4.7: an MSDU has 2304 bytes at most; LLC and SNAP take 8.
const MAX_MTU: Size = Size::from_bytes(2296);

pub(super) fn check(scenario: &Scenario, found: &mut Findings) {
    for (name, cell) in &scenario.cells {
        let path = Path::of(&["cells", name]);
        if scenario.links.contains_key(name) {
            found.add(path.clone(), "a link has this name already");
        }
        members(&path, cell, found);
        radio(&path, cell, found);
        windows(&path, cell, found);
        sizes(&path, cell, found);
        queue_of_cell(&path.key("queue"), &cell.queue, cell.mtu, found);
        let usual = [(path.clone(), cell.rate.as_ref())];
        let own = cell.stations.iter().map(|(station, words)| {
            let path = path.key("stations").key(station);
            if let Some(words) = &words.queue {
                queue_of_cell(&path.key("queue"), words, cell.mtu, found);
            }
            (path, words.rate.as_ref())
        });
        let own: Vec<_> = own.collect();
        let contenders = cell.contenders.iter();
        let contenders = contenders.map(|one| (path.key("contenders"), one.rate.as_ref()));
        for (path, rate) in usual.into_iter().chain(own).chain(contenders) {
            if let Some(rate) = rate {
                rates(&path.key("rate"), rate, cell.standard, found);
            }
        }
    }
}

fn members(path: &Path, cell: &Cell, found: &mut Findings) {
    check_name(path.key("access_point"), &cell.access_point, found);
    let stations = path.key("stations");
    if cell.stations.is_empty() {
        found.add(stations.clone(), "a cell has at least one station beside its access point");
    }
    if cell.stations.len() > MAX_STATIONS {
        let message = format!("{} stations; at most {MAX_STATIONS}", cell.stations.len());
        found.add(stations.clone(), message);
    }
    for station in cell.stations.keys() {
        check_name(stations.key(station), station, found);
        if *station == cell.access_point {
            found.add(stations.key(station), "the access point is no station of its own cell");
        }
    }
}

fn radio(path: &Path, cell: &Cell, found: &mut Findings) {
    let name = cell.standard.name();
    if cell.short_preamble && cell.standard != Standard::B {
        let message = format!("{name} has one preamble; only 802.11b has a short one");
        found.add(path.key("short_preamble"), message);
    }
    if cell.long_slot && cell.standard == Standard::B {
        found.add(path.key("long_slot"), "slots of 802.11b are always long");
    }
    for (index, rate) in cell.basic_rates.iter().enumerate() {
        let path = path.key("basic_rates").index(index);
        of_the_standard(path, *rate, cell.standard.control_rates(), cell.standard, found);
    }
}

fn rates(path: &Path, rate: &RateControl, standard: Standard, found: &mut Findings) {
    match rate {
        RateControl::Fixed(fixed) => {
            of_the_standard(path.key("rate"), fixed.rate, standard.rates(), standard, found);
        }
        RateControl::Arf(_) => {}
        RateControl::Minstrel(minstrel) => {
            if minstrel.update.is_zero() {
                found.add(path.key("update"), "must be longer than nothing");
            }
        }
    }
}

fn of_the_standard(
    path: Path,
    rate: Rate,
    known: &[u64],
    standard: Standard,
    found: &mut Findings,
) {
    if !known.contains(&rate.as_bps()) {
        let known: Vec<String> = known.iter().map(|bps| Rate::from_bps(*bps).to_string()).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        found
            .add(path, format!("{rate} is not a rate of {}", standard.name()))
            .hint(format!("its rates are: {}", list(&known)));
    }
}

fn windows(path: &Path, cell: &Cell, found: &mut Findings) {
    for (key, window) in [("cw_min", cell.cw_min), ("cw_max", Some(cell.cw_max))] {
        if let Some(window) = window.filter(|window| !(window + 1).is_power_of_two()) {
            let below = (window + 1).next_power_of_two() / 2 - 1;
            found
                .add(path.key(key), format!("{window} is not a power of two less one"))
                .hint(format!("nearest are {below} and {}", 2 * below + 1));
        }
    }
    if cell.cw_max < cell.first_window() {
        let message =
            format!("{} is below the first window ({})", cell.cw_max, cell.first_window());
        found.add(path.key("cw_max"), message);
    }
}

fn sizes(path: &Path, cell: &Cell, found: &mut Findings) {
    let most = MAX_MTU;
    if cell.mtu > most {
        let message = format!("{} is more than a frame carries ({most})", cell.mtu);
        found.add(path.key("mtu"), message);
    } else {
        check_mtu(path.key("mtu"), cell.mtu, found);
    }
    let Some(contenders) = &cell.contenders else { return };
    let path = path.key("contenders").key("packet");
    if contenders.packet == Size::from_bytes(0) {
        found.add(path, "a contender's packets must be 1B or more");
    } else if contenders.packet > cell.mtu {
        found.add(path, format!("{} is above the cell's mtu ({})", contenders.packet, cell.mtu));
    }
}
