//! A driver at its smallest, right or wrong in one way.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use capstan_conformance::driver::{Command, Driver, Lab, LabLink, LabSink, Running};
use capstan_core::{
    deliver::{Ack, BatchLimits, BatchState, Delivery, Event, Feed, Push, Sink as _, SinkError},
    halt::Halt,
    replica::{DialEpoch, Input, Link, LoadReason, Loaded, LostReason, Output, Read, Replica},
    time::Now,
};

/// What is wrong with a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Nothing,
    /// Takes one output for each input.
    OneOutput,
    /// Begins anew after a halt.
    Restarts,
    /// Reads whenever there is something to read.
    ReadsOn,
    /// Takes whatever dial comes through for the newest.
    NewestEpoch,
    /// Forgets what a link did not take at once.
    ShortWrites,
    /// Wakes three seconds late.
    SleepsIn,
}

pub struct Plain(pub Wrong);

impl Driver for Plain {
    fn run<'a>(&'a self, lab: &'a Lab) -> Running<'a> {
        Box::pin(async move {
            loop {
                let end = Loop::new(self.0, lab).run().await;
                if end.is_ok() || self.0 != Wrong::Restarts {
                    return end;
                }
            }
        })
    }
}

type Job = Pin<Box<dyn Future<Output = (LabSink, BatchState, Result<Ack, SinkError>)>>>;
type Sleep<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;
type Dialling = Pin<Box<dyn Future<Output = Result<LabLink, LostReason>>>>;

struct Loop<'a> {
    wrong: Wrong,
    lab: &'a Lab,
    replica: Replica,
    delivery: Delivery,
    sink: Option<LabSink>,
    job: Option<Job>,
    dials: Vec<(DialEpoch, Dialling)>,
    epoch: DialEpoch,
    link: Option<LabLink>,
    out: VecDeque<Bytes>,
    load: Option<LoadReason>,
    wake: Option<Now>,
    sleep: Option<(Now, Sleep<'a>)>,
    command: Pin<Box<dyn Future<Output = Command> + 'a>>,
    read: Read,
}

/// Nothing is streamed here.
struct NoFeed;

impl Feed for NoFeed {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Event>> {
        Poll::Ready(None)
    }

    fn wait_next(&mut self) -> Option<Event> {
        None
    }

    fn released(&mut self, _: usize) {}
}

impl<'a> Loop<'a> {
    fn new(wrong: Wrong, lab: &'a Lab) -> Self {
        Self {
            wrong,
            lab,
            replica: Replica::new(lab.config(), lab.seed(), lab.now()),
            delivery: Delivery::new(BatchLimits::default(), 1),
            sink: Some(lab.sink()),
            job: None,
            dials: Vec::new(),
            epoch: DialEpoch(0),
            link: None,
            out: VecDeque::new(),
            load: None,
            wake: None,
            sleep: None,
            command: Box::pin(lab.next_command()),
            read: Read::Paused,
        }
    }

    async fn run(&mut self) -> Result<(), Halt> {
        loop {
            if let Some(end) = self.pull() {
                return end;
            }
            if let (Some(reason), Some(sink)) = (self.load, &mut self.sink) {
                self.load = None;
                let stored = sink.position().await.unwrap();
                let holds = match reason {
                    LoadReason::AfterFailure => self.delivery.read_back(stored.as_ref()),
                    LoadReason::BeforeDial | LoadReason::Overdue => self.delivery.restart(stored.as_ref()),
                };
                self.input(Input::CheckpointLoaded(Loaded::Position { stored: stored.map(Box::new), holds }));
                continue;
            }
            if self.sink.is_some()
                && let Some(mut state) = self.delivery.next_batch(|| Box::new(NoFeed))
            {
                let mut sink = self.sink.take().unwrap();
                self.job = Some(Box::pin(async move {
                    let result = sink.apply(state.batch()).await;
                    (sink, state, result)
                }));
            }
            let input = poll_fn(|cx| self.poll_turn(cx)).await;
            self.input(input);
        }
    }

    fn input(&mut self, input: Input) {
        // A refused one is a bug of this loop, which goes on in the wrong.
        let _ = self.replica.handle_input(self.lab.now(), input);
    }

