//! The interface of offload rules. A rule replaces a call of an operator, together with the epilogue that reads its result, by a
//! kernel call. It keeps the call if the kernel does not support it or would not be faster, and states the reason
//! ([`KeepReason`]). Limits that depend on the CPU are in `pliant-machine/src/compile_time_profitability.rs`, others in the rules.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ir::relax::{Binding, Callee, Expr, Function, Type, Var};
use pliant_ir::{AttrValue, Attrs, DType, Op, OpRegistry};
use pliant_ops::legalize::TirCall;
use pliant_pass::binding_rewrites::Namer;
use pliant_pass::pattern::Defs;
use pliant_pass::{MayWrite, PassContext, PassError};
use rustc_hash::FxHashSet;

use crate::common::matmul_and_conv_operands::{ADD, MatrixProduct};
use crate::common::operators_after_lowering::op_call;
use crate::common::shared_loop_functions::LoopFunctions;
use crate::offload::epilogue_activations::Readers;
use crate::offload::int8_epilogue::CAST;

/// The point of the pipeline at which an offload rule runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The rule runs before constant folding, which would replace dequantized constants by float copies.
    Dequantized,
    /// The rule runs after constant folding and before layouts are rewritten.
    Composite,
    /// The rule runs after layouts are rewritten.
    Kernel,
}

impl Stage {
    /// All stages, in the order in which they run.
    pub const ALL: [Stage; 3] = [Stage::Dequantized, Stage::Composite, Stage::Kernel];

    /// The name of the pass that applies the rules of the stage.
    pub const fn pass(self) -> &'static str {
        match self {
            Stage::Dequantized => "OffloadDequantized",
            Stage::Composite => "OffloadComposites",
            Stage::Kernel => "OffloadKernels",
        }
    }
}

/// A function that creates a rule for one run of the pass.
pub type MakeRule = dyn Fn(&PassContext) -> Result<Box<dyn Rule>, PassError> + Send + Sync;

/// An entry in the table of offload rules: the name of the rule, its kernel, when it runs, and how it is created.
#[derive(Clone)]
pub struct RuleInfo {
    /// The name of the rule.
    pub name: Cow<'static, str>,
    /// The kernel that the rule calls: a declared kernel, or a packed function. `None` for a rule that rewrites to other operators.
    pub kernel: Option<Cow<'static, str>>,
    /// A one-line description of what the rule replaces.
    pub doc: Cow<'static, str>,
    /// The stage at which the rule runs.
    pub stage: Stage,
    /// The operators on whose calls the rule is tried; empty for all operators.
    pub roots: Cow<'static, [Op]>,
    /// Whether the kernel belongs to the kernel library. The setting `kernels="off"` disables such rules.
    pub library: bool,
    /// The function that creates the rule for one run of the pass.
    pub make: Arc<MakeRule>,
}

impl RuleInfo {
    /// Creates the table entry of an offload rule of this crate that calls a kernel of the kernel library.
    pub(super) fn builtin(
        name: &'static str,
        kernel: &'static str,
        doc: &'static str,
        stage: Stage,
        roots: &'static [Op],
        make: fn(&PassContext) -> Result<Box<dyn Rule>, PassError>,
    ) -> Self {
        let kernel = Some(kernel.into());
        RuleInfo { kernel, ..Self::rewriting(name, doc, stage, roots, make) }
    }

    /// Creates the table entry of a rule of this crate that rewrites calls to other operators, which other rules then replace by
    /// kernel calls.
    pub(super) fn rewriting(
        name: &'static str,
        doc: &'static str,
        stage: Stage,
        roots: &'static [Op],
        make: fn(&PassContext) -> Result<Box<dyn Rule>, PassError>,
    ) -> Self {
        let (name, kernel, doc) = (name.into(), None, doc.into());
        let (roots, library, make) = (roots.into(), true, Arc::new(make));
        RuleInfo { name, kernel, doc, stage, roots, library, make }
    }
}

impl fmt::Debug for RuleInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleInfo").field("name", &self.name).field("stage", &self.stage).finish()
    }
}

