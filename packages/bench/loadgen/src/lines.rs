//! One JSON object per line, in and out.

use std::io::{self, BufRead, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A parsed line with unchecked fields.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: String,
    /// Repeated in the answer.
    pub(crate) id: Option<Value>,
    fields: Map<String, Value>,
}

impl Command {
    /// # Errors
    /// A message for the sender of the line.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
        let Value::Object(mut fields) = value else { return Err("a command is an object".to_owned()) };
        let id = fields.remove("id");
        match fields.remove("cmd") {
            Some(Value::String(name)) => Ok(Self { name, id, fields }),
            _ => Err("a command has a field `cmd`".to_owned()),
        }
    }

    /// # Errors
    /// A field is missing, unknown or of the wrong type.
    pub(crate) fn fields<T: DeserializeOwned>(&self) -> Result<T, String> {
        T::deserialize(Value::Object(self.fields.clone())).map_err(|error| format!("{}: {error}", self.name))
    }
}

/// Calls `each` with every line of stdin, on a thread of its own, and with `None` at its end.
pub(crate) fn read_stdin(each: impl Fn(Option<String>) + Send + 'static) -> io::Result<()> {
    let read = move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if !line.trim().is_empty() {
                each(Some(line));
            }
        }
        each(None);
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(read).map(drop)
}

/// Writes `{"event": event, "id": id, ...body}` as one line.
///
/// # Errors
/// Stdout is closed.
pub(crate) fn write_event(event: &str, id: Option<&Value>, body: &impl Serialize) -> io::Result<()> {
    #[derive(Serialize)]
    struct Line<'a, T> {
        event: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a Value>,
        #[serde(flatten)]
        body: &'a T,
    }
    let mut line = serde_json::to_vec(&Line { event, id, body })?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
}

/// The answer to a command that failed.
pub(crate) fn write_error(id: Option<&Value>, message: &str) -> io::Result<()> {
    write_event("error", id, &serde_json::json!({ "message": message }))
}
