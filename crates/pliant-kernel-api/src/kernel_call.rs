//! A call of a library kernel: its operands and attributes, and the checks that the declaration of the kernel implies.
//!
//! [`View::within`] checks that offset, dims and strides of a view stay inside its buffer, since the call may come from a hostile
//! executable file. It runs only for operands that are views of buffers (`T.view`). Operands that are whole buffers are created
//! by [`View::new`]. They are allocated by the loop function, or they are parameters, whose dims and strides the loop function has
//! already compared with its tensor arguments (`pliant-codegen/src/prologue_plan.rs`).
//!
//! [`Call::check`] checks attributes, data types, ranks, strides, sizes and alignment of all operands, and that no result overlaps
//! another operand. The entry points of kernels (`pliant-kernels/src/kernel_entry_points.rs`) make all these checks before a kernel
//! accesses memory.

use pliant_tensor::DType;

use crate::error::{KernelError, KernelErrorKind};
use crate::kernel_declaration::{Attr, AttrType, Dims, Kernel, Operand, Order};
use crate::named_dim_sizes::{Sizes, name_id};
use crate::{MAX_NUMBERS, MAX_OPERANDS, MAX_RANK};

/// A tensor operand of a call: address, data type, dims and strides.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The address of the first element of the view.
    pub data: *mut u8,
    /// The data type of the view's elements.
    pub dtype: DType,
    rank: usize,
    shape: [i64; MAX_RANK],
    strides: [i64; MAX_RANK],
    /// The number of elements of memory that the view spans, computed by [`span_of`]; `None` if a dim or stride is
    /// negative, or on overflow.
    span: Option<usize>,
}

impl View {
    /// Creates a view with the given dims and strides, which count elements. Without strides, the elements are in
    /// row-major order. Returns `None` if the rank exceeds [`MAX_RANK`] or the number of strides differs from the rank.
    #[inline(always)]
    pub fn new(data: *mut u8, dtype: DType, dims: &[i64], strides: Option<&[i64]>) -> Option<View> {
        let rank = dims.len();
        if rank > MAX_RANK || strides.is_some_and(|strides| strides.len() != rank) {
            return None;
        }
        let (shape, span) = ([1; MAX_RANK], None);
        let mut view = View { data, dtype, rank, shape, strides: [0; MAX_RANK], span };
        let mut row_major_stride = 1i64;
        for (k, &dim) in dims.iter().enumerate().rev() {
            view.shape[k] = dim;
            view.strides[k] = strides.map_or(row_major_stride, |strides| strides[k]);
            row_major_stride = row_major_stride.wrapping_mul(dim);
        }
        view.span = span_of(view.shape(), view.strides());
        Some(view)
    }

    /// Creates a view of elements of a buffer, which has `elements` elements at the address `data`. The view begins at
    /// the element `offset`. Dims and strides are as in [`Self::new`]. `name` is the name of the operand in messages.
    ///
    /// # Errors
    /// An element of the view is outside of the buffer, or dims, strides or offset are negative or too large.
    #[inline(always)]
    pub fn within(
        name: &str,
        (data, dtype, elements): (*mut u8, DType, i64),
        offset: i64,
        dims: &[i64],
        strides: &[i64],
    ) -> Result<View, String> {
        let mut view = View::new(data, dtype, dims, Some(strides)).ok_or_else(|| {
            format!("operand '{name}' has {} dims, expected at most {MAX_RANK}", dims.len())
        })?;
        if dims.contains(&0) {
            return Ok(view);
        }
        if offset < 0 {
            return Err(format!(
                "operand '{name}' is a view that starts at the negative offset {offset}"
            ));
        }
        if view.span.is_none() {
            return Err(span_problem(name, dims, strides));
        }
        let end = view.span.and_then(|span| span.checked_add(usize::try_from(offset).ok()?));
        match end.map(i64::try_from) {
            Some(Ok(end)) if end <= elements => {
                view.data = data.wrapping_add(offset as usize * dtype.size());
                Ok(view)
            }
            _ => Err(format!(
                "operand '{name}' is a view with offset {offset}, dims {dims:?} and strides {strides:?}, which \
                 reaches beyond the end of its buffer of {elements} elements"
            )),
        }
    }

    /// Returns the sizes of the view's dims.
    pub fn shape(&self) -> &[i64] {
        &self.shape[..self.rank]
    }

    /// Returns the strides of the view's dims, in elements.
    pub fn strides(&self) -> &[i64] {
        &self.strides[..self.rank]
    }

