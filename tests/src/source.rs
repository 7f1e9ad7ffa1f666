//! One Rust file, taken apart into code, comments and tests, line by line.

use std::ops::Range;
use std::path::Path;

/// A Rust file whose code and comments can be looked at separately.
///
/// Both are as long as the file, character by character: what does not belong is blank. So a
/// position or a line number means the same in all of them.
#[derive(Debug)]
pub struct Source {
    code: Vec<char>,
    comments: Vec<char>,
    tests: Vec<Range<usize>>,
}

impl Source {
    /// Takes `text` apart. `path` decides whether the whole file counts as test code.
    pub fn parse(path: &str, text: &str) -> Self {
        let (code, comments) = separate(text);
        let everything = 0..code.len();
        let tests = if is_test_file(path) { vec![everything] } else { test_items(&code) };
        Self { code, comments, tests }
    }

    /// The code: comments, strings and characters are blank.
    pub fn code(&self) -> &[char] {
        &self.code
    }

    /// The code, line by line.
    pub fn code_lines(&self) -> Vec<String> {
        lines(&self.code)
    }

    /// The comments, line by line; a line without any is blank.
    pub fn comment_lines(&self) -> Vec<String> {
        lines(&self.comments)
    }

    /// Whether the character at `position` belongs to a test.
    pub fn is_test(&self, position: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&position))
    }

    /// The line of a position, counted from 1.
    pub fn line_of(&self, position: usize) -> usize {
        1 + newlines(&self.code[..position])
    }

    /// How many lines the file has.
    pub fn line_count(&self) -> usize {
        lines(&self.code).len()
    }

    /// How many lines of the file are not test code.
    pub fn line_count_without_tests(&self) -> usize {
        let mut tests = 0;
        for range in &self.tests {
            tests += 1 + newlines(&self.code[range.clone()]);
        }
        self.line_count().saturating_sub(tests)
    }

    /// Where `pattern` occurs in the code as whole words.
    pub fn find(&self, pattern: &str) -> Vec<usize> {
        let pattern: Vec<char> = pattern.chars().collect();
        let (Some(first), Some(last)) = (pattern.first(), pattern.last()) else {
            return Vec::new();
        };
        let is_whole = |start: usize| {
            let before = start.checked_sub(1).map(|at| self.code[at]);
            let after = self.code.get(start + pattern.len()).copied();
            let continues =
                |own: &char, next: Option<char>| is_word(*own) && next.is_some_and(is_word);
            !continues(first, before) && !continues(last, after)
        };
        let windows = self.code.windows(pattern.len()).enumerate();
        windows
            .filter(|(at, window)| *window == pattern && is_whole(*at))
            .map(|(at, _)| at)
            .collect()
    }
}

/// Whether `path` names a file that holds nothing but tests.
pub fn is_test_file(path: &str) -> bool {
    let path = Path::new(path);
    path.file_name().is_some_and(|name| name == "tests.rs")
        || path.components().any(|part| part.as_os_str() == "tests")
}

/// The position of the bracket that closes the one at `open`, or the end of the code.
pub fn closing(code: &[char], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.iter().enumerate().skip(open) {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    code.len().saturating_sub(1)
}

/// The first `{` or `;` from `start` on that is not inside round or square brackets: where the
/// head of an item ends.
pub fn end_of_head(code: &[char], start: usize) -> Option<usize> {
    let mut at = start;
    while at < code.len() {
        match code[at] {
            '{' | ';' => return Some(at),
            '(' | '[' => at = closing(code, at),
            '}' => return None,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether `c` can be part of a name.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn newlines(text: &[char]) -> usize {
    text.iter().filter(|c| **c == '\n').count()
}

fn lines(text: &[char]) -> Vec<String> {
    text.iter().collect::<String>().lines().map(str::to_owned).collect()
}

/// The items that only exist in tests: from their `#[cfg(test)]` to their last character.
fn test_items(code: &[char]) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let Some(head) = cfg_test(code, at) else {
            at += 1;
            continue;
        };
        let end = match end_of_head(code, head) {
            Some(end) if code[end] == '{' => closing(code, end),
            Some(end) => end,
            None => head,
        };
        items.push(at..end + 1);
        at = end + 1;
    }
    items
}

/// If a `#[cfg(test)]` or `#[cfg(all(test, ...))]` starts at `at`: where it ends.
fn cfg_test(code: &[char], at: usize) -> Option<usize> {
    if code[at] != '#' || code.get(at + 1) != Some(&'[') {
        return None;
    }
    let end = closing(code, at + 1) + 1;
    let attribute: String = code[at..end].iter().filter(|c| !c.is_whitespace()).collect();
    let is_test = attribute == "#[cfg(test)]" || attribute.starts_with("#[cfg(all(test,");
    is_test.then_some(end)
}

/// Splits a file into its code and its comments. Strings and characters belong to neither.
fn separate(text: &str) -> (Vec<char>, Vec<char>) {
    let text: Vec<char> = text.chars().collect();
    let blank = |range: &Range<usize>| -> Vec<char> {
        text[range.clone()].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }).collect()
    };
    let mut code = Vec::with_capacity(text.len());
    let mut comments = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let (kind, length) = token(&text, at);
        let range = at..at + length;
        let blank = blank(&range);
        code.extend_from_slice(if kind == Kind::Code { &text[range.clone()] } else { &blank });
        comments.extend_from_slice(if kind == Kind::Comment { &text[range] } else { &blank });
        at += length;
    }
    (code, comments)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// What starts at `at`, and how many characters it takes.
