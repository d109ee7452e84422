//! Ids of the VMs that own pooled memory. The id of a VM is never reused, even after the VM is
//! dropped.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Maximum number of live VMs that own pooled memory. Further VMs return freed memory to the system.
const MAX_OWNERS: usize = 4096;

/// The owner id of memory that is not pooled: it is returned to the system when freed.
pub(crate) const NO_OWNER: u64 = 0;
/// The owner id of memory for kernel workspaces that was allocated on threads where no VM ran.
pub(crate) const KERNEL_OWNER: u64 = u64::MAX;

/// For each id slot, the number of times that a VM has acquired or released it. The count is odd
/// while a VM uses the slot.
static SLOTS: [AtomicU32; MAX_OWNERS] = [const { AtomicU32::new(0) }; MAX_OWNERS];

/// Returns an id for a new VM, or [`NO_OWNER`] if there are too many VMs.
pub(crate) fn new_owner() -> u64 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let first = NEXT.fetch_add(1, Ordering::Relaxed);
    (0..MAX_OWNERS).map(|i| (first + i) % MAX_OWNERS).find_map(take).unwrap_or(NO_OWNER)
}

fn take(at: usize) -> Option<u64> {
    let count = SLOTS[at].load(Ordering::Relaxed);
    // A slot whose counter is exhausted is not acquired again, so that ids stay unique.
    let is_free = count.is_multiple_of(2) && count < u32::MAX - 1;
    let take =
        |count| SLOTS[at].compare_exchange(count, count + 1, Ordering::SeqCst, Ordering::Relaxed);
    (is_free && take(count).is_ok()).then(|| (at as u64) << 32 | u64::from(count + 1))
}

/// Releases the id of a VM that is being dropped.
pub(crate) fn end_owner(owner: u64) {
    if owner != NO_OWNER {
        SLOTS[(owner >> 32) as usize].fetch_add(1, Ordering::SeqCst);
    }
}

/// Whether the VM with the id `owner` still exists. If not, its memory must not be reused.
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
    fn owner_ids_are_unique_and_expire_when_released() {
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
