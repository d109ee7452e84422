//! The parser of graph functions, which translates syntax trees to IR.
//!
//! | file | contents |
//! |---|---|
//! | `unresolved_values` | values of expressions whose context is not known yet, and their conversions |
//! | `type_annotations` | types |
//! | `expressions` | expressions |
//! | `calls` | ordinary operators and calls of functions |
//! | `constants_and_scalars` | constants, scalars, shapes |
//! | `call_tir_and_builtins` | calls of loop functions, packed functions and builtins: `call_tir`, `call_packed` and similar |
//! | `kernel_call` | `call_kernel` |
//! | `macro_expansion` | expansion of `@R.macro` |
//! | `inplace_calls` | calls that overwrite arguments |
//! | `match_cast` | `match_cast`, `match_shape`, and annotated bindings |
//! | `statements` | statements |
//! | `if_statements` | `if` |
//! | `for_and_while` | `for` and `while` |
//! | `range_calls` | the range of a `for` |
//! | `loop_state` | the loop state and its types |
//! | `while_loop` | `R.while_loop` and its functions |
//! | `self_recursive_loop` | loops whose body is the enclosing function |
//! | `jump_statements` | `return`, `break` and `continue`, and how they exit loops |
//! | `functions` | signatures, bodies, local functions |

mod call_tir_and_builtins;
mod calls;
mod constants_and_scalars;
mod expressions;
mod for_and_while;
mod functions;
mod if_statements;
mod inplace_calls;
mod jump_statements;
mod kernel_call;
mod loop_state;
mod macro_expansion;
mod match_cast;
mod range_calls;
mod self_recursive_loop;
mod statements;
mod type_annotations;
mod unresolved_values;
mod while_loop;

pub(crate) use functions::{Callees, Def, Flags, parse_function};
pub(crate) use macro_expansion::MacroDef;

use pliant_ir::relax::{Expr as IrExpr, FunctionBuilder, Type, TypeData, Var};
use pliant_ir::{DType, Sym, SymVar};
use rustc_hash::FxHashMap;

use crate::parser_context::ParseContext;
use crate::python::ast::{Expr, Range};
use crate::script_errors::{ErrorKind, Reported};

/// The meaning of a name inside a graph function.
#[derive(Clone, Debug)]
pub(crate) enum Local {
    /// A variable of the graph, by the expression that refers to it.
    Var(IrExpr),
    /// A symbolic integer, such as `n`.
    Sym(Sym),
    /// A macro argument that is not a value of the graph, such as a string or a data type.
    Value(unresolved_values::Val),
    /// The module that contains the function, as in `cls.f`.
    Module,
    /// A name whose definition has an error. Its uses report no further errors.
    Broken,
    /// A variable of a dataflow block that is not one of its outputs.
    Hidden,
    /// A variable that is only defined in one branch of an `if`.
    OneBranch,
    /// A variable that is only defined in the body of a loop.
    InLoop,
    /// A local function without an annotated result type whose body is not parsed yet.
    NoResultType,
}

/// The state of the parser of a graph function.
pub(crate) struct FuncParser<'p, 's> {
    pub cx: &'p ParseContext<'s>,
    pub callees: &'p Callees<'p, 's>,
    pub b: FunctionBuilder<'p>,
    scope: FxHashMap<&'s str, Local>,
    /// The names redefined in the open scopes, with their previous meanings. These are restored
    /// when a scope is closed.
    undo: Vec<(&'s str, Option<Local>)>,
    host_syms: FxHashMap<u64, SymVar>,
    /// Whether undefined names in dims define symbols, as in signatures and patterns of `match_shape`.
    implicit: bool,
    /// Whether the expression that is being parsed is a dim. In dims, an integer scalar variable stands for its symbolic value.
    in_dim: bool,
    /// The types of the other functions of the module, with their symbols imported into this function.
    callee_types: FxHashMap<&'s str, Type>,
    /// The names of the functions whose types are being derived from their signatures, to detect functions whose types depend on
    /// each other.
    declaring: Vec<&'s str>,
    /// The range of the quoted dim that is being parsed. Errors inside the quotes are reported at
    /// this range.
    at: Option<Range>,
    /// The byte offset of the last use of each name.
    last_use: FxHashMap<&'s str, u32>,
    /// The source range of the first call with side effects in the function that is being parsed.
    impure: Option<Range>,
    /// Whether the call that is being parsed is a statement of its own, whose result is not used.
    discarded: bool,
    /// The number of expressions in the current statement that enclose the current expression.
    nesting: u32,
    /// The purity stated in the decorator of the function.
    stated_pure: Option<bool>,
    /// For the variable of each local function, the number of symbols defined before it. Symbols with smaller indices belong to the
    /// enclosing functions.
    outer_syms: FxHashMap<Var, usize>,
    /// Whether the innermost function is declared to return `R.Object`.
    result_is_any: bool,
    /// The names in the states of the enclosing loops, with the number of loops whose state
    /// contains the name. The next iteration reads the values of these names.
    carried: FxHashMap<&'s str, u32>,
    /// The iterations of the enclosing loops in the innermost function, innermost last.
    iterations: Vec<jump_statements::Iteration<'s>>,
    /// The current nesting depth of `if` statements and loops from which the function returns early.
    early: u32,
    /// The number of `if`s that duplicate the statements after them into both branches.
    copies: u32,
    /// The number of times that a loop body was parsed again with wider types.
    reparses: u32,
    /// The names of the macros being expanded, innermost last.
    expanding: Vec<&'s str>,
}

impl<'p, 's> FuncParser<'p, 's> {
    fn range(&self, range: Range) -> Range {
        self.at.unwrap_or(range)
    }

