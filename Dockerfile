# A WebMQ server: docker build -t webmq-server .
# Not run where it was written, for want of a container engine: its steps were, one by one, on Debian 12. docs/operations.md says more.

FROM rust:1-slim-bookworm AS rust

# Builds the engine and the packages as they would be published.
FROM node:22-bookworm-slim AS build
RUN apt-get update \
  && apt-get install --yes --no-install-recommends gcc libc6-dev \
  && rm -rf /var/lib/apt/lists/*
COPY --from=rust /usr/local/cargo /usr/local/cargo
COPY --from=rust /usr/local/rustup /usr/local/rustup
ENV CARGO_HOME=/usr/local/cargo RUSTUP_HOME=/usr/local/rustup PATH=/usr/local/cargo/bin:$PATH
WORKDIR /src
COPY . .
RUN npm run build \
  && for package in client native server; do \
       (cd packages/$package && npx --yes pnpm@10.34.9 pack --pack-destination /packed) || exit 1; \
     done

# Installs them as a user would, with the libraries of every broker.
FROM node:22-bookworm-slim AS install
WORKDIR /app
COPY --from=build /packed /packed
RUN echo '{ "private": true }' > package.json \
  && npm install --omit=dev --no-audit --no-fund /packed/*.tgz amqplib@2 ioredis@6 @nats-io/transport-node@3 @nats-io/jetstream@3

FROM node:22-bookworm-slim
WORKDIR /app
COPY --from=install /app /app
USER node
# Reached from other containers; anonymous access then needs WEBMQ_INSECURE=on, or better: a key for tokens.
ENV NODE_ENV=production WEBMQ_HOST=0.0.0.0 WEBMQ_PORT=8080
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=40s --retries=2 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.WEBMQ_PORT}/ready`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "node_modules/webmq-server/bin/webmq-server.js"]
