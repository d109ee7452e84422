//! Mutates the fields of a saved program. The layout of the bytecode stays valid, so that most mutants pass the
//! validator.

use super::super::random_numbers::{Rng, mutate_bytes};
use super::super::script;
use super::program_format::{Const, Func, KArg, Op, Program, Vm};
use super::section_container::{Sections, read_sections, write_file};

/// The number of bits of a bytecode operand that contain its value. The bits above encode its kind.
const PAYLOAD_BITS: u32 = 56;

/// Mutates one part of an executable: fields of the program, the script of the loop functions, or
/// the bytes of a section.
pub fn mutate(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let Some(mut sections) = read_sections(input) else { return mutate_bytes(input, other, rng) };
    let others = read_sections(other);
    match rng.below(16) {
        0 => {
            let k = rng.below(3);
            let empty = Vec::new();
            let donor = others.as_ref().map_or(&empty, |o| &o[k]);
            sections[k] = mutate_bytes(&sections[k], donor, rng);
        }
        1 => {
            if let Some(others) = others {
                let k = rng.below(3);
                sections[k] = others[k].clone();
            }
        }
        2..7 => mutate_kernels(&mut sections, others.as_ref(), rng),
        _ => mutate_program(&mut sections, others.as_ref(), rng),
    }
    write_file(&sections)
}

/// Mutates the script of the loop functions, which is the section `kernels`.
fn mutate_kernels(sections: &mut Sections, others: Option<&Sections>, rng: &mut Rng) {
    let other = others.map_or(&[][..], |o| &o[2]);
    sections[2] = script::mutate(&sections[2], other, rng);
}

fn mutate_program(sections: &mut Sections, others: Option<&Sections>, rng: &mut Rng) {
    let read = |bytes: &[u8]| postcard::from_bytes::<Program>(bytes).ok();
    let Some(mut p) = read(&sections[0]) else { return };
    let other = others.and_then(|o| read(&o[0]));
    for _ in 0..=rng.below(3) {
        match rng.below(10) {
            0 | 1 => mutate_constant(&mut p.constants, other.as_ref(), rng),
            2 => mutate_function_entry(&mut p, rng),
            3 => mutate_metadata(&mut p, rng),
            _ => mutate_vm_function(&mut p, rng),
        }
    }
    if let Ok(bytes) = postcard::to_allocvec(&p) {
        sections[0] = bytes;
    }
}

/// Adds a constant or mutates an existing one.
fn mutate_constant(constants: &mut Vec<Const>, other: Option<&Program>, rng: &mut Rng) {
    if let Some(other) = other.filter(|o| !o.constants.is_empty() && rng.one_in(4)) {
        constants.push(rng.pick(&other.constants).clone());
    }
    if constants.is_empty() {
        constants.push(Const::Int(rng.boundary_value(0)));
    }
    let index = rng.below(constants.len());
    if rng.one_in(4) {
        constants[index] = match rng.below(7) {
            0 => Const::Shape((0..rng.below(5)).map(|_| rng.boundary_value(2)).collect()),
            1 => Const::Int(rng.boundary_value(0)),
            2 => Const::Float(*rng.pick(&[0.0, -1.0, 1e300, f64::NAN])),
            3 => Const::Bool(rng.one_in(2)),
            4 => Const::Str(rng.pick(&["", "float32", "{}", "{9}", "\t\n", "global"]).to_string()),
            5 => Const::DType(rng.below(18) as u8),
            _ => Const::None,
        };
        return;
    }
    match &mut constants[index] {
        Const::Tensor { dtype, shape, offset } => match rng.below(4) {
            0 => *dtype = rng.below(18) as u8,
            1 => *offset = rng.boundary_value(*offset as i64) as u64,
            2 if !shape.is_empty() => {
                let d = rng.below(shape.len());
                shape[d] = rng.boundary_value(shape[d]);
            }
            _ => shape.insert(0, rng.between(0, 2)),
        },
        Const::Shape(shape) if !shape.is_empty() && !rng.one_in(4) => {
            let d = rng.below(shape.len());
            shape[d] = rng.boundary_value(shape[d]);
        }
        Const::Shape(shape) => shape.push(rng.boundary_value(1)),
        Const::Int(value) => *value = rng.boundary_value(*value),
        Const::Str(text) => {
            *text = String::from_utf8_lossy(&mutate_bytes(text.as_bytes(), b"{n}", rng)).into()
        }
        Const::DType(dtype) => *dtype = rng.below(18) as u8,
        _ => {}
    }
}

