//! Takes out of a log tail what looks like a secret. Tails are off by default; this is for where somebody wants them.

const NAMES: [&str; 7] = ["token", "secret", "password", "passwd", "apikey", "api_key", "authorization"];
const MASK: &str = "[redacted]";
const OPAQUE_LENGTH: usize = 32;

/// Masks values of telling names, credentials in URLs, key blocks and long opaque words.
pub fn redact(text: &str) -> String {
    let mut in_key = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        in_key |= line.contains("-----BEGIN ");
        lines.push(if in_key { MASK.to_string() } else { redact_line(line) });
        in_key &= !line.contains("-----END ");
    }
    lines.join("\n")
}

fn redact_line(line: &str) -> String {
    let lower = line.to_lowercase();
    if NAMES.iter().any(|name| named_value(&lower, name)) || lower.contains("bearer ") {
        return MASK.to_string();
    }
    line.split(' ').map(redact_word).collect::<Vec<_>>().join(" ")
}

/// `token=x`, `"password": "x"`, `API_KEY : x`, but not `the token expired`.
fn named_value(lower: &str, name: &str) -> bool {
    lower.match_indices(name).any(|(at, found)| {
        let rest = lower[at + found.len()..].trim_start_matches(['"', '\'', ' ']);
        rest.starts_with('=') || rest.starts_with(':')
    })
}

fn redact_word(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://") {
        if let Some((_, host)) = rest.split_once('@') {
            return format!("{scheme}://{MASK}@{host}");
        }
    }
    let core = word.trim_matches(|character: char| !character.is_ascii_alphanumeric());
    let opaque = |character: char| character.is_ascii_alphanumeric() || "+/=_-".contains(character);
    let mixed = core.chars().any(|c| c.is_ascii_digit()) && core.chars().any(|c| c.is_ascii_alphabetic());
    if core.len() >= OPAQUE_LENGTH && mixed && core.chars().all(opaque) && !core.contains("::") && !core.contains('/') {
        return MASK.to_string();
    }
    word.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        for line in [
            "API_KEY=abc",
            "\"password\": \"hunter2\"",
            "Authorization: Bearer abc.def",
            "x eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9abcdef y",
            "fetch https://user:pw@host/x",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
        ] {
            let clean = redact(line);
            assert!(clean.contains(MASK), "{line}");
            assert!(!clean.contains("abc") && !clean.contains("hunter2") && !clean.contains("pw@"), "{clean}");
        }
    }

    #[test]
    fn ordinary_lines_stay() {
        for line in [
            "thread 'a::b' panicked at tests/gpu.rs:9:5:",
            "left: 0.25, right: 0.26",
            "the token expired",
            "target/debug/deps/gpu-9f8e7d6c5b4a3210",
        ] {
            assert_eq!(line, redact(line));
        }
    }
}
