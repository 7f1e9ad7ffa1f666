//! Text to a tree that `cel` can evaluate.
//!
//! `cel` has a parser of its own. It takes more than 50 kB of stack for each bracket, so that 40
//! of them end the process, and it says what it expected by listing all it knows. This one reads
//! the part of the grammar that rules use, and numbers each node with its place in the text. A
//! test holds the two against each other.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, ListExpr, LiteralValue, SelectExpr, operators};

use super::ExpressionError;
use super::token::{Is, Token, Tokens, syntax, unsupported};

/// The longest expression, in bytes.
pub(super) const MAX_LENGTH: usize = 4096;

/// The most that brackets and operators may be nested in each other. Evaluation descends as deep,
/// with up to 30 kB of stack for each step in a build without optimisation, and a thread often
/// has but 2 MB.
pub(super) const MAX_DEPTH: usize = 24;

/// The tree of a whole text. The number of each node is its place.
pub(super) fn parse(text: &str) -> Result<IdedExpr, ExpressionError> {
    if text.len() > MAX_LENGTH {
        return Err(ExpressionError::TooLong { length: text.len(), limit: MAX_LENGTH });
    }
    let mut tokens = Tokens::new(text);
    let token = tokens.next()?;
    let mut parser = Parser { tokens, token, depth: 0 };
    let tree = parser.expression()?;
    match parser.token.is {
        Is::End => Ok(tree.node),
        _ => Err(syntax(parser.token.at, "an operator is missing before this")),
    }
}

struct Parser<'t> {
    tokens: Tokens<'t>,
    /// The word that is to be read next.
    token: Token<'t>,
    /// How many brackets, choices and signs are open.
    depth: usize,
}

struct Tree {
    node: IdedExpr,
    height: usize,
}

type Parsed = Result<Tree, ExpressionError>;

