//! Calls of library kernels in loop functions: `T.call_kernel("name", operand=buffer, ..., attribute=value, ...)`.
//!
//! The call is the intrinsic `call_kernel` with these arguments, in this order:
//! - the name of the kernel;
//! - a bit mask: bit `i` is set if operand `i` of the declaration is present;
//! - for each present operand, the address of the first element of its buffer and a rank:
//!   [`WHOLE_BUFFER`], or the rank of a view, followed by the view's offset, dims and strides;
//! - the values of the attributes: float64 for floats, int64 for all others. A choice is
//!   represented by its index, a bool by 0 or 1.

use pliant_kernel_api::{AttrType, Kernel, MAX_OPERANDS, MAX_RANK, Operand, Role, Slot, find};
use smallvec::SmallVec;

use super::buffer::Buffer;
use super::expr::{BinOp, Expr, ExprData, Ty};
use super::func::PrimFunc;
use super::intrin::Intrin;
use super::visit::for_each_expr;
use crate::DType;

/// The argument of a kernel call that states that an operand is a whole buffer. It stands in place of the rank of a view.
pub const WHOLE_BUFFER: i64 = -1;

/// A view of the elements of a buffer. Offsets and strides are in elements.
#[derive(Clone, Copy, Debug)]
pub struct BufferView<'f> {
    /// The offset of the view's first element from the buffer's first element, in elements.
    pub offset: Expr,
    /// The sizes of the view's dims.
    pub dims: &'f [Expr],
    /// The strides of the view's dims, in elements.
    pub strides: &'f [Expr],
}

/// An operand of a kernel call.
#[derive(Clone, Copy, Debug)]
pub struct KernelOperand<'f> {
    /// The buffer that the kernel accesses.
    pub buffer: Buffer,
    /// The view through which the kernel accesses the buffer; `None` for the whole buffer.
    pub view: Option<BufferView<'f>>,
}

/// An operand that is passed to [`PrimFunc::call_kernel`] to create a kernel call.
#[derive(Clone, Debug)]
pub enum NewOperand {
    /// The operand is a whole buffer.
    Whole(Buffer),
    /// The operand is a view of a buffer.
    View {
        /// The buffer, which must not have strides itself.
        buffer: Buffer,
        /// The offset of the view's first element from the buffer's first element, in elements, as an int64.
        offset: Expr,
        /// The sizes of the view's dims, as int64.
        dims: Vec<Expr>,
        /// The strides of the view's dims in elements, as int64.
        strides: Vec<Expr>,
    },
}

impl PrimFunc {
    /// Creates the expression for the address of a buffer's first element.
    pub fn address_of_start(&mut self, buffer: Buffer) -> Expr {
        let rank = if self.is_flat() { 1 } else { self.buffer(buffer).shape.len() };
        let zeros = vec![self.int(0); rank];
        let first = self.load(buffer, &zeros);
        self.call(Intrin::AddressOf, &[first])
    }

    /// Creates the expression that calls a kernel for its side effect. `operands` has an entry for each operand of the kernel's
    /// declaration; `None` omits an optional operand. `numbers` are the values of the attributes.
    pub fn call_kernel(
        &mut self,
        kernel: &'static Kernel,
        operands: &[Option<NewOperand>],
        numbers: &[Expr],
    ) -> Expr {
        let mut present = 0;
        let mut operand_args = Vec::new();
        for (i, operand) in operands.iter().enumerate() {
            let Some(operand) = operand else { continue };
            present |= 1 << i;
            let (NewOperand::Whole(buffer) | NewOperand::View { buffer, .. }) = *operand;
            operand_args.push(self.address_of_start(buffer));
            match operand {
                NewOperand::Whole(_) => operand_args.push(self.int(WHOLE_BUFFER)),
                NewOperand::View { offset, dims, strides, .. } => {
                    operand_args.extend([self.int(dims.len() as i64), *offset]);
                    operand_args.extend(dims);
                    operand_args.extend(strides);
                }
            }
        }
        let name = self.add_expr(ExprData::Str(kernel.name.into()));
        let mut args = vec![name, self.int(present)];
        args.extend(operand_args);
        args.extend(numbers);
        self.add_expr(ExprData::Call(Intrin::CallKernel, args.into(), Ty::I64))
    }
}

/// A decoded kernel call of a loop function.
#[derive(Clone, Debug)]
pub struct KernelCall<'f> {
    /// The declaration of the called kernel.
    pub kernel: &'static Kernel,
    /// The operands in the order of the kernel's declaration; `None` for absent operands.
    pub operands: SmallVec<[Option<KernelOperand<'f>>; MAX_OPERANDS]>,
    /// The values of the attributes. An attribute that is a list has several values.
    pub numbers: &'f [Expr],
}

