//! From questions to the arguments of a script.

use std::time::Duration;

use redis::Cmd;
use tollgate_core::lease::Exchange;
use tollgate_core::{Phase, Plan, Tick, Wall};

use crate::ask::Ask;
use crate::budget::{Budget, Kind};
use crate::error::StoreError;
use crate::redis::name::Names;
use crate::redis::script::Algorithm;

/// What all questions about a budget have in common.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(super) algorithm: Algorithm,
    pub(super) names: Names,
    /// Arguments between those about the memory and the questions.
    head: Vec<String>,
    plan: Option<Plan>,
    /// Whether windows end at other times for other keys.
    is_jittered: bool,
}

/// What is known here of the memory of a server, by which it can be told whether something of it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// Nothing: there may never have been any.
    Unknown,
    /// It has answered.
    Seen(Seen),
    /// It was lost with all that its process had, at this time in microseconds.
    Lost(u64),
    /// So it was, by another process that had the slot then.
    LostElsewhere(u64),
}

/// The memory that was answered from last, and when, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    pub(super) epoch: u64,
    pub(super) at: u64,
    /// The epoch since which nothing was lost but last moments.
    pub(super) since: u64,
}

/// What is known to whoever asks about the memory that a key lives in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory<'a> {
    /// What was before.
    pub(super) past: Past,
    /// If the mark names another process.
    pub(super) former: Former<'a>,
}

/// What has become of the process that a mark names, if it is not the one that is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Former<'a> {
    /// It is gone, whoever it is: there are no slots that could have moved.
    Any,
    /// Nothing is known: the script is to say who it is.
    Unknown,
    /// This one is known.
    Known(&'a Verdict),
}

/// What was found out about a process that had a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) process: String,
    /// Whether it has given the slot away in good order, so that nothing was lost.
    pub(super) has_given: bool,
}

impl From<Past> for Memory<'_> {
    fn from(past: Past) -> Self {
        Self { past, former: Former::Any }
    }
}

impl std::fmt::Display for Memory<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.past {
            Past::Unknown => write!(f, "none 0 0 0"),
            Past::Seen(Seen { epoch, at, since }) => write!(f, "seen {epoch} {at} {since}"),
            Past::Lost(micros) => write!(f, "lost {micros} 0 0"),
            Past::LostElsewhere(micros) => write!(f, "elsewhere {micros} 0 0"),
        }?;
        match self.former {
            Former::Any => Ok(()),
            Former::Unknown => write!(f, " ask"),
            Former::Known(Verdict { process, has_given }) => {
                write!(f, " {} {process}", if *has_given { "given" } else { "gone" })
            }
        }
    }
}

impl Form {
    /// `None` if there is nothing to ask: there is no limit.
    pub(crate) fn of(budget: &Budget) -> Result<Option<Self>, StoreError> {
        let (algorithm, plan) = match budget.kind() {
            Kind::Unlimited => return Ok(None),
            Kind::Log(_) => (Algorithm::Log, None),
            Kind::Lent(lender) => match lender.machine().map(|machine| machine.plan()) {
                None => (Algorithm::Permits, None),
                Some(Plan::Unlimited) => return Ok(None),
                Some(plan @ (Plan::Bucket { .. } | Plan::Shape { .. })) => {
                    (Algorithm::Bucket, Some(plan))
                }
                Some(plan @ Plan::Window { .. }) => (Algorithm::Window, Some(plan)),
                Some(plan @ Plan::Sliding { limit, length, .. }) => {
                    // The products of both are told in seconds, and have to be exact.
                    if limit.saturating_mul(length.div_ceil(BILLION)) >= EXACT {
                        let reason = "it counts too many in too long a window for Redis";
                        return Err(StoreError::Unsupported { limit: budget.to_string(), reason });
                    }
                    (Algorithm::Sliding, Some(plan))
                }
            },
        };
        let kept = millis(kept_for(budget, plan)).to_string();
        let mut head = vec![kept, budget.to_string(), terms(budget)];
        head.extend(numbers(budget, plan));
        let is_jittered = [Phase(0), Phase(1)].map(|phase| windows(budget, budget.origin(), phase));
        let is_jittered = is_jittered[0] != is_jittered[1];
        Ok(Some(Self { algorithm, names: Names::of(budget), head, plan, is_jittered }))
    }

