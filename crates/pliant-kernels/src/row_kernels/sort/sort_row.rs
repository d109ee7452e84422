//! Sorts one row, completely or only a requested range of indices in sorted order.

use super::sort_keys::{Key, Order, Record, record};
use super::sorting_networks::Network;
use crate::algorithm_selection::sort::Algorithm;

/// Number of elements of a block of a row. If no element of a block is within the current [`Limit`], the block is skipped as a
/// whole. The compiler vectorizes loops over 64 elements; it unrolls shorter loops completely and vectorizes them badly.
const BLOCK: usize = 64;
/// Maximum number of leading elements of a row from which [`bound`] computes the initial [`Limit`].
const SAMPLE: usize = 4096;
/// Number of groups into which [`bound`] divides the first [`SAMPLE`] elements of a row. The smallest ranks of the groups determine
/// the initial [`Limit`].
const GROUPS: usize = 16;

/// The limit for the rank (integer sort key) of an element. An element beyond the limit cannot belong to the requested elements.
#[derive(Clone, Copy)]
enum Limit<R> {
    /// There is no limit: all elements are candidates.
    None,
    /// Elements with at most this rank are candidates.
    AtMost(R),
    /// Elements below this rank are candidates. Later elements of equal rank would be sorted after
    /// the last candidate.
    Below(R),
}

impl<R: Ord + Copy> Limit<R> {
    #[inline(always)]
    fn admits(self, rank: R) -> bool {
        match self {
            Limit::None => true,
            Limit::AtMost(most) => rank <= most,
            Limit::Below(limit) => rank < limit,
        }
    }

    /// Whether the limit admits any of the ranks of a block. This is a vectorized test.
    #[inline(always)]
    fn admits_any(self, ranks: &[R; BLOCK]) -> bool {
        let mut any = false;
        match self {
            Limit::None => return true,
            Limit::AtMost(most) => ranks.iter().for_each(|&rank| any |= rank <= most),
            Limit::Below(limit) => ranks.iter().for_each(|&rank| any |= rank < limit),
        }
        any
    }
}

/// Returns the ranks of the elements of a block. The compiler vectorizes this loop, but not `block.map`.
#[inline(always)]
fn ranks_of<K: Key>(block: &[K; BLOCK], order: Order) -> [K::Rank; BLOCK] {
    let mut ranks = [block[0].rank(order); BLOCK];
    for i in 0..BLOCK {
        ranks[i] = block[i].rank(order);
    }
    ranks
}

/// Calls `insert` with the value and the position of each element whose rank is within `limit`.
/// `insert` returns the limit for the following elements. Blocks without such elements, which are
/// most blocks of a long row, are skipped by a vectorized test.
#[inline(always)]
fn for_each_admitted<K: Key>(
    keys: &[K],
    order: Order,
    mut limit: Limit<K::Rank>,
    mut insert: impl FnMut(K, usize) -> Limit<K::Rank>,
) {
    let (blocks, rest) = keys.as_chunks::<BLOCK>();
    let mut visit = |key: K, rank: K::Rank, position: usize, limit: &mut Limit<K::Rank>| {
        if limit.admits(rank) {
            *limit = insert(key, position);
        }
    };
    for (b, block) in blocks.iter().enumerate() {
        let ranks = ranks_of(block, order);
        if limit.admits_any(&ranks) {
            for i in 0..BLOCK {
                visit(block[i], ranks[i], b * BLOCK + i, &mut limit);
            }
        }
    }
    for (i, &key) in rest.iter().enumerate() {
        visit(key, key.rank(order), blocks.len() * BLOCK + i, &mut limit);
    }
}

/// Computes an initial limit that at least `count` elements satisfy. Divides the first elements of the row into [`GROUPS`] groups,
/// and returns the `count`-th smallest of the groups' smallest ranks. If `count` exceeds [`GROUPS`], returns no limit.
#[inline(always)]
fn bound<K: Key>(keys: &[K], count: usize, order: Order) -> Limit<K::Rank> {
    let (blocks, _) = keys[..keys.len().min(SAMPLE)].as_chunks::<BLOCK>();
    let Some((first, others)) = blocks.split_first().filter(|_| count <= GROUPS) else {
        return Limit::None;
    };
    let mut lanes = ranks_of(first, order);
    for block in others {
        for i in 0..BLOCK {
            lanes[i] = lanes[i].min(block[i].rank(order));
        }
    }
    let (parts, _) = lanes.as_chunks::<GROUPS>();
    let mut min_ranks = parts[0];
    for part in &parts[1..] {
        for i in 0..GROUPS {
            min_ranks[i] = min_ranks[i].min(part[i]);
        }
    }
    if count == 1 {
        return Limit::AtMost(min_ranks.into_iter().fold(min_ranks[0], Ord::min));
    }
    let mut bound = None;
    for rank in min_ranks {
        let not_above = min_ranks.iter().fold(0, |n, &other| n + usize::from(other <= rank));
        if not_above >= count && bound.is_none_or(|bound| rank < bound) {
            bound = Some(rank);
        }
    }
    bound.map_or(Limit::None, Limit::AtMost)
}

