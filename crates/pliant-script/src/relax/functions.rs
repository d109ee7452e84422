//! Parsing of graph functions: signatures, bodies, local functions, and the types of other functions.

use std::cell::RefCell;
use std::sync::Arc;

use pliant_ir::BaseFunc;
use pliant_ir::relax::builder::SuspendedFunc;
use pliant_ir::relax::visit::{copy_function, free_vars};
use pliant_ir::relax::{
    Expr as IrExpr, ExprData, Function, FunctionBuilder, Type, TypeData, Var, type_lattice,
};
use pliant_sym::Proof;
use rustc_hash::{FxHashMap, FxHashSet};

use super::statements::Flow;
use super::{FuncParser, Local, MacroDef};
use crate::name_visitor;
use crate::parser_context::ParseContext;
use crate::python::ast::{FunctionDef, Range, Stmt, StmtKind};
use crate::script_errors::{ErrorKind, Reported, Res};

/// A function of the module that is not parsed yet.
#[derive(Clone, Copy)]
pub(crate) enum Def<'p, 's> {
    /// The function is a graph function with this syntax tree.
    Relax(&'p FunctionDef<'s>),
    /// The function is a loop function. All loop functions are parsed before the graph functions.
    Prim,
}

/// The functions that a graph function can call.
#[derive(Default)]
pub(crate) struct Callees<'p, 's> {
    /// The macros that the function can use. Those of the surrounding Python program come first, in the order in which they are
    /// passed to the parser.
    pub macros: &'p [MacroDef<'p, 's>],
    defs: FxHashMap<&'s str, Def<'p, 's>>,
    /// The functions that have been parsed; `None` for a function with errors.
    done: RefCell<FxHashMap<&'s str, Option<BaseFunc>>>,
    /// The functions of the surrounding Python program that are called, with their names in the module.
    captured: RefCell<Vec<(Arc<str>, BaseFunc)>>,
}

impl<'p, 's> Callees<'p, 's> {
    pub fn declare(&mut self, name: &'s str, def: Def<'p, 's>) {
        self.defs.insert(name, def);
    }

