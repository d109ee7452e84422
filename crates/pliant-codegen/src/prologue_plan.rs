//! The prologue of a loop function as a list of steps: which arguments it loads, which variables they define, and which checks
//! they must pass. A backend generates code for each step, so all backends accept the same arguments and report the same errors.

use pliant_ir::AttrValue;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{Buffer, Expr, ExprData, PrimFunc, Ty, Var, VarTy};
use pliant_tensor::{CheckFailure, DType};
use pliant_tir::check_bounds::UNBOUNDED_PARAMS;
use pliant_tir::format_index_expressions::format_expr;
use pliant_tir::overflow_analysis::SIZE_LIMIT;
use rustc_hash::FxHashSet;

/// Number of requirements that `pliant_check_tensor` checks: rank, element type and layout.
pub const TENSOR_REQUIREMENTS: usize = 3;

/// One step of the prologue of a loop function, which loads and checks its arguments.
#[derive(Clone, Debug)]
pub enum PrologueStep {
    /// Loads the scalar argument at `position`, checks its range, and defines the parameter.
    LoadScalar {
        /// The position of the scalar argument among the arguments of the loop function.
        position: usize,
        /// The variable of the parameter, which the step defines, and its type.
        param: (Var, Ty),
        /// The range in which the argument must be; `None` if every value is valid.
        range: Option<RangeCheck>,
    },
    /// Checks rank, element type and layout of the tensor argument at `position` by a call of `pliant_check_tensor`, which
    /// returns 0 or the 1-based number of the violated requirement.
    CheckTensor {
        /// The position of the tensor argument among the arguments of the loop function.
        position: usize,
        /// The required rank of the tensor argument.
        ndim: usize,
        /// The required element type of the tensor argument.
        dtype: DType,
        /// Whether the tensor argument must be contiguous (row-major without gaps).
        compact: bool,
        /// The error message of each requirement. They occupy consecutive positions in the list of messages.
        messages: [String; TENSOR_REQUIREMENTS],
    },
    /// Loads the dims or the strides of the tensor argument at `position`.
    LoadSizes {
        /// The position of the tensor argument among the arguments of the loop function.
        position: usize,
        /// Whether the step loads the dims or the strides of the tensor.
        list: SizeList,
        /// The range and the use of each dim or stride, in order.
        sizes: Vec<LoadedSize>,
    },
    /// Defines a variable as 0: the element offset of a buffer parameter, for which the ABI guarantees 0.
    DefineZero(Var),
    /// Checks a dim or stride that an earlier step has loaded and kept under this number ([`SizeUse::Defer`]).
    CheckDeferred(usize, SizeCheck),
    /// Checks that the element offset of a buffer parameter is 0, as the ABI requires. The field [`SizeCheck::expected`] contains
    /// the expression of the offset.
    CheckZero(SizeCheck),
    /// Determines the address of a buffer parameter's elements, so that the body can access them. Earlier steps have
    /// defined the sizes of the buffer.
    BindBuffer {
        /// The position of the tensor argument among the arguments of the loop function.
        position: usize,
        /// The buffer that the parameter stands for.
        buffer: Buffer,
    },
}

/// A list of sizes in the descriptor of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeList {
    /// The dims of the tensor.
    Shape,
    /// The strides of the tensor, in elements.
    Strides,
}

/// A dim or stride of a tensor argument.
#[derive(Clone, Debug)]
pub struct LoadedSize {
    /// The range in which the dim or stride must be.
    pub range: RangeCheck,
    /// What the prologue does with the dim or stride: it defines a variable, or the value is checked now or later.
    pub usage: SizeUse,
}

/// What a dim or stride of a tensor argument is used for.
#[derive(Clone, Debug)]
pub enum SizeUse {
    /// The dim or stride defines this variable, which has no value before.
    Define(Var),
    /// The dim or stride must equal an expression whose variables are all defined.
    Check(SizeCheck),
    /// The dim or stride must equal an expression with variables that later arguments define. It is kept under this number, and the
    /// step [`PrologueStep::CheckDeferred`] with the number checks it.
    Defer(usize),
}

/// The check that a dim, stride or offset equals an expression.
#[derive(Clone, Debug)]
pub struct SizeCheck {
    /// The expression that the size must equal.
    pub expected: Expr,
    /// The error message (a shape error) if the values differ, or if the expression overflows.
    pub message: String,
}

/// The check that a size or a scalar argument is in the range from `min` to [`SIZE_LIMIT`].
#[derive(Clone, Debug)]
pub struct RangeCheck {
    /// The smallest value in the range: 0 or negative.
    pub min: i64,
    /// The error message (a shape error) if the value is not in the range.
    pub message: String,
}

impl RangeCheck {
    fn new(min: i64, subject: &str) -> RangeCheck {
        let range = if min == 0 { "0 to 2**40" } else { "-2**40 to 2**40" };
        RangeCheck { min, message: format!("{subject} is not in the range {range}") }
    }
}

