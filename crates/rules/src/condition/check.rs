//! What an expression may contain: known names, a few functions, and values that go together.
//!
//! Names are resolved here too. `claims.plan` becomes an index into the attributes, and what
//! `has` asks about becomes a lookup, so that evaluation has nothing left to search for.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue, SelectExpr, operators};

use super::ExpressionError;
use super::scope;
use super::token::{syntax, unsupported};
use super::variable::{Variable, find};
use crate::read::did_you_mean;

/// The kind of a value, known before there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int,
    Double,
    String,
    List,
    Names,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Int => "an integer",
            Self::Double => "a number with a fraction",
            Self::String => "a string",
            Self::List => "a list",
            Self::Names => "a map",
        }
    }

    const fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Double)
    }
}

/// Checks an expression that was parsed, and resolves its names.
pub(super) struct Check {
    /// Whether there is a response when it is evaluated.
    pub(super) outcome: bool,
}

/// A name in an expression.
struct Named {
    variable: Variable,
    name: String,
    /// Where it begins.
    id: u64,
}

type Checked = Result<Kind, ExpressionError>;

impl Check {
    /// The kind of the value.
    pub(super) fn kind(&self, node: &mut IdedExpr) -> Checked {
        let at = place(node);
        match &mut node.expr {
            Expr::Literal(literal) => literal_kind(literal, at),
            Expr::Ident(_) | Expr::Select(_) => self.name(node),
            Expr::List(list) => {
                list.elements.iter_mut().try_for_each(|element| self.kind(element).map(drop))?;
                Ok(Kind::List)
            }
            Expr::Call(call) if call.func_name == operators::HAS => self.has(node),
            Expr::Call(call) if call.target.is_some() => self.method(call, at),
            Expr::Call(call) => self.call(call, at),
            _ => Err(unsupported(at, "this", "use comparisons, `in`, `&&` and `||`")),
        }
    }

    /// A value of this kind and no other.
    pub(super) fn expect(&self, node: &mut IdedExpr, wanted: Kind) -> Checked {
        match self.kind(node)? {
            kind if kind == wanted => Ok(kind),
            kind => Err(wrong(place(node), wanted.name(), kind)),
        }
    }

    fn name(&self, node: &mut IdedExpr) -> Checked {
        let Named { variable, name, id } = self.variable(node)?;
        let (expr, kind) = match variable {
            Variable::Whole(kind) => (Expr::Ident(name), kind),
            Variable::Member(map, key) => {
                let (map, key) = (ident(id, map), literal(id, key));
                let func_name = operators::INDEX.to_owned();
                let call = CallExpr { func_name, target: None, args: vec![map, key] };
                (Expr::Call(call), Kind::String)
            }
        };
        *node = IdedExpr { id, expr };
        Ok(kind)
    }

    /// `has(claims.plan)`: whether the request has this.
    fn has(&self, node: &mut IdedExpr) -> Checked {
        let at = place(node);
        let argument = match &node.expr {
            Expr::Call(CallExpr { target: None, args, .. }) => match args.as_slice() {
                [argument] => argument,
                _ => return Err(syntax(at, "`has` takes one name, as in `has(claims.plan)`")),
            },
            _ => return Err(syntax(at, "`has` stands alone, as in `has(claims.plan)`")),
        };
        let Named { variable, name, .. } = self.variable(argument)?;
        let (map, field) = match variable {
            Variable::Whole(_) => (scope::VARIABLES, name),
            Variable::Member(map, key) => (map, key),
        };
        let operand = Box::new(ident(node.id, map));
        node.expr = Expr::Select(SelectExpr { operand, field, test: true });
        Ok(Kind::Bool)
    }

    /// What a dotted name stands for.
    fn variable(&self, node: &IdedExpr) -> Result<Named, ExpressionError> {
        let (mut segments, mut rest) = (Vec::new(), node);
        let root = loop {
            match &rest.expr {
                Expr::Ident(root) => break root,
                Expr::Select(select) if !select.test => {
                    segments.push(select.field.as_str());
                    rest = &select.operand;
                }
                _ => {
                    let remedy = "name a variable, as in `claims.plan`";
                    return Err(unsupported(place(node), "a member of a value", remedy));
                }
            }
        };
        segments.push(root);
        segments.reverse();
        let variable = find(&segments, self.outcome, place(rest))?;
        Ok(Named { variable, name: segments.join("."), id: rest.id })
    }

    fn method(&self, call: &mut CallExpr, at: usize) -> Checked {
        let CallExpr { func_name, target: Some(target), args } = call else {
            return Err(no_function(at, &call.func_name));
        };
        match (func_name.as_str(), args.as_mut_slice()) {
            ("startsWith" | "endsWith" | "contains", [part]) => {
                self.expect(target, Kind::String)?;
                self.expect(part, Kind::String)?;
                Ok(Kind::Bool)
            }
            ("size", []) => self.size(target),
            _ => Err(no_function(at, func_name)),
        }
    }

