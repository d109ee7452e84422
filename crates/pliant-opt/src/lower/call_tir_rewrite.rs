//! # What it does
//! Allocates the outputs of `R.call_tir` and `R.call_dps_packed` explicitly with `R.builtin.alloc_tensor`, and passes the inputs,
//! the outputs and the extra size arguments to the function, in that order. If the shape of an output is the value of a shape
//! variable, a `match_cast` of this variable first defines the dims. If not even the rank is known, a packed function writes to the
//! result of `R.zeros` with this shape.
//!
//! # Before
//! ```python
//! @T.prim_func(private=True)
//! def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
//!     for i in range(4):
//!         with T.block("exp"):
//!             vi = T.axis.spatial(4, i)
//!             B[vi] = T.exp(A[vi])
//!
//! @R.function
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     cls = Module
//!     with R.dataflow():
//!         gv = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), "float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @T.prim_func(private=True)
//! def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
//!     for i in range(4):
//!         with T.block("exp"):
//!             vi = T.axis.spatial(4, i)
//!             B[vi] = T.exp(A[vi])
//!
//! @R.function
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     R.func_attr({"relax.force_pure": True})
//!     cls = Module
//!     gv: R.Tensor((4,), "float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
//!     _: R.Tuple = cls.exp(x, gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing. Dataflow blocks become plain blocks first, because the new calls have side effects.
//!
//! # Keeps
//! Names and types of the variables bound to calls.
//!
//! The purity of functions: the calls only write to new tensors, so a pure function gets the attribute `relax.force_pure`. If a
//! function of the module has in-place calls, all functions become impure instead.
//!
//! # Never
//! Shares memory between outputs.

use pliant_ir::attr_names::INPLACE_INDICES;
use pliant_ir::op::{CALL_DPS_PACKED, CALL_TIR, CALL_TIR_INPLACE};
use pliant_ir::relax::{
    Binding, Callee, Expr, ExprData, Function, TensorShape, Type, TypeData, Var,
};
use pliant_ir::{AttrValue, Attrs, DType, IRModule, Op, Span, Sym};
use pliant_pass::binding_rewrites::{Namer, rewrite_bindings};
use pliant_pass::pass::for_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError, Problem};

use crate::common::operators_after_lowering::{ALLOC_TENSOR, op_call, prim_int, unit_ty};
use crate::common::purity_after_lowering::{flatten_blocks, force_pure, make_all_impure};
use crate::common::shapes_and_size_bounds::shape_dims;
use crate::memory::copy_written_views::CopyWrittenViews;

/// The operator `R.zeros(shape, dtype)`.
const ZEROS: Op = Op::new("relax.zeros");

/// The pass that allocates the outputs of destination-passing calls explicitly. See the module documentation.
pub struct CallTirRewrite;

impl ModulePass for CallTirRewrite {
    fn name(&self) -> &str {
        "CallTIRRewrite"
    }

    fn run(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        // After this pass, in-place calls can no longer be recognized.
        let in_place = module.has_inplace_calls();
        let mut module = CopyWrittenViews.run(module, ctx)?;
        for_each_relax(&mut module, ctx, |_, func| {
            let changed = rewrite_calls(func)?;
            // The calls only write to tensors that the function allocates, so its purity and that of its callers do not change.
            if changed && !in_place {
                force_pure(func);
            }
            Ok(())
        })?;
        if in_place {
            make_all_impure(&mut module);
        }
        Ok(module)
    }
}

/// Rewrites the destination-passing calls of a function, such as `R.call_tir`. Returns whether there were any.
fn rewrite_calls(func: &mut Function) -> Result<bool, PassError> {
    let mut rewriter = Rewriter { namer: None, changed: false };
    flatten_blocks(func);
    rewrite_bindings(func, |func, binding, out| rewriter.rewrite_binding(func, binding, out))?;
    Ok(rewriter.changed)
}

/// Rewrites the destination-passing calls of one function, such as `R.call_tir`, to allocations of the outputs and direct calls
/// that receive the outputs as arguments.
struct Rewriter {
    namer: Option<Namer>,
    changed: bool,
}

