//! What becomes of the memory of both worlds, and of single keys.

use super::model::{Memory, Model};
use super::server::said;
use super::world::{Key, World};
use crate::redis::form::{Past, Seen};

/// What becomes of a memory, or of one key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    /// Another process goes on with all that this one knows. Whoever asks first may have heard something of it.
    Kept(Option<Known>),
    /// A replica hears of nothing from now on, or a disk.
    Deaf,
    /// And takes over, with what it knows.
    Stale,
    /// A primary that heard of nothing, because another had taken over, comes back as it was.
    Back,
    /// Everything is gone, also the mark; the process is another, or the same that was emptied.
    Gone { is_emptied: bool, known: Known },
    /// Only the mark is.
    Unmarked,
    /// Somebody else writes something of this kind under a key.
    Taken { key: usize, kind: u8 },
    /// A key is gone that is somebody else's.
    Freed,
}

/// What whoever asks first knows of a loss.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    Nothing,
    Now,
    /// It was so many microseconds ago.
    Ago(u64),
    /// So it was, and another process had it.
    Elsewhere(u64),
    /// It will be in so many microseconds: their clock is wrong.
    Ahead(u64),
}

/// What a mark of the memory has to say.
#[derive(Clone)]
pub(super) struct Mark {
    pub(super) process: String,
    pub(super) epoch: u64,
    pub(super) memory: Memory,
    /// When it was last written, in microseconds.
    pub(super) beat: u64,
    /// Until when what was taken over by an epoch reaches, the last few times.
    pub(super) reaches: Vec<(u64, u64)>,
    /// The first epoch of all that is kept, and whether what was before counts as lost.
    pub(super) root: u64,
    pub(super) noted: bool,
    pub(super) is_lost_elsewhere: bool,
}

impl Mark {
    /// Whether something is missing that somebody has seen.
    fn lacks(&self, process: &str, seen: Seen) -> bool {
        let is_back = self.process == process && seen.epoch > self.epoch;
        if seen.since != self.root {
            return !self.noted || seen.since > self.root || is_back;
        }
        let taken_over = self.reaches.iter().find(|(epoch, _)| seen.epoch < *epoch);
        let reach = taken_over.map_or(self.beat, |(_, until)| *until);
        let is_one = |(epoch, _): &(u64, u64)| *epoch == seen.epoch;
        let is_ours = seen.epoch == self.root || self.reaches.iter().any(is_one);
        let reach = if is_ours { reach } else { reach.min(seen.epoch) };
        let since = self.reaches.iter().filter(|(epoch, _)| seen.epoch < *epoch).count();
        since < 4 && seen.at > reach + 3_000_000 || is_back
    }
}

/// What a server knows that hears of nothing any more: the keys and the mark, as they were, and what
/// stood there, for how many milliseconds more (0 without an end).
pub(super) struct Replica {
    keys: Vec<Key>,
    mark: Option<Mark>,
    dumps: Vec<(String, Option<Vec<u8>>, u64)>,
}

impl World {
    /// Something happens. What it means for keys is found out by whoever asks next.
    pub(super) fn suffer(&mut self, fate: Fate) {
        match fate {
            Fate::Kept(heard) => {
                self.heard = heard.map(|known| self.told(known));
                self.change_process();
            }
            Fate::Deaf => self.replica = Some(self.replicate()),
            Fate::Stale => {
                if let Some(replica) = self.replica.take() {
                    self.restore(replica);
                }
                self.change_process();
            }
            Fate::Back => {
                if let Some(replica) = self.replica.take() {
                    self.restore(replica);
                }
                if let Some(mark) = &self.written {
                    (self.process, self.memory) = (mark.process.clone(), mark.memory);
                    self.is_lost_elsewhere = mark.is_lost_elsewhere;
                }
            }
            Fate::Gone { is_emptied, known } => {
                for name in self.names() {
                    said::<()>(redis::cmd("DEL").arg(name));
                }
                if !is_emptied {
                    self.change_process();
                }
                (self.written, self.replica) = (None, None);
                self.heard = Some(self.told(known));
                for index in 0..self.keys.len() {
                    self.keys[index].model = Some(self.unknown(&self.keys[index].key));
                }
            }
            Fate::Unmarked => {
                said::<()>(redis::cmd("DEL").arg(&self.mark));
                (self.written, self.replica) = (None, None);
                self.heard = Some(self.told(Known::Now));
            }
            Fate::Taken { key, kind } => self.take(key, kind),
            Fate::Freed => {
                for index in 0..self.keys.len() {
                    if self.keys[index].model.is_none() {
                        said::<()>(redis::cmd("DEL").arg(&self.keys[index].name));
                        self.keys[index].model = Some(self.unknown(&self.keys[index].key));
                    }
                }
            }
        }
    }

    fn told(&self, known: Known) -> Past {
        let epoch = self.epochs[self.epochs.len() - 1];
        let since = self.seen.last().map_or(epoch, |seen| seen.since);
        let latest = Seen { epoch, at: self.now, since };
        match known {
            Known::Nothing => Past::Unknown,
            Known::Now => Past::Seen(latest),
            Known::Ago(micros) => Past::Lost(self.now - micros),
            Known::Elsewhere(micros) => Past::LostElsewhere(self.now - micros),
            Known::Ahead(micros) => Past::Lost(self.now + micros),
        }
    }

