//! The lowered form, which is the input of code generators, and its verifier.
//!
//! In a lowered function
//! - there are no blocks, and all loops are `serial` or `parallel`. Vectors are explicit: `T.Ramp` as an index, `T.Broadcast`,
//!   operators over lanes, `T.vector_sum` and similar functions;
//! - each access has exactly one index, the linear offset from the buffer's first element, whatever the rank. The index is an
//!   int64 scalar or vector. The attribute `tir.flat` marks this form for the verifier and the parser;
//! - each access whose index is not provably in bounds is inside a `T.Assert` that checks the index;
//! - no assertion, loop bound, allocation size or kernel argument reads memory, so other threads cannot change a value between
//!   its check and its use;
//! - the operands of an operator have equal numbers of lanes, or one lane;
//! - the sizes of all buffers are determined by parameters: each size is a dim of a parameter, or a parameter itself.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{Expr, ExprData, ForKind, Intrin, KernelCall, PrimFunc, StmtData, Ty};

use crate::access_guards::reads_memory;
use crate::schedule::vector_math_bounds;
use crate::statement_traversal::{direct_exprs, for_each_stmt};

/// Maximum number of lanes of a vector.
pub const MAX_LANES: u16 = 256;

/// Checks that a function is in lowered form.
///
/// # Errors
/// A description of the first violation.
pub fn verify(f: &PrimFunc) -> Result<(), String> {
    let mut result = Ok(());
    for_each_stmt(f, f.body, &mut |_, data| {
        if result.is_ok() {
            result = verify_stmt(f, data);
        }
    });
    result
}

fn verify_stmt(f: &PrimFunc, data: &StmtData) -> Result<(), String> {
    match data {
        StmtData::Block(b) => {
            return Err(format!(
                "the block '{}' must be lowered to loops before code generation",
                b.name
            ));
        }
        StmtData::For { kind: ForKind::Vectorized | ForKind::Unrolled, var, .. } => {
            return Err(format!(
                "the loop over '{}' must be serial or parallel after lowering, but is vectorized or unrolled",
                f.var(*var).name
            ));
        }
        StmtData::Store { buffer, indices, value } => {
            verify_access(f, *buffer, indices)?;
            let (actual, want) = (f.expr_ty(*value), Ty::scalar(f.buffer(*buffer).dtype));
            let lanes = f.expr_ty(indices[0]).lanes;
            if actual.dtype != want.dtype || (actual.lanes != lanes && actual.lanes != 1) {
                let name = &f.buffer(*buffer).name;
                return Err(format!(
                    "a value of type {actual} is stored to {lanes} elements of buffer '{name}', but the value must have data type \
                     {} and 1 or {lanes} lanes",
                    want.dtype
                ));
            }
        }
        StmtData::If(e, ..) | StmtData::While(e, _) | StmtData::Assert(e, ..)
            if f.expr_ty(*e) != Ty::BOOL =>
        {
            let ty = f.expr_ty(*e);
            return Err(format!(
                "the condition of an if, a while loop or an assertion must be a scalar bool, but is {ty}"
            ));
        }
        _ => {}
    }
    verify_loaded_once(f, data)?;
    let mut result = Ok(());
    direct_exprs(data, |e| {
        for_each_expr(f, e, |e| {
            if result.is_ok() {
                result = verify_expr(f, e);
            }
        });
    });
    result
}

