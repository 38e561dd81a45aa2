//! One connection: packets, handshake, authentication, commands, text results.
