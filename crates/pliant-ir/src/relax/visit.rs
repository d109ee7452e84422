//! Traversals of graph functions, and [`Importer`], which copies parts of functions between arenas.
//!
//! The traversals use explicit stacks. The importer only recurses into nested branches and local functions, whose depth the
//! verifier limits.

use pliant_sym::{Sym, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use super::expr::*;
use super::function::Function;
use super::type_lattice::{SymMap, definable_syms, visit_dims};
use super::types::{TensorShape, Type, TypeData};

/// Calls `visit` with each operand of an expression, in order. Callees, arguments, fields and conditions are operands.
pub fn for_each_operand(f: &Function, e: Expr, mut visit: impl FnMut(Expr)) {
    match f.expr(e) {
        ExprData::Tuple(list) => f.list(*list).iter().copied().for_each(visit),
        ExprData::TupleGetItem(t, _) => visit(*t),
        ExprData::Call { callee, args, .. } => {
            if let Callee::Expr(c) = callee {
                visit(*c);
            }
            f.list(*args).iter().copied().for_each(visit);
        }
        ExprData::If { cond, .. } => visit(*cond),
        _ => {}
    }
}

/// Calls `visit` with an expression and all expressions nested in it, in post-order. Expressions
/// inside branches and local functions are not visited.
pub fn for_each_expr(f: &Function, e: Expr, mut visit: impl FnMut(Expr)) {
    let mut stack = vec![(e, false)];
    let mut operands = Vec::new();
    while let Some((e, done)) = stack.pop() {
        if done {
            visit(e);
            continue;
        }
        stack.push((e, true));
        for_each_operand(f, e, |o| operands.push((o, false)));
        stack.extend(operands.drain(..).rev());
    }
}

/// The location of a binding in a function.
#[derive(Clone, Copy, Debug)]
pub struct BindingLocation {
    /// The function expression that contains the binding.
    pub func: FuncId,
    /// The sequence that contains the binding.
    pub seq: Seq,
    /// The block that contains the binding.
    pub block: Block,
    /// The index of the binding in the block.
    pub index: usize,
}

/// An event of a traversal. A traversal reports its events in the order of the function's text.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The traversal enters a function expression, before its body. From here on, the parameters are visible.
    EnterFunc(FuncId),
    /// The traversal leaves a function expression, after its body. Its parameters and variables are no longer visible.
    LeaveFunc(FuncId),
    /// The traversal enters a sequence, before its first binding block.
    EnterSeq(Seq),
    /// The traversal reaches the result expression of a sequence, after its last binding block.
    Result(Seq),
    /// The traversal enters a binding block, before its first binding.
    EnterBlock(Block),
    /// The traversal leaves a binding block, after its last binding.
    LeaveBlock(Block),
    /// The traversal reaches a binding. If the value is an `If` or a local function, the events of its bodies follow.
    EnterBinding(BindingLocation, Binding),
    /// The traversal leaves a binding, after the bodies in its value. From here on, the variable is visible.
    LeaveBinding(BindingLocation, Binding),
}

/// A step that a traversal has yet to take. The fields identify a part of the function to traverse, or an event to report.
enum Pending {
    Func(FuncId),
    Seq(FuncId, Seq),
    Block(FuncId, Seq, Block, usize),
    Event(Event),
}

/// Whether the function contains an in-place call ([`Op::writes_operands`](crate::Op::writes_operands)).
pub fn has_inplace_calls(f: &Function) -> bool {
    let mut in_place = false;
    walk(f, f.root(), |event| {
        if let Event::LeaveBinding(_, b) = event
            && let ExprData::Call { callee: Callee::Op(op), .. } = f.expr(b.value)
        {
            in_place |= op.writes_operands();
        }
    });
    in_place
}

/// Traverses the function expression `id`, including nested local functions, in the order of the text.
pub fn walk(f: &Function, id: FuncId, visit: impl FnMut(Event)) {
    run_walk(f, vec![Pending::Func(id)], visit);
}

/// Traverses the sequences inside the value of a binding: the branches of an `If`, or the body of a local function. Values of
/// other kinds contain no sequences.
pub fn walk_value(f: &Function, value: Expr, visit: impl FnMut(Event)) {
    let stack = match f.expr(value) {
        ExprData::If { then_seq, else_seq, .. } => {
            vec![Pending::Seq(f.root(), *else_seq), Pending::Seq(f.root(), *then_seq)]
        }
        ExprData::Func(id) => vec![Pending::Func(*id)],
        _ => return,
    };
    run_walk(f, stack, visit);
}

