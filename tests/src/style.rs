//! Size, names and leftovers: the rules of style that one file can break on its own.

use std::path::Path;

use crate::Violation;
use crate::source::{Source, closing, end_of_head, is_word};
use crate::tree::File;

/// Files longer than `all` lines, or with more than `without_tests` lines of code proper.
pub fn long_file(file: &File, all: usize, without_tests: usize) -> Vec<Violation> {
    let source = Source::parse(&file.path, &file.text);
    let lines = source.line_count();
    let proper = source.line_count_without_tests();
    let mut found = Vec::new();
    if lines > all {
        found.push(Violation::new(&file.path, lines, format!("{lines} lines, at most {all}")));
    }
    if proper > without_tests {
        let what = format!("{proper} lines without tests, at most {without_tests}");
        found.push(Violation::new(&file.path, lines, what));
    }
    found
}

/// Functions outside of tests that take more than `most` lines, from `fn` to the last brace.
pub fn long_functions(file: &File, most: usize) -> Vec<Violation> {
    let source = Source::parse(&file.path, &file.text);
    let mut found = Vec::new();
    for start in source.find("fn") {
        if source.is_test(start) {
            continue;
        }
        let Some((name, end)) = function(source.code(), start) else {
            continue;
        };
        let first = source.line_of(start);
        let lines = source.line_of(end) - first + 1;
        if lines > most {
            let what = format!("function `{name}` has {lines} lines, at most {most}");
            found.push(Violation::new(&file.path, first, what));
        }
    }
    found
}

/// Work left for later, and tests switched off.
pub fn leftovers(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for mark in MARKS {
            if has_word(line, mark) {
                found.push(Violation::new(&file.path, index + 1, format!("`{mark}` left behind")));
            }
        }
    }
    if is_rust(file) {
        let source = Source::parse(&file.path, &file.text);
        for pattern in ["todo!", "unimplemented!", "#[ignore"] {
            for at in source.find(pattern) {
                let what = format!("`{pattern}` left behind");
                found.push(Violation::new(&file.path, source.line_of(at), what));
            }
        }
    }
    found
}

/// Tests that sleep instead of waiting for a condition.
pub fn sleeps_in_tests(file: &File) -> Vec<Violation> {
    let source = Source::parse(&file.path, &file.text);
    let sleeps = source.find("thread::sleep").into_iter().filter(|at| source.is_test(*at));
    let what = "a test sleeps: wait for a condition with a deadline";
    sleeps.map(|at| Violation::new(&file.path, source.line_of(at), what)).collect()
}

/// Files and folders whose name says nothing about what is in them.
pub fn meaningless_name(file: &File) -> Vec<Violation> {
    let parts = Path::new(&file.path).components();
    let stems = parts.filter_map(|part| Path::new(part.as_os_str()).file_stem());
    let bad = stems.filter_map(|stem| MEANINGLESS.iter().find(|name| stem == **name));
    bad.map(|name| Violation::new(&file.path, 1, format!("`{name}` names nothing"))).collect()
}

/// Lines that hold one of `words` anywhere.
pub fn forbidden_words(file: &File, words: &[&str]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for word in words.iter().filter(|word| line.contains(**word)) {
            found.push(Violation::new(&file.path, index + 1, format!("`{word}` is forbidden")));
        }
    }
    found
}

