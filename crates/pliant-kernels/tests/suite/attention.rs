//! Compares the attention kernel with the definition of attention in float64, for every instruction
//! set, layout and mask, with operands between guard pages.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use pliant_exec::abi::{
    KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_CANCELLED, STATUS_NO_MEMORY, STATUS_OK,
};
use pliant_kernels::attention::{Attention, FullyMasked, Heads, Scores, full_keys, run};
use pliant_machine::isa::{Isa, available};
use pliant_pool::Team;

use crate::guard_pages::Guarded;

/// The sizes and features of an attention test case.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    heads: usize,
    kv_heads: usize,
    queries: usize,
    keys: usize,
    size: usize,
    value_size: usize,
    /// Whether the rows of a head are adjacent in memory. Otherwise, the heads of a row are adjacent.
    by_head: bool,
    /// Whether the bias varies along each of four dims: batch, heads, queries and keys. `None` for no bias.
    bias: Option<[bool; 4]>,
    mask: Option<[bool; 4]>,
    masked_score: f64,
    mask_before_bias: bool,
    cap: f64,
    scale: f64,
    causal: bool,
    offset: i64,
    window: i64,
    fully_masked: FullyMasked,
}

const PLAIN: Case = Case {
    batch: 2,
    heads: 3,
    kv_heads: 3,
    queries: 7,
    keys: 7,
    size: 32,
    value_size: 32,
    by_head: false,
    bias: None,
    mask: None,
    masked_score: f64::NEG_INFINITY,
    mask_before_bias: false,
    cap: 0.0,
    scale: 0.2,
    causal: false,
    offset: 0,
    window: 0,
    fully_masked: FullyMasked::Zeros,
};

