//! Whom or what to erase from an account, and where a text mentions it.

use std::fmt;

use super::EraseError;

/// The fewest digits of a number, and the fewest characters of an id: fewer are found in too much.
const FEWEST: usize = 6;

/// Whom or what to erase from an account.
#[derive(Clone, PartialEq, Eq)]
pub struct Subject(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// The digits of a caller's number.
    Number(Vec<char>),
    /// The id of a contact or of a call, as it stands in JSON.
    Id(String),
}

// A person's number is for no log.
impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").finish_non_exhaustive()
    }
}

impl Subject {
    /// Creates a subject from a caller's number, however it is written.
    ///
    /// # Errors
    /// [`EraseError::ShortNumber`]
    pub fn from_number(number: &str) -> Result<Self, EraseError> {
        let digits: Vec<char> = number.chars().filter(char::is_ascii_digit).collect();
        match digits.len() < FEWEST {
            true => Err(EraseError::ShortNumber { fewest: FEWEST }),
            false => Ok(Self(Kind::Number(digits))),
        }
    }

    /// Creates a subject from the id of a contact or of a call.
    ///
    /// # Errors
    /// [`EraseError::ShortId`]
    pub fn from_id(id: &str) -> Result<Self, EraseError> {
        if id.chars().count() < FEWEST {
            return Err(EraseError::ShortId { fewest: FEWEST });
        }
        let json = serde_json::Value::from(id).to_string();
        Ok(Self(Kind::Id(json.trim_matches('"').to_owned())))
    }

    /// Tells whether a text mentions it.
    ///
    /// Between the digits of a number may stand what is no letter or digit, three characters at most.
    /// An id is found as a whole.
    pub(super) fn is_in(&self, text: &str) -> bool {
        match &self.0 {
            Kind::Number(digits) => has_number(text, digits),
            Kind::Id(id) => has_id(text, id),
        }
    }
}

fn has_id(text: &str, id: &str) -> bool {
    let goes_on = |next: Option<char>| {
        next.is_some_and(|next| next.is_alphanumeric() || matches!(next, '_' | '-'))
    };
    text.match_indices(id).any(|(at, found)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after =
            text.get(at.saturating_add(found.len())..).and_then(|after| after.chars().next());
        !goes_on(before) && !goes_on(after)
    })
}

fn has_number(text: &str, digits: &[char]) -> bool {
    let mut previous = ' ';
    for (at, character) in text.char_indices() {
        if !previous.is_ascii_digit()
            && Some(&character) == digits.first()
            && begins_with(text.get(at..).unwrap_or_default(), digits)
        {
            return true;
        }
        previous = character;
    }
    false
}

fn begins_with(text: &str, digits: &[char]) -> bool {
    let (mut wanted, mut between) = (digits.iter().peekable(), 0_u8);
    for character in text.chars() {
        match wanted.peek() {
            None => return !character.is_ascii_digit(),
            Some(digit) if **digit == character => {
                wanted.next();
                between = 0;
            }
            Some(_) if character.is_alphanumeric() || between == 3 => return false,
            Some(_) => between = between.saturating_add(1),
        }
    }
    wanted.peek().is_none()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Subject;

    #[test]
    fn a_number_however_it_is_written() {
        let subject = Subject::from_number("+47 98 76 54 32").unwrap();
        for text in [
            "+4798765432",
            "4798765432",
            "0047 98765432".trim_start_matches('0'),
            r#"{"phone_number":"+47 98 76 54 32"}"#,
            "call (47) 98-76-54-32.",
            "tel:+47-987\u{a0}65\u{a0}432;ext=1",
            "1 4798765432",
        ] {
            assert!(subject.is_in(text), "{text}");
        }
        for text in [
            "",
            "479876543",
            "+479876543",
            "+47987654321",
            "14798765432",
            "47 98765 and 432",
            "47    98765432",
            "+4798765431",
        ] {
            assert!(!subject.is_in(text), "{text}");
        }
    }

    #[test]
    fn an_id_as_a_whole() {
        let subject = Subject::from_id("contact_1").unwrap();
        for text in
            [r#"{"contact_id":"contact_1"}"#, "contact_1", "of contact_1.", r#"\"contact_1\""#]
        {
            assert!(subject.is_in(text), "{text}");
        }
        for text in ["", "contact_10", "a_contact_1", "contact_1-b", "contact_2", "contact 1"] {
            assert!(!subject.is_in(text), "{text}");
        }
        assert!(Subject::from_id("c_1").is_err());
        let quoted = Subject::from_id(r#"a "quoted" id"#).unwrap();
        assert!(quoted.is_in(r#"{"id":"a \"quoted\" id"}"#));
    }
}
