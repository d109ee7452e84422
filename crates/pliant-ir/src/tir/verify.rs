//! The specification of loop functions, and its checker.
//!
//! # Parameters
//! - Every handle has exactly one buffer. A size used in the shape, strides or offset of a parameter is a scalar parameter, or it
//!   is a whole dim, stride or offset of a parameter (PL0309).
//!
//! # Scopes
//! - Variables are scalar parameters, sizes of parameters, and those that loops, lets and block axes define for their bodies. They
//!   are only used where they are visible (PL0301), and not redefined there (PL0302).
//! - Buffers are those of parameters, and those that allocations and blocks create for their bodies (PL0303). The init of a block
//!   does not use the buffers that the block creates.
//! - The body of a block with axes does not use the variables of enclosing loops (PL0310).
//!
//! # Types
//! - An access has one index per dim or, in a function with the attribute `tir.flat`, a single linear index (PL0304). Indices,
//!   sizes and bounds are scalar integers, but an index may also be an integer vector. Conditions are bool (PL0305). A loop
//!   variable, its first value and its extent have the same type. An axis and its binding have the same type (PL0310).
//! - The operands of an operator have the same type (PL0306). A stored value has the buffer's element type, and as many lanes as
//!   the indices (PL0307). The value of a let has the type of its variable (PL0313). The operands of an intrinsic match its table
//!   entry (PL0308). Constants fit their type (PL0317).
//! - Strings and addresses are only arguments of `call_extern`, `call_packed` and `call_kernel` (PL0315).
//!
//! # Structure
//! - Vectorized and unrolled loops have a constant extent (PL0311). A block with an init has a reduction axis (PL0314). Statements
//!   are nested at most [`MAX_DEPTH`] deep, expressions [`MAX_EXPR_DEPTH`] (PL0312).

use pliant_diag::{Diagnostic, error_codes};
use rustc_hash::{FxHashMap, FxHashSet};

use super::buffer::{Buffer, BufferRegion};
use super::expr::{BinOp, Expr, ExprData, Ty, Var, VarTy};
use super::func::PrimFunc;
use super::intrin::Intrin;
use super::kernel_call::KernelCall;
use super::stmt::{BlockData, ForKind, IterKind, Stmt, StmtData};
use super::visit::{for_each_expr, for_each_operand};
use crate::verify::MAX_PER_FUNCTION;

/// Maximum nesting depth of statements.
pub const MAX_DEPTH: usize = 1000;
/// Maximum nesting depth of expressions.
pub const MAX_EXPR_DEPTH: u32 = 2000;
/// Maximum number of statements that the verifier visits in a function. Shared statements count once per visit.
const MAX_STMTS: usize = 20_000_000;

/// Finds all violations of the specification in a loop function, in the order of the text.
pub fn verify_prim_func(f: &PrimFunc) -> Vec<Diagnostic> {
    let mut v = Verifier {
        f,
        out: Vec::new(),
        vars: FxHashSet::default(),
        loop_vars: Vec::new(),
        hidden: FxHashSet::default(),
        buffers: FxHashSet::default(),
        checked_depths: FxHashMap::default(),
    };
    v.check_params();
    v.check_body();
    v.out
}

struct Verifier<'a> {
    f: &'a PrimFunc,
    out: Vec<Diagnostic>,
    /// The variables that are visible at the statement that is being verified.
    vars: FxHashSet<Var>,
    /// The variables of the loops around the statement that is being verified, outermost first.
    loop_vars: Vec<Var>,
    /// The variables of enclosing loops that the current statement must not use, because a block with axes lies between (PL0310).
    hidden: FxHashSet<Var>,
    buffers: FxHashSet<Buffer>,
    /// The nesting depths of the expressions whose types have been checked.
    checked_depths: FxHashMap<Expr, u32>,
}

/// An element of the verifier's explicit stack: a statement to check, or a scope change to make.
enum Pending {
    Stmt(Stmt, usize),
    LeaveVar(Var),
    LeaveLoop(Var),
    EnterBuffers(Vec<Buffer>),
    LeaveBuffer(Buffer),
    Unhide(Vec<Var>),
}