/// A rule that replaces operator calls by kernel calls. A run of the offload pass creates one object for each rule, so the
/// object may cache data, such as packed constants, during the run.
pub trait Rule {
    /// Runs before the rule is tried on the first call of a function.
    fn begin(&mut self, _: &Function) {}

    /// Tries to replace the call at a site.
    ///
    /// # Errors
    /// If the replacement fails; this ends the compilation. A decision to keep the call is not an error.
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError>;

    /// Runs once for each function in which the rule replaced a call, after the rule has been tried on the last call.
    ///
    /// # Errors
    /// If this method returns an error, the compilation ends.
    fn finish(&mut self, _: &mut Function, _: &PassContext, _: &MayWrite) -> Result<(), PassError> {
        Ok(())
    }
}

/// The decision of a rule about a call: the replacement of the call, or the reason why the call stays unchanged.
pub type Decision = Result<Offloaded, KeepReason>;

/// A kernel call, or a call of another operator, that replaces one or more bindings.
#[derive(Clone, Debug)]
pub struct Offloaded {
    /// The variable whose value the call computes. It is the variable of the binding on which the rule was tried, or that of the
    /// last binding of the epilogue that follows.
    pub result: Var,
    /// The variables, other than `result`, whose bindings the call replaces: those of intermediate results, such as the result of a
    /// matmul whose epilogue the call also computes. Nothing else reads them, and their bindings are removed.
    pub removed: Vec<Var>,
    /// The call that replaces the bindings.
    pub value: Expr,
}

/// The reason why a rule does not replace a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// The rule is not meant for this kind of call, so no remark is made.
    NotApplicable,
    /// The rule is meant for this kind of call, but the kernel does not support this call or would not be faster. A remark states
    /// the reason.
    Because(Cow<'static, str>),
}

impl From<&'static str> for KeepReason {
    fn from(reason: &'static str) -> Self {
        KeepReason::Because(reason.into())
    }
}

/// The readers of a function's variables, and the values of the variables.
pub type ReadersAndDefs = (Readers, Defs);

/// A call on which a rule is tried.
pub struct Site<'a> {
    /// The function that contains the call. Rules may add to its arenas, and bind values with [`Site::emit`].
    pub func: &'a mut Function,
    /// The binding of the call: the root of the match, which may also include operators on its result.
    pub root: Binding,
    /// Whether the binding of the call is in a dataflow block.
    pub dataflow: bool,
    /// The variables that earlier replacements by this rule compute or remove.
    pub replaced_vars: &'a FxHashSet<Var>,
    /// The loop functions that rules have created so far.
    pub loop_functions: &'a mut LoopFunctions,
    /// The context of the pass.
    pub ctx: &'a PassContext,
    /// The functions of the module that may write to their arguments.
    pub writers: &'a MayWrite,
    /// The readers and the values of the function's variables, which [`Site::uses`] computes when they are first needed.
    pub(super) uses: &'a OnceCell<ReadersAndDefs>,
    pub(super) namer: &'a mut Option<Namer>,
    /// The bindings that [`Site::emit`] has created. They are inserted directly in front of the binding whose value the rule
    /// replaces.
    pub(super) bindings: Vec<Binding>,
}