    pub fn contains(&self, name: &str) -> bool {
        self.defs.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'s str> + '_ {
        self.defs.keys().copied()
    }

    pub fn finish(&self, name: &'s str, func: Option<BaseFunc>) {
        self.done.borrow_mut().insert(name, func);
    }

    pub fn result(&self, name: &str) -> Option<BaseFunc> {
        self.done.borrow().get(name).cloned().flatten()
    }

    /// Adds a function that the surrounding Python program defines to the module of the script, unless it has been added before.
    /// Returns its name in the module.
    pub fn add_captured(&self, name: &str, func: BaseFunc) -> Arc<str> {
        let mut captured = self.captured.borrow_mut();
        let same = |a: &BaseFunc, b: &BaseFunc| match (a, b) {
            (BaseFunc::Relax(a), BaseFunc::Relax(b)) => Arc::ptr_eq(a, b),
            (BaseFunc::Prim(a), BaseFunc::Prim(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        if let Some((known, _)) = captured.iter().find(|(_, f)| same(f, &func)) {
            return known.clone();
        }
        let taken = |n: &str| self.contains(n) || captured.iter().any(|(k, _)| &**k == n);
        let mut unique = name.to_string();
        let mut i = 0u32;
        while taken(&unique) {
            i += 1;
            unique = format!("{name}{i}");
        }
        let unique: Arc<str> = unique.into();
        captured.push((unique.clone(), func));
        unique
    }

    pub fn take_captured(&self) -> Vec<(Arc<str>, BaseFunc)> {
        std::mem::take(&mut self.captured.borrow_mut())
    }
}

/// The flags in the decorator of a graph function.
#[derive(Clone, Copy, Default)]
pub(crate) struct Flags {
    pub private: bool,
    pub pure: Option<bool>,
}

/// Parses one graph function of a module.
pub(crate) fn parse_function<'p, 's>(
    cx: &'p ParseContext<'s>,
    callees: &'p Callees<'p, 's>,
    def: &FunctionDef<'s>,
    flags: Flags,
) -> Res<Function> {
    let errors = cx.errors.count();
    let mut p = FuncParser::new(cx, callees, def, flags);
    let want = p.signature(def)?;
    p.result_is_any = want.is_some_and(|ty| p.is_any(ty));
    let result = p.body(def)?;
    let want = want.filter(|&ty| !p.is_any_tuple(def, ty, result));
    let result = match (want, &def.returns) {
        (Some(want), Some(e)) => p.check_result(result, want, e.range)?,
        _ => result,
    };
    if cx.errors.count() > errors {
        return Err(Reported);
    }
    let ret = match want {
        Some(ty) => p.refined_return(ty, result),
        None => p.inferred_return(result),
    };
    let pure = flags.pure.unwrap_or(p.impure.is_none() || p.forced_pure());
    let reparsed = p.reparses > 0;
    let mut func = p.b.finish(result, Some(ret), pure);
    func.private = flags.private;
    // Repeated parses of a body leave unused results in the function. Copying it drops them.
    Ok(if reparsed { copy_function(&func) } else { func })
}

/// A local function whose signature is parsed, but not its body.
struct OpenFunction<'s> {
    open: SuspendedFunc,
    /// The names defined by the signature, with their meanings.
    names: Vec<(&'s str, Local)>,
    want: Option<Type>,
    /// The variable that will contain the function. It exists before the body is parsed if the result type is annotated.
    var: Option<Var>,
    flags: Flags,
}

impl<'p, 's> FuncParser<'p, 's> {
    fn new(
        cx: &'p ParseContext<'s>,
        callees: &'p Callees<'p, 's>,
        def: &FunctionDef<'s>,
        flags: Flags,
    ) -> Self {
        let mut last_use = FxHashMap::default();
        let mut read = |name, at: u32| {
            let slot = last_use.entry(name).or_insert(at);
            *slot = at.max(*slot);
        };
        name_visitor::names_read(&def.body, &mut |name, at| {
            read(name, at);
            // A macro that is not hygienic reads names at the place of its use.
            if let Some(used) = callees.macro_named(cx, name).filter(|m| !m.hygienic) {
                name_visitor::names_read(&used.def.body, &mut |name, _| read(name, at));
            }
        });
        FuncParser {
            cx,
            callees,
            b: FunctionBuilder::new(cx.ops),
            scope: FxHashMap::default(),
            undo: Vec::new(),
            host_syms: FxHashMap::default(),
            callee_types: FxHashMap::default(),
            declaring: Vec::new(),
            implicit: false,
            in_dim: false,
            at: None,
            last_use,
            impure: None,
            discarded: false,
            nesting: 0,
            stated_pure: flags.pure,
            outer_syms: FxHashMap::default(),
            result_is_any: false,
            carried: FxHashMap::default(),
            iterations: Vec::new(),
            early: 0,
            copies: 0,
            reparses: 0,
            expanding: Vec::new(),
        }
    }

    /// Parses the signature: adds the parameters and returns the annotated result type.
    fn signature(&mut self, def: &FunctionDef<'s>) -> Res<Option<Type>> {
        if let Some(range) = def.unsupported {
            let message =
                "the parameters of a graph function can have neither default values nor '*'";
            return Err(self.error(ErrorKind::Unsupported, range, message));
        }
        self.implicit = true;
        for name in &def.type_params {
            self.symbol(name);
        }
        let mut names = FxHashSet::default();
        let mut ok = true;
        for param in &def.params {
            let ty = match &param.annotation {
                Some(e) => self.annotation(e),
                None => Ok(self.intern(TypeData::Any)),
            };
            if !names.insert(param.name) {
                let message = format!("two parameters of the function are called '{}'", param.name);
                self.error(ErrorKind::Structure, param.range, message);
                ok = false;
            }
            match ty {
                Ok(ty) => self.param(param.name, ty, param.range),
                Err(Reported) => {
                    self.define(param.name, Local::Broken);
                    ok = false;
                }
            }
        }
        let want = match &def.returns {
            Some(e) => self.annotation(e).map(Some),
            None => Ok(None),
        };
        self.implicit = false;
        if ok { want } else { Err(Reported) }
    }

    fn param(&mut self, name: &'s str, ty: Type, range: Range) {
        // In `x: R.Tensor((n,)), n: R.Prim("int64")` the scalar defines the symbol.
        let ty = match (self.b.func().types.get(ty), self.scope.get(name)) {
            (TypeData::Prim { dtype, value: None }, Some(Local::Sym(s))) if dtype.is_integer() => {
                let data = TypeData::Prim { dtype: *dtype, value: Some(*s) };
                self.intern(data)
            }
            _ => ty,
        };
        self.b.set_span(self.cx.span(range));
        let var = self.b.param(name, ty);
        let e = self.b.func_mut().var_expr(var);
        self.define(name, Local::Var(e));
    }

    /// Gives the scalar parameter `e` a symbol for its value, because it is used as a dim.
    pub(super) fn scalar_as_symbol(&mut self, name: &str, e: IrExpr) {
        let ExprData::Var(var) = *self.b.func().expr(e) else { return };
        let TypeData::Prim { dtype, value: None } = *self.b.func().var_ty(var) else { return };
        if dtype.is_integer() && self.is_param(var) {
            let func = self.b.func_mut();
            let sym = func.fresh_sym(name);
            let value = Some(func.syms.var(sym));
            let ty = func.intern(TypeData::Prim { dtype, value });
            func.var_mut(var).ty = ty;
        }
    }

    pub(super) fn is_param(&self, var: Var) -> bool {
        self.b.func().params().contains(&var)
    }

    fn body(&mut self, def: &FunctionDef<'s>) -> Res<IrExpr> {
        match self.stmts(&def.body)? {
            Flow::Returned(e) => Ok(e),
            Flow::Open => Err(self.error_help(
                ErrorKind::Structure,
                def.name_range,
                format!("function '{}' returns nothing", def.name),
                "end it with a return statement; return R.tuple() for no result",
            )),
        }
    }

    /// The inferred result type as visible to callers: it does not contain symbols that are only defined in the body.
    fn inferred_return(&mut self, result: IrExpr) -> Type {
        let func = self.b.func();
        let mut known = FxHashSet::default();
        for &p in func.params() {
            known.extend(type_lattice::definable_syms(func, func.var(p).ty));
        }
        let ty = func.expr_ty(result);
        type_lattice::erase(self.b.func_mut(), ty, &|v| known.contains(&v))
    }

    /// The declared result type `want`, or the more precise type of the result if the host program asks for it.
    fn refined_return(&mut self, want: Type, result: IrExpr) -> Type {
        if !self.cx.follows_tvm() {
            return want;
        }
        let inferred = self.inferred_return(result);
        match type_lattice::is_subtype(self.b.func_mut(), inferred, want) {
            Proof::Yes => inferred,
            _ => want,
        }
    }

    // ---- local functions ----

    /// Parses adjacent local functions. Each of them can refer to all others.
    pub(super) fn local_functions(&mut self, run: &[Stmt<'s>]) -> Res<()> {
        let defs = run.iter().filter_map(|stmt| match &stmt.kind {
            StmtKind::FunctionDef(def) => Some(&**def),
            _ => None,
        });
        let mut ok = true;
        let mut open = Vec::with_capacity(run.len());
        for def in defs {
            open.push((def, self.open_function(def)));
        }
        for (def, opened) in open {
            let closed = opened.and_then(|opened| self.close_function(def, opened));
            if closed.is_err() {
                self.define(def.name, Local::Broken);
                ok = false;
            }
        }
        if ok { Ok(()) } else { Err(Reported) }
    }

    /// Parses the signature of a local function and declares its name.
    fn open_function(&mut self, def: &FunctionDef<'s>) -> Res<OpenFunction<'s>> {
        let flags = crate::module_parser::relax_flags(self.cx, def)?;
        let outer_syms = self.b.func().syms.vars().len();
        self.b.begin_func();
        let mark = self.open_scope();
        let want = self.signature(def);
        self.implicit = false;
        let names = self.close_scope(mark);
        let open = self.b.suspend_func();
        let want = want?;
        self.b.set_span(self.cx.span(def.name_range));
        let var = want.map(|ret| {
            let params = open.params().iter().map(|&p| self.b.func().var(p).ty).collect();
            let pure = flags.pure.unwrap_or(true);
            let ty = self.intern(TypeData::Callable { params: Some(params), ret, pure });
            self.b.declare(def.name, ty)
        });
        match var {
            Some(var) => {
                self.outer_syms.insert(var, outer_syms);
                let e = self.b.func_mut().var_expr(var);
                self.define(def.name, Local::Var(e));
            }
            None => self.define(def.name, Local::NoResultType),
        }
        Ok(OpenFunction { open, names, want, var, flags })
    }

    /// Parses the body of a local function, and binds the function to a variable with the function's name.
    fn close_function(&mut self, def: &FunctionDef<'s>, opened: OpenFunction<'s>) -> Res<()> {
        let OpenFunction { open, names, want, var, flags } = opened;
        let outer = (self.impure.take(), std::mem::replace(&mut self.stated_pure, flags.pure));
        let any = want.is_some_and(|ty| self.is_any(ty));
        let outer_any = std::mem::replace(&mut self.result_is_any, any);
        let iterations = std::mem::take(&mut self.iterations);
        self.b.resume_func(open);
        let mark = self.open_scope();
        for (name, local) in names {
            self.define(name, local);
        }
        let result = self.body(def).and_then(|result| match (want, &def.returns) {
            (Some(want), Some(e)) => self.check_result(result, want, e.range),
            _ => Ok(result),
        });
        self.close_scope(mark);
        let pure = flags.pure.unwrap_or(self.impure.is_none() || self.forced_pure());
        (self.impure, self.stated_pure) = outer;
        self.result_is_any = outer_any;
        self.iterations = iterations;
        // Close the function even after an error, to keep the state of the builder consistent.
        let closing = result.as_ref().copied().unwrap_or(self.b.func_mut().tuple(&[]));
        let func = self.b.end_func(closing, want, pure);
        result?;
        self.check_captures(def, func)?;
        self.b.set_span(self.cx.span(def.name_range));
        let var = match var {
            Some(var) => {
                self.b.bind_declared(var, func);
                var
            }
            None => self.b.emit_named(func, def.name),
        };
        let e = self.b.func_mut().var_expr(var);
        self.define(def.name, Local::Var(e));
        Ok(())
    }

    /// Rejects a function in a dataflow block that reads variables of the block: the builder moves functions in front of it.
    fn check_captures(&self, def: &FunctionDef<'s>, func: IrExpr) -> Res<()> {
        let f = self.b.func();
        let ExprData::Func(id) = *f.expr(func) else { return Ok(()) };
        if !self.b.in_dataflow() {
            return Ok(());
        }
        match free_vars(f, id).into_iter().find(|&v| f.var(v).dataflow) {
            Some(v) => Err(self.error_help(
                ErrorKind::Dataflow,
                def.name_range,
                format!(
                    "function '{}' reads '{}', a variable of the dataflow block that contains it",
                    def.name,
                    f.var(v).name
                ),
                "define the function outside of the dataflow block",
            )),
            None => Ok(()),
        }
    }

    /// Whether the annotated result type is `R.Tuple` without fields and the result is a tuple with
    /// fields. This annotation accepts all tuples.
    fn is_any_tuple(&self, def: &FunctionDef<'s>, want: Type, result: IrExpr) -> bool {
        let bare = def.returns.as_ref().is_some_and(|e| e.as_call().is_none());
        let fields = |ty: &TypeData| match ty {
            TypeData::Tuple(fields) => Some(fields.len()),
            _ => None,
        };
        bare && fields(self.b.func().types.get(want)) == Some(0)
            && fields(self.ty_of(result)).is_some_and(|n| n > 0)
    }

    pub(super) fn is_any(&self, ty: Type) -> bool {
        matches!(self.b.func().types.get(ty), TypeData::Any)
    }

    // ---- the types of other functions ----

    /// The type of the function `name` of the module.
    pub(super) fn callee_type(&mut self, name: &'s str, range: Range) -> Res<Type> {
        if let Some(&ty) = self.callee_types.get(name) {
            return Ok(ty);
        }
        let done = self.callees.done.borrow().get(name).cloned();
        let ty = match (done, self.callees.defs.get(name).copied()) {
            (Some(Some(func)), _) => self.base_func_type(&func),
            (Some(None), _) => return Err(Reported),
            (None, Some(Def::Relax(def))) => self.declared_type(def, range)?,
            (None, _) => self.loop_func_type(),
        };
        self.callee_types.insert(name, ty);
        Ok(ty)
    }

    fn loop_func_type(&mut self) -> Type {
        let ret = self.intern(TypeData::unit());
        self.intern(TypeData::Callable { params: None, ret, pure: false })
    }

    pub(super) fn base_func_type(&mut self, func: &BaseFunc) -> Type {
        let BaseFunc::Relax(func) = func else { return self.loop_func_type() };
        let mut syms = type_lattice::SymMap::default();
        let dst = self.b.func_mut();
        let mut params = Vec::with_capacity(func.params().len());
        for &p in func.params() {
            params.push(type_lattice::import_type(dst, func, func.var(p).ty, &mut syms));
        }
        let ret = type_lattice::import_type(dst, func, func.ret_ty(), &mut syms);
        self.intern(TypeData::Callable { params: Some(params.into()), ret, pure: func.is_pure() })
    }

    /// The type of a function according to its annotations. It is needed if this function and the
    /// current one call each other, because then this function is not parsed yet.
    fn declared_type(&mut self, def: &FunctionDef<'s>, range: Range) -> Res<Type> {
        if self.declaring.contains(&def.name) {
            let message = format!("the signature of '{}' refers to itself", def.name);
            return Err(self.error(ErrorKind::Structure, range, message));
        }
        self.declaring.push(def.name);
        let ty = self.type_of_signature(def, range);
        self.declaring.pop();
        ty
    }

    fn type_of_signature(&mut self, def: &FunctionDef<'s>, range: Range) -> Res<Type> {
        let Some(returns) = &def.returns else {
            return Err(self.error_help(
                ErrorKind::Structure,
                range,
                format!("'{}' calls itself, so its result type must be declared", def.name),
                "annotate the result: def f(...) -> R.Tensor(...):",
            ));
        };
        let flags = crate::module_parser::relax_flags(self.cx, def)?;
        // The symbols of the other function are independent of symbols with the same names here.
        let scope = std::mem::take(&mut self.scope);
        let implicit = std::mem::replace(&mut self.implicit, true);
        let mark = self.open_scope();
        let mut params = Ok(Vec::with_capacity(def.params.len()));
        for param in &def.params {
            let ty = match &param.annotation {
                Some(e) => self.annotation(e),
                None => Ok(self.intern(TypeData::Any)),
            };
            params = params.and_then(|mut list: Vec<Type>| {
                list.push(ty?);
                Ok(list)
            });
        }
        let ret = self.annotation(returns);
        self.undo.truncate(mark);
        (self.scope, self.implicit) = (scope, implicit);
        let pure = flags.pure.unwrap_or(true);
        let data = TypeData::Callable { params: Some(params?.into()), ret: ret?, pure };
        Ok(self.intern(data))
    }

    /// The parsed function to which a global reference refers; `None` if it is not parsed yet.
    pub(super) fn parsed_callee(&self, callee: IrExpr) -> Option<Arc<Function>> {
        let ExprData::Global(name) = self.b.func().expr(callee) else { return None };
        let func = self.callees.result(self.b.func().str(*name))?;
        func.as_relax().cloned()
    }
}