    /// What the next script finds out, with what whoever asks knows: whether the memory is another than
    /// that of the mark, and since when. See the table in the documentation of the store.
    pub(super) fn remember(&mut self, past: Past) {
        let (now, process) = (self.now, self.process.clone());
        let Some(mark) = &mut self.written else { return self.begin(past) };
        let lacks = matches!(past, Past::Seen(seen) if mark.lacks(&process, seen));
        let seen = if let Past::Seen(seen) = past { seen.epoch } else { 0 };
        if mark.process == process && !lacks {
            if now >= mark.beat + 1_000_000 {
                mark.beat = now;
            }
            return;
        }
        let (epoch, everything) = (now.max(mark.epoch + 1).max(seen + 1), mark.memory.everything);
        if lacks || matches!(past, Past::Lost(_)) {
            return self.forget(epoch);
        }
        let mut reaches = mark.reaches.clone();
        reaches.push((epoch, mark.beat));
        let kept = (reaches.split_off(reaches.len().saturating_sub(4)), mark.root, mark.noted);
        let tick = self.tick();
        let memory = Memory { number: self.epochs.len() as u64, lost: Some(tick), everything };
        for key in &mut self.keys {
            key.model = key.model.take().map(|model| model.taken_over(memory, tick));
        }
        self.is_lost_elsewhere = false;
        self.write(memory, epoch, kept);
    }

    /// There is no mark.
    fn begin(&mut self, past: Past) {
        let lost = match past {
            Past::Unknown => None,
            Past::Seen(_) => Some(self.tick()),
            Past::Lost(micros) | Past::LostElsewhere(micros) => self.tick_of(micros.min(self.now)),
        };
        let memory = Memory { number: self.epochs.len() as u64, lost, everything: lost };
        self.is_lost_elsewhere = matches!(past, Past::LostElsewhere(_));
        let seen = if let Past::Seen(seen) = past { seen.epoch } else { 0 };
        let epoch = self.now.max(seen + 1);
        self.write(memory, epoch, (Vec::new(), epoch, past != Past::Unknown));
        self.unlearn();
    }

    /// What is there is of no use.
    fn forget(&mut self, epoch: u64) {
        let lost = Some(self.tick());
        let memory = Memory { number: self.epochs.len() as u64, lost, everything: lost };
        // A slot that has lost something elsewhere stays one.
        self.is_lost_elsewhere &=
            self.written.as_ref().is_some_and(|mark| mark.process == self.process);
        self.write(memory, epoch, (Vec::new(), epoch, true));
        self.unlearn();
    }

    fn write(&mut self, memory: Memory, epoch: u64, kept: (Vec<(u64, u64)>, u64, bool)) {
        let (reaches, root, noted) = kept;
        self.memory = memory;
        self.epochs.push(epoch);
        let process = self.process.clone();
        let (beat, is_lost_elsewhere) = (self.now, self.is_lost_elsewhere);
        self.written =
            Some(Mark { process, epoch, memory, beat, reaches, root, noted, is_lost_elsewhere });
    }

    /// Nothing is known of any key but of those that are somebody else's.
    fn unlearn(&mut self) {
        for index in 0..self.keys.len() {
            let unknown = self.unknown(&self.keys[index].key);
            let model = &mut self.keys[index].model;
            *model = model.take().map(|_: Model| unknown);
        }
    }

    fn change_process(&mut self) {
        self.process = format!("p{}", self.epochs.len());
    }

    fn names(&self) -> Vec<String> {
        let keys = self.keys.iter().map(|key| key.name.clone());
        keys.chain([self.mark.clone()]).collect()
    }

    fn replicate(&self) -> Replica {
        let dump = |name: String| {
            let dump = said(redis::cmd("DUMP").arg(&name));
            let left: i64 = said(redis::cmd("PTTL").arg(&name));
            (name, dump, u64::try_from(left).unwrap_or(0))
        };
        let dumps = self.names().into_iter().map(dump).collect();
        Replica { keys: self.keys.clone(), mark: self.written.clone(), dumps }
    }

    fn restore(&mut self, replica: Replica) {
        for (name, dump, left) in replica.dumps {
            match dump {
                Some(dump) => {
                    let mut restore = redis::cmd("RESTORE");
                    said::<()>(restore.arg(name).arg(left).arg(dump).arg("REPLACE"));
                }
                None => said::<()>(redis::cmd("DEL").arg(name)),
            }
        }
        (self.keys, self.written) = (replica.keys, replica.mark);
    }

    /// Other types, and texts that begin as ours do.
    fn take(&mut self, key: usize, kind: u8) {
        let key = &mut self.keys[key];
        said::<()>(redis::cmd("DEL").arg(&key.name));
        let mut put =
            redis::cmd(["SET", "SADD", "HSET", "SET", "SET", "ZADD"][usize::from(kind) % 6]);
        put.arg(&key.name);
        let epoch = self.epochs.last().copied().unwrap_or(0);
        match kind % 6 {
            0 => put.arg("somebody else's"),
            1 => put.arg("somebody"),
            2 => put.arg("somebody").arg("else"),
            3 => put.arg(format!("bucket {epoch} short")),
            4 => put.arg(format!("window {epoch} 1 2 and so on")),
            _ => put.arg(1).arg("somebody"),
        };
        said::<()>(&put);
        (key.model, key.until) = (None, None);
    }
}
