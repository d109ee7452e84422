//! [`PrimFunc`]: a loop function with its arenas, and accessors to their contents.

use std::sync::Arc;

use cranelift_entity::PrimaryMap;
use indexmap::IndexMap;
use pliant_diag::Span;
use pliant_tensor::{DType, round_to_bf16, round_to_f16};
use rustc_hash::FxHashMap;

use super::buffer::{Buffer, BufferData, Scope};
use super::expr::{BinOp, Expr, ExprData, Ty, Var, VarData, VarTy};
use super::intrin::{Intrin, IntrinResult};
use super::stmt::{Stmt, StmtData};
use crate::attr_values::{AttrValue, FuncAttrs};

/// The name of the attribute that marks flat functions: in these, every access to a buffer has a single linear index, relative to
/// the first element of the buffer.
pub const FLAT: &str = "tir.flat";

/// A parameter: a handle, which [`PrimFunc::buffer_map`] maps to a buffer, or a scalar variable.
pub type Param = Var;

/// A loop function, and the arenas that contain its parts: variables, buffers, expressions and statements. Parts are
/// identified by ids, which are only valid in their own function.
///
/// A buffer parameter defines the size variables that are whole dims of its shape (`n` in `(n, 4)`). The other dims are checked on
/// entry. Scalar parameters define the sizes that are not a whole dim of any buffer.
#[derive(Clone, Debug)]
pub struct PrimFunc {
    /// The parameters: tensors, followed by scalars.
    pub params: Vec<Param>,
    /// The buffer of each handle parameter (a parameter that stands for a tensor).
    pub buffer_map: IndexMap<Var, Buffer>,
    /// The body of the function.
    pub body: Stmt,
    /// The attributes of the function (`global_symbol`, `tir.noalias`, ...).
    pub attrs: FuncAttrs,
    /// Whether the function is only called from its own module.
    pub private: bool,
    /// The source location of the function.
    pub span: Span,
    vars: PrimaryMap<Var, VarData>,
    buffers: PrimaryMap<Buffer, BufferData>,
    exprs: PrimaryMap<Expr, ExprData>,
    expr_tys: PrimaryMap<Expr, Ty>,
    expr_ids: FxHashMap<ExprData, Expr>,
    stmts: PrimaryMap<Stmt, StmtData>,
}

impl Default for PrimFunc {
    fn default() -> Self {
        Self::new()
    }
}

impl PrimFunc {
    /// Creates a function without parameters and with an empty body.
    pub fn new() -> Self {
        let mut stmts = PrimaryMap::new();
        let body = stmts.push(StmtData::Seq(Vec::new()));
        PrimFunc {
            params: Vec::new(),
            buffer_map: IndexMap::new(),
            body,
            attrs: FuncAttrs::default(),
            private: false,
            span: Span::NONE,
            vars: PrimaryMap::new(),
            buffers: PrimaryMap::new(),
            exprs: PrimaryMap::new(),
            expr_tys: PrimaryMap::new(),
            expr_ids: FxHashMap::default(),
            stmts,
        }
    }

    /// Whether every access to a buffer has a single linear index, whatever the rank of the buffer; see [`FLAT`].
    pub fn is_flat(&self) -> bool {
        matches!(self.attrs.get(FLAT), Some(AttrValue::Bool(true)))
    }

    // ---- variables and parameters ----

    /// Adds a variable, and returns its id.
    pub fn add_var(&mut self, name: impl Into<Arc<str>>, ty: VarTy) -> Var {
        self.vars.push(VarData { name: name.into(), ty })
    }

    /// Adds an int64 variable for a size or an index.
    pub fn size_var(&mut self, name: impl Into<Arc<str>>) -> Var {
        self.add_var(name, VarTy::Value(Ty::I64))
    }

    /// The properties of the variable with the given id.
    pub fn var(&self, v: Var) -> &VarData {
        &self.vars[v]
    }

    /// The ids of all variables created so far.
    pub fn var_ids(&self) -> impl Iterator<Item = Var> + use<> {
        self.vars.keys()
    }

    /// Adds a handle parameter (a parameter that stands for a tensor), and maps it to a buffer.
    pub fn add_buffer_param(&mut self, name: impl Into<Arc<str>>, buffer: Buffer) -> Var {
        let v = self.add_var(name, VarTy::Handle);
        self.params.push(v);
        self.buffer_map.insert(v, buffer);
        v
    }

