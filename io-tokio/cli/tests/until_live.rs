//! An end that the source has not executed: told at once, and waited for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::Stdio,
};

use capstan_mysql::Server;
use common::command;

/// Red without the warning: nothing is said, and the test waits for a line that never comes.
#[test]
fn an_end_that_is_not_executed_yet_is_told_at_once_and_reached_later() {
    let server = Server::start().expect("a server");
    server.sql("RESET BINARY LOGS AND GTIDS; CREATE DATABASE d").unwrap();
    let uuid = server.sql("SELECT @@server_uuid").unwrap().trim().to_owned();
    let mut tail = command()
        .args(["tail", &server.url(), "--start", "earliest", "--until", &format!("{uuid}:1-3"), "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tail.stderr.take().unwrap()).lines();
    let said = lines.next().expect("a line before its end").unwrap();
    assert!(said.contains(&format!("missing={uuid}:2-3")), "{said}");
    server.sql("CREATE TABLE d.t (a INT); INSERT INTO d.t VALUES (1)").unwrap();
    let mut out = String::new();
    tail.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(tail.wait().unwrap().success());
    assert!(out.contains(&format!("{uuid}:3")), "{out}");
}
