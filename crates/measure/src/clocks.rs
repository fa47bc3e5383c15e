//! Drift and offset of the other end's clock against ours.
//!
//! The difference between the times at which a packet left and came, each by its end's clock, is the one-way
//! delay plus the offset, which grows with the drift. The smallest delays do not change, so that a line below
//! all points that touches their lower convex hull has the drift as its slope (Moon, Skelly and Towsley,
//! "Estimation and Removal of Clock Skew from Network Delay Measurements", INFOCOM 1999: the line that
//! minimises the sum of the vertical distances, which is the edge of the hull over the mean of the abscissae).
//!
//! No measurement at both ends tells the offset from an asymmetry of the path. It lies where no delay is
//! negative, which leaves an interval as wide as the minimum round-trip time. Its middle is our estimate.
//!
//! The directions give two estimates of the drift. Half of their difference is taken as its error, which over
//! the time of the measurement is an error of the offset, too.

/// A time by one clock and a difference of clocks, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// The other clock against ours: it shows `t + offset + drift · t` at our time `t`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Relation {
    /// At our time zero.
    pub(crate) offset_s: f64,
    /// The true offset is within this of `offset_s`: half the minimum round-trip time, and the error of the
    /// drift over the time of the measurement.
    pub(crate) bound_s: f64,
    pub(crate) drift: f64,
    /// Whether the drift was found; it is taken as 0 where it is smaller than its error, or where queues grew
    /// or shrank throughout.
    pub(crate) found: bool,
}

/// Largest drift of a working clock: twice that of a free-running quartz that `adjtimex` slews by its maximum.
const MAX_DRIFT: f64 = 1e-3;

/// Why there is no relation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unrelated {
    /// There are no packets in one of the directions.
    OneWay,
    /// No offset fits all packets: one of the clocks was set. By at least this many seconds.
    Jumped(f64),
}

impl Relation {
    /// From the packets to the other end and from it. `x` is our time; `y` is the other end's time of arrival
    /// minus ours of departure, or ours of arrival minus the other end's of departure. `round_trip_s` is the
    /// least round-trip time.
    pub(crate) fn of(to: &[Point], from: &[Point], round_trip_s: f64) -> Result<Self, Unrelated> {
        let slopes = [(to, 1.0), (from, -1.0)].map(|(points, sign)| Some(sign * slope(points)?));
        let [Some(a), Some(b)] = slopes else { return Err(Unrelated::OneWay) };
        let (mean, half) = (f64::midpoint(a, b), (a - b).abs() / 2.0);
        let found = mean.abs() <= MAX_DRIFT && mean.abs() > half;
        let drift = if found { mean } else { 0.0 };
        // A clock that works drifts no more than that.
        let error = (half + (mean - drift).abs()).min(MAX_DRIFT);
        let times = to.iter().chain(from).map(|point| point.x);
        let (first, last) = times.fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), x| {
            (first.min(x), last.max(x))
        });
        let moved = error * (last - first);
        let least = |points: &[Point], sign: f64| {
            points.iter().map(|point| sign * point.y - drift * point.x).fold(
                sign * f64::INFINITY,
                |best, next| {
                    if sign > 0.0 { best.min(next) } else { best.max(next) }
                },
            )
        };
        let (most, least) = (least(to, 1.0), least(from, -1.0));
        if least - most > 2.0 * moved {
            return Err(Unrelated::Jumped(least - most));
        }
        let offset_s = f64::midpoint(most, least);
        let bound_s = ((most - least) / 2.0).max(round_trip_s / 2.0) + moved;
        Ok(Self { offset_s, bound_s, drift, found })
    }

    /// Our time when the other clock shows `other`, in nanoseconds.
    pub(crate) fn ours(&self, other: u64) -> u64 {
        // The correction is small where the time is large, so that no precision is lost.
        let other_s = other as f64 / 1e9;
        let ours_s = (other_s - self.offset_s) / (1.0 + self.drift);
        let correction = ((ours_s - other_s) * 1e9).round() as i64;
        other.saturating_add_signed(correction)
    }
}

/// The slope of the edge of the lower convex hull over the mean of `x`; `None` without points.
fn slope(points: &[Point]) -> Option<f64> {
    let hull = lower_hull(points);
    let mean = points.iter().map(|point| point.x).sum::<f64>() / points.len() as f64;
    let edge = hull.windows(2).find(|edge| edge[1].x >= mean);
    let slope = edge.map_or(0.0, |edge| (edge[1].y - edge[0].y) / (edge[1].x - edge[0].x));
    (!hull.is_empty()).then_some(slope)
}

