use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::*;
use crate::sql::{Context, RowsEffect, Statement, classify};
use proptest::prelude::*;

fn set(tables: &[&str], excludes: &[&str]) -> CapturedSet {
    CapturedSet::parse(tables, excludes, &[]).unwrap()
}

#[test]
fn patterns_capture_what_they_say() {
    // Tables, excludes, names that are captured, names that are not.
    type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str], &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        (
            &[],
            &[],
            &["a.b", "MYSQL.t", "x.y.`z`"],
            &[
                "mysql.user",
                "sys.t",
                "information_schema.TABLES",
                "INFORMATION_SCHEMA.t",
                "performance_schema.t",
            ],
        ),
        (&["*.*"], &[], &["a.b"], &["mysql.user"]),
        (&["a.b"], &[], &["a.b"], &["a.c", "b.b", "A.b", "a.bb", "aa.b"]),
        (&["a.*"], &[], &["a.b", "a.c"], &["b.a", "ab.c"]),
        (&["a.*", "b.c"], &["a.tmp_*"], &["a.t", "b.c"], &["a.tmp_1", "a.tmp_", "b.d"]),
        (&["a.b,c.d", " e.f "], &[], &["a.b", "c.d", "e.f"], &["a.d"]),
        (&["shop_*.order*s"], &[], &["shop_1.orders", "shop_.order_lines"], &["shop_1.order", "shop.orders"]),
        (&["*.*_log"], &["b*.*"], &["a.x_log"], &["b.x_log", "bb.x_log", "a.log"]),
        (&["`a.b`.`c,d``e`"], &[], &["a.b|c,d`e"], &["a.b"]),
        (&["`a*`.`*`"], &[], &["a*|*"], &["ab.c", "a*.c"]),
        (&["m*.*"], &[], &["m.t", "mine.t"], &["mysql.user"]),
        (&["d.tä", "d.日*"], &[], &["d.tä", "d.日本"], &["d.t", "d.本"]),
        (&["a-b.c$d"], &[], &["a-b.c$d"], &[]),
        (&["*.*"], &["mysql.*", "a.*"], &["b.c"], &["a.b"]),
        (&["a.x*y*z"], &[], &["a.xyz", "a.x1yy2zz"], &["a.xzy", "a.xy"]),
    ];
    let split = |name: &str| -> (String, String) {
        let (schema, table) = name.split_once('|').or_else(|| name.split_once('.')).unwrap();
        (schema.to_string(), table.to_string())
    };
    for (tables, excludes, captured, not) in cases {
        let set = set(tables, excludes);
        for (names, expected) in [(captured, true), (not, false)] {
            for name in *names {
                let (schema, table) = split(name);
                assert_eq!(set.captures(&schema, &table), expected, "{tables:?} {excludes:?} {name}");
            }
        }
    }
}

#[test]
fn a_pattern_that_is_none_is_refused_by_option() {
    use PatternFault::*;
    let parts = |found, expected| Parts { found, expected };
    for (text, fault) in [
        ("a", parts(1, 2)),
        ("a.b.c", parts(3, 2)),
        ("", Empty),
        (" ", Empty),
        ("a.b,", Empty),
        ("a.b,,c.d", Empty),
        ("a.", EmptyName),
        (".b", EmptyName),
        ("``.b", EmptyName),
        ("`a.b", OpenQuote),
        ("`a`b.c", BesideQuote),
        ("a.b`c`", BesideQuote),
        ("`a`*.b", BesideQuote),
        ("a b.c", Character(' ')),
        ("a.b%", Character('%')),
        ("a.b?", Character('?')),
        ("\"a\".b", Character('"')),
        ("a.b;c.d", Character(';')),
        ("a/b.c", Character('/')),
        ("mysql.user", SystemSchema),
        ("`Sys`.x", SystemSchema),
        ("information_schema.*", SystemSchema),
    ] {
        let error = CapturedSet::parse(&[text], &[], &[]).unwrap_err();
        assert_eq!((error.option, error.fault), (CaptureOption::Tables, fault), "{text}");
    }
    let exclude = CapturedSet::parse(&["a.b"], &["x"], &[]).unwrap_err();
    assert_eq!(
        exclude.to_string(),
        "--exclude: `x` has 1 part(s) where 2 are needed: write schema.table, schema.* or *.*"
    );
    let column = CapturedSet::parse(&[], &[], &["a.b"]).unwrap_err();
    assert_eq!(
        column.to_string(),
        "--exclude-columns: `a.b` has 2 part(s) where 3 are needed: write schema.table.column"
    );
    // The pattern that is wrong is named, not the list it came in.
    assert_eq!(CapturedSet::parse(&["a.b, c"], &[], &[]).unwrap_err().pattern, "c");
}

