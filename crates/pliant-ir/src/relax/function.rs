//! [`Function`]: a graph function with its arenas, and accessors to their contents.

use std::sync::Arc;

use cranelift_entity::{EntityList, ListPool, PrimaryMap, SecondaryMap};
use pliant_diag::Span;
use pliant_sym::{Sym, SymArena, SymVar};
use pliant_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

use super::expr::*;
use super::types::{TensorShape, Type, TypeArena, TypeData};
use crate::attr_names::INPUT_NAMES;
use crate::attr_values::{AttrValue, Attrs, FuncAttrs};
use crate::op::DESTINATION_PASSING;

/// A graph function, and the arenas that contain its parts, such as variables, expressions, binding blocks and types.
/// Parts are identified by ids, which are only valid in their own function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The arena of the function's symbolic integers.
    pub syms: SymArena,
    /// The arena of the function's types.
    pub types: TypeArena,
    /// The attributes of the function (`global_symbol`, ...).
    pub attrs: FuncAttrs,
    /// Whether the function is only called from its own module.
    pub private: bool,
    vars: PrimaryMap<Var, VarData>,
    var_exprs: PrimaryMap<Var, Expr>,
    exprs: PrimaryMap<Expr, ExprData>,
    expr_types: SecondaryMap<Expr, cranelift_entity::packed_option::PackedOption<Type>>,
    expr_lists: ListPool<Expr>,
    type_lists: ListPool<Type>,
    blocks: PrimaryMap<Block, BlockData>,
    seqs: PrimaryMap<Seq, SeqData>,
    funcs: PrimaryMap<FuncId, FuncData>,
    consts: PrimaryMap<Const, Tensor>,
    strs: PrimaryMap<Str, Arc<str>>,
    str_ids: FxHashMap<Arc<str>, Str>,
    call_attrs: PrimaryMap<AttrsId, Attrs>,
    call_attr_ids: FxHashMap<Attrs, AttrsId>,
    root: FuncId,
}

impl Function {
    /// Creates a function without parameters that returns the empty tuple.
    pub fn empty() -> Self {
        let mut f = Function {
            syms: SymArena::default(),
            types: TypeArena::default(),
            attrs: FuncAttrs::default(),
            private: false,
            vars: PrimaryMap::new(),
            var_exprs: PrimaryMap::new(),
            exprs: PrimaryMap::new(),
            expr_types: SecondaryMap::new(),
            expr_lists: ListPool::new(),
            type_lists: ListPool::new(),
            blocks: PrimaryMap::new(),
            seqs: PrimaryMap::new(),
            funcs: PrimaryMap::new(),
            consts: PrimaryMap::new(),
            strs: PrimaryMap::new(),
            str_ids: FxHashMap::default(),
            call_attrs: PrimaryMap::new(),
            call_attr_ids: FxHashMap::default(),
            root: FuncId::from_u32(0),
        };
        f.call_attrs.push(Attrs::default());
        f.call_attr_ids.insert(Attrs::default(), AttrsId::from_u32(0));
        let unit = f.tuple(&[]);
        let ret_ty = f.expr_ty(unit);
        let body = f.seqs.push(SeqData { blocks: Vec::new(), result: unit });
        f.root = f.funcs.push(FuncData {
            params: Vec::new(),
            body,
            ret_ty,
            pure: true,
            attrs: FuncAttrs::default(),
        });
        f
    }

    // ---- the root function ----

    /// The id of the root: the function expression of this function, as opposed to those of its local functions.
    pub fn root(&self) -> FuncId {
        self.root
    }

    /// The parameters of the function.
    pub fn params(&self) -> &[Var] {
        &self.funcs[self.root].params
    }

    /// The name of parameter `i` in messages: the name in the model file if the function has the attribute
    /// [`INPUT_NAMES`](crate::attr_names::INPUT_NAMES), otherwise the name of the variable.
    ///
    /// # Panics
    /// If the function has no parameter `i`.
    pub fn param_label(&self, i: usize) -> &str {
        let file_name = match self.attrs.get(INPUT_NAMES) {
            Some(AttrValue::List(names)) => names.get(i).and_then(AttrValue::as_str),
            _ => None,
        };
        file_name.unwrap_or_else(|| &self.var(self.params()[i]).name)
    }

