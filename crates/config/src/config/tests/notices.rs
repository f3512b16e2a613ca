use expect_test::expect;

use super::errors;

#[test]
fn mistakes_in_channels_of_notices_say_what_to_write() {
    let text = r#"[[agents]]
id = "ui"
command = ["agent"]
[[notify]]
kind = "ntfy"
quiet = ["22:00-07:00", "25:00-07:00", "night"]
[[notify]]
kind = "desktop"
url = "https://example.org"
[[notify]]
kind = "ntfy"
url = "ntfy.sh/topic"
"#;
    expect![[r#"
        4:1 `kind = "ntfy"` needs `url` | write `url = "https://…"`
        6:25 "25:00-07:00" is not a span of a day | write hours and minutes, such as "22:00-07:00"
        6:40 "night" is not a span of a day | write hours and minutes, such as "22:00-07:00"
        9:7 `url` is not for `kind = "desktop"` | leave it out, or write `kind = "webhook"`
        12:7 this is not a web address | write one such as "https://example.org/x"
    "#]]
    .assert_eq(&errors(text));
}
