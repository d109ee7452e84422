//! Loop functions: translates syntax to IR.
//!
//! | file | owns |
//! |---|---|
//! | `function` | signatures, size declarations |
//! | `buffer` | buffer types, `match_buffer`, allocations, regions |
//! | `stmt` | statements |
//! | `loops` | `for`, `T.grid` and similar |
//! | `block` | blocks and their axes |
//! | `expr` | expressions and their typing rules |
//! | `call` | calls: typed literals, intrinsics |

mod block;
mod buffer;
mod call;
mod expr;
mod function;
mod kernel_call;
mod loops;
mod stmt;

pub(crate) use function::parse_function;

use pliant_ir::tir::{Buffer, Expr as IrExpr, Intrin, PrimFunc, Var};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::context::{Cx, Path};
use crate::dialect::Ns;
use crate::errors::{Kind, Reported};
use crate::python::ast::{Call, Expr, Range};

/// The meaning of a name inside a loop function.
#[derive(Clone, Debug)]
enum Local {
    /// A scalar variable.
    Var(Var),
    /// A handle parameter that is not matched to a buffer yet.
    Handle(Var),
    /// A buffer.
    Buffer(Buffer),
    /// A constant of the parser: `k = 4`.
    Const(expr::Val),
    /// A name whose definition had an error.
    Broken,
}

/// The state of the parser of a loop function.
struct PrimParser<'p, 's> {
    cx: &'p Cx<'s>,
    f: PrimFunc,
    scope: FxHashMap<&'s str, Local>,
    undo: Vec<(&'s str, Option<Local>)>,
    /// The first value and the extent of each loop.
    loops: FxHashMap<Var, (IrExpr, IrExpr)>,
    host_vars: FxHashMap<u64, Var>,
    /// Whether undefined names define sizes: in the shapes of buffer parameters.
    implicit: bool,
    /// Calls of packed functions without a stated result type. Their type is determined by the
    /// context.
    unstated: FxHashSet<IrExpr>,
}

impl<'s> PrimParser<'_, 's> {
    fn error(&self, kind: Kind, range: Range, message: impl Into<String>) -> Reported {
        self.cx.error(kind, range, message)
    }

    fn error_help(
        &self,
        kind: Kind,
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

    /// The name of the loop language that an expression refers to.
    fn tir_name(&self, e: &Expr<'s>) -> Option<String> {
        if self.is_local(e) {
            return None;
        }
        match self.cx.path(e)? {
            Path { ns: Ns::Tir | Ns::Te, name } => Some(name),
            _ => None,
        }
    }

    /// The call of a name of the loop language that an expression consists of.
    fn tir_call<'e>(&self, e: &'e Expr<'s>) -> Option<(String, &'e Call<'s>)> {
        let call = e.as_call()?;
        Some((self.tir_name(&call.func)?, call))
    }

    fn unknown_name(&self, name: &str, range: Range) -> Reported {
        let help = crate::errors::did_you_mean(name, self.scope.keys().copied());
        self.cx.error_maybe(Kind::UnknownName, range, format!("unknown name '{name}'"), help)
    }

    fn unknown_construct(&self, name: &str, range: Range) -> Reported {
        if let Some((_, what, instead)) = ABSENT.iter().find(|row| row.0 == name) {
            return self.error_help(
                Kind::Unsupported,
                range,
                format!("T.{name}: {what}"),
                *instead,
            );
        }
        let help = crate::errors::did_you_mean(name, spellings());
        self.cx.error_maybe(Kind::UnknownConstruct, range, format!("T has no '{name}'"), help)
    }
}

/// TVM constructs that loop functions do not support, with the reason and the alternative.
const ABSENT: &[(&str, &str, &str)] = &[
    ("ret", "a loop function returns nothing", "write the result into a buffer parameter"),
    (
        "attr",
        "statements have no attributes",
        "write annotations={...} at the loop, T.block_attr({...}) in the block, or T.func_attr({...})",
    ),
    ("launch_thread", "a CPU has no thread axes", "write: for i in T.parallel(n)"),
    ("env_thread", "a CPU has no thread axes", "write: for i in T.parallel(n)"),
    ("realize", "buffers are allocated where they are declared", "write: B = T.alloc_buffer(...)"),
    (
        "allocate_const",
        "loop functions hold no constants",
        "pass the constant as a buffer parameter",
    ),
    ("tvm_stack_make_array", MADE, "write: T.call_packed(\"f\", A)"),
    ("tvm_stack_make_shape", MADE, "pass the sizes: T.call_packed(\"f\", n, m)"),
    ("tvm_stack_alloca", MADE, "write: T.call_packed(\"f\", A, n)"),
];

const MADE: &str = "the call of a packed function makes the arguments itself, from buffers and scalars as they are";

/// Constructs of loop functions that are not intrinsics, for suggestions.
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

/// All spellings of the loop language, for suggestions.
pub(crate) fn spellings() -> impl Iterator<Item = &'static str> {
    CONSTRUCTS.iter().copied().chain(Intrin::ALL.iter().map(|i| i.name()))
}