#[test]
fn a_schema_is_asked_for_whatever_tables_it_has() {
    let cases: &[(&[&str], &[&str], &str, bool)] = &[
        (&[], &[], "a", true),
        (&[], &[], "mysql", false),
        (&["a.b"], &[], "a", true),
        (&["a.b"], &[], "b", false),
        (&["a.b"], &[], "", false),
        (&["a*.b"], &[], "abc", true),
        (&["*.b"], &[], "z", true),
        (&["*.*"], &["a.*"], "a", false),
        (&["*.*"], &["a.**"], "a", false),
        (&["*.*"], &["a*.*"], "abc", false),
        (&["*.*"], &["a.b*"], "a", true),
        // Nothing is left, but only their names would tell.
        (&["a.b"], &["a.b"], "a", true),
    ];
    for (tables, excludes, schema, expected) in cases {
        assert_eq!(
            set(tables, excludes).captures_schema(schema),
            *expected,
            "{tables:?} {excludes:?} {schema}"
        );
    }
}

#[test]
fn one_more_table_is_left_out_and_nothing_else() {
    let shop = set(&["shop.*"], &["shop.log_*"]);
    for (more, out) in [("shop.secret", "secret"), ("shop.s*", "sorted")] {
        let less = shop.clone().without(more).unwrap();
        assert!(shop.captures("shop", out) && !less.captures("shop", out), "{more}");
        assert!(less.captures("shop", "orders") && !less.captures("shop", "log_1"), "{more}");
        assert!(!less.captures("other", "orders"), "{more}");
    }
    // Where names have no case, the one that is left out has none either.
    let less = shop.with_lower_case_table_names(1).without("Shop.Secret").unwrap();
    assert!(!less.captures("SHOP", "SECRET") && less.captures("SHOP", "ORDERS"));
}

/// Names of schemas and tables keep their case where the server's do, in patterns too: else the column
/// that was to be left out is delivered.
#[test]
fn patterns_of_left_out_columns_keep_the_case_of_schemas_and_tables() {
    let set = CapturedSet::parse(&["*.*"], &[], &["Shop*.T*.Se*"]).unwrap();
    assert!(!set.column_captured("ShopA", "Ta", "SECRET") && !set.column_captured("ShopA", "Ta", "secret"));
    assert!(set.column_captured("shopa", "Ta", "secret") && set.column_captured("ShopA", "ta", "secret"));
}

#[test]
fn columns_are_left_out_in_any_case_of_letters() {
    let set = CapturedSet::parse(&[], &[], &["a.b.Secret", "*.*.pw_*", "`x.y`.t.*"]).unwrap();
    for (schema, table, column, captured) in [
        ("a", "b", "secret", false),
        ("a", "b", "SECRET", false),
        ("a", "B", "secret", true),
        ("a", "c", "secret", true),
        ("q", "r", "PW_hash", false),
        ("q", "r", "pw", true),
        ("x.y", "t", "any", false),
    ] {
        assert_eq!(set.column_captured(schema, table, column), captured, "{schema} {table} {column}");
    }
    assert!(set.leaves_out_columns_of("any", "table"));
    let narrow = CapturedSet::parse(&[], &[], &["a.b.c"]).unwrap();
    assert!(narrow.leaves_out_columns_of("a", "b"));
    assert!(!narrow.leaves_out_columns_of("a", "c"));
}

#[test]
fn names_compare_as_the_server_does() {
    let plain = || CapturedSet::parse(&["Shop.Örders", "X*.*"], &["x1.*"], &["Shop.Örders.Pw"]).unwrap();
    for (lower_case_table_names, folds) in [(0, false), (1, true), (2, true)] {
        let set = plain().with_lower_case_table_names(lower_case_table_names);
        assert!(set.captures("Shop", "Örders"));
        assert_eq!(set.captures("shop", "ÖRDERS"), folds);
        assert_eq!(set.captures("xyz", "t"), folds);
        assert_eq!(set.captures("X1", "t"), !folds);
        assert_eq!(set.captures_schema("SHOP"), folds);
        assert_eq!(set.captures_schema("X1"), !folds);
        assert!(!set.column_captured("Shop", "Örders", "pW"));
        assert_eq!(set.column_captured("SHOP", "örders", "pw"), !folds);
        let all = CapturedSet::everything().with_lower_case_table_names(lower_case_table_names);
        assert_eq!(all.captures("MySQL", "user"), !folds);
        assert!(!all.captures("Information_Schema", "t"));
    }
    let lower = CapturedSet::parse(&["shop.örders", "x*.*"], &["x1.*"], &["shop.örders.pw"]).unwrap();
    assert_ne!(plain(), lower);
    assert_eq!(plain().with_lower_case_table_names(1), lower.with_lower_case_table_names(1));
}