    // ---- buffers ----

    /// Adds a buffer, and returns its id.
    pub fn add_buffer(&mut self, data: BufferData) -> Buffer {
        self.buffers.push(data)
    }

    /// Adds a buffer of `size` elements in local memory. Code generators keep small ones in registers.
    pub fn local_buffer(&mut self, name: impl Into<Arc<str>>, dtype: DType, size: i64) -> Buffer {
        let shape = vec![self.int(size)];
        let buffer = self.compact_buffer(name, shape, dtype);
        self.buffers[buffer].scope = Scope::Local;
        buffer
    }

    /// Adds a compact row-major buffer in global memory.
    pub fn compact_buffer(
        &mut self,
        name: impl Into<Arc<str>>,
        shape: Vec<Expr>,
        dtype: DType,
    ) -> Buffer {
        self.add_buffer(BufferData {
            name: name.into(),
            dtype,
            shape,
            strides: Vec::new(),
            elem_offset: None,
            scope: Default::default(),
        })
    }

    /// The properties of the buffer with the given id.
    pub fn buffer(&self, b: Buffer) -> &BufferData {
        &self.buffers[b]
    }

    /// Mutable access to the properties of a buffer. The element type must not change if there are loads from it.
    pub fn buffer_mut(&mut self, b: Buffer) -> &mut BufferData {
        &mut self.buffers[b]
    }

    /// The ids of all buffers created so far.
    pub fn buffer_ids(&self) -> impl Iterator<Item = Buffer> + use<> {
        self.buffers.keys()
    }

    // ---- expressions ----

    /// Stores an expression unless it is already in the arena, and returns its id.
    pub fn add_expr(&mut self, data: ExprData) -> Expr {
        let data = canonical(data);
        if let Some(&e) = self.expr_ids.get(&data) {
            return e;
        }
        let ty = self.type_of(&data);
        let e = self.exprs.push(data.clone());
        self.expr_tys.push(ty);
        self.expr_ids.insert(data, e);
        e
    }

    /// The contents of the expression with the given id.
    pub fn expr(&self, e: Expr) -> &ExprData {
        &self.exprs[e]
    }

    /// The type of an expression. A string counts as a handle, whose type is int64.
    pub fn expr_ty(&self, e: Expr) -> Ty {
        self.expr_tys[e]
    }

    /// Infers the type of a new expression from its operands.
    fn type_of(&self, data: &ExprData) -> Ty {
        match data {
            ExprData::Int(_, ty) | ExprData::Float(_, ty) | ExprData::Cast(ty, _) => *ty,
            ExprData::Call(intrin, args, ty) => match intrin.result() {
                IntrinResult::Explicit => *ty,
                IntrinResult::Same => args.first().map_or(Ty::I64, |&a| self.expr_ty(a)),
                IntrinResult::Second => args.get(1).map_or(Ty::I64, |&a| self.expr_ty(a)),
                IntrinResult::Bool => {
                    Ty::BOOL.with_lanes(args.first().map_or(1, |&a| self.expr_ty(a).lanes))
                }
            },
            ExprData::Str(_) => Ty::I64,
            ExprData::Var(v) => match self.vars[*v].ty {
                VarTy::Value(ty) => ty,
                VarTy::Handle => Ty::I64,
            },
            ExprData::Binary(op, a, b) => {
                let (a, b) = (self.expr_ty(*a), self.expr_ty(*b));
                let lanes = a.lanes.max(b.lanes);
                if op.is_predicate() { Ty::BOOL.with_lanes(lanes) } else { a.with_lanes(lanes) }
            }
            ExprData::Not(a) => self.expr_ty(*a),
            ExprData::Select(_, a, _) => self.expr_ty(*a),
            ExprData::Load(buffer, indices) => {
                let lanes = indices.iter().map(|&i| self.expr_ty(i).lanes).max().unwrap_or(1);
                Ty::scalar(self.buffers[*buffer].dtype).with_lanes(lanes)
            }
            ExprData::Ramp(base, _, lanes) | ExprData::Broadcast(base, lanes) => {
                self.expr_ty(*base).with_lanes(*lanes)
            }
        }
    }

