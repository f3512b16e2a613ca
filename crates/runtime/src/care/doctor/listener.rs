//! Finds the process that listens on a local port, by `/proc`.

/// Returns the pid and name of a process that listens on a port; None if it is another user's, or
/// unknown.
#[cfg(target_os = "linux")]
pub(super) fn listener(port: u16) -> Option<(u32, String)> {
    linux::listener(port)
}

/// Other systems don't report it.
#[cfg(not(target_os = "linux"))]
pub(super) fn listener(_: u16) -> Option<(u32, String)> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{File, read_dir, read_link, read_to_string};
    use std::io::{BufRead as _, BufReader};

    /// Sockets and descriptors that are looked at.
    const MOST: usize = 1_000_000;

    pub(super) fn listener(port: u16) -> Option<(u32, String)> {
        let inodes = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().flat_map(|table| {
            let lines = File::open(table).map(BufReader::new).into_iter();
            let lines = lines.flat_map(|table| table.lines().map_while(Result::ok)).take(MOST);
            lines.filter_map(|line| inode(&line, port)).collect::<Vec<_>>()
        });
        let sockets: Vec<String> = inodes.map(|inode| format!("socket:[{inode}]")).collect();
        if sockets.is_empty() {
            return None;
        }
        let pids = read_dir("/proc").ok()?.flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let holds = |pid: &u32| {
            let descriptors = read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let mut open = descriptors.take(MOST).filter_map(|it| read_link(it.path()).ok());
            open.any(|open| sockets.iter().any(|socket| open.as_os_str() == socket.as_str()))
        };
        let pid = pids.into_iter().find(holds)?;
        let name = read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Some((pid, name.trim_end().to_owned()))
    }

    /// Returns the inode of a line of `/proc/net/tcp` that is a socket listening on the port.
    pub(super) fn inode(line: &str, port: u16) -> Option<u64> {
        const LISTENS: &str = "0A";
        const INODE: usize = 9;
        let words: Vec<&str> = line.split_ascii_whitespace().take(INODE + 1).collect();
        let (_, local) = words.get(1)?.rsplit_once(':')?;
        let is_it = words.get(3) == Some(&LISTENS) && u16::from_str_radix(local, 16) == Ok(port);
        is_it.then(|| words.get(INODE)?.parse().ok())?
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_process_behind_a_port_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (pid, name) = super::listener(port).unwrap();
        assert_eq!(pid, std::process::id());
        assert!(!name.is_empty() && !name.contains('\n'));
        drop(listener);
        assert_eq!(super::listener(port), None);
    }

    #[test]
    fn lines_that_say_something_else_are_passed_over() {
        let line = "  0: 0100007F:43A8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0";
        assert_eq!(linux::inode(line, 17320), Some(4711));
        assert_eq!(linux::inode(line, 17321), None);
        assert_eq!(linux::inode(&line.replace(" 0A ", " 01 "), 17320), None);
        for line in ["", "  sl  local_address rem_address   st", "0: zz 0 0A", "a b:43A8 c 0A"] {
            assert_eq!(linux::inode(line, 17320), None, "{line}");
        }
    }
}
