import { processUsage } from '../../packages/bench/src/measure/process-usage.js'
import type { NodeAccess } from '../../packages/server/test/texts/door.js'
import { Peer } from '../../packages/server/test/texts/peer.js'
import { askRaw, type RawAnswer, statusOf } from '../../packages/server/test/texts/raw-http.js'
import { type ServerProcess, startServerProcess } from '../server-process.js'

const PROBE_TIMEOUT_MS = 10_000
/** Keys of odd texts. They are taken again: each key that was ever used may cost a node something. */
const KEY_COUNT = 200

/** Bytes of a node. */
export interface NodeMemory {
  /** Heap and buffers that are in use. */
  readonly usedBytes: number
  readonly rssBytes: number
}

/** A `webmq-server` as a user runs it, and what it says. */
export class TrafficNode implements NodeAccess {
  readonly name: string
  readonly port: number
  reader: Peer
  readonly #server: ServerProcess
  #readChars = 0
  #keyCount = 0

  private constructor(name: string, port: number, server: ServerProcess, reader: Peer) {
    this.name = name
    this.port = port
    this.#server = server
    this.reader = reader
  }

  /** @param probe The path of `memory-probe.mjs`. */
  static async start(name: string, port: number, flags: readonly string[], probe: string): Promise<TrafficNode> {
    const env = { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import ${probe}` }
    const server = await startServerProcess(port, flags, { env })
    return new TrafficNode(name, port, server, await Peer.open(`ws://127.0.0.1:${port}/ws`))
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}/ws`
  }

  /** Why it has ended; `undefined` while it lives. */
  get death(): string | undefined {
    const { exitCode, signalCode } = this.#server.process
    return exitCode === null && signalCode === null ? undefined : `ended with ${exitCode ?? signalCode}`
  }

  get pid(): number {
    return this.#server.process.pid ?? 0
  }

  /** What it has written on standard output and standard error. */
  get loggedBytes(): number {
    return this.#server.output().length
  }

  get rssBytes(): number {
    return this.death === undefined ? processUsage(this.pid).rssBytes : 0
  }

  /** Lines of level error or fatal since the last call. */
  errors(): readonly string[] {
    const output = this.#server.output()
    const end = output.lastIndexOf('\n') + 1
    const lines = output.slice(this.#readChars, end).split('\n')
    this.#readChars = Math.max(this.#readChars, end)
    return lines.filter((line) => /"level":"(error|fatal)"/.test(line) || /^(Error|RangeError|TypeError)\b/.test(line))
  }

  /** What it uses after it has freed what nothing holds. */
  async memory(): Promise<NodeMemory> {
    const before = this.#server.output().length
    this.#server.process.kill('SIGUSR2')
    const deadline = Date.now() + PROBE_TIMEOUT_MS
    while (Date.now() < deadline) {
      const [, used, rss] = /^memory (\d+) (\d+)$/m.exec(this.#server.output().slice(before)) ?? []
      if (used !== undefined) return { usedBytes: Number(used), rssBytes: Number(rss) }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    throw new Error(`${this.name} does not say what memory it uses`)
  }

  /** A connection of its own for the reader, and no frames of before. */
  async refresh(): Promise<void> {
    this.reader.frames = []
    if (this.reader.closeCode !== undefined) this.reader = await this.peer()
  }

  key(prefix = 'odd'): string {
    return `${prefix}.${this.#keyCount++ % KEY_COUNT}`
  }

  peer(): Promise<Peer> {
    return Peer.open(this.url)
  }

  /** Nobody waits: what is delivered is the matter of tests with one text at a time. */
  arrived(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  http(method: string, path: string, body?: Uint8Array, headers: Record<string, string> = {}): Promise<RawAnswer> {
    return askRaw({ port: this.port, method, path, body, headers })
  }

  status(path: string, headers: Record<string, string> = {}): Promise<number> {
    return statusOf({ port: this.port, method: 'GET', path, headers })
  }

  async stop(): Promise<void> {
    this.reader.close()
    await this.#server.kill('SIGTERM')
  }
}
