//! Where comments stand in a file.

use std::collections::VecDeque;

use crate::document::{Node, Value};
use crate::source::Span;

/// Where all comments stand: what begins with `#` and is in no scalar. Anchors and tags, which
/// could hold one too, are refused when a file is read.
pub(super) fn comments(text: &str, root: &Node) -> VecDeque<Span> {
    let mut scalars = Vec::new();
    collect_scalars(root, &mut scalars);
    let (mut comments, mut at) = (VecDeque::new(), 0);
    let end = text.len()..text.len();
    for scalar in scalars.into_iter().chain([end]) {
        while let Some(found) = text.get(at..scalar.start).and_then(|gap| gap.find('#')) {
            let start = at + found;
            let length = text[start..].find(['\n', '\r']).unwrap_or(text.len() - start);
            comments.push_back(start..start + length);
            at = start + length;
        }
        at = at.max(scalar.end);
    }
    comments
}

fn collect_scalars(node: &Node, scalars: &mut Vec<Span>) {
    match &node.value {
        Value::List(nodes) => nodes.iter().for_each(|node| collect_scalars(node, scalars)),
        Value::Map(fields) => {
            for field in fields {
                scalars.push(field.span.clone());
                collect_scalars(&field.value, scalars);
            }
        }
        _ if node.span.is_empty() => {}
        _ => scalars.push(node.span.clone()),
    }
}
