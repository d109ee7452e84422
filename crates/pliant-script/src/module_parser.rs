//! The top level of a script: imports, metadata, the module class, and single functions.

use pliant_ir::{AttrValue, BaseFunc, IRModule};
use rustc_hash::FxHashMap;

use crate::dialect_spellings::Namespace;
use crate::host_environment::HostMacro;
use crate::parser_context::ParseContext;
use crate::python::ast::{Call, ClassDef, Expr, ExprKind, FunctionDef, Stmt, StmtKind};
use crate::relax::{Callees, Def, Flags, MacroDef, parse_function};
use crate::script_errors::{ErrorKind, Res};
use crate::{Parsed, literals, name_visitor, tir};

/// The kind of definition that a decorator declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decorator {
    Module,
    Rewriter,
    Relax,
    Prim,
    PyFunc,
    Macro,
}

/// Parses the top-level statements of a file.
pub(crate) fn parse_top<'s>(
    cx: &mut ParseContext<'s>,
    stmts: &[Stmt<'s>],
    host: &[HostMacro<'s>],
) -> Option<Parsed> {
    let own = stmts.iter().take_while(|s| host.first().is_none_or(|m| s.range.start < m.start));
    let (stmts, behind) = stmts.split_at(own.count());
    read_imports_and_metadata(cx, stmts);
    let cx = &*cx;
    let macros = &macros(cx, stmts, behind, host)?;
    let mut modules = Vec::new();
    let mut funcs = Vec::new();
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::ClassDef(def) if defines_module(decorator(cx, &def.decorators)) => {
                modules.push(&**def);
            }
            StmtKind::FunctionDef(def)
                if matches!(
                    decorator(cx, &def.decorators),
                    Some(Decorator::Relax | Decorator::Prim)
                ) =>
            {
                funcs.push(&**def);
            }
            // Other statements are part of the host program.
            _ => {}
        }
    }
    if let Some(second) = modules.get(1) {
        let message = "a script can contain only one module";
        cx.error(ErrorKind::Structure, second.name_range, message);
    }
    match (modules.first(), funcs.as_slice()) {
        (Some(class), _) => {
            let module = parse_class(cx, class, macros)?;
            Some(match decorator(cx, &class.decorators) {
                Some(Decorator::Rewriter) => Parsed::Rewriter(class.name.into(), module),
                _ => Parsed::Module(module),
            })
        }
        (None, []) => {
            let range = stmts.first().map(|s| s.range).unwrap_or_default();
            cx.error_help(
                ErrorKind::Structure,
                range,
                "the script contains neither a module nor a function",
                "decorate a class with @I.ir_module, or a function with @R.function or @T.prim_func",
            );
            None
        }
        (None, [one]) => {
            let mut module = parse_funcs(cx, &funcs, macros)?;
            if module.functions.len() == 1 {
                let func = module.functions.shift_remove(one.name)?;
                return Some(Parsed::Function(one.name.into(), func));
            }
            Some(Parsed::Module(module))
        }
        (None, _) => parse_funcs(cx, &funcs, macros).map(Parsed::Module),
    }
}

/// Collects the definitions of macros: first those of the surrounding Python program, then those of the script.
fn macros<'p, 's>(
    cx: &ParseContext<'s>,
    stmts: &'p [Stmt<'s>],
    behind: &'p [Stmt<'s>],
    host: &[HostMacro<'s>],
) -> Option<Vec<MacroDef<'p, 's>>> {
    let mut out = Vec::new();
    for (stmt, from) in behind.iter().zip(host) {
        if let StmtKind::FunctionDef(def) = &stmt.kind {
            out.push(MacroDef { def, hygienic: from.hygienic, env: Some(from.env), own: false });
        }
    }
    for stmt in stmts {
        let StmtKind::FunctionDef(def) = &stmt.kind else { continue };
        if decorator(cx, &def.decorators) != Some(Decorator::Macro) {
            continue;
        }
        let mut hygienic = true;
        for call in def.decorators.iter().filter_map(Expr::as_call) {
            let given = bool_keywords(cx, call, &["hygienic"]).ok()?;
            hygienic = given.last().is_none_or(|&(_, value)| value);
        }
        out.push(MacroDef { def, hygienic, env: None, own: true });
    }
    Some(out)
}

