//! The teams of the process, one for each requested number of threads. All models share them.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::sync::lock;
use crate::{MAX_THREADS, Team, default_threads};

/// The team of the whole process with [`default_threads`] threads. The first call starts it.
pub fn global() -> &'static Team {
    static GLOBAL: OnceLock<Team> = OnceLock::new();
    GLOBAL.get_or_init(|| Team::new(global_threads()))
}

/// The thread count of [`global`]'s team. It is determined on the first call and does not change.
fn global_threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(default_threads)
}

/// The team with the given number of threads. Callers that request the same number share it, and it
/// ends when the last of them drops it. `None` if the number is that of [`global`]'s team.
pub fn shared(threads: usize) -> Option<Arc<Team>> {
    static TEAMS: Mutex<Vec<(usize, Weak<Team>)>> = Mutex::new(Vec::new());
    let threads = threads.clamp(1, MAX_THREADS);
    if threads == global_threads() {
        return None;
    }
    let known = |teams: &Vec<(usize, Weak<Team>)>| {
        let team = teams.iter().find(|(size, _)| *size == threads);
        team.and_then(|(_, team)| team.upgrade())
    };
    if let Some(team) = known(&lock(&TEAMS)) {
        return Some(team);
    }
    // The lock is not held here: a child forked in the meantime could never take it.
    let own = Arc::new(Team::new(threads));
    let mut teams = lock(&TEAMS);
    if let Some(others) = known(&teams) {
        // Release the lock before the drop of `own` joins its threads.
        drop(teams);
        return Some(others);
    }
    teams.retain(|(_, team)| team.strong_count() > 0);
    teams.push((threads, Arc::downgrade(&own)));
    Some(own)
}
