//! Many who ask at once: as fast as they are answered, or at a pace.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, yield_now};

use crate::error::BenchError;
use crate::keys;
use crate::stopwatch::Stopwatch;

/// Somebody who answers questions about keys.
pub(super) trait Asking: Clone + Send + Sync + 'static {
    /// Whether the key of this number may go on.
    fn ask(&self, number: u64) -> impl Future<Output = Result<bool, BenchError>> + Send;
}

/// The callers of one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callers {
    pub(super) count: u64,
    pub(super) keys: u64,
    pub(super) lasting: Duration,
}

/// What came of asking.
#[derive(Debug)]
pub(super) struct Answers {
    /// What each took, in microseconds.
    pub(super) took: Vec<f64>,
    /// Thousands of them in a second.
    pub(super) rate: f64,
}

impl Callers {
    /// Everybody asks again as soon as there is an answer, so all have a question under way all the time.
    pub(super) async fn busy(self, asking: &impl Asking) -> Result<Answers, BenchError> {
        let begin = Stopwatch::start();
        let mut tasks = JoinSet::new();
        for caller in 0..self.count {
            let asking = asking.clone();
            tasks.spawn(async move {
                let (mut took, mut asked) = (Vec::new(), begin.elapsed());
                while asked < self.lasting {
                    let number = keys::mix(caller << 32 | took.len() as u64) % self.keys;
                    refuse_denial(asking.ask(number).await?)?;
                    // The next question is asked when this one is answered: one look at the clock for both.
                    let answered = begin.elapsed();
                    took.push((answered - asked).as_secs_f64() * 1e6);
                    asked = answered;
                }
                Ok(took)
            });
        }
        let took = join(tasks).await?;
        let rate = took.len() as f64 / begin.elapsed().as_secs_f64() / 1e3;
        Ok(Answers { took, rate })
    }

    /// So many questions a second come evenly, whatever the answers take.
    ///
    /// Time begins when a question is due, also if all callers are busy then, or whoever looks at the
    /// clock is late: what waits before it is asked is not left out.
    ///
    /// Timers are too coarse for that, so somebody looks at the clock all the time, in a task between
    /// all others. It keeps the runtime awake, for whomever is asked.
    pub(super) async fn paced(
        self,
        asking: &impl Asking,
        per_second: f64,
    ) -> Result<Answers, BenchError> {
        let questions = Arc::new(Questions::new(self.lasting, per_second));
        let mut tasks = JoinSet::new();
        for _ in 0..self.count {
            let (asking, questions) = (asking.clone(), Arc::clone(&questions));
            tasks.spawn(async move {
                let mut took = Vec::new();
                while let Some((question, due)) = questions.next().await {
                    refuse_denial(asking.ask(keys::mix(question) % self.keys).await?)?;
                    let waited = questions.begin.elapsed().saturating_sub(due);
                    took.push(waited.as_secs_f64() * 1e6);
                }
                Ok(took)
            });
        }
        let pacer = Arc::clone(&questions);
        tasks.spawn(async move {
            pacer.let_out(self.count).await;
            Ok(Vec::new())
        });
        let took = join(tasks).await?;
        let rate = took.len() as f64 / questions.begin.elapsed().as_secs_f64() / 1e3;
        Ok(Answers { took, rate })
    }
}

/// Questions that become due one after the other, each for the first caller who is free.
struct Questions {
    begin: Stopwatch,
    per_second: f64,
    count: u64,
    due: Semaphore,
    taken: AtomicU64,
}

impl Questions {
    fn new(lasting: Duration, per_second: f64) -> Self {
        Self {
            begin: Stopwatch::start(),
            per_second,
            count: (lasting.as_secs_f64() * per_second) as u64,
            due: Semaphore::new(0),
            taken: AtomicU64::new(0),
        }
    }

    /// Waits for a question: its number and when it was due. None if all have been asked.
    async fn next(&self) -> Option<(u64, Duration)> {
        self.due.acquire().await.ok()?.forget();
        // Numbers only have to differ: nothing else depends on who took which.
        let question = self.taken.fetch_add(1, Ordering::Relaxed);
        let due = Duration::from_secs_f64((question + 1) as f64 / self.per_second);
        (question < self.count).then_some((question, due))
    }

    /// Lets out what is due, until all is, and then sends so many callers home. What is due and not asked
    /// yet is asked before that.
    async fn let_out(&self, callers: u64) {
        let mut out = 0;
        while out < self.count {
            let due = (self.begin.elapsed().as_secs_f64() * self.per_second) as u64;
            let due = due.min(self.count);
            self.due.add_permits((due - out) as usize);
            out = due;
            yield_now().await;
        }
        self.due.add_permits(callers as usize);
    }
}

/// What all of them have measured.
async fn join(mut tasks: JoinSet<Result<Vec<f64>, BenchError>>) -> Result<Vec<f64>, BenchError> {
    let mut all = Vec::new();
    while let Some(took) = tasks.join_next().await {
        all.extend(took.map_err(|error| BenchError::Child(error.to_string()))??);
    }
    Ok(all)
}

/// The same share of denials on both sides: none.
fn refuse_denial(is_allowed: bool) -> Result<(), BenchError> {
    match is_allowed {
        true => Ok(()),
        false => Err(BenchError::Child("a request was denied, and none should be".to_owned())),
    }
}

/// The share of the figures that is no more than what is returned.
pub(super) fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// The name of a key, which is what everybody starts from.
pub(super) fn key(number: u64) -> String {
    format!("user:{number}")
}

/// The same runtime for all who ask: the cores of this machine, but for one that Redis has.
pub(super) fn runtime() -> Result<Runtime, BenchError> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = (cores - 1).clamp(1, MOST_THREADS);
    Ok(Builder::new_multi_thread().worker_threads(threads).enable_all().build()?)
}

/// More would wait for a single Redis.
const MOST_THREADS: usize = 4;
