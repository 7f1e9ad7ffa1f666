//! Many who ask at once: as fast as they are answered, or at a pace.

use std::num::NonZero;
use std::sync::Arc;
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

impl Callers {
    /// Thousands of answers in a second, if everybody asks again as soon as there is an answer.
    pub(super) async fn rate(self, asking: &impl Asking) -> Result<f64, BenchError> {
        let begin = Stopwatch::start();
        let mut tasks = JoinSet::new();
        for caller in 0..self.count {
            let asking = asking.clone();
            tasks.spawn(async move {
                let mut answers = 0;
                while begin.elapsed() < self.lasting {
                    let number = keys::mix(caller << 32 | answers) % self.keys;
                    refuse_denial(asking.ask(number).await?)?;
                    answers += 1;
                }
                Ok::<_, BenchError>(answers)
            });
        }
        let mut all = 0;
        while let Some(answers) = tasks.join_next().await {
            all += answers.map_err(|error| BenchError::Child(error.to_string()))??;
        }
        Ok(all as f64 / begin.elapsed().as_secs_f64() / 1e3)
    }

    /// What answers take, in microseconds, sorted, if so many questions a second come evenly,
    /// whatever the answers take.
    ///
    /// Timers are too coarse for that, so somebody looks at the clock all the time, in a task between
    /// all others. It keeps the runtime awake, for whomever is asked.
    pub(super) async fn paced(
        self,
        asking: &impl Asking,
        per_second: f64,
    ) -> Result<Vec<f64>, BenchError> {
        let questions = Arc::new(Semaphore::new(0));
        let mut tasks = JoinSet::new();
        for caller in 0..self.count {
            let (asking, questions) = (asking.clone(), Arc::clone(&questions));
            tasks.spawn(async move {
                let mut took = Vec::new();
                while let Ok(question) = questions.acquire().await {
                    question.forget();
                    let asked = Stopwatch::start();
                    let number = keys::mix(caller << 32 | took.len() as u64) % self.keys;
                    refuse_denial(asking.ask(number).await?)?;
                    took.push(asked.elapsed().as_secs_f64() * 1e6);
                }
                Ok::<_, BenchError>(took)
            });
        }
        tasks.spawn(async move {
            let (begin, mut asked) = (Stopwatch::start(), 0);
            while begin.elapsed() < self.lasting {
                let due = (begin.elapsed().as_secs_f64() * per_second) as usize;
                questions.add_permits(due - asked);
                asked = due;
                yield_now().await;
            }
            questions.close();
            Ok(Vec::new())
        });
        let mut all = Vec::new();
        while let Some(took) = tasks.join_next().await {
            all.extend(took.map_err(|error| BenchError::Child(error.to_string()))??);
        }
        all.sort_by(f64::total_cmp);
        Ok(all)
    }
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