    /// Whether the elements are in row-major order without gaps.
    pub fn is_compact(&self) -> bool {
        let mut expected = 1i64;
        self.shape().iter().zip(self.strides()).rev().all(|(&dim, &stride)| {
            let matches = dim <= 1 || stride == expected;
            expected = expected.saturating_mul(dim);
            matches
        }) || self.shape().contains(&0)
    }

    /// Whether the strides show that no two elements have the same address: in the order of increasing strides, each stride
    /// exceeds the distance from the first to the last element along all dims before it. May return false for other views
    /// whose elements are also distinct.
    fn has_distinct_elements(&self) -> bool {
        let (shape, strides) = (self.shape(), self.strides());
        // Fast path: the strides of tensors and of their slices are descending.
        let dims = || shape.iter().copied().zip(strides.iter().copied());
        if self.span == Some(0) || are_nested(dims().rev()) {
            return true;
        }
        let mut sorted = [(1, 0); MAX_RANK];
        sorted.iter_mut().zip(dims()).for_each(|(to, dim)| *to = dim);
        sorted.sort_unstable_by_key(|&(_, stride)| stride);
        are_nested(sorted.into_iter())
    }

    /// Returns the number of bytes from the first byte to the end of the last element; `None` if a dim or stride is
    /// negative, or on overflow.
    fn span_bytes(&self) -> Option<usize> {
        let bytes = self.span?.checked_mul(self.dtype.size())?;
        (bytes <= isize::MAX as usize).then_some(bytes)
    }
}

/// Whether each dim's stride exceeds the distance from the first to the last element along all dims before it. `dims`
/// contains (size, stride) pairs, sorted by increasing stride.
fn are_nested(dims: impl Iterator<Item = (i64, i64)>) -> bool {
    let mut last_offset = 0i64;
    for (dim, stride) in dims {
        if dim > 1 && stride <= last_offset {
            return false;
        }
        last_offset = last_offset.saturating_add(stride.saturating_mul((dim - 1).max(0)));
    }
    true
}

/// Returns the number of elements of memory from the first to the last element of a view; `None` if a dim or stride is
/// negative, or on overflow. A view without elements has the span 0.
fn span_of(dims: &[i64], strides: &[i64]) -> Option<usize> {
    let (mut last_offset, mut fits, mut empty, mut negative) = (0i64, true, false, 0i64);
    for (&dim, &stride) in dims.iter().zip(strides) {
        negative |= dim | stride;
        empty |= dim == 0;
        let (extent, product_overflows) = dim.wrapping_sub(1).overflowing_mul(stride);
        let (sum, sum_overflows) = last_offset.overflowing_add(extent);
        (last_offset, fits) = (sum, fits && !product_overflows && !sum_overflows);
    }
    match (negative < 0, empty, fits) {
        (true, ..) => None,
        (_, true, _) => Some(0),
        (_, _, true) => usize::try_from(last_offset).ok()?.checked_add(1),
        _ => None,
    }
}

/// Describes why a view of the operand `name` has no span, or a span whose size in bytes overflows ([`span_of`]).
fn span_problem(name: &str, dims: &[i64], strides: &[i64]) -> String {
    if dims.iter().any(|&dim| dim < 0) {
        return format!("operand '{name}' has dims {dims:?}, but a dim must not be negative");
    }
    if strides.iter().any(|&stride| stride < 0) {
        return format!(
            "operand '{name}' has strides {strides:?}, but a stride must not be negative"
        );
    }
    format!(
        "operand '{name}' is too large: with dims {dims:?} and strides {strides:?}, its size in bytes exceeds 64 bits"
    )
}

/// A call of a kernel: the kernel, its operands, and the numbers that represent its attributes.
#[derive(Debug)]
pub struct Call {
    /// The declaration of the called kernel.
    pub kernel: &'static Kernel,
    operands: [Option<View>; MAX_OPERANDS],
    numbers: [i64; MAX_NUMBERS],
}

impl Call {
    /// Creates a call without operands, in which the numbers of all attributes are 0.
    pub fn new(kernel: &'static Kernel) -> Call {
        Call { kernel, operands: [None; MAX_OPERANDS], numbers: [0; MAX_NUMBERS] }
    }

    /// Sets the operand at an index. `None` means that the call omits the operand.
    #[inline(always)]
    pub fn set_operand(&mut self, index: usize, view: Option<View>) {
        self.operands[index] = view;
    }

