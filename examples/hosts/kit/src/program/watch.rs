//! Tasks that are watched: none of them ends without a word while the others go on.
//!
//! ```text
//! let watch = Watch::new(trigger, stop);
//! tokio::spawn(watch.until_shutdown("the poller", poller.run()));
//! watch.outcome()?; // once all has ended
//! ```

use std::sync::{Arc, OnceLock};

use crate::log;
use crate::program::shutdown::{Shutdown, Trigger};

/// What is done when a task ends that should not: it is logged, shutdown of the others is requested, and
/// the program ends with an error. Clones share it.
#[derive(Clone, Debug)]
pub struct Watch {
    trigger: Trigger,
    stop: Shutdown,
    failed: Arc<OnceLock<String>>,
}

impl Watch {
    /// Creates a watch that requests shutdown by this trigger.
    pub fn new(trigger: Trigger, stop: Shutdown) -> Self {
        Self { trigger, stop, failed: Arc::default() }
    }

    /// Returns the shutdown of what is watched.
    pub fn stop(&self) -> &Shutdown {
        &self.stop
    }

    /// Runs a task that ends only once shutdown is requested.
    pub fn until_shutdown<F: Future>(
        &self,
        name: &'static str,
        task: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        Guard { watch: self.clone(), name, may_end: false }.over(task)
    }

    /// Runs a task that ends by itself, and must not panic.
    pub fn without_panic<F: Future>(
        &self,
        name: &'static str,
        task: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        Guard { watch: self.clone(), name, may_end: true }.over(task)
    }

    /// Returns what requests shutdown when it is dropped: where a start fails, what had begun ends without a word.
    #[must_use]
    pub fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop(self.trigger.clone())
    }

    /// Returns whether nothing has failed.
    ///
    /// # Errors
    /// The first failure, in words.
    pub fn outcome(&self) -> Result<(), String> {
        self.failed.get().map_or(Ok(()), |why| Err(why.clone()))
    }

    fn failed(&self, why: String) {
        log::error!("{why}");
        let _ = self.failed.set(why);
        self.trigger.pull();
    }
}

/// Requests shutdown when it is dropped.
#[derive(Debug)]
pub struct StopOnDrop(Trigger);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.pull();
    }
}

/// It is dropped when its task ends, panics, or is given up.
struct Guard {
    watch: Watch,
    name: &'static str,
    may_end: bool,
}

impl Guard {
    async fn over<F: Future>(self, task: F) -> F::Output {
        let _guard = self;
        task.await
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.watch.failed(format!("{} panicked", self.name));
        } else if !self.may_end && !self.watch.stop.is_requested() {
            self.watch.failed(format!("{} ended", self.name));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used)]

    use std::future::ready;

    use super::Watch;
    use crate::program::shutdown::manual;

    fn watch() -> Watch {
        let (trigger, stop) = manual();
        Watch::new(trigger, stop)
    }

    #[tokio::test]
    async fn who_ends_early_ends_all() {
        let watch = watch();
        watch.without_panic("a step", ready(())).await;
        assert_eq!((watch.stop().is_requested(), watch.outcome()), (false, Ok(())));
        watch.until_shutdown("the poller", ready(())).await;
        assert!(watch.stop().is_requested());
        assert_eq!(watch.outcome(), Err("the poller ended".to_owned()));
        // The first is the cause.
        watch.until_shutdown("the settler", ready(())).await;
        assert_eq!(watch.outcome(), Err("the poller ended".to_owned()));
    }

    #[tokio::test]
    async fn who_panics_ends_all() {
        for step in [false, true] {
            let watch = watch();
            let watching = watch.clone();
            let task = async { panic!("on purpose") };
            let ended = tokio::spawn(async move {
                match step {
                    true => watching.without_panic("a step", task).await,
                    false => watching.until_shutdown("the poller", task).await,
                }
            });
            assert!(ended.await.is_err(), "{step}");
            assert!(watch.stop().is_requested(), "{step}");
            assert!(watch.outcome().unwrap_err().ends_with(" panicked"), "{step}");
        }
    }

    #[tokio::test]
    async fn a_start_that_fails_is_no_failure_of_what_had_begun() {
        let watch = watch();
        let begun = tokio::spawn(watch.until_shutdown("the poller", std::future::pending::<()>()));
        drop(watch.stop_on_drop());
        begun.abort();
        assert!(begun.await.is_err());
        assert_eq!(watch.outcome(), Ok(()));
    }

    #[tokio::test]
    async fn after_shutdown_each_may_end() {
        let (trigger, stop) = manual();
        let watch = Watch::new(trigger.clone(), stop);
        trigger.pull();
        watch.until_shutdown("the poller", ready(())).await;
        assert_eq!(watch.outcome(), Ok(()));
    }
}
