//! [`Template`]: a rule written as two functions, `pattern` and `replacement`.
//!
//! The parameters of `pattern` stand for any values of their types, its symbols for any sizes; `replacement` has the
//! same parameters and says what to compute instead.

use std::sync::Arc;

use pliant_ir::OpRegistry;
use pliant_ir::relax::visit::{Importer, bindings};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_sym::SymArena;
use rustc_hash::FxHashMap;

use super::apply::RewriteCx;
use super::matcher::Match;
use super::node::{Literal, Pattern, PatternKind, is_op, is_tuple, is_tuple_get_item, wildcard};
use super::size::{SizePattern, TypePattern};
use crate::error::{PassError, Problem};

/// A rule written as two functions.
#[derive(Clone, Debug)]
pub struct Template {
    /// What to look for.
    pub pattern: Pattern,
    params: Vec<Pattern>,
    syms: Vec<(pliant_sym::SymVar, u64)>,
    replacement: Arc<Function>,
}

impl Template {
    /// The rule of two functions.
    ///
    /// # Errors
    /// Parameters that differ; constructs that no pattern has; a replacement that is more than bindings.
    pub fn new(pattern: &Function, replacement: Arc<Function>) -> Result<Self, PassError> {
        if pattern.params().len() != replacement.params().len() {
            return Err(PassError::user(format!(
                "pattern takes {} parameters and replacement takes {}: they must be the same",
                pattern.params().len(),
                replacement.params().len()
            )));
        }
        let arena = Arc::new(pattern.syms.clone());
        let keys: Arc<[u64]> = (0..arena.vars().len() as u64).collect();
        let mut maker = Maker { func: pattern, arena, keys, vars: FxHashMap::default() };
        let mut params = Vec::new();
        for &p in pattern.params() {
            let ty = TypePattern::of(pattern, pattern.var(p).ty, &maker.arena, &maker.keys);
            let param = wildcard().has_type(ty);
            maker.vars.insert(p, param.clone());
            params.push(param);
        }
        for (_, b) in bindings(pattern) {
            let made = maker.binding(b)?;
            maker.vars.insert(b.var, made);
        }
        let result = maker.expr(pattern.seq(pattern.body()).result)?;
        if bindings(&replacement).iter().any(|(_, b)| {
            matches!(replacement.expr(b.value), ExprData::If { .. } | ExprData::Func(_))
        }) {
            return Err(PassError::unsupported(
                "a branch or a local function in a replacement",
                "a replacement is a sequence of calls",
            ));
        }
        let syms = shared_syms(pattern, &replacement);
        Ok(Template { pattern: result, params, syms, replacement })
    }

    /// Emits the replacement of a match and returns its result.
    ///
    /// # Errors
    /// A symbol of the replacement that the match says nothing of.
    pub fn apply(&self, cx: &mut RewriteCx<'_>, found: &Match) -> Result<Expr, PassError> {
        let src = &*self.replacement;
        let args: Vec<Expr> = self
            .params
            .iter()
            .map(|p| {
                found
                    .get(p)
                    .ok_or_else(|| PassError::user("a parameter of the pattern is not used in it"))
            })
            .collect::<Result<_, _>>()?;
        let mut values = Vec::new();
        let result = {
            let mut importer = Importer::new(src, cx.func);
            for (&p, &arg) in src.params().iter().zip(&args) {
                importer.vars.insert(p, arg);
            }
            for &(v, key) in &self.syms {
                if let Some(size) = found.size(key) {
                    importer.syms.insert(v, size);
                }
            }
            for (_, b) in bindings(src) {
                values.push(importer.binding(b));
            }
            importer.expr(src.seq(src.body()).result)
        };
        cx.adopt(values);
        Ok(result)
    }
}

/// The symbols of the replacement with the keys of the pattern's: they are paired by where they stand in the
/// parameters.
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

struct Maker<'a> {
    func: &'a Function,
    arena: Arc<SymArena>,
    keys: Arc<[u64]>,
    vars: FxHashMap<Var, Pattern>,
}

impl Maker<'_> {
    fn binding(&self, b: Binding) -> Result<Pattern, PassError> {
        if b.cast.is_some() {
            return Err(self.refuse(b.var, "a match_cast"));
        }
        match self.func.expr(b.value) {
            ExprData::If { .. } => Err(self.refuse(b.var, "a branch")),
            ExprData::Func(_) => Err(self.refuse(b.var, "a local function")),
            _ => self.expr(b.value),
        }
    }

    fn refuse(&self, var: Var, what: &str) -> PassError {
        let message =
            format!("{what} in a pattern is not supported: a pattern is a sequence of calls");
        PassError::User(vec![Problem::new(message).at(self.func.var(var).span)])
    }

    fn sizes(&self, dims: &[pliant_sym::Sym]) -> Box<[SizePattern]> {
        dims.iter().map(|&d| SizePattern::term(&self.arena, &self.keys, d)).collect()
    }

    fn list(&self, list: &[Expr]) -> Result<Vec<Pattern>, PassError> {
        list.iter().map(|&e| self.expr(e)).collect()
    }

    /// Operands nest in tuples only, whose depth is bounded.
    fn expr(&self, e: Expr) -> Result<Pattern, PassError> {
        let f = self.func;
        let literal = |l: Literal| Pattern::new(PatternKind::Literal(l));
        Ok(match f.expr(e) {
            ExprData::Var(v) => match self.vars.get(v) {
                Some(p) => p.clone(),
                None => return Err(self.refuse(*v, "a variable from outside")),
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
                return Err(PassError::internal("a branch is no operand"));
            }
        })
    }
}

/// Applies templates to a function until none fits; the first that matches wins. Returns how many matches were
/// replaced.
///
/// # Errors
/// As [`rewrite_rules`](super::rewrite_rules).
pub fn rewrite_templates(
    func: &mut Function,
    templates: &[Template],
    ops: &dyn OpRegistry,
) -> Result<usize, PassError> {
    let rules = super::RuleSet::new(templates.iter().map(|t| t.pattern.clone()), ops)?;
    super::rewrite_rules(func, &rules, ops, |cx, found| {
        templates[found.rule].apply(cx, found).map(Some)
    })
}