    fn call(&self, call: &mut CallExpr, at: usize) -> Checked {
        match (call.func_name.as_str(), call.args.as_mut_slice()) {
            ("size", [of]) => self.size(of),
            (operators::LOGICAL_NOT, [it]) => self.expect(it, Kind::Bool),
            (operators::NEGATE, [it]) => match self.kind(it)? {
                kind @ (Kind::Int | Kind::Double) => Ok(kind),
                kind => Err(wrong(at, "a number with a sign", kind)),
            },
            (name @ ("int" | "double" | "string"), [of]) => self.conversion(name, of),
            (operators::CONDITIONAL, [choice, yes, no]) => {
                self.expect(choice, Kind::Bool)?;
                let kind = self.kind(yes)?;
                self.expect(no, kind)
            }
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [left, right]) => {
                self.expect(left, Kind::Bool)?;
                self.expect(right, Kind::Bool)
            }
            (operator, [left, right]) => self.operator(operator, left, right, at),
            (name, _) => Err(no_function(at, name)),
        }
    }

    fn size(&self, of: &mut IdedExpr) -> Checked {
        match self.kind(of)? {
            Kind::String | Kind::List | Kind::Names => Ok(Kind::Int),
            kind => Err(wrong(place(of), "something with a size", kind)),
        }
    }

    fn conversion(&self, name: &str, of: &mut IdedExpr) -> Checked {
        match (name, self.kind(of)?) {
            (_, kind @ (Kind::List | Kind::Names)) => Err(wrong(place(of), "a single value", kind)),
            ("string", _) => Ok(Kind::String),
            (_, kind @ Kind::Bool) => Err(wrong(place(of), "a number or string", kind)),
            ("int", _) => Ok(Kind::Int),
            _ => Ok(Kind::Double),
        }
    }

    fn operator(
        &self,
        operator: &str,
        left: &mut IdedExpr,
        right: &mut IdedExpr,
        at: usize,
    ) -> Checked {
        if !OPERATORS.contains(&operator) {
            return Err(no_function(at, operator));
        }
        let kind = self.kind(left)?;
        if operator == operators::IN {
            return self.membership(kind, right);
        }
        let other = self.kind(right)?;
        let there = place(right);
        let same = || match kind == other {
            true => Ok(kind),
            false => Err(wrong(there, kind.name(), other)),
        };
        let numbers = kind.is_number() && other.is_number();
        match operator {
            operators::INDEX => match (kind, other) {
                (Kind::Names, Kind::String) => Ok(Kind::String),
                (Kind::Names, _) => Err(wrong(there, Kind::String.name(), other)),
                _ => Err(wrong(at, Kind::Names.name(), kind)),
            },
            _ if kind == Kind::Names => Err(wrong(at, "a single value", kind)),
            operators::EQUALS | operators::NOT_EQUALS if numbers => Ok(Kind::Bool),
            operators::EQUALS | operators::NOT_EQUALS => same().map(|_| Kind::Bool),
            operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS => match numbers || same()? == Kind::String {
                true => Ok(Kind::Bool),
                false => Err(wrong(at, "a number or string", kind)),
            },
            operators::ADD if matches!(kind, Kind::String | Kind::List) => same(),
            operators::MODULO if kind == Kind::Double => Err(wrong(at, Kind::Int.name(), kind)),
            _ if kind.is_number() => same(),
            _ => Err(wrong(at, "a number", kind)),
        }
    }

    /// `left in right`: a name in a map, or a value in a list of its kind.
    fn membership(&self, kind: Kind, right: &mut IdedExpr) -> Checked {
        match &mut right.expr {
            Expr::List(list) => {
                let mut elements = list.elements.iter_mut();
                elements.try_for_each(|element| self.expect(element, kind).map(drop))?;
            }
            _ => match self.kind(right)? {
                Kind::Names if kind == Kind::String => {}
                Kind::List => {}
                other => return Err(wrong(place(right), "a list, or a map for a string", other)),
            },
        }
        Ok(Kind::Bool)
    }
}

fn literal_kind(literal: &LiteralValue, at: usize) -> Checked {
    match literal {
        LiteralValue::Boolean(_) => Ok(Kind::Bool),
        LiteralValue::Double(_) => Ok(Kind::Double),
        LiteralValue::Int(_) => Ok(Kind::Int),
        LiteralValue::String(_) => Ok(Kind::String),
        _ => Err(unsupported(at, "this value", "use a string or a number")),
    }
}

/// The parser numbers nodes with their places.
fn place(node: &IdedExpr) -> usize {
    usize::try_from(node.id).unwrap_or_default()
}

fn ident(id: u64, name: &str) -> IdedExpr {
    IdedExpr { id, expr: Expr::Ident(name.to_owned()) }
}

fn literal(id: u64, text: String) -> IdedExpr {
    IdedExpr { id, expr: Expr::Literal(LiteralValue::String(text.into())) }
}

fn wrong(at: usize, expected: &str, found: Kind) -> ExpressionError {
    let (expected, found) = (expected.to_owned(), found.name().to_owned());
    ExpressionError::WrongType { at, expected, found }
}

fn no_function(at: usize, name: &str) -> ExpressionError {
    let remedy = match name {
        "matches" => "use `startsWith`, `endsWith` or `contains`, or `path` in `match`".to_owned(),
        "all" | "exists" | "exists_one" | "existsOne" | "map" | "filter" => {
            "there are no loops: write the cases out with `||`".to_owned()
        }
        _ => did_you_mean(name, &FUNCTIONS)
            .unwrap_or_else(|| format!("there are {}", FUNCTIONS.join(", "))),
    };
    unsupported(at, &format!("`{name}`"), &remedy)
}

const FUNCTIONS: [&str; 8] =
    ["has", "size", "startsWith", "endsWith", "contains", "int", "double", "string"];

const OPERATORS: [&str; 13] = [
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::LESS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::GREATER_EQUALS,
    operators::ADD,
    operators::SUBSTRACT,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::INDEX,
    operators::IN,
];
