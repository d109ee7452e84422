//! The declaration of the kernel `fft`: discrete Fourier transforms.

use std::f64::consts::TAU;

use pliant_tensor::DType::{self, BFloat16, Float16, Float32, Float64};

use crate::reference::{Args, Result};
use crate::{Attr, AttrDefault, AttrType, Dims, Kernel, Operand};

const OTHER_DTYPES: &[DType] = &[Float64, Float16, BFloat16];

/// The declaration of the kernel `fft`: discrete Fourier transforms of rows.
pub static KERNEL: Kernel = Kernel {
    name: "fft",
    doc: "The discrete Fourier transform of each row (ONNX `DFT`, `STFT`). A row is cut or padded with zeros to `length`, then \
          multiplied by the window. Real numbers have 1 part, complex numbers have 2. Computes in float64.",
    operands: &[
        Operand::input("x", Float32, Dims::Fixed(&["*rows", "samples", "parts"]), "the rows")
            .or(OTHER_DTYPES)
            .strided(),
        Operand::input(
            "window",
            Float32,
            Dims::Fixed(&["window_length"]),
            "the factors of the samples; 1 if omitted",
        )
        .or(OTHER_DTYPES)
        .strided()
        .optional(),
        Operand::output(
            "out",
            Float32,
            Dims::Fixed(&["*rows", "frequencies", "out_parts"]),
            "the results",
        )
        .or(OTHER_DTYPES)
        .strided(),
    ],
    attrs: &[
        Attr::new(
            "length",
            AttrType::Int(0, i64::MAX),
            AttrDefault::Required,
            "the length of the transform",
        ),
        Attr::new(
            "onesided",
            AttrType::Bool,
            AttrDefault::Number(0),
            "whether to compute only the first `length // 2 + 1` frequencies",
        ),
        Attr::new(
            "inverse",
            AttrType::Bool,
            AttrDefault::Number(0),
            "whether to compute the inverse transform, which divides by `length`",
        ),
    ],
    derived: &[
        ("window_length", |call, _| Some(call.int("length"))),
        ("frequencies", |call, _| {
            let length = call.int("length");
            Some(if call.int("onesided") != 0 { length / 2 + 1 } else { length })
        }),
        ("out_parts", |_, _| Some(2)),
    ],
    relations: |call, sizes| {
        let parts = sizes.get("parts");
        if parts != 1 && parts != 2 {
            return Err(format!(
                "the last dim of operand 'x' has size {parts}, expected 1 for real numbers or 2 for complex numbers"
            ));
        }
        let Some(x) = call.operand("x") else { return Ok(()) };
        for name in ["window", "out"] {
            if let Some(other) = call.operand(name).filter(|other| other.dtype != x.dtype) {
                return Err(format!(
                    "operand '{name}' is {}, expected {}, the data type of operand 'x'",
                    other.dtype, x.dtype
                ));
            }
        }
        Ok(())
    },
    flops: |call, sizes| {
        let length = call.int("length") as f64;
        5.0 * sizes.get("rows") as f64 * length * length.max(1.0).log2()
    },
    reference,
};

fn reference(args: &mut Args<'_>) -> Result<()> {
    let (rows, frequencies) = (args.sizes.get("rows"), args.sizes.get("frequencies"));
    let (length, inverse) = (args.call.int("length"), args.call.int("inverse") != 0);
    let samples = args.sizes.get("samples").min(length);
    let is_complex = args.sizes.get("parts") == 2;
    let divisor = if inverse { length as f64 } else { 1.0 };
    for i in 0..rows {
        args.step(samples as u64)?;
        let mut row = Vec::new();
        for j in 0..samples {
            let factor = args.get_or("window", &[j], 1.0)?;
            let im = if is_complex { args.get_at("x", &[i, j, 1])? } else { 0.0 };
            row.push((args.get_at("x", &[i, j, 0])? * factor, im * factor));
        }
        for k in 0..frequencies {
            args.step(samples as u64 + 1)?;
            let (mut re, mut im) = (0.0, 0.0);
            for (j, &(a, b)) in row.iter().enumerate() {
                let cycles =
                    (j as i128 * i128::from(k) % i128::from(length)) as f64 / length as f64;
                let (sin, cos) = (if inverse { -TAU } else { TAU } * cycles).sin_cos();
                re += a * cos + b * sin;
                im += b * cos - a * sin;
            }
            args.set_at("out", &[i, k, 0], re / divisor)?;
            args.set_at("out", &[i, k, 1], im / divisor)?;
        }
    }
    Ok(())
}
