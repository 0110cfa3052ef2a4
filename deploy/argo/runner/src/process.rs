//! Runs one command in a process group of its own, line by line, with a limit; and notices when the pod is told to stop.

use std::io::{self, BufRead, BufReader, PipeReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_secs(3);
const LINE_LIMIT: u64 = 64 * 1024;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
const SIGINT: i32 = 2;

/// The standard library can neither signal a group nor hear a signal; these two calls of the C library, which it is linked
/// with anyway, can.
mod c {
    extern "C" {
        pub fn kill(pid: i32, signal: i32) -> i32;
        pub fn signal(signal: i32, handler: extern "C" fn(i32)) -> usize;
    }
}

static STOPPED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_stop(_signal: i32) {
    STOPPED.store(true, Ordering::Relaxed);
}

/// From here on SIGTERM and SIGINT end the running command and let the results be written.
pub fn watch_for_stop() {
    // SAFETY: the handler does nothing but store to an atomic, which is allowed in a signal handler.
    unsafe {
        c::signal(SIGTERM, on_stop);
        c::signal(SIGINT, on_stop);
    }
}

pub fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    Stopped,
}

impl End {
    pub fn ok(self) -> bool {
        self == End::Exited(0)
    }

    /// As a shell would put it: 128 and the signal; nothing where we ended it ourselves.
    pub fn code(self) -> Option<i32> {
        match self {
            End::Exited(code) => Some(code),
            End::Signalled(signal) => Some(128 + signal),
            End::TimedOut | End::Stopped => None,
        }
    }
}

/// Runs a command to its end or its limit; its output goes to `on_line`, a line at a time.
pub fn run(command: &mut Command, limit: Duration, on_line: &mut dyn FnMut(&str)) -> io::Result<End> {
    let (reader, writer) = io::pipe()?;
    // One pipe for both streams: cargo names a test binary on one and the binary reports on the other, and order matters.
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let child = command.spawn();
    // The command holds our ends of the pipe; while it does, the pipe never ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child?;
    let end = follow(&mut child, &lines_of(reader), limit, on_line);
    // What the command left running in its group must not hold the GPU against the next suite.
    signal_group(&child, SIGKILL);
    end
}

fn follow(
    child: &mut Child,
    lines: &Receiver<String>,
    limit: Duration,
    on_line: &mut dyn FnMut(&str),
) -> io::Result<End> {
    let started = Instant::now();
    let mut status: Option<ExitStatus> = None;
    let mut drain_until = Instant::now();
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => on_line(&line),
            Err(RecvTimeoutError::Disconnected) if status.is_none() => thread::sleep(TICK),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if status.is_some() && Instant::now() > drain_until => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if status.is_none() {
            status = child.try_wait()?;
            drain_until = Instant::now() + GRACE;
            if status.is_some() {
                // A background process may still hold the pipe: it gets no more than the grace.
                signal_group(child, SIGKILL);
            }
        }
        if status.is_none() && (stopped() || started.elapsed() >= limit) {
            end_group(child, lines, on_line)?;
            return Ok(if stopped() { End::Stopped } else { End::TimedOut });
        }
    }
    Ok(end_of(status))
}

fn end_of(status: Option<ExitStatus>) -> End {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => End::Exited(code),
        Some((None, Some(signal))) => End::Signalled(signal),
        _ => End::Signalled(SIGKILL),
    }
}

/// Asks the group to end, then insists.
fn end_group(child: &mut Child, lines: &Receiver<String>, on_line: &mut dyn FnMut(&str)) -> io::Result<()> {
    signal_group(child, SIGTERM);
    let asked = Instant::now();
    while asked.elapsed() < GRACE && child.try_wait()?.is_none() {
        if let Ok(line) = lines.recv_timeout(TICK) {
            on_line(&line);
        }
    }
    signal_group(child, SIGKILL);
    child.wait()?;
    while let Ok(line) = lines.recv_timeout(TICK) {
        on_line(&line);
    }
    Ok(())
}

fn signal_group(child: &Child, signal: i32) {
    if let Ok(pid) = i32::try_from(child.id()) {
        // SAFETY: a plain system call; the group is the child's own, made when it was started.
        unsafe { c::kill(-pid, signal) };
    }
}

/// Prints a line at once; a reader that went away must not end the tests.
pub fn echo(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Reads lines in a thread; one that never ends is cut into pieces.
fn lines_of(reader: PipeReader) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(1024);
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while matches!((&mut reader).take(LINE_LIMIT).read_until(b'\n', &mut line), Ok(length) if length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_string();
            line.clear();
            if sender.send(text).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Runs a short command for its output; the error is what it printed.
pub fn output(command: &mut Command, limit: Duration) -> Result<String, String> {
    let mut lines: Vec<String> = Vec::new();
    let end = run(command, limit, &mut |line| lines.push(line.to_string()));
    match end {
        Ok(end) if end.ok() => Ok(lines.join("\n")),
        Ok(end) => Err(format!("{} ({end:?})", lines.last().map_or("no output", String::as_str))),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: f64) -> (End, Vec<String>) {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        let end =
            run(command.args(["-c", script]), Duration::from_secs_f64(limit), &mut |line| lines.push(line.to_string()));
        (end.unwrap(), lines)
    }

    #[test]
    fn both_streams_come_in_their_order() {
        assert_eq!(
            (End::Exited(3), vec!["a".into(), "b".into(), "c".into()]),
            shell("echo a; echo b >&2; printf c; exit 3", 10.0)
        );
    }

    #[test]
    fn a_signal_is_told_from_an_exit() {
        assert_eq!(End::Signalled(9), shell("kill -9 $$", 10.0).0);
        assert_eq!(Some(137), End::Signalled(9).code());
    }

    #[test]
    fn a_command_over_its_limit_is_ended_with_its_children() {
        let started = Instant::now();

        assert_eq!(End::TimedOut, shell("sleep 60 & sleep 60", 0.2).0);
        assert!(started.elapsed() < GRACE * 2);
    }

    #[test]
    fn a_command_that_ignores_the_request_is_killed() {
        assert_eq!(
            (End::TimedOut, vec!["here".into()]),
            shell("trap '' TERM; echo here; while :; do sleep 1; done", 0.2)
        );
    }

    #[test]
    fn what_stays_behind_does_not_hold_the_runner() {
        let started = Instant::now();

        assert_eq!(End::Exited(0), shell("sleep 60 & echo done", 30.0).0);
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_line_without_end_and_bytes_that_are_no_text_are_taken() {
        let (end, lines) = shell("head -c 200000 /dev/zero | tr '\\0' x; printf '\\377'", 10.0);

        assert_eq!((End::Exited(0), 4), (end, lines.len()));
    }
}
