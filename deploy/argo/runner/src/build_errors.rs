//! Finds out of cargo's output why something did not build: a few errors with their place, not a log.

use crate::json::Value;
use crate::libtest::killed_by;
use crate::terminal::{plain, shorten};

const MESSAGE_LIMIT: usize = 400;
pub const ERROR_LIMIT: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Compile,
    Link,
    /// It never came to compiling: the ref, the clone, the parameters, the GPU.
    Setup,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BuildError {
    pub kind: Kind,
    pub message: String,
    pub file: String,
    pub line: Option<u64>,
}

impl BuildError {
    pub fn new(kind: Kind, message: &str) -> BuildError {
        BuildError { kind, message: shorten(message, MESSAGE_LIMIT), file: String::new(), line: None }
    }

    pub fn to_json(&self) -> Value {
        let kind = match self.kind {
            Kind::Compile => "compile",
            Kind::Link => "link",
            Kind::Setup => "setup",
        };
        Value::object([
            ("kind", Value::text(kind)),
            ("message", Value::text(&self.message)),
            ("file", Value::text(&self.file)),
            ("line", self.line.map_or(Value::Null, |line| Value::Number(line as f64))),
        ])
    }
}

/// Collects errors line by line: an `error` line opens one, what follows may give it a place or what the linker misses.
#[derive(Default)]
pub struct Collector {
    errors: Vec<BuildError>,
    open: bool,
    missing: Vec<String>,
}

impl Collector {
    pub fn line(&mut self, raw: &str) {
        let line = plain(raw);
        let text = line.trim();
        if let Some(message) = error_message(&line) {
            self.close();
            self.begin(message);
            if let Some(message) = killed(text) {
                self.note(&message);
            }
        } else if line.starts_with("warning") {
            self.close();
        } else if text.contains("No space left on device") {
            self.note("no space left on device");
        } else if let Some(message) = killed(text) {
            self.note(&message);
        } else if self.open {
            self.detail(text);
        }
    }

    fn begin(&mut self, message: &str) {
        let summary = ["could not compile", "aborting due to", "test failed", "build failed", "linking "];
        let kind = if message.starts_with("linking with ") { Kind::Link } else { Kind::Compile };
        if kind == Kind::Compile && summary.iter().any(|start| message.starts_with(start)) {
            return;
        }
        if self.errors.len() < ERROR_LIMIT {
            self.errors.push(BuildError::new(kind, message));
            self.open = true;
        }
    }

    fn detail(&mut self, text: &str) {
        let Some(error) = self.errors.last_mut() else { return };
        if let Some(place) = text.strip_prefix("--> ") {
            if error.file.is_empty() {
                (error.file, error.line) = rust_place(place);
            }
        } else if error.kind == Kind::Link {
            if let Some(name) = missing_for_linker(text) {
                if !self.missing.contains(&name) {
                    self.missing.push(name);
                }
            }
        } else if let Some((file, line, message)) = cuda_error(text) {
            *error = BuildError { file, line, ..BuildError::new(Kind::Compile, &message) };
        } else if text.starts_with("nvcc fatal") {
            error.message = shorten(&format!("{}: {text}", error.message), MESSAGE_LIMIT);
        }
    }

    /// What has no `error` line of its own to stand on.
    fn note(&mut self, message: &str) {
        if !self.errors.iter().any(|error| error.message.contains(message)) {
            self.errors.insert(0, BuildError::new(Kind::Compile, message));
        }
    }

    fn close(&mut self) {
        let missing = std::mem::take(&mut self.missing);
        if let (true, Some(error), false) = (self.open, self.errors.last_mut(), missing.is_empty()) {
            error.message = shorten(&format!("cannot find {}", missing.join(", ")), MESSAGE_LIMIT);
        }
        self.open = false;
    }

    pub fn finish(mut self) -> Vec<BuildError> {
        self.close();
        self.errors.dedup();
        self.errors
    }
}

