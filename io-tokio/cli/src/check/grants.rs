//! `SHOW GRANTS`, read: what an account may, by itself and by the roles that are active.

use std::collections::BTreeSet;

use super::finding::quoted;

/// What an account may.
#[derive(Debug, Default)]
pub(super) struct Grants {
    global: BTreeSet<String>,
    /// By the pattern of a schema's name.
    schemas: Vec<(String, BTreeSet<String>)>,
    tables: Vec<(String, String, BTreeSet<String>)>,
    /// Global privileges that do not hold in a schema (`partial_revokes`).
    revoked: Vec<(String, BTreeSet<String>)>,
    /// Roles that are granted, active or not.
    pub(super) roles: Vec<String>,
    /// With `partial_revokes` the names of schemas are no patterns.
    literal: bool,
}

impl Grants {
    /// Reads the lines of `SHOW GRANTS`.
    pub(super) fn read<'a>(lines: impl IntoIterator<Item = &'a str>, partial_revokes: bool) -> Self {
        let mut grants = Self { literal: partial_revokes, ..Self::default() };
        for line in lines {
            grants.line(line);
        }
        grants
    }

    fn line(&mut self, line: &str) {
        let (is_grant, rest) = match (line.strip_prefix("GRANT "), line.strip_prefix("REVOKE ")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return,
        };
        let Some((privileges, object)) = split(rest, " ON ") else {
            let roles = split(rest, " TO ").map_or(rest, |(roles, _)| roles);
            self.roles.extend(commas(roles).into_iter().map(str::to_owned));
            return;
        };
        let Some((object, _)) = split(object, if is_grant { " TO " } else { " FROM " }) else { return };
        // A privilege on columns is none on the table.
        let set: BTreeSet<String> = commas(privileges)
            .into_iter()
            .filter(|privilege| !privilege.contains('('))
            .map(str::to_ascii_uppercase)
            .collect();
        match (object.strip_suffix(".*"), is_grant) {
            (Some("*"), true) => self.global.extend(set),
            (Some(schema), true) => self.schemas.push((plain(schema), set)),
            (Some(schema), false) => self.revoked.push((plain(schema), set)),
            (None, true) => {
                if let Some((schema, table)) = split(object, ".") {
                    self.tables.push((plain(schema), plain(table), set));
                }
            }
            (None, false) => {}
        }
    }

    /// Whether a privilege holds everywhere it can.
    pub(super) fn everywhere(&self, privilege: &str) -> bool {
        holds(&self.global, privilege) && !self.revoked.iter().any(|(_, set)| holds(set, privilege))
    }

    /// Whether a privilege that is only global is there.
    pub(super) fn global(&self, privilege: &str) -> bool {
        holds(&self.global, privilege)
    }

    /// Whether a privilege holds in every table of a schema.
    pub(super) fn on_schema(&self, privilege: &str, schema: &str) -> bool {
        let revoked = self.revoked.iter().any(|(name, set)| name == schema && holds(set, privilege));
        let by_schema = |(pattern, set): &(String, BTreeSet<String>)| {
            holds(set, privilege) && if self.literal { pattern == schema } else { like(pattern, schema) }
        };
        (holds(&self.global, privilege) && !revoked) || self.schemas.iter().any(by_schema)
    }

    /// Whether a privilege holds on a table.
    pub(super) fn on_table(&self, privilege: &str, schema: &str, table: &str) -> bool {
        self.on_schema(privilege, schema)
            || self
                .tables
                .iter()
                .any(|(s, t, set)| s == schema && (t == table || t == "*") && holds(set, privilege))
    }

    /// Whether a privilege certainly holds on all that `captured`, a canonical text, can name.
    pub(super) fn on_captured(&self, privilege: &str, captured: &str) -> bool {
        if self.everywhere(privilege) {
            return true;
        }
        let patterns = captured.strip_prefix("tables=").and_then(|rest| split(rest, ";"));
        let Some((patterns, _)) = patterns else { return false };
        commas(patterns).into_iter().all(|pattern| match split(pattern, ".") {
            Some((schema, "*")) if is_plain(schema) => self.on_schema(privilege, &plain(schema)),
            Some((schema, table)) if is_plain(schema) && is_plain(table) => {
                self.on_table(privilege, &plain(schema), &plain(table))
            }
            Some(_) | None => false,
        })
    }

    /// `GRANT … ON` the captured tables, as far as they can be named.
    pub(super) fn statement(privilege: &str, captured: &str, account: &str) -> Vec<String> {
        let patterns = captured.strip_prefix("tables=").and_then(|rest| split(rest, ";"));
        let objects: Option<BTreeSet<String>> = patterns.and_then(|(patterns, _)| {
            commas(patterns)
                .into_iter()
                .map(|pattern| match split(pattern, ".") {
                    Some((schema, table)) if is_plain(schema) && is_plain(table) && privilege == "SELECT" => {
                        Some(format!("{schema}.{table}"))
                    }
                    // `_` and `%` are wildcards in the name of a schema.
                    Some((schema, _)) if is_plain(schema) => {
                        let schema = plain(schema).replace('_', "\\_").replace('%', "\\%");
                        Some(format!("{}.*", quoted(&schema)))
                    }
                    Some(_) | None => None,
                })
                .collect()
        });
        let objects = objects.unwrap_or_else(|| BTreeSet::from(["*.*".to_owned()]));
        objects.into_iter().map(|object| format!("GRANT {privilege} ON {object} TO {account}")).collect()
    }
}

fn holds(set: &BTreeSet<String>, privilege: &str) -> bool {
    set.contains(privilege) || set.contains("ALL PRIVILEGES")
}

