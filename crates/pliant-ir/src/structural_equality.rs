//! Structural equality up to renaming (alpha equivalence), and a compatible hash.
//!
//! Two modules are equal if they have the same functions under the same names, in any order. Two functions are equal if renaming
//! variables, symbols and buffers turns one into the other. Spans and the names of variables, symbols, buffers and blocks are
//! ignored; attributes, annotations and the private flag are compared.
//!
//! The comparison traverses both sides in lockstep, and reports the first difference with its path.

mod graph_functions;
mod loop_functions;

use std::fmt;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::attr_names::{NOALIAS, NUM_CAPTURED};
use crate::attr_values::FuncAttrs;
use crate::ir_module::{BaseFunc, IRModule};

/// The first difference between two modules or functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The location of the difference, such as `main / binding 3 (lv2) / argument 0`.
    pub path: String,
    /// A description of what each of the two modules contains at this location.
    pub what: String,
}

impl Difference {
    fn new(what: impl Into<String>) -> Self {
        Difference { path: String::new(), what: what.into() }
    }

    fn sides(what: &str, a: impl fmt::Display, b: impl fmt::Display) -> Self {
        Self::new(format!("the {what} differs: {a} on the left, {b} on the right"))
    }

    /// Prepends a component to the path, while the comparison returns to the enclosing node.
    fn at(mut self, component: impl fmt::Display) -> Self {
        self.path = if self.path.is_empty() {
            component.to_string()
        } else {
            format!("{component} / {}", self.path)
        };
        self
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.what)
        } else {
            write!(f, "{}: {}", self.path, self.what)
        }
    }
}

impl std::error::Error for Difference {}

/// The result of a comparison: the error is the first difference.
type Comparison = Result<(), Difference>;

fn same<T: PartialEq + fmt::Display>(what: &str, a: T, b: T) -> Comparison {
    if a == b { Ok(()) } else { Err(Difference::sides(what, a, b)) }
}

/// The names of attributes that comparisons ignore, because they do not affect what a function
/// computes.
const HINTS: &[&str] = &[NOALIAS, NUM_CAPTURED];

fn same_attrs(a: &FuncAttrs, b: &FuncAttrs) -> Comparison {
    for (key, value) in a {
        if b.get(key) != Some(value) && !HINTS.contains(&&**key) {
            return Err(Difference::new(format!(
                "attribute '{key}' has different values on the left and on the right"
            )));
        }
    }
    match b.keys().find(|k| !a.contains_key(*k) && !HINTS.contains(&&***k)) {
        Some(key) => Err(Difference::new(format!("attribute '{key}' exists on the right only"))),
        None => Ok(()),
    }
}

/// Compares two modules. Names of variables, symbols and buffers inside their functions may differ.
///
/// # Errors
/// The first difference.
pub fn structural_equal(a: &IRModule, b: &IRModule) -> Result<(), Difference> {
    same_attrs(&a.attrs, &b.attrs)?;
    for name in a.functions.keys() {
        if b.get(name).is_none() {
            return Err(Difference::new(format!("function '{name}' exists on the left only")));
        }
    }
    for (name, right) in &b.functions {
        let Some(left) = a.get(name) else {
            return Err(Difference::new(format!("function '{name}' exists on the right only")));
        };
        equal_base(left, right).map_err(|d| d.at(name))?;
    }
    Ok(())
}

fn equal_base(a: &BaseFunc, b: &BaseFunc) -> Comparison {
    match (a, b) {
        (BaseFunc::Relax(a), BaseFunc::Relax(b)) => equal_functions(a, b),
        (BaseFunc::Prim(a), BaseFunc::Prim(b)) => equal_prim_funcs(a, b),
        (BaseFunc::Relax(_), _) => Err(Difference::new(
            "the function is a graph function on the left, but a loop function on the right",
        )),
        (BaseFunc::Prim(_), _) => Err(Difference::new(
            "the function is a loop function on the left, but a graph function on the right",
        )),
    }
}

/// Compares two graph functions. Names of variables and symbols may differ.
///
/// # Errors
/// The first difference.
pub fn equal_functions(
    a: &crate::relax::Function,
    b: &crate::relax::Function,
) -> Result<(), Difference> {
    graph_functions::Matcher::new(a, b).functions()
}

/// Compares two loop functions. Names of variables and buffers may differ.
///
/// # Errors
/// The first difference.
pub fn equal_prim_funcs(
    a: &crate::tir::PrimFunc,
    b: &crate::tir::PrimFunc,
) -> Result<(), Difference> {
    loop_functions::Matcher::new(a, b).functions()
}

/// Hashes a module. Modules that [`structural_equal`] considers equal have the same hash.
pub fn structural_hash(module: &IRModule) -> u64 {
    let mut names: Vec<_> = module.functions.iter().collect();
    names.sort_by_key(|(name, _)| (*name).clone());
    let mut h = FxHasher::default();
    hash_attrs(&module.attrs, &mut h);
    for (name, func) in names {
        name.hash(&mut h);
        match func {
            BaseFunc::Relax(f) => hash_function(f).hash(&mut h),
            BaseFunc::Prim(f) => hash_prim_func(f).hash(&mut h),
        }
    }
    h.finish()
}

/// Hashes a graph function. Functions that [`equal_functions`] considers equal have the same hash.
pub fn hash_function(f: &crate::relax::Function) -> u64 {
    graph_functions::hash(f)
}

/// Hashes a loop function. Functions that [`equal_prim_funcs`] considers equal have the same hash.
pub fn hash_prim_func(f: &crate::tir::PrimFunc) -> u64 {
    loop_functions::hash(f)
}

fn hash_attrs(attrs: &FuncAttrs, h: &mut FxHasher) {
    let mut items: Vec<_> = attrs.iter().filter(|(key, _)| !HINTS.contains(&&***key)).collect();
    items.sort_by_key(|(key, _)| (*key).clone());
    for (key, value) in items {
        key.hash(h);
        value.hash(h);
    }
}