fn run_walk(f: &Function, mut stack: Vec<Pending>, mut visit: impl FnMut(Event)) {
    while let Some(pending) = stack.pop() {
        match pending {
            Pending::Event(e) => visit(e),
            Pending::Func(id) => {
                visit(Event::EnterFunc(id));
                stack.push(Pending::Event(Event::LeaveFunc(id)));
                stack.push(Pending::Seq(id, f.func(id).body));
            }
            Pending::Seq(id, seq) => {
                visit(Event::EnterSeq(seq));
                stack.push(Pending::Event(Event::Result(seq)));
                let blocks = f.seq(seq).blocks.iter().rev();
                stack.extend(blocks.map(|&b| Pending::Block(id, seq, b, 0)));
            }
            Pending::Block(func, seq, block, start) => {
                if start == 0 {
                    visit(Event::EnterBlock(block));
                }
                let bindings = &f.block(block).bindings;
                let mut index = start;
                loop {
                    let Some(&binding) = bindings.get(index) else {
                        visit(Event::LeaveBlock(block));
                        break;
                    };
                    let location = BindingLocation { func, seq, block, index };
                    visit(Event::EnterBinding(location, binding));
                    index += 1;
                    let nested = match f.expr(binding.value) {
                        ExprData::If { then_seq, else_seq, .. } => [
                            Some(Pending::Seq(func, *else_seq)),
                            Some(Pending::Seq(func, *then_seq)),
                        ],
                        ExprData::Func(id) => [None, Some(Pending::Func(*id))],
                        _ => {
                            visit(Event::LeaveBinding(location, binding));
                            continue;
                        }
                    };
                    stack.push(Pending::Block(func, seq, block, index));
                    stack.push(Pending::Event(Event::LeaveBinding(location, binding)));
                    stack.extend(nested.into_iter().flatten());
                    break;
                }
            }
        }
    }
}

/// All bindings of a function, including nested ones, in the order of the text. An `If` precedes the bindings in its branches.
pub fn bindings(f: &Function) -> Vec<(BindingLocation, Binding)> {
    let mut out = Vec::new();
    walk(f, f.root(), |e| {
        if let Event::EnterBinding(location, b) = e {
            out.push((location, b));
        }
    });
    out
}

/// Calls `visit` with every expression reachable from the root: operands before their users, values in the order of the bindings,
/// results of sequences last.
pub fn post_order(f: &Function, mut visit: impl FnMut(Expr)) {
    walk(f, f.root(), |event| match event {
        Event::LeaveBinding(_, b) => for_each_expr(f, b.value, &mut visit),
        Event::Result(seq) => for_each_expr(f, f.seq(seq).result, &mut visit),
        _ => {}
    });
}

/// The shape variables in a type.
pub fn type_vars(f: &Function, ty: Type) -> Vec<Var> {
    let mut out = Vec::new();
    let mut stack = vec![ty];
    while let Some(ty) = stack.pop() {
        match f.types.get(ty) {
            TypeData::Tensor { shape: TensorShape::Var(v), .. } => out.push(*v),
            TypeData::Tuple(fields) => stack.extend(fields.iter().rev()),
            TypeData::Callable { params, ret, .. } => {
                stack.push(*ret);
                stack.extend(params.iter().flatten().rev());
            }
            _ => {}
        }
    }
    out
}

/// The variables that an expression reads. Reads inside branches and local functions are not
/// included.
pub fn operand_vars(f: &Function, e: Expr) -> Vec<Var> {
    let mut out = Vec::new();
    for_each_expr(f, e, |e| {
        if let ExprData::Var(v) = f.expr(e) {
            out.push(*v);
        }
    });
    out
}

/// The run of consecutive bindings of local functions that starts at index `start`. The variables of a run are visible in the
/// bodies of all its functions. Empty if the binding at `start` does not bind a local function or is not the first one of its run.
pub fn func_run<'b>(f: &Function, bindings: &'b [Binding], start: usize) -> &'b [Binding] {
    let is_func = |b: &Binding| b.cast.is_none() && matches!(f.expr(b.value), ExprData::Func(_));
    if start.checked_sub(1).and_then(|i| bindings.get(i)).is_some_and(is_func) {
        return &[];
    }
    let rest = bindings.get(start..).unwrap_or(&[]);
    let end = rest.iter().position(|b| !is_func(b)).unwrap_or(rest.len());
    &rest[..end]
}

