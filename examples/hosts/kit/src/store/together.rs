//! Questions that wait while others are answered, and are then asked together.
//!
//! ```text
//! let key = together.ask(digest, 1, |digests| look_up(database.clone(), digests)).await?;
//! ```
//!
//! No question waits for a batch to fill: the first is asked at once, and the next batch has the questions that came
//! meanwhile. No question waits for many large answers: a batch has a limit of rows, and a question that
//! comes while the latest batch is full or slow begins another.
//!
//! One account has one batch under way at most, and accounts take turns, so that none waits for all that another asks.

use crate::lock;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Done, Refused};

/// The most rows that the questions of one batch ask for: 256. A question that asks for more is a batch by itself.
const BATCH: usize = 256;

/// The most batches of a kind under way: 4, of four kinds that share sixteen connections. There is another one only
/// while the latest is full or slow: larger batches cost less.
pub const UNDER_WAY: usize = 4;

/// How long a batch is under way before it is slow: 10 ms.
const SLOW: Duration = Duration::from_millis(10);

/// The longest wait of a caller: 2 seconds.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The questions of one kind in a process. Clones share them.
pub struct Together<Q, A>(Arc<Mutex<Queue<Q, A>>>);

/// A question.
pub trait Question: Send + 'static {
    /// Returns the account that asks. Those whose account is not known share no batch limit.
    fn account(&self) -> Option<&str> {
        None
    }
}

/// The digest of a secret that anybody may send.
impl Question for [u8; 32] {}

/// Where a caller waits for its answer.
type Caller<A> = oneshot::Sender<Done<A>>;

struct Queue<Q, A> {
    /// The questions of each account that has some, and whose turn is next first.
    lines: VecDeque<Line<Q, A>>,
    /// The accounts with a batch under way.
    asking: Vec<String>,
    under_way: usize,
    latest: Option<Batch>,
}

struct Line<Q, A> {
    account: Option<String>,
    waiting: VecDeque<Waiting<Q, A>>,
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

impl<Q: Question, A: Send + 'static> Together<Q, A> {
    /// Asks a question for so many rows at most, and waits for its answer. `answer` gives one for each
    /// question, in the order of the questions; if it fails, each of them is refused.
    pub async fn ask<F, T>(&self, question: Q, rows: usize, answer: F) -> Done<A>
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
            Ok(Err(_)) => refused("the batch with this request was aborted"),
            Err(_) => refused("no response in time"),
        }
    }

    /// Lets a question wait for its turn, in which it is asked.
    fn enter(&self, waiting: Waiting<Q, A>) -> Option<Turn<Q, A>> {
        let mut queue = lock(&self.0);
        let account = waiting.question.account().map(str::to_owned);
        let is_asking = account.as_ref().is_some_and(|account| queue.asking.contains(account));
        match queue.lines.iter_mut().find(|line| line.account == account) {
            Some(line) => line.waiting.push_back(waiting),
            None => {
                let (account, waiting) = (account.clone(), VecDeque::from([waiting]));
                queue.lines.push_back(Line { account, waiting });
            }
        }
        if is_asking {
            return None;
        }
        let is_enough = |batch: &Batch| !batch.is_full && batch.began.elapsed() < SLOW;
        let most = if queue.latest.as_ref().is_some_and(is_enough) { 1 } else { UNDER_WAY };
        if queue.under_way >= most {
            return None;
        }
        queue.latest = Some(Batch { began: Instant::now(), is_full: false });
        queue.under_way = queue.under_way.saturating_add(1);
        // It is this account's turn, whatever others wait for.
        if let Some(at) = queue.lines.iter().position(|line| line.account == account)
            && let Some(line) = queue.lines.remove(at)
        {
            queue.lines.push_front(line);
        }
        Some(Turn { of: self.clone(), accounts: Vec::new(), is_over: false })
    }
}

/// The right to ask one batch after the other, until no question is left.
struct Turn<Q: Question, A: Send + 'static> {
    of: Together<Q, A>,
    /// The accounts of its batch.
    accounts: Vec<String>,
    is_over: bool,
}

impl<Q: Question, A: Send + 'static> Turn<Q, A> {
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
        let mut queue = lock(&self.of.0);
        queue.asking.retain(|account| !self.accounts.contains(account));
        self.accounts.clear();
        let (mut batch, mut rows, mut is_full) = ((Vec::new(), Vec::new()), 0_usize, false);
        // An account that had its turn and has more is behind accounts that had none.
        let (mut untouched, mut served) = (VecDeque::new(), VecDeque::new());
        for mut line in std::mem::take(&mut queue.lines) {
            line.waiting.retain(|waiting| !waiting.caller.is_closed());
            let account = line.account.as_ref();
            if is_full || account.is_some_and(|account| queue.asking.contains(account)) {
                untouched.push_back(line);
                continue;
            }
            while let Some(next) = line.waiting.front() {
                rows = rows.saturating_add(next.rows);
                is_full = rows > BATCH && !batch.0.is_empty();
                if is_full {
                    break;
                }
                if let Some(next) = line.waiting.pop_front() {
                    batch.0.push(next.question);
                    batch.1.push(next.caller);
                }
                if let Some(account) = account.filter(|it| self.accounts.last() != Some(it)) {
                    self.accounts.push(account.clone());
                }
            }
            if !line.waiting.is_empty() {
                served.push_back(line);
            }
        }
        untouched.append(&mut served);
        untouched.retain(|line| !line.waiting.is_empty());
        queue.lines = untouched;
        if batch.0.is_empty() {
            queue.under_way = queue.under_way.saturating_sub(1);
            self.is_over = true;
            return None;
        }
        queue.asking.extend_from_slice(&self.accounts);
        let is_full = !queue.lines.is_empty();
        queue.latest = Some(Batch { began: Instant::now(), is_full });
        Some(batch)
    }
}

// Also where an answer panics: the next question begins another turn.
impl<Q: Question, A: Send + 'static> Drop for Turn<Q, A> {
    fn drop(&mut self) {
        if !self.is_over {
            let mut queue = lock(&self.of.0);
            queue.asking.retain(|account| !self.accounts.contains(account));
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
        let (lines, asking) = (VecDeque::new(), Vec::new());
        Self(Arc::new(Mutex::new(Queue { lines, asking, under_way: 0, latest: None })))
    }
}

// A question may be a secret's digest.
impl<Q, A> fmt::Debug for Together<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Together").finish_non_exhaustive()
    }
}
