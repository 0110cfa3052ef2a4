//! Everything the runner is told, read from the environment once.
//!
//! Values that a chat user typed (models, scope, epochs, ref) are checked here or, where a bad one should still end in a
//! results file with its reason, kept as text for the set-up of the run.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

pub struct Settings {
    /// `dqn,ppo` or `all`, as typed.
    pub models: String,
    /// `lib`, `integration` or `all`, as typed.
    pub scope: String,
    pub epochs: String,
    pub commit_ref: String,
    /// Empty: test the checkout as it lies, without git (what a developer does).
    pub repository: String,
    pub checkout: PathBuf,
    pub suites: PathBuf,
    pub results: PathBuf,
    pub ssh_key_folder: PathBuf,
    /// What the run was told to compile for, as `90`; empty means no check.
    pub compute_cap: String,
    pub features: String,
    /// Argo reads `N/M` from here; empty outside of Argo.
    pub progress: Option<PathBuf>,
    /// The whole run's limit: what is not reached by then is reported as unknown.
    pub budget: Duration,
    /// Limit of the first build, and of what a single suite may still have to build.
    pub build_limit: Duration,
    /// Replaces every suite's own limit from the table; for tests of the runner.
    pub suite_limit: Option<Duration>,
    /// Tails of failed suites may hold secrets and strategy: only where somebody switched them on.
    pub tails: bool,
}

impl Settings {
    pub fn from_environment() -> Result<Settings, String> {
        Ok(Settings {
            models: text("GPUTEST_MODELS", "all"),
            scope: text("GPUTEST_SCOPE", "all"),
            epochs: text("GPUTEST_EPOCHS", "3"),
            commit_ref: text("GPUTEST_REF", "HEAD"),
            repository: text("GPUTEST_REPOSITORY", ""),
            checkout: PathBuf::from(required("GPUTEST_CHECKOUT")?),
            suites: PathBuf::from(required("GPUTEST_SUITES")?),
            results: PathBuf::from(required("GPUTEST_RESULTS")?),
            ssh_key_folder: PathBuf::from(text("GPUTEST_SSH_KEY_FOLDER", "/etc/git-ssh")),
            compute_cap: text("CUDA_COMPUTE_CAP", ""),
            features: text("GPUTEST_FEATURES", "cuda"),
            progress: env::var_os("ARGO_PROGRESS_FILE").map(PathBuf::from),
            budget: seconds("GPUTEST_BUDGET_SECONDS")?.unwrap_or(Duration::from_secs(4500)),
            build_limit: seconds("GPUTEST_BUILD_SECONDS")?.unwrap_or(Duration::from_secs(2400)),
            suite_limit: seconds("GPUTEST_SUITE_SECONDS")?,
            tails: matches!(text("GPUTEST_TAILS", "off").as_str(), "on" | "true"),
        })
    }
}

fn text(name: &str, default: &str) -> String {
    match env::var(name) {
        Ok(value) if !value.trim().is_empty() => value.trim().to_string(),
        _ => default.to_string(),
    }
}

fn required(name: &str) -> Result<String, String> {
    match text(name, "") {
        value if value.is_empty() => Err(format!("{name} is not set")),
        value => Ok(value),
    }
}

fn seconds(name: &str) -> Result<Option<Duration>, String> {
    match text(name, "").as_str() {
        "" => Ok(None),
        value => match value.parse::<f64>() {
            Ok(number) if number > 0.0 && number < 1e6 => Ok(Some(Duration::from_secs_f64(number))),
            _ => Err(format!("{name} is no number of seconds: {value}")),
        },
    }
}