    /// Sets one of the numbers that represent the attributes, by its index. A float is represented by its bits, a
    /// choice by its index.
    pub fn set_number(&mut self, index: usize, number: i64) {
        self.numbers[index] = number;
    }

    /// Returns an operand by name; `None` if the call omits it.
    ///
    /// # Panics
    /// The kernel has no operand of this name.
    pub fn operand(&self, name: &str) -> Option<&View> {
        self.operands[self.index_of(name)].as_ref()
    }

    /// Returns the index of the operand with this name.
    ///
    /// # Panics
    /// The kernel has no operand of this name.
    pub(crate) fn index_of(&self, name: &str) -> usize {
        let id = name_id(name);
        let at = self.kernel.operands.iter().position(|operand| operand.id == id);
        at.expect("the kernel declares an operand of this name")
    }

    /// Returns the numbers that represent an attribute: one, or one per element of a list. A choice is represented by
    /// its index, a float by its bits.
    ///
    /// # Panics
    /// The kernel has no attribute of this name.
    pub fn ints(&self, name: &str) -> &[i64] {
        let (attr, first) =
            self.kernel.attr(name).expect("the kernel declares an attribute of this name");
        &self.numbers[first..first + attr.ty.number_count()]
    }

    /// Returns the value of an attribute of type integer, bool or choice. A choice is its index.
    ///
    /// # Panics
    /// The kernel has no attribute of this name.
    pub fn int(&self, name: &str) -> i64 {
        self.ints(name)[0]
    }

    /// Returns the value of an attribute of type float.
    ///
    /// # Panics
    /// The kernel has no attribute of this name.
    pub fn float(&self, name: &str) -> f64 {
        f64::from_bits(self.int(name) as u64)
    }

    /// Checks the call against the declaration of the kernel. Returns the sizes of the named dims.
    ///
    /// # Errors
    /// The error names the first invalid operand or attribute, and what was expected.
    pub fn check(&self) -> Result<Sizes, KernelError> {
        let mut sizes = Sizes::new();
        self.check_into(&mut sizes)?;
        Ok(sizes)
    }

    /// Checks the call against the declaration of the kernel, as [`Self::check`] does. Adds the sizes of the named dims to `sizes`,
    /// which must be empty, instead of returning them.
    ///
    /// # Errors
    /// The same errors as [`Self::check`].
    pub fn check_into(&self, sizes: &mut Sizes) -> Result<(), KernelError> {
        self.check_attrs()?;
        for (operand, view) in self.kernel.operands.iter().zip(&self.operands) {
            self.check_operand(operand, view.as_ref(), sizes)?;
        }
        self.check_overlap()?;
        let shape_error = |message| self.error(KernelErrorKind::Shape, message);
        (self.kernel.relations)(self, sizes).map_err(shape_error)?;
        self.check_derived(sizes)
    }

    fn error(&self, kind: KernelErrorKind, message: String) -> KernelError {
        KernelError { kernel: self.kernel.name, kind, message }
    }

    /// Checks that the values of all attributes are in their ranges.
    fn check_attrs(&self) -> Result<(), KernelError> {
        let fail = |message| Err(self.error(KernelErrorKind::Value, message));
        let mut numbers = &self.numbers[..];
        for Attr { name, ty, .. } in self.kernel.attrs {
            let (values, rest) = numbers.split_at(ty.number_count());
            numbers = rest;
            let (min, max) = match *ty {
                AttrType::Int(min, max) | AttrType::Ints { range: (min, max), .. } => (min, max),
                AttrType::Bool => (0, 1),
                AttrType::Choice(list) => (0, list.len() as i64 - 1),
                AttrType::Float if f64::from_bits(values[0] as u64).is_nan() => {
                    return fail(format!("attribute '{name}' is NaN, expected a number"));
                }
                AttrType::Float => continue,
            };
            if let Some(value) = values.iter().find(|v| !(min..=max).contains(v)) {
                return fail(format!("attribute '{name}' is {value}, expected {min} to {max}"));
            }
        }
        Ok(())
    }

