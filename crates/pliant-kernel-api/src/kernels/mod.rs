//! The declarations of the kernels, one file per kernel or family of kernels, and the table of all kernels.
//!
//! A new kernel with its offload rule touches:
//!
//! | file | content |
//! |---|---|
//! | a file in this folder, and `KERNELS` below | the declaration with its reference implementation |
//! | a file in `pliant-kernels/src`, and `ENTRIES` in its `lib.rs` | the implementation |
//! | a file in `pliant-opt/src/offload/rules`, and `builtin` in its `mod.rs` | the rule that offloads operators to the kernel |
//! | a file in `pliant-kernels/src/algorithm_selection` | the rules that choose the algorithm and divide the work among threads, if the kernel needs any |

mod activation;
pub mod arg_reduce;
pub mod attention;
pub mod conv;
pub mod conv_int8;
pub mod fft;
pub mod lookup;
pub mod matmul;
pub mod matmul_int8;
pub mod pack_int8;
pub mod pooling;
pub mod recurrent_layer;
pub mod resize;
pub mod softmax;
pub mod sort;
pub mod transpose;
pub mod weight_only_matmul;

use crate::Kernel;

/// The table of all declared kernels.
pub static KERNELS: &[&Kernel] = &[
    &arg_reduce::KERNEL,
    &attention::KERNEL,
    &conv::KERNEL,
    &conv_int8::KERNEL,
    &fft::KERNEL,
    &lookup::KERNEL,
    &matmul::KERNEL,
    &matmul::PACKED,
    &matmul_int8::KERNEL,
    &pack_int8::KERNEL,
    &pooling::KERNEL,
    &recurrent_layer::KERNEL,
    &resize::KERNEL,
    &softmax::KERNEL,
    &sort::KERNEL,
    &transpose::KERNEL,
    &weight_only_matmul::INT8,
    &weight_only_matmul::INT4,
    &weight_only_matmul::BFLOAT16,
];

/// Finds a kernel declaration by the name of the kernel; `None` if there is no such kernel.
pub fn find(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().copied().find(|k| k.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::named_dim_sizes::name_id;
    use crate::{AttrDefault, AttrType, Dims, MAX_NUMBERS, MAX_OPERANDS, MAX_RANK};

    use super::*;

    #[test]
    fn declarations_are_consistent() {
        for (i, k) in KERNELS.iter().enumerate() {
            assert!(KERNELS[i + 1..].iter().all(|o| o.name != k.name), "{} twice", k.name);
            assert!(k.operands.len() <= MAX_OPERANDS && k.number_count() <= MAX_NUMBERS);
            let layouts = k.attr("layout").map_or(0, |(attr, _)| match attr.ty {
                AttrType::Choice(list) => list.len(),
                _ => 0,
            });
            let distinct = |names: Vec<&str>| {
                let ids: BTreeMap<u64, &str> = names.iter().map(|n| (name_id(n), *n)).collect();
                names.iter().all(|name| ids[&name_id(name)] == *name)
            };
            let dims = k.operands.iter().flat_map(|o| match o.dims {
                Dims::Fixed(dims) => dims.to_vec(),
                Dims::ByLayout(list) => list.concat(),
            });
            let dims = dims.map(|name| name.trim_start_matches('*'));
            assert!(distinct(dims.collect()), "{}: dims", k.name);
            assert!(distinct(k.operands.iter().map(|o| o.name).collect()), "{}: operands", k.name);
            assert!(distinct(k.attrs.iter().map(|a| a.name).collect()), "{}: attributes", k.name);
            for o in k.operands {
                let dims: Vec<&[&str]> = match o.dims {
                    Dims::Fixed(dims) => vec![dims],
                    Dims::ByLayout(list) => {
                        assert_eq!(list.len(), layouts, "{}: {}", k.name, o.name);
                        list.to_vec()
                    }
                };
                assert!(dims.iter().all(|d| d.len() <= MAX_RANK));
            }
            for a in k.attrs {
                let (AttrDefault::Number(value), min, max) = (match a.ty {
                    AttrType::Int(min, max) | AttrType::Ints { range: (min, max), .. } => {
                        (a.default, min, max)
                    }
                    AttrType::Bool => (a.default, 0, 1),
                    AttrType::Choice(list) => (a.default, 0, list.len() as i64 - 1),
                    AttrType::Float => continue,
                }) else {
                    continue;
                };
                assert!((min..=max).contains(&value), "{}: default of {}", k.name, a.name);
            }
        }
    }
}