/// The text after `error:` or `error[E0308]:` at the start of a line.
fn error_message(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("error")?;
    let rest = if rest.starts_with('[') { rest.split_once(']')?.1 } else { rest };
    rest.strip_prefix(':').map(str::trim)
}

fn rust_place(place: &str) -> (String, Option<u64>) {
    let mut parts = place.rsplitn(3, ':');
    let (_column, line, file) = (parts.next(), parts.next(), parts.next());
    match (file, line.and_then(|line| line.parse().ok())) {
        (Some(file), Some(line)) => (file.to_string(), Some(line)),
        _ => (place.to_string(), None),
    }
}

/// What GNU ld, mold and lld say when a library or a symbol is not there.
fn missing_for_linker(text: &str) -> Option<String> {
    let after = |mark: &str| text.find(mark).map(|at| text[at + mark.len()..].trim());
    let library = after("cannot find ").filter(|rest| rest.starts_with("-l")).map(|rest| rest.to_string());
    let library = library.or_else(|| after("library not found: ").map(|rest| format!("-l{rest}")));
    let library = library.or_else(|| after("unable to find library ").map(str::to_string));
    if let Some(name) = library {
        return name.split([':', ' ']).next().map(str::to_string);
    }
    let symbol = after("undefined reference to ").or_else(|| after("undefined symbol: "))?;
    Some(format!("symbol {}", symbol.trim_matches(['`', '\'', '"'])))
}

/// A compiler or linker that a signal ended; with SIGKILL that is nearly always the pod's memory limit.
fn killed(text: &str) -> Option<String> {
    if text.contains("LLVM ERROR: out of memory") || text.starts_with("memory allocation of ") {
        return Some("the compiler ran out of memory".to_string());
    }
    let linker = text.contains("ld terminated with signal 9") || text.contains("linking with `cc` failed: signal: 9");
    let compiler =
        text.contains("fatal error: Killed signal terminated program") || text.contains(" died due to signal 9");
    let by = if linker || compiler { (9, "SIGKILL".to_string()) } else { killed_by(text)? };
    let what = if linker { "the linker" } else { "the compiler" };
    let hint = if by.0 == 9 { ": out of memory?" } else { "" };
    Some(format!("{what} was killed by {} ({}){hint}", by.1, 128 + by.0))
}