/// Returns the prologue of a loop function.
///
/// # Errors
/// If a parameter has a vector type, which no caller can pass.
pub fn prologue_plan(f: &PrimFunc) -> Result<Vec<PrologueStep>, String> {
    let mut planner = Planner { f, defined: FxHashSet::default(), deferred: Vec::new() };
    let (mut steps, mut tensors) = (Vec::new(), Vec::new());
    for (position, &param) in f.params.iter().enumerate() {
        match f.var(param).ty {
            VarTy::Handle => {
                let buffer = f.buffer_map[&param];
                steps.push(check_tensor(f, position, buffer));
                tensors.push((position, buffer));
            }
            VarTy::Value(ty) => steps.push(planner.load_scalar(position, param, ty)?),
        }
    }
    for &(position, buffer) in &tensors {
        planner.load_sizes(position, buffer, &mut steps);
    }
    steps.append(&mut planner.deferred);
    steps.extend(
        tensors.into_iter().map(|(position, buffer)| PrologueStep::BindBuffer { position, buffer }),
    );
    Ok(steps)
}

fn check_tensor(f: &PrimFunc, position: usize, buffer: Buffer) -> PrologueStep {
    let data = f.buffer(buffer);
    let (ndim, dtype) = (data.shape.len(), data.dtype);
    let arg = format!("argument {position} ('{}')", data.name);
    PrologueStep::CheckTensor {
        position,
        ndim,
        dtype,
        compact: data.strides.is_empty(),
        messages: [
            CheckFailure::Shape.mark(&format!("{arg} does not have rank {ndim}")),
            CheckFailure::Shape.mark(&format!("{arg} does not have element type {dtype}")),
            CheckFailure::Shape.mark(&format!("{arg} has a null address or is not contiguous")),
        ],
    }
}

/// The state of [`prologue_plan`] while it determines the steps of the prologue of a loop function.
struct Planner<'f> {
    f: &'f PrimFunc,
    /// The variables that the steps of the prologue define so far.
    defined: FxHashSet<Var>,
    /// The checks of dims and strides that must wait until later arguments have defined the variables in the expected values.
    deferred: Vec<PrologueStep>,
}

impl Planner<'_> {
    fn load_scalar(&mut self, position: usize, param: Var, ty: Ty) -> Result<PrologueStep, String> {
        let name = &self.f.var(param).name;
        if ty.lanes != 1 {
            return Err(format!(
                "the parameter '{name}' has the vector type {ty}, but a parameter must be a scalar or a buffer"
            ));
        }
        let range = (ty == Ty::I64 && !self.is_unbounded(position))
            .then(|| RangeCheck::new(-SIZE_LIMIT, &format!("argument {position} ('{name}')")));
        self.defined.insert(param);
        Ok(PrologueStep::LoadScalar { position, param: (param, ty), range })
    }

    /// Adds the steps for dims, strides and element offset of a tensor argument. A size that is a single undefined variable
    /// defines this variable; every other size is checked.
    fn load_sizes(&mut self, position: usize, buffer: Buffer, steps: &mut Vec<PrologueStep>) {
        let f = self.f;
        let data = f.buffer(buffer);
        let arg = format!("argument {position} ('{}')", data.name);
        for (exprs, list, noun, min) in [
            (&data.shape, SizeList::Shape, "dim", 0),
            (&data.strides, SizeList::Strides, "stride", -SIZE_LIMIT),
        ] {
            if exprs.is_empty() {
                continue;
            }
            let sizes = exprs.iter().enumerate().map(|(index, &e)| {
                let size = format_expr(f, e);
                let range = RangeCheck::new(min, &format!("{arg}: {noun} {index} ({size})"));
                let message = format!("{arg}: {noun} {index} is not {size}");
                LoadedSize { range, usage: self.size_use(e, message) }
            });
            let sizes = sizes.collect();
            steps.push(PrologueStep::LoadSizes { position, list, sizes });
        }
        if let Some(offset) = data.elem_offset {
            match self.undefined_var(offset) {
                Some(v) => {
                    self.defined.insert(v);
                    steps.push(PrologueStep::DefineZero(v));
                }
                None => {
                    let message = format!("{arg}: the element offset is not 0");
                    self.deferred
                        .push(PrologueStep::CheckZero(SizeCheck { expected: offset, message }));
                }
            }
        }
    }

    fn size_use(&mut self, expected: Expr, message: String) -> SizeUse {
        if let Some(v) = self.undefined_var(expected) {
            self.defined.insert(v);
            return SizeUse::Define(v);
        }
        let check = SizeCheck { expected, message };
        if self.is_defined(expected) {
            return SizeUse::Check(check);
        }
        let number = self.deferred.len();
        self.deferred.push(PrologueStep::CheckDeferred(number, check));
        SizeUse::Defer(number)
    }

    /// Whether the steps of the prologue so far define all variables of an expression.
    fn is_defined(&self, e: Expr) -> bool {
        let mut defined = true;
        for_each_expr(self.f, e, |e| {
            if let ExprData::Var(v) = self.f.expr(e) {
                defined &= self.defined.contains(v);
            }
        });
        defined
    }

    /// Whether the int64 parameter at this position may have any value, so that the prologue does not check its range.
    fn is_unbounded(&self, position: usize) -> bool {
        match self.f.attrs.get(UNBOUNDED_PARAMS) {
            Some(AttrValue::List(list)) => list.contains(&AttrValue::Int(position as i64)),
            _ => false,
        }
    }

    /// If an expression is a single int64 variable that is not defined yet, returns the variable.
    fn undefined_var(&self, e: Expr) -> Option<Var> {
        match self.f.expr(e) {
            ExprData::Var(v) if !self.defined.contains(v) && self.f.expr_ty(e) == Ty::I64 => {
                Some(*v)
            }
            _ => None,
        }
    }
}
