import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../../../scripts/lib/steps.mjs'
import { formatCell } from '../dist/report/format-cell.js'
import { cellOf } from '../dist/results/result.js'
import { costRows, missedAims } from './aims.mjs'
import { DROP_TITLES, dropRows } from './drops.mjs'
import { endsTable, growthTable, millionTable } from './size.mjs'
import { TABLES } from './tables.mjs'

/** The pages whose tables are made from files. */
export const PAGES = ['benchmarks.md', 'scaling.md', 'comparison.md'].map((name) => path.join(ROOT, 'docs', name))
/** One file per table: `<name>.json`. */
export const FIGURES = path.join(ROOT, 'docs', 'benchmarks')

const DAY_MS = 86_400_000
/** For code that is not listed. */
const DEFAULT_DAYS = 60
/** For how many days a table stays true after the last change of the code that it measures. */
const MAY_BE_OLDER_DAYS = {
  'packages/native/crates': 21,
  'packages/server/src/adapters/transports': 21,
  'packages/server/src/kernel/session': 21,
  'packages/server/src/kernel/publishing': 21,
  'packages/server/src/kernel/routing': 21,
  'packages/server/src/adapters/brokers': 30,
  'packages/broker-nats/src': 30,
  'packages/broker-rabbitmq/src': 30,
  'packages/broker-redis/src': 30,
}
const NOTHING = '–'
const NOT_MEASURED = 'Not measured yet.'
const LABEL = { key: 'label', title: 'Load', format: 'text' }

/** All tables that were measured, by name. @returns {Map<string, import('./figures.mjs').Figures>} */
export function readFigures(folder = FIGURES) {
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.json')) : []
  return new Map(
    files.map((file) => [path.basename(file, '.json'), JSON.parse(readFileSync(path.join(folder, file), 'utf8'))]),
  )
}

/**
 * The figures of a table from the results of its runs.
 * @param {string} name
 * @param {readonly import('../dist/results/result.js').ResultRecord[]} records
 * @param {{ commit: string, seconds: number }} taken the commit of the code, and how long it took
 */
export function figuresOf(name, records, { commit, seconds }) {
  const { keys, runs, ranges = [] } = TABLES[name]
  const [{ machine, columns }] = records
  const hasLabels = runs.some(({ label }) => label !== undefined)
  const chosen = keys.map((key) => {
    const column = columns.find((one) => one.key === key)
    if (column === undefined) throw new Error(`the result of ${name} has no column ${key}`)
    return { key, title: column.title, format: column.format }
  })
  const rows = records.flatMap((record, run) =>
    record.rows.map((row) => ({
      ...(hasLabels ? { label: runs[run].label } : {}),
      ...Object.fromEntries(keys.map((key) => [key, cellOf(row, key)])),
      spread: Object.fromEntries(Object.entries(row.spread ?? {}).filter(([key]) => ranges.includes(key))),
    })),
  )
  const { cpuModel, cores, memoryBytes, kernel, nodeVersion, startedAt } = machine
  return {
    commands: runs.map(commandOf),
    commit,
    date: startedAt.slice(0, 10),
    machine: `${cpuModel}, ${cores} cores, ${Math.round(memoryBytes / 2 ** 30)} GiB, ${kernel}, Node ${nodeVersion.slice(1)}`,
    versions: Object.assign({}, ...records.map(({ versions }) => versions)),
    repeats: Math.max(...records.flatMap((record) => record.rows.map(({ repeatCount }) => repeatCount ?? 1))),
    seconds,
    columns: hasLabels ? [LABEL, ...chosen] : chosen,
    rows,
  }
}

/** As a reader types it, in packages/bench. */
export function commandOf({ args }) {
  return ['node', ...args].join(' ')
}

/** The text of a file of figures: a row per line. @param {import('./figures.mjs').Figures} figures */
export function figuresText({ rows, ...head }) {
  const members = Object.entries(head).map(([key, value]) => `  "${key}": ${JSON.stringify(value)},\n`)
  return `{\n${members.join('')}  "rows": [\n${rows.map((row) => `    ${JSON.stringify(row)}`).join(',\n')}\n  ]\n}\n`
}

/** Tables that are made of others. */
const MADE = {
  aims: (tables) => {
    const { missed, metCount } = missedAims(tables)
    return `${tableText(['Figure', 'Wanted', 'Measured', 'Met', 'What bounds it'], missed)}\n\n${metCount} others are met.`
  },
  costs: (tables) => tableText(['Of a node', 'Cost', 'Range', 'From'], costRows(tables)),
  million: (tables) => tableOf(millionTable(tables)),
  growth: (tables) => tableOf(growthTable(tables)),
  ends: (tables) => tableOf(endsTable(tables)),
  drops: (tables) => tableText(DROP_TITLES, dropRows(tables)),
}
const PLACE = /<!-- figures: (\S+) -->\n.*?<!-- \/figures -->/gs

/** The names of the tables that a page has a place for. */
export function placesOf(page) {
  return [...page.matchAll(PLACE)].map(([, name]) => name)
}

