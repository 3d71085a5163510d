//! A line of the wire before it is understood: whose it is, and of which kind.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::EngineError;

/// One line of the wire.
pub struct Text<'a> {
    line: &'a str,
    /// `Null` when the line is no JSON: what reads it then says why.
    document: Value,
}

impl<'a> Text<'a> {
    /// A line; any text is one.
    #[must_use]
    pub fn new(line: &'a str) -> Self {
        Self { line, document: serde_json::from_str(line).unwrap_or_default() }
    }

    /// As it came.
    #[must_use]
    pub fn line(&self) -> &'a str {
        self.line
    }

    /// What it holds.
    #[must_use]
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The job's id if there is one, so that even a refused job's error says whose it is.
    #[must_use]
    pub fn job_id(&self) -> &str {
        self.document.get("job_id").and_then(Value::as_str).unwrap_or_default()
    }

    /// What tells jobs apart; none in a measurement and in a question.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.document.get("kind").and_then(Value::as_str)
    }
}

/// Reads a job's text. From the text and not from its document, so that an error says where.
///
/// # Errors
/// `BadJob` with what is wrong and the schema that says what is right.
pub fn read_job<T: DeserializeOwned>(text: &str, schema: &str) -> Result<T, EngineError> {
    serde_json::from_str(text).map_err(|error| {
        EngineError::bad_job(format!("the job cannot be read: {error}; see protocol/{schema}"))
    })
}
