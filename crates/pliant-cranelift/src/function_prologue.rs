//! The prologue of a loop function: loads the arguments, defines the size variables, and checks all properties of the
//! arguments that the body relies on.

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
use pliant_kernels::tensor_argument_check::{TENSOR_FAULTS, dtype_word};
use pliant_tensor::CheckFailure;
use pliant_tensor::DType;
use pliant_tir::check_bounds::UNBOUNDED_PARAMS;
use pliant_tir::overflow_analysis::SIZE_LIMIT;
use rustc_hash::FxHashMap;

use crate::buffer_accesses::{BufferLocation, SizeLocation};
use crate::compilation_unit::Unit;
use crate::function_builder::{
    FuncGen, Gen, abi_signature, constant_mem_flags, mem_flags, unsupported,
};
use crate::value_representations::{ExprValue, scalar_type};

/// Maximum number of tensor arguments whose addresses and sizes the prologue loads. If there are
/// more, each statement loads the addresses and sizes that it uses.
const MAX_PRELOADED_ARGUMENTS: usize = 16;

/// A tensor argument of a loop function, for which the prologue checks dims and strides.
struct TensorArg {
    /// The position of the argument in the argument list of the loop function.
    position: usize,
    buffer: Buffer,
}

/// A check that a dim, stride or offset of an argument equals an expression. The check is deferred while the expression
/// contains undefined variables.
struct SizeCheck {
    actual: Value,
    expected: Expr,
    /// The error message if the actual and the expected size differ.
    message: String,
}

/// Generates the machine function of a loop function. Returns the id of the machine function and the error messages of
/// its checks.
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
            locations: FxHashMap::default(),
            limits: FxHashMap::default(),
            size_locations: FxHashMap::default(),
            memo: FxHashMap::default(),
            fail,
            stack_bytes: 0,
            call_stack_bytes: 0,
            loop_depth: 0,
            many_arguments: f.buffer_map.len() > MAX_PRELOADED_ARGUMENTS,
            in_parallel: false,
            shared_buffers: Vec::new(),
        };
        g.unpack_arguments(args)?;
        g.stmt(f.body)?;
        g.finish_body(fail);
        let config = g.unit.module.target_config();
        g.b.finalize(config);
    }
    unit.return_context(frontend);
    unit.define(id, &mut ctx)?;
    Ok((id, messages))
}

impl FuncGen<'_, '_> {
    /// Loads and checks the arguments, whose array is at the address `args`.
    fn unpack_arguments(&mut self, args: Value) -> Gen<()> {
        let f = self.f;
        let mut tensors = Vec::new();
        for (position, &param) in f.params.iter().enumerate() {
            let offset = (position * 8) as i32;
            match f.var(param).ty {
                VarTy::Handle => {
                    let buffer = f.buffer_map[&param];
                    let descriptor =
                        self.b.ins().load(types::I64, constant_mem_flags(), args, offset);
                    self.check_descriptor(position, buffer, descriptor)?;
                    tensors.push(TensorArg { position, buffer });
                }
                VarTy::Value(ty) => {
                    let value = self.scalar_argument(args, offset, ty, &f.var(param).name)?;
                    if ty == Ty::I64 && !self.is_unbounded(position) {
                        let name = &f.var(param).name;
                        self.check_range(
                            value,
                            -SIZE_LIMIT,
                            format!("argument {position} ('{name}')"),
                        );
                    }
                    self.vars.insert(param, ExprValue::Scalar(value));
                }
            }
        }
        let mut deferred = Vec::new();
        for t in &tensors {
            self.define_sizes(t, args, &mut deferred)?;
        }
        for check in deferred {
            self.check_size(check)?;
        }
        for t in tensors {
            let location = BufferLocation::Argument(args, (t.position * 8) as i32);
            self.locations.insert(t.buffer, location);
            if !self.many_arguments {
                let base = self.base_address(t.buffer)?;
                self.locations.insert(t.buffer, BufferLocation::Address(base));
            }
            self.record_limits(t.buffer)?;
        }
        Ok(())
    }

    fn check_size(&mut self, check: SizeCheck) -> Gen<()> {
        self.memo.clear();
        let expected = self.checked_size(check.expected, &check.message)?;
        let differs = self.b.ins().icmp(IntCC::NotEqual, check.actual, expected);
        self.shape_error_if(differs, &check.message);
        Ok(())
    }

    /// Loads the scalar argument of the parameter `name`, which the caller passes as int64 or float64.
    fn scalar_argument(&mut self, args: Value, offset: i32, ty: Ty, name: &str) -> Gen<Value> {
        let machine_type = scalar_type(ty.dtype);
        if ty.lanes != 1 {
            return unsupported(format!(
                "the parameter '{name}' has the vector type {ty}; declare a scalar or a buffer"
            ));
        }
        if ty.dtype.is_float() {
            let wide = self.b.ins().load(types::F64, constant_mem_flags(), args, offset);
            return match self.cast(ExprValue::Scalar(wide), Ty::scalar(DType::Float64), ty)? {
                ExprValue::Scalar(v) => Ok(v),
                _ => unreachable!("a cast of a scalar is a scalar"),
            };
        }
        let wide = self.b.ins().load(types::I64, constant_mem_flags(), args, offset);
        if machine_type == types::I64 {
            Ok(wide)
        } else {
            Ok(self.b.ins().ireduce(machine_type, wide))
        }
    }

