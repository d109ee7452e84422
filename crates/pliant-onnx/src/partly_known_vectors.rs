//! [`KnownElements`]: non-constant integer vectors with some elements that are known during the
//! import.
//!
//! Exporters concatenate known and unknown sizes, such as `Concat(k, Shape(x)[1])`. The result is a
//! run-time tensor. If this tensor is used as a shape, the known sizes are still known statically.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_sym::Sym;
use rustc_hash::FxHashMap;

use crate::imported_value::Value;
use crate::node::Node;

/// The non-constant integer vectors with some known elements.
#[derive(Debug, Default)]
pub(crate) struct KnownElements {
    by_vector: FxHashMap<Expr, Vec<Option<Sym>>>,
}

impl Node<'_, '_> {
    /// Records the elements of a vector; `None` stands for an unknown element.
    pub fn record_known_elements(&mut self, vector: Expr, elements: Vec<Option<Sym>>) {
        if elements.iter().any(Option::is_some) {
            self.importer.known_elements.by_vector.insert(vector, elements);
        }
    }

    /// The elements of an integer vector of limited length, where `None` is an unknown element. The result is `None` if the length
    /// of the vector is not constant or too large.
    pub fn known_elements(&mut self, value: &Value) -> Option<Vec<Option<Sym>>> {
        let limit = self.importer.limits.shape_elements;
        match value {
            Value::Symbolic(t) if t.shape.len() == 1 => {
                Some(t.elems.iter().copied().map(Some).collect())
            }
            Value::Const(t) if t.ndim() == 1 && t.numel() <= limit => {
                let whole = matches!(t.dtype(), DType::Int64 | DType::Int32);
                let values = t.to_i64_vec().ok().filter(|_| whole)?;
                let syms = &mut self.func().syms;
                Some(values.into_iter().map(|v| Some(syms.int(v))).collect())
            }
            Value::Expr(e) => match self.importer.known_elements.by_vector.get(e) {
                Some(known) => Some(known.clone()),
                None => {
                    let &[length] = self.func().ty(*e).dims()? else { return None };
                    let length = usize::try_from(self.func().syms.as_int(length)?).ok()?;
                    (length <= limit).then(|| vec![None; length])
                }
            },
            _ => None,
        }
    }
}
