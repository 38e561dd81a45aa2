//! Several connections: each has its own dials, and none waits for one that never stops.

use std::{collections::VecDeque, future::poll_fn, sync::Mutex, task::Poll, time::Duration};

use bytes::Bytes;
use capstan_core::{
    replica::{CopyLink, CopyRead, DialEpoch, Link, LostReason, Read},
    time::Now,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::super::{link::Said, links::Links};
use crate::net::Net;

/// Hands out pipes in order.
struct Many(Mutex<VecDeque<DuplexStream>>);

impl Net for Many {
    type Stream = DuplexStream;

    async fn connect(&self, _: &str, _: u16) -> Result<DuplexStream, LostReason> {
        self.0.lock().unwrap().pop_front().ok_or(LostReason::Refused)
    }

    fn now(&self) -> Now {
        Now(0)
    }

    fn unix_time(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep_until(&self, _: Now) {}
}

const ALL: [Link; 4] =
    [Link::Stream, Link::Copy(CopyLink::Lock), Link::Copy(CopyLink::View(0)), Link::Copy(CopyLink::View(1))];
const ONE: Read = Read::UpTo(1);

fn pipes() -> (Many, Vec<DuplexStream>) {
    let (ours, theirs) = (0..ALL.len()).map(|_| tokio::io::duplex(100)).unzip();
    (Many(Mutex::new(ours)), theirs)
}

async fn said(links: &mut Links<'_, Many>, stream: Read, copy: Read) -> (Link, u32, String) {
    let (link, epoch, said) = poll_fn(|cx| links.poll(cx, stream, CopyRead::all(copy))).await;
    let word = match said {
        Said::Connected => "connected".to_owned(),
        Said::Secured => "secured".to_owned(),
        Said::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        Said::Lost(reason) => format!("{reason:?}"),
    };
    (link, epoch.0, word)
}

async fn connected(net: &Many) -> Links<'_, Many> {
    let mut links = Links::new(net, "db", 3306);
    for (link, epoch) in ALL.into_iter().zip(1..) {
        links.connect(link, DialEpoch(epoch));
        assert_eq!(said(&mut links, ONE, ONE).await, (link, epoch, "connected".to_owned()));
    }
    links
}

#[tokio::test]
async fn each_is_heard_though_all_of_them_talk() {
    let (net, mut servers) = pipes();
    let mut links = connected(&net).await;
    for server in &mut servers {
        server.write_all(b"aaaa").await.unwrap();
    }
    let mut heard = Vec::new();
    for _ in 0..ALL.len() * 2 {
        heard.push(said(&mut links, ONE, ONE).await.0);
    }
    for turn in heard.chunks(ALL.len()) {
        assert!(ALL.iter().all(|link| turn.contains(link)), "{heard:?}");
    }
}

#[tokio::test]
async fn what_may_be_read_of_the_views_is_not_what_may_be_read_of_the_others() {
    let (net, mut servers) = pipes();
    let mut links = connected(&net).await;
    for server in &mut servers {
        server.write_all(b"ab").await.unwrap();
    }
    for _ in 0..3 {
        let heard = said(&mut links, ONE, Read::Paused).await.0;
        assert!(matches!(heard, Link::Stream | Link::Copy(CopyLink::Lock)), "{heard:?}");
    }
    let pending =
        poll_fn(|cx| Poll::Ready(links.poll(cx, ONE, CopyRead::all(Read::Paused)).is_pending())).await;
    assert!(pending, "a view was read");
    for _ in 0..4 {
        let heard = said(&mut links, Read::Paused, ONE).await.0;
        assert!(matches!(heard, Link::Copy(CopyLink::View(_))), "{heard:?}");
    }
}

#[tokio::test]
async fn one_is_lost_or_closed_and_the_others_go_on() {
    let (net, mut servers) = pipes();
    let mut links = connected(&net).await;
    drop(servers.remove(2));
    assert_eq!(said(&mut links, ONE, ONE).await, (ALL[2], 3, "Eof".to_owned()));
    // Of an older dial, and of the right one.
    links.close(ALL[1], DialEpoch(1));
    links.transmit(ALL[1], DialEpoch(2), Bytes::from_static(b"lock"));
    links.close(ALL[3], DialEpoch(4));
    let pending = poll_fn(|cx| Poll::Ready(links.poll(cx, ONE, CopyRead::all(ONE)).is_pending())).await;
    assert!(pending);
    let mut got = [0; 4];
    servers[1].read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"lock");
    assert_eq!(servers[2].read(&mut got).await.unwrap(), 0, "closed");
    servers[0].write_all(b"x").await.unwrap();
    assert_eq!(said(&mut links, ONE, ONE).await, (Link::Stream, 1, "x".to_owned()));
    // A dial of its own is not that of another link.
    links.connect(ALL[3], DialEpoch(1));
    assert_eq!(said(&mut links, ONE, ONE).await, (ALL[3], 1, "Refused".to_owned()));
}
