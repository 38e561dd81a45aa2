//! What a run is made of, drawn once at its start: the swarm. Within the run each class of faults is a
//! regime: on for a drawn time, and off again.

use capstan_core::{deliver::BatchLimits, gtid::GtidSet};

use crate::{
    choices::Choices,
    fault::{ALL, FATAL, Fault},
    workload::{SHAPES, Shape},
};

/// Where the pipeline starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At the oldest transaction.
    Earliest,
    /// After everything that is there.
    Current,
    /// After a given set.
    At,
}

/// A planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When it begins, µs.
    pub at: u64,
    /// How long it lasts, µs.
    pub lasts: u64,
    /// What.
    pub fault: Fault,
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// When the faults end, µs.
    pub horizon: u64,
    /// Transactions before the first dial, and during the faults.
    pub transactions: (u32, u32),
    /// One transaction each, µs; `None`: drawn.
    pub pace: Option<u64>,
    /// What transactions look like; the first is the most frequent.
    pub shapes: Vec<Shape>,
    /// One in so many GTIDs is tagged; 0: none.
    pub tagged: u32,
    /// The servers' version.
    pub version: &'static str,
    /// Events carry CRC32.
    pub crc32: bool,
    /// How long a packet is on its way, µs.
    pub latency: u64,
    /// Sizes of reads, used in turn; empty: as much as there is.
    pub reads: Vec<usize>,
    /// The first dump is cut after so many bytes.
    pub cut_after: Option<usize>,
    /// Where the pipeline starts.
    pub begin: Begin,
    /// Where it stops; `None`: never.
    pub until: Option<GtidSet>,
    /// What a batch may hold.
    pub batch: BatchLimits,
    /// Row events may be larger than a packet is.
    pub huge: bool,
    /// Two tables are copied while they change.
    pub copy: bool,
    /// The second of them has no key.
    pub whole: bool,
    /// The faults, in the order of time.
    pub faults: Vec<Planned>,
}

/// What a caller wants of a plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// Faults of this class and no other.
    pub only: Option<Fault>,
    /// The position is kept beside the sink: at least once.
    pub library: bool,
    /// With an initial copy.
    pub copy: bool,
    /// Faults of these classes and no other, by their bits; 0: of all.
    pub swarm: u64,
}

impl Wishes {
    /// As arguments, for the line that repeats a run.
    #[must_use]
    pub fn arguments(self) -> String {
        let names: Vec<&str> = ALL.iter().filter(|f| self.swarm & f.bit() != 0).map(|f| f.name()).collect();
        let mut out = match self.only {
            Some(fault) => format!(" --only {}", fault.name()),
            None if names.is_empty() => String::new(),
            None => format!(" --swarm {}", names.join(",")),
        };
        if self.library {
            out.push_str(" --library");
        }
        if self.copy {
            out.push_str(" --copy");
        }
        out
    }

    fn wants_copy(self) -> bool {
        let of_copy = |fault: &&Fault| fault.is_of_copy();
        self.copy
            || self.only.iter().any(|fault| fault.is_of_copy())
            || ALL.iter().filter(of_copy).any(|fault| self.swarm & fault.bit() != 0)
    }

    fn allows(self, fault: Fault) -> bool {
        self.swarm == 0 || self.swarm & fault.bit() != 0
    }
}

const SECOND: u64 = 1_000_000;

/// Plain ways for a link to end; the first is the calmest.
pub(crate) const ENDS_LINKS: [Fault; 6] =
    [Fault::Eof, Fault::Reset, Fault::ServerError, Fault::Restart, Fault::Failover, Fault::Crash];

impl Plan {
    /// A plan in which nothing happens.
    #[must_use]
    pub fn quiet() -> Self {
        Self {
            horizon: 0,
            transactions: (0, 0),
            pace: None,
            shapes: vec![SHAPES[0]],
            tagged: 0,
            version: "9.7.4",
            crc32: true,
            latency: 200,
            reads: Vec::new(),
            cut_after: None,
            begin: Begin::Earliest,
            until: None,
            batch: BatchLimits::default(),
            huge: false,
            copy: false,
            whole: false,
            faults: Vec::new(),
        }
    }

