//! How long decisions by the store take, beside a bare `PING` through the same library.
//!
//! At most twice as long, for 99 % of the answers, with 64 callers and the same load on both sides. A load
//! is the same in one of two senses, and both are held to it:
//!
//! * There are as many questions under way: each of the 64 callers asks again as soon as it is answered.
//!   That is what 64 concurrent callers are, and nobody is spared: whoever answers sooner is asked more.
//! * There are as many questions in a second: about as many as both sides can answer without falling behind.
//!   Here the faster one has more room, which is to its credit.
//!
//! A third row has so few questions that hardly two of them meet: what one takes that waits for nobody.

use super::asking::{Answers, Callers, percentile, runtime};
use super::by_hand::{ByHand, Ping};
use super::server;
use super::strict::{CALLERS, Strict, callers, rounds};
use crate::error::BenchError;
use crate::measure::median;
use crate::report::{Reach, Row, Unit};
use crate::suite::Session;

pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    alone(session)?;
    crowded(session)
}

/// Few questions, evenly.
fn alone(session: &mut Session) -> Result<(), BenchError> {
    let name = format!("strict, {CALLERS} callers, {} a second, 99 % of answers", PACE as u64);
    if !session.wants(&name) {
        return Ok(());
    }
    let (redis, runtime, callers) = (server::start()?, runtime()?, callers(session));
    let url = server::url(&redis);
    let [mut ours, mut pings, mut scripts] = [const { Side::NEW }; 3];
    runtime.block_on(async {
        let (strict, ping) = (Strict::open(&url)?, Ping::open(&url).await?);
        let by_hand = ByHand::open(&url).await?;
        // Keys are known before it counts.
        callers.busy(&strict).await?;
        callers.busy(&by_hand).await?;
        for round in 1..=rounds(session) {
            session.progress.say(&format!("{name}: round {round}"));
            ours.add(callers.paced(&strict, PACE).await?);
            pings.add(callers.paced(&ping, PACE).await?);
            scripts.add(callers.paced(&by_hand, PACE).await?);
        }
        Ok::<_, BenchError>(())
    })?;
    let [half, most] = scripts.percentiles();
    let note = format!("to an EVALSHA for each half {half:.0} us, and 99 % {most:.0} us");
    session.add(row(name, ours, pings, &note));
    Ok(())
}

/// As many questions under way, and then as many in a second, on both sides.
fn crowded(session: &mut Session) -> Result<(), BenchError> {
    let busy = format!("strict, {CALLERS} callers, always asking, 99 % of answers");
    let paced = format!("strict, {CALLERS} callers, as many a second as PING, 99 % of answers");
    if !session.wants_any([&busy, &paced]) {
        return Ok(());
    }
    let (redis, runtime, callers) = (server::start()?, runtime()?, callers(session));
    let url = server::url(&redis);
    let both = runtime.block_on(async {
        let both = Both { strict: Strict::open(&url)?, ping: Ping::open(&url).await?, callers };
        // Keys are known before it counts.
        callers.busy(&both.strict).await?;
        Ok::<_, BenchError>(both)
    })?;
    let (ours, pings) = runtime.block_on(both.run(session, &busy, None))?;
    let (rate, ping_rate) = (ours.rate(), pings.rate());
    let note = format!("{rate:.0} K/s, of PING {ping_rate:.0} K/s");
    session.add(row(busy, ours, pings, &note));
    let pace = runtime.block_on(both.pace(rate.min(ping_rate) * 1e3))?;
    let (ours, pings) = runtime.block_on(both.run(session, &paced, Some(pace)))?;
    let kept_up = pings.rate() * 1e3 > pace * KEPT_UP;
    let note = format!(
        "{:.0} K/s are asked, and {:.0} K/s answered, of PING {:.0} K/s{}",
        pace / 1e3,
        ours.rate(),
        pings.rate(),
        if kept_up { "" } else { ", which fell behind: that proves nothing" }
    );
    let row = row(paced, ours, pings, &note);
    session.add(Row { ok: row.ok && kept_up, ..row });
    Ok(())
}

/// Those who are compared, and who asks them.
struct Both {
    strict: Strict,
    ping: Ping,
    callers: Callers,
}

impl Both {
    /// Asks both in turn: so many times a second, or all the time.
    async fn run(
        &self,
        session: &Session,
        name: &str,
        pace: Option<f64>,
    ) -> Result<(Side, Side), BenchError> {
        let [mut ours, mut pings] = [const { Side::NEW }; 2];
        for round in 1..=rounds(session) {
            session.progress.say(&format!("{name}: round {round}"));
            match pace {
                None => {
                    ours.add(self.callers.busy(&self.strict).await?);
                    pings.add(self.callers.busy(&self.ping).await?);
                }
                Some(pace) => {
                    ours.add(self.callers.paced(&self.strict, pace).await?);
                    pings.add(self.callers.paced(&self.ping, pace).await?);
                }
            }
        }
        Ok((ours, pings))
    }

    /// So many questions a second, or as many fewer as both sides keep up with. Otherwise it is the length
    /// of the queue that is measured, and whoever falls behind looks as slow as it is long.
    ///
    /// That is less than what callers get who ask all the time: somebody looks at the clock between them.
    async fn pace(&self, most: f64) -> Result<f64, BenchError> {
        let mut pace = most * SHARE;
        while pace > PACE {
            let ours = self.callers.paced(&self.strict, pace).await?;
            let pings = self.callers.paced(&self.ping, pace).await?;
            if ours.rate.min(pings.rate) * 1e3 > pace * KEPT_UP {
                break;
            }
            pace *= SHARE;
        }
        // Most of that, so that a moment in which the machine does something else is caught up on.
        Ok(pace * SHARE)
    }
}

/// All answers of one side together, so that no moment in which they are late is left out.
struct Side {
    took: Vec<f64>,
    rates: Vec<f64>,
    /// How long all of it took, in microseconds.
    lasted: f64,
}

impl Side {
    const NEW: Self = Self { took: Vec::new(), rates: Vec::new(), lasted: 0.0 };

    fn add(&mut self, answers: Answers) {
        self.lasted += answers.took.len() as f64 / answers.rate * 1e3;
        self.took.extend(answers.took);
        self.rates.push(answers.rate);
    }

    /// Thousands in a second.
    fn rate(&self) -> f64 {
        median(self.rates.clone())
    }

    /// How many questions are under way, or due, on the average.
    fn under_way(&self) -> f64 {
        self.took.iter().sum::<f64>() / self.lasted
    }

    /// What half of the answers take at most, and what 99 % do.
    fn percentiles(&mut self) -> [f64; 2] {
        self.took.sort_by(f64::total_cmp);
        [0.5, 0.99].map(|share| percentile(&self.took, share))
    }
}

fn row(name: String, mut ours: Side, mut pings: Side, more: &str) -> Row {
    let [[half, most], [ping_half, ping_most]] = [ours.percentiles(), pings.percentiles()];
    let note = format!(
        "half of the answers take {half:.0} us, to PING {ping_half:.0} us; {:.1} questions are under \
         way, of PING {:.1}; {more}",
        ours.under_way(),
        pings.under_way()
    );
    let row = Row::against(name, Unit::Microseconds, most, ("PING", ping_most));
    row.promising(Reach::Within(2.0)).noting(note)
}

/// Questions a second that hardly meet: well below what each can do.
const PACE: f64 = 16_000.0;

/// How much of a pace is tried next.
const SHARE: f64 = 0.8;

/// Who answers less than this part of what is asked has fallen behind.
const KEPT_UP: f64 = 0.95;
