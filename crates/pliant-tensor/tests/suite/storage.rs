//! Tests the recycling of a buffer when the last handle of its storage is dropped.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use pliant_tensor::{AlignedBuf, Storage};

#[test]
fn the_last_handle_returns_a_buffer_to_its_pool() {
    static RETURNED: AtomicUsize = AtomicUsize::new(0);
    let recycle = |buf: AlignedBuf| {
        assert_eq!((buf.len(), buf.owner()), (100, 7));
        RETURNED.fetch_add(1, Ordering::Relaxed);
    };
    let mut buf = AlignedBuf::zeroed(100).unwrap();
    buf.set_pool(7, recycle);
    let first = Storage::from_buf(buf);
    let second = first.clone();
    drop(first);
    assert_eq!(RETURNED.load(Ordering::Relaxed), 0);
    assert_eq!(second.owner(), 7);
    drop(second);
    assert_eq!(RETURNED.load(Ordering::Relaxed), 1);
}

#[test]
fn threads_that_drop_the_last_two_handles_at_once_free_the_buffer_once() {
    const ROUNDS: usize = 1000;
    static RETURNED: AtomicUsize = AtomicUsize::new(0);
    let recycle = |buf: AlignedBuf| {
        drop(buf);
        RETURNED.fetch_add(1, Ordering::Relaxed);
    };
    let (start, end) = (Barrier::new(2), Barrier::new(2));
    let (send, receive) = std::sync::mpsc::channel::<Storage>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for storage in receive {
                start.wait();
                drop(storage);
                end.wait();
            }
        });
        for round in 0..ROUNDS {
            let mut buf = AlignedBuf::zeroed(64).unwrap();
            buf.set_pool(1, recycle);
            let storage = Storage::from_buf(buf);
            let before = RETURNED.load(Ordering::Relaxed);
            send.send(storage.clone()).unwrap();
            start.wait();
            drop(storage);
            end.wait();
            assert!(RETURNED.load(Ordering::Relaxed) <= before + 1, "round {round}");
        }
        drop(send);
    });
}
