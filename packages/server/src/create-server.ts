import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endMessages, MESSAGE_OVERHEAD_BYTES, WebMQError } from 'webmq-client/protocol'
import { PROBE_PATHS } from './doors/http/budgets.js'
import { Server } from './doors/in-process/server.js'
import type { WebMQServer } from './doors/in-process/webmq-server.js'
import type { Hooks } from './doors/options/hooks.js'
import { meshPlacesOf } from './doors/options/mesh-address.js'
import { resolveOptions } from './doors/options/options.js'
import type { ResolvedOptions, ServerOptions, TransportName } from './doors/options/server-options.js'
import { HookCalls } from './features/hooks/hook-calls.js'
import { Webhook } from './features/hooks/webhooks/webhook.js'
import { AuditLog } from './features/observing/audit/log.js'
import type { DatabaseOutbox, OutboxContext } from './features/outbox/driver.js'
import { Deadlines } from './kernel/base/deadlines.js'
import { logBug } from './kernel/base/log-bug.js'
import { createLogger, type Logger } from './kernel/base/logger.js'
import { rangesOf } from './kernel/base/networks.js'
import { PacedVerifier, ReloadableVerifier } from './kernel/identity/index.js'
import type { ChosenTransport, TransportRequest } from './kernel/node/parts.js'
import type { Broker } from './kernel/ports/broker.js'
import { brokerNameOf, withoutPasswords } from './kernel/ports/broker-address.js'
import { historyRulesOf } from './kernel/ports/history-rules.js'
import { retainRulesOf } from './kernel/ports/retain-rules.js'
import type { Transport } from './kernel/ports/transport.js'
import type { TransportOptions } from './kernel/ports/transport-options.js'

/**
 * Creates a server; call `start` or `attach` to run it. Only this file knows all transports and brokers; it loads only
 * the chosen ones.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`, `E_INSECURE`.
 */
export function createServer(options: ServerOptions = {}): WebMQServer {
  // A client in this process has set links: these messages go to other programs, whose clients add theirs.
  endMessages(() => '')
  const resolved = resolveOptions(options)
  const { jwt, hooks, demo, logLevel, logFormat, auditLog, auditLevel } = resolved
  if (typeof hooks === 'string') {
    throw new WebMQError('E_OPTION_INVALID', { detail: 'hooks: a program passes an object with functions, no file' })
  }
  const logger = resolved.logger ?? createLogger({ level: logLevel, format: logFormat })
  const webhook = resolved.webhook === undefined ? undefined : new Webhook(resolved.webhook, logger)
  const keepsClaims = hooks !== undefined || webhook !== undefined
  const keys =
    jwt === undefined ? undefined : new ReloadableVerifier(jwt, { logger, wordLimits: resolved, keepsClaims })
  return new Server({
    options: resolved,
    logger,
    verifier: keys === undefined ? undefined : new PacedVerifier(keys, resolved.handshakeTimeoutMs),
    prepareKeys: keys === undefined ? undefined : (options) => keys.prepare(options.jwt ?? {}, options),
    hooks: createHooks(resolved, hooks, webhook, logger),
    webhook,
    audit: auditLog === 'off' ? undefined : new AuditLog({ target: auditLog, level: auditLevel, logger }),
    demo: demo ? demoFolders() : undefined,
    createTransport,
    createBroker: (options) => createBroker(options, logger),
    createOutbox: (options) => createOutbox(options, logger),
  })
}

function createHooks(
  options: ResolvedOptions,
  hooks: Hooks | undefined,
  webhook: Webhook | undefined,
  logger: Logger,
): HookCalls | undefined {
  // Functions of the process come first: they cost nothing.
  const sources = [
    ...(hooks === undefined ? [] : [{ name: 'hooks', hooks, timeoutMs: options.hookTimeoutMs }]),
    ...(webhook === undefined ? [] : [webhook.source]),
  ]
  if (sources.length === 0) return undefined
  return new HookCalls({
    sources,
    limits: options,
    deadlines: new Deadlines({
      now: () => performance.now(),
      onError: (err) => logBug(logger, { err }, 'a deadline of a hook failed'),
    }),
    logger,
    now: Date.now,
  })
}

