//! The server's settings: those that the gates look at, and those under which a crash or a failover can still lose.

use capstan::{
    Code, Halt,
    core::{
        link::ResultSet,
        replica::requirements::{
            REQUIREMENTS, Variables, log_status_question, replica_status_question, test_filters,
        },
    },
};

use super::{Facts, finding::Finding, session::rows};

/// What is looked at beside the gates' own.
pub(super) const VARIABLES: &[&str] = &[
    "binlog_checksum",
    "binlog_error_action",
    "binlog_expire_logs_auto_purge",
    "binlog_expire_logs_seconds",
    "default_password_lifetime",
    "innodb_flush_log_at_trx_commit",
    "max_allowed_packet",
    "partial_revokes",
    "replica_parallel_workers",
    "replica_preserve_commit_order",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_source_enabled",
    "server_id",
    "slave_parallel_workers",
    "slave_preserve_commit_order",
    "sync_binlog",
];

/// Asks and judges.
pub(super) async fn ask(facts: &mut Facts, findings: &mut Vec<Finding>) -> Result<(), Halt> {
    settings(&facts.variables, findings);
    let client = |gate| {
        Finding::unknown(gate, "REPLICATION CLIENT is missing")
            .run(format!("GRANT REPLICATION CLIENT ON *.* TO {}", facts.account))
    };
    let status = facts.session.ask(log_status_question(&facts.session.version)).await?;
    findings.push(match &status {
        Ok(rows) => Finding::of("log filters", test_filters(rows), "none"),
        Err(_) => client("log filters"),
    });
    let replica = facts.session.ask(replica_status_question(&facts.session.version)).await?;
    findings.push(replica_updates(&facts.variables, replica.as_ref().ok(), client("replica updates")));
    findings.push(applier(&facts.variables, replica.as_ref().ok(), client("applier order")));
    Ok(())
}

fn settings(variables: &Variables, findings: &mut Vec<Finding>) {
    let value = |name: &str| variables.get(name).unwrap_or("not set").to_owned();
    findings.push(Finding::of("log_bin", variables.test_log(), "ON"));
    for requirement in REQUIREMENTS {
        let name = requirement.variable;
        let found = variables.get(name);
        let shown = match found {
            Some("") | None => "not set".to_owned(),
            Some(value) => value.to_owned(),
        };
        let finding = Finding::of(name, requirement.test(found), shown.clone());
        findings.push(if requirement.code == Code::GtidModeNotOn {
            finding.run_all(gtid_steps(&shown))
        } else {
            finding.run(set(name, requirement.accepted.first().copied().unwrap_or_default()))
        });
    }
    let checksum = value("binlog_checksum");
    findings.push(if ["CRC32", "NONE"].contains(&checksum.to_ascii_uppercase().as_str()) {
        Finding::ok("binlog_checksum", checksum)
    } else {
        Finding::refuse("binlog_checksum", Code::ChecksumNegotiationFailed, checksum)
            .run(set("binlog_checksum", "CRC32"))
    });
    findings.push(if variables.is("server_id", "0") {
        // "Misconfigured source - server_id was not set"
        Finding::refuse("server_id", Code::DumpRefused, "0: the server gives its log to nobody")
            .run("SET PERSIST server_id = 1")
    } else {
        Finding::ok("server_id", value("server_id"))
    });
    // What was delivered must not be undone by a crash of the server.
    for (name, wanted, lost) in [
        ("sync_binlog", "1", "a crash of the machine can take back what was delivered: source_behind"),
        (
            "innodb_flush_log_at_trx_commit",
            "1",
            "after a crash of the machine rows can be missing that the log has, and that were delivered",
        ),
        (
            "binlog_error_action",
            "ABORT_SERVER",
            "the server goes on without its log when it cannot be written",
        ),
    ] {
        findings.push(match variables.get(name) {
            Some(found) if found.eq_ignore_ascii_case(wanted) => Finding::ok(name, found),
            Some(found) => Finding::warn(name, format!("{found}: {lost}")).run(set(name, wanted)),
            None => Finding::unknown(name, "the server does not tell"),
        });
    }
}

/// `SET PERSIST`, a number as such.
fn set(name: &str, value: &str) -> String {
    if value.parse::<u64>().is_ok() {
        format!("SET PERSIST {name} = {value}")
    } else {
        format!("SET PERSIST {name} = '{value}'")
    }
}

/// `gtid_mode` moves one step at a time.
fn gtid_steps(found: &str) -> Vec<String> {
    const STEPS: [&str; 4] = ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"];
    let at = STEPS.iter().position(|step| step.eq_ignore_ascii_case(found)).unwrap_or(0);
    let steps = STEPS.iter().skip(at.saturating_add(1)).map(|step| set("gtid_mode", step));
    [set("enforce_gtid_consistency", "ON")].into_iter().chain(steps).collect()
}

