//! The source's URL. Strict: what is not understood is refused, so no typing error weakens a setting.

use std::net::Ipv6Addr;

use capstan_core::{
    halt::{Code, Detail, Halt},
    link::Secret,
};

use super::{DEFAULT_PORT, KeySetting, Source, SslMode, SslSettings, invalid};

/// Parses `mysql://user[:password]@host[:port][/][?key=value[&key=value]…]`.
pub(super) fn parse(text: &str) -> Result<Source, Halt> {
    let rest = text
        .split_once("://")
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("mysql"))
        .map(|(_, rest)| rest)
        .ok_or_else(|| invalid("source", "does not begin with mysql://"))?;
    if rest.contains('#') {
        return Err(invalid("source", "holds a # (write it as %23)"));
    }
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, path),
        None => (rest, ""),
    };
    if !path.is_empty() {
        return Err(invalid("source", "names a path (name schemas with --tables; write / as %2F)"));
    }
    // The last @: one inside the password must be written %40, but nobody is helped by a wrong host.
    let (account, host) =
        authority.rsplit_once('@').ok_or_else(|| invalid("source", "names no user (mysql://user@host/)"))?;
    if account.contains('@') {
        return Err(invalid("source", "holds a second @ (write it as %40)"));
    }
    let (user, password) = match account.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (account, None),
    };
    let user = decode(user, "user")?;
    if user.is_empty() {
        return Err(invalid("user", "is empty"));
    }
    let (host, port) = host_and_port(host)?;
    let mut source = Source::new(host, user).with_port(port);
    if let Some(password) = password {
        source = source.with_password(Secret::new(decode_bytes(password, "password")?));
    }
    match query {
        Some(query) => settings(source, query),
        None => Ok(source),
    }
}

fn host_and_port(text: &str) -> Result<(String, u16), Halt> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or_else(|| invalid("host", "has no closing bracket"))?;
        host.parse::<Ipv6Addr>().map_err(|_| invalid("host", "is no IPv6 address"))?;
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port),
            None if rest.is_empty() => None,
            None => return Err(invalid("port", "is not separated by a colon")),
        };
        (host.to_owned(), port)
    } else {
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        if port.is_some_and(|port| port.contains(':')) {
            return Err(invalid("host", "is an IPv6 address without brackets"));
        }
        (decode(host, "host")?, port)
    };
    if host.is_empty() {
        return Err(invalid("host", "is empty"));
    }
    let port = match port {
        None | Some("") => DEFAULT_PORT,
        Some(port) => port
            .parse::<u16>()
            .ok()
            .filter(|&number| number != 0 && port.bytes().all(|b| b.is_ascii_digit()))
            .ok_or_else(|| invalid("port", "is no number from 1 to 65535"))?,
    };
    Ok((host, port))
}

fn settings(source: Source, query: &str) -> Result<Source, Halt> {
    let mut ssl = SslSettings::default();
    let mut pinned = None;
    let mut retrieve = None;
    let mut seen: Vec<String> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let key = decode(key, "source")?;
        if seen.contains(&key) {
            return Err(invalid(&key, "is given twice"));
        }
        let value = decode(value, &key)?;
        let path = |value: &str| match value {
            "" => Err(invalid(&key, "is empty")),
            path => Ok(Some(path.into())),
        };
        match key.as_str() {
            "ssl-mode" => {
                ssl.mode = SslMode::of(&value).ok_or_else(|| {
                    invalid("ssl-mode", "is none of disabled, required, verify-ca, verify-identity")
                })?;
            }
            "ssl-ca" => ssl.ca = path(&value)?,
            "ssl-cert" => ssl.cert = path(&value)?,
            "ssl-key" => ssl.key = path(&value)?,
            "server-public-key" => pinned = path(&value)?,
            "allow-public-key-retrieval" => {
                retrieve = Some(match value.as_str() {
                    "true" => true,
                    "false" => false,
                    _ => return Err(invalid("allow-public-key-retrieval", "is neither true nor false")),
                });
            }
            _ => {
                let why = "is no key of a source URL";
                return Err(Halt::new(Code::UnknownOption).with(Detail::Setting(key, why)));
            }
        }
        seen.push(key);
    }
    if ssl.cert.is_some() != ssl.key.is_some() {
        return Err(invalid("ssl-cert", "and ssl-key must be given together"));
    }
    if ssl.mode == SslMode::Disabled && (ssl.ca.is_some() || ssl.cert.is_some()) {
        return Err(invalid("ssl-mode", "is disabled, but certificates are given"));
    }
    if ssl.mode == SslMode::Required && ssl.ca.is_some() {
        return Err(invalid("ssl-ca", "has no effect under ssl-mode=required: say verify-ca"));
    }
    let key = match (pinned, retrieve) {
        (Some(_), Some(true)) => {
            return Err(invalid("allow-public-key-retrieval", "contradicts server-public-key"));
        }
        (Some(path), _) => KeySetting::Pinned(path),
        (None, Some(true)) => KeySetting::Retrieve,
        (None, _) => KeySetting::Refuse,
    };
    Ok(source.with_ssl(ssl).with_key(key))
}