    /// Begins a command: all but the keys' questions. `asked` says what they are like.
    pub(super) fn write_head<'a>(
        &self,
        command: &mut Cmd,
        process: &str,
        memory: impl Into<Memory<'a>>,
        asked: &str,
    ) {
        command.arg(process).arg(memory.into().to_string());
        command.arg(asked);
        for argument in &self.head {
            command.arg(argument);
        }
    }

    /// How long a key of this budget is kept after it was last written.
    pub(super) fn kept(&self, budget: &Budget) -> Duration {
        kept_for(budget, self.plan)
    }

    /// Whether a question is one of those that can be answered quickly, as nearly all can.
    pub(super) fn is_plain(&self, ask: &Ask) -> bool {
        let exchange = ask.exchange();
        let is_once = exchange.sequence == 0 && exchange.undo.is_none();
        is_once
            && ask.carried().is_none()
            && !matches!(self.algorithm, Algorithm::Log | Algorithm::Permits)
    }

    /// Whether two plain questions that cost the same are the same, whatever their keys.
    pub(super) const fn is_same_for_all_keys(&self) -> bool {
        !self.is_jittered
    }

    /// Adds a question. `around` is about the time of the store's clock.
    pub(super) fn write_ask(&self, command: &mut Cmd, ask: &Ask, around: Wall) {
        let exchange = ask.exchange();
        if let Some(carried) = ask.carried() {
            let ago = u64::try_from(carried.ago.as_micros()).unwrap_or(EXACT).min(EXACT - 1);
            command.arg("carried").arg(clamped(carried.spent)).arg(ago);
            command.arg(u8::from(carried.of_known));
        }
        let is_numbered = exchange.sequence > 0 && self.algorithm != Algorithm::Log;
        let undo = exchange.undo.filter(|_| exchange.sequence == 0);
        match undo {
            Some(undo) => {
                let micros = undo.at.as_unix_nanos() / 1_000;
                command.arg("undo").arg(clamped(undo.cost)).arg(micros);
            }
            None if is_numbered => write_exchange(command, exchange),
            None => {
                command.arg("").arg(clamped(exchange.cost));
            }
        }
        let moved = match (undo, self.plan) {
            // A place in a queue cannot be given back.
            (Some(_), Some(Plan::Shape { .. })) => None,
            (Some(undo), _) => Some(undo.cost),
            (None, _) => Some(exchange.cost),
        };
        self.write_numbers(command, ask, moved, around);
    }

    /// Adds a question that lets a key be forgotten.
    pub(super) fn write_forget(&self, command: &mut Cmd, ask: &Ask, around: Wall) {
        command.arg("forget").arg(0);
        self.write_numbers(command, ask, Some(0), around);
    }

    /// The numbers that the algorithm needs to know; `moved` is what is spent or taken back, if it
    /// can be.
    fn write_numbers(&self, command: &mut Cmd, ask: &Ask, moved: Option<u64>, around: Wall) {
        match self.plan {
            Some(
                Plan::Bucket { per_nano, interval, tokens }
                | Plan::Shape { per_nano, interval, tokens },
            ) => match moved.filter(|cost| *cost <= tokens) {
                Some(cost) => {
                    let (seconds, grains) = parts(cost * interval, BILLION * per_nano);
                    command.arg(seconds).arg(grains);
                }
                None => {
                    command.arg(-1).arg(0);
                }
            },
            Some(Plan::Window { .. } | Plan::Sliding { .. }) => {
                for moment in windows(ask.budget(), around, ask.phase()) {
                    let (seconds, nanos) = parts(moment, BILLION);
                    command.arg(seconds).arg(nanos);
                }
            }
            _ => {}
        }
    }
}

fn write_exchange(command: &mut Cmd, exchange: &Exchange) {
    let node = format!("{:x}.{:x}", exchange.node.number, exchange.node.incarnation);
    command.arg(node).arg(clamped(exchange.cost)).arg(exchange.sequence);
    match exchange.lease {
        Some(lease) => command.arg(lease.epoch.min(EXACT)).arg(lease.began.min(EXACT)),
        None => command.arg(-1).arg(-1),
    };
    // Sums since the lease began can be more than there ever is at once.
    for sum in [exchange.used, exchange.returned] {
        command.arg(sum.min(EXACT - 1));
    }
    for count in [exchange.want, exchange.least] {
        command.arg(clamped(count));
    }
}

