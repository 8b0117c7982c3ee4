//! TLS of a client: the trusted certificates.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// Trusts Mozilla's roots and the certificates of a PEM file, for servers of this protocol.
///
/// # Errors
/// The file cannot be read, or contains no usable certificate.
pub fn config(file: Option<&Path>, protocol: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(file) = file {
        let before = roots.len();
        let certificates = CertificateDer::pem_file_iter(file);
        for certificate in certificates.map_err(|error| error.to_string())? {
            let certificate = certificate.map_err(|error| error.to_string())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        if roots.len() == before {
            return Err("the file contains no certificate".to_owned());
        }
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}
