//! Converter of `TreeEnsemble`, which evaluates all trees together, one level per step. In this
//! file, a position is the index of a node in one list of all nodes, in which the leaves follow the
//! inner nodes. The successor of a leaf is the leaf itself.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_tensor::Tensor;

use super::OnnxOp;
use crate::import_error::Problem;
use crate::initializer_tensors;
use crate::node::{ConvertResult, ExprResult, Node, ints_attr};
use crate::node_attributes::AttrReader;

pub(super) static OPS: &[OnnxOp] =
    &[OnnxOp { domain: "ai.onnx.ml", name: "TreeEnsemble", convert: tree_ensemble }];

/// The comparison operators at the nodes of a tree ensemble, by the number that the model file stores for each of them. The number
/// after the last one denotes a test of membership in a set.
const COMPARISONS: &[&str] = &[
    "relax.less_equal",
    "relax.less",
    "relax.greater_equal",
    "relax.greater",
    "relax.equal",
    "relax.not_equal",
];
const MEMBERSHIP: i64 = COMPARISONS.len() as i64;
/// Maximum depth of the trees. The limit exists because each level is unrolled.
const MAX_LEVELS: usize = 1000;
/// Maximum number of elements of all membership sets of a tree ensemble together, where each set is padded to the length of the
/// longest one.
const MAX_MEMBERS: usize = 1 << 26;

/// The trees of a `TreeEnsemble` node, stored as lists with one entry per node. All trees share the lists, so an index identifies a
/// node of any tree.
struct TreeEnsemble {
    roots: Vec<i64>,
    inner: usize,
    /// For each node, the index of the next node: in the first list if the comparison at the node is true, in the second list if
    /// it is false.
    next: [Vec<i64>; 2],
    features: Vec<i64>,
    modes: Vec<i64>,
    splits: Vec<f64>,
    /// For each node, whether a missing value (NaN) continues as if the comparison were true.
    missing: Vec<bool>,
    /// For each node that tests membership, the set of members, padded to the length of the longest set.
    members: Vec<Vec<f64>>,
    levels: usize,
}

/// Creates the problem that the trees are invalid.
fn broken_trees(problem: &str) -> Problem {
    Problem::invalid(format!("the attributes of the node describe invalid trees: {problem}"))
}

/// Reads a list attribute, which must have `len` numbers if `len` is present.
fn int_list(attrs: AttrReader<'_>, name: &str, len: Option<usize>) -> Result<Vec<i64>, Problem> {
    let list = attrs.ints(name)?.unwrap_or_default().to_vec();
    match len {
        Some(len) if list.len() != len => {
            let text =
                format!("attribute '{name}' has {} numbers, but must have {len}", list.len());
            Err(broken_trees(&text))
        }
        _ => Ok(list),
    }
}

/// Reads the elements of a tensor attribute.
fn tensor_attribute(n: &mut Node<'_, '_>, name: &str) -> Result<Vec<f64>, Problem> {
    let Some(proto) = n.attrs().tensor(name)? else { return Ok(Vec::new()) };
    let limits = n.importer.limits;
    let read = initializer_tensors::read_tensor(proto, &mut n.importer.external, &limits)?;
    read.to_f64_vec().map_err(|e| Problem::invalid(e.to_string()))
}

