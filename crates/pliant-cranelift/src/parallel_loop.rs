//! Parallel loops: the body is outlined into a separate machine function, which the worker team calls for ranges of
//! iterations.

use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use cranelift_module::FuncId;
use pliant_exec::abi::{OFFSET_PARALLEL_LAUNCH, OFFSET_TEAM};
use pliant_ir::AttrValue;
use pliant_ir::tir::{Buffer, Expr, Stmt, Var};
use pliant_tir::buffer_accesses::{PARALLEL_GRAIN, free_names};
use rustc_hash::FxHashMap;

use crate::buffer_accesses::BufferLocation;
use crate::debug_bounds_checks::Limits;
use crate::function_builder::{
    FuncGen, Gen, abi_signature, constant_mem_flags, mem_flags, unsupported,
};
use crate::value_representations::ExprValue;

/// The values from outside a parallel loop that its body uses: variables, buffer addresses and, if accesses are checked, the
/// range of valid indices of each buffer. The context that the outlined body receives has a slot of 8 bytes for each value, after
/// the slots for the runtime and the lower bound of the loop.
struct Captures {
    vars: Vec<(Var, Value)>,
    buffers: Vec<(Buffer, Value)>,
    limits: Vec<(Buffer, Limits)>,
}

impl Captures {
    /// Returns the captured values, in the order of their slots.
    fn values(&self) -> impl Iterator<Item = Value> {
        let limits = self.limits.iter().flat_map(|&(_, l)| [l.first, l.end]);
        self.vars.iter().map(|c| c.1).chain(self.buffers.iter().map(|c| c.1)).chain(limits)
    }
}

/// Number of slots before the captured values in the context, the array that the outlined body of a parallel loop receives: one
/// for the runtime and one for the lower bound of the loop.
const FIXED_SLOTS: usize = 2;

impl FuncGen<'_, '_> {
    /// Generates a parallel loop: outlines its body and calls the runtime, which distributes the iterations over the
    /// worker team.
    pub fn parallel_loop(
        &mut self,
        var: Var,
        min: Expr,
        extent: Expr,
        body: Stmt,
        annotations: &[(Arc<str>, AttrValue)],
    ) -> Gen<()> {
        let (lo, extent) = (self.scalar(min)?, self.scalar(extent)?);
        let captures = self.captures(var, body)?;
        let outlined = self.outline(var, body, &captures)?;

        let slots = FIXED_SLOTS + captures.values().count();
        let slot = self.call_slot((slots * 8) as u32)?;
        let context = self.b.ins().stack_addr(types::I64, slot, 0);
        let values = [self.runtime, lo];
        for (i, v) in values.into_iter().chain(captures.values()).enumerate() {
            self.b.ins().store(mem_flags(), v, context, (i * 8) as i32);
        }

        let grain = annotations.iter().find(|(k, _)| &**k == PARALLEL_GRAIN);
        let grain = grain.and_then(|(_, v)| v.as_int()).filter(|&grain| grain != 0).unwrap_or(1);
        let grain = self.b.ins().iconst(types::I64, grain);
        let callee = self.unit.func_ref(&mut self.b, outlined);
        let callee = self.b.ins().func_addr(types::I64, callee);
        let launch = self.runtime_fn(OFFSET_PARALLEL_LAUNCH);
        let team = self.runtime_fn(OFFSET_TEAM);
        let sig = abi_signature(&*self.unit.module, &[types::I64; 5], types::I64);
        let sig = self.b.import_signature(sig);
        let extent = self.extend_to_i64(extent);
        let args = [team, callee, context, extent, grain];
        let call = self.b.ins().call_indirect(sig, launch, &args);
        let status = self.b.inst_results(call)[0];
        let failed = self.b.ins().icmp_imm_s(IntCC::NotEqual, status, 0);
        self.fail_if(failed, status);
        self.memo.clear();
        Ok(())
    }

    /// Sign-extends an integer to 64 bits.
    fn extend_to_i64(&mut self, v: Value) -> Value {
        let ty = self.b.func.dfg.value_type(v);
        if ty == types::I64 { v } else { self.b.ins().sextend(types::I64, v) }
    }

