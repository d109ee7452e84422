//! What the machine can do at most, measured: the floor that kernels are compared with.
//!
//! Each figure is the best of a few short rounds, since other programs can only slow a round down.

/// A function that is generic over vectors of float32, for those of an instruction set and with its instructions enabled; and
/// how many elements such a vector has. Calling it asks for a machine that has them.
macro_rules! for_isa {
    (@ $lanes:ty, [$($feature:literal)?], $generic:ident, ($($arg:ident: $ty:ty),*)) => {{
        /// # Safety
        /// The machine has the instructions.
        $(#[target_feature(enable = $feature)])?
        unsafe fn run($($arg: $ty),*) {
            // SAFETY: the caller's promise.
            unsafe { $generic::<$lanes>($($arg),*) }
        }
        (run as unsafe fn($($ty),*), <$lanes as $crate::lanes::Lanes>::N)
    }};
    ($isa:expr, $generic:ident $args:tt) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => for_isa!(@ $crate::lanes::x86::F32x16, ["avx512f"], $generic, $args),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => for_isa!(@ $crate::lanes::x86::F32x8, ["avx2,fma"], $generic, $args),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => for_isa!(@ $crate::lanes::neon::F32x4, [], $generic, $args),
            _ => for_isa!(@ $crate::lanes::portable::Array<f32, 4>, [], $generic, $args),
        }
    };
}

mod bandwidth;
mod peak;

use std::sync::Barrier;
use std::time::{Duration, Instant};

pub use bandwidth::{LEVELS, read_bandwidth};
pub use peak::peak_flops;

/// Rounds of a measurement.
const ROUNDS: usize = 7;

/// The shortest time that `threads` threads take from a common start until the last has run its part; each makes its part
/// with `prepare` first, which is not timed.
fn best_of<P: FnMut()>(threads: usize, prepare: impl Fn() -> P + Sync) -> Duration {
    let barrier = Barrier::new(threads);
    let round = || {
        let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
            let part = || {
                let mut run = prepare();
                run();
                barrier.wait();
                let begin = Instant::now();
                run();
                (begin, Instant::now())
            };
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(part)).collect();
            let own = part();
            others.into_iter().filter_map(|thread| thread.join().ok()).chain([own]).collect()
        });
        let begin = spans.iter().map(|span| span.0).min();
        let end = spans.iter().map(|span| span.1).max();
        end.zip(begin).map_or(Duration::MAX, |(end, begin)| end - begin)
    };
    (0..ROUNDS).map(|_| round()).min().unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;

    #[test]
    fn what_the_machine_has_is_measured_and_the_rest_is_not() {
        for isa in Isa::ALL {
            let peak = peak_flops(isa, 1);
            assert_eq!(peak.is_some(), isa.is_available(), "{isa:?}");
            assert!(peak.is_none_or(|flops| flops > 0.0 && flops.is_finite()));
        }
        assert!(read_bandwidth(LEVELS[0].1, 1) > 0.0);
    }
}
