import { formatCount, formatMs, formatPercent } from '../../report/format.js'
import { joinedColumns, paddedColumn, tableText } from '../../report/table-text.js'
import { cellOf, type ResultRow } from '../../results/result.js'
import { noteLines, type Rows, verdictLines } from '../../trials/row-scenario.js'
import { AUCTION_COLUMNS, AUCTION_IDENTITY } from './columns.js'
import type { AuctionConfig } from './options.js'
import { PUBLISHED_ORIGIN, PUBLISHED_ROUNDS, publishedExponent } from './reference.js'
import { auctionMode, auctionTarget } from './result.js'

export function auctionHeading(config: AuctionConfig): string {
  const { tiers, nodes, bids, intervalMs, warmup, items, repeat } = config
  return [
    `  Connections: ${tiers.map(formatCount).join('; ')} over ${nodes.join(', ')} nodes (${auctionTarget(config)})`,
    `  Auction: ${auctionMode(config)}; ${bids} bids on ${items === 1 ? 'it' : 'each'}, ${intervalMs} ms apart, after ${warmup} not measured`,
    ...(repeat > 1 ? [`  Repeats: ${repeat}, interleaved`] : []),
  ].join('\n')
}

export function auctionText({ rows, notes }: Rows, width: number | undefined): string {
  return [
    'P99 over all connections and bids, beside the published ones (in brackets: delivered, if not all):',
    '',
    besideText(rows),
    '',
    `  ${PUBLISHED_ORIGIN}`,
    '',
    'All of ours:',
    '',
    tableText(AUCTION_COLUMNS, AUCTION_IDENTITY, rows, width),
    ...verdictLines(rows, ({ mode, subscribers, nodes }) => `${mode}, ${subscribers} x ${nodes}`),
    ...noteLines(notes),
  ].join('\n')
}

const NOTHING = '–'

/** One line per tier, one column per published round and per number of our nodes. */
function besideText(rows: readonly ResultRow[]): string {
  const tiers = new Set([
    ...PUBLISHED_ROUNDS.flatMap((round) => round.tiers.map(({ connections }) => connections)),
    ...rows.map(({ subscribers }) => subscribers),
  ])
  const sorted = [...tiers].toSorted((a, b) => a - b)
  const published = PUBLISHED_ROUNDS.map((round) => {
    const cells = sorted.map((tier) => {
      const found = round.tiers.find(({ connections }) => connections === tier)
      return found === undefined ? NOTHING : p99Text(found.latencyMs, found.delivered)
    })
    const title = `published, ${round.title}, ${nodesText(round.nodes)}`
    return paddedColumn(title, [...cells, exponentText(publishedExponent(round))], false)
  })
  const ours = [...new Set(rows.map(lineOf))].map((line) => {
    const own = rows.filter((row) => lineOf(row) === line)
    const cells = sorted.map((tier) => {
      const row = own.find(({ subscribers }) => subscribers === tier)
      return row === undefined ? NOTHING : ourCell(row)
    })
    const exponent = own[0]?.growthExponent
    return paddedColumn(line, [...cells, exponentText(typeof exponent === 'number' ? exponent : null)], false)
  })
  const names = paddedColumn('Connections', [...sorted.map(formatCount), 'growth exponent'], true)
  return joinedColumns([names, ...published, ...ours])
}

function lineOf({ mode, nodes }: ResultRow): string {
  return `${mode}, ${nodesText(Number(nodes))}`
}

function nodesText(count: number): string {
  return count === 1 ? '1 node' : `${count} nodes`
}

function ourCell(row: ResultRow): string {
  const rate = cellOf(row, 'deliveryRate')
  const p99 = row.latencyMs?.p99
  if (typeof rate !== 'number' || p99 === null || p99 === undefined) return row.verdict
  return p99Text(p99, formatPercent(rate).replace('.00%', '%'))
}

function p99Text(ms: number, delivered: string): string {
  return delivered === '100%' ? formatMs(ms) : `${formatMs(ms)} (${delivered})`
}

function exponentText(exponent: number | null): string {
  return exponent === null ? NOTHING : exponent.toFixed(2)
}
