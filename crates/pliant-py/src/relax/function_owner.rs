//! [`FuncOwner`]: owns a graph function during its construction and afterwards. A Python expression consists of a reference to an
//! owner and the id of the expression in the owner's function.
//!
//! As long as Python refers to any part of a finished function, the function has exactly one owner. Two Python objects for the
//! same part therefore compare equal, however they were obtained. A function that is being rewritten has a *derived* owner with a
//! copy of the original function's arenas, in which the ids of the original stay valid.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use pliant_ir::relax::{self as ir, Function, FunctionBuilder};
use pliant_ir::{OpRegistry, OpSignature};
use pliant_ops::te::{self, VarMap};
use pliant_ops::tvm_precision::TvmPrecision;
use pyo3::Python;
use pyo3::sync::MutexExt;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::relax::cross_function_import::ImportMemo;
use crate::relax::detached_expr::{Ident, Key, Node, NodeRef, fresh_uid};
use crate::relax::struct_info::{SInfo, from_type};

/// The owner of a graph function, through which Python expressions refer to parts of the function. They keep the owner alive.
pub struct FuncOwner {
    state: Mutex<OwnerState>,
    /// The number (from [`this_thread`]) of the thread that holds the lock of this owner's state, or 0 if no thread holds it.
    holder: AtomicUsize,
}

/// The panic message if a thread locks a [`FuncOwner`] that it has already locked. This happens if Python code that runs
/// during construction, such as the tensor expression of a user-defined operator, reads the function.
/// [`crate::gil_and_panics`] converts the panic into a `ValueError`.
pub const ALREADY_LOCKED: &str = "the function under construction cannot be read inside the definition of an \
    operator: use the operands that the definition receives";

/// Returns a number that identifies this thread among all living threads.
fn this_thread() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

/// A lock guard for the state of a [`FuncOwner`].
pub struct LockedState<'a> {
    owner: &'a FuncOwner,
    state: MutexGuard<'a, OwnerState>,
}

impl Deref for LockedState<'_> {
    type Target = OwnerState;

    fn deref(&self) -> &OwnerState {
        &self.state
    }
}

impl DerefMut for LockedState<'_> {
    fn deref_mut(&mut self) -> &mut OwnerState {
        &mut self.state
    }
}

impl Drop for LockedState<'_> {
    fn drop(&mut self) {
        self.owner.holder.store(0, Ordering::Relaxed);
    }
}

/// A function, under construction or finished, and the identities of its expressions.
pub struct OwnerState {
    stage: Stage,
    /// A number that identifies the owner in this process.
    pub uid: u64,
    /// If the function is a rewritten copy or a variant of another function: the owner of that
    /// function, and the number of expressions that both functions share.
    base: Option<(Arc<FuncOwner>, u32)>,
    /// The identities of expressions that were imported from other functions. An imported expression has the same
    /// identity as the original expression.
    idents: FxHashMap<ir::Expr, Ident>,
    /// The expressions of this function by their identities: the inverse of `idents`.
    exprs_by_ident: FxHashMap<Ident, ir::Expr>,
    /// The expressions that were imported from other functions so far: an [`ImportMemo`] for each function, by the `uid` of its
    /// owner.
    pub(super) import_memos: FxHashMap<u64, ImportMemo>,
    /// A cache of types of this function, converted to types that are independent of the function
    /// ([`SInfo`]). Types with shape variables are not cached.
    sinfo_cache: FxHashMap<ir::Type, SInfo>,
    /// The mapping between symbols of the function and size variables of Python.
    pub vars: VarMap,
    /// The placeholders that represent expressions of this function in tensor expressions.
    pub te_sources: Vec<(te::Tensor, ir::Expr)>,
    /// The types of the module's functions, for calls by name.
    pub globals: FxHashMap<Arc<str>, SInfo>,
    /// Whether the parameters of the function are declared. If not, free variables become parameters when they appear.
    pub params_fixed: bool,
    /// Whether parameters may lack a type, because the function is only inspected.
    pub untyped_params: bool,
    /// Whether undefined variables are allowed. They are if rewritten code is inserted later at a position where these variables
    /// are defined.
    pub allow_undefined: bool,
    /// For each tuple type of a tuple that was added to the function so far, the nesting depth of the type.
    pub(super) tuple_depths: FxHashMap<ir::Type, u32>,
    /// Whether a call with side effects was emitted into the function.
    pub impure: bool,
    pub(super) weak_self: Weak<FuncOwner>,
}

