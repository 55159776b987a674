import type { IncomingMessage, ServerResponse } from 'node:http'
import { countedAddress, unmapped } from '../identity/client-address.js'
import { type BudgetLimits, Budgets } from './budgets.js'
import type { Callers } from './caller.js'
import type { HttpConnections } from './connections.js'

/** Of a connection's work per second, what an address may cause: 1,000 requests, each about 60 us with the system's part. */
const WORK_SHARE = 1 / 5
/** What it may cause at once: hundreds of requests. */
const BURST_SHARE = 1 / 20
/** A connection is not read for so much longer. To pause it after each request took half as much again as the requests. */
const REST_MS = 20
/** Paths of probes. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/ready'])

/** `options` are read for each request: a reload changes them. */
type KnocksContext = {
  readonly callers: Pick<Callers, 'addressOf'>
  readonly options: Pick<BudgetLimits, 'workPerSecond'>
}

/** Bounds the requests of nobody known: probes, files, and refused ones. Each address, or /64, has a budget. */
export class Knocks {
  readonly #context: KnocksContext
  readonly #connections: HttpConnections
  readonly #budgets: Budgets

  constructor(context: KnocksContext, connections: HttpConnections) {
    this.#context = context
    this.#connections = connections
    this.#budgets = new Budgets({
      get workPerSecond() {
        return context.options.workPerSecond * WORK_SHARE
      },
      get workBurst() {
        return context.options.workPerSecond * BURST_SHARE
      },
    })
  }

  /**
   * Charges the client for a request. Returns 0, or the milliseconds until it should ask again. If its budget is overdrawn, its
   * connection is not read for as long, once the answer is written: an answer costs no less than a refusal.
   *
   * @param path Probes are answered even then where many share an address: they may come from the machine of a proxy.
   */
  charge(request: IncomingMessage, response: ServerResponse, path: string): number {
    const { rawHeaders, socket, url = '' } = request
    const address = this.#context.callers.addressOf(request)
    const headBytes = rawHeaders.reduce((sum, text) => sum + text.length, url.length)
    const waitMs = this.#budgets.knock(address, headBytes)
    if (waitMs === 0) return 0
    // The connections of a trusted proxy carry requests of other clients too.
    if (address === unmapped(socket.remoteAddress ?? '')) this.#connections.rest(socket, response, waitMs + REST_MS)
    if (PROBES.has(path) && countedAddress(address) === undefined) return 0
    this.#connections.countRefused()
    return waitMs
  }
}
