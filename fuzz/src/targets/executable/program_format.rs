//! A copy of the private types that `pliant_exec` uses for the program section. A test of the target `executable` fails
//! if the copy differs from the original.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Program {
    pub funcs: Vec<Func>,
    pub constants: Vec<Const>,
    pub metadata: Vec<(String, String)>,
    pub files: Vec<String>,
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub enum Func {
    Vm(Vm),
    Kernel { name: String, args: Vec<KArg>, checks: Vec<String> },
    Packed(String),
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Vm {
    pub name: String,
    pub params: Vec<(String, String)>,
    pub ret_ty: String,
    pub num_regs: u32,
    pub instrs: Vec<Op>,
    pub args: Vec<u64>,
    pub lines: Vec<(u32, u32, u32, u32)>,
}

#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub enum Op {
    Call { func: u32, args_start: u32, args_len: u32, dst: u32 },
    Ret(u32),
    If { cond: u32, false_offset: i32 },
    Goto(i32),
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub enum KArg {
    Any,
    Tensor { dtype: Option<u8>, ndim: Option<u8>, written: bool, strided: bool },
    Int(u8),
    Float,
    Bool,
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub enum Const {
    Tensor { dtype: u8, shape: Vec<i64>, offset: u64 },
    Shape(Vec<i64>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
    DType(u8),
    None,
}