enum Stage {
    Building(Box<FunctionBuilder<'static>>),
    Finished(Arc<Function>),
    Abandoned,
}

impl FuncOwner {
    /// Creates an owner for a function under construction.
    pub fn building() -> Arc<FuncOwner> {
        Self::with_stage(Stage::Building(Box::new(FunctionBuilder::new(pliant_ops::registry()))))
    }

    /// Creates an owner for a function under construction whose types have TVM's precision.
    pub fn building_with_tvm_precision() -> Arc<FuncOwner> {
        Self::with_stage(Stage::Building(Box::new(FunctionBuilder::new(&TvmPrecision))))
    }

    /// Returns the owner of a finished function. Creates it if Python refers to no part of the
    /// function yet.
    pub fn of(func: Arc<Function>) -> Arc<FuncOwner> {
        let key = Arc::as_ptr(&func) as usize;
        if let Some(owner) = owners().get(&key).and_then(Weak::upgrade) {
            return owner;
        }
        let owner = Self::with_stage(Stage::Finished(func));
        owner.register();
        owner
    }

    /// Registers this owner of a function that was just finished, so that [`of`](Self::of) returns it.
    pub fn register(self: &Arc<Self>) {
        let key = self.lock().finished().map(|f| Arc::as_ptr(f) as usize);
        if let Some(key) = key {
            owners().insert(key, Arc::downgrade(self));
        }
    }

    /// Creates an owner with a copy of the function of this owner, in which the function can be rewritten. The ids of the
    /// original function are valid in the copy.
    ///
    /// # Errors
    /// If the construction of the function was abandoned.
    pub fn derive(self: &Arc<Self>) -> Result<Arc<FuncOwner>> {
        let mut guarded = self.lock();
        let state = &mut *guarded;
        let func = state.func().ok_or_else(abandoned)?;
        let func = func.clone();
        for v in func.syms.vars() {
            state.vars.te_var(&func.syms, v);
        }
        let shared = func.num_exprs() as u32;
        let builder = FunctionBuilder::resume(func, pliant_ops::registry());
        let owner = Self::with_stage(Stage::Building(Box::new(builder)));
        {
            let mut derived = owner.lock();
            derived.vars = state.vars.clone();
            derived.globals = state.globals.clone();
            derived.base = Some((self.clone(), shared));
            derived.allow_undefined = true;
        }
        Ok(owner)
    }

    /// Creates an owner for a function that differs from the function of this owner only in its attributes and visibility.
    /// Corresponding expressions of both functions have the same identity.
    pub fn variant(self: &Arc<Self>, func: Arc<Function>) -> Arc<FuncOwner> {
        let owner = Self::with_stage(Stage::Finished(func.clone()));
        let mut guarded = self.lock();
        let state = &mut *guarded;
        for v in func.syms.vars() {
            state.vars.te_var(&func.syms, v);
        }
        let all = func.num_exprs() as u32;
        {
            let mut variant = owner.lock();
            variant.vars = state.vars.clone();
            // A variant of a variant is based on the first owner, so that no chain builds up.
            variant.base = match &state.base {
                Some((base, shared)) if *shared == all => Some((base.clone(), all)),
                _ => Some((self.clone(), all)),
            };
        }
        drop(guarded);
        owner.register();
        owner
    }

    fn with_stage(stage: Stage) -> Arc<FuncOwner> {
        Arc::new_cyclic(|weak_self| FuncOwner {
            holder: AtomicUsize::new(0),
            state: Mutex::new(OwnerState {
                stage,
                uid: fresh_uid(),
                base: None,
                idents: FxHashMap::default(),
                exprs_by_ident: FxHashMap::default(),
                import_memos: FxHashMap::default(),
                sinfo_cache: FxHashMap::default(),
                vars: VarMap::new(),
                te_sources: Vec::new(),
                globals: FxHashMap::default(),
                params_fixed: false,
                untyped_params: false,
                allow_undefined: false,
                tuple_depths: FxHashMap::default(),
                impure: false,
                weak_self: weak_self.clone(),
            }),
        })
    }

