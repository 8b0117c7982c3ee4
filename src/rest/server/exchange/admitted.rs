//! A request that counts, and whether it may be answered.

use super::{AccountGranted, Asked, Authorized, CallGranted, CallsGranted, Context};
use crate::rest::ListCalls;
use crate::rest::server::Grant;
use crate::rest::server::PageQuery;
use crate::rest::server::{AccountStatus, Check};
use crate::rest::server::{CursorError, CursorKeys};
use crate::rest::server::{Rejection, RejectionReason};

/// A request that has been counted, and whose account is to be looked at.
#[derive(Debug)]
pub struct Admitted {
    pub(super) context: Context,
    pub(super) asked: Asked,
    pub(super) grant: Grant,
}

impl Admitted {
    /// Whose request it is: which account's standing to look up.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Decides whether the account and its credential may have what is asked for, and whether it
    /// can be asked for so: the rest of [`Check::ORDER`].
    ///
    /// # Errors
    /// The first check that fails: 403, 402, 400, or 404 for an id that no call has. A standing of
    /// another account: 500.
    pub fn authorize(
        self,
        standing: &AccountStatus,
        cursors: &CursorKeys,
    ) -> Result<Authorized, Rejection> {
        let Self { context, asked, grant } = self;
        if standing.account_id != *grant.account_id() {
            return Err(context.refuse(RejectionReason::WrongAccount));
        }
        let mut page = None;
        let objection = Check::ORDER.into_iter().find_map(|check| match check {
            // The states before this one made sure of these.
            Check::Path | Check::Method | Check::Credential | Check::Rate => None,
            Check::Closing => standing.closing.then_some(RejectionReason::AccountClosing),
            Check::Subscription => {
                (!standing.subscribed).then_some(RejectionReason::NoSubscription)
            }
            Check::Plan => (!standing.plan.public_api).then_some(RejectionReason::PlanLacksApi),
            Check::Scope => {
                let scope = asked.operation().scope();
                (!grant.allows(&scope)).then_some(RejectionReason::ScopeMissing(scope))
            }
            Check::Parameters => match asked {
                Asked::Wrongly(_, error) => Some(RejectionReason::Parameter(error)),
                _ => None,
            },
            Check::Cursor => match &asked {
                Asked::Calls(list) => match page_query(list, &grant, cursors) {
                    Ok(query) => {
                        page = Some(query);
                        None
                    }
                    Err(fault) => Some(RejectionReason::Cursor(fault)),
                },
                _ => None,
            },
            // Whether a call exists, the host says; that one cannot, the id does.
            Check::Resource => match asked {
                Asked::NoCall(error) => Some(RejectionReason::NotAnId(error)),
                _ => None,
            },
        });
        match (objection, asked, page) {
            (Some(cause), ..) => Err(context.refuse(cause)),
            (None, Asked::Account, _) => Ok(Authorized::Account(AccountGranted { context, grant })),
            (None, Asked::Calls(_), Some(page)) => {
                Ok(Authorized::Calls(CallsGranted::new(context, grant, page)))
            }
            (None, Asked::Call(id), _) => {
                Ok(Authorized::Call(CallGranted::new(context, grant, id)))
            }
            // An order without its checks of parameters, cursor or resource would come to this.
            (None, Asked::Calls(_) | Asked::Wrongly(..) | Asked::NoCall(_), _) => {
                Err(context.refuse(RejectionReason::HostGaveUp))
            }
        }
    }
}

fn page_query(
    list: &ListCalls,
    grant: &Grant,
    cursors: &CursorKeys,
) -> Result<PageQuery, CursorError> {
    match &list.cursor {
        None => Ok(PageQuery::first(list.window, list.limit)),
        Some(text) => {
            let cursor = cursors.open(grant.account_id(), grant.mode(), text)?;
            PageQuery::next(cursor, list.window, list.limit)
        }
    }
}
