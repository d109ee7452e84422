//! The registry: the library operators and the operators that the user defines, by the hash of their names.
//!
//! The registry dispatches type rules. `FunctionBuilder::call_op` (`pliant-ir/src/relax/builder.rs`) calls `Registry::infer` for
//! each call that it creates. `Registry::infer` calls the type rule in the declaration of a library operator (`infer` in `OpDecl`),
//! or `UserOp::infer` of a user-defined operator (`user_defined_ops.rs`). The header of `pliant-ir/src/op.rs` lists the other
//! callers.
//!
//! Lowering does not use `Registry::infer`: `legalize_with` and `to_tir` (`legalize.rs`) look up the operator, and call
//! `UserOp::legalize` if it is user-defined.

use std::sync::{LazyLock, PoisonError, RwLock};

use pliant_ir::op::{DimTrait, InferError, Op, OpRegistry, OpSignature, op_id};
use pliant_ir::relax::{Expr, ExprData, Function, Type};
use pliant_ir::{AttrValue, Attrs};
use rustc_hash::FxHashMap;

use crate::op_declaration::{Default, Legalize, OpDecl, parse_operand};
use crate::ops::GROUPS;
use crate::type_inference::InferCtx;
use crate::user_defined_ops::UserOp;

/// A registered operator, with its signature.
#[derive(Debug)]
pub(crate) enum RegistryEntry {
    /// An operator of the library.
    Library {
        /// The operator's declaration in the library.
        decl: &'static OpDecl,
        /// The signature: the operands and attributes as they are written in a call.
        signature: OpSignature,
    },
    /// An operator registered by the user.
    User(UserOp),
}

impl RegistryEntry {
    /// The full name of the operator.
    fn name(&self) -> &'static str {
        match self {
            RegistryEntry::Library { decl, .. } => decl.name,
            RegistryEntry::User(op) => op.name(),
        }
    }

    fn has_name(&self, name: &str) -> bool {
        let alias = match self {
            RegistryEntry::Library { decl, .. } => decl.aliases.contains(&name),
            RegistryEntry::User(_) => false,
        };
        alias || self.name() == name
    }
}

/// A collection of operators with lookup by id or name. The process has one, which [`registry`]
/// returns.
pub struct Registry {
    library: FxHashMap<u64, RegistryEntry>,
    /// Maps the ids of alternative names to the ids of the operators.
    aliases: FxHashMap<u64, u64>,
    user: RwLock<FxHashMap<u64, &'static RegistryEntry>>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let (mut library, mut aliases) = (FxHashMap::default(), FxHashMap::default());
    for decl in GROUPS.iter().copied().flatten() {
        let id = op_id(decl.name);
        aliases.extend(decl.aliases.iter().map(|alias| (op_id(alias), id)));
        library.insert(id, RegistryEntry::Library { decl, signature: decl.signature() });
    }
    Registry { library, aliases, user: RwLock::default() }
});

/// The registry of this process, which contains the library operators and those that the user
/// registers.
pub fn registry() -> &'static Registry {
    &REGISTRY
}

impl Registry {
    /// Returns the registered operator with this id, which may be the id of an alias.
    pub(crate) fn entry(&self, op: Op) -> Option<&RegistryEntry> {
        self.by_id(op.id())
    }

    /// Returns the operator with this full name, which may be an alias.
    pub(crate) fn named(&self, name: &str) -> Option<&RegistryEntry> {
        self.by_id(op_id(name)).filter(|entry| entry.has_name(name))
    }

    fn by_id(&self, id: u64) -> Option<&RegistryEntry> {
        let entry = self.library.get(&id).or_else(|| self.library.get(self.aliases.get(&id)?));
        let user = || self.user.read().unwrap_or_else(PoisonError::into_inner).get(&id).copied();
        entry.or_else(user)
    }

    /// The declaration of a library operator. `None` for an operator of the user.
    pub fn decl(&self, op: Op) -> Option<&'static OpDecl> {
        match self.entry(op)? {
            RegistryEntry::Library { decl, .. } => Some(decl),
            RegistryEntry::User(_) => None,
        }
    }

    /// The declarations of all library operators, group by group.
    pub fn decls(&self) -> impl Iterator<Item = &'static OpDecl> + use<> {
        GROUPS.iter().copied().flatten()
    }

    /// The names of the operators that the user registered, sorted.
    pub fn user_ops(&self) -> Vec<&'static str> {
        let user = self.user.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<&'static str> = user.values().map(|entry| entry.name()).collect();
        names.sort_unstable();
        names
    }

    /// Checks that a user-defined operator with this full name can be added. In Python, operators
    /// and groups of operators are attributes of modules, so no name may be both an operator and a
    /// group.
    ///
    /// # Errors
    /// If the name is a group of existing operators (`a` if there is `a.b`), if an existing
    /// operator would be its group (`a.b` if there is `a`), or if another operator has the same id.
    pub(crate) fn check_name_is_free(&self, name: &str) -> Result<(), InferError> {
        if let Some(other) = self.by_id(op_id(name)) {
            let other = other.name();
            return Err(InferError::new(format!(
                "{name}: the name has the same hash as {other}, so choose another name"
            )));
        }
        for (dot, _) in name.match_indices('.').skip(1) {
            if self.named(&name[..dot]).is_some() {
                let group = &name[..dot];
                return Err(InferError::new(format!(
                    "{name} cannot be an operator, because {group} is an operator and not a namespace"
                )));
            }
        }
        let inside =
            |other: &&str| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let user = self.user_ops();
        match self.decls().map(|decl| decl.name).chain(user).find(inside) {
            Some(other) => Err(InferError::new(format!(
                "{name} cannot be an operator, because it is the namespace of the operator {other}"
            ))),
            None => Ok(()),
        }
    }

    /// Adds an operator of the user, or replaces the user's operator with the same name.
    pub(crate) fn add_user(&self, op: UserOp) -> Op {
        let mut user = self.user.write().unwrap_or_else(PoisonError::into_inner);
        let registered = Op::new(op.name());
        // Calls refer to operators for as long as the process lives, so a registration is never freed.
        user.insert(registered.id(), Box::leak(Box::new(RegistryEntry::User(op))));
        registered
    }
}