/// For each variable, the number of uses as an operand or as the result of a sequence, and the variables whose values use it.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    counts: FxHashMap<Var, usize>,
    users: FxHashMap<Var, Vec<Var>>,
}

impl Uses {
    /// Counts the uses of variables in all bindings and results that are reachable from the root of a function.
    pub fn of(f: &Function) -> Self {
        let mut uses = Uses::default();
        walk(f, f.root(), |event| match event {
            Event::EnterBinding(_, b) => {
                for v in operand_vars(f, b.value) {
                    *uses.counts.entry(v).or_default() += 1;
                    let users = uses.users.entry(v).or_default();
                    if users.last() != Some(&b.var) {
                        users.push(b.var);
                    }
                }
            }
            Event::Result(seq) => {
                for v in operand_vars(f, f.seq(seq).result) {
                    *uses.counts.entry(v).or_default() += 1;
                }
            }
            _ => {}
        });
        uses
    }

    /// The number of uses of a variable.
    pub fn count(&self, v: Var) -> usize {
        self.counts.get(&v).copied().unwrap_or(0)
    }

    /// The variables of the bindings whose values have `v` as an operand, in order. Uses as the result of a sequence are not
    /// included.
    pub fn users(&self, v: Var) -> &[Var] {
        self.users.get(&v).map_or(&[], Vec::as_slice)
    }
}

/// The variables that the function expression `id` defines: parameters and bindings, including nested ones.
pub fn bound_vars(f: &Function, id: FuncId) -> Vec<Var> {
    let mut out = Vec::new();
    walk(f, id, |event| match event {
        Event::EnterFunc(id) => out.extend_from_slice(&f.func(id).params),
        Event::LeaveBinding(_, b) => out.push(b.var),
        _ => {}
    });
    out
}

/// The variables that the function expression `id` reads, without duplicates, in order.
pub fn used_vars(f: &Function, id: FuncId) -> Vec<Var> {
    let mut seen = FxHashSet::default();
    let mut out = Vec::new();
    let mut read = |e: Expr| {
        for v in operand_vars(f, e) {
            if seen.insert(v) {
                out.push(v);
            }
        }
    };
    walk(f, id, |event| match event {
        Event::EnterBinding(_, b) => read(b.value),
        Event::Result(seq) => read(f.seq(seq).result),
        _ => {}
    });
    out
}

/// The variables that the function expression `id` reads but does not define: the captured variables of a local function.
pub fn free_vars(f: &Function, id: FuncId) -> Vec<Var> {
    let bound: FxHashSet<Var> = bound_vars(f, id).into_iter().collect();
    used_vars(f, id).into_iter().filter(|v| !bound.contains(v)).collect()
}

/// The variables that a value reads but does not define, including the reads in nested bodies.
pub fn value_free_vars(f: &Function, value: Expr) -> Vec<Var> {
    let mut out = operand_vars(f, value);
    if !matches!(f.expr(value), ExprData::If { .. } | ExprData::Func(_)) {
        return out;
    }
    let mut bound = FxHashSet::default();
    walk_value(f, value, |event| match event {
        Event::EnterFunc(id) => bound.extend(f.func(id).params.iter().copied()),
        Event::EnterBinding(_, b) => {
            bound.insert(b.var);
            out.extend(operand_vars(f, b.value));
        }
        Event::Result(seq) => out.extend(operand_vars(f, f.seq(seq).result)),
        _ => {}
    });
    out.retain(|v| !bound.contains(v));
    out
}

/// The symbols that the function expression `id` defines by its parameters and by `match_cast`.
pub fn defined_syms(f: &Function, id: FuncId) -> Vec<SymVar> {
    let mut seen = FxHashSet::default();
    let mut out = Vec::new();
    let mut add = |ty: Type| {
        for v in definable_syms(f, ty) {
            if seen.insert(v) {
                out.push(v);
            }
        }
    };
    walk(f, id, |event| match event {
        Event::EnterFunc(id) => f.func(id).params.iter().for_each(|&p| add(f.var(p).ty)),
        Event::EnterBinding(_, b) => b.cast.expand().into_iter().for_each(&mut add),
        _ => {}
    });
    out
}