impl<'a> Site<'a> {
    /// Returns the readers and the values of the function's variables.
    pub fn uses(&self) -> &'a ReadersAndDefs {
        let collect = |func: &Function, ops: &dyn OpRegistry| {
            (Readers::of(func), Defs::of(func, ops, Some(self.writers)))
        };
        self.uses.get_or_init(|| collect(self.func, self.ctx.ops))
    }

    /// Inserts a binding of `value` directly in front of the binding whose value the rule replaces, in the same block. Returns
    /// the new variable as an operand.
    pub fn emit(&mut self, value: Expr) -> Expr {
        let namer = self.namer.get_or_insert_with(|| Namer::new(self.func));
        namer.bind(self.func, "lv", value, &mut self.bindings)
    }

    /// Creates a call of an operator, and infers its result type.
    ///
    /// # Errors
    /// If the type rule fails, which is an internal error.
    pub fn call(&mut self, op: Op, args: &[Expr], attrs: Attrs) -> Result<Expr, PassError> {
        let attrs = self.ctx.ops.complete(op, attrs);
        let ty = self.ctx.ops.infer(self.func, op, args, &attrs, &[]);
        let ty = ty.map_err(|e| PassError::internal(e.message))?;
        Ok(self.func.call(Callee::Op(op), args, attrs, &[], ty))
    }

    /// Creates the call `R.astype(e, dtype)`.
    ///
    /// # Errors
    /// The same errors as [`Site::call`].
    pub fn cast(&mut self, e: Expr, dtype: DType) -> Result<Expr, PassError> {
        self.call(CAST, &[e], Attrs::default().with("dtype", AttrValue::DType(dtype)))
    }

    /// Replaces the call on which the rule is tried, and the bindings of `removed`, by a call of a loop function, which computes
    /// `result`. The call must return the type of `result`.
    pub fn offload(&mut self, call: TirCall, result: Var, removed: Vec<Var>) -> Decision {
        let ty = self.func.var(result).ty;
        self.offload_as(call, &[ty], result, removed)
    }

    /// Replaces the call on which the rule is tried, and the bindings of `removed`, by a call of a loop function, whose results
    /// must have the given types.
    pub fn offload_as(
        &mut self,
        call: TirCall,
        tys: &[Type],
        result: Var,
        removed: Vec<Var>,
    ) -> Decision {
        if call.out_tys != tys {
            return Err(
                "the declared type of the operator's result differs from the type of the kernel's result"
                    .into(),
            );
        }
        let value = self.loop_functions.call(self.func, call);
        Ok(Offloaded { result, removed, value })
    }

    /// Replaces the call on which the rule is tried, and the bindings of `removed`, by a call of a library kernel. Its result has
    /// the type of the value to which `result` is bound; the declared type of `result` may be less precise.
    pub fn call_kernel(&mut self, call: NewKernelCall, result: Var, removed: Vec<Var>) -> Decision {
        let value = self.func.var_expr(result);
        let value = self.uses().1.value(self.func, value);
        let ty = self.func.expr_ty(value);
        self.call_kernel_as(call, &[ty], result, removed)
    }

    /// Replaces the call on which the rule is tried, and the bindings of `removed`, by a call of a library kernel, whose results
    /// have the given types. The type rule of `R.call_kernel` decides whether the kernel supports the operands and results.
    pub fn call_kernel_as(
        &mut self,
        call: NewKernelCall,
        tys: &[Type],
        result: Var,
        removed: Vec<Var>,
    ) -> Decision {
        match call.add_to(self.func, self.ctx.ops, tys) {
            Ok(value) => Ok(Offloaded { result, removed, value }),
            Err(error) => Err(KeepReason::Because(error.message.into())),
        }
    }

    /// Replaces a matmul by a call of a loop function that does not add the bias. The bias becomes a separate addition.
    pub fn offload_product(&mut self, product: &MatrixProduct, call: TirCall) -> Decision {
        let (root, ty) = (self.root.var, self.func.expr_ty(self.root.value));
        let offloaded = self.offload_as(call, &[ty], root, Vec::new())?;
        Ok(self.with_bias(product, offloaded))
    }

    /// Replaces a matmul by a call of a library kernel that does not add the bias. The bias becomes a separate addition.
    pub fn call_product_kernel(
        &mut self,
        product: &MatrixProduct,
        call: NewKernelCall,
    ) -> Decision {
        let (root, ty) = (self.root.var, self.func.expr_ty(self.root.value));
        let offloaded = self.call_kernel_as(call, &[ty], root, Vec::new())?;
        Ok(self.with_bias(product, offloaded))
    }

    /// Adds the bias of a matmul, if it has one, to the result of its replacement.
    fn with_bias(&mut self, matmul: &MatrixProduct, mut offloaded: Offloaded) -> Offloaded {
        if let Some(bias) = matmul.bias {
            let (product, ty) = (self.emit(offloaded.value), self.func.expr_ty(self.root.value));
            offloaded.value = op_call(self.func, ADD, &[product, bias], ty);
        }
        offloaded
    }
}
