//! Compares float32 epilogues with their definition: every activation with every instruction set,
//! and tiles of few columns, which are processed as one row.

use std::ptr::null;

use pliant_kernels::epilogue::{Activation, Epilogue, EpilogueTile, Position, Residual};
use pliant_kernels::scalar_math::erf_f64;
use pliant_machine::isa::available;

use crate::guard_pages::Guarded;
use crate::packed_matmul::fill;

const STRIDE: usize = 11;

/// Computes an activation by its definition, with bounds -1 and 6, slope 0.25 and offset 0.5.
fn activated(x: f64, activation: Activation) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Clip => x.clamp(-1.0, 6.0),
        Activation::Gelu => x * 0.5 * (1.0 + erf_f64(x * std::f64::consts::FRAC_1_SQRT_2)),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044715 * x * x * x)).tanh())
        }
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
        Activation::HardSwish => x * (0.25 * x + 0.5).clamp(-1.0, 6.0),
        Activation::HardSigmoid => (0.25 * x + 0.5).clamp(-1.0, 6.0),
        Activation::LeakyRelu => x.max(0.0) + 0.25 * x.min(0.0),
    }
}

/// Returns an epilogue that only applies an activation, with the parameters of [`activated`].
fn activation_epilogue(activation: Activation) -> Epilogue {
    let (low, high, slope, offset) = (-1.0, 6.0, 0.25, 0.5);
    Epilogue { activation, low, high, slope, offset, ..Epilogue::default() }
}

#[test]
fn activations_follow_scale_bias_and_residual() {
    let (rows, columns, before) = (7, 83, 2);
    let width = before + columns;
    let x: Vec<f32> = fill::<f32>(rows * columns, 7).into_iter().map(|x| x * 3.7).collect();
    let scales: Vec<f32> = (0..width).map(|j| 0.01 + (j % 5) as f32 / 10.0).collect();
    let (scales, bias) = (Guarded::new(&scales, true), Guarded::new(&fill::<f32>(width, 3), true));
    let residual = Guarded::new(&fill::<f32>(2 * rows * width, 11), true);
    for isa in available() {
        for activation in Activation::ALL {
            let data = Guarded::new(&x, true);
            let row = width as i64;
            let epilogue = Epilogue {
                column_scale: scales.as_ptr(),
                bias: bias.as_ptr(),
                residual: Some(Residual { data: residual.as_ptr(), batch: rows as i64 * row, row }),
                ..activation_epilogue(activation)
            };
            let tile = EpilogueTile {
                data: data.as_ptr(),
                row_stride: columns as isize,
                rows,
                columns,
                position: Position { batch: 1, row: 0, column: before },
            };
            // SAFETY: the tile and the operands have these rows and columns.
            unsafe { epilogue.finish(isa, &tile) };
            for (at, &got) in data.values().iter().enumerate() {
                let (i, j) = (at / columns, before + at % columns);
                let element = |v: &Guarded<f32>, at: usize| f64::from(v.values()[at]);
                let want = f64::from(x[at]) * element(&scales, j) + element(&bias, j);
                let want = activated(want + element(&residual, (rows + i) * width + j), activation);
                assert!(
                    (f64::from(got) - want).abs() <= 3e-6 * want.abs().max(1.0),
                    "{isa:?} {activation:?} {at}: {got}, not {want}"
                );
            }
        }
    }
}

#[test]
fn activations_propagate_nan_and_infinity() {
    for isa in available() {
        for activation in Activation::ALL {
            let mut x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
            let tile = EpilogueTile {
                data: x.as_mut_ptr(),
                row_stride: 3,
                rows: 1,
                columns: 3,
                position: Position::default(),
            };
            // SAFETY: the tile is the array.
            unsafe { activation_epilogue(activation).finish(isa, &tile) };
            assert!(x[0].is_nan(), "{isa:?} {activation:?}");
            let high = match activation {
                Activation::Clip | Activation::HardSigmoid => 6.0,
                Activation::Sigmoid | Activation::Tanh => 1.0,
                _ => f32::INFINITY,
            };
            assert_eq!(x[1], high, "{isa:?} {activation:?}");
        }
    }
}

/// Applies the epilogue to a tile with a row stride of `STRIDE`, and compares the results with the definition.
fn check(rows: usize, columns: usize, activation: Activation, has_terms: bool) {
    let value = |i: usize| (i as f32 * 0.37).sin() * 3.0;
    let (scale, bias) = ([1.5f32, -0.5, 2.0, 0.25, 1.0, 3.0, -1.0, 0.1], [0.3f32; 8]);
    // The tile begins at column 1 of the product.
    let first = usize::from(columns < 8);
    for isa in available() {
        let mut data: Vec<f32> = (0..rows * STRIDE).map(value).collect();
        let epilogue = Epilogue {
            column_scale: if has_terms { scale.as_ptr() } else { null() },
            bias: if has_terms { bias.as_ptr() } else { null() },
            ..activation_epilogue(activation)
        };
        let tile = EpilogueTile {
            data: data.as_mut_ptr(),
            row_stride: STRIDE as isize,
            rows,
            columns,
            position: Position { batch: 0, row: 5, column: first },
        };
        // SAFETY: the tile and the operands cover these rows and columns.
        unsafe { epilogue.finish(isa, &tile) };
        for (i, &got) in data.iter().enumerate() {
            let column = i % STRIDE;
            let x = value(i);
            let want = match column < columns {
                true if has_terms => {
                    activated((x * scale[first + column] + bias[first + column]).into(), activation)
                }
                true => activated(x.into(), activation),
                false => x.into(),
            };
            let is_close = (f64::from(got) - want).abs() <= 1e-5;
            assert!(is_close, "{isa:?} {rows} x {columns}: {got} {want} at {i}");
        }
    }
}

#[test]
fn tiles_of_few_columns_match_the_definition() {
    for activation in [Activation::Tanh, Activation::Sigmoid, Activation::Silu, Activation::Relu] {
        for rows in [0, 1, 15, 16, 100, 300] {
            for columns in [0, 1, 3, 4, 7, 8] {
                for has_terms in [false, true] {
                    check(rows, columns, activation, has_terms);
                }
            }
        }
    }
}
