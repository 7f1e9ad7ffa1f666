//! What is decided about descriptors.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::{Ask, Decision, Request, Reserve, Retry, Ruling};
use tollgate_rules::Descriptors;

use crate::door::Name;
use crate::grpc::Asking;
use crate::grpc::frame::{Code, Refusal};
use crate::grpc::rls::described::{Attributes, Described, Own};

/// What is decided about one descriptor.
pub(super) enum Decided {
    ByRules(Ruling),
    /// By the limit that came with it.
    ByOwn(Own, Decision),
}

impl Decided {
    pub(super) fn is_allowed(&self) -> bool {
        match self {
            Self::ByRules(ruling) => ruling.is_allowed(),
            Self::ByOwn(_, decision) => decision.is_allowed(),
        }
    }

    pub(super) fn decision(&self) -> Decision {
        match self {
            Self::ByRules(ruling) => ruling.decision(),
            Self::ByOwn(_, decision) => *decision,
        }
    }

    /// How long it has to wait in line.
    pub(super) fn delay(&self) -> Duration {
        if self.is_allowed() { self.decision().delay() } else { Duration::ZERO }
    }
}

/// Whether something is spent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intent {
    Spend,
    Look,
}

/// A descriptor, ready to be decided about.
struct Part<'a, 'd> {
    described: &'a Described<'d>,
    request: Request<'a>,
    own: Option<Own>,
    /// What must be there for it to pass: what it spends, and where all is decided together, what
    /// others of the same request spend from the same limit that came with them.
    needs: u64,
}

impl<'a> Part<'a, '_> {
    /// What it asks if it only looks: whether there is anything left.
    fn looking(&self) -> Request<'a> {
        self.request.cost(self.described.hits.max(1))
    }

    const fn spends_by_rules(&self) -> bool {
        self.own.is_none() && self.described.hits > 0
    }

    const fn spends_own(&self) -> bool {
        self.own.is_some() && self.described.hits > 0
    }
}

impl Asking {
    /// The usual case: one descriptor that spends something, and leaves the limit to rules.
    pub(super) fn decide_single(&self, one: &Described<'_>) -> Result<Decided, Refusal> {
        let attributes = one.attributes();
        let request = one.request(&attributes).client_cert(self.client_cert());
        let ruling = self.ruling(&request)?;
        Ok(self.and_charge(ruling, &request))
    }