fn decode(text: &str, name: &str) -> Result<String, Halt> {
    String::from_utf8(decode_bytes(text, name)?).map_err(|_| invalid(name, "is not UTF-8 when decoded"))
}

/// RFC 3986, section 2.1. A plus sign is a plus sign. A lone percent sign is refused: taking it as it
/// is would make some passwords work by luck.
fn decode_bytes(text: &str, name: &str) -> Result<Vec<u8>, Halt> {
    let wrong = || invalid(name, "holds a % that two hexadecimal digits do not follow (write it as %25)");
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let (Some(high), Some(low)) = (bytes.next().and_then(hex), bytes.next().and_then(hex)) else {
            return Err(wrong());
        };
        out.push(high << 4 | low);
    }
    Ok(out)
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_what_they_mean() {
        for (url, user, password, host, port) in [
            ("mysql://repl@db", "repl", None, "db", 3306),
            ("mysql://repl@db/", "repl", None, "db", 3306),
            ("MySQL://repl@db:/", "repl", None, "db", 3306),
            ("mysql://repl:@db:3307/?", "repl", Some(""), "db", 3307),
            ("mysql://repl:secret@db:65535", "repl", Some("secret"), "db", 65535),
            ("mysql://repl:p%40s%3As%2F%25%23%3F@db", "repl", Some("p@s:s/%#?"), "db", 3306),
            ("mysql://repl:a:b@db", "repl", Some("a:b"), "db", 3306),
            (
                "mysql://repl:a+b&c=d;e,f!g$h'i(j)k*l~m@db",
                "repl",
                Some("a+b&c=d;e,f!g$h'i(j)k*l~m"),
                "db",
                3306,
            ),
            ("mysql://r%C3%A9pl:p%C3%A4ss@d-b.example.org", "répl", Some("päss"), "d-b.example.org", 3306),
            ("mysql://r@[::1]:3310/", "r", None, "::1", 3310),
            ("mysql://r@[2001:db8::7]", "r", None, "2001:db8::7", 3306),
            ("mysql://r@127.0.0.1:3306", "r", None, "127.0.0.1", 3306),
        ] {
            let source = parse(url).unwrap_or_else(|halt| panic!("{url}: {halt}"));
            assert_eq!((source.user(), source.host(), source.port()), (user, host, port), "{url}");
            let found = source.password.as_ref().map(Secret::expose);
            assert_eq!(found, password.map(str::as_bytes), "{url}");
            assert_eq!(source.ssl().mode, SslMode::VerifyIdentity, "{url}");
            assert_eq!(source.key(), &KeySetting::Refuse, "{url}");
        }
    }

    #[test]
    fn settings_and_what_they_mean() {
        let source = parse(
            "mysql://r@h/?ssl-mode=verify-ca&ssl-ca=/etc/c%20a.pem&ssl-cert=c.pem&ssl-key=k.pem&\
             server-public-key=p.pem&allow-public-key-retrieval=false",
        )
        .unwrap();
        assert_eq!(source.ssl().mode, SslMode::VerifyCa);
        assert_eq!(source.ssl().ca.as_deref(), Some("/etc/c a.pem".as_ref()));
        assert_eq!(source.ssl().cert.as_deref(), Some("c.pem".as_ref()));
        assert_eq!(source.ssl().key.as_deref(), Some("k.pem".as_ref()));
        assert_eq!(source.key(), &KeySetting::Pinned("p.pem".into()));
        let source = parse("mysql://r@h?ssl-mode=disabled&allow-public-key-retrieval=true").unwrap();
        assert_eq!((source.ssl().mode, source.key()), (SslMode::Disabled, &KeySetting::Retrieve));
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name_and_never_quotes_a_password() {
        for (url, code, part) in [
            ("", Code::ConfigInvalid, "mysql://"),
            ("postgres://u@h", Code::ConfigInvalid, "mysql://"),
            ("mysql:/u@h", Code::ConfigInvalid, "mysql://"),
            ("mysql://h", Code::ConfigInvalid, "no user"),
            ("mysql://@h", Code::ConfigInvalid, "user"),
            ("mysql://:SENTINEL@h", Code::ConfigInvalid, "user"),
            ("mysql://u@", Code::ConfigInvalid, "host"),
            ("mysql://u@:3306", Code::ConfigInvalid, "host"),
            ("mysql://u:SENTINEL@x@h", Code::ConfigInvalid, "%40"),
            ("mysql://u:SENTINEL#x@h", Code::ConfigInvalid, "%23"),
            ("mysql://u:SENTINEL/x@h", Code::ConfigInvalid, "path"),
            ("mysql://u:SENTINEL%x@h", Code::ConfigInvalid, "%25"),
            ("mysql://u:SENTINEL%4@h", Code::ConfigInvalid, "%25"),
            ("mysql://u%ff@h", Code::ConfigInvalid, "UTF-8"),
            ("mysql://u@::1", Code::ConfigInvalid, "brackets"),
            ("mysql://u@[::1", Code::ConfigInvalid, "bracket"),
            ("mysql://u@[h]", Code::ConfigInvalid, "IPv6"),
            ("mysql://u@[::1]3306", Code::ConfigInvalid, "colon"),
            ("mysql://u@h:0", Code::ConfigInvalid, "port"),
            ("mysql://u@h:65536", Code::ConfigInvalid, "port"),
            ("mysql://u@h:+1", Code::ConfigInvalid, "port"),
            ("mysql://u@h/db", Code::ConfigInvalid, "--tables"),
            ("mysql://u@h/?ssl-mod=required", Code::UnknownOption, "ssl-mod"),
            ("mysql://u@h/?SSL-MODE=required", Code::UnknownOption, "SSL-MODE"),
            ("mysql://u@h/?ssl-mode=preferred", Code::ConfigInvalid, "verify-identity"),
            ("mysql://u@h/?ssl-mode=REQUIRED", Code::ConfigInvalid, "ssl-mode"),
            ("mysql://u@h/?ssl-mode", Code::ConfigInvalid, "ssl-mode"),
            ("mysql://u@h/?ssl-mode=required&ssl-mode=disabled", Code::ConfigInvalid, "twice"),
            ("mysql://u@h/?ssl-ca=", Code::ConfigInvalid, "ssl-ca"),
            ("mysql://u@h/?ssl-cert=c", Code::ConfigInvalid, "together"),
            ("mysql://u@h/?ssl-key=k", Code::ConfigInvalid, "together"),
            ("mysql://u@h/?ssl-mode=disabled&ssl-ca=f", Code::ConfigInvalid, "disabled"),
            ("mysql://u@h/?ssl-mode=required&ssl-ca=f", Code::ConfigInvalid, "verify-ca"),
            ("mysql://u@h/?allow-public-key-retrieval", Code::ConfigInvalid, "neither"),
            (
                "mysql://u@h/?allow-public-key-retrieval=true&server-public-key=f",
                Code::ConfigInvalid,
                "contradicts",
            ),
        ] {
            let halt = parse(url).map(|source| format!("{source:?}")).unwrap_err();
            let text = halt.to_string();
            assert_eq!(halt.code, code, "{url}: {text}");
            assert!(text.contains(part), "{url}: {part} not in {text}");
            assert!(!text.contains("SENTINEL"), "{url}: {text}");
        }
    }

    #[test]
    fn a_password_is_in_no_text_of_a_source() {
        let source = parse("mysql://u:SENTINEL@[::1]:7/").unwrap();
        assert_eq!(source.to_string(), "mysql://u@[::1]:7/");
        assert!(!format!("{source:?}").contains("SENTINEL"));
    }

    #[test]
    fn a_key_file_that_is_none_is_found_before_any_socket() {
        for (name, part) in [("/nonexistent/key.pem", "cannot be read"), ("/dev/null", "no RSA")] {
            let source = Source::new("h", "u").with_key(KeySetting::Pinned(name.into()));
            let text = source.login().unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    }
}
