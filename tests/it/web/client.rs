//! A client of the web server: a browser's requests byte for byte, and those of an attacker.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::{Message, WebSocket};

use crate::harness::{EISEN_CORE, Stage};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The web server of a team.
pub(super) struct Site {
    pub(super) host: String,
}

/// An answer, with its head as it came.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

/// What a browser has after it opened a link.
pub(super) struct Browser {
    pub(super) cookie: String,
    pub(super) token: String,
}

impl Site {
    /// Asks a running team for a link, and returns the site with the link's path.
    pub(super) fn of(stage: &Stage, args: &[&str]) -> (Self, String) {
        let ended = stage.run(&[&["web"], args].concat());
        assert_eq!(ended.code, 0, "{EISEN_CORE}: {}", ended.stderr);
        let link = ended.stdout.trim().strip_prefix("http://").unwrap();
        let (host, path) = link.split_once('/').unwrap();
        (Self { host: host.to_owned() }, format!("/{path}"))
    }

    /// Sends a request, with the `Host` of the site unless the lines have another one.
    pub(super) fn ask(&self, request: &str, lines: &[&str]) -> Answer {
        self.send(request, lines, "")
    }

    /// Sends a request with a body.
    pub(super) fn send(&self, request: &str, lines: &[&str], body: &str) -> Answer {
        let host = format!("Host: {}", self.host);
        let has_host = lines.iter().any(|line| line.starts_with("Host:"));
        let mut all = vec![format!("{request} HTTP/1.1")];
        all.extend((!has_host).then_some(host));
        all.extend(lines.iter().filter(|line| **line != "Host:").map(|line| (*line).to_owned()));
        all.extend((!body.is_empty()).then(|| format!("Content-Length: {}", body.len())));
        let text = all.join("\r\n") + "\r\nConnection: close\r\n\r\n" + body;
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        Answer::read(stream)
    }

    /// Sends a request on a connection that stays, and returns it with the status of the answer.
    pub(super) fn keep(&self, path: &str, lines: &[&str]) -> (u16, TcpStream) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        text.extend(lines.iter().flat_map(|line| [*line, "\r\n"]));
        stream.write_all((text + "\r\n").as_bytes()).unwrap();
        let mut first = String::new();
        BufReader::new(&stream).read_line(&mut first).unwrap();
        (first.split(' ').nth(1).unwrap().parse().unwrap(), stream)
    }

    pub(super) fn get(&self, path: &str, lines: &[&str]) -> Answer {
        self.ask(&format!("GET {path}"), lines)
    }

    /// Opens a link as a browser does.
    pub(super) fn enter(&self, link: &str) -> Browser {
        let answer = self.get(link, &["Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"]);
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.field("set-cookie").unwrap();
        let token = answer.body.split("content=\"").nth(1).unwrap().split('"').next().unwrap();
        Browser {
            cookie: format!("Cookie: {}", cookie.split(';').next().unwrap()),
            token: token.to_owned(),
        }
    }

    /// Opens the WebSocket with these fields; an error is the status of the refusal.
    pub(super) fn socket(&self, lines: &[(&'static str, &str)]) -> Result<Socket, u16> {
        self.socket_at("/ws", lines)
    }

    pub(super) fn socket_at(
        &self,
        path: &str,
        lines: &[(&'static str, &str)],
    ) -> Result<Socket, u16> {
        let mut request = format!("ws://{}{path}", self.host).into_client_request().unwrap();
        for (name, value) in lines {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Socket(socket)),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(answer))) => {
                Err(answer.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The WebSocket of a browser's page.
    pub(super) fn page(&self, browser: &Browser) -> Socket {
        let origin = format!("http://{}", self.host);
        let cookie = browser.cookie.strip_prefix("Cookie: ").unwrap();
        self.socket(&[("cookie", cookie), ("origin", &origin)]).unwrap()
    }
}

impl Answer {
    fn read(stream: TcpStream) -> Self {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = Vec::new();
        stream.read_to_end(&mut body).unwrap();
        Self { status, head, body: String::from_utf8_lossy(&body).into_owned() }
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

pub(super) struct Socket(WebSocket<TcpStream>);

impl Socket {
    pub(super) fn send(&mut self, line: &Value) {
        self.0.send(Message::text(line.to_string())).unwrap();
    }

    pub(super) fn send_raw(&mut self, message: Message) {
        self.0.send(message).unwrap();
    }

    /// The next line; None once the server has closed.
    pub(super) fn next(&mut self) -> Option<String> {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return Some(text.to_string()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Shows a token, and returns the scope that it opens.
    pub(super) fn auth(&mut self, token: &str) -> Value {
        self.send(&json!({ "type": "auth", "token": token }));
        let answer: Value = serde_json::from_str(&self.next().unwrap()).unwrap();
        if answer["type"] == "rpc_error" {
            answer["error"]["code"].clone()
        } else {
            answer["result"]["scope"].clone()
        }
    }

    /// Calls a method; returns the result, or the code of the error.
    pub(super) fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.send(&json!({ "type": "rpc", "id": method, "method": method, "params": params }));
        loop {
            let line: Value = serde_json::from_str(&self.next().unwrap()).unwrap();
            if line["id"] == method {
                let error = line["error"]["code"].clone();
                return if line["type"] == "rpc_error" {
                    Err(error)
                } else {
                    Ok(line["result"].clone())
                };
            }
        }
    }
}
