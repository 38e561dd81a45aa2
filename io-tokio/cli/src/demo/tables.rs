//! The tables, and the triggers that note what happens to them.
//!
//! A row's text is the same on both sides: its values as MySQL's `QUOTE` gives them, joined by commas.
//! The server makes it in a trigger and keeps its SHA-256; nothing of the reader's code has a part in that.

/// How a column's value becomes text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// As the server prints it.
    Text,
    /// The document, as the server prints it.
    Json,
    /// In hexadecimal.
    Binary,
}

/// A table of schema `shop`.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The one session that writes it; the order of changes is compared for each session.
    pub(super) writer: u8,
    definition: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
}

/// The sessions that write.
pub(super) const WRITERS: [u8; 2] = [1, 2];

/// The tables.
pub(super) const TABLES: [Table; 4] = [
    Table {
        name: "customers",
        writer: 1,
        definition: "id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(80) NOT NULL, born DATE, \
                     profile JSON, orders INT NOT NULL DEFAULT 0, seen DATETIME(6) NOT NULL",
        columns: &[
            ("id", Kind::Text),
            ("name", Kind::Text),
            ("born", Kind::Text),
            ("profile", Kind::Json),
            ("orders", Kind::Text),
            ("seen", Kind::Text),
        ],
    },
    Table {
        name: "orders",
        writer: 1,
        definition: "id INT UNSIGNED PRIMARY KEY, customer BIGINT UNSIGNED NOT NULL, \
                     status ENUM('new', 'paid', 'sent', 'cancelled') NOT NULL, total DECIMAL(12,2) NOT NULL, \
                     placed TIMESTAMP(3) NOT NULL, note TEXT",
        columns: &[
            ("id", Kind::Text),
            ("customer", Kind::Text),
            ("status", Kind::Text),
            ("total", Kind::Text),
            ("placed", Kind::Text),
            ("note", Kind::Text),
        ],
    },
    Table {
        name: "order_lines",
        writer: 1,
        definition: "order_id INT UNSIGNED, line SMALLINT, sku BINARY(8) NOT NULL, quantity MEDIUMINT NOT NULL, \
                     price DECIMAL(20,10) NOT NULL, PRIMARY KEY (order_id, line)",
        columns: &[
            ("order_id", Kind::Text),
            ("line", Kind::Text),
            ("sku", Kind::Binary),
            ("quantity", Kind::Text),
            ("price", Kind::Text),
        ],
    },
    Table {
        name: "documents",
        writer: 2,
        definition: "id INT PRIMARY KEY, kind CHAR(8) NOT NULL, body MEDIUMBLOB, meta JSON, \
                     duration TIME(2), edition YEAR",
        columns: &[
            ("id", Kind::Text),
            ("kind", Kind::Text),
            ("body", Kind::Binary),
            ("meta", Kind::Json),
            ("duration", Kind::Text),
            ("edition", Kind::Text),
        ],
    },
];

/// Everything the server needs before the writers begin.
pub(super) fn script() -> String {
    let mut script = String::from(
        "CREATE DATABASE shop DEFAULT CHARACTER SET utf8mb4;
         CREATE DATABASE audit;
         CREATE TABLE audit.log (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, writer TINYINT NOT NULL,
             trx BIGINT NOT NULL, op VARCHAR(8) NOT NULL, tbl VARCHAR(64) NOT NULL,
             was CHAR(64) CHARACTER SET ascii, becomes CHAR(64) CHARACTER SET ascii, KEY (writer, id));\n",
    );
    for table in &TABLES {
        let (name, writer) = (table.name, table.writer);
        script.push_str(&format!("CREATE TABLE shop.{name} ({});\n", table.definition));
        let (old, new) = (table.hash("OLD"), table.hash("NEW"));
        for (op, was, becomes) in
            [("insert", "NULL", &*new), ("update", &*old, &*new), ("delete", &*old, "NULL")]
        {
            script.push_str(&format!(
                "CREATE TRIGGER shop.{name}_{op} AFTER {op} ON shop.{name} FOR EACH ROW \
                 INSERT INTO audit.log (writer, trx, op, tbl, was, becomes) \
                 VALUES ({writer}, @trx, '{op}', '{name}', {was}, {becomes});\n"
            ));
        }
    }
    script
}

impl Table {
    /// The hash of a row in SQL.
    fn hash(&self, row: &str) -> String {
        let texts: Vec<String> = self
            .columns
            .iter()
            .map(|(name, kind)| match kind {
                Kind::Text => format!("QUOTE({row}.{name})"),
                Kind::Json => format!("QUOTE(CAST({row}.{name} AS CHAR))"),
                Kind::Binary => format!("QUOTE(HEX({row}.{name}))"),
            })
            .collect();
        format!("SHA2(CONCAT_WS(',', {}), 256)", texts.join(", "))
    }
}

/// MySQL's `QUOTE`, written from its manual.
pub(super) fn quote(out: &mut String, value: Option<&str>) {
    let Some(value) = value else {
        out.push_str("NULL");
        return;
    };
    out.push('\'');
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '\0' => out.push_str("\\0"),
            '\u{1a}' => out.push_str("\\Z"),
            c => out.push(c),
        }
    }
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quote_is_as_the_manual_has_it() {
        // The server's: SELECT QUOTE('Don\'t!'), QUOTE(NULL), QUOTE(X'5c001a').
        for (value, want) in [
            (Some("Don't!"), r"'Don\'t!'"),
            (None, "NULL"),
            (Some("\\\0\u{1a}"), r"'\\\0\Z'"),
            (Some(""), "''"),
        ] {
            let mut out = String::new();
            quote(&mut out, value);
            assert_eq!(out, want);
        }
    }
}