impl<'f> KernelCall<'f> {
    /// Decodes the expression `e` as a kernel call; `None` for other expressions and for invalid calls.
    pub fn of(f: &'f PrimFunc, e: Expr) -> Option<KernelCall<'f>> {
        match f.expr(e) {
            ExprData::Call(Intrin::CallKernel, args, _) => KernelCall::of_args(f, args).ok(),
            _ => None,
        }
    }

    /// Decodes the arguments of the intrinsic [`Intrin::CallKernel`].
    ///
    /// # Errors
    /// Describes an invalid argument.
    pub fn of_args(f: &'f PrimFunc, args: &'f [Expr]) -> Result<KernelCall<'f>, String> {
        let [name, present, rest @ ..] = args else {
            return Err("T.call_kernel has no arguments; the first one is the name of the kernel"
                .to_string());
        };
        let ExprData::Str(name) = f.expr(*name) else {
            return Err(
                "the first argument of T.call_kernel must be a string, the name of the kernel"
                    .to_string(),
            );
        };
        let kernel = find(name).ok_or_else(|| format!("no kernel is called '{name}'"))?;
        let present = f.as_int(*present).unwrap_or(0);
        let count = kernel.operands.len();
        if present < 0 || present >> count != 0 {
            return Err(format!(
                "T.call_kernel passes an operand that kernel {name} does not have: the kernel has only {count} operands"
            ));
        }
        let (mut operands, mut rest) = (SmallVec::new(), rest);
        for (i, declared) in kernel.operands.iter().enumerate() {
            let operand = match present >> i & 1 {
                0 => None,
                _ => Some(operand(f, &mut rest).map_err(|problem| {
                    format!("operand '{}' of kernel {name}: {problem}", declared.name)
                })?),
            };
            operands.push(operand);
        }
        if rest.len() != kernel.number_count() {
            let (actual, expected) = (rest.len(), kernel.number_count());
            return Err(format!(
                "kernel {name} takes {expected} attribute values, but the call passes {actual}"
            ));
        }
        let call = KernelCall { kernel, operands, numbers: rest };
        call.check_types(f)?;
        Ok(call)
    }

    fn check_types(&self, f: &PrimFunc) -> Result<(), String> {
        let name = self.kernel.name;
        for (declared, operand) in self.kernel.operands.iter().zip(&self.operands) {
            if operand.is_none() && !declared.optional {
                return Err(format!("operand '{}' of kernel {name} is missing", declared.name));
            }
        }
        let attrs = self.kernel.slots().filter_map(|slot| match slot {
            Slot::Number(attr, _) => Some(attr),
            Slot::Operand(_) => None,
        });
        for (attr, &e) in attrs.zip(self.numbers) {
            let constant = matches!(attr.ty, AttrType::Choice(_) | AttrType::Bool);
            if constant && f.as_int(e).is_none() {
                return Err(format!(
                    "attribute '{}' of kernel {name} must be an integer constant, but is another expression",
                    attr.name
                ));
            }
            let want = match attr.ty {
                AttrType::Float => Ty::scalar(DType::Float64),
                _ => Ty::I64,
            };
            if f.expr_ty(e) != want {
                let have = f.expr_ty(e);
                return Err(format!(
                    "attribute '{}' of kernel {name} has type {have}, but must have type {want}",
                    attr.name
                ));
            }
        }
        Ok(())
    }

    /// The buffers that the kernel accesses, with their roles.
    pub fn buffers(&self) -> impl Iterator<Item = (Role, Buffer)> + '_ {
        self.present_operands().map(|(declared, operand)| (declared.role, operand.buffer))
    }

    /// The first value of an attribute, if it is a constant.
    fn constant_attr(&self, f: &PrimFunc, name: &str) -> Option<i64> {
        let (_, first) = self.kernel.attr(name)?;
        f.as_int(*self.numbers.get(first)?)
    }

    /// The operands that are present, with their declarations.
    fn present_operands(&self) -> impl Iterator<Item = (&'static Operand, KernelOperand<'f>)> + '_ {
        let operands = self.kernel.operands.iter().zip(&self.operands);
        operands.filter_map(|(declared, operand)| Some((declared, (*operand)?)))
    }

    /// Whether the kernel writes a buffer.
    pub fn writes(&self, buffer: Buffer) -> bool {
        self.buffers().any(|(role, b)| b == buffer && role.is_written())
    }

    /// Whether the kernel writes every element of a buffer and reads none of them.
    pub fn overwrites(&self, f: &PrimFunc, buffer: Buffer) -> bool {
        let mut uses = self.present_operands().filter(|(_, operand)| operand.buffer == buffer);
        let (Some((declared, operand)), None) = (uses.next(), uses.next()) else { return false };
        let whole = operand.view.is_none_or(|view| view.is_permutation(f, buffer));
        let reads = match declared.role {
            Role::Input => return false,
            Role::Output => false,
            Role::Accumulator => self.constant_attr(f, "accumulate") != Some(0),
        };
        whole && !reads && !self.computes_from(f, buffer)
    }

    /// Whether the call reads elements of `buffer` to compute an attribute, or the offset, a dim or
    /// a stride of a view.
    fn computes_from(&self, f: &PrimFunc, buffer: Buffer) -> bool {
        let views = self.operands.iter().flatten().filter_map(|operand| operand.view);
        let of_view = |view: BufferView<'_>| {
            let lists = view.dims.iter().chain(view.strides);
            lists.copied().chain([view.offset]).collect::<SmallVec<[Expr; 16]>>()
        };
        let mut all = self.numbers.iter().copied().chain(views.flat_map(of_view));
        all.any(|e| {
            let mut loads = false;
            for_each_expr(f, e, |e| {
                loads |= matches!(f.expr(e), ExprData::Load(b, _) if *b == buffer);
            });
            loads
        })
    }
}

