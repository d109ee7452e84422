//! The standard epilogue on tiles of few columns, whose rows are finished together.

use std::ptr::null;

use pliant_kernels::epilogue::standard::with;
use pliant_kernels::epilogue::{Activation, EpilogueTile, Standard};
use pliant_machine::isa::available;

const STRIDE: usize = 11;

/// Finishes `rows` by `columns` values that are `STRIDE` apart, and compares them with the definition.
fn check(rows: usize, columns: usize, activation: Activation, terms: bool) {
    let value = |i: usize| (i as f32 * 0.37).sin() * 3.0;
    let (scale, bias) = ([1.5f32, -0.5, 2.0, 0.25, 1.0, 3.0, -1.0, 0.1], [0.3f32; 8]);
    // The tile begins at column 1 of the product.
    let first = usize::from(columns < 8);
    for isa in available() {
        let mut data: Vec<f32> = (0..rows * STRIDE).map(value).collect();
        let standard = Standard {
            column_scale: if terms { scale.as_ptr() } else { null() },
            bias: if terms { bias.as_ptr() } else { null() },
            activation: activation as i64,
            ..Standard::default()
        };
        let tile = EpilogueTile {
            data: data.as_mut_ptr().cast(),
            row_stride: STRIDE as i64,
            rows: rows as i64,
            columns: columns as i64,
            batch: 0,
            row: 5,
            column: first as i64,
        };
        // SAFETY: the tile and the operands cover these rows and columns.
        assert_eq!(unsafe { with(isa, &standard, &tile) }, 0);
        for (i, &got) in data.iter().enumerate() {
            let column = i % STRIDE;
            let x = value(i);
            let x = if terms && column < columns {
                x * scale[first + column] + bias[first + column]
            } else {
                x
            };
            let want = match activation {
                _ if column >= columns => x,
                Activation::Tanh => x.tanh(),
                Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
                Activation::Silu => x / (1.0 + (-x).exp()),
                _ => x.max(0.0),
            };
            assert!((got - want).abs() <= 1e-5, "{isa:?} {rows} x {columns}: {got} {want} at {i}");
        }
    }
}

#[test]
fn narrow_tiles_are_finished_like_wide_ones() {
    for activation in [Activation::Tanh, Activation::Sigmoid, Activation::Silu, Activation::Relu] {
        for rows in [0, 1, 15, 16, 100, 300] {
            for columns in [0, 1, 3, 4, 7, 8] {
                for terms in [false, true] {
                    check(rows, columns, activation, terms);
                }
            }
        }
    }
}