/// nvcc's `kernel.cu(12): error: identifier "x" is undefined`, out of a build script's output.
fn cuda_error(text: &str) -> Option<(String, Option<u64>, String)> {
    let (place, message) = text.split_once("): error: ")?;
    let (file, line) = place.rsplit_once('(')?;
    Some((file.to_string(), Some(line.parse().ok()?), message.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<BuildError> {
        let mut collector = Collector::default();
        text.lines().for_each(|line| collector.line(line));
        collector.finish()
    }

    #[test]
    fn a_compile_error_has_its_place() {
        let errors = read("warning: unused\n --> a.rs:1:1\n\u{1b}[91merror[E0308]\u{1b}[0m: mismatched types\n   --> crates/ml/src/lib.rs:212:9\n    |\n\nerror: could not compile `ml` (lib test) due to 1 previous error");

        assert_eq!(1, errors.len());
        assert_eq!((Kind::Compile, "mismatched types"), (errors[0].kind, errors[0].message.as_str()));
        assert_eq!(("crates/ml/src/lib.rs", Some(212)), (errors[0].file.as_str(), errors[0].line));
    }

    #[test]
    fn a_link_error_names_what_is_missing() {
        let gnu = "error: linking with `cc` failed: exit status: 1\n  = note: /usr/bin/ld: cannot find -lcuda: No such file or directory\n          /usr/bin/ld: cannot find -lcudart: No such file or directory\n          collect2: error: ld returned 1 exit status\n\nerror: could not compile `x`";
        let mold = "error: linking with `cc` failed: exit status: 1\n  = note: mold: fatal: library not found: cuda";
        let symbol =
            "error: linking with `cc` failed: exit status: 1\n a.rs:(.text+0x5): undefined reference to `launch'";

        assert_eq!("cannot find -lcuda, -lcudart", read(gnu)[0].message);
        assert_eq!("cannot find -lcuda", read(mold)[0].message);
        assert_eq!("cannot find symbol launch", read(symbol)[0].message);
        assert!([gnu, mold, symbol].iter().all(|text| read(text).len() == 1 && read(text)[0].kind == Kind::Link));
    }

    #[test]
    fn libraries_that_a_whole_log_misses() {
        let errors = read(include_str!("../../../../tests/cases/f06.txt"));

        assert_eq!(vec![BuildError::new(Kind::Link, "cannot find -lcuda, -lcudart")], errors);
    }

    #[test]
    fn a_kernel_that_does_not_compile_is_found_in_the_build_scripts_output() {
        let errors = read("error: failed to run custom build command for `ml v0.1.0`\n\nCaused by:\n  --- stderr\n  src/cuda_pipeline/step.cu(12): error: identifier \"warp\" is undefined");

        assert_eq!("identifier \"warp\" is undefined", errors[0].message);
        assert_eq!(("src/cuda_pipeline/step.cu", Some(12)), (errors[0].file.as_str(), errors[0].line));
    }

    #[test]
    fn a_full_disk_is_named_first() {
        let errors =
            read("error: failed to write `/cargo-target/x`\n\nCaused by:\n  No space left on device (os error 28)");

        assert_eq!("no space left on device", errors[0].message);
    }

    #[test]
    fn a_compiler_or_linker_without_memory_is_told() {
        let rustc = read("error: could not compile `ml` (lib test)\n\nCaused by:\n  process didn't exit successfully: `/usr/bin/rustc --crate-name ml` (signal: 9, SIGKILL: kill)\nwarning: build failed, waiting for other jobs to finish...");
        let ld = read("error: linking with `cc` failed: exit status: 1\n  = note: collect2: fatal error: ld terminated with signal 9 [Killed]\n          compilation terminated.");
        let cc = read("error: linking with `cc` failed: signal: 9 (SIGKILL)\n  |");
        let nvcc = read("error: failed to run custom build command for `ml v0.1.0`\n\nCaused by:\n  --- stderr\n  nvcc error   : 'cicc' died due to signal 9 (Kill signal)");
        let llvm = read("rustc-LLVM ERROR: out of memory\nAllocation failed");
        let crash = read("error: could not compile `ml` (lib)\n\nCaused by:\n  process didn't exit successfully: `rustc` (signal: 11, SIGSEGV: invalid memory reference)");

        assert_eq!("the compiler was killed by SIGKILL (137): out of memory?", rustc[0].message);
        assert_eq!("the linker was killed by SIGKILL (137): out of memory?", ld[0].message);
        assert_eq!("the linker was killed by SIGKILL (137): out of memory?", cc[0].message);
        assert_eq!("the compiler was killed by SIGKILL (137): out of memory?", nvcc[0].message);
        assert_eq!("the compiler ran out of memory", llvm[0].message);
        assert_eq!("the compiler was killed by SIGSEGV (139)", crash[0].message);
    }

    #[test]
    fn an_error_of_the_compiler_itself_is_told() {
        let errors = read("error: internal compiler error: compiler/rustc_middle/src/ty/mod.rs:1: no type\n\nthread 'rustc' panicked at compiler/x.rs:1:1:\nBox<dyn Any>\nnote: run with `RUST_BACKTRACE=1`\n\nerror: the compiler unexpectedly panicked. this is a bug.");

        assert!(errors[0].message.starts_with("internal compiler error: "));
    }

    #[test]
    fn many_errors_are_cut() {
        assert_eq!(ERROR_LIMIT, read(&"error: one\nerror: two\n".repeat(50)).len());
    }
}
