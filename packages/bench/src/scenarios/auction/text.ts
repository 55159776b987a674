import { formatCount, formatMs, formatPercent } from '../../report/format.js'
import { formatCell } from '../../report/format-cell.js'
import { joinedColumns, paddedColumn, tableText } from '../../report/table-text.js'
import { type Cell, cellOf, type ResultRow } from '../../results/result.js'
import { noteLines, type Rows, verdictLines } from '../../trials/row-scenario.js'
import { AUCTION_COLUMNS, AUCTION_IDENTITY } from './columns.js'
import type { AuctionConfig } from './options.js'
import type { AuctionCase } from './processes.js'
import { PUBLISHED_IMPROVEMENT, PUBLISHED_ORIGIN, PUBLISHED_ROUNDS, publishedExponent } from './reference.js'
import { auctionMode, auctionTarget } from './result.js'

export function auctionHeading(config: AuctionConfig): string {
  const { tiers, nodes, nodeCpus, bids, intervalMs, warmup, items, repeat } = config
  return [
    `  Connections: ${tiers.map(formatCount).join('; ')} over ${nodes.join(', ')} nodes (${auctionTarget(config)})`,
    ...(nodeCpus.length === 0 ? [] : [`  CPUs of each node: ${nodeCpus.join(', ')}`]),
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
    ...improvementLines(rows),
    'All of ours:',
    '',
    tableText(AUCTION_COLUMNS, AUCTION_IDENTITY, rows, width),
    ...verdictLines(rows, (row) => `${row.subscribers} connections, ${lineOf(row)}`),
    ...noteLines(notes),
  ].join('\n')
}

const NOTHING = '–'

/** What more nodes bring, at the most connections that both were tried with; beside it what was published. */
function improvementLines(rows: readonly ResultRow[]): string[] {
  const lines = [...new Set(rows.map(lineOf))].map((line) => rows.filter((row) => lineOf(row) === line))
  return lines.slice(1).flatMap((own, index) => {
    const before = lines[index] ?? []
    const tier = Math.max(...own.map(({ subscribers }) => subscribers))
    const [from, to] = [before, own].map((some) => some.find(({ subscribers }) => subscribers === tier))
    if (from === undefined || to === undefined || from.mode !== to.mode) return []
    const isPublished = from.nodes === PUBLISHED_IMPROVEMENT.from && to.nodes === PUBLISHED_IMPROVEMENT.to
    const columns = AUCTION_COLUMNS.filter(({ key }) => Object.hasOwn(PUBLISHED_IMPROVEMENT.gains, key))
    const cells = (row: ResultRow) => columns.map(({ key, format }) => formatCell(cellOf(row, key), format))
    const gains = columns.map(({ key }) => gainText(cellOf(from, key), cellOf(to, key), key === 'deliveryRate'))
    return [
      `From ${nodesOf(from)} to ${nodesOf(to)}, at ${formatCount(tier)} connections:`,
      '',
      joinedColumns([
        paddedColumn(
          '',
          columns.map(({ title }) => title),
          true,
        ),
        paddedColumn(nodesOf(from), cells(from), false),
        paddedColumn(nodesOf(to), cells(to), false),
        paddedColumn('Improvement', gains, false),
        ...(isPublished ? [paddedColumn('published', Object.values(PUBLISHED_IMPROVEMENT.gains), false)] : []),
      ]),
      '',
    ]
  })
}

/** A latency improves by what it loses, a share by what it gains. */
function gainText(before: Cell, after: Cell, isShare: boolean): string {
  if (typeof before !== 'number' || typeof after !== 'number' || before === 0) return NOTHING
  return `${(100 * (isShare ? after - before : (before - after) / before)).toFixed(1)}%`
}

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
    const title = `published, ${round.title}, ${nodesText(round)}`
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

function lineOf({ mode, ...row }: ResultRow): string {
  return `${mode}, ${nodesOf(row)}`
}

function nodesOf({ nodes, nodeCpus }: Readonly<Record<string, unknown>>): string {
  return nodesText(typeof nodeCpus === 'number' ? { nodes: Number(nodes), cpus: nodeCpus } : { nodes: Number(nodes) })
}

/** `1 node`, `4 nodes of 0.5 CPUs`. */
export function nodesText({ nodes, cpus }: Pick<AuctionCase, 'nodes' | 'cpus'>): string {
  return `${nodes} ${nodes === 1 ? 'node' : 'nodes'}${cpus === undefined ? '' : ` of ${cpus} CPUs`}`
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
