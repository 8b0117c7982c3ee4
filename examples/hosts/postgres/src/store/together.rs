//! Questions that wait while others are answered, and are then asked together.
//!
//! ```text
//! let key = together.ask(digest, 1, |digests| look_up(database.clone(), digests)).await?;
//! ```
//!
//! Nobody waits for a batch to fill: the first question is asked at once, and the next batch is what came
//! meanwhile. Nor does anybody wait for many large answers: a batch has a limit of rows, and a question that
//! comes while the latest batch is full or slow begins another.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use host::store::{Done, Refused};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The most rows that the questions of one batch ask for: 256. A question that asks for more is a batch by itself.
const BATCH: usize = 256;

/// The most batches of a kind under way: 4, of four kinds that share sixteen connections. There is another one only
/// while the latest is full or slow: larger batches cost less.
const UNDER_WAY: usize = 4;

/// How long a batch is under way before it is slow: 10 ms.
const SLOW: Duration = Duration::from_millis(10);

/// The longest wait of a caller: 2 seconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The questions of one kind in a process. Clones share them.
pub(super) struct Together<Q, A>(Arc<Mutex<Queue<Q, A>>>);

/// Where a caller waits for its answer.
type Caller<A> = oneshot::Sender<Done<A>>;

struct Queue<Q, A> {
    waiting: VecDeque<Waiting<Q, A>>,
    under_way: usize,
    latest: Option<Batch>,
}

struct Waiting<Q, A> {
    question: Q,
    rows: usize,
    caller: Caller<A>,
}

/// A batch that was asked.
struct Batch {
    began: Instant,
    is_full: bool,
}

impl<Q: Send + 'static, A: Send + 'static> Together<Q, A> {
    /// Asks a question for so many rows at most, and waits for its answer. `answer` gives one for each
    /// question, in the order of the questions; if it fails, each of them is refused.
    pub(super) async fn ask<F, T>(&self, question: Q, rows: usize, answer: F) -> Done<A>
    where
        F: Fn(Vec<Q>) -> T + Send + 'static,
        T: Future<Output = Done<Vec<Done<A>>>> + Send + 'static,
    {
        let (caller, answered) = oneshot::channel();
        if let Some(turn) = self.enter(Waiting { question, rows, caller }) {
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
    fn enter(&self, waiting: Waiting<Q, A>) -> Option<Turn<Q, A>> {
        let mut queue = self.lock();
        queue.waiting.push_back(waiting);
        let is_enough = |batch: &Batch| !batch.is_full && batch.began.elapsed() < SLOW;
        let most = if queue.latest.as_ref().is_some_and(is_enough) { 1 } else { UNDER_WAY };
        if queue.under_way >= most {
            return None;
        }
        queue.latest = Some(Batch { began: Instant::now(), is_full: false });
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

    /// Takes the next batch, without the questions of callers that are gone. The turn is over if there is none.
    fn take(&mut self) -> Option<(Vec<Q>, Vec<Caller<A>>)> {
        let mut queue = self.of.lock();
        queue.waiting.retain(|waiting| !waiting.caller.is_closed());
        let mut rows: usize = 0;
        let fits = |waiting: &&Waiting<Q, A>| {
            let is_first = rows == 0;
            rows = rows.saturating_add(waiting.rows);
            is_first || rows <= BATCH
        };
        let count = queue.waiting.iter().take_while(fits).count();
        if count == 0 {
            queue.under_way = queue.under_way.saturating_sub(1);
            self.is_over = true;
            return None;
        }
        let batch = queue.waiting.drain(..count).map(|it| (it.question, it.caller)).unzip();
        let is_full = !queue.waiting.is_empty();
        queue.latest = Some(Batch { began: Instant::now(), is_full });
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
        Self(Arc::new(Mutex::new(Queue { waiting: VecDeque::new(), under_way: 0, latest: None })))
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
        /// Asks for ten times a number: for as many rows as it has thousands. Of 3 the row is bad, a batch with 4
        /// fails, with 5 it panics, and with 6 it takes three seconds.
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
            let rows = usize::try_from(question).unwrap() / 1_000;
            self.together.ask(question, rows.max(1), answer).await
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
        // The first one is slow by the time of the eleventh, and so on, but four are enough.
        assert_eq!(asked.sizes(), [1, 10, 10, 10, 19]);
        assert_eq!(began.elapsed(), 2 * WORK);

        // More than one statement takes.
        let answers = asked.ask_all(100..700).await;
        assert_eq!(answers, (100..700).map(|n| Ok(n * 10)).collect::<Vec<_>>());
        assert_eq!(asked.sizes(), [1, 10, 10, 10, 19, 256, 256, 88]);
        assert_eq!(began.elapsed(), 5 * WORK);
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_for_little_does_not_wait_for_those_who_ask_for_much() {
        let (asked, began) = (Asked::default(), Instant::now());
        let ask = |n| {
            let asked = asked.clone();
            tokio::spawn(async move { asked.ask(n).await.unwrap() })
        };
        let much = [100_000, 100_001, 100_002, 300_000, 200_000, 50_000, 6_000];
        let mut tasks: Vec<_> = much.into_iter().map(ask).collect();
        for n in 10..14 {
            sleep(WORK / 100).await;
            tasks.push(ask(n));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let batches = asked.batches.lock().unwrap().clone();
        let last = vec![200_000, 50_000, 6_000];
        assert_eq!(
            batches,
            [vec![100_000, 100_001], vec![100_002], vec![300_000], last, vec![10, 11, 12, 13],]
        );
        assert_eq!(began.elapsed(), 2 * WORK);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_is_refused_and_no_longer_asked_for() {
        let (asked, began) = (Asked::default(), Instant::now());
        let ask_slowly = || {
            let slow = asked.clone();
            tokio::spawn(async move { slow.ask(6).await })
        };
        let mut slow = vec![ask_slowly()];
        sleep(WORK).await;
        // Another turn is free, also while a batch is slow.
        assert_eq!(asked.ask(7).await, Ok(70));
        assert_eq!(began.elapsed(), 2 * WORK);
        while slow.len() < UNDER_WAY {
            slow.push(ask_slowly());
            sleep(WORK).await;
        }
        let given_up = tokio::time::timeout(WORK, asked.ask(8)).await;
        assert!(given_up.is_err(), "nobody answers");
        let refused = asked.ask(9).await.unwrap_err();
        assert_eq!(refused, Refused::Unavailable("no response in time".to_owned()));
        assert_eq!(began.elapsed(), 6 * WORK + PATIENCE);
        for slow in slow {
            assert!(slow.await.unwrap().is_err());
        }
        sleep(30 * WORK).await;
        assert_eq!(asked.ask(10).await, Ok(100));
        assert_eq!(*asked.batches.lock().unwrap(), [[6], [7], [6], [6], [6], [10]]);
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
