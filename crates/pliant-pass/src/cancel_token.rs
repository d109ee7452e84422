//! [`CancelToken`]: cancels a compilation from another thread or a signal handler.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A cancellation flag that the compiler polls between passes and between functions. Clones share the flag.
///
/// # Examples
/// ```
/// use pliant_pass::CancelToken;
///
/// let token = CancelToken::new();
/// let other = token.clone();
/// std::thread::spawn(move || other.cancel()).join().expect("the thread ends");
/// assert!(token.is_cancelled());
/// // A token can also poll a callback.
/// assert!(CancelToken::with_poll(|| true).is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    poll: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a token for which [`is_cancelled`](Self::is_cancelled) also calls `poll`. The token is cancelled once `poll`
    /// returns true, for example because of a pending Ctrl-C. `poll` is called from compiler threads.
    pub fn with_poll(poll: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        CancelToken(Arc::new(Inner {
            cancelled: AtomicBool::new(false),
            poll: Some(Box::new(poll)),
        }))
    }

    /// Requests cancellation.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether cancellation was requested.
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
    fn clones_share_the_flag_and_a_positive_poll_is_remembered() {
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
        assert!(
            polled.is_cancelled(),
            "the poll returns true only once, but the token stays cancelled"
        );
    }
}
