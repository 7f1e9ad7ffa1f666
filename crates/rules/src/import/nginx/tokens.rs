//! The configuration of nginx as a tree of directives.

use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// The most words and marks that are read.
const MAX_TOKENS: usize = 1_000_000;

/// The deepest nesting of blocks that is read.
const MAX_DEPTH: usize = 32;

/// The longest text that is read, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// `name argument argument;`, or with a block instead of the semicolon.
#[derive(Debug, Default)]
pub(super) struct Directive {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    pub(super) block: Option<Vec<Self>>,
    pub(super) span: Span,
}

enum Token {
    Word(String),
    End,
    Open,
    Close,
}

pub(super) fn parse(text: &str) -> Result<Vec<Directive>, Diagnostic> {
    if text.len() > MAX_BYTES {
        let message = format!("at most {} MB are read", MAX_BYTES >> 20);
        return Err(Diagnostic::error("too-large", 0..0, message, "", "import it in parts"));
    }
    let mut tokens = Tokens { text, at: 0 };
    // Blocks that are open, the innermost last, each below the directive that it belongs to.
    let mut open: Vec<(Directive, Vec<Directive>)> = Vec::new();
    let (mut level, mut words, mut count) = (Vec::new(), Words::default(), 0);
    while let Some((token, span)) = tokens.next()? {
        match token {
            Token::Word(word) => words.push(word, span),
            Token::End => level.extend(words.take()),
            Token::Open => {
                let Some(directive) = words.take() else {
                    return Err(syntax(
                        span,
                        "a block has no name",
                        "write what it is for before it",
                    ));
                };
                if directive.name.ends_with("_by_lua_block") {
                    tokens.skip_code(span)?;
                    level.push(directive);
                } else if open.len() == MAX_DEPTH {
                    return Err(syntax(
                        span,
                        "blocks are nested too deep",
                        "nginx needs five levels",
                    ));
                } else {
                    open.push((directive, std::mem::take(&mut level)));
                }
            }
            Token::Close => {
                let unfinished = words.take();
                if let Some(directive) = unfinished {
                    return Err(syntax(
                        directive.span,
                        "this directive has no end",
                        "put a `;` behind it",
                    ));
                }
                let Some((mut directive, around)) = open.pop() else {
                    return Err(syntax(span, "there is no block to close", "take the `}` away"));
                };
                directive.block = Some(std::mem::replace(&mut level, around));
                level.push(directive);
            }
        }
        count += 1;
        if count > MAX_TOKENS {
            let remedy = "import only the files that have limits in them";
            return Err(syntax(tokens.at..tokens.at, "there is too much of this", remedy));
        }
    }
    if let Some((directive, _)) = open.pop() {
        return Err(syntax(directive.span, "this block is not closed", "put a `}` at its end"));
    }
    match words.take() {
        Some(directive) => {
            Err(syntax(directive.span, "this directive has no end", "put a `;` behind it"))
        }
        None => Ok(level),
    }
}

fn syntax(span: Span, message: &str, remedy: &str) -> Diagnostic {
    let message = format!("this cannot be read as a configuration of nginx: {message}");
    Diagnostic::error("syntax", span, message, "here", remedy)
}

/// The words of a directive so far.
#[derive(Default)]
struct Words {
    directive: Option<Directive>,
}

impl Words {
    fn push(&mut self, word: String, span: Span) {
        match &mut self.directive {
            None => self.directive = Some(Directive { name: word, span, ..Directive::default() }),
            Some(directive) => directive.arguments.push(word),
        }
    }

    const fn take(&mut self) -> Option<Directive> {
        self.directive.take()
    }
}

struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl Tokens<'_> {
    fn next(&mut self) -> Result<Option<(Token, Span)>, Diagnostic> {
        self.skip_space();
        let start = self.at;
        let Some(first) = self.peek() else { return Ok(None) };
        let token = match first {
            ';' => Token::End,
            '{' => Token::Open,
            '}' => Token::Close,
            '"' | '\'' => {
                self.at += 1;
                return Ok(Some((Token::Word(self.quoted(first, start)?), start..self.at)));
            }
            _ => return Ok(Some((Token::Word(self.word()), start..self.at))),
        };
        self.at += 1;
        Ok(Some((token, start..self.at)))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip_space(&mut self) {
        while let Some(c) = self.peek() {
            if c == '#' {
                let rest = &self.text[self.at..];
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if c.is_whitespace() {
                self.at += c.len_utf8();
            } else {
                return;
            }
        }
    }

    fn quoted(&mut self, mark: char, start: usize) -> Result<String, Diagnostic> {
        let mut word = String::new();
        while let Some(c) = self.bump() {
            match c {
                '\\' => match self.bump() {
                    Some(c @ ('"' | '\'' | '\\')) => word.push(c),
                    Some(c) => word.extend(['\\', c]),
                    None => {}
                },
                c if c == mark => return Ok(word),
                c => word.push(c),
            }
        }
        Err(syntax(start..start + 1, "this quote is not closed", "put the same mark at its end"))
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek() {
            let variable = c == '{' && word.ends_with('$');
            if c.is_whitespace() || c == ';' || (c == '{' && !variable) {
                break;
            }
            self.bump();
            word.push(c);
            match c {
                '\\' => word.extend(self.bump()),
                '{' => {
                    // The name of a variable, up to its brace.
                    while let Some(c) =
                        self.peek().filter(|c| c.is_alphanumeric() || "_}".contains(*c))
                    {
                        self.bump();
                        word.push(c);
                        if c == '}' {
                            break;
                        }
                    }
                }
                // Elsewhere a brace is part of a word only behind its beginning, as in a regex.
                _ => {}
            }
        }
        word
    }

    /// Code of another language, whose braces are counted and nothing else.
    fn skip_code(&mut self, start: Span) -> Result<(), Diagnostic> {
        let mut depth = 1;
        while let Some(c) = self.bump() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(syntax(start, "this block is not closed", "put a `}` at its end"))
    }
}