/// The begin of the window around a time, its end, and the end of the next, since 1970.
fn windows(budget: &Budget, around: Wall, phase: Phase) -> [u64; 3] {
    let window = |at: Tick| match budget.kind() {
        Kind::Lent(lender) => lender.machine().and_then(|machine| machine.window(at, phase)),
        Kind::Log(_) | Kind::Unlimited => None,
    };
    let now = budget.tick_at(around).unwrap_or(Tick::ZERO);
    let (begin, middle) = window(now).unwrap_or((now, now));
    let (_, end) = window(middle).unwrap_or((middle, middle));
    [begin, middle, end].map(|tick| budget.unix_nanos(tick))
}

/// The terms of lending: for how long, how far away, how few are not shared, how many come in on the way,
/// how many make a lane, and for how long to wait in nanoseconds. Less than nothing if nothing is lent. Then
/// for how long others may hold what was lent to them.
fn terms(budget: &Budget) -> String {
    let pair = |span: Duration| format!("{} {}", span.as_secs(), span.subsec_nanos());
    let longest = pair(match budget.kind() {
        Kind::Lent(lender) => lender.longest_hold(),
        Kind::Log(_) | Kind::Unlimited => Duration::ZERO,
    });
    match budget.terms() {
        Some(terms) => {
            let (hold, trip) = (pair(terms.hold()), pair(terms.round_trip()));
            let [few, on_the_way, lane] =
                [terms.few(), terms.on_the_way(), terms.lane_tokens()].map(clamped);
            let pause = terms.pause().as_nanos();
            format!("{hold} {trip} {few} {on_the_way} {lane} {pause} {longest}")
        }
        None => format!("-1 0 0 0 0 0 1 0 {longest}"),
    }
}

/// The numbers of the algorithm.
fn numbers(budget: &Budget, plan: Option<Plan>) -> Vec<String> {
    let is_short = u64::from(budget.period() <= SHORT_WINDOW);
    let numbers = match plan {
        Some(
            Plan::Bucket { per_nano, interval, tokens }
            | Plan::Shape { per_nano, interval, tokens },
        ) => {
            let pair = |grains| parts(grains, BILLION * per_nano);
            let ((one_s, one_g), (all_s, all_g)) = (pair(interval), pair(tokens * interval));
            vec![per_nano, tokens, one_s, one_g, all_s, all_g]
        }
        Some(Plan::Window { limit }) => vec![limit, is_short],
        Some(Plan::Sliding { limit, length, rounding }) => {
            let (seconds, nanos) = parts(length, BILLION);
            vec![limit, is_short, seconds, nanos, rounding]
        }
        Some(Plan::Unlimited) | None => match budget.kind() {
            Kind::Lent(lender) => vec![lender.permits().map_or(0, |max| max.get().into())],
            Kind::Log(rule) => vec![rule.limit(), rule.window().as_micros() as u64],
            Kind::Unlimited => Vec::new(),
        },
    };
    numbers.iter().map(u64::to_string).collect()
}

/// How long a key is kept after it was last written: twice what it takes until it has its whole
/// budget back, and what its leases need.
fn kept_for(budget: &Budget, plan: Option<Plan>) -> Duration {
    let full = match plan {
        Some(
            Plan::Bucket { per_nano, interval, tokens }
            | Plan::Shape { per_nano, interval, tokens },
        ) => Duration::from_nanos((tokens * interval).div_ceil(per_nano)),
        _ => budget.period(),
    };
    let hold = budget.terms().map_or(Duration::ZERO, |terms| terms.hold());
    (full + hold + Duration::from_secs(1)) * 2
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

const fn parts(all: u64, base: u64) -> (u64, u64) {
    (all / base, all % base)
}

/// More than any limit allows is as good as any more.
pub(super) fn clamped(count: u64) -> u64 {
    count.min(MOST)
}

pub(super) const BILLION: u64 = 1_000_000_000;

/// More than there is of anything, and few enough for sums to be exact.
const MOST: u64 = 1 << 50;

/// Numbers up to here are exact in Lua.
pub(super) const EXACT: u64 = 1 << 53;

/// A window up to this length is taken for spent after every loss of memory, however little was
/// lost. Of longer ones it counts whether anything was kept.
const SHORT_WINDOW: Duration = Duration::from_secs(60);