/// Calls `visit` with every symbolic integer in the function expression `id`.
pub fn for_each_sym(f: &Function, id: FuncId, mut visit: impl FnMut(Sym)) {
    let mut types = FxHashSet::default();
    let mut ty = |t: Type, visit: &mut dyn FnMut(Sym)| {
        if types.insert(t) {
            visit_dims(f, t, true, visit);
        }
    };
    fn exprs(
        f: &Function,
        e: Expr,
        ty: &mut impl FnMut(Type, &mut dyn FnMut(Sym)),
        visit: &mut dyn FnMut(Sym),
    ) {
        for_each_expr(f, e, |e| match f.expr(e) {
            ExprData::Shape(dims) => dims.iter().for_each(|&d| visit(d)),
            ExprData::Int(v, _) => visit(*v),
            ExprData::Call { ty_args, .. } => {
                f.type_list(*ty_args).iter().for_each(|&t| ty(t, visit));
            }
            _ => {}
        });
    }
    walk(f, id, |event| match event {
        Event::EnterFunc(id) => {
            f.func(id).params.iter().for_each(|&p| ty(f.var(p).ty, &mut visit));
            ty(f.func(id).ret_ty, &mut visit);
        }
        Event::EnterBinding(_, b) => {
            ty(f.var(b.var).ty, &mut visit);
            if let Some(t) = b.cast.expand() {
                ty(t, &mut visit);
            }
            exprs(f, b.value, &mut ty, &mut visit);
        }
        Event::Result(seq) => exprs(f, f.seq(seq).result, &mut ty, &mut visit),
        _ => {}
    });
}

/// The symbols that the function expression `id` uses but does not define, without duplicates.
pub fn free_syms(f: &Function, id: FuncId) -> Vec<SymVar> {
    let mut seen: FxHashSet<SymVar> = defined_syms(f, id).into_iter().collect();
    let mut out = Vec::new();
    for_each_sym(f, id, |s| {
        for v in f.syms.free_vars(s) {
            if seen.insert(v) {
                out.push(v);
            }
        }
    });
    out
}

/// The names of the module's functions to which a function refers, without duplicates, in order.
pub fn called_globals(f: &Function) -> Vec<std::sync::Arc<str>> {
    let mut seen = FxHashSet::default();
    let mut out = Vec::new();
    post_order(f, |e| {
        if let ExprData::Global(s) = f.expr(e)
            && seen.insert(*s)
        {
            out.push(f.str(*s).clone());
        }
    });
    out
}

/// Copies parts of `src` into `dst`. Variables in [`vars`](Self::vars) and symbols in
/// [`syms`](Self::syms) are replaced by their entries. Other variables are copied at their
/// definition, and symbols at their first occurrence.
pub struct Importer<'a> {
    /// The function from which parts are copied.
    pub src: &'a Function,
    /// The function into which parts are copied.
    pub dst: &'a mut Function,
    /// Maps variables of `src` to operands of `dst`.
    pub vars: FxHashMap<Var, Expr>,
    /// Maps symbols of `src` to terms of `dst`.
    pub syms: SymMap,
    /// Maps terms of `src`, which are replaced as a whole, to terms of `dst`.
    pub terms: FxHashMap<Sym, Sym>,
    /// Cache: the imported types, by type of `src`.
    pub types: FxHashMap<Type, Type>,
    /// The variables of `src` that have been copied, in order.
    pub defined: Vec<Var>,
}

impl<'a> Importer<'a> {
    /// Creates an importer that makes no substitutions.
    pub fn new(src: &'a Function, dst: &'a mut Function) -> Self {
        let (vars, syms) = (FxHashMap::default(), SymMap::default());
        let terms = FxHashMap::default();
        Importer { src, dst, vars, syms, terms, types: FxHashMap::default(), defined: Vec::new() }
    }

    /// Copies a symbolic integer from `src` to `dst`.
    pub fn sym(&mut self, s: Sym) -> Sym {
        super::type_lattice::import_sym(self.dst, self.src, s, &mut self.syms, &self.terms)
    }

