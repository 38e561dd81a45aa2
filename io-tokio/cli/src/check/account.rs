//! The account and the link it came by.

use capstan::{Code, Halt, Source, SslMode};

use super::{
    Facts,
    finding::{Finding, Verdict, text},
    grants::Grants,
    session::{Session, cell, rows},
};

/// A password or certificate that runs out sooner is worth a word.
const DAYS_MIN: i64 = 30;

/// The findings about TLS.
pub(super) async fn link(
    facts: &mut Facts,
    source: &Source,
    findings: &mut Vec<Finding>,
) -> Result<(), Halt> {
    if !facts.session.encrypted {
        findings.push(
            Finding::warn("tls", "the link is not encrypted: rows go over it in the clear").remedy(
                "Say ssl-mode=verify-identity, or another that encrypts, unless the link is one you trust.",
            ),
        );
        return Ok(());
    }
    let status = facts.session.ask("SHOW SESSION STATUS LIKE 'Ssl\\_%'").await?;
    let value = |name: &str| {
        let all = status.as_ref().ok()?;
        rows(all).find(|row| row.first().is_some_and(|cell| cell.as_deref() == Some(name)))?.get(1)?.clone()
    };
    let shown = |name: &str| value(name).filter(|text| !text.is_empty()).unwrap_or_else(|| "?".to_owned());
    findings.push(Finding::ok("tls", format!("{}, {}", shown("Ssl_version"), shown("Ssl_cipher"))));
    findings.push(certificate(source).await);
    let until = value("Ssl_server_not_after").unwrap_or_default();
    findings.push(expiry(&mut facts.session, &until).await?);
    Ok(())
}

/// Whether the certificate would stand the strictest mode.
async fn certificate(source: &Source) -> Finding {
    const GATE: &str = "certificate";
    let mode = source.ssl().mode;
    if mode == SslMode::VerifyIdentity {
        return Finding::ok(GATE, "signed by an authority that is trusted, and names the host");
    }
    let mut ssl = source.ssl().clone();
    ssl.mode = SslMode::VerifyIdentity;
    // Another dial, which ends before the password where the certificate does not do.
    let error = match Session::open(&source.clone().with_ssl(ssl)).await {
        Ok(_) => {
            let found = format!("would do for ssl-mode=verify-identity, but {} was said", mode.as_str());
            return Finding::warn(GATE, found).remedy("Say ssl-mode=verify-identity.");
        }
        Err(error) => error,
    };
    let found = match (error.code, mode) {
        (Code::CertificateNameMismatch, SslMode::VerifyCa) => {
            "signed by an authority that is trusted; does not name the host"
        }
        (Code::CertificateNameMismatch, _) => "does not name the host",
        (Code::CertificateUntrusted, _) => "not signed by an authority that is trusted",
        _ => return Finding::unknown(GATE, "could not be looked at with another dial"),
    };
    let finding = Finding::warn(GATE, found).remedy(error.code.remedy());
    // Who checks the chain alone has said that the name does not matter.
    if error.code == Code::CertificateNameMismatch && mode == SslMode::VerifyCa {
        finding.but(Verdict::Ok)
    } else {
        finding
    }
}

async fn expiry(session: &mut Session, until: &str) -> Result<Finding, Halt> {
    const GATE: &str = "certificate expiry";
    let plain = until.chars().all(|char| char.is_ascii_alphanumeric() || char == ' ' || char == ':');
    let days = if until.is_empty() || !plain {
        None
    } else {
        let sql = format!(
            "SELECT TIMESTAMPDIFF(DAY, UTC_TIMESTAMP(), STR_TO_DATE({}, '%b %e %H:%i:%s %Y GMT'))",
            text(until)
        );
        session.ask(&sql).await?.ok().and_then(|rows| cell(&rows, 0, 0)?.parse::<i64>().ok())
    };
    Ok(match days {
        None => Finding::unknown(GATE, "the server does not tell"),
        Some(days) if days < DAYS_MIN => Finding::warn(GATE, format!("in {days} days ({until})"))
            .remedy("Put a new certificate in the old one's place and run this.")
            .run("ALTER INSTANCE RELOAD TLS"),
        Some(days) => Finding::ok(GATE, format!("in {days} days")),
    })
}