fn replica_updates(variables: &Variables, replica: Option<&ResultSet>, unknown: Finding) -> Finding {
    const GATE: &str = "replica updates";
    if variables.logs_replica_updates() {
        return Finding::ok(GATE, "what it applies as a replica is logged");
    }
    match replica {
        None => unknown,
        Some(status) if status.rows.is_empty() => Finding::ok(GATE, "it is no replica"),
        Some(_) => {
            let found = "it is a replica, and log_replica_updates = OFF";
            Finding::refuse(GATE, Code::ReplicaUpdatesNotLogged, found)
                .run("SET PERSIST_ONLY log_replica_updates = ON")
                .remedy("Run this and restart the server (without an option that says otherwise), or connect to its source.")
        }
    }
}

/// Appliers side by side that commit in any order: at a failover the promoted server's history has holes.
fn applier(variables: &Variables, replica: Option<&ResultSet>, unknown: Finding) -> Finding {
    const GATE: &str = "applier order";
    let either = |new: &str, old: &str| variables.get(new).or_else(|| variables.get(old)).map(str::to_owned);
    let workers = either("replica_parallel_workers", "slave_parallel_workers")
        .and_then(|text| text.parse::<u64>().ok())
        .unwrap_or(0);
    let keeps = either("replica_preserve_commit_order", "slave_preserve_commit_order");
    let keeps = keeps.is_none_or(|value| value.eq_ignore_ascii_case("ON") || value == "1");
    if workers < 2 || keeps {
        return Finding::ok(GATE, "it would apply in its source's order");
    }
    match replica {
        None => unknown,
        Some(status) if status.rows.is_empty() => Finding::ok(GATE, "it is no replica"),
        Some(_) => {
            let found = format!(
                "{workers} appliers commit in any order: its log has another order than its source's, and holes for a while"
            );
            Finding::warn(GATE, found)
                .run("STOP REPLICA SQL_THREAD")
                .run(set("replica_preserve_commit_order", "ON"))
                .run("START REPLICA SQL_THREAD")
        }
    }
}

/// The server ids of replicas that it knows, and whether failing over to one of them can lose.
pub(super) async fn replicas(facts: &mut Facts, findings: &mut Vec<Finding>) -> Result<(), Halt> {
    let question =
        if facts.session.version.at_least((8, 0, 22)) { "SHOW REPLICAS" } else { "SHOW SLAVE HOSTS" };
    let answer = facts.session.ask(question).await?;
    let own = facts.variables.get("server_id").and_then(|text| text.parse::<u32>().ok());
    let ids: Option<Vec<u32>> = answer
        .as_ref()
        .ok()
        .map(|answer| rows(answer).filter_map(|row| row.first().cloned().flatten()?.parse().ok()).collect());
    const GATE: &str = "our server id";
    findings.push(match (facts.server_id, &ids) {
        (Some(ours), _) if own == Some(ours) => {
            Finding::refuse(GATE, Code::ServerIdConflict, format!("{ours} is the server's own"))
        }
        (Some(ours), Some(ids)) if ids.contains(&ours) => {
            Finding::refuse(GATE, Code::ServerIdConflict, format!("{ours} is another replica's"))
        }
        (Some(ours), Some(_)) => Finding::ok(GATE, format!("nobody else has {ours}")),
        (None, Some(ids)) => {
            Finding::ok(GATE, format!("is drawn at random; {} replicas have theirs", ids.len()))
        }
        (_, None) => {
            Finding::unknown(GATE, "who else reads the log is not told: REPLICATION SLAVE is missing")
                .run(format!("GRANT REPLICATION SLAVE ON *.* TO {}", facts.account))
        }
    });
    findings.push(semi_sync(&facts.variables, ids.as_deref(), &facts.account));
    Ok(())
}

fn semi_sync(variables: &Variables, replicas: Option<&[u32]>, account: &str) -> Finding {
    const GATE: &str = "semi-sync";
    let installed = ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"]
        .into_iter()
        .find(|name| variables.get(name).is_some());
    match (installed, replicas) {
        (Some(name), _) if variables.is_on(name) => {
            Finding::ok(GATE, "a commit waits until a replica has it, so a failover keeps what was delivered")
        }
        (_, Some([])) => Finding::ok(GATE, "off, and no replica reads from it that it could fail over to"),
        (_, None) => Finding::unknown(GATE, "off; whether it has replicas is not told")
            .run(format!("GRANT REPLICATION SLAVE ON *.* TO {account}")),
        (installed, Some(_)) => {
            let found =
                "off: a failover can lose transactions that were delivered (source_identity_mismatch)";
            let mut finding = Finding::warn(GATE, found).remedy(
                "Not needed where no replica is ever promoted. The replicas need their side of it, too.",
            );
            if installed.is_none() {
                finding = finding.run("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'");
            }
            finding.run(set(installed.unwrap_or("rpl_semi_sync_source_enabled"), "ON"))
        }
    }
}
