//! [`CancelToken`]: lets another thread, or a signal, stop a compilation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A shared flag that the compiler polls between passes and between functions. Clones share the flag.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    poll: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

impl CancelToken {
    /// A token that nobody has cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that also asks `poll`, which answers whether to stop (a pending Ctrl-C, say). It is called from
    /// compiler threads.
    pub fn with_poll(poll: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        CancelToken(Arc::new(Inner {
            cancelled: AtomicBool::new(false),
            poll: Some(Box::new(poll)),
        }))
    }

    /// Asks the compilation to stop.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        if self.0.cancelled.load(Ordering::Relaxed) {
            return true;
        }
        let stop = self.0.poll.as_ref().is_some_and(|poll| poll());
        if stop {
            self.cancel();
        }
        stop
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cancelled = self.0.cancelled.load(Ordering::Relaxed);
        f.debug_struct("CancelToken").field("cancelled", &cancelled).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_flag_and_the_poll_sticks() {
        let token = CancelToken::new();
        let other = token.clone();
        assert!(!other.is_cancelled());
        token.cancel();
        assert!(other.is_cancelled());

        let once = Arc::new(AtomicBool::new(true));
        let polled = {
            let once = once.clone();
            CancelToken::with_poll(move || once.swap(false, Ordering::Relaxed))
        };
        assert!(polled.is_cancelled());
        assert!(polled.is_cancelled(), "the poll answers yes only once, the token remembers");
    }
}
