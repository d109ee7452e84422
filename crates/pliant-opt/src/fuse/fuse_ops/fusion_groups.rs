//! Partitions the nodes of a dataflow graph into groups that are fused. A group is merged into the group of its post-dominator if
//! the fusion patterns on all paths between them allow this.
//!
//! There are three rounds. Every round merges elementwise operations into their readers. In addition, the first round merges
//! reductions and matmuls with the elementwise operations on their outputs, and the other rounds merge injective operations with
//! their readers. The third round finds merges that the second round has made possible.

use rustc_hash::FxHashSet;

use super::dataflow_graph::Graph;
use crate::analysis::dominators::PostDominators;
use crate::analysis::fusion_pattern_kind::OpPattern;

/// The groups under construction, as a union-find structure over the nodes.
pub(super) struct Groups {
    /// The parent of each node; a root is its own parent.
    parents: Vec<u32>,
    /// The fusion pattern of each group, stored at the index of the group's root node.
    pattern: Vec<OpPattern>,
    /// The number of calls in each group, stored at the index of the group's root node.
    size: Vec<usize>,
}

impl Groups {
    /// Computes groups of at most `max_size` calls each.
    pub fn of(graph: &Graph, max_size: usize) -> Groups {
        let n = graph.nodes.len();
        let mut groups = Groups {
            parents: (0..n as u32).collect(),
            pattern: graph.nodes.iter().map(|n| n.pattern).collect(),
            size: graph.calls.iter().map(|&c| usize::from(c)).collect(),
        };
        let dominators = PostDominators::new(&graph.nodes);
        for round in 0..3 {
            for node in 0..n as u32 {
                if let Some((sink, path_pattern)) = dominators.parent(node) {
                    groups.merge_into_sink(graph, node, sink, path_pattern, round, max_size);
                }
            }
        }
        groups
    }

    /// Returns the root of a node's group in the union-find structure.
    pub fn find(&mut self, mut node: u32) -> u32 {
        while self.parents[node as usize] != node {
            let grandparent = self.parents[self.parents[node as usize] as usize];
            self.parents[node as usize] = grandparent;
            node = grandparent;
        }
        node
    }

    fn pattern_of(&mut self, node: u32) -> OpPattern {
        let root = self.find(node);
        self.pattern[root as usize]
    }

    /// Merges the group of a node into the group of its post-dominator `sink`, if the fusion patterns and the maximum size of a
    /// group allow this.
    fn merge_into_sink(
        &mut self,
        graph: &Graph,
        node: u32,
        sink: u32,
        path_pattern: OpPattern,
        round: u32,
        max_size: usize,
    ) {
        use OpPattern::*;
        let separated_by_impure_call = graph.epochs[node as usize] != graph.epochs[sink as usize];
        if separated_by_impure_call || self.find(node) == self.find(sink) {
            return;
        }
        let own_pattern = self.pattern_of(node);
        let allowed: fn(OpPattern, bool) -> bool = match own_pattern {
            // Only elementwise operations can follow a reduction or a product.
            CommReduce | OutEWiseFusable if round == 0 && path_pattern == ElemWise => {
                |kind, _| kind <= Broadcast
            }
            ElemWise | Broadcast if path_pattern <= CommReduce => |kind, is_sink| {
                kind <= Injective || is_sink && matches!(kind, CommReduce | OutEWiseFusable)
            },
            Injective if round > 0 => |kind, _| kind <= Injective,
            _ => return,
        };
        if let Some(path_nodes) = self.nodes_before_sink(graph, node, sink, allowed, max_size) {
            for at in path_nodes {
                self.merge(at, sink);
            }
        }
    }

    /// Returns the nodes on all paths from a node to its post-dominator `sink`, without `sink`. `None` if `allowed` rejects the
    /// fusion pattern of `sink` or of a node between `node` and `sink`, or if the merged group would be too large.
    fn nodes_before_sink(
        &mut self,
        graph: &Graph,
        node: u32,
        sink: u32,
        allowed: fn(OpPattern, bool) -> bool,
        max_size: usize,
    ) -> Option<Vec<u32>> {
        if !allowed(self.pattern_of(sink), true) {
            return None;
        }
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut groups: FxHashSet<u32> = FxHashSet::default();
        let (mut out, mut stack, mut size) = (Vec::new(), vec![node], 0);
        while let Some(at) = stack.pop() {
            if !seen.insert(at) {
                continue;
            }
            let root = self.find(at);
            if groups.insert(root) {
                size += self.size[root as usize];
            }
            if size > max_size || at != node && at != sink && !allowed(self.pattern_of(at), false) {
                return None;
            }
            if at != sink {
                out.push(at);
                stack.extend(graph.nodes[at as usize].readers.iter().map(|r| r.0));
            }
        }
        Some(out)
    }

    fn merge(&mut self, node: u32, into: u32) {
        let (from, to) = (self.find(node), self.find(into));
        if from != to {
            self.parents[from as usize] = to;
            self.size[to as usize] += self.size[from as usize];
            self.pattern[to as usize] = self.pattern[to as usize].max(self.pattern[from as usize]);
        }
    }
}
