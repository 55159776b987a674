import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { SupervisedProcess } from 'webmq-services'
import { RunError } from '../../exit-codes.js'
import { runScript } from '../../loadgen/run-script.js'
import { importBeside } from '../../missing-package.js'
import { HttpClient } from './http-client.js'

const SOURCE = fileURLToPath(new URL('../../../../../examples/auction/gateway.ts', import.meta.url))
const PROGRAM_FOLDER = fileURLToPath(new URL('../../../../../examples/auction/dist/bench/', import.meta.url))
const START_TIMEOUT_MS = 30_000
const STOP_TIMEOUT_MS = 3_000
const POLL_MS = 20
/** Events that one answer of the gateway lists at most. */
const EVENTS_PER_PAGE = 100
/** No item of a run closes by itself. */
const ITEM_LENGTH_MS = 24 * 3_600_000

export interface GatewayOptions {
  readonly redisUrl: string
  readonly broker: string
  readonly namespace: string
}

/** The first answer to an accepted bid. */
export interface AcceptedBid {
  readonly seq: number
  /** Unix microseconds of the decision. */
  readonly tsUs: number
}

/**
 * Bundles the gateway of the example and returns the path of the program.
 * @throws {RunError} outside of a checkout, or when it does not build.
 */
export async function buildGateway(): Promise<string> {
  if (!existsSync(SOURCE)) {
    throw new RunError('the gateway of the auction is examples/auction of the repository: run this in a checkout')
  }
  // A name of its own: another run may build it at the same time.
  const program = `${PROGRAM_FOLDER}gateway-${process.pid}.mjs`
  const { exitCode, tail } = await runScript('build:gateway', [`--outfile=${program}`])
  if (exitCode !== 0) throw new RunError(`the gateway of the auction did not build:\n${tail}`)
  return program
}

/** Removes a program that {@link buildGateway} has made. */
export async function removeGateway(program: string): Promise<void> {
  await rm(program, { force: true })
}

/** The HTTP gateway of the auction, in a process of its own. */
export class GatewayProcess {
  readonly port: number
  readonly failed: Promise<never>
  readonly #process: SupervisedProcess
  readonly #http: HttpClient
  #isStopping = false

  private constructor(port: number, process: SupervisedProcess) {
    this.port = port
    this.#process = process
    this.#http = new HttpClient(port)
    this.failed = process.exited.then(async () => {
      if (this.#isStopping) return await new Promise<never>(() => undefined)
      throw new RunError(`the gateway ended with exit code ${process.exitCode}; its last output:\n${process.output}`)
    })
    this.failed.catch(() => undefined) // Whoever waits for something races against it; between two waits nobody does.
  }

  /** Starts it. Call {@link ready} before anything else. */
  static async start(program: string, { redisUrl, broker, namespace }: GatewayOptions): Promise<GatewayProcess> {
    const services = await importBeside(() => import('webmq-services'), 'the auction')
    const port = await services.freePort()
    const child = new services.SupervisedProcess({
      title: 'the gateway',
      command: process.execPath,
      args: [program],
      env: {
        PATH: process.env.PATH ?? '',
        GATEWAY_PORT: String(port),
        AUCTION_REDIS_URL: redisUrl,
        AUCTION_BROKER: broker,
        AUCTION_NAMESPACE: namespace,
      },
    })
    return new GatewayProcess(port, child)
  }

  /**
   * Resolves when it takes bids and publishes them.
   * @throws {RunError} when it does not, in time.
   */
  async ready(): Promise<void> {
    const deadlineMs = performance.now() + START_TIMEOUT_MS
    let reason = 'it does not listen'
    while (performance.now() < deadlineMs) {
      const answer = await Promise.race([this.failed, this.#http.ask('GET', '/health')]).catch((error: unknown) => {
        if (error instanceof RunError) throw error
        return undefined // It does not listen yet.
      })
      if (answer?.status === 200) return
      reason = answer === undefined ? reason : JSON.stringify(answer.body)
      await sleep(POLL_MS)
    }
    throw new RunError(`the gateway was not ready within ${START_TIMEOUT_MS / 1_000} s: ${reason}`)
  }

  async open(id: string): Promise<void> {
    await this.#expect(201, 'POST', '/items', { id, endsInMs: ITEM_LENGTH_MS, startPrice: 1 })
  }

  async bid(item: string, bid: { readonly bidId: string; readonly bidder: string; readonly amount: number }) {
    return (await this.#expect(201, 'POST', `/items/${item}/bids`, bid)) as AcceptedBid
  }

  /** The numbers of all bids on an item that Redis has accepted, in order. */
  async acceptedSeqs(item: string): Promise<number[]> {
    const seqs: number[] = []
    for (let before: number | undefined; before !== 1; before = seqs[0]) {
      const query = before === undefined ? '' : `&before=${before}`
      const path = `/items/${item}/events?limit=${EVENTS_PER_PAGE}${query}`
      const page = (await this.#expect(200, 'GET', path)) as readonly { readonly type: string; readonly seq: number }[]
      if (page.length === 0) break
      seqs.unshift(...page.map(({ seq }) => seq))
    }
    return seqs
  }

  cpuSeconds(): number | null {
    return this.#process.cpuSeconds() ?? null
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    this.#http.close()
    await this.#process.end(STOP_TIMEOUT_MS)
  }

  async #expect(status: number, method: string, path: string, body?: object): Promise<unknown> {
    const answer = await Promise.race([this.failed, this.#http.ask(method, path, body)]).catch((cause: unknown) => {
      throw cause instanceof RunError ? cause : new RunError(`the gateway did not answer ${method} ${path}`, { cause })
    })
    if (answer.status === status) return answer.body
    throw new RunError(`the gateway answered ${method} ${path} with ${answer.status}: ${JSON.stringify(answer.body)}`)
  }
}