impl Verifier<'_> {
    fn error(&mut self, code: &'static str, message: impl Into<String>) {
        if self.out.len() < MAX_PER_FUNCTION {
            self.out.push(Diagnostic::error(code, message).with_span(self.f.span));
        }
    }

    fn name(&self, v: Var) -> &str {
        &self.f.var(v).name
    }

    // ---- parameters ----

    fn check_params(&mut self) {
        let f = self.f;
        let mut buffers = FxHashSet::default();
        for &p in &f.params {
            match (f.var(p).ty, f.buffer_map.get(&p)) {
                (VarTy::Handle, Some(&b)) => {
                    if !buffers.insert(b) {
                        let name = f.buffer(b).name.clone();
                        self.error(
                            error_codes::PL0309,
                            format!("buffer '{name}' is matched with two parameters"),
                        );
                    }
                }
                (VarTy::Handle, None) => {
                    let name = self.name(p).to_string();
                    self.error(
                        error_codes::PL0309,
                        format!("handle parameter '{name}' is not matched with a buffer"),
                    );
                }
                (VarTy::Value(_), Some(_)) => {
                    let name = self.name(p).to_string();
                    self.error(
                        error_codes::PL0309,
                        format!("parameter '{name}' is a scalar, but is matched with a buffer"),
                    );
                }
                (VarTy::Value(_), None) => {}
            }
            if !self.vars.insert(p) {
                let name = self.name(p).to_string();
                self.error(
                    error_codes::PL0309,
                    format!("parameter '{name}' occurs twice in the parameter list"),
                );
            }
        }
        if f.buffer_map.keys().any(|p| !f.params.contains(p)) {
            self.error(
                error_codes::PL0309,
                "a buffer is matched with a handle that is not a parameter of the function",
            );
        }
        self.buffers = buffers;
        let sizes: Vec<Expr> = f
            .params
            .iter()
            .filter_map(|p| f.buffer_map.get(p))
            .flat_map(|&b| buffer_exprs(f, b))
            .collect();
        for &e in &sizes {
            if let ExprData::Var(v) = f.expr(e) {
                self.vars.insert(*v);
            }
        }
        for e in sizes {
            for_each_expr(f, e, |e| {
                if let ExprData::Var(v) = f.expr(e)
                    && self.vars.insert(*v)
                {
                    let name = self.name(*v).to_string();
                    self.error(
                            error_codes::PL0309,
                            format!("size '{name}' is undefined: it is not by itself a dim, stride or offset of any parameter"),
                        );
                }
            });
            self.check_scalar_int(e, "a dim, stride or offset of a parameter's buffer");
        }
    }

    // ---- statements ----

    fn check_body(&mut self) {
        let mut stack = vec![Pending::Stmt(self.f.body, 0)];
        let mut visited = 0;
        while let Some(pending) = stack.pop() {
            match pending {
                Pending::LeaveVar(v) => {
                    self.vars.remove(&v);
                }
                Pending::LeaveLoop(v) => {
                    self.loop_vars.pop();
                    self.vars.remove(&v);
                }
                Pending::EnterBuffers(list) => self.buffers.extend(list),
                Pending::LeaveBuffer(b) => {
                    self.buffers.remove(&b);
                }
                Pending::Unhide(vars) => vars.iter().for_each(|v| {
                    self.hidden.remove(v);
                }),
                Pending::Stmt(s, depth) => {
                    visited += 1;
                    if depth > MAX_DEPTH || visited > MAX_STMTS {
                        let message = format!(
                            "the statements of the function are nested deeper than {MAX_DEPTH} levels, or are more than {MAX_STMTS}"
                        );
                        return self.error(error_codes::PL0312, message);
                    }
                    self.check_stmt(s, depth + 1, &mut stack);
                }
            }
        }
    }

    fn define(&mut self, v: Var) {
        if !self.vars.insert(v) {
            let name = self.name(v).to_string();
            self.error(
                error_codes::PL0302,
                format!("variable '{name}' is defined again in the scope of its first definition"),
            );
        }
    }

    /// Checks an allocated buffer and makes it visible.
    fn define_buffer(&mut self, b: Buffer) {
        for e in buffer_exprs(self.f, b) {
            self.check_scalar_int(e, "a dim of an allocated buffer");
        }
        let data = self.f.buffer(b);
        if !data.strides.is_empty() || data.elem_offset.is_some() {
            let name = data.name.clone();
            let message = format!(
                "the allocated buffer '{name}' has strides or an offset, which only buffers of parameters can have"
            );
            self.error(error_codes::PL0303, message);
        }
        if !self.buffers.insert(b) {
            let name = self.f.buffer(b).name.clone();
            self.error(
                error_codes::PL0303,
                format!("buffer '{name}' is allocated again in the scope of its first allocation"),
            );
        }
    }

    fn check_stmt(&mut self, s: Stmt, depth: usize, stack: &mut Vec<Pending>) {
        let f = self.f;
        match f.stmt(s) {
            StmtData::Seq(items) => {
                stack.extend(items.iter().rev().map(|&s| Pending::Stmt(s, depth)));
            }
            StmtData::For { var, min, extent, kind, body, .. } => {
                self.check_for(*var, *min, *extent, *kind);
                stack.extend([Pending::LeaveLoop(*var), Pending::Stmt(*body, depth)]);
            }
            StmtData::While(cond, body) => {
                self.check_condition(*cond);
                stack.push(Pending::Stmt(*body, depth));
            }
            StmtData::If(cond, then, otherwise) => {
                self.check_condition(*cond);
                stack.extend(otherwise.iter().map(|&s| Pending::Stmt(s, depth)));
                stack.push(Pending::Stmt(*then, depth));
            }
            StmtData::Let(v, value, body) => {
                let ty = self.check_expr(*value);
                if f.var(*v).ty != VarTy::Value(ty) {
                    let name = self.name(*v).to_string();
                    self.error(error_codes::PL0313, format!("variable '{name}' is bound to a value of type {ty}, which is not its declared type"));
                }
                self.define(*v);
                stack.extend([Pending::LeaveVar(*v), Pending::Stmt(*body, depth)]);
            }
            StmtData::Store { buffer, indices, value } => {
                let lanes = self.check_access(*buffer, indices);
                let ty = self.check_expr(*value);
                let want = Ty::scalar(f.buffer(*buffer).dtype).with_lanes(lanes);
                if ty != want {
                    let name = f.buffer(*buffer).name.clone();
                    self.error(
                        error_codes::PL0307,
                        format!(
                            "a value of type {ty} is stored in buffer '{name}', which requires type {want}"
                        ),
                    );
                }
            }
            StmtData::Alloc(b, body) => {
                self.define_buffer(*b);
                stack.extend([Pending::LeaveBuffer(*b), Pending::Stmt(*body, depth)]);
            }
            StmtData::Evaluate(e) => {
                self.check_expr(*e);
            }
            StmtData::Assert(cond, _, body) => {
                self.check_condition(*cond);
                stack.push(Pending::Stmt(*body, depth));
            }
            StmtData::Block(b) => self.check_block(b, depth, stack),
        }
    }

    /// The type of a loop variable or a block axis, which must not be a handle.
    fn counter_type(&mut self, var: Var) -> Ty {
        match self.f.var(var).ty {
            VarTy::Value(ty) => ty,
            VarTy::Handle => {
                let name = self.name(var).to_string();
                self.error(
                    error_codes::PL0305,
                    format!(
                        "variable '{name}' is a handle, which cannot be a loop variable or an axis"
                    ),
                );
                Ty::I64
            }
        }
    }

    fn check_for(&mut self, var: Var, min: Expr, extent: Expr, kind: ForKind) {
        let f = self.f;
        let (a, b) = (
            self.check_scalar_int(min, "the first value of a loop"),
            self.check_scalar_int(extent, "the extent of a loop"),
        );
        let ty = self.counter_type(var);
        if a != ty || b != ty {
            let name = self.name(var).to_string();
            self.error(
                error_codes::PL0305,
                format!("loop variable '{name}' has type {ty}, but its first value has type {a} and its extent type {b}"),
            );
        }
        if matches!(kind, ForKind::Vectorized | ForKind::Unrolled) && f.as_int(extent).is_none() {
            let name = self.name(var).to_string();
            self.error(
                error_codes::PL0311,
                format!("the {} loop over '{name}' must have a constant extent", kind.name()),
            );
        }
        self.define(var);
        self.loop_vars.push(var);
    }

    fn check_block(&mut self, b: &BlockData, depth: usize, stack: &mut Vec<Pending>) {
        for it in &b.iters {
            let ty = self.counter_type(it.var);
            for e in [it.min, it.extent, it.binding] {
                let have = self.check_scalar_int(e, "the range or binding of an axis");
                if have != ty {
                    let name = self.name(it.var).to_string();
                    self.error(
                        error_codes::PL0310,
                        format!(
                            "axis '{name}' has type {ty}, but its range or binding has type {have}"
                        ),
                    );
                }
            }
        }
        if b.init.is_some() && !b.iters.iter().any(|it| it.kind == IterKind::Reduce) {
            self.error(
                error_codes::PL0314,
                format!("block '{}' has an init statement, but no reduction axis", b.name),
            );
        }
        b.iters.iter().for_each(|it| self.define(it.var));
        if let Some(p) = b.predicate {
            self.check_condition(p);
        }
        let mut undo: Vec<Pending> = b.iters.iter().map(|it| Pending::LeaveVar(it.var)).collect();
        if !b.iters.is_empty() {
            let hide: Vec<Var> =
                self.loop_vars.iter().copied().filter(|v| !self.hidden.contains(v)).collect();
            undo.push(Pending::Unhide(hide.clone()));
            self.hidden.extend(hide);
        }
        for &buffer in &b.allocs {
            self.define_buffer(buffer);
            undo.push(Pending::LeaveBuffer(buffer));
        }
        for r in b.reads.iter().chain(&b.writes).flatten() {
            self.check_region(r);
        }
        stack.extend(undo);
        stack.push(Pending::Stmt(b.body, depth));
        if let Some(init) = b.init {
            // The init does not see the block's own buffers: the body writes them after it.
            b.allocs.iter().for_each(|a| {
                self.buffers.remove(a);
            });
            stack.push(Pending::EnterBuffers(b.allocs.clone()));
            stack.push(Pending::Stmt(init, depth));
        }
    }

    fn check_region(&mut self, r: &BufferRegion) {
        self.use_buffer(r.buffer);
        let (name, rank) =
            (self.f.buffer(r.buffer).name.clone(), self.f.buffer(r.buffer).shape.len());
        if r.region.len() != rank {
            let n = r.region.len();
            self.error(
                error_codes::PL0304,
                format!("a region of buffer '{name}' has {n} dims, but the buffer has {rank}"),
            );
        }
        for &(start, extent) in &r.region {
            self.check_scalar_int(start, "the start of a buffer region");
            self.check_scalar_int(extent, "the extent of a buffer region");
        }
    }

    // ---- expressions ----

    fn check_condition(&mut self, e: Expr) {
        let ty = self.check_expr(e);
        if ty != Ty::BOOL {
            self.error(
                error_codes::PL0305,
                format!("the condition of a statement has type {ty}, but must be bool"),
            );
        }
    }

    /// Checks that an expression is a scalar integer, and returns its type. `what` describes the expression in the message.
    fn check_scalar_int(&mut self, e: Expr, what: &str) -> Ty {
        let ty = self.check_expr(e);
        if !ty.dtype.is_integer() || ty.lanes != 1 {
            self.error(
                error_codes::PL0305,
                format!("{what} has type {ty}, but must be a scalar integer"),
            );
        }
        ty
    }

    fn use_buffer(&mut self, b: Buffer) {
        if !self.buffers.contains(&b) {
            let name = self.f.buffer(b).name.clone();
            self.error(
                error_codes::PL0303,
                format!("buffer '{name}' is used outside of its scope"),
            );
        }
    }

    /// Checks the buffer and the indices of an access. Returns the number of lanes of the accessed value.
    fn check_access(&mut self, b: Buffer, indices: &[Expr]) -> u16 {
        self.use_buffer(b);
        for &i in indices {
            self.check_expr(i);
        }
        self.check_index_types(b, indices)
    }

    /// Checks the number and the types of the indices of an access. Returns the number of lanes of the accessed value.
    fn check_index_types(&mut self, b: Buffer, indices: &[Expr]) -> u16 {
        let f = self.f;
        let (name, rank) = (f.buffer(b).name.clone(), f.buffer(b).shape.len());
        let n = indices.len();
        if f.is_flat() && n != 1 {
            self.error(
                error_codes::PL0304,
                format!("buffer '{name}' is accessed with {n} indices, but a flat function has one linear index per access"),
            );
        } else if !f.is_flat() && n != rank {
            self.error(
                error_codes::PL0304,
                format!("buffer '{name}' has {rank} dims, but is accessed with {n} indices"),
            );
        }
        let mut lanes = 1;
        for &i in indices {
            let ty = f.expr_ty(i);
            if !ty.dtype.is_integer() {
                self.error(
                    error_codes::PL0305,
                    format!("an index of buffer '{name}' has type {ty}, but must be an integer"),
                );
            }
            lanes = lanes.max(ty.lanes);
        }
        lanes
    }

    /// Checks an expression that occurs in a statement. Scopes are checked at every occurrence, types once per expression.
    fn check_expr(&mut self, e: Expr) -> Ty {
        let f = self.f;
        let mut list = Vec::new();
        for_each_expr(f, e, |e| list.push(e));
        for &e in &list {
            match f.expr(e) {
                ExprData::Var(v) if !self.vars.contains(v) => {
                    let name = self.name(*v).to_string();
                    self.error(
                        error_codes::PL0301,
                        format!("variable '{name}' is used outside of its scope"),
                    );
                }
                ExprData::Var(v) if f.buffer_map.contains_key(v) => {
                    let (name, buffer) = (self.name(*v).to_string(), f.buffer_map[v]);
                    let buffer = &f.buffer(buffer).name;
                    self.error(
                        error_codes::PL0315,
                        format!("handle '{name}' is not a value; use its buffer '{buffer}'"),
                    );
                }
                ExprData::Var(v) if self.hidden.contains(v) => {
                    let name = self.name(*v).to_string();
                    self.error(
                        error_codes::PL0310,
                        format!("the body of a block uses the loop variable '{name}'; bind it to an axis of the block"),
                    );
                }
                ExprData::Load(b, _) => self.use_buffer(*b),
                _ => {}
            }
        }
        if matches!(f.expr(e), ExprData::Str(_)) || is_address(f, e) {
            self.error(error_codes::PL0315, "a string or an address can only be an argument of call_extern, call_packed or call_kernel");
        }
        list.sort();
        for e in list {
            if self.checked_depths.contains_key(&e) {
                continue;
            }
            let mut depth = 0;
            for_each_operand(f.expr(e), |a| {
                depth = depth.max(self.checked_depths.get(&a).copied().unwrap_or(0) + 1)
            });
            self.checked_depths.insert(e, depth);
            if depth == MAX_EXPR_DEPTH {
                self.error(
                    error_codes::PL0312,
                    format!(
                        "an expression is nested deeper than the maximum of {MAX_EXPR_DEPTH} levels"
                    ),
                );
            }
            self.check_types(e);
        }
        f.expr_ty(e)
    }

    /// Checks the types of the operands of an expression.
    fn check_types(&mut self, e: Expr) {
        let f = self.f;
        let call = matches!(
            f.expr(e),
            ExprData::Call(Intrin::CallExtern | Intrin::CallPacked | Intrin::CallKernel, ..)
        );
        let mut misplaced = false;
        for_each_operand(f.expr(e), |a| {
            misplaced |= !call && (matches!(f.expr(a), ExprData::Str(_)) || is_address(f, a));
        });
        if misplaced {
            self.error(error_codes::PL0315, "a string or an address can only be an argument of call_extern, call_packed or call_kernel");
        }
        match f.expr(e) {
            ExprData::Int(v, ty) => {
                if ty.lanes != 1 || ty.dtype.is_float() || !ty.dtype.has_int(*v) {
                    self.error(
                        error_codes::PL0317,
                        format!("the constant {v} does not fit the type {ty}"),
                    );
                }
            }
            ExprData::Float(bits, ty) => {
                if ty.lanes != 1 || !ty.dtype.is_float() {
                    let v = f64::from_bits(*bits);
                    self.error(
                        error_codes::PL0317,
                        format!("the constant {v:?} does not fit the type {ty}"),
                    );
                }
            }
            ExprData::Cast(ty, a) => {
                let from = f.expr_ty(*a);
                if from.lanes != ty.lanes {
                    self.error(
                        error_codes::PL0306,
                        format!("a cast from {from} to {ty} changes the number of lanes"),
                    );
                }
            }
            ExprData::Binary(op, a, b) => self.check_binary(*op, f.expr_ty(*a), f.expr_ty(*b)),
            ExprData::Not(a) => {
                let ty = f.expr_ty(*a);
                if !ty.dtype.is_bool() {
                    self.error(
                        error_codes::PL0306,
                        format!(
                            "the operand of a logical negation has type {ty}, but must be bool"
                        ),
                    );
                }
            }
            ExprData::Select(c, a, b) => {
                self.check_select(f.expr_ty(*c), f.expr_ty(*a), f.expr_ty(*b));
            }
            ExprData::Load(b, indices) => {
                self.check_index_types(*b, indices);
            }
            ExprData::Ramp(base, stride, lanes) => {
                let (a, b) = (f.expr_ty(*base), f.expr_ty(*stride));
                if a != b || a.lanes != 1 || !a.dtype.is_integer() || *lanes < 2 {
                    self.error(
                        error_codes::PL0306,
                        format!("a ramp of {lanes} lanes has a base of type {a} and a stride of type {b}, but needs at least 2 lanes and scalars of the same integer type"),
                    );
                }
            }
            ExprData::Broadcast(a, lanes) => {
                let ty = f.expr_ty(*a);
                if ty.lanes != 1 || *lanes < 2 {
                    self.error(
                        error_codes::PL0306,
                        format!("a value of type {ty} is broadcast to {lanes} lanes, but a broadcast needs a scalar and at least 2 lanes"),
                    );
                }
            }
            ExprData::Call(intrin, args, _) => self.check_intrinsic(*intrin, args),
            ExprData::Var(_) | ExprData::Str(_) => {}
        }
    }

    fn check_binary(&mut self, op: BinOp, a: Ty, b: Ty) {
        let logic = matches!(op, BinOp::And | BinOp::Or);
        let arithmetic = !op.is_predicate();
        let floor = matches!(op, BinOp::FloorDiv | BinOp::FloorMod | BinOp::Mod);
        let bad = a != b
            || (logic && !a.dtype.is_bool())
            || (arithmetic && a.dtype.is_bool() && !matches!(op, BinOp::Min | BinOp::Max))
            || (floor && op == BinOp::Mod && a.dtype.is_float());
        if bad {
            self.error(
                error_codes::PL0306,
                format!("the operator {op:?} cannot be applied to operands of types {a} and {b}"),
            );
        }
    }

    fn check_select(&mut self, c: Ty, a: Ty, b: Ty) {
        if !c.dtype.is_bool() || a != b || (c.lanes != 1 && c.lanes != a.lanes) {
            self.error(
                error_codes::PL0306,
                format!("a select needs a bool condition and alternatives of the same type, but its condition has type {c}, and its alternatives have types {a} and {b}"),
            );
        }
    }

    fn check_intrinsic(&mut self, intrin: Intrin, args: &[Expr]) {
        let f = self.f;
        if let Some(arity) = intrin.arity().filter(|&n| n != args.len()) {
            let n = args.len();
            self.error(
                error_codes::PL0308,
                format!("the intrinsic {intrin} takes {arity} operands, but is called with {n}"),
            );
            return;
        }
        let tys: Vec<Ty> = args.iter().map(|&a| f.expr_ty(a)).collect();
        use Intrin::*;
        let ok = match intrin {
            IfThenElse => return self.check_select(tys[0], tys[1], tys[2]),
            CallExtern | CallPacked => {
                matches!(args.first().map(|&a| f.expr(a)), Some(ExprData::Str(_)))
            }
            CallKernel => {
                if let Err(message) = KernelCall::of_args(f, args) {
                    self.error(error_codes::PL0308, message);
                }
                return;
            }
            AddressOf => matches!(f.expr(args[0]), ExprData::Load(..)),
            Abs | Reinterpret | VectorSum | VectorMax | VectorMin => true,
            Floor | Ceil | Trunc | Round | Nearbyint => !tys[0].dtype.is_bool(),
            Likely => tys[0].dtype.is_bool(),
            Explain => tys.first() == Some(&Ty::BOOL) && tys[1..].iter().all(|t| *t == Ty::I64),
            Popcount | Clz | BitwiseNot => !tys[0].dtype.is_float(),
            BitwiseAnd | BitwiseOr | BitwiseXor => tys[0] == tys[1] && !tys[0].dtype.is_float(),
            ShiftLeft | ShiftRight => tys[0] == tys[1] && tys[0].dtype.is_integer(),
            Pow => tys[0] == tys[1] && !tys[0].dtype.is_bool(),
            _ => tys.iter().all(|t| *t == tys[0]) && tys[0].dtype.is_float(),
        };
        if !ok {
            let tys: Vec<String> = tys.iter().map(Ty::to_string).collect();
            self.error(
                error_codes::PL0308,
                format!(
                    "the intrinsic {intrin} cannot be called with operands of types ({})",
                    tys.join(", ")
                ),
            );
        }
    }
}

/// The expressions that occur in the shape, strides and offset of a buffer.
fn buffer_exprs(f: &PrimFunc, b: Buffer) -> Vec<Expr> {
    let data = f.buffer(b);
    data.shape.iter().chain(&data.strides).chain(&data.elem_offset).copied().collect()
}

fn is_address(f: &PrimFunc, e: Expr) -> bool {
    matches!(f.expr(e), ExprData::Call(Intrin::AddressOf, ..))
}