    /// Checks data type, rank, strides and address of an operand, and adds the sizes of its dims to `sizes`.
    fn check_operand(
        &self,
        operand: &Operand,
        view: Option<&View>,
        sizes: &mut Sizes,
    ) -> Result<(), KernelError> {
        let name = operand.name;
        let fail = |kind, message: String| Err(self.error(kind, message));
        let Some(view) = view else {
            return match operand.optional {
                true => Ok(()),
                false => fail(KernelErrorKind::Type, format!("operand '{name}' is missing")),
            };
        };
        if view.dtype != operand.dtype && !operand.other_dtypes.contains(&view.dtype) {
            let expected: Vec<String> = operand.dtypes().map(|dtype| dtype.to_string()).collect();
            let message =
                format!("operand '{name}' is {}, expected {}", view.dtype, expected.join(" or "));
            return fail(KernelErrorKind::Type, message);
        }
        let dims = self.dims(operand);
        let rank = view.shape().len();
        let Some(leading) = leading_dims(dims, rank) else {
            let expected = expected_rank(dims);
            let message = format!("operand '{name}' has {rank} dims, expected {expected}");
            return fail(KernelErrorKind::Shape, message);
        };
        let Some(bytes) = view.span_bytes() else {
            let message = span_problem(name, view.shape(), view.strides());
            return fail(KernelErrorKind::Shape, message);
        };
        let order_is_valid = match operand.order {
            Order::RowMajor => view.is_compact(),
            Order::StridedRows => {
                view.strides().last().is_none_or(|&s| s == 1) || view.shape().last() <= Some(&1)
            }
            Order::Strided => true,
        };
        if !order_is_valid {
            let expected = match operand.order {
                Order::StridedRows => "a contiguous last dim",
                _ => "row-major order without gaps",
            };
            let message =
                format!("operand '{name}' has strides {:?}, expected {expected}", view.strides());
            return fail(KernelErrorKind::Value, message);
        }
        if operand.role.is_written() && !view.has_distinct_elements() {
            let (dims, strides) = (view.shape(), view.strides());
            let message = format!(
                "operand '{name}' has dims {dims:?} and strides {strides:?}, which place several elements at the same address"
            );
            return fail(KernelErrorKind::Value, message);
        }
        if bytes > 0 && (view.data.is_null() || view.data.addr() % view.dtype.size() != 0) {
            return fail(
                KernelErrorKind::Value,
                format!(
                    "the address of operand '{name}' is null or not a multiple of its element size"
                ),
            );
        }
        match unify_dims(sizes, dims, view.shape(), leading) {
            None => Ok(()),
            Some((dim, size, known)) => {
                let dim = dim.trim_start_matches('*');
                let message = format!(
                    "operand '{name}' has size {size} in dim {dim}, but another operand has size {known}"
                );
                fail(KernelErrorKind::Shape, message)
            }
        }
    }

    /// Returns the sizes of the named dims of the call, without checking the call. If operands
    /// disagree about the size of a named dim, the first operand determines it.
    pub fn named_sizes(&self) -> Sizes {
        let mut sizes = Sizes::new();
        for (operand, view) in self.kernel.operands.iter().zip(&self.operands) {
            let Some(view) = view else { continue };
            let (dims, shape) = (self.dims(operand), view.shape());
            // `check` reports different sizes of a dim.
            if let Some(leading) = leading_dims(dims, shape.len()) {
                unify_dims(&mut sizes, dims, shape, leading);
            }
        }
        sizes
    }

    /// Checks that the derived dims have the sizes that the declaration computes from other dims
    /// and the attributes.
    fn check_derived(&self, sizes: &Sizes) -> Result<(), KernelError> {
        for (dim, derive) in self.kernel.derived {
            let Some(actual) = sizes.find(dim) else { continue };
            let expected = derive(self, sizes);
            if expected != Some(actual) {
                let expected =
                    expected.map_or("a size that fits in 64 bits".to_string(), |n| n.to_string());
                let message = format!("dim {dim} is {actual}, expected {expected}");
                return Err(self.error(KernelErrorKind::Shape, message));
            }
        }
        Ok(())
    }

    /// Returns the names of an operand's dims in this call. The names may depend on the attribute
    /// `layout`.
    pub fn dims(&self, operand: &Operand) -> &'static [&'static str] {
        match operand.dims {
            Dims::Fixed(dims) => dims,
            Dims::ByLayout(list) => list[self.int("layout") as usize],
        }
    }

    /// Checks that no result shares memory with another operand.
    fn check_overlap(&self) -> Result<(), KernelError> {
        let memory_ranges = || {
            let operands = self.kernel.operands.iter().zip(&self.operands);
            operands.filter_map(|(operand, view)| {
                let view = view.as_ref()?;
                let (start, bytes) = (view.data.addr(), view.span_bytes().unwrap_or(0));
                (bytes > 0).then(|| (operand, start..start.saturating_add(bytes)))
            })
        };
        for (i, (result, result_memory)) in
            memory_ranges().enumerate().filter(|(_, o)| o.0.role.is_written())
        {
            for (_, (other, memory)) in memory_ranges().enumerate().filter(|(k, _)| *k != i) {
                if result_memory.start < memory.end && memory.start < result_memory.end {
                    let message = format!(
                        "operand '{}' is a result, but shares memory with operand '{}'",
                        result.name, other.name
                    );
                    return Err(self.error(KernelErrorKind::Value, message));
                }
            }
        }
        Ok(())
    }
}

