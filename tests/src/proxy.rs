//! A TCP proxy that cuts, stalls, delays and turns away, where a test says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// `COM_BINLOG_DUMP_GTID`, as `my_command.h` numbers it.
const COM_BINLOG_DUMP_GTID: u8 = 0x1e;

/// How often a connection that waits looks whether it was told to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What becomes of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is forwarded for as long as it lasts.
    Forward,
    /// It ends after so many bytes from the server, the greeting included.
    Cut(u64),
    /// It ends after so many bytes of the stream that answers the dump request.
    CutStream(u64),
    /// After so many bytes of the stream nothing is forwarded any more, in neither direction, and nobody is told:
    /// a half-open link.
    Stall(u64),
}

/// What all connections share.
#[derive(Debug, Default)]
struct Shared {
    target: Mutex<u16>,
    fates: Mutex<VecDeque<Fate>>,
    /// How long each piece from the server is held back.
    delay_us: AtomicU64,
    /// Rises when all present connections are to end.
    cuts: AtomicU64,
    connections: AtomicU64,
    streams: AtomicU64,
    met: AtomicU64,
    down: AtomicU64,
    end: AtomicBool,
}

/// A proxy on a free port of the loopback address. Dropped, it ends with its connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Forwards to `target`, a port of this machine.
    pub fn start(target: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared { target: Mutex::new(target), ..Shared::default() });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                if serving.end.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&serving);
                thread::spawn(move || serve(client.unwrap(), &shared));
            }
        });
        Proxy { port, shared }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What becomes of the next connections, in order. Those after them are forwarded.
    pub fn plan(&self, fates: impl IntoIterator<Item = Fate>) {
        lock(&self.shared.fates).extend(fates);
    }

    /// How many planned connections have not been made.
    pub fn left(&self) -> usize {
        lock(&self.shared.fates).len()
    }

    /// Where connections made from now on go.
    pub fn retarget(&self, port: u16) {
        *lock(&self.shared.target) = port;
    }

    /// Holds each piece of what servers send back for so long.
    pub fn delay(&self, by: Duration) {
        self.shared.delay_us.store(u64::try_from(by.as_micros()).unwrap(), Ordering::SeqCst);
    }

    /// Ends all present connections.
    pub fn cut_now(&self) {
        self.shared.cuts.fetch_add(1, Ordering::SeqCst);
    }

    /// Connections so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Connections that asked for the stream.
    pub fn streams(&self) -> u64 {
        self.shared.streams.load(Ordering::SeqCst)
    }

    /// Connections that were cut or stalled where the plan said: the others ended before they came so far.
    pub fn met(&self) -> u64 {
        self.shared.met.load(Ordering::SeqCst)
    }

    /// Bytes from servers, over all connections.
    pub fn down(&self) -> u64 {
        self.shared.down.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::SeqCst);
        // The listener wakes up for a last connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

/// One connection, as both of its directions see it.
struct Connection {
    fate: Fate,
    /// Whether the dump was asked for.
    streaming: AtomicBool,
    stalled: AtomicBool,
    over: AtomicBool,
    cuts: u64,
}

fn serve(client: TcpStream, shared: &Arc<Shared>) {
    shared.connections.fetch_add(1, Ordering::SeqCst);
    let fate = lock(&shared.fates).pop_front().unwrap_or(Fate::Forward);
    let port = *lock(&shared.target);
    // A server that is not there is a connection that ends at once.
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let connection = Arc::new(Connection {
        fate,
        streaming: AtomicBool::new(false),
        stalled: AtomicBool::new(false),
        over: AtomicBool::new(false),
        cuts: shared.cuts.load(Ordering::SeqCst),
    });
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LOOK_EVERY)).unwrap();
    }
    let up = {
        let (client, server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let (connection, shared) = (Arc::clone(&connection), Arc::clone(shared));
        thread::spawn(move || carry_up(client, server, &connection, &shared))
    };
    carry_down(&server, &client, &connection, shared);
    connection.over.store(true, Ordering::SeqCst);
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    let _ = up.join();
}

/// The next piece; `None` at the end of the connection.
fn piece<'b>(
    mut from: &TcpStream,
    buffer: &'b mut [u8],
    connection: &Connection,
    shared: &Shared,
) -> Option<&'b [u8]> {
    loop {
        let ended = shared.end.load(Ordering::SeqCst) || connection.over.load(Ordering::SeqCst);
        if ended || shared.cuts.load(Ordering::SeqCst) != connection.cuts {
            return None;
        }
        // A half-open link: what comes is not taken, what is sent goes nowhere, and nobody hears of an end.
        if connection.stalled.load(Ordering::SeqCst) {
            thread::sleep(LOOK_EVERY);
            if is_closed(from) {
                return None;
            }
            continue;
        }
        match from.read(buffer) {
            Ok(0) => return None,
            Ok(length) => return Some(&buffer[..length]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => {}
            Err(_) => return None,
        }
    }
}

fn is_closed(stream: &TcpStream) -> bool {
    matches!(stream.peek(&mut [0]), Ok(0)) || matches!(stream.take_error(), Ok(Some(_)) | Err(_))
}

fn carry_up(client: TcpStream, mut server: TcpStream, connection: &Connection, shared: &Shared) {
    let mut buffer = vec![0; 64 << 10];
    while let Some(bytes) = piece(&client, &mut buffer, connection, shared) {
        // Packet header: three bytes of length and a sequence number, which is 0 for a command.
        if bytes.get(3..5) == Some(&[0, COM_BINLOG_DUMP_GTID]) {
            shared.streams.fetch_add(1, Ordering::SeqCst);
            connection.streaming.store(true, Ordering::SeqCst);
        }
        if server.write_all(bytes).is_err() {
            break;
        }
    }
    connection.over.store(true, Ordering::SeqCst);
}

fn carry_down(server: &TcpStream, mut client: &TcpStream, connection: &Connection, shared: &Shared) {
    let mut buffer = vec![0; 64 << 10];
    let (mut total, mut of_stream) = (0_u64, 0_u64);
    while let Some(mut bytes) = piece(server, &mut buffer, connection, shared) {
        let delay = shared.delay_us.load(Ordering::SeqCst);
        if delay > 0 {
            thread::sleep(Duration::from_micros(delay));
        }
        let streaming = connection.streaming.load(Ordering::SeqCst);
        let left = match connection.fate {
            Fate::Forward => u64::MAX,
            Fate::Cut(after) => after - total,
            Fate::CutStream(after) | Fate::Stall(after) if streaming => after - of_stream,
            Fate::CutStream(_) | Fate::Stall(_) => u64::MAX,
        };
        let meets = left <= bytes.len() as u64;
        if meets {
            bytes = &bytes[..usize::try_from(left).unwrap()];
        }
        total += bytes.len() as u64;
        of_stream += if streaming { bytes.len() as u64 } else { 0 };
        shared.down.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        if client.write_all(bytes).is_err() {
            return;
        }
        if meets {
            shared.met.fetch_add(1, Ordering::SeqCst);
            if !matches!(connection.fate, Fate::Stall(_)) {
                return;
            }
            connection.stalled.store(true, Ordering::SeqCst);
        }
    }
}
