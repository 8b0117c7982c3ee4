//! What a plan includes. DEL-12, AUTH-3.

use call_assistant::rest::server::{Entitlements, Feature, NotInPlanError};

#[test]
fn every_plan_has_what_the_specification_gives_it() {
    let (api, hooks, recovery) = (Feature::PublicApi, Feature::Webhooks, Feature::Recovery);
    for (plan, includes) in [
        (Entitlements::below_pro(), [false, false, false]),
        (Entitlements::pro(), [false, true, false]),
        (Entitlements::business(), [false, true, true]),
        (Entitlements::below_pro().with_public_api(), [true, false, false]),
        (Entitlements::pro().with_public_api(), [true, true, false]),
        (Entitlements::business().with_public_api(), [true, true, true]),
        (Entitlements::default(), [false, false, false]),
    ] {
        for (feature, included) in [api, hooks, recovery].into_iter().zip(includes) {
            let expected = if included { Ok(()) } else { Err(NotInPlanError(feature)) };
            assert_eq!(plan.require(feature), expected, "{plan:?}");
        }
    }
}

#[test]
fn what_a_plan_lacks_is_named() {
    for (feature, name) in [
        (Feature::PublicApi, "the public API"),
        (Feature::Webhooks, "webhooks"),
        (Feature::Recovery, "recovery"),
    ] {
        assert_eq!(feature.to_string(), name);
        assert!(NotInPlanError(feature).to_string().contains(name));
    }
}

#[test]
fn stored_entitlements_are_stable() {
    let text = r#"{"public_api":true,"webhooks":true,"recovery":false}"#;
    let plan = Entitlements::pro().with_public_api();
    assert_eq!(serde_json::to_string(&plan).unwrap(), text);
    assert_eq!(serde_json::from_str::<Entitlements>(text).unwrap(), plan);
    let later = r#"{"webhooks":true,"oauth":true}"#;
    assert_eq!(serde_json::from_str::<Entitlements>(later).unwrap(), Entitlements::pro());
}
