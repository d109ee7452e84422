//! Owners of pooled memory. Each VM has a unique number that is never reused, not even after it is
//! dropped.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Maximum number of live VMs that can own memory. Memory freed by further VMs is returned to the
/// system.
const MAX_OWNERS: usize = 4096;

/// Marks memory without an owner, which is never reused.
pub(crate) const NO_OWNER: u64 = 0;
/// Owns the scratch memory of kernels on threads where no VM runs.
pub(crate) const KERNEL_OWNER: u64 = u64::MAX;

/// For each slot, how often it was taken and released. The count is odd while a VM holds the slot.
static SLOTS: [AtomicU32; MAX_OWNERS] = [const { AtomicU32::new(0) }; MAX_OWNERS];

/// Takes a number for a new VM. Returns [`NO_OWNER`] if there are too many VMs.
pub(crate) fn new_owner() -> u64 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let first = NEXT.fetch_add(1, Ordering::Relaxed);
    (0..MAX_OWNERS).map(|i| (first + i) % MAX_OWNERS).find_map(take).unwrap_or(NO_OWNER)
}

fn take(at: usize) -> Option<u64> {
    let count = SLOTS[at].load(Ordering::Relaxed);
    // A slot whose counter is exhausted is not taken again, so that numbers stay unique.
    let is_free = count.is_multiple_of(2) && count < u32::MAX - 1;
    let take =
        |count| SLOTS[at].compare_exchange(count, count + 1, Ordering::SeqCst, Ordering::Relaxed);
    (is_free && take(count).is_ok()).then(|| (at as u64) << 32 | u64::from(count + 1))
}

/// Releases the number of a VM.
pub(crate) fn end_owner(owner: u64) {
    if owner != NO_OWNER {
        SLOTS[(owner >> 32) as usize].fetch_add(1, Ordering::SeqCst);
    }
}

/// Whether the owner with this number still exists, so that its memory may be reused.
pub(crate) fn is_live(owner: u64) -> bool {
    match owner {
        NO_OWNER => false,
        KERNEL_OWNER => true,
        _ => SLOTS[(owner >> 32) as usize].load(Ordering::SeqCst) == owner as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_end() {
        let (a, b) = (new_owner(), new_owner());
        assert!(a != b && is_live(a) && is_live(b) && !is_live(NO_OWNER) && is_live(KERNEL_OWNER));
        end_owner(a);
        assert!(!is_live(a) && is_live(b));
        end_owner(b);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..3 * MAX_OWNERS {
            let owner = new_owner();
            assert!(seen.insert(owner), "{owner}");
            end_owner(owner);
        }
    }
}
