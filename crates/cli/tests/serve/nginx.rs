//! nginx as the document sets it up, in both ways.

use crate::support::Gateway;

/// One process in the foreground, which is gone when it is ended, and leaves nothing outside of its
/// folder.
fn start(file: &str) -> Gateway {
    let settings = "daemon off; master_process off; pid nginx.pid;";
    let command = ["nginx", "-p", ".", "-e", "stderr", "-c", file, "-g", settings];
    Gateway::start_edited("nginx.md", &command, |text| text.replace("http {\n", HTTP))
}

/// What is elsewhere by default, where not everybody may write.
const HTTP: &str = "http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
";

#[test]
fn limits_clients_with_403() {
    start("nginx.conf").limits_clients(true);
}

#[test]
fn knows_what_is_asked_for_with_403() {
    start("nginx.conf").knows_what_is_asked_for();
}

#[test]
fn limits_clients_with_429() {
    start("nginx-429.conf").limits_clients(true);
}

#[test]
fn knows_what_is_asked_for_with_429() {
    start("nginx-429.conf").knows_what_is_asked_for();
}
