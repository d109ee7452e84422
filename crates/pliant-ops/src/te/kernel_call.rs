//! Calls of library kernels in stages made of statements.

use pliant_ir::AttrValue;
use pliant_ir::relax::kernel_call::encode_attr;
use pliant_ir::tir::{Intrin, Ty};
use pliant_kernel_api::{Attr, AttrDefault, AttrType, Kernel};
use pliant_tensor::DType;

use super::expr::Expr;
use super::expr_builders::{call_typed, const_of, int, string};
use super::tensor_view::TensorView;

/// A call of a library kernel under construction, as a statement of a stage.
pub struct KernelCall<'a> {
    kernel: &'static Kernel,
    operands: Vec<Option<TensorView<'a>>>,
    numbers: Vec<Option<Expr>>,
}

impl<'a> KernelCall<'a> {
    /// Starts a call without operands, with the defaults of the attributes.
    pub fn new(kernel: &'static Kernel) -> Self {
        let defaults = kernel.attrs.iter().flat_map(|attr| {
            let value = match attr.default {
                AttrDefault::Required => None,
                AttrDefault::Number(n) => Some(int(n)),
                AttrDefault::Float(v) => Some(const_of(v, DType::Float64)),
            };
            std::iter::repeat_n(value, attr.ty.number_count())
        });
        let numbers = defaults.collect();
        KernelCall { kernel, operands: vec![None; kernel.operands.len()], numbers }
    }

    /// Sets an operand: a whole tensor or a view of its elements.
    ///
    /// # Panics
    /// If the kernel has no operand of that name.
    pub fn operand(mut self, name: &str, operand: impl Into<TensorView<'a>>) -> Self {
        let at = self.kernel.operand(name).expect("the kernel has an operand of this name");
        self.operands[at] = Some(operand.into());
        self
    }

    /// Sets an operand that may be absent.
    ///
    /// # Panics
    /// In the same cases as [`Self::operand`].
    pub fn optional(self, name: &str, operand: Option<impl Into<TensorView<'a>>>) -> Self {
        match operand {
            Some(operand) => self.operand(name, operand),
            None => self,
        }
    }

    /// Sets the values of an attribute. A choice is represented by its index, a bool by 0 or 1.
    ///
    /// # Panics
    /// If the kernel has no attribute of that name, or its list has another length.
    pub fn attr(mut self, name: &str, values: &[Expr]) -> Self {
        let (attr, first) =
            self.kernel.attr(name).expect("the kernel has an attribute of this name");
        assert_eq!(
            attr.ty.number_count(),
            values.len(),
            "attribute {name} has another number of values"
        );
        for (to, value) in self.numbers[first..].iter_mut().zip(values) {
            *to = Some(value.clone());
        }
        self
    }

    /// Sets an attribute to a constant.
    ///
    /// # Panics
    /// If the kernel has no attribute of that name, or the value is invalid.
    pub fn value(self, name: &str, value: &AttrValue) -> Self {
        let (attr, _) = self.kernel.attr(name).expect("the kernel has an attribute of this name");
        let numbers = encode_attr(attr, value).unwrap_or_else(|what| panic!("{what}"));
        self.numbers(attr, &numbers)
    }

    /// Sets an attribute to a list of integers that encode its value: floats as their bits, other
    /// values as in [`Self::attr`] (see [`pliant_ir::relax::kernel_call::KernelCall`]).
    ///
    /// # Panics
    /// If the kernel has no attribute of that name, or its list has another length.
    pub fn numbers(self, attr: &Attr, numbers: &[i64]) -> Self {
        let number = |&n: &i64| match attr.ty {
            AttrType::Float => const_of(f64::from_bits(n as u64), DType::Float64),
            _ => int(n),
        };
        self.attr(attr.name, &numbers.iter().map(number).collect::<Vec<_>>())
    }

    /// Sets an attribute that is a choice between several texts.
    ///
    /// # Panics
    /// If the kernel has no such attribute, or if the attribute has no such choice.
    pub fn choice(self, name: &str, choice: &str) -> Self {
        let (attr, _) = self.kernel.attr(name).expect("the kernel has an attribute of this name");
        let AttrType::Choice(list) = attr.ty else {
            panic!("attribute {name} is not a choice between texts")
        };
        let index = list.iter().position(|c| *c == choice).expect("the attribute has this choice");
        self.attr(name, &[int(index as i64)])
    }

    /// Ends the construction. The returned call is evaluated for its side effects.
    ///
    /// # Panics
    /// If a required operand or attribute is missing.
    pub fn finish(self) -> Expr {
        let (kernel, mut present) = (self.kernel, 0);
        let mut operands = Vec::new();
        for (i, (declared, operand)) in kernel.operands.iter().zip(self.operands).enumerate() {
            assert!(declared.optional || operand.is_some(), "operand {} is missing", declared.name);
            let Some(operand) = operand else { continue };
            present |= 1 << i;
            operands.extend(operand.into_arguments());
        }
        let mut args = vec![string(kernel.name), int(present)];
        args.extend(operands);
        let numbers = self.numbers.into_iter();
        args.extend(numbers.map(|n| n.expect("a required attribute has a value")));
        call_typed(Intrin::CallKernel, args, Ty::I64)
    }
}
