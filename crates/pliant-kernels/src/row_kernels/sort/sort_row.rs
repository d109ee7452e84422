//! Sorts one row, completely or only a requested range of indices in sorted order.

use super::sort_keys::{Key, Record, record};
use super::sorting_networks::Network;
use crate::algorithm_selection::sort::Algorithm;

/// Number of elements of a block of a row. If no element of a block is within the current [`Limit`], the block is skipped as a
/// whole.
const BLOCK: usize = 32;
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
}

/// Calls `insert` with the value and the position of each element whose rank is within `limit`.
/// `insert` returns the limit for the following elements. Blocks without such elements, which are
/// most blocks of a long row, are skipped by a vectorized test.
#[inline(always)]
fn for_each_admitted<K: Key>(
    keys: &[K],
    descending: bool,
    mut limit: Limit<K::Rank>,
    mut insert: impl FnMut(K, usize) -> Limit<K::Rank>,
) {
    for (b, block) in keys.chunks(BLOCK).enumerate() {
        let ranks = block.iter().map(|k| k.rank(descending));
        let all = ranks.clone();
        let any = match limit {
            Limit::None => true,
            Limit::AtMost(most) => all.fold(false, |any, rank| any | (rank <= most)),
            Limit::Below(limit) => all.fold(false, |any, rank| any | (rank < limit)),
        };
        if !any {
            continue;
        }
        for (i, rank) in ranks.enumerate() {
            if limit.admits(rank) {
                limit = insert(block[i], b * BLOCK + i);
            }
        }
    }
}

/// Computes an initial limit that at least `count` elements satisfy. Divides the first elements of the row into [`GROUPS`] groups,
/// and returns the `count`-th smallest of the groups' smallest ranks. If `count` exceeds [`GROUPS`], returns no limit.
#[inline(always)]
fn bound<K: Key>(keys: &[K], count: usize, descending: bool) -> Limit<K::Rank> {
    let (groups, _) = keys[..keys.len().min(SAMPLE)].as_chunks::<GROUPS>();
    let Some((first, rest)) = groups.split_first().filter(|_| count <= GROUPS) else {
        return Limit::None;
    };
    let mut min_ranks = first.map(|k| k.rank(descending));
    for group in rest {
        for i in 0..GROUPS {
            min_ranks[i] = min_ranks[i].min(group[i].rank(descending));
        }
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
fn insert_top<K: Key, R: Record>(keys: &[K], descending: bool, best: &mut [R]) {
    let (count, mut len) = (best.len(), 0);
    best.fill(R::LAST);
    let first = bound(keys, count, descending);
    for_each_admitted(keys, descending, first, |key, position| {
        let mut new: R = record(key, position, descending);
        for old in best.iter_mut() {
            (*old, new) = if new < *old { (new, *old) } else { (*old, new) };
        }
        len += 1;
        match len < count {
            true => first,
            false => Limit::Below(keys[best[count - 1].position()].rank(descending)),
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
    descending: bool,
    best: &mut [R],
) -> usize {
    let (mut len, mut limit) = (0, Limit::None);
    for_each_admitted(keys, descending, limit, |key, position| {
        best[len] = record(key, position, descending);
        len += 1;
        if len == best.len() {
            best.select_nth_unstable(count - 1);
            len = count;
            limit = Limit::Below(keys[best[count - 1].position()].rank(descending));
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
    pub descending: bool,
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
        let Selection { from, to, descending, .. } = *self;
        match self.algorithm {
            Algorithm::Top => insert_top(keys, descending, records),
            Algorithm::Candidates => {
                let len = collect_candidates(keys, to, descending, records);
                sort_ranks(&mut records[..len], from, to);
            }
            Algorithm::Network | Algorithm::Select => {
                for (i, &key) in keys.iter().enumerate() {
                    records[i] = record(key, i, descending);
                }
                sort_ranks(records, from, to);
            }
        }
        &records[from..to]
    }
}
