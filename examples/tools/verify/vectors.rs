//! Runs a file of vectors, as `tests/vectors/README.md` describes them.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::DeliveryHeaders;
use serde::Deserialize;
use serde_json::Value;
use tools::secrets;

use crate::verdict;

/// How a run went.
pub(crate) struct Outcome {
    pub(crate) cases: usize,
    /// A line for each case that is not as the file says.
    pub(crate) failures: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    format: u32,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    secrets: Vec<String>,
    body: Option<String>,
    body_hex: Option<String>,
    signature: Vec<String>,
    now: i64,
    #[serde(default)]
    now_nanos: u32,
    tolerance: Option<u64>,
    /// The verdict and what goes with it.
    #[serde(flatten)]
    verdict: Value,
}

/// Runs a file of vectors.
///
/// # Errors
/// This is no file of vectors, or one of another format.
pub(crate) fn run(text: &[u8]) -> Result<Outcome, String> {
    let file: File = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if file.format != 1 {
        return Err(format!("the vectors have format {}; expected 1", file.format));
    }
    let failures: Vec<String> = file
        .cases
        .iter()
        .filter_map(|case| case.run().err().map(|error| format!("{}: {error}", case.name)))
        .collect();
    Ok(Outcome { cases: file.cases.len(), failures })
}

impl Case {
    fn run(&self) -> Result<(), String> {
        let mut verifier = secrets::verifier(&self.secrets)?.ok_or("the case has no secret")?;
        if let Some(seconds) = self.tolerance {
            verifier = verifier
                .with_tolerance(Duration::from_secs(seconds))
                .map_err(|error| error.to_string())?;
        }
        let body = match (&self.body, &self.body_hex) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(digits)) => hex::decode(digits).map_err(|error| error.to_string())?,
            _ => return Err("the case must have exactly one body".to_owned()),
        };
        let mut values = Vec::new();
        for text in &self.signature {
            let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
            values.push(bytes.map_err(|_| "the signature has a character above U+00FF")?);
        }
        let headers = values.iter().fold(DeliveryHeaders::new(), |all, one| all.signature(one));
        let now = Timestamp::from_parts(self.now, self.now_nanos)
            .ok_or("now is outside the years 0000 to 9999")?;

        let (expected, found) =
            (&self.verdict, verdict::of(&verifier.verify_parts(headers, &body, now)));
        match found == *expected {
            true => Ok(()),
            false => Err(format!("expected {expected}, found {found}")),
        }
    }
}