    /// Returns the address of the owner, which is unique while the owner lives.
    pub fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Locks the state.
    ///
    /// # Panics
    /// With [`ALREADY_LOCKED`] if this thread already holds the lock, because it would deadlock.
    pub fn lock(&self) -> LockedState<'_> {
        let state = match self.state.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock)
                if self.holder.load(Ordering::Relaxed) == this_thread() =>
            {
                std::panic::resume_unwind(Box::new(ALREADY_LOCKED.to_string()))
            }
            // The holder may run Python code, such as a user-defined operator, and need the GIL. So this thread must
            // release the GIL while it waits.
            Err(TryLockError::WouldBlock) => Python::attach(|py| self.state.lock_py_attached(py))
                .unwrap_or_else(PoisonError::into_inner),
        };
        self.holder.store(this_thread(), Ordering::Relaxed);
        LockedState { owner: self, state }
    }

    /// Returns the type of an expression of the function.
    pub fn sinfo(self: &Arc<Self>, e: ir::Expr) -> SInfo {
        let mut guarded = self.lock();
        let state = &mut *guarded;
        let ty = state.func().map(|f| f.expr_ty(e));
        match ty {
            Some(ty) => state.sinfo_of(ty),
            None => SInfo::Object,
        }
    }
}

/// Locks the table of all owners ([`FuncOwner`]) of finished functions, by the addresses of the functions.
fn owners() -> MutexGuard<'static, FxHashMap<usize, Weak<FuncOwner>>> {
    static OWNERS: LazyLock<Mutex<FxHashMap<usize, Weak<FuncOwner>>>> =
        LazyLock::new(Mutex::default);
    OWNERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for FuncOwner {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Stage::Finished(func) = &state.stage {
            let key = Arc::as_ptr(func) as usize;
            let mut owners = owners();
            if owners.get(&key).is_some_and(|owner| owner.strong_count() == 0) {
                owners.remove(&key);
            }
        }
    }
}

impl OwnerState {
    /// Returns the identity of an expression. Copies of the expression in other functions have the
    /// same identity.
    pub fn ident(&self, e: ir::Expr) -> Ident {
        if let Some(&ident) = self.idents.get(&e) {
            return ident;
        }
        match &self.base {
            Some((base, shared)) if e.as_u32() < *shared => base.lock().ident(e),
            _ => (self.uid, e.as_u32()),
        }
    }

    /// Returns the key by which expressions are compared.
    pub fn key(&self, e: ir::Expr) -> Key {
        match self.func().map(|f| (f, f.expr(e))) {
            Some((f, ir::ExprData::Global(s))) => Key::Global(f.str(*s).clone()),
            Some((f, ir::ExprData::Extern(s))) => Key::Extern(f.str(*s).clone()),
            _ => Key::Ident(self.ident(e)),
        }
    }

    /// Returns the expression of this function with the given identity.
    pub fn find_expr(&self, ident: Ident) -> Option<ir::Expr> {
        if let Some(&e) = self.exprs_by_ident.get(&ident) {
            return Some(e);
        }
        if ident.0 == self.uid {
            return Some(ir::Expr::from_u32(ident.1));
        }
        let (base, shared) = self.base.as_ref()?;
        base.lock().find_expr(ident).filter(|e| e.as_u32() < *shared)
    }

    /// Records that the expression `e` of this function, which was imported from another function, has the identity `ident`.
    pub fn set_ident(&mut self, ident: Ident, e: ir::Expr) {
        self.idents.insert(e, ident);
        self.exprs_by_ident.insert(ident, e);
    }

    /// Whether expression ids of the function of `owner` are valid in the function of this owner: both are the same owner, or
    /// [`derive`](FuncOwner::derive) or [`variant`](FuncOwner::variant) created this owner from `owner`.
    pub fn shares_ids_with(&self, owner: &Arc<FuncOwner>) -> bool {
        std::ptr::eq(Arc::as_ptr(owner), self.weak_self.as_ptr())
            || self.base.as_ref().is_some_and(|(base, _)| Arc::ptr_eq(base, owner))
    }

    /// Ends the rewriting of the function. The result can still be inspected.
    pub fn finish_rewrite(&mut self) {
        if let Stage::Building(b) = std::mem::replace(&mut self.stage, Stage::Abandoned) {
            self.stage = Stage::Finished(Arc::new(b.into_func()));
        }
    }