#[test]
fn equal_sets_have_one_text() {
    let a = CapturedSet::parse(&["b.c", "a.*,`x.y`.t", "b.c"], &["a.t*"], &["a.b.D", "*.*.e"]).unwrap();
    let b = CapturedSet::parse(&["`x.y`.`t`", "b.`c`", "a.*"], &["a.t*"], &["*.*.E,a.b.d"]).unwrap();
    assert_eq!(a, b);
    assert_eq!(
        a.canonical(),
        "tables=`a`.*,`b`.`c`,`x.y`.`t`;exclude=`a`.t*;exclude-columns=`a`.`b`.`d`,*.*.`e`"
    );
    assert_eq!(CapturedSet::parse_canonical(&a.canonical()).unwrap(), a);

    assert_eq!(CapturedSet::everything().canonical(), "tables=*.*;exclude=;exclude-columns=");
    assert_eq!(CapturedSet::parse(&["*.*"], &[], &[]).unwrap(), CapturedSet::everything());
    assert_ne!(set(&["a.b"], &[]), set(&["a.b"], &["a.c"]));

    for text in [
        "",
        "tables=*.*",
        "tables=;exclude=;exclude-columns=",
        "tables=*.*;exclude=;exclude-columns=;",
        "tables=a.b;exclude=;exclude-columns=",
        "tables=`b`.`c`,`a`.`b`;exclude=;exclude-columns=",
        "tables=`mysql`.*;exclude=;exclude-columns=",
        "exclude=;tables=*.*;exclude-columns=",
    ] {
        let error = CapturedSet::parse_canonical(text).unwrap_err();
        assert_eq!(
            (error.option, error.fault),
            (CaptureOption::Canonical, PatternFault::NotCanonical),
            "{text}"
        );
    }
}

