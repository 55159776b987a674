import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { Dialer, type DialerContext, type MeshAddress, nameOf } from './dialer.js'

/** All addresses of a name, IPv4 and IPv6. */
export type ResolveHost = (host: string) => Promise<readonly string[]>

/** What {@link Dialers} work with. */
export interface DialersOptions extends DialerContext {
  readonly peerAddresses: readonly MeshAddress[]
  readonly resolve: ResolveHost
  /** Interval at which names are resolved again. */
  readonly resolveIntervalMs: number
}

/** Most addresses per name; a mesh has fewer nodes. */
const MAX_ADDRESSES = 256

/** One {@link Dialer} per address that the peers' names currently resolve to. */
export class Dialers {
  readonly #options: DialersOptions
  readonly #dialers = new Map<string, Dialer>()
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  #isResolved = false
  #lastFailure: string | undefined

  constructor(options: DialersOptions) {
    this.#options = options
  }

  /** Whether every address was tried. */
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
    const dialers = [...this.#dialers.values()]
    if (dialers.every((dialer) => dialer.nodeId !== nodeId)) for (const dialer of dialers) dialer.dial()
  }

  /** See {@link Dialer.unlinked}. */
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
    const { peerAddresses, resolveIntervalMs } = this.#options
    const lists = await Promise.all(peerAddresses.map((address) => this.#addressesOf(address)))
    if (this.#isStopped) return
    // If a name could not be resolved, the addresses known so far stay.
    const isComplete = !lists.includes(undefined)
    this.#dial(
      lists.flatMap((list) => list ?? []),
      isComplete,
    )
    this.#isResolved = true
    this.#options.tried()
    const hasNames = peerAddresses.some(({ host }) => isIP(host) === 0)
    if (hasNames) this.#timer = setTimeout(() => void this.#resolve(), resolveIntervalMs)
  }

  #dial(addresses: readonly MeshAddress[], isComplete: boolean): void {
    const names = new Set(addresses.map(nameOf))
    for (const [name, dialer] of isComplete ? this.#dialers : []) {
      if (names.has(name)) continue
      dialer.stop()
      this.#dialers.delete(name)
    }
    for (const address of addresses) {
      const name = nameOf(address)
      if (this.#dialers.has(name)) continue
      const dialer = new Dialer(address, this.#options)
      this.#dialers.set(name, dialer)
      dialer.dial()
    }
  }

  async #addressesOf({ host, port }: MeshAddress): Promise<MeshAddress[] | undefined> {
    if (isIP(host) !== 0) return [{ host, port }]
    try {
      const hosts = await this.#options.resolve(host)
      this.#lastFailure = undefined
      return hosts.slice(0, MAX_ADDRESSES).map((host) => ({ host, port }))
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      const level = message === this.#lastFailure ? 'debug' : 'warn'
      this.#lastFailure = message
      this.#options.logger[level]({ host, err: error }, 'mesh name cannot be looked up')
      return undefined
    }
  }
}

/** As the system resolves names: hosts file, then DNS. */
export async function lookUpHost(host: string): Promise<readonly string[]> {
  const addresses = await lookup(host, { all: true })
  return addresses.map(({ address }) => address)
}