/// Reads the imports and the metadata of a file. They are read before all other statements, which may refer to them.
fn read_imports_and_metadata<'s>(cx: &mut ParseContext<'s>, stmts: &[Stmt<'s>]) {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Import(names) | StmtKind::ImportFrom(names) => {
                for (path, name) in names {
                    if crate::dialect_spellings::split(path).is_some() {
                        let path = match path.strip_prefix("pliant") {
                            Some(rest) => format!("tvm{rest}"),
                            None => path.clone(),
                        };
                        cx.imports.insert(name, path);
                    }
                }
            }
            StmtKind::Assign(targets, value)
                if targets.len() == 1
                    && targets[0].as_name() == Some("metadata")
                    && matches!(value.kind, ExprKind::Dict(_)) =>
            {
                if let Ok(tensors) = literals::metadata(cx, value) {
                    cx.metadata = tensors;
                }
            }
            StmtKind::ClassDef(def) if defines_module(decorator(cx, &def.decorators)) => {
                cx.class_name = Some(def.name);
            }
            _ => {}
        }
    }
}

fn defines_module(decorator: Option<Decorator>) -> bool {
    matches!(decorator, Some(Decorator::Module | Decorator::Rewriter))
}

/// The kind of definition that a list of decorators declares; `None` if the decorators are unknown.
fn decorator<'s>(cx: &ParseContext<'s>, decorators: &[Expr<'s>]) -> Option<Decorator> {
    decorators.iter().find_map(|e| {
        let path = cx.path(e.as_call().map_or(e, |c| &c.func))?;
        match (path.ns, path.name.as_str()) {
            (Namespace::Ir, "ir_module") => Some(Decorator::Module),
            (Namespace::Relax, "rewriter") => Some(Decorator::Rewriter),
            (Namespace::Ir, "pyfunc") => Some(Decorator::PyFunc),
            (Namespace::Relax, "function" | "func") => Some(Decorator::Relax),
            (Namespace::Relax, "macro") => Some(Decorator::Macro),
            (Namespace::Tir, "prim_func" | "func") => Some(Decorator::Prim),
            _ => None,
        }
    })
}

/// Reads the flags in the decorator of a graph function, such as `pure=False`.
pub(crate) fn relax_flags<'s>(cx: &ParseContext<'s>, def: &FunctionDef<'s>) -> Res<Flags> {
    let mut flags = Flags::default();
    for call in def.decorators.iter().filter_map(Expr::as_call) {
        for (name, value) in bool_keywords(cx, call, &["pure", "private", "check_well_formed"])? {
            match name {
                "pure" => flags.pure = Some(value),
                "private" => flags.private = value,
                _ => {}
            }
        }
    }
    Ok(flags)
}

/// Reads the Boolean keyword arguments of a decorator.
pub(crate) fn bool_keywords<'s>(
    cx: &ParseContext<'s>,
    call: &Call<'s>,
    known: &[&'static str],
) -> Res<Vec<(&'static str, bool)>> {
    let mut out = Vec::new();
    for k in &call.keywords {
        let Some(name) = known.iter().find(|n| **n == k.name) else {
            let help = crate::script_errors::did_you_mean(k.name, known.iter().copied())
                .unwrap_or_else(|| {
                    format!("the decorator has the parameters {}", known.join(", "))
                });
            let message = format!("the decorator has no parameter '{}'", k.name);
            return Err(cx.error_help(ErrorKind::Arguments, k.range, message, help));
        };
        let ExprKind::Bool(value) = k.value.kind else {
            return Err(cx.error(
                ErrorKind::Value,
                k.value.range,
                format!("parameter '{name}' of the decorator must be True or False"),
            ));
        };
        out.push((*name, value));
    }
    Ok(out)
}

fn parse_class<'s>(
    cx: &ParseContext<'s>,
    class: &ClassDef<'s>,
    macros: &[MacroDef<'_, 's>],
) -> Option<IRModule> {
    let mut funcs = Vec::new();
    let mut attrs = Vec::new();
    for stmt in &class.body {
        match &stmt.kind {
            StmtKind::Pass => {}
            StmtKind::FunctionDef(def) => match decorator(cx, &def.decorators) {
                Some(Decorator::Relax | Decorator::Prim) => funcs.push(&**def),
                Some(Decorator::PyFunc) => {
                    let message = "a module cannot contain Python functions (@I.pyfunc)";
                    cx.error(ErrorKind::Unsupported, def.name_range, message);
                }
                _ => {
                    cx.error_help(
                        ErrorKind::Structure,
                        def.name_range,
                        format!("'{}' is neither a graph function nor a loop function", def.name),
                        "decorate it with @R.function or @T.prim_func",
                    );
                }
            },
            StmtKind::Expr(e) => match e.as_call().map(|c| (cx.path(&c.func), c)) {
                Some((Some(p), call)) if p.ns == Namespace::Ir && p.name == "module_attrs" => {
                    attrs.extend(module_attrs(cx, call));
                }
                Some((Some(p), _)) if p.ns == Namespace::Ir && p.name == "module_global_infos" => {}
                _ => {
                    cx.error(
                        ErrorKind::Structure,
                        stmt.range,
                        "the class body of a module can only contain functions and module attributes",
                    );
                }
            },
            _ => {
                cx.error(
                    ErrorKind::Structure,
                    stmt.range,
                    "the class body of a module can only contain functions and module attributes",
                );
            }
        }
    }
    let mut module = parse_funcs(cx, &funcs, macros)?;
    for (key, value) in attrs {
        module.attrs.insert(key.as_str().into(), value);
    }
    Some(module)
}

