//! `results.json`: what the run found out, as data of version 1 (deploy/argo/results.schema.json).
//!
//! It travels as an output parameter of the Workflow, so it stays well below 100 KiB whatever happened, and it is written whole
//! or not at all: a reader, or a pod that is killed, never sees half of it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::build_errors::{BuildError, ERROR_LIMIT};
use crate::gpu::Gpu;
use crate::json::Value;
use crate::suites::Suite;
use crate::terminal::shorten;

const SIZE_LIMIT: usize = 96 * 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Status {
    Passed,
    Failed,
    /// The model has no tests of this kind.
    Skipped,
    /// It did not build.
    Broken,
    TimedOut,
    Killed,
    /// Nobody can say: not reached, or no test was there to run. Never a pass.
    Unknown,
}

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
            Status::Broken => "broken",
            Status::TimedOut => "timed_out",
            Status::Killed => "killed",
            Status::Unknown => "unknown",
        }
    }

    pub fn fine(self) -> bool {
        matches!(self, Status::Passed | Status::Skipped)
    }
}

#[derive(Clone, Debug)]
pub struct SuiteResult {
    pub model: String,
    pub suite: String,
    pub scope: &'static str,
    pub status: Status,
    pub reason: String,
    pub exit_code: Option<i32>,
    pub passed: u64,
    pub failed: u64,
    pub ignored: u64,
    pub filtered: u64,
    pub seconds: f64,
    pub failed_tests: Vec<String>,
    pub tail: String,
}

impl SuiteResult {
    /// A suite that nothing is known of yet; it stands in the results from the start, so that a cut-off run shows what it lacks.
    pub fn not_reached(suite: &Suite) -> SuiteResult {
        SuiteResult {
            model: suite.model.clone(),
            suite: suite.name.clone(),
            scope: suite.scope.word(),
            status: Status::Unknown,
            reason: "not reached".to_string(),
            exit_code: None,
            passed: 0,
            failed: 0,
            ignored: 0,
            filtered: 0,
            seconds: 0.0,
            failed_tests: Vec::new(),
            tail: String::new(),
        }
    }

