//! Clients and servers of an earlier version: what they sent is read as it was meant. The data is recorded, and only
//! grows.

use serde_json::Value;

use crate::serve::rpc::METHODS;
use crate::wire::ServerLine;

/// Requests of commands: a method and its params in each line.
const SENT: &str = include_str!("earlier/sent.txt");

/// Answers of a server that knew no later field: a method and its result in each line.
const ANSWERED: &str = include_str!("earlier/answered.txt");

/// Lines of such a server.
const SAID: &str = include_str!("earlier/said.txt");

fn each(recorded: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    recorded.lines().map(|line| line.split_once(' ').unwrap())
}

#[test]
fn what_an_earlier_client_sent_is_understood() {
    for (method, params) in each(SENT) {
        let row = METHODS.iter().find(|row| row.facts.name == method).unwrap();
        let sent: Value = serde_json::from_str(params).unwrap();
        let read =
            (row.params)(params).unwrap_or_else(|error| panic!("{method} {params}: {error}"));
        // What it gave has the same value; what it left out is null or off.
        let read: Value = serde_json::from_str(&read).unwrap();
        for (name, given) in sent.as_object().unwrap() {
            let is_off = *given == Value::Null || *given == Value::Bool(false);
            assert!(read.get(name) == Some(given) || is_off, "{method} {params}: {read}");
        }
    }
}

#[test]
fn what_an_earlier_server_answered_is_read() {
    for (method, result) in each(ANSWERED) {
        let row = METHODS.iter().find(|row| row.facts.name == method).unwrap();
        let read = (row.again)(result);
        let read = read.unwrap_or_else(|error| panic!("{method} {result}: {error}"));
        let (read, said) = (serde_json::from_str(&read).unwrap(), serde_json::from_str(result));
        assert_within(&said.unwrap(), &read, method);
    }
}

#[test]
fn lines_of_an_earlier_server_are_read() {
    for line in SAID.lines() {
        let read = ServerLine::read(line.as_bytes());
        let read = read.unwrap_or_else(|error| panic!("{line}: {error}"));
        let said: Value = serde_json::from_str(line).unwrap();
        assert_within(&said, &serde_json::to_value(&read).unwrap(), line);
    }
}

/// All that was said has been read.
fn assert_within(said: &Value, read: &Value, what: &str) {
    match (said, read) {
        (Value::Object(said), Value::Object(read)) => {
            for (name, field) in said {
                assert_within(field, read.get(name).unwrap_or(&Value::Null), what);
            }
        }
        (Value::Array(said), Value::Array(read)) => {
            assert_eq!(said.len(), read.len(), "{what}");
            said.iter().zip(read).for_each(|(said, read)| assert_within(said, read, what));
        }
        (said, read) => assert_eq!(said, read, "{what}"),
    }
}
