import { RunError } from '../../exit-codes.js'
import { Loadgen } from '../../loadgen/loadgen.js'
import type { ResultRow } from '../../results/result.js'
import type { RunProgress } from '../../run-progress.js'
import type { TlsFiles } from '../../targets/messages.js'
import { observeFanOut } from './fan-out.js'
import { observeMigration } from './migration/observe.js'
import { migrationRow } from './migration/row.js'
import type { AuctionConfig } from './options.js'
import { type AuctionCase, AuctionProcesses } from './processes.js'
import { fanOutRow } from './result.js'

/** The environment of a run, beside its case. */
export interface AuctionRunContext {
  readonly config: AuctionConfig
  /** Path of the load generator. */
  readonly loadgenProgram: string
  readonly gatewayProgram: string
  readonly tls: TlsFiles | undefined
  readonly progress: RunProgress
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal
}

/**
 * Makes one run; when it settles, no process of it is left.
 * @throws {RunError} when a process did not start, or died, or a bid was refused.
 */
export async function runAuction(testCase: AuctionCase, context: AuctionRunContext): Promise<ResultRow> {
  const { config, loadgenProgram, gatewayProgram, tls, progress, signal } = context
  signal.throwIfAborted()
  const stopping = new AbortController()
  const abort = () => stopping.abort(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  const processes = new AuctionProcesses(config, testCase)
  const loadgen = new Loadgen({ program: loadgenProgram, threads: config.generatorThreads })
  const run = (async () => {
    progress.phase(`starting redis, ${config.broker.kind}, the nodes and the gateway`)
    await Promise.all([processes.start(gatewayProgram, tls), loadgen.ready()])
    stopping.signal.throwIfAborted()
    const own = { config, testCase, processes, loadgen, progress, signal: stopping.signal }
    return config.isMigrating
      ? migrationRow(config, testCase, await observeMigration(own))
      : fanOutRow(config, testCase, await observeFanOut(own))
  })()
  try {
    return await Promise.race([aborted(stopping.signal), processes.failed, loadgen.failed, run])
  } finally {
    signal.removeEventListener('abort', abort)
    stopping.abort()
    await loadgen.stop()
    // Starting is over before anything is stopped, so that nothing is left behind.
    await run.catch(() => undefined) // If it was not the first to fail, it fails now because everything is taken away.
    await processes.stop()
  }
}

async function aborted(signal: AbortSignal): Promise<never> {
  return await new Promise((_, reject) => {
    if (signal.aborted) reject(new RunError('interrupted'))
    signal.addEventListener('abort', () => reject(new RunError('interrupted')), { once: true })
  })
}
