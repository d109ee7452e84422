//! [`TvmPrecision`]: the registry with type rules that derive only what TVM derives.
//!
//! TVM's type rules do not assume that dims are equal: if the equality of two dims of a result is not proved, only the rank of the
//! result is known. They do not use the values of shape variables, and a result has an unknown data type if the data type of an
//! operand is unknown. Pliant derives more, because it checks assumptions at run time. Programs that inspect the types of single
//! calls, such as TVM's own tests, expect TVM's precision.

use pliant_ir::Attrs;
use pliant_ir::op::{DimTrait, InferError, Op, OpRegistry, OpSignature};
use pliant_ir::relax::{Expr, Function, TensorShape, Type, TypeData};

use crate::op_registry::{infer_library_call, registry};
use crate::type_inference::{InferCtx, Precision};

/// The operators of [`registry`] with TVM's precision of types.
pub struct TvmPrecision;

impl OpRegistry for TvmPrecision {
    fn lookup(&self, name: &str) -> Option<Op> {
        registry().lookup(name)
    }

    fn names(&self) -> Vec<&'static str> {
        registry().names()
    }

    fn signature(&self, op: Op) -> Option<&OpSignature> {
        registry().signature(op)
    }

    fn infers_example_type(&self, op: Op) -> bool {
        registry().infers_example_type(op)
    }

    fn is_pure(&self, op: Op) -> bool {
        registry().is_pure(op)
    }

    fn is_commutative(&self, op: Op) -> bool {
        registry().is_commutative(op)
    }

    fn dim_trait(&self, op: Op) -> DimTrait {
        registry().dim_trait(op)
    }

    fn infer(
        &self,
        func: &mut Function,
        op: Op,
        args: &[Expr],
        attrs: &Attrs,
        ty_args: &[Type],
    ) -> Result<Type, InferError> {
        let Some(decl) = registry().decl(op) else {
            return registry().infer(func, op, args, attrs, ty_args);
        };
        // With full precision, the rule reports all errors that can be proved.
        infer_library_call(&mut InferCtx::new(func, decl, args, attrs, ty_args))?;
        let mut ctx = InferCtx::new(func, decl, args, attrs, ty_args);
        ctx.precision = Precision::Tvm;
        let ty = infer_library_call(&mut ctx)?;
        let assumed = ctx.assumed_dims;
        Ok(if assumed { without_dims(func, ty) } else { ty })
    }
}

/// The type `ty` with ranks instead of dims.
fn without_dims(func: &mut Function, ty: Type) -> Type {
    match func.types.get(ty).clone() {
        TypeData::Tensor { shape: TensorShape::Dims(dims), dtype } => {
            let shape = TensorShape::Rank(dims.len() as u32);
            func.intern(TypeData::Tensor { shape, dtype })
        }
        TypeData::Tuple(fields) => {
            let fields: Vec<Type> = fields.iter().map(|&field| without_dims(func, field)).collect();
            func.intern(TypeData::Tuple(fields.into()))
        }
        _ => ty,
    }
}