impl BufferView<'_> {
    /// Whether the view covers the whole compact buffer with its dims permuted, possibly with additional dims of size 1. The dims
    /// must be the same expressions as the dims of the buffer, and the strides must be products of these dims. Overflow of these
    /// products is harmless: the buffer's own strides overflow in the same way, and the strides of a nonempty buffer do not
    /// overflow.
    fn is_permutation(&self, f: &PrimFunc, buffer: Buffer) -> bool {
        let is_one = |e: &Expr| f.as_int(*e) == Some(1);
        let pairs = self.dims.iter().zip(self.strides).filter(|(dim, _)| !is_one(dim));
        let mut remaining: Vec<(Expr, Product)> =
            pairs.map(|(&dim, &stride)| (dim, Product::of(f, stride))).collect();
        let mut stride = Product::default();
        for &dim in f.buffer(buffer).shape.iter().rev().filter(|dim| !is_one(dim)) {
            let index =
                remaining.iter().position(|(own, own_stride)| *own == dim && *own_stride == stride);
            let Some(index) = index else { return false };
            remaining.remove(index);
            stride.multiply(f, dim);
            stride.factors.sort_unstable();
        }
        remaining.is_empty()
            && f.as_int(self.offset) == Some(0)
            && f.buffer(buffer).strides.is_empty()
    }
}

/// A product of integers modulo 2^64: a constant, and the sorted factors that are neither constants nor products.
#[derive(PartialEq, Eq)]
struct Product {
    constant: i64,
    factors: Vec<Expr>,
}

impl Default for Product {
    fn default() -> Self {
        Product { constant: 1, factors: Vec::new() }
    }
}

impl Product {
    fn of(f: &PrimFunc, e: Expr) -> Product {
        let mut product = Product::default();
        product.multiply(f, e);
        product.factors.sort_unstable();
        product
    }

    fn multiply(&mut self, f: &PrimFunc, e: Expr) {
        match *f.expr(e) {
            ExprData::Binary(BinOp::Mul, a, b) => {
                self.multiply(f, a);
                self.multiply(f, b);
            }
            _ => match f.as_int(e) {
                Some(number) => self.constant = self.constant.wrapping_mul(number),
                None => self.factors.push(e),
            },
        }
    }
}

/// Decodes the operand at the front of the arguments, and advances past it. The error does not name the operand.
fn operand<'f>(f: &'f PrimFunc, args: &mut &'f [Expr]) -> Result<KernelOperand<'f>, String> {
    let missing = || {
        "some of the arguments of T.call_kernel that describe the operand are missing".to_string()
    };
    let (&[address, rank], rest) = args.split_first_chunk().ok_or_else(missing)?;
    let buffer = buffer_at_address(f, address)
        .ok_or("it must be passed as the address of the first element of a buffer")?;
    let rank = f.as_int(rank).ok_or("the rank of its view is not a constant")?;
    if rank == WHOLE_BUFFER {
        *args = rest;
        return Ok(KernelOperand { buffer, view: None });
    }
    let rank = usize::try_from(rank).ok().filter(|&rank| rank <= MAX_RANK);
    let rank = rank.ok_or_else(|| format!("its view has more than {MAX_RANK} dims"))?;
    let (view, rest) = rest.split_at_checked(1 + 2 * rank).ok_or_else(missing)?;
    if !f.buffer(buffer).strides.is_empty() {
        return Err(
            "`T.view` requires a buffer without declared strides, but the viewed buffer is declared with strides; \
             remove the strides from its declaration"
                .to_string(),
        );
    }
    if view.iter().any(|&e| f.expr_ty(e) != Ty::I64) {
        return Err("the offset, dims and strides of the `T.view` that is passed as the operand must be int64".to_string());
    }
    *args = rest;
    let (dims, strides) = view[1..].split_at(rank);
    Ok(KernelOperand { buffer, view: Some(BufferView { offset: view[0], dims, strides }) })
}

/// The buffer whose first element has the address `e`; `None` for other expressions.
fn buffer_at_address(f: &PrimFunc, e: Expr) -> Option<Buffer> {
    let ExprData::Call(Intrin::AddressOf, element, _) = f.expr(e) else { return None };
    match f.expr(*element.first()?) {
        ExprData::Load(buffer, indices) => {
            indices.iter().all(|&i| f.as_int(i) == Some(0)).then_some(*buffer)
        }
        _ => None,
    }
}