fn module_attrs<'s>(cx: &ParseContext<'s>, call: &Call<'s>) -> Vec<(String, AttrValue)> {
    let Some(ExprKind::Dict(items)) = call.args.first().map(|e| &e.kind) else {
        cx.error(
            ErrorKind::Value,
            call.func.range,
            "the argument of I.module_attrs must be a dict from attribute names to constants",
        );
        return Vec::new();
    };
    let mut out = Vec::new();
    for (key, value) in items {
        match (key.as_str(), literals::attr(value)) {
            (Some(key), Some(value)) => out.push((key.to_string(), value)),
            _ => {
                cx.error(
                    ErrorKind::Value,
                    value.range,
                    "in I.module_attrs, each key must be a string and each value a constant",
                );
            }
        }
    }
    out
}

/// Parses functions that may call each other: first all loop functions, then the graph functions. A
/// called graph function is parsed before its callers.
fn parse_funcs<'s>(
    cx: &ParseContext<'s>,
    funcs: &[&FunctionDef<'s>],
    macros: &[MacroDef<'_, 's>],
) -> Option<IRModule> {
    let mut callees = Callees::default();
    callees.macros = macros;
    let mut index: FxHashMap<&str, usize> = FxHashMap::default();
    for (i, def) in funcs.iter().enumerate() {
        let is_relax = decorator(cx, &def.decorators) == Some(Decorator::Relax);
        if index.insert(def.name, i).is_some() {
            let message = format!("two functions of the module are called '{}'", def.name);
            cx.error(ErrorKind::Structure, def.name_range, message);
        }
        callees.declare(def.name, if is_relax { Def::Relax(def) } else { Def::Prim });
    }
    let (relax, prim): (Vec<usize>, Vec<usize>) = (0..funcs.len())
        .partition(|&i| decorator(cx, &funcs[i].decorators) == Some(Decorator::Relax));
    for i in prim {
        let func = tir::parse_function(cx, funcs[i]).ok().map(BaseFunc::from);
        callees.finish(funcs[i].name, func);
    }
    for i in callees_first(funcs, &relax, &index) {
        let def = funcs[i];
        let func = relax_flags(cx, def).and_then(|flags| parse_function(cx, &callees, def, flags));
        callees.finish(def.name, func.ok().map(BaseFunc::from));
        if cx.errors.is_full() {
            break;
        }
    }
    if cx.errors.any() {
        return None;
    }
    let mut module = IRModule::new();
    for def in funcs {
        module.insert(def.name, callees.result(def.name)?);
    }
    for (name, func) in callees.take_captured() {
        module.insert(name, func);
    }
    Some(module)
}

/// Sorts functions so that callees precede callers, except in cycles.
fn callees_first(
    funcs: &[&FunctionDef<'_>],
    relax: &[usize],
    index: &FxHashMap<&str, usize>,
) -> Vec<usize> {
    let mut order = Vec::new();
    let mut state = vec![0u8; funcs.len()];
    let wanted: Vec<bool> = (0..funcs.len()).map(|i| relax.binary_search(&i).is_ok()).collect();
    let uses = |i: usize| {
        let mut out = Vec::new();
        name_visitor::names_read(&funcs[i].body, &mut |name, _| {
            if let Some(&j) = index.get(name)
                && wanted[j]
                && j != i
            {
                out.push(j);
            }
        });
        out.dedup();
        out
    };
    for &root in relax {
        let mut stack = vec![(root, false)];
        while let Some((i, done)) = stack.pop() {
            if done {
                order.push(i);
                continue;
            }
            if std::mem::replace(&mut state[i], 1) == 1 {
                continue;
            }
            stack.push((i, true));
            stack.extend(uses(i).into_iter().rev().filter(|&j| state[j] == 0).map(|j| (j, false)));
        }
    }
    order
}
