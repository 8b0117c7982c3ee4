//! Verdicts, as lines for people, as JSON and as JUnit.

use host::flags::say;
use serde_json::{Value, json};

use super::case::{Not, Verdict};

/// How a finding is mended, if its case says so: with the file that shows it.
pub type Mend<'a> = &'a dyn Fn(&Verdict) -> Option<String>;

/// Prints one verdict for people.
pub fn line(verdict: &Verdict, mend: Mend<'_>) {
    say(&format!("{:7} {:24} {}", verdict.word(), verdict.id, verdict.loses));
    if let Some(why) = verdict.why() {
        say(&format!("        {why} ({})", verdict.clause));
    }
    if let Some(mend) = mend(verdict) {
        say(&format!("        mend: {mend}"));
    }
}

/// Returns the last line for people.
pub fn sum(verdicts: &[Verdict]) -> String {
    let count = |word| verdicts.iter().filter(|one| one.word() == word).count();
    let unseen = match count("unseen") {
        0 => String::new(),
        unseen => format!("; {unseen} cannot be seen"),
    };
    format!("{} of {} rules hold{unseen}", count("holds"), verdicts.len())
}

/// Returns one JSON object.
pub fn as_json(side: &str, verdicts: &[Verdict], mend: Mend<'_>) -> Value {
    let rules = verdicts.iter().map(|one| {
        json!({
            "rule": one.id,
            "clause": one.clause,
            "says": one.loses,
            "verdict": one.word().to_lowercase(),
            "why": one.why(),
            "mend": mend(one),
            "took_ms": u64::try_from(one.took.as_millis()).unwrap_or(u64::MAX),
        })
    });
    let holds = verdicts.iter().all(Verdict::holds);
    json!({ "side": side, "holds": holds, "rules": rules.collect::<Vec<_>>() })
}

/// Returns a report that build servers read.
pub fn as_junit(side: &str, verdicts: &[Verdict], mend: Mend<'_>) -> String {
    let count = |word| verdicts.iter().filter(|one| one.word() == word).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"{side}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
        verdicts.len(),
        count("BROKEN"),
        count("unseen")
    );
    for one in verdicts {
        let inner = match &one.seen {
            Ok(()) => String::new(),
            Err(Not::Broken(why)) => format!(
                "<failure message=\"{}\">{} ({}) {}</failure>",
                escaped(why),
                escaped(one.loses),
                escaped(one.clause),
                escaped(&mend(one).unwrap_or_default())
            ),
            Err(Not::Unseen(why)) => format!("<skipped message=\"{}\"/>", escaped(why)),
        };
        let took = one.took.as_secs_f64();
        text += &format!(
            "  <testcase classname=\"{side}\" name=\"{}\" time=\"{took:.3}\">{inner}</testcase>\n",
            one.id
        );
    }
    text + "</testsuite>"
}

/// Returns a text for XML, which has no way to write most control characters.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    text.replace(|character: char| character.is_control(), " ")
}
