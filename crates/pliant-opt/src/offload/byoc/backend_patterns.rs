//! Named patterns of backends (external code generators), and the table of registered patterns.

use std::fmt;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use pliant_ir::relax::{Binding, Expr, Function};
use pliant_pass::PassError;
use pliant_pass::pattern::{Defs, Match, Pattern};

use super::backend_of;

/// The arguments of a pattern's check: the match, and the function that contains it.
pub struct PatternCheck<'a> {
    /// The function that contains the match. Checks may add terms to its arenas.
    pub func: &'a mut Arc<Function>,
    /// The values to which the function's variables are bound.
    pub defs: &'a Defs,
    /// The match: the expressions that the parts of the pattern have matched.
    pub matched: &'a Match,
    /// The binding whose value the whole pattern has matched (the root of the match).
    pub root: Binding,
    /// The bindings of the match, which become a composite function if the check succeeds.
    pub members: &'a [Binding],
    /// The parts of the pattern that have names, each as (name, part).
    pub annotations: &'a [(String, Pattern)],
}

impl PatternCheck<'_> {
    /// Returns the expression that the part with this name has matched; `None` if there is no such part or it has not matched.
    pub fn annotated(&self, name: &str) -> Option<Expr> {
        let (_, pattern) = self.annotations.iter().find(|(n, _)| n == name)?;
        self.matched.get(pattern)
    }
}

/// A callback that decides whether a backend supports a match.
type CheckFn = Arc<dyn Fn(&mut PatternCheck<'_>) -> Result<bool, PassError> + Send + Sync>;

/// A pattern of operators that a backend computes, with a name and an optional check, for
/// [`FuseOpsByPattern`](crate::offload::fuse_ops_by_pattern::FuseOpsByPattern).
#[derive(Clone)]
pub struct FusionPattern {
    /// The name of the pattern. It starts with the name of the backend and a dot: `gemm.matmul_bias`.
    pub name: String,
    /// The pattern to match in graph functions.
    pub pattern: Pattern,
    /// The named parts of the pattern, each as (name, part). The check looks up their matched expressions by name.
    pub annotations: Vec<(String, Pattern)>,
    /// The check that rejects matches that the backend does not support; `None` accepts all matches.
    pub check: Option<CheckFn>,
}

impl FusionPattern {
    /// Creates a pattern without named parts and without a check.
    pub fn new(name: impl Into<String>, pattern: Pattern) -> Self {
        FusionPattern { name: name.into(), pattern, annotations: Vec::new(), check: None }
    }

    /// Gives a name to a part of the pattern.
    pub fn with_annotation(mut self, name: impl Into<String>, pattern: &Pattern) -> Self {
        self.annotations.push((name.into(), pattern.clone()));
        self
    }

    /// Sets the check that rejects matches which the backend does not support.
    pub fn with_check(
        mut self,
        check: impl Fn(&mut PatternCheck<'_>) -> Result<bool, PassError> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// The name of the backend: the part of the pattern's name before the first dot.
    pub fn backend(&self) -> &str {
        backend_of(&self.name)
    }
}

impl fmt::Debug for FusionPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FusionPattern").field(&self.name).field(&self.pattern).finish()
    }
}

static REGISTERED_PATTERNS: LazyLock<RwLock<Vec<FusionPattern>>> =
    LazyLock::new(|| RwLock::new(super::gemm_backend::patterns()));

/// Adds patterns to the table. Patterns that are added later come first in [`patterns_with_prefix`].
pub fn register_patterns(patterns: Vec<FusionPattern>) {
    REGISTERED_PATTERNS.write().unwrap_or_else(PoisonError::into_inner).extend(patterns);
}

/// Returns the registered patterns whose names start with `prefix`, in the order in which they are tried: patterns that were
/// registered last come first. Of several patterns with the same name, only the one registered last is included.
pub fn patterns_with_prefix(prefix: &str) -> Vec<FusionPattern> {
    let table = REGISTERED_PATTERNS.read().unwrap_or_else(PoisonError::into_inner);
    let mut out: Vec<FusionPattern> = Vec::new();
    for p in table.iter().rev().filter(|p| p.name.starts_with(prefix)) {
        if out.iter().all(|q| q.name != p.name) {
            out.push(p.clone());
        }
    }
    out
}

/// Returns the registered pattern with this name; `None` if there is none.
pub fn get_pattern(name: &str) -> Option<FusionPattern> {
    let table = REGISTERED_PATTERNS.read().unwrap_or_else(PoisonError::into_inner);
    table.iter().rev().find(|p| p.name == name).cloned()
}
