//! The prologue of a loop function: unpacks the arguments, defines the size variables, and checks everything that the body
//! relies on.

use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use cranelift_module::{FuncId, Module};
use pliant_exec::abi::{OFFSET_TENSOR_SHAPE, OFFSET_TENSOR_STRIDES};
use pliant_ir::AttrValue;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{Buffer, Expr, ExprData, PrimFunc, Ty, Var, VarTy};
use pliant_kernels::tensor_arg::{TENSOR_FAULTS, dtype_word};
use pliant_tensor::CheckFailure;
use pliant_tensor::DType;
use pliant_tir::check_bounds::UNBOUNDED_PARAMS;
use pliant_tir::overflow_analysis::SIZE_LIMIT;
use rustc_hash::FxHashMap;

use crate::function::{FuncGen, Gen, abi_signature, constant_mem, mem, unsupported};
use crate::memory::{Place, SizeAt};
use crate::unit::Unit;
use crate::value::{V, clif};

/// Maximum number of tensor arguments whose addresses and sizes the prologue loads. In functions with more tensor arguments,
/// each statement loads those that it uses.
const MOST_AT_HAND: usize = 16;

/// A tensor argument while its sizes are checked.
struct TensorArg {
    position: usize,
    buffer: Buffer,
}

/// A comparison of a dim, stride or offset with an expression, which may have to wait until all size variables are defined.
struct Pending {
    actual: Value,
    expected: Expr,
    what: String,
}

/// Generates the machine function of a loop function. Returns it and the messages of its checks.
pub(crate) fn generate(unit: &mut Unit, f: &PrimFunc) -> Gen<(FuncId, Vec<Arc<str>>)> {
    let sig = abi_signature(&unit.module, &[types::I64; 2], types::I64);
    let id = unit.module.declare_anonymous_function(&sig)?;
    let mut ctx = Context::new();
    ctx.func.signature = sig;
    let mut frontend = unit.take_context();
    let mut messages = Vec::new();
    {
        let mut b = FunctionBuilder::new(&mut ctx.func, &mut frontend);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let fail = FuncGen::fail_block(&mut b);
        let (args, runtime) = (b.block_params(entry)[0], b.block_params(entry)[1]);
        let mut g = FuncGen {
            f,
            b,
            unit: &mut *unit,
            messages: &mut messages,
            runtime,
            vars: FxHashMap::default(),
            places: FxHashMap::default(),
            limits: FxHashMap::default(),
            sizes: FxHashMap::default(),
            memo: FxHashMap::default(),
            fail,
            stack_bytes: 0,
            call_stack_bytes: 0,
            depth: 0,
            many_arguments: f.buffer_map.len() > MOST_AT_HAND,
            in_parallel: false,
            shared: Vec::new(),
        };
        g.arguments(args)?;
        g.stmt(f.body)?;
        g.finish_body(fail);
        let config = g.unit.module.target_config();
        g.b.finalize(config);
    }
    unit.give_context(frontend);
    unit.define(id, &mut ctx)?;
    Ok((id, messages))
}

impl FuncGen<'_, '_> {
    fn arguments(&mut self, args: Value) -> Gen<()> {
        let f = self.f;
        let mut tensors = Vec::new();
        for (position, &param) in f.params.iter().enumerate() {
            let offset = (position * 8) as i32;
            match f.var(param).ty {
                VarTy::Handle => {
                    let buffer = f.buffer_map[&param];
                    let descriptor = self.b.ins().load(types::I64, constant_mem(), args, offset);
                    self.check_descriptor(position, buffer, descriptor)?;
                    tensors.push(TensorArg { position, buffer });
                }
                VarTy::Value(ty) => {
                    let value = self.scalar_argument(args, offset, ty)?;
                    if ty == Ty::I64 && !self.is_unbounded(position) {
                        let name = &f.var(param).name;
                        self.bounded(value, -SIZE_LIMIT, format!("argument {position} ('{name}')"));
                    }
                    self.vars.insert(param, V::S(value));
                }
            }
        }
        let mut pending = Vec::new();
        for t in &tensors {
            self.dims(t, args, &mut pending)?;
        }
        for p in pending {
            self.compare(p)?;
        }
        for t in tensors {
            let place = Place::Argument(args, (t.position * 8) as i32);
            self.places.insert(t.buffer, place);
            if !self.many_arguments {
                let base = self.base(t.buffer)?;
                self.places.insert(t.buffer, Place::Address(base));
            }
            self.record_limits(t.buffer)?;
        }
        Ok(())
    }

    fn compare(&mut self, p: Pending) -> Gen<()> {
        self.memo.clear();
        let expected = self.size(p.expected, &p.what)?;
        let differs = self.b.ins().icmp(IntCC::NotEqual, p.actual, expected);
        self.check_not(differs, &p.what);
        Ok(())
    }

    fn scalar_argument(&mut self, args: Value, offset: i32, ty: Ty) -> Gen<Value> {
        let machine = clif(ty.dtype);
        if ty.lanes != 1 {
            return unsupported("a vector parameter");
        }
        if ty.dtype.is_float() {
            let wide = self.b.ins().load(types::F64, constant_mem(), args, offset);
            return match self.cast(V::S(wide), Ty::scalar(DType::Float64), ty)? {
                V::S(v) => Ok(v),
                _ => unreachable!("a scalar stays a scalar"),
            };
        }
        let wide = self.b.ins().load(types::I64, constant_mem(), args, offset);
        if machine == types::I64 { Ok(wide) } else { Ok(self.b.ins().ireduce(machine, wide)) }
    }

