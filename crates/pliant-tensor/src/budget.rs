//! How many bytes Pliant may hold at once: a run that asks for more ends with an error, before the system ends the process.
//!
//! Every [`AlignedBuf`](crate::AlignedBuf) is counted with what the allocator and its handles take beside its bytes, and
//! so is what else grows with a run and says so ([`Reserved`]). The limit is what [`set_memory_limit`] or the environment
//! variable `PLIANT_MEMORY_LIMIT` says (a number of bytes, or of multiples of 1024: `512M`, `4G`); else nine tenths of
//! what is held and of what the machine, the process's control groups and its own limits have left when more is asked
//! for. They are asked again only as the bytes held grow, so that most allocations cost one addition. Before more is
//! refused, what is kept for later is given back ([`on_shortage`]).

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{TensorError, shortage};

static HELD: AtomicUsize = AtomicUsize::new(0);
/// Up to here nobody has to be asked.
static CEILING: AtomicUsize = AtomicUsize::new(0);
/// What the user set; 0 for nothing.
static LIMIT: AtomicUsize = AtomicUsize::new(0);
/// What gives back memory that is kept for later.
static KEPT: OnceLock<fn()> = OnceLock::new();

/// Sets how many bytes tensors, storages and scratch memory may take at once; with `None` it follows the machine again.
pub fn set_memory_limit(bytes: Option<usize>) {
    let limit = bytes.map_or(0, |b| b.max(1));
    LIMIT.store(limit, Ordering::Relaxed);
    CEILING.store(limit, Ordering::Relaxed);
    if bytes.is_some_and(|bytes| held_bytes() > bytes) {
        release();
    }
}

/// Who keeps memory for later says here how the calling thread gives it back when more is missing. The first one stays.
pub fn on_shortage(give_back: fn()) {
    let _ = KEPT.set(give_back);
}

/// Gives back what this thread keeps for later.
pub(crate) fn release() {
    if let Some(give_back) = KEPT.get() {
        give_back();
    }
}

/// Bytes that are counted as held until this is dropped.
#[derive(Debug)]
pub struct Reserved(usize);

impl Reserved {
    /// Counts bytes that are about to be allocated elsewhere.
    ///
    /// # Errors
    /// `MemoryLimit`.
    pub fn new(bytes: usize) -> Result<Reserved, TensorError> {
        take(bytes)?;
        Ok(Reserved(bytes))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        give(self.0);
    }
}

/// The limit that was set; `None` where it follows the machine, and where the environment's is none: what allocates tells
/// that.
pub fn memory_limit() -> Option<usize> {
    asked_limit().ok().flatten()
}

/// The limit that was set.
///
/// # Errors
/// `WrongLimit`.
fn asked_limit() -> Result<Option<usize>, TensorError> {
    match LIMIT.load(Ordering::Relaxed) {
        0 => of_environment(),
        limit => Ok(Some(limit)),
    }
}

/// Bytes that are held now, free blocks kept for the next run counted.
pub fn held_bytes() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// `PLIANT_MEMORY_LIMIT`, in bytes.
///
/// # Errors
/// `WrongLimit`.
fn of_environment() -> Result<Option<usize>, TensorError> {
    static SAID: OnceLock<Option<String>> = OnceLock::new();
    let said = SAID.get_or_init(|| {
        std::env::var_os("PLIANT_MEMORY_LIMIT").map(|text| text.to_string_lossy().into_owned())
    });
    let Some(text) = said.as_deref().filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let wrong = || TensorError::WrongLimit { text: text.to_owned() };
    bytes_of(text).map(Some).ok_or_else(wrong)
}

