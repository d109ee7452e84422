//! [`Template`]: a rewrite rule that is written as two functions, `pattern` and `replacement`.
//!
//! The parameters of `pattern` match any values of their types, and its symbols match any sizes. `replacement` has the same
//! parameters and computes the value that replaces the matched result.

use std::sync::Arc;

use pliant_ir::OpRegistry;
use pliant_ir::print::type_text;
use pliant_ir::relax::type_lattice::is_subtype;
use pliant_ir::relax::visit::{Importer, bindings};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Type, Var};
use pliant_sym::{Proof, SymArena};
use rustc_hash::FxHashMap;

use super::apply_rewrite_rules::RewriteCx;
use super::multi_result_templates::rewrite_separate_results;
use super::pattern_matcher::Match;
use super::pattern_nodes::{
    Literal, Pattern, PatternKind, is_op, is_tuple, is_tuple_get_item, wildcard,
};
use super::type_pattern::{SizePattern, TypePattern};
use crate::argument_writing_functions::MayWrite;
use crate::pass_error::{PassError, Problem};

/// Maximum number of traversals of the function. Applying a template with several results may make other rules match, so the
/// function is traversed again.
const MAX_SWEEPS: usize = 256;

/// A rewrite rule that is written as two functions, `pattern` and `replacement`.
#[derive(Clone, Debug)]
pub struct Template {
    /// The pattern to search for, which is built from the pattern function.
    pub pattern: Pattern,
    params: Vec<Pattern>,
    syms: Vec<(pliant_sym::SymVar, u64)>,
    replacement: Arc<Function>,
}

impl Template {
    /// Creates a rewrite rule from a pattern function and a replacement function.
    ///
    /// # Errors
    /// If the parameters or results of the functions differ, the pattern contains unsupported constructs, or the replacement
    /// contains branches or local functions.
    pub fn new(pattern: &Function, replacement: Arc<Function>) -> Result<Self, PassError> {
        if pattern.params().len() != replacement.params().len() {
            return Err(PassError::user(format!(
                "the functions `pattern` and `replacement` must have the same parameters, but have {} and {} parameters",
                pattern.params().len(),
                replacement.params().len()
            )));
        }
        let arena = Arc::new(pattern.syms.clone());
        let keys: Arc<[u64]> = (0..arena.vars().len() as u64).collect();
        let mut builder = PatternBuilder { func: pattern, arena, keys, vars: FxHashMap::default() };
        let mut params = Vec::new();
        for &p in pattern.params() {
            let ty = TypePattern::of(pattern, pattern.var(p).ty, &builder.arena, &builder.keys);
            let param = wildcard().has_type(ty);
            builder.vars.insert(p, param.clone());
            params.push(param);
        }
        for (_, b) in bindings(pattern) {
            let value = builder.binding(b)?;
            builder.vars.insert(b.var, value);
        }
        let result = builder.expr(pattern.seq(pattern.body()).result)?;
        if bindings(&replacement).iter().any(|(_, b)| {
            matches!(replacement.expr(b.value), ExprData::If { .. } | ExprData::Func(_))
        }) {
            return Err(PassError::unsupported(
                "the replacement function of a rewrite rule contains a branch or a local function, which is not supported",
                "the replacement function must be a sequence of calls",
            ));
        }
        let syms = shared_syms(pattern, &replacement);
        check_types(pattern, &replacement, &syms)?;
        Ok(Template { pattern: result, params, syms, replacement })
    }

    /// Emits the bindings of the replacement of a match, and returns the result of the replacement.
    ///
    /// # Errors
    /// If the pattern function does not use one of its parameters, so that the match has no value for it.
    pub fn apply(&self, cx: &mut RewriteCx<'_>, matched: &Match) -> Result<Expr, PassError> {
        let (bindings, result) = self
            .instantiate(cx.func, cx.ops, matched)
            .ok_or_else(|| PassError::user(
                "the pattern function does not use all of its parameters, so the match has no values for the unused ones",
            ))?;
        cx.adopt(bindings);
        Ok(result)
    }

    /// Copies the replacement function for a match: returns its bindings and its result. Returns `None` if the match has no value
    /// for a parameter.
    pub(super) fn instantiate(
        &self,
        func: &mut Function,
        ops: &dyn OpRegistry,
        matched: &Match,
    ) -> Option<(Vec<Binding>, Expr)> {
        let src = &*self.replacement;
        let args: Vec<Expr> = self.params.iter().map(|p| matched.get(p)).collect::<Option<_>>()?;
        let mut importer = Importer::new(src, func);
        for (&p, &arg) in src.params().iter().zip(&args) {
            importer.vars.insert(p, arg);
        }
        for &(v, key) in &self.syms {
            if let Some(size) = matched.size(key) {
                importer.syms.insert(v, size);
            }
        }
        let mut values: Vec<Binding> = Vec::new();
        for (_, b) in bindings(src) {
            let mut b = importer.binding(b);
            reinfer(importer.dst, ops, &mut b);
            values.push(b);
        }
        let result = importer.expr(src.seq(src.body()).result);
        Some((values, result))
    }
}

