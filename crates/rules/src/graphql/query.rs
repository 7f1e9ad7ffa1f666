//! One query: the walk through its fields.

use std::collections::BTreeMap;

use apollo_parser::Parser;
use apollo_parser::cst::{
    CstNode, Definition, Field, FragmentDefinition, OperationDefinition, Selection, SelectionSet,
    Value,
};

use super::{GraphqlCost, GraphqlError};

pub(super) fn cost(
    rule: GraphqlCost,
    document: &str,
    operation: Option<&str>,
    variables: Option<&str>,
) -> Result<u64, GraphqlError> {
    let limit = GraphqlCost::MAX_LENGTH;
    if document.len() > limit {
        return Err(GraphqlError::TooLarge { limit });
    }
    let rule = GraphqlCost { depth: rule.depth.min(MAX_DEPTH), ..rule };
    let parser = Parser::new(document).token_limit(MAX_TOKENS).recursion_limit(RECURSION);
    let tree = parser.parse();
    if let Some(error) = tree.errors().next() {
        let limited = tree.errors().any(|error| error.is_limit());
        return Err(match (tree.recursion_limit().high > RECURSION, limited) {
            (true, _) => GraphqlError::TooDeep { limit: rule.depth },
            (false, true) => GraphqlError::TooLarge { limit },
            (false, false) => syntax(error.index(), error.message()),
        });
    }
    let mut operations = Vec::new();
    let mut fragments = BTreeMap::new();
    for definition in tree.document().definitions() {
        match definition {
            Definition::OperationDefinition(operation) => operations.push(operation),
            Definition::FragmentDefinition(fragment) => {
                let name = fragment.fragment_name().and_then(|name| name.name());
                let name = name.map(|name| name.text().to_string()).unwrap_or_default();
                if fragments.insert(name.clone(), Fragment::new(fragment)).is_some() {
                    return Err(GraphqlError::NoFragment { name });
                }
            }
            _ => return Err(syntax(0, "only operations and fragments can be run")),
        }
    }
    let operation = chosen(operations, operation)?;
    let defaults = defaults(&operation);
    let mut walk = Walk { rule, fragments, given: Given::Text(variables), defaults, level: 0 };
    walk.operation(&operation)
}

fn chosen(
    operations: Vec<OperationDefinition>,
    name: Option<&str>,
) -> Result<OperationDefinition, GraphqlError> {
    let is_it = |operation: &OperationDefinition| match name {
        Some(name) => operation.name().is_some_and(|its| its.text() == name),
        None => true,
    };
    let mut found = operations.into_iter().filter(is_it);
    match (found.next(), found.next()) {
        (Some(operation), None) => Ok(operation),
        _ => Err(GraphqlError::NoOperation),
    }
}

/// What the operation's variables are if the client does not give them.
fn defaults(operation: &OperationDefinition) -> BTreeMap<String, Option<u64>> {
    let definitions = operation.variable_definitions().into_iter();
    let definitions = definitions.flat_map(|definitions| definitions.variable_definitions());
    let default = definitions.filter_map(|definition| {
        let name = definition.variable()?.name()?.text().to_string();
        Some((name, definition.default_value()?.value().as_ref().and_then(written)))
    });
    default.collect()
}

/// The walk through one operation.
struct Walk<'v> {
    rule: GraphqlCost,
    fragments: BTreeMap<String, Fragment>,
    given: Given<'v>,
    defaults: BTreeMap<String, Option<u64>>,
    /// How many selections and fragments are open.
    level: usize,
}

/// The variables that the client gives: JSON that is read when one is needed.
enum Given<'v> {
    Text(Option<&'v str>),
    Read(BTreeMap<String, serde_json::Value>),
}

/// A fragment, with what is known about it for each place.
struct Fragment {
    definition: FragmentDefinition,
    parts: [State; 3],
}

#[derive(Clone, Copy)]
enum State {
    Unseen,
    Open,
    Known(Part),
}

/// What a part of the query costs, and how deep it is.
#[derive(Clone, Copy, Default)]
struct Part {
    points: u64,
    depth: u64,
}

/// What a selection stands in, as far as it matters for the cost of a field in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// The mutation itself.
    Mutation,
    /// A field that says how many items it has.
    Sized,
    /// Anything else.
    Other,
}

impl Fragment {
    const fn new(definition: FragmentDefinition) -> Self {
        Self { definition, parts: [State::Unseen; 3] }
    }
}