/// Rejects assertions, loop bounds and allocation sizes that read memory.
fn verify_loaded_once(f: &PrimFunc, data: &StmtData) -> Result<(), String> {
    let read =
        |e: Expr| reads_memory(f, e).then(|| crate::format_index_expressions::format_expr(f, e));
    match data {
        StmtData::Assert(condition, ..) => match read(*condition) {
            Some(text) => Err(format!(
                "the condition of an assertion must not read memory after lowering, because other threads may change the memory, \
                 but is {text}"
            )),
            None => Ok(()),
        },
        StmtData::For { min, extent, .. } => match read(*min).or_else(|| read(*extent)) {
            Some(text) => Err(format!(
                "a bound of a loop must not read memory after lowering, because other threads may change the memory, but is {text}"
            )),
            None => Ok(()),
        },
        StmtData::Alloc(buffer, _) => {
            match f.buffer(*buffer).shape.iter().find_map(|&dim| read(dim)) {
                Some(text) => Err(format!(
                    "a dim of the buffer '{}' must not read memory after lowering, because other threads may change the memory, \
                     but is {text}",
                    f.buffer(*buffer).name
                )),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Rejects arguments of kernel calls that read memory. `T.address_of(a[i])` does not read `a`, but the index `i` must not read
/// memory.
fn verify_kernel_arguments(f: &PrimFunc, args: &[Expr]) -> Result<(), String> {
    if vector_math_bounds::callee_symbol(f, args).is_none() {
        return Ok(());
    }
    let argument_reads = |e: &Expr| match f.expr(*e) {
        ExprData::Call(Intrin::AddressOf, element, _) => match f.expr(element[0]) {
            ExprData::Load(_, indices) => indices.iter().any(|&i| reads_memory(f, i)),
            _ => true,
        },
        _ => reads_memory(f, *e),
    };
    match args.iter().find(|e| argument_reads(e)) {
        Some(&e) => Err(format!(
            "an argument of a kernel call must not read memory after lowering, because other threads may change the memory, but \
             is {}",
            crate::format_index_expressions::format_expr(f, e)
        )),
        None => Ok(()),
    }
}

fn verify_access(
    f: &PrimFunc,
    buffer: pliant_ir::tir::Buffer,
    indices: &[Expr],
) -> Result<(), String> {
    let name = &f.buffer(buffer).name;
    match indices {
        [i] if f.expr_ty(*i).dtype == pliant_tensor::DType::Int64 => Ok(()),
        [i] => {
            let ty = f.expr_ty(*i);
            Err(format!("an index of buffer '{name}' must be int64 after lowering, but is {ty}"))
        }
        _ => {
            let count = indices.len();
            Err(format!(
                "an access of buffer '{name}' must have one index after lowering, but has {count}"
            ))
        }
    }
}

fn verify_expr(f: &PrimFunc, e: Expr) -> Result<(), String> {
    let ty = f.expr_ty(e);
    if ty.lanes > MAX_LANES || ty.lanes == 0 {
        return Err(format!("a vector has {} lanes, but 1 to {MAX_LANES} are allowed", ty.lanes));
    }
    let same_lanes = |list: &[Expr]| {
        let mut lanes = list.iter().map(|&e| f.expr_ty(e).lanes).filter(|&l| l != 1);
        let first = lanes.next().unwrap_or(1);
        if lanes.all(|l| l == first) {
            Ok(())
        } else {
            let lanes = list.iter().map(|&e| f.expr_ty(e).lanes).collect::<Vec<_>>();
            Err(format!(
                "the operands of an expression have {lanes:?} lanes, but must have the same number of lanes or 1 lane"
            ))
        }
    };
    match f.expr(e) {
        ExprData::Load(b, indices) => verify_access(f, *b, indices),
        ExprData::Binary(_, a, b) => {
            same_lanes(&[*a, *b])?;
            let (ta, tb) = (f.expr_ty(*a), f.expr_ty(*b));
            if ta.dtype == tb.dtype {
                Ok(())
            } else {
                Err(format!(
                    "the operands of a binary operator must have the same data type, but their types are {ta} and {tb}"
                ))
            }
        }
        ExprData::Select(c, a, b) => same_lanes(&[*c, *a, *b]),
        ExprData::Cast(to, a) if f.expr_ty(*a).lanes != to.lanes => Err(format!(
            "a cast must keep the number of lanes, but casts {} to {to}",
            f.expr_ty(*a)
        )),
        ExprData::Call(Intrin::CallExtern, args, _) => verify_kernel_arguments(f, args),
        ExprData::Call(Intrin::CallKernel, args, _) => KernelCall::of_args(f, args).map(drop),
        ExprData::Call(Intrin::IfThenElse, ..) => Ok(()),
        ExprData::Call(intrin, args, _) => {
            match intrin.arity() {
                Some(n) if n != args.len() => {
                    return Err(format!(
                        "T.{intrin} takes {n} operands, but {} were given",
                        args.len()
                    ));
                }
                _ => {}
            }
            same_lanes(args)
        }
        _ => Ok(()),
    }
}
