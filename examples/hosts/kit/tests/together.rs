//! Questions that are asked together: in which batches, for whom, and how long each waits.
#![allow(clippy::arithmetic_side_effects, clippy::panic, clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::store::together::{PATIENCE, Question, Together, UNDER_WAY};
use host::store::{Done, Refused};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const WORK: Duration = Duration::from_millis(100);

/// A question of nobody in particular, and one of an account.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Of(Option<&'static str>, u32);

impl Question for Of {
    fn account(&self) -> Option<&str> {
        self.0
    }
}

/// The batches that were asked, each after [`WORK`].
#[derive(Clone, Default)]
struct Asked {
    together: Together<Of, u32>,
    batches: Arc<Mutex<Vec<Vec<u32>>>>,
}

impl Asked {
    /// Asks for ten times a number: for as many rows as it has thousands. Of 3 the row is bad, a batch with 4
    /// fails, with 5 it panics, and with 6 it takes three seconds.
    async fn ask(&self, question: u32) -> Done<u32> {
        self.ask_as(None, question).await
    }

    async fn ask_as(&self, account: Option<&'static str>, question: u32) -> Done<u32> {
        let batches = Arc::clone(&self.batches);
        let answer = move |questions: Vec<Of>| {
            let questions: Vec<u32> = questions.into_iter().map(|Of(_, n)| n).collect();
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
        self.together.ask(Of(account, question), rows.max(1), answer).await
    }

    /// Asks, and does not wait for the answer.
    fn begin(&self, account: Option<&'static str>, question: u32) -> JoinHandle<Done<u32>> {
        let asked = self.clone();
        tokio::spawn(async move { asked.ask_as(account, question).await })
    }

    /// Asks all of them at the same time.
    async fn ask_all(&self, questions: impl IntoIterator<Item = u32>) -> Vec<Done<u32>> {
        all(questions.into_iter().map(|question| self.begin(None, question)).collect()).await
    }

    fn sizes(&self) -> Vec<usize> {
        self.batches.lock().unwrap().iter().map(Vec::len).collect()
    }
}

async fn all(tasks: Vec<JoinHandle<Done<u32>>>) -> Vec<Done<u32>> {
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

// One account never holds more than one batch: others are asked for meanwhile, and each in its turn.
#[tokio::test(start_paused = true)]
async fn an_account_waits_for_no_other_ones_questions() {
    let (asked, began) = (Asked::default(), Instant::now());
    let flood: Vec<_> = (0..8)
        .flat_map(|n| [("a", n), ("b", 10 + n), ("c", 20 + n)])
        .map(|(of, n)| asked.begin(Some(of), 128_000 + n))
        .collect();
    sleep(WORK / 10).await;
    asked.ask_as(Some("d"), 128_030).await.unwrap();
    assert!(began.elapsed() <= WORK * 2, "{:?}", began.elapsed());
    assert!(all(flood).await.iter().all(Result::is_ok));
    // Two of these fill a batch.
    assert!(asked.sizes().iter().all(|size| *size <= 2), "{:?}", asked.sizes());
    assert!(began.elapsed() <= WORK * 8, "{:?}", began.elapsed());
    // Of one account alone, one batch after the other.
    let (asked, began) = (Asked::default(), Instant::now());
    let questions = (0..8).map(|n| asked.begin(Some("a"), 256_000 + n)).collect();
    assert!(all(questions).await.iter().all(Result::is_ok));
    assert_eq!((asked.sizes(), began.elapsed()), (vec![1; 8], WORK * 8));
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
    let mut tasks = Vec::new();
    for n in 10..60 {
        tasks.push(asked.begin(None, n));
        sleep(WORK / 100).await;
    }
    assert_eq!(all(tasks).await, (10..60).map(|n| Ok(n * 10)).collect::<Vec<_>>());
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
    let much = [100_000, 100_001, 100_002, 300_000, 200_000, 50_000, 6_000];
    let mut tasks: Vec<_> = much.into_iter().map(|n| asked.begin(None, n)).collect();
    for n in 10..14 {
        sleep(WORK / 100).await;
        tasks.push(asked.begin(None, n));
    }
    assert!(all(tasks).await.iter().all(Result::is_ok));
    let batches = asked.batches.lock().unwrap().clone();
    let (first, last) = (vec![100_000, 100_001], vec![200_000, 50_000, 6_000]);
    let little = vec![10, 11, 12, 13];
    assert_eq!(batches, [first, vec![100_002], vec![300_000], last, little]);
    assert_eq!(began.elapsed(), 2 * WORK);
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_refused_and_no_longer_asked_for() {
    let (asked, began) = (Asked::default(), Instant::now());
    let ask_slowly = || asked.begin(None, 6);
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
    assert!(all(slow).await.iter().all(Result::is_err));
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
    let refused = Err(Refused::Unavailable("the batch with this request was aborted".to_owned()));
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