    /// Checks rank, element type and layout with one call. The messages are in the order of the faults that the call returns.
    fn check_descriptor(&mut self, position: usize, buffer: Buffer, descriptor: Value) -> Gen<()> {
        let data = self.f.buffer(buffer);
        let (name, ndim, dtype) = (data.name.clone(), data.shape.len(), data.dtype);
        let compact = data.strides.is_empty();
        let arg = format!("argument {position} ('{name}')");
        let first = self.messages.len() as i64;
        let texts = [
            CheckFailure::Shape.mark(&format!("{arg} has another rank than {ndim}")),
            CheckFailure::Shape.mark(&format!("{arg} has another element type than {dtype}")),
            CheckFailure::Shape.mark(&format!("{arg} has no memory or is not contiguous")),
        ];
        debug_assert_eq!(texts.len(), TENSOR_FAULTS);
        self.messages.extend(texts.into_iter().map(Arc::from));
        let (code, bits) = dtype.to_dlpack();
        let words = [ndim as i64, dtype_word(code, bits), i64::from(compact)];
        let words = words.map(|w| self.b.ins().iconst(types::I64, w));
        let fault =
            self.call_linked("pliant_check_tensor", &[descriptor, words[0], words[1], words[2]])?;
        let bad = self.b.ins().icmp_imm_s(IntCC::NotEqual, fault, 0);
        let status = self.b.ins().iadd_imm_s(fault, first);
        self.fail_if(bad, status);
        Ok(())
    }

    /// Defines each size variable that is a dim or stride by itself, and compares the other dims and strides with their
    /// expressions. Comparisons that need a variable without a value go to `pending`.
    fn dims(&mut self, t: &TensorArg, args: Value, pending: &mut Vec<Pending>) -> Gen<()> {
        let f = self.f;
        let data = f.buffer(t.buffer);
        let arg = format!("argument {} ('{}')", t.position, data.name);
        for (sizes, list, noun, least) in [
            (&data.shape, OFFSET_TENSOR_SHAPE, "dim", 0),
            (&data.strides, OFFSET_TENSOR_STRIDES, "stride", -SIZE_LIMIT),
        ] {
            if sizes.is_empty() {
                continue;
            }
            // This load is not merged with that of the descriptor's check, so the address occupies no register while the other
            // arguments are checked.
            let argument = (t.position * 8) as i32;
            let descriptor = self.b.ins().load(types::I64, mem(), args, argument);
            let values = self.b.ins().load(types::I64, mem(), descriptor, list as i32);
            for (index, &e) in sizes.iter().enumerate() {
                let actual = self.b.ins().load(types::I64, mem(), values, (index * 8) as i32);
                let size = pliant_tir::text::format_expr(f, e);
                self.bounded(actual, least, format!("{arg}: {noun} {index} ({size})"));
                match self.undefined_var(e) {
                    Some(v) => {
                        self.vars.insert(v, V::S(actual));
                        if self.many_arguments {
                            let (list, index) = (list as i32, (index * 8) as i32);
                            self.sizes.insert(v, SizeAt { args, argument, list, index });
                        }
                    }
                    None => {
                        let expected = pliant_tir::text::format_expr(f, e);
                        let what = format!("{arg}: {noun} {index} is not {expected}");
                        let comparison = Pending { actual, expected: e, what };
                        if self.is_defined(e) {
                            self.compare(comparison)?;
                        } else {
                            pending.push(comparison);
                        }
                    }
                }
            }
        }
        if let Some(offset) = data.elem_offset {
            // The ABI guarantees that the `byte_offset` of a tensor is 0.
            match self.undefined_var(offset) {
                Some(v) => {
                    let zero = self.b.ins().iconst(types::I64, 0);
                    self.vars.insert(v, V::S(zero));
                }
                None => {
                    let what = format!("{arg}: the offset is not 0");
                    let actual = self.b.ins().iconst(types::I64, 0);
                    pending.push(Pending { actual, expected: offset, what });
                }
            }
        }
        Ok(())
    }

    /// Whether all variables of a size have values.
    fn is_defined(&self, e: Expr) -> bool {
        let mut defined = true;
        for_each_expr(self.f, e, |e| {
            if let ExprData::Var(v) = self.f.expr(e) {
                defined &= self.vars.contains_key(v);
            }
        });
        defined
    }

    /// Whether an int64 parameter may have any value, because no bounds check relies on its range.
    fn is_unbounded(&self, position: usize) -> bool {
        match self.f.attrs.get(UNBOUNDED_PARAMS) {
            Some(AttrValue::List(list)) => list.contains(&AttrValue::Int(position as i64)),
            _ => false,
        }
    }

    /// Fails the loop function unless a value is between `least`, which is not positive, and [`SIZE_LIMIT`]. Bounds checks rely on
    /// this range.
    fn bounded(&mut self, value: Value, least: i64, what: String) {
        let moved = self.b.ins().iadd_imm_s(value, -least);
        let beyond = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, moved, SIZE_LIMIT - least);
        let range = if least == 0 { "negative or beyond 2**40" } else { "beyond 2**40" };
        self.check_not(beyond, &format!("{what} is {range}"));
    }

    fn undefined_var(&self, e: Expr) -> Option<Var> {
        match self.f.expr(e) {
            ExprData::Var(v) if !self.vars.contains_key(v) && self.f.expr_ty(e) == Ty::I64 => {
                Some(*v)
            }
            _ => None,
        }
    }
}