/// Whether a name in backticks stands for itself.
fn is_plain(name: &str) -> bool {
    name.starts_with('`')
}

fn plain(name: &str) -> String {
    let inner = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
    inner.map_or_else(|| name.to_owned(), |inner| inner.replace("``", "`"))
}

/// At the first of these outside of backticks and parentheses.
fn split<'a>(text: &'a str, at: &str) -> Option<(&'a str, &'a str)> {
    outside(text)
        .find(|index| text.get(*index..).is_some_and(|rest| rest.starts_with(at)))
        .and_then(|index| Some((text.get(..index)?, text.get(index.checked_add(at.len())?..)?)))
}

fn commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((part, tail)) = split(rest, ",") {
        parts.push(part.trim());
        rest = tail;
    }
    parts.push(rest.trim());
    parts
}

/// Places outside of backticks and parentheses.
fn outside(text: &str) -> impl Iterator<Item = usize> {
    let (mut in_name, mut depth) = (false, 0_u32);
    text.char_indices().filter_map(move |(index, char)| {
        let at = !in_name && depth == 0;
        match char {
            '`' => in_name = !in_name,
            '(' if !in_name => depth = depth.saturating_add(1),
            ')' if !in_name => depth = depth.saturating_sub(1),
            _ => {}
        }
        at.then_some(index)
    })
}

/// Whether a name matches a pattern of `GRANT`: `%`, `_`, and a backslash before either.
fn like(pattern: &str, name: &str) -> bool {
    let mut chars = pattern.chars();
    match chars.next() {
        None => name.is_empty(),
        Some('%') => {
            let rest = chars.as_str();
            name.char_indices()
                .map(|(index, _)| index)
                .chain([name.len()])
                .any(|index| name.get(index..).is_some_and(|tail| like(rest, tail)))
        }
        Some(first) => {
            let (any, wanted) = match first {
                '_' => (true, '_'),
                '\\' => (false, chars.next().unwrap_or('\\')),
                other => (false, other),
            };
            let mut names = name.chars();
            names.next().is_some_and(|char| any || char == wanted) && like(chars.as_str(), names.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_where_is_read_from_the_servers_own_words() {
        let grants = Grants::read(
            [
                "GRANT REPLICATION SLAVE, SELECT ON *.* TO `u`@`%` WITH GRANT OPTION",
                "GRANT BACKUP_ADMIN ON *.* TO `u`@`%`",
                "GRANT LOCK TABLES ON `sh\\_op%`.* TO `u`@`%`",
                "GRANT ALL PRIVILEGES ON `d`.* TO `u`@`%`",
                "GRANT INSERT, UPDATE (`a`, `b ON c`) ON `x`.`t TO y` TO `u`@`%`",
                "GRANT `r`@`%`,`s,t`@`%` TO `u`@`%`",
                "REVOKE SELECT ON `secret`.* FROM `u`@`%`",
                "GRANT PROXY ON ``@`` TO `root`@`localhost` WITH GRANT OPTION",
            ],
            false,
        );
        assert!(grants.global("REPLICATION SLAVE") && grants.global("BACKUP_ADMIN"));
        assert!(!grants.global("REPLICATION CLIENT") && !grants.everywhere("SELECT"));
        assert!(grants.on_schema("SELECT", "a") && !grants.on_schema("SELECT", "secret"));
        assert!(grants.on_schema("LOCK TABLES", "sh_op1") && !grants.on_schema("LOCK TABLES", "shxop"));
        assert!(grants.on_schema("LOCK TABLES", "d"));
        assert!(grants.on_table("INSERT", "x", "t TO y") && !grants.on_table("UPDATE", "x", "t TO y"));
        assert_eq!(grants.roles, ["`r`@`%`", "`s,t`@`%`"]);
        for (captured, select, lock) in [
            ("tables=*.*;exclude=;exclude-columns=", false, false),
            ("tables=`a`.*,`d`.`t`;exclude=;exclude-columns=", true, false),
            ("tables=`sh_op`.*;exclude=;exclude-columns=", true, true),
            ("tables=`secret`.*;exclude=;exclude-columns=", false, false),
            ("tables=sh*.*;exclude=;exclude-columns=", false, false),
        ] {
            assert_eq!(grants.on_captured("SELECT", captured), select, "{captured}");
            assert_eq!(grants.on_captured("LOCK TABLES", captured), lock, "{captured}");
        }
        let statement = |privilege| {
            Grants::statement(privilege, "tables=`a_b`.*,`d`.`t`;exclude=;exclude-columns=", "'u'@'%'")
        };
        assert_eq!(
            statement("SELECT"),
            ["GRANT SELECT ON `a\\_b`.* TO 'u'@'%'", "GRANT SELECT ON `d`.`t` TO 'u'@'%'"]
        );
        assert_eq!(
            statement("LOCK TABLES"),
            ["GRANT LOCK TABLES ON `a\\_b`.* TO 'u'@'%'", "GRANT LOCK TABLES ON `d`.* TO 'u'@'%'"]
        );
        let everywhere = Grants::statement("SELECT", "tables=*.*;exclude=;exclude-columns=", "'u'@'%'");
        assert_eq!(everywhere, ["GRANT SELECT ON *.* TO 'u'@'%'"]);
    }

    #[test]
    fn partial_revokes_make_patterns_names() {
        let line = "GRANT SELECT ON `a_b`.* TO `u`@`%`";
        assert!(Grants::read([line], false).on_schema("SELECT", "axb"));
        assert!(!Grants::read([line], true).on_schema("SELECT", "axb"));
        assert!(Grants::read(["GRANT ALL PRIVILEGES ON *.* TO `u`@`%`"], false).everywhere("SELECT"));
    }
}
