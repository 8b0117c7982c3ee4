use http::Request;

use crate::service::Service;

#[track_caller]
fn status(service: &Service, path: &str, authorization: &str) -> u16 {
    let request = Request::get(format!("https://api.example.com{path}"));
    let request = request.header("authorization", authorization).body(()).unwrap();
    service.send(request).unwrap().status().as_u16()
}

#[test]
fn each_operation_is_answered_and_a_database_that_is_down_is_500() {
    let (mut service, client) = Service::new();
    let bearer = client.authorization();
    for (path, expected) in [
        ("/v1/account", 200),
        ("/v1/calls", 200),
        ("/v1/calls?limit=101", 400),
        ("/v1/calls/call_1", 200),
        ("/v1/calls/call_9", 404),
        ("/v2/calls", 404),
    ] {
        assert_eq!(status(&service, path, &bearer), expected, "{path}");
    }
    assert_eq!(status(&service, "/v1/account", "Bearer service_test_stolen"), 401);
    service.db.down = true;
    for path in ["/v1/account", "/v1/calls", "/v1/calls/call_1"] {
        assert_eq!(status(&service, path, &bearer), 500, "{path}");
    }
}
