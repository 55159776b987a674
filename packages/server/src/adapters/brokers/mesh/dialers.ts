import { lookup } from 'node:dns/promises'
import { connect, isIP } from 'node:net'
import type { Conditions } from '../../../kernel/base/conditions.js'
import { fullJitterMs } from '../remote/backoff.js'
import { HANDSHAKE_TIMEOUT_MS, Handshake, type Hello, type Identity, MAX_HANDSHAKE_FRAME_BYTES } from './handshake.js'
import type { LinkElection } from './link-election.js'
import type { MeshAddress, MeshBrokerOptions } from './options.js'
import type { Peers } from './peers.js'
import { ClosedError, Wire } from './wire.js'

const BACKOFF = { baseMs: 100, maxMs: 5_000 }
/** Interval for checking that a node is still linked over another connection. */
const RECHECK_MS = 1_000

export interface DialersOptions {
  readonly options: MeshBrokerOptions
  readonly identity: Identity
  readonly peers: Peers
  /** Gets each connection that has authenticated. */
  readonly election: LinkElection
  /** Looked at when a node was tried. */
  readonly conditions: Conditions
}

/** Keeps the node at one address linked. */
export class Dialer {
  readonly #address: MeshAddress
  readonly #name: string
  readonly #mesh: DialersOptions
  #wire: Wire | undefined
  #timer: NodeJS.Timeout | undefined
  /** Whether someone else now owns the connection. */
  #isHandedOver = false
  #isStopped = false
  #failedCount = 0
  #hasEnded = false
  #isSelf = false
  nodeId: string | undefined
  #lastFailure: string | undefined

  constructor(address: MeshAddress, mesh: DialersOptions) {
    this.#address = address
    this.#name = nameOf(address)
    this.#mesh = mesh
  }

