//! A capture script: SQL with a few directives, each a comment line of its own.
//!
//! | line | means |
//! |---|---|
//! | `-- flavour: mysql56` | the server's kind |
//! | `-- option: --binlog-checksum=NONE` | an option of the server |
//! | `-- truth: SELECT …` | the rows that a reader of the binlog must come to; goes on over `--   ` lines |
//! | `-- in-use` | the last file is taken while the server still writes it |
//! | `-- session: NAME` | what follows runs in that session, opened at its first use (at the start: `main`) |
//! | `-- close: NAME` | closes that session |
//! | `-- fails` | the server must refuse what follows, up to the next directive; then `-- goes on` |
//! | `-- restart`, `-- kill9` | a clean restart; a kill and a restart. All sessions are gone |
//! | `-- old temporals: DB.TABLE` | turns TIME, TIMESTAMP and BIGINT columns into TIME, TIMESTAMP, DATETIME before 5.6 |

use capstan_mysql::{Flavour, LaunchError};

use super::failure;

#[derive(Default)]
pub(super) struct Script {
    pub(super) flavour: Flavour,
    pub(super) options: Vec<String>,
    pub(super) truth: Option<String>,
    pub(super) in_use: bool,
    pub(super) steps: Vec<Step>,
}

pub(super) enum Step {
    Run { statements: Vec<u8>, fails: bool },
    Session(String),
    Close(String),
    Restart,
    Kill9,
    OldTemporals { schema: String, table: String },
}

impl Script {
    /// Reads a script. It is bytes, not text: some are written in the character set of their client.
    pub(super) fn parse(bytes: &[u8]) -> Result<Script, LaunchError> {
        let mut script = Script::default();
        let mut statements = Vec::new();
        let mut fails = false;
        let mut in_truth = false;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let directive =
                std::str::from_utf8(line).ok().and_then(|text| text.strip_prefix("-- ")).map(str::trim_end);
            let Some(directive) = directive else {
                in_truth = false;
                statements.extend(line);
                continue;
            };
            if let (true, Some(more)) = (in_truth, directive.strip_prefix("  ")) {
                script.truth.get_or_insert_default().push_str(&format!(" {}", more.trim()));
                continue;
            }
            in_truth = false;
            let (word, argument) = directive.split_once(": ").unwrap_or((directive, ""));
            if matches!(
                word,
                "session" | "close" | "fails" | "goes on" | "restart" | "kill9" | "old temporals"
            ) {
                script.add(std::mem::take(&mut statements), fails);
                fails = word == "fails";
            }
            match word {
                "flavour" => script.flavour = flavour(argument)?,
                "option" => script.options.push(argument.to_owned()),
                "truth" => {
                    script.truth = Some(argument.to_owned());
                    in_truth = true;
                }
                "in-use" => script.in_use = true,
                "session" => script.steps.push(Step::Session(argument.to_owned())),
                "close" => script.steps.push(Step::Close(argument.to_owned())),
                "restart" => script.steps.push(Step::Restart),
                "kill9" => script.steps.push(Step::Kill9),
                "old temporals" => {
                    let (schema, table) = argument.split_once('.').unwrap_or_default();
                    script
                        .steps
                        .push(Step::OldTemporals { schema: schema.to_owned(), table: table.to_owned() });
                }
                "fails" | "goes on" => {}
                _ => statements.extend(line), // a comment that is part of the script
            }
        }
        script.add(statements, fails);
        Ok(script)
    }

    fn add(&mut self, statements: Vec<u8>, fails: bool) {
        if !statements.trim_ascii().is_empty() {
            self.steps.push(Step::Run { statements: statements.trim_ascii().to_vec(), fails });
        }
    }
}

fn flavour(name: &str) -> Result<Flavour, LaunchError> {
    Flavour::from_name(name).ok_or_else(|| failure(format!("there is no flavour {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_divide_a_script() {
        let text = b"-- flavour: mysql56\n-- option: --a=1\n-- option: --b\n-- truth: SELECT 1,\n--   2 FROM t\n\
            -- What it is about.\nINSERT 1;\n-- session: b\nINSERT 2;\n-- fails\nINSERT 3;\n-- goes on\nINSERT '\xff';\n-- kill9\n";
        let script = Script::parse(text).unwrap();
        assert_eq!(script.flavour, Flavour::Mysql56);
        assert_eq!(script.options, ["--a=1", "--b"]);
        assert_eq!(script.truth.as_deref(), Some("SELECT 1, 2 FROM t"));
        let steps: Vec<String> = script
            .steps
            .iter()
            .map(|step| match step {
                Step::Run { statements, fails } => format!("{} {fails}", String::from_utf8_lossy(statements)),
                Step::Session(name) => format!("session {name}"),
                Step::Close(name) => format!("close {name}"),
                Step::Restart => "restart".to_owned(),
                Step::Kill9 => "kill9".to_owned(),
                Step::OldTemporals { .. } => "old temporals".to_owned(),
            })
            .collect();
        let expected = [
            "-- What it is about.\nINSERT 1; false",
            "session b",
            "INSERT 2; false",
            "INSERT 3; true",
            "INSERT '\u{fffd}'; false",
            "kill9",
        ];
        assert_eq!(steps, expected);
    }
}
