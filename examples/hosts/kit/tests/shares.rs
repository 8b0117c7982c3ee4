//! The requests that owners of accounts have under way at the same time.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

use std::time::Duration;

use host::http::shares::{MOST, OWNERS, Shares};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const WORK: Duration = Duration::from_millis(100);

/// Asks as this owner. Returns when it was answered, and nothing where it is refused.
fn ask(shares: &Shares<usize>, owner: usize) -> JoinHandle<Option<Instant>> {
    let shares = shares.clone();
    tokio::spawn(async move {
        let _share = shares.enter(owner).await?;
        sleep(WORK).await;
        Some(Instant::now())
    })
}

// One owner never holds more than a share, and what is over is refused at once.
#[tokio::test(start_paused = true)]
async fn an_owner_waits_for_its_own_requests_and_for_no_flood() {
    let (shares, began) = (Shares::default(), Instant::now());
    let flood: Vec<_> = (0..2 * MOST).map(|_| ask(&shares, 0)).collect();
    sleep(WORK / 10).await;
    let answered = ask(&shares, 1).await.unwrap().unwrap();
    assert!(answered - began < WORK * 2, "{:?}", answered - began);
    let mut answered = Vec::new();
    for asked in flood {
        answered.extend(asked.await.unwrap().map(|at| at - began));
    }
    // After each turn there is a pause that is as long.
    let expected: Vec<_> = (1..).step_by(2).map(|nth| WORK * nth).take(MOST).collect();
    assert_eq!(answered, expected);
    assert!(ask(&shares, 0).await.unwrap().is_some(), "it is over");
}

#[tokio::test(start_paused = true)]
async fn so_many_owners_are_answered_at_a_time() {
    let (shares, began) = (Shares::default(), Instant::now());
    let asked: Vec<_> = (0..2 * OWNERS).map(|owner| ask(&shares, owner)).collect();
    for asked in asked {
        asked.await.unwrap().unwrap();
    }
    assert_eq!(began.elapsed(), WORK * 2);
}
