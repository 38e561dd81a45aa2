//! The rules of a driver: tokio's passes, and a wrong one fails each.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    missing_debug_implementations,
    reason = "a test fails by panicking"
)]

mod drivers;

use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use capstan::{Replica, Start, Until, net::Net};
use capstan_conformance::{
    Verdict,
    driver::{Command, DRIVER_RULES, Driver, Lab, LabLink, Running, check_driver},
};
use capstan_core::{replica::LostReason, time::Now};
use drivers::{Plain, Wrong};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Every wrong driver, the rules it breaks, and a word of what is said of it.
const WRONG: [(Wrong, &[&str], &str); 6] = [
    (Wrong::OneOutput, &["pulls_until_idle"], ""),
    (Wrong::Restarts, &["stops_at_halt"], "went on past a halt"),
    (Wrong::ReadsOn, &["honours_pause"], "bytes were read while"),
    (Wrong::NewestEpoch, &["echoes_epochs"], "taken for the one after it"),
    (Wrong::ShortWrites, &["keeps_bytes_in_order"], ""),
    (Wrong::SleepsIn, &["wakes_in_time"], "instead of 30 s"),
];

fn failed(driver: &dyn Driver) -> Vec<(&'static str, String)> {
    let failed = |(rule, verdict): (&'static capstan_conformance::driver::DriverRule, Verdict)| match verdict
    {
        Verdict::Failed(why) => Some((rule.id, why)),
        _ => None,
    };
    check_driver(driver).into_iter().filter_map(failed).collect()
}

#[test]
fn tokios_driver_keeps_every_rule() {
    assert_eq!(failed(&Tokio), []);
}

#[test]
fn a_small_driver_keeps_every_rule_and_a_wrong_one_breaks_its_own() {
    assert_eq!(failed(&Plain(Wrong::Nothing)), []);
    let mut wrong = Vec::new();
    for (fault, rules, says) in WRONG {
        let failed = failed(&Plain(fault));
        let ids: Vec<&str> = failed.iter().map(|(id, _)| *id).collect();
        // A driver that takes one output comes nowhere at all.
        let alone = fault == Wrong::OneOutput || ids == rules;
        if !rules.iter().all(|rule| ids.contains(rule))
            || !alone
            || !failed.iter().any(|(_, why)| why.contains(says))
        {
            wrong.push(format!("{fault:?} breaks {failed:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let broken = |rule: &str| WRONG.iter().any(|(_, rules, _)| rules.contains(&rule));
    assert!(DRIVER_RULES.iter().all(|rule| broken(rule.id)));
}

/// The driver of `capstan` over a lab.
struct Tokio;

impl Driver for Tokio {
    fn run<'a>(&'a self, lab: &'a Lab) -> Running<'a> {
        Box::pin(async move {
            let source = "mysql://repl:secret@lab/?ssl-mode=disabled".parse()?;
            let builder = Replica::builder(source).start(Start::Earliest).until(Until::Set(lab.until()));
            let replica = builder.limits(lab.limits()).seed(lab.seed()).build()?;
            let handle = replica.handle();
            let net = LabNet(lab.clone());
            let mut run = pin!(replica.run_on(&net, lab.sink()));
            let mut asked = pin!(async {
                loop {
                    match lab.next_command().await {
                        Command::Pause => handle.pause(),
                        Command::Resume => handle.resume(),
                    }
                }
            });
            std::future::poll_fn(|cx| {
                let _: Poll<()> = asked.as_mut().poll(cx);
                run.as_mut().poll(cx)
            })
            .await
            .map(|_| ())
        })
    }
}

struct LabNet(Lab);

struct Stream(LabLink);

impl Net for LabNet {
    type Stream = Stream;

    async fn connect(&self, _: &str, _: u16) -> Result<Stream, LostReason> {
        self.0.connect().await.map(Stream)
    }

    fn now(&self) -> Now {
        self.0.now()
    }

    fn unix_time(&self) -> Duration {
        Duration::from_secs(1_700_000_001)
    }

    async fn sleep_until(&self, at: Now) {
        self.0.sleep_until(at).await;
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.initialize_unfilled();
        match self.0.poll_read(cx, room) {
            Poll::Ready(count) => {
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes).map(Ok)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
