//! The teams of the process, which all models share: one for each number of threads that somebody asked for.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::sync::lock;
use crate::{Team, default_threads};

/// The team that the whole process shares, of [`default_threads`] threads; started by the first call.
pub fn global() -> &'static Team {
    static GLOBAL: OnceLock<Team> = OnceLock::new();
    GLOBAL.get_or_init(|| Team::new(default_threads()))
}

/// The team of so many threads that all who ask for as many share; it ends when the last of them lets go of it. None where
/// that many are [`global`]'s.
pub fn shared(threads: usize) -> Option<Arc<Team>> {
    static TEAMS: Mutex<Vec<(usize, Weak<Team>)>> = Mutex::new(Vec::new());
    if threads == default_threads() {
        return None;
    }
    let mut teams = lock(&TEAMS);
    teams.retain(|(_, team)| team.strong_count() > 0);
    let known = teams.iter().find(|(size, _)| *size == threads);
    known.and_then(|(_, team)| team.upgrade()).or_else(|| {
        let team = Arc::new(Team::new(threads));
        teams.push((threads, Arc::downgrade(&team)));
        Some(team)
    })
}
