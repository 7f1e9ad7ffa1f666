//! Commands that are carried out in one go: those of a transaction, and those behind one that has to
//! wait for a store. All that they need is kept for them first, so it is waited for once.

use smallvec::SmallVec;
use tollgate::{Request, Reserve, Wait};

use super::{Answering, Batch, Flow, Halt};
use crate::resp::asked::{Asked, Naming};
use crate::resp::command::{Command, Verb};
use crate::resp::frame::{Arguments, Bounds, Decoded, decode};
use crate::service::Turn;

/// What commands need that are carried out in one go.
#[derive(Default)]
struct Needs<'a> {
    checks: Asked<'a>,
    peeks: Asked<'a>,
    /// How long these commands are.
    bytes: usize,
}

impl<'a> Needs<'a> {
    /// Of all commands of a transaction.
    fn of_all(commands: &'a [u8], bounds: Bounds) -> Self {
        let (mut needs, mut arguments) = (Self::default(), Arguments::new());
        while let Ok(Decoded::Command { length }) =
            decode(&commands[needs.bytes..], bounds, &mut arguments)
        {
            let verb = arguments.first().and_then(|name| Command::find(name)).map(|it| it.verb);
            needs.add(verb, &arguments);
            needs.bytes += length;
        }
        needs
    }

    /// Of the first of some commands and of those behind it that can be carried out with it: as many
    /// as a transaction can have, and none whose answer would be another one if what the next ones
    /// need was taken before it.
    fn of_first(commands: &'a [u8], bounds: Bounds, most: usize) -> Self {
        let (mut needs, mut arguments) = (Self::default(), Arguments::new());
        while needs.len() < most
            && let Ok(Decoded::Command { length }) =
                decode(&commands[needs.bytes..], bounds, &mut arguments)
        {
            let verb = arguments.first().and_then(|name| Command::find(name)).map(|it| it.verb);
            match verb {
                Some(Verb::Check) if needs.peeks.len() == 0 => {}
                Some(Verb::Peek) if needs.checks.len() == 0 => {}
                // They have nothing to do with what is kept.
                Some(Verb::Throttle(_) | Verb::Ping | Verb::Echo) => {}
                _ => break,
            }
            needs.add(verb, &arguments);
            needs.bytes += length;
        }
        needs
    }

    fn add(&mut self, verb: Option<Verb>, arguments: &[&'a [u8]]) {
        let asked = match verb {
            Some(Verb::Check) => &mut self.checks,
            Some(Verb::Peek) => &mut self.peeks,
            _ => return,
        };
        // What is wrong with one is said when it is carried out.
        let _ = asked.add(arguments, Naming::Nothing);
    }

    fn len(&self) -> usize {
        self.checks.len() + self.peeks.len()
    }
}

impl Answering<'_> {
    /// Goes on with commands that have waited for a store, if it is for several of them. How many
    /// bytes they have, or what is to be waited for once more.
    #[inline]
    pub(super) fn resume(&mut self, bytes: &[u8]) -> Result<usize, Wait> {
        match self.turn {
            Turn::Again { .. } => self.carry_out_first(bytes),
            Turn::First | Turn::Now => Ok(0),
        }
    }

    #[cold]
    fn carry_out_first(&mut self, bytes: &[u8]) -> Result<usize, Wait> {
        let Some(needs) = self.gather(bytes) else { return Ok(0) };
        let kept = self.keep(&needs)?;
        self.carry_out(&bytes[..needs.bytes], kept);
        Ok(needs.bytes)
    }

    /// What is waited for if the first of these commands has to wait for a store: whatever those
    /// behind it lack is asked for in the same go.
    #[cold]
    pub(super) fn and_behind(&self, halt: Halt, bytes: &[u8]) -> Halt {
        match (halt, self.gather(bytes)) {
            (Halt::Wait(first), Some(needs)) => {
                Halt::Wait(self.keep(&needs).err().unwrap_or(first))
            }
            (halt, _) => halt,
        }
    }

    /// What the first of these commands and those behind it need, if it is several.
    fn gather<'a>(&self, commands: &'a [u8]) -> Option<Needs<'a>> {
        if self.session.transaction.is_some() {
            return None;
        }
        let bounds = self.session.bounds(&self.door.limits);
        let needs = Needs::of_first(commands, bounds, self.door.limits.batch);
        (needs.len() > 1).then_some(needs)
    }

    /// Answers what has come since `MULTI`, as one.
    #[inline(never)]
    pub(super) fn execute(&mut self) -> Flow {
        let Some(transaction) = self.session.transaction.take() else {
            self.replies.error("ERR EXEC without MULTI");
            return Flow::Goes;
        };
        if transaction.is_broken() {
            let text = "EXECABORT Transaction discarded because of previous errors.";
            self.replies.error(text);
            return Flow::Goes;
        }
        let bounds = self.session.bounds(&self.door.limits);
        let kept = self.keep(&Needs::of_all(transaction.bytes(), bounds));
        let kept = match kept {
            Ok(kept) => kept,
            Err(wait) => {
                // It is carried out when it comes again.
                self.session.transaction = Some(transaction);
                return self.waits(Err(wait));
            }
        };
        self.replies.array(transaction.len());
        self.carry_out(transaction.bytes(), kept);
        Flow::Goes
    }

    /// Answers commands with what is kept for them. None of them waits.
    fn carry_out(&mut self, mut commands: &[u8], kept: Reserve) {
        let bounds = self.session.bounds(&self.door.limits);
        let (mut batch, mut arguments) = (Batch::default(), Arguments::new());
        (self.turn, self.kept) = (Turn::Now, Some(kept));
        while let Ok(Decoded::Command { length }) = decode(commands, bounds, &mut arguments) {
            commands = &commands[length..];
            self.take(&arguments, &mut batch);
            self.turn = Turn::Now;
        }
        self.decide(&mut batch);
        (self.turn, self.kept) = (Turn::First, None);
    }

    /// What is kept for commands until they are carried out, or what is to be waited for first.
    fn keep(&self, needs: &Needs<'_>) -> Result<Reserve, Wait> {
        // All of them at once: it is waited for once, and then carried out.
        let client = self.session.client_cert();
        let checks: SmallVec<[Request<'_>; 4]> = needs.checks.each(client).map(|it| it.0).collect();
        let peeks: SmallVec<[Request<'_>; 4]> = needs.peeks.each(client).map(|it| it.0).collect();
        self.door.service.keep(&checks, &peeks, self.turn)
    }
}
