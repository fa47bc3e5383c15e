//! Routes, each in a row of one table: links, then the peer at the end. The next hop is then a single lookup,
//! on which all handling of the packet depends.

use talkspurt_proto::prefetch::prefetch;

/// A step of a route: a link, a hop of a cell (numbered after all links), or with this bit the peer at its end.
pub(crate) const AT_PEER: u32 = 1 << 31;

/// The routes, by number.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    steps: Vec<u32>,
    /// Binary logarithm of a row's length, which is that of the longest route.
    row: u32,
    count: u32,
}

impl Routes {
    /// Adds a route that ends at this peer; returns its number.
    pub(crate) fn add(&mut self, way: &[u32], peer: u32) -> u32 {
        while way.len() >= 1 << self.row {
            let rows = self.steps.chunks(1 << self.row);
            self.steps = rows.flat_map(|row| [row, &vec![AT_PEER; row.len()]].concat()).collect();
            self.row += 1;
        }
        self.steps.extend(way);
        self.count += 1;
        self.steps.resize((self.count as usize) << self.row, AT_PEER | peer);
        self.count - 1
    }

    /// Requests a route from memory.
    #[inline(always)]
    pub(crate) fn prefetch(&self, route: u32) {
        prefetch(&self.steps[(route as usize) << self.row], 1);
    }

    /// The step of a route at this position.
    #[inline(always)]
    pub(crate) fn step(&self, route: u32, hop: u8) -> u32 {
        self.steps[((route as usize) << self.row) + usize::from(hop)]
    }
}

/// Links used by at least an eighth of all routes and by more than one, the busiest first, at most eight.
pub(crate) fn busy_links<'a>(
    links: usize,
    routes: impl ExactSizeIterator<Item = &'a [u32]>,
) -> Vec<u32> {
    let least = routes.len().div_ceil(8).max(2);
    let mut over = vec![0; links];
    for step in routes.flatten() {
        // Numbers beyond the links are hops of cells.
        if let Some(over) = over.get_mut(*step as usize) {
            *over += 1;
        }
    }
    let mut busy: Vec<u32> =
        (0_u32..).zip(&over).filter(|(_, over)| **over >= least).map(|(link, _)| link).collect();
    busy.sort_by_key(|link| std::cmp::Reverse(over[*link as usize]));
    busy.truncate(8);
    busy
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bottleneck_is_busy_and_what_one_flow_has_for_itself_is_not() {
        // Twenty routes over link 3, ten of them over 1, three over 2, each over one of its own.
        let route = |i: u32| {
            let over = |link, count| (i < count).then_some(link);
            let ways = [over(1, 10), Some(4 + i), over(2, 3), Some(3), Some(1000)];
            ways.into_iter().flatten().collect()
        };
        let routes: Vec<Vec<u32>> = (0..20).map(route).collect();
        assert_eq!(busy_links(24, routes.iter().map(|route| &**route)), [3, 1, 2]);
        assert!(busy_links(24, routes[..1].iter().map(|route| &**route)).is_empty());
        let crowd: Vec<u32> = (0..20).collect();
        assert_eq!(busy_links(24, [&*crowd; 3].into_iter()), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    proptest! {
        /// Independent of the length of routes added later.
        #[test]
        fn every_route_keeps_its_steps(ways in prop::collection::vec(prop::collection::vec(0_u32..1000, 0..40), 0..30)) {
            let mut routes = Routes::default();
            for (number, way) in (0..).zip(&ways) {
                prop_assert_eq!(routes.add(way, 7 * number), number);
            }
            for (number, way) in (0..).zip(&ways) {
                let seen: Vec<u32> = (0..way.len() as u8).map(|hop| routes.step(number, hop)).collect();
                prop_assert_eq!(&seen, way);
                prop_assert_eq!(routes.step(number, way.len() as u8), AT_PEER | (7 * number));
            }
        }
    }
}
