//! The matrix runner: what the pod `compile-and-test` runs on a GPU node.
//!
//! It checks a ref out on the persistent volume, compiles the test binaries, runs the suites of `suites.tsv` one after the
//! other, and writes `results.json` after each of them, so that a pod killed at any moment leaves a valid account of what it
//! reached. A suite that fails, hangs, is killed or does not build never stops the next one.
//!
//! Standard library only, and one flat folder of files: the pod gets them in a ConfigMap and compiles them with rustc.
//! Configuration comes from environment variables (`settings.rs`); results and markers are described in `results.rs`.

mod account;
mod build_errors;
mod cargo;
mod git;
mod gpu;
mod json;
mod libtest;
mod matrix;
mod process;
mod redact;
mod results;
mod settings;
mod suites;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    process::watch_for_stop();
    match settings::Settings::from_environment() {
        Ok(settings) => ExitCode::from(matrix::run(&settings)),
        Err(problem) => {
            eprintln!("gputest-runner: {problem}");
            ExitCode::from(2)
        }
    }
}