/// Adds an entry to the function table or mutates an existing one.
fn mutate_function_entry(p: &mut Program, rng: &mut Rng) {
    if rng.one_in(3) {
        let name = rng.pick(pliant_exec::BUILTINS).name;
        p.funcs.push(Func::Packed(name.into()));
    }
    let index = rng.below(p.funcs.len());
    let Some(func) = p.funcs.get_mut(index) else { return };
    match func {
        Func::Packed(name) => *name = rng.pick(pliant_exec::BUILTINS).name.into(),
        Func::Kernel { args, checks, .. } => match rng.below(3) {
            0 => checks.clear(),
            1 if !args.is_empty() => {
                let a = rng.below(args.len());
                args[a] = match rng.below(5) {
                    0 => KArg::Any,
                    1 => KArg::Int(rng.below(18) as u8),
                    2 => KArg::Float,
                    3 => KArg::Bool,
                    _ => KArg::Tensor {
                        dtype: rng.one_in(2).then(|| rng.below(18) as u8),
                        ndim: rng.one_in(2).then(|| rng.below(5) as u8),
                        written: rng.one_in(2),
                        strided: rng.one_in(2),
                    },
                };
            }
            _ => drop(args.pop()),
        },
        Func::Vm(vm) => vm.name = rng.pick(&["main", "other", "vm.builtin.copy", ""]).to_string(),
    }
}

fn mutate_metadata(p: &mut Program, rng: &mut Rng) {
    let mode = *rng.pick(&["compiled", "bytecode", "none"]);
    p.metadata.retain(|(key, _)| key != "exec_mode");
    p.metadata.push(("exec_mode".into(), mode.into()));
    if rng.one_in(4) {
        for (_, text) in &mut p.metadata {
            *text = String::from_utf8_lossy(&mutate_bytes(text.as_bytes(), b"0", rng)).into();
        }
    }
}

/// A bytecode instruction. If it is a call, the second field contains the operands of the call.
type Instruction = (Op, Vec<u64>);

/// Returns the instructions of a bytecode function.
fn instructions(vm: &Vm) -> Vec<Instruction> {
    let call_args = |op: &Op| match *op {
        Op::Call { args_start, args_len, .. } => {
            let (start, len) = (args_start as usize, args_len as usize);
            vm.args.get(start..start.saturating_add(len)).unwrap_or(&[]).to_vec()
        }
        _ => Vec::new(),
    };
    vm.instrs.iter().map(|op| (*op, call_args(op))).collect()
}

/// Replaces the instructions of a bytecode function.
fn set_instructions(vm: &mut Vm, instructions: Vec<Instruction>) {
    vm.instrs.clear();
    vm.args.clear();
    for (op, args) in instructions {
        let start = vm.args.len() as u32;
        vm.instrs.push(match op {
            Op::Call { func, dst, .. } => {
                Op::Call { func, args_start: start, args_len: args.len() as u32, dst }
            }
            other => other,
        });
        vm.args.extend(args);
    }
}

/// Returns a random operand: a register, an integer, a constant or a function. Indices are rarely
/// out of range.
fn random_operand((regs, constants, funcs): (u32, usize, usize), rng: &mut Rng) -> u64 {
    let out_of_range = usize::from(rng.one_in(16));
    let (kind, payload) = match rng.below(8) {
        0..4 => (0, rng.below(regs as usize + out_of_range) as u64),
        4 | 5 => {
            let value = if rng.one_in(2) { rng.between(-1, 4) } else { rng.boundary_value(1) };
            (1, value as u64 & ((1 << PAYLOAD_BITS) - 1))
        }
        6 => (2, rng.below(constants + out_of_range) as u64),
        _ => (3, rng.below(funcs + out_of_range) as u64),
    };
    kind << PAYLOAD_BITS | payload
}

