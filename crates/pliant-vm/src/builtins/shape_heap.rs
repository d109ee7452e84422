//! Builtins on shapes and on the shape heap, which stores the values of a function's symbolic dims.
//!
//! The compiler assigns the slots: `pliant-opt/src/lower/vm_shape_lower/shape_heap.rs`, in the pass that emits the calls of these
//! builtins.
//!
//! The heap is an `int64` tensor with one slot per symbol or derived size. A context string describes the checked value in error
//! messages:
//! - Line 1 names the value: `main: 'mask'` (function and parameter).
//! - For `match_shape`, line `i + 1` describes dim `i`: the expression that it must equal, optionally followed by a tab and the
//!   origin of that value: `seq<TAB>'ids' dim 1`. The error then reads:
//!   `main: 'mask' dim 1 must equal seq = 7 (from 'ids' dim 1), but is 9`.

use pliant_exec::{MakeShapeCode, MatchShapeCode};
use pliant_tensor::{DType, Tensor};

use crate::builtin_operands::Args;
use crate::memory_pool;
use crate::{CheckKind, Value, VmError};

/// Maximum number of slots of a shape heap, the tensor that contains symbolic sizes at run time. Real programs have far fewer
/// sizes.
const MAX_SLOTS: i64 = 1 << 24;

/// `alloc_shape_heap(n)`: creates a shape heap of `n` slots with value 0.
pub(super) fn alloc_shape_heap(args: Args<'_>) -> Result<Value, VmError> {
    let slots = args.int(0)?;
    if !(0..=MAX_SLOTS).contains(&slots) {
        return Err(VmError::type_error(format!(
            "vm.builtin.alloc_shape_heap: the number of slots is {slots}, expected 0 to {MAX_SLOTS}"
        )));
    }
    let bytes = slots as usize * DType::Int64.size();
    let storage = memory_pool::alloc_storage(bytes)?;
    // SAFETY: the storage is fresh, unshared and at least `bytes` long.
    unsafe { storage.as_ptr().write_bytes(0, bytes) };
    Ok(Value::Tensor(Tensor::from_storage(storage, 0, &[slots], DType::Int64)?))
}

/// A checked pointer to the slots of a shape heap, the tensor that contains symbolic sizes at run time.
struct Heap {
    slots: *mut i64,
    len: usize,
}

impl Heap {
    fn new(args: &Args<'_>, i: usize) -> Result<Heap, VmError> {
        let tensor = args.tensor(i)?;
        let usable = tensor.dtype() == DType::Int64
            && tensor.is_contiguous()
            && tensor.is_aligned()
            && !tensor.is_read_only();
        if !usable {
            let builtin = args.name;
            return Err(VmError::type_error(format!(
                "{builtin}: the shape heap, which stores symbolic sizes, must be a writable, contiguous int64 tensor, but is \
                 {tensor:?}"
            )));
        }
        Ok(Heap { slots: tensor.data_ptr().cast(), len: tensor.numel() })
    }

    fn slot(&self, index: i64) -> Result<*mut i64, VmError> {
        match usize::try_from(index) {
            Ok(i) if i < self.len => Ok(self.slots.wrapping_add(i)),
            _ => Err(VmError::type_error(format!(
                "slot {index} of the shape heap, which stores symbolic sizes, is accessed, but the heap has {} slots",
                self.len
            ))),
        }
    }

    fn load(&self, index: i64) -> Result<i64, VmError> {
        let slot = self.slot(index)?;
        // SAFETY: the slot is inside the heap's tensor, which is aligned and kept alive by a
        // register. A heap is used by one invocation, on one thread.
        Ok(unsafe { slot.read() })
    }

    fn store(&self, index: i64, value: i64) -> Result<(), VmError> {
        let slot = self.slot(index)?;
        // SAFETY: as in `load`; also, the tensor is not read-only.
        unsafe { slot.write(value) };
        Ok(())
    }
}

