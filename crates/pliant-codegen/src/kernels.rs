//! Compiled loop functions: entry points with their signatures and messages, and the memory that contains their code.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use pliant_exec::abi::LoopFn;
use pliant_ir::tir::{PrimFunc, VarTy};
use pliant_tensor::DType;

/// The contents of one argument slot of a loop function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A pointer to a `DLTensor`.
    Tensor {
        /// Element type.
        dtype: DType,
        /// Rank.
        ndim: usize,
    },
    /// An integer or bool, as int64.
    Int(DType),
    /// A float, as the bits of a float64.
    Float(DType),
}

/// The parameters of a loop function, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSignature {
    /// Name and kind of each parameter.
    pub params: Vec<(Arc<str>, ParamKind)>,
}

impl KernelSignature {
    /// The signature of a loop function.
    ///
    /// # Errors
    /// The name of a handle parameter without a buffer.
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

/// One compiled loop function, which can be called as long as its [`CompiledKernels`] exists.
#[derive(Clone, Debug)]
pub struct CompiledKernel {
    /// The entry point.
    pub entry: LoopFn,
    /// Its parameters.
    pub signature: KernelSignature,
    /// The meaning of a positive result `k`: `messages[k - 1]`.
    pub messages: Arc<[Arc<str>]>,
}

/// Compiled loop functions by name, with the executable memory that contains them. Dropping the last clone frees the memory: keep
/// a clone if you copy an entry point.
#[derive(Clone, Default)]
pub struct CompiledKernels {
    kernels: IndexMap<Arc<str>, CompiledKernel>,
    memory: Vec<Arc<dyn Any + Send + Sync>>,
}

impl CompiledKernels {
    /// Loop functions whose code is in `memory`.
    pub fn new(
        kernels: IndexMap<Arc<str>, CompiledKernel>,
        memory: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        CompiledKernels { kernels, memory: vec![memory] }
    }

    /// The loop function with that name.
    pub fn get(&self, name: &str) -> Option<&CompiledKernel> {
        self.kernels.get(name)
    }

    /// All loop functions, in the order in which they were passed to the backend.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &CompiledKernel)> {
        self.kernels.iter()
    }

    /// The number of loop functions.
    pub fn len(&self) -> usize {
        self.kernels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    /// Adds the loop functions of another compilation. They replace loop functions of the same name.
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
