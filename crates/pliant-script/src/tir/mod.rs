//! The parser of loop functions, which translates syntax trees to IR.
//!
//! | file | contents |
//! |---|---|
//! | `signatures` | signatures, size declarations |
//! | `buffers` | buffer types, `match_buffer`, allocations, regions |
//! | `statements` | statements |
//! | `bind_statement` | `T.bind` |
//! | `loops` | `for`, `T.grid` and similar |
//! | `blocks` | blocks and their axes |
//! | `expressions` | expressions and their typing rules |
//! | `fold_floats` | arithmetic on float constants |
//! | `calls` | calls: typed literals, intrinsics |

mod bind_statement;
mod blocks;
mod buffers;
mod calls;
mod expressions;
mod fold_floats;
mod kernel_call;
mod loops;
mod signatures;
mod statements;

pub(crate) use signatures::parse_function;

use pliant_ir::tir::{Buffer, Expr as IrExpr, Intrin, PrimFunc, Var};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dialect_spellings::Namespace;
use crate::parser_context::{ParseContext, Path};
use crate::python::ast::{Call, Expr, Range};
use crate::script_errors::{ErrorKind, Reported};

/// The meaning of a name inside a loop function.
#[derive(Clone, Debug)]
enum Local {
    /// A scalar variable of the loop function.
    Var(Var),
    /// A handle parameter (a parameter that stands for a tensor) to which `T.match_buffer` has not bound a buffer yet.
    Handle(Var),
    /// A buffer of the loop function.
    Buffer(Buffer),
    /// A value that the parser evaluates and that is not part of the program, such as `k` after `k = 4`.
    Const(expressions::Val),
    /// A name whose definition has an error. Its uses report no further errors.
    Broken,
}

/// The state of the parser of a loop function.
struct PrimParser<'p, 's> {
    cx: &'p ParseContext<'s>,
    f: PrimFunc,
    scope: FxHashMap<&'s str, Local>,
    undo: Vec<(&'s str, Option<Local>)>,
    /// The first value and the extent of each enclosing loop, by loop variable.
    loops: FxHashMap<Var, (IrExpr, IrExpr)>,
    host_vars: FxHashMap<u64, Var>,
    /// Whether undefined names define new sizes, as in the shapes of buffer parameters.
    implicit: bool,
    /// Calls of packed functions whose result type is not stated. The context determines it.
    untyped_calls: FxHashSet<IrExpr>,
}

impl<'s> PrimParser<'_, 's> {
    fn error(&self, kind: ErrorKind, range: Range, message: impl Into<String>) -> Reported {
        self.cx.error(kind, range, message)
    }

    fn error_help(
        &self,
        kind: ErrorKind,
        range: Range,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Reported {
        self.cx.error_help(kind, range, message, help)
    }

    fn define(&mut self, name: &'s str, local: Local) {
        let before = self.scope.insert(name, local);
        self.undo.push((name, before));
    }

    fn open_scope(&self) -> usize {
        self.undo.len()
    }

    fn close_scope(&mut self, mark: usize) {
        while self.undo.len() > mark {
            let Some((name, before)) = self.undo.pop() else { break };
            match before {
                Some(local) => self.scope.insert(name, local),
                None => self.scope.remove(name),
            };
        }
    }

    fn is_local(&self, e: &Expr<'s>) -> bool {
        e.dotted().is_some_and(|parts| self.scope.contains_key(parts[0]))
    }

    /// The name in the namespace `T` to which an expression refers; `None` for other expressions.
    fn tir_name(&self, e: &Expr<'s>) -> Option<String> {
        if self.is_local(e) {
            return None;
        }
        match self.cx.path(e)? {
            Path { ns: Namespace::Tir | Namespace::Te, name } => Some(name),
            _ => None,
        }
    }

    /// The call, and the name of the called construct, if the expression calls a construct of the namespace `T`; `None` for other
    /// expressions.
    fn tir_call<'e>(&self, e: &'e Expr<'s>) -> Option<(String, &'e Call<'s>)> {
        let call = e.as_call()?;
        Some((self.tir_name(&call.func)?, call))
    }

    fn unknown_name(&self, name: &str, range: Range) -> Reported {
        let help = crate::script_errors::did_you_mean(name, self.scope.keys().copied());
        self.cx.error_maybe(ErrorKind::UnknownName, range, format!("unknown name '{name}'"), help)
    }

    fn unknown_construct(&self, name: &str, range: Range) -> Reported {
        if let Some((_, what, instead)) = UNSUPPORTED_CONSTRUCTS.iter().find(|row| row.0 == name) {
            return self.error_help(
                ErrorKind::Unsupported,
                range,
                format!("T.{name} is not supported: {what}"),
                *instead,
            );
        }
        let help = crate::script_errors::did_you_mean(name, spellings());
        self.cx.error_maybe(
            ErrorKind::UnknownConstruct,
            range,
            format!("the module T has no member '{name}'"),
            help,
        )
    }
}

/// TVM constructs that loop functions do not support, with the reason and an alternative.
const UNSUPPORTED_CONSTRUCTS: &[(&str, &str, &str)] = &[
    ("ret", "a loop function cannot return a value", "write the result to a buffer parameter"),
    (
        "attr",
        "statements have no attributes",
        "write annotations={...} at the loop, T.block_attr({...}) in the block, or T.func_attr({...})",
    ),
    ("launch_thread", "a CPU has no thread axes", "write: for i in T.parallel(n)"),
    ("env_thread", "a CPU has no thread axes", "write: for i in T.parallel(n)"),
    ("realize", "a buffer is allocated by its declaration", "write: B = T.alloc_buffer(...)"),
    (
        "allocate_const",
        "loop functions cannot contain constant tensors",
        "pass the constant as a buffer parameter",
    ),
    ("tvm_stack_make_array", PACKED_ARGS_REASON, "write: T.call_packed(\"f\", A)"),
    ("tvm_stack_make_shape", PACKED_ARGS_REASON, "pass the sizes: T.call_packed(\"f\", n, m)"),
    ("tvm_stack_alloca", PACKED_ARGS_REASON, "write: T.call_packed(\"f\", A, n)"),
];

const PACKED_ARGS_REASON: &str =
    "T.call_packed creates the arguments itself from buffers and scalars";

/// Constructs of loop functions other than intrinsics, from which error messages suggest corrections.
const CONSTRUCTS: &[&str] = &[
    "prim_func",
    "Buffer",
    "handle",
    "match_buffer",
    "alloc_buffer",
    "decl_buffer",
    "func_attr",
    "grid",
    "serial",
    "parallel",
    "vectorized",
    "unroll",
    "block",
    "init",
    "reads",
    "writes",
    "where",
    "block_attr",
    "axis.remap",
    "axis.spatial",
    "axis.reduce",
    "evaluate",
    "LetStmt",
    "Assert",
    "Cast",
    "const",
    "Select",
    "Ramp",
    "Broadcast",
    "min",
    "max",
    "floordiv",
    "floormod",
    "truncdiv",
    "truncmod",
    "ceildiv",
    "int32",
    "int64",
    "float32",
    "float64",
    "bool",
    "min_value",
    "max_value",
];

/// All spellings of constructs and intrinsics of loop functions, from which error messages suggest corrections.
pub(crate) fn spellings() -> impl Iterator<Item = &'static str> {
    CONSTRUCTS.iter().copied().chain(Intrin::ALL.iter().map(|i| i.name()))
}
