#![allow(clippy::needless_raw_string_hashes)]
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn check(text: &str, expected: &Expect) {
    let lexed = lex(text);
    let mut shown = String::new();
    for token in &lexed.tokens {
        let token = match token {
            Token::Word(word) => {
                let parts: Vec<String> = word
                    .parts
                    .iter()
                    .map(|part| match part {
                        WordPart::Text(text) => text.clone(),
                        WordPart::Variable(name) => format!("<{name}>"),
                        WordPart::Home => "<~>".to_owned(),
                        WordPart::Glob(c) => format!("<{c}>"),
                        WordPart::Brace(c) => c.to_string(),
                        WordPart::Unknown => "<?>".to_owned(),
                    })
                    .collect();
                format!("[{}]", parts.concat())
            }
            Token::Redirect(redirect) => format!("{redirect:?}"),
            Token::End => ";".to_owned(),
            Token::Open => "(".to_owned(),
            Token::Close => ")".to_owned(),
        };
        shown.push_str(&token);
        shown.push(' ');
    }
    for document in &lexed.documents {
        shown.extend(["doc=", &format!("{document:?}"), " "]);
    }
    for substitution in &lexed.substitutions {
        shown.extend(["sub=", &format!("{substitution:?}"), " "]);
    }
    expected.assert_eq(shown.trim_end());
}

#[test]
fn words_are_unquoted_as_a_shell_does() {
    check(
        r#"cat a\ b "c d" 'e f'g"h"$'\x69\n\101' "" \"#,
        &expect![[r#"
        [cat] [a b] [c d] [e fghi
        A] [] ;"#]],
    );
    check("a\\\nb # c\n d#e", &expect!["[ab] ; [d#e] ;"]);
    check(r#""a\$b\c" 'x\'y"#, &expect![[r#"[a$b\c] [x\y] ;"#]]);
    check(r"~ ~/x a~ ~root *.rs", &expect!["[<~>] [<~>/x] [a~] [~root] [<*>.rs] ;"]);
    check(
        r#"$HOME/x ${A}b ${A:-c} $1 "$X" $ 'unclosed"#,
        &expect!["[<HOME>/x] [<A>b] [<?>] [<?>] [<X>] [$] [unclosed] ;"],
    );
}

#[test]
fn operators_end_words() {
    check("a&&b||c;d|e&f|&g", &expect!["[a] ; ; [b] ; ; [c] ; [d] ; [e] ; [f] ; ; [g] ;"]);
    check("(a;b)", &expect!["( [a] ; [b] ) ;"]);
    check(
        "a<b>c>>d 2>&1 &>e &>>f <>g >|h 10>i",
        &expect![
            "[a] Read [b] Write [c] Write [d] Descriptor [1] Write [e] Write [f] Both [g] Write [h] Write [i] ;"
        ],
    );
    check("a1>b '2'>c", &expect!["[a1] Write [b] [2] Write [c] ;"]);
}

#[test]
fn substitutions_are_handed_out() {
    check(
        r#"a $(b "$(c ')')" d) `e \`f\`` "x$(g)y" <(h) ${i:-$(j ${k:-`l`})}"#,
        &expect![[
            r#"[a] [<?>] [<?>] [x<?>y] [<?>] [<?>] ; sub="b \"$(c ')')\" d" sub="e `f`" sub="g" sub="h" sub="j ${k:-`l`}""#
        ]],
    );
    check("$(unclosed 'x", &expect![[r#"[<?>] ; sub="unclosed 'x""#]]);
    check("$((1 + 2))", &expect![[r#"[<?>] ; sub="(1 + 2)""#]]);
}

#[test]
fn here_documents_are_no_words() {
    check(
        "cat > f <<'EOF' && x\na $(b)\nEOF\ny",
        &expect![[r#"[cat] Write [f] Document [EOF] ; ; [x] ; [y] ; doc="a $(b)\n""#]],
    );
    check(
        "cat <<A <<-B\n1 $(c)\nA\n\t2\n\tB\nd",
        &expect![[r#"[cat] Document [A] Document [B] ; [d] ; doc="1 $(c)\n" doc="2\n" sub="c""#]],
    );
    check("cat <<A\nnever ends", &expect![[r#"[cat] Document [A] ; ; doc="never ends""#]]);
    check("bash <<< 'cat x'", &expect!["[bash] Text [cat x] ;"]);
}

#[test]
fn hostile_text_takes_linear_time() {
    for piece in [
        "(",
        "$(",
        "${",
        "\"",
        "`",
        "\"$(",
        "<<A ",
        "cat <<A\n",
        "a|",
        "\\",
        "$((",
        "<(",
        "'",
        "{,",
        "$'\\x",
    ] {
        // A million bytes: anything quadratic would not end.
        lex(&piece.repeat(1_000_000 / piece.len()));
    }
}

proptest! {
    #[test]
    fn any_text_is_taken(text in r#"[a-z $(){}<>'"`\\|&;\n*~#,-]{0,80}"#) {
        lex(&text);
    }
}