    /// Copies a type from `src` to `dst`. A shape variable without a replacement in [`vars`](Self::vars) is dropped, and only the
    /// rank of the shape is kept.
    pub fn ty(&mut self, ty: Type) -> Type {
        if let Some(&t) = self.types.get(&ty) {
            return t;
        }
        let data = match self.src.types.get(ty) {
            TypeData::Any => TypeData::Any,
            TypeData::Prim { dtype, value } => {
                TypeData::Prim { dtype: *dtype, value: value.map(|v| self.sym(v)) }
            }
            TypeData::Shape { dims, ndim } => {
                let dims = dims.as_ref().map(|d| d.iter().map(|&s| self.sym(s)).collect());
                TypeData::Shape { dims, ndim: *ndim }
            }
            TypeData::Tensor { shape, dtype } => {
                TypeData::Tensor { shape: self.shape(shape, ty), dtype: *dtype }
            }
            TypeData::Tuple(fields) => {
                TypeData::Tuple(fields.iter().map(|&t| self.ty(t)).collect())
            }
            TypeData::Callable { params, ret, pure } => {
                let params = params.as_ref().map(|p| p.iter().map(|&t| self.ty(t)).collect());
                TypeData::Callable { params, ret: self.ty(*ret), pure: *pure }
            }
        };
        let new = self.dst.intern(data);
        self.types.insert(ty, new);
        new
    }

    fn shape(&mut self, shape: &TensorShape, ty: Type) -> TensorShape {
        match shape {
            TensorShape::Dims(d) => TensorShape::Dims(d.iter().map(|&s| self.sym(s)).collect()),
            TensorShape::Rank(n) => TensorShape::Rank(*n),
            TensorShape::Unknown => TensorShape::Unknown,
            TensorShape::Var(v) => match self.vars.get(v).map(|&e| self.dst.expr(e)) {
                Some(ExprData::Var(v)) => TensorShape::Var(*v),
                Some(ExprData::Shape(dims)) => TensorShape::Dims(dims.clone()),
                _ => self.src.rank_of(ty).map_or(TensorShape::Unknown, TensorShape::Rank),
            },
        }
    }

    /// Copies a variable from `src` to `dst`, and adds the copy to [`vars`](Self::vars).
    pub fn define(&mut self, v: Var) -> Var {
        let data = self.src.var(v);
        let ty = self.ty(data.ty);
        let new = self.dst.add_var(data.name.clone(), ty, data.dataflow, data.span);
        let e = self.dst.var_expr(new);
        self.vars.insert(v, e);
        self.defined.push(v);
        new
    }

    /// Copies an expression and its type from `src` to `dst`. A variable in it without an entry in [`vars`](Self::vars) is copied,
    /// too.
    pub fn expr(&mut self, e: Expr) -> Expr {
        let src = self.src;
        let data = match src.expr(e) {
            ExprData::Var(v) => {
                if let Some(&e) = self.vars.get(v) {
                    return e;
                }
                let v = self.define(*v);
                return self.dst.var_expr(v);
            }
            ExprData::Constant(c) => return self.dst.constant(src.const_tensor(*c).clone()),
            ExprData::Global(s) => ExprData::Global(self.dst.str_id(src.str(*s))),
            ExprData::Extern(s) => ExprData::Extern(self.dst.str_id(src.str(*s))),
            ExprData::Str(s) => ExprData::Str(self.dst.str_id(src.str(*s))),
            ExprData::Shape(dims) => ExprData::Shape(dims.iter().map(|&d| self.sym(d)).collect()),
            ExprData::Int(v, dtype) => ExprData::Int(self.sym(*v), *dtype),
            ExprData::Float(bits, dtype) => ExprData::Float(*bits, *dtype),
            ExprData::DType(d) => ExprData::DType(*d),
            ExprData::Tuple(list) => {
                let fields: Vec<Expr> = src.list(*list).iter().map(|&x| self.expr(x)).collect();
                return self.dst.tuple(&fields);
            }
            ExprData::TupleGetItem(t, i) => {
                let t = self.expr(*t);
                if let Some(&field) = self.dst.tuple_fields(t).and_then(|f| f.get(*i as usize)) {
                    return field;
                }
                ExprData::TupleGetItem(t, *i)
            }
            ExprData::Call { callee, args, attrs, ty_args } => {
                let callee = match callee {
                    Callee::Op(op) => Callee::Op(*op),
                    Callee::Expr(c) => Callee::Expr(self.expr(*c)),
                };
                let args: Vec<Expr> = src.list(*args).iter().map(|&x| self.expr(x)).collect();
                let ty_args: Vec<Type> =
                    src.type_list(*ty_args).iter().map(|&t| self.ty(t)).collect();
                let ty = self.ty(src.expr_ty(e));
                return self.dst.call(callee, &args, src.call_attrs(*attrs).clone(), &ty_args, ty);
            }
            ExprData::If { cond, then_seq, else_seq } => {
                let cond = self.expr(*cond);
                let (then_seq, else_seq) = (self.seq(*then_seq), self.seq(*else_seq));
                ExprData::If { cond, then_seq, else_seq }
            }
            ExprData::Func(id) => ExprData::Func(self.func(*id)),
        };
        let ty = self.ty(src.expr_ty(e));
        self.dst.add_expr(data, ty)
    }