fn token(text: &[char], at: usize) -> (Kind, usize) {
    let rest = &text[at..];
    match rest {
        ['/', '/', ..] => {
            let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
            (Kind::Comment, length)
        }
        ['/', '*', ..] => (Kind::Comment, block_comment(rest)),
        ['"', ..] => (Kind::Literal, quoted(rest, '"')),
        ['\'', '\\', ..] => (Kind::Literal, quoted(rest, '\'')),
        ['\'', _, '\'', ..] => (Kind::Literal, 3),
        [c, ..] if is_word(*c) => match raw_string(rest) {
            Some(length) => (Kind::Literal, length),
            // The whole word at once, so that the `r` of `for` never opens a raw string.
            None => (Kind::Code, rest.iter().take_while(|c| is_word(**c)).count()),
        },
        _ => (Kind::Code, 1),
    }
}

/// The length of a block comment; they nest.
fn block_comment(text: &[char]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        match text[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

/// The length of a string or character with escapes, its quotes included.
fn quoted(text: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// If a raw string (`r"`, `br#"`, `cr##"` ...) starts here: its length.
fn raw_string(text: &[char]) -> Option<usize> {
    let prefix = match text {
        ['r', ..] => 1,
        ['b' | 'c', 'r', ..] => 2,
        _ => return None,
    };
    let hashes = text[prefix..].iter().take_while(|c| **c == '#').count();
    let open = prefix + hashes;
    if text.get(open) != Some(&'"') {
        return None;
    }
    let mut close = vec!['"'];
    close.resize(1 + hashes, '#');
    let body = &text[open + 1..];
    let end = body.windows(close.len()).position(|window| window == close);
    Some(end.map_or(text.len(), |end| open + 1 + end + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::parse("a.rs", text).code().iter().collect()
    }

    fn without_blanks(text: &str) -> String {
        code(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_are_not_code() {
        assert_eq!(without_blanks("a(); // b {\nc();"), "a(); c();");
        assert_eq!(without_blanks("a(); /* b { /* c { */ d { */ e();"), "a(); e();");
    }

    #[test]
    fn strings_and_characters_are_not_code() {
        assert_eq!(without_blanks(r#"a("{ // \" {", b);"#), "a( , b);");
        assert_eq!(without_blanks(r##"a(r#"{ " {"#, br"{\", b"{", c"{");"##), "a( , , b , c );");
        assert_eq!(without_blanks(r"a('{', '\'', '\u{7b}', b'{', '\\');"), "a( , , , b , );");
    }

    #[test]
    fn lifetimes_and_raw_names_are_code() {
        assert_eq!(without_blanks("fn a<'a>(b: &'a str) {}"), "fn a<'a>(b: &'a str) {}");
        assert_eq!(without_blanks("let r#type = var;"), "let r#type = var;");
    }

    #[test]
    fn lines_stay_where_they_are() {
        let text = "a\n/* b\nc */ d\n\"e\nf\" g\n";
        let source = Source::parse("a.rs", text);
        assert_eq!(source.code().len(), text.chars().count());
        assert_eq!(source.line_of(source.find("d")[0]), 3);
        assert_eq!(source.line_of(source.find("g")[0]), 5);
        assert_eq!(source.comment_lines()[1].trim_end(), "/* b");
    }

    #[test]
    fn finds_whole_words_only() {
        let source = Source::parse("a.rs", "unsafe_code unsafe { not_unsafe }");
        assert_eq!(source.find("unsafe"), [12]);
        assert_eq!(source.find(""), [0; 0]);
    }

    #[test]
    fn a_test_item_ends_where_it_ends() {
        let text = "#[cfg(test)]\nmod tests;\nfn a() {}\n#[cfg(all(test, not(loom)))]\n\
                    #[allow(x)]\nmod more {\n    fn b() {}\n}\nfn c() {}\n";
        let source = Source::parse("a.rs", text);
        let is_test = |name: &str| source.is_test(source.find(name)[0]);
        assert!(is_test("tests") && is_test("b"));
        assert!(!is_test("a") && !is_test("c"));
        assert_eq!(source.line_count(), 9);
        assert_eq!(source.line_count_without_tests(), 2);
    }

    #[test]
    fn other_configurations_are_not_tests() {
        let source = Source::parse("a.rs", "#[cfg(not(test))]\nfn a() {}\n#[cfg(loom)]\nfn b() {}");
        assert!(!source.is_test(source.find("a")[0]));
        assert!(!source.is_test(source.find("b")[0]));
    }

    #[test]
    fn files_of_tests_are_tests_as_a_whole() {
        assert!(is_test_file("crates/local/tests/loom.rs"));
        assert!(is_test_file("crates/local/src/table/tests.rs"));
        assert!(!is_test_file("crates/local/src/table.rs"));
        assert_eq!(Source::parse("tests/a.rs", "fn a() {}\n").line_count_without_tests(), 0);
    }
}