async function createTransport(options: ResolvedOptions, request: TransportRequest): Promise<ChosenTransport> {
  const transportOptions = transportOptionsOf(options, request)
  if (options.transport !== 'auto') {
    const transport = await transportNamed(options.transport, transportOptions)
    return { transport, choice: { name: transport.name, chosen: 'option' } }
  }
  const native = await transportNamed('native', transportOptions)
  const reason = await reasonAgainst(native, request)
  if (reason === undefined) return { transport: native, choice: { name: native.name, chosen: 'auto' } }
  const transport = await transportNamed('ws', transportOptions)
  return { transport, choice: { name: transport.name, chosen: 'auto', reason } }
}

/** Why `auto` does not take the native transport; `undefined` when it does. */
async function reasonAgainst(
  { capabilities }: Transport,
  { attachTo, certificates }: TransportRequest,
): Promise<string | undefined> {
  if (attachTo !== undefined && attachTo instanceof process.getBuiltinModule('node:tls').Server)
    return 'the native engine does not take upgrades of an https server'
  if (certificates !== undefined && !capabilities.tls) return 'the native engine has no TLS'
  const { reasonWhyNativeIsMissing } = await import('./adapters/transports/native/engine.js')
  return reasonWhyNativeIsMissing()
}

async function transportNamed(
  name: Exclude<TransportName, 'auto'>,
  transportOptions: TransportOptions,
): Promise<Transport> {
  switch (name) {
    case 'native':
      return (await import('./adapters/transports/native/transport.js')).createNativeTransport(transportOptions)
    case 'ws':
      return (await import('./adapters/transports/ws/transport.js')).createWsTransport(transportOptions)
    case 'uws': {
      const { createPackagedTransport } = await import('./adapters/transports/packaged.js')
      return await createPackagedTransport('webmq-transport-uws', 'createUwsTransport', transportOptions)
    }
  }
}

async function createBroker(options: ResolvedOptions, logger: Logger): Promise<Broker> {
  const { broker: address } = options
  if (typeof address !== 'string') return address
  const name = brokerNameOf(address)
  const shared = {
    ...options,
    broker: address,
    history: historyRulesOf(options, name === 'memory'),
    retain: retainRulesOf(options),
  }
  switch (name) {
    case 'memory':
      return new (await import('./adapters/brokers/memory/broker.js')).MemoryBroker(shared)
    case 'redis':
    case 'nats':
    case 'rabbitmq': {
      const { BROKER_PACKAGES, createPackagedBroker } = await import('./adapters/brokers/packaged.js')
      return await createPackagedBroker(BROKER_PACKAGES[name], shared)
    }
    case 'mesh': {
      const { MeshBroker } = await import('./adapters/brokers/mesh/broker.js')
      const { peers, listen } = meshPlacesOf(address, options.mesh?.listen)
      return new MeshBroker({ ...shared, peers, listen, secret: options.mesh?.secret, logger })
    }
    default:
      throw new WebMQError('E_OPTION_INVALID', { detail: `broker: ${withoutPasswords(address)}` })
  }
}

async function createOutbox(options: ResolvedOptions, logger: Logger): Promise<DatabaseOutbox | undefined> {
  const { outbox, maxPayloadBytes } = options
  if (outbox === undefined) return undefined
  const { loadOutboxDriver } = await import('./features/outbox/packaged.js')
  // The table of options has filled in the defaults.
  return (await loadOutboxDriver()).create({ ...outbox, maxPayloadBytes, logger } as OutboxContext)
}

function transportOptionsOf(
  options: ResolvedOptions,
  { httpServer, certificates }: TransportRequest,
): TransportOptions {
  const { maxPayloadBytes, compression, compressionThresholdBytes } = options
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
    ...(options.proxyProtocol ? { proxyProtocolFrom: rangesOf(options.trustedProxies) } : undefined),
    ...(certificates === undefined ? undefined : { tls: certificates }),
    ...(options.sse === 'on' ? { ssePath: options.ssePath } : undefined),
    httpServer,
    probePaths: PROBE_PATHS,
  }
}

/** The page is next to the compiled code; the client library is the installed `webmq-client`. */
function demoFolders(): { readonly pageFolder: string; readonly clientFolder: string } {
  const clientPackage = createRequire(import.meta.url).resolve('webmq-client/package.json')
  return {
    pageFolder: fileURLToPath(new URL('../demo', import.meta.url)),
    clientFolder: join(dirname(clientPackage), 'dist'),
  }
}
