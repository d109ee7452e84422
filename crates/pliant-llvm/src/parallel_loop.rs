//! Parallel loops: the body is outlined into a separate machine function, which the worker team calls for ranges of
//! iterations.

use std::sync::Arc;

use inkwell::IntPredicate;
use inkwell::values::{FunctionValue, InstructionOpcode, PointerValue};
use pliant_exec::abi::{OFFSET_PARALLEL_LAUNCH, OFFSET_TEAM};
use pliant_ir::AttrValue;
use pliant_ir::tir::{Buffer, Expr, Stmt, Var};
use pliant_tir::buffer_accesses::{PARALLEL_GRAIN, free_names};

use crate::buffer_accesses::BufferLocation;
use crate::debug_bounds_checks::Limits;
use crate::function_builder::{FuncGen, Gen, internal, unsupported};
use crate::values::Value;

/// The values from outside a parallel loop that its body uses: variables, buffer addresses and, if accesses are checked, the
/// range of valid indices of each buffer. The context that the outlined body receives has a slot of 8 bytes for each value, after
/// the slots for the runtime and the lower bound of the loop.
struct Captures<'ctx> {
    vars: Vec<(Var, Value<'ctx>)>,
    buffers: Vec<(Buffer, PointerValue<'ctx>)>,
    limits: Vec<(Buffer, Limits<'ctx>)>,
}

impl<'ctx> Captures<'ctx> {
    /// Returns the captured values, in the order of their slots.
    fn values(&self) -> impl Iterator<Item = Value<'ctx>> {
        let limits = self.limits.iter().flat_map(|&(_, l)| [l.first.into(), l.end.into()]);
        self.vars.iter().map(|c| c.1).chain(self.buffers.iter().map(|c| c.1.into())).chain(limits)
    }
}

/// Number of slots before the captured values in the context, the array that the outlined body of a parallel loop receives: one
/// for the runtime and one for the lower bound of the loop.
const FIXED_SLOTS: usize = 2;

impl<'ctx> FuncGen<'_, 'ctx> {
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
        let (lo, extent) = (self.int(min)?, self.int(extent)?);
        let captures = self.captures(var, body)?;
        let outlined = self.outline(var, body, &captures)?;

        let slots = FIXED_SLOTS + captures.values().count();
        let context = self.call_slot((slots * 8) as u64)?;
        let values = [self.runtime.into(), lo.into()];
        for (i, v) in values.into_iter().chain(captures.values()).enumerate() {
            self.store_at(v, context, i * 8)?;
        }

        let grain = annotations.iter().find(|(k, _)| &**k == PARALLEL_GRAIN);
        let grain = grain.and_then(|(_, v)| v.as_int()).filter(|&grain| grain != 0).unwrap_or(1);
        let launch = self.load_pointer(self.runtime, OFFSET_PARALLEL_LAUNCH)?;
        let team = self.load_pointer(self.runtime, OFFSET_TEAM)?;
        let (pointer, int) = (self.unit.pointer_type(), self.unit.int_type(64));
        let ty = self.unit.function_type(&[pointer, pointer, pointer, int, int], int);
        let extent = self.convert(InstructionOpcode::SExt, extent.into(), int)?;
        let callee = outlined.as_global_value().as_pointer_value();
        let args = [team.into(), callee.into(), context.into(), extent, self.i64(grain).into()];
        let status = self.call_address(ty, launch, &args)?;
        self.fail_if_nonzero(status.into_int_value())?;
        self.memo.clear();
        Ok(())
    }

    /// Collects the values that the body of a loop over `var` captures.
    fn captures(&mut self, var: Var, body: Stmt) -> Gen<Captures<'ctx>> {
        let names = free_names(self.f, body);
        let mut captures = Captures { vars: Vec::new(), buffers: Vec::new(), limits: Vec::new() };
        for v in names.vars.into_iter().filter(|&v| v != var) {
            let name = &self.f.var(v).name;
            match self.vars.get(&v) {
                Some(Value::VectorValue(_)) => {
                    return unsupported(format!(
                        "the body of a parallel loop uses the vector '{name}', which is defined outside of the loop; define it \
                         in the body"
                    ));
                }
                Some(value) => captures.vars.push((v, *value)),
                None => {
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
    fn outline(
        &mut self,
        var: Var,
        body: Stmt,
        captures: &Captures<'ctx>,
    ) -> Gen<FunctionValue<'ctx>> {
        let int = self.unit.int_type(64);
        let ty = self.unit.function_type(&[self.unit.pointer_type(), int, int], int);
        let function = self.unit.add_function(&format!("{}_parallel", self.name), ty);
        let Some(context) = function.get_nth_param(0).map(|p| p.into_pointer_value()) else {
            return internal("the outlined function of a parallel loop has no context parameter");
        };
        let mut inner = FuncGen::new(self.unit, self.f, self.name, function, &mut *self.messages)?;
        inner.in_parallel = true;
        inner.shared_buffers = captures.buffers.iter().map(|&(buffer, _)| buffer).collect();
        inner.runtime = inner.load_pointer(context, 0)?;
        inner.load_captures(context, captures)?;
        inner.range_loop(var, context, body)?;
        inner.finish()?;
        Ok(function)
    }

    /// Generates the start of an outlined body: loads the captured values from the context, the array that the body receives.
    fn load_captures(&mut self, context: PointerValue<'ctx>, captures: &Captures<'ctx>) -> Gen<()> {
        let mut offset = FIXED_SLOTS * 8;
        for &(v, value) in &captures.vars {
            let value = self.load_constant(value.get_type(), context, offset)?;
            self.vars.insert(v, value);
            offset += 8;
        }
        for &(b, _) in &captures.buffers {
            let base = self.load_pointer(context, offset)?;
            self.locations.insert(b, BufferLocation::Memory(base));
            offset += 8;
        }
        for &(b, _) in &captures.limits {
            let load = |g: &Self, at| g.load_constant(g.unit.int_type(64), context, at);
            let (first, end) = (load(self, offset)?, load(self, offset + 8)?);
            let limits = Limits { first: first.into_int_value(), end: end.into_int_value() };
            self.limits.insert(b, limits);
            offset += 16;
        }
        Ok(())
    }

    /// Generates the serial loop of an outlined body over its range of iterations, from `begin` to `end`, its second
    /// and third parameter.
    fn range_loop(&mut self, var: Var, context: PointerValue<'ctx>, body: Stmt) -> Gen<()> {
        let ty = self.var_type(var);
        let first = self.load_constant(ty, context, 8)?.into_int_value();
        let params = [1, 2].map(|i| self.function.get_nth_param(i));
        let [Some(begin), Some(end)] = params else {
            return internal("the body of a parallel loop has no range");
        };
        let begin = self.convert(InstructionOpcode::Trunc, begin, ty)?.into_int_value();
        let end = self.convert(InstructionOpcode::Trunc, end, ty)?.into_int_value();
        let lo = self.b.build_int_add(first, begin, "")?;
        let hi = self.b.build_int_add(first, end, "")?;
        // The sums may wrap. In that case an access that is indexed by the variable fails its check, as in a serial
        // loop.
        let nonempty = self.b.build_int_compare(IntPredicate::SLT, begin, end, "")?;
        self.counted_loop(var, (lo, hi), nonempty, None, body)
    }
}
