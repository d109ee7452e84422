//! Calls of library kernels on whole buffers: `T.call_kernel("name", operand=buffer, ..., attribute=value, ...)`.
//!
//! The arguments of such a call are, in this order:
//! - the name of the kernel;
//! - an integer whose bit `i` says whether operand `i` of the declaration is present;
//! - the address of the first element of each present operand;
//! - the numbers of the attributes: float64 for a float, else int64. A choice is its index, a bool 0 or 1.

use pliant_kernel_api::{AttrType, Kernel, MAX_OPERANDS, Role, Slot, find};
use smallvec::SmallVec;

use super::buffer::Buffer;
use super::expr::{Expr, ExprData, Ty};
use super::func::PrimFunc;
use super::intrin::Intrin;
use crate::DType;

/// The parts of a call of a kernel.
#[derive(Clone, Debug)]
pub struct KernelCall<'f> {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// The buffer of each operand of the declaration; `None` for those that are left out.
    pub operands: SmallVec<[Option<Buffer>; MAX_OPERANDS]>,
    /// The numbers of the attributes.
    pub numbers: &'f [Expr],
}

impl<'f> KernelCall<'f> {
    /// The parts of an expression that calls a kernel; `None` for other expressions.
    pub fn of(f: &'f PrimFunc, e: Expr) -> Option<KernelCall<'f>> {
        match f.expr(e) {
            ExprData::Call(Intrin::CallKernel, args, _) => KernelCall::of_args(f, args).ok(),
            _ => None,
        }
    }

    /// The parts of the arguments of [`Intrin::CallKernel`].
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn of_args(f: &'f PrimFunc, args: &'f [Expr]) -> Result<KernelCall<'f>, String> {
        let [name, present, rest @ ..] = args else {
            return Err("T.call_kernel without a kernel".to_string());
        };
        let ExprData::Str(name) = f.expr(*name) else {
            return Err("T.call_kernel without the name of a kernel".to_string());
        };
        let kernel = find(name).ok_or_else(|| format!("no kernel is called '{name}'"))?;
        let present = f.as_int(*present).unwrap_or(0);
        let count = kernel.operands.len();
        if present < 0 || present >> count != 0 {
            return Err(format!("kernel {name} has {count} operands"));
        }
        let addresses = present.count_ones() as usize;
        if rest.len() != addresses + kernel.numbers() {
            let given = rest.len().saturating_sub(addresses);
            let wanted = kernel.numbers();
            return Err(format!("kernel {name} has {wanted} numbers as attributes, {given} given"));
        }
        let (addresses, numbers) = rest.split_at(addresses);
        let mut next = addresses.iter();
        let mut operands = SmallVec::new();
        for (i, operand) in kernel.operands.iter().enumerate() {
            let address = if present >> i & 1 != 0 { next.next() } else { None };
            let buffer = address.map(|&e| whole_buffer(f, e)).transpose();
            let wrong =
                |()| format!("operand {} of kernel {name} is not a whole buffer", operand.name);
            operands.push(buffer.map_err(wrong)?);
        }
        let call = KernelCall { kernel, operands, numbers };
        call.check_types(f)?;
        Ok(call)
    }

    fn check_types(&self, f: &PrimFunc) -> Result<(), String> {
        let name = self.kernel.name;
        for (operand, buffer) in self.kernel.operands.iter().zip(&self.operands) {
            if buffer.is_none() && !operand.optional {
                return Err(format!("operand {} of kernel {name} is missing", operand.name));
            }
        }
        let attrs = self.kernel.slots().filter_map(|slot| match slot {
            Slot::Number(attr, _) => Some(attr),
            Slot::Operand(_) => None,
        });
        for (attr, &e) in attrs.zip(self.numbers) {
            let constant = matches!(attr.ty, AttrType::Choice(_) | AttrType::Bool);
            if constant && f.as_int(e).is_none() {
                return Err(format!("attribute {} of kernel {name} is not a constant", attr.name));
            }
            let want = match attr.ty {
                AttrType::Float => Ty::scalar(DType::Float64),
                _ => Ty::I64,
            };
            if f.expr_ty(e) != want {
                let have = f.expr_ty(e);
                return Err(format!(
                    "attribute {} of kernel {name} is {have}, not {want}",
                    attr.name
                ));
            }
        }
        Ok(())
    }

    /// The buffers that the kernel accesses, and how.
    pub fn buffers(&self) -> impl Iterator<Item = (Role, Buffer)> + '_ {
        let operands = self.kernel.operands.iter().zip(&self.operands);
        operands.filter_map(|(operand, buffer)| Some((operand.role, (*buffer)?)))
    }

    /// Whether the kernel writes a buffer.
    pub fn writes(&self, buffer: Buffer) -> bool {
        self.buffers().any(|(role, b)| b == buffer && role == Role::Output)
    }

    /// Whether the kernel writes every element of a buffer and reads none.
    pub fn overwrites(&self, buffer: Buffer) -> bool {
        self.writes(buffer) && self.buffers().all(|(role, b)| b != buffer || role == Role::Output)
    }
}

/// The buffer whose first element an address is of.
fn whole_buffer(f: &PrimFunc, e: Expr) -> Result<Buffer, ()> {
    let ExprData::Call(Intrin::AddressOf, element, _) = f.expr(e) else { return Err(()) };
    match element.first().map(|&e| f.expr(e)) {
        Some(ExprData::Load(buffer, indices)) => {
            let first = indices.iter().all(|&i| f.as_int(i) == Some(0));
            if first { Ok(*buffer) } else { Err(()) }
        }
        _ => Err(()),
    }
}
