//! Post-dominators of a dataflow graph: for each node, the nearest node that all paths from it contain, and the largest (most
//! restrictive) fusion pattern on these paths.
//!
//! Nodes are numbered in program order, so every edge goes from a smaller to a larger number. Skip links find the nearest common
//! ancestor of two nodes in logarithmic time.

use super::fusion_pattern_kind::OpPattern;

/// A node of the dataflow graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// The fusion pattern of the operator at this node: how the operator can be fused with others.
    pub pattern: OpPattern,
    /// The nodes that read the result of this node. Each comes with the fusion pattern of the edge, which says how the reader
    /// accesses the result.
    pub readers: Vec<(u32, OpPattern)>,
    /// Whether the result of this node is also read outside of the dataflow graph.
    pub escapes: bool,
}

/// A node of the post-dominator tree.
#[derive(Clone, Copy, Debug)]
struct TreeNode {
    depth: u32,
    /// The immediate post-dominator, if there is one, and the most restrictive fusion pattern of the edges on all paths to it.
    parent: Option<(u32, OpPattern)>,
    /// An ancestor of this node above its parent, and the most restrictive fusion pattern on the path to this ancestor. It speeds
    /// up the search for common ancestors.
    skip: Option<(u32, OpPattern)>,
}

/// The post-dominator tree of a dataflow graph.
#[derive(Clone, Debug)]
pub struct PostDominators {
    nodes: Vec<TreeNode>,
}

impl PostDominators {
    /// Computes the post-dominator tree. `nodes` must be in program order.
    pub fn new(nodes: &[Node]) -> Self {
        let root = TreeNode { depth: 0, parent: None, skip: None };
        let mut tree = PostDominators { nodes: vec![root; nodes.len()] };
        for (index, node) in nodes.iter().enumerate().rev() {
            let parent =
                if node.escapes { None } else { tree.common_post_dominator(&node.readers) };
            tree.nodes[index] = tree.child_of(parent);
        }
        tree
    }

    /// Returns the immediate post-dominator of a node, and the most restrictive fusion pattern on all paths to it; `None` if
    /// there is no post-dominator.
    pub fn parent(&self, node: u32) -> Option<(u32, OpPattern)> {
        self.nodes[node as usize].parent
    }

    fn child_of(&self, parent: Option<(u32, OpPattern)>) -> TreeNode {
        let Some((up, pattern)) = parent else {
            return TreeNode { depth: 0, parent: None, skip: None };
        };
        let up_node = self.nodes[up as usize];
        let depth = up_node.depth + 1;
        // Skip links form a skew-binary list: two consecutive jumps of equal length are merged into one.
        let skip = up_node.skip.and_then(|(first, p)| {
            let (second, q) = self.nodes[first as usize].skip?;
            let equal = up_node.depth - self.nodes[first as usize].depth
                == self.nodes[first as usize].depth - self.nodes[second as usize].depth;
            equal.then(|| (second, pattern.max(p).max(q)))
        });
        TreeNode { depth, parent, skip: skip.or(parent) }
    }

    fn common_post_dominator(&self, readers: &[(u32, OpPattern)]) -> Option<(u32, OpPattern)> {
        let (&(mut at, mut pattern), rest) = readers.split_first()?;
        for &(other, edge) in rest {
            let (up, on_way) = self.common_ancestor(at, other)?;
            (at, pattern) = (up, pattern.max(edge).max(on_way));
        }
        Some((at, pattern))
    }