impl TreeEnsemble {
    /// Reads the trees from the attributes of the node, and validates them.
    fn read(n: &mut Node<'_, '_>, leaves: usize) -> Result<TreeEnsemble, Problem> {
        let attrs = n.attrs();
        let features = int_list(attrs, "nodes_featureids", None)?;
        let inner = features.len();
        let splits = tensor_attribute(n, "nodes_splits")?;
        let modes: Vec<i64> =
            tensor_attribute(n, "nodes_modes")?.iter().map(|&m| m as i64).collect();
        if splits.len() != inner || modes.len() != inner || inner == 0 || leaves == 0 {
            return Err(broken_trees(&format!(
                "'nodes_featureids', 'nodes_splits' and 'nodes_modes' have {inner}, {} and {} elements, but must have \
                 equally many and at least one, and 'leaf_weights' has {leaves}, but must have at least one",
                splits.len(),
                modes.len()
            )));
        }
        let side = |name: &str, leafs: &str| -> Result<Vec<i64>, Problem> {
            let (ids, leafs) =
                (int_list(attrs, name, Some(inner))?, int_list(attrs, leafs, Some(inner))?);
            let position = |(&id, &leaf): (&i64, &i64)| {
                let max = if leaf != 0 { leaves } else { inner };
                let valid = usize::try_from(id).ok().filter(|&id| id < max);
                let id = valid.ok_or_else(|| {
                    let kind = if leaf != 0 { "leaves" } else { "inner nodes" };
                    broken_trees(&format!("'{name}' contains {id}, but there are {max} {kind}"))
                })?;
                Ok(if leaf != 0 { (inner + id) as i64 } else { id as i64 })
            };
            ids.iter().zip(&leafs).map(position).collect()
        };
        let next = [
            side("nodes_truenodeids", "nodes_trueleafs")?,
            side("nodes_falsenodeids", "nodes_falseleafs")?,
        ];
        let mut missing = int_list(attrs, "nodes_missing_value_tracks_true", None)?;
        missing.resize(inner, 0);
        let roots = int_list(attrs, "tree_roots", None)?;
        if roots.is_empty() || roots.iter().any(|&r| r < 0 || r >= inner as i64) {
            return Err(broken_trees(&format!(
                "'tree_roots' must contain indices of the {inner} inner nodes, but is {roots:?}"
            )));
        }
        let members = membership_sets(&modes, &tensor_attribute(n, "membership_values")?)?;
        let mut trees = TreeEnsemble {
            roots,
            inner,
            next,
            features,
            modes,
            splits,
            missing: missing.iter().map(|&m| m != 0).collect(),
            members,
            levels: 0,
        };
        trees.levels = trees.depth()?;
        trees.add_leaves(leaves);
        Ok(trees)
    }

    /// The depth of the trees: the maximum number of comparisons on a path.
    fn depth(&self) -> Result<usize, Problem> {
        let mut level: Vec<i64> = self.roots.clone();
        for depth in 0..=MAX_LEVELS {
            level.retain(|&position| position < self.inner as i64);
            if level.is_empty() {
                return Ok(depth);
            }
            level = level
                .iter()
                .flat_map(|&position| self.next.each_ref().map(|s| s[position as usize]))
                .collect();
            level.sort_unstable();
            level.dedup();
        }
        Err(broken_trees(&format!("a path has a cycle or more than {MAX_LEVELS} nodes")))
    }

    /// Adds the leaves to the lists of nodes. The next node of a leaf is the leaf itself.
    fn add_leaves(&mut self, leaves: usize) {
        let whole = self.inner + leaves;
        for side in &mut self.next {
            side.extend((self.inner..whole).map(|position| position as i64));
        }
        self.features.resize(whole, 0);
        self.modes.resize(whole, 0);
        self.splits.resize(whole, 0.0);
        self.missing.resize(whole, false);
        if !self.members.is_empty() {
            let width = self.members[0].len();
            self.members.resize(whole, vec![f64::NAN; width]);
        }
    }
}

/// The membership set of each node, padded with NaN, which equals no number. The list is empty if no node tests membership.
fn membership_sets(modes: &[i64], values: &[f64]) -> Result<Vec<Vec<f64>>, Problem> {
    if let Some(mode) = modes.iter().find(|m| !(0..=MEMBERSHIP).contains(*m)) {
        return Err(broken_trees(&format!(
            "'nodes_modes' contains {mode}, but comparison modes are from 0 to {MEMBERSHIP}"
        )));
    }
    if !modes.contains(&MEMBERSHIP) {
        return Ok(Vec::new());
    }
    let mut lists = values.split(|v| v.is_nan());
    let mut sets: Vec<Vec<f64>> = Vec::with_capacity(modes.len());
    for &mode in modes {
        sets.push(match mode {
            MEMBERSHIP => lists
                .next()
                .ok_or_else(|| {
                    broken_trees(
                        "'membership_values' has fewer sets than there are membership nodes",
                    )
                })?
                .to_vec(),
            _ => Vec::new(),
        });
    }
    let width = sets.iter().map(Vec::len).max().unwrap_or(0).max(1);
    // Every position, including leaves, takes the space of the longest set.
    if width.saturating_mul(2 * modes.len()) > MAX_MEMBERS {
        return Err(Problem::unsupported(format!(
            "the longest set in 'membership_values' has {width} members; the sets of all {} nodes, padded to this length, exceed \
             the limit of {MAX_MEMBERS} members in total",
            modes.len()
        )));
    }
    sets.iter_mut().for_each(|set| set.resize(width, f64::NAN));
    Ok(sets)
}

