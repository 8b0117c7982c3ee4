//! Parks what is pending of an endpoint that is disabled, or was enabled since.

use call_assistant::Timestamp;

use crate::rows::{Change, Changes, Done, Lock, Locked, Page, Writes};

/// Parks all of it, in pages. What others hold at this moment is parked when it is next begun.
pub async fn park(rows: &impl Changes, endpoint: u32, now: Timestamp) -> Done<()> {
    let mut after = Some(0);
    while let Some(from) = after {
        let mut change = rows.change().await?;
        after = page(&mut change, endpoint, from, now).await?;
        change.commit().await?;
    }
    Ok(())
}

/// Parks a page of it. Returns the last number of the page; `None` if nothing was left.
async fn page(
    change: &mut impl Change,
    endpoint: u32,
    after: u64,
    now: Timestamp,
) -> Done<Option<u64>> {
    let Page { rows, last } = change.lock_pending(endpoint, after).await?;
    let endpoints = change.endpoints(&[endpoint], Lock::No).await?;
    let Some(health) = endpoints.get(&endpoint) else { return Ok(None) };
    let mut deliveries = Vec::new();
    for row in &rows {
        let mut delivery = *row;
        if delivery.park(health, now) {
            deliveries.push((Locked::of(*row), delivery));
        }
    }
    change.write(&Writes { deliveries, ..Writes::at(now) }).await?;
    Ok(last)
}
