//! What holds for any bytes whatever: each property under random input, and replayed over the
//! corpus that fuzzing has left in `fuzz/corpus`.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use proptest::prelude::*;

/// Every file of every corpus, through the property of the same name.
#[test]
fn corpora_hold() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut replayed = 0;
    for &(name, property) in properties::ALL {
        let files = fs::read_dir(corpora.join(name))
            .unwrap_or_else(|error| panic!("fuzz/corpus/{name}: {error}"));
        for file in files {
            property(&fs::read(file.unwrap().path()).unwrap());
            replayed += 1;
        }
    }
    assert!(replayed >= properties::ALL.len(), "only {replayed} files in the corpora");
}

/// A corpus without a property, or a target without one, would be replayed by nobody.
#[test]
fn every_corpus_and_target_has_its_property() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let names = |folder: &str| {
        let mut names: Vec<String> = fs::read_dir(fuzz.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    let mut expected: Vec<_> = properties::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    expected.sort();
    assert_eq!(names("corpus"), expected);
    assert_eq!(names("fuzz_targets"), expected);
}

proptest! {
    #[test]
    fn random_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        for (_, property) in properties::ALL {
            property(&bytes);
        }
    }
}