    fn error(&self, kind: ErrorKind, range: Range, message: impl Into<String>) -> Reported {
        self.cx.error(kind, self.range(range), message)
    }

    fn error_help(
        &self,
        kind: ErrorKind,
        range: Range,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Reported {
        self.cx.error_help(kind, self.range(range), message, help)
    }

    // ---- names ----

    fn define(&mut self, name: &'s str, local: Local) {
        let before = self.scope.insert(name, local);
        self.undo.push((name, before));
    }

    /// Opens a scope. Returns a mark that the caller passes to [`close_scope`](Self::close_scope).
    fn open_scope(&self) -> usize {
        self.undo.len()
    }

    /// Closes a scope and restores the previous meanings of names. Returns the names that the scope defined, with their meanings.
    fn close_scope(&mut self, mark: usize) -> Vec<(&'s str, Local)> {
        let mut defined = Vec::new();
        while self.undo.len() > mark {
            let Some((name, before)) = self.undo.pop() else { break };
            let now = match before {
                Some(local) => self.scope.insert(name, local),
                None => self.scope.remove(name),
            };
            if let Some(now) = now {
                defined.push((name, now));
            }
        }
        // Keep each name once, with its last meaning, which comes first in reverse order.
        let mut seen = rustc_hash::FxHashSet::default();
        defined.retain(|(name, _)| seen.insert(*name));
        defined.reverse();
        defined
    }

    /// Reports that a name is not defined.
    fn unknown_name(&self, name: &str, range: Range) -> Reported {
        if self.expanding.contains(&name) {
            return self.recursive_macro(name, range);
        }
        let local = self.scope.keys().copied();
        let help = crate::script_errors::did_you_mean(name, local.chain(self.callees.names()));
        self.cx.error_maybe(
            ErrorKind::UnknownName,
            self.range(range),
            format!("unknown name '{name}'"),
            help,
        )
    }

    // ---- small helpers over the builder ----

    fn ty_text(&self, ty: Type) -> String {
        pliant_ir::print::type_text(self.b.func(), ty)
    }

    fn intern(&mut self, data: TypeData) -> Type {
        self.b.func_mut().intern(data)
    }

    fn ty_of(&self, e: IrExpr) -> &TypeData {
        self.b.func().ty(e)
    }

    fn int(&mut self, value: i64) -> Sym {
        self.b.func_mut().syms.int(value)
    }

    /// The symbol with this name. Creates it if it does not exist.
    fn symbol(&mut self, name: &'s str) -> Sym {
        if let Some(Local::Sym(s)) = self.scope.get(name) {
            return *s;
        }
        let func = self.b.func_mut();
        let var = func.fresh_sym(name);
        let sym = func.syms.var(var);
        self.define(name, Local::Sym(sym));
        sym
    }

    fn is_local(&self, e: &Expr<'s>) -> bool {
        e.dotted().is_some_and(|parts| self.scope.contains_key(parts[0]))
    }

    fn tensor_dtype(&self, e: IrExpr) -> Option<DType> {
        match self.ty_of(e) {
            TypeData::Tensor { dtype, .. } => *dtype,
            _ => None,
        }
    }
}
