//! Schedules that people write: a workload, faults at named moments, the expected end, in a small text file.
//!
//! The format is described in `sim/schedules/README.md`.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use capstan_core::{deliver::BatchLimits, halt::Code};
use serde::Deserialize;

use crate::{
    choices::Choices,
    fault::Fault,
    oracle::Failure,
    plan::{Begin, Plan, Planned},
    workload::{COPIED_SHAPES, SHAPES, Shape},
    world::{Moment, When, World},
};

/// A schedule as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// What it shows, in one sentence.
    pub title: String,
    /// `equal`, or `halt CODE`.
    expect: String,
    /// Halts on the way that are right, such as that of a process that was fenced.
    #[serde(default)]
    halts: Vec<String>,
    /// What is committed.
    workload: Work,
    /// Source, link and sink.
    #[serde(default)]
    world: Setting,
    /// What goes wrong.
    #[serde(default)]
    fault: Vec<Wrong>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Work {
    /// Committed before the first dial.
    #[serde(default)]
    before: Vec<String>,
    /// Committed while the pipeline runs.
    #[serde(default)]
    during: Vec<String>,
    /// One each.
    #[serde(default = "second")]
    every: String,
    /// How long the world goes on before everything is healed.
    lasts: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Setting {
    version: Option<String>,
    checksum: Option<String>,
    start: Option<String>,
    latency: Option<String>,
    reads: Option<Vec<usize>>,
    transactions_per_batch: Option<usize>,
    tagged: bool,
    /// Two tables are copied.
    copy: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrong {
    /// As `--list-faults` names it.
    name: String,
    /// When.
    when: String,
    /// For how long.
    #[serde(default = "second")]
    lasts: String,
}

fn second() -> String {
    "1s".into()
}

/// What is wrong with a schedule's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrongly(String);

impl std::fmt::Display for Wrongly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrongly {}

/// A schedule that can be run.
#[derive(Clone, Debug)]
pub struct Runnable {
    /// What it shows.
    pub title: String,
    plan: Plan,
    script: Vec<Shape>,
    tagged: bool,
    moments: Vec<Moment>,
    /// Faults that must happen, and how often.
    wanted: Vec<(&'static str, u64)>,
    end: Option<Code>,
    halts: Vec<String>,
}

/// The folder of the schedules that ship.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schedules")
}

/// Names and files of the schedules that ship.
#[must_use]
pub fn shipped() -> Vec<(String, PathBuf)> {
    let files = std::fs::read_dir(folder()).into_iter().flatten().filter_map(Result::ok);
    let mut all: Vec<(String, PathBuf)> = files
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
        .collect();
    all.sort();
    all
}

/// Reads a schedule by the name of a shipped one, or by its path.
pub fn load(name: &str) -> Result<Runnable, Wrongly> {
    let path = shipped().into_iter().find(|(shipped, _)| shipped == name).map(|(_, path)| path);
    let path = path.unwrap_or_else(|| PathBuf::from(name));
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Wrongly(format!("{}: {e}; --list-schedules names those that ship", path.display())))?;
    parse(&text).map_err(|e| Wrongly(format!("{}: {e}", path.display())))
}

/// Reads a schedule's text.
pub fn parse(text: &str) -> Result<Runnable, Wrongly> {
    let schedule: Schedule = toml::from_str(text).map_err(|e| Wrongly(e.to_string()))?;
    schedule.runnable()
}

impl Schedule {
    fn runnable(self) -> Result<Runnable, Wrongly> {
        let before = shapes(&self.workload.before)?;
        let during = shapes(&self.workload.during)?;
        let every = duration(&self.workload.every)?;
        let mut plan = Plan { transactions: (count(before.len())?, count(during.len())?), ..Plan::quiet() };
        self.world.apply(&mut plan)?;
        let mut horizon = every * (during.len() as u64 + 1);
        let (mut moments, mut wanted) = (Vec::new(), Vec::new());
        for wrong in &self.fault {
            let fault = Fault::by_name(&wrong.name).ok_or_else(|| {
                Wrongly(format!("no fault is named {:?}; --list-faults names them", wrong.name))
            })?;
            let lasts = duration(&wrong.lasts)?;
            let times = match moment(&wrong.when)? {
                Said::At(at) => {
                    horizon = horizon.max(at + lasts);
                    plan.faults.push(Planned { at, lasts, fault });
                    1
                }
                Said::Every(period, times) => {
                    (1..=times).for_each(|n| plan.faults.push(Planned { at: n * period, lasts, fault }));
                    horizon = horizon.max(times * period + lasts);
                    // Now and then another fault has just taken the link that this one is for.
                    times * 9 / 10
                }
                Said::When(when) => {
                    moments.push(Moment { when, fault, lasts });
                    1
                }
            };
            // How often a regime takes hold depends on what happens in it.
            wanted.push((fault.name(), if fault.is_at_once() { times } else { 1 }));
        }
        plan.faults.sort_by_key(|planned| planned.at);
        plan.horizon = match &self.workload.lasts {
            Some(text) => duration(text)?,
            None => horizon,
        };
        plan.pace = Some(every);
        let end = match self.expect.split_once(' ') {
            None if self.expect == "equal" => None,
            Some(("halt", code)) => Some(
                Code::ALL
                    .iter()
                    .copied()
                    .find(|known| known.as_str() == code)
                    .ok_or_else(|| Wrongly(format!("no halt has the code {code:?}")))?,
            ),
            _ => return Err(Wrongly(format!("expect is `equal` or `halt CODE`, not {:?}", self.expect))),
        };
        let script = [before, during].concat();
        if !plan.copy && script.iter().any(|shape| COPIED_SHAPES.contains(shape)) {
            return Err(Wrongly("copied tables are there where [world] says copy = true".into()));
        }
        let (title, halts, tagged) = (self.title, self.halts, self.world.tagged);
        Ok(Runnable { title, plan, script, tagged, moments, wanted, end, halts })
    }
}

impl Setting {
    fn apply(&self, plan: &mut Plan) -> Result<(), Wrongly> {
        if let Some(version) = &self.version {
            let known = ["8.0.36", "8.4.2", "9.7.4"].into_iter().find(|known| known == version);
            plan.version = known
                .ok_or_else(|| Wrongly(format!("version is 8.0.36, 8.4.2 or 9.7.4, not {version:?}")))?;
        }
        match self.checksum.as_deref() {
            None | Some("CRC32") => {}
            Some("NONE") => plan.crc32 = false,
            Some(other) => return Err(Wrongly(format!("checksum is CRC32 or NONE, not {other:?}"))),
        }
        plan.begin = match self.start.as_deref() {
            None | Some("earliest") => Begin::Earliest,
            Some("current") => Begin::Current,
            Some("at") => Begin::At,
            Some(other) => return Err(Wrongly(format!("start is earliest, current or at, not {other:?}"))),
        };
        plan.copy = self.copy;
        if let Some(latency) = &self.latency {
            plan.latency = duration(latency)?;
        }
        if let Some(reads) = &self.reads {
            if reads.is_empty() || reads.contains(&0) {
                return Err(Wrongly("reads are numbers of bytes above 0".into()));
            }
            plan.reads = reads.clone();
        }
        if let Some(most) = self.transactions_per_batch {
            plan.batch = BatchLimits { max_transactions: most, ..plan.batch };
        }
        Ok(())
    }
}

/// A moment as it was said.
enum Said {
    At(u64),
    Every(u64, u64),
    When(When),
}

fn moment(text: &str) -> Result<Said, Wrongly> {
    let wrong = || {
        Wrongly(format!(
            "{text:?} is no moment; there are: at DURATION | every DURATION, N times | when transaction N is \
             committed | inside transaction N | between sink commit and ack of transaction N | at byte N of the \
             dump | at every byte of the dump"
        ))
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match words.as_slice() {
        ["at", "byte", n, "of", "the", "dump"] => Said::When(When::Byte(number(n)?)),
        ["at", "every", "byte", "of", "the", "dump"] => Said::When(When::EveryByte),
        ["at", at] => Said::At(duration(at)?),
        ["every", period, n, "times"] => Said::Every(duration(period.trim_end_matches(','))?, number(n)?),
        ["when", "transaction", n, "is", "committed"] => Said::When(When::Committed(number(n)?)),
        ["inside", "transaction", n] => Said::When(When::Inside(number(n)?)),
        ["between", "sink", "commit", "and", "ack", "of", "transaction", n] => {
            Said::When(When::Unanswered(number(n)?))
        }
        _ => return Err(wrong()),
    })
}

/// `small`, or `small*20`.
fn shapes(texts: &[String]) -> Result<Vec<Shape>, Wrongly> {
    let mut out = Vec::new();
    for text in texts {
        let (name, times) = match text.split_once('*') {
            None => (text.as_str(), 1),
            Some((name, times)) => {
                (name, times.parse().map_err(|_| Wrongly(format!("{text:?}: how many times?")))?)
            }
        };
        let known = || SHAPES.iter().chain(&COPIED_SHAPES);
        let shape = known().copied().find(|shape| shape.name() == name).ok_or_else(|| {
            let names: Vec<&str> = known().map(|shape| shape.name()).collect();
            Wrongly(format!("no transaction is named {name:?}; there are: {}", names.join(", ")))
        })?;
        out.resize(out.len() + times, shape);
    }
    Ok(out)
}

/// `200us`, `5ms`, `30s`, `10m`, `2h`, `3d`, in µs.
fn duration(text: &str) -> Result<u64, Wrongly> {
    let wrong = || Wrongly(format!("{text:?} is no duration, such as 200us, 5ms, 30s, 10m, 2h or 3d"));
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(wrong()),
    };
    number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).ok_or_else(wrong)
}

