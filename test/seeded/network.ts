import { EventEmitter } from 'node:events'
import type { FakeClient, FakeTransport } from '../../packages/conformance/src/index.js'

/** Where sockets connect: nodes by their names, which are the hosts of URLs. */
export class Network {
  static current: Network
  readonly nodes = new Map<string, FakeTransport>()
  readonly sockets = new Set<VirtualSocket>()
  readonly #random: () => number
  /** Everything that has arrived anywhere, as it came. */
  readonly transcript: string[] = []

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

  /** All connections of a node fail. */
  drop(node: string): void {
    this.nodes.delete(node)
    for (const socket of [...this.sockets]) if (socket.node === node) socket.fail()
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
  readonly node: string
  readonly #up = new Wire()
  readonly #down = new Wire()
  #client: FakeClient | undefined
  #isPaused = false
  readonly #held: (() => void)[] = []

  constructor(url: string) {
    super()
    this.node = new URL(url).hostname
    const network = Network.current
    network.sockets.add(this)
    this.#up.later(() => this.#connect(network))
  }

  send(text: string): void {
    if (this.readyState === CLOSED) return
    this.#up.later(() => {
      Network.current.transcript.push(`${performance.now()} > ${text}`)
      this.#client?.sendRaw(text)
    })
  }

  pause(): void {
    this.#isPaused = true
    this.#client?.stopReading()
  }

  resume(): void {
    this.#isPaused = false
    for (const call of this.#held.splice(0)) this.#down.later(call)
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

  #connect(network: Network): void {
    if (this.readyState === CLOSED) return
    const transport = network.nodes.get(this.node)
    if (transport === undefined) {
      this.emit('error', new Error('nobody listens'))
      this.#end(1006)
      return
    }
    const client = transport.connect()
    this.readyState = OPEN
    this.#client = client
    client.onFrame = (data) => {
      const text = typeof data === 'string' ? data : Buffer.from(data).toString()
      this.#receive(() => {
        // Ids of sessions come from bytes that are drawn for many of them at once.
        const known = text.replace(/"session":"[^"]*"/, '')
        network.transcript.push(`${performance.now()} < ${known}`)
        this.emit('message', Buffer.from(text), false)
      })
    }
    client.onClosed = (code) => this.#receive(() => this.#end(code))
  }

  #receive(call: () => void): void {
    const arrive = () => {
      if (this.#isPaused) this.#held.push(arrive)
      else if (this.readyState === OPEN) call()
    }
    this.#down.later(arrive)
  }

  #end(code: number): void {
    if (this.readyState === CLOSED) return
    this.readyState = CLOSED
    Network.current.sockets.delete(this)
    this.emit('close', code)
  }
}
