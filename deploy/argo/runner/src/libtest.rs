//! Reads what `cargo test` prints: several test binaries one after the other, each with libtest's own lines.
//!
//! Counts come from the `test result:` line that each binary ends with; a binary without one did not end by itself. Names of
//! failed tests come from the list before that line, since `--nocapture` mixes the tests' own output into the other lines.
//! That output may hold such lines as well, where a test runs tests: a result counts that adds up to the number announced.

use crate::terminal::{plain, shorten};

const NAME_LIMIT: usize = 200;
const FAILED_LIMIT: usize = 200;

#[derive(Clone, Debug, Default)]
pub struct Account {
    pub passed: u64,
    pub failed: u64,
    pub ignored: u64,
    pub filtered: u64,
    pub failed_tests: Vec<String>,
    /// Binaries that ran and had nothing to run, as cargo names them.
    pub empty: Vec<String>,
    /// Binaries that began and never gave a result.
    pub unfinished: Vec<String>,
    /// `(signal: 9, SIGKILL: kill)` as (9, "SIGKILL").
    pub signal: Option<(i32, String)>,
    /// Tests that libtest called slow and that did not end since.
    pub slow: Vec<String>,
    /// Why a binary could not be started, in the words of the loader or of cargo.
    pub not_started: Option<String>,
}

impl Account {
    /// Whether any test was there to run, ignored ones included.
    pub fn ran_something(&self) -> bool {
        self.passed + self.failed > 0
    }
}

#[derive(Default)]
pub struct Reader {
    account: Account,
    binary: String,
    /// Between `running N tests` and `test result:`.
    open: bool,
    announced: u64,
    listing: bool,
    /// Failures of the open binary: from its lines, and from its list.
    seen: Vec<String>,
    listed: Vec<String>,
    counted: (u64, u64, u64),
}

impl Reader {
    /// Takes one line of output as it came, colours and all.
    pub fn line(&mut self, raw: &str) {
        let line = plain(raw);
        let text = line.trim();
        if let Some(binary) = started_binary(text) {
            self.close();
            self.binary = binary;
        } else if let (false, Some(tests)) = (self.open, announced(text)) {
            self.open = true;
            self.announced = tests;
        } else if self.open && text.starts_with("test result: ") {
            self.result(text);
        } else if self.open && text == "failures:" {
            self.listing = true;
            self.listed.clear();
        } else if self.open && self.listing && line.starts_with("    ") && !text.is_empty() {
            self.listed.push(shorten(text, NAME_LIMIT));
        } else if let Some(signal) = killed_by(text) {
            self.account.signal.get_or_insert(signal);
        } else if let (false, Some(why)) = (self.open, not_started(text)) {
            self.account.not_started.get_or_insert(why);
        } else if self.open {
            self.listing &= text.is_empty();
            self.test(text);
        }
    }

    fn test(&mut self, text: &str) {
        let Some(rest) = text.strip_prefix("test ") else { return };
        if let Some((name, _)) = rest.split_once(" has been running for over ") {
            self.account.slow.push(shorten(name, NAME_LIMIT));
            return;
        }
        let Some((name, outcome)) = rest.rsplit_once(" ... ") else { return };
        self.account.slow.retain(|slow| slow != name);
        match outcome.split([' ', ',']).next() {
            Some("ok") => self.counted.0 += 1,
            Some("ignored") => self.counted.2 += 1,
            Some("FAILED") => {
                self.counted.1 += 1;
                self.seen.push(shorten(name.trim_end_matches(" - should panic"), NAME_LIMIT));
            }
            _ => {}
        }
    }

    fn result(&mut self, text: &str) {
        let (passed, failed) = (number_before(text, " passed"), number_before(text, " failed"));
        let ignored = number_before(text, " ignored");
        let all = passed + failed + ignored + number_before(text, " measured");
        if all != self.announced {
            return;
        }
        self.account.passed += passed;
        self.account.failed += failed;
        self.account.ignored += ignored;
        self.account.filtered += number_before(text, " filtered out");
        if all == 0 {
            self.account.empty.push(self.binary.clone());
        }
        let names =
            if self.listed.is_empty() { std::mem::take(&mut self.seen) } else { std::mem::take(&mut self.listed) };
        self.remember(names);
        self.reset();
    }

    /// A binary that ended without its result: what its lines told so far counts.
    fn close(&mut self) {
        if self.open {
            let (passed, failed, ignored) = self.counted;
            self.account.passed += passed;
            self.account.failed += failed;
            self.account.ignored += ignored;
            self.account.unfinished.push(self.binary.clone());
            let names = std::mem::take(&mut self.seen);
            self.remember(names);
        }
        self.reset();
    }

    fn remember(&mut self, names: Vec<String>) {
        let room = FAILED_LIMIT.saturating_sub(self.account.failed_tests.len());
        self.account.failed_tests.extend(names.into_iter().take(room));
    }

    fn reset(&mut self) {
        self.open = false;
        self.listing = false;
        self.seen.clear();
        self.listed.clear();
        self.counted = (0, 0, 0);
    }

