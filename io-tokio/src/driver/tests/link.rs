//! The connection by itself: what is written and read, and in which order.

use std::{
    future::poll_fn,
    pin::pin,
    sync::Mutex,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use capstan_core::{
    replica::{DialEpoch, LostReason, Read},
    time::Now,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::super::link::{Link, Said};
use crate::net::Net;

/// Hands out one pipe, and keeps what was handed to TLS.
struct One {
    pipe: Mutex<Option<DuplexStream>>,
    secured: Mutex<Vec<u8>>,
}

impl Net for One {
    type Stream = DuplexStream;

    async fn connect(&self, _: &str, _: u16) -> Result<DuplexStream, LostReason> {
        self.pipe.lock().unwrap().take().ok_or(LostReason::Refused)
    }

    async fn secure(&self, mut stream: DuplexStream, _: &str) -> Result<DuplexStream, LostReason> {
        let mut first = [0; 4];
        stream.read_exact(&mut first).await.map_err(|_| LostReason::TlsFailed)?;
        self.secured.lock().unwrap().extend(first);
        Ok(stream)
    }

    fn now(&self) -> Now {
        Now(0)
    }

    fn unix_time(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep_until(&self, _: Now) {}
}

const DIAL: DialEpoch = DialEpoch(1);

fn pipe(room: usize) -> (One, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(room);
    (One { pipe: Mutex::new(Some(ours)), secured: Mutex::default() }, theirs)
}

async fn said(link: &mut Link<'_, One>, read: Read) -> String {
    let said = poll_fn(|cx| link.poll(cx, read)).await;
    word(said)
}

fn word(said: Said) -> String {
    match said {
        Said::Connected => "connected".to_owned(),
        Said::Secured => "secured".to_owned(),
        Said::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        Said::Lost(reason) => format!("{reason:?}"),
    }
}

/// What it says now, without waiting.
fn at_once(link: &mut Link<'_, One>, read: Read) -> Option<String> {
    let mut polled = pin!(poll_fn(|cx| match link.poll(cx, read) {
        Poll::Ready(said) => Poll::Ready(Some(word(said))),
        Poll::Pending => Poll::Ready(None),
    }));
    let mut cx = Context::from_waker(std::task::Waker::noop());
    match std::future::Future::poll(polled.as_mut(), &mut cx) {
        Poll::Ready(said) => said,
        Poll::Pending => None,
    }
}

const ALL: Read = Read::UpTo(1 << 20);

#[tokio::test]
async fn tls_starts_after_everything_was_written_and_swallows_nothing() {
    // Room for a byte at a time: the request does not fit the pipe at once.
    let (net, mut server) = pipe(4);
    let mut link = Link::new(&net, "db", 3306);
    link.connect(DIAL);
    assert_eq!(said(&mut link, ALL).await, "connected");
    link.transmit(DIAL, Bytes::from_static(b"ssl "));
    link.transmit(DIAL, Bytes::from_static(b"request"));
    link.secure(DIAL);
    // Injected in the clear: it belongs to TLS, which will not like it.
    server.write_all(b"evil").await.unwrap();
    assert_eq!(at_once(&mut link, ALL), None, "read in the clear");
    let mut request = [0; 11];
    let reading = async { server.read_exact(&mut request).await.unwrap() };
    let (_, word) = tokio::join!(reading, said(&mut link, ALL));
    assert_eq!((&request, word.as_str()), (b"ssl request", "secured"));
    assert_eq!(net.secured.lock().unwrap().as_slice(), b"evil");
    server.write_all(b"hi").await.unwrap();
    assert_eq!(said(&mut link, ALL).await, "hi");
}

#[tokio::test]
async fn what_the_server_said_before_it_closed_is_heard_though_writing_fails() {
    let (net, mut server) = pipe(100);
    let mut link = Link::new(&net, "db", 3306);
    link.connect(DIAL);
    assert_eq!(said(&mut link, ALL).await, "connected");
    server.write_all(b"too many connections").await.unwrap();
    drop(server);
    link.transmit(DIAL, Bytes::from_static(b"hello"));
    assert_eq!(said(&mut link, ALL).await, "too many connections");
    assert_eq!(said(&mut link, ALL).await, "Eof");
    assert_eq!(at_once(&mut link, ALL), None, "a lost link says nothing more");
}

#[tokio::test]
async fn a_link_that_cannot_be_written_is_lost_also_while_nothing_is_read() {
    let (net, server) = pipe(100);
    let mut link = Link::new(&net, "db", 3306);
    link.connect(DIAL);
    assert_eq!(said(&mut link, ALL).await, "connected");
    drop(server);
    assert_eq!(at_once(&mut link, Read::Paused), None);
    link.transmit(DIAL, Bytes::from_static(b"hello"));
    assert_eq!(said(&mut link, Read::Paused).await, "Reset");
}

#[tokio::test]
async fn no_more_is_read_than_is_allowed() {
    let (net, mut server) = pipe(100);
    let mut link = Link::new(&net, "db", 3306);
    link.connect(DIAL);
    assert_eq!(said(&mut link, ALL).await, "connected");
    server.write_all(b"abcdef").await.unwrap();
    assert_eq!(at_once(&mut link, Read::Paused), None);
    assert_eq!(said(&mut link, Read::UpTo(2)).await, "ab");
    assert_eq!(said(&mut link, ALL).await, "cdef");
}

#[tokio::test]
async fn what_is_meant_for_another_dial_is_not_sent_and_closes_nothing() {
    let (net, mut server) = pipe(100);
    let mut link = Link::new(&net, "db", 3306);
    link.connect(DIAL);
    assert_eq!(said(&mut link, ALL).await, "connected");
    link.transmit(DialEpoch(0), Bytes::from_static(b"old"));
    link.close(DialEpoch(0));
    link.transmit(DIAL, Bytes::from_static(b"new"));
    assert_eq!(at_once(&mut link, ALL), None);
    let mut got = [0; 3];
    server.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"new");
    link.close(DIAL);
    assert_eq!(server.read(&mut got).await.unwrap(), 0, "closed");
    link.connect(DialEpoch(2));
    assert_eq!(said(&mut link, ALL).await, "Refused");
}
