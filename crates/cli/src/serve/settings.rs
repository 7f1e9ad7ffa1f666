//! From flags and a file to a configuration.

use std::fs;
use std::path::Path;

use tollgate_doors::{Address, Config, ConfigError, Secret, StoreConfig, StoreIdentity, TlsFiles};

use crate::doctor::{NAME_ONE, NO_SCHEME, STORE};
use crate::environment;
use crate::error::Error;
use crate::flags::{Listen, Serve};

/// What is to be done: the defaults, what the file says over them, and what flags say over both.
pub(super) fn resolve(flags: &Serve) -> Result<Config, Error> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (processors - 1).max(1);
    let mut config = Config::defaults(threads);
    if let Some(file) = &flags.config {
        let text = read(file)?;
        let file = file.display().to_string();
        let wrong = |error: ConfigError| Error::Config { file: Some(file), error };
        config.apply(&text).map_err(wrong)?;
        // Names in a file are meant from where it is.
        if let Some(folder) = flags.config.as_ref().and_then(|file| file.parent()) {
            let files = config.tls.as_mut().map(TlsFiles::all).into_iter().flatten();
            let store = config.store.as_mut().map(StoreConfig::files).into_iter().flatten();
            for file in config.rules.iter_mut().chain(files).chain(store) {
                *file = folder.join(&*file);
            }
        }
    }
    apply(flags, &mut config)?;
    config.check().map_err(|error| Error::Config { file: None, error })?;
    Ok(config)
}

fn apply(flags: &Serve, config: &mut Config) -> Result<(), Error> {
    config.rules = flags.rules.clone().or_else(|| config.rules.take());
    set(&mut config.http, flags.http.as_ref());
    set(&mut config.forward_auth, flags.forward_auth.as_ref());
    set(&mut config.resp, flags.resp.as_ref());
    set(&mut config.grpc, flags.grpc.as_ref());
    set(&mut config.status, flags.status.as_ref());
    set(&mut config.admin, flags.admin.as_ref());
    if let (Some(certificate), Some(key)) = (&flags.tls_certificate, &flags.tls_key) {
        let client_ca = flags.tls_client_ca.clone();
        config.tls = Some(TlsFiles::at_all_doors(certificate.clone(), key.clone(), client_ca));
    }
    let from_environment = || environment::variable(STORE)?.into_string().ok();
    let url = flags.store.clone().or_else(from_environment).filter(|url| !url.is_empty());
    if let Some(url) = url {
        // Nobody can tell what of it is a password.
        if !url.contains("://") {
            return Err(Error::Usage { message: NO_SCHEME, remedy: NAME_ONE });
        }
        let url = Secret::new(&url);
        match &mut config.store {
            Some(store) => store.url = url,
            None => config.store = Some(StoreConfig::at(url)),
        }
    }
    certify(flags, config.store.as_mut())?;
    if let Some(keys) = flags.keys {
        // A flag is at most 100 million, and a file at most 10^9: both fit.
        config.keys = keys as usize;
    }
    config.threads = flags.threads.map_or(config.threads, usize::from);
    config.log.format = flags.log_format.unwrap_or(config.log.format);
    if let Some(level) = &flags.log_level {
        config.log.level.clone_from(level);
    }
    if let Some(file) = &flags.admin_token_file {
        config.admin_token = Some(secret(file)?);
    }
    if let Some(file) = &flags.resp_password_file {
        config.resp_password = Some(secret(file)?);
    }
    Ok(())
}

/// Names the certificates for TLS with the store.
fn certify(flags: &Serve, store: Option<&mut StoreConfig>) -> Result<(), Error> {
    let Some(store) = store else {
        return match flags.store_ca.is_some() || flags.store_cert.is_some() {
            true => Err(Error::Usage { message: NO_STORE, remedy: NAME_ONE }),
            false => Ok(()),
        };
    };
    store.ca = flags.store_ca.clone().or_else(|| store.ca.take());
    if let (Some(cert), Some(key)) = (&flags.store_cert, &flags.store_key) {
        store.identity = Some(StoreIdentity { cert: cert.clone(), key: key.clone() });
    }
    Ok(())
}

fn set(address: &mut Option<Address>, flag: Option<&Listen>) {
    if let Some(Listen(given)) = flag {
        address.clone_from(given);
    }
}

fn secret(file: &Path) -> Result<Secret, Error> {
    match read(file)?.trim() {
        "" => {
            let error = std::io::Error::new(std::io::ErrorKind::InvalidData, "it is empty");
            Err(Error::Read { file: file.display().to_string(), error })
        }
        text => Ok(Secret::new(text)),
    }
}

fn read(file: &Path) -> Result<String, Error> {
    fs::read_to_string(file)
        .map_err(|error| Error::Read { file: file.display().to_string(), error })
}

const NO_STORE: &str = "certificates for a store are named, and no store is";
