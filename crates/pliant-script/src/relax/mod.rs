//! Graph functions: from syntax to IR.
//!
//! | file | owns |
//! |---|---|
//! | `value` | what an expression may be before its context is known, and its conversions |
//! | `annotation` | types |
//! | `expr` | expressions |
//! | `call` | ordinary operators and calls of functions |
//! | `scalar` | constants, scalars, shapes |
//! | `special` | the calls that cross levels: `call_tir`, `call_packed` and their kin |
//! | `macros` | `@R.macro` where it is used |
//! | `inplace` | the calls that overwrite arguments |
//! | `cast` | `match_cast`, `match_shape`, and what an annotation does to a binding |
//! | `stmt` | statements |
//! | `branch` | `if` |
//! | `loops` | `for` and `while` |
//! | `range` | what a `for` counts |
//! | `state` | what a loop carries from turn to turn, and its types |
//! | `while_loop` | `R.while_loop` and the functions that it calls |
//! | `loop_of_itself` | a loop over a function that stands around it |
//! | `exits` | `return`, `break` and `continue`, out of loops too |
//! | `function` | signatures, bodies, local functions |

mod annotation;
mod branch;
mod call;
mod cast;
mod exits;
mod expr;
mod function;
mod inplace;
mod loop_of_itself;
mod loops;
mod macros;
mod range;
mod scalar;
mod special;
mod state;
mod stmt;
mod value;
mod while_loop;

pub(crate) use function::{Callees, Def, Flags, parse_function};
pub(crate) use macros::MacroDef;

use pliant_ir::relax::{Expr as IrExpr, FunctionBuilder, Type, TypeData, Var};
use pliant_ir::{DType, Sym, SymVar};
use rustc_hash::FxHashMap;

use crate::context::Cx;
use crate::errors::{Kind, Reported};
use crate::python::ast::{Expr, Range};

/// What a name means inside a function.
#[derive(Clone, Debug)]
pub(crate) enum Local {
    /// A variable.
    Var(IrExpr),
    /// A symbol.
    Sym(Sym),
    /// What a macro is given that is no value of the graph: a string, a data type.
    Value(value::Val),
    /// The module: `cls`.
    Module,
    /// A name whose definition had an error; uses are not reported again.
    Broken,
    /// A variable of a dataflow block that was not put out.
    Hidden,
    /// A variable that only one branch of an `if` defines.
    OneBranch,
    /// A variable that only the body of a loop defines.
    InLoop,
    /// A local function without an annotated result, before its body is read.
    NoResultType,
}

/// The parse of one graph function.
pub(crate) struct FuncParser<'p, 's> {
    pub cx: &'p Cx<'s>,
    pub callees: &'p Callees<'p, 's>,
    pub b: FunctionBuilder<'p>,
    scope: FxHashMap<&'s str, Local>,
    /// What names meant before, to be restored when a scope closes.
    undo: Vec<(&'s str, Option<Local>)>,
    host_syms: FxHashMap<u64, SymVar>,
    /// Unknown names in dims define symbols: signatures, and the patterns of `match_shape`.
    implicit: bool,
    /// Scalar parameters stand for their values: inside dims.
    in_dim: bool,
    /// The types of other functions, as types of this one.
    callee_types: FxHashMap<&'s str, Type>,
    /// The functions whose signatures are being read for their types.
    declaring: Vec<&'s str>,
    /// While a dim that is written as a string is parsed: where the string stands.
    at: Option<Range>,
    /// Where each name is read last.
    last_use: FxHashMap<&'s str, u32>,
    /// The first call with effects.
    impure: Option<Range>,
    /// Whether the call that is parsed is a statement of its own, its result unused.
    discarded: bool,
    /// How many expressions of the statement are around the one that is parsed.
    nesting: u32,
    /// The purity that the decorator states.
    stated_pure: Option<bool>,
    /// For the variables of local functions, how many symbols there were before them: those are not the functions' own.
    outer_syms: FxHashMap<Var, usize>,
    /// Whether the innermost function is declared to return an `R.Object`.
    result_is_any: bool,
    /// The state of the loops around, by name: what is assigned is read on the next turn.
    carried: FxHashMap<&'s str, u32>,
    /// The turns of loops that are read, the innermost last, up to the innermost function.
    turns: Vec<exits::Turn<'s>>,
    /// How deep `if`s that return early are nested, and how often what follows one was read twice.
    early: u32,
    copies: u32,
    /// How often the body of a loop was read again with wider types.
    rereads: u32,
    /// The names of the macros that are being read, the innermost last.
    expanding: Vec<&'s str>,
}

impl<'p, 's> FuncParser<'p, 's> {
    fn range(&self, range: Range) -> Range {
        self.at.unwrap_or(range)
    }

    fn error(&self, kind: Kind, range: Range, message: impl Into<String>) -> Reported {
        self.cx.error(kind, self.range(range), message)
    }

    fn error_help(
        &self,
        kind: Kind,
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

    /// Marks where a scope opens.
    fn open_scope(&self) -> usize {
        self.undo.len()
    }

    /// Closes a scope: names mean again what they meant when it opened. Returns the names it defined.
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
        // Each name once, with its last meaning: the first one met on the way back.
        let mut seen = rustc_hash::FxHashSet::default();
        defined.retain(|(name, _)| seen.insert(*name));
        defined.reverse();
        defined
    }

    /// Reports a name that nothing defines.
    fn unknown_name(&self, name: &str, range: Range) -> Reported {
        if self.expanding.contains(&name) {
            return self.recursive_macro(name, range);
        }
        let local = self.scope.keys().copied();
        let help = crate::errors::did_you_mean(name, local.chain(self.callees.names()));
        self.cx.error_maybe(
            Kind::UnknownName,
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

    /// The symbol of that name, made if it is new.
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
