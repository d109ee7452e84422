//! Requirements of nodes on sizes and values. They are checked during the import if possible, else at run time.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;

use crate::import_error::Problem;
use crate::imported_value::SymTensor;
use crate::node::{ExprResult, Node};

impl Node<'_, '_> {
    /// Checks that two sizes are equal: during the import if possible, otherwise by a run-time check that this function emits. In
    /// the error message `text`, two `{}` stand for the sizes.
    ///
    /// # Errors
    /// If they are provably different.
    pub fn require_equal(&mut self, a: Sym, b: Sym, text: &str) -> Result<(), Problem> {
        match pliant_ops::size_proofs::equal(self.func(), a, b) {
            Some(true) => return Ok(()),
            Some(false) => return Err(self.requirement_error(text, a, b)),
            None => {}
        }
        let cond = self.func().syms.eq(a, b);
        self.importer.record_constraint(cond);
        self.require_comparison("relax.equal", a, b, text)
    }

    /// Checks that dim `axis` of a tensor has the given size. If the equality is not provable during the import, it is checked at
    /// run time. If the dim provably has another size, the tensor is returned unchanged, and type inference of the operator reports
    /// the error.
    ///
    /// # Errors
    /// If the rank is unknown or too low.
    pub fn with_dim(&mut self, x: Expr, axis: usize, size: Sym) -> ExprResult {
        let actual = self.dims_with_min_rank(x, axis + 1)?;
        match pliant_ops::size_proofs::equal(self.func(), actual[axis], size) {
            Some(false) => return Ok(x),
            Some(true) => {}
            None => {
                let cond = self.func().syms.eq(actual[axis], size);
                self.importer.record_constraint(cond);
            }
        }
        let mut known = vec![None; actual.len()];
        known[axis] = Some(size);
        self.with_dims(x, &known)
    }

    /// Checks that `a <= b`: during the import if possible, otherwise by a run-time check that this function emits. In the error
    /// message `text`, two `{}` stand for the sizes.
    ///
    /// # Errors
    /// If `a` is provably greater.
    pub fn require_at_most(&mut self, a: Sym, b: Sym, text: &str) -> Result<(), Problem> {
        match pliant_ops::size_proofs::at_most(self.func(), a, b) {
            Some(true) => Ok(()),
            Some(false) => Err(self.requirement_error(text, a, b)),
            None => {
                let cond = self.func().syms.le(a, b);
                self.importer.record_constraint(cond);
                self.require_comparison("relax.less_equal", a, b, text)
            }
        }
    }

    /// Checks that the size `actual` can be broadcast to `full_size`, which means that it is 1 or equal to `full_size`: during the
    /// import if possible, otherwise at run time. `what` is the subject of the error message.
    ///
    /// # Errors
    /// If the size is provably neither 1 nor the other size.
    pub(crate) fn require_broadcastable(
        &mut self,
        actual: Sym,
        full_size: Sym,
        what: &str,
    ) -> Result<(), Problem> {
        let text = format!(
            "{what} has a dim of size {{}}, which does not broadcast to the tensor's dim of size {{}}"
        );
        let one = self.func().syms.int(1);
        let equal = pliant_ops::size_proofs::equal(self.func(), actual, full_size);
        if equal == Some(true) || actual == one {
            return Ok(());
        }
        match pliant_ops::size_proofs::equal(self.func(), actual, one) {
            Some(true) => return Ok(()),
            Some(false) => return self.require_equal(actual, full_size, &text),
            None => {}
        }
        let (size, all, one) =
            (self.size_scalar(actual)?, self.size_scalar(full_size)?, self.scalar(1i64)?);
        let equal_sizes = self.op("relax.equal", &[size, all])?;
        let is_one = self.op("relax.equal", &[size, one])?;
        let holds = self.op("relax.logical_or", &[equal_sizes, is_one])?;
        self.require(holds, &text, &[size, all])
    }