    pub(super) fn decide(&self, all: &[Described<'_>]) -> Result<Vec<Decided>, Refusal> {
        let attributes: Vec<Attributes<'_>> = all.iter().map(Described::attributes).collect();
        let parts = all.iter().zip(&attributes).map(|(described, attributes)| Part {
            described,
            request: described.request(attributes).client_cert(self.client_cert()),
            own: described.own,
            needs: described.hits.max(1),
        });
        let mut parts: Vec<_> = parts.collect();
        let by_rules = parts.iter().filter(|part| part.own.is_none());
        let (checks, peeks): (Vec<_>, Vec<_>) = by_rules.partition(|part| part.spends_by_rules());
        let checks: Vec<_> = checks.iter().map(|part| part.request).collect();
        let peeks: Vec<_> = peeks.iter().map(|part| part.looking()).collect();
        let mut kept = self.service.keep(&checks, &peeks, self.turn)?;
        match self.service.rules().descriptors() {
            Descriptors::Together => {
                add_up(&mut parts);
                self.decide_together(&parts, &mut kept)
            }
            Descriptors::Each => {
                parts.iter().map(|part| self.decide_one(part, &mut kept)).collect()
            }
        }
    }

    /// All or nothing.
    fn decide_together(
        &self,
        parts: &[Part<'_, '_>],
        kept: &mut Reserve,
    ) -> Result<Vec<Decided>, Refusal> {
        // Limits that came with descriptors, and those that only look, are looked at first.
        let mut decided = Vec::with_capacity(parts.len());
        for part in parts {
            decided.push(match part.spends_by_rules() {
                true => None,
                false => Some(self.look(part)?),
            });
        }
        if decided.iter().flatten().any(|each| !each.is_allowed()) {
            std::mem::take(kept).give_up();
            return self.look_at_rest(decided, parts);
        }
        let asked = || parts.iter().enumerate().filter(|(_, part)| part.spends_by_rules());
        let requests: Vec<_> = asked().map(|(_, part)| part.request).collect();
        let mut places = asked().map(|(at, _)| at);
        let mut all_allowed = true;
        self.service.check_together(Name::Grpc, &requests, kept, |_, ruling| {
            all_allowed &= ruling.is_allowed();
            if let Some(at) = places.next() {
                decided[at] = Some(Decided::ByRules(ruling));
            }
        });
        match all_allowed {
            true => self.spend_own(decided, parts),
            false => self.look_at_rest(decided, parts),
        }
    }

    /// Spends from the limits that came with descriptors, after all else was spent. If somebody was
    /// faster since they were looked at, everything goes back, and is looked at again.
    fn spend_own(
        &self,
        mut decided: Vec<Option<Decided>>,
        parts: &[Part<'_, '_>],
    ) -> Result<Vec<Decided>, Refusal> {
        for at in (0..parts.len()).filter(|at| parts[*at].spends_own()) {
            let own = self.own(&parts[at], Intent::Spend);
            let is_lost = !own.as_ref().is_ok_and(Decided::is_allowed);
            if is_lost {
                self.give_back(parts, at);
                let spent = decided.iter_mut().zip(parts).filter(|(_, it)| it.described.hits > 0);
                spent.for_each(|(each, _)| *each = None);
            }
            decided[at] = Some(own?);
            if is_lost {
                break;
            }
        }
        self.look_at_rest(decided, parts)
    }

    /// Gives back what was spent by rules, and from limits that came with the descriptors before
    /// this one.
    fn give_back(&self, parts: &[Part<'_, '_>], at: usize) {
        for (before, part) in parts.iter().enumerate() {
            if part.spends_by_rules() {
                self.service.engine().refund(&part.request);
            } else if before < at
                && part.spends_own()
                && let Some(quota) = part.own.and_then(|own| own.quota)
            {
                let (key, cost) = (part.described.key(), part.described.hits);
                self.service.refund_throttle(&Ask { key: &*key, quota, cost });
            }
        }
    }

    /// What is not decided is looked at.
    fn look_at_rest(
        &self,
        decided: Vec<Option<Decided>>,
        parts: &[Part<'_, '_>],
    ) -> Result<Vec<Decided>, Refusal> {
        let all = decided.into_iter().zip(parts);
        all.map(|(each, part)| each.map_or_else(|| self.look(part), Ok)).collect()
    }

    /// On its own.
    fn decide_one(&self, part: &Part<'_, '_>, kept: &mut Reserve) -> Result<Decided, Refusal> {
        match (part.own.is_some(), part.described.hits) {
            (_, 0) => self.look(part),
            (true, _) => self.own(part, Intent::Spend),
            (false, _) => {
                let ruling = self.service.check_with(Name::Grpc, &part.request, kept);
                Ok(self.and_charge(ruling, &part.request))
            }
        }
    }

    /// Where each descriptor is on its own, one that is over its limit takes what was left: so
    /// counts the service that this is compatible with.
    fn and_charge(&self, ruling: Ruling, request: &Request<'_>) -> Decided {
        if ruling.is_allowed() {
            return Decided::ByRules(ruling);
        }
        let left = ruling.decision().remaining();
        if left == 0 || ruling.rules().descriptors() == Descriptors::Together {
            return Decided::ByRules(ruling);
        }
        let rest = request.cost(left);
        // If somebody was faster, there is less, which is as well.
        drop(self.service.engine().decide(&rest));
        let after = self.service.peek(request);
        // What only a store knows may look as if it were all there.
        Decided::ByRules(if after.is_allowed() { ruling } else { after })
    }

    /// What would be decided. Whoever spends nothing is told whether there is anything left, after
    /// what they give back. This is called once for them.
    fn look(&self, part: &Part<'_, '_>) -> Result<Decided, Refusal> {
        match part.own {
            Some(_) => self.own(part, Intent::Look),
            None => {
                let gives = part.described.gives;
                if gives > 0 {
                    self.service.engine().refund(&part.request.cost(gives));
                }
                Ok(Decided::ByRules(self.service.peek(&part.looking())))
            }
        }
    }

    /// By the limit that came with the descriptor.
    fn own(&self, part: &Part<'_, '_>, intent: Intent) -> Result<Decided, Refusal> {
        let Some(own) = part.own else { return self.look(part) };
        let Some(quota) = own.quota else {
            let never = Decision::deny(own.requests.into(), 0, Duration::ZERO, Retry::Never);
            return Ok(Decided::ByOwn(own, never));
        };
        let (key, hits) = (part.described.key(), part.described.hits);
        let cost = if intent == Intent::Spend { hits } else { 0 };
        let mut answer = None;
        self.service.throttle(Name::Grpc, &[Ask { key: &*key, quota, cost }], |one| {
            answer = Some(one);
        });
        let decision = match answer {
            Some(Ok(decision)) => decision,
            Some(Err(error)) => return Err(Refusal::new(Code::Internal, error.to_string())),
            None => return Err(Refusal::new(Code::Internal, "there is no decision")),
        };
        if intent == Intent::Look && decision.remaining() < part.needs {
            let (left, reset) = (decision.remaining(), decision.reset_after());
            let retry = own.retry(part.needs, reset);
            let denied = Decision::deny(decision.limit(), left, reset, retry);
            return Ok(Decided::ByOwn(own, denied));
        }
        Ok(Decided::ByOwn(own, decision))
    }
}

/// What descriptors spend from one limit that came with them has to be there for all of them.
fn add_up(parts: &mut [Part<'_, '_>]) {
    let mut sums = BTreeMap::<_, u64>::new();
    let spending = |part: &Part<'_, '_>| {
        let own = part.own.filter(|_| part.described.hits > 0)?;
        Some((part.described.key(), own.requests, own.seconds))
    };
    for part in parts.iter() {
        if let Some(limit) = spending(part) {
            let sum = sums.entry(limit).or_default();
            *sum = sum.saturating_add(part.described.hits);
        }
    }
    for part in parts {
        part.needs =
            spending(part).and_then(|limit| sums.get(&limit).copied()).unwrap_or(part.needs);
    }
}