/// Creates a constant tensor of the given dtype.
fn constant(n: &mut Node<'_, '_>, shape: &[i64], values: &[f64], dtype: DType) -> ExprResult {
    let wide = Tensor::from_slice(shape, values).map_err(|e| Problem::invalid(e.to_string()))?;
    let wide = n.importer.constant(&wide);
    n.cast(wide, dtype)
}

fn tree_ensemble(n: &mut Node<'_, '_>) -> ConvertResult {
    let weights = tensor_attribute(n, "leaf_weights")?;
    let trees = TreeEnsemble::read(n, weights.len())?;
    let x = n.tensor(0)?;
    let rank = n.rank(x)?;
    if rank != 2 {
        return Err(Problem::invalid(format!("the input must have 2 dims, but has {rank}")));
    }
    let position = leaf_positions(n, &trees, x)?;
    let first = n.scalar(trees.inner as i64)?;
    let leaf = n.op("relax.subtract", &[position, first])?;
    let dtype = n.dtype(x)?;
    let count = weights.len() as i64;
    let weights = constant(n, &[count], &weights, dtype)?;
    let scores = n.take(weights, leaf, 0)?;
    let targets = int_list(n.attrs(), "leaf_targetids", Some(count as usize))?;
    let targets = n.int_vector(&targets)?;
    let targets = n.take(targets, leaf, 0)?;
    let y = aggregate_scores(n, scores, targets, trees.roots.len())?;
    Ok(vec![apply_post_transform(n, y)?.into()])
}

/// Emits the index of the leaf that each row reaches in each tree, as `(rows, trees)`.
fn leaf_positions(n: &mut Node<'_, '_>, trees: &TreeEnsemble, x: Expr) -> ExprResult {
    let (rows, dtype) = (n.dims(x)?[0], n.dtype(x)?);
    let roots = n.int_vector(&trees.roots)?;
    let count = n.func().syms.int(trees.roots.len() as i64);
    let shape = n.func().shape(&[rows, count]);
    let mut position = n.op("relax.broadcast_to", &[roots, shape])?;
    let (features, modes) = (n.int_vector(&trees.features)?, n.int_vector(&trees.modes)?);
    let next = [n.int_vector(&trees.next[0])?, n.int_vector(&trees.next[1])?];
    let all = trees.splits.len() as i64;
    let splits = constant(n, &[all], &trees.splits, dtype)?;
    let missing: Vec<f64> = trees.missing.iter().map(|&m| f64::from(u8::from(m))).collect();
    let missing = match trees.missing.contains(&true) {
        true => Some(constant(n, &[all], &missing, DType::Bool)?),
        false => None,
    };
    for _ in 0..trees.levels {
        let feature = n.take(features, position, 0)?;
        let value = n.op_with("relax.gather_elements", &[x, feature], ints_attr("axis", 1))?;
        let mut holds = compare_values(n, trees, value, position, (splits, modes))?;
        if let Some(missing) = missing {
            let (missing_value, tracks) =
                (n.op("relax.isnan", &[value])?, n.take(missing, position, 0)?);
            let tracks = n.op("relax.logical_and", &[missing_value, tracks])?;
            holds = n.op("relax.logical_or", &[holds, tracks])?;
        }
        let (then, other) = (n.take(next[0], position, 0)?, n.take(next[1], position, 0)?);
        position = n.op("relax.where", &[holds, then, other])?;
    }
    Ok(position)
}

