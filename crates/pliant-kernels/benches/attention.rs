//! Benchmarks of attention: encoders (12 heads of size 32 or 64), causal attention, grouped-query
//! attention, and decoding with a KV cache.

mod roofline;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pliant_kernels::attention::{Attention, FullyMasked, Heads, run};
use pliant_machine::isa::isa;
use roofline::{Cases, Workload, thread_counts, values, vectors};

/// The shapes of the benchmark cases: batch, heads, key heads, queries, keys, size of a head, and
/// whether the mask is causal.
const SHAPES: [(usize, usize, usize, usize, usize, usize, bool); 20] = [
    (1, 12, 12, 7, 7, 32, false),
    (1, 12, 12, 16, 16, 32, false),
    (1, 12, 12, 33, 33, 32, false),
    (1, 12, 12, 64, 64, 32, false),
    (1, 12, 12, 128, 128, 32, false),
    (1, 12, 12, 256, 256, 32, false),
    (1, 12, 12, 512, 512, 32, false),
    (1, 12, 12, 7, 7, 64, false),
    (1, 12, 12, 16, 16, 64, false),
    (1, 12, 12, 33, 33, 64, false),
    (1, 12, 12, 64, 64, 64, false),
    (1, 12, 12, 128, 128, 64, false),
    (1, 12, 12, 256, 256, 64, false),
    (1, 12, 12, 512, 512, 64, false),
    (8, 12, 12, 64, 64, 64, false),
    (1, 12, 12, 512, 512, 64, true),
    (1, 2, 2, 512, 8192, 64, false),
    (1, 12, 12, 1, 512, 64, false),
    (1, 32, 8, 1, 1024, 64, false),
    (1, 32, 8, 128, 1024, 64, false),
];

fn attention(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "attention", vectors(), threads);
        let runtime = cases.runtime();
        for (batch, heads, kv_heads, queries, keys, size, causal) in SHAPES {
            // Queries, keys and values of a token are adjacent, as after one combined projection.
            let row = (heads + 2 * kv_heads) * size;
            let (q, kv) = (values(batch * queries * row, 7), values(batch * keys * row, 5));
            let mut out = vec![0f32; batch * queries * heads * size];
            let heads_of = |data: &[f32], first: usize, rows: usize| Heads {
                data: data[first.min(data.len())..].as_ptr(),
                batch: (rows * row) as i64,
                head: size as i64,
                row: row as i64,
            };
            let a = Attention {
                batch: batch as i64,
                heads: heads as i64,
                kv_heads: kv_heads as i64,
                queries: queries as i64,
                keys: keys as i64,
                size: size as i64,
                value_size: size as i64,
                q: heads_of(&q, 0, queries),
                k: heads_of(&kv, heads * size, keys),
                v: heads_of(&kv, (heads + kv_heads) * size, keys),
                out: Heads {
                    data: out.as_mut_ptr(),
                    batch: (queries * heads * size) as i64,
                    head: size as i64,
                    row: (heads * size) as i64,
                },
                scale: 1.0 / (size as f64).sqrt(),
                cap: 0.0,
                bias: None,
                mask: None,
                masked_score: f64::NEG_INFINITY,
                mask_before_bias: false,
                causal,
                offset: 0,
                window: 0,
                fully_masked: FullyMasked::Zeros,
            };
            // Keys that no query sees are not counted.
            let pairs = if causal { queries * (queries + 1) / 2 } else { queries * keys };
            let work = Workload::single(
                (4 * batch * heads * pairs * size) as f64,
                (8 * batch * kv_heads * keys * size) as f64,
            );
            let causal_suffix = if causal { ", causal" } else { "" };
            let name = format!(
                "{batch} x {heads}/{kv_heads} heads of {size}, {queries} by {keys}{causal_suffix}"
            );
            cases.run(&name, work, || {
                // SAFETY: the operands have these sizes.
                unsafe { run(isa(), &runtime, black_box(&a)) };
            });
        }
        cases.finish();
    }
}

criterion_group!(benches, attention);
criterion_main!(benches);