/// `match_shape(value, heap, n, (code, operand) * n, context)`: checks each dim of a tensor or
/// shape, or stores it in the shape heap. The dim's [`MatchShapeCode`] selects the action.
pub(super) fn match_shape(args: Args<'_>) -> Result<Value, VmError> {
    let dims = match args.value(0)? {
        Value::Tensor(tensor) => tensor.shape(),
        Value::Shape(shape) => shape,
        other => {
            let count = usize::try_from(args.int(2)?).unwrap_or(0);
            let context_at = count.saturating_mul(2).saturating_add(3);
            let subject = subject(&args, context_at);
            let text = format!("{subject} must be a tensor or a shape, but is {}", other.kind());
            return Err(VmError::check(CheckKind::Type, text));
        }
    };
    let count = usize::try_from(args.int(2)?).unwrap_or(usize::MAX);
    let context_at = count.checked_mul(2).and_then(|n| n.checked_add(3));
    let Some(context_at) = context_at.filter(|&at| at <= args.len()) else {
        return Err(VmError::type_error(
            "vm.builtin.match_shape: operand 2 is the number of dims, and two operands per dim must follow it, but there are fewer",
        ));
    };
    if dims.len() != count {
        let subject = subject(&args, context_at);
        let plural = if count == 1 { "" } else { "s" };
        let text = format!("{subject} must have {count} dim{plural}, but has shape {dims:?}");
        return Err(VmError::check(CheckKind::Shape, text));
    }
    // The heap is absent if the program has no symbolic dims.
    let heap =
        if matches!(args.value(1)?, Value::None) { None } else { Some(Heap::new(&args, 1)?) };
    let heap = || {
        heap.as_ref().ok_or_else(|| {
            VmError::type_error(
                "vm.builtin.match_shape: a dim refers to the shape heap, but operand 1 (the heap) is None",
            )
        })
    };
    for (i, &dim) in dims.iter().enumerate() {
        let (code, operand) = (args.int(3 + 2 * i)?, args.int(4 + 2 * i)?);
        let expected = match code {
            c if c == MatchShapeCode::AssertEqualToImm as i64 => operand,
            c if c == MatchShapeCode::AssertEqualToLoad as i64 => heap()?.load(operand)?,
            c if c == MatchShapeCode::StoreToHeap as i64 => {
                // Dims of a tensor are never negative, but a shape value may contain anything.
                if dim < 0 {
                    let subject = subject(&args, context_at);
                    let text = format!("{subject} dim {i} must not be negative, but is {dim}");
                    return Err(VmError::check(CheckKind::Shape, text));
                }
                heap()?.store(operand, dim)?;
                continue;
            }
            c if c == MatchShapeCode::NoOp as i64 => continue,
            c => {
                return Err(VmError::type_error(format!(
                    "vm.builtin.match_shape: operand {}, which selects how dim {i} is checked, is {c}, expected 0 to 3",
                    3 + 2 * i
                )));
            }
        };
        if dim != expected {
            return Err(dim_mismatch(&args, context_at, i, code, expected, dim));
        }
    }
    Ok(Value::None)
}

/// Returns the name of the checked value: the first line of the context string in operand
/// `context_at`.
fn subject<'a>(args: &Args<'a>, context_at: usize) -> &'a str {
    args.text_or(context_at, "value").lines().next().unwrap_or("value")
}

#[cold]
fn dim_mismatch(
    args: &Args<'_>,
    context_at: usize,
    dim: usize,
    code: i64,
    expected: i64,
    actual: i64,
) -> VmError {
    let subject = subject(args, context_at);
    let line = args.text_or(context_at, "").lines().nth(dim + 1).unwrap_or("");
    let (expr, origin) = line.split_once('\t').unwrap_or((line, ""));
    let mut wanted = format!("{expected}");
    if code == MatchShapeCode::AssertEqualToLoad as i64 && !expr.is_empty() {
        wanted = format!("{expr} = {expected}");
    }
    if !origin.is_empty() {
        wanted.push_str(&format!(" (from {origin})"));
    }
    VmError::check(
        CheckKind::Shape,
        format!("{subject} dim {dim} must equal {wanted}, but is {actual}"),
    )
}

/// `make_shape(heap, n, (code, operand) * n)`: creates a shape. Each dim is an immediate or the
/// value of a slot of the shape heap, as the dim's [`MakeShapeCode`] states.
pub(super) fn make_shape(args: Args<'_>) -> Result<Value, VmError> {
    let count = usize::try_from(args.int(1)?).unwrap_or(usize::MAX);
    if count.checked_mul(2).and_then(|n| n.checked_add(2)) != Some(args.len()) {
        return Err(VmError::type_error(format!(
            "vm.builtin.make_shape: operand 1, the number of dims, is {}, and two operands per dim must follow it, but the call \
             has {} operands",
            args.int(1)?,
            args.len()
        )));
    }
    let mut inline = [0i64; 8];
    let mut spilled = Vec::new();
    let dims = if count <= inline.len() {
        &mut inline[..count]
    } else {
        spilled.resize(count, 0);
        &mut spilled[..]
    };
    for (i, dim) in dims.iter_mut().enumerate() {
        *dim = eval_code(&args, 2 + 2 * i)?;
    }
    Ok(Value::Shape((&*dims).into()))
}

/// Returns the dim that the pair (code, operand) at operand index `at` describes. Operand 0 is the
/// shape heap.
fn eval_code(args: &Args<'_>, at: usize) -> Result<i64, VmError> {
    let (code, operand) = (args.int(at)?, args.int(at + 1)?);
    match code {
        c if c == MakeShapeCode::UseImm as i64 => Ok(operand),
        c if c == MakeShapeCode::LoadShape as i64 => Heap::new(args, 0)?.load(operand),
        c => Err(VmError::type_error(format!(
            "{}: operand {at}, which selects the source of a dim, is {c}, expected 0 (a constant) or 1 (a slot of the shape heap)",
            args.name
        ))),
    }
}