    /// Checks rank, element type and layout of a tensor argument by one call of a runtime function,
    /// which returns 0 or the number of the violated requirement. The error messages are recorded
    /// in the order of these numbers.
    fn check_descriptor(&mut self, position: usize, buffer: Buffer, descriptor: Value) -> Gen<()> {
        let data = self.f.buffer(buffer);
        let (name, ndim, dtype) = (data.name.clone(), data.shape.len(), data.dtype);
        let compact = data.strides.is_empty();
        let arg = format!("argument {position} ('{name}')");
        let first_message = self.messages.len() as i64;
        let messages = [
            CheckFailure::Shape.mark(&format!("{arg} does not have rank {ndim}")),
            CheckFailure::Shape.mark(&format!("{arg} does not have element type {dtype}")),
            CheckFailure::Shape.mark(&format!("{arg} has no memory or is not contiguous")),
        ];
        debug_assert_eq!(messages.len(), TENSOR_FAULTS);
        self.messages.extend(messages.into_iter().map(Arc::from));
        let (code, bits) = dtype.to_dlpack();
        let words = [ndim as i64, dtype_word(code, bits), i64::from(compact)];
        let words = words.map(|w| self.b.ins().iconst(types::I64, w));
        let fault =
            self.call_linked("pliant_check_tensor", &[descriptor, words[0], words[1], words[2]])?;
        let failed = self.b.ins().icmp_imm_s(IntCC::NotEqual, fault, 0);
        let status = self.b.ins().iadd_imm_s(fault, first_message);
        self.fail_if(failed, status);
        Ok(())
    }

    /// Loads the dims and strides of a tensor argument. A dim or stride that is a single undefined variable defines this
    /// variable. Every other dim or stride is checked against its expression; checks whose expressions contain undefined
    /// variables are added to `deferred`.
    fn define_sizes(
        &mut self,
        t: &TensorArg,
        args: Value,
        deferred: &mut Vec<SizeCheck>,
    ) -> Gen<()> {
        let f = self.f;
        let data = f.buffer(t.buffer);
        let arg = format!("argument {} ('{}')", t.position, data.name);
        for (sizes, list, noun, min) in [
            (&data.shape, OFFSET_TENSOR_SHAPE, "dim", 0),
            (&data.strides, OFFSET_TENSOR_STRIDES, "stride", -SIZE_LIMIT),
        ] {
            if sizes.is_empty() {
                continue;
            }
            // These flags prevent merging with the load in the descriptor's check, so the address occupies no register
            // while the other arguments are checked.
            let argument = (t.position * 8) as i32;
            let descriptor = self.b.ins().load(types::I64, mem_flags(), args, argument);
            let values = self.b.ins().load(types::I64, mem_flags(), descriptor, list as i32);
            for (index, &e) in sizes.iter().enumerate() {
                let actual = self.b.ins().load(types::I64, mem_flags(), values, (index * 8) as i32);
                let size = pliant_tir::format_index_expressions::format_expr(f, e);
                self.check_range(actual, min, format!("{arg}: {noun} {index} ({size})"));
                match self.undefined_var(e) {
                    Some(v) => {
                        self.vars.insert(v, ExprValue::Scalar(actual));
                        if self.many_arguments {
                            let (list, index) = (list as i32, (index * 8) as i32);
                            self.size_locations
                                .insert(v, SizeLocation { args, argument, list, index });
                        }
                    }
                    None => {
                        let expected = pliant_tir::format_index_expressions::format_expr(f, e);
                        let message = format!("{arg}: {noun} {index} is not {expected}");
                        let check = SizeCheck { actual, expected: e, message };
                        if self.is_defined(e) {
                            self.check_size(check)?;
                        } else {
                            deferred.push(check);
                        }
                    }
                }
            }
        }
        if let Some(offset) = data.elem_offset {
            // The ABI guarantees a `byte_offset` of 0.
            match self.undefined_var(offset) {
                Some(v) => {
                    let zero = self.b.ins().iconst(types::I64, 0);
                    self.vars.insert(v, ExprValue::Scalar(zero));
                }
                None => {
                    let message = format!("{arg}: the element offset is not 0");
                    let actual = self.b.ins().iconst(types::I64, 0);
                    deferred.push(SizeCheck { actual, expected: offset, message });
                }
            }
        }
        Ok(())
    }

    /// Whether all variables of an expression are defined.
    fn is_defined(&self, e: Expr) -> bool {
        let mut defined = true;
        for_each_expr(self.f, e, |e| {
            if let ExprData::Var(v) = self.f.expr(e) {
                defined &= self.vars.contains_key(v);
            }
        });
        defined
    }

    /// Whether the int64 parameter at this position may have any value, so that the prologue does not check its range.
    fn is_unbounded(&self, position: usize) -> bool {
        match self.f.attrs.get(UNBOUNDED_PARAMS) {
            Some(AttrValue::List(list)) => list.contains(&AttrValue::Int(position as i64)),
            _ => false,
        }
    }

    /// Fails the loop function unless a value is in `min..=`[`SIZE_LIMIT`], the range that bounds checks rely on. `min`
    /// is 0 or negative.
    fn check_range(&mut self, value: Value, min: i64, subject: String) {
        let shifted = self.b.ins().iadd_imm_s(value, -min);
        let out_of_range =
            self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, shifted, SIZE_LIMIT - min);
        let range = if min == 0 { "0 to 2**40" } else { "-2**40 to 2**40" };
        self.shape_error_if(out_of_range, &format!("{subject} is not in the range {range}"));
    }

    /// If an expression is a single int64 variable that is not defined yet, returns the variable.
    fn undefined_var(&self, e: Expr) -> Option<Var> {
        match self.f.expr(e) {
            ExprData::Var(v) if !self.vars.contains_key(v) && self.f.expr_ty(e) == Ty::I64 => {
                Some(*v)
            }
            _ => None,
        }
    }
}
