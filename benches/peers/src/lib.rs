//! Benches beside the crates that others use for the same job. Nothing is here but them.