impl Walk<'_> {
    fn operation(&mut self, operation: &OperationDefinition) -> Result<u64, GraphqlError> {
        let kind = operation.operation_type();
        let within = match kind.and_then(|kind| kind.mutation_token()) {
            Some(_) => Within::Mutation,
            None => Within::Other,
        };
        Ok(self.selection(operation.selection_set(), within)?.points.max(1))
    }

    /// All that is selected: the sum, and the deepest.
    fn selection(
        &mut self,
        selected: Option<SelectionSet>,
        within: Within,
    ) -> Result<Part, GraphqlError> {
        self.level += 1;
        if self.level > RECURSION {
            return Err(self.too_deep());
        }
        let mut sum = Part::default();
        for selection in selected.into_iter().flat_map(|selected| selected.selections()) {
            let part = match selection {
                Selection::Field(field) => self.field(&field, within)?,
                Selection::InlineFragment(inline) => {
                    self.selection(inline.selection_set(), within)?
                }
                Selection::FragmentSpread(spread) => {
                    let name = spread.fragment_name().and_then(|name| name.name());
                    let name = name.map(|name| name.text().to_string());
                    self.fragment(&name.unwrap_or_default(), within)?
                }
            };
            sum.points = sum.points.saturating_add(part.points);
            sum.depth = sum.depth.max(part.depth);
        }
        if sum.depth > u64::from(self.rule.depth) {
            return Err(self.too_deep());
        }
        self.level -= 1;
        Ok(sum)
    }

    fn field(&mut self, field: &Field, within: Within) -> Result<Part, GraphqlError> {
        let selected = field.selection_set();
        let own = match (within, &selected) {
            (Within::Mutation, _) => MUTATION,
            (_, Some(_)) => 1,
            (_, None) => 0,
        };
        if selected.is_none() {
            return Ok(Part { points: own, depth: 1 });
        }
        let said = self.length(field)?;
        let name = field.name().map(|name| name.text().to_string()).unwrap_or_default();
        let is_list = matches!(name.as_str(), "nodes" | "edges") && within != Within::Sized;
        let times = match said {
            Some(said) => said,
            None if is_list => u64::from(self.rule.list),
            None => 1,
        };
        let inner = if said.is_some() { Within::Sized } else { Within::Other };
        let inside = self.selection(selected, inner)?;
        let points = own.saturating_add(times.saturating_mul(inside.points));
        Ok(Part { points, depth: inside.depth + 1 })
    }

    /// A named fragment, which is looked into once for each place.
    fn fragment(&mut self, name: &str, within: Within) -> Result<Part, GraphqlError> {
        let missing = || GraphqlError::NoFragment { name: name.to_owned() };
        let fragment = self.fragments.get_mut(name).ok_or_else(missing)?;
        let state = &mut fragment.parts[within as usize];
        match *state {
            State::Known(part) => return Ok(part),
            State::Open => return Err(GraphqlError::Cycle { name: name.to_owned() }),
            State::Unseen => *state = State::Open,
        }
        let selected = fragment.definition.selection_set();
        let part = self.selection(selected, within)?;
        if let Some(fragment) = self.fragments.get_mut(name) {
            fragment.parts[within as usize] = State::Known(part);
        }
        Ok(part)
    }

    /// How many items a field says it has.
    fn length(&mut self, field: &Field) -> Result<Option<u64>, GraphqlError> {
        let arguments = field.arguments().into_iter().flat_map(|all| all.arguments());
        let mut length = None;
        for argument in arguments {
            let name = argument.name().map(|name| name.text().to_string());
            if name.is_none_or(|name| !LENGTHS.contains(&name.as_str())) {
                continue;
            }
            let said = match argument.value() {
                Some(Value::Variable(variable)) => {
                    let name = variable.name().map(|name| name.text().to_string());
                    self.variable(&name.unwrap_or_default())?
                }
                Some(value) => written(&value),
                None => None,
            };
            length = length.max(Some(said.unwrap_or_else(|| u64::from(self.rule.list))));
        }
        Ok(length)
    }

    /// A variable, if it is a number that is not below zero.
    fn variable(&mut self, name: &str) -> Result<Option<u64>, GraphqlError> {
        if let Given::Text(text) = self.given {
            self.given = Given::Read(read(text)?);
        }
        match &self.given {
            Given::Read(given) if given.contains_key(name) => Ok(match &given[name] {
                serde_json::Value::Number(given) => number(&given.to_string()),
                serde_json::Value::String(given) => number(given),
                _ => None,
            }),
            _ => Ok(self.defaults.get(name).copied().flatten()),
        }
    }

    const fn too_deep(&self) -> GraphqlError {
        GraphqlError::TooDeep { limit: self.rule.depth }
    }
}

fn read(text: Option<&str>) -> Result<BTreeMap<String, serde_json::Value>, GraphqlError> {
    let limit = GraphqlCost::MAX_LENGTH;
    match text {
        None => Ok(BTreeMap::new()),
        Some(text) if text.len() > limit => Err(GraphqlError::TooLarge { limit }),
        Some(text) => {
            let given: Option<_> =
                serde_json::from_str(text).map_err(|_| GraphqlError::Variables)?;
            Ok(given.unwrap_or_default())
        }
    }
}

/// A number that is written in the query.
fn written(value: &Value) -> Option<u64> {
    match value {
        Value::IntValue(value) => number(&value.syntax().text().to_string()),
        Value::FloatValue(value) => number(&value.syntax().text().to_string()),
        Value::StringValue(value) => number(&value.syntax().text().to_string()),
        _ => None,
    }
}

/// A number that is not below zero. Servers should take integers alone here. Some take `1e6` or
/// `"1000000"` as well, and then it must not count as less.
fn number(text: &str) -> Option<u64> {
    let text = text.trim().trim_matches('"');
    let rounded = || {
        let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0)?;
        // A conversion that stops at the largest number.
        Some(number.ceil() as u64)
    };
    text.parse().ok().or_else(rounded)
}

fn syntax(at: usize, message: &str) -> GraphqlError {
    GraphqlError::Syntax { at, message: message.to_owned() }
}

/// The points of a field of a mutation.
const MUTATION: u64 = 10;

/// Arguments that say how many items a field has.
const LENGTHS: [&str; 3] = ["first", "last", "limit"];

/// The deepest that `depth` can be.
const MAX_DEPTH: u16 = 128;

/// How deep the parser and the walk go, for fields, fragments and values together.
const RECURSION: usize = 192;

/// Words, spaces and comments.
const MAX_TOKENS: usize = 15_000;
