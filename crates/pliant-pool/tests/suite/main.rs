//! Tests of the team from outside.
#![cfg(not(loom))]

mod fork;
mod idle;
mod team;