    /// The number of expressions in the arena.
    pub fn num_exprs(&self) -> usize {
        self.exprs.len()
    }

    /// Creates the expression that refers to a variable.
    pub fn var_expr(&mut self, v: Var) -> Expr {
        self.add_expr(ExprData::Var(v))
    }

    /// Creates an int64 constant expression.
    pub fn int(&mut self, value: i64) -> Expr {
        self.add_expr(ExprData::Int(value, Ty::I64))
    }

    /// Creates a scalar constant of the given dtype. For integer dtypes, the value is rounded towards zero.
    pub fn const_of(&mut self, value: f64, dtype: DType) -> Expr {
        let data = if dtype.is_float() {
            ExprData::Float(value.to_bits(), Ty::scalar(dtype))
        } else {
            ExprData::Int(value as i64, Ty::scalar(dtype))
        };
        self.add_expr(data)
    }

    /// The value of an integer or bool constant; `None` for other expressions.
    pub fn as_int(&self, e: Expr) -> Option<i64> {
        match self.exprs[e] {
            ExprData::Int(v, _) => Some(v),
            _ => None,
        }
    }

    /// Creates a binary operation. Both operands must have the same type; the verifier checks this.
    pub fn binary(&mut self, op: BinOp, a: Expr, b: Expr) -> Expr {
        self.add_expr(ExprData::Binary(op, a, b))
    }

    /// Creates the sum of two expressions.
    pub fn add(&mut self, a: Expr, b: Expr) -> Expr {
        self.binary(BinOp::Add, a, b)
    }

    /// Creates the product of two expressions.
    pub fn mul(&mut self, a: Expr, b: Expr) -> Expr {
        self.binary(BinOp::Mul, a, b)
    }

    /// Creates a type conversion. Returns `e` if it already has the type.
    pub fn cast(&mut self, e: Expr, ty: Ty) -> Expr {
        if self.expr_ty(e) == ty { e } else { self.add_expr(ExprData::Cast(ty, e)) }
    }

    /// Creates a load of a buffer element.
    pub fn load(&mut self, buffer: Buffer, indices: &[Expr]) -> Expr {
        self.add_expr(ExprData::Load(buffer, indices.into()))
    }

    /// Creates a call of an intrinsic whose result type follows from its operands.
    pub fn call(&mut self, intrin: Intrin, args: &[Expr]) -> Expr {
        self.add_expr(ExprData::Call(intrin, args.into(), Ty::I64))
    }

    // ---- statements ----

    /// Adds a statement, and returns its id.
    pub fn add_stmt(&mut self, data: StmtData) -> Stmt {
        self.stmts.push(data)
    }

    /// The contents of the statement with the given id.
    pub fn stmt(&self, s: Stmt) -> &StmtData {
        &self.stmts[s]
    }

    /// Creates a sequence of statements. A single statement is returned unchanged.
    pub fn seq(&mut self, mut stmts: Vec<Stmt>) -> Stmt {
        if stmts.len() == 1 {
            return stmts.remove(0);
        }
        self.add_stmt(StmtData::Seq(stmts))
    }

    /// Creates a store of one element.
    pub fn store(&mut self, buffer: Buffer, indices: &[Expr], value: Expr) -> Stmt {
        self.add_stmt(StmtData::Store { buffer, indices: indices.into(), value })
    }
}

/// Converts an expression to its canonical form, so that equal expressions are stored once: float constants are rounded to their
/// type. The type in a call node is set to int64 if it has no meaning, because the intrinsic determines the type of the result.
fn canonical(data: ExprData) -> ExprData {
    match data {
        ExprData::Float(bits, ty) => {
            let value = f64::from_bits(bits);
            let value = match ty.dtype {
                DType::Float32 => f64::from(value as f32),
                DType::Float16 => round_to_f16(value).to_f64(),
                DType::BFloat16 => round_to_bf16(value).to_f64(),
                _ => value,
            };
            ExprData::Float(value.to_bits(), ty)
        }
        ExprData::Call(Intrin::AddressOf, args, _) => {
            ExprData::Call(Intrin::AddressOf, args, Ty::I64)
        }
        ExprData::Call(intrin, args, _) if intrin.result() != IntrinResult::Explicit => {
            ExprData::Call(intrin, args, Ty::I64)
        }
        data => data,
    }
}