/// A number of bytes above 0, or of multiples of 1024: `4096`, `512M`, `4 GiB`.
fn bytes_of(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: usize = text[..digits].parse().ok().filter(|&number| number > 0)?;
    let unit = text[digits..].trim_start().to_ascii_uppercase();
    let letter = unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(&unit);
    let power = match letter {
        "" if unit != "IB" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    number.checked_mul(1024usize.checked_pow(power)?)
}

/// Counts bytes that are about to be allocated.
pub(crate) fn take(bytes: usize) -> Result<(), TensorError> {
    // If memory is short, allocations that may fail leave the reserve to those that must not.
    shortage::check()?;
    count(bytes).or_else(|_| {
        release();
        count(bytes)
    })
}

fn count(bytes: usize) -> Result<(), TensorError> {
    let (mut before, mut allowed) = (HELD.load(Ordering::Relaxed), false);
    loop {
        // Bytes are counted once they fit: what is refused is in nobody's way.
        match before.checked_add(bytes) {
            Some(held) if allowed || held <= CEILING.load(Ordering::Relaxed) => {
                let counted =
                    HELD.compare_exchange_weak(before, held, Ordering::Relaxed, Ordering::Relaxed);
                match counted {
                    Ok(_) => return Ok(()),
                    // More may be held by now: it is asked again.
                    Err(now) => (allowed, before) = (allowed && now == before, now),
                }
            }
            Some(held) => {
                grow(before, held, bytes)?;
                allowed = true;
            }
            None => return Err(TensorError::OutOfMemory { bytes }),
        }
    }
}

/// Counts bytes that are freed.
pub(crate) fn give(bytes: usize) {
    HELD.fetch_sub(bytes, Ordering::Relaxed);
}

/// Asks the machine whether so many bytes may be held, and how many more may be without asking again.
#[cold]
fn grow(before: usize, held: usize, bytes: usize) -> Result<(), TensorError> {
    let limit = match asked_limit()? {
        Some(limit) => {
            CEILING.store(limit, Ordering::Relaxed);
            limit
        }
        None => {
            let Some(left) = left() else {
                CEILING.store(usize::MAX, Ordering::Relaxed);
                return Ok(());
            };
            // Of what is held and what is left together, so that it stays where it is while more is held.
            let limit = before.saturating_add(left) / 10 * 9;
            if held <= limit {
                // Half of what is left then may go before the machine is asked again.
                CEILING.store(held + (limit - held) / 2, Ordering::Relaxed);
            }
            limit
        }
    };
    if held <= limit {
        return Ok(());
    }
    Err(TensorError::MemoryLimit { bytes, held: before, limit })
}

/// Bytes that the machine, the control groups around this process and its own limits have left, where they say so.
fn left() -> Option<usize> {
    let machine = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| field(&text, "MemAvailable:").and_then(|kib| kib.checked_mul(1024)));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = groups.lines().filter_map(left_in_group);
    machine.into_iter().chain(of_groups).chain(left_of_limits()).min()
}

/// What this process's own limits (`ulimit -v`, `ulimit -d`) have left.
fn left_of_limits() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let left = |(limit, used): (&str, &str)| {
        let most = field(&limits, limit)?;
        let used = field(&status, used)?.checked_mul(1024)?;
        Some(most.saturating_sub(used))
    };
    let each = [("Max address space", "VmSize:"), ("Max data size", "VmData:")];
    each.into_iter().filter_map(left).min()
}

/// The number behind a word.
fn field(text: &str, word: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What a line of `/proc/self/cgroup` has left: the least of the group and those around it.
fn left_in_group(line: &str) -> Option<usize> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (root, max, now, cached) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "),
        _ if controllers.split(',').any(|c| c == "memory") => (
            "/sys/fs/cgroup/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file ",
        ),
        _ => return None,
    };
    let whole = Path::new(root).join(path.trim_start_matches('/'));
    let groups = whole.ancestors().take_while(|group| group.starts_with(root));
    let number = |group: &Path, name: &str| -> Option<usize> {
        std::fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()
    };
    let left = |group: &Path| {
        let (max, now) = (number(group, max)?, number(group, now)?);
        // Files in the cache make room.
        let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let now = now.saturating_sub(field(&stat, cached).unwrap_or(0));
        Some(max.saturating_sub(now))
    };
    groups.filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_is_left() {
        if cfg!(target_os = "linux") {
            assert!(left().is_some_and(|left| left > 0));
        }
        assert_eq!(field("a: 1 kB\nMemAvailable:   23 kB\n", "MemAvailable:"), Some(23));
        let limits =
            "Max data size   unlimited unlimited bytes\nMax address space   4096 unlimited bytes\n";
        assert_eq!(field(limits, "Max address space"), Some(4096));
        assert_eq!(field(limits, "Max data size"), None);
        assert_eq!(left_in_group("5:devices:/"), None);
        assert_eq!(left_in_group("nonsense"), None);
    }

    #[test]
    fn limits_are_bytes_or_multiples_of_1024() {
        assert_eq!(bytes_of(" 4096 "), Some(4096));
        assert_eq!(bytes_of("512M"), Some(512 << 20));
        assert_eq!(bytes_of("4 GiB"), Some(4 << 30));
        assert_eq!(bytes_of("2kb"), Some(2048));
        assert_eq!(bytes_of("7B"), Some(7));
        for wrong in
            ["", "abc", "0", "0G", "-5", "1.5G", "4X", "4iB", "99999999999999999999", "99999999T"]
        {
            assert_eq!(bytes_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_no_machine_has_is_refused_and_not_counted() {
        let before = held_bytes();
        let refused = take(usize::MAX / 2);
        assert!(matches!(refused, Err(TensorError::MemoryLimit { .. })), "{refused:?}");
        assert!(held_bytes() < before + (usize::MAX / 4));
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("out of memory") && text.contains("limit"), "{text}");
    }
}