/// Infers the type of an operator call again, because its operands may have more precise types than in the replacement function.
fn reinfer(func: &mut Function, ops: &dyn OpRegistry, b: &mut Binding) {
    let ExprData::Call { callee: Callee::Op(op), args, attrs, ty_args } = *func.expr(b.value)
    else {
        return;
    };
    let (args, ty_args) = (func.list(args).to_vec(), func.type_list(ty_args).to_vec());
    let attrs = func.call_attrs(attrs).clone();
    if let Ok(ty) = ops.infer(func, op, &args, &attrs, &ty_args)
        && ty != func.expr_ty(b.value)
    {
        b.value = func.call(Callee::Op(op), &args, attrs, &ty_args, ty);
        if b.cast.is_none() {
            func.var_mut(b.var).ty = ty;
        }
    }
}

/// Returns the symbols of the replacement function that stand for the same dim of the same parameter as a symbol of the pattern
/// function. Each is returned with the key (identifying number) of the symbol of the pattern function.
fn shared_syms(pattern: &Function, replacement: &Function) -> Vec<(pliant_sym::SymVar, u64)> {
    let mut out: Vec<(pliant_sym::SymVar, u64)> = Vec::new();
    for (&p, &r) in pattern.params().iter().zip(replacement.params()) {
        let (a, b) = (pattern.var_ty(p), replacement.var_ty(r));
        let (Some(a), Some(b)) = (a.dims(), b.dims()) else { continue };
        for (&x, &y) in a.iter().zip(b) {
            if let (Some(x), Some(y)) = (pattern.syms.as_var(x), replacement.syms.as_var(y))
                && out.iter().all(|(v, _)| *v != y)
            {
                out.push((y, u64::from(x.as_u32())));
            }
        }
    }
    out
}

/// Rejects a replacement function if the type of its result or of a parameter is provably incompatible with the corresponding
/// type of the pattern function.
fn check_types(
    pattern: &Function,
    replacement: &Function,
    syms: &[(pliant_sym::SymVar, u64)],
) -> Result<(), PassError> {
    let mut common = pattern.clone();
    let known: Vec<_> = pattern.syms.vars().collect();
    let mapped: Vec<_> = syms
        .iter()
        .filter_map(|&(y, key)| {
            known.iter().find(|x| u64::from(x.as_u32()) == key).map(|&x| (y, x))
        })
        .map(|(y, x)| (y, common.syms.var(x)))
        .collect();
    let import = |common: &mut Function, ty: Type| {
        let mut importer = Importer::new(replacement, common);
        importer.syms.extend(mapped.iter().copied());
        importer.ty(ty)
    };
    let differ = |what: String, common: &Function, have: Type, want: Type, span| {
        let message = format!(
            "{what} has type {} in the function `replacement`, but type {} in the function `pattern`",
            type_text(common, have),
            type_text(common, want)
        );
        PassError::User(vec![Problem::new(message).at(span)])
    };
    for (&p, &r) in pattern.params().iter().zip(replacement.params()) {
        let (want, have) = (pattern.var(p).ty, import(&mut common, replacement.var(r).ty));
        if is_subtype(&mut common, want, have) == Proof::No {
            let var = replacement.var(r);
            let what = format!("the parameter '{}'", var.name);
            return Err(differ(what, &common, have, want, var.span));
        }
    }
    let want = pattern.expr_ty(pattern.seq(pattern.body()).result);
    let result = replacement.expr_ty(replacement.seq(replacement.body()).result);
    let have = import(&mut common, result);
    if is_subtype(&mut common, have, want) == Proof::No {
        let span = replacement
            .params()
            .first()
            .map_or(pliant_diag::Span::NONE, |&r| replacement.var(r).span);
        return Err(differ("the result".into(), &common, have, want, span));
    }
    Ok(())
}

/// Converts the pattern function to a [`Pattern`].
struct PatternBuilder<'a> {
    func: &'a Function,
    arena: Arc<SymArena>,
    keys: Arc<[u64]>,
    vars: FxHashMap<Var, Pattern>,
}

