//! The lowered form, which code generators take, and its verifier.
//!
//! A lowered function
//! - has no blocks, and only `serial` and `parallel` loops. Vectors are explicit: `T.Ramp` as an index, `T.Broadcast`, operators
//!   over lanes, `T.vector_sum` and the like;
//! - accesses each buffer with exactly one index, the linear offset from the buffer's first element, whatever the rank. The index
//!   is a scalar or a vector of int64. The attribute `tir.flat` marks this form for the verifier and the parser;
//! - has checked every access: an index that is not provably in bounds is inside a `T.Assert`;
//! - uses the values that it has checked: no assertion, loop bound, allocation size or kernel argument reads memory, so that other
//!   threads cannot change a value after its check;
//! - has vector operands with equal numbers of lanes, or with one lane;
//! - determines the sizes of all its buffers from parameters: each size is a whole dim of a parameter, or a parameter itself.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{Expr, ExprData, ForKind, Intrin, KernelCall, PrimFunc, StmtData, Ty};

use crate::guards::reads;
use crate::schedule::reach;
use crate::walk::{for_each_stmt, own_exprs};

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
            result = statement(f, data);
        }
    });
    result
}

fn statement(f: &PrimFunc, data: &StmtData) -> Result<(), String> {
    match data {
        StmtData::Block(b) => return Err(format!("the block '{}' is left", b.name)),
        StmtData::For { kind: ForKind::Vectorized | ForKind::Unrolled, var, .. } => {
            return Err(format!(
                "the loop over '{}' is neither serial nor parallel",
                f.var(*var).name
            ));
        }
        StmtData::Store { buffer, indices, value } => {
            access(f, *buffer, indices)?;
            let (have, want) = (f.expr_ty(*value), Ty::scalar(f.buffer(*buffer).dtype));
            let lanes = f.expr_ty(indices[0]).lanes;
            if have.dtype != want.dtype || (have.lanes != lanes && have.lanes != 1) {
                let name = &f.buffer(*buffer).name;
                return Err(format!(
                    "a value of type {have} is stored to {lanes} elements of '{name}'"
                ));
            }
        }
        StmtData::If(e, ..) | StmtData::While(e, _) | StmtData::Assert(e, ..)
            if f.expr_ty(*e) != Ty::BOOL =>
        {
            return Err("a condition is not a bool".into());
        }
        _ => {}
    }
    loaded_once(f, data)?;
    let mut result = Ok(());
    own_exprs(data, |e| {
        for_each_expr(f, e, |e| {
            if result.is_ok() {
                result = expression(f, e);
            }
        });
    });
    result
}

/// Rejects assertions, loop bounds and allocation sizes that read memory.
fn loaded_once(f: &PrimFunc, data: &StmtData) -> Result<(), String> {
    let pure = |what: &str, e: Expr| match reads(f, e) {
        true => Err(format!("{what} reads memory: {}", crate::text::expr(f, e))),
        false => Ok(()),
    };
    match data {
        StmtData::Assert(condition, ..) => pure("an assertion", *condition),
        StmtData::For { min, extent, .. } => {
            pure("a loop bound", *min)?;
            pure("a loop bound", *extent)
        }
        StmtData::Alloc(buffer, _) => {
            f.buffer(*buffer).shape.iter().try_for_each(|&dim| pure("the size of a buffer", dim))
        }
        _ => Ok(()),
    }
}

/// Rejects kernel arguments that read memory. `T.address_of(a[i])` does not read `a`, but `i` must not read memory.
fn kernel_arguments(f: &PrimFunc, args: &[Expr]) -> Result<(), String> {
    if reach::kind(f, args).is_none() {
        return Ok(());
    }
    let reads_memory = |e: &Expr| match f.expr(*e) {
        ExprData::Call(Intrin::AddressOf, element, _) => match f.expr(element[0]) {
            ExprData::Load(_, indices) => indices.iter().any(|&i| reads(f, i)),
            _ => true,
        },
        _ => reads(f, *e),
    };
    match args.iter().find(|e| reads_memory(e)) {
        Some(&e) => {
            Err(format!("an argument of a kernel reads memory: {}", crate::text::expr(f, e)))
        }
        None => Ok(()),
    }
}

fn access(f: &PrimFunc, buffer: pliant_ir::tir::Buffer, indices: &[Expr]) -> Result<(), String> {
    let name = &f.buffer(buffer).name;
    match indices {
        [i] if f.expr_ty(*i).dtype == pliant_tensor::DType::Int64 => Ok(()),
        [_] => Err(format!("an index of '{name}' is not int64")),
        _ => Err(format!("an access of '{name}' is not flattened")),
    }
}

fn expression(f: &PrimFunc, e: Expr) -> Result<(), String> {
    let ty = f.expr_ty(e);
    if ty.lanes > MAX_LANES || ty.lanes == 0 {
        return Err(format!("a vector of {} lanes", ty.lanes));
    }
    let together = |list: &[Expr]| {
        let mut lanes = list.iter().map(|&e| f.expr_ty(e).lanes).filter(|&l| l != 1);
        let first = lanes.next().unwrap_or(1);
        if lanes.all(|l| l == first) {
            Ok(())
        } else {
            Err("vectors of different lanes meet".to_string())
        }
    };
    match f.expr(e) {
        ExprData::Load(b, indices) => access(f, *b, indices),
        ExprData::Binary(_, a, b) => {
            together(&[*a, *b])?;
            let (ta, tb) = (f.expr_ty(*a), f.expr_ty(*b));
            if ta.dtype == tb.dtype {
                Ok(())
            } else {
                Err(format!("operands of types {ta} and {tb}"))
            }
        }
        ExprData::Select(c, a, b) => together(&[*c, *a, *b]),
        ExprData::Cast(to, a) if f.expr_ty(*a).lanes != to.lanes => {
            Err(format!("a cast of {} to {to}", f.expr_ty(*a)))
        }
        ExprData::Call(Intrin::CallExtern, args, _) => kernel_arguments(f, args),
        ExprData::Call(Intrin::CallKernel, args, _) => KernelCall::of_args(f, args).map(drop),
        ExprData::Call(Intrin::IfThenElse, ..) => Ok(()),
        ExprData::Call(intrin, args, _) => {
            match intrin.arity() {
                Some(n) if n != args.len() => return Err(format!("T.{intrin} takes {n} operands")),
                _ => {}
            }
            together(args)
        }
        _ => Ok(()),
    }
}