  /** Whether an attempt has ended, and the node is either linked in both directions or not linked at all. */
  get isTried(): boolean {
    const peer = this.nodeId === undefined ? undefined : this.#mesh.peers.byId.get(this.nodeId)
    return peer?.isSettled === true || (this.#hasEnded && peer?.link === undefined)
  }

  /** Dials now, unless an attempt is running, the node is linked, or the address is this node's own. */
  dial(): void {
    if (this.#isStopped || this.#isSelf || this.#wire !== undefined) return
    clearTimeout(this.#timer)
    if (this.#isLinked) {
      this.#wait(RECHECK_MS)
      return
    }
    const wire = new Wire(connect(this.#address), MAX_HANDSHAKE_FRAME_BYTES, this.#name)
    this.#wire = wire
    this.#isHandedOver = false
    wire.onEnd = () => this.#ended()
    new Handshake(wire, 'dialer', this.#mesh.identity, HANDSHAKE_TIMEOUT_MS, {
      isWanted: ({ nodeId }) => {
        const before = this.nodeId
        this.nodeId = nodeId
        if (before !== undefined && before !== nodeId) this.#mesh.peers.ended(before)
        return !this.#isLinked
      },
      authenticated: (wire, hello) => this.#authenticated(wire, hello),
      failed: (cause, refusal) => {
        this.#isSelf = refusal === 'self'
        if (!this.#isSelf && !this.#isStopped) this.#failed(cause)
      },
    })
  }

  /** A node has lost its link: dials soon if it is the node at this address. */
  unlinked(nodeId: string): void {
    if (nodeId !== this.nodeId || this.#wire !== undefined) return
    this.#failedCount = 0
    this.#wait(fullJitterMs(1, BACKOFF))
  }

  /** Stops dialling. Existing links stay. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    if (!this.#isHandedOver) this.#wire?.fail(new ClosedError())
  }

  get #isLinked(): boolean {
    return this.nodeId !== undefined && this.#mesh.peers.isLinked(this.nodeId)
  }

  #authenticated(wire: Wire, hello: Hello): void {
    this.nodeId = hello.nodeId
    this.#lastFailure = undefined
    this.#isHandedOver = true
    this.#mesh.election.admit(wire, hello, true)
    if (this.#isLinked) this.#failedCount = 0
  }

  /** Warns once per reason, not once per attempt. */
  #failed(cause: Error): void {
    const { options, peers } = this.#mesh
    const level = cause.message === this.#lastFailure ? 'debug' : 'warn'
    this.#lastFailure = cause.message
    options.logger[level]({ address: this.#name, err: cause }, 'mesh peer cannot be linked')
    const isRefused = 'code' in cause && cause.code === 'ECONNREFUSED'
    if (isRefused && this.nodeId !== undefined) peers.ended(this.nodeId, this.#address.port)
  }

  #ended(): void {
    this.#wire = undefined
    this.#hasEnded = true
    if (!this.#isStopped && !this.#isSelf) {
      this.#wait(this.#isLinked ? RECHECK_MS : fullJitterMs(++this.#failedCount, BACKOFF))
    }
    this.#mesh.conditions.look()
  }

  #wait(delayMs: number): void {
    if (this.#isStopped) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.dial(), delayMs)
  }
}

/** `host:port`, as in a URL. */
export function nameOf({ host, port }: MeshAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

const DEFAULT_RESOLVE_INTERVAL_MS = 5_000
/** Most addresses per name; a mesh has fewer nodes. */
const MAX_ADDRESSES = 256

/** One {@link Dialer} per address that the peers' names currently resolve to. */
export class Dialers {
  readonly #mesh: DialersOptions
  readonly #dialers = new Map<string, Dialer>()
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  #isResolved = false
  #lastFailure: string | undefined

  constructor(mesh: DialersOptions) {
    this.#mesh = mesh
  }

  get areTried(): boolean {
    return this.#isResolved && [...this.#dialers.values()].every(({ isTried }) => isTried)
  }

  start(): void {
    void this.#resolve()
  }

  /**
   * A node is linked. If it dialled first, its address is found now: so that {@link Peers.ended} knows it when the node
   * dies.
   */
  settled(nodeId: string): void {
    if (!this.has(nodeId)) for (const dialer of this.#dialers.values()) dialer.dial()
  }

  /** Whether the node was last found at an address that is dialled. */
  has(nodeId: string): boolean {
    return [...this.#dialers.values()].some((dialer) => dialer.nodeId === nodeId)
  }

  unlinked(nodeId: string): void {
    for (const dialer of this.#dialers.values()) dialer.unlinked(nodeId)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    for (const dialer of this.#dialers.values()) dialer.stop()
  }

  /** Never rejects. */
  async #resolve(): Promise<void> {
    const { peers, resolveIntervalMs = DEFAULT_RESOLVE_INTERVAL_MS } = this.#mesh.options
    const lists = await Promise.all(peers.map((address) => this.#addressesOf(address)))
    if (this.#isStopped) return
    // If a name could not be resolved, the addresses known so far stay.
    const isComplete = !lists.includes(undefined)
    this.#dial(
      lists.flatMap((list) => list ?? []),
      isComplete,
    )
    this.#isResolved = true
    this.#mesh.conditions.look()
    const hasNames = peers.some(({ host }) => isIP(host) === 0)
    if (hasNames) this.#timer = setTimeout(() => void this.#resolve(), resolveIntervalMs)
  }

  #dial(addresses: readonly MeshAddress[], isComplete: boolean): void {
    const names = new Set(addresses.map(nameOf))
    for (const [name, dialer] of isComplete ? this.#dialers : []) {
      if (names.has(name)) continue
      dialer.stop()
      this.#dialers.delete(name)
      if (dialer.nodeId !== undefined) this.#mesh.peers.unlisted(dialer.nodeId)
    }
    for (const address of addresses) {
      const name = nameOf(address)
      if (this.#dialers.has(name)) continue
      const dialer = new Dialer(address, this.#mesh)
      this.#dialers.set(name, dialer)
      dialer.dial()
    }
  }

  async #addressesOf({ host, port }: MeshAddress): Promise<MeshAddress[] | undefined> {
    if (isIP(host) !== 0) return [{ host, port }]
    const { resolve = lookUp, logger } = this.#mesh.options
    try {
      const hosts = await resolve(host)
      this.#lastFailure = undefined
      return hosts.slice(0, MAX_ADDRESSES).map((host) => ({ host, port }))
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      const level = message === this.#lastFailure ? 'debug' : 'warn'
      this.#lastFailure = message
      logger[level]({ host, err: error }, 'mesh name cannot be looked up')
      return undefined
    }
  }
}

async function lookUp(host: string): Promise<readonly string[]> {
  const addresses = await lookup(host, { all: true })
  return addresses.map(({ address }) => address)
}
