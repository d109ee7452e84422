//! # What it does
//! Packs constant right operands of matmuls into panels ([`pliant_tensor::pack_panels`]) of the shape `[panels, k, width]`,
//! which kernels read sequentially. The matmul becomes `R.call_tir` of a loop function over the packed constant; the schedule
//! recognizes it and calls the library. The executable holds the packed constant, so nothing is packed at run time. In
//! `R.linear` the bias becomes an addition.
//!
//! With the setting `precision="bf16"` constants of float32 are rounded to bfloat16, and the loop function is one call of the
//! library's product by them.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 16), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         gv = R.matmul(x, R.const([[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]], "float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n", 16), dtype="float32"):
//!     n = T.int64()
//!     cls = Module
//!     with R.dataflow():
//!         gv: R.Tensor((n, 16), dtype="float32") = R.call_tir(cls.matmul_packed, (x, metadata["relax.expr.Constant"][0]), out_sinfo=R.Tensor((n, 16), dtype="float32"))
//!         R.output(gv)
//!     return gv
//!
//! @T.prim_func(private=True)
//! def matmul_packed(var_A: T.handle, B: T.Buffer((1, 2, 16), "float32"), var_matmul: T.handle):
//!     ...
//! ```
//!
//! # Requires
//! Nothing. It is of use before [`LegalizeOps`](crate::lower::legalize_ops).
//!
//! # Keeps
//! Products of other types than float32 and float64, of constants narrower than [`MIN_COLUMNS`] or of another rank than 2,
//! and those whose sizes must yet be checked. Names, types and order of the bindings, and dataflow blocks.
//!
//! # Never
//! Changes a constant for other readers: one that is read otherwise too is there in both forms.

use std::sync::Arc;

use pliant_ir::relax::{Binding, Expr, ExprData, Function, Var};
use pliant_ir::{BaseFunc, DType, IRModule};
use pliant_ops::{LegalizeError, te};
use pliant_pass::rewrite::{Namer, reachable_seqs, rewrite_bindings};
use pliant_pass::{ModulePass, PassContext, PassError, Problem};
use pliant_tensor::{Tensor, TensorError, pack_bfloat16, pack_panels, panel_width};
use rustc_hash::FxHashSet;

use crate::common::kernels::Kernels;
use crate::common::products::{ByMatrix, bound_in_dataflow};
use crate::offload::pack_stored::kernel::{self as stored, Stored};

/// Constants with fewer columns are read as they are: most of a panel would be empty.
pub const MIN_COLUMNS: i64 = 8;

/// See the module's documentation.
pub struct PackConstants;

impl ModulePass for PackConstants {
    fn name(&self) -> &str {
        "PackConstants"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if !ctx.kernels() {
            return Ok(module);
        }
        let names: Vec<Arc<str>> = module.relax_funcs().map(|(name, _)| name.clone()).collect();
        let mut packer = Packer {
            kernels: Kernels::new(&module),
            packed: Vec::new(),
            rounds: ctx.rounds_to_bfloat16(),
        };
        for name in names {
            ctx.check_cancelled()?;
            let Some(BaseFunc::Relax(func)) = module.functions.get_mut(&name) else { continue };
            if !has_product(func) {
                continue;
            }
            let func = Arc::make_mut(func);
            let (mut namer, local) = (None, bound_in_dataflow(func));
            rewrite_bindings(func, |func, binding, out| {
                ctx.check_cancelled()?;
                packer.binding(func, binding, (&mut namer, &local), out).map_err(|e| {
                    let at = func.var(binding.var).span;
                    PassError::User(vec![Problem::new(e.to_string()).at(at).in_function(&*name)])
                })
            })?;
        }
        packer.kernels.insert_into(&mut module);
        Ok(module)
    }
}

/// Whether a function has a product that may be packed, so that others are not copied.
fn has_product(func: &Function) -> bool {
    reachable_seqs(func).into_iter().any(|seq| {
        let blocks = &func.seq(seq).blocks;
        let mut bindings = blocks.iter().flat_map(|&b| &func.block(b).bindings);
        bindings.any(|b| Product::of(func, b.value).is_some())
    })
}

/// A product with a constant that can be packed.
struct Product {
    by: ByMatrix,
    weight: Tensor,
    k: i64,
    n: i64,
}

