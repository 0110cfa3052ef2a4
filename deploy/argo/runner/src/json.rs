//! The little JSON that the runner needs: it reads `cargo metadata`, it writes results and markers.

use std::fmt::{self, Display, Write};

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Value>),
    /// Keeps the order of the fields: results are read by people too.
    Object(Vec<(String, Value)>),
}

impl Value {
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    pub fn texts<T: AsRef<str>>(items: &[T]) -> Value {
        Value::List(items.iter().map(|item| Value::text(item.as_ref())).collect())
    }

    pub fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
        Value::Object(fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Object(fields) => fields.iter().find(|(field, _)| field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn items(&self) -> &[Value] {
        match self {
            Value::List(items) => items,
            _ => &[],
        }
    }
}

impl Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => out.write_str("null"),
            Value::Bool(flag) => write!(out, "{flag}"),
            Value::Number(number) => write!(out, "{number}"),
            Value::Text(text) => write_text(out, text),
            Value::List(items) => {
                out.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    write!(out, "{}{item}", if index > 0 { "," } else { "" })?;
                }
                out.write_char(']')
            }
            Value::Object(fields) => {
                out.write_char('{')?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    out.write_str(if index > 0 { "," } else { "" })?;
                    write_text(out, name)?;
                    write!(out, ":{value}")?;
                }
                out.write_char('}')
            }
        }
    }
}

fn write_text(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            control if control < ' ' => write!(out, "\\u{:04x}", control as u32)?,
            other => out.write_char(other)?,
        }
    }
    out.write_char('"')
}

/// Reads one JSON document; the error names the byte where it stopped making sense.
pub fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
    let value = reader.value()?;
    reader.blank();
    if reader.at == reader.bytes.len() {
        Ok(value)
    } else {
        Err(reader.wrong())
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self) -> String {
        format!("not JSON at byte {}", self.at)
    }

    fn blank(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, literal: &str) -> bool {
        let found = self.bytes[self.at..].starts_with(literal.as_bytes());
        self.at += if found { literal.len() } else { 0 };
        found
    }

    fn value(&mut self) -> Result<Value, String> {
        self.blank();
        match self.bytes.get(self.at) {
            Some(b'{') => self.object(),
            Some(b'[') => self.list(),
            Some(b'"') => self.string().map(Value::Text),
            Some(b't') if self.take("true") => Ok(Value::Bool(true)),
            Some(b'f') if self.take("false") => Ok(Value::Bool(false)),
            Some(b'n') if self.take("null") => Ok(Value::Null),
            Some(_) => self.number(),
            None => Err(self.wrong()),
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|byte| b"+-.eE0123456789".contains(byte)) {
            self.at += 1;
        }
        let digits = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or("");
        digits.parse().map(Value::Number).map_err(|_| self.wrong())
    }

    fn list(&mut self) -> Result<Value, String> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.blank();
            if self.take("]") {
                return Ok(Value::List(items));
            }
            if !items.is_empty() && !self.take(",") {
                return Err(self.wrong());
            }
            items.push(self.value()?);
        }
    }

    fn object(&mut self) -> Result<Value, String> {
        let mut fields = Vec::new();
        self.at += 1;
        loop {
            self.blank();
            if self.take("}") {
                return Ok(Value::Object(fields));
            }
            if !fields.is_empty() && !self.take(",") {
                return Err(self.wrong());
            }
            self.blank();
            let name = self.string()?;
            self.blank();
            if !self.take(":") {
                return Err(self.wrong());
            }
            fields.push((name, self.value()?));
        }
    }

    fn string(&mut self) -> Result<String, String> {
        if !self.take("\"") {
            return Err(self.wrong());
        }
        let mut raw = Vec::new();
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => self.escape(&mut raw)?,
                Some(byte) => {
                    raw.push(*byte);
                    self.at += 1;
                }
                None => return Err(self.wrong()),
            }
        }
        self.at += 1;
        Ok(String::from_utf8_lossy(&raw).into_owned())
    }

    fn escape(&mut self, raw: &mut Vec<u8>) -> Result<(), String> {
        let code = *self.bytes.get(self.at + 1).ok_or_else(|| self.wrong())?;
        self.at += 2;
        match code {
            b'n' => raw.push(b'\n'),
            b't' => raw.push(b'\t'),
            b'r' => raw.push(b'\r'),
            b'b' => raw.push(8),
            b'f' => raw.push(12),
            b'u' => {
                let unit = self.hex()?;
                let low = (0xD800..0xDC00).contains(&unit) && self.take("\\u");
                let point = if low {
                    0x10000 + ((unit - 0xD800) << 10) + (self.hex()?.wrapping_sub(0xDC00) & 0x3FF)
                } else {
                    unit
                };
                let character = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
                raw.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => raw.push(other),
        }
        Ok(())
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self.bytes.get(self.at..self.at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).ok_or_else(|| self.wrong())?;
        self.at += 4;
        Ok(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let value = Value::object([
            ("text", Value::text("a \"quoted\" \\ line\nnext\u{1b}[0m — \u{1f680}")),
            ("numbers", Value::List(vec![Value::Number(12.0), Value::Number(-0.5)])),
            ("nothing", Value::Null),
            ("flag", Value::Bool(true)),
        ]);

        assert_eq!(Ok(value.clone()), parse(&value.to_string()));
    }

    #[test]
    fn escapes_and_surrogate_pairs_are_understood() {
        assert_eq!(Ok(Value::text("a/\t\u{1f680}é")), parse(r#" "a\/\t\ud83d\ude80\u00e9" "#));
    }

    #[test]
    fn half_a_document_is_an_error() {
        for text in ["", "{", "[1,", "{\"a\":1", "\"abc", "{\"a\" 1}", "[1] x", "nul"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
