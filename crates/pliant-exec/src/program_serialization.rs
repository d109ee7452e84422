//! The binary form of the program section, in postcard format.
//!
//! These types define the file format. Any change to them requires a new [`SCHEMA`] text, so that
//! files of other builds are rejected instead of misread.

use serde::{Deserialize, Serialize};

use crate::bytecode_program::{
    Arg, Constant, FuncDef, Instr, LoopFuncInfo, LoopFuncParam, Param, Reg, VmFunction,
};
use crate::instruction_source_locations::LineRun;
use crate::{ExecError, bytecode_program::Executable};
use pliant_tensor::{DType, Storage, Tensor, checked_nbytes};

/// A description of the serialized types of this module. Every file contains the hash of this text.
pub(crate) const SCHEMA: &str = "2 Program{funcs constants metadata files} Func{Vm: lines} Func{Vm Kernel Packed} \
    Constant{Tensor Shape Int Float Bool Str DType None} KernelArg{Any Tensor Int Float Bool}";

/// The alignment in bytes of each tensor in the constants section of an executable file.
pub(crate) const TENSOR_ALIGN: u64 = 64;

#[derive(Serialize, Deserialize)]
struct Program {
    funcs: Vec<Func>,
    constants: Vec<Const>,
    metadata: Vec<(String, String)>,
    files: Vec<String>,
}

#[derive(Serialize, Deserialize)]
enum Func {
    Vm {
        name: String,
        params: Vec<(String, String)>,
        ret_ty: String,
        num_regs: u32,
        instrs: Vec<Op>,
        args: Vec<u64>,
        lines: Vec<(u32, u32, u32, u32)>,
    },
    Kernel {
        name: String,
        args: Vec<KArg>,
        checks: Vec<String>,
    },
    Packed(String),
}

#[derive(Serialize, Deserialize)]
enum Op {
    Call { func: u32, args_start: u32, args_len: u32, dst: u32 },
    Ret(u32),
    If { cond: u32, false_offset: i32 },
    Goto(i32),
}

#[derive(Serialize, Deserialize)]
enum KArg {
    Any,
    Tensor { dtype: Option<u8>, ndim: Option<u8>, written: bool, strided: bool },
    Int(u8),
    Float,
    Bool,
}