impl Product {
    fn of(func: &Function, value: Expr) -> Option<Product> {
        let by = ByMatrix::of(func, value)?;
        let ExprData::Constant(c) = func.expr(by.right) else { return None };
        let weight = func.const_tensor(*c);
        let &[rows, columns] = weight.shape() else { return None };
        let (k, n) = if by.transposed { (columns, rows) } else { (rows, columns) };
        let (x, out) = (func.ty(by.x), func.ty(value));
        let dtype = weight.dtype();
        let real = matches!(dtype, DType::Float32 | DType::Float64);
        let summed = *x.dims()?.last()?;
        let fits = real
            && n >= MIN_COLUMNS
            && x.dtype() == Some(dtype)
            && out.dtype() == Some(dtype)
            && out.dims()?.len() == x.dims()?.len()
            && func.syms.as_int(summed) == Some(k);
        fits.then(|| Product { by, weight: weight.clone(), k, n })
    }
}

struct Packer {
    kernels: Kernels,
    /// Constants that are packed already: the tensor, whether as its transpose, and its panels.
    packed: Vec<(Tensor, bool, Tensor)>,
    /// Whether constants of float32 are rounded to bfloat16.
    rounds: bool,
}

impl Packer {
    fn binding(
        &mut self,
        func: &mut Function,
        binding: Binding,
        names: (&mut Option<Namer>, &FxHashSet<Var>),
        out: &mut Vec<Binding>,
    ) -> Result<(), LegalizeError> {
        let taken = |p: &Product| !self.rounds || stored::takes(func, p.by.x);
        let Some(product) = Product::of(func, binding.value).filter(taken) else {
            out.push(binding);
            return Ok(());
        };
        let call = self.call(func, &product)?;
        product.by.bind(func, binding, call, names, out);
        Ok(())
    }

    /// The call of the loop function that multiplies by the packed constant.
    fn call(&mut self, func: &mut Function, p: &Product) -> Result<Expr, LegalizeError> {
        let panels = self.panels(&p.weight, p.by.transposed)?;
        if panels.dtype() == DType::BFloat16 {
            let stored = Stored { size: (p.k, p.n), panels, groups: None };
            let call = stored::call(func, p.by.x, &stored)?;
            return Ok(self.kernels.call(func, call));
        }
        let panels = func.constant(panels);
        let width = panel_width(p.n as usize, p.weight.dtype()) as i64;
        let (k, n) = (p.k, p.n);
        let call = pliant_ops::te_call(func, "matmul_packed", &[p.by.x, panels], |t| {
            let [x, w] = t else { unreachable!("two operands make two tensors") };
            let last = x.ndim() - 1;
            let k = te::reduce_axis(te::int(k), "k");
            let mut shape = x.shape()[..last].to_vec();
            shape.push(te::int(n));
            let product = te::compute(shape, "matmul", |i| {
                let (lead, j) = i.split_at(last);
                let (width, k_at) = (te::int(width), k.var.expr());
                let left = [lead, std::slice::from_ref(&k_at)].concat();
                let right = [te::floordiv(&j[0], &width), k_at, te::floormod(&j[0], &width)];
                te::sum(&(x.at(&left) * w.at(&right)), std::slice::from_ref(&k))
            });
            Ok(vec![product])
        })?;
        Ok(self.kernels.call(func, call))
    }

    /// The panels of a constant, made once.
    fn panels(&mut self, weight: &Tensor, transposed: bool) -> Result<Tensor, LegalizeError> {
        let known = self.packed.iter().find(|(w, t, _)| w.same(weight) && *t == transposed);
        if let Some((_, _, panels)) = known {
            return Ok(panels.clone());
        }
        let panels = if self.rounds && weight.dtype() == DType::Float32 {
            rounded(weight, transposed)
        } else {
            pack_panels(weight, transposed)
        };
        let panels = panels.map_err(|e| LegalizeError::new(e.to_string()))?;
        self.packed.push((weight.clone(), transposed, panels.clone()));
        Ok(panels)
    }
}

/// The panels of a constant or of its transpose, rounded to bfloat16.
fn rounded(weight: &Tensor, transposed: bool) -> Result<Tensor, TensorError> {
    let (rows, columns) = (weight.shape()[0] as usize, weight.shape()[1] as usize);
    let all = weight.to_vec::<f32>()?;
    if !transposed {
        return pack_bfloat16(&all, rows, columns);
    }
    let turned: Vec<f32> =
        (0..rows * columns).map(|i| all[i % rows * columns + i / rows]).collect();
    pack_bfloat16(&turned, columns, rows)
}
