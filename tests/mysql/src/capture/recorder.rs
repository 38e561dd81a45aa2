//! A TCP proxy that records every packet of every connection through it.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use capstan_mysql::{HOST, LaunchError, Server};

const TLS_BEGINS: &str = "# what follows is encrypted\n";

/// Who sent a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Client,
    Server,
}

/// The packets of one connection in the order in which they were whole.
#[derive(Default)]
struct Recording {
    packets: Vec<(From, Vec<u8>)>,
    unfinished: [Vec<u8>; 2],
}

/// Stands before a server until it is finished.
pub(super) struct Recorder {
    address: SocketAddr,
    connections: Arc<Mutex<Vec<Arc<Mutex<Recording>>>>>,
}

impl Recorder {
    pub(super) fn before(server: &Server) -> Result<Recorder, LaunchError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io)?;
        let address = listener.local_addr().map_err(io)?;
        let connections = Arc::new(Mutex::new(Vec::new()));
        let (port, recorded) = (server.port(), Arc::clone(&connections));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect((HOST, port)) else { return };
                let recording = Arc::new(Mutex::new(Recording::default()));
                lock(&recorded).push(Arc::clone(&recording));
                pass(From::Client, &client, &server, &recording);
                pass(From::Server, &server, &client, &recording);
            }
        });
        Ok(Recorder { address, connections })
    }

    /// Where clients connect to.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many packets the server has sent on the connection opened last.
    pub(super) fn server_packets(&self) -> usize {
        let last = lock(&self.connections).last().cloned();
        last.map_or(0, |last| lock(&last).packets.iter().filter(|(from, _)| *from == From::Server).count())
    }

    /// The connections so far as text: one packet a line with its header, `>` from the client, `<` from the server.
    pub(super) fn text(&self, title: &str) -> String {
        let mut text = String::new();
        for (at, recording) in lock(&self.connections).iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            let _ = writeln!(text, "# {title}, connection {}", at + 1);
            for (from, packet) in &lock(recording).packets {
                if text.ends_with(TLS_BEGINS) {
                    break;
                }
                text.push(if *from == From::Client { '>' } else { '<' });
                for byte in packet {
                    let _ = write!(text, " {byte:02x}");
                }
                text.push('\n');
                if *from == From::Client && asks_for_tls(packet) {
                    text.push_str(TLS_BEGINS);
                }
            }
        }
        text
    }
}

impl Recording {
    /// Takes bytes as they came and cuts them into packets.
    fn add(&mut self, from: From, bytes: &[u8]) {
        let [client, server] = &mut self.unfinished;
        let buffer = if from == From::Client { client } else { server };
        buffer.extend(bytes);
        while let Some([a, b, c, _]) = buffer.first_chunk::<4>() {
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize + 4;
            if buffer.len() < length {
                return;
            }
            let rest = buffer.split_off(length);
            self.packets.push((from, std::mem::replace(buffer, rest)));
        }
    }
}

/// Whether a client's packet is a request for TLS: the head of a login and nothing behind it.
fn asks_for_tls(packet: &[u8]) -> bool {
    const CLIENT_SSL: u8 = 0x08; // in the second byte of the capabilities
    packet.len() == 36 && packet.get(5).is_some_and(|byte| byte & CLIENT_SSL != 0)
}

fn pass(from: From, source: &TcpStream, target: &TcpStream, recording: &Arc<Mutex<Recording>>) {
    let (Ok(mut source), Ok(mut target)) = (source.try_clone(), target.try_clone()) else { return };
    let recording = Arc::clone(recording);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read) = source.read(&mut buffer) {
            let bytes = buffer.get(..read).unwrap_or_default();
            // Recorded before it is passed on, so that an answer never stands before its question.
            lock(&recording).add(from, bytes);
            if read == 0 || target.write_all(bytes).is_err() {
                break;
            }
        }
        let _ = target.shutdown(Shutdown::Both);
    });
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn io(source: std::io::Error) -> LaunchError {
    LaunchError::Io { what: "recorder".to_owned(), source }
}