/// Fills `best` with the first records in sorted order, by insertion.
#[inline(always)]
fn insert_top<K: Key, R: Record>(keys: &[K], order: Order, best: &mut [R]) {
    let (count, mut len) = (best.len(), 0);
    best.fill(R::LAST);
    let first = bound(keys, count, order);
    for_each_admitted(keys, order, first, |key, position| {
        let mut new: R = record(key, position, order);
        for old in best.iter_mut() {
            (*old, new) = if new < *old { (new, *old) } else { (*old, new) };
        }
        len += 1;
        match len < count {
            true => first,
            false => Limit::Below(keys[best[count - 1].position()].rank(order)),
        }
    });
    // There are fewer records only if another thread changes the elements.
    best[len.min(count)..].fill(R::new(0, 0));
}

/// Collects a superset of the first `count` records in sorted order, in any order. Returns the
/// number of collected records. `best` has room for more than `count` records, and the row has more
/// than `count` elements.
#[inline(always)]
fn collect_candidates<K: Key, R: Record>(
    keys: &[K],
    count: usize,
    order: Order,
    best: &mut [R],
) -> usize {
    let (mut len, mut limit) = (0, Limit::None);
    for_each_admitted(keys, order, limit, |key, position| {
        best[len] = record(key, position, order);
        len += 1;
        if len == best.len() {
            best.select_nth_unstable(count - 1);
            len = count;
            limit = Limit::Below(keys[best[count - 1].position()].rank(order));
        }
        limit
    });
    len
}

/// Sorts `records` partially: the records with the indices `from..to` in sorted order are moved to these indices. The order of the
/// other records is arbitrary.
fn sort_ranks<R: Ord>(records: &mut [R], from: usize, to: usize) {
    let mut part = records;
    if to < part.len() {
        let (low, _, _) = part.select_nth_unstable(to);
        part = low;
    }
    if from > 0 && from < part.len() {
        let (_, _, high) = part.select_nth_unstable(from - 1);
        part = high;
    } else if from > 0 {
        return;
    }
    part.sort_unstable();
}

/// What a `sort` call requests: the range of positions in sorted order, the direction, and the
/// chosen algorithm.
#[derive(Clone, Copy)]
pub(super) struct Selection {
    pub from: usize,
    pub to: usize,
    pub order: Order,
    pub algorithm: Algorithm,
}

impl Selection {
    /// Returns the number of records of scratch memory that are needed to sort a row of `columns`
    /// elements.
    pub fn records(&self, columns: usize) -> usize {
        match self.algorithm {
            Algorithm::Network => 0,
            Algorithm::Top => self.to,
            Algorithm::Candidates => 2 * self.to + BLOCK,
            Algorithm::Select => columns,
        }
    }

    /// Returns the sorting network for rows of `columns` elements. For other algorithms, returns a
    /// network without comparators.
    pub fn network(&self, columns: usize) -> Network {
        let is_used = matches!(self.algorithm, Algorithm::Network);
        let mut network = Network::new(if is_used { columns } else { 0 });
        if is_used {
            network.keep(self.from..self.to);
        }
        network
    }

    /// Returns the requested records of a row in sorted order. `records` is scratch memory of the
    /// size that [`Self::records`] returns.
    #[inline(always)]
    pub fn order<'r, K: Key, R: Record>(&self, keys: &[K], records: &'r mut [R]) -> &'r [R] {
        let Selection { from, to, order, .. } = *self;
        match self.algorithm {
            Algorithm::Top => insert_top(keys, order, records),
            Algorithm::Candidates => {
                let len = collect_candidates(keys, to, order, records);
                sort_ranks(&mut records[..len], from, to);
            }
            Algorithm::Network | Algorithm::Select => {
                for (i, &key) in keys.iter().enumerate() {
                    records[i] = record(key, i, order);
                }
                sort_ranks(records, from, to);
            }
        }
        &records[from..to]
    }
}
