//! The worker teams of the process: one for each requested thread count, shared by all models.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::sync_primitives::lock;
use crate::{MAX_THREADS, Team, default_threads};

/// Returns the global team of the process, which has [`default_threads`] threads. The first call
/// starts the team.
pub fn global() -> &'static Team {
    static GLOBAL: OnceLock<Team> = OnceLock::new();
    GLOBAL.get_or_init(|| Team::new(global_threads()))
}

/// Returns the number of threads of the global team. The first call determines the number; later calls return the same.
fn global_threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(default_threads)
}

/// Returns the team with `threads` threads. All callers that request the same count share one team,
/// which ends when its last handle is dropped. Returns `None` if `threads` is the count of the
/// [`global`] team.
pub fn shared_team(threads: usize) -> Option<Arc<Team>> {
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
    // Do not hold the lock while starting threads. A child forked in the meantime could never acquire it.
    let own = Arc::new(Team::new(threads));
    let mut teams = lock(&TEAMS);
    if let Some(others) = known(&teams) {
        // Release the lock before dropping `own`, which joins its threads.
        drop(teams);
        return Some(others);
    }
    teams.retain(|(_, team)| team.strong_count() > 0);
    teams.push((threads, Arc::downgrade(&own)));
    Some(own)
}
