// What was played on which version of a broker: docs/versions.json, and the tables that are made of it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from './steps.mjs'

const ROWS_FILE = path.join(ROOT, 'docs', 'versions.json')
/** The pages that have one of the tables. */
export const VERSION_PAGES = ['guarantees.md', 'brokers.md'].map((name) => path.join(ROOT, 'docs', name))

const PLACE = /<!-- versions: (\S+) -->\n.*?<!-- \/versions -->/gs
const TABLES = {
  /** Every row. */
  played: {
    titles: ['broker', 'Node.js', 'tests', 'schedules', 'publishes', 'deliveries', 'violations', 'date'],
    rowsOf: (rows) =>
      rows.map(({ broker, version, node, tests, checker, date }) => [
        `${broker} ${version}`,
        node,
        testsText(tests),
        `${countText(checker.schedules)}, ${checker.seconds} s each`,
        countText(checker.publishes),
        countText(checker.deliveries),
        countText(checker.violations),
        date,
      ]),
  },
  /** One row per broker. */
  tested: {
    titles: ['broker', 'tested', 'last on'],
    rowsOf: (rows) =>
      [...new Set(rows.map(({ broker }) => broker))].map((broker) => {
        const own = rows.filter((row) => row.broker === broker)
        const dates = own.map(({ date }) => date).sort()
        return [broker, [...new Set(own.map(({ version }) => version))].join(', '), dates.at(-1)]
      }),
  },
}

/** In the order of their brokers and versions. @returns {import('./version-rows.mjs').VersionRow[]} */
export function readRows(file = ROWS_FILE) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
}

/** Puts a row in the place of the one before of the same minor version of broker and major version of Node. */
export function writeRow(row, file = ROWS_FILE) {
  const rows = [...readRows(file).filter((other) => keyOf(other) !== keyOf(row)), row].sort(
    (one, other) =>
      one.broker.localeCompare(other.broker) ||
      byNumbers(one.version, other.version) ||
      byNumbers(one.node, other.node),
  )
  writeFileSync(file, rowsText(rows))
}

/** A row per line. */
function rowsText(rows) {
  return `[\n${rows.map((row) => `  ${JSON.stringify(row)}`).join(',\n')}\n]\n`
}

/** `RabbitMQ 4.0, Node 20` */
export function keyOf({ broker, version, node }) {
  return `${broker} ${version.split('.').slice(0, 2).join('.')}, Node ${node.split('.')[0]}`
}

/** A page with the tables between their marks. @throws {Error} for a mark without a table */
export function withVersions(page, rows) {
  return page.replaceAll(PLACE, (_, name) => {
    if (!Object.hasOwn(TABLES, name)) throw new Error(`there is no table ${name} of versions`)
    const { titles, rowsOf } = TABLES[name]
    const lines = [titles, titles.map(() => '---'), ...rowsOf(rows)].map((cells) => `| ${cells.join(' | ')} |`)
    return `<!-- versions: ${name} -->\n\n${lines.join('\n')}\n\n<!-- /versions -->`
  })
}

function testsText({ passed, failed }) {
  return failed === 0 ? countText(passed) : `${countText(passed)}, ${countText(failed)} failed`
}

function countText(count) {
  return count.toLocaleString('en-US')
}

function byNumbers(one, other) {
  return one.localeCompare(other, 'en', { numeric: true })
}
