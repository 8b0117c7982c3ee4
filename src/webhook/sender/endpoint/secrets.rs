//! The signing secrets of one endpoint, while one replaces another.

use alloc::vec::Vec;
use core::time::Duration;

use crate::Timestamp;
use crate::webhook::{SetupError, Signer, SigningSecret};

/// Holds the signing secrets of one endpoint: the newest, and previous ones until each expires.
///
/// After a rotation both secrets sign for a while, so that the receiver has time to switch.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::SigningSecret;
/// use call_assistant::webhook::sender::EndpointSecrets;
///
/// let now = Timestamp::from_unix(1_767_225_600).unwrap();
/// let mut secrets = EndpointSecrets::new(SigningSecret::parse("whsec_first")?);
/// secrets.rotate(SigningSecret::parse("whsec_second")?, EndpointSecrets::OVERLAP, now)?;
/// assert_eq!(secrets.signer(now).secret_count(), 2);
///
/// let tomorrow = now.saturating_add(EndpointSecrets::OVERLAP);
/// assert_eq!(secrets.signer(tomorrow).secret_count(), 1); // only `whsec_second`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Store [`newest`](Self::newest) and each of the [`previous`](Self::previous) secrets, encrypted,
/// and put them together with [`new`](Self::new) and [`and_previous`](Self::and_previous).
#[derive(Clone, Debug)]
pub struct EndpointSecrets {
    newest: SigningSecret,
    /// Newest first, each with the end of its time.
    previous: Vec<(SigningSecret, Timestamp)>,
}

impl EndpointSecrets {
    /// Default time for which a replaced secret goes on signing: 24 hours.
    pub const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);

    /// Creates the secrets of an endpoint that has one.
    #[must_use]
    pub fn new(newest: SigningSecret) -> Self {
        Self { newest, previous: Vec::new() }
    }

    /// Adds a previous secret from the store, the most recently replaced one first. An expired one
    /// is ignored.
    ///
    /// # Errors
    /// More than [`Signer::MAX_SECRETS`] secrets would sign.
    pub fn and_previous(
        mut self,
        secret: SigningSecret,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<Self, SetupError> {
        if now < expires_at {
            self.check_room(now)?;
            self.previous.push((secret, expires_at));
        }
        Ok(self)
    }

    /// Replaces the newest secret, which goes on signing for `overlap`. With an overlap of zero, as
    /// after a leak, it stops at once.
    ///
    /// # Errors
    /// More than [`Signer::MAX_SECRETS`] secrets would sign. Nothing has changed.
    pub fn rotate(
        &mut self,
        secret: SigningSecret,
        overlap: Duration,
        now: Timestamp,
    ) -> Result<(), SetupError> {
        let expires_at = now.saturating_add(overlap);
        if now < expires_at {
            self.check_room(now)?;
            self.previous.insert(0, (self.newest.clone(), expires_at));
        }
        self.newest = secret;
        Ok(())
    }

    /// Returns the newest secret.
    #[must_use]
    pub fn newest(&self) -> &SigningSecret {
        &self.newest
    }

    /// Returns the previous secrets that still sign, each with the instant at which it expires.
    pub fn previous(&self, now: Timestamp) -> impl Iterator<Item = (&SigningSecret, Timestamp)> {
        self.previous.iter().map(|(secret, end)| (secret, *end)).filter(move |(_, end)| now < *end)
    }

    /// Creates the signer of an attempt that is made now.
    #[must_use]
    #[expect(clippy::expect_used, reason = "every way to add a secret checks the number")]
    pub fn signer(&self, now: Timestamp) -> Signer {
        let mut previous = self.previous(now);
        previous
            .try_fold(Signer::new(self.newest.clone()), |signer, (secret, _)| {
                signer.and(secret.clone())
            })
            .expect("no more secrets than a signer takes")
    }

    fn check_room(&mut self, now: Timestamp) -> Result<(), SetupError> {
        self.previous.retain(|(_, end)| now < *end);
        if self.previous.len().saturating_add(1) < Signer::MAX_SECRETS {
            Ok(())
        } else {
            Err(SetupError::TooManySecrets)
        }
    }
}