    /// Copies a binding from `src` to `dst`, including its variable.
    pub fn binding(&mut self, b: Binding) -> Binding {
        // A local function may call itself, so its variable is defined before its body.
        let recursive = matches!(self.src.expr(b.value), ExprData::Func(_));
        let early = recursive.then(|| self.define(b.var));
        let value = self.expr(b.value);
        let cast = b.cast.expand().map(|t| self.ty(t));
        let var = early.unwrap_or_else(|| self.define(b.var));
        Binding { var, value, cast: cast.into() }
    }

    /// Copies a binding block and its bindings from `src` to `dst`.
    pub fn block(&mut self, b: Block) -> Block {
        let src = self.src;
        let data = src.block(b);
        let mut bindings = Vec::with_capacity(data.bindings.len());
        while let Some(&b) = data.bindings.get(bindings.len()) {
            let run = func_run(src, &data.bindings, bindings.len());
            if run.is_empty() {
                bindings.push(self.binding(b));
                continue;
            }
            // The functions of a run may call each other, so all variables are defined before the first body.
            let vars: Vec<Var> = run.iter().map(|b| self.define(b.var)).collect();
            for (b, var) in run.iter().zip(vars) {
                let value = self.expr(b.value);
                bindings.push(Binding::bind(var, value));
            }
        }
        self.dst.add_block(BlockData { dataflow: data.dataflow, bindings })
    }

    /// Copies a sequence and its binding blocks from `src` to `dst`.
    pub fn seq(&mut self, s: Seq) -> Seq {
        let data = self.src.seq(s);
        let blocks = data.blocks.iter().map(|&b| self.block(b)).collect();
        let result = self.expr(data.result);
        self.dst.add_seq(SeqData { blocks, result })
    }

    /// Copies a function expression, with its parameters and its body, from `src` to `dst`.
    pub fn func(&mut self, id: FuncId) -> FuncId {
        let data = self.src.func(id);
        let params = data.params.iter().map(|&p| self.define(p)).collect();
        let ret_ty = self.ty(data.ret_ty);
        let body = self.seq(data.body);
        let attrs = data.attrs.clone();
        self.dst.add_func(FuncData { params, body, ret_ty, pure: data.pure, attrs })
    }
}

/// Copies the parts of a function that are reachable from its root.
pub fn copy_function(src: &Function) -> Function {
    copy_function_with(src, |_| {})
}

/// Copies the parts of a function that are reachable from its root. `prepare` can add substitutions to the importer.
pub fn copy_function_with(src: &Function, prepare: impl FnOnce(&mut Importer<'_>)) -> Function {
    let mut dst = Function::empty();
    dst.attrs = src.attrs.clone();
    dst.private = src.private;
    copy_root(src, src.root(), &mut dst, prepare);
    dst
}

/// Converts a local function without captured variables to a private function that can be added to a module.
pub fn copy_local_function(src: &Function, id: FuncId) -> Function {
    let mut dst = Function::empty();
    dst.attrs = src.func(id).attrs.clone();
    dst.private = true;
    copy_root(src, id, &mut dst, |_| {});
    dst
}

/// Copies the function expression `id` as the root of `dst`, without its attributes, because the
/// attributes of a root are in [`Function::attrs`].
fn copy_root(
    src: &Function,
    id: FuncId,
    dst: &mut Function,
    prepare: impl FnOnce(&mut Importer<'_>),
) {
    let mut importer = Importer::new(src, dst);
    prepare(&mut importer);
    let copy = importer.func(id);
    let data = FuncData { attrs: Default::default(), ..dst.func(copy).clone() };
    let root = dst.root();
    *dst.func_mut(root) = data;
}
