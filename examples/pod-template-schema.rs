//! Prints the schema of pod templates, made from the `OpenAPI` v3 document of Kubernetes' core/v1:
//! `cargo run --example pod-template-schema -- api__v1_openapi.json > src/api/odin/pod_template.schema.json`

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("name the file api/openapi-spec/v3/api__v1_openapi.json of Kubernetes' source")?;
    let document = serde_json::from_slice(&std::fs::read(file)?)?;
    println!("{}", odin_hub::api::schema::pod_template::from_openapi(&document)?);
    Ok(())
}
