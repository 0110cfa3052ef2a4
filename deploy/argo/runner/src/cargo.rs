//! The calls of cargo: which test targets there are, how a suite is compiled, how it is run.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

use crate::json;
use crate::process;
use crate::settings::Settings;
use crate::suites::{fits, Suite, Target};

const METADATA_LIMIT: Duration = Duration::from_secs(120);

/// The integration test targets of each package of the workspace.
pub type Targets = HashMap<String, Vec<String>>;

/// Asks cargo for the workspace's targets; no network and no build.
pub fn targets(settings: &Settings) -> Result<Targets, String> {
    let mut command = cargo(settings);
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let text = process::output(&mut command, METADATA_LIMIT).map_err(|error| format!("cargo metadata: {error}"))?;
    let document = text.lines().find(|line| line.starts_with('{')).unwrap_or("");
    let metadata = json::parse(document).map_err(|error| format!("cargo metadata: {error}"))?;
    let mut found = Targets::new();
    for package in metadata.get("packages").map_or(&[][..], |packages| packages.items()) {
        let tests = package.get("targets").map_or(&[][..], |targets| targets.items()).iter().filter(|target| {
            target.get("kind").is_some_and(|kinds| kinds.items().iter().any(|kind| kind.as_text() == Some("test")))
        });
        let names = tests.filter_map(|target| target.get("name")?.as_text().map(str::to_string)).collect();
        let package = package.get("name").and_then(|name| name.as_text()).unwrap_or("");
        found.insert(package.to_string(), names);
    }
    Ok(found)
}

/// What is wrong with a suite before cargo is asked to build it.
#[derive(Debug, PartialEq)]
pub enum Missing {
    /// A pattern that no target fits: this model has no integration tests.
    NoTests,
    /// Something that the table names is gone: that is no pass and nothing to skip over.
    Gone(String),
}

pub fn missing(suite: &Suite, targets: &Targets) -> Option<Missing> {
    let Some(tests) = targets.get(&suite.package) else {
        return Some(Missing::Gone(format!("no package {}", suite.package)));
    };
    match &suite.target {
        Target::Test(pattern) if !tests.iter().any(|test| fits(pattern, test)) => {
            let named = !pattern.contains('*');
            Some(if named { Missing::Gone(format!("no test target {pattern}")) } else { Missing::NoTests })
        }
        _ => None,
    }
}

/// The first build: everything that the run's suites are made of, with one call.
pub fn build_all(settings: &Settings, packages: &[String]) -> Command {
    let mut command = cargo(settings);
    command.arg("test");
    for package in packages {
        command.args(["-p", package]);
    }
    command.args(["--features", &settings.features, "--no-run"]);
    command
}

pub fn build(settings: &Settings, suite: &Suite) -> Command {
    let mut command = selected(settings, suite);
    command.arg("--no-run");
    command
}

/// `--no-fail-fast`, or the first red binary of a pattern would hide the others; `--nocapture` belongs to the test binary, so
/// it stands after `--`.
pub fn test(settings: &Settings, suite: &Suite) -> Command {
    let mut command = selected(settings, suite);
    command.args(["--no-fail-fast", "--", "--nocapture"]);
    command.args(&suite.filter);
    command
}

fn selected(settings: &Settings, suite: &Suite) -> Command {
    let mut command = cargo(settings);
    command.args(["test", "-p", &suite.package, "--features", &settings.features]);
    match &suite.target {
        Target::Lib => command.arg("--lib"),
        Target::Test(pattern) => command.args(["--test", pattern]),
    };
    command
}

fn cargo(settings: &Settings) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(&settings.checkout).env("GPUTEST_EPOCHS", &settings.epochs);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::parse_table;

    fn suite(row: &str) -> Suite {
        parse_table(&format!("head\n{row}")).unwrap().remove(0)
    }

    fn targets() -> Targets {
        Targets::from([("ml".to_string(), vec!["tft_forward".to_string(), "barrier_optimization_test".to_string()])])
    }

    #[test]
    fn a_pattern_without_targets_means_no_tests() {
        assert_eq!(Some(Missing::NoTests), missing(&suite("kan\tkan-integ\tintegration\tml\tkan_*\t-\t1"), &targets()));
        assert_eq!(None, missing(&suite("tft\ttft-integ\tintegration\tml\ttft_*\t-\t1"), &targets()));
    }

    #[test]
    fn a_named_target_or_package_that_is_gone_is_no_skip() {
        let gone = missing(&suite("dqn\tdqn-smoke\tintegration\tml\tsmoke_test_real_data\t-\t1"), &targets());

        assert_eq!(Some(Missing::Gone("no test target smoke_test_real_data".to_string())), gone);
        assert!(matches!(missing(&suite("dqn\tdqn-lib\tlib\tml-dqn\tlib\t-\t1"), &targets()), Some(Missing::Gone(_))));
    }
}
