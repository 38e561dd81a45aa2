//! Child processes: what dies in them, dies by SIGKILL.

use std::{
    env, fmt,
    io::{self, BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{self, Command, ExitStatus, Stdio},
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use capstan_core::deliver::Position;
use serde_json::{Value, json};

use crate::{
    bench::{Bench, Broken, Died, kit},
    crash::Strength,
    rules,
    target::{Target, Trouble},
};

/// Tells a child what it is.
const CALL: &str = "CAPSTAN_CONFORMANCE_CHILD";
/// Before each word of a child: others write to the same stream.
const WORD: &str = "capstan-conformance: ";
/// A child that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a child process is begun: by running this program once more, in such a way that it comes to the
/// same check.
#[derive(Clone, Debug)]
pub struct Child {
    program: PathBuf,
    arguments: Vec<String>,
}

impl Child {
    /// The `#[test]` function of this name, as `--list` shows it, calls the check.
    ///
    /// # Errors
    /// The system does not say which program this is.
    pub fn test(name: &str) -> io::Result<Self> {
        Self::program([name, "--exact", "--nocapture", "--test-threads=1"])
    }

    /// This program comes to the check with these arguments.
    ///
    /// # Errors
    /// As [`Child::test`].
    pub fn program<A: Into<String>>(arguments: impl IntoIterator<Item = A>) -> io::Result<Self> {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Ok(Self { program: env::current_exe()?, arguments })
    }
}

/// Whether this process is a child of the kit's.
#[must_use]
pub fn in_child() -> bool {
    IN_CHILD.load(Ordering::Acquire)
}

/// Whether this process will be one, once it comes to its check.
pub(crate) fn is_called() -> bool {
    env::var_os(CALL).is_some()
}

static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// Stands at the place where it is to die until it is killed.
pub(crate) fn brink() -> ! {
    say("brink", "");
    loop {
        thread::park();
    }
}

/// A word to the parent, on a line of its own.
pub(crate) fn say(word: &str, text: &str) {
    let text = text.replace('\n', " ");
    let mut out = io::stdout().lock();
    // A parent that is gone hears nothing.
    let _ = writeln!(out, "\n{WORD}{word} {text}").and_then(|()| out.flush());
}

/// Until a new process runs its program it holds what every other thread has open, locks of targets among
/// it (Linux closes them after it has let the parent go on): until it speaks nothing is opened.
static SPAWNING: RwLock<()> = RwLock::new(());

/// Opens something that may be locked by who had it open before.
pub(crate) fn opening<T>(open: impl FnOnce() -> T) -> T {
    let _none = SPAWNING.read().unwrap_or_else(PoisonError::into_inner);
    open()
}

/// What a child is told.
pub(crate) struct Call<'a> {
    pub(crate) sink: &'a str,
    pub(crate) address: &'a str,
    pub(crate) script: &'a str,
    pub(crate) step: u64,
    pub(crate) fault: Option<(&'a str, u64)>,
    pub(crate) count: u64,
    pub(crate) seed: u64,
    pub(crate) checkpoint: Option<String>,
    /// It is killed so long after it has said that it writes.
    pub(crate) left: Option<Duration>,
}

/// What became of a child.
pub(crate) struct Ended {
    pub(crate) died: Died,
    pub(crate) heard: Heard,
    pub(crate) strengths: Vec<Strength>,
}

/// What it has said of itself before.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) checkpoint: Option<String>,
    /// The number of the last transaction that was acknowledged.
    pub(crate) acknowledged: Option<u64>,
}

impl Heard {
    /// Whether the word is one of these.
    fn takes(&mut self, word: &str, text: &str) -> bool {
        match word {
            "here" => {}
            "checkpoint" => self.checkpoint = Some(text.to_owned()),
            "acknowledged" => self.acknowledged = text.parse().ok(),
            _ => return false,
        }
        true
    }
}

impl Call<'_> {
    /// Runs a child until it dies.
    pub(crate) fn run(&self, child: &Child) -> Result<Ended, Broken> {
        let call = json!({
            "sink": self.sink, "address": self.address, "script": self.script, "step": self.step,
            "fault": self.fault, "count": self.count, "seed": self.seed, "checkpoint": self.checkpoint,
        });
        let mut command = Command::new(&child.program);
        command.args(&child.arguments).env(CALL, call.to_string());
        if let Some((point, count)) = self.fault {
            // As the fault points of the shipped sinks read it.
            command.env("CAPSTAN_FAULT", format!("{point}:{count}"));
        }
        let failed = |why: io::Error| kit(&format!("no child process: {why}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let alone = SPAWNING.write().unwrap_or_else(PoisonError::into_inner);
        let mut process = command.spawn().map_err(failed)?;
        let Some(stdout) = process.stdout.take() else { return Err(kit("a child without output")) };
        let (sender, words) = mpsc::channel();
        thread::spawn(move || {
            let (mut stdout, mut line) = (BufReader::new(stdout), String::new());
            while stdout.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                // What it was killed in the midst of saying was not said.
                if let Some(word) = line.strip_prefix(WORD).and_then(|word| word.strip_suffix('\n'))
                    && sender.send(word.to_owned()).is_err()
                {
                    break;
                }
                line.clear();
            }
        });
        let mut alone = Some(alone);
        let mut heard = Heard::default();
        let ended = loop {
            let word = words.recv_timeout(PATIENCE);
            // Whatever it says, it runs its own program now.
            drop(alone.take());
            let word = match word {
                Ok(word) => word,
                Err(mpsc::RecvTimeoutError::Timeout) => break Err(kit("a child process hangs")),
                Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(None),
            };
            match word.split_once(' ').unwrap_or((&word, "")) {
                (word, text) if heard.takes(word, text) => {}
                ("writes", _) => {
                    if let Some(left) = self.left {
                        thread::sleep(left);
                        break Ok(Some(Died::Killed));
                    }
                }
                ("brink", _) => break Ok(Some(Died::Killed)),
                ("finished", _) => break Ok(Some(Died::Finished)),
                ("broken", why) => break Err(why.to_owned()),
                (other, _) => break Err(kit(&format!("a child says {other}"))),
            }
        };
        let at_the_brink = matches!(ended, Ok(Some(Died::Killed)));
        if at_the_brink || ended.is_err() {
            process.kill().map_err(failed)?;
        }
        let status = process.wait().map_err(failed)?;
        for word in words {
            match word.split_once(' ').unwrap_or((&word, "")) {
                ("broken", why) => return Err(why.to_owned()),
                (word, text) => heard.takes(word, text),
            };
        }
        let mut strengths = Vec::new();
        if self.fault.is_some() {
            strengths.push(Strength::FaultPoint);
        }
        let died = match ended? {
            Some(Died::Finished) => {
                return Ok(Ended { died: Died::Finished, heard, strengths: Vec::new() });
            }
            // It was done before it was killed.
            Some(Died::Killed) if self.left.is_some() && status.success() => {
                return Ok(Ended { died: Died::Finished, heard, strengths: Vec::new() });
            }
            Some(Died::Killed) | None if killed(status) => Died::Killed,
            Some(Died::Killed) | None => return Err(kit(&format!("a child ended with {status}"))),
        };
        strengths.push(Strength::KilledProcess);
        Ok(Ended { died, heard, strengths })
    }
}

#[cfg(unix)]
fn killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(9)
}