/// `store_shape(value, heap, slots..)`: stores dim `i` of a shape or tensor in the `i`-th listed slot.
pub(super) fn store_shape(args: Args<'_>) -> Result<Value, VmError> {
    let dims = match args.value(0)? {
        Value::Tensor(tensor) => tensor.shape(),
        _ => args.shape(0)?,
    };
    let count = args.len().saturating_sub(2);
    if dims.len() != count {
        let text =
            format!("store_shape: cannot store a shape of {} dims in {count} slots", dims.len());
        return Err(VmError::check(CheckKind::Shape, text));
    }
    let heap = Heap::new(&args, 1)?;
    for (i, &dim) in dims.iter().enumerate() {
        heap.store(args.int(i + 2)?, dim)?;
    }
    Ok(Value::tuple([]))
}

/// `load_shape(heap, slots..)`: creates a shape from the values of the listed slots of the shape
/// heap.
pub(super) fn load_shape(args: Args<'_>) -> Result<Value, VmError> {
    let heap = Heap::new(&args, 0)?;
    let dims: Result<Vec<i64>, VmError> =
        (1..args.len()).map(|i| heap.load(args.int(i)?)).collect();
    Ok(Value::Shape(dims?.into()))
}

/// `match_prim_value(value, heap, code, operand, context)`: checks an integer, or stores it in the shape heap. `code`,
/// a [`MatchShapeCode`], selects the action.
pub(super) fn match_prim_value(args: Args<'_>) -> Result<Value, VmError> {
    let Some(value) = args.value(0)?.as_int() else {
        let (subject, kind) = (subject(&args, 4), args.value(0)?.kind());
        let text = format!("{subject} must be an integer, but is {kind}");
        return Err(VmError::check(CheckKind::Type, text));
    };
    let (code, operand) = (args.int(2)?, args.int(3)?);
    let expected = match code {
        c if c == MatchShapeCode::AssertEqualToImm as i64 => operand,
        c if c == MatchShapeCode::AssertEqualToLoad as i64 => Heap::new(&args, 1)?.load(operand)?,
        c if c == MatchShapeCode::StoreToHeap as i64 => {
            Heap::new(&args, 1)?.store(operand, value)?;
            return Ok(Value::None);
        }
        c if c == MatchShapeCode::NoOp as i64 => return Ok(Value::None),
        c => {
            return Err(VmError::type_error(format!(
                "vm.builtin.match_prim_value: operand 2, which selects how the value is checked, is {c}, expected 0 to 3"
            )));
        }
    };
    if value == expected {
        return Ok(Value::None);
    }
    let subject = subject(&args, 4);
    let line = args.text_or(4, "").lines().nth(1).unwrap_or("");
    let (expr, origin) = line.split_once('\t').unwrap_or((line, ""));
    let expr = if expr.is_empty() { String::new() } else { format!("{expr} = ") };
    let origin = if origin.is_empty() { String::new() } else { format!(" (from {origin})") };
    Err(VmError::check(
        CheckKind::Shape,
        format!("{subject} must equal {expr}{expected}{origin}, but is {value}"),
    ))
}

/// `make_prim_value(heap, code, operand)`: creates an integer from an immediate or a slot of the
/// shape heap.
pub(super) fn make_prim_value(args: Args<'_>) -> Result<Value, VmError> {
    eval_code(&args, 1).map(Value::Int)
}

/// `compute_prim_value(op, constant, (coef, value)..)`: evaluates `constant + coef * value + ...`. `op` selects the result: the sum
/// itself (0), or whether the sum is < 0 (1), <= 0 (2), == 0 (3), or != 0 (4).
pub(super) fn compute_prim_value(args: Args<'_>) -> Result<Value, VmError> {
    let mut sum = i128::from(args.int(1)?);
    for at in (2..args.len()).step_by(2) {
        let product = i128::from(args.int(at)?) * i128::from(args.int(at + 1)?);
        sum = sum.saturating_add(product);
    }
    Ok(Value::Bool(match args.int(0)? {
        0 => {
            let value = i64::try_from(sum).map_err(|_| {
                VmError::check(
                    CheckKind::Shape,
                    format!("the size {sum}, computed from symbolic sizes, does not fit 64 bits"),
                )
            })?;
            return Ok(Value::Int(value));
        }
        1 => sum < 0,
        2 => sum <= 0,
        3 => sum == 0,
        4 => sum != 0,
        op => {
            return Err(VmError::type_error(format!(
                "vm.builtin.compute_prim_value: the operation {op} in operand 0 is unknown; expected 0 to 4"
            )));
        }
    }))
}

/// `shape_of(tensor)`: returns the shape of the tensor.
pub(super) fn shape_of(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::shape(args.tensor(0)?.shape()))
}

/// `tensor_to_shape(tensor)`: creates a shape from the elements of an integer vector.
pub(super) fn tensor_to_shape(args: Args<'_>) -> Result<Value, VmError> {
    let tensor = args.tensor(0)?;
    if tensor.ndim() != 1 || !tensor.dtype().is_integer() {
        let text = format!(
            "vm.builtin.tensor_to_shape: the operand must be an integer tensor of 1 dim, but is {tensor:?}"
        );
        let kind = if tensor.ndim() == 1 { CheckKind::DType } else { CheckKind::Shape };
        return Err(VmError::check(kind, text));
    }
    Ok(Value::Shape(tensor.to_i64_vec()?.into()))
}