    pub fn fields(&self) -> Vec<(String, Value)> {
        let count = |number: u64| Value::Number(number as f64);
        let fields = [
            ("model", Value::text(&self.model)),
            ("suite", Value::text(&self.suite)),
            ("scope", Value::text(self.scope)),
            ("status", Value::text(self.status.word())),
            ("reason", Value::text(&self.reason)),
            ("exit_code", self.exit_code.map_or(Value::Null, |code| Value::Number(f64::from(code)))),
            ("passed", count(self.passed)),
            ("failed", count(self.failed)),
            ("ignored", count(self.ignored)),
            ("filtered", count(self.filtered)),
            ("seconds", Value::Number(rounded(self.seconds))),
            ("failed_tests", Value::texts(&self.failed_tests)),
        ];
        fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    fn to_json(&self) -> Value {
        let mut fields = self.fields();
        fields.push(("tail".to_string(), Value::text(&self.tail)));
        Value::Object(fields)
    }
}

pub fn rounded(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

#[derive(Clone, Debug, Default)]
pub struct Results {
    pub commit_ref: String,
    pub commit: String,
    pub models: Vec<String>,
    pub scope: String,
    /// 0 where what was asked for is no number.
    pub epochs: u32,
    pub gpu: Gpu,
    pub build_failed: bool,
    pub build_seconds: f64,
    pub errors: Vec<BuildError>,
    pub suites: Vec<SuiteResult>,
    pub complete: bool,
}

impl Results {
    /// Marks the build as failed and adds what is new; the same error shows in every suite that needs the crate.
    pub fn add_errors(&mut self, errors: Vec<BuildError>) {
        self.build_failed = true;
        for error in errors {
            if self.errors.len() < ERROR_LIMIT && !self.errors.contains(&error) {
                self.errors.push(error);
            }
        }
    }

    fn to_json(&self) -> Value {
        let build = Value::object([
            ("status", Value::text(if self.build_failed { "failed" } else { "passed" })),
            ("seconds", Value::Number(rounded(self.build_seconds))),
            ("errors", Value::List(self.errors.iter().map(BuildError::to_json).collect())),
        ]);
        Value::object([
            ("version", Value::Number(1.0)),
            ("ref", Value::text(&self.commit_ref)),
            ("commit", Value::text(&self.commit)),
            ("models", Value::texts(&self.models)),
            ("scope", Value::text(&self.scope)),
            ("epochs", Value::Number(f64::from(self.epochs))),
            ("gpu", self.gpu.to_json()),
            ("build", build),
            ("suites", Value::List(self.suites.iter().map(SuiteResult::to_json).collect())),
            ("complete", Value::Bool(self.complete)),
        ])
    }

    /// The document, cut to size: tails go first, then the long lists of names, then the length of everything.
    pub fn document(&self) -> String {
        let mut cut = self.clone();
        let mut text = cut.to_json().to_string();
        for (tail, names, length) in [(600, 200, 200), (0, 200, 200), (0, 20, 120), (0, 5, 60), (0, 0, 40)] {
            if text.len() <= SIZE_LIMIT {
                break;
            }
            cut.shrink(tail, names, length);
            text = cut.to_json().to_string();
        }
        text
    }

    fn shrink(&mut self, tail: usize, names: usize, length: usize) {
        for suite in &mut self.suites {
            let skip = suite.tail.chars().count().saturating_sub(tail);
            suite.tail = suite.tail.chars().skip(skip).collect();
            suite.failed_tests.truncate(names);
            suite.failed_tests.iter_mut().for_each(|name| *name = shorten(name, length));
            suite.reason = shorten(&suite.reason, length);
        }
        for error in &mut self.errors {
            error.message = shorten(&error.message, length);
            error.file = shorten(&error.file, length);
        }
    }
}

/// Writes a file whole: beside its place, then renamed. A spare of the largest size is held, so that a full disk can't stop it.
pub struct ResultsFile {
    path: PathBuf,
    spare: PathBuf,
}

impl ResultsFile {
    pub fn new(path: &Path) -> ResultsFile {
        let file = ResultsFile { path: path.to_path_buf(), spare: path.with_extension("spare") };
        if let Some(folder) = path.parent() {
            let _ = fs::create_dir_all(folder);
        }
        file.hold_spare();
        file
    }

    fn hold_spare(&self) {
        let _ = fs::write(&self.spare, vec![b' '; SIZE_LIMIT + 4096]);
    }

    pub fn write(&self, results: &Results) -> io::Result<()> {
        let _ = fs::remove_file(&self.spare);
        let beside = self.path.with_extension("part");
        let mut file = File::create(&beside)?;
        file.write_all(results.document().as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)?;
        self.hold_spare();
        Ok(())
    }

    pub fn finish(&self) {
        let _ = fs::remove_file(&self.spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build_errors::Kind;
    use crate::json;
    use crate::suites::parse_table;

    fn crowded() -> Results {
        let table = parse_table(include_str!("../suites.tsv")).unwrap();
        let mut results =
            Results { suites: table.iter().map(SuiteResult::not_reached).collect(), ..Results::default() };
        for suite in &mut results.suites {
            suite.tail = "\u{1f680} the end".repeat(300);
            suite.failed_tests = (0..200).map(|number| format!("{number}{}", "x\u{1}".repeat(90))).collect();
            suite.reason = "r".repeat(5000);
        }
        results.add_errors(
            (0..40).map(|number| BuildError::new(Kind::Compile, &format!("{number}{}", "e".repeat(900)))).collect(),
        );
        results
    }

    #[test]
    fn the_document_is_never_larger_than_its_limit() {
        let text = crowded().document();

        assert!(text.len() <= SIZE_LIMIT, "{}", text.len());
        assert_eq!(27, json::parse(&text).unwrap().get("suites").unwrap().items().len());
    }

    #[test]
    fn tails_go_before_names() {
        let mut results = crowded();
        results.suites.iter_mut().for_each(|suite| suite.failed_tests = vec!["a".into()]);
        let text = results.document();

        assert!(text.contains("\"failed_tests\":[\"a\"]"));
    }

    #[test]
    fn the_same_error_is_listed_once() {
        let mut results = Results::default();
        let error = BuildError::new(Kind::Link, "cannot find -lcuda");
        results.add_errors(vec![error.clone()]);
        results.add_errors(vec![error]);

        assert_eq!((1, true), (results.errors.len(), results.build_failed));
    }
}