#[derive(Serialize, Deserialize)]
enum Const {
    Tensor { dtype: u8, shape: Vec<i64>, offset: u64 },
    Shape(Vec<i64>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
    DType(u8),
    None,
}

/// The constant tensors in order, each with its byte offset in the constants section.
pub(crate) type TensorOffsets = Vec<(u64, Tensor)>;

fn dtype(index: u8) -> Result<DType, ExecError> {
    DType::from_index(index).ok_or_else(|| {
        ExecError::format(format!(
            "the program section is damaged: the dtype code {index} is unknown"
        ))
    })
}

/// Encodes the program section of `exe`. Also returns the tensors of the constants section with their offsets.
pub(crate) fn encode(exe: &Executable) -> Result<(Vec<u8>, TensorOffsets), ExecError> {
    let mut tensors = Vec::new();
    let mut end = 0u64;
    let constants = exe.constants.iter().map(|constant| match constant {
        Constant::Tensor(tensor) => {
            let offset = end.next_multiple_of(TENSOR_ALIGN);
            end = offset + tensor.nbytes() as u64;
            tensors.push((offset, tensor.clone()));
            Const::Tensor { dtype: tensor.dtype() as u8, shape: tensor.shape().to_vec(), offset }
        }
        Constant::Shape(shape) => Const::Shape(shape.to_vec()),
        Constant::Int(value) => Const::Int(*value),
        Constant::Float(value) => Const::Float(*value),
        Constant::Bool(value) => Const::Bool(*value),
        Constant::Str(text) => Const::Str(text.to_string()),
        Constant::DType(dtype) => Const::DType(*dtype as u8),
        Constant::None => Const::None,
    });
    let program = Program {
        constants: constants.collect(),
        funcs: exe.funcs.iter().map(encode_func).collect(),
        metadata: exe.metadata.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        files: exe.files.clone(),
    };
    let bytes = postcard::to_allocvec(&program).map_err(|error| {
        ExecError::format(format!(
            "the program section of the executable cannot be encoded: {error}"
        ))
    })?;
    Ok((bytes, tensors))
}

fn encode_func(def: &FuncDef) -> Func {
    match def {
        FuncDef::Packed(name) => Func::Packed(name.clone()),
        FuncDef::LoopFunc(info) => Func::Kernel {
            name: info.name.clone(),
            args: info.args.iter().map(|arg| encode_loop_func_param(*arg)).collect(),
            checks: info.checks.clone(),
        },
        FuncDef::Vm(f) => Func::Vm {
            name: f.name.clone(),
            params: f.params.iter().map(|p| (p.name.clone(), p.ty.clone())).collect(),
            ret_ty: f.ret_ty.clone(),
            num_regs: f.num_regs,
            instrs: f.instrs.iter().map(|instr| encode_instr(*instr)).collect(),
            args: f.args.iter().map(|arg| arg.0).collect(),
            lines: f.lines.iter().map(|r| (r.start, r.file, r.line, r.last)).collect(),
        },
    }
}

fn encode_loop_func_param(arg: LoopFuncParam) -> KArg {
    match arg {
        LoopFuncParam::Any => KArg::Any,
        LoopFuncParam::Tensor { dtype, ndim, written, strided } => {
            KArg::Tensor { dtype: dtype.map(|d| d as u8), ndim, written, strided }
        }
        LoopFuncParam::Int(dtype) => KArg::Int(dtype as u8),
        LoopFuncParam::Float => KArg::Float,
        LoopFuncParam::Bool => KArg::Bool,
    }
}

fn encode_instr(instr: Instr) -> Op {
    match instr {
        Instr::Call { func, args_start, args_len, dst } => {
            Op::Call { func, args_start, args_len, dst: dst.0 }
        }
        Instr::Ret { reg } => Op::Ret(reg.0),
        Instr::If { cond, false_offset } => Op::If { cond: cond.0, false_offset },
        Instr::Goto { offset } => Op::Goto(offset),
    }
}

/// Decodes the program section without validating the result. The constants section is `start..start + len` of `storage`.
pub(crate) fn decode(
    bytes: &[u8],
    storage: &Storage,
    start: usize,
    len: usize,
) -> Result<Executable, ExecError> {
    let (program, rest) = postcard::take_from_bytes::<Program>(bytes)
        .map_err(|error| ExecError::format(format!("the program section is damaged: {error}")))?;
    if !rest.is_empty() {
        return Err(ExecError::format(
            "the program section is damaged: there are bytes after the program",
        ));
    }
    let mut constants = Vec::new();
    let mut end = 0u64;
    for constant in program.constants {
        constants.push(match constant {
            Const::Tensor { dtype: index, shape, offset } => {
                let dtype = dtype(index)?;
                let bad = |why: String| {
                    ExecError::format(format!("the program section is damaged: {why}"))
                };
                let nbytes = checked_nbytes(&shape, dtype)
                    .map_err(|e| bad(format!("a constant tensor has an invalid shape: {e}")))?;
                // Tensors must be adjacent, so that they neither overlap nor leave gaps.
                if end.checked_next_multiple_of(TENSOR_ALIGN) != Some(offset) {
                    return Err(bad(
                        "a constant tensor does not follow the previous constant tensor".into(),
                    ));
                }
                end = offset.saturating_add(nbytes as u64);
                if end > len as u64 {
                    return Err(bad("a constant tensor exceeds the constants section".into()));
                }
                let at = start + offset as usize;
                let tensor = Tensor::from_storage(storage.clone(), at, &shape, dtype)
                    .map_err(|e| bad(format!("a constant tensor is invalid: {e}")))?;
                Constant::Tensor(tensor.as_read_only())
            }
            Const::Shape(shape) => Constant::Shape(shape.into()),
            Const::Int(value) => Constant::Int(value),
            Const::Float(value) => Constant::Float(value),
            Const::Bool(value) => Constant::Bool(value),
            Const::Str(text) => Constant::Str(text.into()),
            Const::DType(index) => Constant::DType(dtype(index)?),
            Const::None => Constant::None,
        });
    }
    if end != len as u64 {
        return Err(ExecError::format(
            "the constants section is damaged: there are bytes after the last tensor",
        ));
    }
    let funcs = program.funcs.into_iter().map(decode_func).collect::<Result<Vec<_>, _>>()?;
    let by_name = (0u32..).zip(&funcs).map(|(i, f)| (f.name().to_string(), i)).collect();
    let metadata = program.metadata.into_iter().collect();
    let files = program.files;
    Ok(Executable { funcs, constants, kernels: Vec::new(), metadata, files, by_name })
}

fn decode_func(func: Func) -> Result<FuncDef, ExecError> {
    Ok(match func {
        Func::Packed(name) => FuncDef::Packed(name),
        Func::Kernel { name, args, checks } => {
            let args = args.into_iter().map(decode_loop_func_param).collect::<Result<_, _>>()?;
            FuncDef::LoopFunc(LoopFuncInfo { name, args, checks })
        }
        Func::Vm { name, params, ret_ty, num_regs, instrs, args, lines } => {
            FuncDef::Vm(VmFunction {
                name,
                params: params.into_iter().map(|(name, ty)| Param { name, ty }).collect(),
                ret_ty,
                num_regs,
                instrs: instrs.into_iter().map(decode_instr).collect(),
                args: args.into_iter().map(Arg).collect(),
                lines: lines
                    .into_iter()
                    .map(|(start, file, line, last)| LineRun { start, file, line, last })
                    .collect(),
            })
        }
    })
}

fn decode_loop_func_param(arg: KArg) -> Result<LoopFuncParam, ExecError> {
    Ok(match arg {
        KArg::Any => LoopFuncParam::Any,
        KArg::Tensor { dtype: index, ndim, written, strided } => {
            LoopFuncParam::Tensor { dtype: index.map(dtype).transpose()?, ndim, written, strided }
        }
        KArg::Int(index) => LoopFuncParam::Int(dtype(index)?),
        KArg::Float => LoopFuncParam::Float,
        KArg::Bool => LoopFuncParam::Bool,
    })
}

fn decode_instr(op: Op) -> Instr {
    match op {
        Op::Call { func, args_start, args_len, dst } => {
            Instr::Call { func, args_start, args_len, dst: Reg(dst) }
        }
        Op::Ret(reg) => Instr::Ret { reg: Reg(reg) },
        Op::If { cond, false_offset } => Instr::If { cond: Reg(cond), false_offset },
        Op::Goto(offset) => Instr::Goto { offset },
    }
}