    /// The body of the function.
    pub fn body(&self) -> Seq {
        self.funcs[self.root].body
    }

    /// The type of the function's result.
    pub fn ret_ty(&self) -> Type {
        self.funcs[self.root].ret_ty
    }

    /// Whether calls of the function have no side effects.
    pub fn is_pure(&self) -> bool {
        self.funcs[self.root].pure
    }

    /// The properties of the function expression `id`: the root, or a local function.
    pub fn func(&self, id: FuncId) -> &FuncData {
        &self.funcs[id]
    }

    /// Mutable access to the properties of the function expression `id`.
    pub fn func_mut(&mut self, id: FuncId) -> &mut FuncData {
        &mut self.funcs[id]
    }

    /// Adds a local function, and returns its id.
    pub fn add_func(&mut self, data: FuncData) -> FuncId {
        self.funcs.push(data)
    }

    // ---- variables ----

    /// Adds a variable, and the expression that refers to it. Returns the variable.
    pub fn add_var(
        &mut self,
        name: impl Into<Arc<str>>,
        ty: Type,
        dataflow: bool,
        span: Span,
    ) -> Var {
        let var = self.vars.push(VarData { name: name.into(), ty, dataflow, span });
        let e = self.add_expr(ExprData::Var(var), ty);
        self.var_exprs.push(e);
        var
    }

    /// The properties of the variable with the given id.
    pub fn var(&self, var: Var) -> &VarData {
        &self.vars[var]
    }

    /// Mutable access to the properties of a variable. A changed type also applies to the expression that refers to the variable.
    pub fn var_mut(&mut self, var: Var) -> &mut VarData {
        &mut self.vars[var]
    }

    /// The type of a variable.
    pub fn var_ty(&self, var: Var) -> &TypeData {
        self.types.get(self.vars[var].ty)
    }

    /// All variables created so far, including dead ones.
    pub fn var_ids(&self) -> impl Iterator<Item = Var> + use<> {
        self.vars.keys()
    }

    /// The number of variables created so far.
    pub fn num_vars(&self) -> usize {
        self.vars.len()
    }

    // ---- expressions ----

    /// Adds an expression with its type. Where possible, use a specific constructor such as [`tuple`](Self::tuple) instead.
    pub fn add_expr(&mut self, data: ExprData, ty: Type) -> Expr {
        let e = self.exprs.push(data);
        self.expr_types[e] = Some(ty).into();
        e
    }

    /// The contents of the expression with the given id.
    pub fn expr(&self, e: Expr) -> &ExprData {
        &self.exprs[e]
    }

    /// The type of an expression. For a variable, it is the variable's current type.
    pub fn expr_ty(&self, e: Expr) -> Type {
        match self.exprs[e] {
            ExprData::Var(v) => self.vars[v].ty,
            _ => self.expr_types[e].expand().expect("every expression has a type"),
        }
    }

    /// The contents of the type of an expression.
    pub fn ty(&self, e: Expr) -> &TypeData {
        self.types.get(self.expr_ty(e))
    }

    /// Sets the type of an expression.
    pub fn set_expr_ty(&mut self, e: Expr, ty: Type) {
        self.expr_types[e] = Some(ty).into();
    }

    /// The number of expressions created so far.
    pub fn num_exprs(&self) -> usize {
        self.exprs.len()
    }

    /// The expression that refers to a variable. Each variable has exactly one such expression.
    pub fn var_expr(&self, var: Var) -> Expr {
        self.var_exprs[var]
    }

    /// The expression that refers to a variable; `None` if the variable does not exist.
    pub fn find_var_expr(&self, var: Var) -> Option<Expr> {
        self.var_exprs.get(var).copied()
    }

    /// Creates a reference to a function of the module, which has the given type.
    pub fn global(&mut self, name: &str, ty: Type) -> Expr {
        let s = self.str_id(name);
        self.add_expr(ExprData::Global(s), ty)
    }

