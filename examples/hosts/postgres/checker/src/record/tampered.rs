//! Records that were tampered with: the check has to find each.

use call_assistant_postgres::db::Session;

pub const TAMPERED: [(&str, &str); 4] = [
    (
        "a failure stored over a row that was not read",
        "UPDATE transitions
         SET before = jsonb_set(before, '{attempts}', to_jsonb((before ->> 'attempts')::int + 1))
         WHERE seq = (
             SELECT min(seq) FROM transitions
             WHERE kind = 'delivery' AND before ->> 'status' = 'waiting'
                 AND after ->> 'status' = 'waiting' AND after ->> 'attempts' IN ('1', '2', '3'))",
    ),
    (
        "a result in the log, and not in the delivery",
        "DELETE FROM transitions AS t USING (
             SELECT tx, id FROM transitions
             WHERE kind = 'delivery' AND after ->> 'status' = 'delivered' ORDER BY seq LIMIT 1) AS one
         WHERE t.kind = 'delivery' AND t.tx = one.tx AND t.id = one.id",
    ),
    (
        "an endpoint that was not told of its last failure",
        "DELETE FROM transitions WHERE kind = 'endpoint' AND id = (
             SELECT id FROM transitions WHERE kind = 'endpoint' GROUP BY id
             HAVING count(*) FILTER (WHERE after ->> 'disabled' IS NOT NULL) = 1
                 AND bool_or(after ->> 'disabled' = 'failing')
             ORDER BY id LIMIT 1) AND after ->> 'disabled' = 'failing'",
    ),
    (
        "a delivery of a generation that its endpoint never had",
        "UPDATE transitions
         SET before = jsonb_set(before, '{generation}', '1000'),
             after = jsonb_set(after, '{generation}', '1000')
         WHERE kind = 'delivery' AND id = (
             SELECT id FROM transitions
             WHERE kind = 'delivery' AND after ->> 'status' = 'delivered' ORDER BY seq LIMIT 1)",
    ),
];

/// Returns how many of them the check finds, and those that it does not find.
pub async fn unseen(session: &mut Session) -> (usize, Vec<String>) {
    let (mut seen, mut unseen) = (0, Vec::new());
    for (what, sql) in TAMPERED {
        let change = session.transaction().await.unwrap();
        let tampered = change.execute(sql, &[]).await.unwrap();
        // A short run may have nothing of the kind.
        if tampered > 0 {
            match super::check(&change, &[]).await.1.is_empty() {
                true => unseen.push(format!("the check does not see {what}")),
                false => seen += 1,
            }
        }
        change.rollback().await.unwrap();
    }
    (seen, unseen)
}
