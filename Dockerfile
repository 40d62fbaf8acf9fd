# A static binary in an empty image: no shell, no package manager, nothing to write to.
#   docker build -t weir .
#   docker run --read-only --cap-drop all -p 8080:8080 -v ./routes.yaml:/etc/weir/routes.yaml:ro weir
# Inside a container `listen.address` (and `admin.address`, to reach it from outside) must be 0.0.0.0:PORT, which in turn
# needs `access` in the configuration.
FROM rust:1.95-alpine AS build
# The cryptography library is C; the image's own target is musl, which links statically.
RUN apk add --no-cache build-base ca-certificates cmake linux-headers perl
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked --bin weir && cp target/dist/weir /weir

FROM scratch
LABEL org.opencontainers.image.title="weir" \
      org.opencontainers.image.description="One endpoint in front of many MCP servers" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /LICENSE
COPY --from=build /weir /weir
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
USER 65532:65532
EXPOSE 8080 8090
ENTRYPOINT ["/weir"]
CMD ["serve", "--config", "/etc/weir/routes.yaml"]
