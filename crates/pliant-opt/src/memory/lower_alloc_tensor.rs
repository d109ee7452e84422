//! # What it does
//! Gives every `R.builtin.alloc_tensor` without a planned storage its own storage, of exactly the size of the tensor.
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
//! @R.function(pure=False)
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     cls = Module
//!     a: R.Tensor((4,), "float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
//!     _: R.Tuple = cls.exp(x, a)
//!     return a
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
//! @R.function(pure=False)
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     cls = Module
//!     storage: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
//!     a: R.Tensor((4,), "float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([4]), R.dtype("float32"))
//!     _: R.Tuple = cls.exp(x, a)
//!     return a
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! All other bindings.
//!
//! # Never
//! Lets two tensors share memory; [`StaticPlanBlockMemory`](crate::memory::plan_memory) does this.

use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function};
use pliant_ir::{DType, Sym};
use pliant_pass::binding_rewrites::{Namer, rewrite_bindings};
use pliant_pass::{FunctionPass, PassContext, PassError};

use crate::common::operators_after_lowering::{
    ALLOC_TENSOR, MEMORY_ALLOC_STORAGE, MEMORY_ALLOC_TENSOR, any_ty, op_call, prim_int,
};
use crate::common::shapes_and_size_bounds::shape_dims;

/// The pass that gives every tensor without a planned storage a storage of its own. See the module documentation.
pub struct LowerAllocTensor;

impl FunctionPass for LowerAllocTensor {
    fn name(&self) -> &str {
        "LowerAllocTensor"
    }

    fn run_on(&self, _: &str, func: &mut Function, _: &PassContext) -> Result<(), PassError> {
        let mut namer = None;
        rewrite_bindings(func, |func, binding, out| {
            let Some(alloc) = TensorAlloc::of(func, &binding)? else {
                out.push(binding);
                return Ok(());
            };
            let namer = namer.get_or_insert_with(|| Namer::new(func));
            let storage = alloc.bind_storage(func, namer, out);
            out.push(alloc.tensor_binding(func, storage));
            Ok(())
        })
    }
}

/// A binding of an `R.builtin.alloc_tensor` call, with the operands of the call.
pub(crate) struct TensorAlloc {
    pub binding: Binding,
    pub shape: Expr,
    pub dtype: Expr,
    pub device: Expr,
    /// The size of the tensor in bytes.
    pub bytes: Sym,
}

impl TensorAlloc {
    /// Returns the parts of a binding of an `R.builtin.alloc_tensor` call; `None` for other bindings.
    ///
    /// # Errors
    /// If the data type is not a constant, or if the shape is unknown.
    pub fn of(func: &mut Function, binding: &Binding) -> Result<Option<TensorAlloc>, PassError> {
        let ExprData::Call { callee: Callee::Op(ALLOC_TENSOR), args, .. } =
            func.expr(binding.value)
        else {
            return Ok(None);
        };
        let args = func.list(*args).to_vec();
        let [shape, dtype_arg, ..] = args[..] else {
            return Err(PassError::internal(
                "a call of R.builtin.alloc_tensor must have a shape and a dtype as operands",
            ));
        };
        let ExprData::DType(dtype) = *func.expr(dtype_arg) else {
            return Err(PassError::user(
                "the dtype operand of R.builtin.alloc_tensor must be a constant",
            ));
        };
        let dims = shape_dims(func, shape).ok_or_else(|| {
            PassError::user(
                "the dims of the shape operand of R.builtin.alloc_tensor must be known; apply R.match_cast to the shape first",
            )
        })?;
        let size = func.syms.int(dtype.size() as i64);
        let bytes = func.syms.product(dims.into_iter().chain([size]));
        let device = args.get(2).copied().unwrap_or_else(|| prim_int(func, 0));
        Ok(Some(TensorAlloc { binding: *binding, shape, dtype: dtype_arg, device, bytes }))
    }

    /// Emits the allocation of a storage of the tensor's size, bound to a new variable.
    pub fn bind_storage(
        &self,
        func: &mut Function,
        namer: &mut Namer,
        out: &mut Vec<Binding>,
    ) -> Expr {
        let size = func.shape(&[self.bytes]);
        let (scope, dtype, ty) =
            (func.str_value("global"), func.dtype_value(DType::UInt8), any_ty(func));
        let call = op_call(func, MEMORY_ALLOC_STORAGE, &[size, self.device, scope, dtype], ty);
        namer.bind(func, "storage", call, out)
    }

    /// Returns the binding that creates the tensor in `storage`, at offset 0.
    pub fn tensor_binding(&self, func: &mut Function, storage: Expr) -> Binding {
        let (offset, ty) = (prim_int(func, 0), func.var(self.binding.var).ty);
        let call =
            op_call(func, MEMORY_ALLOC_TENSOR, &[storage, offset, self.shape, self.dtype], ty);
        Binding::bind(self.binding.var, call)
    }
}
