import type { FakeClient } from 'webmq-conformance'
import { FakeTransport, type FakeUpgrade } from 'webmq-conformance'
import { MemoryBroker } from '../src/adapters/brokers/memory/broker.js'
import { Server } from '../src/doors/in-process/server.js'
import { resolveOptions } from '../src/doors/options/options.js'
import type { ServerOptions } from '../src/doors/options/server-options.js'
import { Webhook } from '../src/features/hooks/webhooks/webhook.js'
import type { AuditLog } from '../src/features/observing/audit/log.js'
import type { Observer } from '../src/features/observing/observer.js'
import type { Logger } from '../src/kernel/base/logger.js'
import { ReloadableVerifier, type TokenVerifier } from '../src/kernel/identity/index.js'
import type { Broker } from '../src/kernel/ports/broker.js'
import { formatPosition } from '../src/kernel/ports/position.js'
import { memoryOptions } from './memory-options.js'

/** A logged line. */
export interface LogLine {
  readonly level: string
  readonly fields: object
  readonly message: string | undefined
}

/** A logger that records its lines. */
export function recordingLogger(): { readonly logger: Logger; readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const at = (level: string) => (fields: object | string, message?: string) => {
    lines.push(typeof fields === 'string' ? { level, fields: {}, message: fields } : { level, fields, message })
  }
  const logger: Logger = {
    trace: at('trace'),
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    fatal: at('fatal'),
    child: () => logger,
  }
  return { logger, lines }
}

/** Parts that replace the usual ones. */
export interface FakeServerParts {
  readonly broker?: Broker
  readonly verifier?: TokenVerifier
  readonly observers?: readonly Observer[]
  readonly audit?: AuditLog
}

/** A whole server on a transport without sockets. */
export class FakeServer {
  readonly server: Server
  readonly transport = new FakeTransport()
  readonly broker: Broker
  readonly log: readonly LogLine[]

  constructor(options: ServerOptions = {}, { broker, verifier, observers = [], audit }: FakeServerParts = {}) {
    const { logger, lines } = recordingLogger()
    this.log = lines
    const resolved = resolveOptions({ ...options, logger })
    const keys = resolved.jwt === undefined ? undefined : new ReloadableVerifier(resolved.jwt, { wordLimits: resolved })
    this.broker = broker ?? new MemoryBroker(memoryOptions(options))
    this.server = new Server({
      options: resolved,
      logger,
      verifier: verifier ?? keys,
      prepareKeys: keys === undefined ? undefined : (wanted) => keys.prepare(wanted.jwt ?? {}, wanted),
      observers,
      webhook: resolved.webhook && new Webhook(resolved.webhook, logger),
      audit,
      demo: undefined,
      createTransport: () => Promise.resolve({ transport: this.transport, choice: { name: 'fake', chosen: 'option' } }),
      createBroker: () => Promise.resolve(this.broker),
    })
  }

  static async start(options?: ServerOptions, parts?: FakeServerParts): Promise<FakeServer> {
    const fake = new FakeServer(options, parts)
    await fake.server.start()
    return fake
  }

  /** The end of the log as text. */
  async position(): Promise<string | undefined> {
    const position = await this.broker.position()
    return position && formatPosition(position)
  }

  /** Connects, and resolves when the server has answered. */
  async connect(upgrade?: FakeUpgrade): Promise<FakeClient> {
    const client = this.transport.connect(upgrade)
    await this.settled()
    return client
  }

  /** Connects, and resolves when the listens are live. */
  async listener(...patterns: string[]): Promise<FakeClient> {
    const client = await this.connect()
    for (const pattern of patterns) client.send({ verb: 'listen', id: pattern.replace(/[^\w-]/g, '_'), pattern })
    await this.settled()
    client.clear()
    return client
  }

  /** Resolves when everything that was sent is handled, except for calls that wait and connections that are paused. */
  async settled(): Promise<void> {
    const { server, transport } = this
    for (let turns = 0; turns < 1_000; turns++) {
      await transport.settled()
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
      await transport.settled()
      const { backlogBytes, pausedCount } = server.stats().work
      if (backlogBytes === 0 || pausedCount > 0) return
    }
  }
}
