//! The page about this door: what it shows is what happens.

use std::fs;
use std::path::Path;

use super::run;
use crate::support::Server;

/// The language behind a fence, and what stands inside.
fn fences(text: &str) -> Vec<(&str, String)> {
    let mut fences = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let inside = lines.by_ref().take_while(|line| *line != "```");
        fences.push((language, inside.map(|line| format!("{line}\n")).collect()));
    }
    fences
}

#[test]
fn every_example_does_what_is_shown() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doors/resp.md");
    let text = fs::read_to_string(page).unwrap();
    let fences = fences(&text);
    let rules = fences.iter().find(|(language, _)| *language == "yaml rules.yaml").unwrap();
    let server = Server::start(&rules.1);
    let port = server.address("resp").port().to_string();
    let mut tried = 0;
    for (language, inside) in &fences {
        let inside = inside.replace("4292", &port);
        match *language {
            "console" => {
                for example in inside.split("$ ").skip(1) {
                    let (command, shown) = example.split_once('\n').unwrap();
                    let words: Vec<_> = command.split(' ').collect();
                    assert_eq!(run(words[0], &words[1..]), shown, "{command}");
                    tried += 1;
                }
            }
            "python" => {
                run("python3", &["-c", &inside]);
                tried += 1;
            }
            "js" => {
                run("node", &["-e", &inside]);
                tried += 1;
            }
            _ => assert_eq!(*language, "yaml rules.yaml", "nobody tries this"),
        }
    }
    assert_eq!(tried, 7);
}
