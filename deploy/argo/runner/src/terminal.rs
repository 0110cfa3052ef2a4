//! Text that was written for a terminal, made plain.

/// Removes escape sequences and carriage returns: cargo colours its output, and so may tests.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_escape(&mut characters),
            '\r' => {}
            control if control.is_control() && control != '\n' && control != '\t' => {}
            other => out.push(other),
        }
    }
    out
}

fn skip_escape(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match characters.next() {
        // CSI: parameters, then one final character.
        Some('[') => {
            for character in characters.by_ref() {
                if ('\u{40}'..='\u{7e}').contains(&character) {
                    break;
                }
            }
        }
        // OSC (titles, hyperlinks): until BEL, or until ESC with its backslash.
        Some(']') => {
            while let Some(character) = characters.next() {
                if character == '\u{7}' || (character == '\u{1b}' && characters.next().is_some()) {
                    break;
                }
            }
        }
        // Character sets: one more character.
        Some('(' | ')') => {
            characters.next();
        }
        _ => {}
    }
}

/// Shortens to a number of characters and says so.
pub fn shorten(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_string();
    }
    let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_escape_byte_is_left() {
        assert_eq!("ok. 1", plain("\u{1b}[32mok\u{1b}(B\u{1b}[m. 1\r"));
        assert_eq!("link", plain("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7}"));
        assert_eq!("", plain("\u{1b}[1"));
    }

    #[test]
    fn shortening_counts_characters_not_bytes() {
        assert_eq!("äö", shorten("äö", 2));
        assert_eq!("äö…", shorten("äöüß", 3));
    }
}
