//! The initial copy beside the stream: it lives as long as the stream's link, and begins anew with it from what is
//! stored.

use alloc::boxed::Box;

use bytes::Bytes;

use super::{
    ApiMisuse, CopyLink, CopyRead, DialEpoch, LostReason, READ_MAX, Read, Replica, gates::Findings,
    phase::Phase,
};
use crate::{
    assemble::Assembler,
    halt::{Code, Halt},
    probe::Probe,
    snapshot::copier::{Around, Copier, Did, Terms},
};

impl<P: Probe> Replica<P> {
    /// The stream begins, and with it what is left to copy or comes to be.
    pub(super) fn begin_copy(&mut self, found: &Findings) {
        let limits = &self.config.limits;
        self.copy_terms = Some(Box::new(Terms {
            login: self.config.login.clone(),
            captured: self.config.captured.clone().with_lower_case_table_names(found.lower_case_table_names),
            limits: self.config.copy,
            row_max: limits.row_event_max,
            step: limits.dial,
            trouble_max: limits.trouble_max,
            source: found.source_uuid,
        }));
    }

    /// Whether the copy may read for the sink.
    fn copy_room(&self) -> bool {
        !self.paused && self.retained < self.config.limits.retained_max / 2
    }

    pub(super) fn copy_credit(&self) -> CopyRead {
        match &self.copier {
            Some(copier) => copier.reads(self.copy_room(), READ_MAX),
            None => CopyRead::all(Read::Paused),
        }
    }

    /// One step of the copy. `false`: nothing can be done now.
    pub(super) fn copy_step(&mut self) -> bool {
        if self.copier.is_none() {
            let (Some(assembler), Some(terms)) = (self.phase.assembler(), &self.copy_terms) else {
                return false;
            };
            if assembler.gate().is_done() {
                return false;
            }
            self.copier = Some(Box::new(Copier::new((**terms).clone())));
        }
        let did = self.with_copier(|copier, around| copier.advance(around));
        did.is_some_and(|did| self.copied(did))
    }

    fn copied(&mut self, did: Did) -> bool {
        match did {
            Did::Nothing => false,
            Did::Moved => true,
            Did::Chunk(chunk, copy) => {
                if let Phase::Streaming(_, assembler) = &mut self.phase {
                    let event = assembler.chunk(chunk, *copy, &mut self.next_seq);
                    let reached = assembler.is_reached() && assembler.gate().is_done();
                    self.emit(event);
                    if reached {
                        self.reached();
                    }
                }
                true
            }
            Did::Done => {
                self.copier = None;
                self.facts.copy_waits = None;
                self.facts.copy_connections = None;
                let reached = self.phase.assembler().is_some_and(Assembler::is_reached);
                if reached {
                    self.reached();
                }
                true
            }
            Did::Elsewhere => {
                self.trouble(Halt::new(Code::SnapshotSourceChanged));
                true
            }
            Did::Halt(halt) => {
                self.copy_halts(halt);
                true
            }
        }
    }

    fn copy_halts(&mut self, halt: Halt) {
        self.halt_behind_units(halt);
    }

    fn with_copier<T>(&mut self, work: impl FnOnce(&mut Copier, &mut Around<'_, P>) -> T) -> Option<T> {
        let room = self.copy_room();
        let copier = self.copier.as_deref_mut()?;
        let Phase::Streaming(_, assembler) = &mut self.phase else { return None };
        let mut around = Around {
            now: self.now,
            assembler,
            out: &mut self.outputs,
            epochs: &mut self.copy_epochs,
            room,
            whole: &mut self.facts.copied_whole,
            estimates: &mut self.facts.copy_estimates,
            waits: &mut self.facts.copy_waits,
            connections: &mut self.facts.copy_connections,
            paused: self.copy_paused,
        };
        Some(work(copier, &mut around))
    }

    pub(super) fn on_copy_connected(&mut self, link: CopyLink, epoch: DialEpoch) -> Result<(), ApiMisuse> {
        let seed = self.entropy.bytes();
        let asked = self.copier.as_mut().is_none_or(|copier| copier.on_connected(link, epoch, seed));
        if asked { Ok(()) } else { Err(ApiMisuse::UnaskedAnswer) }
    }

    pub(super) fn on_copy_secured(&mut self, link: CopyLink, epoch: DialEpoch) -> Result<(), ApiMisuse> {
        match self.with_copier(|copier, around| copier.on_secured(link, epoch, around)) {
            None => Ok(()),
            Some(None) => Err(ApiMisuse::UnaskedAnswer),
            Some(Some(did)) => {
                self.copied(did);
                Ok(())
            }
        }
    }

    pub(super) fn on_copy_bytes(&mut self, link: CopyLink, epoch: DialEpoch, bytes: Bytes) {
        if let Some(copier) = &mut self.copier {
            copier.on_bytes(link, epoch, bytes);
        }
    }

    pub(super) fn on_copy_lost(&mut self, link: CopyLink, epoch: DialEpoch, reason: LostReason) {
        if let Some(did) = self.with_copier(|copier, around| copier.on_lost(link, epoch, reason, around)) {
            self.copied(did);
        }
    }
}