/// The lower convex hull from left to right (Andrew's monotone chain), with increasing `x`.
fn lower_hull(points: &[Point]) -> Vec<Point> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    sorted.dedup_by(|later, first| later.x == first.x);
    let mut hull: Vec<Point> = Vec::new();
    for point in sorted {
        while let [.., a, b] = hull[..]
            && (b.x - a.x) * (point.y - a.y) <= (b.y - a.y) * (point.x - a.x)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Packets each way every 10 ms with these delays, seen by a clock with this offset and drift.
    fn seen(offset: f64, drift: f64, delays: &[(f64, f64)]) -> (Vec<Point>, Vec<Point>) {
        let shows = |t: f64| t + offset + drift * t;
        let mut both = (Vec::new(), Vec::new());
        for (number, (there, back)) in delays.iter().enumerate() {
            let t = number as f64 * 0.01;
            both.0.push(Point { x: t, y: shows(t + there) - t });
            both.1.push(Point { x: t + back, y: t + back - shows(t) });
        }
        both
    }

    #[test]
    fn a_path_without_queues_gives_drift_and_offset() {
        let delays: Vec<_> = (0..1000).map(|_| (0.020, 0.030)).collect();
        let (to, from) = seen(5.0, 80e-6, &delays);
        let found = Relation::of(&to, &from, 0.05).expect("there are packets both ways");
        assert!((found.drift - 80e-6).abs() < 1e-9, "{found:?}");
        // Half the round trip: 25 ms. The truth is where the asymmetry puts it: 5 ms lower.
        // The other clock gains 80e-6 · 25 ms meanwhile.
        assert!((found.bound_s - 0.025).abs() < 3e-6, "{found:?}");
        assert!((found.offset_s - (5.0 - 0.005)).abs() < 1e-5, "{found:?}");
        assert!((found.offset_s - 5.0).abs() <= found.bound_s);
    }

    /// A clock that does not drift, and delays that fall by 20 µs there during 4 s: that direction seems to
    /// drift by −5 ppm, the other by 0. The drift is not told from its error, and the bound has room for both.
    #[test]
    fn the_bound_has_the_error_of_the_drift() {
        let fall = 5e-6;
        let delays: Vec<_> =
            (0..=400).map(|number| (55e-6 - fall * f64::from(number) * 0.01, 55e-6)).collect();
        let (to, from) = seen(3.0, 0.0, &delays);
        let round_trip = 90e-6;
        let found = Relation::of(&to, &from, round_trip).expect("there are packets both ways");
        assert!(!found.found && found.drift == 0.0, "{found:?}");
        // Half of 5 ppm as the error, and as much for the drift that is not used, over 4 s.
        assert!((found.bound_s - (45e-6 + fall * 4.0)).abs() < 1e-9, "{found:?}");
        assert!((found.offset_s - 3.0).abs() <= found.bound_s);
    }

    #[test]
    fn a_clock_that_was_set_has_no_relation() {
        let delays: Vec<_> = (0..100).map(|_| (0.02, 0.02)).collect();
        let (mut to, mut from) = seen(1.0, 0.0, &delays);
        let (later, back) = seen(1.5, 0.0, &delays);
        to.extend(later.into_iter().map(|point| Point { x: point.x + 1.0, ..point }));
        from.extend(back.into_iter().map(|point| Point { x: point.x + 1.0, ..point }));
        assert!(matches!(Relation::of(&to, &from, 0.04), Err(Unrelated::Jumped(by)) if by > 0.4));
        assert_eq!(Relation::of(&to, &[], 0.04), Err(Unrelated::OneWay));
    }

    #[test]
    fn times_are_converted_to_nanoseconds() {
        let relation = Relation { offset_s: 2.0, bound_s: 0.0, drift: 1e-4, found: true };
        let ours = 40_000_000_000_u64;
        let other = ours + 2_000_000_000 + 4_000_000;
        assert!(relation.ours(other).abs_diff(ours) <= 2);
        assert_eq!(relation.ours(0), 0, "before our time began");
    }

    proptest! {
        /// Closed form: with random queues above fixed delays, and some packets of each end that met none, the
        /// drift is found and the bound holds.
        #[test]
        fn queues_do_not_matter(
            offset in -1e3..1e3_f64,
            ppm in -300.0..300.0_f64,
            queues in prop::collection::vec((0.0..0.2_f64, 0.0..0.2_f64), 400..600),
            base in (1e-4..0.2_f64, 1e-4..0.2_f64),
        ) {
            let met = |number: usize, queue: f64| if number % 40 < 2 { 0.0 } else { queue };
            let delays: Vec<_> = queues
                .iter()
                .enumerate()
                .map(|(n, (a, b))| (base.0 + met(n, *a), base.1 + met(n, *b)))
                .collect();
            let (to, from) = seen(offset, ppm * 1e-6, &delays);
            let found = Relation::of(&to, &from, base.0 + base.1).expect("there are packets both ways");
            prop_assert!((found.drift - ppm * 1e-6).abs() < 1e-6, "{found:?}");
            prop_assert!((found.offset_s - offset).abs() <= found.bound_s + 1e-9);
            prop_assert!((found.bound_s - (base.0 + base.1) / 2.0).abs() < 1e-4);
        }

        /// Every point is on or above every edge of its hull.
        #[test]
        fn the_hull_is_below_all(points in prop::collection::vec((0.0..9.0_f64, -9.0..9.0_f64), 1..80)) {
            let points: Vec<_> = points.into_iter().map(|(x, y)| Point { x, y }).collect();
            let hull = lower_hull(&points);
            for edge in hull.windows(2) {
                for point in points.iter().filter(|p| (edge[0].x..=edge[1].x).contains(&p.x)) {
                    let part = (point.x - edge[0].x) / (edge[1].x - edge[0].x);
                    let y = edge[0].y + part * (edge[1].y - edge[0].y);
                    prop_assert!(point.y >= y - 1e-9);
                }
            }
        }
    }
}
