//! Global variables.

use std::borrow::Cow;

/// Global variables by lower-case name: few, so they are looked for one by one.
#[derive(Clone, Debug)]
pub struct Variables(Vec<(Cow<'static, str>, Cow<'static, str>)>);

/// The settings a replica asks for, as they should be.
const GOOD: [(&str, &str); 11] = [
    ("binlog_format", "ROW"),
    ("binlog_row_image", "FULL"),
    ("binlog_row_metadata", "FULL"),
    ("binlog_row_value_options", ""),
    ("gtid_mode", "ON"),
    ("innodb_native_foreign_keys", "OFF"),
    ("innodb_read_only", "OFF"),
    ("log_bin", "ON"),
    ("log_replica_updates", "ON"),
    ("log_slave_updates", "ON"),
    ("lower_case_table_names", "0"),
];

impl Default for Variables {
    fn default() -> Self {
        Self(GOOD.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }
}

impl Variables {
    /// The value of a variable, if the server has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) if known == value => {}
            Some((_, known)) => *known = value.to_owned().into(),
            None => self.0.push((name.to_owned().into(), value.to_owned().into())),
        }
    }
}