    /// Collects the values that the body of a loop over `var` captures.
    fn captures(&mut self, var: Var, body: Stmt) -> Gen<Captures> {
        let names = free_names(self.f, body);
        let mut captures = Captures { vars: Vec::new(), buffers: Vec::new(), limits: Vec::new() };
        for v in names.vars.into_iter().filter(|&v| v != var) {
            match self.vars.get(&v) {
                Some(ExprValue::Scalar(value)) => captures.vars.push((v, *value)),
                Some(_) => {
                    let name = &self.f.var(v).name;
                    return unsupported(format!(
                        "the body of a parallel loop uses the vector '{name}', which is defined outside of the loop; define it \
                         in the body"
                    ));
                }
                None => {
                    let name = &self.f.var(v).name;
                    return unsupported(format!(
                        "the body of a parallel loop uses the variable '{name}', which is not defined before the loop"
                    ));
                }
            }
        }
        for b in names.buffers {
            if let Some(BufferLocation::Registers(_)) = self.locations.get(&b) {
                let name = &self.f.buffer(b).name;
                return unsupported(format!(
                    "the body of a parallel loop uses the buffer '{name}', which is allocated in registers outside of the loop, \
                     so that other threads cannot access it; allocate it in the body"
                ));
            }
            captures.buffers.push((b, self.base_address(b)?));
            captures.limits.extend(self.limits.get(&b).map(|&limits| (b, limits)));
        }
        Ok(captures)
    }

    /// Generates the machine function `body(context, begin, end) -> status`, which runs a range of iterations.
    fn outline(&mut self, var: Var, body: Stmt, captures: &Captures) -> Gen<FuncId> {
        let sig = abi_signature(&*self.unit.module, &[types::I64; 3], types::I64);
        let id = self.unit.declare_function(self.name, &sig)?;
        let mut ctx = Context::new();
        ctx.func.signature = sig;
        let mut frontend = self.unit.take_context();
        {
            let mut b = FunctionBuilder::new(&mut ctx.func, &mut frontend);
            let entry = b.create_block();
            b.append_block_params_for_function_params(entry);
            b.switch_to_block(entry);
            b.seal_block(entry);
            let fail = FuncGen::fail_block(&mut b);
            let params = b.block_params(entry).to_vec();
            let runtime = b.ins().load(types::I64, constant_mem_flags(), params[0], 0);
            let mut inner = FuncGen {
                f: self.f,
                name: self.name,
                b,
                unit: &mut *self.unit,
                messages: &mut *self.messages,
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
                many_arguments: false,
                in_parallel: true,
                shared_buffers: captures.buffers.iter().map(|&(buffer, _)| buffer).collect(),
            };
            inner.load_captures(&params, captures);
            inner.range_loop(var, &params, body)?;
            inner.finish_body(fail);
            let config = inner.unit.module.target_config();
            inner.b.finalize(config);
        }
        self.unit.return_context(frontend);
        self.unit.define(id, &mut ctx)?;
        Ok(id)
    }

    /// Generates the start of an outlined body: loads the captured values from the context, the array that the body receives.
    fn load_captures(&mut self, params: &[Value], captures: &Captures) {
        let mut offset = (FIXED_SLOTS * 8) as i32;
        for &(v, _) in &captures.vars {
            let ty = self.var_type(v);
            let value = self.b.ins().load(ty, constant_mem_flags(), params[0], offset);
            self.vars.insert(v, ExprValue::Scalar(value));
            offset += 8;
        }
        for &(b, _) in &captures.buffers {
            let value = self.b.ins().load(types::I64, constant_mem_flags(), params[0], offset);
            self.locations.insert(b, BufferLocation::Address(value));
            offset += 8;
        }
        for &(b, _) in &captures.limits {
            let [first, end] = [0, 8].map(|at| {
                self.b.ins().load(types::I64, constant_mem_flags(), params[0], offset + at)
            });
            self.limits.insert(b, Limits { first, end });
            offset += 16;
        }
    }

    /// Generates the serial loop of an outlined body over its range of iterations, from `begin` to `end`, its second
    /// and third parameter.
    fn range_loop(&mut self, var: Var, params: &[Value], body: Stmt) -> Gen<()> {
        let ty = self.var_type(var);
        let first = self.b.ins().load(ty, constant_mem_flags(), params[0], 8);
        let reduce =
            |g: &mut Self, v: Value| if ty == types::I64 { v } else { g.b.ins().ireduce(ty, v) };
        let (begin, end) = (reduce(self, params[1]), reduce(self, params[2]));
        let lo = self.b.ins().iadd(first, begin);
        let hi = self.b.ins().iadd(first, end);
        // The sums may wrap. In that case an access that is indexed by the variable fails its check, as in a serial
        // loop.
        let nonempty = self.b.ins().icmp(IntCC::SignedLessThan, begin, end);
        self.counted_loop(var, (lo, hi), nonempty, None, body)
    }
}