    pub fn finish(mut self) -> Account {
        self.close();
        self.account
    }
}

/// `Running tests/gpu.rs (target/debug/…)` and `Doc-tests kernels` begin a binary.
fn started_binary(text: &str) -> Option<String> {
    if let Some(rest) = text.strip_prefix("Running ") {
        let (binary, path) = rest.rsplit_once(" (")?;
        return path.ends_with(')').then(|| binary.trim_start_matches("unittests ").to_string());
    }
    text.strip_prefix("Doc-tests ").map(|package| format!("doc-tests of {package}"))
}

/// `running 4 tests`, and what `--shuffle` adds to it.
fn announced(text: &str) -> Option<u64> {
    let (count, rest) = text.strip_prefix("running ")?.split_once(" test")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    (rest.is_empty() || rest.starts_with(" (shuffle seed: ")).then(|| count.parse().ok())?
}

/// A library that the loader does not find, or a file that can't be executed at all.
fn not_started(text: &str) -> Option<String> {
    if let Some(at) = text.find("error while loading shared libraries: ") {
        return Some(shorten(&text[at..], NAME_LIMIT));
    }
    text.starts_with("error: could not execute process ").then(|| "it could not be executed".to_string())
}

fn number_before(text: &str, word: &str) -> u64 {
    let Some(end) = text.find(word) else { return 0 };
    let digits = text[..end].rsplit(|character: char| !character.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// `(signal: 11, SIGSEGV: invalid memory reference)`; a wrapper around the binary gives 128 and the signal as its own status.
pub fn killed_by(text: &str) -> Option<(i32, String)> {
    if !text.starts_with("process didn't exit successfully: ") {
        return None;
    }
    if let Some((_, rest)) = text.rsplit_once("(signal: ") {
        let (number, name) = rest.trim_end_matches(')').split_once(", ")?;
        let name = name.split(':').next().unwrap_or(name);
        return Some((number.parse().ok()?, name.to_string()));
    }
    let (_, rest) = text.rsplit_once("(exit status: ")?;
    let signal = rest.trim_end_matches(')').parse::<i32>().ok()? - 128;
    (1..=64).contains(&signal).then(|| (signal, named(signal)))
}

fn named(signal: i32) -> String {
    match signal {
        4 => "SIGILL".to_string(),
        6 => "SIGABRT".to_string(),
        7 => "SIGBUS".to_string(),
        9 => "SIGKILL".to_string(),
        11 => "SIGSEGV".to_string(),
        15 => "SIGTERM".to_string(),
        other => format!("signal {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Account {
        let mut reader = Reader::default();
        text.lines().for_each(|line| reader.line(line));
        reader.finish()
    }

    const TWO_BINARIES: &str = "\
     Running unittests src/lib.rs (target/debug/deps/a-1)

running 3 tests
test grid::rejects zero - should panic ... ok
test grid::allocation_failed_is_reported ... ok
test grid::on_gpu ... ignored, needs sm_90

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.52s

     Running tests/gpu.rs (target/debug/deps/gpu-2)

running 2 tests
test forward ... ok
test backward ... FAILED

failures:

---- backward stdout ----
    an indented line of its own
thread 'backward' panicked at tests/gpu.rs:9:5:
0 failed before this

failures:
    backward

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 12.80s
";

    #[test]
    fn several_binaries_add_up() {
        let account = read(TWO_BINARIES);

        assert_eq!((3, 1, 1, 11), (account.passed, account.failed, account.ignored, account.filtered));
        assert_eq!(vec!["backward"], account.failed_tests);
        assert!(account.unfinished.is_empty() && account.empty.is_empty());
    }

    #[test]
    fn colours_change_nothing() {
        let coloured =
            TWO_BINARIES.replace("ok", "\u{1b}[32mok\u{1b}(B\u{1b}[m").replace("FAILED", "\u{1b}[31mFAILED\u{1b}[m\r");
        let account = read(&coloured.replace("     Running", "\u{1b}[1m\u{1b}[92m     Running\u{1b}[0m"));

        assert_eq!((3, 1, 1), (account.passed, account.failed, account.ignored));
        assert_eq!(vec!["backward"], account.failed_tests);
    }

    #[test]
    fn a_binary_with_nothing_to_run_is_named() {
        let account = read("Running tests/empty.rs (t/empty-1)\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0s");

        assert_eq!(vec!["tests/empty.rs"], account.empty);
        assert!(!account.ran_something());
        assert_eq!(9, account.filtered);
    }

    #[test]
    fn output_between_name_and_outcome_does_not_confuse_the_counts() {
        let account = read("running 2 tests\ntest a ... epoch 1 ... loss 0.5\nok\ntest b ... loss\nFAILED\n\nfailures:\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s");

        assert_eq!((1, 1), (account.passed, account.failed));
        assert_eq!(vec!["b"], account.failed_tests);
    }

    #[test]
    fn a_killed_binary_keeps_what_it_told_and_the_signal() {
        let account = read("Running unittests src/lib.rs (t/a-1)\nrunning 3 tests\ntest a ... ok\ntest b ... FAILED\nerror: test failed, to rerun pass `--lib`\n\nCaused by:\n  process didn't exit successfully: `t/a-1 x` (signal: 6, SIGABRT: process abort signal)");

        assert_eq!((1, 1), (account.passed, account.failed));
        assert_eq!(vec!["b"], account.failed_tests);
        assert_eq!(vec!["src/lib.rs"], account.unfinished);
        assert_eq!(Some((6, "SIGABRT".to_string())), account.signal);
    }

    #[test]
    fn a_slow_test_is_remembered_until_it_ends() {
        let account = read("running 2 tests\ntest a has been running for over 60 seconds\ntest b has been running for over 60 seconds\ntest b ... ok");

        assert_eq!(vec!["a"], account.slow);
    }

    #[test]
    fn four_binaries_with_names_that_mislead() {
        let account = read(include_str!("../../../../tests/cases/f01.txt"));

        assert_eq!((6, 1, 1, 7), (account.passed, account.failed, account.ignored, account.filtered));
        assert_eq!(vec!["resnet_forward"], account.failed_tests);
        assert_eq!(vec!["tests/empty.rs"], account.empty);
    }

    #[test]
    fn a_coloured_log_with_an_empty_binary() {
        let account = read(include_str!("../../../../tests/cases/f04.txt"));

        assert_eq!((1, 1), (account.passed, account.failed));
        assert_eq!(vec!["tests/empty.rs"], account.empty);
        assert!(!format!("{account:?}").contains("\\u{1b}"));
    }

    #[test]
    fn tests_that_run_tests_do_not_confuse_the_counts() {
        let account = read("Running tests/harness.rs (t/h-1)\nrunning 2 tests\nrunning 5 tests\ntest inner ... FAILED\n\ntest result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s\ntest outer ... FAILED\ntest other ... ok\n\nfailures:\n\nfailures:\n    outer\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s");

        assert_eq!((1, 1), (account.passed, account.failed));
        assert_eq!(vec!["outer"], account.failed_tests);
        assert!(account.unfinished.is_empty());
    }

    #[test]
    fn shuffled_and_measured_tests_are_counted() {
        let shuffled = read("running 2 tests (shuffle seed: 14455)\ntest b ... ok\ntest a ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s");
        let measured = read("Running benches/x.rs (t/x-1)\nrunning 1 test\ntest x ... bench:       1,234 ns/iter (+/- 56)\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 1 measured; 0 filtered out; finished in 0s");

        assert_eq!(2, shuffled.passed);
        assert!(measured.empty.is_empty() && measured.unfinished.is_empty() && !measured.ran_something());
    }

    #[test]
    fn a_binary_that_the_loader_refuses_says_why() {
        let account = read("     Running tests/gpu.rs (t/gpu-1)\nt/gpu-1: error while loading shared libraries: libcudart.so.12: cannot open shared object file: No such file or directory\nerror: test failed, to rerun pass `--test gpu`\n\nCaused by:\n  process didn't exit successfully: `t/gpu-1` (exit status: 127)");
        let gone = read("error: could not execute process `t/gpu-1 --nocapture` (never executed)");
        let own = read("running 1 test\nerror while loading shared libraries: libx.so: it says so itself\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s");

        assert!(account.not_started.unwrap().starts_with("error while loading shared libraries: libcudart.so.12: "));
        assert_eq!(None, account.signal);
        assert_eq!(Some("it could not be executed".to_string()), gone.not_started);
        assert_eq!((1, None), (own.passed, own.not_started));
    }

    #[test]
    fn a_signal_that_a_wrapper_hands_on_is_one() {
        let by = |status: &str| killed_by(&format!("process didn't exit successfully: `sh run.sh t/a-1` ({status})"));

        assert_eq!(Some((9, "SIGKILL".to_string())), by("exit status: 137"));
        assert_eq!(Some((11, "SIGSEGV".to_string())), by("exit status: 139"));
        assert_eq!(Some((11, "SIGSEGV".to_string())), by("signal: 11, SIGSEGV: invalid memory reference"));
        assert_eq!(Some((31, "signal 31".to_string())), by("exit status: 159"));
        assert_eq!(None, by("exit status: 101"));
        assert_eq!(None, by("exit status: 255"));
    }

    #[test]
    fn what_other_runners_print_counts_nothing() {
        let nextest = read("    PASS [   0.005s] ml grid::a\n     Summary [   0.1s] 3 tests run: 3 passed, 0 skipped");
        let json = read("{ \"type\": \"suite\", \"event\": \"started\", \"test_count\": 2 }\n{ \"type\": \"suite\", \"event\": \"ok\", \"passed\": 2, \"failed\": 0 }");

        assert!(!nextest.ran_something() && !json.ran_something());
    }

    #[test]
    fn a_result_line_outside_of_a_binary_counts_nothing() {
        assert!(!read("test result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out").ran_something());
    }
}