impl PatternBuilder<'_> {
    fn binding(&self, b: Binding) -> Result<Pattern, PassError> {
        if b.cast.is_some() {
            return Err(self.unsupported(b.var, "a match_cast"));
        }
        match self.func.expr(b.value) {
            ExprData::If { .. } => Err(self.unsupported(b.var, "a branch")),
            ExprData::Func(_) => Err(self.unsupported(b.var, "a local function")),
            _ => self.expr(b.value),
        }
    }

    fn unsupported(&self, var: Var, what: &str) -> PassError {
        let message = format!(
            "{what} in a pattern function is not supported: the function must be a sequence of calls"
        );
        PassError::User(vec![Problem::new(message).at(self.func.var(var).span)])
    }

    fn sizes(&self, dims: &[pliant_sym::Sym]) -> Box<[SizePattern]> {
        dims.iter().map(|&d| SizePattern::term(&self.arena, &self.keys, d)).collect()
    }

    fn list(&self, list: &[Expr]) -> Result<Vec<Pattern>, PassError> {
        list.iter().map(|&e| self.expr(e)).collect()
    }

    /// Converts an expression to a pattern. The recursion depth is limited, because only tuples are nested and their depth is
    /// limited.
    fn expr(&self, e: Expr) -> Result<Pattern, PassError> {
        let f = self.func;
        let literal = |l: Literal| Pattern::new(PatternKind::Literal(l));
        Ok(match f.expr(e) {
            ExprData::Var(v) => match self.vars.get(v) {
                Some(p) => p.clone(),
                None => {
                    return Err(self.unsupported(*v, "a variable that the pattern does not define"));
                }
            },
            ExprData::Global(s) => Pattern::new(PatternKind::Global(Some(f.str(*s).clone()))),
            ExprData::Extern(s) => Pattern::new(PatternKind::Extern(Some(f.str(*s).clone()))),
            ExprData::Constant(c) => literal(Literal::Tensor(f.const_tensor(*c).clone())),
            ExprData::Shape(dims) => Pattern::new(PatternKind::ShapeValue(self.sizes(dims))),
            ExprData::Int(v, dtype) => match f.syms.as_int(*v) {
                Some(v) => literal(Literal::Int(v, *dtype)),
                None => wildcard().has_type(TypePattern::Prim(*dtype)),
            },
            ExprData::Float(bits, dtype) => literal(Literal::Float(f64::from_bits(*bits), *dtype)),
            ExprData::Str(s) => literal(Literal::Str(f.str(*s).clone())),
            ExprData::DType(d) => literal(Literal::DType(*d)),
            ExprData::Tuple(list) => is_tuple(self.list(f.list(*list))?),
            ExprData::TupleGetItem(t, i) => is_tuple_get_item(self.expr(*t)?, Some(*i)),
            ExprData::Call { callee, args, attrs, .. } => {
                let callee = match callee {
                    Callee::Op(op) => is_op(*op),
                    Callee::Expr(c) => self.expr(*c)?,
                };
                let call = callee.call(self.list(f.list(*args))?);
                let attrs = f.call_attrs(*attrs);
                match attrs.is_empty() {
                    true => call,
                    false => call.has_attr(attrs.0.iter().map(|(k, v)| (&**k, v.clone()))),
                }
            }
            ExprData::If { .. } | ExprData::Func(_) => {
                return Err(PassError::internal(
                    "the pattern function is in A-normal form, but has a branch or a local function as an operand",
                ));
            }
        })
    }
}

/// Applies templates to a function until none matches. If several match, the first one is applied. Returns the number of replaced
/// matches.
///
/// # Errors
/// The same errors as [`rewrite_rules`](super::rewrite_rules).
pub fn rewrite_templates(
    func: &mut Function,
    templates: &[Template],
    ops: &dyn OpRegistry,
    writers: Option<&MayWrite>,
) -> Result<usize, PassError> {
    let rules = super::RuleSet::new(templates.iter().map(|t| t.pattern.clone()), ops)?;
    let mut count = 0;
    for _ in 0..MAX_SWEEPS {
        count += super::rewrite_rules(func, &rules, ops, writers, |cx, matched| {
            templates[matched.rule].apply(cx, matched).map(Some)
        })?;
        let mut separate = 0;
        for template in templates {
            separate += rewrite_separate_results(func, template, ops, writers)?;
        }
        if separate == 0 {
            return Ok(count);
        }
        count += separate;
    }
    Err(PassError::user(format!(
        "the rewrite rules do not terminate: they have rewritten {count} matches in {MAX_SWEEPS} passes over the function"
    )))
}