/// Mutates the instructions, the parameters, the number of registers or the source lines of a bytecode function.
fn mutate_vm_function(p: &mut Program, rng: &mut Rng) {
    let (constants, funcs) = (p.constants.len(), p.funcs.len());
    let vm_functions: Vec<usize> =
        (0..funcs).filter(|&i| matches!(p.funcs[i], Func::Vm(_))).collect();
    if vm_functions.is_empty() {
        return;
    }
    let index = *rng.pick(&vm_functions);
    let Func::Vm(vm) = &mut p.funcs[index] else { return };
    let counts = (vm.num_regs, constants, funcs);
    let mut body = instructions(vm);
    if body.is_empty() {
        return;
    }
    let index = rng.below(body.len());
    let register = |rng: &mut Rng| rng.below(counts.0 as usize) as u32;
    match rng.below(14) {
        0 => drop(body.remove(index)),
        1 => {
            let instruction = body[index].clone();
            body.insert(rng.below(body.len()), instruction);
        }
        2 => {
            let other_index = rng.below(body.len());
            body.swap(index, other_index);
        }
        3 => body.insert(index, (Op::Goto(rng.between(-3, 3) as i32), Vec::new())),
        4 => {
            let op = Op::If { cond: register(rng), false_offset: rng.between(-3, 4) as i32 };
            body.insert(index, (op, Vec::new()));
        }
        5 => body.insert(index, (Op::Ret(register(rng)), Vec::new())),
        6 => {
            let func = rng.below(funcs) as u32;
            let args = (0..rng.below(6)).map(|_| random_operand(counts, rng)).collect();
            let dst = if rng.one_in(3) { u32::MAX } else { register(rng) };
            body.insert(index, (Op::Call { func, args_start: 0, args_len: 0, dst }, args));
        }
        7 => vm.num_regs = rng.boundary_value(vm.num_regs.into()) as u32,
        8 if rng.one_in(2) => drop(vm.params.pop()),
        8 => vm.params.push(("more".into(), String::new())),
        9 => vm.lines.push((rng.below(body.len()) as u32, rng.below(3) as u32, 1, 2)),
        _ => mutate_instruction(&mut body[index], counts, rng),
    }
    set_instructions(vm, body);
}

/// Mutates one field of an instruction.
fn mutate_instruction((op, args): &mut Instruction, counts: (u32, usize, usize), rng: &mut Rng) {
    let register = |rng: &mut Rng| rng.below(counts.0 as usize) as u32;
    match op {
        Op::Call { func, dst, .. } => match rng.below(8) {
            0 => *func = rng.below(counts.2) as u32,
            1 => *dst = if rng.one_in(3) { u32::MAX } else { register(rng) },
            2 => args.push(random_operand(counts, rng)),
            3 => drop(args.pop()),
            4 if args.len() > 1 => {
                let (a, b) = (rng.below(args.len()), rng.below(args.len()));
                args.swap(a, b);
            }
            _ if args.is_empty() => {}
            5 => {
                // Mutates only the payload: another register, number, constant or function.
                let a = rng.below(args.len());
                let payload = args[a] & ((1 << PAYLOAD_BITS) - 1);
                let new = rng.boundary_value(payload as i64) as u64 & ((1 << PAYLOAD_BITS) - 1);
                args[a] = args[a] >> PAYLOAD_BITS << PAYLOAD_BITS | new;
            }
            _ => {
                let a = rng.below(args.len());
                args[a] = random_operand(counts, rng);
            }
        },
        Op::Ret(reg) => *reg = register(rng),
        Op::If { cond, false_offset } => match rng.below(2) {
            0 => *cond = register(rng),
            _ => *false_offset += rng.between(-3, 3) as i32,
        },
        Op::Goto(offset) => *offset += rng.between(-3, 3) as i32,
    }
}