impl OpRegistry for Registry {
    fn lookup(&self, name: &str) -> Option<Op> {
        self.named(name).map(|entry| Op::new(entry.name()))
    }

    fn names(&self) -> Vec<&'static str> {
        self.decls().map(|decl| decl.name).chain(self.user_ops()).collect()
    }

    fn signature(&self, op: Op) -> Option<&OpSignature> {
        Some(match self.entry(op)? {
            RegistryEntry::Library { signature, .. } => signature,
            RegistryEntry::User(op) => op.signature(),
        })
    }

    fn infers_example_type(&self, op: Op) -> bool {
        matches!(self.entry(op), Some(RegistryEntry::User(_)))
    }

    fn is_pure(&self, op: Op) -> bool {
        match self.entry(op) {
            Some(RegistryEntry::Library { decl, .. }) => decl.pure,
            Some(RegistryEntry::User(_)) => true,
            None => false,
        }
    }

    fn is_commutative(&self, op: Op) -> bool {
        self.decl(op).is_some_and(|decl| decl.commutative)
    }

    fn dim_trait(&self, op: Op) -> DimTrait {
        match self.entry(op) {
            Some(RegistryEntry::Library { decl, .. }) => decl.dims,
            _ => DimTrait::Opaque,
        }
    }

    fn infer(
        &self,
        func: &mut Function,
        op: Op,
        args: &[Expr],
        attrs: &Attrs,
        ty_args: &[Type],
    ) -> Result<Type, InferError> {
        match self.entry(op) {
            None => Err(InferError::new(format!("operator {op} is not declared"))),
            Some(RegistryEntry::User(user)) => user.infer(func, args, attrs),
            Some(RegistryEntry::Library { decl, .. }) => {
                infer_library_call(&mut InferCtx::new(func, decl, args, attrs, ty_args))
            }
        }
    }
}

/// Infers the result type of a call of a library operator.
pub(crate) fn infer_library_call(ctx: &mut InferCtx<'_>) -> Result<Type, InferError> {
    ctx.check_arity()?;
    check_attrs(ctx)?;
    let ty = (ctx.decl.infer)(ctx)?;
    reject_string_operands(ctx)?;
    Ok(ty)
}

/// Rejects strings among the operands of an operator that computes tensors, because its tensor expression could not use them.
fn reject_string_operands(ctx: &InferCtx<'_>) -> Result<(), InferError> {
    if !matches!(ctx.decl.legalize, Legalize::Te(_) | Legalize::View(_)) {
        return Ok(());
    }
    for (i, &arg) in ctx.args.iter().enumerate() {
        if let ExprData::Str(text) = ctx.func.expr(arg) {
            let (name, text) = (ctx.operand_name(i), ctx.func.str(*text));
            return Err(ctx.error(format!(
                "{name} is the string {text:?}, but must be a number, a shape or a tensor"
            )));
        }
    }
    Ok(())
}

/// Checks that each attribute of the call is declared, that each required attribute is present, and
/// that an attribute declared as a bool, integer or float has a value of that type.
fn check_attrs(ctx: &InferCtx<'_>) -> Result<(), InferError> {
    for (key, _) in &ctx.attrs.0 {
        if !ctx.decl.attrs.iter().any(|(k, _)| **k == **key) {
            let known: Vec<&str> = ctx
                .decl
                .operands
                .iter()
                .map(|spec| parse_operand(spec).name)
                .chain(ctx.decl.attrs.iter().map(|(k, _)| *k))
                .collect();
            return Err(ctx.error(format!("the operator has no attribute {key}")).with_help(
                format!(
                    "the signature of the operator is {}({})",
                    ctx.op().short_name(),
                    known.join(", ")
                ),
            ));
        }
    }
    for (key, default) in ctx.decl.attrs {
        let value = ctx.attrs.get(key).filter(|v| !v.is_none());
        match (default, value) {
            (Default::Bool(_), Some(AttrValue::Bool(_) | AttrValue::Int(0 | 1))) | (_, None) => {}
            (Default::Bool(_), Some(_)) => {
                return Err(ctx.error(format!("attribute {key} must be True or False")));
            }
            (Default::Float(_), Some(v)) if v.as_float().is_none() => {
                return Err(ctx.error(format!("attribute {key} must be a number")));
            }
            (Default::Int(_) | Default::Ints(_), Some(AttrValue::Bool(b))) => {
                let b = if *b { "True" } else { "False" };
                return Err(ctx.error(format!("attribute {key} must be an integer, but is {b}")));
            }
            _ => {}
        }
        if *key == "epsilon" {
            ctx.epsilon()?;
        }
        if default.value().is_none()
            && !ctx.is_symbolic_attr(key)
            && ctx.attrs.get(key).is_none_or(AttrValue::is_none)
        {
            return Err(ctx.error(format!("attribute {key} is missing")));
        }
    }
    Ok(())
}
