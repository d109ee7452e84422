//! Matches values against types: checks that the value has the type, and defines the type's new
//! symbols.

use pliant_ir::attr_names::NUM_CAPTURED;
use pliant_ir::op::WHILE_LOOP;
use pliant_ir::relax::type_lattice::is_subtype;
use pliant_ir::relax::{
    Binding, Callee, Expr, ExprData, Function, TensorShape, Type, TypeData, size_origins,
};
use pliant_ir::{AttrValue, DType, Sym, SymVar};
use pliant_pass::{PassError, Problem};
use pliant_sym::solve_match;
use rustc_hash::FxHashMap;

use super::lower::{Lowering, erase};
use crate::common::lowered_ops::{packed_call, prim_int, unit_ty};

/// The dim must equal the operand.
const ASSERT_IMM: i64 = 0;
/// The dim is stored into the slot.
pub(super) const STORE: i64 = 1;
/// Does nothing.
const NO_OP: i64 = 2;
/// The dim must equal the slot.
const ASSERT_LOAD: i64 = 3;

/// One value whose dims are matched.
struct Job {
    value: Expr,
    /// The expected dims.
    dims: Box<[Sym]>,
    /// The dims that are already proved.
    proved: Vec<bool>,
    /// The value's description for messages: `'x'`.
    subject: String,
    /// Whether the value is an integer scalar instead of a tensor or a shape.
    scalar: bool,
}

/// The action for one dim: the code, its operand, and the text for a failed check.
struct Action(i64, i64, Option<String>);

impl Job {
    fn place(&self, dim: usize) -> String {
        if self.scalar { self.subject.clone() } else { format!("{} dim {dim}", self.subject) }
    }
}

