//! Plans the matmul that computes an einsum of two operands: which labels are batch dims, rows, columns and summed dims, and how
//! the operands and the result must be transposed and reshaped.

use pliant_ir::{Sym, SymArena};
use pliant_ops::einsum_equation::{Equation, Label};

/// A tensor with an einsum label for each dim.
#[derive(Clone, Debug)]
pub(super) struct LabelledTensor {
    pub labels: Vec<Label>,
    pub dims: Vec<Sym>,
}

impl LabelledTensor {
    fn size(&self, label: Label) -> Option<Sym> {
        self.labels.iter().position(|&l| l == label).map(|at| self.dims[at])
    }

    fn contains_label(&self, label: Label) -> bool {
        self.labels.contains(&label)
    }
}

/// A transform of a tensor: an optional permutation of its dims, followed by an optional reshape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transform {
    pub order: Option<Vec<usize>>,
    pub dims: Option<Vec<Sym>>,
}

impl Transform {
    /// Whether the dims are permuted, so that elements move in memory.
    pub fn permutes(&self) -> bool {
        self.order.is_some()
    }

    /// Whether the last dim moves, so that elements are copied one by one.
    pub fn moves_last_dim(&self) -> bool {
        self.order.as_ref().is_some_and(|order| order.last() != Some(&(order.len() - 1)))
    }
}

/// A matmul that computes an einsum, with the transforms of operands and result.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Whether the second operand of the einsum is the left operand of the matmul.
    pub swapped: bool,
    /// The transforms of the left and the right operand.
    pub operands: [Transform; 2],
    /// The dims to which the result of the matmul is reshaped, if several dims of an operand were merged to the rows or the
    /// columns of the matmul; otherwise `None`.
    pub split_dims: Option<Vec<Sym>>,
    /// The permutation that transposes the result of the matmul to the result of the einsum; `None` if no transpose is needed.
    pub order: Option<Vec<usize>>,
    /// Whether the summed dims are contiguous and in the same order in both operands, so that loops can read them as one dim.
    pub same_summed_order: bool,
}

/// Plans the matmul that computes an einsum of two operands with these labels; `None` if no matmul can. If `swapped` is set, the
/// second operand becomes the left operand of the matmul.
pub(super) fn product_plan(
    syms: &mut SymArena,
    eq: &Equation,
    dims: [&[Sym]; 2],
    result: &[Sym],
    swapped: bool,
) -> Option<Plan> {
    let [first, second] = &eq.inputs[..] else { return None };
    let labelled = |labels: &[Label], dims: &[Sym]| LabelledTensor {
        labels: labels.to_vec(),
        dims: dims.to_vec(),
    };
    let (first, second) = (labelled(first, dims[0]), labelled(second, dims[1]));
    let [left, right] = if swapped { [second, first] } else { [first, second] };
    let out = labelled(&eq.output, result);
    let roles = LabelRoles::of(syms, &left, &right, &out)?;
    let (rows, columns) = (roles.rows.len(), roles.columns.len());
    let has_batch = !roles.batch.is_empty();
    // With batch dims, a matmul has exactly one dim of rows; without, it has any number.
    let merged_rows = has_batch && rows != 1;
    let merged_columns = columns > 1 || has_batch && columns == 0;
    let merged_inner = roles.inner.len() > 1;
    let mut transform_for = |of: &LabelledTensor, parts: [&[Label]; 3], merged: bool| {
        let order: Vec<Label> = parts.concat();
        let merged_dims = merged.then(|| {
            let size =
                |l: &Label| of.size(*l).expect("every label of an operand is a dim of the operand");
            let mut dims: Vec<Sym> = parts[0].iter().map(size).collect();
            for part in &parts[1..] {
                // Without batch dims, a vector has no dim for its missing columns.
                if has_batch || !part.is_empty() {
                    dims.push(syms.product(part.iter().map(size)));
                }
            }
            dims
        });
        Transform { order: permutation_to(&of.labels, &order), dims: merged_dims }
    };
    let leading = [&roles.batch[..], if has_batch { &[] } else { &roles.rows[..] }].concat();
    let middle = if has_batch { &roles.rows[..] } else { &[] };
    let operands = [
        transform_for(&left, [&leading, middle, &roles.inner], merged_rows || merged_inner),
        transform_for(
            &right,
            [&roles.batch, &roles.inner, &roles.columns],
            merged_columns || merged_inner,
        ),
    ];
    let product_labels = [&roles.batch[..], &roles.rows, &roles.columns].concat();
    let sizes = || product_labels.iter().map(|&l| out.size(l)).collect::<Option<Vec<_>>>();
    let split_dims = if merged_rows || merged_columns { Some(sizes()?) } else { None };
    let order = permutation_to(&product_labels, &out.labels);
    Some(Plan {
        swapped,
        operands,
        split_dims,
        order,
        same_summed_order: roles.same_summed_order(&left, &right),
    })
}

/// Returns the permutation from the current order of labels to the target order; `None` if the orders are equal.
fn permutation_to(current: &[Label], target: &[Label]) -> Option<Vec<usize>> {
    let at = |l: &Label| current.iter().position(|h| h == l);
    let order: Vec<usize> = target.iter().filter_map(at).collect();
    (!order.iter().copied().eq(0..order.len())).then_some(order)
}

/// The labels of an einsum, grouped by their role in the matmul: batch, row, column or summed.
struct LabelRoles {
    batch: Vec<Label>,
    rows: Vec<Label>,
    columns: Vec<Label>,
    inner: Vec<Label>,
}

impl LabelRoles {
    fn of(
        syms: &SymArena,
        left: &LabelledTensor,
        right: &LabelledTensor,
        out: &LabelledTensor,
    ) -> Option<LabelRoles> {
        let unique = |of: &LabelledTensor| {
            (0..of.labels.len()).all(|k| !of.labels[..k].contains(&of.labels[k]))
        };
        if !unique(left) || !unique(right) {
            return None;
        }
        let one = |s: Sym| syms.as_int(s) == Some(1);
        let (mut batch, mut rows, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for &l in &out.labels {
            match (left.size(l), right.size(l)) {
                (Some(a), Some(b)) if a == b || one(a) || one(b) => batch.push(l),
                (Some(_), None) => rows.push(l),
                (None, Some(_)) => columns.push(l),
                _ => return None,
            }
        }
        let summed_labels = |of: &LabelledTensor| -> Vec<Label> {
            of.labels.iter().copied().filter(|&l| !out.contains_label(l)).collect()
        };
        let inner = summed_labels(left);
        // A label that is summed in one operand only, or that is broadcast to the size of the other operand, cannot be a summed dim
        // of a matmul.
        let has_same_size = |&l: &Label| left.size(l) == right.size(l);
        let sums_match =
            inner.iter().all(has_same_size) && summed_labels(right).iter().all(has_same_size);
        let has_free_dim = !rows.is_empty() || !columns.is_empty();
        (sums_match && has_free_dim && !inner.is_empty()).then_some(LabelRoles {
            batch,
            rows,
            columns,
            inner,
        })
    }

    fn same_summed_order(&self, left: &LabelledTensor, right: &LabelledTensor) -> bool {
        let first = self.inner[0];
        [left, right].iter().all(|of| {
            let at = of.labels.iter().position(|&l| l == first);
            at.is_some_and(|at| of.labels[at..].starts_with(&self.inner))
        })
    }
}