/// The name of the function at `start`, and the position of its last brace. A function without a
/// body, or the type of a function pointer, has none.
fn function(code: &[char], start: usize) -> Option<(String, usize)> {
    let after = start + "fn".len();
    let name = code[after..].iter().skip_while(|c| c.is_whitespace());
    let name: String = name.take_while(|c| is_word(**c) || **c == '#').collect();
    let head = end_of_head(code, after)?;
    (!name.is_empty() && code[head] == '{').then(|| (name, closing(code, head)))
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

fn is_rust(file: &File) -> bool {
    file.path.ends_with(".rs")
}

/// Marks of unfinished work. Put together here, so that this file does not carry them.
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

const MEANINGLESS: [&str; 7] = ["utils", "util", "common", "helpers", "helper", "misc", "stuff"];

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn rust(text: &str) -> File {
        file("crates/core/src/quota.rs", text)
    }

    fn function_of(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(long_file(&rust(&"//\n".repeat(10)), 10, 10), []);
        assert_eq!(long_file(&rust(&"//\n".repeat(11)), 10, 20).len(), 1);
        assert_eq!(long_file(&rust(&"//\n".repeat(11)), 20, 10).len(), 1);
    }

    #[test]
    fn tests_do_not_count_as_code_proper() {
        let text = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "//\n".repeat(50));
        assert_eq!(long_file(&rust(&text), 100, 1), []);
        assert_eq!(long_file(&rust(&text), 50, 1).len(), 1);
    }

    #[test]
    fn a_long_function_is_found_where_it_starts() {
        assert_eq!(long_functions(&rust(&function_of(70)), 70), []);
        let found = long_functions(&rust(&format!("\n{}", function_of(71))), 70);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert_eq!(found[0].what, "function `long` has 71 lines, at most 70");
    }

    #[test]
    fn braces_that_are_not_code_do_not_change_the_length() {
        for brace in ["// {", "/* { */", "a(\"{\");", "a('{');", "a(r#\"{\"#);"] {
            let text =
                format!("fn short() {{\n    {brace}\n}}\n{}", "const A: u8 = 1;\n".repeat(9));
            assert_eq!(long_functions(&rust(&text), 3), [], "{brace}");
            let text = format!("fn long() {{\n    {}\n    a();\n}}\n", brace.replace('{', "}"));
            assert_eq!(long_functions(&rust(&text), 3).len(), 1, "{brace}");
        }
    }

    #[test]
    fn methods_and_nested_functions_are_measured() {
        let text = format!("impl A {{\n    fn outer() {{\n{}    }}\n}}\n", function_of(9));
        let found = long_functions(&rust(&text), 8);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn heads_of_all_shapes_are_read() {
        let filler = "\n".repeat(9);
        let without_body = format!("trait A {{\n    fn a(&self) -> [u8; 4];\n{filler}}}\n");
        assert_eq!(long_functions(&rust(&without_body), 5), []);
        let pointer = format!("struct A {{\n    a: fn(u8) -> u8,\n{filler}}}\n");
        assert_eq!(long_functions(&rust(&pointer), 5), []);
        let array = format!("fn a(b: [u8; 4]) -> [u8; 4]\nwhere\n    A: B,\n{{\n{filler}}}\n");
        assert_eq!(long_functions(&rust(&array), 5).len(), 1);
    }

    #[test]
    fn functions_of_tests_may_be_long() {
        let inside = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function_of(80));
        assert_eq!(long_functions(&rust(&inside), 70), []);
        assert_eq!(long_functions(&file("crates/a/tests/b.rs", &function_of(80)), 70), []);
        let after = format!("{inside}{}", function_of(80));
        assert_eq!(long_functions(&rust(&after), 70).len(), 1);
    }

    #[test]
    fn leftovers_are_found() {
        for mark in MARKS {
            assert_eq!(leftovers(&file("a.md", &format!("a\n{mark}: b"))).len(), 1);
            assert_eq!(leftovers(&file("a.md", &format!("a{mark} {mark}_b"))), []);
        }
        for text in ["todo!()", "unimplemented!()", "#[ignore]", "#[ignore = \"slow\"]"] {
            assert_eq!(leftovers(&rust(&format!("fn a() {{\n{text}\n}}"))).len(), 1, "{text}");
            assert_eq!(leftovers(&rust(&format!("// {text}"))), [], "{text}");
        }
    }

    #[test]
    fn a_sleeping_test_is_found() {
        let test = "#[cfg(test)]\nmod tests {\n    fn a() {\n        thread::sleep(b);\n    }\n}\n";
        let found = sleeps_in_tests(&rust(test));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 4);
        assert_eq!(sleeps_in_tests(&rust("fn a() { std::thread::sleep(b); }")), []);
        assert_eq!(sleeps_in_tests(&file("tests/a.rs", "fn a() { thread::sleep(b); }")).len(), 1);
    }

    #[test]
    fn meaningless_names_are_found() {
        for path in ["src/utils.rs", "src/common/mod.rs", "scripts/helpers.sh", "helper"] {
            assert_eq!(meaningless_name(&file(path, "")).len(), 1, "{path}");
        }
        assert_eq!(meaningless_name(&file("src/uncommon.rs", "")), []);
    }

    #[test]
    fn forbidden_words_are_found() {
        let text = file("a.sh", "a\ncd /secret/place\n");
        assert_eq!(forbidden_words(&text, &["/secret/"])[0].line, 2);
        assert_eq!(forbidden_words(&text, &["/other/"]), []);
    }
}