impl Lowering<'_> {
    /// Matches the parameters and computes what follows from them.
    pub fn match_params(
        &mut self,
        func: &mut Function,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let mut params: Vec<_> = func.params().iter().copied().enumerate().collect();
        // Captured values are correct: if an argument disagrees with them, the argument is
        // reported.
        let captured = func.attrs.get(NUM_CAPTURED).and_then(AttrValue::as_int).unwrap_or(0);
        let captured = usize::try_from(captured).unwrap_or(0).min(params.len());
        params.rotate_right(captured);
        let any = func.intern(TypeData::Any);
        let mut jobs = Vec::new();
        for (i, param) in params {
            let subject = format!("'{}'", func.var(param).name);
            let (value, ty) = (func.var_expr(param), func.var(param).ty);
            let have = match self.known {
                Some(known) if known.kinds.get(i) == Some(&true) => {
                    erase(func, ty, &mut FxHashMap::default())
                }
                _ => any,
            };
            self.inspect(func, value, have, ty, subject, &mut jobs, out);
        }
        self.dims_known = self.known.is_some_and(|known| known.dims);
        let matched = self.run(func, jobs, out);
        self.dims_known = false;
        matched?;
        self.compute_ready(func, out)
    }

    /// Matches a value of type `have` against the type `want`.
    pub fn match_value(
        &mut self,
        func: &mut Function,
        value: Expr,
        have: Type,
        want: Type,
        subject: String,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let mut jobs = Vec::new();
        self.inspect(func, value, have, want, subject, &mut jobs, out);
        self.run(func, jobs, out)
    }

    /// Checks the result of a call that no function has checked: of a packed function, a function
    /// value, or the state of a loop.
    pub fn check_call_result(
        &mut self,
        func: &mut Function,
        binding: &Binding,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let Some(subject) = unchecked_result(func, binding) else { return Ok(()) };
        let want = func.var(binding.var).ty;
        if want == unit_ty(func) {
            return Ok(());
        }
        let (value, any) = (func.var_expr(binding.var), func.intern(TypeData::Any));
        self.match_value(func, value, any, want, subject, out)?;
        self.compute_ready(func, out)
    }

    /// Checks that a called value is a function, unless its type says so.
    pub fn check_callee(&mut self, func: &mut Function, call: Expr, out: &mut Vec<Binding>) {
        let ExprData::Call { callee: Callee::Expr(callee), args, .. } = *func.expr(call) else {
            return;
        };
        let called = match func.expr(callee) {
            ExprData::Extern(name) if func.str(*name).starts_with("vm.builtin.invoke_") => {
                func.list(args).first().copied()
            }
            ExprData::Var(_) => Some(callee),
            _ => None,
        };
        if let Some(called) = called
            && let ExprData::Var(v) = *func.expr(called)
            && !matches!(func.var_ty(v), TypeData::Callable { .. })
        {
            let subject = format!("'{}', which is called,", func.var(v).name);
            self.check(func, "vm.builtin.check_func_info", &[called], &subject, out);
        }
    }

    /// Stores one dim of a tensor or shape of the given rank.
    pub fn store_dim(
        &mut self,
        func: &mut Function,
        value: Expr,
        rank: usize,
        dim: usize,
        (code, slot): (i64, i64),
        out: &mut Vec<Binding>,
    ) {
        let dims = vec![func.syms.int(0); rank];
        let job = job(value, dims.into(), None, "an argument".into(), false);
        let actions = self.single_action(&job, dim, Action(code, slot, None));
        self.emit_match(func, &job, actions, out);
    }

    /// A call of a closure whose result the function returns, as a tail call. `None` for other
    /// calls, and if the function's result type is more precise than an object, since then this
    /// function must check the result.
    pub fn tail_closure(
        &mut self,
        func: &mut Function,
        binding: &Binding,
        want: Type,
    ) -> Option<Expr> {
        if !matches!(func.types.get(want), TypeData::Any)
            || unchecked_result(func, binding).is_none()
        {
            return None;
        }
        let ExprData::Call { callee: Callee::Expr(callee), args, .. } = *func.expr(binding.value)
        else {
            return None;
        };
        let args = func.list(args).to_vec();
        let args = match func.expr(callee) {
            ExprData::Extern(name) if func.str(*name).starts_with("vm.builtin.invoke_") => args,
            ExprData::Extern(_) | ExprData::Global(_) => return None,
            _ => [callee].into_iter().chain(args).collect(),
        };
        let ty = func.expr_ty(binding.value);
        Some(packed_call(func, "vm.builtin.invoke_closure_tail", &args, ty))
    }

    /// Checks the function's result, whose type was `have` before lowering, unless `want` follows
    /// from it.
    pub fn check_result(
        &mut self,
        func: &mut Function,
        result: Expr,
        have: Type,
        want: Type,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        if is_subtype(func, have, want).is_yes() {
            return Ok(());
        }
        self.match_value(func, result, have, want, "the result".into(), out)
    }

    /// A call without its stores into the heap; `None` for a match that only stores.
    pub fn without_stores(&mut self, func: &mut Function, call: Expr) -> Option<Expr> {
        let ExprData::Call { callee: Callee::Expr(callee), args, .. } = func.expr(call) else {
            return Some(call);
        };
        let ExprData::Extern(name) = func.expr(*callee) else { return Some(call) };
        let first = match &**func.str(*name) {
            "vm.builtin.match_shape" => 3,
            "vm.builtin.match_prim_value" => 2,
            _ => return Some(call),
        };
        let (name, mut args) = (func.str(*name).clone(), func.list(*args).to_vec());
        let code = |func: &Function, e: Expr| match func.expr(e) {
            ExprData::Int(value, _) => func.syms.as_int(*value),
            _ => None,
        };
        let codes: Vec<usize> = (first..args.len() - 1).step_by(2).collect();
        if codes.iter().all(|&i| matches!(code(func, args[i]), Some(STORE | NO_OP))) {
            return None;
        }
        for i in codes {
            if code(func, args[i]) == Some(STORE) {
                args[i] = prim_int(func, NO_OP);
                args[i + 1] = prim_int(func, 0);
            }
        }
        args[1] = self.no_heap(func);
        let unit = unit_ty(func);
        Some(packed_call(func, &name, &args, unit))
    }

    /// Checks everything but dims, and adds jobs for the values whose dims must be matched.
    #[expect(clippy::too_many_arguments, reason = "a value with its two types, and two sinks")]
    fn inspect(
        &mut self,
        func: &mut Function,
        value: Expr,
        have: Type,
        want: Type,
        subject: String,
        jobs: &mut Vec<Job>,
        out: &mut Vec<Binding>,
    ) {
        if have == want {
            return;
        }
        let have_data = func.types.get(have).clone();
        match func.types.get(want).clone() {
            TypeData::Any => {}
            TypeData::Tensor { shape, dtype } => {
                let rank = func.rank_of(want);
                let is_known = have_data.is_tensor()
                    && (rank.is_none() || rank == func.rank_of(have))
                    && (dtype.is_none() || dtype == have_data.dtype());
                if !is_known {
                    let ndim = rank.map_or(-1, i64::from);
                    self.tensor_info(func, value, ndim, dtype, &subject, out);
                }
                if let TensorShape::Dims(dims) = shape {
                    jobs.push(job(value, dims, have_data.dims(), subject, false));
                }
            }
            TypeData::Shape { dims, ndim } => {
                let is_known = matches!(have_data, TypeData::Shape { .. })
                    && (ndim.is_none() || ndim == func.rank_of(have));
                if !is_known {
                    let ndim = prim_int(func, ndim.map_or(-1, i64::from));
                    self.check(func, "vm.builtin.check_shape_info", &[value, ndim], &subject, out);
                }
                if let Some(dims) = dims {
                    jobs.push(job(value, dims, have_data.dims(), subject, false));
                }
            }
            TypeData::Prim { dtype, value: term } => {
                let dtype_arg = func.dtype_value(dtype);
                if have_data.dtype() != Some(dtype) || have_data.is_tensor() {
                    self.check(
                        func,
                        "vm.builtin.check_prim_value_info",
                        &[value, dtype_arg],
                        &subject,
                        out,
                    );
                }
                if let Some(term) = term {
                    jobs.push(job(value, [term].into(), None, subject, true));
                }
            }
            TypeData::Tuple(fields) => {
                self.inspect_tuple(func, value, have_data, &fields, subject, jobs, out);
            }
            TypeData::Callable { .. } => {
                if !matches!(have_data, TypeData::Callable { .. }) {
                    self.check(func, "vm.builtin.check_func_info", &[value], &subject, out);
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a value with its two types, and two sinks")]
    fn inspect_tuple(
        &mut self,
        func: &mut Function,
        value: Expr,
        have: TypeData,
        fields: &[Type],
        subject: String,
        jobs: &mut Vec<Job>,
        out: &mut Vec<Binding>,
    ) {
        let have = match have {
            TypeData::Tuple(have) if have.len() == fields.len() => Some(have),
            _ => None,
        };
        if have.is_none() {
            let len = prim_int(func, fields.len() as i64);
            self.check(func, "vm.builtin.check_tuple_info", &[value, len], &subject, out);
        }
        let any = func.intern(TypeData::Any);
        let parts = func.tuple_fields(value).map(<[Expr]>::to_vec);
        for (i, &want) in fields.iter().enumerate() {
            let have = have.as_ref().map_or(any, |h| h[i]);
            if have == want || want == any {
                continue;
            }
            let field = match &parts {
                Some(parts) => parts[i],
                None => {
                    let get = func.tuple_get_item(value, i as u32);
                    self.namer.bind(func, "field", get, out)
                }
            };
            self.inspect(func, field, have, want, format!("{subject}[{i}]"), jobs, out);
        }
    }

    fn tensor_info(
        &mut self,
        func: &mut Function,
        value: Expr,
        ndim: i64,
        dtype: Option<DType>,
        subject: &str,
        out: &mut Vec<Binding>,
    ) {
        let ndim = prim_int(func, ndim);
        let dtype = match dtype {
            Some(dtype) => func.dtype_value(dtype),
            None => func.str_value(""),
        };
        self.check(func, "vm.builtin.check_tensor_info", &[value, ndim, dtype], subject, out);
    }

    /// Emits a check whose last operand describes it.
    pub fn check(
        &mut self,
        func: &mut Function,
        builtin: &str,
        args: &[Expr],
        context: &str,
        out: &mut Vec<Binding>,
    ) {
        let context = func.str_value(&format!("{}: {context}", self.name));
        let unit = unit_ty(func);
        let args: Vec<Expr> = args.iter().copied().chain([context]).collect();
        let call = packed_call(func, builtin, &args, unit);
        self.namer.bind(func, "_", call, out);
    }

    /// Matches the dims of all jobs: single symbols and constants first, then terms with one
    /// unknown symbol, then terms whose symbols are all known.
    fn run(
        &mut self,
        func: &mut Function,
        jobs: Vec<Job>,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let mut composed: Vec<(&Job, usize)> = Vec::new();
        for job in &jobs {
            let actions = self.simple_actions(func, job, &mut composed);
            self.emit_match(func, job, actions, out);
        }
        self.solve(func, &composed, out)?;
        if self.dims_known {
            return Ok(());
        }
        let terms: Vec<Sym> = composed.iter().map(|(job, dim)| job.dims[*dim]).collect();
        self.compute(func, &terms, out)?;
        for (job, dim) in composed {
            let term = job.dims[dim];
            let note = self.note(func, term, &job.place(dim));
            let slot = i64::from(self.heap.slot(term));
            let actions = self.single_action(job, dim, Action(ASSERT_LOAD, slot, Some(note)));
            self.emit_match(func, job, actions, out);
        }
        Ok(())
    }

    /// The actions for constants, symbols and filled terms; other dims are added to `composed`.
    fn simple_actions<'j>(
        &mut self,
        func: &Function,
        job: &'j Job,
        composed: &mut Vec<(&'j Job, usize)>,
    ) -> Vec<Action> {
        let mut actions = Vec::with_capacity(job.dims.len());
        for (i, &dim) in job.dims.iter().enumerate() {
            let known = func.syms.as_int(dim).is_some() || self.heap.is_filled(dim);
            let action = if job.proved[i] || (self.dims_known && known) {
                Action(NO_OP, 0, None)
            } else if let Some(value) = func.syms.as_int(dim) {
                Action(ASSERT_IMM, value, None)
            } else if self.heap.is_filled(dim) {
                let note = self.note(func, dim, &job.place(i));
                Action(ASSERT_LOAD, i64::from(self.heap.slot(dim)), Some(note))
            } else if let Some(var) = func.syms.as_var(dim) {
                let slot = self.heap.slot(dim);
                self.heap.fill(&func.syms, dim);
                self.origins.insert(var, job.place(i));
                Action(STORE, i64::from(slot), None)
            } else {
                composed.push((job, i));
                Action(NO_OP, 0, None)
            };
            actions.push(action);
        }
        actions
    }

    /// What the dim at `place` must equal, for messages: the term, then a tab and the origin of its
    /// symbols.
    fn note(&self, func: &Function, term: Sym, place: &str) -> String {
        let wholes = size_origins::DivisibleSizes::of(func);
        let text = wholes.in_user_symbols(&func.syms.display(term).to_string());
        let origin = |v| self.origins.get(&v).map(String::as_str);
        match size_origins::describe_origins(&func.syms, term, place, &wholes, origin) {
            Some(told) => format!("{text}\t{told}"),
            None => text,
        }
    }

    fn single_action(&self, job: &Job, dim: usize, action: Action) -> Vec<Action> {
        let mut action = Some(action);
        (0..job.dims.len())
            .map(|i| {
                let here = if i == dim { action.take() } else { None };
                here.unwrap_or(Action(NO_OP, 0, None))
            })
            .collect()
    }

    /// Defines the symbols that occur only in composed dims.
    fn solve(
        &mut self,
        func: &mut Function,
        composed: &[(&Job, usize)],
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let mut open: Vec<usize> = (0..composed.len()).collect();
        while !open.is_empty() {
            let before = open.len();
            let mut still_open = Vec::new();
            for index in open {
                let (job, dim) = composed[index];
                let unknown = self.unknown_symbols(func, job.dims[dim]);
                match unknown {
                    0 => {}
                    // Another dim may determine a symbol that cannot be solved here.
                    1 if self.solve_one(func, job, dim, out)? => {}
                    _ => still_open.push(index),
                }
            }
            if still_open.len() == before {
                let (job, dim) = composed[still_open[0]];
                return Err(self.unsolvable(func, job, dim));
            }
            open = still_open;
        }
        Ok(())
    }

    fn unknown_symbols(&self, func: &Function, term: Sym) -> usize {
        let vars = func.syms.free_vars(term);
        vars.into_iter().filter(|&v| !self.heap.is_filled(func.syms.var(v))).count()
    }

    fn unsolvable(&self, func: &Function, job: &Job, dim: usize) -> PassError {
        let text = func.syms.display(job.dims[dim]);
        let problem = Problem::new(format!(
            "{} is {text}, which does not define its symbols",
            job.place(dim)
        ));
        PassError::User(vec![problem.with_help(
            "give each symbol a dim of its own, or use a dim that is linear in one new symbol, such as n * 2 + 1",
        )])
    }

    /// Defines the one unknown symbol of a dim from the dim's value, if that determines it.
    fn solve_one(
        &mut self,
        func: &mut Function,
        job: &Job,
        dim: usize,
        out: &mut Vec<Binding>,
    ) -> Result<bool, PassError> {
        let pattern = job.dims[dim];
        let vars = func.syms.free_vars(pattern);
        let known: Vec<SymVar> =
            vars.into_iter().filter(|&v| self.heap.is_filled(func.syms.var(v))).collect();
        // Messages about its arithmetic name the size.
        let size = job.place(dim);
        let known = |v| known.contains(&v);
        let Some(solution) = solve_match(&mut func.syms, pattern, &size, &known) else {
            return Ok(false);
        };
        let observed = func.syms.var(solution.observed);
        let slot = i64::from(self.heap.slot(observed));
        let actions = self.single_action(job, dim, Action(STORE, slot, None));
        self.emit_match(func, job, actions, out);
        self.heap.fill(&func.syms, observed);
        // A value that is not a valid size is clamped to 0; the check of the whole term then fails
        // with the right message.
        let zero = func.syms.int(0);
        let value = func.syms.max(solution.value, zero);
        let symbol = func.syms.var(solution.var);
        self.compute_as(func, &[(value, symbol)], out)?;
        self.origins.insert(solution.var, job.place(dim));
        Ok(true)
    }

    fn emit_match(
        &mut self,
        func: &mut Function,
        job: &Job,
        actions: Vec<Action>,
        out: &mut Vec<Binding>,
    ) {
        if actions.iter().all(|a| a.0 == NO_OP) {
            return;
        }
        self.heap_read |= actions.iter().any(|a| a.0 == ASSERT_LOAD);
        let uses_heap = actions.iter().any(|a| a.0 == STORE || a.0 == ASSERT_LOAD);
        let heap = if uses_heap { self.heap_expr(func) } else { self.no_heap(func) };
        let mut args = vec![job.value, heap];
        if !job.scalar {
            args.push(prim_int(func, actions.len() as i64));
        }
        let mut context = job.subject.clone();
        for Action(code, operand, note) in actions {
            args.extend([prim_int(func, code), prim_int(func, operand)]);
            context.push('\n');
            context.push_str(&note.unwrap_or_default());
        }
        context.truncate(context.trim_end().len());
        let builtin =
            if job.scalar { "vm.builtin.match_prim_value" } else { "vm.builtin.match_shape" };
        self.check(func, builtin, &args, &context, out);
    }
}

/// The description of a call's result in messages, if nothing has checked it.
fn unchecked_result(func: &Function, binding: &Binding) -> Option<String> {
    let ExprData::Call { callee, args, .. } = func.expr(binding.value) else { return None };
    let callee = match callee {
        Callee::Op(WHILE_LOOP) => return Some("the result of the loop".into()),
        Callee::Op(_) => return None,
        Callee::Expr(callee) => *callee,
    };
    let of_value = |e: Expr| match func.expr(e) {
        ExprData::Var(v) => format!("the result of '{}'", func.var(*v).name),
        _ => "the result of a function value".into(),
    };
    match func.expr(callee) {
        ExprData::Global(_) => None,
        ExprData::Extern(name) => match &**func.str(*name) {
            name if name.starts_with("vm.builtin.invoke_") => {
                func.list(*args).first().map(|&e| of_value(e))
            }
            name if name.starts_with("vm.builtin.") => None,
            name => Some(format!("the result of packed function '{name}'")),
        },
        _ => Some(of_value(callee)),
    }
}

/// Creates a job. Dims that the value's own type has are proved.
fn job(value: Expr, dims: Box<[Sym]>, have: Option<&[Sym]>, subject: String, scalar: bool) -> Job {
    let proved = match have {
        Some(have) if have.len() == dims.len() => {
            have.iter().zip(&dims).map(|(a, b)| a == b).collect()
        }
        _ => vec![false; dims.len()],
    };
    Job { value, dims, proved, subject, scalar }
}
