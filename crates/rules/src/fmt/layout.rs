//! The tree of a file with its comments and empty lines, each at the entry that it belongs to.

use std::collections::VecDeque;

use super::comments::comments;
use super::scalar::{self, Style};
use crate::document::{Node, Value};
use crate::source::Span;

/// A file to be written anew.
pub(super) struct Layout<'a> {
    /// Comments that stay at the top, whichever field comes first.
    pub(super) header: Vec<Lead<'a>>,
    pub(super) root: Item<'a>,
    /// Comments below all else.
    pub(super) footer: Vec<Lead<'a>>,
}

/// What stands on lines of its own above an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead<'a> {
    Blank,
    Comment(&'a str),
}

/// A field of a map, or an item of a list.
pub(super) struct Entry<'a> {
    pub(super) leading: Vec<Lead<'a>>,
    pub(super) name: Option<&'a str>,
    pub(super) item: Item<'a>,
    /// The comment on the same line.
    pub(super) trailing: Option<&'a str>,
}

pub(super) enum Item<'a> {
    Scalar { value: &'a Value, style: Style, span: Span },
    Group(Group<'a>),
}

/// A list or a map.
pub(super) struct Group<'a> {
    pub(super) map: bool,
    /// It was written in braces or brackets.
    pub(super) inline: bool,
    /// And on one line.
    pub(super) one_line: bool,
    pub(super) entries: Vec<Entry<'a>>,
    /// Comments after the last entry.
    pub(super) footer: Vec<Lead<'a>>,
}

impl<'a> Layout<'a> {
    pub(super) fn of(text: &'a str, root: &'a Node) -> Self {
        let comments = comments(text, root);
        let mut builder = Builder { text, comments, at: 0 };
        let (mut header, mut root) = builder.root(root);
        let footer = builder.take_before(text.len() + 1);
        if let Item::Group(Group { entries, .. }) = &mut root
            && let Some(first) = entries.first_mut()
        {
            let rest = first.leading.split_off(header_length(&first.leading));
            header.extend(std::mem::replace(&mut first.leading, rest));
        }
        Self { header, root, footer }
    }
}

/// How many of the first lines speak of the file, and not of its first field: all up to an empty
/// line, and what tells an editor the schema.
fn header_length(leading: &[Lead<'_>]) -> usize {
    let schema = |lead: &Lead<'_>| matches!(lead, Lead::Comment(text) if text.contains("$schema"));
    let blank = leading.iter().rposition(|lead| *lead == Lead::Blank);
    blank.or_else(|| leading.iter().rposition(schema)).map_or(0, |at| at + 1)
}

/// Walks over the text, and hands out the comments that it passes.
struct Builder<'a> {
    text: &'a str,
    /// Those not handed out yet.
    comments: VecDeque<Span>,
    /// Behind what was seen last.
    at: usize,
}

/// What an entry must know of its surroundings.
#[derive(Clone, Copy)]
struct Scope {
    /// Comments from here on belong to something else.
    limit: usize,
    /// The column of the entries around; none at the top.
    column: Option<usize>,
    /// Within braces or brackets.
    flow: bool,
}

impl<'a> Builder<'a> {
    fn root(&mut self, node: &'a Node) -> (Vec<Lead<'a>>, Item<'a>) {
        let scope = Scope { limit: self.text.len() + 1, column: None, flow: false };
        match &node.value {
            Value::List(nodes) if !nodes.is_empty() => (Vec::new(), self.group(node, scope)),
            Value::Map(fields) if !fields.is_empty() => (Vec::new(), self.group(node, scope)),
            _ => {
                let entry = self.entry(None, node, scope);
                let trailing = entry.trailing.map(Lead::Comment);
                (entry.leading.into_iter().chain(trailing).collect(), entry.item)
            }
        }
    }

    fn entry(&mut self, name: Option<(&'a str, &Span)>, node: &'a Node, scope: Scope) -> Entry<'a> {
        let before = self.at;
        let start = name.map_or(node.span.start, |(_, span)| span.start);
        let mut leading = self.lead(start);
        if let Some((_, span)) = name {
            self.at = self.at.max(span.end);
        }
        let mut trailing = None;
        let empty = matches!(&node.value, Value::List(nodes) if nodes.is_empty())
            || matches!(&node.value, Value::Map(fields) if fields.is_empty());
        let item = match &node.value {
            Value::List(_) | Value::Map(_) if !empty => {
                let flow = scope.flow || self.is_flow(node);
                if flow && name.is_some() {
                    leading.extend(self.take_before(node.span.start));
                } else if name.is_some() {
                    trailing = self.same_line(first_start(node).min(scope.limit));
                }
                let item = self.group(node, scope);
                if flow {
                    self.at = self.at.max(node.span.end);
                    trailing = self.same_line(scope.limit);
                }
                item
            }
            value => {
                let before = name.map_or(before, |(_, span)| span.end);
                let gap = self.text.get(before..node.span.start).unwrap_or_default();
                let header = scalar::block_header(gap);
                if header.is_some() {
                    trailing = self.same_line(scope.limit);
                }
                let bound = if empty { node.span.end } else { node.span.start };
                leading.extend(self.take_before(if node.span.is_empty() { 0 } else { bound }));
                let end = node.span.start + self.text[node.span.clone()].trim_end().len();
                self.at = if node.span.is_empty() { self.at } else { self.at.max(end) };
                trailing = trailing.or_else(|| self.same_line(scope.limit));
                let style = Style::of(self.text, &node.span, header);
                match value {
                    Value::List(_) | Value::Map(_) => Item::Group(Group::empty(value)),
                    value => Item::Scalar { value, style, span: node.span.clone() },
                }
            }
        };
        Entry { leading, name: name.map(|(name, _)| name), item, trailing }
    }

