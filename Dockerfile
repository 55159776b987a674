# The WebMQ server with the native and the ws transport, all brokers, the database outbox, and the libraries for traces: docker build -t webmq-server .
# The uws transport is missing: it is a package of its own, and uWebSockets.js is not on npm. docs/operations.md says how to run the image.

FROM node:22.23.3-bookworm-slim AS node

# The engine, for the libc of the final image. Only a change of packages/native builds it again.
FROM rust:1.95.0-slim-bookworm AS engine
COPY --from=node /usr/local/bin/node /usr/local/bin/node
WORKDIR /src/packages/native
COPY packages/native ./
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/packages/native/target \
    node build.js

# The packages, compiled and with their dependencies, as the lock file has them. Downloads depend on the lock file alone.
FROM node AS build
WORKDIR /src
COPY pnpm-lock.yaml pnpm-workspace.yaml ./
RUN npx --yes pnpm@10.34.9 fetch
COPY . .
RUN npx --yes pnpm@10.34.9 install --offline --frozen-lockfile \
  && node node_modules/typescript-7/bin/tsc -b packages/server packages/broker-nats packages/broker-rabbitmq packages/broker-redis \
    packages/outbox-postgres \
  && node packages/server/copy-files.mjs
COPY --from=engine /src/packages/native/*.node packages/native/
# Injected: packages of the workspace are copied as they would be published, not linked.
RUN npx --yes pnpm@10.34.9 --filter webmq-image --prod --offline \
    --config.inject-workspace-packages=true --config.node-linker=hoisted deploy app

FROM node
WORKDIR /app
COPY --from=build /src/app ./
# An empty config file. Mount yours over it; it overrides the defaults of the image, and variables override it.
COPY deploy/image/webmq.json /etc/webmq/webmq.json
ENV NODE_ENV=production WEBMQ_CONFIG=/etc/webmq/webmq.json WEBMQ_DEFAULTS=/app/defaults.json
# The user node. As a number, so that Kubernetes can see that it is not root.
USER 1000:1000
EXPOSE 8080
# Liveness, not readiness: the outage of a broker must not restart every node. Nor must seconds without an answer: 90 of them do.
HEALTHCHECK --interval=10s --timeout=10s --start-period=2m --retries=9 CMD ["/app/healthy.sh"]
ENTRYPOINT ["node", "node_modules/webmq-server/bin/webmq-server.js"]
