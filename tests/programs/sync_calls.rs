use std::fs;
use std::path::Path;

use crate::program::sync_calls::sync_calls;
use crate::service::Service;

#[test]
fn each_run_continues_from_the_stored_state() {
    let name = format!("programs-{}-calls.json", std::process::id());
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (mut service, client) = Service::new();
    for last in [60, 61, 61, 180] {
        let known = service.db.calls.len();
        service.add(known + 1..=last);
        let (calls, state) =
            sync_calls(&client, &file, |request, _| service.send(request)).unwrap();
        assert_eq!(calls.len(), last);
        assert!(!state.is_walking(), "{last} calls");
        let stored: (serde_json::Value, serde_json::Value) =
            serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(stored.1, serde_json::to_value(&state).unwrap(), "{last} calls");
    }
    fs::remove_file(file).unwrap();
}