    /// Returns the nearest common ancestor of two nodes in the tree, and the most restrictive fusion pattern on both paths to it;
    /// `None` if there is none.
    fn common_ancestor(&self, mut a: u32, mut b: u32) -> Option<(u32, OpPattern)> {
        let mut pattern = OpPattern::ElemWise;
        let mut climb = |to: &mut u32, by: Option<(u32, OpPattern)>| {
            let (up, p) = by?;
            (*to, pattern) = (up, pattern.max(p));
            Some(())
        };
        let node = |n: u32| &self.nodes[n as usize];
        let depth = |n: u32| node(n).depth;
        while depth(a) != depth(b) {
            let (low, target) =
                if depth(a) > depth(b) { (&mut a, depth(b)) } else { (&mut b, depth(a)) };
            let skip = node(*low).skip.filter(|s| depth(s.0) >= target);
            climb(low, skip.or(node(*low).parent))?;
        }
        while a != b {
            let jump = match (node(a).skip, node(b).skip) {
                (Some(x), Some(y)) if x.0 != y.0 => Some((x, y)),
                _ => None,
            };
            let (x, y) = match jump {
                Some(pair) => pair,
                None => (node(a).parent?, node(b).parent?),
            };
            climb(&mut a, Some(x))?;
            climb(&mut b, Some(y))?;
        }
        Some((a, pattern))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(n: usize, edges: &[(u32, u32)]) -> Vec<Node> {
        let node = Node { pattern: OpPattern::ElemWise, readers: Vec::new(), escapes: false };
        let mut nodes = vec![node; n];
        for &(a, b) in edges {
            let pattern = if b % 3 == 0 { OpPattern::Injective } else { OpPattern::ElemWise };
            nodes[a as usize].readers.push((b, pattern));
        }
        nodes
    }

    /// Test helper: computes the immediate post-dominator of a node by a search over all paths, to check the result of
    /// [`PostDominators`].
    fn post_dominator_by_search(nodes: &[Node], at: u32) -> Option<u32> {
        let reach = |from: u32, without: Option<u32>| {
            let (mut seen, mut stack) = (vec![false; nodes.len()], vec![from]);
            while let Some(n) = stack.pop() {
                if Some(n) == without || std::mem::replace(&mut seen[n as usize], true) {
                    continue;
                }
                stack.extend(nodes[n as usize].readers.iter().map(|r| r.0));
            }
            seen
        };
        let ends = |seen: &[bool]| {
            (0..nodes.len()).any(|n| seen[n] && (nodes[n].readers.is_empty() || nodes[n].escapes))
        };
        if nodes[at as usize].escapes {
            return None;
        }
        let all = reach(at, None);
        (at + 1..nodes.len() as u32).find(|&n| all[n as usize] && !ends(&reach(at, Some(n))))
    }

    #[test]
    fn matches_a_search_over_all_paths() {
        let mut state = 7u64;
        let mut random = move |child_of: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % child_of
        };
        for round in 0..300 {
            let n = 2 + random(14) as u32;
            let mut edges = Vec::new();
            for a in 0..n - 1 {
                for _ in 0..random(3) {
                    edges.push((a, a + 1 + random(u64::from(n - a - 1)) as u32));
                }
            }
            let mut nodes = graph(n as usize, &edges);
            nodes[random(u64::from(n)) as usize].escapes = true;
            let tree = PostDominators::new(&nodes);
            for at in 0..n {
                let found = tree.parent(at).map(|p| p.0);
                assert_eq!(
                    found,
                    post_dominator_by_search(&nodes, at),
                    "round {round}, node {at}: {nodes:?}"
                );
            }
        }
    }

    #[test]
    fn a_long_chain_with_far_readers_is_fast() {
        let n = 200_000u32;
        let far = (0..n / 2).step_by(2).map(|a| (a, n - 1));
        let edges: Vec<(u32, u32)> = (0..n - 1).map(|a| (a, a + 1)).chain(far).collect();
        let tree = PostDominators::new(&graph(n as usize, &edges));
        assert_eq!(tree.parent(1).map(|p| p.0), Some(2));
        assert_eq!(tree.parent(0).map(|p| p.0), Some(n - 1));
        assert_eq!(tree.parent(0).map(|p| p.1), Some(OpPattern::Injective));
    }
}
