//! Text forms of a program: an assembly listing, Python builder calls, and statistics.

use std::fmt::Write;

use crate::bytecode_program::{Arg, ArgValue, Constant, Executable, FuncDef, Instr, VmFunction};

impl Executable {
    /// Returns the assembly listing of the program.
    pub fn as_text(&self) -> String {
        let mut out = String::new();
        if self.exec_mode() != "bytecode" {
            out.push_str(&format!("# exec_mode: {}\n\n", self.exec_mode()));
        }
        for def in &self.funcs {
            let result = match def {
                FuncDef::Packed(name) => writeln!(out, "@{name} packed_func;\n"),
                FuncDef::LoopFunc(info) => {
                    writeln!(out, "@{} num_inputs={} kernel;\n", info.name, info.args.len())
                }
                FuncDef::Vm(function) => self.function_text(&mut out, function),
            };
            result.expect("writing to a String cannot fail");
        }
        out
    }

    fn function_text(&self, out: &mut String, function: &VmFunction) -> std::fmt::Result {
        writeln!(out, "@{}:", function.name)?;
        for instr in &function.instrs {
            match *instr {
                Instr::Call { func, dst, .. } => {
                    let args = self.join(function, instr, |arg| self.arg_text(arg));
                    let name = self.func_name(func);
                    writeln!(out, "  call  {name:<16} in: {args:<12} dst: {dst}")?;
                }
                Instr::Ret { reg } => writeln!(out, "  ret   {reg}")?,
                Instr::Goto { offset } => writeln!(out, "  goto  {offset}")?,
                Instr::If { cond, false_offset } => {
                    writeln!(out, "  if    {cond}, {false_offset}")?
                }
            }
        }
        writeln!(out)
    }

    /// Returns Python code that recreates the bytecode with calls of `ExecBuilder`.
    pub fn as_python(&self) -> String {
        let mut out = String::from("ib = relax.ExecBuilder()\n");
        for function in self.vm_functions() {
            self.function_python(&mut out, function).expect("writing to a String cannot fail");
        }
        out
    }

    fn function_python(&self, out: &mut String, function: &VmFunction) -> std::fmt::Result {
        let inputs = function.params.len();
        writeln!(out, "with ib.function({:?}, num_inputs={inputs}):", function.name)?;
        for instr in &function.instrs {
            match *instr {
                Instr::Call { func, dst, .. } => {
                    let args = self.join(function, instr, |arg| self.arg_python(arg));
                    write!(out, "    ib.emit_call({:?}, args=[{args}]", self.func_name(func))?;
                    if !dst.is_void() {
                        write!(out, ", dst=ib.r({}))", dst.0)?;
                    } else {
                        out.push(')');
                    }
                    out.push('\n');
                }
                Instr::Ret { reg } => writeln!(out, "    ib.emit_ret(ib.r({}))", reg.0)?,
                Instr::Goto { offset } => writeln!(out, "    ib.emit_goto({offset})")?,
                Instr::If { cond, false_offset } => {
                    writeln!(out, "    ib.emit_if(ib.r({}), {false_offset})", cond.0)?;
                }
            }
        }
        Ok(())
    }

    fn func_name(&self, index: u32) -> &str {
        self.funcs.get(index as usize).map_or("?", FuncDef::name)
    }

    fn join(&self, f: &VmFunction, instr: &Instr, show: impl Fn(Arg) -> String) -> String {
        f.call_args(instr).iter().map(|&arg| show(arg)).collect::<Vec<_>>().join(", ")
    }

    fn arg_text(&self, arg: Arg) -> String {
        match arg.decode() {
            Some(ArgValue::Reg(reg)) => reg.to_string(),
            Some(ArgValue::Imm(value)) => format!("i{value}"),
            Some(ArgValue::Const(index)) => format!("c[{index}]"),
            Some(ArgValue::Func(index)) => format!("f[{}]", self.func_name(index)),
            None => "?".to_string(),
        }
    }

    fn arg_python(&self, arg: Arg) -> String {
        match arg.decode() {
            Some(ArgValue::Reg(reg)) => format!("ib.r({})", reg.0),
            Some(ArgValue::Imm(value)) => format!("ib.imm({value})"),
            Some(ArgValue::Const(index)) => format!("ib.c({index})"),
            Some(ArgValue::Func(index)) => format!("ib.f({:?})", self.func_name(index)),
            None => "None".to_string(),
        }
    }

    /// Returns statistics of the executable as text: the numbers and sizes of its constants and
    /// functions.
    pub fn stats(&self) -> String {
        let mut bytes = 0usize;
        let mut constants = Vec::new();
        for constant in &self.constants {
            constants.push(match constant {
                Constant::Tensor(tensor) if tensor.ndim() == 0 => {
                    bytes += tensor.nbytes();
                    "scalar".to_string()
                }
                Constant::Tensor(tensor) => {
                    bytes += tensor.nbytes();
                    format!("{:?}", tensor.shape())
                }
                Constant::Shape(shape) => format!("shape{shape:?}"),
                Constant::Int(value) => value.to_string(),
                Constant::Float(value) => format!("{value:?}"),
                Constant::Bool(value) => value.to_string(),
                Constant::Str(text) => format!("{text:?}"),
                Constant::DType(dtype) => dtype.to_string(),
                Constant::None => "None".to_string(),
            });
        }
        let functions: Vec<String> = self
            .vm_functions()
            .map(|f| {
                format!("{} ({} instructions, {} registers)", f.name, f.instrs.len(), f.num_regs)
            })
            .collect();
        let kernels: Vec<&str> = self.loop_funcs().map(|k| &*k.name).collect();
        let packed: Vec<&str> = self.packed_names().collect();
        format!(
            "Relax VM executable statistics:\n  Execution mode: {}\n  Constants (#{}, {bytes} bytes in tensors): [{}]\n  \
             Functions (#{}): [{}]\n  Kernels (#{}): [{}]\n  Packed functions (#{}): [{}]\n",
            self.exec_mode(),
            constants.len(),
            constants.join(", "),
            functions.len(),
            functions.join(", "),
            kernels.len(),
            kernels.join(", "),
            packed.len(),
            packed.join(", "),
        )
    }
}

impl VmFunction {
    /// The operands of a call instruction in the body of this function, or an empty slice for other
    /// instructions.
    pub fn call_args(&self, instr: &Instr) -> &[Arg] {
        match *instr {
            Instr::Call { args_start, args_len, .. } => {
                let start = args_start as usize;
                self.args.get(start..start.saturating_add(args_len as usize)).unwrap_or_default()
            }
            _ => &[],
        }
    }
}
