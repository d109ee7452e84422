//! The order of one row.

use super::key::{Key, Record, record};
use super::network::Network;
use crate::rules::sort::Algorithm;

/// Elements that are compared with the worst candidate at once.
const BLOCK: usize = 32;
/// Maximum number of elements of which a first bound is computed.
const SAMPLE: usize = 4096;
/// Groups of the elements of a bound.
const GROUPS: usize = 16;

/// The ranks of elements that may be among the first ones.
#[derive(Clone, Copy)]
enum Limit<R> {
    /// All ranks.
    None,
    /// At most this rank.
    AtMost(R),
    /// Below this rank: the worst candidate is at an earlier position than the elements that follow.
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

/// Calls `insert` for the elements that the limit admits; it returns the next limit. Most elements of a long row are worse than all
/// candidates, which one comparison of a block shows.
#[inline(always)]
fn each_better<K: Key>(
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

/// A rank that at least `count` elements do not exceed: the elements are distributed over [`GROUPS`] groups, whose least ranks are
/// compared.
#[inline(always)]
fn bound<K: Key>(keys: &[K], count: usize, descending: bool) -> Limit<K::Rank> {
    let (groups, _) = keys[..keys.len().min(SAMPLE)].as_chunks::<GROUPS>();
    let Some((first, rest)) = groups.split_first().filter(|_| count <= GROUPS) else {
        return Limit::None;
    };
    let mut least = first.map(|k| k.rank(descending));
    for group in rest {
        for i in 0..GROUPS {
            least[i] = least[i].min(group[i].rank(descending));
        }
    }
    let mut bound = None;
    for rank in least {
        let below = least.iter().fold(0, |n, &other| n + usize::from(other <= rank));
        if below >= count && bound.is_none_or(|bound| rank < bound) {
            bound = Some(rank);
        }
    }
    bound.map_or(Limit::None, Limit::AtMost)
}

/// The first records of the order, as many as `best` holds.
#[inline(always)]
fn top<K: Key, R: Record>(keys: &[K], descending: bool, best: &mut [R]) {
    let (count, mut len) = (best.len(), 0);
    best.fill(R::LAST);
    let first = bound(keys, count, descending);
    each_better(keys, descending, first, |key, position| {
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
    // Fewer are found only if the elements change meanwhile.
    best[len.min(count)..].fill(R::new(0, 0));
}

/// The first `count` records of the order in any order, and perhaps others behind them. Returns how many. `best` has room for more
/// than `count`, and the row has more elements than that.
#[inline(always)]
fn candidates<K: Key, R: Record>(
    keys: &[K],
    count: usize,
    descending: bool,
    best: &mut [R],
) -> usize {
    let (mut len, mut limit) = (0, Limit::None);
    each_better(keys, descending, limit, |key, position| {
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

/// Moves the records of ranks `from .. to` to their sorted positions.
fn arrange<R: Ord>(records: &mut [R], from: usize, to: usize) {
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

/// The part of the order that is wanted.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub from: usize,
    pub to: usize,
    pub descending: bool,
    pub algorithm: Algorithm,
}

impl Wanted {
    /// The records that ordering a row of this many elements takes.
    pub fn records(&self, columns: usize) -> usize {
        match self.algorithm {
            Algorithm::Network => 0,
            Algorithm::Top => self.to,
            Algorithm::Candidates => 2 * self.to + BLOCK,
            Algorithm::Select => columns,
        }
    }

    /// The network that sorts rows of this many elements; no comparators for other algorithms.
    pub fn network(&self, columns: usize) -> Network {
        let is_used = matches!(self.algorithm, Algorithm::Network);
        let mut network = Network::new(if is_used { columns } else { 0 });
        if is_used {
            network.keep(self.from..self.to);
        }
        network
    }

    /// The wanted records of a row, in order. `records` has as many as [`Self::records`] says.
    #[inline(always)]
    pub fn order<'r, K: Key, R: Record>(&self, keys: &[K], records: &'r mut [R]) -> &'r [R] {
        let Wanted { from, to, descending, .. } = *self;
        match self.algorithm {
            Algorithm::Top => top(keys, descending, records),
            Algorithm::Candidates => {
                let len = candidates(keys, to, descending, records);
                arrange(&mut records[..len], from, to);
            }
            Algorithm::Network | Algorithm::Select => {
                for (i, &key) in keys.iter().enumerate() {
                    records[i] = record(key, i, descending);
                }
                arrange(records, from, to);
            }
        }
        &records[from..to]
    }
}
