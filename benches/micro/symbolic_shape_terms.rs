//! Benchmarks building, simplifying and proving typical symbolic shape expressions.

use criterion::{Criterion, criterion_group, criterion_main};
use pliant_sym::{Analyzer, Facts, Sym, SymArena};

/// Builds the output size of a convolution: `(h + 2 * pad - kernel) // stride + 1`.
fn conv(arena: &mut SymArena, size: Sym, kernel: i64, stride: i64, pad: i64) -> Sym {
    let (shift, stride, one) = (arena.int(2 * pad - kernel), arena.int(stride), arena.int(1));
    let last_start = arena.add(size, shift);
    let steps = arena.floordiv(last_start, stride);
    arena.add(steps, one)
}

fn symbolic(c: &mut Criterion) {
    c.bench_function("build a chain of 50 convolutions", |b| {
        b.iter(|| {
            let mut arena = SymArena::default();
            let h = arena.fresh_var("h");
            let mut size = arena.var(h);
            for layer in 0..50 {
                size = conv(&mut arena, size, 3, if layer % 10 == 9 { 2 } else { 1 }, 1);
            }
            size
        });
    });
    c.bench_function("prove that tiles cover: n <= ceildiv(n, 16) * 16", |b| {
        let mut arena = SymArena::default();
        let n = arena.fresh_var("n");
        let mut facts = Facts::new();
        facts.assume_size(n);
        let (n, tile) = (arena.var(n), arena.int(16));
        let tiles = arena.ceildiv(n, tile);
        let covered = arena.mul(tiles, tile);
        b.iter(|| Analyzer::new(&mut arena, &facts).prove_le(n, covered));
    });
    c.bench_function("prove that a stride-2 convolution shrinks", |b| {
        let mut arena = SymArena::default();
        let h = arena.fresh_var("h");
        let mut facts = Facts::new();
        facts.assume_range(h, Some(32), None);
        let h = arena.var(h);
        let out = conv(&mut arena, h, 3, 2, 1);
        b.iter(|| Analyzer::new(&mut arena, &facts).prove_le(out, h));
    });
}

criterion_group!(benches, symbolic);
criterion_main!(benches);
