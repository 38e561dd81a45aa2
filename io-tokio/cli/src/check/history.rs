//! Where a pipeline would begin, and for how long it still can.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use capstan::{
    Code, Halt, Position,
    core::{
        capture::CapturedSet,
        replica::requirements::{HISTORY, History},
    },
};

use super::{
    Facts,
    finding::{Finding, Verdict},
    session::rows,
};

/// A log kept for less than this is gone before a weekend is over.
const RETENTION_SECONDS_MIN: u64 = 3 * 24 * 3600;

/// "You are not using binary logging" (`share/messages_to_clients.txt`).
const ER_NO_BINARY_LOGGING: u16 = 1381;

/// What is proposed instead: a week.
const RETENTION: &str = "SET PERSIST binlog_expire_logs_seconds = 604800";

/// Asks and judges. Last, for it gives the session to the log.
pub(super) async fn ask(
    facts: &mut Facts,
    stored: Option<&Position>,
    findings: &mut Vec<Finding>,
) -> Result<(), Halt> {
    let answer = facts.session.ask(HISTORY).await?;
    let Some(history) = answer.ok().and_then(|rows| History::read(&rows)) else {
        for gate in ["history", "start", "retention"] {
            findings.push(Finding::unknown(gate, "the server's GTID sets could not be read"));
        }
        return Ok(());
    };
    let (executed, purged) = (history.executed.count(), history.purged.count());
    findings
        .push(Finding::ok("history", format!("{executed} transactions executed, {purged} of them purged")));
    match stored {
        Some(position) => resume(position, &history, findings),
        None => starts(&history, findings),
    }
    let kept = retention(facts, findings);
    oldest(facts, kept, findings).await
}

fn starts(history: &History, findings: &mut Vec<Finding>) {
    findings.push(if history.purged.is_empty() {
        Finding::ok("start earliest", format!("gives all {} transactions", history.executed.count()))
    } else {
        let found = format!(
            "the {} oldest transactions are purged: history_incomplete for a mirror, and a ledger lacks them",
            history.purged.count()
        );
        Finding::warn("start earliest", found)
            .remedy("Copy with --snapshot, load a dump and say --seeded-at, or take a part with --partial.")
    });
    findings.push(Finding::ok(
        "start current",
        format!("begins behind {} transactions; a mirror needs --partial with it", history.executed.count()),
    ));
}

fn resume(position: &Position, history: &History, findings: &mut Vec<Finding>) {
    let processed = position.gtid_set();
    let to_come = history.executed.subtract(processed).count();
    let left = processed.subtract(&history.purged).count();
    let finding = match history.test(processed) {
        Ok(()) => Finding::ok(
            "stored position",
            format!(
                "{to_come} transactions to come; {left} processed ones are still in the log, before data_gap"
            ),
        ),
        Err(halt) => Finding::halt("stored position", &halt),
    };
    let is_good = finding.verdict == Verdict::Ok;
    findings.push(finding);
    if is_good {
        findings.push(
            Finding::unknown("same history", "that the last processed transaction is the server's own")
                .remedy("Nothing: it is verified at every connect of a pipeline (source_history_changed)."),
        );
    }
}

/// The captured set against the stored one.
pub(super) fn captured(position: &Position, given: &CapturedSet, lower_case_table_names: u8) -> Finding {
    let stored = CapturedSet::parse_canonical(position.captured())
        .map(|set| set.with_lower_case_table_names(lower_case_table_names));
    match stored {
        Ok(stored) if stored == *given => Finding::ok("captured set", "is the stored one"),
        Ok(stored) => {
            let grown = if given.holds(&stored) { "; with --snapshot what is new is copied" } else { "" };
            let found = format!("the stored one is another: {}{grown}", stored.canonical());
            Finding::refuse("captured set", Code::CaptureSetChanged, found)
        }
        Err(_) => Finding::refuse("captured set", Code::PositionReadFailed, "the stored one cannot be read"),
    }
}