    fn group(&mut self, node: &'a Node, scope: Scope) -> Item<'a> {
        let flow = scope.flow || self.is_flow(node);
        // Within brackets columns mean nothing, and lines may be as long as the file.
        let column = if flow { 0 } else { column(self.text, self.first_mark(node)) };
        let one_line = flow && !self.text[node.span.clone()].contains(['\n', '\r']);
        let mut group = Group { inline: flow, one_line, ..Group::empty(&node.value) };
        let limit = if flow { node.span.end.min(scope.limit) } else { scope.limit };
        let inner = |limit| Scope { limit, column: Some(column), flow };
        match &node.value {
            Value::List(nodes) => {
                for (index, node) in nodes.iter().enumerate() {
                    let next = nodes.get(index + 1).map_or(limit, |next| next.span.start);
                    group.entries.push(self.entry(None, node, inner(next.min(limit))));
                }
            }
            Value::Map(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    let next = fields.get(index + 1).map_or(limit, |next| next.span.start);
                    let name = Some((field.name.as_str(), &field.span));
                    group.entries.push(self.entry(name, &field.value, inner(next.min(limit))));
                }
            }
            _ => {}
        }
        group.footer =
            if flow { self.take_before(limit) } else { self.footer(limit, column, scope.column) };
        Item::Group(group)
    }

    /// Comments behind the last entry that stand as far to the right as the entries do.
    fn footer(&mut self, limit: usize, own: usize, around: Option<usize>) -> Vec<Lead<'a>> {
        let mut footer = Vec::new();
        while let Some(comment) = self.comments.front() {
            let column = column(self.text, comment.start);
            let ours = column >= own && around.is_none_or(|around| column > around);
            if comment.start >= limit || !ours {
                break;
            }
            footer.extend(self.take_before(comment.start + 1));
        }
        footer
    }

    /// What stands above something that begins at `start`.
    fn lead(&mut self, start: usize) -> Vec<Lead<'a>> {
        let mut lead = self.take_before(start);
        if self.blank_before(start) {
            lead.push(Lead::Blank);
        }
        self.at = self.at.max(start);
        lead
    }

    fn take_before(&mut self, bound: usize) -> Vec<Lead<'a>> {
        let mut taken = Vec::new();
        while let Some(comment) = self.comments.pop_front_if(|comment| comment.start < bound) {
            if self.blank_before(comment.start) {
                taken.push(Lead::Blank);
            }
            self.at = comment.end;
            taken.push(Lead::Comment(self.text[comment].trim_end()));
        }
        taken
    }

    /// The comment on the line of what was seen last.
    fn same_line(&mut self, limit: usize) -> Option<&'a str> {
        let (text, at) = (self.text, self.at);
        let same = |comment: &mut Span| {
            let gap = text.get(at..comment.start);
            comment.start < limit && gap.is_some_and(|gap| !gap.contains(['\n', '\r']))
        };
        let comment = self.comments.pop_front_if(same)?;
        self.at = comment.end;
        Some(self.text[comment].trim_end())
    }

    /// Whether there is an empty line between what was seen last and `start`.
    fn blank_before(&self, start: usize) -> bool {
        let gap = self.text.get(self.at..start).unwrap_or_default();
        let gap = gap.replace("\r\n", "\n");
        // The first piece ends a line that is not empty, the last one begins such a line.
        let mut pieces = gap.split(['\n', '\r']).skip(1).peekable();
        while let Some(piece) = pieces.next() {
            if piece.trim().is_empty() && pieces.peek().is_some() {
                return true;
            }
        }
        false
    }

    /// Where the first name or dash stands. Of lists that are not indented, the parser says where
    /// the dash ends.
    fn first_mark(&self, node: &Node) -> usize {
        let (before, rest) = self.text.split_at(node.span.start);
        match node.value {
            Value::List(_) if !rest.starts_with(['-', '[']) => before.rfind('-').unwrap_or(0),
            _ => node.span.start,
        }
    }

    fn is_flow(&self, node: &Node) -> bool {
        matches!(self.text.as_bytes().get(node.span.start), Some(b'[' | b'{'))
    }
}

impl Group<'_> {
    fn empty(value: &Value) -> Self {
        let map = matches!(value, Value::Map(_));
        Self { map, inline: true, one_line: true, entries: Vec::new(), footer: Vec::new() }
    }
}

/// Where the first entry begins.
fn first_start(node: &Node) -> usize {
    match &node.value {
        Value::List(nodes) => nodes.first().map_or(node.span.start, |node| node.span.start),
        Value::Map(fields) => fields.first().map_or(node.span.start, |field| field.span.start),
        _ => node.span.start,
    }
}

fn column(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    before.len()
        - before.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1)
}
