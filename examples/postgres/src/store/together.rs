//! Questions that wait while others are answered, and are then asked together.
//!
//! ```text
//! let key = together.ask(digest, |digests| look_up(database.clone(), digests)).await?;
//! ```
//!
//! Nobody waits for a batch to fill: the first question is asked at once, and the next batch is what came
//! meanwhile.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use host::store::{Done, Refused};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The most questions in one batch: 256.
const BATCH: usize = 256;

/// The most batches under way: 2. There is a second one only while the first is slow: larger batches cost less.
const UNDER_WAY: usize = 2;

/// How long a batch is under way before it is slow: 10 ms.
const SLOW: Duration = Duration::from_millis(10);

/// The longest wait of a caller: 2 seconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The questions of one kind in a process. Clones share them.
pub(super) struct Together<Q, A>(Arc<Mutex<Queue<Q, A>>>);

/// Where a caller waits for its answer.
type Caller<A> = oneshot::Sender<Done<A>>;

struct Queue<Q, A> {
    waiting: VecDeque<(Q, Caller<A>)>,
    under_way: usize,
    /// When the latest batch was asked.
    began: Option<Instant>,
}

impl<Q: Send + 'static, A: Send + 'static> Together<Q, A> {
    /// Asks a question, and waits for its answer. `answer` gives one for each question, in the order of
    /// the questions; if it fails, each of them is refused.
    pub(super) async fn ask<F, T>(&self, question: Q, answer: F) -> Done<A>
    where
        F: Fn(Vec<Q>) -> T + Send + 'static,
        T: Future<Output = Done<Vec<Done<A>>>> + Send + 'static,
    {
        let (caller, answered) = oneshot::channel();
        if let Some(turn) = self.enter(question, caller) {
            // A task of its own: the batch goes on if this caller does not.
            tokio::spawn(turn.run(answer));
        }
        let refused = |why: &str| Err(Refused::Unavailable(why.to_owned()));
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => refused("the batch of this request broke off"),
            Err(_) => refused("no response in time"),
        }
    }

    /// Lets a question wait. Whoever gets a turn has it asked.
    fn enter(&self, question: Q, caller: Caller<A>) -> Option<Turn<Q, A>> {
        let mut queue = self.lock();
        queue.waiting.push_back((question, caller));
        let is_slow = queue.began.is_none_or(|began| began.elapsed() >= SLOW);
        if queue.under_way >= if is_slow { UNDER_WAY } else { 1 } {
            return None;
        }
        queue.under_way = queue.under_way.saturating_add(1);
        Some(Turn { of: self.clone(), is_over: false })
    }

    fn lock(&self) -> MutexGuard<'_, Queue<Q, A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to ask one batch after the other, until no question is left.
struct Turn<Q: Send + 'static, A: Send + 'static> {
    of: Together<Q, A>,
    is_over: bool,
}

impl<Q: Send + 'static, A: Send + 'static> Turn<Q, A> {
    async fn run<F, T>(mut self, answer: F)
    where
        F: Fn(Vec<Q>) -> T,
        T: Future<Output = Done<Vec<Done<A>>>>,
    {
        loop {
            // Requests that have already arrived get their turn first.
            tokio::task::yield_now().await;
            let Some((questions, callers)) = self.take() else { return };
            match answer(questions).await {
                Ok(answers) => {
                    for (caller, answer) in callers.into_iter().zip(answers) {
                        // An error means that the caller is gone.
                        let _ = caller.send(answer);
                    }
                }
                Err(refused) => {
                    for caller in callers {
                        let _ = caller.send(Err(refused.clone()));
                    }
                }
            }
        }
    }

    /// The next batch, without the questions of callers that are gone. The turn is over if there is none.
    fn take(&mut self) -> Option<(Vec<Q>, Vec<Caller<A>>)> {
        let mut queue = self.of.lock();
        let next = std::iter::from_fn(|| queue.waiting.pop_front());
        let batch: (Vec<_>, Vec<_>) =
            next.filter(|(_, caller)| !caller.is_closed()).take(BATCH).unzip();
        if batch.0.is_empty() {
            queue.under_way = queue.under_way.saturating_sub(1);
            self.is_over = true;
            return None;
        }
        queue.began = Some(Instant::now());
        Some(batch)
    }
}

// Also where an answer panics: the next question begins another turn.
impl<Q: Send + 'static, A: Send + 'static> Drop for Turn<Q, A> {
    fn drop(&mut self) {
        if !self.is_over {
            let mut queue = self.of.lock();
            queue.under_way = queue.under_way.saturating_sub(1);
        }
    }
}

impl<Q, A> Clone for Together<Q, A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<Q, A> Default for Together<Q, A> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Queue { waiting: VecDeque::new(), under_way: 0, began: None })))
    }
}

