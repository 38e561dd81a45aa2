//! Every connection of a replica: the stream's, and those of the initial copy while there is one.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Bound,
    task::{Context, Poll},
};

use bytes::Bytes;
use capstan_core::replica::{self, CopyLink, CopyRead, DialEpoch, Read};

use super::link::{Link, Said};
use crate::net::Net;

/// What is read at once of a link that carries answers, while no view is read.
const ANSWER_READ: usize = 64 << 10;

/// The connections, each in its own state, polled by the loop.
pub(super) struct Links<'n, N: Net> {
    net: &'n N,
    host: &'n str,
    port: u16,
    stream: Link<'n, N>,
    copies: BTreeMap<CopyLink, Link<'n, N>>,
    /// Which was heard last: the others come first, so that none waits for one that never stops.
    heard: replica::Link,
}

impl<N: Net> fmt::Debug for Links<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Links({:?}, {:?})", self.stream, self.copies)
    }
}

impl<'n, N: Net> Links<'n, N> {
    pub(super) fn new(net: &'n N, host: &'n str, port: u16) -> Self {
        let stream = Link::new(net, host, port);
        Self { net, host, port, stream, copies: BTreeMap::new(), heard: replica::Link::Stream }
    }

    pub(super) fn connect(&mut self, link: replica::Link, epoch: DialEpoch) {
        tracing::debug!(?link, dial = epoch.0, "dialling");
        match link {
            replica::Link::Stream => self.stream.connect(epoch),
            replica::Link::Copy(copy) => {
                let new = || Link::new(self.net, self.host, self.port);
                self.copies.entry(copy).or_insert_with(new).connect(epoch);
            }
        }
    }

    pub(super) fn secure(&mut self, link: replica::Link, epoch: DialEpoch) {
        if let Some(link) = self.get(link) {
            link.secure(epoch);
        }
    }

    pub(super) fn transmit(&mut self, link: replica::Link, epoch: DialEpoch, bytes: Bytes) {
        if let Some(link) = self.get(link) {
            link.transmit(epoch, bytes);
        }
    }

    pub(super) fn close(&mut self, link: replica::Link, epoch: DialEpoch) {
        if let Some(link) = self.get(link) {
            link.close(epoch);
        }
    }

    fn get(&mut self, link: replica::Link) -> Option<&mut Link<'n, N>> {
        match link {
            replica::Link::Stream => Some(&mut self.stream),
            replica::Link::Copy(copy) => self.copies.get_mut(&copy),
        }
    }

    /// Hears the first that has something to say, going round.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: Read,
        copy: CopyRead,
    ) -> Poll<(replica::Link, DialEpoch, Said)> {
        let after = match self.heard {
            // The first of the copy comes behind the stream.
            replica::Link::Stream => Bound::Unbounded,
            replica::Link::Copy(heard) => Bound::Excluded(heard),
        };
        let mut said = Self::poll_copies(self.copies.range_mut((after, Bound::Unbounded)), cx, copy);
        if said.is_none()
            && let Poll::Ready(heard) = self.stream.poll(cx, stream)
        {
            said = Some((replica::Link::Stream, self.stream.epoch(), heard));
        }
        if said.is_none()
            && let replica::Link::Copy(heard) = self.heard
        {
            said = Self::poll_copies(self.copies.range_mut(..=heard), cx, copy);
        }
        let Some(said) = said else { return Poll::Pending };
        self.heard = said.0;
        Poll::Ready(said)
    }

    fn poll_copies<'l>(
        links: impl Iterator<Item = (&'l CopyLink, &'l mut Link<'n, N>)>,
        cx: &mut Context<'_>,
        read: CopyRead,
    ) -> Option<(replica::Link, DialEpoch, Said)>
    where
        'n: 'l,
        N: 'l,
    {
        for (name, link) in links {
            let read = match (name, read.most()) {
                (CopyLink::View(number), _) => read.of(*number),
                (CopyLink::Lock | CopyLink::Compare, Read::Paused) => Read::UpTo(ANSWER_READ),
                (CopyLink::Lock | CopyLink::Compare, most @ Read::UpTo(_)) => most,
            };
            if let Poll::Ready(said) = link.poll(cx, read) {
                return Some((replica::Link::Copy(*name), link.epoch(), said));
            }
        }
        None
    }
}
