//! Which features are on by default, and that whoever needs another one names it.

use std::env;
use std::process::Command;

use serde_json::{Value, json};

use crate::{read, repository};

const LIBRARY: &str = "call-assistant";

// D-98
#[test]
fn what_a_customer_needs_is_on_by_default() {
    let packages = packages();
    assert_eq!(library(&packages)["features"]["default"], json!(["std", "client"]));
    assert_eq!(library(&packages)["metadata"]["docs"]["rs"]["all-features"], true);
    for package in &packages {
        let on = package["dependencies"].as_array().unwrap().iter();
        for on in on.filter(|on| on["name"] == LIBRARY) {
            let name = &package["name"];
            assert_eq!(on["uses_default_features"], false, "{name} names no features");
        }
    }
}

// D-98: the command in the first lines of a program is all that it takes to run it.
#[test]
fn programs_say_which_features_they_need() {
    let packages = packages();
    let targets = library(&packages)["targets"].as_array().unwrap().iter();
    for program in targets.filter(|target| target["kind"][0] == "example") {
        let (name, needed) = (program["name"].as_str().unwrap(), &program["required-features"]);
        let needed = needed.as_array().unwrap_or_else(|| panic!("{name} names no features"));
        let asked =
            needed.iter().filter_map(Value::as_str).find(|one| !["std", "client"].contains(one));
        let asked = asked.map(|one| format!(" --features {one}")).unwrap_or_default();
        let text = read(program["src_path"].as_str().unwrap()).unwrap();
        let command = format!("cargo run --example {name}{asked}");
        assert!(text.contains(&command), "{name}: {command}");
    }
}

fn library(packages: &[Value]) -> &Value {
    packages.iter().find(|package| package["name"] == LIBRARY).unwrap()
}

/// The packages of the workspace, as their manifests have them.
fn packages() -> Vec<Value> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--no-deps", "--format-version=1", "--locked", "--offline"];
    let told = Command::new(cargo).args(arguments).current_dir(repository()).output().unwrap();
    let mut told: Value = serde_json::from_slice(&told.stdout).unwrap();
    serde_json::from_value(told["packages"].take()).unwrap()
}
