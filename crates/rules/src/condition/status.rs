//! Comparisons of the status of a response, which are asked about every response.

use cel::common::ast::{Expr, LiteralValue, operators};

/// A comparison of `response.status` with numbers that are known beforehand. It takes a few
/// nanoseconds, where the general way takes hundreds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatusTest {
    OneOf(Vec<i64>),
    Not(i64),
    Less(i64),
    AtMost(i64),
    Greater(i64),
    AtLeast(i64),
}

impl StatusTest {
    /// The same question as the expression, which has been checked, if it is one of these.
    pub(super) fn of(expr: &Expr) -> Option<Self> {
        let Expr::Call(call) = expr else { return None };
        let [left, right] = call.args.as_slice() else { return None };
        if !matches!(&left.expr, Expr::Ident(name) if name == "response.status") {
            return None;
        }
        if let (operators::IN, Expr::List(list)) = (call.func_name.as_str(), &right.expr) {
            let numbers = list.elements.iter().map(|element| integer(&element.expr));
            return numbers.collect::<Option<_>>().map(Self::OneOf);
        }
        let number = integer(&right.expr)?;
        Some(match call.func_name.as_str() {
            operators::EQUALS => Self::OneOf(vec![number]),
            operators::NOT_EQUALS => Self::Not(number),
            operators::LESS => Self::Less(number),
            operators::LESS_EQUALS => Self::AtMost(number),
            operators::GREATER => Self::Greater(number),
            operators::GREATER_EQUALS => Self::AtLeast(number),
            _ => return None,
        })
    }

    pub(super) fn holds(&self, status: u16) -> bool {
        let status = i64::from(status);
        match self {
            Self::OneOf(numbers) => numbers.contains(&status),
            Self::Not(number) => status != *number,
            Self::Less(number) => status < *number,
            Self::AtMost(number) => status <= *number,
            Self::Greater(number) => status > *number,
            Self::AtLeast(number) => status >= *number,
        }
    }
}

fn integer(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(LiteralValue::Int(number)) => Some(*number.inner()),
        _ => None,
    }
}
