//! The run itself: set up, compile, then one suite after the other, with the results written after each step.

use std::collections::VecDeque;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::account::{self, Progress};
use crate::build_errors::{BuildError, Collector, Kind};
use crate::cargo::{self, Missing, Targets};
use crate::git::Checkout;
use crate::gpu::Gpu;
use crate::libtest::{Account, Reader};
use crate::process::{self, echo, End};
use crate::redact::redact;
use crate::results::{Results, ResultsFile, Status, SuiteResult};
use crate::settings::Settings;
use crate::suites::{self, Scope, Suite};
use crate::terminal::{plain, shorten};

const TAIL_LINES: usize = 25;
const TAIL_LENGTH: usize = 2000;
const REASON_LENGTH: usize = 300;
const EPOCHS_LIMIT: u32 = 10_000;

/// Exit codes of the runner: all green, something not green, told to stop.
const GREEN: u8 = 0;
const RED: u8 = 1;
const STOPPED: u8 = 143;

/// Runs the matrix and returns the exit code; whatever goes wrong ends up in the results.
pub fn run(settings: &Settings) -> u8 {
    let file = ResultsFile::new(&settings.results);
    let results = Results { commit_ref: shorten(&plain(&settings.commit_ref), 200), ..Results::default() };
    let mut run =
        Run { settings, file, results, started: Instant::now(), planned: Vec::new(), targets: Targets::new() };
    if let Err(problem) = run.set_up() {
        echo(&format!("set-up failed: {problem}"));
        run.give_up(&problem);
    } else {
        run.compile();
        run.test();
    }
    run.close()
}

struct Run<'a> {
    settings: &'a Settings,
    file: ResultsFile,
    results: Results,
    started: Instant,
    planned: Vec<Suite>,
    targets: Targets,
}

impl Run<'_> {
    /// All that comes before compiling; an error here is the reason that the whole run shows.
    fn set_up(&mut self) -> Result<(), String> {
        let settings = self.settings;
        let table = std::fs::read_to_string(&settings.suites).map_err(|error| format!("suite table: {error}"))?;
        let table = suites::parse_table(&table)?;
        let models = suites::expand_models(&settings.models, &table)?;
        let scope = Scope::parse(&settings.scope)?;
        self.results.models = models;
        self.results.scope = scope.word().to_string();
        self.planned = suites::plan(&self.results.models, scope, &table);
        self.results.suites = self.planned.iter().map(SuiteResult::not_reached).collect();
        self.write();
        self.results.epochs = epochs(&settings.epochs)?;
        self.results.gpu = Gpu::detect();
        self.results.gpu.check(&settings.compute_cap)?;
        self.results.commit = Checkout::new(settings).bring()?;
        account::resolved(&self.results.commit);
        self.targets = cargo::targets(settings)?;
        self.write();
        Ok(())
    }

    fn give_up(&mut self, problem: &str) {
        self.results.add_errors(vec![BuildError::new(Kind::Setup, problem)]);
        for suite in &mut self.results.suites {
            suite.status = Status::Broken;
            suite.reason = shorten(problem, REASON_LENGTH);
        }
        self.results.complete = !process::stopped();
    }

    /// The first build; where it fails, each suite still tries for itself, since a broken crate does not break the others.
    fn compile(&mut self) {
        account::compiling();
        let begun = Instant::now();
        let mut command = cargo::build_all(self.settings, &suites::packages(&self.planned));
        if let Err(errors) = self.build(&mut command) {
            self.results.add_errors(errors);
        }
        self.results.build_seconds = begun.elapsed().as_secs_f64();
        account::compiled(self.results.build_seconds);
        self.write();
    }

    fn build(&self, command: &mut Command) -> Result<(), Vec<BuildError>> {
        let mut collector = Collector::default();
        let limit = self.settings.build_limit.min(self.left());
        let end = process::run(command, limit, &mut |line| {
            echo(line);
            collector.line(line);
        });
        let errors = collector.finish();
        let plain_error = |message: &str| Err(vec![BuildError::new(Kind::Compile, message)]);
        match end {
            Ok(End::Exited(0)) => Ok(()),
            Ok(End::TimedOut) => plain_error(&format!("the build took longer than {} s", limit.as_secs())),
            Ok(End::Stopped) => plain_error("the run was stopped while it compiled"),
            Ok(end) if errors.is_empty() => plain_error(&format!("cargo ended with {}", end.code().unwrap_or(-1))),
            Ok(_) => Err(errors),
            Err(error) => plain_error(&format!("cargo did not start: {error}")),
        }
    }

    fn test(&mut self) {
        let progress = Progress { file: self.settings.progress.clone(), total: self.planned.len() + 1 };
        for index in 0..self.planned.len() {
            progress.done(index + 1);
            if process::stopped() || self.left().is_zero() {
                let reason =
                    if process::stopped() { "not reached: the run was stopped" } else { "not reached: out of time" };
                self.results.suites[index..].iter_mut().for_each(|suite| suite.reason = reason.to_string());
                return;
            }
            let suite = self.planned[index].clone();
            let mut result = SuiteResult::not_reached(&suite);
            account::suite_started(&result);
            let begun = Instant::now();
            self.run_suite(&suite, &mut result);
            result.seconds = begun.elapsed().as_secs_f64();
            account::suite_finished(&result);
            self.results.suites[index] = result;
            self.write();
        }
        progress.done(self.planned.len() + 1);
        self.results.complete = !process::stopped();
    }

    fn run_suite(&mut self, suite: &Suite, result: &mut SuiteResult) {
        match cargo::missing(suite, &self.targets) {
            Some(Missing::NoTests) => set(result, Status::Skipped, "no tests"),
            Some(Missing::Gone(what)) => set(result, Status::Broken, &what),
            None => match self.build(&mut cargo::build(self.settings, suite)) {
                Ok(()) => self.execute(suite, result),
                Err(_) if process::stopped() => set(result, Status::Killed, "the run was stopped"),
                Err(errors) => {
                    set(result, Status::Broken, &reason_of(&errors));
                    self.results.add_errors(errors);
                }
            },
        }
    }

    fn execute(&self, suite: &Suite, result: &mut SuiteResult) {
        let limit = self.settings.suite_limit.unwrap_or(suite.limit).min(self.left());
        let mut reader = Reader::default();
        let mut tail: VecDeque<String> = VecDeque::new();
        let end = process::run(&mut cargo::test(self.settings, suite), limit, &mut |line| {
            echo(line);
            reader.line(line);
            tail.push_back(plain(line));
            if tail.len() > TAIL_LINES {
                tail.pop_front();
            }
        });
        let account = reader.finish();
        match end {
            Ok(end) => judge(end, limit, &account, result),
            Err(error) => set(result, Status::Broken, &format!("cargo did not start: {error}")),
        }
        if self.settings.tails && !result.status.fine() {
            let text = redact(&tail.make_contiguous().join("\n"));
            let skip = text.chars().count().saturating_sub(TAIL_LENGTH);
            result.tail = text.chars().skip(skip).collect();
        }
        result.failed_tests = account.failed_tests;
        (result.passed, result.failed) = (account.passed, account.failed);
        (result.ignored, result.filtered) = (account.ignored, account.filtered);
    }

    fn left(&self) -> Duration {
        self.settings.budget.saturating_sub(self.started.elapsed())
    }

    fn write(&self) {
        if let Err(error) = self.file.write(&self.results) {
            echo(&format!("results not written: {error}"));
        }
    }

    fn close(&self) -> u8 {
        self.write();
        self.file.finish();
        account::summary(&self.results.suites);
        if process::stopped() {
            return STOPPED;
        }
        let green = !self.results.build_failed && self.results.suites.iter().all(|suite| suite.status.fine());
        if green && !self.results.suites.is_empty() {
            GREEN
        } else {
            RED
        }
    }
}

