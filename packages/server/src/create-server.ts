import { readFileSync } from 'node:fs'
import type { Server as NodeHttpServer } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MESSAGE_OVERHEAD_BYTES, WebMQError } from 'webmq-client/protocol'
import type { WebMQServer } from './api.js'
import { createTokenVerifier, PacedVerifier } from './identity/index.js'
import { createLogger, type Logger } from './logger.js'
import { Server } from './node/server.js'
import { meshPlacesOf } from './options/mesh-address.js'
import { type ResolvedOptions, resolveOptions, type ServerOptions, type TlsFiles } from './options/options.js'
import type { Broker } from './ports/broker.js'
import { brokerNameOf, withoutPasswords } from './ports/broker-address.js'
import { historyRulesOf } from './ports/history-rules.js'
import type { TlsCertificate, Transport, TransportOptions } from './ports/transport.js'

/**
 * Creates a server; call `start` or `attach` to run it. Only this file knows all transports and brokers; it loads only
 * the chosen ones.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`, `E_INSECURE`.
 */
export function createServer(options: ServerOptions = {}): WebMQServer {
  const resolved = resolveOptions(options)
  const { jwt, demo, logLevel, logFormat } = resolved
  const logger = resolved.logger ?? createLogger({ level: logLevel, format: logFormat })
  return new Server({
    options: resolved,
    logger,
    verifier:
      jwt === undefined
        ? undefined
        : new PacedVerifier(createTokenVerifier(jwt, { logger, wordLimits: resolved }), resolved.handshakeTimeoutMs),
    demo: demo ? demoFolders() : undefined,
    createTransport,
    createBroker: (options) => createBroker(options, logger),
  })
}

async function createTransport(options: ResolvedOptions, httpServer: NodeHttpServer): Promise<Transport> {
  const transportOptions = transportOptionsOf(options, httpServer)
  switch (options.transport) {
    case 'native': {
      const { createNativeTransport } = await import('./transports/native/transport.js')
      return createNativeTransport(transportOptions)
    }
    case 'uws': {
      const { createUwsTransport } = await import('./transports/uws/transport.js')
      return createUwsTransport(transportOptions)
    }
  }
}

async function createBroker(options: ResolvedOptions, logger: Logger): Promise<Broker> {
  const { broker: address } = options
  if (typeof address !== 'string') return address
  const name = brokerNameOf(address)
  const shared = { ...options, broker: address, history: historyRulesOf(options, name === 'memory') }
  switch (name) {
    case 'memory': {
      const { MemoryBroker } = await import('./brokers/memory/broker.js')
      return new MemoryBroker(shared)
    }
    case 'redis': {
      const { createRedisBroker } = await import('./brokers/redis/broker.js')
      return await createRedisBroker(shared)
    }
    case 'nats': {
      const { createNatsBroker } = await import('./brokers/nats/broker.js')
      return await createNatsBroker(shared)
    }
    case 'mesh': {
      const { createMeshBroker } = await import('./brokers/mesh/broker.js')
      const { peers, listen } = meshPlacesOf(address, options.mesh?.listen)
      return createMeshBroker({ ...shared, peers, listen, secret: options.mesh?.secret, logger })
    }
    case 'rabbitmq': {
      const { createRabbitmqBroker } = await import('./brokers/rabbitmq/broker.js')
      return await createRabbitmqBroker(shared)
    }
    default:
      throw new WebMQError('E_OPTION_INVALID', { detail: `broker: ${withoutPasswords(address)}` })
  }
}

function transportOptionsOf(options: ResolvedOptions, httpServer: NodeHttpServer): TransportOptions {
  const { tls, maxPayloadBytes, compression, compressionThresholdBytes } = options
  return {
    host: options.host,
    port: options.port,
    threads: options.threads,
    maxMessageBytes: maxPayloadBytes + MESSAGE_OVERHEAD_BYTES,
    maxOutboxBytes: options.maxOutboxBytes,
    ...(compression ? { compression: { thresholdBytes: compressionThresholdBytes } } : undefined),
    maxHeaderBytes: options.maxHeaderBytes,
    maxConnections: options.maxConnections,
    handshakeTimeoutMs: options.handshakeTimeoutMs,
    messageTimeoutMs: options.messageTimeoutMs,
    pingIntervalMs: options.pingIntervalMs,
    pingTimeoutMs: options.pingTimeoutMs,
    closeTimeoutMs: options.closeTimeoutMs,
    flushIntervalMs: options.flushIntervalMs,
    ...(tls === undefined ? undefined : { tls: [readCertificate(tls)] }),
    httpServer,
  }
}

function readCertificate({ certFile, keyFile }: TlsFiles): TlsCertificate {
  return { certFile, keyFile, cert: readFileSync(certFile), key: readFileSync(keyFile) }
}

/** The page is next to the compiled code; the client library is the installed `webmq-client`. */
function demoFolders(): { readonly pageFolder: string; readonly clientFolder: string } {
  const clientPackage = createRequire(import.meta.url).resolve('webmq-client/package.json')
  return {
    pageFolder: fileURLToPath(new URL('../demo', import.meta.url)),
    clientFolder: join(dirname(clientPackage), 'dist'),
  }
}