/// How long the log is kept; `None`: for ever, or not known.
fn retention(facts: &Facts, findings: &mut Vec<Finding>) -> Option<u64> {
    const GATE: &str = "retention";
    let seconds = facts.variables.get("binlog_expire_logs_seconds").and_then(|text| text.parse::<u64>().ok());
    let purges = !facts.variables.is("binlog_expire_logs_auto_purge", "OFF");
    let (finding, kept) = match seconds {
        Some(0) => (Finding::ok(GATE, "the log is kept until it is purged by hand"), None),
        Some(_) if !purges => (
            Finding::ok(GATE, "the log is kept until it is purged by hand (binlog_expire_logs_auto_purge)"),
            None,
        ),
        Some(seconds) => {
            let found = format!("the log is kept for {}", span(seconds));
            let finding = if seconds < RETENTION_SECONDS_MIN {
                Finding::warn(GATE, found)
                    .remedy("A pipeline that is away for longer ends in data_gap.")
                    .run(RETENTION)
            } else {
                Finding::ok(GATE, found)
            };
            (finding, Some(seconds))
        }
        None => (
            Finding::unknown(GATE, "binlog_expire_logs_seconds is not known here")
                .remedy("On managed services it is a setting of the service."),
            None,
        ),
    };
    findings.push(finding);
    kept
}

/// When the oldest file goes: it was last written when the next one began.
async fn oldest(facts: &mut Facts, kept: Option<u64>, findings: &mut Vec<Finding>) -> Result<(), Halt> {
    const GATE: &str = "oldest log file";
    let Some(kept) = kept else { return Ok(()) };
    let answer = match facts.session.ask("SHOW BINARY LOGS").await? {
        Ok(answer) => answer,
        Err(error) if error.number() == ER_NO_BINARY_LOGGING => {
            findings.push(Finding::unknown(GATE, "the server writes no log"));
            return Ok(());
        }
        Err(_) => {
            findings.push(
                Finding::unknown(GATE, "REPLICATION CLIENT is missing")
                    .run(format!("GRANT REPLICATION CLIENT ON *.* TO {}", facts.account)),
            );
            return Ok(());
        }
    };
    let files: Vec<String> = rows(&answer).filter_map(|row| row.first().cloned().flatten()).collect();
    let [first, second, ..] = files.as_slice() else {
        findings.push(Finding::ok(GATE, "is the one that is written to, which stays"));
        return Ok(());
    };
    let Some(began) = facts.session.file_began(second).await? else {
        findings.push(
            Finding::unknown(GATE, "its age is in the log, which the account may not read")
                .run(format!("GRANT REPLICATION SLAVE ON *.* TO {}", facts.account)),
        );
        return Ok(());
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let left = u64::from(began).saturating_add(kept).saturating_sub(now);
    let found = format!("{first} of {} expires in {}", files.len(), span(left));
    findings.push(if left == 0 {
        Finding::warn(GATE, format!("{first} of {} goes at the server's next look", files.len()))
            .remedy("What begins at its transactions begins now, or not at all.")
    } else {
        Finding::ok(GATE, found)
    });
    Ok(())
}

/// A time for people.
fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";

    #[test]
    fn a_position_is_judged_as_at_a_connect() {
        let set = |text: &str| text.replace('A', A).parse().unwrap();
        for (processed, purged, code) in [
            ("A:1-5", "A:1-3", None),
            ("A:1-2", "A:1-3", Some(Code::DataGap)),
            ("A:1-20", "", Some(Code::SourceBehind)),
            ("A:1-5,bbbbbbbb-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1", "", Some(Code::SourceIdentityMismatch)),
        ] {
            let history = History { executed: set("A:1-9"), purged: set(purged), source_uuid: None };
            let position = Position::new(set(processed), "tables=*.*;exclude=;exclude-columns=");
            let mut findings = Vec::new();
            resume(&position, &history, &mut findings);
            assert_eq!(findings[0].code, code, "{processed}");
            assert_eq!(findings.len(), if code.is_none() { 2 } else { 1 });
        }
    }

    #[test]
    fn another_captured_set_is_refused() {
        let position = Position::new(Default::default(), "tables=`d`.*;exclude=;exclude-columns=");
        let set = |table: &str| CapturedSet::parse(&[table], &[], &[]).unwrap();
        assert_eq!(captured(&position, &set("d.*"), 0).verdict, Verdict::Ok);
        assert_eq!(captured(&position, &set("D.*"), 0).code, Some(Code::CaptureSetChanged));
        let folded = set("D.*").with_lower_case_table_names(1);
        assert_eq!(captured(&position, &folded, 1).verdict, Verdict::Ok);
    }
}
