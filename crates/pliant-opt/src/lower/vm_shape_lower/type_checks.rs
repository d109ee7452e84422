//! Emits the run-time checks that values have the expected types. Symbols that occur for the first time in an expected type are
//! defined by the dims of the value.

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

use super::lower_function::{FunctionLowering, erase_symbolic_dims};
use crate::common::operators_after_lowering::{packed_call, prim_int, unit_ty};

/// Action code of `vm.builtin.match_shape`: the dim must equal the operand of the action.
const ASSERT_IMM: i64 = 0;
/// Action code of `vm.builtin.match_shape`: store the dim in the slot of the shape heap that is the operand of the action.
pub(super) const STORE: i64 = 1;
/// Action code of `vm.builtin.match_shape`: ignore the dim.
const NO_OP: i64 = 2;
/// Action code of `vm.builtin.match_shape`: the dim must equal the value in the slot of the shape heap that is the operand of the
/// action.
const ASSERT_LOAD: i64 = 3;

/// A value whose dims are compared with expected dims at run time.
struct DimMatch {
    value: Expr,
    /// The dims that the value is expected to have.
    dims: Box<[Sym]>,
    /// For each dim, whether it is already proved to have the expected size.
    proved: Vec<bool>,
    /// The description of the value in error messages, such as `'x'`.
    subject: String,
    /// Whether the value is an integer scalar; otherwise it is a tensor or a shape.
    scalar: bool,
}

/// The action for one dim: (code, operand, text of the expected value for the message of a failed check).
struct DimAction(i64, i64, Option<String>);

impl DimMatch {
    fn describe_dim(&self, dim: usize) -> String {
        if self.scalar { self.subject.clone() } else { format!("{} dim {dim}", self.subject) }
    }
}

