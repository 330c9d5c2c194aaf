# The static program and nothing else. On Alpine, Rust's own target is musl, which links everything into the program.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package odin-hub --bin odin-hub

FROM scratch
COPY --from=build /src/target/release/odin-hub /odin-hub
# It starts here only if it is static.
RUN ["/odin-hub", "--version"]
# As the chart's pod has it.
USER 65532:65532
ENTRYPOINT ["/odin-hub"]
CMD ["controller"]