/// Emits a bool for each row and tree: whether the comparison at the current node (index `position`) is true.
fn compare_values(
    n: &mut Node<'_, '_>,
    trees: &TreeEnsemble,
    value: Expr,
    position: Expr,
    (splits, modes): (Expr, Expr),
) -> ExprResult {
    let split = n.take(splits, position, 0)?;
    let mut accumulated: Option<Expr> = None;
    for mode in (0..=MEMBERSHIP).filter(|m| trees.modes[..trees.inner].contains(m)) {
        let holds = match COMPARISONS.get(mode as usize) {
            Some(name) => n.op(name, &[value, split])?,
            None => is_member(n, trees, value, position)?,
        };
        accumulated = Some(match accumulated {
            Some(others) => {
                let (own_target, mode) = (n.take(modes, position, 0)?, n.scalar(mode)?);
                let own_target = n.op("relax.equal", &[own_target, mode])?;
                n.op("relax.where", &[own_target, holds, others])?
            }
            None => holds,
        });
    }
    accumulated.ok_or_else(|| broken_trees("'nodes_modes' contains no comparison mode"))
}

/// Emits a bool for each value: whether it is in the membership set of the node with index `position`.
fn is_member(
    n: &mut Node<'_, '_>,
    trees: &TreeEnsemble,
    value: Expr,
    position: Expr,
) -> ExprResult {
    let dtype = n.dtype(value)?;
    let width = trees.members.first().map_or(1, Vec::len) as i64;
    let flat: Vec<f64> = trees.members.iter().flatten().copied().collect();
    let sets = constant(n, &[trees.members.len() as i64, width], &flat, dtype)?;
    let own_target = n.take(sets, position, 0)?;
    let mut dims = n.dims(value)?;
    dims.push(n.func().syms.int(1));
    let value = n.reshape(value, &dims)?;
    let same = n.op("relax.equal", &[value, own_target])?;
    let same = n.cast(same, DType::Int64)?;
    let match_count = n.op_with("relax.sum", &[same], ints_attr("axis", -1))?;
    let missing_value = n.scalar(0i64)?;
    n.op("relax.greater", &[match_count, missing_value])
}

/// Emits the scores of all trees, aggregated for each target: `(rows, targets)`.
fn aggregate_scores(n: &mut Node<'_, '_>, scores: Expr, targets: Expr, trees: usize) -> ExprResult {
    let count = n.attrs().int("n_targets")?.unwrap_or(1);
    let dtype = n.dtype(scores)?;
    let mut dims = n.dims(scores)?;
    dims.push(n.func().syms.int(1));
    let (scores, targets) = (n.reshape(scores, &dims)?, n.reshape(targets, &dims)?);
    let count = n.func().syms.int(count.max(0));
    let accumulated = n.iota(count)?;
    let own_target = n.op("relax.equal", &[targets, accumulated])?;
    let zero = n.scalar_as(0.0, dtype)?;
    let (reduce, default) = match n.attrs().int("aggregate_function")?.unwrap_or(1) {
        0 | 1 => ("relax.sum", 0.0),
        2 => ("relax.min", f64::INFINITY),
        3 => ("relax.max", f64::NEG_INFINITY),
        other => {
            let text =
                format!("attribute 'aggregate_function' is {other}, but must be from 0 to 3");
            return Err(Problem::invalid(text));
        }
    };
    let missing_value = n.scalar_as(default, dtype)?;
    let parts = n.op("relax.where", &[own_target, scores, missing_value])?;
    let y = n.op_with(reduce, &[parts], ints_attr("axis", 1))?;
    if reduce == "relax.sum" {
        if n.attrs().int("aggregate_function")? != Some(0) {
            return Ok(y);
        }
        let trees = n.scalar_as(trees as f64, dtype)?;
        return n.op("relax.divide", &[y, trees]);
    }
    // A target without a score gets 0.
    let unscored = n.op("relax.equal", &[y, missing_value])?;
    n.op("relax.where", &[unscored, zero, y])
}

fn apply_post_transform(n: &mut Node<'_, '_>, y: Expr) -> ExprResult {
    match n.attrs().int("post_transform")?.unwrap_or(0) {
        0 => Ok(y),
        1 => {
            let attrs = Attrs::default().with("axis", AttrValue::Int(1));
            n.op_with("relax.nn.softmax", &[y], attrs)
        }
        2 => n.op("relax.sigmoid", &[y]),
        other => Err(Problem::unsupported(format!(
            "attribute 'post_transform' is {other}, but only 0 (none), 1 (softmax) and 2 (logistic) are supported"
        ))),
    }
}