#[cfg(not(unix))]
fn killed(status: ExitStatus) -> bool {
    !status.success()
}

/// Where this process is a child: does what it was told, and does not return.
pub(crate) fn serve<T: Target>() {
    let Ok(call) = env::var(CALL) else { return };
    IN_CHILD.store(true, Ordering::Release);
    say("here", "");
    match serve_call::<T>(&call) {
        Ok(()) => say("finished", ""),
        Err(why) => say("broken", &why),
    }
    // The test around the check has nothing more to do.
    process::exit(0)
}

fn serve_call<T: Target>(call: &str) -> Result<(), Broken> {
    let call: Value = serde_json::from_str(call).map_err(|_| kit("the call is no JSON"))?;
    let text = |name: &str| call.get(name).and_then(Value::as_str).ok_or_else(|| kit("a call is incomplete"));
    let number =
        |name: &str| call.get(name).and_then(Value::as_u64).ok_or_else(|| kit("a call is incomplete"));
    if text("sink")? != std::any::type_name::<T>() {
        return Err(kit("the child came to another check: one check to a test, please"));
    }
    let shown = |why: Trouble| why.to_string();
    let mut target = T::attach(text("address")?).map_err(shown)?;
    if let Some([point, count]) = call.get("fault").and_then(Value::as_array).map(Vec::as_slice)
        && let (Some(point), Some(count)) = (point.as_str(), count.as_u64())
    {
        target.arm(point, count).map_err(shown)?;
    }
    let level = target.level();
    let mut bench = Bench::new(&mut target, level, number("seed")?);
    let checkpoint = call.get("checkpoint").and_then(Value::as_str).map(Position::decode).transpose();
    bench.goes_on_from(number("count")?, checkpoint.map_err(|_| kit("the checkpoint is none"))?);
    let script = rules::script(text("script")?).ok_or_else(|| kit("no such script"))?;
    script(&mut bench, number("step")?)?;
    if bench.is_at_the_brink() {
        brink()
    }
    Ok(())
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({} {})", self.script, self.step)
    }
}