fn set(result: &mut SuiteResult, status: Status, reason: &str) {
    result.status = status;
    result.reason = shorten(reason, REASON_LENGTH);
}

fn epochs(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if (1..=EPOCHS_LIMIT).contains(&number) => Ok(number),
        _ => Err(format!("epochs must be a number from 1 to {EPOCHS_LIMIT}, not {}", shorten(&plain(text), 40))),
    }
}

fn reason_of(errors: &[BuildError]) -> String {
    match errors {
        [] => "it did not build".to_string(),
        [error, ..] => match error.line {
            Some(line) => format!("{} ({}:{line})", error.message, error.file),
            None => error.message.clone(),
        },
    }
}

/// What the end of `cargo test` and the lines of the test binaries mean together.
fn judge(end: End, limit: Duration, account: &Account, result: &mut SuiteResult) {
    result.exit_code = end.code();
    let empty = match account.empty.join(", ") {
        names if names.is_empty() => names,
        names => format!("{names} ran 0 tests"),
    };
    match (end, &account.signal) {
        (End::TimedOut, _) => {
            let slow = if account.slow.is_empty() {
                String::new()
            } else {
                format!("; still running: {}", account.slow.join(", "))
            };
            set(result, Status::TimedOut, &format!("no end after {} s{slow}", limit.as_secs_f64().ceil()));
        }
        (End::Stopped, _) => set(result, Status::Killed, "the run was stopped"),
        (End::Signalled(signal), _) => set(result, Status::Killed, &format!("cargo was killed by signal {signal}")),
        (_, Some((number, name))) => {
            result.exit_code = Some(128 + number);
            set(result, Status::Killed, &format!("a test binary was killed by {name} ({})", 128 + number));
        }
        (_, None) if account.failed > 0 => set(result, Status::Failed, &empty),
        (End::Exited(_), None) if account.not_started.is_some() => {
            let why = account.not_started.as_deref().unwrap_or_default();
            set(result, Status::Broken, &format!("a test binary did not start: {why}"));
        }
        (End::Exited(0), None) if !account.unfinished.is_empty() => {
            set(result, Status::Unknown, &format!("{} ended without a result", account.unfinished.join(", ")));
        }
        (End::Exited(0), None) if account.ran_something() => set(result, Status::Passed, &empty),
        (End::Exited(0), None) if account.ignored > 0 => set(result, Status::Unknown, "every test is ignored"),
        (End::Exited(0), None) => set(result, Status::Unknown, "no test matched"),
        (End::Exited(code), None) if !account.unfinished.is_empty() => {
            let names = account.unfinished.join(", ");
            set(result, Status::Failed, &format!("{names} ended without a result, cargo test with {code}"));
        }
        (End::Exited(code), None) => set(result, Status::Failed, &format!("cargo test ended with {code}")),
    }
}
