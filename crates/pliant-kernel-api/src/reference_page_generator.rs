//! Generates the reference page of the kernels, `docs/reference/kernels.md`.

use std::fmt::Write;

use crate::KERNELS;
use crate::kernel_declaration::{AttrDefault, AttrType, Dims, Kernel, Order, Role};

/// Returns the reference page of all kernels, in Markdown.
pub fn reference_page() -> String {
    let mut page = "# Library kernels

This page is generated from the declarations in `crates/pliant-kernel-api/src/kernels`.

A library kernel computes a whole operator. Graph functions call it with operands and attributes by name; its results are new
tensors:

    y = R.call_kernel(\"transpose\", x=x, axes={\"x\": [1, 0]}, out_sinfo=R.Tensor((m, n), \"float32\"))

`axes` permutes the dims of an operand or a result: for each dim of the kernel, it gives the dim of the tensor, or -1 for a dim
of size 1. So `[0, 3, -1, 1, 2]` passes images in NHWC layout to a kernel with the dims (batch, channels, depth, height, width),
without a copy. A dim whose name begins with `*` stands for any number of dims; its size is their product.

In loop functions, a call also passes the tensors that the kernel writes:

    T.evaluate(T.call_kernel(\"recurrent\", x=A, w=W, r=R, bias=B, y=Y, last_h=H, cell=\"rnn\"))

Operands are whole buffers or views of buffers. A view has its own dims, strides and offset, in elements of the buffer, and must
lie inside the buffer. This view reads the heads of a tensor of shape (n, 4 * 16) in place:

    q=T.view(A, [1, 4, n, 16], strides=[0, 16, 64, 1], offset=0)

The kernel checks every call at run time: data types, ranks, sizes, strides, the ranges of attributes, and that results share no
memory with other operands. Dims of the same name must have the same size in all operands. A call may omit optional operands and
attributes with a default.
"
    .to_string();
    for kernel in KERNELS {
        page.push('\n');
        page += &kernel.markdown();
    }
    page
}

impl Kernel {
    /// Returns the section of the kernel on the reference page, in Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("## `{}`\n\n{}\n\n", self.name, self.doc);
        out += "| operand | type | dims | strides | | meaning |\n|---|---|---|---|---|---|\n";
        for operand in self.operands {
            let dims: Vec<String> = match operand.dims {
                Dims::Fixed(dims) => vec![bracketed(dims)],
                Dims::ByLayout(list) => list.iter().map(|dims| bracketed(dims)).collect(),
            };
            let dims = dims.join(" or ");
            let role = match (operand.role, operand.optional) {
                (Role::Input, false) => "input",
                (Role::Input, true) => "optional input",
                (Role::Output, false) => "result",
                (Role::Output, true) => "optional result",
                (Role::Accumulator, _) => "accumulator",
            };
            let order = match operand.order {
                Order::RowMajor => "row-major",
                Order::StridedRows => "any; last dim contiguous",
                Order::Strided => "any",
            };
            let dtypes: Vec<String> = operand.dtypes().map(|dtype| dtype.to_string()).collect();
            let (name, dtype, doc) = (operand.name, dtypes.join(" or "), operand.doc);
            let _ = writeln!(out, "| `{name}` | {dtype} | {dims} | {order} | {role} | {doc} |");
        }
        out += "\n| attribute | type | default | meaning |\n|---|---|---|---|\n";
        for attr in self.attrs {
            let ty = match attr.ty {
                AttrType::Int(i64::MIN, i64::MAX) => "integer".to_string(),
                AttrType::Int(min, max) => format!("integer, {min} to {max}"),
                AttrType::Ints { len, range } => {
                    format!("{len} integers, {} to {}", range.0, range.1)
                }
                AttrType::Float => "float".to_string(),
                AttrType::Bool => "bool".to_string(),
                AttrType::Choice(list) => {
                    let quoted: Vec<String> = list.iter().map(|c| format!("`\"{c}\"`")).collect();
                    quoted.join(", ")
                }
            };
            let default = match (attr.default, attr.ty) {
                (AttrDefault::Required, _) => "required".to_string(),
                (AttrDefault::Number(n), AttrType::Bool) => {
                    if n == 0 { "`False`" } else { "`True`" }.to_string()
                }
                (AttrDefault::Number(n), AttrType::Choice(list)) => {
                    format!("`\"{}\"`", list.get(n as usize).unwrap_or(&""))
                }
                (AttrDefault::Number(n), _) => format!("`{n}`"),
                (AttrDefault::Float(v), _) => format!("`{v:?}`"),
            };
            let _ = writeln!(out, "| `{}` | {ty} | {default} | {} |", attr.name, attr.doc);
        }
        out
    }
}

fn bracketed(dims: &[&str]) -> String {
    format!("[{}]", dims.join(", "))
}
