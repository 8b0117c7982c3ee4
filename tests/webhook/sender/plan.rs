//! Which plan includes what. DEL-12, D-76.

use call_assistant::webhook::sender::{PlanError, RecoveryBy, WebhookPlan};

#[test]
fn every_plan_has_what_the_specification_gives_it() {
    use PlanError::{Recovery, Webhooks};
    for (plan, webhooks, program) in [
        (WebhookPlan::Basic, Err(Webhooks), Err(Webhooks)),
        (WebhookPlan::Pro, Ok(()), Err(Recovery)),
        (WebhookPlan::Business, Ok(()), Ok(())),
    ] {
        assert_eq!(plan.check_webhooks(), webhooks, "{plan:?}");
        assert_eq!(plan.check_recovery(RecoveryBy::Dashboard), webhooks, "{plan:?}");
        assert_eq!(plan.check_recovery(RecoveryBy::Program), program, "{plan:?}");
    }
    let texts = [Webhooks, Recovery].map(|lacking| lacking.to_string());
    assert_eq!(texts, ["plan lacks webhooks", "plan lacks recovery"]);
}
