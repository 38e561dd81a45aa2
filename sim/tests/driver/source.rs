//! The source: a simulated server that outlives the host it runs on, and the history it has committed.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard},
    task::Poll,
    time::Duration,
};

use capstan::{Gtid, GtidSet, Uuid, net::Net};
use capstan_fake_source::{Group, Server, server::SessionId};
use sim::{
    choices::Choices,
    truth::Entry,
    workload::{SHAPES, Shape, Workload},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::Notify,
};

use super::lock;

const SOURCE: Uuid = Uuid([0xaa; 16]);

/// How often the server looks whether a heartbeat is due.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What becomes of an accepted link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It lasts.
    Lasts,
    /// It is closed in order after so many bytes to the client.
    Eof(u64),
    /// The server says hello and closes without having read the answer: the client is reset.
    UnreadReset,
    /// It is accepted and nothing is ever said.
    Mute,
}

/// The source. A clone is the same one.
#[derive(Clone)]
pub struct Origin(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    server: Server,
    workload: Workload,
    history: Vec<Entry>,
    /// Of the links to come, in order; then they last.
    fates: VecDeque<Fate>,
    /// Longest write.
    piece: usize,
    accepted: u64,
    boots: u32,
    deaf: bool,
    bytes_out: u64,
}

impl Origin {
    pub fn new(seed: u64) -> Self {
        let state = State {
            server: Server::new(SOURCE, 1, "9.7.4"),
            // Rows of a size that a driver meets: its limits are not an eighth of a server's.
            workload: Workload::seeded(seed).with_lines_of(6_000),
            history: Vec::new(),
            fates: VecDeque::new(),
            piece: 1400,
            accepted: 0,
            boots: 0,
            deaf: false,
            bytes_out: 0,
        };
        Self(Arc::new(Inner { state: Mutex::new(state), changed: Notify::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    /// Commits one transaction.
    pub fn commit(&self, shape: Shape) {
        self.append(|state, gtid, at| state.workload.make(shape, gtid, at));
    }

    /// Commits one transaction of so many rows of 6,000 bytes.
    pub fn commit_huge(&self, rows: usize) {
        self.append(|state, gtid, at| state.workload.huge(rows, gtid, at));
    }

    fn append(&self, make: impl FnOnce(&mut State, Gtid, u64) -> (Arc<Group>, Entry)) {
        {
            let state = &mut *self.state();
            let n = state.history.len() as u64 + 1;
            let gtid: Gtid = format!("{SOURCE}:{n}").parse().unwrap();
            let (group, entry) = make(state, gtid, 1_700_000_000_000_000 + n);
            state.server.append(&group);
            state.history.push(entry);
        }
        self.0.changed.notify_waiters();
    }

    pub fn commit_all(&self, shapes: &[Shape]) {
        shapes.iter().for_each(|shape| self.commit(*shape));
    }

    /// One of each shape.
    pub fn commit_one_of_each(&self) {
        self.commit_all(SHAPES);
    }

    /// Commits so many, of shapes that `choices` draws, few of them big.
    pub fn commit_some(&self, count: u64, choices: &mut Choices) {
        for _ in 0..count {
            let shape = if choices.chance(1, 12) { Shape::Big } else { choices.pick(&SHAPES[..13]) };
            self.commit(shape);
        }
    }

    /// `FLUSH BINARY LOGS`.
    pub fn rotate(&self) {
        self.state().server.rotate();
        self.0.changed.notify_waiters();
    }

    pub fn executed(&self) -> GtidSet {
        self.state().server.executed().clone()
    }

    pub fn history(&self) -> Vec<Entry> {
        self.state().history.clone()
    }

    pub fn committed(&self) -> usize {
        self.state().history.len()
    }

    pub fn fates(&self, fates: impl IntoIterator<Item = Fate>) {
        self.state().fates.extend(fates);
    }

    pub fn pieces_of(&self, bytes: usize) {
        self.state().piece = bytes;
    }

    /// Error that every greeting is replaced by.
    pub fn refuse(&self, refusal: Option<(u16, &str)>) {
        self.state().server.refuses = refusal.map(|(number, text)| (number, text.to_owned()));
    }

    /// Whether its host listens once it is up.
    pub fn listen(&self, yes: bool) {
        self.state().deaf = !yes;
    }

    /// Waits until it is to listen.
    pub async fn may_listen<N: Net>(&self, net: &N) {
        while self.state().deaf {
            net.sleep_until(net.now().after(LOOK_EVERY)).await;
        }
    }

    /// Links taken so far.
    pub fn accepted(&self) -> u64 {
        self.state().accepted
    }

    /// Bytes written to links so far.
    pub fn bytes_out(&self) -> u64 {
        self.state().bytes_out
    }

    /// `mysqld` starts. What it knew of its sessions is gone, if it ran before.
    pub fn boot(&self) {
        let mut state = self.state();
        state.boots += 1;
        if state.boots > 1 {
            let created = state.boots;
            state.server.restart(false, created);
        }
    }

    /// Speaks with one client until either side is gone.
    pub async fn serve<N: Net>(self, net: N, stream: N::Stream) {
        let (id, fate) = {
            let mut state = self.state();
            state.accepted += 1;
            (state.server.connect(), state.fates.pop_front().unwrap_or(Fate::Lasts))
        };
        let session = Session { origin: self, id };
        match fate {
            Fate::Lasts => session.speak(&net, stream, u64::MAX).await,
            Fate::Eof(bytes) => session.speak(&net, stream, bytes).await,
            Fate::UnreadReset => session.unread(&net, stream).await,
            Fate::Mute => {
                let mut stream = stream;
                let mut buffer = [0; 512];
                while matches!(stream.read(&mut buffer).await, Ok(n) if n > 0) {}
            }
        }
    }
}

struct Session {
    origin: Origin,
    id: SessionId,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.origin.state().server.close(self.id);
    }
}

enum Woken {
    Read(usize),
    Gone,
    Other,
}

impl Session {
    async fn speak<N: Net>(self, net: &N, mut stream: N::Stream, until: u64) {
        let mut left = until;
        let mut buffer = vec![0; 4096];
        loop {
            let mut changed = pin!(self.origin.0.changed.notified());
            changed.as_mut().enable();
            let (bytes, closed) = self.pull(net.now().0);
            if !bytes.is_empty() {
                let fits = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let written = stream.write_all(&bytes[..fits]).await.is_ok() && stream.flush().await.is_ok();
                if !written || fits < bytes.len() {
                    return;
                }
                self.origin.state().bytes_out += fits as u64;
                left -= fits as u64;
                continue;
            }
            if closed {
                return;
            }
            let woken = {
                let mut read = pin!(stream.read(&mut buffer));
                let mut timer = pin!(net.sleep_until(net.now().after(LOOK_EVERY)));
                poll_fn(|cx| {
                    if let Poll::Ready(read) = read.as_mut().poll(cx) {
                        return Poll::Ready(match read {
                            Ok(0) | Err(_) => Woken::Gone,
                            Ok(n) => Woken::Read(n),
                        });
                    }
                    if changed.as_mut().poll(cx).is_ready() || timer.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(Woken::Other);
                    }
                    Poll::Pending
                })
                .await
            };
            match woken {
                Woken::Gone => return,
                Woken::Read(n) => self.origin.state().server.receive(self.id, &buffer[..n], net.now().0),
                Woken::Other => {}
            }
        }
    }

    fn pull(&self, now: u64) -> (bytes::Bytes, bool) {
        let state = &mut *self.origin.state();
        state.server.tick(self.id, now);
        let piece = state.piece;
        let bytes = if state.server.has_output(self.id) {
            state.server.pull(self.id, piece, now)
        } else {
            bytes::Bytes::new()
        };
        (bytes, state.server.is_closed(self.id))
    }

    async fn unread<N: Net>(self, net: &N, mut stream: N::Stream) {
        let (greeting, _) = self.pull(net.now().0);
        let _ = stream.write_all(&greeting).await;
        let _ = stream.flush().await;
        // The answer arrives in this time, and is left.
        net.sleep_until(net.now().after(Duration::from_millis(300))).await;
    }
}