impl FunctionLowering<'_> {
    /// Emits the checks of the function's parameters, and computes the sizes whose symbols the parameters define.
    pub fn match_params(
        &mut self,
        func: &mut Function,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let mut params: Vec<_> = func.params().iter().copied().enumerate().collect();
        // Captured values are matched first, because they are correct. If an argument disagrees with them, the message then names
        // the argument.
        let captured = func.attrs.get(NUM_CAPTURED).and_then(AttrValue::as_int).unwrap_or(0);
        let captured = usize::try_from(captured).unwrap_or(0).min(params.len());
        params.rotate_right(captured);
        let any = func.intern(TypeData::Any);
        let mut dim_matches = Vec::new();
        for (i, param) in params {
            let subject = format!("'{}'", func.param_label(i));
            let (value, ty) = (func.var_expr(param), func.var(param).ty);
            let actual = match self.caller_facts {
                Some(facts) if facts.kinds.get(i) == Some(&true) => {
                    erase_symbolic_dims(func, ty, &mut FxHashMap::default())
                }
                _ => any,
            };
            self.check_kind(func, value, actual, ty, subject, &mut dim_matches, out);
        }
        self.dims_proved = self.caller_facts.is_some_and(|facts| facts.dims);
        let matched = self.match_dims(func, dim_matches, out);
        self.dims_proved = false;
        matched?;
        self.compute_ready(func, out)
    }

    /// Emits the checks that a value of the static type `actual` has the type `expected`, and defines the symbols that occur for
    /// the first time in `expected`.
    pub fn match_value(
        &mut self,
        func: &mut Function,
        value: Expr,
        actual: Type,
        expected: Type,
        subject: String,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let mut dim_matches = Vec::new();
        self.check_kind(func, value, actual, expected, subject, &mut dim_matches, out);
        self.match_dims(func, dim_matches, out)
    }

    /// Emits the checks of a call's result if the callee does not check it: for packed functions, function values and loops.
    pub fn check_call_result(
        &mut self,
        func: &mut Function,
        binding: &Binding,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let Some(subject) = unchecked_result(func, binding) else { return Ok(()) };
        let expected = func.var(binding.var).ty;
        if expected == unit_ty(func) {
            return Ok(());
        }
        let (value, any) = (func.var_expr(binding.var), func.intern(TypeData::Any));
        self.match_value(func, value, any, expected, subject, out)?;
        self.compute_ready(func, out)
    }

    /// Emits a check that a called value is a function, unless its type implies this.
    pub fn check_callee(&mut self, func: &mut Function, call: Expr, out: &mut Vec<Binding>) {
        let ExprData::Call { callee: Callee::Expr(callee), args, .. } = *func.expr(call) else {
            return;
        };
        let called = match func.expr(callee) {
            ExprData::Extern(name) if calls_first_operand(func.str(*name)) => {
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
            self.emit_check(func, "vm.builtin.check_func_info", &[called], &subject, out);
        }
    }

    /// Emits a call of `vm.builtin.match_shape` that applies one action, such as [`STORE`], to one dim of a tensor or shape of
    /// rank `rank`.
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
        let dim_match = dim_match(value, dims.into(), None, "an argument".into(), false);
        let actions = self.action_for_dim(&dim_match, dim, DimAction(code, slot, None));
        self.emit_match(func, &dim_match, actions, out);
    }

    /// Rewrites a call of a closure whose result the function returns to a tail call. Returns `None` for other calls, and if the
    /// function's result type is more precise than `R.Object`, because the function must then check the result.
    pub fn tail_closure_call(
        &mut self,
        func: &mut Function,
        binding: &Binding,
        expected: Type,
    ) -> Option<Expr> {
        if !matches!(func.types.get(expected), TypeData::Any)
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
            ExprData::Extern(name) if calls_first_operand(func.str(*name)) => args,
            ExprData::Extern(_) | ExprData::Global(_) => return None,
            _ => [callee].into_iter().chain(args).collect(),
        };
        let ty = func.expr_ty(binding.value);
        Some(packed_call(func, "vm.builtin.invoke_closure_tail", &args, ty))
    }

    /// Emits the checks of the function's result, unless its type before lowering (`actual`) implies the declared result type.
    pub fn check_result(
        &mut self,
        func: &mut Function,
        result: Expr,
        actual: Type,
        expected: Type,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        if is_subtype(func, actual, expected).is_yes() {
            return Ok(());
        }
        self.match_value(func, result, actual, expected, "the result".into(), out)
    }

    /// Returns a call of `vm.builtin.match_shape` without its stores to the shape heap; `None` if the call only stores. Other
    /// calls are returned unchanged.
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
        args[1] = self.heap_substitute_expr(func);
        let unit = unit_ty(func);
        Some(packed_call(func, &name, &args, unit))
    }

    /// Emits the checks of a value except for its dims (kind, rank, data type, number of fields). Appends the values whose dims
    /// must be compared to `dim_matches`.
    #[expect(
        clippy::too_many_arguments,
        reason = "the arguments are a value, its actual and its expected type, and two output lists"
    )]
    fn check_kind(
        &mut self,
        func: &mut Function,
        value: Expr,
        actual: Type,
        expected: Type,
        subject: String,
        dim_matches: &mut Vec<DimMatch>,
        out: &mut Vec<Binding>,
    ) {
        if actual == expected {
            return;
        }
        let actual_data = func.types.get(actual).clone();
        match func.types.get(expected).clone() {
            TypeData::Any => {}
            TypeData::Tensor { shape, dtype } => {
                let rank = func.rank_of(expected);
                let is_known = actual_data.is_tensor()
                    && (rank.is_none() || rank == func.rank_of(actual))
                    && (dtype.is_none() || dtype == actual_data.dtype());
                if !is_known {
                    let ndim = rank.map_or(-1, i64::from);
                    self.check_tensor(func, value, ndim, dtype, &subject, out);
                }
                if let TensorShape::Dims(dims) = shape {
                    dim_matches.push(dim_match(value, dims, actual_data.dims(), subject, false));
                }
            }
            TypeData::Shape { dims, ndim } => {
                let is_known = matches!(actual_data, TypeData::Shape { .. })
                    && (ndim.is_none() || ndim == func.rank_of(actual));
                if !is_known {
                    let ndim = prim_int(func, ndim.map_or(-1, i64::from));
                    self.emit_check(
                        func,
                        "vm.builtin.check_shape_info",
                        &[value, ndim],
                        &subject,
                        out,
                    );
                }
                if let Some(dims) = dims {
                    dim_matches.push(dim_match(value, dims, actual_data.dims(), subject, false));
                }
            }
            TypeData::Prim { dtype, value: term } => {
                let dtype_arg = func.dtype_value(dtype);
                if actual_data.dtype() != Some(dtype) || actual_data.is_tensor() {
                    self.emit_check(
                        func,
                        "vm.builtin.check_prim_value_info",
                        &[value, dtype_arg],
                        &subject,
                        out,
                    );
                }
                if let Some(term) = term {
                    dim_matches.push(dim_match(value, [term].into(), None, subject, true));
                }
            }
            TypeData::Tuple(fields) => {
                self.check_tuple_kind(func, value, actual_data, &fields, subject, dim_matches, out);
            }
            TypeData::Callable { .. } => {
                if !matches!(actual_data, TypeData::Callable { .. }) {
                    self.emit_check(func, "vm.builtin.check_func_info", &[value], &subject, out);
                }
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the arguments are a value, its actual and its expected type, and two output lists"
    )]
    fn check_tuple_kind(
        &mut self,
        func: &mut Function,
        value: Expr,
        actual: TypeData,
        fields: &[Type],
        subject: String,
        dim_matches: &mut Vec<DimMatch>,
        out: &mut Vec<Binding>,
    ) {
        let actual = match actual {
            TypeData::Tuple(actual) if actual.len() == fields.len() => Some(actual),
            _ => None,
        };
        if actual.is_none() {
            let len = prim_int(func, fields.len() as i64);
            self.emit_check(func, "vm.builtin.check_tuple_info", &[value, len], &subject, out);
        }
        let any = func.intern(TypeData::Any);
        let elements = func.tuple_fields(value).map(<[Expr]>::to_vec);
        for (i, &expected) in fields.iter().enumerate() {
            let actual = actual.as_ref().map_or(any, |h| h[i]);
            if actual == expected || expected == any {
                continue;
            }
            let field = match &elements {
                Some(elements) => elements[i],
                None => {
                    let get = func.tuple_get_item(value, i as u32);
                    self.namer.bind(func, "field", get, out)
                }
            };
            self.check_kind(
                func,
                field,
                actual,
                expected,
                format!("{subject}[{i}]"),
                dim_matches,
                out,
            );
        }
    }

    fn check_tensor(
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
        self.emit_check(func, "vm.builtin.check_tensor_info", &[value, ndim, dtype], subject, out);
    }

    /// Emits a call of a check builtin. The last operand describes the checked value for the error message.
    pub fn emit_check(
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

    /// Emits run-time checks that compare the dims of all values with the expected dims. Expected dims that are symbols or
    /// constants come first, then composite dims such as `n * 2` with one unknown symbol, then composite dims whose symbols are all
    /// known.
    fn match_dims(
        &mut self,
        func: &mut Function,
        dim_matches: Vec<DimMatch>,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let mut composite: Vec<(&DimMatch, usize)> = Vec::new();
        for dim_match in &dim_matches {
            let actions = self.simple_actions(func, dim_match, &mut composite);
            self.emit_match(func, dim_match, actions, out);
        }
        self.solve_symbols(func, &composite, out)?;
        if self.dims_proved {
            return Ok(());
        }
        let terms: Vec<Sym> =
            composite.iter().map(|(dim_match, dim)| dim_match.dims[*dim]).collect();
        self.compute_terms(func, &terms, out)?;
        for (dim_match, dim) in composite {
            let term = dim_match.dims[dim];
            let note = self.expected_text(func, term, &dim_match.describe_dim(dim));
            let slot = i64::from(self.heap.slot(term));
            let actions =
                self.action_for_dim(dim_match, dim, DimAction(ASSERT_LOAD, slot, Some(note)));
            self.emit_match(func, dim_match, actions, out);
        }
        Ok(())
    }

    /// Returns the actions for expected dims that are constants, symbols or sizes that are already in the shape heap. Appends all
    /// other dims, which are composite terms such as `n * 2`, to `composite`.
    fn simple_actions<'j>(
        &mut self,
        func: &Function,
        dim_match: &'j DimMatch,
        composite: &mut Vec<(&'j DimMatch, usize)>,
    ) -> Vec<DimAction> {
        let mut actions = Vec::with_capacity(dim_match.dims.len());
        for (i, &dim) in dim_match.dims.iter().enumerate() {
            let size_is_known = func.syms.as_int(dim).is_some() || self.heap.is_filled(dim);
            let action = if dim_match.proved[i] || (self.dims_proved && size_is_known) {
                DimAction(NO_OP, 0, None)
            } else if let Some(value) = func.syms.as_int(dim) {
                DimAction(ASSERT_IMM, value, None)
            } else if self.heap.is_filled(dim) {
                let note = self.expected_text(func, dim, &dim_match.describe_dim(i));
                DimAction(ASSERT_LOAD, i64::from(self.heap.slot(dim)), Some(note))
            } else if let Some(var) = func.syms.as_var(dim) {
                let slot = self.heap.slot(dim);
                self.heap.mark_filled(&func.syms, dim);
                self.origins.insert(var, dim_match.describe_dim(i));
                DimAction(STORE, i64::from(slot), None)
            } else {
                composite.push((dim_match, i));
                DimAction(NO_OP, 0, None)
            };
            actions.push(action);
        }
        actions
    }

    /// Formats the expected value of a dim for error messages: the symbolic size, then a tab and the origins of its symbols.
    fn expected_text(&self, func: &Function, term: Sym, description: &str) -> String {
        let divisible_sizes = size_origins::DivisibleSizes::of(func);
        let text = divisible_sizes.in_user_symbols(&func.syms.display(term).to_string());
        let origin = |v| self.origins.get(&v).map(String::as_str);
        match size_origins::describe_origins(
            &func.syms,
            term,
            description,
            &divisible_sizes,
            origin,
        ) {
            Some(origin_text) => format!("{text}\t{origin_text}"),
            None => text,
        }
    }

    fn action_for_dim(
        &self,
        dim_match: &DimMatch,
        dim: usize,
        action: DimAction,
    ) -> Vec<DimAction> {
        let mut action = Some(action);
        (0..dim_match.dims.len())
            .map(|i| {
                let here = if i == dim { action.take() } else { None };
                here.unwrap_or(DimAction(NO_OP, 0, None))
            })
            .collect()
    }

    /// Defines the symbols that occur only in composite dims, such as `n` in the dim `n * 2`, by solving for them.
    ///
    /// # Errors
    /// If no dim determines a symbol.
    fn solve_symbols(
        &mut self,
        func: &mut Function,
        composite: &[(&DimMatch, usize)],
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let mut unsolved: Vec<usize> = (0..composite.len()).collect();
        while !unsolved.is_empty() {
            let before = unsolved.len();
            let mut still_unsolved = Vec::new();
            for index in unsolved {
                let (dim_match, dim) = composite[index];
                let unknown = self.count_unknown_symbols(func, dim_match.dims[dim]);
                match unknown {
                    0 => {}
                    // If this dim does not determine its symbol, another dim may.
                    1 if self.solve_symbol(func, dim_match, dim, out)? => {}
                    _ => still_unsolved.push(index),
                }
            }
            if still_unsolved.len() == before {
                let (dim_match, dim) = composite[still_unsolved[0]];
                return Err(self.unsolvable_error(func, dim_match, dim));
            }
            unsolved = still_unsolved;
        }
        Ok(())
    }

    fn count_unknown_symbols(&self, func: &Function, term: Sym) -> usize {
        let vars = func.syms.free_vars(term);
        vars.into_iter().filter(|&v| !self.heap.is_filled(func.syms.var(v))).count()
    }

    fn unsolvable_error(&self, func: &Function, dim_match: &DimMatch, dim: usize) -> PassError {
        let text = func.syms.display(dim_match.dims[dim]);
        let problem = Problem::new(format!(
            "{location} is declared as {text}, but its symbols cannot be computed from the actual size",
            location = dim_match.describe_dim(dim)
        ));
        PassError::User(vec![problem.with_help(
            "declare each symbol as a dim of its own, such as n, or as the only new symbol of a linear dim, such as n * 2 + 1",
        )])
    }

    /// Defines the only unknown symbol of a dim such as `n * 2` by solving for it with the observed value. Returns false if the
    /// value does not determine the symbol.
    fn solve_symbol(
        &mut self,
        func: &mut Function,
        dim_match: &DimMatch,
        dim: usize,
        out: &mut Vec<Binding>,
    ) -> Result<bool, PassError> {
        let pattern = dim_match.dims[dim];
        let vars = func.syms.free_vars(pattern);
        let filled_symbols: Vec<SymVar> =
            vars.into_iter().filter(|&v| self.heap.is_filled(func.syms.var(v))).collect();
        // Messages about arithmetic on the dim describe the dim.
        let size = dim_match.describe_dim(dim);
        let known = |v| filled_symbols.contains(&v);
        let Some(solution) = solve_match(&mut func.syms, pattern, &size, &known) else {
            return Ok(false);
        };
        let observed = func.syms.var(solution.observed);
        let slot = i64::from(self.heap.slot(observed));
        let actions = self.action_for_dim(dim_match, dim, DimAction(STORE, slot, None));
        self.emit_match(func, dim_match, actions, out);
        self.heap.mark_filled(&func.syms, observed);
        // A solution that is not a valid size is clamped to 0. The check of the whole term then fails with the right message.
        let zero = func.syms.int(0);
        let value = func.syms.max(solution.value, zero);
        let symbol = func.syms.var(solution.var);
        self.compute_into(func, &[(value, symbol)], out)?;
        self.origins.insert(solution.var, dim_match.describe_dim(dim));
        Ok(true)
    }

    fn emit_match(
        &mut self,
        func: &mut Function,
        dim_match: &DimMatch,
        actions: Vec<DimAction>,
        out: &mut Vec<Binding>,
    ) {
        if actions.iter().all(|a| a.0 == NO_OP) {
            return;
        }
        self.heap_read |= actions.iter().any(|a| a.0 == ASSERT_LOAD);
        let uses_heap = actions.iter().any(|a| a.0 == STORE || a.0 == ASSERT_LOAD);
        let heap = if uses_heap { self.heap_expr(func) } else { self.heap_substitute_expr(func) };
        let mut args = vec![dim_match.value, heap];
        if !dim_match.scalar {
            args.push(prim_int(func, actions.len() as i64));
        }
        let mut context = dim_match.subject.clone();
        for DimAction(code, operand, note) in actions {
            args.extend([prim_int(func, code), prim_int(func, operand)]);
            context.push('\n');
            context.push_str(&note.unwrap_or_default());
        }
        context.truncate(context.trim_end().len());
        let builtin =
            if dim_match.scalar { "vm.builtin.match_prim_value" } else { "vm.builtin.match_shape" };
        self.emit_check(func, builtin, &args, &context, out);
    }
}

/// Whether a packed function is a VM builtin that calls its first operand.
fn calls_first_operand(name: &str) -> bool {
    matches!(
        name,
        "vm.builtin.invoke_closure"
            | "vm.builtin.invoke_closure_tail"
            | "vm.builtin.invoke_pure_closure"
    )
}

/// Returns the description of a call's result for error messages; `None` if the callee has already checked the result.
fn unchecked_result(func: &Function, binding: &Binding) -> Option<String> {
    let ExprData::Call { callee, args, .. } = func.expr(binding.value) else { return None };
    let callee = match callee {
        Callee::Op(WHILE_LOOP) => return Some("the result of the loop".into()),
        Callee::Op(_) => return None,
        Callee::Expr(callee) => *callee,
    };
    let result_of = |e: Expr| match func.expr(e) {
        ExprData::Var(v) => format!("the result of '{}'", func.var(*v).name),
        _ => "the result of a function value".into(),
    };
    match func.expr(callee) {
        ExprData::Global(_) => None,
        ExprData::Extern(name) => match &**func.str(*name) {
            name if calls_first_operand(name) => func.list(*args).first().map(|&e| result_of(e)),
            name if name.starts_with("vm.builtin.") => None,
            name => Some(format!("the result of packed function '{name}'")),
        },
        _ => Some(result_of(callee)),
    }
}

/// Creates the comparison of a value's dims with the expected dims. Dims that the value's own type implies are marked as proved.
fn dim_match(
    value: Expr,
    dims: Box<[Sym]>,
    actual: Option<&[Sym]>,
    subject: String,
    scalar: bool,
) -> DimMatch {
    let proved = match actual {
        Some(actual) if actual.len() == dims.len() => {
            actual.iter().zip(&dims).map(|(a, b)| a == b).collect()
        }
        _ => vec![false; dims.len()],
    };
    DimMatch { value, dims, proved, subject, scalar }
}
