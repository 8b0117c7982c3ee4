//! Which plan includes what. DEL-12, D-76.

use call_assistant::webhook::sender::{
    Delivery, DeliveryStatus, EndpointHealth, PlanError, RecoveryBy, WebhookPlan,
};

use super::{answered, attempted, event, start};

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
}

#[test]
fn what_a_plan_lacks_is_named() {
    for (error, text) in
        [(PlanError::Webhooks, "plan lacks webhooks"), (PlanError::Recovery, "plan lacks recovery")]
    {
        assert_eq!(error.to_string(), text);
    }
}

/// D-76: no step of a pending delivery asks for the plan.
#[test]
fn what_is_pending_is_sent_after_a_downgrade() {
    let endpoint = EndpointHealth::new(1, start());
    assert_eq!(WebhookPlan::Pro.check_webhooks(), Ok(()));
    let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
    let downgraded = WebhookPlan::Basic;
    let _ = attempted(&mut delivery, &endpoint, answered(200), start(), start());
    assert_eq!(delivery.status(), DeliveryStatus::Delivered);
    assert_eq!(downgraded.check_webhooks(), Err(PlanError::Webhooks), "no new event");
}