/// What `SHOW CREATE USER` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Account {
    plugin: Option<String>,
    requires_tls: bool,
    /// `DEFAULT`, `NEVER`, or days.
    expires: String,
}

impl Account {
    /// Keeps nothing else of it: a hash of the password can be in there.
    fn read(statement: &str) -> Self {
        let after = |words: &str| statement.split_once(words).map(|(_, rest)| rest);
        let plugin = after(" IDENTIFIED WITH '").and_then(|rest| rest.split('\'').next());
        // Behind the hash, in which anything may be; "PASSWORD REQUIRE CURRENT" is another matter.
        let head = statement.rsplit_once(" PASSWORD REQUIRE ").map_or(statement, |(head, _)| head);
        let tail = head.rsplit_once(" REQUIRE ").map_or("", |(_, rest)| rest);
        let expires = tail.split_once("PASSWORD EXPIRE").map_or("", |(_, rest)| rest.trim_start());
        let expires = expires.strip_prefix("INTERVAL ").unwrap_or(expires);
        Self {
            plugin: plugin.map(str::to_owned),
            requires_tls: !tail.is_empty() && !tail.starts_with("NONE"),
            expires: expires.split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

/// The findings about the account itself.
pub(super) async fn account(facts: &mut Facts, findings: &mut Vec<Finding>) -> Result<(), Halt> {
    let created = facts.session.ask("SHOW CREATE USER CURRENT_USER()").await?;
    let Some(statement) = created.ok().and_then(|rows| cell(&rows, 0, 0)) else {
        for gate in ["login plugin", "password expiry", "tls required"] {
            findings.push(Finding::unknown(gate, "SHOW CREATE USER is refused"));
        }
        return Ok(());
    };
    let account = Account::read(&statement);
    let name = &facts.account;
    findings.push(match account.plugin.as_deref() {
        Some(plugin @ ("caching_sha2_password" | "auth_socket")) => Finding::ok("login plugin", plugin),
        Some(plugin) => Finding::warn("login plugin", format!("{plugin}: newer servers do without it"))
            .remedy("ALTER USER … IDENTIFIED WITH caching_sha2_password BY the password."),
        None => Finding::unknown("login plugin", "the server does not tell"),
    });
    findings.push(if account.requires_tls {
        Finding::ok("tls required", "the server lets the account in over TLS only")
    } else {
        Finding::warn("tls required", "the account may log in without TLS, too")
            .run(format!("ALTER USER {name} REQUIRE SSL"))
    });
    let lifetime = facts.variables.get("default_password_lifetime").and_then(|text| text.parse::<u64>().ok());
    let days = match account.expires.as_str() {
        "NEVER" => Some(0),
        "DEFAULT" => lifetime,
        other => other.parse().ok(),
    };
    let finding = match days {
        Some(0) => Finding::ok("password expiry", "never"),
        Some(days) => {
            let sql = "SELECT DATEDIFF(NOW(), password_last_changed) FROM mysql.user \
                       WHERE CONCAT(user, '@', host) = CURRENT_USER()";
            let age =
                facts.session.ask(sql).await?.ok().and_then(|rows| cell(&rows, 0, 0)?.parse::<i64>().ok());
            let left = age.and_then(|age| i64::try_from(days).ok()?.checked_sub(age));
            let found = match left {
                Some(left) => format!("in {left} days: the account is shut out then"),
                None => format!("{days} days after it was set: the account is shut out then"),
            };
            Finding::warn("password expiry", found).run(format!("ALTER USER {name} PASSWORD EXPIRE NEVER"))
        }
        None => Finding::unknown("password expiry", "the server does not tell"),
    };
    findings.push(finding);
    Ok(())
}

/// Reads what the account may, with the roles that are active.
pub(super) async fn grants(session: &mut Session, partial_revokes: bool) -> Result<Option<Grants>, Halt> {
    let role = session.ask("SELECT CURRENT_ROLE()").await?.ok().and_then(|rows| cell(&rows, 0, 0));
    let using = match role.as_deref() {
        None | Some("NONE") => String::new(),
        Some(roles) => format!(" FOR CURRENT_USER() USING {roles}"),
    };
    let Ok(answer) = session.ask(&format!("SHOW GRANTS{using}")).await? else { return Ok(None) };
    let lines: Vec<String> = rows(&answer).filter_map(|row| row.first().cloned().flatten()).collect();
    Ok(Some(Grants::read(lines.iter().map(String::as_str), partial_revokes)))
}

/// The findings about privileges, for each command.
pub(super) fn privileges(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(grants) = &facts.grants else {
        findings.push(Finding::unknown("privileges", "SHOW GRANTS is refused"));
        return;
    };
    let (account, captured) = (&facts.account, facts.captured.canonical());
    for (gate, privilege) in
        [("privilege to stream", "REPLICATION SLAVE"), ("privilege to ask", "REPLICATION CLIENT")]
    {
        findings.push(if grants.global(privilege) {
            Finding::ok(gate, privilege)
        } else {
            Finding::refuse(gate, Code::MissingPrivilege, format!("tail and sync need {privilege}"))
                .run(format!("GRANT {privilege} ON *.* TO {account}"))
        });
    }
    if !facts.variables.logs_cascades(&facts.session.version) {
        const GATE: &str = "privilege to see cascades";
        let process = grants.global("PROCESS");
        findings.push(if process {
            Finding::ok(GATE, "PROCESS")
        } else {
            let verdict = if facts.allow_cascades { Verdict::Warn } else { Verdict::Refuse };
            Finding::refuse(
                GATE,
                Code::MissingPrivilege,
                "tail and sync need PROCESS to see what cascades without a trace",
            )
            .run(format!("GRANT PROCESS ON *.* TO {account}"))
            .but(verdict)
        });
    }
    // The initial copy reads the tables, and locks each for a moment.
    let lacks: Vec<&str> =
        ["SELECT", "LOCK TABLES"].into_iter().filter(|one| !grants.on_captured(one, &captured)).collect();
    findings.push(if lacks.is_empty() {
        Finding::ok("privileges to copy", "SELECT and LOCK TABLES on what is captured")
    } else {
        let statements = lacks.iter().flat_map(|one| Grants::statement(one, &captured, account));
        Finding::warn(
            "privileges to copy",
            format!("{} not on all that is captured: sync --snapshot needs them", lacks.join(" and ")),
        )
        .run_all(statements)
    });
    let inactive = !grants.roles.is_empty() && !lacks.is_empty();
    if inactive {
        findings.push(
            Finding::warn("roles", format!("granted, perhaps not active: {}", grants.roles.join(", ")))
                .run(format!("ALTER USER {account} DEFAULT ROLE ALL")),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_read_from_its_statement_and_its_hash_is_not_kept() {
        for (statement, plugin, requires_tls, expires) in [
            (
                "CREATE USER `u`@`%` IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$ REQUIRE SSL x' REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK PASSWORD HISTORY DEFAULT PASSWORD REQUIRE CURRENT DEFAULT",
                "caching_sha2_password",
                false,
                "DEFAULT",
            ),
            (
                "CREATE USER `u`@`%` IDENTIFIED WITH 'sha256_password' REQUIRE SSL PASSWORD EXPIRE INTERVAL 90 DAY ACCOUNT UNLOCK",
                "sha256_password",
                true,
                "90",
            ),
            (
                "CREATE USER `u`@`%` IDENTIFIED WITH 'auth_socket' REQUIRE SUBJECT '/CN=x' PASSWORD EXPIRE NEVER ACCOUNT LOCK",
                "auth_socket",
                true,
                "NEVER",
            ),
        ] {
            let want = Account { plugin: Some(plugin.into()), requires_tls, expires: expires.into() };
            assert_eq!(Account::read(statement), want);
        }
        assert_eq!(Account::read(""), Account::default());
    }
}