/**
 * A page with the tables between their marks. A machine, version or day that the text of the page names is not said again.
 * @param {string} page
 * @param {ReadonlyMap<string, import('./figures.mjs').Figures>} tables
 * @throws {Error} for a mark without a table
 */
export function withTables(page, tables) {
  const prose = page.replaceAll(PLACE, '')
  return page.replaceAll(
    PLACE,
    (_, name) => `<!-- figures: ${name} -->\n\n${textOf(name, tables, prose)}\n\n<!-- /figures -->`,
  )
}

function textOf(name, tables, prose) {
  if (Object.hasOwn(MADE, name)) return MADE[name](tables)
  if (!Object.hasOwn(TABLES, name)) throw new Error(`there is no table ${name}`)
  const figures = tables.get(name)
  if (figures === undefined)
    return `${TABLES[name].runs.map((run) => `\`${commandOf(run)}\``).join('\\\n')}\n\n${NOT_MEASURED}`
  const { commands, commit, date, machine, repeats, versions } = figures
  const { ranges = [], beside, fileOnly = [], shows = () => true } = TABLES[name]
  const peers = beside?.targets.filter((target) => figures.rows.some((row) => row.target === target)) ?? []
  const isZero = ({ key }) => figures.rows.length > 1 && figures.rows.every((row) => row[key] === 0)
  const zeros = figures.columns.filter(isZero).map(({ title }) => title)
  const columns = figures.columns.filter((column) => !isZero(column) && !fileOnly.includes(column.key))
  const titles = [...columns.map(({ title }) => title), ...peers.map((peer) => `x ${peer}`)]
  const shown = figures.rows.filter(shows)
  const rows = shown.map((row) => [
    ...columns.map(({ key, format }) => cellText(row, key, format, ranges)),
    ...peers.map((peer) => besideText(row, peer, beside, figures.rows)),
  ])
  // A server by hand is one target for each broker.
  const others = Object.entries(versions ?? {})
    .filter(([target]) => !target.startsWith('webmq'))
    .map(([target, version]) => [target.split('+')[0], version])
  // The file has the kernel, too.
  const conditions = [machine.replace(/, Linux [^,]+/, ''), ...others.map((other) => other.join(' '))]
  const taken = `${date}, commit ${commit}`
  const source = [
    (repeats === 1 ? 'One run' : `Medians of ${repeats} runs in turns`) + (prose.includes(taken) ? '' : `, ${taken}`),
    ...new Set(conditions.filter((condition) => !prose.includes(condition))),
  ]
  return [...commands.map((command) => `\`${command}\``)]
    .join('\\\n')
    .concat('\n\n', tableText(titles, rows), `\n\n${zeros.length > 0 ? `0 in every row: ${zeros.join(', ')}. ` : ''}`)
    .concat(`${source.join('; ')}.`)
}

function cellText(row, key, format, ranges) {
  const text = formatCell(row[key] ?? null, format)
  const spread = row.spread?.[key]
  if (!ranges.includes(key) || spread === undefined || spread.min === spread.max) return text
  const [min, max] = [spread.min, spread.max].map((value) => formatCell(value, format))
  const unit = /[^\d.,]*$/.exec(text)[0]
  const inUnit = [min, max].every((end) => /[^\d.,]*$/.exec(end)[0] === unit)
  return `${text} (${inUnit && unit !== '' ? min.slice(0, -unit.length) : min} to ${max})`
}

function besideText(row, peer, { key, same }, rows) {
  if (!String(row.target).startsWith('webmq') || row.target === peer) return ''
  const other = rows.find((one) => one.target === peer && same.every((part) => one[part] === row[part]))
  const isKnown = typeof row[key] === 'number' && typeof other?.[key] === 'number' && other[key] > 0
  return isKnown ? `${Number((row[key] / other[key]).toPrecision(2))}x` : NOTHING
}

/** A table whose columns or rows are targets that were measured. */
function tableOf({ titles, rows }) {
  return titles.length < 2 || rows.length === 0 ? NOT_MEASURED : tableText(titles, rows)
}

function tableText(titles, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [titles, titles.map(() => '---'), ...rows].map(line).join('\n')
}

/**
 * Tables that are older than the code they measure allows.
 * @param {ReadonlyMap<string, { date: string }>} tables
 * @param {(path: string) => number} changedAtMs when code was last changed, Unix time in milliseconds
 * @returns {string[]} a sentence for each
 */
export function staleTables(tables, changedAtMs) {
  const sentences = []
  for (const [name, { date }] of tables) {
    for (const code of TABLES[name].measures) {
      const days = Math.floor((changedAtMs(code) - Date.parse(date)) / DAY_MS)
      const allowedDays = MAY_BE_OLDER_DAYS[code] ?? DEFAULT_DAYS
      if (days > allowedDays)
        sentences.push(
          `${name} was measured ${days} days before the last change of ${code}; ${allowedDays} are allowed`,
        )
    }
  }
  return sentences
}