impl Parser<'_> {
    /// `a ? b : c`, and all that binds closer.
    fn expression(&mut self) -> Parsed {
        self.deeper()?;
        let mut tree = self.logical(operators::LOGICAL_OR)?;
        let at = self.token.at;
        if self.eat("?")? {
            let yes = self.logical(operators::LOGICAL_OR)?;
            self.expect(":", "a choice is written `a ? b : c`")?;
            let no = self.expression()?;
            tree = call(at, operators::CONDITIONAL, vec![tree, yes, no])?;
        }
        self.depth -= 1;
        Ok(tree)
    }

    /// A chain of `||`, or of `&&`, as a balanced tree: a long one is not deep.
    fn logical(&mut self, operator: &'static str) -> Parsed {
        let is_or = operator == operators::LOGICAL_OR;
        let mut terms = Vec::new();
        let mut places = Vec::new();
        loop {
            terms.push(Some(match is_or {
                true => self.logical(operators::LOGICAL_AND)?,
                false => self.binary(0)?,
            }));
            let at = self.token.at;
            if !self.eat(if is_or { "||" } else { "&&" })? {
                return balanced(operator, &mut terms, &places);
            }
            places.push(at);
        }
    }

    /// Comparisons, sums and products: operators of this rank and above.
    fn binary(&mut self, rank: usize) -> Parsed {
        let mut left = self.unary()?;
        while let Some((operator, its)) = self.operator().filter(|(_, its)| *its >= rank) {
            let at = self.token.at;
            self.advance()?;
            let right = self.binary(its + 1)?;
            left = call(at, operator, vec![left, right])?;
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(&'static str, usize)> {
        let written = match self.token.is {
            Is::Symbol(symbol) => symbol,
            Is::Name("in") => "in",
            _ => return None,
        };
        Some(match written {
            "==" => (operators::EQUALS, 0),
            "!=" => (operators::NOT_EQUALS, 0),
            "<" => (operators::LESS, 0),
            "<=" => (operators::LESS_EQUALS, 0),
            ">" => (operators::GREATER, 0),
            ">=" => (operators::GREATER_EQUALS, 0),
            "in" => (operators::IN, 0),
            "+" => (operators::ADD, 1),
            "-" => (operators::SUBSTRACT, 1),
            "*" => (operators::MULTIPLY, 2),
            "/" => (operators::DIVIDE, 2),
            "%" => (operators::MODULO, 2),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Parsed {
        let at = self.token.at;
        let operator = match self.token.is {
            Is::Symbol("!") => operators::LOGICAL_NOT,
            Is::Symbol("-") => operators::NEGATE,
            _ => return self.member(false),
        };
        self.advance()?;
        if operator == operators::NEGATE && matches!(self.token.is, Is::Number(_)) {
            return self.member(true);
        }
        self.deeper()?;
        let operand = self.unary()?;
        self.depth -= 1;
        call(at, operator, vec![operand])
    }

    /// A value, and what is behind it: members, indexes and calls.
    fn member(&mut self, negative: bool) -> Parsed {
        let mut tree = self.primary(negative)?;
        loop {
            let at = self.token.at;
            if self.eat("[")? {
                let index = self.expression()?;
                self.expect("]", "`]` is missing")?;
                tree = call(at, operators::INDEX, vec![tree, index])?;
            } else if self.eat(".")? {
                let Is::Name(name) = self.token.is else {
                    return Err(syntax(self.token.at, "a name goes behind the dot"));
                };
                self.advance()?;
                tree = match self.eat("(")? {
                    true => method(at, name, tree, self.list(")")?)?,
                    false => member(at, name, tree)?,
                };
            } else {
                return Ok(tree);
            }
        }
    }

    fn primary(&mut self, negative: bool) -> Parsed {
        let next = self.tokens.next()?;
        let Token { at, is } = std::mem::replace(&mut self.token, next);
        match is {
            Is::Symbol("(") => {
                let tree = self.expression()?;
                self.expect(")", "`)` is missing")?;
                Ok(tree)
            }
            Is::Symbol("[") => {
                let (elements, height) = parts(self.list("]")?);
                tree(at, Expr::List(ListExpr::new(elements)), height + 1)
            }
            Is::Name("true") => leaf(at, LiteralValue::Boolean(true.into())),
            Is::Name("false") => leaf(at, LiteralValue::Boolean(false.into())),
            Is::Name("null") => {
                Err(unsupported(at, "`null`", "nothing is ever null: ask `has(claims.plan)`"))
            }
            Is::Name(name) if name != "in" => match self.eat("(")? {
                true => call(at, name, self.list(")")?),
                false => tree(at, Expr::Ident(name.to_owned()), 1),
            },
            Is::String(text) => leaf(at, LiteralValue::String(text.into())),
            Is::Number(number) => leaf(at, literal(number, negative, at)?),
            Is::End => Err(syntax(at, "the expression ends too early")),
            _ => Err(syntax(at, "a value is missing before this")),
        }
    }

    /// What is between brackets, with commas.
    fn list(&mut self, closes: &'static str) -> Result<Vec<Tree>, ExpressionError> {
        let mut list = Vec::new();
        while !self.eat(closes)? {
            list.push(self.expression()?);
            if !self.eat(",")? {
                self.expect(closes, "a comma or a closing bracket is missing")?;
                break;
            }
        }
        Ok(list)
    }

    fn deeper(&mut self) -> Result<(), ExpressionError> {
        self.depth += 1;
        bounded(self.token.at, self.depth)
    }

    fn advance(&mut self) -> Result<(), ExpressionError> {
        self.token = self.tokens.next()?;
        Ok(())
    }

    fn eat(&mut self, symbol: &'static str) -> Result<bool, ExpressionError> {
        let found = self.token.is == Is::Symbol(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, symbol: &'static str, message: &str) -> Result<(), ExpressionError> {
        match self.eat(symbol)? {
            true => Ok(()),
            false => Err(syntax(self.token.at, message)),
        }
    }
}

fn balanced(operator: &str, terms: &mut [Option<Tree>], places: &[usize]) -> Parsed {
    let Some(middle) = places.len().checked_sub(1).map(|last| last.div_ceil(2)) else {
        let only = terms.first_mut().and_then(Option::take);
        return only.ok_or_else(|| syntax(0, "the expression ends too early"));
    };
    let (left, right) = terms.split_at_mut(middle + 1);
    let left = balanced(operator, left, &places[..middle])?;
    let right = balanced(operator, right, &places[middle + 1..])?;
    call(places[middle], operator, vec![left, right])
}

fn literal(number: &str, negative: bool, at: usize) -> Result<LiteralValue, ExpressionError> {
    let text = if negative { format!("-{number}") } else { number.to_owned() };
    let hexadecimal = number.strip_prefix("0x").or_else(|| number.strip_prefix("0X"));
    let integer = match hexadecimal {
        Some(digits) if negative => i64::from_str_radix(&format!("-{digits}"), 16).ok(),
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    if let Some(integer) = integer {
        return Ok(LiteralValue::Int(integer.into()));
    }
    let fraction = number.contains(['.', 'e', 'E']) && hexadecimal.is_none();
    match text.parse::<f64>() {
        Ok(double) if fraction && double.is_finite() => Ok(LiteralValue::Double(double.into())),
        _ => Err(syntax(at, "this is not a number, or too large a one")),
    }
}

fn call(at: usize, name: &str, args: Vec<Tree>) -> Parsed {
    let (args, height) = parts(args);
    let call = CallExpr { func_name: name.to_owned(), target: None, args };
    tree(at, Expr::Call(call), height + 1)
}

fn method(at: usize, name: &str, target: Tree, args: Vec<Tree>) -> Parsed {
    let (args, height) = parts(args);
    let height = height.max(target.height);
    let target = Some(Box::new(target.node));
    tree(at, Expr::Call(CallExpr { func_name: name.to_owned(), target, args }), height + 1)
}

fn member(at: usize, name: &str, of: Tree) -> Parsed {
    let (operand, field) = (Box::new(of.node), name.to_owned());
    tree(at, Expr::Select(SelectExpr { operand, field, test: false }), of.height + 1)
}

fn leaf(at: usize, literal: LiteralValue) -> Parsed {
    tree(at, Expr::Literal(literal), 1)
}

fn tree(at: usize, expr: Expr, height: usize) -> Parsed {
    bounded(at, height)?;
    Ok(Tree { node: IdedExpr { id: at as u64, expr }, height })
}

fn parts(trees: Vec<Tree>) -> (Vec<IdedExpr>, usize) {
    let height = trees.iter().map(|tree| tree.height).max().unwrap_or_default();
    (trees.into_iter().map(|tree| tree.node).collect(), height)
}

const fn bounded(at: usize, depth: usize) -> Result<(), ExpressionError> {
    match depth > MAX_DEPTH {
        true => Err(ExpressionError::TooDeep { at }),
        false => Ok(()),
    }
}
