import { createHash } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { FakeClient, FakeTransport } from '../../packages/conformance/src/index.js'
import type { BrokerPort, TcpSocket } from './tcp.js'

/** What has arrived anywhere, as it came. */
export interface Transcript {
  readonly count: number
  readonly digest: string
}

/** Where sockets connect: WebSockets to nodes, by the ports of their URLs, and TCP to brokers. */
export class Network {
  static current: Network
  /** By name. */
  readonly nodes = new Map<string, FakeTransport>()
  /** The names of nodes. */
  readonly ports = new Map<number, string>()
  /** Asked for each connection to their port; they give the port of a node. */
  readonly doors = new Map<number, (socket: VirtualSocket) => number | undefined>()
  readonly sockets = new Set<VirtualSocket>()
  readonly brokers = new Map<number, BrokerPort>()
  readonly tcp = new Set<TcpSocket>()
  /** Addresses of processes that were killed: they connect nowhere. */
  readonly deadHosts = new Set<string>()
  readonly #random: () => number
  readonly #hash = createHash('sha256')
  #noteCount = 0

  constructor(random: () => number) {
    this.#random = random
    Network.current = this
  }

  /** In [0, 1). */
  chance(): number {
    return this.#random()
  }

  /** 0.1 to 5 ms, and now and then more. */
  latencyMs(): number {
    const chance = this.#random()
    return chance > 0.98 ? 5 + this.#random() * 60 : 0.1 + chance * 5
  }

  note(direction: '<' | '>', what: string | Uint8Array): void {
    this.#noteCount++
    this.#hash.update(`${performance.now()} ${direction} `).update(what)
  }

  /** Only once, at the end. */
  get transcript(): Transcript {
    return { count: this.#noteCount, digest: this.#hash.digest('hex') }
  }

  /** All connections of clients to a node fail. */
  drop(node: string): void {
    this.nodes.delete(node)
    for (const socket of [...this.sockets]) if (socket.node === node) socket.fail()
  }

  /** A process is killed: its connections to the broker end, and it makes no others. */
  kill(host: string): void {
    this.deadHosts.add(host)
    for (const socket of [...this.tcp]) if (socket.remoteAddress === host) socket.suffer('reset')
  }
}

/** Messages that arrive in their order, each after some time. */
class Wire {
  #lastMs = 0

  later(call: () => void): void {
    const atMs = Math.max(this.#lastMs, performance.now() + Network.current.latencyMs())
    this.#lastMs = atMs
    setTimeout(call, atMs - performance.now())
  }
}

const [CONNECTING, OPEN, CLOSED] = [0, 1, 3]

/** The part of the WebSocket of `ws` that the checker uses, to a transport of this process. */
export class VirtualSocket extends EventEmitter {
  static readonly OPEN = OPEN
  readyState = CONNECTING
  /** Name of the node that it leads to; `undefined` while it leads nowhere. */
  node: string | undefined
  readonly #up = new Wire()
  readonly #down = new Wire()
  #client: FakeClient | undefined
  #isPaused = false
  readonly #held: (() => void)[] = []

  constructor(url: string) {
    super()
    const network = Network.current
    network.sockets.add(this)
    this.#up.later(() => this.#connect(network, Number(new URL(url).port)))
  }

  send(text: string): void {
    if (this.readyState === CLOSED) return
    this.#up.later(() => {
      Network.current.note('>', text)
      this.#client?.sendRaw(text)
    })
  }

  pause(): void {
    this.#isPaused = true
    this.#client?.stopReading()
  }

  resume(): void {
    this.#isPaused = false
    // Before what is on its way, and comes behind it.
    setTimeout(() => {
      while (!this.#isPaused && this.#held.length > 0) this.#held.shift()?.()
    }, Network.current.latencyMs())
    this.#client?.readOn()
  }

  close(code: number): void {
    this.#up.later(() => {
      this.#client?.drop(code)
      this.#end(code)
    })
  }

  terminate(): void {
    const client = this.#client
    this.#client = undefined
    this.#up.later(() => client?.drop(1006))
    this.#end(1006)
  }

  /** The other side is gone. */
  fail(): void {
    const client = this.#client
    this.#client = undefined
    client?.drop(1006)
    this.#down.later(() => this.#end(1006))
  }

  #connect(network: Network, port: number): void {
    if (this.readyState === CLOSED) return
    const door = network.doors.get(port)
    this.node = network.ports.get((door === undefined ? port : door(this)) ?? 0)
    const transport = network.nodes.get(this.node ?? '')
    if (transport === undefined) {
      this.emit('error', new Error('nobody listens'))
      this.#end(1006)
      return
    }
    const client = transport.connect()
    this.readyState = OPEN
    this.emit('open')
    this.#client = client
    client.onFrame = (data) => {
      const text = typeof data === 'string' ? data : Buffer.from(data).toString()
      this.#receive(() => {
        // Ids of sessions come from bytes that are drawn for many of them at once.
        network.note('<', text.replace(/"session":"[^"]*"/, ''))
        this.emit('message', Buffer.from(text), false)
      })
    }
    client.onClosed = (code) => this.#receive(() => this.#end(code))
  }

  #receive(call: () => void): void {
    const take = () => {
      if (this.readyState === OPEN) call()
    }
    this.#down.later(() => {
      if (this.#isPaused || this.#held.length > 0) this.#held.push(take)
      else take()
    })
  }

  #end(code: number): void {
    if (this.readyState === CLOSED) return
    this.readyState = CLOSED
    Network.current.sockets.delete(this)
    this.emit('close', code)
  }
}