    /// Creates a reference to a packed function by its registered name.
    pub fn extern_func(&mut self, name: &str) -> Expr {
        let s = self.str_id(name);
        let any = self.types.intern(TypeData::Any);
        let ty = self.types.intern(TypeData::Callable { params: None, ret: any, pure: false });
        self.add_expr(ExprData::Extern(s), ty)
    }

    /// Whether the arena contains tensor constants, including unused ones.
    pub fn has_constants(&self) -> bool {
        !self.consts.is_empty()
    }

    /// Creates an expression for a tensor constant.
    pub fn constant(&mut self, tensor: Tensor) -> Expr {
        let dims: Vec<Sym> = tensor.shape().iter().map(|&d| self.syms.int(d)).collect();
        let ty = self.types.intern(TypeData::tensor(dims, tensor.dtype()));
        let c = self.consts.push(tensor);
        self.add_expr(ExprData::Constant(c), ty)
    }

    /// Creates an expression for a shape value.
    pub fn shape(&mut self, dims: &[Sym]) -> Expr {
        let ty = self.types.intern(TypeData::shape(dims));
        self.add_expr(ExprData::Shape(dims.into()), ty)
    }

    /// Creates an expression for an integer scalar.
    pub fn int_value(&mut self, value: Sym, dtype: DType) -> Expr {
        let ty = self.types.intern(TypeData::Prim { dtype, value: Some(value) });
        self.add_expr(ExprData::Int(value, dtype), ty)
    }

    /// Creates an expression for a float scalar.
    pub fn float_value(&mut self, value: f64, dtype: DType) -> Expr {
        let ty = self.types.intern(TypeData::Prim { dtype, value: None });
        self.add_expr(ExprData::Float(value.to_bits(), dtype), ty)
    }

    /// Creates an expression for a string value.
    pub fn str_value(&mut self, value: &str) -> Expr {
        let s = self.str_id(value);
        let ty = self.types.intern(TypeData::Any);
        self.add_expr(ExprData::Str(s), ty)
    }

    /// Creates an expression for a data type as a value.
    pub fn dtype_value(&mut self, dtype: DType) -> Expr {
        let ty = self.types.intern(TypeData::Any);
        self.add_expr(ExprData::DType(dtype), ty)
    }

    /// Creates a tuple of operands.
    pub fn tuple(&mut self, fields: &[Expr]) -> Expr {
        let tys: Vec<Type> = fields.iter().map(|&e| self.expr_ty(e)).collect();
        let ty = self.types.intern(TypeData::Tuple(tys.into()));
        let list = EntityList::from_slice(fields, &mut self.expr_lists);
        self.add_expr(ExprData::Tuple(list), ty)
    }

    /// Creates an expression for field `index` of a tuple. The type of the expression is `Any` if the tuple's type does not state
    /// the type of the field.
    pub fn tuple_get_item(&mut self, tuple: Expr, index: u32) -> Expr {
        let ty = match self.ty(tuple) {
            TypeData::Tuple(fields) => fields.get(index as usize).copied(),
            _ => None,
        };
        let ty = ty.unwrap_or_else(|| self.types.intern(TypeData::Any));
        self.add_expr(ExprData::TupleGetItem(tuple, index), ty)
    }

    /// Creates a call with the given result type.
    pub fn call(
        &mut self,
        callee: Callee,
        args: &[Expr],
        attrs: Attrs,
        ty_args: &[Type],
        ty: Type,
    ) -> Expr {
        // A destination-passing call with several outputs stores their types as one tuple type.
        let several = ty_args.len() > 1
            && matches!(callee, Callee::Op(op) if DESTINATION_PASSING.contains(&op));
        let whole = several.then(|| self.intern(TypeData::Tuple(ty_args.into())));
        let args = EntityList::from_slice(args, &mut self.expr_lists);
        let ty_args = whole.as_ref().map_or(ty_args, std::slice::from_ref);
        let ty_args = EntityList::from_slice(ty_args, &mut self.type_lists);
        let attrs = self.attrs_id(attrs);
        self.add_expr(ExprData::Call { callee, args, attrs, ty_args }, ty)
    }

