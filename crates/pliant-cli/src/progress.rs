//! Signs of life on a terminal while something takes long; nothing anywhere else.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Something of unknown length. It shows on standard error if that is a terminal.
pub fn spinner(what: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Something of so many steps.
pub fn bar(what: &'static str, steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64).with_message(what);
    match ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
