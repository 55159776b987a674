import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebMQError } from 'webmq-client/protocol'
import { type Actor, clientNameOf } from '../../kernel/identity/actor.js'
import { countedAddress, unmapped } from '../../kernel/identity/client-address.js'
import type { WorkMeter } from '../../kernel/ports/work-meter.js'
import type { Callers } from './caller.js'
import type { HttpConnections } from './connections.js'

/** Work that one client may cause over HTTP, in units of about a microsecond, as over a connection. */
export interface BudgetLimits {
  readonly workPerSecond: number
  readonly workBurst: number
}

/** A request: its head, its token, its answer. */
const REQUEST_UNITS = 200
/** Bytes of a body and an answer that are read, checked, written and sent per unit. */
const BYTES_PER_UNIT = 100
/** A message of a batch beside its bytes: its key is checked and matched, and it goes to the broker. Measured: 4.7 us. */
const MESSAGE_UNITS = 5
/** A request without a known caller: a probe, a file, a refusal. Its head costs as other bytes do. Measured: 33 us. */
const PLAIN_UNITS = 100
/** A client that goes on asking while it is refused waits no longer than this. */
const MAX_DEBT_S = 1
/** Most clients with a budget of their own. Beyond that, all others share one until some have their whole share again. */
const MAX_CLIENTS = 10_000
const SWEEP_INTERVAL_MS = 1_000
/** A client that has overdrawn its budget waits no longer than this at once. */
const MAX_PAUSE_MS = 1_000

interface Budget {
  units: number
  atMs: number
}

/**
 * Bounds what each client costs: a user, or an address of anonymous clients. What a request costs is known afterwards,
 * so a client may overdraw its budget once, and then waits.
 */
export class Budgets {
  readonly #limits: BudgetLimits
  readonly #now: () => number
  readonly #budgets = new Map<string, Budget>()
  readonly #others: Budget
  #sweptAtMs = Number.NEGATIVE_INFINITY

  /** @param now A monotonic clock, in milliseconds. */
  constructor(limits: BudgetLimits, now: () => number = () => performance.now()) {
    this.#limits = limits
    this.#now = now
    this.#others = { units: limits.workBurst, atMs: now() }
  }

  /** @throws {WebMQError} `E_RATE_LIMIT` while the budget of the client is overdrawn. */
  begin(caller: Actor): void {
    const budget = this.#budgetOf(caller)
    if (budget.units < 0) throw new WebMQError('E_RATE_LIMIT', { detail: 'this client causes too much work' })
    budget.units -= REQUEST_UNITS
  }

  /** Charges for bytes that were read or are sent. */
  charge(caller: Actor, byteCount: number): void {
    this.#budgetOf(caller).units -= byteCount / BYTES_PER_UNIT
  }

  chargeUnits(caller: Actor, units: number): void {
    this.#budgetOf(caller).units -= units
  }

  /** Resolves when the client has paid what it has overdrawn, or after a second; `undefined` if it has overdrawn nothing. */
  rest(caller: Actor): Promise<void> | undefined {
    const debtMs = Math.max(0, -this.#budgetOf(caller).units / this.#limits.workPerSecond) * 1_000
    return debtMs > 0 ? sleep(Math.min(MAX_PAUSE_MS, debtMs)) : undefined
  }

  /** Pays for reads of the log: a long one goes on when the budget is no longer overdrawn. */
  meterOf(caller: Actor): WorkMeter {
    return {
      charge: (units) => this.chargeUnits(caller, units),
      spend: (units) => {
        this.chargeUnits(caller, units)
        return this.rest(caller)
      },
    }
  }

  chargeMessages(caller: Actor, messageCount: number): void {
    this.#budgetOf(caller).units -= messageCount * MESSAGE_UNITS
  }

  /**
   * Charges an address for a request of nobody known. Returns 0, or how long the address must wait until it has paid what it
   * had overdrawn before, in milliseconds.
   */
  chargeAddress(address: string, headByteCount: number): number {
    const { workPerSecond } = this.#limits
    const budget = this.#budgetOf({ userId: undefined, address })
    const isOverdrawn = budget.units < 0
    const units = budget.units - PLAIN_UNITS - headByteCount / BYTES_PER_UNIT
    budget.units = Math.max(units, -workPerSecond * MAX_DEBT_S)
    return isOverdrawn ? (-budget.units / workPerSecond) * 1_000 : 0
  }

  #budgetOf(caller: Pick<Actor, 'userId' | 'address'>): Budget {
    const name = clientNameOf(caller)
    const nowMs = this.#now()
    const known = this.#budgets.get(name)
    if (known !== undefined) return this.#settled(known, nowMs)
    if (this.#budgets.size >= MAX_CLIENTS) this.#sweep(nowMs)
    if (this.#budgets.size >= MAX_CLIENTS) return this.#settled(this.#others, nowMs)
    const budget = { units: this.#limits.workBurst, atMs: nowMs }
    this.#budgets.set(name, budget)
    return budget
  }

  #settled(budget: Budget, nowMs: number): Budget {
    const { workPerSecond, workBurst } = this.#limits
    budget.units = Math.min(workBurst, budget.units + ((nowMs - budget.atMs) * workPerSecond) / 1_000)
    budget.atMs = nowMs
    return budget
  }

  /** Forgets clients with their whole share: a new budget would be the same. Debts stay. */
  #sweep(nowMs: number): void {
    if (nowMs - this.#sweptAtMs < SWEEP_INTERVAL_MS) return
    this.#sweptAtMs = nowMs
    for (const [name, budget] of this.#budgets)
      if (this.#settled(budget, nowMs).units >= this.#limits.workBurst) this.#budgets.delete(name)
  }
}

/** Of a connection's work per second, what an address may cause: 1,000 requests, each about 60 us with the system's part. */
const WORK_SHARE = 1 / 5
/** What it may cause at once: hundreds of requests. */
const BURST_SHARE = 1 / 20
/** A connection is not read for so much longer. To pause it after each request took half as much again as the requests. */
const REST_MS = 20
export const PROBE_PATHS: readonly string[] = ['/health', '/ready']

/** `options` are read for each request: a reload changes them. */
type RequestChargesContext = {
  readonly callers: Pick<Callers, 'addressOf'>
  readonly options: Pick<BudgetLimits, 'workPerSecond'>
}

/** Bounds the requests of nobody known: probes, files, and refused ones. Each address, or /64, has a budget. */
export class RequestCharges {
  readonly #context: RequestChargesContext
  readonly #connections: HttpConnections
  readonly #budgets: Budgets

  constructor(context: RequestChargesContext, connections: HttpConnections) {
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
    const waitMs = this.#budgets.chargeAddress(address, headBytes)
    if (waitMs === 0) return 0
    // The connections of a trusted proxy carry requests of other clients too.
    if (address === unmapped(socket.remoteAddress ?? '')) this.#connections.rest(socket, response, waitMs + REST_MS)
    if (PROBE_PATHS.includes(path) && countedAddress(address) === undefined) return 0
    this.#connections.countRefused()
    return waitMs
  }
}
