//! The checkout on the persistent volume: cloned once, fetched and moved for each run, so that cargo rebuilds only what changed.
//!
//! A ref comes from a chat user. It must be of a safe alphabet, it is never the first thing git could take for an option, and it
//! is resolved to a SHA here, on the runner, after the fetch: a local branch would be the one of the run before.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process;
use crate::settings::Settings;

const FETCH_LIMIT: Duration = Duration::from_secs(900);
const LOCAL_LIMIT: Duration = Duration::from_secs(300);
const REF_LIMIT: usize = 200;
const SHA_LENGTH: usize = 40;

/// Refuses what git could read as anything but a name: options, ranges, `@{…}`, `~1`, blanks, control characters.
pub fn check_ref(name: &str) -> Result<(), String> {
    let safe = |character: char| character.is_ascii_alphanumeric() || "._/+-".contains(character);
    let parts_fine = name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"));
    if name.len() > REF_LIMIT {
        Err(format!("commit-ref is longer than {REF_LIMIT} characters"))
    } else if name.is_empty() || name.starts_with('-') || name.contains("..") || !name.chars().all(safe) || !parts_fine
    {
        Err("commit-ref is no branch, tag or SHA that I accept".to_string())
    } else {
        Ok(())
    }
}

/// Where a name may live, in the order in which it is looked for.
fn candidates(name: &str) -> Vec<String> {
    let hex = name.len() >= 7 && name.len() <= SHA_LENGTH && name.chars().all(|digit| digit.is_ascii_hexdigit());
    if name == "HEAD" {
        return vec!["refs/remotes/origin/HEAD".to_string()];
    }
    // A whole SHA means that commit, even if somebody has named a branch after it.
    if hex && name.len() == SHA_LENGTH {
        return vec![name.to_string()];
    }
    let mut found = vec![format!("refs/remotes/origin/{name}"), format!("refs/tags/{name}")];
    if let Some(branch) = name.strip_prefix("refs/heads/") {
        found.push(format!("refs/remotes/origin/{branch}"));
    }
    if name.starts_with("refs/tags/") {
        found.push(name.to_string());
    }
    if hex {
        found.push(name.to_string());
    }
    found
}

pub struct Checkout<'a> {
    settings: &'a Settings,
    ssh: Option<String>,
}

