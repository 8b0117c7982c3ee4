//! TLS to the database: a server with a certificate that was made here.

use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use call_assistant_postgres::db::{Address, Database};
use private_server::{PrivateServer, Settings};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// A file beside the server's, which only the server may read.
fn write(server: &PrivateServer, name: &str, text: &str) -> PathBuf {
    let file = server.folder().join(name);
    std::fs::write(&file, text).unwrap();
    let owner = std::fs::metadata(server.folder().join("data")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    file
}

/// A server that speaks TLS as `localhost` on a port, and the file of the authority that says so.
fn server() -> (PrivateServer, u16, PathBuf) {
    let mut server = PrivateServer::start(Settings::default()).unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.distinguished_name.push(DnType::CommonName, "database");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let ca = authority.self_signed(&authority_key).unwrap();
    let (key, issuer) =
        (KeyPair::generate().unwrap(), Issuer::from_params(&authority, authority_key));
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    let ca = write(&server, "ca.pem", &ca.pem());
    write(&server, "server.pem", &leaf.pem());
    write(&server, "server.key", &key.serialize_pem());

    let settings = server.folder().join("data/postgresql.auto.conf");
    let before = std::fs::read_to_string(&settings).unwrap();
    server.stop();
    loop {
        // Free a moment ago: if somebody took it, the server does not start.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = server.folder().display().to_string();
        let tls = format!(
            "{before}listen_addresses = '127.0.0.1'\nport = {port}\nssl = on\n\
             ssl_cert_file = '{folder}/server.pem'\nssl_key_file = '{folder}/server.key'\n"
        );
        std::fs::write(&settings, tls).unwrap();
        if server.launch().is_ok() {
            return (server, port, ca);
        }
    }
}

/// Whether a connection has TLS, or why there is none.
async fn has_tls(url: &str, ca: Option<&Path>) -> Result<bool, String> {
    let address = Address::from(url).with_ca(ca.map(Path::to_owned));
    let database = Database::at(&address, 1)?;
    let session = database.session().await.map_err(|error| error.to_string())?;
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    Ok(session.query_one(sql, &[]).await.unwrap().get(0))
}

// The certificate and its host are verified whenever there is TLS, and a refusal says what to do.
#[tokio::test]
async fn the_database_is_who_its_certificate_names() {
    let (server, port, ca) = server();
    let at =
        |host: &str, query: &str| format!("postgresql://postgres@{host}:{port}/postgres{query}");
    let socket = server.folder().to_string_lossy().replace('/', "%2F");
    for (host, query, ca, expected) in [
        ("localhost", "?sslmode=require", Some(&ca), Ok(true)),
        ("localhost", "?sslmode=prefer", Some(&ca), Ok(true)),
        ("localhost", "", Some(&ca), Ok(true)),
        ("localhost", "?sslmode=disable", None, Ok(false)),
        ("localhost", "?sslmode=require", None, Err("--database-ca")),
        ("localhost", "?sslmode=prefer", None, Err("--database-ca")),
        ("127.0.0.1", "?sslmode=require", Some(&ca), Err("certificate does not name")),
        ("localhost", "?sslmode=verify-full", Some(&ca), Err("disable, prefer or require")),
        // A socket of this machine needs no TLS, and has none.
        (&socket, "", None, Ok(false)),
        (&socket, "?sslmode=require", None, Err("sslmode=disable")),
    ] {
        let found = has_tls(&at(host, query), ca.map(PathBuf::as_path)).await;
        let case = format!("{host}{query} with {ca:?}: {found:?}");
        match (&found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(*found, expected, "{case}"),
            (Err(error), Err(hint)) => assert!(error.contains(hint), "{case}"),
            _ => panic!("{case}"),
        }
    }
    let nothing = server.folder().join("data/PG_VERSION");
    let refused = has_tls(&at("localhost", ""), Some(&nothing)).await.unwrap_err();
    assert!(refused.starts_with("--database-ca: "), "{refused}");

    let migrate = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_call-assistant-postgres"));
        command.args(["migrate", "--database", &at("localhost", "?sslmode=require")]);
        command
    };
    let output = migrate().output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--database-ca or DATABASE_CA"), "{said}");
    assert!(migrate().arg("--database-ca").arg(&ca).status().unwrap().success());
    assert!(migrate().env("DATABASE_CA", &ca).status().unwrap().success());
}