fn count(n: usize) -> Result<u32, Wrongly> {
    u32::try_from(n).map_err(|_| Wrongly("too many transactions".into()))
}

/// What came of a schedule.
#[derive(Debug)]
pub struct Told {
    /// What was found wrong: an oracle's word, another end, or a fault that did not happen.
    pub result: Result<(), Failure>,
    /// The worlds that were run: more than one where a fault comes at every byte.
    pub worlds: u64,
    /// The last of them.
    pub world: World,
}

impl Runnable {
    /// Runs it. Where a fault comes at every byte, every `stride`th is tried.
    #[must_use]
    pub fn run(&self, stride: usize) -> Told {
        let mut world = self.world(None);
        let sweeps = self.moments.iter().any(|moment| moment.when == When::EveryByte);
        let mut result = world.run().and_then(|()| self.judge(&world, !sweeps));
        let (mut worlds, bytes) = (1, world.counts.dump_bytes);
        if sweeps {
            for byte in (1..=bytes).step_by(stride.max(1)) {
                if result.is_err() {
                    break;
                }
                world = self.world(Some(byte));
                result = world.run().and_then(|()| self.judge(&world, true));
                worlds += 1;
            }
        }
        Told { result, worlds, world }
    }

    fn world(&self, byte: Option<u64>) -> World {
        let moments = self.moments.iter().filter_map(|moment| match (moment.when, byte) {
            (When::EveryByte, None) => None,
            (When::EveryByte, Some(byte)) => Some(Moment { when: When::Byte(byte), ..*moment }),
            _ => Some(*moment),
        });
        World::scheduled(
            self.plan.clone(),
            Choices::replay(Vec::new()),
            self.script.clone(),
            moments.collect(),
            self.tagged,
        )
    }