#[test]
fn ten_thousand_tables_are_found_at_once() {
    let names: Vec<String> = (0..10_000).map(|n| format!("d.t{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let set = set(&names, &[]);
    assert_eq!(set.tables.whole.len(), 10_000);
    assert!(set.tables.wild.is_empty());
    assert!(set.captures("d", "t9999") && !set.captures("d", "t10000"));
}

#[test]
fn what_a_ddl_does_to_the_captured_tables() {
    use RowsEffect::{ChangedWithoutRowEvents as Changed, Unchanged, Unknown};
    let effect = |text: &str| {
        let context = Context {
            default_schema: b"d",
            client_charset: 255,
            sql_mode: 0,
            lower_case_table_names: 2,
            thread_specific: false,
        };
        let Statement::Ddl(ddl) = classify(text.as_bytes(), &context) else { panic!("{text}") };
        let set = CapturedSet::parse(&["d.t", "d.u", "full.*", "x.t"], &[], &[]).unwrap();
        let effect = set.with_lower_case_table_names(2).effect_of(&ddl)?;
        Some((effect.rows, effect.entered, effect.left))
    };
    for (text, expected) in [
        ("DROP TABLE t", Some((Changed, false, false))),
        ("DROP TABLE z, T", Some((Changed, false, false))),
        ("DROP TABLE z", None),
        ("DROP TEMPORARY TABLE t", None),
        ("DROP DATABASE d", Some((Changed, false, false))),
        ("DROP DATABASE z", None),
        ("CREATE DATABASE full", Some((Unchanged, false, false))),
        ("GRANT ALL ON *.* TO u", None),
        ("CREATE TABLE z LIKE t", None),
        ("CREATE TABLE t LIKE z", Some((Unchanged, false, false))),
        ("ALTER TABLE t ADD COLUMN c INT", Some((Changed, false, false))),
        ("ALTER TABLE z EXCHANGE PARTITION p WITH TABLE t", Some((Changed, false, false))),
        ("IMPORT TABLE FROM 'x'", Some((Changed, false, false))),
        ("SOMETHING NEW", Some((Unknown, false, false))),
        ("RENAME TABLE t TO u", Some((Unchanged, false, false))),
        ("RENAME TABLE t TO z", Some((Changed, false, true))),
        ("RENAME TABLE z TO t", Some((Unknown, true, false))),
        ("ALTER TABLE z RENAME TO t", Some((Unknown, true, false))),
        ("ALTER TABLE z RENAME TO t, ADD COLUMN c INT", Some((Changed, true, false))),
        ("RENAME TABLE y TO z", None),
        ("RENAME TABLE t TO x.t", Some((Unchanged, false, false))),
        // BL-43: the cut-over of gh-ost and pt-online-schema-change.
        ("RENAME TABLE t TO _t_old, _t_new TO t", Some((Unknown, true, true))),
        // Over a name outside of the set and back.
        ("RENAME TABLE t TO tmp, u TO t, tmp TO u", Some((Unchanged, false, false))),
        ("RENAME TABLE t TO tmp, u TO t, TMP TO u", Some((Unchanged, false, false))),
        ("RENAME TABLE t TO tmp, tmp TO z", Some((Changed, false, true))),
        ("RENAME TABLE z TO tmp, tmp TO t", Some((Unknown, true, false))),
    ] {
        assert_eq!(effect(text), expected, "{text}");
    }
}

#[test]
#[allow(clippy::wildcard_enum_match_arm, reason = "it shows whatever it is")]
fn the_effect_on_what_is_captured() {
    use crate::sql::{AlterOperation, SchemaEffect, TableName};
    let effect = |text: &str, lower_case_table_names| {
        let context = Context {
            default_schema: b"d",
            client_charset: 255,
            sql_mode: 0,
            lower_case_table_names,
            thread_specific: false,
        };
        let Statement::Ddl(ddl) = classify(text.as_bytes(), &context) else { panic!("{text}") };
        let set = CapturedSet::parse(&["d.t", "d.u", "x.t"], &[], &["d.t.secret"]).unwrap();
        set.with_lower_case_table_names(lower_case_table_names).effect_of(&ddl).unwrap().effect
    };
    let name = |name: &TableName| alloc::format!("{}.{}", name.schema, name.table);
    let shown = |effect: SchemaEffect| match effect {
        SchemaEffect::RenameTables(moves) | SchemaEffect::AlterTable { moves, .. } if !moves.is_empty() => {
            let shown = moves.iter().map(|one| {
                alloc::format!("{}>{}", name(&one.from), one.to.as_ref().map_or_else(|| "out".into(), name))
            });
            shown.collect::<Vec<_>>().join(" ")
        }
        SchemaEffect::TableEntered { entered, moves } => {
            let entered = entered.iter().map(|one| alloc::format!("+{}", name(one)));
            let left = moves.iter().map(|one| alloc::format!("{}>", name(&one.from)));
            entered.chain(left).collect::<Vec<_>>().join(" ")
        }
        SchemaEffect::DropTables(tables) => tables.iter().map(name).collect::<Vec<_>>().join(" "),
        SchemaEffect::AlterTable { operations, .. } => {
            let shown = operations.iter().map(|operation| match operation {
                AlterOperation::Add(column, _) | AlterOperation::Change { column, .. } => {
                    alloc::format!("{}{}", column.name, if column.left_out { "-" } else { "+" })
                }
                AlterOperation::Unfollowed(why) => why.as_str().into(),
                AlterOperation::Drop(_) | AlterOperation::Default | AlterOperation::Rename { .. } => {
                    "other".into()
                }
            });
            shown.collect::<Vec<String>>().join(" ")
        }
        other => alloc::format!("{other:?}"),
    };
    for (text, expected) in [
        ("RENAME TABLE t TO u", "d.t>d.u"),
        ("RENAME TABLE t TO z", "d.t>out"),
        ("RENAME TABLE z TO t", "+d.t"),
        ("RENAME TABLE t TO _old, _new TO t", "+d.t d.t>"),
        ("RENAME TABLE t TO tmp, u TO t, tmp TO u", "d.t>d.u d.u>d.t"),
        ("RENAME TABLE t TO a, a TO b, b TO x.t", "d.t>x.t"),
        ("ALTER TABLE t RENAME TO u", "d.t>d.u"),
        ("ALTER TABLE t RENAME z, ADD c INT", "d.t>out"),
        ("DROP TABLE z, t, u", "d.t d.u"),
        ("ALTER TABLE t ADD c INT, ADD Secret INT", "c+ Secret-"),
        ("ALTER TABLE t CHANGE c d INT", "d+"),
        ("ALTER TABLE t MODIFY secret INT", "secret-"),
        ("ALTER TABLE t CHANGE secret plain INT", "left_out_column"),
        ("ALTER TABLE t CHANGE plain secret INT", "left_out_column"),
        ("ALTER TABLE t RENAME COLUMN plain TO secret", "left_out_column"),
        ("ALTER TABLE u RENAME COLUMN plain TO secret", "other"),
        ("TRUNCATE t", "TruncateTable(TableName { schema: \"d\", table: \"t\" })"),
    ] {
        assert_eq!(shown(effect(text, 0)), expected, "{text}");
    }
    // On a server that keeps names as written and compares them otherwise, which spelling rows come
    // under is not known.
    assert_eq!(shown(effect("TRUNCATE T", 2)), "Unfollowed(NotUnderstood)");
    assert_eq!(shown(effect("DROP DATABASE D", 2)), "Unfollowed(NotUnderstood)");
    assert_eq!(shown(effect("RENAME TABLE t TO u", 2)), "d.t>d.u");
    assert_eq!(shown(effect("RENAME TABLE T TO U", 1)), "d.t>d.u");
}

#[test]
fn a_set_holds_another_by_its_patterns() {
    let set = |tables: &str, excludes: &str| {
        let excludes: Vec<&str> = if excludes.is_empty() { Vec::new() } else { alloc::vec![excludes] };
        CapturedSet::parse(&[tables], &excludes, &[]).unwrap()
    };
    for (more, less, holds) in [
        (("d.*", ""), ("d.*", ""), true),
        (("d.*,e.t", ""), ("d.*", ""), true),
        (("d.*", ""), ("d.a,d.b*", ""), true),
        (("*.*", ""), ("d.*,e.x", ""), true),
        (("d.*", ""), ("d.*", "d.x"), true),
        (("d.*", "d.x"), ("d.*", "d.x,d.y*"), true),
        (("d.*", "d.x"), ("d.*", "d.*"), true),
        (("d.*", ""), ("d.*,e.t", ""), false),
        (("d.*", "d.x"), ("d.*", ""), false),
        (("d.a*", ""), ("d.a,d.b", ""), false),
        (("d*.*", ""), ("d1.*", ""), true),
        (("d*.*", ""), ("d1*.*", ""), false),
    ] {
        assert_eq!(set(more.0, more.1).holds(&set(less.0, less.1)), holds, "{more:?} {less:?}");
    }
    let left_out = CapturedSet::parse(&["d.*"], &[], &["d.t.a"]).unwrap();
    assert!(!set("d.*", "").holds(&left_out) && !left_out.holds(&set("d.*", "")));
    let both = set("d.a", "").with_tables_of(&set("d.b*,e.c", ""));
    assert_eq!(both, set("d.a,d.b*,e.c", ""));
}

proptest! {
    #[test]
    fn any_text_is_a_set_or_refused(text in "[ab.*`, ;=%]{0,20}") {
        for set in [
            CapturedSet::parse(&[&text], &[&text], &[]),
            CapturedSet::parse(&[], &[], &[&text]),
            CapturedSet::parse_canonical(&text),
        ].into_iter().flatten() {
            prop_assert_eq!(CapturedSet::parse_canonical(&set.canonical()).unwrap(), set);
        }
    }

    #[test]
    fn a_wildcard_matches_as_the_plain_recursion_does(form in "[ab*]{0,8}", name in "[ab]{0,8}") {
        fn plain(form: &[u8], name: &[u8]) -> bool {
            match (form, name) {
                ([], []) => true,
                ([b'*', after @ ..], _) if plain(after, name) => true,
                ([b'*', ..], [_, rest @ ..]) => plain(form, rest),
                ([f, form @ ..], [n, name @ ..]) => f == n && plain(form, name),
                _ => false,
            }
        }
        prop_assume!(form.contains('*'));
        let text = format!("{form}.x");
        let pattern = pattern::parse_list::<2>(CaptureOption::Tables, &[&text]).unwrap();
        prop_assert_eq!(pattern[0].1.matches([&name, "x"]), plain(form.as_bytes(), name.as_bytes()));
    }

    #[test]
    fn any_name_in_backticks_captures_itself(schema in "[^\\x00]{1,20}", table in "[^\\x00]{1,20}") {
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let pattern = format!("{}.{}", quoted(&schema), quoted(&table));
        if let Ok(set) = CapturedSet::parse(&[&pattern], &[], &[]) {
            prop_assert!(set.captures(&schema, &table));
            prop_assert_eq!(CapturedSet::parse_canonical(&set.canonical()).unwrap(), set);
        } else {
            prop_assert!(is_system_schema(&schema.to_ascii_lowercase()));
        }
    }
}