    /// Calls a binary operator on a tensor and an operand that is broadcast to it. The result has the tensor's shape (ONNX calls
    /// this unidirectional broadcasting). `what` names the operand in messages.
    ///
    /// # Errors
    /// If the operand provably has a higher rank, or a dim that is neither 1 nor that of the tensor. Also if type inference fails.
    pub fn op_unidirectional(&mut self, name: &str, x: Expr, part: Expr, what: &str) -> ExprResult {
        let (dims, size) = (self.dims(x)?, self.dims(part)?);
        let Some(lead) = dims.len().checked_sub(size.len()) else {
            let (more, rank) = (size.len(), dims.len());
            let text =
                format!("{what} has {more} dims, but the tensor to which it broadcasts has {rank}");
            return Err(Problem::invalid(text));
        };
        for (&size, &full_size) in size.iter().zip(&dims[lead..]) {
            self.require_broadcastable(size, full_size, what)?;
        }
        let y = self.op(name, &[x, part])?;
        let known: Vec<Option<Sym>> = dims.into_iter().map(Some).collect();
        self.with_dims(y, &known)
    }

    /// Converts the elements of a shape computation to its dtype if that is int32. Constants that
    /// overflow wrap around, as in ONNX Runtime. Other elements are checked for overflow at run
    /// time.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn fit_to_dtype(&mut self, mut t: SymTensor) -> Result<SymTensor, Problem> {
        if t.dtype != DType::Int32 {
            return Ok(t);
        }
        for elem in &mut t.elems {
            if let Some(number) = self.func().syms.as_int(*elem) {
                *elem = self.func().syms.int(i64::from(number as i32));
                continue;
            }
            let (min, max) = (i64::from(i32::MIN), i64::from(i32::MAX));
            let [min, max] = [min, max].map(|bound| self.func().syms.int(bound));
            // A plain symbol is the size of a tensor and fits, but a computed size may overflow.
            if self.func().syms.as_var(*elem).is_some() {
                continue;
            }
            for (a, b) in [(min, *elem), (*elem, max)] {
                if pliant_ops::size_proofs::at_most(self.func(), a, b) != Some(true) {
                    let operands = [self.size_scalar(a)?, self.size_scalar(b)?];
                    let holds = self.op("relax.less_equal", &operands)?;
                    let number = self.size_scalar(*elem)?;
                    self.require(holds, "the result {} does not fit in int32", &[number])?;
                }
            }
        }
        Ok(t)
    }

    /// Emits a run-time check that the new shape of a Reshape does not contain both 0 and -1. `zeros` and `inferred` are bool masks
    /// that mark the elements 0 and -1.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn require_not_both(&mut self, zeros: Expr, inferred: Expr) -> Result<(), Problem> {
        let mut counts = Vec::with_capacity(2);
        for mask in [zeros, inferred] {
            let numbers = self.cast(mask, DType::Int64)?;
            counts.push(self.op("relax.sum", &[numbers])?);
        }
        let both = self.op("relax.multiply", &counts)?;
        let zero = self.scalar(0i64)?;
        let is_valid = self.op("relax.equal", &[both, zero])?;
        self.require(
            is_valid,
            "the new shape has both 0 and -1, which allowzero=1 does not allow",
            &[],
        )
    }

    /// Emits a run-time check of a comparison of two sizes.
    fn require_comparison(&mut self, op: &str, a: Sym, b: Sym, text: &str) -> Result<(), Problem> {
        let operands = [self.size_scalar(a)?, self.size_scalar(b)?];
        let holds = self.op(op, &operands)?;
        self.require(holds, text, &operands)
    }

    /// Creates the problem that a requirement is violated, with the sizes in place of the `{}` in `text`.
    fn requirement_error(&mut self, text: &str, a: Sym, b: Sym) -> Problem {
        let func = self.func();
        let mut parts = text.splitn(3, "{}");
        let mut message = parts.next().unwrap_or_default().to_owned();
        for (size, part) in [a, b].into_iter().zip(parts) {
            message.push_str(&func.syms.display(size).to_string());
            message.push_str(part);
        }
        Problem::invalid(message)
    }

    /// Emits a run-time check that all elements of the condition `holds` are true. In the message
    /// `text`, the `{}` stand for `values`.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn require(&mut self, holds: Expr, text: &str, values: &[Expr]) -> Result<(), Problem> {
        let mut holds = holds;
        if self.rank(holds).ok() != Some(0) {
            let numbers = self.cast(holds, DType::Int32)?;
            let min = self.op("relax.min", &[numbers])?;
            holds = self.cast(min, DType::Bool)?;
        }
        let mut args = vec![holds];
        args.extend(values);
        let attrs = Attrs::default().with("format", AttrValue::str(text));
        self.op_with("relax.assert_op", &args, attrs)?;
        self.importer.mark_impure();
        Ok(())
    }
}