    /// Whether it ended as expected, and what was to happen has happened.
    fn judge(&self, world: &World, all: bool) -> Result<(), Failure> {
        if world.halted() != self.end {
            return Err(Failure::new(
                "end",
                format!("halted by {:?}, expected {:?}", world.halted(), self.end),
            ));
        }
        let mine = self.end.map(Code::as_str);
        for code in world.counts.halts.keys() {
            if Some(*code) != mine && !self.halts.iter().any(|allowed| allowed == code) {
                return Err(Failure::new("no-false-halt", format!("{code} on the way")));
            }
        }
        for (name, times) in self.wanted.iter().filter(|_| all) {
            let happened = world.counts.faults.get(name).copied().unwrap_or(0);
            if happened < *times {
                return Err(Failure::new("did-it-happen", format!("{name}: {happened} of {times} times")));
            }
        }
        Ok(())
    }
}

/// A failed schedule for a person.
#[must_use]
pub fn tell(name: &str, told: &Told) -> String {
    let mut out = String::new();
    if let Err(failure) = &told.result {
        let _ = writeln!(out, "FAILED {name}: {failure}");
        let _ = writeln!(out, "REPRO cargo run -p sim --profile sim -- --schedule {name}");
        for line in told.world.trace().iter().rev().take(60).rev() {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        let schedule = |expect: &str, work: &str, fault: &str| {
            format!(
                "title = \"t\"\nexpect = \"{expect}\"\n[workload]\nduring = [\"{work}\"]\n[[fault]]\n{fault}\n"
            )
        };
        let good = "name = \"eof\"\nwhen = \"at 5s\"";
        assert!(parse(&schedule("equal", "small*3", good)).is_ok());
        for (text, said) in [
            (schedule("fine", "small", good), "expect is `equal` or `halt CODE`"),
            (schedule("halt nothing", "small", good), "no halt has the code \"nothing\""),
            (schedule("equal", "tiny", good), "no transaction is named \"tiny\""),
            (schedule("equal", "small*x", good), "how many times"),
            (schedule("equal", "small", "name = \"eof\"\nwhen = \"soon\""), "\"soon\" is no moment"),
            (schedule("equal", "small", "name = \"eof\"\nwhen = \"at 5\""), "\"5\" is no duration"),
            (schedule("equal", "small", "name = \"rain\"\nwhen = \"at 5s\""), "no fault is named \"rain\""),
            (schedule("equal", "small", "name = \"eof\"\nat = \"5s\""), "unknown field"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