// A question may be a secret's digest.
impl<Q, A> fmt::Debug for Together<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Together").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::panic, clippy::unwrap_used)]

    use tokio::time::sleep;

    use super::*;

    const WORK: Duration = Duration::from_millis(100);

    /// The batches that were asked, each after [`WORK`].
    #[derive(Clone, Default)]
    struct Asked {
        together: Together<u32, u32>,
        batches: Arc<Mutex<Vec<Vec<u32>>>>,
    }

    impl Asked {
        /// Asks for ten times a number. Of 3 the row is bad, a batch with 4 fails, with 5 it panics, and
        /// with 6 it takes three seconds.
        async fn ask(&self, question: u32) -> Done<u32> {
            let batches = Arc::clone(&self.batches);
            let answer = move |questions: Vec<u32>| {
                batches.lock().unwrap().push(questions.clone());
                async move {
                    sleep(if questions.contains(&6) { 30 * WORK } else { WORK }).await;
                    assert!(!questions.contains(&5), "a defect");
                    if questions.contains(&4) {
                        return Err(Refused::Unavailable("away".to_owned()));
                    }
                    let bad = |n| Err(Refused::Unavailable(format!("row {n}")));
                    Ok(questions
                        .into_iter()
                        .map(|n| if n == 3 { bad(n) } else { Ok(n * 10) })
                        .collect())
                }
            };
            self.together.ask(question, answer).await
        }

        /// Asks all of them at the same time.
        async fn ask_all(&self, questions: impl IntoIterator<Item = u32>) -> Vec<Done<u32>> {
            let ask = |question| {
                let asked = self.clone();
                tokio::spawn(async move { asked.ask(question).await })
            };
            let tasks: Vec<_> = questions.into_iter().map(ask).collect();
            let mut answers = Vec::new();
            for task in tasks {
                answers.push(task.await.unwrap());
            }
            answers
        }

        fn sizes(&self) -> Vec<usize> {
            self.batches.lock().unwrap().iter().map(Vec::len).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_alone_waits_for_nobody() {
        let (asked, began) = (Asked::default(), Instant::now());
        for n in 10..13 {
            assert_eq!(asked.ask(n).await, Ok(n * 10));
        }
        assert_eq!(began.elapsed(), 3 * WORK);
        assert_eq!(asked.sizes(), [1, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_meanwhile_is_the_next_batch() {
        let (asked, began) = (Asked::default(), Instant::now());
        let ask = |n| {
            let asked = asked.clone();
            tokio::spawn(async move { asked.ask(n).await })
        };
        let mut tasks = Vec::new();
        for n in 10..60 {
            tasks.push(ask(n));
            sleep(WORK / 100).await;
        }
        for (n, task) in (10..60).zip(tasks) {
            assert_eq!(task.await.unwrap(), Ok(n * 10));
        }
        // The first one is slow by the time of the eleventh.
        assert_eq!(asked.sizes(), [1, 10, 39]);
        assert_eq!(began.elapsed(), 2 * WORK);

        // More than one statement takes.
        let answers = asked.ask_all(100..700).await;
        assert_eq!(answers, (100..700).map(|n| Ok(n * 10)).collect::<Vec<_>>());
        assert_eq!(asked.sizes(), [1, 10, 39, 256, 256, 88]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_is_refused_and_no_longer_asked_for() {
        let (asked, began) = (Asked::default(), Instant::now());
        let (slow, other) = (asked.clone(), asked.clone());
        let slow = tokio::spawn(async move { slow.ask(6).await });
        sleep(WORK).await;
        // The other turn is free, also while a batch is slow.
        assert_eq!(asked.ask(7).await, Ok(70));
        assert_eq!(began.elapsed(), 2 * WORK);
        let slow_too = tokio::spawn(async move { other.ask(6).await });
        sleep(WORK).await;
        let given_up = tokio::time::timeout(WORK, asked.ask(8)).await;
        assert!(given_up.is_err(), "nobody answers");
        let refused = asked.ask(9).await.unwrap_err();
        assert_eq!(refused, Refused::Unavailable("no response in time".to_owned()));
        assert_eq!(began.elapsed(), 4 * WORK + PATIENCE);
        assert!(slow.await.unwrap().is_err() && slow_too.await.unwrap().is_err());
        sleep(30 * WORK).await;
        assert_eq!(asked.ask(10).await, Ok(100));
        assert_eq!(*asked.batches.lock().unwrap(), [[6], [7], [6], [10]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_fails_refuses_its_own_callers() {
        let asked = Asked::default();
        let answers = asked.ask_all([1, 4, 2]).await;
        let refused = Err(Refused::Unavailable("away".to_owned()));
        assert_eq!(answers, [refused.clone(), refused.clone(), refused]);
        let answers = asked.ask_all([1, 5]).await;
        let refused = Err(Refused::Unavailable("the batch of this request broke off".to_owned()));
        assert_eq!(answers, [refused.clone(), refused]);
        assert_eq!(asked.ask_all([1, 2]).await, [Ok(10), Ok(20)]);
        assert_eq!(asked.sizes(), [3, 2, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_that_is_bad_is_bad_for_its_caller() {
        let asked = Asked::default();
        let answers = asked.ask_all([1, 3, 2]).await;
        assert_eq!(answers, [Ok(10), Err(Refused::Unavailable("row 3".to_owned())), Ok(20)]);
        assert_eq!(asked.sizes(), [3]);
    }
}
