//! Compiled loop functions: entry points, signatures and error messages, and the memory that contains the code.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use pliant_exec::abi::LoopFn;
use pliant_ir::tir::{PrimFunc, VarTy};
use pliant_tensor::DType;

/// The type of a parameter of a loop function, which determines how an argument is passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A tensor, passed as a pointer to a `DLTensor`.
    Tensor {
        /// The required element type of the tensor argument.
        dtype: DType,
        /// The required rank of the tensor argument.
        ndim: usize,
    },
    /// An integer or bool of this type, passed as an int64.
    Int(DType),
    /// A float of this type, passed as the bits of a float64.
    Float(DType),
}

/// The parameters of a loop function, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSignature {
    /// The name and the kind of each parameter.
    pub params: Vec<(Arc<str>, ParamKind)>,
}

impl KernelSignature {
    /// Returns the signature of a loop function.
    ///
    /// # Errors
    /// If a handle parameter, which stands for a tensor, has no buffer in [`PrimFunc::buffer_map`]. The error is the name of the
    /// parameter.
    pub fn of(func: &PrimFunc) -> Result<Self, Arc<str>> {
        let mut params = Vec::with_capacity(func.params.len());
        for &p in &func.params {
            let data = func.var(p);
            let (name, kind) = match data.ty {
                VarTy::Value(ty) if ty.dtype.is_float() => {
                    (data.name.clone(), ParamKind::Float(ty.dtype))
                }
                VarTy::Value(ty) => (data.name.clone(), ParamKind::Int(ty.dtype)),
                VarTy::Handle => {
                    let buffer = func.buffer_map.get(&p).ok_or_else(|| data.name.clone())?;
                    let buffer = func.buffer(*buffer);
                    let kind = ParamKind::Tensor { dtype: buffer.dtype, ndim: buffer.shape.len() };
                    (buffer.name.clone(), kind)
                }
            };
            params.push((name, kind));
        }
        Ok(KernelSignature { params })
    }
}

/// One compiled loop function. The function can be called only while the [`CompiledKernels`] that
/// owns its code exists.
#[derive(Clone, Debug)]
pub struct CompiledKernel {
    /// The address at which callers enter the function.
    pub entry: LoopFn,
    /// The names and types of the parameters.
    pub signature: KernelSignature,
    /// The error messages of the function. If the entry point returns a positive `k`, it failed with `messages[k - 1]`.
    pub messages: Arc<[Arc<str>]>,
}

/// Compiled loop functions by name, with the executable memory that contains them. Dropping the last clone frees the memory, so
/// keep a clone while a copied entry point is in use.
#[derive(Clone, Default)]
pub struct CompiledKernels {
    kernels: IndexMap<Arc<str>, CompiledKernel>,
    memory: Vec<Arc<dyn Any + Send + Sync>>,
}

impl CompiledKernels {
    /// Creates a collection of compiled loop functions. `memory` owns their code.
    pub fn new(
        kernels: IndexMap<Arc<str>, CompiledKernel>,
        memory: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        CompiledKernels { kernels, memory: vec![memory] }
    }

    /// Returns the loop function with this name; `None` if the collection does not contain it.
    pub fn get(&self, name: &str) -> Option<&CompiledKernel> {
        self.kernels.get(name)
    }

    /// Iterates over all loop functions, in the order in which they were passed to the backend.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &CompiledKernel)> {
        self.kernels.iter()
    }

    /// Returns the number of loop functions in the collection.
    pub fn len(&self) -> usize {
        self.kernels.len()
    }

    /// Whether there are no loop functions.
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    /// Adds the loop functions of another compilation. They replace existing loop functions of the same name.
    pub fn extend(&mut self, other: CompiledKernels) {
        self.kernels.extend(other.kernels);
        self.memory.extend(other.memory);
    }
}

impl fmt::Debug for CompiledKernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.kernels.iter().map(|(n, k)| (n, &k.signature))).finish()
    }
}
