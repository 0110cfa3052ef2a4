//! What the run tells while it runs: marker lines on its output for a live view, and Argo's progress file.
//!
//! Both are for watching only. Nobody computes a verdict from them; that is what the results are for.

use std::fs;
use std::path::PathBuf;

use crate::json::Value;
use crate::process::echo;
use crate::results::{rounded, SuiteResult};

/// One marker line: `##gputest` and a JSON object with the name of the event.
fn mark(event: &str, fields: Vec<(String, Value)>) {
    let mut all = vec![("event".to_string(), Value::text(event))];
    all.extend(fields);
    echo(&format!("##gputest {}", Value::Object(all)));
}

fn field(name: &str, value: Value) -> (String, Value) {
    (name.to_string(), value)
}

pub fn resolved(commit: &str) {
    mark("resolved", vec![field("commit", Value::text(commit))]);
}

pub fn compiling() {
    mark("compiling", Vec::new());
}

pub fn compiled(seconds: f64) {
    mark("compiled", vec![field("seconds", Value::Number(rounded(seconds)))]);
}

pub fn suite_started(result: &SuiteResult) {
    mark("suite_started", vec![field("model", Value::text(&result.model)), field("suite", Value::text(&result.suite))]);
}

pub fn suite_finished(result: &SuiteResult) {
    mark("suite_finished", result.fields());
}

/// Argo shows `N/M` of this file as the node's progress; the build counts as one step.
pub struct Progress {
    pub file: Option<PathBuf>,
    pub total: usize,
}

impl Progress {
    pub fn done(&self, steps: usize) {
        if let Some(file) = &self.file {
            // Progress is a comfort: a run does not fail for it.
            let _ = fs::write(file, format!("{steps}/{}\n", self.total));
        }
    }
}

/// The table at the end of the log, for who reads it there.
pub fn summary(suites: &[SuiteResult]) {
    echo("=== GPU TEST RESULTS ===");
    for suite in suites {
        let counts = format!("{} passed, {} failed, {} ignored", suite.passed, suite.failed, suite.ignored);
        echo(&format!("  {:<20} {:<9} {counts} {}", suite.suite, suite.status.word(), suite.reason));
    }
}
