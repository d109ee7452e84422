//! An einsum of two operands as a matrix product: which labels are batch dims, rows, columns and
//! summed dims, and which transforms the operands and the result need.

use pliant_ir::{Sym, SymArena};
use pliant_ops::einsum_equation::{Equation, Label};

/// An operand, or a result, with the labels of its dims.
#[derive(Clone, Debug)]
pub(super) struct Labelled {
    pub labels: Vec<Label>,
    pub dims: Vec<Sym>,
}

impl Labelled {
    fn size(&self, label: Label) -> Option<Sym> {
        self.labels.iter().position(|&l| l == label).map(|at| self.dims[at])
    }

    fn has(&self, label: Label) -> bool {
        self.labels.contains(&label)
    }
}

/// A transform of a tensor: an optional permutation of its dims, then an optional reshape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub order: Option<Vec<usize>>,
    pub dims: Option<Vec<Sym>>,
}

impl Turn {
    /// Whether elements move in memory.
    pub fn moves(&self) -> bool {
        self.order.is_some()
    }

    /// Whether single elements move: the last dim does not stay the last.
    pub fn scatters(&self) -> bool {
        self.order.as_ref().is_some_and(|order| order.last() != Some(&(order.len() - 1)))
    }
}

/// A matrix product that computes an einsum.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Whether the second operand is the left one of the product.
    pub swapped: bool,
    /// The transforms of the left and the right operand.
    pub operands: [Turn; 2],
    /// The dims to split the product's rows or columns into, if they were merged.
    pub parted: Option<Vec<Sym>>,
    /// The permutation of the result's dims.
    pub order: Option<Vec<usize>>,
    /// Whether the summed dims are in the same order and contiguous in both operands, so that loops
    /// can read them as one dim.
    pub alike: bool,
}

/// The product that computes an equation on operands with these dims, or `None`. With `swapped`,
/// the second operand is the left one.
pub(super) fn plan(
    syms: &mut SymArena,
    eq: &Equation,
    dims: [&[Sym]; 2],
    result: &[Sym],
    swapped: bool,
) -> Option<Plan> {
    let [first, second] = &eq.inputs[..] else { return None };
    let labelled =
        |labels: &[Label], dims: &[Sym]| Labelled { labels: labels.to_vec(), dims: dims.to_vec() };
    let (first, second) = (labelled(first, dims[0]), labelled(second, dims[1]));
    let [left, right] = if swapped { [second, first] } else { [first, second] };
    let out = labelled(&eq.output, result);
    let groups = Groups::of(syms, &left, &right, &out)?;
    let (rows, columns) = (groups.rows.len(), groups.columns.len());
    let many = !groups.batch.is_empty();
    // With batch dims, the rows are one dim; otherwise any number of dims.
    let merged_rows = many && rows != 1;
    let merged_columns = columns > 1 || many && columns == 0;
    let merged_inner = groups.inner.len() > 1;
    let mut side = |of: &Labelled, parts: [&[Label]; 3], merged: bool| {
        let order: Vec<Label> = parts.concat();
        let sized = merged.then(|| {
            let size = |l: &Label| of.size(*l).expect("the operand has its labels");
            let mut dims: Vec<Sym> = parts[0].iter().map(size).collect();
            for part in &parts[1..] {
                // Without batch dims, a vector has no dim for its missing columns.
                if many || !part.is_empty() {
                    dims.push(syms.product(part.iter().map(size)));
                }
            }
            dims
        });
        Turn { order: moved(&of.labels, &order), dims: sized }
    };
    let lead = [&groups.batch[..], if many { &[] } else { &groups.rows[..] }].concat();
    let own = if many { &groups.rows[..] } else { &[] };
    let operands = [
        side(&left, [&lead, own, &groups.inner], merged_rows || merged_inner),
        side(
            &right,
            [&groups.batch, &groups.inner, &groups.columns],
            merged_columns || merged_inner,
        ),
    ];
    let made = [&groups.batch[..], &groups.rows, &groups.columns].concat();
    let sizes = || made.iter().map(|&l| out.size(l)).collect::<Option<Vec<_>>>();
    let parted = if merged_rows || merged_columns { Some(sizes()?) } else { None };
    let order = moved(&made, &out.labels);
    Some(Plan { swapped, operands, parted, order, alike: groups.alike(&left, &right) })
}

/// The positions of the labels in the wanted order; `None` if they are already in that order.
fn moved(have: &[Label], want: &[Label]) -> Option<Vec<usize>> {
    let at = |l: &Label| have.iter().position(|h| h == l);
    let order: Vec<usize> = want.iter().filter_map(at).collect();
    (!order.iter().copied().eq(0..order.len())).then_some(order)
}

/// The labels by their role in the product.
struct Groups {
    batch: Vec<Label>,
    rows: Vec<Label>,
    columns: Vec<Label>,
    inner: Vec<Label>,
}

impl Groups {
    fn of(syms: &SymArena, left: &Labelled, right: &Labelled, out: &Labelled) -> Option<Groups> {
        let unique =
            |of: &Labelled| (0..of.labels.len()).all(|k| !of.labels[..k].contains(&of.labels[k]));
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
        let summed = |of: &Labelled| -> Vec<Label> {
            of.labels.iter().copied().filter(|&l| !out.has(l)).collect()
        };
        let inner = summed(left);
        // A label that is summed in one operand only, or broadcast to the other's size, cannot be
        // part of a product.
        let shared = |&l: &Label| left.size(l) == right.size(l);
        let whole = inner.iter().all(shared) && summed(right).iter().all(shared);
        let some = !rows.is_empty() || !columns.is_empty();
        (whole && some && !inner.is_empty()).then_some(Groups { batch, rows, columns, inner })
    }

    fn alike(&self, left: &Labelled, right: &Labelled) -> bool {
        let first = self.inner[0];
        [left, right].iter().all(|of| {
            let at = of.labels.iter().position(|&l| l == first);
            at.is_some_and(|at| of.labels[at..].starts_with(&self.inner))
        })
    }
}
