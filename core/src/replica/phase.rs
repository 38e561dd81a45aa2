//! The phases of a link. Each owns what belongs to it, so that it dies with it.

use alloc::boxed::Box;

use super::gates::{Findings, Gates};
use crate::{
    assemble::Assembler,
    link::{Framer, Handshake, Query, Session, handshake::TlsPending},
    probe::Probe,
    time::Now,
};

/// What the link is doing. Nothing in it is large: it is taken out and put back for each packet.
pub(super) enum Phase<P: Probe> {
    /// Nothing; also what stands in while a phase is being worked on.
    Parked,
    /// The position is being asked for; a dial follows.
    Loading,
    /// Waiting before the next try.
    Backoff(Now),
    /// Waiting for the dial.
    Dialling,
    /// Handshake and authentication.
    Login(Box<Framer>, Box<Handshake>),
    /// Waiting for TLS.
    Securing(Box<Framer>, Box<TlsPending>),
    /// A question is open.
    Gating(Box<Wire>, Box<Gates>, Box<Query>),
    /// Waiting until the claim is durable.
    Claiming(Box<Wire>, Box<Gates>),
    /// Registered as a replica; waiting for the server's OK.
    Registering(Box<Wire>, Box<Findings>),
    /// The stream.
    Streaming(Box<Wire>, Box<Assembler<P>>),
}

/// An open session's framing.
pub(super) struct Wire {
    pub(super) framer: Box<Framer>,
    pub(super) session: Session,
}

impl<P: Probe> Phase<P> {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Loading => "loading",
            Self::Backoff(_) => "backoff",
            Self::Dialling => "dialling",
            Self::Login(..) => "authenticating",
            Self::Securing(..) => "securing",
            Self::Gating(..) => "checking",
            Self::Claiming(..) => "claiming",
            Self::Registering(..) => "registering",
            Self::Streaming(..) => "streaming",
        }
    }

    pub(super) const fn backoff(&self) -> Option<Now> {
        match self {
            Self::Backoff(until) => Some(*until),
            Self::Parked
            | Self::Loading
            | Self::Dialling
            | Self::Login(..)
            | Self::Securing(..)
            | Self::Gating(..)
            | Self::Claiming(..)
            | Self::Registering(..)
            | Self::Streaming(..) => None,
        }
    }

    pub(super) fn assembler(&self) -> Option<&Assembler<P>> {
        match self {
            Self::Streaming(_, assembler) => Some(assembler),
            Self::Parked
            | Self::Loading
            | Self::Backoff(_)
            | Self::Dialling
            | Self::Login(..)
            | Self::Securing(..)
            | Self::Gating(..)
            | Self::Claiming(..)
            | Self::Registering(..) => None,
        }
    }

    pub(super) fn framer_mut(&mut self) -> Option<&mut Framer> {
        match self {
            Self::Login(framer, _) | Self::Securing(framer, _) => Some(framer),
            Self::Gating(wire, ..)
            | Self::Claiming(wire, _)
            | Self::Registering(wire, _)
            | Self::Streaming(wire, _) => Some(&mut wire.framer),
            Self::Parked | Self::Loading | Self::Backoff(_) | Self::Dialling => None,
        }
    }
}
