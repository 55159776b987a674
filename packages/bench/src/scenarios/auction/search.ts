import { RunError } from '../../exit-codes.js'
import { formatCount, formatPercent } from '../../report/format.js'
import { cellOf, type ResultRow } from '../../results/result.js'
import { searchLimit } from '../../trials/search-limit.js'
import type { AuctionCase } from './processes.js'
import { auctionIdentity } from './result.js'
import { type AuctionRunContext, runAuction } from './run.js'

/** Share of the deliveries that must come in time; that of the published experiment. */
const HELD_RATE = 0.9
/** Precision of the search, as a share of the limit. */
const PRECISION_RATIO = 0.05
const MAX_CONNECTIONS = 100_000

/**
 * The run with the most connections that get nearly all bids, each number of them with processes of its own. A case's
 * own number is where the search begins.
 * @throws {RunError} when even a single connection does not.
 */
export async function searchCapacity(testCase: AuctionCase, context: AuctionRunContext): Promise<ResultRow> {
  const { config, progress, signal } = context
  let best: ResultRow | undefined
  let limitReason = `${formatCount(MAX_CONNECTIONS)} is the most that is tried`
  const holds = async (connections: number) => {
    let row: ResultRow | undefined
    let outcome: string
    try {
      row = await runAuction({ ...testCase, connections }, context)
      outcome = `${formatPercent(Number(cellOf(row, 'deliveryRate')))} delivered in time`
    } catch (error) {
      // Nodes or connections that give up under the load are an answer, too.
      if (!(error instanceof RunError) || signal.aborted) throw error
      outcome = error.message
    }
    progress.note(`  ${testCase.nodes} nodes, ${formatCount(connections)}: ${outcome}`)
    const isHeld = row !== undefined && Number(cellOf(row, 'deliveryRate')) >= HELD_RATE
    if (isHeld) best = row
    else limitReason = `${formatCount(connections)}: ${outcome}`
    return isHeld
  }
  const search = { start: testCase.connections, max: MAX_CONNECTIONS, precisionRatio: PRECISION_RATIO }
  const maxConnections = await searchLimit(search, holds)
  if (best === undefined) throw new RunError(`no connection gets its bids; ${limitReason}`)
  return { ...best, ...auctionIdentity(config, testCase), maxConnections, limitReason }
}
