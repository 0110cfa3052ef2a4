//! Makes a suite go wrong on purpose: `SAMPLE_FAULT=hang:tft-lib,fail:ppo-lib`.

use std::process::{abort, exit, Command};
use std::thread::sleep;
use std::time::Duration;

/// Each suite's tests pass one point with the suite's name; here the fault that was asked for happens.
pub fn point(suite: &str) {
    let wanted = std::env::var("SAMPLE_FAULT").unwrap_or_default();
    for (kind, name) in wanted.split(',').filter_map(|fault| fault.split_once(':')) {
        if name == suite {
            happen(kind);
        }
    }
}

fn happen(kind: &str) {
    match kind {
        "fail" => panic!("failed on purpose with token=abc123"),
        "hang" => loop {
            sleep(Duration::from_secs(60));
        },
        "abort" => abort(),
        "exit" => exit(0),
        "kill" => {
            let own = std::process::id().to_string();
            let _ = Command::new("kill").args(["-9", &own]).status();
            sleep(Duration::from_secs(60));
        }
        other => panic!("no such fault: {other}"),
    }
}