    /// The expressions in the list `list`, which is stored in the function's arena.
    pub fn list(&self, list: EntityList<Expr>) -> &[Expr] {
        list.as_slice(&self.expr_lists)
    }

    /// The types in the list `list`, which is stored in the function's arena.
    pub fn type_list(&self, list: EntityList<Type>) -> &[Type] {
        list.as_slice(&self.type_lists)
    }

    /// The fields of a tuple expression; `None` for other expressions.
    pub fn tuple_fields(&self, e: Expr) -> Option<&[Expr]> {
        match &self.exprs[e] {
            ExprData::Tuple(list) => Some(self.list(*list)),
            _ => None,
        }
    }

    // ---- interned strings, attributes, constants ----

    /// Interns a string, and returns its id.
    pub fn str_id(&mut self, s: &str) -> Str {
        if let Some(&id) = self.str_ids.get(s) {
            return id;
        }
        let text: Arc<str> = s.into();
        let id = self.strs.push(text.clone());
        self.str_ids.insert(text, id);
        id
    }

    /// The string with the given id.
    pub fn str(&self, id: Str) -> &Arc<str> {
        &self.strs[id]
    }

    /// Interns the attributes of a call, and returns their id.
    pub fn attrs_id(&mut self, attrs: Attrs) -> AttrsId {
        if let Some(&id) = self.call_attr_ids.get(&attrs) {
            return id;
        }
        let id = self.call_attrs.push(attrs.clone());
        self.call_attr_ids.insert(attrs, id);
        id
    }

    /// The attributes with the given id.
    pub fn call_attrs(&self, id: AttrsId) -> &Attrs {
        &self.call_attrs[id]
    }

    /// The tensor of the constant with the given id.
    pub fn const_tensor(&self, c: Const) -> &Tensor {
        &self.consts[c]
    }

    // ---- blocks and sequences ----

    /// Adds a block, and returns its id.
    pub fn add_block(&mut self, data: BlockData) -> Block {
        self.blocks.push(data)
    }

    /// The contents of the binding block with the given id.
    pub fn block(&self, b: Block) -> &BlockData {
        &self.blocks[b]
    }

    /// Mutable access to the contents of a block.
    pub fn block_mut(&mut self, b: Block) -> &mut BlockData {
        &mut self.blocks[b]
    }

    /// Adds a sequence, and returns its id.
    pub fn add_seq(&mut self, data: SeqData) -> Seq {
        self.seqs.push(data)
    }

    /// The contents of the sequence with the given id.
    pub fn seq(&self, s: Seq) -> &SeqData {
        &self.seqs[s]
    }

    /// Mutable access to the contents of a sequence.
    pub fn seq_mut(&mut self, s: Seq) -> &mut SeqData {
        &mut self.seqs[s]
    }

    // ---- types and symbols ----

    /// Stores a type unless it is already in the arena, and returns its id.
    pub fn intern(&mut self, ty: TypeData) -> Type {
        self.types.intern(ty)
    }

    /// Creates a new symbol with the given name.
    pub fn fresh_sym(&mut self, name: &str) -> SymVar {
        self.syms.fresh_var(name)
    }

    /// The callable type of the function expression `id`: the types of its parameters and of its result.
    pub fn signature(&mut self, id: FuncId) -> Type {
        let data = &self.funcs[id];
        let (ret, pure) = (data.ret_ty, data.pure);
        let params: Box<[Type]> = data.params.iter().map(|&p| self.vars[p].ty).collect();
        self.types.intern(TypeData::Callable { params: Some(params), ret, pure })
    }

    /// The rank of a tensor or shape type; `None` if it is unknown.
    pub fn rank_of(&self, ty: Type) -> Option<u32> {
        match self.types.get(ty) {
            TypeData::Tensor { shape: TensorShape::Dims(d), .. } => Some(d.len() as u32),
            TypeData::Tensor { shape: TensorShape::Rank(n), .. } => Some(*n),
            TypeData::Tensor { shape: TensorShape::Var(v), .. } => self.rank_of(self.vars[*v].ty),
            TypeData::Shape { ndim, .. } => *ndim,
            _ => None,
        }
    }
}