/// Returns `len` pseudo-random numbers between -1 and 1.
fn noise(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn heads<P>(data: P, (heads, rows, size): (usize, usize, usize), by_head: bool) -> Heads<P> {
    let (heads, rows, size) = (heads as i64, rows as i64, size as i64);
    let (head, row) = if by_head { (rows * size, size) } else { (size, heads * size) };
    Heads { data, batch: heads * rows * size, head, row }
}

/// Returns the strides, in elements, of a bias or mask that varies along the dims `varies`, and the number of its elements.
fn scores(c: &Case, varies: [bool; 4]) -> ([i64; 4], usize) {
    let dims = [c.batch, c.heads, c.queries, c.keys];
    let (mut strides, mut total) = ([0; 4], 1usize);
    for i in (0..4).rev() {
        if varies[i] {
            strides[i] = total as i64;
            total *= dims[i];
        }
    }
    (strides, total)
}

/// The operands of a test case, each adjacent to guard pages.
struct Operands {
    case: Case,
    q: Guarded<f32>,
    k: Guarded<f32>,
    v: Guarded<f32>,
    out: Guarded<f32>,
    bias: Option<([i64; 4], Guarded<f32>)>,
    mask: Option<([i64; 4], Guarded<u8>)>,
}

impl Operands {
    fn new(case: Case, at_end: bool) -> Operands {
        let c = &case;
        let noisy = |heads: usize, rows: usize, size: usize, seed: u64| {
            Guarded::new(&noise(c.batch * heads * rows * size, seed), at_end)
        };
        let bias = c.bias.map(|varies| {
            let (strides, total) = scores(c, varies);
            (strides, Guarded::new(&noise(total, 4), at_end))
        });
        let mask = c.mask.map(|varies| {
            let (strides, total) = scores(c, varies);
            let bits: Vec<u8> = noise(total, 5).iter().map(|&x| u8::from(x > -0.4) * 3).collect();
            (strides, Guarded::new(&bits, at_end))
        });
        Operands {
            case,
            q: noisy(c.heads, c.queries, c.size, 1),
            k: noisy(c.kv_heads, c.keys, c.size, 2),
            v: noisy(c.kv_heads, c.keys, c.value_size, 3),
            out: Guarded::new(
                &vec![f32::NAN; c.batch * c.heads * c.queries * c.value_size],
                at_end,
            ),
            bias,
            mask,
        }
    }

    fn attention(&self) -> Attention {
        let c = &self.case;
        let by_head = c.by_head;
        Attention {
            batch: c.batch as i64,
            heads: c.heads as i64,
            kv_heads: c.kv_heads as i64,
            queries: c.queries as i64,
            keys: c.keys as i64,
            size: c.size as i64,
            value_size: c.value_size as i64,
            q: heads(self.q.as_ptr().cast_const(), (c.heads, c.queries, c.size), by_head),
            k: heads(self.k.as_ptr().cast_const(), (c.kv_heads, c.keys, c.size), by_head),
            v: heads(self.v.as_ptr().cast_const(), (c.kv_heads, c.keys, c.value_size), by_head),
            out: heads(self.out.as_ptr(), (c.heads, c.queries, c.value_size), by_head),
            scale: c.scale,
            cap: c.cap,
            bias: self.bias.as_ref().map(|&([batch, head, row, column], ref data)| {
                let data = data.as_ptr().cast_const();
                Scores { data, batch, head, row, column }
            }),
            mask: self.mask.as_ref().map(|&([batch, head, row, column], ref data)| {
                let data = data.as_ptr().cast_const();
                Scores { data, batch, head, row, column }
            }),
            masked_score: c.masked_score,
            mask_before_bias: c.mask_before_bias,
            causal: c.causal,
            offset: c.offset,
            window: c.window,
            fully_masked: c.fully_masked,
        }
    }

    fn sees(&self, i: usize, j: usize) -> bool {
        let c = &self.case;
        let (i, j) = (i as i64 + c.offset, j as i64);
        !c.causal || j <= i && (c.window == 0 || j > i - c.window)
    }

    /// Returns the result of query `i` according to the definition of attention.
    fn expected(&self, a: &Attention, batch: usize, head: usize, i: usize) -> Vec<f64> {
        let c = &self.case;
        let kv = head / (c.heads / c.kv_heads);
        let at = |h: &Heads<*const f32>, head: usize, row: usize| {
            batch * h.batch as usize + head * h.head as usize + row * h.row as usize
        };
        let score_offset = |s: &[i64; 4], j: usize| {
            let position = [batch, head, i, j];
            (0..4).map(|d| position[d] * s[d] as usize).sum::<usize>()
        };
        let score = |j: usize| -> f64 {
            let (q, k) = (at(&a.q, head, i), at(&a.k, kv, j));
            let dot: f64 = (0..c.size)
                .map(|p| f64::from(self.q.values()[q + p]) * f64::from(self.k.values()[k + p]))
                .sum();
            let mut x = dot * c.scale;
            if c.cap != 0.0 {
                x = c.cap * (x / c.cap).tanh();
            }
            let masked =
                self.mask.as_ref().is_some_and(|(s, m)| m.values()[score_offset(s, j)] == 0);
            if masked && c.mask_before_bias {
                x = f64::from(c.masked_score as f32);
            }
            if let Some((strides, bias)) = &self.bias {
                x += f64::from(bias.values()[score_offset(strides, j)]);
            }
            if masked && !c.mask_before_bias {
                x = f64::from(c.masked_score as f32);
            }
            if self.sees(i, j) { x } else { f64::NEG_INFINITY }
        };
        let all: Vec<f64> = (0..c.keys).map(score).collect();
        let largest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weight = |x: f64| if x == f64::NEG_INFINITY { 0.0 } else { (x - largest).exp() };
        let sum: f64 = all.iter().map(|&x| weight(x)).sum();
        (0..c.value_size)
            .map(|p| {
                let value = |j: usize| f64::from(self.v.values()[at(&a.v, kv, j) + p]);
                let total: f64 =
                    (0..c.keys)
                        .map(|j| {
                            if all[j] == f64::NEG_INFINITY {
                                0.0
                            } else {
                                weight(all[j]) * value(j)
                            }
                        })
                        .sum();
                match sum == 0.0 {
                    true if c.fully_masked == FullyMasked::Nan && c.keys > 0 => f64::NAN,
                    true => 0.0,
                    false => total / sum,
                }
            })
            .collect()
    }

    fn check(&self, isa: Isa, runtime: &KernelRuntime) {
        let (a, c) = (self.attention(), &self.case);
        // SAFETY: the operands have these sizes.
        assert_eq!(unsafe { run(isa, runtime, &a) }, STATUS_OK, "{isa:?} {c:?}");
        for batch in 0..c.batch {
            for head in 0..c.heads {
                for i in 0..c.queries {
                    // Cases with many keys check only some rows.
                    if c.keys > 600 && i % 11 != 0 {
                        continue;
                    }
                    let o = &a.out;
                    let at = batch * o.batch as usize + head * o.head as usize + i * o.row as usize;
                    for (p, want) in self.expected(&a, batch, head, i).into_iter().enumerate() {
                        let got = f64::from(self.out.values()[at + p]);
                        // The rounding error of a score grows with the scale. Its exponential has that as relative
                        // error.
                        let tolerance = 2e-5 + 2e-6 * c.scale;
                        let is_close = (got - want).abs() <= tolerance * want.abs().max(0.1);
                        assert!(
                            is_close || got == want || got.is_nan() && want.is_nan(),
                            "{isa:?} {batch} {head} {i} {p}: {got}, not {want}: {c:?}"
                        );
                    }
                }
            }
        }
    }
}

fn cases() -> Vec<Case> {
    let all = Some([true; 4]);
    let mask_of_queries = Case { mask: Some([true, true, true, false]), ..PLAIN };
    let masked = Case { keys: 37, mask: all, masked_score: 0.25, ..PLAIN };
    let nan = Case { causal: true, fully_masked: FullyMasked::Nan, ..PLAIN };
    let mut cases = vec![
        Case { batch: 0, ..PLAIN },
        Case { queries: 0, ..PLAIN },
        Case { keys: 0, ..PLAIN },
        Case { size: 0, ..PLAIN },
        Case { value_size: 0, ..PLAIN },
        Case { heads: 0, kv_heads: 0, ..PLAIN },
        Case {
            batch: 1,
            heads: 1,
            kv_heads: 1,
            queries: 1,
            keys: 1,
            size: 1,
            value_size: 1,
            ..PLAIN
        },
        Case { queries: 33, keys: 65, size: 17, value_size: 40, ..PLAIN },
        Case { queries: 70, keys: 130, size: 64, value_size: 64, ..PLAIN },
        Case { queries: 50, keys: 40, bias: all, ..PLAIN },
        Case { keys: 33, bias: Some([false, true, false, true]), scale: -0.3, ..PLAIN },
        Case { keys: 33, bias: Some([true, false, true, false]), ..PLAIN },
        Case { queries: 19, keys: 100, mask: all, cap: 0.5, ..PLAIN },
        Case { queries: 19, keys: 100, mask: Some([true, false, false, true]), ..PLAIN },
        Case { queries: 3, keys: 9, ..mask_of_queries },
        masked,
        Case { bias: all, ..masked },
        Case { bias: all, mask_before_bias: true, ..masked },
        Case { masked_score: -1e9, ..mask_of_queries },
        Case { keys: 40, masked_score: f64::from(f32::MIN), ..mask_of_queries },
        Case { queries: 100, keys: 100, causal: true, ..PLAIN },
        Case { queries: 100, keys: 90, causal: true, window: 21, offset: -3, ..PLAIN },
        Case { queries: 20, keys: 150, causal: true, offset: 130, ..PLAIN },
        Case { queries: 30, keys: 4, ..PLAIN },
        Case { queries: 5, keys: 80, offset: 200, window: 7, causal: true, ..PLAIN },
        // Blocks in which all rows or some rows see no key.
        Case { queries: 100, keys: 90, offset: -60, ..nan },
        Case { queries: 5, offset: -9, ..nan },
        Case { keys: 0, causal: false, ..nan },
    ];
    let by_head: Vec<Case> = cases.iter().map(|&c| Case { by_head: true, ..c }).collect();
    cases.extend(by_head);
    // Grouped heads: in one block if their rows have a uniform stride, and one row each in decoding.
    for by_head in [false, true] {
        let grouped = Case { heads: 6, kv_heads: 2, by_head, ..PLAIN };
        cases.extend([
            Case { queries: 20, keys: 70, causal: true, offset: 50, bias: all, ..grouped },
            Case { queries: 1, keys: 75, size: 48, mask: all, ..grouped },
            Case {
                queries: 1,
                keys: 300,
                heads: 2,
                causal: true,
                offset: 260,
                window: 9,
                ..grouped
            },
            Case {
                queries: 1,
                keys: 65,
                heads: 12,
                bias: all,
                causal: true,
                offset: 64,
                ..grouped
            },
        ]);
    }
    cases
}

#[test]
fn every_isa_case_and_layout_matches_the_definition() {
    let runtime = KernelRuntime::serial();
    for case in cases() {
        for at_end in [false, true] {
            for isa in available() {
                Operands::new(case, at_end).check(isa, &runtime);
            }
        }
    }
}

#[test]
fn many_keys_use_a_running_maximum_and_sum() {
    let long = Case { batch: 1, heads: 2, kv_heads: 1, size: 16, value_size: 24, ..PLAIN };
    let keys = full_keys() + 700;
    let cases = [
        Case { queries: 5, keys, ..long },
        Case { queries: 45, keys, causal: true, offset: keys as i64 - 45, scale: 3.0, ..long },
        Case { queries: 1, keys, mask: Some([true; 4]), ..long },
        // Rows that see no key of the first blocks, or only keys of these.
        Case { queries: 12, keys, causal: true, offset: 4500, window: 30, ..long },
        Case { queries: 12, keys, bias: Some([false, false, true, true]), scale: 40.0, ..long },
    ];
    for case in cases {
        for isa in available() {
            Operands::new(case, true).check(isa, &KernelRuntime::serial());
        }
    }
}

#[test]
fn nan_propagates_and_minus_infinity_in_the_bias_masks() {
    let case = Case { batch: 1, heads: 1, kv_heads: 1, queries: 9, keys: 40, ..PLAIN };
    for isa in available() {
        let ops = Operands::new(case, true);
        let a = ops.attention();
        // SAFETY: query 2 and value 3 exist.
        unsafe { *ops.q.as_ptr().add(2 * a.q.row as usize) = f32::NAN };
        // SAFETY: as above.
        assert_eq!(unsafe { run(isa, &KernelRuntime::serial(), &a) }, STATUS_OK);
        for (i, row) in ops.out.values().chunks(32).enumerate() {
            assert_eq!(row.iter().all(|x| x.is_nan()), i == 2, "{isa:?} {i}");
        }
        // Minus infinity in the bias masks keys, even all of them.
        let case = Case { bias: Some([false, false, true, true]), ..case };
        let ops = Operands::new(case, true);
        let bias = ops.bias.as_ref().unwrap().1.as_ptr();
        for j in 0..40 {
            // SAFETY: the bias has 9 by 40 numbers.
            unsafe {
                *bias.add(4 * 40 + j) = f32::NEG_INFINITY;
                *bias.add(5 * 40 + j) = if j == 7 { 0.0 } else { f32::NEG_INFINITY };
            }
        }
        let a = ops.attention();
        // SAFETY: as above.
        assert_eq!(unsafe { run(isa, &KernelRuntime::serial(), &a) }, STATUS_OK);
        let rows: Vec<&[f32]> = ops.out.values().chunks(32).collect();
        assert_eq!(rows[4], [0.0; 32], "{isa:?}");
        let value = &ops.v.values()[7 * a.v.row as usize..][..32];
        assert!(rows[5].iter().zip(value).all(|(x, y)| (x - y).abs() < 1e-6), "{isa:?}");
    }
}

#[test]
fn nan_weights_become_zeros_with_zeros_for_nan() {
    let many = full_keys() + 700;
    for (queries, keys) in [(3, 9), (60, 130), (30, many)] {
        let case =
            Case { batch: 1, queries, keys, fully_masked: FullyMasked::ZerosForNan, ..PLAIN };
        for isa in available() {
            let ops = Operands::new(case, true);
            let a = ops.attention();
            for (row, special) in [(0, f32::NAN), (2, f32::INFINITY)] {
                // SAFETY: each head has these queries.
                unsafe { *ops.q.as_ptr().add(row * a.q.row as usize) = special };
            }
            // SAFETY: the operands have these sizes.
            assert_eq!(unsafe { run(isa, &KernelRuntime::serial(), &a) }, STATUS_OK);
            let row = |i: usize| &ops.out.values()[i * a.out.row as usize..][..32];
            for i in [0, 2] {
                assert_eq!(row(i), [0.0; 32], "{isa:?} {i} {case:?}");
            }
            assert!(row(1).iter().all(|x| x.is_finite() && *x != 0.0), "{isa:?} {case:?}");
        }
    }
}

#[test]
fn hidden_nan_and_infinite_values_do_not_affect_results() {
    let many = full_keys() + 700;
    let one = Case { batch: 1, heads: 1, kv_heads: 1, causal: true, value_size: 20, ..PLAIN };
    let cases = [
        Case { queries: 5, keys: 5, ..one },
        Case { queries: 60, keys: 60, ..one },
        Case { queries: 100, keys: 90, window: 21, offset: -3, value_size: 64, ..one },
        // The window starts within a panel of keys, so that no row sees the first keys of the panel.
        Case { queries: 7, keys: 120, window: 3, offset: 100, ..one },
        Case { queries: 20, keys: 70, heads: 6, kv_heads: 2, offset: 50, by_head: true, ..one },
        Case { queries: 45, keys: many, window: 30, offset: many as i64 - 45, ..one },
    ];
    for case in cases {
        for isa in available() {
            for (step, special) in [(1, f32::NAN), (7, f32::INFINITY), (31, f32::NAN)] {
                let ops = Operands::new(case, true);
                let row = ops.attention().v.row as usize;
                for key in (0..case.keys).rev().step_by(step * 9) {
                    // SAFETY: each key has a value.
                    unsafe { *ops.v.as_ptr().add(key * row) = special };
                }
                ops.check(isa, &KernelRuntime::serial());
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let team = Team::new(3);
    let runtime = KernelRuntime {
        parallel_launch: pliant_pool::parallel_launch,
        team: (&raw const team).cast::<c_void>(),
        ..KernelRuntime::serial()
    };
    let isa = available().next().unwrap();
    for (heads, queries) in [(1, 400), (12, 128)] {
        let case = Case { heads, kv_heads: heads, queries, keys: 128, causal: true, ..PLAIN };
        let [serial, threaded] = [0, 1].map(|_| Operands::new(case, true));
        // SAFETY: the operands have these sizes.
        unsafe {
            assert_eq!(run(isa, &KernelRuntime::serial(), &serial.attention()), STATUS_OK);
            assert_eq!(run(isa, &runtime, &threaded.attention()), STATUS_OK);
        }
        assert_eq!(serial.out.values(), threaded.out.values());
    }
}

static REQUESTED_BYTES: AtomicI64 = AtomicI64::new(0);

unsafe extern "C" fn fail_to_allocate(bytes: u64) -> *mut c_void {
    REQUESTED_BYTES.store(bytes as i64, Ordering::Relaxed);
    std::ptr::null_mut()
}

#[test]
fn invalid_sizes_failed_allocations_and_interrupts_return_a_status() {
    let isa = available().next().unwrap();
    let ops = Operands::new(PLAIN, true);
    let a = ops.attention();
    let runtime = KernelRuntime::serial();
    // SAFETY: nothing is accessed if the sizes are invalid.
    let status = |a: &Attention, runtime: &KernelRuntime| unsafe { run(isa, runtime, a) };
    for bad in [
        Attention { batch: -1, ..a },
        Attention { keys: -5, ..a },
        Attention { kv_heads: 2, ..a },
        Attention { kv_heads: 0, ..a },
        Attention { queries: i64::MAX, ..a },
        Attention { keys: i64::MAX, ..a },
        Attention { batch: i64::MAX, ..a },
    ] {
        assert_eq!(status(&bad, &runtime), STATUS_BAD_ARGUMENTS, "{bad:?}");
    }
    let without_memory =
        KernelRuntime { alloc_workspace: fail_to_allocate, ..KernelRuntime::serial() };
    assert_eq!(status(&a, &without_memory), STATUS_NO_MEMORY);
    let huge = Attention { size: i64::MAX / 2, ..a };
    assert_eq!(status(&huge, &runtime), STATUS_NO_MEMORY);
    let flag = AtomicBool::new(true);
    let interrupted = KernelRuntime { interrupt: &raw const flag, ..KernelRuntime::serial() };
    assert_eq!(status(&a, &interrupted), STATUS_CANCELLED);
    // Scratch memory does not grow with the keys.
    let case = Case { batch: 1, heads: 1, kv_heads: 1, size: 64, value_size: 64, ..PLAIN };
    let long = Operands::new(case, true);
    let a = Attention { queries: 200, keys: 1 << 40, ..long.attention() };
    assert_eq!(status(&a, &without_memory), STATUS_NO_MEMORY);
    assert!(REQUESTED_BYTES.load(Ordering::Relaxed) < 1 << 20, "{REQUESTED_BYTES:?}");
}