    fn pull(&mut self) -> Option<Result<(), Halt>> {
        loop {
            match self.replica.poll_output() {
                Output::LoadCheckpoint(reason) => self.load = Some(reason),
                Output::Reapply { .. } | Output::Secure(..) => {}
                Output::Connect(Link::Stream, epoch) => {
                    let lab = self.lab.clone();
                    if self.wrong != Wrong::NewestEpoch {
                        self.dials.clear();
                    }
                    self.dials.push((epoch, Box::pin(async move { lab.connect().await })));
                    self.epoch = epoch;
                    self.link = None;
                }
                Output::Transmit(Link::Stream, _, bytes) => self.out.push_back(bytes),
                Output::Close(Link::Stream, _) => {
                    if self.wrong != Wrong::NewestEpoch {
                        self.dials.clear();
                    }
                    self.link = None;
                    self.out.clear();
                }
                Output::Event(event) => {
                    let Push::Queued = self.delivery.push(event) else { panic!("nothing is streamed") };
                }
                Output::Connect(Link::Copy(_), _)
                | Output::Transmit(Link::Copy(_), _, _)
                | Output::Close(Link::Copy(_), _) => panic!("nothing is copied"),
                Output::Halt(halt) => return Some(Err(halt)),
                Output::Stopped => return Some(Ok(())),
                Output::Idle { wake, read, copy: _ } => {
                    self.wake = wake.map(|(at, _)| at);
                    self.read = read;
                    return None;
                }
            }
            if self.wrong == Wrong::OneOutput {
                return None;
            }
        }
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        if let Some(job) = &mut self.job
            && let Poll::Ready((sink, state, result)) = job.as_mut().poll(cx)
        {
            (self.job, self.sink) = (None, Some(sink));
            let upto = self.delivery.accept(state, result.unwrap()).unwrap();
            return Poll::Ready(Input::Durable { upto });
        }
        if let Poll::Ready(command) = self.command.as_mut().poll(cx) {
            self.command = Box::pin(self.lab.next_command());
            return Poll::Ready(if command == Command::Pause { Input::Pause } else { Input::Resume });
        }
        let mut opened = None;
        self.dials.retain_mut(|(epoch, dial)| match dial.as_mut().poll(cx) {
            Poll::Ready(link) if opened.is_none() => {
                opened = Some((*epoch, link));
                false
            }
            _ => true,
        });
        if let Some((epoch, link)) = opened {
            self.link = Some(link.unwrap());
            let epoch = if self.wrong == Wrong::NewestEpoch { self.epoch } else { epoch };
            return Poll::Ready(Input::Connected(Link::Stream, epoch));
        }
        if let Some(input) = self.poll_link(cx) {
            return Poll::Ready(input);
        }
        self.poll_timer(cx)
    }

    fn poll_link(&mut self, cx: &mut Context<'_>) -> Option<Input> {
        let link = self.link.as_mut()?;
        while let Some(front) = self.out.front_mut() {
            let Poll::Ready(count) = link.poll_write(cx, front) else { break };
            front.advance(count);
            if front.is_empty() || self.wrong == Wrong::ShortWrites {
                self.out.pop_front();
            }
        }
        let most = match self.read {
            Read::UpTo(most) => most.min(65_536),
            Read::Paused if self.wrong == Wrong::ReadsOn => 65_536,
            Read::Paused => return None,
        };
        let mut buffer = vec![0; most];
        match link.poll_read(cx, &mut buffer) {
            Poll::Pending => None,
            Poll::Ready(0) => {
                self.link = None;
                Some(Input::Lost(Link::Stream, self.epoch, LostReason::Eof))
            }
            Poll::Ready(count) => {
                buffer.truncate(count);
                Some(Input::Bytes(Link::Stream, self.epoch, buffer.into()))
            }
        }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        let Some(wake) = self.wake else { return Poll::Pending };
        if self.sleep.as_ref().is_none_or(|(at, _)| *at > wake) {
            let lab = self.lab;
            let late = if self.wrong == Wrong::SleepsIn { Duration::from_secs(3) } else { Duration::ZERO };
            self.sleep = Some((wake, Box::pin(async move { lab.sleep_until(wake.after(late)).await })));
        }
        let Some((_, sleep)) = &mut self.sleep else { return Poll::Pending };
        if sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.sleep = None;
        Poll::Ready(Input::Tick)
    }
}