    /// Draws a plan. Most are small, and a few are large: what can go wrong goes wrong between few things, and
    /// many small schedules find more of it than few large ones.
    pub fn draw(choices: &mut Choices, wishes: Wishes) -> Self {
        let copy = choices.chance(1, 10) || wishes.wants_copy();
        let large = choices.chance(1, 40);
        let horizons: &[u64] = if large { &[600, 3600] } else { &[60, 20, 30, 120] };
        let horizon = choices.pick(horizons) * SECOND;
        let transactions = if large {
            (choices.below(20), 30 + choices.below(30))
        } else {
            (choices.below(4) + if copy { 12 } else { 0 }, 20 + choices.below(3) + if copy { 16 } else { 0 })
        };
        let mut shapes = vec![SHAPES[0]];
        for shape in &SHAPES[1..] {
            if choices.chance(1, if shape.is_big() { 8 } else { 3 }) {
                shapes.push(*shape);
            }
        }
        let mut plan = Self {
            horizon,
            transactions,
            pace: None,
            shapes,
            tagged: choices.pick(&[0, 0, 2, 5]),
            version: choices.pick(&["9.7.4", "8.0.36", "8.4.2"]),
            crc32: !choices.chance(1, 4),
            latency: choices.pick(if copy {
                &[20_000, 200, 5_000, 80_000]
            } else {
                &[200, 10, 5_000, 80_000]
            }),
            reads: Vec::new(),
            cut_after: None,
            begin: choices.pick(&[Begin::Earliest, Begin::Current, Begin::At]),
            until: None,
            batch: BatchLimits {
                max_transactions: choices.pick(&[10, 1, 2]),
                max_bytes: choices.pick(&[4 << 20, 1000]),
            },
            huge: false,
            copy,
            whole: copy && choices.chance(1, 4),
            faults: Vec::new(),
        };
        if plan.version.starts_with("8.0") {
            // Tags came with 8.3.
            plan.tagged = 0;
        }
        plan.draw_faults(choices, wishes, large);
        plan
    }

    fn draw_faults(&mut self, choices: &mut Choices, wishes: Wishes, large: bool) {
        let wanted = choices.pick(if large { &[8, 5, 12] } else { &[2, 1, 3] });
        // Swarm: a few classes per run, each several times, rather than all of them once.
        let possible = |fault: &Fault| wishes.allows(*fault) && (self.copy || !fault.is_of_copy());
        let all: Vec<Fault> = ALL[..FATAL].iter().copied().filter(possible).collect();
        let mut classes = Vec::new();
        for _ in 0..choices.pick(&[3, 1, 2, 5]) {
            classes.extend(drawn(choices, &all));
        }
        if classes.is_empty() {
            // Only such as end a pipeline were asked for.
            classes.extend(ALL.iter().filter(|fault| wishes.allows(**fault)));
        }
        for _ in 0..wanted {
            let fault = choices.pick(&classes);
            self.push(choices, wishes.only.unwrap_or(fault), large);
        }
        if wishes.only.is_none() && wishes.swarm == 0 {
            // Whatever else goes wrong, links end.
            for _ in 0..2 {
                let fault = choices.pick(&ENDS_LINKS);
                self.push(choices, fault, large);
            }
        }
        if choices.chance(1, 8) {
            let fatal = ALL[FATAL + choices.below((ALL.len() - FATAL) as u32) as usize];
            if wishes.only.is_none() && wishes.allows(fatal) {
                self.push(choices, fatal, large);
            }
        }
        self.faults.sort_by_key(|planned| planned.at);
    }

    fn push(&mut self, choices: &mut Choices, fault: Fault, large: bool) {
        // What comes at the very end has no time to take hold.
        let mut at = choices.range(0, self.horizon / 4 * 3);
        if self.copy && (fault.is_of_copy() || at.is_multiple_of(2)) {
            // A copy does not take long.
            at /= 16;
        }
        let lasts: &[u64] = match large {
            true => &[1, 10, 40, 90, 300, 900, 1800],
            false if ENDS_LINKS.contains(&fault) => &[1, 2],
            false => &[1, 3, 10, 30],
        };
        let lasts = choices.pick(lasts) * SECOND / choices.pick(&[1, 3, 10]);
        self.faults.push(Planned { at, lasts, fault });
    }
}

fn drawn(choices: &mut Choices, from: &[Fault]) -> Option<Fault> {
    (!from.is_empty()).then(|| choices.pick(from))
}