impl Rewriter {
    fn namer(&mut self, func: &Function) -> &mut Namer {
        self.namer.get_or_insert_with(|| Namer::new(func))
    }

    /// Records that the function changes, and returns the source location of `var`, the variable of the rewritten call. New
    /// bindings get this location.
    fn start_rewrite(&mut self, func: &Function, var: Var) -> Span {
        self.changed = true;
        let span = func.var(var).span;
        self.namer(func).set_span(span);
        span
    }

    fn rewrite_binding(
        &mut self,
        func: &mut Function,
        binding: Binding,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let ExprData::Call {
            callee: Callee::Op(op @ (CALL_TIR | CALL_TIR_INPLACE | CALL_DPS_PACKED)),
            args,
            attrs,
            ..
        } = func.expr(binding.value)
        else {
            out.push(binding);
            return Ok(());
        };
        let (op, args) = (*op, func.list(*args).to_vec());
        let inplace = func.call_attrs(*attrs).get(INPLACE_INDICES).and_then(AttrValue::as_ints);
        let span = self.start_rewrite(func, binding.var);
        let error_at_call = |message: String| PassError::User(vec![Problem::new(message).at(span)]);
        let [callee, inputs, ..] = args[..] else {
            return Err(PassError::internal(format!(
                "a call of {op} must have the called function and the tuple of inputs as operands"
            )));
        };
        if !matches!(
            func.expr(callee),
            ExprData::Global(_) | ExprData::Extern(_) | ExprData::Var(_)
        ) {
            return Err(error_at_call(format!(
                "the first operand of {op} must be the function to call"
            )));
        }
        let sizes = match args.get(2) {
            None => Vec::new(),
            Some(&e) => shape_dims(func, e).ok_or_else(|| {
                error_at_call(format!("'tir_vars' of {op} must be a shape with known dims"))
            })?,
        };
        let mut call_args = self.input_fields(func, inputs, out);
        let result_ty = func.expr_ty(binding.value);
        let tuple = match func.types.get(result_ty) {
            TypeData::Tuple(fields) => Some(fields.to_vec()),
            _ => None,
        };
        let single = tuple.is_none();
        let (mut outputs, mut new_outputs) = (Vec::new(), Vec::new());
        for (k, ty) in tuple.unwrap_or_else(|| vec![result_ty]).into_iter().enumerate() {
            // An output that overwrites an input uses the tensor of that input.
            let input = inplace.as_ref().and_then(|list| usize::try_from(*list.get(k)?).ok());
            let output = match input {
                Some(input) => *call_args.get(input).ok_or_else(|| {
                    error_at_call(format!("the attribute inplace_indices of {op} names input {input}, but the call does not have this input"))
                })?,
                None => {
                    let var =
                        if single { binding.var } else { self.namer(func).var(func, "alloc", ty) };
                    let output = self.allocate(func, op, ty, var, out)?;
                    new_outputs.push(output);
                    output
                }
            };
            outputs.push(output);
        }
        let overwrites = new_outputs.len() < outputs.len();
        call_args.extend(&new_outputs);
        call_args.extend(sizes.iter().map(|&s| func.int_value(s, DType::Int64)));
        let unit = unit_ty(func);
        // The type of a packed function does not describe its result, so the call declares that it returns nothing.
        let is_packed = matches!(func.expr(callee), ExprData::Extern(_));
        let ty_args: &[Type] = if is_packed { &[unit] } else { &[] };
        let call = func.call(Callee::Expr(callee), &call_args, Attrs::default(), ty_args, unit);
        self.namer(func).bind(func, "_", call, out);
        // A single new output is already bound to the variable of the call.
        let result =
            if single { overwrites.then_some(outputs[0]) } else { Some(func.tuple(&outputs)) };
        out.extend(result.map(|result| Binding::bind(binding.var, result)));
        Ok(())
    }

