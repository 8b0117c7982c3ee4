//! The whole service as a host of many machines over PostgreSQL: `README.md` describes it.

fn main() {
    call_assistant_postgres::main();
}
