//! Helpers with which converters handle non-constant sizes, axes and conditions.

use pliant_ir::relax::{Expr, ExprData, Seq, TypeData, type_lattice};
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;
use pliant_tensor::Tensor;

use crate::import_error::Problem;
use crate::imported_value::{SymTensor, Value};
use crate::node::{ExprResult, Node, ints_attr};

impl Node<'_, '_> {
    // ---- sizes ----

    /// The elements of a non-constant integer vector as symbolic terms. Each unknown element
    /// becomes a new symbol, which gets its value at run time.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn elements_as_symbols(&mut self, vector: Expr, rank: usize) -> Result<Vec<Sym>, Problem> {
        let vector = self.cast(vector, DType::Int64)?;
        let known = self.known_elements(&Value::Expr(vector)).unwrap_or_default();
        let shape = self.op("relax.tensor_to_shape", &[vector])?;
        let mut syms = Vec::with_capacity(rank);
        for i in 0..rank {
            let known = known.get(i).copied().flatten().filter(|&size| self.is_non_negative(size));
            let func = self.func();
            syms.push(known.unwrap_or_else(|| {
                let var = func.fresh_sym(&format!("d{i}"));
                func.syms.var(var)
            }));
        }
        let func = self.func();
        let ty = func.intern(TypeData::shape(syms.clone()));
        self.importer.builder.match_cast(shape, ty, "shape");
        Ok(syms)
    }

    /// The length of a vector; `None` if it is non-constant.
    ///
    /// # Errors
    /// If it is not a vector.
    pub fn constant_length(&mut self, vector: Expr) -> Result<Option<usize>, Problem> {
        let what = self.tensor_label(vector, "an input with sizes or axes");
        let length = self.vector_length(vector, &what)?;
        Ok(self.func().syms.as_int(length).and_then(|v| usize::try_from(v).ok()))
    }

    /// Converts a non-constant integer vector to a shape value. The rank is unknown if the length of the vector is unknown.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn tensor_to_shape(&mut self, vector: Expr) -> ExprResult {
        if let Some(rank) = self.constant_length(vector)? {
            let dims = self.elements_as_symbols(vector, rank)?;
            return Ok(self.func().shape(&dims));
        }
        let vector = self.cast(vector, DType::Int64)?;
        self.op("relax.tensor_to_shape", &[vector])
    }

    /// Reshapes a tensor to a shape that is contained in an integer vector.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn reshape_to_tensor(&mut self, x: Expr, vector: Expr) -> ExprResult {
        let shape = self.tensor_to_shape(vector)?;
        self.op("relax.reshape", &[x, shape])
    }

    /// Input `i`, a tensor with one non-negative integer, as a size.
    ///
    /// # Errors
    /// If it is absent.
    pub fn size_input(&mut self, i: usize) -> Result<Sym, Problem> {
        if let Some(t) = self.symbolic(i)
            && let [one] = t.elems.as_slice()
        {
            let zero = self.func().syms.int(0);
            let text = format!("the size in input {i} must be at least {{}}, but is {{}}");
            self.require_at_most(zero, *one, &text)?;
            return Ok(*one);
        }
        let value = self.tensor(i)?;
        let one = self.func().syms.int(1);
        let dims = self.dims(value)?;
        let count = self.func().syms.product(dims);
        let text = format!("input {i} has {{}} numbers, but must have {{}}");
        self.require_equal(count, one, &text)?;
        let vector = self.reshape(value, &[one])?;
        self.require_non_negative(vector, i)?;
        Ok(self.elements_as_symbols(vector, 1)?[0])
    }

    /// Input `i`, a vector of non-negative integers, as sizes. If its length is non-constant, it must equal `count` at run time.
    ///
    /// # Errors
    /// If it is absent, or if neither its length nor `count` is known.
    pub fn sizes_input(&mut self, i: usize, count: Option<usize>) -> Result<Vec<Sym>, Problem> {
        if let Some(t) = self.symbolic(i) {
            return Ok(t.elems);
        }
        let vector = self.tensor(i)?;
        let length = self.constant_length(vector)?.or(count);
        let length = length.ok_or_else(|| {
            Problem::known_only_at_run_time(&format!("the number of sizes in input {i}"))
        })?;
        let (actual, expected) = (self.dims(vector)?[0], self.func().syms.int(length as i64));
        let text = format!("input {i} has {{}} sizes, but must have {{}}");
        self.require_equal(actual, expected, &text)?;
        self.require_non_negative(vector, i)?;
        self.elements_as_symbols(vector, length)
    }

    /// Emits a run-time check that the sizes in input `i` are not negative.
    fn require_non_negative(&mut self, sizes: Expr, i: usize) -> Result<(), Problem> {
        let known = self.known_elements(&Value::Expr(sizes)).unwrap_or_default();
        if !known.is_empty()
            && known.into_iter().all(|k| k.is_some_and(|k| self.is_non_negative(k)))
        {
            return Ok(());
        }
        let dtype = self.dtype(sizes)?;
        let zero = self.scalar_as(0.0, dtype)?;
        let non_negative = self.op("relax.greater_equal", &[sizes, zero])?;
        self.require(non_negative, &format!("input {i} has a negative size: {{}}"), &[sizes])
    }

    /// Converts terms to an int64 vector.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn size_vector(&mut self, sizes: &[Sym]) -> ExprResult {
        self.materialize(&SymTensor::vector(sizes.to_vec()).into())
    }

    /// Converts a term to an int64 scalar.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn size_scalar(&mut self, size: Sym) -> ExprResult {
        self.materialize(&SymTensor::scalar(size).into())
    }

    /// Creates a constant int64 vector.
    ///
    /// # Errors
    /// If the tensor cannot be created.
    pub fn int_vector(&mut self, values: &[i64]) -> ExprResult {
        let tensor = Tensor::from_slice(&[values.len() as i64], values);
        let tensor = tensor.map_err(|e| Problem::invalid(e.to_string()))?;
        Ok(self.importer.constant(&tensor))
    }

    /// Creates a tensor of the given shape in which all elements are `value`.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn full(&mut self, dims: &[Sym], value: Expr) -> ExprResult {
        let dtype = self.dtype(value)?;
        let shape = self.func().shape(dims);
        let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
        self.op_with("relax.full", &[shape, value], attrs)
    }

    /// Creates the int64 vector `0 .. count`.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn iota(&mut self, count: Sym) -> ExprResult {
        let (zero, one) = (self.func().syms.int(0), self.func().syms.int(1));
        let bounds = [zero, count, one].map(|b| self.func().int_value(b, DType::Int64));
        let attrs = Attrs::default().with("dtype", AttrValue::DType(DType::Int64));
        self.op_with("relax.arange", &bounds, attrs)
    }

    /// Reshapes a vector to rank `rank`, with its elements along `axis`. All other dims are 1, so that it broadcasts.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn reshape_along(&mut self, vector: Expr, axis: usize, rank: usize) -> ExprResult {
        let size = self.dims(vector)?;
        let mut dims = vec![self.func().syms.int(1); rank];
        dims[axis] = *size.first().ok_or_else(|| {
            let what = self.tensor_label(vector, "an input");
            Problem::invalid(format!("{what} must be a vector, but is a scalar"))
        })?;
        self.reshape(vector, &dims)
    }

    /// Element `i` of a vector as a scalar.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn vector_element(&mut self, vector: Expr, i: usize) -> ExprResult {
        let (from, to) = (self.func().syms.int(i as i64), self.func().syms.int(i as i64 + 1));
        let part = self.slice_axis(vector, 0, from, to)?;
        self.reshape_to_scalar(part)
    }

    /// Reshapes a tensor with one element to a scalar.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn reshape_to_scalar(&mut self, x: Expr) -> ExprResult {
        let zero: [Sym; 0] = [];
        self.reshape(x, &zero)
    }

    /// Slices the elements `from` to `to` along one axis, with `to` excluded.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn slice_axis(&mut self, x: Expr, axis: usize, from: Sym, to: Sym) -> ExprResult {
        let whole = self.dims(x)?.get(axis) == Some(&to);
        let func = self.func();
        if whole && func.syms.as_int(from) == Some(0) {
            return Ok(x);
        }
        let (axis, one) = (func.syms.int(axis as i64), func.syms.int(1));
        let [axes, begin, end, strides] = [axis, from, to, one].map(|v| func.shape(&[v]));
        self.op("relax.strided_slice", &[x, axes, begin, end, strides])
    }

    /// Gathers the slices at `indices` along an axis.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn take(&mut self, x: Expr, indices: Expr, axis: usize) -> ExprResult {
        self.op_with("relax.take", &[x, indices], ints_attr("axis", axis as i64))
    }

    /// Creates accesses to the first `count` fields of a tuple.
    pub fn tuple_fields(&mut self, tuple: Expr, count: usize) -> Vec<Expr> {
        let field = |i: usize| {
            let part = self.func().tuple_get_item(tuple, i as u32);
            self.importer.bind(part, self.proto)
        };
        (0..count).map(field).collect()
    }

    // ---- axes that are inputs ----

    /// Computes a bool vector of length `rank` that is true for each axis in the vector `axes`.
    /// Fails at run time if an axis occurs twice.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn axes_mask(&mut self, axes: Expr, rank: Sym) -> ExprResult {
        let axes = self.normalize_axes(axes, rank)?;
        let count = self.vector_length(axes, "the input 'axes'")?;
        let one = self.func().syms.int(1);
        let column = self.reshape(axes, &[count, one])?;
        let all = self.iota(rank)?;
        let hits = self.op("relax.equal", &[column, all])?;
        let hits = self.cast(hits, DType::Int64)?;
        let hits = self.op_with("relax.sum", &[hits], ints_attr("axis", 0))?;
        let (zero, once) = (self.scalar(0i64)?, self.scalar(1i64)?);
        let unique = self.op("relax.less_equal", &[hits, once])?;
        self.require(unique, "the axes {} contain an axis more than once", &[axes])?;
        self.op("relax.greater", &[hits, zero])
    }

    /// Normalizes a vector of non-constant axes, so that none is negative. Fails at run time if an axis is out of range.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn normalize_axes(&mut self, axes: Expr, rank: Sym) -> ExprResult {
        let axes = self.cast(axes, DType::Int64)?;
        let (zero, rank) = (self.scalar(0i64)?, self.size_scalar(rank)?);
        let is_negative = self.op("relax.less", &[axes, zero])?;
        let shifted = self.op("relax.add", &[axes, rank])?;
        let normal = self.op("relax.where", &[is_negative, shifted, axes])?;
        let from = self.op("relax.greater_equal", &[normal, zero])?;
        let below = self.op("relax.less", &[normal, rank])?;
        let in_range = self.op("relax.logical_and", &[from, below])?;
        self.require(in_range, "axis {} is out of range for rank {}", &[axes, rank])?;
        Ok(normal)
    }

    /// Removes the axes that `mask` selects, whose dims must be 1. `count` is the number of removed axes, if known.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn drop_axes(&mut self, x: Expr, mask: Expr, count: Option<usize>) -> ExprResult {
        let dims = self.dims(x)?;
        let remaining = count.map(|count| dims.len().saturating_sub(count));
        if remaining == Some(0) || dims.is_empty() {
            return self.reshape_to_scalar(x);
        }
        let input_sizes = self.size_vector(&dims)?;
        let kept = self.op("relax.logical_not", &[mask])?;
        let positions = self.op("relax.nonzero", &[kept])?;
        let length = match remaining {
            Some(remaining) => self.func().syms.int(remaining as i64),
            None => self.dims(positions)?[1],
        };
        let positions = self.reshape(positions, &[length])?;
        let sizes = self.take(input_sizes, positions, 0)?;
        self.reshape_to_tensor(x, sizes)
    }

    /// Emits a computation for each possible value of an axis, and branches that choose one of them
    /// by the value of input `i` at run time. The axis must be one of the first `count` axes of a
    /// tensor of rank `rank`.
    ///
    /// # Errors
    /// If the axis is out of range. Also the errors of `build`.
    pub fn select_by_axis(
        &mut self,
        i: usize,
        rank: usize,
        count: usize,
        build: &mut dyn FnMut(&mut Self, usize) -> ExprResult,
    ) -> ExprResult {
        if let Some(known) = self.const_ints(i) {
            let axis = known.first().copied().ok_or_else(|| {
                Problem::invalid(format!(
                    "input {i} must contain the number of an axis, but has no elements"
                ))
            })?;
            let axis = self.axis(axis, rank)?;
            return build(self, axis);
        }
        let axis = self.tensor(i)?;
        let axis = self.reshape_to_scalar(axis)?;
        let size = self.func().syms.int(rank as i64);
        let axis = self.normalize_axes(axis, size)?;
        if count < rank {
            let end = self.scalar(count as i64)?;
            let in_range = self.op("relax.less", &[axis, end])?;
            let text = format!("the axis (input {i}) must be below {count}, but is {{}}");
            self.require(in_range, &text, &[axis])?;
        }
        self.select_by_value(axis, 0, count, build)
    }

    /// Emits branches that compute `build(k)` for the `k` that equals `value`, with `k` from
    /// `index` to `count - 1`. Any other value selects the last branch.
    ///
    /// # Errors
    /// The errors of `build`.
    pub fn select_by_value(
        &mut self,
        value: Expr,
        index: usize,
        count: usize,
        build: &mut dyn FnMut(&mut Self, usize) -> ExprResult,
    ) -> ExprResult {
        if index + 1 >= count {
            return build(self, index);
        }
        let index_scalar = self.scalar(index as i64)?;
        let matches = self.op("relax.equal", &[value, index_scalar])?;
        let then_block = self.binding_block(|n| build(n, index))?;
        let else_block =
            self.binding_block(|n| n.select_by_value(value, index + 1, count, build))?;
        Ok(self.emit_if(matches, then_block, else_block))
    }

    // ---- branches ----

    /// Input `i` of the node as a branch condition. `what` is the subject of error messages.
    ///
    /// # Errors
    /// If the input is absent or not a bool tensor with one element.
    pub fn condition_input(&mut self, i: usize, what: &str) -> ExprResult {
        let cond = self.tensor(i)?;
        self.branch_condition(cond, what)
    }

    /// Converts a tensor to a branch condition. `what` is the subject of error messages.
    ///
    /// # Errors
    /// If it is not a bool tensor with one element.
    pub fn branch_condition(&mut self, cond: Expr, what: &str) -> ExprResult {
        if let Some(dtype) = self.func().ty(cond).dtype().filter(|d| !d.is_bool()) {
            let text = format!("{what} has element type {dtype}, but must have element type bool");
            return Err(Problem::invalid(text)
                .with_help(format!("insert a Cast node that converts {what} to bool")));
        }
        self.reshape_to_scalar(cond)
    }

    /// Emits a conditional expression. Only the value of the chosen branch is computed.
    ///
    /// # Errors
    /// The errors of both blocks.
    pub fn if_else(
        &mut self,
        cond: Expr,
        then_block: impl FnOnce(&mut Self) -> ExprResult,
        else_block: impl FnOnce(&mut Self) -> ExprResult,
    ) -> ExprResult {
        let cond = self.reshape_to_scalar(cond)?;
        let then_block = self.binding_block(then_block)?;
        let else_block = self.binding_block(else_block)?;
        Ok(self.emit_if(cond, then_block, else_block))
    }

    /// Emits the bindings that `build` creates into a separate block. Returns the block and its result.
    ///
    /// # Errors
    /// The errors of `build`.
    pub fn binding_block(
        &mut self,
        build: impl FnOnce(&mut Self) -> ExprResult,
    ) -> Result<(Seq, Expr), Problem> {
        self.importer.builder.begin_seq();
        self.importer.open_block();
        let result = build(self);
        self.importer.close_block();
        let end = match result {
            Ok(e) => e,
            Err(_) => self.func().tuple(&[]),
        };
        let seq = self.importer.builder.end_seq(end);
        result?;
        let result = self.func().seq(seq).result;
        Ok((seq, result))
    }

    /// Emits a conditional expression with two existing blocks as branches, and returns its result.
    pub fn emit_if(
        &mut self,
        cond: Expr,
        then_block: (Seq, Expr),
        else_block: (Seq, Expr),
    ) -> Expr {
        let func = self.func();
        let (a, b) = (func.expr_ty(then_block.1), func.expr_ty(else_block.1));
        let ty = type_lattice::lca(func, a, b);
        let value = func
            .add_expr(ExprData::If { cond, then_seq: then_block.0, else_seq: else_block.0 }, ty);
        self.importer.bind(value, self.proto)
    }

    /// Creates the null value, which stands for an absent operand.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn null_value(&mut self) -> ExprResult {
        self.op("relax.null_value", &[])
    }

    /// Input `i` as a tensor expression, or the null value if it is absent.
    ///
    /// # Errors
    /// If it cannot be converted to a tensor.
    pub fn tensor_or_null(&mut self, i: usize) -> ExprResult {
        match self.optional_tensor(i)? {
            Some(e) => Ok(e),
            None => self.null_value(),
        }
    }
}