    /// Returns the input tensors of a call, which are the fields of its tuple of inputs.
    fn input_fields(
        &mut self,
        func: &mut Function,
        inputs: Expr,
        out: &mut Vec<Binding>,
    ) -> Vec<Expr> {
        if let Some(fields) = func.tuple_fields(inputs) {
            return fields.to_vec();
        }
        let TypeData::Tuple(fields) = func.ty(inputs) else { return vec![inputs] };
        (0..fields.len() as u32)
            .map(|i| {
                let field = func.tuple_get_item(inputs, i);
                self.namer(func).bind(func, "arg", field, out)
            })
            .collect()
    }

    /// Binds `var` to a new tensor of type `ty`, for an output of a call of `op`.
    ///
    /// # Errors
    /// If the type does not determine shape and data type.
    fn allocate(
        &mut self,
        func: &mut Function,
        op: Op,
        ty: Type,
        var: Var,
        out: &mut Vec<Binding>,
    ) -> Result<Expr, PassError> {
        let span = func.var(var).span;
        let output_error = |message: String| {
            let problem = Problem::new(message)
                .with_help(
                    "give the shape and dtype of each output in out_sinfo, e.g. R.Tensor((n, 4), \"float32\")",
                )
                .at(span);
            PassError::User(vec![problem])
        };
        let TypeData::Tensor { shape, dtype } = func.types.get(ty).clone() else {
            return Err(output_error(format!("an output of a call of {op} is not a tensor")));
        };
        let dtype = dtype.ok_or_else(|| {
            output_error(format!("an output of a call of {op} has an unknown dtype"))
        })?;
        let shape = match shape {
            TensorShape::Dims(dims) => func.shape(&dims),
            TensorShape::Var(v) => match self.match_dims(func, v, out) {
                Some(dims) => func.shape(&dims),
                // Buffers of a loop function have a fixed rank. A packed function accepts any rank.
                None if op == CALL_DPS_PACKED => {
                    return Ok(self.bind_zeros(func, v, dtype, var, out));
                }
                None => {
                    return Err(output_error(format!(
                        "an output of a call of {op} has an unknown rank"
                    )));
                }
            },
            TensorShape::Rank(_) | TensorShape::Unknown => {
                return Err(output_error(format!(
                    "an output of a call of {op} has an unknown shape"
                )));
            }
        };
        let (dtype, device) = (func.dtype_value(dtype), prim_int(func, 0));
        let call = op_call(func, ALLOC_TENSOR, &[shape, dtype, device], ty);
        out.push(Binding::bind(var, call));
        Ok(func.var_expr(var))
    }

    /// Binds `var` to a new tensor of any rank, whose shape is the value of the variable `shape`.
    fn bind_zeros(
        &mut self,
        func: &mut Function,
        shape: Var,
        dtype: DType,
        var: Var,
        out: &mut Vec<Binding>,
    ) -> Expr {
        let (shape, ty) = (func.var_expr(shape), func.var(var).ty);
        let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
        let call = func.call(Callee::Op(ZEROS), &[shape], attrs, &[], ty);
        out.push(Binding::bind(var, call));
        func.var_expr(var)
    }

    /// Returns the dims of a shape variable. If its type does not determine them, inserts a `match_cast` that defines new
    /// symbols. `None` if the rank is unknown.
    fn match_dims(
        &mut self,
        func: &mut Function,
        v: Var,
        out: &mut Vec<Binding>,
    ) -> Option<Vec<Sym>> {
        if let Some(dims) = func.var_ty(v).dims() {
            return Some(dims.to_vec());
        }
        let rank = func.rank_of(func.var(v).ty)?;
        let base = func.var(v).name.clone();
        let mut dims = Vec::with_capacity(rank as usize);
        for i in 0..rank {
            let symbol = func.fresh_sym(&format!("{base}_{i}"));
            dims.push(func.syms.var(symbol));
        }
        let ty = func.intern(TypeData::shape(&dims[..]));
        let var = self.namer(func).var(func, "shape", ty);
        let value = func.var_expr(v);
        out.push(Binding::match_cast(var, value, ty));
        Some(dims)
    }
}