impl<'a> Checkout<'a> {
    pub fn new(settings: &'a Settings) -> Checkout<'a> {
        Checkout { settings, ssh: ssh_command(&settings.ssh_key_folder) }
    }

    /// Brings the checkout to the ref and returns the commit's SHA.
    pub fn bring(&self) -> Result<String, String> {
        check_ref(&self.settings.commit_ref)?;
        if !self.settings.repository.is_empty() {
            self.fetch()?;
        }
        let commit = self.resolve()?;
        if !self.settings.repository.is_empty() {
            self.git(&["checkout", "--quiet", "--force", "--detach", &commit], LOCAL_LIMIT)?;
            self.git(&["clean", "--quiet", "-ffd"], LOCAL_LIMIT)?;
        }
        Ok(commit)
    }

    fn fetch(&self) -> Result<(), String> {
        let folder = &self.settings.checkout;
        if folder.join(".git").is_dir() {
            // Left by a pod that was killed; the mutex says that nobody else is at work here.
            for lock in ["index.lock", "HEAD.lock", "shallow.lock", "packed-refs.lock", "config.lock"] {
                let _ = fs::remove_file(folder.join(".git").join(lock));
            }
        } else {
            fs::create_dir_all(folder).map_err(|error| format!("checkout folder: {error}"))?;
            self.git(&["init", "--quiet"], LOCAL_LIMIT)?;
        }
        let repository = self.settings.repository.as_str();
        if self.git(&["remote", "set-url", "origin", repository], LOCAL_LIMIT).is_err() {
            self.git(&["remote", "add", "origin", repository], LOCAL_LIMIT)?;
        }
        let refspec = "+refs/heads/*:refs/remotes/origin/*";
        self.git(&["fetch", "--quiet", "--prune", "--force", "--tags", "origin", refspec], FETCH_LIMIT)
            .map_err(|error| format!("git fetch: {error}"))?;
        self.git(&["remote", "set-head", "origin", "--auto"], FETCH_LIMIT).map(|_| ())
    }

    fn resolve(&self) -> Result<String, String> {
        let name = &self.settings.commit_ref;
        let mut places = candidates(name);
        if self.settings.repository.is_empty() {
            places.insert(0, name.clone());
        }
        if name.len() == SHA_LENGTH && !self.settings.repository.is_empty() && self.commit_at(name).is_none() {
            // No branch or tag holds it any more (a force push): some servers still hand it out by its SHA.
            let _ = self.git(&["fetch", "--quiet", "origin", name], FETCH_LIMIT);
        }
        let found = places.iter().find_map(|place| self.commit_at(place));
        found.ok_or_else(|| format!("commit-ref {name} is no branch, tag or commit of the repository"))
    }

    fn commit_at(&self, place: &str) -> Option<String> {
        let commit = format!("{place}^{{commit}}");
        let found = self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit], LOCAL_LIMIT).ok()?;
        found.lines().last().map(str::trim).filter(|sha| sha.len() == SHA_LENGTH).map(str::to_string)
    }

    fn git(&self, arguments: &[&str], limit: Duration) -> Result<String, String> {
        let mut command = Command::new("git");
        command.current_dir(&self.settings.checkout).args(arguments);
        // The volume may belong to another user; a hook left there by tested code must not run with the key.
        let safe = [("safe.directory", "*"), ("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false")];
        command.env("GIT_CONFIG_COUNT", safe.len().to_string());
        for (index, (key, value)) in safe.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{index}"), key).env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        command.env("GIT_TERMINAL_PROMPT", "0");
        if let Some(ssh) = &self.ssh {
            command.env("GIT_SSH_COMMAND", ssh);
        }
        process::output(&mut command, limit)
    }
}

/// ssh refuses a key that a group may read, which is what `fsGroup` makes of a mounted secret: it gets a copy.
fn ssh_command(folder: &Path) -> Option<String> {
    let key = fs::read(folder.join("ssh-privatekey")).ok()?;
    let copy = std::env::temp_dir().join(format!("gputest-ssh-{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&copy).ok()?;
    file.write_all(&key).ok()?;
    let known: PathBuf = folder.join("known_hosts");
    let trust = if known.is_file() {
        format!("-o StrictHostKeyChecking=yes -o UserKnownHostsFile={}", known.display())
    } else {
        "-o StrictHostKeyChecking=accept-new".to_string()
    };
    Some(format!("ssh -i {} -o IdentitiesOnly=yes -o BatchMode=yes {trust}", copy.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_accepted() {
        for name in
            ["HEAD", "main", "release/1.2", "v1.0.0-rc.1", "feature/a_b+c", "0123456789abcdef0123456789abcdef01234567"]
        {
            assert_eq!(Ok(()), check_ref(name), "{name}");
        }
    }

    #[test]
    fn what_git_could_misread_is_refused() {
        let long = "a".repeat(REF_LIMIT + 1);
        for name in [
            "",
            "-main",
            "--upload-pack=x",
            "a..b",
            "HEAD~1",
            "HEAD^",
            "a b",
            "a;b",
            "$(x)",
            "a\nb",
            "a//b",
            "/a",
            "x@{1}",
            ".a",
            "a.lock",
            "ä",
            &long,
        ] {
            assert!(check_ref(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_branch_goes_before_a_tag_and_a_tag_before_a_short_sha() {
        assert_eq!(vec!["refs/remotes/origin/HEAD"], candidates("HEAD"));
        assert_eq!(vec!["refs/remotes/origin/main", "refs/tags/main"], candidates("main"));
        assert_eq!(vec!["refs/remotes/origin/abcdef1", "refs/tags/abcdef1", "abcdef1"], candidates("abcdef1"));
    }

    #[test]
    fn a_whole_sha_is_that_commit_whatever_a_branch_is_called() {
        let sha = "0123456789abcdef0123456789abcdef01234567";

        assert_eq!(vec![sha], candidates(sha));
    }
}
