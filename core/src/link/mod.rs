//! One connection: packets, handshake, authentication, commands, text results.
//!
//! Everything here is a machine that is fed bytes and says what to send; it opens nothing, waits for
//! nothing and draws no random number. A connection uses the parts in this order:
//!
//! 1. [`Framer`] turns read chunks into whole payloads and checks their sequence ids; [`packet::encode`]
//!    does the way back.
//! 2. [`Handshake`] takes payloads until the session is authenticated (its `StartTls` step is the
//!    only place where the driver changes the transport).
//! 3. [`Query`] runs text queries, one at a time.
//! 4. [`command`] registers and opens the dump, and [`StreamPacket`] tells events from the end.
//!
//! Server text (error messages) is kept where it decides something and shown nowhere; see
//! [`ServerError`].

pub mod auth;
pub mod command;
pub mod error_packet;
pub mod handshake;
pub mod login;
pub mod packet;
pub mod query;
pub mod response;
pub mod secret;
pub mod version;

pub use auth::{BadPublicKey, ServerPublicKey};
pub use command::{BinlogDump, RegisterReplica, StreamError, StreamPacket};
pub use error_packet::{DumpRefusal, ErrorMeaning, ServerError};
pub use handshake::{Handshake, HandshakeError, Session, Step};
pub use login::{KeyTrust, Login, LoginError, TlsMode, VersionGate};
pub use packet::{Framer, PacketError, Payload, Sequence};
pub use query::{
    BinaryRow, Cells, Column, Prepare, PrepareStep, Query, QueryError, QueryLimits, QueryResult, QueryStep,
    ResultSet, RowStep, RowStream, RowsEnd, TextRow,
};
pub use response::{Capabilities, Malformed, OkPacket};
pub use secret::Secret;
pub use version::{Flavour, ServerVersion, UnsupportedServer};
