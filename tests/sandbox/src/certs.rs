//! One certificate authority per cluster, and what it signs: EC P-256 throughout.

use anyhow::{Context, Result};
use jiff::{Span, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};

/// A certificate and its key, both PEM (the key PKCS#8).
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub cert: String,
    /// Its private key.
    pub key: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity { … }")
    }
}

/// A cluster's own certificate authority.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority { … }")
    }
}

impl Authority {
    /// A new authority named after `cluster`.
    pub fn new(cluster: &str) -> Result<Self> {
        let mut params = params(&format!("{cluster}-ca"), &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    /// The authority's certificate, PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate that serves 127.0.0.1 and localhost.
    pub fn server(&self, name: &str) -> Result<Identity> {
        let mut params = params(name, &[])?;
        let names = ["127.0.0.1", "10.96.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        params.subject_alt_names = CertificateParams::new(names.map(str::to_owned).to_vec())?.subject_alt_names;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A certificate that authenticates `user`, a member of `groups`.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Identity> {
        let mut params = params(user, groups)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Identity> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let cert = params.signed_by(&key, &self.issuer)?;
        Ok(Identity { cert: cert.pem(), key: key.serialize_pem() })
    }
}

/// A key pair that signs `ServiceAccount` tokens: (private key, public key), PEM.
/// The API server reads no PKCS#8 EC key as a public key, so it needs both files.
pub fn token_keys() -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

/// Valid from yesterday for ten years.
fn params(common_name: &str, organizations: &[&str]) -> Result<CertificateParams> {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    for organization in organizations {
        name.push(DnType::OrganizationName, *organization);
    }
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    let yesterday = Timestamp::now().to_zoned(TimeZone::UTC).checked_sub(Span::new().days(1)).context("date of yesterday")?;
    let (year, month, day) = (i32::from(yesterday.year()), yesterday.month().unsigned_abs(), yesterday.day().unsigned_abs());
    params.not_before = date_time_ymd(year, month, day);
    params.not_after = date_time_ymd(year + 10, month, 1);
    Ok(params)
}