    /// Returns the function of this owner, finished or under construction; `None` if the
    /// construction was abandoned.
    pub fn func(&self) -> Option<&Function> {
        match &self.stage {
            Stage::Building(b) => Some(b.func()),
            Stage::Finished(f) => Some(f),
            Stage::Abandoned => None,
        }
    }

    /// Returns the function of this owner, if it is finished.
    pub fn finished(&self) -> Option<&Arc<Function>> {
        match &self.stage {
            Stage::Finished(f) => Some(f),
            _ => None,
        }
    }

    /// Returns the builder of the function under construction.
    ///
    /// # Errors
    /// If the function is finished or was abandoned.
    pub fn builder(&mut self) -> Result<&mut FunctionBuilder<'static>> {
        match &mut self.stage {
            Stage::Building(b) => Ok(b),
            Stage::Finished(_) => Err(Error::Value(
                "the function is already finished, so no bindings can be added to it".into(),
            )),
            Stage::Abandoned => Err(abandoned()),
        }
    }

    /// Returns the function under construction, and the mapping from its symbols to size variables of Python.
    ///
    /// # Errors
    /// As for [`builder`](Self::builder).
    pub fn func_and_vars(&mut self) -> Result<(&mut Function, &mut VarMap)> {
        match &mut self.stage {
            Stage::Building(b) => Ok((b.func_mut(), &mut self.vars)),
            _ => Err(Error::Value(
                "the function is already finished, so no bindings can be added to it".into(),
            )),
        }
    }

    /// Ends the construction with the given result. `edit` may change the function before it is
    /// finished.
    pub fn finish(
        &mut self,
        result: ir::Expr,
        ret_ty: Option<ir::Type>,
        pure: bool,
        edit: impl FnOnce(&mut Function),
    ) -> Result<Arc<Function>> {
        self.builder()?;
        match std::mem::replace(&mut self.stage, Stage::Abandoned) {
            Stage::Building(b) => {
                let mut func = b.finish(result, ret_ty, pure);
                edit(&mut func);
                let func = Arc::new(func);
                self.stage = Stage::Finished(func.clone());
                Ok(func)
            }
            _ => Err(Error::Internal(
                "the function is finished or abandoned, so it cannot be finished again (this is a bug in Pliant)".into(),
            )),
        }
    }

    /// Abandons the construction of the function.
    pub fn abandon(&mut self) {
        if matches!(self.stage, Stage::Building(_)) {
            self.stage = Stage::Abandoned;
        }
    }

    /// Converts a type of the function to a type that is independent of the function.
    pub fn sinfo_of(&mut self, ty: ir::Type) -> SInfo {
        if let Some(info) = self.sinfo_cache.get(&ty) {
            return info.clone();
        }
        let info = self.convert_type(ty);
        let plain = self.func().is_some_and(|f| ir::visit::type_vars(f, ty).is_empty());
        // A type with a shape variable refers to this owner. Caching it would create a reference cycle.
        if plain {
            self.sinfo_cache.insert(ty, info.clone());
        }
        info
    }

    fn convert_type(&mut self, ty: ir::Type) -> SInfo {
        let owner = self.weak_self.upgrade();
        let OwnerState { stage, vars, .. } = self;
        let func: &Function = match stage {
            Stage::Building(b) => b.func(),
            Stage::Finished(f) => f,
            Stage::Abandoned => return SInfo::Object,
        };
        let wrap = |v: ir::Var| match &owner {
            Some(owner) => NodeRef::new(Node::InFunc(owner.clone(), func.var_expr(v))),
            None => NodeRef::new(Node::Str(func.var(v).name.clone())),
        };
        from_type(func, vars, ty, &wrap)
    }
}

/// The error for a function whose construction was abandoned.
pub fn abandoned() -> Error {
    Error::Value("the function was abandoned: its block ended without emit_func_output".into())
}

/// Returns the signature of an operator.
pub fn op_signature(op: pliant_ir::Op) -> Result<&'static OpSignature> {
    pliant_ops::registry()
        .signature(op)
        .ok_or_else(|| Error::Value(format!("operator '{op}' is not declared")))
}
