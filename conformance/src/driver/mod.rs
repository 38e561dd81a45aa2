//! The rules of a driver: for who carries the core over another runtime than tokio.
//!
//! A driver is the loop around [`capstan_core::replica::Replica`]: it pulls outputs, carries them out, and
//! tells what happened. [`check_driver`] runs it over a [`Lab`], where time stands still unless everything
//! waits, and looks at what it did to its links, its clock and its sink.

mod lab;

use std::time::Duration;

use capstan_core::halt::Code;

use self::lab::Dial;
pub use self::lab::{Command, Lab, LabLink, LabSink, Running};
use crate::report::Verdict;

/// A driver under test.
pub trait Driver {
    /// Runs a replica to its end: configuration, seed, links, clock and sink are the lab's, and so are the
    /// commands. Ends when the core says that it has stopped, or with its halt.
    fn run<'a>(&'a self, lab: &'a Lab) -> Running<'a>;
}

/// What a driver owes the core.
#[derive(Clone, Copy, Debug)]
pub struct DriverRule {
    /// Its name, for ever.
    pub id: &'static str,
    /// The sentence.
    pub text: &'static str,
    run: fn(&dyn Driver) -> Result<(), String>,
}

/// Every rule of a driver.
pub const DRIVER_RULES: &[DriverRule] = &[
    DriverRule {
        id: "pulls_until_idle",
        text: "Outputs are pulled until Idle, Halt or Stopped before the next input is given.",
        run: pulls_until_idle,
    },
    DriverRule {
        id: "stops_at_halt",
        text: "A halt is the end: nothing is dialled or read after it, and its code is handed to the caller.",
        run: stops_at_halt,
    },
    DriverRule {
        id: "honours_pause",
        text: "Nothing is read while Read is Paused, and never more than it allows.",
        run: honours_pause,
    },
    DriverRule {
        id: "echoes_epochs",
        text: "An answer carries the epoch of its own dial: what is late belongs to nobody.",
        run: echoes_epochs,
    },
    DriverRule {
        id: "keeps_bytes_in_order",
        text: "Bytes are sent and handed over in order and whole, however little a link takes or gives at once.",
        run: keeps_bytes_in_order,
    },
    DriverRule {
        id: "wakes_in_time",
        text: "A tick comes no later than a second after the time that Idle asks for.",
        run: wakes_in_time,
    },
];

/// A tick may come so much too late.
const LATE: Duration = Duration::from_secs(1);

/// Runs every rule: each with its verdict.
pub fn check_driver(driver: &dyn Driver) -> Vec<(&'static DriverRule, Verdict)> {
    let verdict = |rule: &'static DriverRule| match (rule.run)(driver) {
        Ok(()) => (rule, Verdict::Passed),
        Err(why) => (rule, Verdict::Failed(why)),
    };
    DRIVER_RULES.iter().map(verdict).collect()
}

/// Runs it to its goal.
fn reaches_goal(driver: &dyn Driver, lab: &Lab) -> Result<(), String> {
    match lab.block_on(driver.run(lab))? {
        Ok(()) if lab.is_done() => Ok(()),
        Ok(()) => Err("the run has stopped before its goal".into()),
        Err(halt) => Err(format!("the run halted with {}", halt.code)),
    }
}

fn pulls_until_idle(driver: &dyn Driver) -> Result<(), String> {
    let lab = Lab::new(6, 3, 100)?;
    reaches_goal(driver, &lab)?;
    match lab.facts().dials {
        1 => Ok(()),
        dials => Err(format!("the run took {dials} dials instead of one")),
    }
}

fn stops_at_halt(driver: &dyn Driver) -> Result<(), String> {
    let lab = Lab::new(6, 3, 100)?.damaged();
    match lab.block_on(driver.run(&lab)) {
        Ok(Ok(())) => Err("the core halted, and the driver reports success".into()),
        Ok(Err(halt)) if halt.code != Code::ChecksumMismatch => {
            Err(format!("the core halted with checksum_mismatch, the driver reports {}", halt.code))
        }
        Ok(Err(_)) | Err(_) if lab.facts().dials != 1 => {
            Err(format!("the driver went on past a halt: {} dials", lab.facts().dials))
        }
        Ok(Err(_)) => Ok(()),
        Err(why) => Err(format!("after a halt {why}")),
    }
}

/// What a read may hold when it is told to stop.
const ONE_READ: u64 = 512 << 10;

fn honours_pause(driver: &dyn Driver) -> Result<(), String> {
    // 8 MB, of which a fraction may be retained while the sink takes its time.
    let retained_max = 512 << 10;
    let lab = Lab::new(40, 100, 2000)?.sink_takes(Duration::from_secs(1), retained_max);
    reaches_goal(driver, &lab)?;
    let most = retained_max as u64 + ONE_READ;
    let read = lab.facts().read_beside;
    if read > most {
        return Err(format!(
            "{read} bytes were read while one batch was at the sink; the core allows {most}"
        ));
    }
    let pause = [(Duration::from_millis(1500), Command::Pause), (Duration::from_secs(20), Command::Resume)];
    let lab = Lab::new(40, 100, 2000)?.sink_takes(Duration::from_secs(1), 4 << 20).commands(pause);
    reaches_goal(driver, &lab)?;
    match lab.facts().read_paused {
        read if read > ONE_READ => Err(format!("{read} bytes were read while the pipeline was paused")),
        _ => Ok(()),
    }
}

fn echoes_epochs(driver: &dyn Driver) -> Result<(), String> {
    // The first dial comes through when the second is on its way.
    let late = [Dial::Late(Duration::from_secs(15)), Dial::Late(Duration::from_secs(9))];
    let lab = Lab::new(6, 3, 100)?.dials(late);
    reaches_goal(driver, &lab)?;
    if lab.facts().dials != 2 {
        return Err(format!("the run took {} dials instead of two", lab.facts().dials));
    }
    match lab.links().first() {
        Some(first) if first.read + first.written > 0 => {
            Err("a dial that had been given up came late, and was taken for the one after it".into())
        }
        Some(_) => Ok(()),
        None => Err("nothing was dialled".into()),
    }
}

fn keeps_bytes_in_order(driver: &dyn Driver) -> Result<(), String> {
    let lab = Lab::new(6, 3, 100)?.pieces_of(3);
    reaches_goal(driver, &lab)?;
    match lab.facts().dials {
        1 => Ok(()),
        dials => Err(format!("over a link that takes three bytes at once the run took {dials} dials")),
    }
}

fn wakes_in_time(driver: &dyn Driver) -> Result<(), String> {
    let lab = Lab::new(200, 3, 1000)?.mute_after(100_000);
    let silence = lab.limits().silence;
    reaches_goal(driver, &lab)?;
    let links = lab.links();
    let Some(first) = links.first() else { return Err("nothing was dialled".into()) };
    let Some(closed_at) = first.closed_at else { return Err("a silent link was not closed".into()) };
    let waited = Duration::from_micros(closed_at.saturating_sub(first.gave_at));
    if waited > silence + LATE {
        let (waited, silence) = (waited.as_secs(), silence.as_secs());
        return Err(format!("a silent link was closed after {waited} s instead of {silence} s"));
    }
    Ok(())
}
