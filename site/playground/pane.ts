import type { WebMQClient } from 'webmq-client'
import { decodeClientMessage, decodeServerMessage, type ServerMessage } from 'webmq-client/protocol'
import type { TestServer } from 'webmq-client/testing'
import { type Frame, type SocketWatcher, WatchedSocket } from '../../packages/client/src/dev/devtools/watched-socket.js'
import type { PaneName, Told } from './messages.js'
import type * as Modules from './modules.js'

const IMPORT = /^import\s+\{([^}]*)\}\s+from\s+['"]([^'"]+)['"];?/gm
const AsyncFunction = (async () => undefined).constructor as FunctionConstructor

/** One page of the playground: its code, with modules of its own, and its network, which can be cut. */
export class Pane implements SocketWatcher {
  isOffline = false
  readonly #name: PaneName
  readonly #server: TestServer
  readonly #tell: (told: Told) => void
  readonly #sockets = new Set<WatchedSocket>()
  /** Patterns of the listens without an answer, by their ids. */
  readonly #asked = new Map<string, string>()

  constructor(name: PaneName, server: TestServer, tell: (told: Told) => void) {
    this.#name = name
    this.#server = server
    this.#tell = tell
  }

  /** Runs the code as a module whose imports are those that {@link Modules} has. */
  async run(code: string, modules: string): Promise<void> {
    const shown = Object.fromEntries(
      ['log', 'info', 'debug', 'warn', 'error'].map((level) => [
        level,
        (...values: readonly unknown[]) => this.#say(level === 'error' ? 'error' : 'log', values.map(textOf).join(' ')),
      ]),
    )
    try {
      const { client, parts, stream } = new Function('console', `${modules};return webmq`)(shown) as typeof Modules
      const known = {
        'webmq-client': { ...client, setup: (options: object) => this.#watched(client.setup(this.#wired(options))) },
        'webmq-client/parts': parts,
        'webmq-client/stream': stream,
      }
      const body = code.replaceAll(IMPORT, (_, names: string, from: string) => {
        if (!Object.hasOwn(known, from)) throw new Error(`${from} is not here: ${Object.keys(known).join(', ')} are`)
        return `const {${names.replaceAll(/\s+as\s+/g, ': ')}} = modules['${from}'];`
      })
      await new AsyncFunction('modules', 'console', body)(known, shown)
    } catch (error) {
      this.#say('error', textOf(error))
    }
  }

  /** Loses the network, or gets it back. */
  setOffline(isOffline: boolean): void {
    this.isOffline = isOffline
    if (isOffline) for (const socket of this.#sockets) socket.end()
    else dispatchEvent(new Event('online'))
  }

  opened(socket: WatchedSocket): void {
    this.#sockets.add(socket)
  }

  closed(socket: WatchedSocket): void {
    this.#sockets.delete(socket)
    this.#asked.clear()
  }

  sending(_: WatchedSocket, frame: Frame): Frame {
    const bytes = typeof frame === 'string' ? new TextEncoder().encode(frame) : new Uint8Array(frame)
    const message = decodeClientMessage(bytes, typeof frame !== 'string')
    if (message.verb === 'listen') this.#asked.set(message.id, message.pattern)
    return frame
  }

  receiving(_: WatchedSocket, frame: Frame): Frame {
    this.#report(decodeServerMessage(frame instanceof ArrayBuffer ? new Uint8Array(frame) : frame))
    return frame
  }

  #report(message: ServerMessage): void {
    if (message.verb === 'gap') this.#say('gap', `${message.pattern}: gap, ${message.reason}`)
    if (message.verb !== 'ok' || message.id === undefined) return
    const pattern = this.#asked.get(message.id)
    this.#asked.delete(message.id)
    if (pattern === undefined) return
    const { recovered, gap, replayed = 0 } = message
    if (recovered) this.#say('recovered', `${pattern}: recovered, ${replayed} replayed`)
    if (gap !== undefined) this.#say('gap', `${pattern}: gap, ${gap}`)
  }

  /** Options of a client of the playground's server, over the network of this page. */
  #wired(options: object) {
    const pane = this
    const { url, WebSocket } = this.#server
    class PaneSocket extends WatchedSocket {
      constructor(to: string, protocols: string[]) {
        super(pane, WebSocket, to, protocols)
      }
    }
    return { token: pane.#name, ...options, url, WebSocket: PaneSocket, reconnect: { minMs: 300, maxMs: 1_000 } }
  }

  #watched(client: WebMQClient): WebMQClient {
    client.on('status', ({ state }, previous) => state !== previous.state && this.#say('state', state))
    return client
  }

  #say(kind: Told['kind'], text: string): void {
    this.#tell({ pane: this.#name, kind, text })
  }
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (value instanceof Error) return String(value)
  return JSON.stringify(value) ?? String(value)
}
