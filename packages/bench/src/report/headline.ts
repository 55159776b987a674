import { worstOf } from '../results/judgement.js'
import { cellOf, type ResultColumn, type ResultRecord, type ResultRow, type RowVerdict } from '../results/result.js'
import { formatCell } from './format-cell.js'
import type { PageContent, PageFigure } from './page.js'
import { fullTitle, lowerFirst, planPlots, speakOf } from './plot-plan.js'
import { toneOf } from './tone.js'

/** What is read first, where it was measured: the time that users wait, then what it costs. */
const FIGURES = [
  'latencyMs.p99',
  'deliveriesPerServerCpuSecond',
  'deliveriesPerSecond',
  'latencyMs.p50',
  'serverRssBytes',
]
const MAX_FIGURES = 4

const MEANING: Readonly<Record<RowVerdict, string>> = {
  ok: 'The figures are those of the server.',
  'machine saturated': 'All cores were busy: the latencies are those of the machine.',
  'generator saturated': 'The load generator was the limit: rates and latencies are its own.',
  'lost messages': 'Messages did not arrive, or not in order: the figures say nothing.',
  'server saturated': 'The server did not keep up with what was offered.',
  'broker saturated': 'The broker did not keep up with what was offered.',
  'publishes failed': 'The server refused publishes, or did not answer them.',
  failed: 'A measurement failed.',
}

/** Whether the figures can be trusted, and whether the assertions hold. */
export function verdictOf({ rows, assertions }: ResultRecord): PageContent['verdict'] {
  const failed = assertions.filter(({ isMet }) => !isMet)
  if (failed.length > 0) {
    const text = `${failed.length} of ${assertions.length} assertions ${failed.length === 1 ? 'fails' : 'fail'}`
    return {
      text,
      small: failed.map((one) => `${one.text} (${one.actual ?? 'nothing measured'})`).join('; '),
      tone: 'bad',
    }
  }
  if (rows.length === 0) return { text: 'failed', small: 'Nothing was measured.', tone: 'bad' }
  const { verdict, verdictReason } = worstOf(rows)
  const own = rows.filter((row) => row.verdict === verdict)
  const share = rows.length === 1 || own.length === rows.length ? '' : `, ${own.length} of ${rows.length} rows`
  const reason = verdictReason === null ? '' : ` ${verdictReason.charAt(0).toUpperCase()}${verdictReason.slice(1)}.`
  return { text: `${verdict}${share}`, small: `${MEANING[verdict]}${reason}`, tone: toneOf(verdict) }
}

/** The figures of one row: the largest tier of WebMQ that is sound, beside the others at this tier. */
export function figuresOf(record: ResultRecord): PageFigure[] {
  const row = headRow(record.rows)
  if (row === undefined) return []
  const { metrics, x } = planPlots(record)
  const known = (key: string) => [...record.columns, ...metrics].find((one) => one.key === key)
  const columns = [...FIGURES, ...metrics.map(({ key }) => key)].flatMap((key) => known(key) ?? [])
  const own = [...new Map(columns.map((one) => [one.key, one])).values()].filter(
    ({ key }) => typeof cellOf(row, key) === 'number',
  )
  const place = x === null ? row.target : `${row.target}, ${speakOf(cellOf(row, x.key), x)}`
  const shown = own.slice(0, MAX_FIGURES).map((one, index): PageFigure => {
    const small = index === 0 ? [place, rivalText(record, row, one)].filter((text) => text !== '').join('; ') : ''
    return { value: formatCell(cellOf(row, one.key), one.format), label: lowerFirst(fullTitle(one)), small }
  })
  if (row.gapCount === null) return shown
  const lostCount = row.gapCount + (row.duplicateCount ?? 0)
  return [...shown, { value: formatCell(lostCount, 'count'), label: 'lost or doubled' }]
}

/** `webmq-native` before `webmq-uws`, and others only where WebMQ was not measured. */
function headRow(rows: readonly ResultRow[]): ResultRow | undefined {
  const target = rows.find((row) => row.target.startsWith('webmq'))?.target ?? rows[0]?.target
  const own = rows.filter((row) => row.target === target)
  return own.findLast(({ verdict }) => verdict === 'ok') ?? own.at(-1)
}

/** `8.4x that of uws`: the best of the others in the same conditions. */
function rivalText({ rows, identity }: ResultRecord, row: ResultRow, { key, better }: ResultColumn): string {
  const value = Number(cellOf(row, key))
  const isRival = (other: ResultRow) =>
    !other.target.startsWith('webmq') &&
    other.verdict === 'ok' &&
    identity.every((name) => name === 'target' || cellOf(other, name) === cellOf(row, name)) &&
    typeof cellOf(other, key) === 'number'
  const rivals = rows.filter(isRival).map((other) => ({ target: other.target, value: Number(cellOf(other, key)) }))
  const [best] = rivals.toSorted((a, b) => (better === 'lower' ? a.value - b.value : b.value - a.value))
  if (best === undefined || best.value === 0 || better === undefined) return ''
  return `${formatCell(value / best.value, 'ratio')} that of ${best.target}`
}
