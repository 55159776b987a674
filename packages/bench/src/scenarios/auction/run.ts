import { Loadgen } from '../../loadgen/loadgen.js'
import { withParts } from '../../parts.js'
import type { ResultRow } from '../../results/result.js'
import type { RunProgress } from '../../run-progress.js'
import type { TlsFiles } from '../../targets/messages.js'
import { observeFanOut } from './fan-out.js'
import type { AuctionConfig } from './options.js'
import { type AuctionCase, AuctionProcesses } from './processes.js'
import { fanOutRow } from './result.js'

export interface AuctionRunContext {
  readonly config: AuctionConfig
  readonly loadgenProgram: string
  readonly gatewayProgram: string
  readonly tls: TlsFiles | undefined
  readonly progress: RunProgress
  readonly signal: AbortSignal
}

/**
 * Makes one run; when it settles, no process of it is left.
 * @throws {RunError} when a process did not start, or died, or a bid was refused.
 */
export async function runAuction(testCase: AuctionCase, context: AuctionRunContext): Promise<ResultRow> {
  const { config, loadgenProgram, gatewayProgram, tls, progress, signal } = context
  return await withParts(signal, async (parts) => {
    progress.phase(`starting redis, ${config.broker.kind}, the nodes and the gateway`)
    const [processes, loadgen] = await Promise.all([
      AuctionProcesses.start(config, testCase, gatewayProgram, tls, parts),
      parts.add(() => new Loadgen({ program: loadgenProgram, threads: config.generatorThreads })),
    ])
    await loadgen.ready()
    const observation = await observeFanOut({ config, testCase, processes, loadgen, progress, signal: parts.signal })
    return fanOutRow(config, testCase, observation)
  })
}
