//! Detection of the tile registers (AMX) of x86-64 CPUs, and the request for permission to use them.

/// Whether the CPU has tile registers for 8-bit integers and bfloat16, and the operating system
/// permits this process to use them. The first call requests permission for all threads. Without
/// permission, the operating system kills the process when it uses a tile register.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_available() -> bool {
    use std::sync::OnceLock;
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| has_instructions() && request_permission())
}

/// Whether the CPU has the tile register instructions for 8-bit integers and bfloat16, and the
/// vector instructions with which kernels prepare the operands.
#[cfg(target_arch = "x86_64")]
fn has_instructions() -> bool {
    // Leaf 7 exists on every processor with AVX-512.
    let edx = std::arch::x86_64::__cpuid_count(7, 0).edx;
    let (bfloat16, registers, bytes) = (edx >> 22 & 1, edx >> 24 & 1, edx >> 25 & 1);
    bfloat16 & registers & bytes == 1
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vnni")
        && std::arch::is_x86_feature_detected!("avx512bf16")
}

/// Requests permission from Linux to use tile registers. Returns whether it was granted. With permission, Linux saves
/// the registers on thread switches.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn request_permission() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call takes only numbers. It fails if the system does not know it, or if threads
    // have small signal stacks.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn request_permission() -> bool {
    false
}