/// Describes the expected rank of an operand with the declared dims `dims` for an error message, such as `2 (rows, columns)`.
fn expected_rank(dims: &[&str]) -> String {
    let (count, list) = (dims.len(), dims.join(", "));
    match dims.first().is_some_and(|d| d.starts_with('*')) {
        true => format!("at least {} ({list})", count - 1),
        false => format!("{count} ({list})"),
    }
}

/// Returns how many leading dims of an operand of rank `rank` belong to its first declared dim
/// name: 1, or any number for a name such as `*rows`. Returns `None` if the names `dims` do not
/// match the rank.
pub fn leading_dims(dims: &[&str], rank: usize) -> Option<usize> {
    match dims.first().is_some_and(|d| d.starts_with('*')) {
        true => (rank + 1).checked_sub(dims.len()),
        false => (rank == dims.len()).then_some(1.min(rank)),
    }
}

/// Adds the sizes `shape` of an operand, whose declared dims are `dims`, to `sizes`. The first name covers the first
/// `leading` dims of the operand. If `sizes` contains a different size for a name, returns the name, the new size and
/// the recorded size.
///
/// The caller has checked that the number of elements does not overflow. Therefore the product of the leading sizes does
/// not overflow either, except for a tensor without elements, whose product is clamped.
fn unify_dims(
    sizes: &mut Sizes,
    dims: &'static [&'static str],
    shape: &[i64],
    leading: usize,
) -> Option<(&'static str, i64, i64)> {
    let (leading_sizes, rest) = shape.split_at(leading);
    let product = leading_sizes.iter().fold(1i64, |all, &dim| all.saturating_mul(dim));
    let mut conflict = None;
    for (at, &dim) in dims.iter().enumerate() {
        let size = if at == 0 { product } else { rest[at - 1] };
        if let Err(known) = sizes.unify(dim, size) {
            conflict = conflict.or(Some((dim, size, known)));
        }
    }
    conflict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::weight_only_matmul::BFLOAT16;

    /// Creates a call that multiplies matrices of shape `[rows, 3]` and `[3, 5]`, with operands at
    /// addresses that are far apart.
    fn product(rows: i64) -> Call {
        let mut call = Call::new(&BFLOAT16);
        let shapes: [&[i64]; 3] = [&[rows, 3], &[1, 2, 16, 2], &[rows, 5]];
        for (i, dims) in shapes.into_iter().enumerate() {
            let data = std::ptr::without_provenance_mut((i + 1) << 20);
            call.set_operand(i, View::new(data, BFLOAT16.operands[i].dtype, dims, None));
        }
        call
    }

    #[test]
    fn errors_name_the_operand_and_the_expectation() {
        assert_eq!(product(2).check().map(|sizes| sizes.get("*rows")), Ok(2));
        let message = |call: &Call| call.check().unwrap_err().to_string();
        let mut call = product(2);
        call.set_operand(0, None);
        assert_eq!(message(&call), "kernel matmul_bfloat16_weight: operand 'x' is missing");
        let mut call = product(2);
        let data = std::ptr::without_provenance_mut(3 << 20);
        call.set_operand(0, View::new(data, DType::Float32, &[2, 3], None));
        let shared = "kernel matmul_bfloat16_weight: operand 'out' is a result, but shares memory with operand 'x'";
        assert_eq!(message(&call), shared);
        call.set_operand(0, View::new(data, DType::Float32, &[2, 3], Some(&[9, 1])));
        let gaps = "operand 'x' has strides [9, 1], expected row-major order without gaps";
        assert_eq!(message(&call), format!("kernel matmul_bfloat16_weight: {gaps}"));
        call.set_operand(0, View::new(data, DType::Float32, &[i64::MAX, 3], None));
        assert!(message(&call).contains("operand 'x' is too large"));
    }

    #[test]
    fn empty_operands_share_no_memory() {
        let mut call = product(0);
        let inside_weight = std::ptr::without_provenance_mut((2 << 20) + 8);
        call.set_operand(2, View::new(inside_weight, DType::Float32, &[0, 5], None));
        assert!(call.check().is_ok());
    }
}
