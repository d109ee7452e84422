//! The teams of the process, which all models share: one for each number of threads that somebody asked for.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::sync::lock;
use crate::{MAX_THREADS, Team, default_threads};

/// The team that the whole process shares, of [`default_threads`] threads; started by the first call.
pub fn global() -> &'static Team {
    static GLOBAL: OnceLock<Team> = OnceLock::new();
    GLOBAL.get_or_init(|| Team::new(global_threads()))
}

/// How many threads [`global`]'s team has: as many as it should when somebody first asks, whatever is said or set later.
fn global_threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(default_threads)
}

/// The team of so many threads that all who ask for as many share; it ends when the last of them lets go of it. None where
/// that many are [`global`]'s.
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
    // Without the lock, which a child of a fork meanwhile would never get.
    let own = Arc::new(Team::new(threads));
    let mut teams = lock(&TEAMS);
    if let Some(others) = known(&teams) {
        // Ends the threads without it too.
        drop(teams);
        return Some(others);
    }
    teams.retain(|(_, team)| team.strong_count() > 0);
    teams.push((threads, Arc::downgrade(&own)));
    Some(own)
}
